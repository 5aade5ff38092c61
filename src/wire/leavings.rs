//! What must not outlive us: temporary folders, and children that no terminal's signals reach.
//!
//! Objects on their way to and from git's helpers lie in temporary folders and not in the clone. A signal that ends us
//! takes them, and the children, along; then it does what it would have done.
//!
//! A verb that has something to put right on the remote before it ends puts the signal off with [`Deferred`].

use std::{
    io,
    net::TcpStream,
    path::{Path, PathBuf},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering},
    },
};

use tempfile::TempDir;

/// The folders that exist now.
static OPEN: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// The children that run now, by number, and whether each leads a process group of its own.
static CHILDREN: Mutex<Vec<(u32, bool)>> = Mutex::new(Vec::new());

/// The connections that no child holds for us, with a number each to tell them apart.
static SOCKETS: Mutex<Vec<(u64, TcpStream)>> = Mutex::new(Vec::new());

/// Whether a signal is put off.
static DEFERRING: AtomicBool = AtomicBool::new(false);

/// The signal that was put off; 0 is none.
static PUT_OFF: AtomicI32 = AtomicI32::new(0);

/// Has a child ended with us, and its process group if it leads one, until [`ended`].
pub fn started(child: u32, leads: bool) {
    // The signals of a terminal reach the others by themselves.
    #[cfg(unix)]
    if leads {
        signals::watch();
    }
    children().push((child, leads));
}

/// The child is gone.
pub fn ended(child: u32) {
    children().retain(|(other, _)| *other != child);
}

fn children() -> MutexGuard<'static, Vec<(u32, bool)>> {
    CHILDREN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn sockets() -> MutexGuard<'static, Vec<(u64, TcpStream)>> {
    SOCKETS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// While it exists, the first signal that would end us only cuts the running exchange short and is remembered; a second
/// one, and not the copy of the first that git hands on, ends us as ever. When it is dropped, what was put off happens. There is one at a time.
#[must_use]
pub struct Deferred(());

impl Deferred {
    /// Puts signals off from here on.
    pub fn begin() -> Self {
        PUT_OFF.store(0, Ordering::SeqCst);
        DEFERRING.store(true, Ordering::SeqCst);
        #[cfg(unix)]
        signals::watch();
        Self(())
    }

    /// The number of the signal that came meanwhile.
    pub fn signal(&self) -> Option<i32> {
        Some(PUT_OFF.load(Ordering::SeqCst)).filter(|signal| *signal != 0)
    }
}

impl Drop for Deferred {
    fn drop(&mut self) {
        DEFERRING.store(false, Ordering::SeqCst);
        #[cfg(unix)]
        if let Some(signal) = self.signal() {
            signals::end_by(signal);
        }
    }
}

/// What is to be done about a signal: its number, and whether the terminal sent it, which sends to all of its group. Says
/// whether that is all; otherwise the signal ends us.
type Handler = Box<dyn Fn(i32, bool) -> bool + Send>;

/// Who is told of signals instead.
static HANDLER: Mutex<Option<Handler>> = Mutex::new(None);

/// While it exists, somebody else is told of the signals that would end us.
#[must_use]
pub struct Relay(());

impl Relay {
    /// Tells `handler` of each signal, on a thread of its own: its number, and whether the terminal sent it, which sends to
    /// all of its group. Where it says no, the signal ends us as ever.
    pub fn begin(handler: impl Fn(i32, bool) -> bool + Send + 'static) -> Self {
        *relayed() = Some(Box::new(handler));
        #[cfg(unix)]
        signals::watch();
        Self(())
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        relayed().take();
    }
}

fn relayed() -> MutexGuard<'static, Option<Handler>> {
    HANDLER.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether a command has left and its answer is waited for.
static SENT: AtomicBool = AtomicBool::new(false);

/// While it exists, a command has left and its answer is waited for.
#[must_use]
pub struct Sent(());

impl Sent {
    /// The command leaves now.
    pub fn begin() -> Self {
        SENT.store(true, Ordering::SeqCst);
        Self(())
    }
}

impl Drop for Sent {
    fn drop(&mut self) {
        SENT.store(false, Ordering::SeqCst);
    }
}

