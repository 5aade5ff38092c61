//! `run`: the command and its claim, from the first exchange to the last, under everything that can come between.

use std::{fs, path::Path, sync::Arc, thread};

use rustix::process::Signal;

use crate::support::{
    Clone, Kind, Output, Remote, Sandbox, kinds, on,
    output::{Run, Running},
    servers, until,
};

const SIGNALS: [(Signal, i32); 4] =
    [(Signal::INT, 2), (Signal::TERM, 15), (Signal::HUP, 1), (Signal::QUIT, 3)];

/// `run` of a shell script under the claim `name`, renewed every second. Options of ours stand before.
fn under(clone: &Clone, name: &str, options: &[&str], script: &str) -> Run {
    let mut args = vec!["run", name, "--heartbeat", "1s"];
    args.extend(options);
    args.extend(["--", "sh", "-c", script]);
    clone.run(&args)
}

/// A job that goes on until the file `go` is there, once `ready` says that it runs.
fn until_told(sandbox: &Sandbox, name: &str) -> String {
    let (ready, go) = (mark(sandbox, "ready", name), mark(sandbox, "go", name));
    format!("echo >{ready}; until test -e {go}; do sleep 0.02; done")
}

fn mark(sandbox: &Sandbox, word: &str, name: &str) -> String {
    sandbox.path(&format!("{word}-{name}")).to_str().unwrap().to_owned()
}

#[track_caller]
fn appears(path: &str) {
    until(path, || Path::new(path).exists());
}

fn lines(path: &str) -> usize {
    fs::read_to_string(path).unwrap_or_default().lines().count()
}

/// The ids that the claim ref of `name` was moved to, in order; zeros where it was deleted.
fn moves(remote: &Remote, name: &str) -> Vec<String> {
    let refname = format!("refs/claims/{name} ");
    let witnessed = remote.witnessed();
    let of_name = witnessed.iter().filter_map(|line| line.strip_prefix(&refname));
    of_name.filter_map(|line| line.split(' ').nth(1).map(str::to_owned)).collect()
}

fn deletions(remote: &Remote, name: &str) -> usize {
    moves(remote, name).iter().filter(|id| id.bytes().all(|byte| byte == b'0')).count()
}

/// The command ran, and its claim came and went once.
#[track_caller]
fn came_and_went(remote: &Remote, name: &str) {
    assert_eq!(remote.tip(name), None);
    assert_eq!(deletions(remote, name), 1, "{:?}", remote.witnessed());
}

/// No claim is on record in the clone.
#[track_caller]
fn nothing_on_record(clone: &Clone) {
    let mut folders = vec![clone.dir.join(".git/claims")];
    let mut left = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            if entry.path().is_dir() { folders.push(entry.path()) } else { left.push(entry.path()) }
        }
    }
    assert!(left.is_empty(), "{left:?}");
}

on!(the_command_is_told_of_its_claim: path, sha256, ssh, https);
fn the_command_is_told_of_its_claim(kind: Kind) {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kind) else { return };
    let clone = sandbox.clone(&remote, "a");
    if remote.url.starts_with("https://") {
        let known = format!("https://alice:{}@", servers::PASSWORD);
        clone.git(&["remote", "set-url", "origin", &remote.url.replace("https://", &known)]);
    }
    let script = "env | grep ^GIT_CLAIM | sort; env | sed 's/^/all: /' >&2";
    let output = under(&clone, "42", &[], script).go();
    assert_eq!(output.code, Some(0), "{output}");
    let taken = moves(&remote, "issue-42")[0].clone();
    let record = remote.git(&["cat-file", "-p", &taken]);
    let token = record.lines().find_map(|line| line.strip_prefix("Claim-Token: ")).unwrap();
    let shown = remote.url.clone();
    let expected = format!(
        "GIT_CLAIM_ID={taken}\nGIT_CLAIM_NAME=issue-42\nGIT_CLAIM_REF=refs/claims/issue-42\n\
         GIT_CLAIM_REMOTE={shown}\nGIT_CLAIM_TOKEN={token}\n"
    );
    assert_eq!(output.stdout, expected, "{output}");
    assert!(!output.stderr.contains(servers::PASSWORD), "{output}");
    assert!(record.contains("\nHeartbeat: 1\n") && record.contains("\nProcess: "), "{record}");
    came_and_went(&remote, "issue-42");
    nothing_on_record(&clone);
}

