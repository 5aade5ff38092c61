//! Several claims at once: all or none, or those that are free; and what is given back, renewed and released together.

use std::{
    collections::BTreeMap,
    sync::{Arc, Barrier},
    thread,
};

use crate::support::{Kind, Output, Sandbox, kinds, on, proxy::Proxy};

on!(it_is_all_or_none: path, sha256, reftable, daemon, ssh, ssh_v0, https, https_v0, https_reftable);
fn it_is_all_or_none(kind: Kind) {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kind) else { return };
    let [alice, bob] = sandbox.people(&remote, ["Alice", "Bob"]);
    let _ = alice.claim(&["take", "archive"]).is(0, "claimed archive ");
    let wanted = ["take", "device", "archive", "workspace", "Device"];
    let held = bob.claim(&wanted);
    let held = held.gives(75, &["free device", "held archive", "free workspace"]);
    let held = held.says("none of the 3 is taken");
    assert!(!held.stderr.contains("refuses"), "{held}");
    assert_eq!((remote.claims(), bob.records().len()), (vec!["archive".to_owned()], 0), "{held}");
    let _ = alice.claim(&["release", "archive"]).is(0, "released archive ");
    let taken = bob.claim(&wanted);
    let _ = taken.gives(0, &["claimed device", "claimed archive", "claimed workspace"]);
    assert_eq!(remote.claims(), ["archive", "device", "workspace"]);
    let all = ["device", "archive", "workspace"];
    let _ = bob
        .claim(&[&["verify"], &all[..]].concat())
        .gives(0, &["yours device", "yours archive", "yours workspace"]);
    for _ in 0..2 {
        let renewed = bob.claim(&[&["renew"], &all[..]].concat());
        let _ = renewed.gives(0, &["renewed device", "renewed archive", "renewed workspace"]);
    }
    let _ = alice
        .claim(&[&["take"], &all[..]].concat())
        .gives(75, &["held device", "held archive", "held workspace"]);
    // What is not ours stays, and what is ours goes all the same.
    let _ = alice.claim(&["take", "other"]).is(0, "claimed");
    let released = bob.claim(&["release", "device", "other", "none", "archive", "workspace"]);
    let _ = released.gives(
        3,
        &["released device", "lost other", "free none", "released archive", "released workspace"],
    );
    assert_eq!((remote.claims(), bob.records().len()), (vec!["other".to_owned()], 0));
}

on!(one_after_the_other_where_the_remote_cannot_do_it_at_once: path, ssh, https, https_v0);
fn one_after_the_other_where_the_remote_cannot_do_it_at_once(kind: Kind) {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kind) else { return };
    remote.set("receive.advertiseAtomic", "false");
    let [alice, bob] = sandbox.people(&remote, ["Alice", "Bob"]);
    let refused = alice.claim(&["take", "c", "a", "b"]);
    let refused = refused.gives(77, &["refused c", "refused a", "refused b"]);
    let refused = refused.says("git claim take c a b --one-by-one");
    assert_eq!((remote.claims(), alice.records().len()), (vec![], 0), "{refused}");
    assert_eq!(remote.witnessed(), [""; 0], "nothing was sent");

    // Held from the start: nothing is touched.
    let _ = bob.claim(&["take", "b"]).is(0, "claimed");
    let before = remote.witnessed().len();
    let held = alice.claim(&["take", "c", "a", "b", "--one-by-one"]);
    let _ = held.gives(75, &["free c", "free a", "held b"]);
    assert_eq!((remote.witnessed().len(), alice.records().len()), (before, 0));
    let _ = bob.claim(&["release", "b"]).is(0, "released");

    // Refused in the middle: in the order of the names, and back.
    remote.hook("update", "case \"$1\" in */b) echo no more >&2; exit 1;; esac");
    let before = remote.witnessed().len();
    let refused = alice.claim(&["take", "c", "a", "b", "--one-by-one"]);
    let refused = refused.gives(77, &["free c", "released a", "refused b"]);
    let moves = remote.witnessed().split_off(before);
    let names: Vec<&str> = moves.iter().filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(names, ["refs/claims/a", "refs/claims/b", "refs/claims/a"], "{refused}");
    assert_eq!((remote.claims(), alice.records().len()), (vec![], 0));
    remote.unhook("update");
    let taken = alice.claim(&["take", "c", "a", "b", "--one-by-one"]);
    let _ = taken.gives(0, &["claimed c", "claimed a", "claimed b"]);
}