/// Ends whatever carries an exchange, so that the exchange fails soon; but not one whose command has left: without its
/// answer nobody could tell what became of it, and the server may carry it out later.
pub fn interrupt() {
    #[cfg(unix)]
    if !SENT.load(Ordering::SeqCst) {
        signals::cut_short();
    }
}

/// A connection that a signal which is put off cuts, as long as this exists.
pub struct Socket(u64);

impl Socket {
    /// Has `stream` cut.
    pub fn of(stream: &TcpStream) -> io::Result<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        sockets().push((number, stream.try_clone()?));
        Ok(Self(number))
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        sockets().retain(|(number, _)| *number != self.0);
    }
}

fn open() -> MutexGuard<'static, Vec<PathBuf>> {
    OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A temporary folder.
pub struct Place(TempDir);

impl Place {
    /// Makes one, where the system has its temporary files.
    pub fn new() -> io::Result<Self> {
        #[cfg(unix)]
        signals::watch();
        let folder = tempfile::Builder::new().prefix("git-claim-").tempdir()?;
        open().push(folder.path().to_owned());
        Ok(Self(folder))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        open().retain(|path| path != self.0.path());
    }
}

#[cfg(unix)]
mod signals {
    use std::{
        collections::HashMap,
        fs,
        net::Shutdown,
        os::unix::process::parent_id,
        sync::{Once, atomic::Ordering},
        thread,
        time::{Duration, Instant},
    };

