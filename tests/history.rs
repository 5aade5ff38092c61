//! How a claim came to be what it is: what `show` tells of it, and what that may cost.

use std::{fmt::Write as _, fs};

use crate::support::{
    Clone, Kind, Output, Remote, Sandbox, kinds, on,
    proxy::{Mode, Proxy},
    servers::{self, Daemon},
    snapshot,
};

/// What `show` says of the history, a line each and without the label.
fn told(shown: &Output) -> Vec<String> {
    let lines = shown.stdout.lines().skip_while(|line| !line.starts_with("history  "));
    lines
        .take_while(|line| line.starts_with("history  ") || line.starts_with("         "))
        .map(|line| line[9..].to_owned())
        .collect()
}

/// The same without the times.
fn events(shown: &Output) -> Vec<String> {
    told(shown)
        .iter()
        .map(|line| line.split_once(" UTC  ").map_or(&line[..], |it| it.1).to_owned())
        .collect()
}

/// Whether nobody complains. git's own helper says that a server of the older protocols offers no filter.
fn is_quiet(shown: &Output) -> bool {
    shown
        .stderr
        .lines()
        .all(|line| line == "git: warning: filtering not recognized by server, ignoring")
}

/// The value of a trailer at a claim's tip.
#[track_caller]
fn trailer(remote: &Remote, name: &str, key: &str) -> String {
    let record = remote.record(name);
    let value = record.lines().find_map(|line| line.strip_prefix(&format!("{key}: ")));
    value.unwrap_or_else(|| panic!("no {key} in\n{record}")).to_owned()
}

/// Somebody else takes the claim over: a child of its tip, with a token of its own.
fn take_over(remote: &Remote, name: &str, reason: &str) -> String {
    let (tip, tree) = (remote.tip(name).unwrap(), remote.git_input(&["mktree"], ""));
    let message = format!(
        "claim {name} by Bob Example\n\nClaim: {name}\nClaim-Format: 1\nClaimed-By: Bob Example <bob@example.com>\n\
         Claimed-On: laptop\nClaimed-At: 2027-01-02T03:04:05Z\nClaim-Token: {}\nTook-Over: {tip} somebody\n\
         Reason: {reason}\n",
        "b0".repeat(16)
    );
    let who = ["-c", "user.name=Bob", "-c", "user.email=bob@example.com"];
    let args = [&who[..], &["commit-tree", "-p", &tip, &tree]].concat();
    let id = remote.git_input(&args, &message);
    remote.git(&["update-ref", &format!("refs/claims/{name}"), &id, &tip]);
    id
}

/// As many renewals as the holder would have made in days, with `note` in each.
fn renew(remote: &Remote, name: &str, times: usize, note: &str) {
    let tip = remote.tip(name).unwrap();
    let record = remote.git(&["log", "-1", "--format=%B", &tip]);
    let (subject, trailers) = record.trim_end().split_once("\n\n").unwrap();
    let kept: Vec<&str> =
        trailers.lines().filter(|line| !line.starts_with("Renewed-At: ")).collect();
    let mut stream = String::new();
    for number in 0..times {
        let at = format!(
            "2026-12-{:02}T{:02}:{:02}:00Z",
            1 + number / 1440,
            number / 60 % 24,
            number % 60
        );
        let message = format!("{subject}\n\n{note}\n\n{}\nRenewed-At: {at}\n", kept.join("\n"));
        let seconds = 1_796_083_200 + 60 * number;
        writeln!(
            stream,
            "commit refs/claims/{name}\ncommitter Alice Example <alice@example.com> {seconds} +0000\ndata {}\n{message}",
            message.len()
        )
        .unwrap();
        if number == 0 {
            writeln!(stream, "from {tip}").unwrap();
        }
    }
    remote.git_input(&["fast-import", "--quiet"], &stream);
}

