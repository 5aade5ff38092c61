//! Ends a process at a system call of its own, before the call is made: `strace`, told to.
//!
//! Only the thread that decides is watched: it writes the records, and it sends. Children are left to do what they can.

use std::{
    collections::HashMap,
    fs,
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use rustix::process::Signal;

use crate::support::{
    Output,
    output::{Run, Running},
    servers,
};

/// Calls that change something outside of the process, as far as a system has them. `openat` does if it creates.
const WRITING: [&str; 29] = [
    "write",
    "writev",
    "pwrite64",
    "pwritev",
    "sendto",
    "sendmsg",
    "sendfile",
    "connect",
    "shutdown",
    "rename",
    "renameat",
    "renameat2",
    "link",
    "linkat",
    "symlink",
    "symlinkat",
    "unlink",
    "unlinkat",
    "mkdir",
    "mkdirat",
    "rmdir",
    "openat",
    "ftruncate",
    "fsync",
    "fdatasync",
    "clone",
    "clone3",
    "vfork",
    "kill",
];

/// Which calls are of interest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Calls {
    Writing,
    All,
}

impl Calls {
    fn names(self) -> String {
        match self {
            // A name that a system does not have is no reason.
            Self::Writing => WRITING.map(|name| format!("?{name}")).join(","),
            Self::All => "all".into(),
        }
    }
}

/// One call that a process makes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Call {
    name: String,
    /// Among those of its name.
    number: u64,
}

/// When a process is killed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Moment {
    /// Before this call.
    Call(Call),
    /// After so long, where nobody may watch its calls.
    Time(Duration),
}

/// Whether `strace` is there.
pub(super) fn is_there() -> Option<()> {
    match servers::program("strace") {
        Some(_) => Some(()),
        None => servers::skip("there is no strace"),
    }
}

/// Whether it may watch anything here: containers forbid it now and then.
pub(super) fn may_watch() -> bool {
    let mut strace = Command::new("strace");
    let watched = strace.args(["-qq", "-o", "/dev/null", "true"]).stderr(Stdio::null()).status();
    watched.is_ok_and(|status| status.success())
}

/// What to put before a command to have its calls written to `log`.
pub(super) fn watch(calls: Calls, log: &Path) -> Vec<String> {
    let names = calls.names();
    ["strace", "-qq", "-o", log.to_str().unwrap(), "-e", &format!("trace={names}")]
        .map(str::to_owned)
        .to_vec()
}

/// The calls that are of interest, by such a log.
pub(super) fn made(log: &Path) -> Vec<Call> {
    let log = fs::read(log).unwrap();
    let mut numbers = HashMap::new();
    let mut calls = Vec::new();
    for line in String::from_utf8_lossy(&log).lines() {
        let Some((name, arguments)) = line.split_once('(') else { continue };
        if !name
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
        {
            continue;
        }
        let number = numbers.entry(name.to_owned()).or_default();
        *number += 1;
        // The first of all is the one by which the program begins.
        let is_begin = name == "execve" && *number == 1;
        if !is_begin && (name != "openat" || arguments.contains("O_CREAT")) {
            calls.push(Call { name: name.to_owned(), number: *number });
        }
    }
    calls
}

/// What to put before a command to have it killed before that call.
pub(super) fn kill_at(call: &Call) -> Vec<String> {
    let Call { name, number } = call;
    let (only, kill) =
        (format!("trace={name}"), format!("inject={name}:signal=KILL:when={number}"));
    ["strace", "-qq", "-o", "/dev/null", "-e", &only, "-e", &kill].map(str::to_owned).to_vec()
}

/// Runs what `under` makes of the words to put before it, and kills it then.
pub(super) fn killed(moment: &Moment, under: impl Fn(&[String]) -> Run) -> Output {
    match moment {
        Moment::Call(call) => under(&kill_at(call)).go(),
        Moment::Time(time) => {
            let mut running: Running = under(&[]).start();
            std::thread::sleep(*time);
            running.signal(Signal::KILL);
            running.end()
        }
    }
}
