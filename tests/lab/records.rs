//! What a clone has on record, on a bad day: torn, swapped for something else, on a full disk or one that cannot be written,
//! and several processes at it at once.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use rustix::process::Signal;
use serde_json::Value;

use super::{Chance, Size};
use crate::support::{
    Clone, Kind, Output, Remote, Sandbox, kinds, on, sandbox::processes_in, until,
};

/// What may become of a record's file.
#[derive(Debug, Clone, Copy)]
enum Ruin {
    /// So many bytes of it reached the disk.
    Torn(usize),
    /// Chance went over it.
    Spoilt(u64),
    Folder,
    LeadsNowhere,
    LeadsToItself,
    LeadsToAFolder,
    Pipe,
}

/// What a ruined record still says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Says {
    /// Nothing.
    Nothing,
    /// The same about whose the claim is, if it can be read at all.
    TheSame,
    /// Something else, as a whole record of some other claim or clone.
    Otherwise,
}

impl Ruin {
    /// Puts it in the place of the record; says what that still says.
    fn put(self, path: &Path, whole: &[u8]) -> Says {
        fs::remove_file(path).unwrap();
        let bytes = match self {
            Self::Torn(end) => whole[..end.min(whole.len())].to_vec(),
            Self::Spoilt(seed) => spoilt(whole, Chance::new(seed)),
            Self::Folder => {
                fs::create_dir(path).unwrap();
                return Says::Nothing;
            }
            Self::LeadsNowhere | Self::LeadsToItself | Self::LeadsToAFolder => {
                let to = match self {
                    Self::LeadsToItself => path.file_name().unwrap().as_ref(),
                    Self::LeadsToAFolder => Path::new("."),
                    _ => Path::new("nowhere"),
                };
                symlink(to, path).unwrap();
                return Says::Nothing;
            }
            Self::Pipe => {
                assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
                return Says::Nothing;
            }
        };
        fs::write(path, &bytes).unwrap();
        let parsed = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).ok();
        let (Some(now), Some(before)) = (parsed(&bytes), parsed(whole)) else {
            return Says::Nothing;
        };
        let same = ["version", "ref", "token", "clone"].iter().all(|key| now[key] == before[key]);
        if same { Says::TheSame } else { Says::Otherwise }
    }
}

fn spoilt(whole: &[u8], mut chance: Chance) -> Vec<u8> {
    let mut bytes = whole.to_vec();
    let from = chance.below(bytes.len() as u64) as usize;
    match chance.below(4) {
        // A block that never reached the disk.
        0 => bytes[from..].fill(0),
        1 => bytes[from] ^= 1 << chance.below(8),
        2 => bytes[from..].iter_mut().for_each(|byte| *byte = chance.below(256) as u8),
        _ => (0..chance.below(40)).for_each(|_| bytes.push(chance.below(256) as u8)),
    }
    bytes
}

/// What is tried: all ends of it, or some and those where it looks most like a whole one; and chance.
fn ruins(whole: &[u8], size: &Size) -> Vec<Ruin> {
    let mut chance = Chance::new(size.seed);
    let short = size.time.is_none();
    let mut all = vec![
        Ruin::Folder,
        Ruin::LeadsNowhere,
        Ruin::LeadsToItself,
        Ruin::LeadsToAFolder,
        Ruin::Pipe,
    ];
    let ends = (0..whole.len()).filter(|at| {
        let looks_whole = *at < 2 || *at + 3 > whole.len();
        !short || looks_whole || chance.below(60) == 0
    });
    all.extend(ends.map(Ruin::Torn));
    let spoilt = if short { 12 } else { 1000 };
    all.extend((0..spoilt).map(|at| Ruin::Spoilt(size.seed + at)));
    all
}