on!(a_chain_is_told_from_its_beginning: path, reftable, sha256, daemon, ssh, ssh_v0, https, https_v0);
fn a_chain_is_told_from_its_beginning(kind: Kind) {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kind) else { return };
    let (alice, bob) = (sandbox.clone(&remote, "alice"), sandbox.clone(&remote, "bob"));
    let first = alice.claim(&["take", "42"]).is(0, "claimed").id();
    let host = trailer(&remote, "issue-42", "Claimed-On");
    let taken = format!("taken by Alice Example <alice@example.com> on {host}");
    assert_eq!(events(&bob.claim(&["show", "42"])), std::slice::from_ref(&taken));
    let mut tip = first.clone();
    for _ in 0..3 {
        tip = alice.claim(&["renew", "42"]).is(0, "renewed").id();
    }
    let before = [(&alice, snapshot(&alice.dir)), (&bob, snapshot(&bob.dir))];
    for clone in [&alice, &bob] {
        let told = events(&clone.claim(&["show", "42"]).is(0, "held issue-42"));
        assert!(told.len() == 2 && told[0] == taken, "{told:?}");
        assert!(told[1].starts_with("renewed (3 times since "), "{told:?}");
    }
    let last = take_over(&remote, "issue-42", "silent since Monday");
    for clone in [&alice, &bob] {
        let shown = clone.claim(&["show", "42"]).is(0, "held issue-42 by Bob Example");
        assert!(is_quiet(&shown), "{shown}");
        let told = told(&shown);
        assert_eq!(told.len(), 3, "{shown}");
        assert!(told[0].ends_with(&taken) && told[1].contains("renewed (3 times"), "{shown}");
        let from = format!(
            "from {} of Alice Example <alice@example.com>: silent since Monday",
            &tip[..12]
        );
        assert_eq!(
            told[2],
            format!(
                "2027-01-02 03:04:05 UTC  taken over by Bob Example <bob@example.com> on laptop, {from}"
            )
        );
    }
    let json = bob.run(&["show", "42"]).go_json();
    let claim = &json.json()["claims"][0];
    let told: Vec<_> = claim["history"].as_array().unwrap().iter().collect();
    assert!(claim["history_unread"].is_null() && told.len() == 3, "{json}");
    assert!(told[0]["event"] == "taken" && told[0]["id"] == *first, "{json}");
    assert!(
        told[1]["event"] == "renewed" && told[1]["times"] == 3 && told[1]["id"] == *tip,
        "{json}"
    );
    assert!(told[2]["event"] == "taken-over" && told[2]["id"] == *last, "{json}");
    assert!(told[2]["over"] == *tip && told[2]["reason"] == "silent since Monday", "{json}");
    assert!(told[2]["from"] == "Alice Example <alice@example.com>", "{json}");
    for (clone, before) in before {
        before.still_holds(&clone.dir);
    }
}

on!(the_program_s_own_acts_make_a_chain: path, ssh_v0, https);
/// Every act in its turn, by two people on a host where nothing is deleted.
fn the_program_s_own_acts_make_a_chain(kind: Kind) {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kind) else { return };
    let (alice, bob) = (sandbox.clone(&remote, "alice"), sandbox.clone(&remote, "bob"));
    bob.set("user.name", "Bob Example");
    bob.set("user.email", "bob@example.com");
    for clone in [&alice, &bob] {
        clone.set("claim.release", "mark");
    }
    let _ = alice.claim(&["take", "42"]).is(0, "claimed");
    let _ = alice.claim(&["release", "42"]).is(0, "released");
    let taken = bob.claim(&["take", "42"]).is(0, "claimed").id();
    let over =
        alice.claim(&["take", "42", "--over", &taken, "--reason", "agreed"]).is(0, "claimed").id();
    let _ = bob.claim(&["release", "42", "--expect", &over]).is(0, "released");
    let host = trailer(&remote, "issue-42", "Claimed-On");
    let (a, b) = ("Alice Example <alice@example.com>", "Bob Example <bob@example.com>");
    let shown = alice.claim(&["show", "42"]).is(3, "free issue-42");
    assert_eq!(
        events(&shown),
        [
            format!("taken by {a} on {host}"),
            format!("released by {a} on {host}"),
            format!("taken by {b} on {host}"),
            format!("taken over by {a} on {host}, from {} of {b}: agreed", &taken[..12]),
            format!("cleared by {b} on {host}, from {} of {a}", &over[..12]),
        ],
        "{shown}"
    );
}

/// What `args` cost on the wire through `proxy`.
fn bytes(clone: &Clone, proxy: &Proxy, args: &[&str], code: i32) -> (u64, Output) {
    let before = proxy.bytes();
    let output = clone.claim(args);
    assert_eq!(output.code, Some(code), "{output}");
    (proxy.bytes() - before, output)
}

