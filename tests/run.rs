//! `run`: the command and its claim, from the first exchange to the last, under everything that can come between.

use std::{fs, path::Path, thread};

use rustix::process::Signal;

use crate::support::{
    Clone, Kind, Remote, Sandbox, kinds, on, output::Run, servers, terminal::Terminal, until,
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
        clone.point_to(&remote.url.replace("https://", &known));
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
    until("both were renewed", || {
        ["issue-1", "issue-2"].iter().all(|n| moves(&remote, n).len() > 2)
    });
    fs::write(mark(&sandbox, "go", "1"), "").unwrap();
    assert_eq!(one.end().code, Some(0));
    assert!(remote.tip("issue-1").is_none() && remote.tip("issue-2").is_some());
    fs::write(mark(&sandbox, "go", "2"), "").unwrap();
    assert_eq!(two.end().code, Some(0));
    came_and_went(&remote, "issue-2");
    nothing_on_record(&clone);
}

/// Holds up what a server is asked for where `when` (a condition in `$2` and `$3`, the old and the new value) is true:
/// the hook says in the file `held-<claim>` that it was reached, and goes on once `on-<claim>` is there.
fn hold_up(sandbox: &Sandbox, remote: &Remote, when: &str) {
    let dir = sandbox.path("").display().to_string();
    remote.hook(
        "update",
        &format!(
            "zero() {{ case $1 in *[!0]*) false ;; esac; }}\nname=${{1##*/}}\n\
             if {when}; then echo >>{dir}/held-$name; until test -e {dir}/on-$name; do sleep 0.02; done; fi"
        ),
    );
}

fn let_on(sandbox: &Sandbox, name: &str) {
    fs::write(mark(sandbox, "on", name), "").unwrap();
}

/// Runs `test` for each signal at once, each with a name of its own for the claim.
fn with_each_signal(test: impl Fn(&str, Signal, i32) + Sync) {
    thread::scope(|scope| {
        for (signal, number) in SIGNALS {
            let test = &test;
            scope.spawn(move || test(&format!("sig-{number}"), signal, number));
        }
    });
}

on!(a_signal_while_the_claim_is_taken: path, daemon, ssh, https);
/// The command has left: its answer is waited for, so that what landed can be given back. Nothing is started.
fn a_signal_while_the_claim_is_taken(kind: Kind) {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kind) else { return };
    let clone = sandbox.clone(&remote, "a");
    hold_up(&sandbox, &remote, "zero $2");
    with_each_signal(|name, signal, number| {
        let ran = mark(&sandbox, "ran", name);
        let mut running = under(&clone, name, &[], &format!("touch {ran}")).start();
        appears(&mark(&sandbox, "held", name));
        running.signal(signal);
        // It is to be noticed before the answer is there.
        thread::sleep(std::time::Duration::from_millis(300));
        let_on(&sandbox, name);
        let output = running.end();
        let _ = output.is(128 + number, &format!("released {name} "));
        came_and_went(&remote, name);
        assert!(!Path::new(&ran).exists());
    });
    nothing_on_record(&clone);
    assert_eq!(sandbox.left_running(), Vec::<String>::new());
}

/// Who does not want to wait for the answer is not made to: the record stays, by which the claim is known as ours.
#[test]
fn a_second_signal_while_the_claim_is_taken() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::daemon()) else { return };
    let clone = sandbox.clone(&remote, "a");
    hold_up(&sandbox, &remote, "zero $2");
    let mut running = under(&clone, "42", &[], "true").start();
    appears(&mark(&sandbox, "held", "issue-42"));
    running.signal(Signal::INT);
    // The two must not melt into one.
    thread::sleep(std::time::Duration::from_millis(300));
    assert!(!running.has_ended());
    running.signal(Signal::TERM);
    let output = running.end();
    assert_eq!((output.code, output.stdout.as_str()), (None, ""), "{output}");
    let_on(&sandbox, "issue-42");
    until("it lands all the same", || remote.tip("issue-42").is_some());
    let _ = clone.claim(&["verify", "42"]).is(0, "yours issue-42");
    let _ = clone.claim(&["release", "42"]).is(0, "released issue-42");
}

