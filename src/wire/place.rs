//! Temporary folders, gone at every end of the process that leaves it a chance to remove them.
//!
//! Objects on their way to and from git's helpers lie here and not in the clone. An interruption must not leave them
//! lying around, nor may it change how we end: after the removal the signal does what it would have done.

use std::{
    io,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

use tempfile::TempDir;

/// The folders that exist now.
static OPEN: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

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
