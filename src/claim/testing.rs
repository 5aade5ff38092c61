//! The installed git as a second opinion for the tests of these modules, in an environment of its own.

use std::{
    io::Write as _,
    path::Path,
    process::{Command, Output, Stdio},
};

/// Runs git in `dir` with `input` on standard input and no configuration but the defaults.
pub(crate) fn git(dir: &Path, args: &[&str], input: &[u8]) -> Output {
    let mut child = Command::new("git")
        .args(args)
        .current_dir(dir)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", dir)
        .env("LC_ALL", "C")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CEILING_DIRECTORIES", dir.parent().unwrap_or(dir))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("git is installed");
    let sent = child.stdin.take().expect("standard input is piped").write_all(input);
    let output = child.wait_with_output().expect("git ends");
    // A git that ends before it has read everything says so by its status, which the caller looks at.
    assert!(sent.is_ok() || !output.status.success());
    output
}
