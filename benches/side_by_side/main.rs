//! `cargo bench --bench side_by_side`: our verbs beside what people do today, as ratios, on real remotes.
//!
//! All of it writes `benches/RESULTS.md`. A fraction is named by its arguments, as in
//! `cargo bench --bench side_by_side -- take list`, and `GIT_CLAIM_BENCH=quick` makes few rounds and small parts; either
//! prints the table only. Nothing here asserts a time; that both sides did what they should is asserted throughout.

#![allow(clippy::unwrap_used)] // what cannot go on may as well say where

mod machine;
mod pairs;
mod place;
mod proxy;
mod reading;
mod remotes;
mod run;
mod several;
// The servers of the tests, of which some are not for us.
#[allow(dead_code)]
#[path = "../../tests/support/servers.rs"]
mod servers;
mod table;
mod taking;

use std::{
    env, fs, panic,
    path::Path,
    process::ExitCode,
    sync::atomic::{AtomicUsize, Ordering},
};

use table::Row;

/// How much is done.
pub(crate) struct Effort {
    pub(crate) quick: bool,
}

impl Effort {
    /// So many rounds as are asked for, or a few.
    pub(crate) fn rounds(&self, full: usize) -> usize {
        if self.quick { full.min(3) } else { full }
    }
}

/// The parts, by the names that arguments choose among.
type Part = (&'static str, fn(&Effort) -> Vec<Row>);
const PARTS: [Part; 9] = [
    ("list", reading::list),
    ("take-few", taking::few),
    ("take-many", taking::many),
    ("take-network", taking::network),
    ("take-any", several::any),
    ("release", several::release),
    ("stale", reading::stale),
    ("fleet", several::fleet),
    ("small", reading::small),
];

fn main() -> ExitCode {
    // Cargo adds `--bench`.
    let filters: Vec<String> = env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let effort = Effort { quick: env::var("GIT_CLAIM_BENCH").is_ok_and(|value| value == "quick") };
    // Before the first temporary file: all of them belong to the build.
    tempfile::env::override_temp_dir(Path::new(env!("CARGO_TARGET_TMPDIR"))).unwrap();

    let chosen = |name: &str| filters.is_empty() || filters.iter().any(|f| name.contains(&**f));
    let (mut lines, mut failed) = (Vec::new(), Vec::new());
    println!("{}", table::HEAD);
    for (name, part) in PARTS.iter().filter(|(name, _)| chosen(name)) {
        // What one part cannot show says nothing about the others.
        let Ok(rows) = panic::catch_unwind(|| part(&effort)) else {
            println!("| {name} | failed, see standard error |");
            failed.push(*name);
            continue;
        };
        for row in rows {
            println!("{}", row.line());
            lines.push(row.line());
        }
    }
    let machine = machine::described(if effort.quick { "quick" } else { "in full" });
    println!("\n{machine}");
    if !failed.is_empty() {
        eprintln!("failed, so nothing is written: {}", failed.join(", "));
        return ExitCode::FAILURE;
    }
    if filters.is_empty() && !effort.quick {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/RESULTS.md");
        fs::write(&path, table::report(&machine, &lines)).unwrap();
        println!("written to {}", path.display());
    }
    ExitCode::SUCCESS
}

/// Another number at each call, for names.
pub(crate) fn next_number() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}
