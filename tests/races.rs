//! Many claimants, one winner.

use std::{
    sync::{Arc, Barrier},
    thread,
    time::{SystemTime, UNIX_EPOCH},
};

use crate::support::{Clone, Kind, Output, Remote, Sandbox, on};

/// Copies of one clone, made before anything was claimed: cheaper than clones over ssh, and the same to the server.
fn crowd(sandbox: &Sandbox, remote: &Remote, size: usize) -> Arc<Vec<Clone>> {
    let first = sandbox.clone(remote, "c0");
    let mut crowd = vec![first];
    for number in 1..size {
        let name = format!("c{number}");
        sandbox.copy("c0", &name);
        let clone = sandbox.at(&name);
        clone.set("user.name", &format!("Claimant {number}"));
        crowd.push(clone);
    }
    Arc::new(crowd)
}

/// Runs the program in every clone of the crowd at once.
fn all_at_once(crowd: &Arc<Vec<Clone>>, args: &'static [&'static str]) -> Vec<Output> {
    let start = Arc::new(Barrier::new(crowd.len()));
    let runners = (0..crowd.len()).map(|number| {
        let (crowd, start) = (Arc::clone(crowd), Arc::clone(&start));
        thread::spawn(move || {
            start.wait();
            crowd[number].claim(args)
        })
    });
    let runners = runners.collect::<Vec<_>>();
    runners.into_iter().map(|runner| runner.join().unwrap()).collect()
}

/// Exactly one won, all others know that they did not; gives the winner's place.
fn one_winner(outputs: Vec<Output>, remote: &Remote) -> usize {
    let told = || outputs.iter().map(ToString::to_string).collect::<String>();
    let winners = (0..outputs.len()).filter(|n| outputs[*n].code == Some(0)).collect::<Vec<_>>();
    assert_eq!(winners.len(), 1, "{}", told());
    let winner = winners[0];
    let id = outputs[winner].id();
    assert_eq!(remote.tip("issue-42"), Some(id), "{}", told());
    for (number, output) in outputs.into_iter().enumerate() {
        let _ = if number == winner {
            output.is(0, "claimed issue-42 ")
        } else {
            output.is(75, "held issue-42 by ")
        };
    }
    winner
}

on!(eight_clones_race_for_twenty_rounds: path, reftable, ssh, https);
fn eight_clones_race_for_twenty_rounds(kind: Kind) {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kind) else { return };
    let crowd = crowd(&sandbox, &remote, 8);
    for _ in 0..20 {
        let winner = one_winner(all_at_once(&crowd, &["take", "42"]), &remote);
        let _ = crowd[winner].claim(&["release", "42"]).is(0, "released issue-42 ");
        assert_eq!(remote.tip("issue-42"), None);
    }
}

on!(the_lock_of_the_server_decides: path, reftable, sha256, daemon, https);
/// With all of them past the advertisement before the first is let through, only the server's lock can decide.
fn the_lock_of_the_server_decides(kind: Kind) {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kind) else { return };
    let crowd = crowd(&sandbox, &remote, 4);
    remote.hook("pre-receive", "sleep 0.5");
    for _ in 0..3 {
        let winner = one_winner(all_at_once(&crowd, &["take", "42"]), &remote);
        let _ = crowd[winner].claim(&["release", "42"]).is(0, "released issue-42 ");
    }
}