/// Whatever becomes of a record: nobody is told that the claim is free, nobody takes it, nothing is removed but by who can
/// prove that it is theirs, and the other records still prove what they prove.
#[test]
fn a_record_that_is_ruined_is_told_of() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let [alice, bob] = sandbox.people(&remote, ["Alice", "Bob"]);
    let (size, started) = (Size::asked_for(), Instant::now());
    let take = || {
        let id = alice.claim(&["take", "42", "--note", "a look"]).is(0, "claimed").id();
        let paths = alice.records();
        let path = paths.into_iter().find(|path| path.to_string_lossy().contains("issue-42~"));
        let path = path.unwrap();
        let whole = fs::read(&path).unwrap();
        (id, path, whole)
    };
    let (mut id, mut path, mut whole) = take();
    let other = alice.claim(&["take", "43"]).is(0, "claimed").id();
    let (mut tried, mut unknown) = (0, 0);
    for ruin in ruins(&whole, &size) {
        if size.time.is_some_and(|time| started.elapsed() >= time) {
            break;
        }
        let says = ruin.put(&path, &whole);
        let told = |output: &Output| format!("seed {} {ruin:?} {says:?}\n{output}", size.seed);
        let held = bob.claim(&["take", "42"]).is(75, "held issue-42 by Alice");
        assert_eq!(alice.claim(&["take", "42"]).code, Some(75), "{}", told(&held));
        for args in [&["verify", "42"][..], &["take", "42", "--resume"], &["release", "42"]] {
            let output = alice.claim(args);
            let right = match says {
                Says::Nothing => output.code == Some(69),
                Says::TheSame => matches!(output.code, Some(0 | 69)),
                Says::Otherwise => matches!(output.code, Some(3 | 69 | 75)),
            };
            assert!(right, "{}", told(&output));
            let gone = remote.tip("issue-42").is_none();
            assert_eq!(gone, output.verdict().starts_with("released"), "{}", told(&output));
            unknown += usize::from(args[0] == "verify" && output.code == Some(69));
        }
        if tried % 8 == 0 {
            let output = alice.claim(&["verify", "42", "43"]);
            assert!(
                output.stdout.contains(&format!("yours issue-43 {other}")),
                "{}",
                told(&output)
            );
            let output = alice.claim(&["list", "--long"]);
            assert_eq!(output.code, Some(0), "{}", told(&output));
        }
        tried += 1;
        if remote.tip("issue-42").is_none() {
            // It proved what it was to prove.
            (id, path, whole) = take();
        } else {
            let _ = fs::remove_dir(&path);
            let _ = fs::remove_file(&path);
            fs::write(&path, &whole).unwrap();
        }
    }
    assert_eq!(alice.claim(&["verify", "42"]).is(0, "yours").id(), id);
    let _ = alice.claim(&["release", "42", "43"]).is(0, "released");
    eprintln!(
        "lab: ruined records: {tried}, {unknown} could not tell, seed {}, wrong: 0",
        size.seed
    );
    assert!(unknown * 2 > tried, "{unknown} of {tried}");
}

/// The folder of records is somewhere else, and not there now.
#[test]
fn records_that_are_kept_elsewhere_are_missed() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let clone = sandbox.clone(&remote, "a");
    let (folder, elsewhere) = (clone.dir.join(".git/claims"), sandbox.path("elsewhere"));
    let id = clone.claim(&["take", "42"]).is(0, "claimed").id();
    fs::rename(&folder, &elsewhere).unwrap();
    symlink(&elsewhere, &folder).unwrap();
    assert_eq!(clone.claim(&["verify", "42"]).is(0, "yours").id(), id);
    fs::rename(&elsewhere, sandbox.path("gone")).unwrap();
    for args in [&["verify", "42"][..], &["release", "42"], &["take", "42", "--resume"]] {
        let _ = clone.claim(args).is(69, "unknown issue-42");
    }
    let seen = remote.witnessed();
    let output = clone.claim(&["take", "43"]).says("nothing was claimed");
    assert_eq!((output.code, remote.witnessed()), (Some(1), seen), "{output}");
    fs::rename(sandbox.path("gone"), &elsewhere).unwrap();
    let _ = clone.claim(&["release", "42"]).is(0, "released");
}

/// What to put before a command so that it has mounts of its own, where this can be had.
fn own_mounts() -> Option<&'static str> {
    ["unshare -m", "unshare -rm"].into_iter().find(|unshare| {
        let mount = format!("{unshare} mount -t tmpfs none /tmp");
        let tried = Command::new("sh").args(["-c", &mount]).stderr(Stdio::null()).status();
        tried.is_ok_and(|status| status.success())
    })
}