/// Nothing has left yet: there is nothing to wait for.
#[test]
fn a_signal_while_the_server_does_not_answer() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let clone = sandbox.clone(&remote, "a");
    let silent = crate::support::proxy::Silent::start();
    for scheme in ["git", "ssh", "https"] {
        let url = format!("{scheme}://127.0.0.1:{}/origin.git", silent.port());
        let mut running = under(&clone, "42", &["--remote", &url], "true").start();
        until("it asks", || running.has_ended() || connected(running.pid()));
        let started = std::time::Instant::now();
        running.signal(Signal::TERM);
        let output = running.end();
        assert_eq!(output.code, Some(143), "{output}");
        assert!(started.elapsed().as_secs() < 15, "the deadline of 30 s was waited for\n{output}");
        nothing_on_record(&clone);
    }
}

/// Whether the process, or one that it has started, has a connection.
fn connected(pid: u32) -> bool {
    let script = "grep -q socket: <<E\n$(for p in $1 $(pgrep -P $1 2>/dev/null || true); do \
                  readlink /proc/$p/fd/* 2>/dev/null; done)\nE";
    let args = ["-c", script, "sh", &pid.to_string()];
    std::process::Command::new("sh").args(args).status().unwrap().success()
}

/// The signal is the command's; what it makes of it is the exit status.
#[test]
fn a_signal_while_the_command_runs() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let clone = sandbox.clone(&remote, "a");
    with_each_signal(|name, signal, number| {
        // One that does not care to know.
        let mut running = under(&clone, name, &[], &until_told(&sandbox, name)).start();
        appears(&mark(&sandbox, "ready", name));
        running.signal(signal);
        let output = running.end().says(&format!("released {name} "));
        assert_eq!(output.code, Some(128 + number), "{output}");
        came_and_went(&remote, name);
        // One that tidies up, and takes longer for it than a heartbeat.
        let (other, got) = (format!("{name}-own"), mark(&sandbox, "got", name));
        let script = format!(
            "trap 'echo >>{got}; sleep 1.5; exit 7' {number}; {}",
            until_told(&sandbox, &other)
        );
        let mut running = under(&clone, &other, &[], &script).start();
        appears(&mark(&sandbox, "ready", &other));
        running.signal(signal);
        let output = running.end().says(&format!("released {other} "));
        assert_eq!((output.code, lines(&got)), (Some(7), 1), "{output}");
        assert!(moves(&remote, &other).len() > 2, "it was renewed meanwhile");
        came_and_went(&remote, &other);
        // One that ignores it, whatever number of times, and a last signal that it heeds.
        let third = format!("{name}-no");
        let script =
            format!("trap '' {number}; trap 'exit 9' USR1; {}", until_told(&sandbox, &third));
        let mut running = under(&clone, &third, &[], &script).start();
        appears(&mark(&sandbox, "ready", &third));
        for _ in 0..3 {
            running.signal(signal);
        }
        let before = moves(&remote, &third).len();
        until("it goes on, renewed", || moves(&remote, &third).len() > before + 1);
        assert!(!running.has_ended());
        fs::write(mark(&sandbox, "go", &third), "").unwrap();
        let output = running.end().says(&format!("released {third} "));
        assert_eq!(output.code, Some(0), "{output}");
        came_and_went(&remote, &third);
    });
    nothing_on_record(&clone);
    assert_eq!(sandbox.left_running(), Vec::<String>::new());
}

/// A shell that a signal ends leaves its programs behind. They are the work, and the claim is not given back while they run.
#[test]
fn a_signal_reaches_all_of_a_pipeline() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let clone = sandbox.clone(&remote, "a");
    let ready = mark(&sandbox, "ready", "it");
    let script = format!(
        "{{ sh -c 'echo >{ready}; sleep 600; :'; }} | cat | sh -c 'trap \"\" TERM; cat; sleep 600'; :"
    );
    let mut running = under(&clone, "42", &["--grace", "1s"], &script).start();
    appears(&ready);
    running.signal(Signal::TERM);
    let output = running.end();
    assert_eq!(output.code, Some(143), "{output}");
    came_and_went(&remote, "issue-42");
    assert_eq!(sandbox.left_running(), Vec::<String>::new());
}

