//! `take --any`: what a sweep passes over, whom it asks to make room, and what that costs.

use std::{thread, time::Duration};

use crate::support::{Clone, Kind, Remote, Sandbox, kinds, on, until};

/// Who waits here asks often.
fn impatient(sandbox: &Sandbox, remote: &Remote) -> [Clone; 2] {
    sandbox.configure("[claim]\n\tpoll = 100ms\n\tpollMax = 200ms\n");
    sandbox.people(remote, ["Alice", "Bob"])
}

/// The names of those whose holders are asked to stop.
fn asked(remote: &Remote) -> Vec<String> {
    let names = remote.git(&["for-each-ref", "--format=%(refname:lstrip=2)", "refs/claims-asked/"]);
    names.lines().map(str::to_owned).collect()
}

on!(what_the_remote_refuses_is_passed_over: path, reftable, daemon, ssh, https, https_v0);
fn what_the_remote_refuses_is_passed_over(kind: Kind) {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kind) else { return };
    let [alice, bob] = sandbox.people(&remote, ["Alice", "Bob"]);
    let id = bob.claim(&["take", "held"]).is(0, "claimed").id();
    // A ref cannot be where a folder of refs is; and one is refused by a hook.
    remote.git(&["update-ref", "refs/claims/dir/file", &id]);
    remote.hook("update", "case $1 in */b) echo 'not this one' >&2; exit 1;; esac");
    let sweep = ["take", "--any", "held", "dir", "b", "c", "d"];
    let won = alice.claim(&sweep).gives(0, &["claimed c"]);
    let won = won.says("the remote refuses dir, b, which is passed over");
    assert_eq!(alice.records().len(), 1, "{won}");
    let _ = alice
        .claim(&["take", "--any", "--limit", "3", "b", "dir", "e", "f", "g", "h"])
        .gives(0, &["claimed e", "claimed f", "claimed g"]);
    // Where nothing is won, that it is refused is the answer: somebody has to know.
    let _ = alice
        .claim(&["take", "--any", "held", "b", "c"])
        .gives(77, &["held held", "refused b", "held c"]);
    assert_eq!(remote.claims(), ["c", "dir/file", "e", "f", "g", "held"]);
    assert_eq!(alice.records().len(), 4);
}

/// A remote that refuses every claim is not asked about each of many names.
#[test]
fn a_remote_that_refuses_all_is_left_alone() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let clone = sandbox.clone(&remote, "a");
    let tried = sandbox.path("tried");
    remote.hook("update", &format!("echo x >>'{}'; exit 1", tried.display()));
    let names: String = (1..=50).map(|number| format!("{number}\n")).collect();
    let refused = clone.run(&["take", "--any", "-"]).input(names).go();
    assert_eq!(refused.code, Some(77), "{refused}");
    let tries = std::fs::read_to_string(&tried).unwrap().lines().count();
    assert!((1..20).contains(&tries), "{tries} tries\n{refused}");
    assert_eq!(clone.records().len(), 0);
}

#[test]
fn a_mark_that_was_seen_is_taken_over_at_once() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    sandbox.configure("[claim]\n\trelease = mark\n");
    let [alice, bob] = sandbox.people(&remote, ["Alice", "Bob"]);
    let _ = alice.claim(&["take", "a", "b", "c"]).is(0, "claimed");
    let _ = alice.claim(&["release", "a", "b"]).is(0, "released");
    let sweep = ["take", "--any", "--limit", "9", "a", "b", "c", "d"];
    let (output, reading, writing) = bob.counted(&sweep, "");
    let output = output.gives(0, &["claimed a", "claimed b", "claimed d"]);
    assert_eq!((reading, writing), (1, 1), "{output}");
    let _ = alice.claim(&["take", "a"]).is(75, "held a");
}

/// Where others may have their claims elsewhere, that is looked at once for all that were won.
#[test]
fn elsewhere_is_looked_at_once() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let [alice, bob] = sandbox.people(&remote, ["Alice", "Bob"]);
    alice.set("claim.prefix", "refs/heads/claims/");
    let (output, reading, writing) = alice.counted(&["take", "a", "b", "c", "d"], "");
    assert_eq!((output.code, reading, writing), (Some(0), 1, 1), "{output}");
    // The other side sees that it is in use.
    let (output, reading, writing) = bob.counted(&["take", "e", "f", "g", "h"], "");
    assert_eq!((output.code, reading, writing), (Some(0), 1, 1), "{output}");
}