/// Says what is not tried here: a machine that lets nobody mount anything is no worse a machine.
fn not_here(what: &str) {
    eprintln!("lab: {what}: not tried, nothing can be mounted here");
}

/// The folder of records is on a disk with room for so many pages and so many files: either nothing was asked for, or the claim
/// is there and is known to be ours.
#[test]
fn a_full_disk_for_the_records() {
    let Some(unshare) = own_mounts() else { return not_here("a full disk") };
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let [alice, bob] = sandbox.people(&remote, ["Alice", "Bob"]);
    let folder = alice.dir.join(".git/claims");
    fs::create_dir(&folder).unwrap();
    let acts = ["take a", "take a b c", "take a --over ID --reason gone", "run a -- true"];
    let (mut refused, mut done) = (0, 0);
    for act in acts {
        // The folder itself is a file, and so is the one in it.
        for (pages, files) in
            [(0, 9), (1, 9), (2, 9), (4, 9), (9, 1), (9, 2), (9, 3), (9, 4), (9, 5), (9, 9)]
        {
            let held = act.contains("ID");
            let before = held.then(|| bob.claim(&["take", "a"]).is(0, "claimed").id());
            let act = act.replace("ID", before.as_deref().unwrap_or_default());
            let seen = remote.witnessed().len();
            let script = format!(
                "mount -t tmpfs -o size={}k,nr_inodes={files} none .git/claims || exit 99
                 {}
                 git-claim {act} && taken=0 || taken=$?
                 git-claim verify a; echo after $taken $?
                 git-claim release a b c >&2; grep -rL '\"tip\": null' .git/claims",
                4 * pages.max(1),
                if pages == 0 { "head -c 4096 /dev/zero >.git/claims/full" } else { "" },
            );
            let script = script.replace('\'', "'\\''");
            let output = alice.shell(&format!("exec {unshare} sh -c '{script}'")).go();
            let told = format!("{act} {pages} {files}\n{output}");
            let after = output.stdout.lines().find_map(|line| line.strip_prefix("after "));
            let tip = remote.tip("a");
            match after {
                Some("1 3") => {
                    assert_eq!((remote.witnessed().len(), &tip), (seen, &before), "{told}");
                    assert!(output.stderr.contains("nothing was claimed"), "{told}");
                    refused += 1;
                }
                Some("0 0") => done += 1,
                Some("0 3") if act.starts_with("run") => done += 1,
                _ => panic!("{told}"),
            }
            if after != Some("1 3") {
                assert_eq!(tip, None, "{told}");
            }
            // What was to be taken may stay on record as such for a while, and nothing else.
            let left: Vec<&str> = output
                .stdout
                .lines()
                .filter(|line| line.contains(".git/claims/") && !line.ends_with("/full"))
                .collect();
            assert!(left.is_empty(), "{left:?}\n{told}");
            if let Some(id) = tip {
                let _ = bob.claim(&["release", "a", "--expect", &id]).is(0, "released");
            }
        }
    }
    eprintln!("lab: full disks: {refused} refused before anything was sent, {done} done, wrong: 0");
    assert!(refused > 8 && done > 8, "{refused} {done}");
}

on!(nothing_can_be_written_down: daemon, ssh);
/// Not even a byte, where nothing can be mounted: whether the limit is told of or ends the process.
fn nothing_can_be_written_down(kind: Kind) {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kind) else { return };
    let clone = sandbox.clone(&remote, "a");
    let seen = remote.witnessed();
    for (trap, ends) in [("trap '' XFSZ;", Some(1)), ("", None)] {
        for act in ["take 42", "take a b c", "run 42 -- touch ran"] {
            // Its output goes through a pipe, which is no file.
            let script = format!(
                "exec 3>&1; {{ ({trap} ulimit -f 0; exec git-claim {act} 2>&1); echo $? >&4; }} 4>&3 | cat >&2"
            );
            let output = clone.shell(&script).without("GIT_TRACE").go();
            let code: i32 = output.stdout.trim().parse().unwrap();
            let right = ends.map_or(code > 128, |ends| code == ends);
            assert!(right && remote.witnessed() == seen, "{code}\n{output}");
            assert!(ends.is_none() || output.stderr.contains("nothing was claimed"), "{output}");
            assert!(!clone.dir.join("ran").exists(), "{output}");
        }
    }
    let _ = clone.claim(&["take", "42"]).is(0, "claimed");
    let _ = clone.claim(&["release", "42"]).is(0, "released");
}

