//! What each verb says, to people and to programs, on every kind of remote.

use crate::support::{
    Kind, Sandbox, kinds, on,
    proxy::{Mode, Proxy},
    servers::{self, Daemon},
};

on!(a_claim_lives_and_ends: path, reftable, sha256, file_url, daemon, ssh, ssh_v0, ssh_sha256, https, https_v0,
    https_sha256, https_reftable);
fn a_claim_lives_and_ends(kind: Kind) {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kind) else { return };
    let alice = sandbox.clone(&remote, "alice");
    sandbox.copy("alice", "bob");
    let bob = sandbox.at("bob");
    bob.set("user.name", "Bob Example");
    bob.set("user.email", "bob@example.com");

    let _ = alice.claim(&["verify", "42"]).is(3, "free issue-42");
    let _ = alice.claim(&["show", "42"]).is(3, "free issue-42");
    let _ = alice.claim(&["release", "42"]).is(3, "free issue-42");

    let taken =
        alice.claim(&["take", "42", "--note", "the login loop"]).is(0, "claimed issue-42 ").id();
    assert_eq!(remote.tip("issue-42"), Some(taken.clone()));
    let record = remote.record("issue-42");
    for part in [
        "claim issue-42 by Alice Example on ",
        "\n\nthe login loop\n\n",
        "\nClaim: issue-42\nClaim-Format: 1\nClaimed-By: Alice Example <alice@example.com>\nClaimed-On: ",
    ] {
        assert!(record.contains(part), "{part:?} is not in\n{record}");
    }
    assert!(!record.contains("\nparent "), "{record}");

    // The loser learns whom to ask, about what, and what to do next.
    let held =
        bob.claim(&["take", "42"]).is(75, "held issue-42 by Alice Example <alice@example.com> on ");
    let _ = held.says("the login loop").says(&taken[..7]);
    let _ = alice.claim(&["take", "42"]).is(75, "held issue-42 by Alice Example");
    assert_eq!(alice.claim(&["take", "42", "--resume"]).is(0, "claimed issue-42 ").id(), taken);
    let _ = bob.claim(&["take", "42", "--resume"]).is(75, "held issue-42 by Alice Example");

    assert_eq!(alice.claim(&["verify", "42"]).is(0, "yours issue-42 ").id(), taken);
    for verb in ["verify", "renew", "release"] {
        let _ = bob.claim(&[verb, "42"]).is(3, "lost issue-42 to Alice Example");
    }
    assert_eq!(remote.tip("issue-42"), Some(taken.clone()));

    let renewed = alice.claim(&["renew", "42"]).is(0, "renewed issue-42 ").id();
    assert_eq!(remote.tip("issue-42"), Some(renewed.clone()));
    assert_ne!(renewed, taken);
    let record = remote.record("issue-42");
    assert!(
        record.contains(&format!("\nparent {taken}\n")) && record.contains("\nRenewed-At: "),
        "{record}"
    );
    assert_eq!(alice.claim(&["verify", "42"]).is(0, "yours issue-42 ").id(), renewed);
    let shown = alice.claim(&["show", "42"]);
    assert_eq!(shown.code, Some(0), "{shown}");
    assert!(
        shown.stdout.contains("the login loop") && shown.stdout.contains("Alice Example"),
        "{shown}"
    );

    let _ = alice.claim(&["release", "42"]).is(0, "released issue-42 ");
    assert_eq!(remote.tip("issue-42"), None);
    let _ = alice.claim(&["verify", "42"]).is(3, "");
    let _ = bob.claim(&["take", "42"]).is(0, "claimed issue-42 ");
    let _ = alice.claim(&["verify", "42"]).is(3, "lost issue-42 to Bob Example");
    let _ = bob.claim(&["release", "42"]).is(0, "released issue-42 ");
    assert_eq!(remote.refs().lines().count(), 1, "only main is left: {}", remote.refs());
}

/// One thing has one spelling on the remote.
#[test]
fn names_are_folded_or_refused() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let clone = sandbox.clone(&remote, "a");
    let url = "https://example.com/team/project/issues/42";
    for (spelling, name) in [
        ("42", "issue-42"),
        ("#42", "issue-42"),
        ("issue-42", "issue-42"),
        ("042", "issue-42"),
        (url, "issue-42"),
        ("client-release-archive", "client-release-archive"),
        ("PROJ-123", "proj-123"),
    ] {
        let _ = clone.claim(&["take", spelling]).is(0, &format!("claimed {name} "));
        assert!(remote.tip(name).is_some(), "{spelling}: {}", remote.refs());
        let _ = clone.claim(&["release", spelling]).is(0, &format!("released {name} "));
    }
    for wrong in [
        "",
        "a/b",
        "issue-",
        "issue-x",
        "-1",
        "..",
        "a..b",
        "a.lock",
        "a b",
        "é",
        "a:b",
        "x~1",
        &"a".repeat(101),
    ] {
        let output = clone.claim(&["take", "--", wrong]);
        assert_eq!(output.code, Some(2), "{wrong:?}: {output}");
        assert!(output.stdout.is_empty(), "{output}");
    }
    assert_eq!(remote.witnessed().len(), 14, "{:?}", remote.witnessed());
}

