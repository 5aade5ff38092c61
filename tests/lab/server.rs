//! Servers with something wrong: hooks that refuse, die and sleep, locks that were left behind, full disks, folders that
//! cannot be written. All of them are git's own.

use std::{fs, path::PathBuf, process::Command};

use super::{
    Chance, Size,
    stand::{ACTS, Act, DEADLINE, SHORT_DEADLINE, Stand, shuffle, stands, try_all},
};
use crate::support::{kinds, servers};

/// A hook, and for `reference-transaction` the state in which it does what it does.
const HOOKS: [(&str, &str); 8] = [
    ("pre-receive", ""),
    ("update", ""),
    ("post-receive", ""),
    ("post-update", ""),
    ("reference-transaction", "preparing"),
    ("reference-transaction", "prepared"),
    ("reference-transaction", "committed"),
    ("reference-transaction", "aborted"),
];

/// What a hook does: its name, its lines, and whether it takes longer than anybody waits.
const DEEDS: [(&str, &str, bool); 6] = [
    ("refuses", "exit 1", false),
    ("dies", "kill -9 $$", false),
    ("kills the server", "kill -9 $PPID", false),
    ("ends the server", "kill -TERM $PPID", false),
    ("sleeps", "sleep 1", true),
    ("talks", "yes 'a word' | head -c 3000000 >&2", false),
];

/// The script of a hook.
fn script(state: &str, deed: &str) -> String {
    let at = match state {
        "" => format!("test -t 0 || cat >/dev/null; {deed}"),
        // Something has to go wrong before anything is aborted.
        "aborted" => format!("case $1 in prepared) exit 1 ;; aborted) {deed} ;; esac"),
        state => format!("case $1 in {state}) {deed} ;; esac"),
    };
    format!("{at}\nexit 0")
}

/// Removes the locks that a server left that was killed, as somebody has to.
fn tidy(stand: &Stand) {
    for lock in [
        "refs/claims/issue-42.lock",
        "packed-refs.lock",
        "packed-refs.new",
        "reftable/tables.list.lock",
    ] {
        let _ = fs::remove_file(stand.remote.dir.join(lock));
    }
}

fn hooks(name: &str, new: impl Fn() -> Option<Stand>, short: usize) {
    let Some(stands) = stands(new) else { return };
    let mut cases = Vec::new();
    for hook in HOOKS {
        for deed in DEEDS {
            cases.extend(ACTS.map(|act| (hook, deed, act)));
        }
    }
    shuffle(&mut cases, &mut Chance::new(Size::asked_for().seed));
    let what = format!("server faults, hooks, {name}");
    try_all(&what, &stands, &cases, short, |stand, &((hook, state), (deed, lines, slow), act)| {
        let before = stand.prepare(act);
        stand.remote.hook(hook, &script(state, lines));
        let deadline = if slow { SHORT_DEADLINE } else { DEADLINE };
        let acted = stand.act(act, before.as_deref(), deadline);
        let heal = || {
            stand.remote.unhook(hook);
            tidy(stand);
        };
        let ended = stand.compare(act, before.as_deref(), acted, heal);
        (deed.into(), ended.map_err(|what| format!("{hook} {state} {deed}: {what}")))
    });
}

#[test]
fn hooks_of_a_daemon() {
    hooks("git://", || Stand::daemon(kinds::path()), 18);
}

#[test]
fn hooks_at_the_end_of_ssh() {
    hooks("ssh, reftable", || Stand::ssh(kinds::reftable()), 18);
}

#[test]
fn hooks_of_a_web_server() {
    hooks("https", Stand::https, 8);
}