/// The command hears of it at once, whatever we are doing; the renewal in flight is waited for, and then it is given back.
#[test]
fn a_signal_while_the_claim_is_renewed() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let clone = sandbox.clone(&remote, "a");
    hold_up(&sandbox, &remote, "! zero $2 && ! zero $3");
    with_each_signal(|name, signal, number| {
        let got = mark(&sandbox, "got", name);
        let script =
            format!("trap 'echo >>{got}; exit 7' {number}; {}", until_told(&sandbox, name));
        let mut running = under(&clone, name, &[], &script).start();
        appears(&mark(&sandbox, "held", name));
        running.signal(signal);
        appears(&got);
        let_on(&sandbox, name);
        let output = running.end().says(&format!("released {name} "));
        assert_eq!(output.code, Some(7), "{output}");
        came_and_went(&remote, name);
        // The same without a signal: the command just ends meanwhile.
        let other = format!("{name}-end");
        let running = under(&clone, &other, &[], &until_told(&sandbox, &other)).start();
        appears(&mark(&sandbox, "held", &other));
        fs::write(mark(&sandbox, "go", &other), "").unwrap();
        let_on(&sandbox, &other);
        let output = running.end().says(&format!("released {other} "));
        assert_eq!(output.code, Some(0), "{output}");
        came_and_went(&remote, &other);
    });
    nothing_on_record(&clone);
}

on!(a_signal_while_the_claim_is_released: path, daemon);
/// The first one waits for the end; the claim is gone then, and the exit status is the command's.
fn a_signal_while_the_claim_is_released(kind: Kind) {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kind) else { return };
    let clone = sandbox.clone(&remote, "a");
    hold_up(&sandbox, &remote, "zero $3");
    with_each_signal(|name, signal, number| {
        let mut running = under(&clone, name, &[], "exit 5").start();
        appears(&mark(&sandbox, "held", name));
        running.signal(signal);
        let_on(&sandbox, name);
        let output = running.end().says(&format!("released {name} "));
        assert_eq!(output.code, Some(5), "{output}");
        came_and_went(&remote, name);
        // The signals that the command was sent do not count.
        let other = format!("{name}-own");
        let mut running = under(&clone, &other, &[], &until_told(&sandbox, &other)).start();
        appears(&mark(&sandbox, "ready", &other));
        running.signal(signal);
        appears(&mark(&sandbox, "held", &other));
        running.signal(signal);
        let_on(&sandbox, &other);
        let output = running.end().says(&format!("released {other} "));
        assert_eq!(output.code, Some(128 + number), "{output}");
        came_and_went(&remote, &other);
    });
    nothing_on_record(&clone);
    // A second one ends us; the record stays as long as it cannot be told what became of the claim.
    let mut running = under(&clone, "42", &[], "true").start();
    appears(&mark(&sandbox, "held", "issue-42"));
    running.signal(Signal::INT);
    thread::sleep(std::time::Duration::from_millis(300));
    assert!(!running.has_ended());
    running.signal(Signal::INT);
    let output = running.end();
    assert_eq!(output.code, None, "{output}");
    let_on(&sandbox, "issue-42");
    let output = clone.claim(&["release", "42"]);
    assert!(matches!(output.code, Some(0 | 3)), "{output}");
    assert_eq!(remote.tip("issue-42"), None);
}

/// Clears the claim `name` from another clone, by the id that stands there, and takes it.
#[track_caller]
fn retaken(other: &Clone, remote: &Remote, name: &str) -> String {
    // A renewal may come in between, which is what keeps a living claim from being cleared by mistake.
    until("it is cleared", || {
        let Some(tip) = remote.tip(name) else { return true };
        other.claim(&["release", name, "--expect", &tip]).code == Some(0)
    });
    other.claim(&["take", name, "--note", "mine now"]).is(0, "claimed").id()
}

