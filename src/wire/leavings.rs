//! What must not outlive us: temporary folders, and children that no terminal's signals reach.
//!
//! Objects on their way to and from git's helpers lie in temporary folders and not in the clone. A signal that ends us
//! takes them, and the children's process groups, along; then it does what it would have done.

use std::{
    io,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

use tempfile::TempDir;

/// The folders that exist now.
static OPEN: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// The children that lead a process group of their own, by its number.
static GROUPS: Mutex<Vec<u32>> = Mutex::new(Vec::new());

/// Has a child's process group ended with us, until [`ended`].
pub fn started(group: u32) {
    #[cfg(unix)]
    signals::watch();
    groups().push(group);
}

/// The group is gone.
pub fn ended(group: u32) {
    groups().retain(|other| *other != group);
}

fn groups() -> MutexGuard<'static, Vec<u32>> {
    GROUPS.lock().unwrap_or_else(PoisonError::into_inner)
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
    use std::{fs, sync::Once, thread};

    use rustix::process::{Pid, Signal, kill_process_group};
    use signal_hook::{
        consts::{SIGHUP, SIGINT, SIGTERM},
        iterator::Signals,
        low_level::emulate_default_handler,
    };

    static WATCHING: Once = Once::new();

    /// Waits for what would end us, on a thread of its own.
    pub(super) fn watch() {
        WATCHING.call_once(|| {
            let ignored = ignored();
            // A signal that is ignored (nohup, a job in the background of a script) stays so.
            let ends = [SIGHUP, SIGINT, SIGTERM]
                .into_iter()
                .filter(|signal| ignored & (1 << (signal - 1)) == 0);
            let Ok(mut signals) = Signals::new(ends) else { return };
            thread::spawn(move || {
                for signal in signals.forever() {
                    for group in super::groups().drain(..) {
                        if let Some(group) = i32::try_from(group).ok().and_then(Pid::from_raw) {
                            let _ = kill_process_group(group, Signal::TERM);
                        }
                    }
                    for path in super::open().drain(..) {
                        let _ = fs::remove_dir_all(path);
                    }
                    let _ = emulate_default_handler(signal);
                }
            });
        });
    }

    /// The signals that are ignored, a bit each, as Linux tells it (proc(5)); elsewhere none are known to be.
    fn ignored() -> u64 {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
        mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
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
