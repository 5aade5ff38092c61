//! The command that runs under a claim, as a process.
//!
//! It stays in our process group and has our standard streams, so that a terminal, a shell's job control and whoever
//! ends a whole group meet it as if we were not there. It is reaped here only, and never signalled once it was.

use std::{
    ffi::OsString,
    io,
    process::{Child, Command, ExitStatus},
    sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc::Sender},
    thread,
    time::{Duration, Instant},
};

use super::Event;
use crate::{claim::record::Process, process};

/// A command that runs.
#[derive(Clone)]
pub struct Job {
    /// `None` once it was reaped.
    child: Arc<Mutex<Option<Child>>>,
    /// What was passed on last.
    #[cfg(unix)]
    told: Arc<Mutex<Option<Told>>>,
}

/// A signal that was passed on.
#[cfg(unix)]
struct Told {
    signal: i32,
    /// What the command had started by then.
    started: Vec<Process>,
}

/// How often those are looked after that were asked to end.
const LOOK: Duration = Duration::from_millis(20);

impl Job {
    /// Starts `command` with `variables` added to the environment, and sends its end to `events`.
    ///
    /// # Errors
    /// When it cannot be started: not found, not executable.
    pub fn start(
        command: &[OsString],
        variables: &[(&str, String)],
        events: Sender<Event>,
    ) -> io::Result<Self> {
        let (program, arguments) =
            command.split_first().ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
        let child = Command::new(program)
            .args(arguments)
            .envs(variables.iter().map(|(name, value)| (name, value)))
            .spawn()?;
        let number = child.id();
        let job = Self {
            child: Arc::new(Mutex::new(Some(child))),
            #[cfg(unix)]
            told: Arc::default(),
        };
        let waiting = job.clone();
        thread::spawn(move || {
            let status = waiting.wait(number);
            // Nobody listens any more only when we are about to end.
            let _ = events.send(Event::Ended(status));
        });
        Ok(job)
    }

    /// Whether it has ended and was reaped.
    pub fn has_ended(&self) -> bool {
        self.child().is_none()
    }

    /// After its end: waits for those that were asked to end with it, and ends them at `at`.
    pub fn end_left(&self, asked: &[Process], at: Instant) {
        while asked.iter().any(process::runs) {
            if Instant::now() >= at {
                self.end(asked);
                return;
            }
            thread::sleep(LOOK);
        }
    }

    fn child(&self) -> MutexGuard<'_, Option<Child>> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for its end and reaps it.
    fn wait(&self, number: u32) -> io::Result<ExitStatus> {
        ended(number, self);
        match self.child().take() {
            Some(mut child) => child.wait(),
            None => Err(io::Error::other("it was waited for twice")),
        }
    }
}

/// Returns when the process has ended and before it is reaped, so that its number still stands for it.
#[cfg(unix)]
fn ended(number: u32, _: &Job) {
    use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
    let Some(pid) = i32::try_from(number).ok().and_then(Pid::from_raw) else { return };
    let until = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    while matches!(waitid(WaitId::Pid(pid), until), Err(rustix::io::Errno::INTR)) {}
}

/// Returns when the process has ended.
#[cfg(not(unix))]
fn ended(_: u32, job: &Job) {
    while matches!(job.child().as_mut().map(Child::try_wait), Some(Ok(None))) {
        thread::sleep(std::time::Duration::from_millis(20));
    }
}

#[cfg(unix)]
mod signals {
    use std::{
        os::unix::process::ExitStatusExt,
        process::{Child, ExitStatus},
        sync::PoisonError,
    };

    use rustix::process::{Pid, Signal, kill_process};

    use super::{Job, Told};
    use crate::{claim::record::Process, process};

    impl Job {
        /// Passes a signal on. Does nothing once the command has ended.
        pub fn signal(&self, signal: i32) {
            let Some(known) = Signal::from_named_raw(signal) else { return };
            let number = self.child().as_ref().map(Child::id);
            let Some(started) = number.map(process::descendants) else { return };
            *self.told.lock().unwrap_or_else(PoisonError::into_inner) =
                Some(Told { signal, started });
            self.send(known);
        }

        /// After its end with `status`: where a signal that was passed on ended it, what it has left behind is sent that
        /// signal too, and told. A shell passes none on to the programs that it waits for, and they are the work.
        pub fn left_behind(&self, status: ExitStatus) -> Vec<Process> {
            let told = self.told.lock().unwrap_or_else(PoisonError::into_inner).take();
            let Some(Told { signal, started }) = told else { return Vec::new() };
            if ExitStatusExt::signal(&status) != Some(signal) {
                return Vec::new();
            }
            if let Some(signal) = Signal::from_named_raw(signal) {
                send_each(&started, signal);
            }
            started
        }

        /// Asks it to end, and whatever it has started; gives the latter.
        pub fn ask_to_end(&self) -> Vec<Process> {
            let number = self.child().as_ref().map(Child::id);
            let started = number.map(process::descendants).unwrap_or_default();
            // The command first: a shell whose program ends goes on to the next one.
            self.send(Signal::TERM);
            send_each(&started, Signal::TERM);
            // One that is stopped does not hear of it before it goes on.
            send_each(&started, Signal::CONT);
            self.send(Signal::CONT);
            started
        }

        /// Ends it, what is left of those that were asked to, and what they have started since.
        pub fn end(&self, asked: &[Process]) {
            let number = self.child().as_ref().map(Child::id);
            let left = asked.iter().filter(|process| process::runs(process));
            let numbers = left.map(|process| process.pid).chain(number);
            let since: Vec<Process> = numbers.flat_map(process::descendants).collect();
            self.send(Signal::KILL);
            send_each(asked, Signal::KILL);
            send_each(&since, Signal::KILL);
        }

        fn send(&self, signal: Signal) {
            // Held while sending: it cannot be reaped, and its number given to another, meanwhile.
            let child = self.child();
            if let Some(pid) = child.as_ref().and_then(|child| of(child.id())) {
                let _ = kill_process(pid, signal);
            }
        }
    }

    /// Sends `signal` to those that still are who they were.
    fn send_each(processes: &[Process], signal: Signal) {
        for process in processes.iter().filter(|process| process::runs(process)) {
            if let Some(pid) = of(process.pid) {
                let _ = kill_process(pid, signal);
            }
        }
    }

    fn of(number: u32) -> Option<Pid> {
        i32::try_from(number).ok().and_then(Pid::from_raw)
    }
}

#[cfg(not(unix))]
impl Job {
    /// No signals come here.
    pub fn signal(&self, _: i32) {}

    /// Nothing is known of what it has started.
    pub fn left_behind(&self, _: ExitStatus) -> Vec<Process> {
        Vec::new()
    }

    /// There is no asking here.
    pub fn ask_to_end(&self) -> Vec<Process> {
        self.end(&[]);
        Vec::new()
    }

    /// Ends it.
    pub fn end(&self, _: &[Process]) {
        if let Some(child) = self.child().as_mut() {
            let _ = child.kill();
        }
    }
}

/// The exit status that a shell gives for `status`.
pub fn code(status: ExitStatus) -> u8 {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return u8::try_from(128 + signal).unwrap_or(u8::MAX);
    }
    status.code().and_then(|code| u8::try_from(code & 0xff).ok()).unwrap_or(u8::MAX)
}