on!(as_many_are_asked_to_stop_as_are_wanted: path, https);
fn as_many_are_asked_to_stop_as_are_wanted(kind: Kind) {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kind) else { return };
    let [alice, bob] = impatient(&sandbox, &remote);
    let _ = alice.claim(&["take", "a", "b", "c"]).is(0, "claimed");
    thread::sleep(Duration::from_millis(1100));
    let sweep = ["take", "--any", "a", "b", "c", "--wait", "60s", "--ask", "it is urgent"];
    let waiting = bob.run(&sweep).start();
    until("a holder is asked", || asked(&remote) == ["a"]);
    // Another is free first: nobody need make room any more.
    let _ = alice.claim(&["release", "b"]).is(0, "released");
    let _ = waiting.end().gives(0, &["claimed b"]);
    assert_eq!(asked(&remote), [""; 0]);
    assert_eq!(remote.claims(), ["a", "b", "c"]);
}

/// The newest wins; but who is older than one holder may still be newer than another.
#[test]
fn a_newer_holder_of_one_ends_the_waiting_for_that_one() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let [alice, bob] = impatient(&sandbox, &remote);
    let _ = alice.claim(&["take", "a", "b"]).is(0, "claimed");
    thread::sleep(Duration::from_millis(1100));
    let sweep = ["take", "--any", "a", "b", "--wait", "60s", "--ask", "it is urgent"];
    let mut waiting = bob.run(&sweep).start();
    until("a holder is asked", || asked(&remote) == ["a"]);
    thread::sleep(Duration::from_millis(1100));
    // Newer than the one who waits.
    let tip = remote.tip("a").unwrap();
    let _ = alice.claim(&["take", "a", "--over", &tip, "--reason", "anew"]).is(0, "claimed");
    until("the other holder is asked", || asked(&remote).contains(&"b".to_owned()));
    assert!(!waiting.has_ended());
    let _ = alice.claim(&["release", "b"]).is(0, "released");
    let _ = waiting.end().gives(0, &["claimed b"]);

    // All or none: one that is not to be had is enough, and the answer is about each.
    let _ = alice.claim(&["take", "c", "d"]).is(0, "claimed");
    thread::sleep(Duration::from_millis(1100));
    let all = ["take", "c", "d", "--wait", "60s", "--ask", "it is urgent"];
    let waiting = bob.run(&all).start();
    until("both are asked", || asked(&remote).len() == 2);
    thread::sleep(Duration::from_millis(1100));
    let tip = remote.tip("d").unwrap();
    let _ = alice.claim(&["take", "d", "--over", &tip, "--reason", "anew"]).is(0, "claimed");
    let _ = waiting.end().gives(75, &["held c", "held d"]).says("d: its holder began after we did");
}

/// Of many that are waited for the number is told, and whether it is all of them that are wanted.
#[test]
fn many_are_told_as_a_number() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let [alice, bob] = impatient(&sandbox, &remote);
    let names: Vec<String> = (1..=12).map(|number| number.to_string()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let _ = alice.claim(&[&["take"], &names[1..]].concat()).is(0, "claimed");
    let all = [&["take"], &names[..], &["--wait", "0.5s"]].concat();
    let output = bob.claim(&all).says("waiting for all of 12: 11 are held");
    assert_eq!(output.code, Some(75), "{output}");
    let _ = alice.claim(&["take", "1"]).is(0, "claimed");
    let any = [&["take", "--any", "--limit", "2"], &names[..], &["--wait", "0.5s"]].concat();
    let output = bob.claim(&any).says("waiting for 2 of 12, all of them held");
    assert_eq!(output.code, Some(75), "{output}");
}

/// What is said beside a claim that was won and could not be given back is about the others only.
#[test]
fn nothing_is_not_said_where_something_stays() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    remote.set("receive.advertiseAtomic", "false");
    let clone = sandbox.clone(&remote, "a");
    remote.hook(
        "update",
        "case $1$3 in */b*|*0000000000000000000000000000000000000000) exit 1;; esac",
    );
    let refused = clone.claim(&["take", "a", "b", "--one-by-one"]);
    let refused = refused.gives(77, &["refused a", "refused b"]);
    let refused = refused.says("a is NOT released and still yours").says("b was not claimed");
    assert!(!refused.stderr.contains("nothing was claimed"), "{refused}");
    assert_eq!((remote.claims(), clone.records().len()), (vec!["a".to_owned()], 1));
}