/// What is wrong with the place where the server keeps things.
#[derive(Debug, Clone, Copy)]
enum Place {
    /// This file in the repository is there, as somebody left it who was interrupted.
    Locked(&'static str),
    /// The same, and the ref that it is about is among the packed ones.
    PackedAndLocked(&'static str),
    /// No file may grow, and whoever tries is ended.
    NoFile,
    /// No file may grow.
    NoSpace,
    /// The ref is among many that are packed, and no file may grow beyond a block.
    PackedAndOneBlock,
    /// This folder in the repository is on a disk that is full.
    Full(&'static str),
    /// The server is somebody who may only read.
    ReadOnly,
}

const PLACES: [Place; 14] = [
    Place::Locked("refs/claims/issue-42.lock"),
    Place::Locked("packed-refs.lock"),
    Place::Locked("packed-refs.new"),
    Place::Locked("HEAD.lock"),
    Place::Locked("reftable/tables.list.lock"),
    Place::PackedAndLocked("packed-refs.lock"),
    Place::PackedAndLocked("refs/claims/issue-42.lock"),
    Place::NoFile,
    Place::NoSpace,
    Place::PackedAndOneBlock,
    Place::Full("objects"),
    Place::Full("refs"),
    Place::Full("reftable"),
    Place::ReadOnly,
];

impl Place {
    /// Whether there is anything to be tried: what happens on a disk of the server's own is not seen outside, so nothing may
    /// go well there.
    fn concerns(self, act: Act) -> bool {
        !matches!(self, Place::Full("refs" | "reftable")) || !act.ends_with_nothing()
    }

    /// Puts it wrong; gives what to start instead of git-receive-pack.
    fn put_wrong(self, stand: &Stand) -> Option<PathBuf> {
        let dir = &stand.remote.dir;
        let shown = dir.display();
        if let Place::PackedAndLocked(_) | Place::PackedAndOneBlock = self {
            stand.remote.git(&["pack-refs", "--all", "--include=refs/claims/*"]);
        }
        let instead = match self {
            Place::Locked(file) | Place::PackedAndLocked(file) => {
                if let Some(parent) = dir.join(file).parent() {
                    fs::create_dir_all(parent).unwrap();
                }
                fs::write(dir.join(file), "").unwrap();
                return None;
            }
            Place::NoFile => "ulimit -f 0".into(),
            Place::NoSpace => "trap '' XFSZ; ulimit -f 0".into(),
            Place::PackedAndOneBlock => "trap '' XFSZ; ulimit -f 1".into(),
            Place::Full(folder) => format!(
                "exec unshare -rm sh -c '\n\
                 mkdir -p \"$0\" && mount -t tmpfs -o size=64k none \"$0\" && cp -R {shown}/{folder}/. \"$0\" || exit 1\n\
                 cat /dev/zero >\"$0/zero\" 2>/dev/null\n\
                 mount --bind \"$0\" {shown}/{folder} && exec git-receive-pack \"$@\"' '{}' \"$@\"",
                stand.sandbox.path("full").display()
            ),
            Place::ReadOnly => {
                format!("exec {} git-receive-pack \"$@\"", servers::as_nobody()?.join(" "))
            }
        };
        Some(stand.sandbox.script("instead", &format!("{instead}\nexec git-receive-pack \"$@\"")))
    }

    fn put_right(self, stand: &Stand) {
        if let Place::Locked(file) | Place::PackedAndLocked(file) = self {
            let _ = fs::remove_file(stand.remote.dir.join(file));
        }
    }
}

/// Whether disks can be had here that only one process sees.
fn has_small_disks() -> bool {
    let script = "mount -t tmpfs none /mnt && mount --bind /mnt /media";
    let tried = Command::new("unshare").args(["-rm", "sh", "-c", script]).output();
    tried.is_ok_and(|output| output.status.success())
}

fn places(name: &str, new: impl Fn() -> Option<Stand>, short: usize) {
    let Some(stands) = stands(new) else { return };
    for stand in &stands {
        // More than a block of packed refs.
        let main = stand.remote.git(&["rev-parse", "main"]);
        for number in 0..20 {
            stand.remote.git(&["update-ref", &format!("refs/heads/branch-{number}"), &main]);
        }
    }
    let small_disks = has_small_disks();
    if !small_disks {
        eprintln!("lab: server faults: no small disks can be mounted here, so none is full");
    }
    let mut cases = Vec::new();
    for place in PLACES {
        if small_disks || !matches!(place, Place::Full(_)) {
            cases.extend(ACTS.into_iter().map(|act| (place, act)));
        }
    }
    cases.retain(|(place, act)| place.concerns(*act));
    shuffle(&mut cases, &mut Chance::new(Size::asked_for().seed));
    let what = format!("server faults, places, {name}");
    try_all(&what, &stands, &cases, short, |stand, &(place, act)| {
        let before = stand.prepare(act);
        let instead = place.put_wrong(stand);
        if let Some(instead) = &instead {
            stand.alice.set("remote.origin.receivepack", instead.to_str().unwrap());
        }
        let acted = stand.act(act, before.as_deref(), DEADLINE);
        let heal = || {
            place.put_right(stand);
            if instead.is_some() {
                stand.alice.git(&["config", "--unset", "remote.origin.receivepack"]);
            }
        };
        let ended = stand.compare(act, before.as_deref(), acted, heal);
        (format!("{place:?}"), ended.map_err(|what| format!("{place:?}: {what}")))
    });
}

#[test]
fn places_of_files() {
    places("files", || Stand::ssh(kinds::path()), 18);
}

#[test]
fn places_of_a_reftable() {
    places("reftable", || Stand::ssh(kinds::reftable()), 12);
}
