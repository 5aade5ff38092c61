//! The process that holds a claim: described so that it is known again, and looked up on the host that it ran on.
//!
//! A number alone proves nothing, since systems use the numbers of ended processes again. So a process is its number, the
//! time of its start and the boot of its host; only where all three agree does it still run. Where one of them cannot be
//! had, nothing is said: only Linux tells all three without a library of its own, and a container tells them only of what
//! runs inside.

use crate::claim::record::Process;

/// What became of a recorded process, as seen from the host that it ran on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It runs.
    Running,
    /// It has ended.
    Ended,
    /// It has ended, and another process has its number now.
    Reused,
    /// The host was started again since, or the record is of another host with the same name.
    OtherBoot,
    /// It cannot be told from here.
    Unknown,
}

impl State {
    /// Its one word, for programs.
    pub fn word(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Ended | Self::Reused => "ended",
            Self::OtherBoot => "other-boot",
            Self::Unknown => "unknown",
        }
    }
}

/// What the system says about a number now.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "other systems are not asked"))]
enum Found {
    /// No process has it.
    Nothing,
    /// A process that started then.
    Started(String),
    /// There may be one.
    Unknown,
}

/// What was typed is no process of this host.
#[derive(Debug, thiserror::Error)]
#[error("--process: there is no process '{0}' here")]
pub struct NoProcess(String);

/// The process that somebody names by its number.
///
/// # Errors
/// Where there is no such process, so far as the system tells.
pub fn typed(pid: &str) -> Result<Process, NoProcess> {
    let plain = !pid.is_empty() && pid.bytes().all(|byte| byte.is_ascii_digit());
    plain
        .then(|| pid.parse().ok())
        .flatten()
        .and_then(describe)
        .ok_or_else(|| NoProcess(pid.escape_debug().to_string()))
}

/// The process with this number, as far as the system tells; `None` if there is none.
pub fn describe(pid: u32) -> Option<Process> {
    let start = match system::find(pid) {
        Found::Nothing => return None,
        Found::Started(start) => start,
        Found::Unknown => String::new(),
    };
    Some(Process { pid, start, boot: system::boot() })
}

/// What became of `recorded`, a process of this host.
pub fn state(recorded: &Process) -> State {
    compare(recorded, &system::boot(), &system::find(recorded.pid))
}

/// Whether `recorded`, a process of this host and boot, still runs, as far as the system tells.
pub fn runs(recorded: &Process) -> bool {
    matches!(system::find(recorded.pid), Found::Started(start) if start == recorded.start)
}

/// Whatever the process with this number has started, and those in turn, as far as the system tells.
pub fn descendants(pid: u32) -> Vec<Process> {
    let all = system::all();
    let mut found: Vec<Process> = Vec::new();
    let mut parents = vec![pid];
    while let Some(parent) = parents.pop() {
        for (child, _) in all.iter().filter(|(_, of)| *of == parent) {
            if *child != pid && !found.iter().any(|known| known.pid == *child) {
                parents.push(*child);
                found.extend(describe(*child));
            }
        }
    }
    found
}

/// `boot` is the word for the present boot, empty where it is not known.
fn compare(recorded: &Process, boot: &str, found: &Found) -> State {
    let (of_then, place_then) = split(&recorded.boot);
    let (of_now, place_now) = split(boot);
    if of_then.is_empty() || of_now.is_empty() {
        return State::Unknown;
    }
    if of_then != of_now {
        return State::OtherBoot;
    }
    // In another namespace the number is another's.
    if place_then != place_now {
        return State::Unknown;
    }
    match found {
        Found::Nothing => State::Ended,
        Found::Unknown => State::Unknown,
        Found::Started(_) if recorded.start.is_empty() => State::Unknown,
        Found::Started(start) if *start == recorded.start => State::Running,
        Found::Started(_) => State::Reused,
    }
}

/// A boot's word: the boot, and the namespaces where they are not the system's first.
fn split(boot: &str) -> (&str, &str) {
    boot.split_once(':').unwrap_or((boot, ""))
}

/// What a line of `/proc/<pid>/stat` says: the start is in the kernel's ticks since the boot, and a process that has
/// ended and was not waited for yet is none.
#[cfg(any(target_os = "linux", test))]
fn found_in(stat: &str) -> Found {
    // The name of the program stands in brackets and may hold anything, brackets and blanks too.
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
    let mut fields = fields.split_ascii_whitespace();
    match (fields.next(), fields.nth(18)) {
        (Some("Z" | "X" | "x"), _) => Found::Nothing,
        (Some(_), Some(start)) => Found::Started(start.to_owned()),
        _ => Found::Unknown,
    }
}

/// The parent that such a line names.
#[cfg(any(target_os = "linux", test))]
fn parent_in(stat: &str) -> Option<u32> {
    stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(target_os = "linux")]
mod system {
    use std::{fs, io};

    use rustix::{
        io::Errno,
        process::{Pid, test_kill_process},
    };

    use super::{Found, found_in, parent_in};

    /// The kinds of namespace in which numbers and times mean something else, and the system's first of each.
    const NAMESPACES: [(&str, &str); 2] =
        [("pid", "pid:[4026531836]"), ("time", "time:[4026531834]")];

    pub(super) fn find(pid: u32) -> Found {
        if !is_ours() {
            return Found::Unknown;
        }
        match fs::read(format!("/proc/{pid}/stat")) {
            Ok(stat) => found_in(&String::from_utf8_lossy(&stat)),
            // A system may hide the processes of other users in there, but says whether they can be signalled.
            Err(error) if error.kind() == io::ErrorKind::NotFound && !exists(pid) => Found::Nothing,
            // It ended between the opening and the reading.
            Err(error) if error.raw_os_error() == Some(Errno::SRCH.raw_os_error()) => {
                Found::Nothing
            }
            Err(_) => Found::Unknown,
        }
    }

