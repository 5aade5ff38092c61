//! `take --over`: somebody else's claim becomes ours, in one step, if it is exactly what was named.

use std::{
    sync::{Arc, Barrier},
    thread,
};

use crate::support::{Clone, Kind, Output, Sandbox, kinds, on};

fn over(clone: &Clone, id: &str) -> Output {
    clone.claim(&["take", "42", "--over", id, "--reason", "ci-7 is gone since Monday"])
}

on!(the_displaced_holder_is_told: path, reftable, sha256, daemon, ssh, ssh_v0, https, https_v0);
fn the_displaced_holder_is_told(kind: Kind) {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kind) else { return };
    let [alice, bob] = sandbox.people(&remote, ["Alice", "Bob"]);
    let old = alice.claim(&["take", "42", "--note", "the login loop"]).is(0, "claimed").id();

    let taken = over(&bob, &old[..12]).is(0, "claimed issue-42 ");
    let taken = taken.says("took issue-42 over from Alice Example").says("the login loop");
    let new = taken.id();
    assert_eq!(remote.tip("issue-42"), Some(new.clone()));
    let record = remote.record("issue-42");
    for part in [
        format!("\nparent {old}\n"),
        format!("\nTook-Over: {old} Alice Example <alice@example.com>\n"),
        "\nReason: ci-7 is gone since Monday".to_owned(),
        "\nClaimed-By: Bob Example <bob@example.com>\n".to_owned(),
    ] {
        assert!(record.contains(&part), "{part:?} is not in\n{record}");
    }

    for verb in ["verify", "renew", "release"] {
        let told = alice.claim(&[verb, "42"]).is(3, "lost issue-42 to Bob Example");
        let _ = told.says("ci-7 is gone since Monday").says(&old).says("since");
    }
    let json = alice.run(&["verify", "42"]).go_json().json();
    assert_eq!(json["claims"][0]["took_over"]["id"], old);
    assert_eq!(json["claims"][0]["took_over_because"], "ci-7 is gone since Monday");

    // It is Bob's now in every way.
    assert_eq!(bob.claim(&["verify", "42"]).is(0, "yours").id(), new);
    let renewed = bob.claim(&["renew", "42"]).is(0, "renewed").id();
    assert!(remote.record("issue-42").contains("\nTook-Over: "), "a renewal keeps how it began");
    // An id from before a sign of life names nothing any more.
    let moved = over(&alice, &new).is(3, "moved issue-42 by Bob Example");
    let _ = moved.says(&renewed[..12]).says("nothing was taken over");
    let _ = bob.claim(&["release", "42"]).is(0, "released issue-42 ");
    assert_eq!(remote.tip("issue-42"), None);
}

on!(three_takeovers_and_a_renewal_at_once: path, reftable, ssh, https);
fn three_takeovers_and_a_renewal_at_once(kind: Kind) {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kind) else { return };
    let crowd = Arc::new(sandbox.people(&remote, ["Alice", "Bob", "Carol", "Dave"]));
    for round in 0..4 {
        // Some rounds are decided by the advertisement, some by the server's lock.
        if round % 2 == 1 {
            remote.hook("pre-receive", "sleep 0.3");
        }
        let old = crowd[0].claim(&["take", "42"]).is(0, "claimed").id();
        let start = Arc::new(Barrier::new(crowd.len()));
        let runners: Vec<_> = (0..crowd.len())
            .map(|number| {
                let (crowd, start, old) = (Arc::clone(&crowd), Arc::clone(&start), old.clone());
                thread::spawn(move || {
                    start.wait();
                    match number {
                        0 => crowd[0].claim(&["renew", "42"]),
                        _ => over(&crowd[number], &old),
                    }
                })
            })
            .collect();
        let outputs: Vec<Output> = runners.into_iter().map(|run| run.join().unwrap()).collect();
        let told: String = outputs.iter().map(ToString::to_string).collect();
        let won: Vec<usize> = (0..4).filter(|n| outputs[*n].code == Some(0)).collect();
        let [winner] = won[..] else { panic!("winners {won:?}\n{told}") };
        let name = ["Alice", "Bob", "Carol", "Dave"][winner];
        for (number, output) in outputs.into_iter().enumerate() {
            let _ = match number {
                _ if number == winner => {
                    assert_eq!(remote.tip("issue-42"), Some(output.id()), "{told}");
                    output
                }
                0 => output.is(3, &format!("lost issue-42 to {name} Example")),
                _ => output.is(3, &format!("moved issue-42 by {name} Example")),
            };
        }
        let _ = crowd[winner].claim(&["release", "42"]).is(0, "released");
        if round % 2 == 1 {
            remote.unhook("pre-receive");
        }
    }
}

on!(what_was_released_since_is_not_taken: path, ssh, https);
fn what_was_released_since_is_not_taken(kind: Kind) {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kind) else { return };
    let [alice, bob] = sandbox.people(&remote, ["Alice", "Bob"]);
    let old = alice.claim(&["take", "42"]).is(0, "claimed").id();
    let _ = alice.claim(&["release", "42"]).is(0, "released");
    let _ = over(&bob, &old).is(3, "free issue-42").says("it is gone").says("nothing was taken");
    assert_eq!(remote.tip("issue-42"), None);
    // Released while the takeover was on its way: the server's own comparison refuses.
    let old = alice.claim(&["take", "42"]).is(0, "claimed").id();
    let gone = format!("git update-ref -d refs/claims/issue-42 {old}");
    remote.hook("pre-receive", &format!("unset GIT_QUARANTINE_PATH; {gone}"));
    let _ = over(&bob, &old).is(3, "free issue-42").says("it is gone");
    assert_eq!(remote.tip("issue-42"), None);
    remote.unhook("pre-receive");
    let _ = bob.claim(&["take", "42"]).is(0, "claimed");
}

