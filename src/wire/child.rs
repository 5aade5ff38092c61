//! Programs that speak for us: `git upload-pack`, `git receive-pack`, `ssh`, `git-remote-<helper>`.
//!
//! No read or write of ours can outlast the deadline, whoever else holds the other end of a child's pipe. A child is
//! always ended: by the end of its input, then by a request (TERM, which lets `git` end its own children), then for good.

use std::{
    io::{self, Read},
    process::{self, Command, Stdio},
    sync::mpsc::{Receiver, Sender, channel},
    thread,
    time::Duration,
};

use super::{
    LinkError,
    deadline::Deadline,
    leavings,
    pipe::{PipeReader, PipeWriter},
    words::{self, Words},
};

/// How long a child may take to end by itself once its input is closed.
const OWN_END: Duration = Duration::from_millis(100);
/// How long a child may take to end once asked to.
const ASKED_END: Duration = Duration::from_millis(500);
/// How long to wait for the last words of a child whose output has ended.
const LAST_WORDS: Duration = Duration::from_millis(300);

/// A running child. Dropping it ends the program.
pub struct Child {
    process: process::Child,
    /// Whether it leads a process group of its own, all of which is ended.
    #[cfg(unix)]
    leads: bool,
    quiet: Receiver<()>,
}

/// Who may speak to the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Terminal {
    /// The child may ask for a password there, so it stays in the group of processes that the terminal belongs to.
    May,
    /// Nobody is there to be asked. The child gets a group of its own: a shell that runs the user's ssh command does not
    /// pass on the signal that ends it.
    No,
}

impl Terminal {
    fn prepare(self, command: &mut Command) -> bool {
        #[cfg(unix)]
        if self == Self::No {
            std::os::unix::process::CommandExt::process_group(command, 0);
            return true;
        }
        let _ = command;
        false
    }
}

/// Starts `command` with its three standard streams in our hands; its standard error goes to `words`.
pub fn spawn(
    mut command: Command,
    terminal: Terminal,
    deadline: Deadline,
    words: &Words,
) -> Result<(Child, PipeReader, PipeWriter), LinkError> {
    let program = command.get_program().to_string_lossy().into_owned();
    speak_plainly(&mut command);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let leads = terminal.prepare(&mut command);
    let mut process = command
        .spawn()
        .map_err(|error| LinkError::Local(format!("cannot start '{program}': {error}")))?;
    let (Some(stdin), Some(stdout), Some(stderr)) =
        (process.stdin.take(), process.stdout.take(), process.stderr.take())
    else {
        return Err(LinkError::Local(format!("no pipes to '{program}'")));
    };
    let (speaking, quiet) = channel();
    let child = Child::new(process, leads, quiet);
    let ends = PipeReader::over(stdout, deadline)
        .and_then(|reader| Ok((reader, PipeWriter::over(stdin)?)));
    let (reader, writer) = ends.map_err(|error| {
        LinkError::Local(format!("no use of the pipes to '{program}': {error}"))
    })?;
    let words = words.clone();
    thread::spawn(move || listen(stderr, &words, speaking));
    Ok((child, reader, writer))
}

/// Runs `command` in silence and says whether it succeeds; one that cannot be started does not.
pub fn succeeds(
    mut command: Command,
    terminal: Terminal,
    deadline: Deadline,
) -> Result<bool, LinkError> {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let leads = terminal.prepare(&mut command);
    let Ok(process) = command.spawn() else { return Ok(false) };
    let (_, quiet) = channel();
    let mut child = Child::new(process, leads, quiet);
    if !child.ends_within(deadline.left()) {
        return Err(deadline.error());
    }
    Ok(matches!(child.process.try_wait(), Ok(Some(status)) if status.success()))
}

/// Texts of children are shown to people and searched for signs of a closed door: ask for the untranslated ones,
/// without touching the encoding (which `LC_ALL=C` would).
fn speak_plainly(command: &mut Command) {
    command.env_remove("LC_ALL").env_remove("LANGUAGE").env("LC_MESSAGES", "C");
}