on!(a_claim_that_is_lost_stops_the_command: path, ssh, https);
fn a_claim_that_is_lost_stops_the_command(kind: Kind) {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kind) else { return };
    let (alice, bob) = (sandbox.clone(&remote, "alice"), sandbox.clone(&remote, "bob"));
    bob.set("user.name", "Bob Builder");
    let got = mark(&sandbox, "got", "it");
    let script = format!("trap 'echo >>{got}; exit 0' TERM; {}", until_told(&sandbox, "it"));
    let mut running = under(&alice, "42", &["--grace", "20s"], &script).start();
    appears(&mark(&sandbox, "ready", "it"));
    let started = std::time::Instant::now();
    let id = retaken(&bob, &remote, "issue-42");
    running.until_it_says("issue-42 was lost: Bob Builder");
    appears(&got);
    assert!(started.elapsed().as_secs() < 10, "a heartbeat is a second");
    let output = running.end().says("mine now").says("asked to end");
    assert_eq!(output.code, Some(3), "{output}");
    assert!(output.stderr.lines().any(|line| line.starts_with("lost issue-42 to Bob")), "{output}");
    assert_eq!(remote.tip("issue-42"), Some(id.clone()));
    let _ = bob.claim(&["verify", "42"]).is(0, &format!("yours issue-42 {id}"));
    assert_eq!(deletions(&remote, "issue-42"), 1, "the clearing only");
}

/// Cleared, and nobody took it: then it is nobody's, and not ours.
#[test]
fn a_claim_that_is_cleared_is_lost() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let clone = sandbox.clone(&remote, "a");
    let running = under(&clone, "42", &[], &until_told(&sandbox, "it")).start();
    appears(&mark(&sandbox, "ready", "it"));
    remote.git(&["update-ref", "-d", "refs/claims/issue-42"]);
    let output = running.end().says("issue-42 was lost: somebody cleared it");
    assert_eq!(output.code, Some(3), "{output}");
    assert_eq!(remote.tip("issue-42"), None);
}

/// A command that will not hear is ended after the grace, with all that it has started.
#[test]
fn a_command_that_ignores_the_request_is_ended() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let (alice, bob) = (sandbox.clone(&remote, "alice"), sandbox.clone(&remote, "bob"));
    for (name, script) in [
        ("1", "trap '' TERM; (trap '' TERM; sleep 600; sleep 600); sleep 600".to_owned()),
        // The shell ends, and what it has started does not want to.
        ("2", "(trap '' TERM; sleep 600; sleep 600) | cat; :".to_owned()),
        // Stopped.
        ("3", "kill -STOP $$; sleep 600; :".to_owned()),
    ] {
        let ready = mark(&sandbox, "ready", name);
        let script = format!("echo >{ready}; {script}");
        let mut running = under(&alice, name, &["--grace", "1s"], &script).start();
        appears(&ready);
        let id = retaken(&bob, &remote, &format!("issue-{name}"));
        running.until_it_says("was lost");
        let started = std::time::Instant::now();
        let output = running.end();
        assert_eq!(output.code, Some(3), "{output}");
        assert!(started.elapsed().as_secs() < 10, "{output}");
        assert_eq!(sandbox.left_running(), Vec::<String>::new(), "{output}");
        assert_eq!(remote.tip(&format!("issue-{name}")), Some(id));
    }
}

