//! `ask`: a holder is asked to stop, and nobody's claim is touched; and who waits while asking.

use std::{
    fs, thread,
    time::{Duration, Instant},
};

use crate::support::{Clone, Kind, Output, Remote, Sandbox, kinds, on};

fn clones<const N: usize>(sandbox: &Sandbox, remote: &Remote, names: [&str; N]) -> [Clone; N] {
    let clones = sandbox.people(remote, names);
    for clone in &clones {
        clone.set("claim.poll", "100ms");
        clone.set("claim.pollMax", "200ms");
    }
    clones
}

fn request(remote: &Remote) -> Option<String> {
    let line =
        remote.git(&["for-each-ref", "--format=%(objectname)", "refs/claims-asked/issue-42"]);
    (!line.is_empty()).then_some(line)
}

/// Runs the program in the background.
fn start(clone: &Clone, args: &[&str]) -> thread::JoinHandle<Output> {
    let run = clone.run(args);
    thread::spawn(move || run.go())
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < Duration::from_secs(20), "{what}: not within 20 seconds");
        thread::sleep(Duration::from_millis(20));
    }
}

on!(a_request_is_seen_and_ends_with_the_claim: path, reftable, sha256, ssh, ssh_v0, https, https_v0);
fn a_request_is_seen_and_ends_with_the_claim(kind: Kind) {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kind) else { return };
    let [alice, bob, carol] = clones(&sandbox, &remote, ["Alice", "Bob", "Carol"]);
    let why = "a newer commit is there";
    let _ = bob.claim(&["ask", "42", "--reason", why]).is(3, "free issue-42");
    assert_eq!(request(&remote), None);

    let claimed = alice.claim(&["take", "42"]).is(0, "claimed issue-42 ").id();
    let asked = bob.claim(&["ask", "42", "--reason", why]).is(0, "asked issue-42 ").id();
    assert_eq!(request(&remote), Some(asked.clone()));
    assert_eq!(remote.tip("issue-42"), Some(claimed), "the claim is as it was");
    // Once is enough, whoever asks.
    let again = carol.claim(&["ask", "42", "--reason", "me too"]).is(0, "asked issue-42 ");
    assert_eq!(again.id(), asked);

    let told = "to stop by Bob Example <bob@example.com> on ";
    let shown = carol.claim(&["show", "42"]).is(0, "held issue-42 by Alice Example");
    assert!(shown.stdout.contains(told) && shown.stdout.contains(why), "{shown}");
    let _ = carol.claim(&["take", "42"]).is(75, "held issue-42").says(told).says(why);
    let stale = carol.claim(&["stale", "--all"]);
    assert!(stale.stdout.contains(told) && stale.stdout.contains(why), "{stale}");
    let json = carol.run(&["show", "42"]).go_json().json();
    assert_eq!(json["claims"][0]["asked"]["reason"], why);
    assert_eq!(json["claims"][0]["asked"]["by"]["name"], "Bob Example");
    let _ = carol.claim(&["list"]).is(0, "1 claim on origin");

    // A renewal is by the same holder; the release ends it.
    let _ = alice.claim(&["renew", "42"]).is(0, "renewed");
    let shown = carol.claim(&["show", "42"]);
    assert!(shown.stdout.contains(told), "{shown}");
    let _ = alice.claim(&["release", "42"]).is(0, "released issue-42 ");
    assert_eq!(request(&remote), None);
}

on!(a_request_is_about_one_holder: path, https);
fn a_request_is_about_one_holder(kind: Kind) {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kind) else { return };
    let [alice, bob] = clones(&sandbox, &remote, ["Alice", "Bob"]);
    let id = alice.claim(&["take", "42"]).is(0, "claimed").id();
    let first = bob.claim(&["ask", "42", "--reason", "first"]).is(0, "asked").id();
    // Deleted by hand: the request stays behind, and says nothing to the next holder.
    remote.git(&["update-ref", "-d", "refs/claims/issue-42", &id]);
    let _ = alice.claim(&["take", "42"]).is(0, "claimed");
    let shown = bob.claim(&["show", "42"]);
    assert!(!shown.stdout.contains("asked"), "{shown}");
    let second = bob.claim(&["ask", "42", "--reason", "second"]).is(0, "asked").id();
    assert_ne!(first, second);
    let shown = alice.claim(&["show", "42"]);
    assert!(shown.stdout.contains("second") && !shown.stdout.contains("first"), "{shown}");
    // A clearing ends it too.
    let id = remote.tip("issue-42").unwrap();
    let _ = bob.claim(&["release", "42", "--expect", &id]).is(0, "released");
    assert_eq!(request(&remote), None);
}

