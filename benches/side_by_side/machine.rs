//! What the figures were taken with: versions and the machine's shape, and nothing that names it.

use std::{env, fs, process::Command, thread};

use crate::run;

/// A line for people, with the date.
pub(crate) fn described(mode: &str) -> String {
    let said = |program: &str, arg: &str| run::quietly(Command::new(program).arg(arg));
    let cores = thread::available_parallelism().map_or(0, usize::from);
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').next().unwrap_or("?");
    format!(
        "{date}, {mode}; {os} {arch}, {cores} cores, {memory} of memory, load {load} at the end; {git}, {claim}, {rustc}.",
        date = run::quietly(Command::new("date").args(["-u", "+%Y-%m-%d"])),
        os = env::consts::OS,
        arch = env::consts::ARCH,
        memory = memory(),
        git = said("git", "--version"),
        claim = said(env!("CARGO_BIN_EXE_git-claim"), "--version"),
        // Cargo names the compiler that it uses; the one on the PATH is the same otherwise.
        rustc = said(&env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned()), "--version"),
    )
}

fn memory() -> String {
    let info = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = info.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kilobytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kilobytes.map_or("?".to_owned(), |count| format!("{} GiB", (count + (1 << 19)) >> 20))
}
