//! Running one command, and what came of it.
//!
//! Output goes to files, not to pipes: a child that outlives the program cannot then hang the test,
//! and whether one does is a question of its own.

use std::{
    ffi::OsStr,
    fmt,
    fs::File,
    io::{Seek, Write},
    os::unix::fs::FileExt,
    path::Path,
    process::{Child, ChildStdin, Command, Stdio},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};

/// A command that never ends is a failed test, not a hung one.
const LIMIT: Duration = Duration::from_secs(60);
/// Between two looks at something that is waited for.
const PAUSE: Duration = Duration::from_millis(10);

/// One command to run, in an environment that was cleared and then filled from an allow-list.
pub(crate) struct Run {
    command: Command,
    shown: String,
    input: Vec<u8>,
}

impl Run {
    pub(crate) fn new<S: AsRef<OsStr>>(
        program: impl AsRef<OsStr>,
        args: impl IntoIterator<Item = S>,
        dir: &Path,
        env: &[(String, String)],
    ) -> Self {
        let mut command = Command::new(program.as_ref());
        command.args(args).current_dir(dir).env_clear().envs(env.iter().cloned());
        let mut shown = program.as_ref().to_string_lossy().into_owned();
        for arg in command.get_args() {
            shown.push(' ');
            shown.push_str(&arg.to_string_lossy());
        }
        Run { command, shown, input: Vec::new() }
    }

    pub(crate) fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    pub(crate) fn without(mut self, name: &str) -> Self {
        self.command.env_remove(name);
        self
    }

    pub(crate) fn within(mut self, dir: impl AsRef<Path>) -> Self {
        self.command.current_dir(dir);
        self
    }

    pub(crate) fn input(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.input = bytes.into();
        self
    }

    /// Runs to the end, with the answer in JSON.
    #[track_caller]
    pub(crate) fn go_json(mut self) -> Output {
        self.command.arg("--json");
        self.shown.push_str(" --json");
        self.go()
    }

    /// Runs to the end.
    #[track_caller]
    pub(crate) fn go(self) -> Output {
        self.go_while(|_| {})
    }

    /// Runs to the end; `meanwhile` is given the number of the process.
    #[track_caller]
    pub(crate) fn go_while(self, meanwhile: impl FnOnce(u32)) -> Output {
        let running = self.start();
        meanwhile(running.pid());
        running.end()
    }

    /// Starts it, and does not wait.
    #[track_caller]
    pub(crate) fn start(self) -> Running {
        let mut input = tempfile::tempfile().unwrap();
        input.write_all(&self.input).unwrap();
        input.rewind().unwrap();
        let input = if self.input.is_empty() { Stdio::null() } else { input.into() };
        self.start_with(input)
    }

    /// Starts it with a pipe for its standard input.
    #[track_caller]
    pub(crate) fn start_typing(self) -> (Running, ChildStdin) {
        let mut running = self.start_with(Stdio::piped());
        let input = running.child.stdin.take().unwrap();
        (running, input)
    }

    #[track_caller]
    fn start_with(mut self, input: Stdio) -> Running {
        let (stdout, stderr) = (tempfile::tempfile().unwrap(), tempfile::tempfile().unwrap());
        self.command
            .stdin(input)
            .stdout(stdout.try_clone().unwrap())
            .stderr(stderr.try_clone().unwrap());
        let child = match self.command.spawn() {
            Ok(child) => child,
            Err(error) => panic!("cannot start {}: {error}", self.shown),
        };
        Running { child, shown: self.shown, stdout, stderr, started: Instant::now() }
    }
}

/// A command that runs. It ends with this value.
pub(crate) struct Running {
    child: Child,
    shown: String,
    stdout: File,
    stderr: File,
    started: Instant,
}