/// A clone on a disk that nothing can be written to.
#[test]
fn a_read_only_clone() {
    let Some(unshare) = own_mounts() else { return not_here("a read-only clone") };
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let clone = sandbox.clone(&remote, "a");
    let read_only = |command: &str| {
        let script = format!(
            "exec {unshare} sh -c 'mount --bind . . && mount -o remount,ro,bind . && cd \"$PWD\" && exec git-claim {command}'"
        );
        clone.shell(&script).go()
    };
    for act in ["take 42", "take a b c", "run 42 -- true"] {
        let output = read_only(act).says("nothing was claimed").says("ead-only");
        assert_eq!((output.code, remote.witnessed().len()), (Some(1), 0), "{output}");
    }
    let id = clone.claim(&["take", "42"]).is(0, "claimed").id();
    let over = format!("take 42 --over {id} --reason gone");
    let output = read_only(&over).says("nothing was claimed");
    assert_eq!((output.code, remote.tip("issue-42")), (Some(1), Some(id)), "{output}");
    for command in ["list", "list --long", "show 42", "stale", "verify 42"] {
        assert_eq!(read_only(command).code, Some(0), "{command}");
    }
    let renewed = read_only("renew 42").is(0, "renewed issue-42").says("warning: ").id();
    assert_eq!(read_only("verify 42").is(0, "yours issue-42").id(), renewed);
    assert_eq!(clone.claim(&["verify", "42"]).is(0, "yours issue-42").id(), renewed);
    assert_eq!(read_only("take 42 --resume").is(0, "claimed issue-42").id(), renewed);
    let _ = read_only("release --all").is(0, "released issue-42").says("warning: ");
    assert_eq!(remote.tip("issue-42"), None);
    let _ = clone.claim(&["verify", "42"]).is(3, "free issue-42");
    let _ = clone.claim(&["release", "42"]).is(3, "free issue-42");
    assert!(clone.records().is_empty(), "{:?}", clone.records());
}

on!(no_place_to_be: path, https);
/// No home, and no place for temporary files: it works, or nothing was asked for.
fn no_place_to_be(kind: Kind) {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kind) else { return };
    let clone = sandbox.clone(&remote, "a");
    let file = sandbox.path("gitconfig");
    for home in ["", "/nowhere", file.to_str().unwrap()] {
        for (verb, verdict) in [("take", "claimed"), ("renew", "renewed"), ("release", "released")]
        {
            let run = clone.run(&[verb, "42"]).env("HOME", home).without("LANG").without("TZ");
            let _ = run.go().is(0, verdict);
        }
    }
    for place in ["/nowhere", file.to_str().unwrap()] {
        let seen = remote.witnessed();
        let output = clone.run(&["take", "42"]).env("TMPDIR", place).go();
        match output.code {
            Some(0) => drop(clone.claim(&["release", "42"]).is(0, "released")),
            Some(1 | 69) => {
                assert_eq!((remote.witnessed(), remote.tip("issue-42")), (seen, None), "{output}");
                let _ = clone.claim(&["verify", "42"]).is(3, "free issue-42");
            }
            _ => panic!("{output}"),
        }
    }
}