/// Two thousand renewals are a hundred commits for who asks about them, and one for everybody else.
#[test]
fn a_deep_chain_costs_only_who_asks_for_it() {
    let sandbox = Sandbox::new();
    let Some(port) = servers::daemon(Daemon::Writable) else { return };
    let mut costs = Vec::new();
    for (name, times) in [("a.git", 1), ("b.git", 2000)] {
        let Some(remote) = sandbox.remote_named(name, kinds::path()) else { return };
        let proxy = Proxy::start(port, Mode::Count);
        let below_root = remote.dir.strip_prefix(servers::root()).unwrap().display();
        let url = format!("git://127.0.0.1:{}/{below_root}", proxy.port);
        let alice = sandbox.empty(&remote, &format!("alice-{name}"));
        let bob = sandbox.empty(&remote, &format!("bob-{name}"));
        let _ = alice.claim(&["take", "42", "--remote", &url]).is(0, "claimed");
        renew(&remote, "issue-42", times, "as before");
        let mut cost = Vec::new();
        for (clone, code, args) in [
            (&bob, 0, &["list", "--long"][..]),
            (&bob, 75, &["take", "42"]),
            (&alice, 0, &["verify", "42"]),
        ] {
            let args = [args, &["--remote", &url]].concat();
            cost.push((args[0].to_owned(), bytes(clone, &proxy, &args, code).0));
        }
        let connections = proxy.connections();
        let (shown, output) = bytes(&bob, &proxy, &["show", "42", "--remote", &url], 0);
        assert_eq!(proxy.connections(), connections + 1, "one connection for all of it");
        let told = events(&output);
        if times == 1 {
            assert!(told.len() == 2 && told[1] == "renewed", "{output}");
        } else {
            assert_eq!(
                told,
                ["(earlier ones not read)", "renewed (100 times since 07:40:00)"],
                "{output}"
            );
            assert!(shown < 64 * 1024, "{shown} bytes for the history");
        }
        costs.push(cost);
    }
    println!("with 1 and with 2000 renewals: {costs:?}");
    for (shallow, deep) in costs[0].iter().zip(&costs[1]) {
        assert!(shallow.1.abs_diff(deep.1) < 64, "{shallow:?} and {deep:?}");
    }
}

/// What a renewal costs, and what a clone keeps, does not depend on how many there were.
#[test]
fn the_thousandth_renewal_costs_what_the_first_did() {
    let sandbox = Sandbox::new();
    let Some(port) = servers::daemon(Daemon::Writable) else { return };
    let mut costs = Vec::new();
    for (name, times) in [("a.git", 1), ("b.git", 1000)] {
        let Some(remote) = sandbox.remote_named(name, kinds::path()) else { return };
        let proxy = Proxy::start(port, Mode::Count);
        let below_root = remote.dir.strip_prefix(servers::root()).unwrap().display();
        let url = format!("git://127.0.0.1:{}/{below_root}", proxy.port);
        let alice = sandbox.empty(&remote, &format!("alice-{name}"));
        alice.point_to(&url);
        let _ = alice.claim(&["take", "42"]).is(0, "claimed");
        renew(&remote, "issue-42", times, "as before");
        // The record is of the first commit; this one finds the last.
        let _ = alice.claim(&["renew", "42"]).is(0, "renewed");
        let mut cost = vec![bytes(&alice, &proxy, &["renew", "42"], 0).0];
        for _ in 0..20 {
            let _ = alice.claim(&["renew", "42"]).is(0, "renewed");
        }
        cost.push(bytes(&alice, &proxy, &["renew", "42"], 0).0);
        cost.push(bytes(&alice, &proxy, &["list", "--long"], 0).0);
        cost.push(alice.shell("find .git -type f | wc -l").go().ok().trim().parse().unwrap());
        cost.push(
            alice.shell("cat $(find .git -type f) | wc -c").go().ok().trim().parse().unwrap(),
        );
        costs.push(cost);
    }
    println!(
        "after 1 and after 1000: two renewals, a look, files and bytes of the clone: {costs:?}"
    );
    for (few, many) in costs[0].iter().zip(&costs[1]) {
        assert!(few.abs_diff(*many) < 64, "{costs:?}");
    }
    assert!(costs[0][0].abs_diff(costs[0][1]) < 64, "{costs:?}");
}