/// `--on-lost warn`: the command is left alone, whatever comes, and the exit status still tells.
#[test]
fn a_loss_can_be_a_warning_only() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let (alice, bob) = (sandbox.clone(&remote, "alice"), sandbox.clone(&remote, "bob"));
    let script = format!("{}; echo to its end", until_told(&sandbox, "it"));
    let mut running = under(&alice, "42", &["--on-lost", "warn"], &script).start();
    appears(&mark(&sandbox, "ready", "it"));
    let id = retaken(&bob, &remote, "issue-42");
    running.until_it_says("goes on without the claim");
    let seen = remote.witnessed().len();
    thread::sleep(std::time::Duration::from_millis(1500));
    assert!(!running.has_ended());
    fs::write(mark(&sandbox, "go", "it"), "").unwrap();
    let output = running.end();
    assert_eq!((output.code, output.stdout.as_str()), (Some(3), "to its end\n"), "{output}");
    assert_eq!(output.stderr.matches("was lost").count(), 1, "{output}");
    assert_eq!(remote.tip("issue-42"), Some(id));
    assert_eq!(remote.witnessed().len(), seen, "nothing more was asked of the server");
}

/// Frozen for longer than it takes to be called silent; another cleared and took it. Awake again, it finds out first.
#[test]
fn a_run_that_was_frozen_stops_at_the_first_chance() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let (alice, bob) = (sandbox.clone(&remote, "alice"), sandbox.clone(&remote, "bob"));
    let mut running = under(&alice, "42", &["--grace", "1s"], &until_told(&sandbox, "it")).start();
    appears(&mark(&sandbox, "ready", "it"));
    running.signal(Signal::STOP);
    until("it is called silent", || bob.claim(&["stale"]).stdout.contains("silent"));
    let id = retaken(&bob, &remote, "issue-42");
    let seen = remote.witnessed().len();
    running.signal(Signal::CONT);
    let started = std::time::Instant::now();
    let output = running.end().says("issue-42 was lost");
    assert_eq!(output.code, Some(3), "{output}");
    assert!(started.elapsed().as_secs() < 10, "{output}");
    assert_eq!(remote.tip("issue-42"), Some(id));
    assert_eq!(remote.witnessed().len(), seen, "nothing was asked of the server");
    assert_eq!(sandbox.left_running(), Vec::<String>::new());
}

/// Nothing can be done about KILL: the claim stays, and a report tells that its process has ended.
#[test]
fn a_run_that_is_killed_leaves_a_claim_that_is_reported() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let clone = sandbox.clone(&remote, "a");
    let mut running = under(&clone, "42", &[], &until_told(&sandbox, "it")).start();
    appears(&mark(&sandbox, "ready", "it"));
    until("it was renewed", || moves(&remote, "issue-42").len() > 1);
    running.signal(Signal::KILL);
    assert_eq!(running.end().code, None);
    assert!(remote.tip("issue-42").is_some());
    // A renewal that was under way has landed by then.
    until("it is called silent", || clone.claim(&["stale"]).stdout.contains("silent"));
    let tip = remote.tip("issue-42");
    let output = clone.claim(&["stale"]);
    assert!(output.stdout.contains("has ended"), "{output}");
    assert_eq!(remote.tip("issue-42"), tip);
    fs::write(mark(&sandbox, "go", "it"), "").unwrap();
    let _ = clone.claim(&["release", "42"]).is(0, "released issue-42");
}

/// What the remote does not let us give back is reported with the command that does it.
#[test]
fn a_release_that_is_refused_is_reported() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let (alice, bob) = (sandbox.clone(&remote, "alice"), sandbox.clone(&remote, "bob"));
    for (options, script, code) in [
        (&[][..], "exit 0", 0),
        (&[], "exit 5", 5),
        (&["--strict-release"], "exit 0", 77),
        (&["--strict-release"], "exit 5", 5),
    ] {
        remote.hook("update", "case $3 in *[!0]*) ;; *) echo 'nobody leaves' >&2; exit 1 ;; esac");
        let output = under(&alice, "42", options, script).go().says("nobody leaves");
        assert_eq!(output.code, Some(code), "{output}");
        let words = "to release it: git claim ";
        let line = output.stderr.lines().find_map(|line| line.split_once(words));
        let command = line.unwrap_or_else(|| panic!("{output}")).1;
        remote.unhook("update");
        // The very command, from any clone.
        let args = command.split(' ').collect::<Vec<_>>();
        let _ = bob.claim(&args).is(0, "released issue-42");
        let _ = alice.claim(&["release", "42"]);
    }
    // The remote is away by then.
    let away = sandbox.path("away");
    let script = format!("mv {} {}", remote.dir.display(), away.display());
    for (options, code) in [(&[][..], 0), (&["--strict-release"], 69)] {
        let output = under(&alice, "43", options, &script).go().says("git claim release issue-43");
        assert_eq!(output.code, Some(code), "{output}");
        fs::rename(&away, &remote.dir).unwrap();
        let _ = alice.claim(&["release", "43"]).is(0, "released issue-43");
    }
}