    use rustix::process::{Pid, Signal, kill_process, kill_process_group};
    use signal_hook::{
        consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM},
        iterator::{SignalsInfo, exfiltrator::WithOrigin},
        low_level::{
            emulate_default_handler,
            siginfo::{Cause, Origin},
        },
    };

    static WATCHING: Once = Once::new();

    /// `git claim` is a process of git's in our group, which hands on to us each signal that it gets. So a Ctrl-C, and
    /// whatever else is sent to the group, comes twice, one of both from our parent, within this time.
    const ECHO: Duration = Duration::from_secs(1);
    /// Both are noted on whatever threads are at hand, so that the copy may be first; not by more than this.
    const TOGETHER: Duration = Duration::from_millis(20);

    /// A signal that came.
    #[derive(Debug, Clone, Copy)]
    struct Arrival {
        signal: i32,
        by_parent: bool,
        at: Instant,
    }

    impl Arrival {
        /// Whether it is `before` over again.
        fn repeats(self, before: Self) -> bool {
            self.signal == before.signal
                && self.by_parent != before.by_parent
                && self.at.saturating_duration_since(before.at) < ECHO
        }
    }

    /// Whether what came `now` means anything. `before` are those that did, by their signals, and did not come again yet.
    fn counts(now: Arrival, before: &mut HashMap<i32, Arrival>) -> bool {
        match before.remove(&now.signal) {
            // Once only: the next one is meant.
            Some(before) if now.repeats(before) => false,
            _ => {
                before.insert(now.signal, now);
                true
            }
        }
    }

    /// Waits for what would end us, on a thread of its own.
    pub(super) fn watch() {
        WATCHING.call_once(|| {
            let ignored = ignored();
            // A signal that is ignored (nohup, a job in the background of a script) stays so.
            let ends = [SIGHUP, SIGINT, SIGQUIT, SIGTERM]
                .into_iter()
                .filter(|signal| ignored & (1 << (signal - 1)) == 0);
            let Ok(mut signals) = SignalsInfo::<WithOrigin>::new(ends) else { return };
            // Whoever it is now: git waits for our end.
            let parent = i32::try_from(parent_id()).ok();
            thread::spawn(move || {
                let mut before = HashMap::new();
                let by_parent = |origin: &Origin| {
                    let sender = origin.process.map(|process| process.pid);
                    sender.is_some() && sender == parent
                };
                loop {
                    let mut came: Vec<Origin> = signals.wait().collect();
                    if came.iter().any(by_parent) && parent.is_some_and(is_git) {
                        thread::sleep(TOGETHER);
                        came.extend(signals.pending());
                        // The signal itself tells where it came from, and its copy does not.
                        came.sort_by_key(by_parent);
                    }
                    for origin in came {
                        let signal = origin.signal;
                        let at = Instant::now();
                        let by_parent = by_parent(&origin);
                        if counts(Arrival { signal, by_parent, at }, &mut before) {
                            heed(&origin);
                        }
                    }
                }
            });
        });
    }

    /// Has it handled by whoever does so now; or ends us, as it would have.
    fn heed(origin: &Origin) {
        let signal = origin.signal;
        // A hangup is sent to the leader of the session only.
        let from_terminal = origin.cause == Cause::Kernel && signal != SIGHUP;
        let handled = super::relayed().as_ref().map(|tell| tell(signal, from_terminal));
        match handled {
            Some(true) => {}
            None if put_off(signal) => cut_short(),
            Some(false) | None => end_by(signal),
        }
    }

    /// Remembers the first signal of a time in which they are put off.
    fn put_off(signal: i32) -> bool {
        super::DEFERRING.load(Ordering::SeqCst)
            && super::PUT_OFF
                .compare_exchange(0, signal, Ordering::SeqCst, Ordering::SeqCst)
                .is_ok()
    }

    /// Ends whatever carries an exchange, so that the exchange fails soon.
    pub(super) fn cut_short() {
        for (child, leads) in super::children().iter() {
            if let Some(child) = i32::try_from(*child).ok().and_then(Pid::from_raw) {
                let _ = if *leads {
                    kill_process_group(child, Signal::TERM)
                } else {
                    kill_process(child, Signal::TERM)
                };
            }
        }
        for (_, socket) in super::sockets().drain(..) {
            let _ = socket.shutdown(Shutdown::Both);
        }
    }

    /// Does what the signal would have done, and takes everything along.
    pub(super) fn end_by(signal: i32) {
        cut_short();
        for path in super::open().drain(..) {
            let _ = fs::remove_dir_all(path);
        }
        let _ = emulate_default_handler(signal);
    }

    /// Whether the process is git, as Linux tells it (proc(5)); elsewhere none is known to be.
    fn is_git(process: i32) -> bool {
        fs::read_to_string(format!("/proc/{process}/comm")).is_ok_and(|name| name.trim() == "git")
    }

    /// The signals that are ignored, a bit each, as Linux tells it (proc(5)); elsewhere none are known to be.
    fn ignored() -> u64 {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
        mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        /// What came: which signal, from whom, after how many milliseconds; and which of them count.
        #[test]
        fn what_our_parent_hands_on_counts_once() {
            const PARENT: bool = true;
            const OTHER: bool = false;
            type Row<'a> = (&'a [(i32, bool, u64)], &'a [bool]);
            let table: &[Row<'_>] = &[
                (&[(2, OTHER, 0), (2, PARENT, 1)], &[true, false]),
                (&[(15, PARENT, 0), (15, OTHER, 1)], &[true, false]),
                // Two of them: each with its copy, or as one with it, or the second with none.
                (
                    &[(2, OTHER, 0), (2, PARENT, 1), (2, OTHER, 500), (2, PARENT, 501)],
                    &[true, false, true, false],
                ),
                (&[(2, OTHER, 0), (2, OTHER, 1)], &[true, true]),
                (&[(2, OTHER, 0), (2, PARENT, 1), (2, OTHER, 500)], &[true, false, true]),
                // Our parent alone means what it sends.
                (&[(15, PARENT, 0), (15, PARENT, 1)], &[true, true]),
                // Another signal, and what comes too late for a copy.
                (&[(2, OTHER, 0), (15, PARENT, 1)], &[true, true]),
                (&[(2, OTHER, 0), (2, PARENT, 1_000)], &[true, true]),
                // Two signals at a time.
                (
                    &[(1, OTHER, 0), (15, OTHER, 1), (1, PARENT, 2), (15, PARENT, 3)],
                    &[true, true, false, false],
                ),
            ];
            let begin = Instant::now();
            for (came, expected) in table {
                let mut before = HashMap::new();
                let mut count = |(signal, by_parent, after): &(i32, bool, u64)| {
                    let at = begin + Duration::from_millis(*after);
                    counts(Arrival { signal: *signal, by_parent: *by_parent, at }, &mut before)
                };
                let counted: Vec<bool> = came.iter().map(&mut count).collect();
                assert_eq!(counted, *expected, "{came:?}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_known_while_it_exists_and_gone_after() {
        let place = Place::new().expect("made");
        let path = place.path().to_owned();
        assert!(path.is_dir() && open().contains(&path));
        drop(place);
        assert!(!path.exists() && !open().contains(&path));
    }
}