/// Whoever has a parent costs one exchange more, and whoever has none does not.
#[test]
fn a_fresh_claim_costs_no_further_exchange() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let (alice, bob) = (sandbox.clone(&remote, "alice"), sandbox.clone(&remote, "bob"));
    let fetches = || {
        let log = sandbox.path("packets");
        let _ = fs::remove_file(&log);
        assert_eq!(bob.run(&["show", "42"]).env("GIT_TRACE_PACKET", &log).go().code, Some(0));
        fs::read_to_string(log).unwrap().matches("< command=fetch").count()
    };
    let _ = alice.claim(&["take", "42"]).is(0, "claimed");
    assert_eq!(fetches(), 1);
    let _ = alice.claim(&["renew", "42"]).is(0, "renewed");
    assert_eq!(fetches(), 2);
}

on!(a_repacked_server_sends_deltas: path, sha256, daemon, ssh_v0, https, https_v0);
/// Commits that differ in a time are deltas of each other once the server has tidied up.
fn a_repacked_server_sends_deltas(kind: Kind) {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kind) else { return };
    let (alice, bob) = (sandbox.clone(&remote, "alice"), sandbox.clone(&remote, "bob"));
    let _ = alice.claim(&["take", "42"]).is(0, "claimed");
    // Text that does not compress: without it a delta saves nothing.
    let note: String =
        (0..60_u64).map(|n| format!("{:x} ", n.wrapping_mul(0x9e37_79b9_7f4a_7c15))).collect();
    renew(&remote, "issue-42", 40, &note);
    take_over(&remote, "issue-42", "tidied up");
    remote.git(&["-c", "pack.depth=50", "repack", "-adfq"]);
    let pack = fs::read_dir(remote.dir.join("objects/pack")).unwrap();
    let index = pack
        .map(|entry| entry.unwrap().path())
        .find(|path| path.extension().is_some_and(|it| it == "idx"));
    let packed = remote.git(&["verify-pack", "-v", index.unwrap().to_str().unwrap()]);
    let deltas = packed
        .lines()
        .filter(|line| line.contains(" commit ") && line.split_whitespace().count() == 7);
    assert!(deltas.count() > 10, "{packed}");
    let shown = bob.claim(&["show", "42"]).is(0, "held issue-42 by Bob Example");
    let told = events(&shown);
    assert!(told.len() == 3 && told[0].starts_with("taken by Alice"), "{shown}");
    assert_eq!(told[1], "renewed (40 times since 00:00:00)", "{shown}");
    assert!(told[2].ends_with(": tidied up"), "{shown}");
}

/// Answers a want of what no ref points at with an error, as some servers do.
const STRICT: &str = r#"exec perl -e '
    my $repository = $ARGV[-1];
    my %refs = map { $_ => 1 } split " ", `git -C "$repository" for-each-ref --format="%(objectname)"`;
    open(my $server, "|-", "git", "upload-pack", $repository) or die;
    binmode STDIN; binmode $server; select((select($server), $| = 1)[0]);
    sub hear { my ($n, $d) = (shift, ""); while ($n) { my $r = sysread(STDIN, $d, $n, length $d) or exit; $n -= $r } $d }
    while (1) {
        my $line = my $head = hear(4);
        $line .= hear(hex($head) - 4) if hex $head > 4;
        if ($line =~ /want ([0-9a-f]+)/ && !$refs{$1}) {
            my $said = "ERR want $1 not valid";
            syswrite(STDOUT, sprintf("%04x%s", 4 + length $said, $said));
            exit;
        }
        print $server $line;
    }
' -- "$@""#;

/// By the protocol wants can be anything.
#[test]
fn a_server_that_is_strict_about_wants_is_asked_for_the_tip() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let (alice, bob) = (sandbox.clone(&remote, "alice"), sandbox.clone(&remote, "bob"));
    let _ = alice.claim(&["take", "42"]).is(0, "claimed");
    renew(&remote, "issue-42", 2, "as before");
    let strict = sandbox.script("strict", STRICT);
    bob.set("remote.origin.uploadpack", strict.to_str().unwrap());
    let shown = bob.claim(&["show", "42"]).is(0, "held issue-42 by Alice Example");
    assert_eq!(events(&shown)[1..], ["renewed (2 times since 00:00:00)"], "{shown}");
}

/// A project of 300 commits, each with a file that does not compress.
fn grow(remote: &Remote) {
    let main = remote.git(&["rev-parse", "main"]);
    let (mut stream, mut state) = (String::new(), 7_u64);
    for number in 0..300 {
        let mut text = String::new();
        while text.len() < 48 * 1024 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            write!(text, "{state:016x}").unwrap();
        }
        writeln!(
            stream,
            "commit refs/heads/main\ncommitter Dev <d@example.com> {} +0000\ndata 4\nwork\n{}M 644 inline file-{number}\ndata {}\n{text}",
            1_764_000_000 + number,
            if number == 0 { format!("from {main}\n") } else { String::new() },
            text.len()
        )
        .unwrap();
    }
    remote.git_input(&["fast-import", "--quiet"], &stream);
}