/// Takes away what names *our* repository (`git rev-parse --local-env-vars`), as git does before it starts a server for
/// another one.
pub fn clean_repository_environment(command: &mut Command) {
    const LOCAL: [&str; 16] = [
        "GIT_ALTERNATE_OBJECT_DIRECTORIES",
        "GIT_COMMON_DIR",
        "GIT_CONFIG",
        "GIT_CONFIG_COUNT",
        "GIT_CONFIG_PARAMETERS",
        "GIT_DIR",
        "GIT_GRAFT_FILE",
        "GIT_IMPLICIT_WORK_TREE",
        "GIT_INDEX_FILE",
        "GIT_INTERNAL_SUPER_PREFIX",
        "GIT_NO_REPLACE_OBJECTS",
        "GIT_OBJECT_DIRECTORY",
        "GIT_PREFIX",
        "GIT_REPLACE_REF_BASE",
        "GIT_SHALLOW_FILE",
        "GIT_WORK_TREE",
    ];
    for name in LOCAL {
        command.env_remove(name);
    }
}

/// Copies standard error to `words` until its end; dropping `_speaking` says that it came.
fn listen(mut stderr: impl Read, words: &Words, _speaking: Sender<()>) {
    let mut chunk = [0; 4096];
    loop {
        match stderr.read(&mut chunk) {
            Ok(0) => break,
            Ok(count) => words.hear(&chunk[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
}

impl Child {
    fn new(process: process::Child, leads: bool, quiet: Receiver<()>) -> Self {
        leavings::started(process.id(), leads);
        Self {
            process,
            #[cfg(unix)]
            leads,
            quiet,
        }
    }

    /// Waits a moment for what the child still has to say on standard error.
    pub fn last_words(&self) {
        let _ = self.quiet.recv_timeout(LAST_WORDS);
    }

    fn ends_within(&mut self, limit: Duration) -> bool {
        let deadline = Deadline::after(limit);
        // Most end at once, and are not to be waited for much longer than they take.
        let mut pause = Duration::from_micros(50);
        loop {
            match self.process.try_wait() {
                Ok(Some(_)) => return true,
                Ok(None) if deadline.passed() => return false,
                Ok(None) => thread::sleep(pause),
                Err(_) => return false,
            }
            pause = (pause * 2).min(Duration::from_millis(1));
        }
    }

    #[cfg(unix)]
    fn signal(&self, signal: rustix::process::Signal) {
        use rustix::process::{Pid, kill_process, kill_process_group};
        // Called before the child was waited for, so the number is still its own.
        if let Some(pid) = i32::try_from(self.process.id()).ok().and_then(Pid::from_raw) {
            let _ = if self.leads {
                kill_process_group(pid, signal)
            } else {
                kill_process(pid, signal)
            };
        }
    }

    fn ask_to_end(&self) {
        #[cfg(unix)]
        self.signal(rustix::process::Signal::TERM);
    }

    fn end(&mut self) {
        #[cfg(unix)]
        self.signal(rustix::process::Signal::KILL);
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if !self.ends_within(OWN_END) {
            self.ask_to_end();
            if !self.ends_within(ASKED_END) {
                self.end();
            }
        }
        leavings::ended(self.process.id());
    }
}

/// What the failure of a read or write means for the conversation.
pub fn broken_off(
    child: Option<&Child>,
    deadline: &Deadline,
    words: &Words,
    error: &io::Error,
) -> LinkError {
    if matches!(error.kind(), io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock) {
        return deadline.error();
    }
    if let Some(child) = child {
        child.last_words();
    }
    words::no_conversation(&words.take(), &format!("the remote hung up ({error})"))
}

#[cfg(all(test, unix))]
mod tests {
    use std::{io::Write, time::Instant};

    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn a_silent_child_is_left_at_the_deadline_and_ended() {
        let start = Instant::now();
        let deadline = Deadline::after(Duration::from_millis(50));
        let (child, mut reader, writer) =
            spawn(shell("sleep 60 & sleep 60"), Terminal::No, deadline, &Words::new(|_| {}))
                .expect("sh starts");
        let error = reader.read(&mut [0; 10]).expect_err("nothing comes");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        drop(writer);
        drop(child);
        assert!(start.elapsed() < Duration::from_secs(20));
    }

    #[test]
    fn what_goes_in_comes_out_and_errors_become_words() {
        let words = Words::new(|_| {});
        let deadline = Deadline::after(Duration::from_secs(20));
        let (child, mut reader, mut writer) =
            spawn(shell("echo aside >&2; cat"), Terminal::May, deadline, &words)
                .expect("sh starts");
        writer.write_all(b"hello").and_then(|()| writer.flush()).expect("it listens");
        drop(writer);
        let mut out = String::new();
        reader.read_to_string(&mut out).expect("until the end");
        child.last_words();
        assert_eq!((out.as_str(), words.take().as_str()), ("hello", "aside"));
    }
}