#[test]
fn requests_where_nothing_is_deleted() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let [alice, bob] = clones(&sandbox, &remote, ["Alice", "Bob"]);
    remote.hook("update", r#"case "$3" in *[!0]*) ;; *) exit 1 ;; esac"#);
    for clone in [&alice, &bob] {
        clone.set("claim.release", "mark");
    }
    for round in ["one", "two"] {
        let _ = alice.claim(&["take", "42"]).is(0, "claimed");
        let shown = bob.claim(&["show", "42"]);
        assert!(!shown.stdout.contains("asked"), "{shown}");
        let _ = bob.claim(&["ask", "42", "--reason", round]).is(0, "asked");
        let shown = alice.claim(&["show", "42"]);
        assert!(shown.stdout.contains(round), "{shown}");
        let _ = alice.claim(&["release", "42"]).is(0, "released");
        let _ = bob.claim(&["ask", "42", "--reason", round]).is(3, "free");
    }
}

#[test]
fn a_run_heeds_a_request_as_it_was_told_to() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let [alice, bob] = clones(&sandbox, &remote, ["Alice", "Bob"]);
    let why = "a newer commit is there";
    for (what, code, heard) in [("stop", 143, true), ("warn", 0, true), ("ignore", 0, false)] {
        let go_on = sandbox.path("go-on");
        let script = format!("while ! test -e {}; do sleep 0.05; done", go_on.display());
        let args =
            ["run", "42", "--heartbeat", "1s", "--on-asked", what, "--", "sh", "-c", &script];
        let run = start(&alice, &args);
        until("taken", || remote.tip("issue-42").is_some());
        let _ = bob.claim(&["ask", "42", "--reason", why]).is(0, "asked");
        if what != "stop" {
            let mut tips = vec![remote.tip("issue-42")];
            until("two renewals after it", || {
                let now = remote.tip("issue-42");
                if tips.last() != Some(&now) {
                    tips.push(now);
                }
                tips.len() > 2
            });
            fs::write(&go_on, "").unwrap();
        }
        let ended = run.join().unwrap();
        assert_eq!(ended.code, Some(code), "{what}: {ended}");
        assert_eq!(ended.stderr.contains(why), heard, "{what}: {ended}");
        assert!(ended.stderr.contains("released issue-42 "), "{ended}");
        assert_eq!((remote.tip("issue-42"), request(&remote)), (None, None));
        let _ = fs::remove_file(&go_on);
    }
}

/// The claim is ours until the command has ended, and so it is renewed until then.
#[test]
fn who_was_asked_to_stop_still_shows_life() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let [alice, bob] = clones(&sandbox, &remote, ["Alice", "Bob"]);
    let go_on = sandbox.path("go-on");
    let script = format!("trap '' TERM; while ! test -e {}; do sleep 0.05; done", go_on.display());
    let args = ["--heartbeat", "1s", "--grace", "60s", "--on-asked", "stop", "--", "sh", "-c"];
    let run = start(&alice, &[&["run", "42"], &args[..], &[&script]].concat());
    until("taken", || remote.tip("issue-42").is_some());
    let _ = bob.claim(&["ask", "42", "--reason", "please"]).is(0, "asked");
    let mut tips = vec![remote.tip("issue-42")];
    until("four renewals after it", || {
        let now = remote.tip("issue-42");
        if tips.last() != Some(&now) {
            tips.push(now);
        }
        tips.len() > 4
    });
    fs::write(&go_on, "").unwrap();
    let ended = run.join().unwrap();
    assert_eq!(ended.code, Some(0), "{ended}");
    assert_eq!(ended.stderr.matches("is asked to end").count(), 1, "{ended}");
    assert_eq!((remote.tip("issue-42"), request(&remote)), (None, None), "{ended}");
}