on!(processes_of_one_clone_get_along: path, reftable, ssh);
/// Several processes of one clone at one claim, and a rival; they are killed now and then. No record is ever read torn,
/// whoever was told of a move was told of one that was made, and no claim is won twice. ([`super::history`] goes into what
/// each answer means.)
fn processes_of_one_clone_get_along(kind: Kind) {
    const SHORT: Duration = Duration::from_secs(4);
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kind) else { return };
    let [alice, bob] = sandbox.people(&remote, ["Alice", "Bob"]);
    let (size, began) = (Size::asked_for(), Instant::now());
    let (ends, over) = (Mutex::new(Vec::new()), AtomicBool::new(false));
    let read = thread::scope(|scope| {
        let reader = scope.spawn(|| read_until(&over, &alice));
        let workers = [&alice, &alice, &alice, &bob].into_iter().enumerate();
        let workers = workers.map(|(at, clone)| {
            let (ends, mut chance) = (&ends, Chance::new(size.seed + at as u64));
            scope.spawn(move || {
                while began.elapsed() < size.time.unwrap_or(SHORT) {
                    let end = one_call(clone, &mut chance);
                    ends.lock().unwrap().push(end);
                }
            })
        });
        let workers: Vec<_> = workers.collect();
        let ended = workers.into_iter().map(|worker| worker.join().is_ok());
        let all_well = ended.fold(true, |all, one| all & one);
        over.store(true, Ordering::SeqCst);
        assert!(all_well, "seed {}", size.seed);
        reader.join().unwrap()
    });
    until("all are done", || sandbox.left_running().is_empty());
    until("the server is done", || processes_in(&remote.dir).is_empty());
    let ends = ends.into_inner().unwrap();
    let moves = moves(&remote);
    let made = |word: &str, such: &dyn Fn(&str, &str, &str) -> bool| {
        let told = told_of(&ends, word);
        for id in &told {
            let is_made = moves.iter().any(|(old, new)| such(id, old, new));
            assert!(is_made, "seed {}: {word} {id}: {moves:?}", size.seed);
        }
        told
    };
    let mut wins = made("claimed", &|id, old, new| id == new && is_nothing(old));
    // Two that renew or release at once are told of the same move: it was this clone's.
    made("renewed", &|id, _, new| id == new);
    made("released", &|id, old, new| id == old && is_nothing(new));
    let won = wins.len();
    wins.sort();
    wins.dedup();
    assert_eq!(wins.len(), won, "seed {}: one claim won twice", size.seed);
    eprintln!(
        "lab: one clone, {kind:?}: {} calls, {won} won, {read} records read, seed {}, wrong: 0",
        ends.len(),
        size.seed,
    );
    assert!(won > 0 && read > 0, "{won} {read}");
    // Whoever has it in the end knows it.
    for clone in [&alice, &bob] {
        let output = clone.claim(&["release", "a"]);
        assert!(matches!(output.code, Some(0 | 3)), "{output}");
    }
    assert_eq!(remote.tip("a"), None);
    let _ = alice.claim(&["take", "a"]).is(0, "claimed a");
    let _ = alice.claim(&["release", "a"]).is(0, "released a");
    let is_held = |path: &PathBuf| fs::read_to_string(path).unwrap().contains("\"tip\": \"");
    assert!(!alice.records().iter().any(is_held), "a claim that is gone is on record as held");
}

/// Reads the records again and again, as another process would; how many were there.
fn read_until(over: &AtomicBool, clone: &Clone) -> usize {
    let mut read = 0;
    while !over.load(Ordering::SeqCst) {
        for path in clone.records() {
            // What is gone was released.
            let Ok(text) = fs::read(&path) else { continue };
            let whole = serde_json::from_slice::<Value>(&text);
            assert!(whole.is_ok(), "torn: {}", String::from_utf8_lossy(&text));
            read += 1;
        }
        thread::sleep(Duration::from_millis(1));
    }
    read
}

/// One invocation, chosen by chance.
fn one_call(clone: &Clone, chance: &mut Chance) -> Output {
    let verb = chance.one_of(&["take", "take", "release", "renew", "verify"]);
    let mut running = clone.run(&[verb, "a"]).start();
    if chance.below(8) == 0 {
        thread::sleep(Duration::from_millis(chance.below(80)));
        running.signal(Signal::KILL);
    }
    let output = running.end();
    assert!(matches!(output.code, None | Some(0 | 3 | 69 | 75 | 77)), "{output}");
    output
}

/// The ids that somebody was told of by this word.
fn told_of(ends: &[Output], word: &str) -> Vec<String> {
    let by_word = ends.iter().filter(|end| end.verdict().split(' ').next() == Some(word));
    by_word.map(Output::id).collect()
}

/// The values that the server was asked to replace, and by what.
fn moves(remote: &Remote) -> Vec<(String, String)> {
    let both = |line: String| {
        let (rest, new) = line.rsplit_once(' ')?;
        Some((rest.rsplit_once(' ')?.1.to_owned(), new.to_owned()))
    };
    remote.witnessed().into_iter().filter_map(both).collect()
}

fn is_nothing(id: &str) -> bool {
    id.bytes().all(|byte| byte == b'0')
}
