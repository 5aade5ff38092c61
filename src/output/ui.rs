//! Where text goes: results to standard output, everything else to standard error.
//!
//! Each call says what kind of text it prints, so that `--quiet` and colour are decided here and nowhere else.

use std::{
    fmt,
    io::{self, IsTerminal, Write},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    },
    thread,
    time::Duration,
};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

use crate::{cli, escape, settings::ColorWhen};

/// A spinner is shown for what takes longer than this.
const PATIENCE: Duration = Duration::from_millis(500);

/// The program's voice.
#[derive(Clone)]
pub struct Ui {
    quiet: bool,
    json: bool,
    /// Whether standard output belongs to somebody else.
    aside: bool,
    color: bool,
    when: ColorWhen,
    bar: ProgressBar,
    /// What the remote said and was shown, so that an error need not say it again.
    heard: Arc<Mutex<Vec<String>>>,
    unwritten: Arc<AtomicBool>,
}

/// The kinds of verdict, by colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// Yes.
    Good,
    /// No.
    Bad,
    /// Could not tell.
    Doubtful,
}

impl Ui {
    /// A voice as the command line asks for; colour is decided by [`with_color`](Self::with_color).
    pub fn new(global: &cli::Global) -> Self {
        Self {
            quiet: global.quiet,
            json: global.json,
            aside: false,
            color: false,
            when: ColorWhen::Never,
            bar: ProgressBar::hidden(),
            heard: Arc::default(),
            unwritten: Arc::default(),
        }
    }

    /// The same voice, in colour if the settings and the terminal want it.
    ///
    /// git's pager sits between us and the terminal when `GIT_PAGER_IN_USE` is set.
    pub fn with_color(self, when: ColorWhen) -> Self {
        let color = match when {
            ColorWhen::Always => true,
            ColorWhen::Never => false,
            ColorWhen::Auto => {
                io::stdout().is_terminal()
                    || std::env::var("GIT_PAGER_IN_USE").is_ok_and(|value| value == "true")
            }
        };
        Self { color, when, ..self }
    }

    /// The same voice, which tells the result on standard error, since standard output is a command's.
    pub fn aside(&self) -> Self {
        let color = match self.when {
            ColorWhen::Auto => io::stderr().is_terminal(),
            ColorWhen::Always | ColorWhen::Never => self.color,
        };
        Self { aside: true, color, ..self.clone() }
    }

    /// Whether the result is to be one JSON object.
    pub fn json(&self) -> bool {
        self.json
    }

    /// Whether the result is not told at all.
    pub fn quiet(&self) -> bool {
        self.quiet && !self.json
    }

    /// A line of the result, on standard output.
    pub fn result(&self, text: &str) {
        self.result_of(|| std::iter::once(text));
    }

