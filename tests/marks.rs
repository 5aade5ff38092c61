//! Hosts that accept branches only, or let nobody delete a ref: `claim.prefix` and `claim.release = mark`.

use std::{
    sync::{Arc, Barrier},
    thread,
};

use crate::support::{Clone, Kind, Output, Remote, Sandbox, kinds, on};

/// Refuses deletions, and everything that is no branch.
const RESTRICTED: &str = r#"while read old new ref
do
	case "$new" in *[!0]*) ;; *) echo "nothing is deleted here" >&2; exit 1 ;; esac
	case "$ref" in refs/heads/*) ;; *) echo "branches only" >&2; exit 1 ;; esac
done"#;

fn restricted(sandbox: &Sandbox, kind: Kind) -> Option<Remote> {
    let remote = sandbox.remote(kind)?;
    remote.hook("pre-receive", RESTRICTED);
    Some(remote)
}

fn clones<const N: usize>(sandbox: &Sandbox, remote: &Remote, names: [&str; N]) -> [Clone; N] {
    let clones = sandbox.people(remote, names);
    for clone in &clones {
        clone.set("claim.prefix", "refs/heads/claims/");
        clone.set("claim.release", "mark");
    }
    clones
}

fn tip(remote: &Remote) -> String {
    remote.git(&["rev-parse", "refs/heads/claims/issue-42"])
}

on!(a_claim_lives_and_ends_where_nothing_is_deleted: path, reftable, ssh, ssh_v0, https, https_v0);
fn a_claim_lives_and_ends_where_nothing_is_deleted(kind: Kind) {
    let sandbox = Sandbox::new();
    let Some(remote) = restricted(&sandbox, kind) else { return };
    let [alice, bob] = clones(&sandbox, &remote, ["Alice", "Bob"]);
    let first = alice.claim(&["take", "42"]).is(0, "claimed issue-42 ").id();
    let _ = bob.claim(&["take", "42"]).is(75, "held issue-42 by Alice Example");
    let _ = alice.claim(&["renew", "42"]).is(0, "renewed issue-42 ");
    let _ = alice.claim(&["release", "42"]).is(0, "released issue-42 ");
    let mark = tip(&remote);
    let record = remote.git(&["cat-file", "-p", &mark]);
    assert!(record.contains("\nReleased-At: ") && record.contains("\nparent "), "{record}");

    // Nobody's, for everybody.
    for (clone, verb) in
        [(&alice, "verify"), (&alice, "renew"), (&alice, "release"), (&bob, "show")]
    {
        let _ = clone.claim(&[verb, "42"]).is(3, "free issue-42");
    }
    let _ = bob.claim(&["release", "42", "--expect", &mark]).is(3, "free issue-42");
    let _ = bob
        .claim(&["take", "42", "--over", &mark, "--reason", "why"])
        .is(3, "free issue-42")
        .says("take issue-42");
    for args in [&["list"][..], &["list", "--long"]] {
        let _ = bob.claim(args).is(0, "0 claims on origin");
    }
    assert_eq!(tip(&remote), mark, "all of that wrote nothing");

    // The next claim is a child of the mark.
    let second = bob.claim(&["take", "42"]).is(0, "claimed issue-42 ").id();
    assert_eq!(tip(&remote), second);
    assert!(remote.git(&["cat-file", "-p", &second]).contains(&format!("\nparent {mark}\n")));
    let _ = bob.claim(&["list"]).is(0, "1 claim on origin");
    let _ = bob.claim(&["verify", "42"]).is(0, "yours issue-42 ");
    for verb in ["verify", "release"] {
        let _ = alice.claim(&[verb, "42"]).is(3, "lost issue-42 to Bob Example");
    }
    // A clearing is a mark too, in the name of the one who clears.
    let _ = alice.claim(&["release", "42", "--expect", &first]).is(3, "moved issue-42");
    let cleared = alice.claim(&["release", "42", "--expect", &second[..12]]);
    let _ = cleared.is(0, "released issue-42 ").says("cleared issue-42, held by Bob Example");
    let record = remote.git(&["cat-file", "-p", &tip(&remote)]);
    assert!(
        record.contains(&format!("\nTook-Over: {second} Bob Example <bob@example.com>"))
            && record.contains("\nClaimed-By: Alice Example <alice@example.com>\n"),
        "{record}"
    );
    let _ = bob.claim(&["verify", "42"]).is(3, "free issue-42");
    let _ = bob.claim(&["take", "42"]).is(0, "claimed issue-42 ");
    let _ = bob.claim(&["release", "--all"]).is(0, "released issue-42 ");
}

on!(eight_race_for_a_mark: path, reftable, ssh, https);
fn eight_race_for_a_mark(kind: Kind) {
    let sandbox = Sandbox::new();
    let Some(remote) = restricted(&sandbox, kind) else { return };
    let names = ["c1", "c2", "c3", "c4", "c5", "c6", "c7", "c8"];
    let crowd = Arc::new(clones(&sandbox, &remote, names));
    let _ = crowd[0].claim(&["take", "42"]).is(0, "claimed");
    let _ = crowd[0].claim(&["release", "42"]).is(0, "released");
    for _ in 0..6 {
        let start = Arc::new(Barrier::new(crowd.len()));
        let runners: Vec<_> = (0..crowd.len())
            .map(|number| {
                let (crowd, start) = (Arc::clone(&crowd), Arc::clone(&start));
                thread::spawn(move || {
                    start.wait();
                    crowd[number].claim(&["take", "42"])
                })
            })
            .collect();
        let outputs: Vec<Output> = runners.into_iter().map(|run| run.join().unwrap()).collect();
        let told: String = outputs.iter().map(ToString::to_string).collect();
        let won: Vec<usize> = (0..outputs.len()).filter(|n| outputs[*n].code == Some(0)).collect();
        let [winner] = won[..] else { panic!("winners {won:?}\n{told}") };
        assert_eq!(tip(&remote), outputs[winner].id(), "{told}");
        for (number, output) in outputs.into_iter().enumerate() {
            if number != winner {
                let _ = output.is(75, &format!("held issue-42 by {} Example", names[winner]));
            }
        }
        let _ = crowd[winner].claim(&["release", "42"]).is(0, "released issue-42 ");
    }
}

on!(a_refused_deletion_names_the_setting: path, ssh, https);
fn a_refused_deletion_names_the_setting(kind: Kind) {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kind) else { return };
    remote.hook(
        "update",
        r#"case "$3" in *[!0]*) ;; *) echo "nothing is deleted here" >&2; exit 1 ;; esac"#,
    );
    let clone = sandbox.clone(&remote, "a");
    let id = clone.claim(&["take", "42"]).is(0, "claimed").id();
    let refused = clone.claim(&["release", "42"]).is(77, "refused issue-42");
    let _ = refused.says("issue-42 is NOT released and still yours").says("claim.release mark");
    assert_eq!(remote.tip("issue-42"), Some(id.clone()));
    let hints = clone.run(&["release", "42"]).go_json().json()["claims"][0]["hints"].to_string();
    assert!(hints.contains("NOT released") && hints.contains("claim.release mark"), "{hints}");
    let refused = clone.claim(&["release", "42", "--expect", &id]).is(77, "refused issue-42");
    let _ = refused.says("issue-42 is NOT released").says("claim.release mark");
    clone.set("claim.release", "mark");
    let _ = clone.claim(&["release", "42"]).is(0, "released issue-42 ");
    // Whoever is not set up so takes what is released all the same.
    clone.git(&["config", "--unset", "claim.release"]);
    let _ = clone.claim(&["take", "42"]).is(0, "claimed issue-42 ");
    let _ = clone.run(&["list"]).go().is(0, "1 claim on origin");
}

on!(a_claim_under_the_other_namespace_is_never_free: path, reftable, ssh, https, https_v0);
fn a_claim_under_the_other_namespace_is_never_free(kind: Kind) {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kind) else { return };
    let clone = sandbox.clone(&remote, "a");
    let branches = ["-c", "claim.prefix=refs/heads/claims/", "claim"];
    let in_branches = |args: &[&str]| clone.run_git(&[&branches[..], args].concat()).go();

    let _ = in_branches(&["take", "42"]).is(0, "claimed issue-42 ");
    let held = clone.claim(&["take", "42"]).is(75, "held issue-42 by Alice Example");
    let _ = held.says("refs/heads/claims/issue-42").says("claim.prefix");
    assert_eq!(remote.tip("issue-42"), None);
    let json = clone.run(&["take", "42"]).go_json().json();
    assert_eq!(json["claims"][0]["ref"], "refs/heads/claims/issue-42");
    let _ = in_branches(&["release", "42"]).is(0, "released issue-42 ");

    let _ = clone.claim(&["take", "42"]).is(0, "claimed issue-42 ");
    let _ = in_branches(&["take", "42"]).is(75, "held issue-42 by Alice Example");
    let _ = clone.claim(&["release", "42"]).is(0, "released issue-42 ");

    // What only looks says so too.
    let _ = clone.claim(&["take", "44"]).is(0, "claimed issue-44 ");
    for args in [
        &["show", "44"][..],
        &["verify", "44"],
        &["take", "44", "--over", "1234567", "--reason", "why"],
    ] {
        let _ = in_branches(args).is(3, "free issue-44").says("it is held at refs/claims/issue-44");
    }

    // A mark there is nobody's, and a branch that happens to be called so is no claim.
    let _ = in_branches(&["take", "42"]).is(0, "claimed issue-42 ");
    let _ = clone
        .run_git(&[&["-c", "claim.release=mark"], &branches[..], &["release", "42"]].concat())
        .go()
        .is(0, "released issue-42 ");
    let _ = clone.claim(&["take", "42"]).is(0, "claimed issue-42 ");
    let main = remote.git(&["rev-parse", "main"]);
    remote.git(&["update-ref", "refs/heads/claims/issue-43", &main]);
    let taken = clone.claim(&["take", "43"]).is(0, "claimed issue-43 ");
    let _ = taken.says("a branch refs/heads/claims/issue-43 that was made by hand");
}

/// Clones that are set up differently, all at once: the comparison of the remote is about one ref only.
#[test]
fn clones_of_both_namespaces_race_and_never_two_win() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let first = sandbox.clone(&remote, "first");
    // Somebody is set up so: then the other side looks twice.
    let main = remote.git(&["rev-parse", "main"]);
    remote.git(&["update-ref", "refs/heads/claims/proj-1", &main]);
    let crowd: Vec<Clone> = (0..4)
        .map(|number| {
            let name = format!("c{number}");
            sandbox.copy("first", &name);
            let clone = sandbox.at(&name);
            if number % 2 == 1 {
                clone.set("claim.prefix", "refs/heads/claims/");
            }
            clone
        })
        .collect();
    drop(first);
    let crowd = Arc::new(crowd);
    for number in 1..=15 {
        let start = Arc::new(Barrier::new(crowd.len()));
        let runners: Vec<_> = (0..crowd.len())
            .map(|who| {
                let (crowd, start) = (Arc::clone(&crowd), Arc::clone(&start));
                thread::spawn(move || {
                    start.wait();
                    crowd[who].claim(&["take", &format!("issue-{number}")])
                })
            })
            .collect();
        let outputs: Vec<Output> = runners.into_iter().map(|run| run.join().unwrap()).collect();
        let told: String = outputs.iter().map(ToString::to_string).collect();
        let won = outputs.iter().filter(|output| output.code == Some(0)).count();
        assert!(won <= 1, "{told}");
        let held = outputs.iter().filter(|output| output.code == Some(75)).count();
        assert_eq!(won + held, outputs.len(), "{told}");
        let refs = remote.refs();
        let there = refs.lines().filter(|line| line.ends_with(&format!("/issue-{number}"))).count();
        assert_eq!(there, won, "{refs}\n{told}");
    }
}

#[test]
fn a_setting_that_means_nothing_is_refused() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let clone = sandbox.clone(&remote, "a");
    clone.set("claim.release", "never");
    let refused = clone.claim(&["take", "42"]);
    assert_eq!(refused.code, Some(2), "{refused}");
    let _ = refused.says("claim.release is 'never': use delete or mark");
}