#[test]
fn somebody_elses_claim_is_cleared_by_its_exact_id_only() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let (alice, bob) = (sandbox.clone(&remote, "alice"), sandbox.clone(&remote, "bob"));
    let old = alice.claim(&["take", "42"]).is(0, "claimed").id();
    let new = alice.claim(&["renew", "42"]).is(0, "renewed").id();
    // An id from before a sign of life matches no more.
    let _ =
        bob.claim(&["release", "42", "--expect", &old]).is(3, "moved issue-42 by Alice Example");
    let _ = bob
        .claim(&["release", "42", "--expect", &old[..12]])
        .is(3, "moved issue-42 by Alice Example");
    let too_short = bob.claim(&["release", "42", "--expect", &new[..6]]);
    assert_eq!(too_short.code, Some(2), "{too_short}");
    assert_eq!(remote.tip("issue-42"), Some(new.clone()));
    let _ = bob.claim(&["release", "42", "--expect", &new[..7]]).is(0, "released issue-42 ");
    assert_eq!(remote.tip("issue-42"), None);
    let _ = alice.claim(&["verify", "42"]).is(3, "");
}

#[test]
fn release_all_lets_go_of_ours_and_of_nothing_else() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let (alice, bob) = (sandbox.clone(&remote, "alice"), sandbox.clone(&remote, "bob"));
    for name in ["1", "2", "archive"] {
        let _ = alice.claim(&["take", name]).is(0, "claimed");
    }
    let _ = bob.claim(&["take", "3"]).is(0, "claimed");
    let output = alice.claim(&["release", "--all"]);
    assert_eq!(output.code, Some(0), "{output}");
    for name in ["issue-1", "issue-2", "archive"] {
        assert!(output.stdout.contains(&format!("released {name} ")), "{output}");
        assert_eq!(remote.tip(name), None);
    }
    assert!(remote.tip("issue-3").is_some());
}

/// The words that are shown can be chosen; who git says wrote the commit cannot.
#[test]
fn the_holder_can_be_named() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let clone = sandbox.clone(&remote, "a");
    let _ = clone.claim(&["take", "1", "--as", "night sweep"]).is(0, "claimed");
    let _ = clone.run(&["take", "2"]).env("GIT_CLAIM_WHO", "hourly sweep").go().is(0, "claimed");
    clone.set("claim.who", "weekly sweep");
    let _ = clone.claim(&["take", "3"]).is(0, "claimed");
    for (name, who) in [("1", "night sweep"), ("2", "hourly sweep"), ("3", "weekly sweep")] {
        let _ = clone.claim(&["take", name]).is(75, &format!("held issue-{name} by {who}"));
        assert!(
            remote
                .record(&format!("issue-{name}"))
                .contains("\nauthor Alice Example <alice@example.com>")
        );
    }
}

#[test]
fn every_verb_speaks_json_and_means_its_exit_code() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let (alice, bob) = (sandbox.clone(&remote, "alice"), sandbox.clone(&remote, "bob"));
    let steps: [(&crate::support::Clone, &[&str], i32, &str); 12] = [
        (&alice, &["show", "42"], 3, "free"),
        (&alice, &["take", "42", "--note", "say \"hi\"\\"], 0, "claimed"),
        (&bob, &["take", "42"], 75, "held"),
        (&alice, &["verify", "42"], 0, "yours"),
        (&bob, &["verify", "42"], 3, "lost"),
        (&alice, &["renew", "42"], 0, "renewed"),
        (&bob, &["renew", "42"], 3, "lost"),
        (&bob, &["show", "42"], 0, ""),
        (&bob, &["list"], 0, ""),
        (&bob, &["list", "--long"], 0, ""),
        (&bob, &["release", "42"], 3, "lost"),
        (&alice, &["release", "42"], 0, "released"),
    ];
    for (clone, args, code, verdict) in steps {
        let output = clone.run(args).go_json();
        assert_eq!(output.code, Some(code), "{output}");
        let json = output.json();
        assert_eq!(json["command"], args[0], "{output}");
        if !verdict.is_empty() {
            assert_eq!(json["verdict"], verdict, "{output}");
        }
        assert_eq!(json["remote"]["name"], "origin", "{output}");
        assert_eq!(json["remote"]["url"], remote.url.as_str(), "{output}");
        let mine = std::ptr::eq(clone, &alice);
        for claim in json["claims"].as_array().unwrap() {
            let gone = matches!(claim["verdict"].as_str(), Some("free" | "released"));
            assert!(gone || claim["mine"] == mine, "{output}");
        }
    }
    // Also when there is nothing to tell but a reason.
    alice.git(&["remote", "set-url", "origin", "/nonexistent/origin.git"]);
    let output = alice.run(&["take", "42"]).go_json();
    assert_eq!(output.code, Some(69), "{output}");
    assert!(output.json()["reason"].as_str().is_some_and(|reason| !reason.is_empty()), "{output}");
}

