//! Running a command to its end, timed or not.

use std::{
    io::{Seek, Write},
    process::{Command, Output, Stdio},
    thread,
    time::{Duration, Instant},
};

/// Runs it with `input`, and gives the time from its start to its end. It must exit with `code`.
pub(crate) fn timed(command: &mut Command, input: &[u8], code: i32) -> (Duration, Output) {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(input).unwrap();
    file.rewind().unwrap();
    command.stdin(file);
    let started = Instant::now();
    let output = command.output().unwrap();
    let time = started.elapsed();
    assert_eq!(
        output.status.code(),
        Some(code),
        "{command:?}\n{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    (time, output)
}

/// Runs a step of the preparations.
pub(crate) fn quietly(command: &mut Command) -> String {
    quietly_with(command, b"")
}

/// The same, with input.
pub(crate) fn quietly_with(command: &mut Command, input: &[u8]) -> String {
    let (_, output) = timed(command, input, 0);
    String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
}

/// The most memory that the process had at once, in bytes, where the system tells (Linux). Looked at all the time
/// while it runs: what it needs in its last millisecond only may be missed.
pub(crate) fn peak_memory(command: &mut Command) -> Option<u64> {
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let status = format!("/proc/{}/status", child.id());
    let mut peak = None;
    while child.try_wait().unwrap().is_none() {
        let status = std::fs::read_to_string(&status).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kilobytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok());
        peak = peak.max(kilobytes.map(|count: u64| count * 1024));
        thread::sleep(Duration::from_millis(1));
    }
    peak
}