/// Standard input, output and error are the command's own, byte for byte, whatever they are.
#[test]
fn the_commands_streams_are_its_own() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let clone = sandbox.clone(&remote, "a");
    let bytes: Vec<u8> = (0..=255).cycle().take(300_000).collect();
    let (input, out) = (sandbox.path("in"), sandbox.path("out"));
    fs::write(&input, &bytes).unwrap();
    let script = format!(
        "cat {} | git-claim run 42 -- cat | cat >{}; git-claim run 42 -- cat <&- ; \
         git-claim run 42 -- sh -c 'test ! -t 0 && readlink /proc/self/fd/0' </dev/null; \
         git-claim run 42 -- sh -c 'ls /proc/self/fd | wc -l; echo mine >&2'",
        input.display(),
        out.display()
    );
    let output = clone.shell(&script).go().says("mine\n");
    assert_eq!(fs::read(&out).unwrap(), bytes);
    let own = clone.shell("readlink /proc/self/fd/0 </dev/null; ls /proc/self/fd | wc -l").go();
    assert_eq!(output.stdout, own.stdout, "no descriptor more than without us\n{output}");
    // What we have to say is said on standard error, also as JSON.
    let output = clone.run(&["run", "42", "--json", "--", "echo", "mine"]).go();
    assert_eq!(output.stdout, "mine\n", "{output}");
    let object: serde_json::Value = serde_json::from_str(output.stderr.trim()).unwrap();
    assert_eq!((object["verdict"].as_str(), object["exit"].as_i64()), (Some("released"), Some(0)));
    let output = clone.run(&["run", "42", "-q", "--", "echo", "mine"]).go();
    assert_eq!((output.stdout.as_str(), output.stderr.as_str()), ("mine\n", ""), "{output}");
}

/// The command's own end is ours, as a shell tells it, and the claim is given back after each.
#[test]
fn the_exit_status_is_the_commands() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let clone = sandbox.clone(&remote, "a");
    let plain = sandbox.path("plain");
    fs::write(&plain, "echo\n").unwrap();
    let plain = plain.to_str().unwrap();
    for (command, code) in [
        (&["true"][..], 0),
        (&["sh", "-c", "exit 1"], 1),
        (&["sh", "-c", "exit 75"], 75),
        (&["sh", "-c", "exit 255"], 255),
        (&["sh", "-c", "kill -KILL $$"], 137),
        (&["sh", "-c", "kill -TERM $$"], 143),
        (&["sh", "-c", "kill -SEGV $$"], 139),
        (&["no-such-program"], 127),
        (&["./no/such/program"], 127),
        (&[plain], 126),
        (&["/"], 126),
        (&["sh", "-c", "echo hello | sed s/hello/x/ | grep -q y"], 1),
    ] {
        let output = clone.run(&[&["run", "42", "--"], command].concat()).go();
        assert_eq!(output.code, Some(code), "{output}");
        let _ = output.says("released issue-42 ");
        assert_eq!(remote.tip("issue-42"), None);
        nothing_on_record(&clone);
    }
    let output = clone.run(&["run", "42"]).go();
    assert_eq!(output.code, Some(2), "{output}");
    let output = clone.run(&["run", "42", "--heartbeat", "0", "--", "true"]).go();
    assert_eq!(output.code, Some(2), "{output}");
}

/// Where the claim cannot be had the command is not started, and the exit status says why.
#[test]
fn without_the_claim_nothing_runs() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let (alice, bob) = (sandbox.clone(&remote, "alice"), sandbox.clone(&remote, "bob"));
    let ran = sandbox.path("ran");
    let touch = ran.to_str().unwrap();
    let _ = alice.claim(&["take", "42"]).is(0, "claimed");
    let tip = remote.tip("issue-42");
    for (options, code) in [(&[][..], 75), (&["-E", "0"], 0), (&["-E", "9", "--wait", "0"], 9)] {
        let args = [&["run", "42"], options, &["--", "touch", touch]].concat();
        let _ = bob.claim(&args).is(code, "held issue-42 by Alice Example");
        // Two jobs may share a clone.
        let _ = alice.claim(&args).is(code, "held issue-42 by Alice Example");
        nothing_on_record(&bob);
    }
    assert_eq!(remote.tip("issue-42"), tip);
    assert_eq!(bob.claim(&["run", "42", "-E", "256", "--", "true"]).code, Some(2));
    remote.hook("update", "exit 1");
    let args = ["run", "43", "-E", "9", "--", "touch", touch];
    let _ = bob.claim(&args).is(77, "refused issue-43");
    fs::rename(&remote.dir, sandbox.path("away")).unwrap();
    let _ = bob.claim(&args).is(69, "unknown issue-43");
    fs::rename(sandbox.path("away"), &remote.dir).unwrap();
    nothing_on_record(&bob);
    assert!(!ran.exists());
}

/// One clone, two jobs: neither is in the other's way.
#[test]
fn jobs_of_one_clone_have_claims_of_their_own() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let clone = sandbox.clone(&remote, "a");
    let [one, two] = ["1", "2"].map(|name| {
        let running = under(&clone, name, &[], &until_told(&sandbox, name)).start();
        appears(&mark(&sandbox, "ready", name));
        running
    });
    let _ = under(&clone, "1", &[], "true").go().is(75, "held issue-1 by");
    until("both were renewed", || ["issue-1", "issue-2"].iter().all(|n| moves(&remote, n).len() > 2));
    fs::write(mark(&sandbox, "go", "1"), "").unwrap();
    assert_eq!(one.end().code, Some(0));
    assert!(remote.tip("issue-1").is_none() && remote.tip("issue-2").is_some());
    fs::write(mark(&sandbox, "go", "2"), "").unwrap();
    assert_eq!(two.end().code, Some(0));
    came_and_went(&remote, "issue-2");
    nothing_on_record(&clone);
}