/// Removes a folder in which a renewal may be writing its record: a file that appears meanwhile makes it begin again.
fn removed(dir: &Path) {
    until("the folder is gone", || fs::remove_dir_all(dir).is_ok());
}

/// The clone is cleaned while the command runs: who we are is known without it.
#[test]
fn the_records_may_go_while_the_command_runs() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let clone = sandbox.clone(&remote, "a");
    let running = under(&clone, "42", &[], &until_told(&sandbox, "it")).start();
    appears(&mark(&sandbox, "ready", "it"));
    for _ in 0..2 {
        removed(&clone.dir.join(".git/claims"));
        let before = moves(&remote, "issue-42").len();
        until("it is renewed", || moves(&remote, "issue-42").len() > before + 1);
    }
    removed(&clone.dir);
    let before = moves(&remote, "issue-42").len();
    until("it is renewed", || moves(&remote, "issue-42").len() > before + 1);
    fs::write(mark(&sandbox, "go", "it"), "").unwrap();
    let output = running.end().says("released issue-42");
    assert_eq!(output.code, Some(0), "{output}");
    came_and_went(&remote, "issue-42");
}

/// The remote is away for more than ten heartbeats, and comes back.
#[test]
fn the_remote_may_be_away_for_a_while() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let clone = sandbox.clone(&remote, "a");
    let mut running = under(&clone, "42", &[], &until_told(&sandbox, "it")).start();
    appears(&mark(&sandbox, "ready", "it"));
    let away = sandbox.path("away");
    fs::rename(&remote.dir, &away).unwrap();
    running.until_it_says("issue-42 could not be renewed");
    thread::sleep(std::time::Duration::from_secs(11));
    assert!(!running.has_ended());
    fs::rename(&away, &remote.dir).unwrap();
    running.until_it_says("the claim is renewed again");
    fs::write(mark(&sandbox, "go", "it"), "").unwrap();
    let output = running.end().says("released issue-42");
    assert_eq!(output.code, Some(0), "{output}");
    assert_eq!(output.stderr.matches("could not be renewed").count(), 1, "told once\n{output}");
    came_and_went(&remote, "issue-42");
}

/// The same over a network, where the server is gone and comes back.
#[test]
fn the_server_may_be_away_for_a_while() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let Some((server, port)) = servers::own_daemon(None) else { return };
    let clone = sandbox.clone(&remote, "a");
    let below_root = remote.dir.strip_prefix(servers::root()).unwrap().display();
    clone.point_to(&format!("git://127.0.0.1:{port}/{below_root}"));
    let mut running = under(&clone, "42", &[], &until_told(&sandbox, "it")).start();
    appears(&mark(&sandbox, "ready", "it"));
    drop(server);
    running.until_it_says("issue-42 could not be renewed");
    thread::sleep(std::time::Duration::from_secs(11));
    assert!(!running.has_ended());
    let Some((_server, _)) = servers::own_daemon(Some(port)) else { return };
    running.until_it_says("the claim is renewed again");
    fs::write(mark(&sandbox, "go", "it"), "").unwrap();
    let output = running.end().says("released issue-42");
    assert_eq!(output.code, Some(0), "{output}");
    assert_eq!(output.stderr.matches("could not be renewed").count(), 1, "told once\n{output}");
    came_and_went(&remote, "issue-42");
}