on!(a_refusal_of_one_is_a_refusal_of_all: path, reftable, daemon, https);
fn a_refusal_of_one_is_a_refusal_of_all(kind: Kind) {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kind) else { return };
    let alice = sandbox.clone(&remote, "a");
    remote.hook("update", "case \"$1\" in */b) echo not this one >&2; exit 1;; esac");
    let refused = alice.claim(&["take", "a", "b", "c"]);
    let refused = refused.gives(77, &["free a", "refused b", "free c"]);
    assert_eq!((remote.claims(), alice.records().len()), (vec![], 0), "{refused}");
}

on!(two_who_need_the_same_never_share: path, reftable, daemon, https);
/// Each asks in another order. Whoever wins has all, and whoever does not has none.
fn two_who_need_the_same_never_share(kind: Kind) {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kind) else { return };
    let people = Arc::new(sandbox.people(&remote, ["Alice", "Bob", "Carol"]));
    let orders = [["a", "b", "c"], ["c", "b", "a"], ["b", "c", "a"]];
    let mut won = 0;
    for round in 0..12 {
        let start = Arc::new(Barrier::new(orders.len()));
        let jobs = (0..orders.len()).map(|who| {
            let (people, start) = (Arc::clone(&people), Arc::clone(&start));
            thread::spawn(move || {
                start.wait();
                let one_by_one: &[&str] = if round % 2 == 0 { &[] } else { &["--one-by-one"] };
                people[who].claim(&[&["take"], &orders[who][..], one_by_one].concat())
            })
        });
        let jobs = jobs.collect::<Vec<_>>();
        let ends: Vec<Output> = jobs.into_iter().map(|job| job.join().unwrap()).collect();
        let winners: Vec<usize> =
            (0..ends.len()).filter(|who| ends[*who].code == Some(0)).collect();
        let told = || ends.iter().map(ToString::to_string).collect::<String>();
        assert!(winners.len() <= 1, "{}", told());
        // Nobody keeps a part: what is there is the winner's, and all of it.
        assert_eq!(remote.claims().len(), winners.len() * 3, "{}", told());
        won += winners.len();
        for (who, end) in ends.iter().enumerate() {
            let expected = if winners.contains(&who) { 3 } else { 0 };
            assert_eq!(people[who].records().len(), expected, "{end}");
        }
        for who in winners {
            let released = people[who].claim(&["release", "a", "b", "c"]);
            let _ = released.gives(0, &["released a", "released b", "released c"]);
        }
    }
    assert!(won > 0, "somebody gets through");
}

/// One connection each, however many.
#[test]
fn a_hundred_cost_one_connection() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let [alice, bob] = sandbox.people(&remote, ["Alice", "Bob"]);
    let names: String = (1..=100).map(|number| format!("{number}\n")).collect();
    for (verb, word) in [("take", "claimed"), ("renew", "renewed"), ("release", "released")] {
        let (output, reading, writing) = alice.counted(&[verb, "-"], &names);
        assert_eq!((output.code, reading, writing), (Some(0), 0, 1), "{output}");
        let answers = output.verdicts();
        assert_eq!((answers.len(), answers[99].as_str()), (100, &*format!("{word} issue-100")));
    }
    let _ = alice.run(&["take", "-"]).input(names.clone()).go();
    let (output, reading, writing) = alice.counted(&["release", "--all"], "");
    assert_eq!((output.code, reading, writing), (Some(0), 0, 1), "{output}");
    assert_eq!(remote.claims(), [""; 0]);

    // The sweep: who holds what is asked once, and the one that is free is taken.
    let _ = alice.run(&["take", "-"]).input(names.clone()).go();
    let sweep = format!("# open issues\n\n{names}101\n102\n");
    let (output, reading, writing) = bob.counted(&["take", "--any", "-"], &sweep);
    let output = output.gives(0, &["claimed issue-101"]);
    assert_eq!((reading, writing), (1, 1), "{output}");
    let (output, reading, writing) = bob.counted(&["take", "--any", "-"], &names);
    assert_eq!((output.code, reading, writing), (Some(75), 1, 0), "{output}");
    assert_eq!(output.verdicts().len(), 100);
    assert!(output.stderr.lines().count() < 10, "a line each is enough\n{output}");
}

