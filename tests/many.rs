//! `verify` and `show` of many claims: one connection for all of them, an answer for each.

use std::{fmt::Write as _, fs};

use crate::support::{
    Clone, Kind, Output, Remote, Sandbox, kinds, on,
    proxy::{Mode, Proxy},
    servers::{self, Daemon},
};

/// Claims of Alice's clone with the names `issue-<first>` and on, put on the remote in one step, with their records.
fn hold(alice: &Clone, remote: &Remote, count: usize) {
    let _ = alice.claim(&["take", "1"]).is(0, "claimed");
    let folder = alice.dir.join(".git/claims");
    let folder = fs::read_dir(folder).unwrap().next().unwrap().unwrap().path();
    let record = fs::read_dir(&folder).unwrap().next().unwrap().unwrap();
    let name = record.file_name().into_string().unwrap();
    let record = fs::read_to_string(record.path()).unwrap();
    let tip = remote.tip("issue-1").unwrap();
    let mut updates = String::new();
    for number in 2..=count {
        // The same commit behind every name: what is counted is what is asked for, not what is in it.
        writeln!(updates, "create refs/claims/issue-{number} {tip}").unwrap();
        let path = folder.join(name.replace("issue-1~", &format!("issue-{number}~")));
        let record =
            record.replace("refs/claims/issue-1\"", &format!("refs/claims/issue-{number}\""));
        fs::write(path, record).unwrap();
    }
    remote.git_input(&["update-ref", "--stdin"], &updates);
}

/// The verdicts, in their order.
fn verdicts(output: &Output) -> Vec<String> {
    let words = ["yours ", "lost ", "free ", "held ", "unknown ", "refused "];
    let lines =
        output.stdout.lines().filter(|line| words.iter().any(|word| line.starts_with(word)));
    lines.map(|line| line.split(' ').take(2).collect::<Vec<_>>().join(" ")).collect()
}

on!(each_has_its_answer_in_the_given_order: path, sha256, daemon, ssh, ssh_v0, https, https_v0);
fn each_has_its_answer_in_the_given_order(kind: Kind) {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kind) else { return };
    let [alice, bob] = sandbox.people(&remote, ["Alice", "Bob"]);
    for (clone, name) in [(&alice, "4"), (&bob, "42"), (&alice, "archive"), (&bob, "7")] {
        let _ = clone.claim(&["take", name]).is(0, "claimed");
    }
    for name in ["4", "42"] {
        let holder = if name == "4" { &alice } else { &bob };
        for _ in 0..2 {
            let _ = holder.claim(&["renew", name]).is(0, "renewed");
        }
    }
    let asked = ["archive", "9", "#42", "issue-4", "4", "refs/claims/issue-42"];
    let told = alice.claim(&[&["verify"], &asked[..]].concat());
    let expected = ["yours archive", "free issue-9", "lost issue-42", "yours issue-4"];
    assert_eq!(
        (told.code, verdicts(&told)),
        (Some(3), expected.map(str::to_owned).to_vec()),
        "{told}"
    );
    let json = alice.run(&[&["verify"], &asked[..]].concat()).go_json();
    let object = json.json();
    let claims = object["claims"].as_array().unwrap();
    let pairs = claims.iter().map(|claim| {
        format!("{} {}", claim["verdict"].as_str().unwrap(), claim["name"].as_str().unwrap())
    });
    assert_eq!(pairs.collect::<Vec<_>>(), expected, "{json}");
    let told = alice.claim(&["verify", "archive", "4"]).is(0, "yours issue-4");
    assert_eq!(told.stderr, "", "{told}");
    let quiet = alice.claim(&["verify", "-q", "archive", "9"]);
    assert_eq!((quiet.code, &*quiet.stdout, &*quiet.stderr), (Some(3), "", ""), "{quiet}");

    let shown = bob.run(&[&["show"], &asked[..]].concat()).go_json();
    let object = shown.json();
    let claims = object["claims"].as_array().unwrap();
    assert_eq!((shown.code, claims.len()), (Some(3), 4), "{shown}");
    for (claim, (renewals, holder)) in
        claims.iter().zip([(0, "Alice"), (0, ""), (2, "Bob"), (2, "Alice")])
    {
        assert!(claim["history_unread"].is_null(), "{shown}");
        if !holder.is_empty() {
            assert_eq!(claim["holder"]["name"], format!("{holder} Example"), "{shown}");
            let renewed =
                claim["history"].as_array().unwrap().iter().find(|e| e["event"] == "renewed");
            assert_eq!(
                renewed.map_or(0, |event| event["times"].as_u64().unwrap()),
                renewals,
                "{shown}"
            );
        }
    }
    let shown = bob.claim(&["show", "4", "42"]).is(0, "held issue-42 by Bob Example");
    assert_eq!(shown.stdout.matches("\n\n").count(), 1, "a line between the two\n{shown}");
    assert_eq!(shown.stdout.matches("history ").count(), 2, "{shown}");
}