/// One name that a hook refuses together with all others, or that the server dies over, is no reason to keep the others.
#[test]
fn one_name_does_not_keep_the_others() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let clone = sandbox.clone(&remote, "a");
    let all = ["a", "b", "c", "d"];
    let together =
        "while read -r _ _ ref; do case $ref in */b) echo 'not b' >&2; exit 1;; esac; done";
    let dies = "case $1 in */b) kill -9 $PPID; exit 1;; esac";
    for (hook, script, word, code) in
        [("pre-receive", together, "refused b", 77), ("update", dies, "unknown b", 69)]
    {
        let _ = clone.claim(&[&["take"], &all[..]].concat()).is(0, "claimed");
        remote.hook(hook, script);
        let renewed = ["renewed a", word, "renewed c", "renewed d"];
        let _ = clone.claim(&[&["renew"], &all[..]].concat()).gives(code, &renewed);
        let released = ["released a", word, "released c", "released d"];
        let _ = clone.claim(&["release", "--all"]).gives(code, &released);
        assert_eq!(remote.claims(), ["b"]);
        remote.unhook(hook);
        let _ = clone.claim(&["release", "b"]).is(0, "released b");
    }
    remote.hook("pre-receive", together);
    let any = ["take", "--any", "--limit", "3", "a", "b", "c", "d"];
    let _ = clone.claim(&any).gives(0, &["claimed a", "claimed c", "claimed d"]);
}

/// What is refused ends no waiting for what is held.
#[test]
fn a_refusal_of_one_leaves_the_others_to_wait_for() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let [alice, bob] = impatient(&sandbox, &remote);
    remote.hook("update", "case $1 in */bad) echo never >&2; exit 1;; esac");
    let _ = bob.claim(&["take", "good"]).is(0, "claimed good");
    let given_up = alice.claim(&["take", "--any", "bad", "good", "--wait", "0.5s"]);
    let _ = given_up.gives(77, &["refused bad", "held good"]);
    let mut waiting = alice.run(&["take", "--any", "bad", "good", "--wait", "60s"]).start();
    waiting.until_it_says("waiting for good, held by Bob");
    let _ = bob.claim(&["release", "good"]).is(0, "released good");
    let won = waiting.end().gives(0, &["claimed good"]);
    assert_eq!(won.stderr.matches("never").count(), 1, "it is not tried again\n{won}");
}

/// What is to be typed after a lost answer is for all that is to be had together.
#[test]
fn whoever_goes_on_goes_on_with_all() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let clone = sandbox.clone(&remote, "a");
    remote.hook("update", "case $1 in */b) kill -9 $PPID; exit 1;; esac");
    let unsure = clone.claim(&["take", "a", "b", "c", "--one-by-one"]);
    let unsure = unsure.gives(69, &["released a", "unknown b", "free c"]);
    let _ = unsure.says("git claim take a b c --one-by-one --resume");
    remote.unhook("update");
    let _ = clone
        .claim(&["take", "a", "b", "c", "--one-by-one", "--resume"])
        .gives(0, &["claimed a", "claimed b", "claimed c"]);
    // Waiting for oneself is pointed out.
    let own = clone.claim(&["take", "a", "b", "--wait", "0.5s"]).gives(75, &["held a", "held b"]);
    let _ = own.says(", by this clone").says("git claim take a b --resume");
    // What is under another namespace is not passed over in silence.
    let _ = clone.claim(&["release", "a", "b", "c"]).is(0, "released");
    let elsewhere = clone.run(&["take", "x"]).env("GIT_CONFIG_COUNT", "1");
    let elsewhere = elsewhere.env("GIT_CONFIG_KEY_0", "claim.prefix");
    let _ = elsewhere.env("GIT_CONFIG_VALUE_0", "refs/heads/claims/").go().is(0, "claimed x");
    let _ = clone.claim(&["release", "--all"]).is(0, "released 0").says("outside of refs/claims/");
}