impl Running {
    /// The number of the process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends it a signal, unless it has ended and was seen to.
    pub(crate) fn signal(&mut self, signal: Signal) {
        if !self.has_ended() {
            let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
            kill_process(pid.unwrap(), signal).unwrap();
        }
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// What it has said so far.
    pub(crate) fn stdout(&self) -> String {
        text(&self.stdout)
    }

    /// What it has said so far on standard error.
    pub(crate) fn stderr(&self) -> String {
        text(&self.stderr)
    }

    /// Waits until it has said `words` on standard error.
    #[track_caller]
    pub(crate) fn until_it_says(&mut self, words: &str) {
        let started = Instant::now();
        while !self.stderr().contains(words) {
            let over = self.has_ended() || started.elapsed() > LIMIT;
            assert!(!over || self.stderr().contains(words), "it never said `{words}`\n{self}");
            std::thread::sleep(PAUSE);
        }
    }

    /// Waits for its end.
    #[track_caller]
    pub(crate) fn end(mut self) -> Output {
        let mut pause = Duration::from_millis(1);
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(self.started.elapsed() <= LIMIT, "no end after {LIMIT:?}\n{self}");
            std::thread::sleep(pause);
            pause = (pause * 2).min(PAUSE);
        };
        Output {
            shown: self.shown.clone(),
            code: status.code(),
            status: status.to_string(),
            stdout: self.stdout(),
            stderr: self.stderr(),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl fmt::Display for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "$ {}", self.shown)?;
        writeln!(f, "--- stdout\n{}--- stderr\n{}---", self.stdout(), self.stderr())
    }
}

/// Waits until `holds`.
#[track_caller]
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() <= LIMIT, "waited {LIMIT:?} in vain: {what}");
        std::thread::sleep(PAUSE);
    }
}

/// Reads without moving the place where the child writes, which is the same open file.
fn text(file: &File) -> String {
    let mut bytes = vec![0; usize::try_from(file.metadata().unwrap().len()).unwrap()];
    let mut read = 0;
    while read < bytes.len() {
        match file.read_at(&mut bytes[read..], read as u64).unwrap() {
            0 => break,
            count => read += count,
        }
    }
    String::from_utf8_lossy(&bytes[..read]).into_owned()
}

/// What a command said, and how it ended.
#[must_use = "look at it, or say that only the end counts: `.ok()`"]
pub(crate) struct Output {
    shown: String,
    status: String,
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Output {
    /// It ended well; gives its standard output without the last line end.
    #[track_caller]
    pub(crate) fn ok(self) -> String {
        assert_eq!(self.code, Some(0), "{self}");
        self.stdout.trim_end().to_owned()
    }

    /// It ended with `code`, and its last line of standard output is the verdict that starts with `verdict`.
    #[track_caller]
    pub(crate) fn is(self, code: i32, verdict: &str) -> Self {
        assert_eq!(self.code, Some(code), "expected {code} and `{verdict}`\n{self}");
        assert!(self.verdict().starts_with(verdict), "expected `{verdict}`\n{self}");
        self
    }

    /// The lines of standard output, each cut down to the verdict and the name.
    pub(crate) fn verdicts(&self) -> Vec<String> {
        let short = |line: &str| line.split(' ').take(2).collect::<Vec<_>>().join(" ");
        self.stdout.lines().map(short).collect()
    }

    /// It ended with `code`, and gave just these verdicts about these names.
    #[track_caller]
    pub(crate) fn gives(self, code: i32, verdicts: &[&str]) -> Self {
        let verdicts: Vec<String> = verdicts.iter().map(|&line| line.to_owned()).collect();
        assert_eq!((self.code, self.verdicts()), (Some(code), verdicts), "{self}");
        self
    }

    /// Standard error holds `words`.
    #[track_caller]
    pub(crate) fn says(self, words: &str) -> Self {
        assert!(self.stderr.contains(words), "expected `{words}` on standard error\n{self}");
        self
    }

    /// The last line of standard output.
    pub(crate) fn verdict(&self) -> &str {
        self.stdout.lines().last().unwrap_or_default()
    }

    /// The id at the end of the verdict.
    #[track_caller]
    pub(crate) fn id(&self) -> String {
        let word = self.verdict().rsplit(' ').next().unwrap_or_default();
        let is_id = matches!(word.len(), 40 | 64) && word.bytes().all(|b| b.is_ascii_hexdigit());
        assert!(is_id, "no id at the end of the verdict\n{self}");
        word.to_owned()
    }

    /// Standard output as the one documented object, in agreement with the exit code.
    #[track_caller]
    pub(crate) fn json(&self) -> serde_json::Value {
        let value: serde_json::Value = match serde_json::from_str(&self.stdout) {
            Ok(value) => value,
            Err(error) => panic!("not one JSON value: {error}\n{self}"),
        };
        assert_eq!(value["version"], 1, "{self}");
        assert_eq!(value["exit"], serde_json::json!(self.code), "{self}");
        assert!(value["command"].is_string() && value["verdict"].is_string(), "{self}");
        assert!(value["claims"].is_array(), "{self}");
        value
    }
}

impl fmt::Display for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "$ {}\n{}", self.shown, self.status)?;
        writeln!(f, "--- stdout\n{}--- stderr\n{}---", self.stdout, self.stderr)
    }
}