    /// All processes, each with its parent.
    pub(super) fn all() -> Vec<(u32, u32)> {
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        numbers
            .filter_map(|pid| {
                let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
                Some((pid, parent_in(&String::from_utf8_lossy(&stat))?))
            })
            .collect()
    }

    fn exists(pid: u32) -> bool {
        let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return false };
        !matches!(test_kill_process(pid), Err(Errno::SRCH))
    }

    /// Whether `/proc` is about the namespace that we are in: one that a container was lent tells of others.
    fn is_ours() -> bool {
        let me = fs::read_link("/proc/self").ok();
        me.and_then(|me| me.to_str()?.parse().ok()) == Some(std::process::id())
    }

    pub(super) fn boot() -> String {
        if !is_ours() {
            return String::new();
        }
        let Ok(boot) = fs::read_to_string("/proc/sys/kernel/random/boot_id") else {
            return String::new();
        };
        let mut word = boot.trim().to_owned();
        for (kind, first) in NAMESPACES {
            let link = fs::read_link(format!("/proc/self/ns/{kind}"));
            match link.as_ref().map(|link| link.to_string_lossy()) {
                Ok(link) if link == first => {}
                Ok(link) => {
                    word.push(':');
                    word.extend(link.chars().filter(char::is_ascii_digit));
                }
                // A kernel without that kind has one of it.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(_) => return String::new(),
            }
        }
        word
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use super::Found;

    pub(super) fn find(_pid: u32) -> Found {
        Found::Unknown
    }

    pub(super) fn all() -> Vec<(u32, u32)> {
        Vec::new()
    }

    pub(super) fn boot() -> String {
        String::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_its_number_its_start_and_its_boot() {
        let started = |start: &str| Found::Started(start.into());
        for (start, boot, now, found, state) in [
            ("7", "b", "b", started("7"), State::Running),
            ("7", "b", "b", Found::Nothing, State::Ended),
            ("7", "b", "b", started("8"), State::Reused),
            ("7", "b", "c", started("7"), State::OtherBoot),
            ("7", "b", "c", Found::Nothing, State::OtherBoot),
            ("7", "b:1", "c:1", started("7"), State::OtherBoot),
            // Another container of the same host, or the host itself.
            ("7", "b:1", "b:2", started("7"), State::Unknown),
            ("7", "b:1", "b", Found::Nothing, State::Unknown),
            ("7", "b", "b:1", Found::Nothing, State::Unknown),
            ("7", "b:1", "b:1", started("7"), State::Running),
            ("7", "b:1:3", "b:1:4", started("7"), State::Unknown),
            ("", "b", "b", started("7"), State::Unknown),
            ("", "b", "b", Found::Nothing, State::Ended),
            ("7", "", "b", started("7"), State::Unknown),
            ("7", "", "", Found::Nothing, State::Unknown),
            ("7", "b", "", started("7"), State::Unknown),
            ("7", "b", "b", Found::Unknown, State::Unknown),
        ] {
            let recorded = Process { pid: 4711, start: start.into(), boot: boot.into() };
            assert_eq!(compare(&recorded, now, &found), state, "{recorded:?} {now} {found:?}");
        }
    }

    #[test]
    fn the_start_is_found_behind_any_name_of_a_program() {
        let rest = "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 889123 20 21";
        for name in ["sh", "a b", "a) S 1 1 (b", "(", ")", ""] {
            let found = found_in(&format!("4711 ({name}) S {rest}\n"));
            assert_eq!(found, Found::Started("889123".into()), "{name}");
            assert_eq!(found_in(&format!("4711 ({name}) Z {rest}\n")), Found::Nothing, "{name}");
        }
        for stat in ["", "4711 (sh", "4711 (sh)", "4711 (sh) S 1 2 3", "4711 sh S"] {
            assert_eq!(found_in(stat), Found::Unknown, "{stat}");
        }
    }

    #[test]
    fn the_parent_is_found_behind_any_name_of_a_program() {
        assert_eq!(parent_in("4711 (a) S 1 1 (b) S 12 3 4"), Some(12));
        for stat in ["", "4711 (sh)", "4711 (sh) S", "4711 (sh) S x"] {
            assert_eq!(parent_in(stat), None, "{stat}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn what_a_process_has_started_is_found_however_deep() {
        let mut child = std::process::Command::new("sh")
            .args(["-c", "sh -c 'sleep 60; :'; :"])
            .spawn()
            .expect("a shell");
        let started = std::time::Instant::now();
        let found = loop {
            let found = descendants(child.id());
            if found.len() == 2 || started.elapsed().as_secs() > 10 {
                break found;
            }
        };
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found.iter().all(runs));
        for process in &found {
            let pid = i32::try_from(process.pid).ok().and_then(rustix::process::Pid::from_raw);
            let _ = rustix::process::kill_process(
                pid.expect("a number"),
                rustix::process::Signal::KILL,
            );
        }
        child.wait().expect("it ended");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn we_run_and_number_zero_does_not() {
        let me = describe(std::process::id()).expect("it is this one");
        assert!(!me.start.is_empty() && !me.boot.is_empty(), "{me:?}");
        assert_eq!(state(&me), State::Running);
        assert_eq!(state(&Process { start: "1".into(), ..me.clone() }), State::Reused);
        assert_eq!(state(&Process { boot: "another".into(), ..me }), State::OtherBoot);
        for pid in ["0", "4294967295", "99999999999", "-1", "+1", "", "x"] {
            assert!(typed(pid).is_err(), "{pid}");
        }
    }
}