/// A list of any length, and the histories of what was renewed, cost one connection.
#[test]
fn one_connection_for_all_of_them() {
    let sandbox = Sandbox::new();
    let Some(port) = servers::daemon(Daemon::Writable) else { return };
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let proxy = Proxy::start(port, Mode::Count);
    let below_root = remote.dir.strip_prefix(servers::root()).unwrap().display();
    let url = format!("git://127.0.0.1:{}/{below_root}", proxy.port);
    let [alice, bob] = sandbox.people(&remote, ["Alice", "Bob"]);
    for clone in [&alice, &bob] {
        clone.point_to(&url);
    }
    let names: Vec<String> = (1..=12).map(|number| number.to_string()).collect();
    for name in &names {
        let _ = alice.claim(&["take", name]).is(0, "claimed");
        let _ = alice.claim(&["renew", name]).is(0, "renewed");
    }
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    for (verb, code, free) in [
        ("verify", 3, &[][..]),
        ("show", 0, &[]),
        ("show", 3, &["500", "501"]),
        ("verify", 3, &["500"]),
    ] {
        let before = proxy.connections();
        let output = bob.claim(&[&[verb], &names[..], free].concat());
        assert_eq!(output.code, Some(code), "{output}");
        assert_eq!(verdicts(&output).len(), names.len() + free.len(), "{output}");
        let told = output.stdout.matches("history ").count();
        assert_eq!(told, if verb == "show" { 12 } else { 0 }, "{output}");
        assert!(!output.stdout.contains("not read"), "{output}");
        assert_eq!(proxy.connections() - before, 1, "{output}");
    }
    assert_eq!(alice.claim(&[&["verify"], &names[..]].concat()).code, Some(0));
}

/// 2,000 names from standard input: one program of the server's, and its claims need not be read.
#[test]
fn two_thousand_names_from_standard_input() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let [alice, bob] = sandbox.people(&remote, ["Alice", "Bob"]);
    hold(&alice, &remote, 2000);
    let mut list = String::from("# mine\n\n");
    for number in (1..=2000).rev() {
        writeln!(list, "#{number}").unwrap();
    }
    let (told, reads, writes) = alice.counted(&["verify", "-", "5"], &list);
    assert_eq!((told.code, reads, writes), (Some(0), 1, 0), "{}", told.stderr);
    let verdicts = verdicts(&told);
    assert_eq!(verdicts.len(), 2000, "one for each");
    assert_eq!((&*verdicts[0], &*verdicts[1999]), ("yours issue-2000", "yours issue-1"));
    let list = format!("{list}2001\n2002");
    let (told, reads, writes) = bob.counted(&["show", "-", "--json"], &list);
    assert_eq!((told.code, reads, writes), (Some(3), 1, 0), "{}", told.stderr);
    let json = told.json();
    let claims = json["claims"].as_array().unwrap();
    assert_eq!((claims.len(), &claims[2001]["verdict"]), (2002, &"free".into()));
    assert_eq!((&claims[7]["name"], &claims[7]["record"]), (&"issue-1993".into(), &"claim".into()));
}