    /// The same, in pieces that are made while it is written: it may be longer than what is to be in memory at once.
    pub fn result_of<P: AsRef<str>, I: Iterator<Item = P>>(&self, pieces: impl Fn() -> I) {
        let text = || pieces().fold(String::new(), |text, piece| text + piece.as_ref());
        if self.quiet() {
            return;
        }
        if self.aside {
            self.err(&text());
            return;
        }
        let written = self.bar.suspend(|| {
            let mut stdout = io::BufWriter::new(io::stdout().lock());
            pieces().try_for_each(|piece| stdout.write_all(piece.as_ref().as_bytes()))?;
            stdout.write_all(b"\n").and_then(|()| stdout.flush())
        });
        match written {
            // A reader that has gone away (`git claim list | head -1`) has read all that it wanted.
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                let text = text();
                self.error(&format!("the answer could not be written ({error}); it was: {text}"));
                self.unwritten.store(true, Ordering::Relaxed);
            }
            _ => {}
        }
    }

    /// Whether a part of the result could not be written: then the exit status must not say that all is well.
    pub fn unwritten(&self) -> bool {
        self.unwritten.load(Ordering::Relaxed)
    }

    /// A line of explanation, on standard error.
    pub fn say(&self, text: &str) {
        if !self.quiet && !self.json {
            self.err(text);
        }
    }

    /// What to do next.
    pub fn hint(&self, text: &str) {
        if !self.quiet && !self.json {
            self.err(&format!("hint: {text}"));
        }
    }

    /// Something that the user did not ask about and has to know.
    pub fn warn(&self, text: &str) {
        if !self.quiet {
            self.err(&format!("warning: {text}"));
        }
    }

    /// What went wrong; never silenced.
    pub fn error(&self, text: &str) {
        self.err(&format!("error: {text}"));
    }

    /// A line that the remote said, or `teller`, the program of ours that speaks to it.
    pub fn remote(&self, teller: &str, text: &str) {
        if self.quiet {
            return;
        }
        // git's helpers mark the remote's words themselves.
        let (who, said) = match text.strip_prefix("remote:") {
            Some(said) => ("remote", said),
            None => (teller, text),
        };
        // A command that is tried again is answered in the same words.
        let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        if !heard.iter().any(|heard| heard == text) {
            heard.push(text.to_owned());
            self.err(&format!("{who}: {}", escape::line(said.trim())));
        }
    }

    /// Those lines of `reason` that were not shown as the remote's words already.
    pub fn unheard(&self, reason: &str) -> Vec<String> {
        let heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        reason
            .lines()
            .filter(|line| !heard.iter().any(|heard| heard == line))
            .map(str::to_owned)
            .collect()
    }

    /// `word` in the colour of `tone`.
    pub fn paint(&self, tone: Tone, word: &str) -> String {
        if !self.color {
            return word.to_owned();
        }
        let code = match tone {
            Tone::Good => 32,
            Tone::Bad => 31,
            Tone::Doubtful => 33,
        };
        format!("\x1b[{code}m{word}\x1b[m")
    }

    /// Shows that something is going on, until the guard is dropped.
    ///
    /// Where a child may ask for a password at the terminal (`may_ask`), nothing moves: one line says beforehand
    /// whom we ask. Otherwise a spinner appears after half a second.
    pub fn progress(&self, doing: &str, may_ask: bool) -> Progress {
        let (done, stop) = channel();
        if self.quiet || !io::stderr().is_terminal() {
            return Progress { bar: self.bar.clone(), _done: done };
        }
        if may_ask {
            self.say(doing);
        } else {
            let (bar, doing) = (self.bar.clone(), doing.to_owned());
            thread::spawn(move || show_late(&bar, doing, &stop));
        }
        Progress { bar: self.bar.clone(), _done: done }
    }

    /// Shows on a terminal how long `doing` has lasted and, in brackets, what is left of `of`, until the guard is
    /// dropped.
    pub fn waiting(&self, doing: &str, of: Option<Duration>) -> Progress {
        let (done, _) = channel();
        if !self.quiet && io::stderr().is_terminal() {
            let left = move |state: &ProgressState, out: &mut dyn fmt::Write| {
                let left = of.map(|of| of.saturating_sub(state.elapsed()).as_secs());
                let _ = match left {
                    Some(left) => {
                        let left = humantime::format_duration(Duration::from_secs(left));
                        write!(out, "({left} left)")
                    }
                    None => write!(out, "(for as long as it takes)"),
                };
            };
            let style = ProgressStyle::with_template("{spinner} {msg} {elapsed} {left}");
            self.bar.reset();
            self.bar.set_style(
                style.unwrap_or_else(|_| ProgressStyle::default_spinner()).with_key("left", left),
            );
            self.bar.set_message(doing.to_owned());
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
            self.bar.enable_steady_tick(Duration::from_millis(250));
        }
        Progress { bar: self.bar.clone(), _done: done }
    }

    fn err(&self, text: &str) {
        // There is nowhere left to say that standard error cannot be written.
        let _ = self.bar.suspend(|| writeln!(io::stderr().lock(), "{text}"));
    }
}

fn show_late(bar: &ProgressBar, doing: String, stop: &Receiver<()>) {
    if stop.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
        bar.set_style(ProgressStyle::default_spinner());
        bar.set_message(doing);
        bar.set_draw_target(ProgressDrawTarget::stderr());
        bar.enable_steady_tick(Duration::from_millis(100));
    }
}

/// Takes the spinner away when dropped.
pub struct Progress {
    bar: ProgressBar,
    _done: Sender<()>,
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
