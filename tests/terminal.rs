//! A Ctrl-C at a terminal, to `git claim` as people type it, and what a CI sends to all of a job: git stands between
//! them and us, gets the signal too, and hands its own copy on.

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::Command,
    thread,
    time::Duration,
};

use crate::support::{Clone, Output, Remote, Sandbox, ignores_signals, kinds, servers};

/// Runs `command` with a terminal of its own, and types a Ctrl-C there once `reached` is there.
#[track_caller]
fn interrupted(sandbox: &Sandbox, clone: &Clone, command: &str, reached: &Path) -> Output {
    let keys = sandbox.path("keys");
    assert!(Command::new("mkfifo").arg(&keys).status().unwrap().success());
    let mut typed = None;
    let script = format!("exec script -qec \"{command}\" /dev/null <'{}'", keys.display());
    let output = clone.shell(&script).go_while(|_| {
        let mut keyboard = fs::OpenOptions::new().write(true).open(&keys).unwrap();
        wait_for(reached);
        keyboard.write_all(b"\x03").unwrap();
        // Whoever closes it types an end of file.
        typed = Some(keyboard);
    });
    fs::remove_file(keys).unwrap();
    output
}

fn wait_for(reached: &Path) {
    for _ in 0..3_000 {
        if reached.exists() {
            break;
        }
        thread::sleep(Duration::from_millis(10));
    }
}

/// The server takes its time over the next renewal, and says where it is by a file.
fn slow_renewal(sandbox: &Sandbox, remote: &Remote, number: u32) -> PathBuf {
    let reached = sandbox.path(&format!("reached-{number}"));
    let file = reached.display();
    remote.hook(
        "update",
        &format!("case $2 in *[!0]*) test -e '{file}' || {{ touch '{file}'; sleep 20; }} ;; esac"),
    );
    reached
}

/// Whether there is nothing here to make a terminal with, or nothing that a Ctrl-C would do.
fn no_terminal() -> bool {
    if ignores_signals() {
        eprintln!("skipped: signals are ignored here, and so they are by whatever is started");
        return true;
    }
    let version = Command::new("script").arg("--version").output();
    let linux = version.is_ok_and(|output| output.status.success());
    !linux && servers::skip::<()>("there is no 'script' of util-linux").is_none()
}

/// Several times: whether both signals were told apart used to be a matter of luck.
#[test]
fn one_ctrl_c_leaves_no_probe() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    if no_terminal() {
        return;
    }
    let clone = sandbox.clone(&remote, "a");
    for number in 0..6 {
        let reached = slow_renewal(&sandbox, &remote, number);
        let output = interrupted(&sandbox, &clone, "git claim doctor", &reached);
        assert!(output.stdout.contains("interrupted; nothing is left of the probe"), "{output}");
        assert!(!remote.refs().contains("doctor-"), "{output}{}", remote.refs());
        assert_eq!(output.code, Some(130), "{output}");
        assert_eq!(sandbox.left_running(), Vec::<String>::new(), "{output}");
    }
}

#[test]
fn one_signal_to_the_group_leaves_no_probe() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    if no_terminal() {
        return;
    }
    let clone = sandbox.clone(&remote, "a");
    for number in 0..6 {
        let reached = slow_renewal(&sandbox, &remote, number);
        let output = clone.shell("exec setsid git claim doctor").go_while(|process| {
            wait_for(&reached);
            let group = format!("-{process}");
            assert!(Command::new("kill").args(["-TERM", "--", &group]).status().unwrap().success());
        });
        assert!(output.stdout.contains("interrupted; nothing is left of the probe"), "{output}");
        assert!(!remote.refs().contains("doctor-"), "{output}{}", remote.refs());
        assert_eq!(sandbox.left_running(), Vec::<String>::new(), "{output}");
    }
}

/// The terminal itself sends it to the command that runs under a claim.
#[test]
fn a_command_under_a_claim_is_interrupted_once() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    if no_terminal() {
        return;
    }
    let clone = sandbox.clone(&remote, "a");
    for number in 0..6 {
        let (reached, log) =
            (sandbox.path(&format!("reached-{number}")), sandbox.path(&format!("log-{number}")));
        let work = sandbox.script(
            "work",
            &format!(
                "trap 'echo interrupted >>{1}' INT\ntouch '{0}'\nuntil test -s '{1}'; do sleep 0.1; done\nsleep 0.5\nexit 7",
                reached.display(),
                log.display()
            ),
        );
        let command = format!("git claim run issue-1 -- {}", work.display());
        let output = interrupted(&sandbox, &clone, &command, &reached);
        assert_eq!(fs::read_to_string(&log).unwrap(), "interrupted\n", "{output}");
        assert_eq!(remote.tip("issue-1"), None, "{output}");
    }
}