on!(a_claim_by_hand_is_the_end_of_it: path, daemon, ssh_v0, https, https_v0);
/// Below a claim that was made by hand lies the project's history, which is nobody's claim.
fn a_claim_by_hand_is_the_end_of_it(kind: Kind) {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kind) else { return };
    grow(&remote);
    let hand = "Hanna Hand <hanna@example.com>";
    let args = ["-c", "user.name=Hanna Hand", "-c", "user.email=hanna@example.com"];
    let args = [&args[..], &["commit-tree", "-p", "main", "-m", "issue 42 is mine", "main^{tree}"]]
        .concat();
    let by_hand = remote.git(&args);
    remote.git(&["update-ref", "refs/claims/issue-42", &by_hand]);
    take_over(&remote, "issue-42", "no answer");
    // With the project at hand, with nothing, and from where there is a part of it.
    let part = sandbox.clone_with(&remote, "part", &["--depth=3", "--no-local"]);
    for clone in [sandbox.clone(&remote, "whole"), sandbox.empty(&remote, "empty"), part] {
        let before = snapshot(&clone.dir);
        let shown = clone.claim(&["show", "42"]).is(0, "held issue-42 by Bob Example");
        assert_eq!(
            events(&shown),
            [
                format!("made by hand by {hand}: issue 42 is mine"),
                format!(
                    "taken over by Bob Example <bob@example.com> on laptop, from {} of {hand}: no answer",
                    &by_hand[..12]
                ),
            ],
            "{shown}"
        );
        assert!(is_quiet(&shown), "{shown}");
        before.still_holds(&clone.dir);
    }
}

/// A server that cannot leave out trees would send them all along with the commits.
#[test]
fn the_project_is_not_pulled_along() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    grow(&remote);
    let main = remote.git(&["rev-parse", "main"]);
    remote.git(&["update-ref", "refs/claims/issue-42", &main]);
    take_over(&remote, "issue-42", "no answer");
    let clone = sandbox.empty(&remote, "a");
    // Behind pipes little is in flight when we hang up.
    let sent = sandbox.path("sent");
    let body = format!("git upload-pack \"$@\" | tee -a '{}'", sent.display());
    let counting = sandbox.script("counting", &body);
    clone.set("remote.origin.uploadpack", counting.to_str().unwrap());
    let shown = clone.claim(&["show", "42"]).is(0, "held issue-42 by Bob Example");
    assert_eq!(events(&shown).len(), 2, "{shown}");
    let sent = fs::metadata(sent).unwrap().len();
    println!("{sent} bytes");
    assert!(sent < 1024 * 1024, "{sent} bytes, of seven million");
}

/// The answer about the claim stands, whatever becomes of its history.
#[test]
fn a_history_that_cannot_be_read_is_said_in_a_line() {
    let sandbox = Sandbox::new();
    let Some(port) = servers::daemon(Daemon::Writable) else { return };
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let clone = sandbox.clone(&remote, "a");
    let proxy = Proxy::start(port, Mode::CutFetches);
    let below_root = remote.dir.strip_prefix(servers::root()).unwrap().display();
    let url = format!("git://127.0.0.1:{}/{below_root}", proxy.port);
    let _ = clone.claim(&["take", "42", "--remote", &url]).is(0, "claimed");
    let _ = clone.claim(&["renew", "42", "--remote", &url]).is(0, "renewed");
    let shown = clone.claim(&["show", "42", "--remote", &url]).is(0, "held issue-42 by Alice");
    let told = told(&shown);
    assert!(told.len() == 1 && told[0].starts_with("not read: "), "{shown}");
    let json = clone.run(&["show", "42", "--remote", &url]).go_json();
    let claim = &json.json()["claims"][0];
    assert!(json.code == Some(0) && claim["history"].is_null(), "{json}");
    assert!(claim["history_unread"].is_string(), "{json}");
    let verified = clone.run(&["verify", "42", "--remote", &url]).go_json();
    assert!(verified.json()["claims"][0]["history_unread"].is_null(), "{verified}");
}