/// Three jobs a second apart, each asking the one before to stop.
#[test]
fn the_newest_wins() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let jobs = clones(&sandbox, &remote, ["one", "two", "three"]);
    let log = sandbox.path("log");
    for pause in [1000, 2500] {
        let _ = fs::remove_file(&log);
        let mut runs = Vec::new();
        for (number, clone) in jobs.iter().enumerate() {
            let script = format!(
                "echo start {number} >>{0}; sleep 4; echo end {number} >>{0}",
                log.display()
            );
            runs.push(start(
                clone,
                &[
                    "run",
                    "checks",
                    "--wait",
                    "40s",
                    "--ask",
                    "a newer one",
                    "--heartbeat",
                    "1s",
                    "--on-asked",
                    "stop",
                    "--",
                    "sh",
                    "-c",
                    &script,
                ],
            ));
            thread::sleep(Duration::from_millis(pause));
        }
        let ended: Vec<Output> = runs.into_iter().map(|run| run.join().unwrap()).collect();
        let told: String = ended.iter().map(ToString::to_string).collect();
        let log = fs::read_to_string(&log).unwrap();
        assert_eq!(ended[0].code, Some(143), "{told}");
        // Told to stop, or that a newer one has it before it began.
        assert!(matches!(ended[1].code, Some(143 | 75)), "{told}");
        assert_eq!(ended[2].code, Some(0), "{told}");
        assert!(log.ends_with("start 2\nend 2\n"), "{log}\n{told}");
        assert!(!log.contains("end 0") && !log.contains("end 1"), "{log}\n{told}");
    }
}

on!(the_first_that_frees_is_taken: path, ssh, https);
fn the_first_that_frees_is_taken(kind: Kind) {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kind) else { return };
    let [alice, bob] = clones(&sandbox, &remote, ["Alice", "Bob"]);
    for name in ["1", "2", "3"] {
        let _ = alice.claim(&["take", name]).is(0, "claimed");
    }
    let held = bob.claim(&["take", "--any", "1", "2", "3"]);
    assert_eq!((held.code, held.stdout.lines().count()), (Some(75), 3), "{held}");
    let waiting = start(&bob, &["take", "--any", "1", "2", "3", "--wait", "30s"]);
    thread::sleep(Duration::from_millis(500));
    let _ = alice.claim(&["release", "2"]).is(0, "released");
    let _ = waiting.join().unwrap().is(0, "claimed issue-2 ");
    let _ = alice.claim(&["release", "1"]).is(0, "released");
    let _ = alice.claim(&["release", "3"]).is(0, "released");
    // In the given order, and each once.
    let _ = alice.claim(&["take", "--any", "2", "3", "3", "1"]).is(0, "claimed issue-3 ");
    // Without it, all or none.
    let _ = bob.claim(&["take", "7", "3"]).is(75, "held issue-3 by Alice");
    assert_eq!(remote.tip("issue-7"), None);
}

#[test]
fn what_is_no_request_is_not_built_upon() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let [alice, bob] = clones(&sandbox, &remote, ["Alice", "Bob"]);
    let _ = alice.claim(&["take", "42"]).is(0, "claimed");
    let blob = remote.git_input(&["hash-object", "-w", "--stdin"], "no request");
    remote.git(&["update-ref", "refs/claims-asked/issue-42", &blob]);
    let shown = bob.claim(&["show", "42"]);
    assert!(!shown.stdout.contains("asked"), "{shown}");
    let _ = bob.claim(&["ask", "42", "--reason", "why"]).is(77, "refused").says("is no request");
    let _ = alice.claim(&["release", "42"]).is(0, "released");
    assert_eq!(request(&remote), None);
    for args in [&["ask", "42", "--reason", " "][..], &["take", "42", "--wait", "1s", "--ask", "…"]]
    {
        assert_eq!(bob.claim(args).code, Some(2), "{args:?}");
    }
    assert_eq!(remote.tip("issue-42"), None);
}