/// The remote is away, the claim is cleared and taken meanwhile, and the remote comes back: that is told.
#[test]
fn a_claim_may_be_lost_while_the_remote_is_away() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let (alice, bob) = (sandbox.clone(&remote, "alice"), sandbox.clone(&remote, "bob"));
    let mut running = under(&alice, "42", &[], &until_told(&sandbox, "it")).start();
    appears(&mark(&sandbox, "ready", "it"));
    // Away for Alice only.
    let gone = format!("{}-gone", remote.dir.display());
    let url = remote.dir.display().to_string();
    fs::rename(&remote.dir, &gone).unwrap();
    running.until_it_says("issue-42 could not be renewed");
    let moved = ["--remote", &gone];
    let tip =
        bob.claim(&[&["list", "--json"][..], &moved].concat()).json()["claims"][0]["id"].clone();
    let clear = [&["release", "42", "--expect", tip.as_str().unwrap()][..], &moved].concat();
    let _ = bob.claim(&clear).is(0, "released");
    let id = bob.claim(&[&["take", "42"][..], &moved].concat()).is(0, "claimed").id();
    fs::rename(&gone, &url).unwrap();
    let output = running.end().says("issue-42 was lost");
    assert_eq!(output.code, Some(3), "{output}");
    assert_eq!(remote.tip("issue-42"), Some(id));
}

/// At a terminal the keys mean to the command what they mean without us, and the claim is given back after each.
#[test]
fn the_keys_of_a_terminal_are_the_commands() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let clone = sandbox.clone(&remote, "a");
    let Some(mut terminal) = Terminal::open(&clone) else { return };
    // Ends by itself.
    terminal.type_in("git-claim run 1 -- sh -c 'test -t 0 && test -t 1 && test -t 2 && exit 6'\n");
    assert_eq!(terminal.status(), "6", "{}", terminal.shown());
    // Reads from the terminal.
    terminal.type_in("git-claim run 1 -- sh -c 'read it; echo $it | tr a-z A-Z'\nspoken\n");
    terminal.until_it_shows("SPOKEN");
    assert_eq!(terminal.status(), "0");
    for (key, number) in [("\x03", 2), ("\x1c", 3)] {
        // One that does not care to know, with a pipeline of its own.
        let name = format!("plain-{number}");
        let job = sandbox.script(&name, &format!("({}) | cat; :", until_told(&sandbox, &name)));
        terminal.type_in(&format!("git-claim run {name} --heartbeat 1s -- {}\n", job.display()));
        appears(&mark(&sandbox, "ready", &name));
        terminal.type_in(key);
        terminal.until_it_shows(&format!("released {name} "));
        assert_eq!(terminal.status(), (128 + number).to_string());
        came_and_went(&remote, &name);
        // One that does, and is told once.
        let (name, got) = (format!("own-{number}"), mark(&sandbox, "got", &number.to_string()));
        let script =
            format!("trap 'echo >>{got}; exit 7' {number}; {}", until_told(&sandbox, &name));
        let job = sandbox.script(&name, &script);
        terminal.type_in(&format!("git-claim run {name} --heartbeat 1s -- {}\n", job.display()));
        appears(&mark(&sandbox, "ready", &name));
        terminal.type_in(key);
        terminal.until_it_shows(&format!("released {name} "));
        assert_eq!((terminal.status().as_str(), lines(&got)), ("7", 1), "{}", terminal.shown());
        came_and_went(&remote, &name);
    }
    nothing_on_record(&clone);
}

