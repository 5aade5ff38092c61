//! The samples as they are, and damaged in all the ways in which things are damaged on purpose.

use std::{collections::BTreeSet, fs, path::PathBuf};

use proptest::{collection::vec, prelude::*, sample::Index};

use super::TARGETS;

/// Pieces that have a meaning to somebody.
const PIECES: [&[u8]; 40] = [
    b"\n",
    b"\n\n",
    b"\r\n",
    b" ",
    b"\0",
    b"\x1b[2J",
    "\u{202e}".as_bytes(),
    "\u{fffd}".as_bytes(),
    b"\xff",
    "\u{2028}".as_bytes(),
    b"0000",
    b"0001",
    b"0002",
    b"0004",
    b"fff0",
    b"ffff",
    b"+01b",
    b"-",
    b"--",
    b"::",
    b"://",
    b"ext::sh -c true",
    b"ssh://-oProxyCommand=true/x",
    b"%0a%00",
    b"user:s3cret@",
    b"ok refs/claims/issue-4\n",
    b"error refs/claims/issue-4 ",
    b"ng refs/claims/issue-4 ",
    b"option refname refs/claims/issue-42\n",
    b"unpack ok\n",
    b"ERR ",
    b"shallow ",
    b"unborn ",
    b"symref-target:",
    b"object-format=sha256",
    b"Claim-Format: 1\n",
    b"Claim-Format: 2\n",
    b"18446744073709551616",
    b"99999999999999999999years",
    b"\\u0000",
];

/// The longest input that is made.
const LONGEST: usize = 64 * 1024;

#[derive(Debug, Clone)]
enum Damage {
    Flip(Index, u8),
    Set(Index, u8),
    Cut(Index, Index),
    End(Index),
    Repeat(Index, Index, usize),
    Insert(Index, usize),
    /// The beginning of one and the end of another.
    Join(Index, Index, Index),
    /// One behind the other.
    Append(Index),
}

fn damage() -> impl Strategy<Value = Damage> {
    let at = any::<Index>;
    prop_oneof![
        (at(), 0..8_u8).prop_map(|(at, bit)| Damage::Flip(at, bit)),
        (at(), any::<u8>()).prop_map(|(at, byte)| Damage::Set(at, byte)),
        (at(), at()).prop_map(|(from, to)| Damage::Cut(from, to)),
        at().prop_map(Damage::End),
        (at(), at(), 1..200_usize).prop_map(|(from, to, times)| Damage::Repeat(from, to, times)),
        (at(), 0..PIECES.len()).prop_map(|(at, piece)| Damage::Insert(at, piece)),
        (at(), at(), at()).prop_map(|(other, at, from)| Damage::Join(other, at, from)),
        at().prop_map(Damage::Append),
    ]
}

/// The two places in order, at most at the end of `bytes`.
fn range(bytes: &[u8], one: &Index, two: &Index) -> std::ops::Range<usize> {
    let [one, two] = [one, two].map(|at| at.index(bytes.len() + 1));
    one.min(two)..one.max(two)
}

impl Damage {
    fn done_to(&self, mut bytes: Vec<u8>, samples: &[Vec<u8>]) -> Vec<u8> {
        let end = bytes.len();
        match self {
            Damage::Flip(at, bit) if end > 0 => bytes[at.index(end)] ^= 1 << bit,
            Damage::Set(at, byte) if end > 0 => bytes[at.index(end)] = *byte,
            Damage::Flip(..) | Damage::Set(..) => {}
            Damage::Cut(from, to) => drop(bytes.drain(range(&bytes, from, to))),
            Damage::End(at) => bytes.truncate(at.index(end + 1)),
            Damage::Repeat(from, to, times) => {
                let range = range(&bytes, from, to);
                let piece = bytes[range.clone()].repeat(*times);
                let room = LONGEST.saturating_sub(end).min(piece.len());
                bytes.splice(range.end..range.end, piece[..room].iter().copied());
            }
            Damage::Insert(at, piece) => {
                let at = at.index(end + 1);
                bytes.splice(at..at, PIECES[*piece].iter().copied());
            }
            Damage::Join(other, at, from) => {
                let other = other.get(samples);
                bytes.truncate(at.index(end + 1));
                bytes.extend_from_slice(&other[from.index(other.len() + 1)..]);
            }
            Damage::Append(other) => bytes.extend_from_slice(other.get::<Vec<u8>>(samples)),
        }
        bytes.truncate(LONGEST);
        bytes
    }
}

fn folder(target: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "fixtures", target].iter().collect()
}

/// The samples of a target, in the order of their names.
fn samples(target: &str) -> Vec<Vec<u8>> {
    let entries = fs::read_dir(folder(target)).expect("samples of the target");
    let paths: BTreeSet<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.iter().map(|path| fs::read(path).expect("a sample")).collect()
}

#[test]
fn each_target_has_samples_and_a_fuzzer() {
    let fuzzers: PathBuf = [env!("CARGO_MANIFEST_DIR"), "fuzz", "fuzz_targets"].iter().collect();
    for (target, _) in TARGETS {
        assert!(samples(target).len() >= 5, "{target}");
        // What is published comes without them.
        assert!(!fuzzers.exists() || fuzzers.join(format!("{target}.rs")).exists(), "{target}");
    }
}

#[test]
fn samples_hold_what_they_should() {
    for (target, holds) in TARGETS {
        for sample in samples(target) {
            holds(&sample);
        }
    }
}

/// So many inputs are made of the samples of each target; more where `PROPTEST_CASES` says so.
const CASES: u32 = 400;

fn config() -> ProptestConfig {
    // What fails is shown; its place is among the samples.
    let asked = ProptestConfig { failure_persistence: None, ..ProptestConfig::default() };
    if std::env::var_os("PROPTEST_CASES").is_some() {
        return asked;
    }
    ProptestConfig { cases: CASES, ..asked }
}

/// Runs `holds` on damaged samples of `target`.
fn damaged(target: &str) {
    let holds = TARGETS.iter().find(|(name, _)| *name == target).expect("a target").1;
    let samples = samples(target);
    let strategy = (any::<Index>(), vec(damage(), 1..6));
    let mut runner = proptest::test_runner::TestRunner::new(config());
    let ran = runner.run(&strategy, |(first, damages)| {
        let input = damages
            .iter()
            .fold(first.get(&samples).clone(), |bytes, damage| damage.done_to(bytes, &samples));
        holds(&input);
        Ok(())
    });
    if let Err(failed) = ran {
        panic!("{target}: {failed}");
    }
}

/// A test for each, so that they run side by side and a failure names one.
macro_rules! damaged {
    ($($test:ident: $target:literal),* $(,)?) => {
        $(#[test] fn $test() { damaged($target); })*
        const TESTED: &[&str] = &[$($target),*];
    };
}

damaged! {
    damaged_advertisements: "advertisement",
    damaged_durations: "duration",
    damaged_held_records: "held",
    damaged_answers_of_helpers: "helper",
    damaged_lines: "lines",
    damaged_listings: "ls-refs",
    damaged_names: "name",
    damaged_records: "record",
    damaged_reports: "report",
    damaged_settings: "settings",
}

#[test]
fn each_target_is_tested() {
    let all: Vec<&str> = TARGETS.iter().map(|(target, _)| *target).collect();
    assert_eq!(all, TESTED);
}