#[test]
fn what_was_typed_wrongly_takes_nothing() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let [alice, bob] = sandbox.people(&remote, ["Alice", "Bob"]);
    let old = alice.claim(&["take", "42"]).is(0, "claimed").id();
    for args in [
        &["take", "42", "--over", &old][..],
        &["take", "42", "--reason", "why"],
        &["take", "42", "--over", &old, "--reason", ""],
        &["take", "42", "--over", &old, "--reason", " \n "],
        &["take", "42", "--over", &old[..6], "--reason", "why"],
        &["take", "42", "--over", "not-an-id", "--reason", "why"],
        &["take", "42", "--over", &old, "--reason", "why", "--resume"],
    ] {
        assert_eq!(bob.claim(args).code, Some(2), "{args:?}");
    }
    assert_eq!(remote.tip("issue-42"), Some(old));
}

on!(claims_made_by_hand_can_be_taken_over: path, ssh, https);
fn claims_made_by_hand_can_be_taken_over(kind: Kind) {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kind) else { return };
    let [bob] = sandbox.people(&remote, ["Bob"]);
    let old = remote.plant("refs/claims/issue-42", "Rita Rival <rita@example.com>", "claim 42\n");
    let taken = over(&bob, &old[..7]).is(0, "claimed issue-42 ");
    let _ = taken.says("took issue-42 over from Rita Rival <rita@example.com>");
    let _ = bob.claim(&["release", "42"]).is(0, "released issue-42 ");

    // No commit has no child.
    let blob = remote.git_input(&["hash-object", "-w", "--stdin"], "not a commit");
    remote.git(&["update-ref", "refs/claims/issue-42", &blob]);
    let refused = over(&bob, &blob).is(77, "refused issue-42");
    let _ = refused.says("only cleared");
    let _ = bob.claim(&["release", "42", "--expect", &blob]).is(0, "released issue-42 ");
}

#[test]
fn a_takeover_whose_answer_was_lost_is_found_again() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let [alice, bob] = sandbox.people(&remote, ["Alice", "Bob"]);
    let old = alice.claim(&["take", "42"]).is(0, "claimed").id();
    // It lands, and the answer comes after the time is up; so does any look after it.
    remote.hook("reference-transaction", "test \"$1\" != committed || sleep 3");
    let args = ["take", "42", "--over", &old, "--reason", "why", "--timeout", "1s"];
    // The first look must be let through.
    let first = sandbox.script(
        "upload-pack",
        &format!(
            "if test -e {0}; then sleep 3; fi; touch {0}; exec git-upload-pack \"$@\"",
            sandbox.path("looked").display()
        ),
    );
    bob.git(&["config", "--replace-all", "remote.origin.uploadpack", first.to_str().unwrap()]);
    let lost = bob.claim(&args).is(69, "unknown issue-42");
    let _ = lost.says("take issue-42 --resume");
    bob.git(&["config", "--unset-all", "remote.origin.uploadpack"]);
    remote.unhook("reference-transaction");
    let id = bob.claim(&["take", "42", "--resume"]).is(0, "claimed issue-42 ").id();
    assert_eq!(remote.tip("issue-42"), Some(id));
    let _ = alice.claim(&["verify", "42"]).is(3, "lost issue-42 to Bob Example");
}

/// The server applies a deletion and keeps silent past the time-out; meanwhile somebody else takes the claim.
#[test]
fn a_clearing_that_landed_without_an_answer_made_room_for_the_next() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let [alice, bob, carol] = sandbox.people(&remote, ["Alice", "Bob", "Carol"]);
    let slow = sandbox.path("slow");
    let hook = format!(
        "test \"$1\" = committed && test -e {0} && rm {0} && sleep 3; exit 0",
        slow.display()
    );
    for (act, code, verdict) in [
        (&["release", "42", "--timeout", "2s", "--expect"][..], 0, "released issue-42 "),
        (&["take", "42", "--reason", "why", "--timeout", "2s", "--over"], 3, "moved issue-42 by "),
    ] {
        let id = alice.claim(&["take", "42"]).is(0, "claimed").id();
        std::fs::write(&slow, "").unwrap();
        remote.hook("reference-transaction", &hook);
        let run = bob.run(&[act, &[&id]].concat());
        let bobs = thread::spawn(move || run.go());
        while slow.exists() {
            thread::sleep(std::time::Duration::from_millis(10));
        }
        // Bob's is done, and he does not know it.
        let carols = match code {
            0 => carol.claim(&["take", "42"]),
            _ => over(&carol, &remote.tip("issue-42").unwrap()),
        };
        let carols = carols.is(0, "claimed issue-42 ").id();
        let told = bobs.join().unwrap().is(code, verdict);
        assert!(!told.stderr.contains("nothing was"), "{told}");
        assert_eq!(remote.tip("issue-42"), Some(carols));
        remote.unhook("reference-transaction");
        let _ = carol.claim(&["release", "42"]).is(0, "released");
    }
}