/// Whoever holds claims that readers are not shown is told so by the writing side, which is asked once.
#[test]
fn hidden_claims_are_asked_for_once() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let alice = sandbox.clone(&remote, "alice");
    hold(&alice, &remote, 150);
    remote.set("uploadpack.hideRefs", "refs/claims");
    remote.git(&["update-ref", "-d", "refs/claims/issue-3"]);
    for verb in ["verify", "show"] {
        for names in [&["1", "2", "3", "999"][..], &["-", "999"]] {
            let list: String = (1..=150).map(|number| format!("{number}\n")).collect();
            let args = [&[verb], names].concat();
            let (told, reads, writes) = alice.counted(&args, &list);
            assert_eq!((told.code, reads, writes), (Some(3), 1, 1), "{told}");
            let word = if verb == "verify" { "yours" } else { "held" };
            let verdicts = verdicts(&told);
            assert_eq!(
                verdicts[..2],
                [format!("{word} issue-1"), format!("{word} issue-2")],
                "{told}"
            );
            assert_eq!(verdicts[2], "free issue-3", "{told}");
            assert_eq!(verdicts.last().unwrap(), "free issue-999", "{told}");
        }
    }
    // Nobody is asked for what this clone does not hold.
    let (told, reads, writes) = alice.counted(&["verify", "998", "999"], "");
    assert_eq!((told.code, reads, writes), (Some(3), 1, 0), "{told}");
}

on!(those_held_elsewhere_are_pointed_out: path, ssh_v0, https, https_v0);
/// Somebody who keeps claims among branches, and a branch that is none.
fn those_held_elsewhere_are_pointed_out(kind: Kind) {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kind) else { return };
    let [alice, bob] = sandbox.people(&remote, ["Alice", "Bob"]);
    bob.set("claim.prefix", "refs/heads/claims/");
    let _ = bob.claim(&["take", "1"]).is(0, "claimed");
    let _ = bob.claim(&["take", "120"]).is(0, "claimed");
    remote.plant("refs/heads/claims/issue-2", "Hand Made <hand@example.com>", "work on it");
    let list: String = (1..=120).map(|number| format!("{number}\n")).collect();
    for verb in ["verify", "show"] {
        for (args, list, held) in [
            (&[verb, "1", "2", "3"][..], "", &["issue-1"][..]),
            (&[verb, "-"], &list, &["issue-1", "issue-120"]),
        ] {
            let told = alice.run(args).input(list).go();
            assert_eq!(told.code, Some(3), "{told}");
            let hints: Vec<&str> =
                told.stderr.lines().filter(|line| line.contains("it is held at")).collect();
            assert_eq!(hints.len(), held.len(), "{told}");
            for (hint, name) in hints.iter().zip(held) {
                assert!(hint.contains(&format!("refs/heads/claims/{name},")), "{told}");
            }
            assert!(
                told.stderr.contains("refs/heads/claims/issue-2 that was made by hand"),
                "{told}"
            );
        }
    }
}

/// Whatever makes no sense among the names, nothing is asked, and standard input is not waited for.
#[test]
fn a_name_that_makes_no_sense_asks_nothing() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let alice = sandbox.clone(&remote, "alice");
    for verb in ["verify", "show"] {
        for (args, input, words) in [
            (&["1", "4 2"][..], "", "\"4 2\" is no name"),
            (&["-"], "1\n4 2\n", "standard input, line 2: \"4 2\" is no name"),
            (&["-", "1", "-"], "", "'-' is given twice"),
            (&["-"], "# none\n", "standard input names no claim"),
            (&[], "", "required arguments were not provided"),
        ] {
            let (told, reads, writes) = alice.counted(&[&[verb], args].concat(), input);
            assert_eq!((told.code, reads, writes), (Some(2), 0, 0), "{told}");
            assert_eq!(told.stdout, "", "{told}");
            let _ = told.says(words);
        }
        let (mut waits, input) = alice.run(&[verb, "-", "4 2"]).start_typing();
        waits.until_it_says("is no name");
        assert_eq!(waits.end().code, Some(2));
        drop(input);
    }
}

/// What kept all from being asked about is said once, and each still has its verdict.
#[test]
fn a_remote_out_of_reach_is_told_once() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let alice = sandbox.clone(&remote, "alice");
    let _ = alice.claim(&["take", "1"]).is(0, "claimed");
    fs::rename(&remote.dir, sandbox.path("away")).unwrap();
    let told = alice.claim(&["verify", "1", "2", "3"]);
    let expected = ["unknown issue-1", "unknown issue-2", "unknown issue-3"];
    assert_eq!(
        (told.code, verdicts(&told)),
        (Some(69), expected.map(str::to_owned).to_vec()),
        "{told}"
    );
    assert_eq!(told.stderr.matches("could not tell").count(), 1, "{told}");
    assert_eq!(told.stderr.matches("hint: do not go by the claim").count(), 1, "{told}");
    fs::rename(sandbox.path("away"), &remote.dir).unwrap();
}