on!(as_many_as_are_free: path, ssh, https);
fn as_many_as_are_free(kind: Kind) {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kind) else { return };
    let [alice, bob] = sandbox.people(&remote, ["Alice", "Bob"]);
    let _ = alice.claim(&["take", "2", "4"]).is(0, "claimed");
    let limited = ["take", "--any", "--limit", "2", "1", "2", "3", "4", "5"];
    let _ = bob.claim(&limited).gives(0, &["claimed issue-1", "claimed issue-3"]);
    let _ = bob.claim(&limited).gives(0, &["claimed issue-5"]);
    let none = bob.claim(&limited);
    let _ = none.gives(
        75,
        &["held issue-1", "held issue-2", "held issue-3", "held issue-4", "held issue-5"],
    );
    let usage = bob.claim(&["take", "--limit", "2", "1", "2"]);
    assert_eq!(usage.code, Some(2), "{usage}");
    let nothing = bob.run(&["take", "--any", "-"]).input("# nothing to do\n").go();
    assert_eq!(nothing.code, Some(2), "{nothing}");
    let _ = nothing.says("standard input names no claim");
}

on!(a_fleet_takes_each_exactly_once: path, reftable, https);
fn a_fleet_takes_each_exactly_once(kind: Kind) {
    const NAMES: usize = 24;
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kind) else { return };
    let people = Arc::new(sandbox.people(&remote, ["Alice", "Bob", "Carol", "Dave"]));
    let names: String = (1..=NAMES).map(|number| format!("{number}\n")).collect();
    let start = Arc::new(Barrier::new(people.len()));
    let bots = (0..people.len()).map(|who| {
        let (people, start, names) = (Arc::clone(&people), Arc::clone(&start), names.clone());
        thread::spawn(move || {
            start.wait();
            let mut taken = Vec::new();
            loop {
                let limit = if who == 3 { "3" } else { "1" };
                let args = ["take", "--any", "--shuffle", "--limit", limit, "-"];
                let output = people[who].run(&args).input(names.clone()).go();
                match output.code {
                    Some(0) => taken.extend(output.verdicts()),
                    Some(75) => return taken,
                    _ => panic!("{output}"),
                }
            }
        })
    });
    let bots = bots.collect::<Vec<_>>();
    let mut taken: BTreeMap<String, usize> = BTreeMap::new();
    for line in bots.into_iter().flat_map(|bot| bot.join().unwrap()) {
        *taken.entry(line).or_default() += 1;
    }
    assert_eq!(taken.len(), NAMES, "{taken:?}");
    assert!(taken.values().all(|times| *times == 1), "{taken:?}");
    let created = |line: &&String| {
        line.split(' ').nth(1).is_some_and(|old| old.bytes().all(|byte| byte == b'0'))
    };
    assert_eq!(remote.claims().len(), NAMES);
    assert!(remote.witnessed().iter().filter(created).count() >= NAMES);
}

/// The server carries it out, and nobody hears of it.
#[test]
fn a_lost_answer_about_several_is_looked_up() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let clone = sandbox.clone(&remote, "a");
    let Some((proxy, url)) = Proxy::losing_answers(&remote) else { return };
    clone.point_to(&url);
    let _ = clone.claim(&["take", "a", "b"]).gives(0, &["claimed a", "claimed b"]);
    let _ = clone.claim(&["renew", "a", "b"]).gives(0, &["renewed a", "renewed b"]);
    assert_eq!(remote.claims(), ["a", "b"]);
    let _ = clone.claim(&["release", "a", "b"]).gives(0, &["released a", "released b"]);
    assert_eq!((remote.claims(), clone.records().len()), (vec![], 0));
    assert!(proxy.lost() >= 3, "{} answers lost", proxy.lost());
}

