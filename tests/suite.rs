//! The one test binary.
//!
//! Every test talks to the program as it was built, and the program talks to real remotes; nothing is mocked.
//! One binary, because the servers are shared by all tests of a process (see [`support::servers`]).

#![allow(clippy::unwrap_used)] // also outside of test functions: helpers that cannot go on may as well say where

mod support;

mod asking;
mod credentials;
mod dependencies;
mod docs;
mod doctor;
mod faults;
mod harness;
mod history;
mod isolation;
mod lab;
mod late;
mod listing;
mod many;
mod marks;
mod oddities;
mod races;
mod records;
mod regressions;
mod remotes;
mod run;
mod security;
mod several;
mod stale;
mod sweep;
mod takeover;
mod terminal;
mod verdicts;
mod waiting;

/// A file that is not listed above would never be compiled, and its tests would pass by silence.
#[test]
fn a_test_file_is_never_forgotten() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let listed = include_str!("suite.rs");
    let mut forgotten = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let is_module = path.is_dir() || path.extension().is_some_and(|ext| ext == "rs");
        if is_module
            && name != "suite"
            && !listed.lines().any(|line| line == format!("mod {name};"))
        {
            forgotten.push(name);
        }
    }
    assert!(forgotten.is_empty(), "not listed in tests/suite.rs: {forgotten:?}");
}