/// Through `git`, which sends on to us what the terminal has sent to both: that is one signal, and not a second one.
#[test]
fn the_keys_mean_the_same_through_git() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let clone = sandbox.clone(&remote, "a");
    let Some(mut terminal) = Terminal::open(&clone) else { return };
    let mut unanswered = Vec::new();
    for (key, number) in [("\x03", 2), ("\x1c", 3)] {
        let (name, got) = (format!("job-{number}"), mark(&sandbox, "got", &number.to_string()));
        // It stays for a while, so that a second one would reach it too.
        let script = format!("trap 'echo >>{got}' {number}; {}", until_told(&sandbox, &name));
        let job = sandbox.script(&name, &script);
        terminal.type_in(&format!("git claim run {name} --heartbeat 1s -- {}\n", job.display()));
        appears(&mark(&sandbox, "ready", &name));
        terminal.type_in(key);
        appears(&got);
        let before = moves(&remote, &name).len();
        until("it goes on, renewed", || moves(&remote, &name).len() > before + 1);
        fs::write(mark(&sandbox, "go", &name), "").unwrap();
        terminal.until_it_shows(&format!("released {name} "));
        assert_eq!(lines(&got), 1, "{}", terminal.shown());
        came_and_went(&remote, &name);
        // While the claim is taken, and given back.
        let ran = mark(&sandbox, "ran", &number.to_string());
        for (phase, zero, program) in [
            ("taking", "$2", "git claim"),
            ("releasing", "$3", "git claim"),
            ("taking", "$2", "git-claim"),
            ("releasing", "$3", "git-claim"),
        ] {
            let name =
                format!("{phase}-{number}{}", if program.contains(' ') { "-by-git" } else { "" });
            let ran = format!("{ran}-{name}");
            hold_up(&sandbox, &remote, &format!("zero {zero}"));
            let _ = terminal.status();
            terminal.type_in(&format!("{program} run {name} -- touch {ran}\n"));
            appears(&mark(&sandbox, "held", &name));
            terminal.type_in(key);
            thread::sleep(std::time::Duration::from_millis(300));
            let_on(&sandbox, &name);
            // The terminal sends it to the server's programs too: they may end before the claim lands.
            let (released, free) = (format!("released {name} "), format!("free {name}"));
            let shown = |terminal: &Terminal, words: &str| terminal.shown().contains(words);
            until("an answer", || shown(&terminal, &released) || shown(&terminal, &free));
            if shown(&terminal, &released) {
                came_and_went(&remote, &name);
            }
            if phase == "taking" {
                // The proof is kept of a try that never was answered.
                unanswered.push(format!("{name}~"));
            }
            assert!(phase == "taking" || !shown(&terminal, &free), "{}", terminal.shown());
            assert_eq!(remote.tip(&name), None);
            assert_eq!(Path::new(&ran).exists(), phase == "releasing");
            remote.unhook("update");
        }
    }
    for record in clone.records() {
        let is_of = |name: &String| record.to_string_lossy().contains(name);
        assert!(unanswered.iter().any(is_of), "{}", record.display());
    }
}

/// Stopped at a terminal, and taken up again.
#[test]
fn a_job_of_a_shell_can_be_stopped_and_go_on() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let clone = sandbox.clone(&remote, "a");
    let Some(mut terminal) = Terminal::open(&clone) else { return };
    let job = sandbox.script("job", &format!("{}; exit 4", until_told(&sandbox, "it")));
    terminal.type_in(&format!("git-claim run 42 --heartbeat 1s -- {}\n", job.display()));
    appears(&mark(&sandbox, "ready", "it"));
    terminal.type_in("\x1a");
    terminal.until_it_shows("Stopped");
    let before = moves(&remote, "issue-42").len();
    terminal.type_in("fg\n");
    until("it is renewed", || moves(&remote, "issue-42").len() > before + 1);
    // In the background, and back.
    terminal.type_in("\x1a");
    until("it is stopped again", || terminal.shown().matches("Stopped").count() == 2);
    terminal.type_in("bg\n");
    let before = moves(&remote, "issue-42").len();
    until("it is renewed", || moves(&remote, "issue-42").len() > before + 1);
    terminal.type_in("fg\n");
    fs::write(mark(&sandbox, "go", "it"), "").unwrap();
    terminal.until_it_shows("released issue-42");
    assert_eq!(terminal.status(), "4", "{}", terminal.shown());
    came_and_went(&remote, "issue-42");
}