on!(what_may_have_landed_is_gone_on_with: path, daemon, https);
fn what_may_have_landed_is_gone_on_with(kind: Kind) {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kind) else { return };
    let [alice, bob] = sandbox.people(&remote, ["Alice", "Bob"]);
    remote.hook("pre-receive", "sleep 4");
    let unsure = alice.claim(&["take", "a", "b", "--timeout", "2s"]);
    assert_eq!(unsure.code, Some(69), "{unsure}");
    let unsure = unsure.says("git claim take a b --resume");
    assert_eq!(alice.records().len(), 2, "{unsure}");
    remote.unhook("pre-receive");
    // Whatever became of it, both are Alice's after this; the third is new.
    let resumed = alice.claim(&["take", "a", "b", "c", "--resume"]);
    assert_eq!(resumed.code, Some(0), "{resumed}");
    let mut told = resumed.verdicts();
    told.sort();
    assert_eq!(told, ["claimed a", "claimed b", "claimed c"], "{resumed}");
    let _ = alice.claim(&["verify", "a", "b", "c"]).gives(0, &["yours a", "yours b", "yours c"]);
    let _ = bob.claim(&["take", "b", "d"]).gives(75, &["held b", "free d"]);
}

on!(marks_of_a_release_are_taken_over_together: path, https);
fn marks_of_a_release_are_taken_over_together(kind: Kind) {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kind) else { return };
    sandbox.configure("[claim]\n\tprefix = refs/heads/claims/\n\trelease = mark\n");
    let [alice, bob] = sandbox.people(&remote, ["Alice", "Bob"]);
    let _ = alice.claim(&["take", "a", "b"]).gives(0, &["claimed a", "claimed b"]);
    let _ = alice.claim(&["release", "a", "b"]).gives(0, &["released a", "released b"]);
    let _ = bob.claim(&["take", "a", "c", "b"]).gives(0, &["claimed a", "claimed c", "claimed b"]);
    let _ = alice.claim(&["take", "a", "b", "d"]).gives(75, &["held a", "held b", "free d"]);
    let _ = bob.claim(&["release", "b", "c"]).gives(0, &["released b", "released c"]);
    let any = alice.claim(&["take", "--any", "--limit", "5", "a", "b", "c", "d"]);
    let _ = any.gives(0, &["claimed b", "claimed c", "claimed d"]);
}

on!(one_that_is_held_elsewhere_keeps_all_from_being_taken: path, daemon, https);
fn one_that_is_held_elsewhere_keeps_all_from_being_taken(kind: Kind) {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kind) else { return };
    let [alice, bob] = sandbox.people(&remote, ["Alice", "Bob"]);
    alice.set("claim.prefix", "refs/heads/claims/");
    let _ = alice.claim(&["take", "b"]).is(0, "claimed");
    let before = remote.refs();
    let held = bob.claim(&["take", "a", "b", "c"]);
    let held = held.gives(75, &["free a", "held b", "free c"]);
    let held = held.says("it is held at refs/heads/claims/b");
    assert_eq!((remote.refs(), bob.records().len()), (before, 0), "{held}");
}

/// Waiting for all of them takes none before all are free.
#[test]
fn all_are_waited_for() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    sandbox.configure("[claim]\n\tpoll = 100ms\n\tpollMax = 200ms\n");
    let [alice, bob] = sandbox.people(&remote, ["Alice", "Bob"]);
    let _ = alice.claim(&["take", "a", "b"]).is(0, "claimed");
    let mut waiting = bob.run(&["take", "a", "b", "c", "--wait", "30s"]).start();
    waiting.until_it_says("waiting for b, held by Alice");
    let _ = alice.claim(&["release", "a"]).is(0, "released");
    let before = remote.witnessed().len();
    thread::sleep(std::time::Duration::from_secs(1));
    assert_eq!((remote.claims(), remote.witnessed().len()), (vec!["b".to_owned()], before));
    let _ = alice.claim(&["release", "b"]).is(0, "released");
    let _ = waiting.end().gives(0, &["claimed a", "claimed b", "claimed c"]);
}

/// An option about one commit, with several names.
#[test]
fn one_commit_is_of_one_claim() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let alice = sandbox.clone(&remote, "a");
    for args in [
        &["release", "a", "b", "--expect", "1234567"][..],
        &["take", "a", "b", "--over", "1234567", "--reason", "gone"],
        &["take", "a", "b c"],
        &["take", "--any", "--one-by-one", "a", "b"],
    ] {
        let output = alice.claim(args);
        assert_eq!((output.code, output.stdout.as_str()), (Some(2), ""), "{output}");
    }
    assert_eq!(remote.witnessed(), [""; 0]);
}