on!(same_person_same_second_frozen_dates: path, ssh, https);
fn same_person_same_second_frozen_dates(kind: Kind) {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kind) else { return };
    sandbox.clone(&remote, "c0");
    sandbox.copy("c0", "c1");
    let before = now();
    let start = Arc::new(Barrier::new(2));
    let runners = ["c0", "c1"].map(|name| {
        let (clone, start) = (sandbox.at(name), Arc::clone(&start));
        thread::spawn(move || {
            start.wait();
            let date = "2001-02-03T04:05:06Z";
            let run = clone.run(&["take", "42"]).env("GIT_AUTHOR_DATE", date);
            run.env("GIT_COMMITTER_DATE", date).go()
        })
    });
    one_winner(runners.map(|runner| runner.join().unwrap()).into(), &remote);
    let record = remote.record("issue-42");
    assert!(!record.contains("2001-"), "{record}");
    for line in ["author ", "committer "] {
        let line = record.lines().find(|l| l.starts_with(line)).unwrap();
        let time = line.rsplit(' ').nth(1).unwrap().parse::<u64>().unwrap();
        assert!((before..=now()).contains(&time), "{record}");
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

on!(a_rival_in_the_last_moment_is_the_holder: path, reftable, daemon, ssh, https);
/// The rival comes between the advertisement and the lock: the one moment that only the server sees.
fn a_rival_in_the_last_moment_is_the_holder(kind: Kind) {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kind) else { return };
    let clone = sandbox.clone(&remote, "a");
    let rival =
        remote.plant("refs/rival", "Rita Rival <rita@example.com>", "claim issue 42 by me\n");
    remote.hook("update", &format!("git update-ref refs/claims/issue-42 {rival}"));
    let _ = clone.claim(&["take", "42"]).is(75, "held issue-42 by Rita Rival");
    assert_eq!(remote.tip("issue-42"), Some(rival));
    remote.unhook("update");
    let _ = clone.claim(&["release", "42"]).is(3, "lost issue-42 to Rita Rival");
}

on!(a_release_never_removes_what_came_after: path, reftable, daemon, https);
/// A release meets a claim that took its place after the advertisement was read.
fn a_release_never_removes_what_came_after(kind: Kind) {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kind) else { return };
    let clone = sandbox.clone(&remote, "a");
    let _ = clone.claim(&["take", "42"]).is(0, "claimed issue-42 ");
    let rival =
        remote.plant("refs/rival", "Rita Rival <rita@example.com>", "claim issue 42 by me\n");
    remote.hook("update", &format!("git update-ref refs/claims/issue-42 {rival}"));
    let _ = clone.claim(&["release", "42"]).is(3, "lost issue-42 to Rita Rival");
    assert_eq!(remote.tip("issue-42"), Some(rival));
}

on!(a_sign_of_life_in_the_last_moment_saves_a_claim: path, reftable, daemon, https);
/// Somebody clears what looks dead, and its holder renews it while the server is at it.
fn a_sign_of_life_in_the_last_moment_saves_a_claim(kind: Kind) {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kind) else { return };
    let (alice, bob) = (sandbox.clone(&remote, "alice"), sandbox.clone(&remote, "bob"));
    let old = alice.claim(&["take", "42"]).is(0, "claimed issue-42 ").id();
    let renewed = alice.claim(&["renew", "42"]).is(0, "renewed issue-42 ").id();
    remote.git(&["update-ref", "refs/claims/issue-42", &old, &renewed]);
    remote.hook("update", &format!("git update-ref refs/claims/issue-42 {renewed}"));
    let _ =
        bob.claim(&["release", "42", "--expect", &old]).is(3, "moved issue-42 by Alice Example");
    assert_eq!(remote.tip("issue-42"), Some(renewed));
    let _ = alice.claim(&["verify", "42"]).is(0, "yours issue-42 ");
}

/// Two jobs of one clone renew at once: each finds a claim that is its clone's.
#[test]
fn renewals_of_one_clone_get_along() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(crate::support::kinds::path()) else { return };
    let clone = Arc::new(sandbox.clone(&remote, "a"));
    let _ = clone.claim(&["take", "42"]).is(0, "claimed issue-42 ");
    let runners = (0..4).map(|_| {
        let clone = Arc::clone(&clone);
        thread::spawn(move || clone.claim(&["renew", "42"]))
    });
    for runner in runners.collect::<Vec<_>>() {
        let _ = runner.join().unwrap().is(0, "renewed issue-42 ");
    }
    let _ = clone.claim(&["verify", "42"]).is(0, "yours issue-42 ");
    let _ = clone.claim(&["release", "42"]).is(0, "released issue-42 ");
}