#[test]
fn quiet_is_quiet_and_keeps_the_exit_code() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let (alice, bob) = (sandbox.clone(&remote, "alice"), sandbox.clone(&remote, "bob"));
    for (clone, args, code) in [
        (&alice, ["-q", "take", "42"], 0),
        (&bob, ["-q", "take", "42"], 75),
        (&bob, ["-q", "verify", "42"], 3),
        (&alice, ["-q", "release", "42"], 0),
    ] {
        let output = clone.claim(&args);
        assert_eq!(output.code, Some(code), "{output}");
        assert!(output.stderr.is_empty() && output.stdout.is_empty(), "{output}");
    }
}

/// A note may look like the program's own trailers; it stays a note.
#[test]
fn a_note_cannot_pose_as_a_trailer() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let (alice, bob) = (sandbox.clone(&remote, "alice"), sandbox.clone(&remote, "bob"));
    let note = "look here\n\nClaimed-By: Mallory <m@example.com>\nClaim-Token: 00000000000000000000000000000000";
    let _ = alice.claim(&["take", "42", "--note", note]).is(0, "claimed");
    let _ = bob.claim(&["take", "42"]).is(75, "held issue-42 by Alice Example");
    let _ = alice.claim(&["verify", "42"]).is(0, "yours");
    let _ = alice.claim(&["renew", "42"]).is(0, "renewed");
    let _ = alice.claim(&["verify", "42"]).is(0, "yours");
    let message = remote.git(&["log", "-1", "--format=%B", "refs/claims/issue-42"]);
    let trailers = remote.git_input(&["interpret-trailers", "--parse"], &message);
    assert!(!trailers.contains("Mallory") && trailers.contains("Claimed-By: Alice"), "{trailers}");
}

/// What counts over ssh is the number of connections.
#[test]
fn a_refusal_costs_at_most_one_connection_more_than_a_win() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::daemon()) else { return };
    let proxy = Proxy::start(servers::daemon(Daemon::Writable).unwrap(), Mode::Count);
    let clone = sandbox.clone(&remote, "a");
    let (_, path) = remote.url["git://".len()..].split_once('/').unwrap();
    clone.git(&["remote", "set-url", "origin", &format!("git://127.0.0.1:{}/{path}", proxy.port)]);
    let count = |args: &[&str], code| {
        let before = proxy.connections();
        let output = clone.claim(args);
        assert_eq!(output.code, Some(code), "{output}");
        proxy.connections() - before
    };
    let claimed = count(&["take", "42"], 0);
    let held = count(&["take", "42"], 75);
    assert_eq!(claimed, 1);
    assert!(held <= claimed + 1, "{held} connections for a refusal, {claimed} for a win");
    assert_eq!(count(&["list"], 0), 1);
    assert_eq!(count(&["list", "--long"], 0), 1);
    assert_eq!(count(&["verify", "42"], 0), 1);
    assert_eq!(count(&["release", "42"], 0), 1);
}

#[test]
fn usage_errors_end_with_two_and_say_nothing_on_standard_output() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let clone = sandbox.clone(&remote, "a");
    for args in [
        &["take"][..],
        &["frobnicate"],
        &["take", "1", "--timeout", "soon"],
        &["release"],
        &["show"],
    ] {
        let output = clone.claim(args);
        assert_eq!(output.code, Some(2), "{output}");
        assert!(output.stdout.is_empty() && !output.stderr.is_empty(), "{output}");
    }
    for args in [&["--help"][..], &["-h"], &["take", "--help"], &["--version"]] {
        let output = clone.claim(args);
        assert_eq!(output.code, Some(0), "{output}");
        assert!(!output.stdout.is_empty(), "{output}");
    }
}

#[test]
fn several_claims_are_renewed_each_by_itself() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let clone = sandbox.clone(&remote, "a");
    let ids: Vec<String> =
        ["1", "3"].map(|name| clone.claim(&["take", name]).is(0, "claimed").id()).into();
    let renewed = clone.claim(&["renew", "1", "2", "3"]);
    // The worst of the answers is the exit status; the others are not held back by it.
    assert_eq!(renewed.code, Some(3), "{renewed}");
    let words: Vec<&str> =
        renewed.stdout.lines().filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(words, ["renewed", "free", "renewed"], "{renewed}");
    assert!(remote.tip("issue-1") != Some(ids[0].clone()), "{renewed}");
    assert!(remote.tip("issue-3") != Some(ids[1].clone()), "{renewed}");
    let tip = remote.tip("issue-1");
    let refused = clone.claim(&["renew", "1", "no name"]);
    assert_eq!((refused.code, remote.tip("issue-1")), (Some(2), tip), "{refused}");
}
