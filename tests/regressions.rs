//! Faults that were found by trying, each with the rule that it broke; a few rules that were tried and held stand beside
//! them, and say so.
//!
//! A fault that no test had thought of is likely to come back; what is here must not be weakened to let something pass.

use std::{
    fs,
    path::Path,
    process::Command,
    thread,
    time::{Duration, Instant},
};

use crate::support::{
    Clone, Kind, Output, Remote, Sandbox,
    hostile::{Hostile, Hostility},
    kinds, on,
    proxy::{Mode, Proxy},
    servers::{self, Daemon},
};

/// Waits until `done`, which a server or another process brings about; a test that waits in vain fails.
#[track_caller]
fn wait_until(what: &str, done: impl Fn() -> bool) {
    let started = Instant::now();
    while !done() {
        assert!(started.elapsed() < Duration::from_secs(20), "in vain: {what}");
        thread::sleep(Duration::from_millis(10));
    }
}

/// A line of a hook or a wrapper that goes on when `condition` holds, or after so long that the test has failed.
fn until(condition: &str) -> String {
    format!("n=0; until {condition} || test $n = 400; do sleep 0.05; n=$((n+1)); done")
}

/// Neither stream holds `word`.
#[track_caller]
fn never_says(output: &Output, word: &str) {
    assert!(
        !output.stdout.contains(word) && !output.stderr.contains(word),
        "`{word}` was said\n{output}"
    );
}

/// A full disk behind standard output ended in success, and the claim that was made was never told of.
#[test]
fn an_answer_that_cannot_be_written_is_no_success_and_is_told_elsewhere() {
    if !Path::new("/dev/full").exists() {
        return servers::skip("there is no /dev/full").unwrap_or_default();
    }
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let clone = sandbox.clone(&remote, "a");
    let unwritten = |command: &str| {
        let output = clone.shell(&format!("git-claim {command} >/dev/full")).go();
        assert_eq!(output.code, Some(1), "{output}");
        output
    };
    let taken = unwritten("take 1");
    let id = remote.tip("issue-1").expect("it was made");
    let _ = taken.says(&format!("claimed issue-1 {id}"));
    let taken = unwritten("take 2 --json");
    let _ = taken.says("\"verdict\":\"claimed\"").says(&remote.tip("issue-2").unwrap());
    let _ = unwritten("take 1").says("held issue-1 by Alice Example");
    let _ = unwritten("list").says("2 claims on origin");
    let _ = unwritten("list --json").says("\"verdict\":\"listed\"");
    let _ = unwritten("show 1").says("held issue-1 by Alice Example");
    let _ = unwritten("verify 1").says(&format!("yours issue-1 {id}"));
    let _ = unwritten("release 1").says(&format!("released issue-1 {id}"));
    assert_eq!(remote.tip("issue-1"), None);
    let _ = unwritten("man");
    let _ = unwritten("--help");
}

/// A program that asked for JSON got clap's prose, and nothing on standard output.
#[test]
fn a_wrong_command_line_is_told_in_json_too() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let clone = sandbox.clone(&remote, "a");
    for args in [
        &[][..],
        &["take"],
        &["take", "1 2"],
        &["release"],
        &["release", "1", "--all"],
        &["frobnicate"],
        &["list", "--color", "red"],
        &["take", "1", "--timeout", "soon"],
        &["take", "-x", "1"],
        &["take", "a/b"],
        &["release", "1", "--expect", "123456"],
    ] {
        let output = clone.run(args).go_json();
        assert_eq!(output.code, Some(2), "{output}");
        let json: serde_json::Value = match serde_json::from_str(&output.stdout) {
            Ok(json) => json,
            Err(error) => panic!("not one JSON value: {error}\n{output}"),
        };
        assert_eq!((&json["version"], &json["exit"]), (&1.into(), &2.into()), "{output}");
        assert_eq!(json["verdict"], "error", "{output}");
        assert_eq!(json["claims"], serde_json::json!([]), "{output}");
        assert!(json["reason"].as_str().is_some_and(|reason| !reason.is_empty()), "{output}");
        assert!(!output.stderr.is_empty(), "{output}");
    }
    assert_eq!(remote.witnessed(), Vec::<String>::new());
}

/// The list that could not be had was the one answer without a verdict, in text as in JSON.
#[track_caller]
fn cannot_list(clone: &Clone, url: &str, code: i32, verdict: &str) {
    for args in [&["list"][..], &["list", "--long"]] {
        let output = clone.claim(args).is(code, &format!("{verdict} claims"));
        assert_eq!(output.verdict(), format!("{verdict} claims"), "{output}");
        let output = clone.run(args).go_json();
        assert_eq!(output.code, Some(code), "{output}");
        let json = output.json();
        assert_eq!(json["verdict"], verdict, "{output}");
        assert_eq!(json["command"], "list", "{output}");
        assert_eq!(json["remote"], serde_json::json!({"name": "origin", "url": url}), "{output}");
        assert!(json["reason"].as_str().is_some_and(|reason| !reason.is_empty()), "{output}");
    }
}

#[test]
fn a_list_that_cannot_be_had_has_a_verdict() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let clone = sandbox.clone(&remote, "a");
    for url in ["/nonexistent/origin.git", "git://127.0.0.1:1/x", "https://127.0.0.1:1/x"] {
        clone.point_to(url);
        cannot_list(&clone, url, 69, "unknown");
    }
}

#[test]
fn a_list_that_is_refused_has_a_verdict() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::ssh()) else { return };
    let clone = sandbox.clone(&remote, "a");
    let stranger = &servers::sshd(true).unwrap().stranger;
    clone.set("core.sshCommand", &format!("ssh -F {stranger}"));
    cannot_list(&clone, &remote.url, 77, "refused");
    let Some(web) = servers::web() else { return };
    for status in [401, 403] {
        let url = format!("http://127.0.0.1:{}/status/{status}/origin.git", web.http);
        clone.point_to(&url);
        cannot_list(&clone, &url, 77, "refused");
    }
}

on!(a_take_that_reaches_nobody_does_not_say_whose_the_claim_is: path, daemon, ssh, https);
/// It said that the claim was not this clone's, which holds it.
fn a_take_that_reaches_nobody_does_not_say_whose_the_claim_is(kind: Kind) {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kind) else { return };
    let clone = sandbox.clone(&remote, "a");
    let _ = clone.claim(&["take", "60"]).is(0, "claimed issue-60 ");
    let away = remote.dir.with_extension("away");
    fs::rename(&remote.dir, &away).unwrap();
    let output = clone.claim(&["take", "60"]).is(69, "unknown issue-60").says("--resume");
    for word in ["not yours", "not hold", "isn't yours", "is free"] {
        never_says(&output, word);
    }
    let output = clone.run(&["take", "60"]).go_json();
    assert_eq!(output.json()["verdict"], "unknown", "{output}");
    fs::rename(&away, &remote.dir).unwrap();
    let _ = clone.claim(&["take", "60", "--resume"]).is(0, "claimed issue-60 ");
}

on!(an_id_that_was_named_and_has_moved_is_an_answer_of_its_own: path, daemon, https);
/// It said `lost`, to oneself, where one's own renewal had moved the id.
fn an_id_that_was_named_and_has_moved_is_an_answer_of_its_own(kind: Kind) {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kind) else { return };
    let clone = sandbox.clone(&remote, "a");
    let old = clone.claim(&["take", "9"]).is(0, "claimed issue-9 ").id();
    let new = clone.claim(&["renew", "9"]).is(0, "renewed issue-9 ").id();
    let seen = remote.witnessed().len();
    for old in [&old[..], &old[..12]] {
        let _ = clone
            .claim(&["release", "9", "--expect", old])
            .is(3, "moved issue-9 by Alice Example <alice@example.com> on ")
            .says(&new[..12])
            .says("needs no id: git claim release issue-9\n");
        let output = clone.run(&["release", "9", "--expect", old]).go_json();
        let json = output.json();
        assert_eq!((&json["verdict"], &json["exit"]), (&"moved".into(), &3.into()), "{output}");
        let claim = &json["claims"][0];
        assert_eq!(claim["verdict"], "moved", "{output}");
        assert_eq!((&claim["id"], &claim["mine"]), (&new[..].into(), &true.into()), "{output}");
    }
    assert_eq!(remote.tip("issue-9"), Some(new));
    assert_eq!(remote.witnessed().len(), seen, "the server was asked: {:?}", remote.witnessed());
    let _ = clone.claim(&["verify", "9"]).is(0, "yours issue-9 ");
    let _ = clone.claim(&["release", "9"]).is(0, "released issue-9 ");
}

/// It removed all records of the claim, and with them the proof of what another process had just won.
#[test]
fn a_release_leaves_the_record_of_another_take_alone() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let clone = sandbox.clone(&remote, "a");
    let old = clone.claim(&["take", "42"]).is(0, "claimed issue-42 ").id();
    // The second take is on record when the release looks, and it is won while the release is under way.
    let (began, done) = (sandbox.path("began"), sandbox.path("done"));
    let gone = until(&format!("test ! -e '{}/refs/claims/issue-42'", remote.dir.display()));
    let slow = sandbox.script(
        "slow-receive-pack",
        &format!("touch '{}'; {gone}; exec git-receive-pack \"$@\"", began.display()),
    );
    let over = until(&format!("test -e '{}'", done.display()));
    remote.hook(
        "post-receive",
        &format!("read old new ref; case $new in *[!0]*) ;; *) {over} ;; esac"),
    );
    let won = thread::scope(|scope| {
        let second = scope.spawn(|| {
            let setting = format!("remote.origin.receivepack={}", slow.display());
            let output = clone.run_git(&["-c", &setting, "claim", "take", "42"]).go();
            fs::write(&done, "").unwrap();
            output
        });
        wait_until("the second take begins", || began.exists());
        let _ = clone.claim(&["release", "42"]).is(0, "released issue-42 ");
        second.join().unwrap().is(0, "claimed issue-42 ").id()
    });
    assert!(won != old && remote.tip("issue-42") == Some(won.clone()));
    assert_eq!(clone.claim(&["verify", "42"]).is(0, "yours issue-42 ").id(), won);
    let _ = clone.claim(&["take", "42", "--resume"]).is(0, "claimed issue-42 ");
    let _ = clone.claim(&["release", "42"]).is(0, "released issue-42 ");
}

/// A release named the commit that it had set out to remove, and not the one that it found and removed.
#[test]
fn a_release_names_what_it_removed() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let clone = sandbox.clone(&remote, "a");
    let _ = clone.claim(&["take", "42"]).is(0, "claimed issue-42 ");
    let (began, done) = (sandbox.path("began"), sandbox.path("done"));
    let over = until(&format!("test -e '{}'", done.display()));
    let slow = sandbox.script(
        "slow-receive-pack",
        &format!("touch '{}'; {over}; exec git-receive-pack \"$@\"", began.display()),
    );
    thread::scope(|scope| {
        let release = scope.spawn(|| {
            let setting = format!("remote.origin.receivepack={}", slow.display());
            clone.run_git(&["-c", &setting, "claim", "release", "42"]).go()
        });
        wait_until("the release begins", || began.exists());
        let renewed = clone.claim(&["renew", "42"]).is(0, "renewed issue-42 ").id();
        fs::write(&done, "").unwrap();
        assert_eq!(release.join().unwrap().is(0, "released issue-42 ").id(), renewed);
    });
    assert_eq!(remote.tip("issue-42"), None);
}

/// A claim of `clone` with a record that is one renewal behind, as if the renewing process had been killed before
/// its last step; gives the tip.
#[track_caller]
fn one_renewal_behind(clone: &Clone) -> String {
    let _ = clone.claim(&["take", "42"]).is(0, "claimed issue-42 ");
    let [record] = &clone.records()[..] else { panic!("{:?}", clone.records()) };
    let behind = fs::read(record).unwrap();
    let tip = clone.claim(&["renew", "42"]).is(0, "renewed issue-42 ").id();
    // Written over, so that the folder stays the one that it is.
    fs::write(record, behind).unwrap();
    tip
}

/// Makes every record of `clone` one of a take whose end is not known.
fn make_pending(clone: &Clone) {
    for path in clone.records() {
        let mut record: serde_json::Value =
            serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        for key in ["tip", "commit"] {
            assert!(record[key].is_string(), "{record}");
            record[key] = serde_json::Value::Null;
        }
        fs::write(path, serde_json::to_vec(&record).unwrap()).unwrap();
    }
}

/// No verb can tell, none does anything, and none tells how to clear what may well be ours.
#[track_caller]
fn cannot_tell_whose(clone: &Clone, remote: &Remote, tip: &str) {
    let seen = remote.witnessed().len();
    for args in
        [&["verify", "42"][..], &["take", "42", "--resume"], &["release", "42"], &["renew", "42"]]
    {
        let output = clone.claim(args).is(69, "unknown issue-42");
        never_says(&output, "--expect");
        let output = clone.run(args).go_json();
        let json = output.json();
        assert_eq!((&json["verdict"], output.code), (&"unknown".into(), Some(69)), "{output}");
    }
    assert_eq!(remote.tip("issue-42").as_deref(), Some(tip));
    assert_eq!(remote.witnessed().len(), seen, "{:?}", remote.witnessed());
}

/// Refs could be read and records could not, and a claim of this clone was called another's.
#[test]
fn what_cannot_be_read_is_not_lost() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::daemon()) else { return };
    let clone = sandbox.clone(&remote, "a");
    let proxy = Proxy::start(servers::daemon(Daemon::Writable).unwrap(), Mode::CutFetches);
    let below_root = remote.dir.strip_prefix(servers::root()).unwrap().display();
    clone.point_to(&format!("git://127.0.0.1:{}/{below_root}", proxy.port));
    let tip = one_renewal_behind(&clone);
    cannot_tell_whose(&clone, &remote, &tip);
    make_pending(&clone);
    cannot_tell_whose(&clone, &remote, &tip);
    assert_eq!(clone.records().len(), 1, "the proof is kept");
}

/// The same where the server fails at packing, and a server that has recovered.
#[test]
fn what_could_not_be_read_is_still_ours_when_it_can() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let clone = sandbox.clone(&remote, "a");
    let tip = one_renewal_behind(&clone);
    let well = fs::read_to_string(sandbox.path("gitconfig")).unwrap();
    sandbox.configure("[uploadpack]\n\tpackObjectsHook = false\n");
    cannot_tell_whose(&clone, &remote, &tip);
    make_pending(&clone);
    cannot_tell_whose(&clone, &remote, &tip);
    fs::write(sandbox.path("gitconfig"), well).unwrap();
    assert_eq!(clone.claim(&["verify", "42"]).is(0, "yours issue-42 ").id(), tip);
    assert_eq!(clone.claim(&["take", "42", "--resume"]).is(0, "claimed issue-42 ").id(), tip);
    let _ = clone.claim(&["release", "42"]).is(0, "released issue-42 ");
    assert_eq!(remote.tip("issue-42"), None);
}

on!(a_symbolic_ref_is_not_deleted_through: path, reftable, daemon, ssh, https);
/// receive-pack deletes what a symbolic ref stands for: the branch was gone.
fn a_symbolic_ref_is_not_deleted_through(kind: Kind) {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kind) else { return };
    let clone = sandbox.clone(&remote, "a");
    remote.git(&["symbolic-ref", "refs/claims/issue-5", "refs/heads/main"]);
    let refs = remote.refs();
    let main = remote.git(&["rev-parse", "main"]);
    let _ = clone
        .claim(&["release", "5", "--expect", &main])
        .is(77, "refused issue-5")
        .says("refs/heads/main");
    let _ = clone.claim(&["release", "5"]).is(3, "lost issue-5");
    let _ = clone.claim(&["take", "5"]).is(75, "held issue-5");
    assert_eq!(remote.refs(), refs);
    assert_eq!(remote.witnessed(), Vec::<String>::new());
}

on!(what_is_hidden_from_writers_is_not_free: path, daemon);
/// The writing side hid the claim, the reading side was broken, and the sum of the two was `free`.
fn what_is_hidden_from_writers_is_not_free(kind: Kind) {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kind) else { return };
    let clone = sandbox.clone(&remote, "a");
    let tip = clone.claim(&["take", "42"]).is(0, "claimed issue-42 ").id();
    remote.set("receive.hideRefs", "refs/claims");
    let _ = clone
        .claim(&["release", "42"])
        .is(77, "refused issue-42")
        .says("issue-42 is NOT released and still yours");
    let _ = clone.claim(&["renew", "42"]).is(77, "refused issue-42");
    let _ = clone.claim(&["verify", "42"]).is(0, "yours issue-42 ");
    if kind.via == kinds::path().via {
        clone.set("remote.origin.uploadpack", "false");
        for verb in ["release", "renew", "verify", "show"] {
            let _ = clone.claim(&[verb, "42"]).is(69, "unknown issue-42");
        }
        clone.git(&["config", "--unset-all", "remote.origin.uploadpack"]);
    }
    assert_eq!(remote.tip("issue-42"), Some(tip));
    assert_eq!(remote.witnessed().len(), 1, "{:?}", remote.witnessed());
    remote.git(&["config", "--unset-all", "receive.hideRefs"]);
    let _ = clone.claim(&["release", "42"]).is(0, "released issue-42 ");
}

on!(what_is_hidden_from_readers_can_be_claimed_and_resumed: path, daemon, https);
/// The reading side shows no claims at all: what was taken could not be resumed, and was `free` to its own holder.
fn what_is_hidden_from_readers_can_be_claimed_and_resumed(kind: Kind) {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kind) else { return };
    let (clone, other) = (sandbox.clone(&remote, "a"), sandbox.clone(&remote, "b"));
    remote.set("uploadpack.hideRefs", "refs/claims");
    let tip = clone.claim(&["take", "42"]).is(0, "claimed issue-42 ").id();
    assert_eq!(remote.tip("issue-42"), Some(tip.clone()));
    let _ = other.claim(&["take", "42", "--resume"]).is(75, "held issue-42 by ");
    assert_eq!(clone.claim(&["verify", "42"]).is(0, "yours issue-42 ").id(), tip);
    assert_eq!(clone.claim(&["take", "42", "--resume"]).is(0, "claimed issue-42 ").id(), tip);
    let renewed = clone.claim(&["renew", "42"]).is(0, "renewed issue-42 ").id();
    assert_eq!(remote.tip("issue-42"), Some(renewed));
    let _ = clone.claim(&["release", "42"]).is(0, "released issue-42 ");
    assert_eq!(remote.tip("issue-42"), None);
}

/// What the remote has done was reported as a failure, because a file of ours could not be written after it.
#[test]
fn the_remotes_answer_stands_whatever_becomes_of_our_records() {
    let sandbox = Sandbox::new();
    // The server is no child of ours here, so that what binds us does not bind it.
    let Some(remote) = sandbox.remote(kinds::daemon()) else { return };
    let Some(bound) = servers::bound_by_modes() else { return };
    let clone = sandbox.clone(&remote, "a");
    let folder = clone.dir.join(".git/claims");
    let writable = |path: &Path, may: bool| {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(if may { 0o755 } else { 0o555 });
        fs::set_permissions(path, mode).unwrap();
    };

    // Nothing can be recorded, so nothing is asked for.
    writable(&clone.dir.join(".git"), false);
    let run = clone.shell(&format!("exec {bound} git-claim take 42")).without("GIT_TRACE");
    let output = run.go().says("nothing was claimed");
    assert_eq!(output.code, Some(1), "{output}");
    assert_eq!(remote.tip("issue-42"), None);
    assert_eq!(remote.witnessed(), Vec::<String>::new());
    writable(&clone.dir.join(".git"), true);
    assert!(!folder.exists());

    // The disk is full once the answer is there: a long record does not fit, the short one before the take did.
    let note = "long ".repeat(600);
    let on_a_full_disk = |command: &str| {
        let limited = format!("trap '' XFSZ; ulimit -f 2; exec git-claim {command}");
        clone.shell(&limited).without("GIT_TRACE").env("NOTE", &note).go()
    };
    let taken = on_a_full_disk("take 42 --note \"$NOTE\"").is(0, "claimed issue-42 ");
    assert_eq!(remote.tip("issue-42"), Some(taken.says("warning: ").id()));
    let renewed = on_a_full_disk("renew 42").is(0, "renewed issue-42 ");
    let tip = renewed.says("warning: ").id();
    assert_eq!(remote.tip("issue-42"), Some(tip.clone()));
    assert_eq!(clone.claim(&["verify", "42"]).is(0, "yours issue-42 ").id(), tip);

    // Read-only: what proves nothing any more stays.
    let [record] = &clone.records()[..] else { panic!("{:?}", clone.records()) };
    writable(record.parent().unwrap(), false);
    let read_only = |command: &str| {
        clone.shell(&format!("exec {bound} git-claim {command}")).without("GIT_TRACE").go()
    };
    let renewed = read_only("renew 42").is(0, "renewed issue-42 ").says("warning: ").id();
    assert_eq!(remote.tip("issue-42"), Some(renewed));
    let _ = read_only("verify 42").is(0, "yours issue-42 ");
    let _ = read_only("release 42").is(0, "released issue-42 ").says("warning: ");
    assert_eq!(remote.tip("issue-42"), None);
    let _ = read_only("verify 42").is(3, "free issue-42");
    let _ = read_only("release 42").is(3, "free issue-42");
    let output = read_only("take 42").says("nothing was claimed");
    assert_eq!((output.code, remote.tip("issue-42")), (Some(1), None), "{output}");
    writable(record.parent().unwrap(), true);
    let _ = clone.claim(&["take", "42"]).is(0, "claimed issue-42 ");
    let _ = clone.claim(&["release", "42"]).is(0, "released issue-42 ");
}

on!(a_claim_made_by_hand_is_readable_where_it_was_made: path, reftable, sha256, daemon, ssh, ssh_v0, https, https_v0);
/// Without a filter we name what we have, which was the claim itself, and the server then sent nothing.
fn a_claim_made_by_hand_is_readable_where_it_was_made(kind: Kind) {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kind) else { return };
    let clone = sandbox.clone(&remote, "a");
    clone.git(&["commit", "--quiet", "--allow-empty", "--message", "claim issue 42 by me"]);
    clone.git(&["push", "--quiet", "origin", "HEAD:refs/claims/issue-42"]);
    for args in [&["show", "42"][..], &["list", "--long"]] {
        let output = clone.claim(args);
        assert_eq!(output.code, Some(0), "{output}");
        for words in ["Alice Example", "claim issue 42 by me"] {
            assert!(output.stdout.contains(words), "{words}\n{output}");
        }
        never_says(&output, "not read");
    }
    let _ = clone.claim(&["take", "42"]).is(75, "held issue-42 by Alice Example");
    let output = clone.run(&["show", "42"]).go_json();
    assert_eq!(output.json()["claims"][0]["record"], "by-hand", "{output}");
}

/// Runs the program against a server that does not stop, with so many seconds to answer: it ends in time, knows
/// nothing, and stays small. Gives what it said.
#[track_caller]
fn outlasts(clone: &Clone, server: &Hostile, verb: &str, seconds: u64) -> Output {
    let script = format!(
        "git-claim {verb} --timeout {seconds}s --remote {} & pid=$!\n\
         while peak=$(grep VmHWM /proc/$pid/status 2>/dev/null); do echo \"$peak\" >peak; sleep 0.02; done\n\
         wait $pid",
        server.url
    );
    let started = Instant::now();
    let output = clone.shell(&script).go();
    let took = started.elapsed();
    assert!(took < Duration::from_secs(seconds + 5), "{took:?} for {seconds} s\n{output}");
    assert_eq!(output.code, Some(69), "{output}");
    if let Ok(peak) = fs::read_to_string(clone.dir.join("peak")) {
        let kilobytes = peak.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap();
        assert!(kilobytes < 100_000, "{kilobytes} kB for `{verb}`");
    }
    output
}

/// What it listed was kept for as long as it came, and the memory went with it.
#[test]
fn a_server_that_lists_without_an_end_is_left() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let clone = sandbox.clone(&remote, "a");
    // Long names take time enough to do harm; whoever counts what is kept hangs up long before.
    for (length, seconds) in [(1, 1), (900, 8), (60_000, 8)] {
        let server = Hostile::start(Hostility::EndlessRefs(length));
        let _ = outlasts(&clone, &server, "list", seconds).is(69, "unknown claims");
    }
    let server = Hostile::start(Hostility::EndlessRefs(900));
    let _ = outlasts(&clone, &server, "show 1", 1).is(69, "unknown issue-1");
}

/// A flood of progress went to standard error as it came, megabytes a second.
#[test]
fn a_server_that_talks_without_an_end_is_cut_short() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let clone = sandbox.clone(&remote, "a");
    let server = Hostile::start(Hostility::EndlessProgress);
    let output = outlasts(&clone, &server, "take 1", 1).is(69, "unknown issue-1");
    assert!(output.stderr.len() < 250_000, "{} bytes", output.stderr.len());
    assert!(output.stderr.contains("remote: ") && !output.stderr.contains('\x1b'), "{output}");
    // It may still land, for all that is known.
    assert_eq!(clone.records().len(), 1);
    let _ = output.says("--resume");
}

/// Only `ok` for our ref, once, is a yes. Tried on the whole program, and it held.
#[test]
fn a_report_about_something_else_is_no_answer() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let clone = sandbox.clone(&remote, "a");
    for lines in [
        &["unpack ok\n", "ok refs/claims/issue-10\n"][..],
        &["unpack ok\n", "ok refs/claims/issue-1\n", "ok refs/claims/issue-1\n"],
        &["unpack ok\n", "ok refs/claims/issue-1\n", "ng refs/claims/issue-1 no\n"],
    ] {
        let server = Hostile::start(Hostility::Report(lines));
        let output = clone.claim(&["take", "1", "--timeout", "5s", "--remote", &server.url]);
        let _ = output.is(69, "unknown issue-1").says("--resume");
    }
}

/// A refusal was shown and kept in all its words, tens of thousands of bytes.
#[test]
fn a_refusal_is_as_long_as_a_line() {
    const LONG: &str =
        concat!("ng refs/claims/issue-1 \x1b]0;pwn\x07\u{202e}", "no and no and no ");
    static ONE: std::sync::OnceLock<String> = std::sync::OnceLock::new();
    static ALL: std::sync::OnceLock<[&str; 2]> = std::sync::OnceLock::new();
    let line = ONE.get_or_init(|| format!("{LONG}{}\n", "and no ".repeat(8_000)));
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let clone = sandbox.clone(&remote, "a");
    let server = Hostile::start(Hostility::Report(ALL.get_or_init(|| ["unpack ok\n", line])));
    let output = clone.claim(&["take", "1", "--timeout", "5s", "--remote", &server.url]);
    let output = output.is(77, "refused issue-1").says("no and no");
    assert!(output.stderr.len() < 10_000, "{} bytes", output.stderr.len());
    assert!(!output.stderr.contains(['\x1b', '\x07', '\u{202e}']), "{output}");
}

/// Our own words left the credentials out, and git's, which we pass on, quoted them.
#[test]
fn credentials_are_not_told_in_anybodys_words() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let clone = sandbox.clone(&remote, "a");
    let mut told = Vec::new();
    for url in [
        "https::https://usr:S3CRET@127.0.0.1:1/x",
        "https://usr:S3CRET@127.0.0.1:1/x",
        "http::http://127.0.0.1:1/x?token=S3CRET",
        "http://127.0.0.1:1/x?token=S3CRET",
        "https://127.0.0.1:1/x?token=S3CRET",
    ] {
        clone.git(&["config", "remote.elsewhere.url", url]);
        for verb in ["take", "list", "verify", "release", "show", "renew"] {
            let args = if verb == "list" { vec![verb] } else { vec![verb, "1"] };
            // Typed as it is, and as a remote's URL, to people and to programs.
            let by =
                |remote| clone.run(&[&args[..], &["--timeout", "5s", "--remote", remote]].concat());
            let outputs = [by(url).go(), by("elsewhere").go(), by("elsewhere").go_json()];
            let _ = outputs[2].json();
            for output in outputs {
                assert!(!matches!(output.code, Some(0 | 75)), "{output}");
                if output.stdout.contains("S3CRET") || output.stderr.contains("S3CRET") {
                    told.push(output.to_string());
                }
            }
        }
    }
    assert!(told.is_empty(), "{} times, such as\n{}", told.len(), told[0]);
    for path in clone.records() {
        assert!(!fs::read_to_string(&path).unwrap().contains("S3CRET"), "{}", path.display());
    }
}

/// To find out what kind of ssh a command is, it is run once more, and that had no limit.
#[test]
fn the_question_after_the_kind_of_ssh_has_a_deadline_too() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let clone = sandbox.clone(&remote, "a");
    clone.point_to("ssh://example.invalid/origin.git");
    let script = sandbox.script("slow-ssh", "sleep 15");
    for verb in ["take", "verify"] {
        let started = Instant::now();
        let run = clone.run(&[verb, "42", "--timeout", "1s"]).env("GIT_SSH_COMMAND", &script);
        let output = run.go().is(69, "unknown issue-42");
        let took = started.elapsed();
        assert!(took < Duration::from_secs(6), "{took:?} for a second\n{output}");
    }
    assert_eq!(sandbox.left_running(), Vec::<String>::new());
}

on!(a_take_that_was_killed_is_found_out_about: path, daemon, ssh, https);
/// Killed between the command and its answer: whatever became of it, the next step knows. `release --all` failed
/// because of a take that had not landed.
fn a_take_that_was_killed_is_found_out_about(kind: Kind) {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kind) else { return };
    let (clone, other) = (sandbox.clone(&remote, "a"), sandbox.clone(&remote, "b"));
    let _ = other.claim(&["take", "99"]).is(0, "claimed issue-99 ");
    let at = |name: &str| sandbox.path(name).to_str().unwrap().to_owned();
    let (began, go, ended) = (at("began"), at("go"), at("ended"));
    remote.hook(
        "pre-receive",
        &format!(
            "read old new ref; touch '{began}'; {}; touch '{ended}'; test $ref != refs/claims/issue-43",
            until(&format!("test -e '{go}'"))
        ),
    );
    for name in ["42", "43", "44"] {
        let killed = clone.shell(&format!(
            "git-claim take {name} & pid=$!; {}; kill -KILL $pid; wait $pid",
            until(&format!("test -e '{began}'"))
        ));
        let killed = killed.go();
        assert_eq!(killed.code, Some(137), "{killed}");
        assert_eq!(remote.tip(&format!("issue-{name}")), None);
        fs::write(&go, "").unwrap();
        wait_until("the hook ends", || Path::new(&ended).exists());
        if name != "43" {
            wait_until("the server goes on alone", || {
                remote.tip(&format!("issue-{name}")).is_some()
            });
        }
        for path in [&began, &go, &ended] {
            fs::remove_file(path).unwrap();
        }
    }
    remote.unhook("pre-receive");
    let landed = remote.tip("issue-42");
    assert_eq!(Some(clone.claim(&["verify", "42"]).is(0, "yours issue-42 ").id()), landed);
    let resumed = clone.claim(&["take", "42", "--resume"]).is(0, "claimed issue-42 ");
    assert_eq!(Some(resumed.id()), landed);
    let _ = clone.claim(&["verify", "43"]).is(3, "free issue-43");
    assert_eq!(remote.tip("issue-43"), None);

    // 44 landed as well, and nobody has asked since.
    let left = || remote.git(&["for-each-ref", "--format=%(refname)", "refs/claims"]);
    let all = clone.claim(&["release", "--all"]);
    assert_eq!(all.code, Some(0), "{all}");
    for name in ["issue-42", "issue-44"] {
        assert!(all.stdout.contains(&format!("released {name} ")), "{all}");
    }
    assert_eq!(left(), "refs/claims/issue-99");
    // What did not land can be taken as if nothing had been.
    let _ = clone.claim(&["take", "43", "--resume"]).is(0, "claimed issue-43 ");
    let _ = clone.claim(&["release", "--all"]).is(0, "released issue-43 ");
    assert_eq!(left(), "refs/claims/issue-99");
}

/// The same with takes that are killed at any moment, before, while and after they are sent.
#[test]
fn release_all_lets_go_of_what_a_killed_take_left() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let clone = sandbox.clone(&remote, "a");
    for number in 1..=12 {
        let delay = f64::from(number) * 0.004;
        let killed =
            format!("git-claim take {number} & pid=$!; sleep {delay}; kill -KILL $pid; wait $pid");
        let _ = clone.shell(&killed).without("GIT_TRACE").go();
    }
    assert_eq!(sandbox.left_running(), Vec::<String>::new(), "every server is done");
    for number in 1..=12 {
        let (name, number) = (format!("issue-{number}"), number.to_string());
        let output = clone.claim(&["verify", &number]);
        match remote.tip(&name) {
            Some(tip) => assert_eq!(output.is(0, "yours ").id(), tip),
            None => drop(output.is(3, "free ")),
        }
    }
    let all = clone.claim(&["release", "--all"]);
    assert_eq!(all.code, Some(0), "{all}");
    assert_eq!(remote.git(&["for-each-ref", "refs/claims"]), "");
    let _ = clone.claim(&["release", "--all"]).is(0, "released 0 claims on origin");
}

/// What a successful run shows on a terminal while it works; its standard output goes elsewhere.
#[track_caller]
fn at_a_terminal(clone: &Clone, command: &str) -> String {
    let inside = format!("stty cols 100 rows 25; exec git-claim {command} >answer");
    let run = clone.shell("exec script -qec \"$INSIDE\" /dev/null");
    run.env("INSIDE", inside).env("TERM", "xterm").env("SHELL", "/bin/sh").go().ok()
}

fn has_script() -> Option<()> {
    let version = Command::new("script").arg("--version").output();
    let text = version.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    if text.is_ok_and(|text| text.contains("util-linux")) {
        Some(())
    } else {
        servers::skip("there is no script(1) of util-linux")
    }
}

on!(something_moves_where_nobody_is_asked_anything: path);
/// The spinner, as a person sees it. Tried, and it held.
fn something_moves_where_nobody_is_asked_anything(kind: Kind) {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kind) else { return };
    if has_script().is_none() {
        return;
    }
    let clone = sandbox.clone(&remote, "a");
    remote.hook("pre-receive", "sleep 1");
    let shown = at_a_terminal(&clone, "take 42");
    assert!(shown.matches("asking ").count() >= 3, "nothing moves: {shown:?}");
    let after = &shown[shown.rfind("asking ").unwrap()..];
    assert!(after.contains("\x1b[2K") || after.contains("\x1b[K"), "it stays: {shown:?}");

    assert_eq!(at_a_terminal(&clone, "take 43 -q"), "");
    remote.unhook("pre-receive");
    assert_eq!(
        at_a_terminal(&clone, "take 44"),
        "",
        "before half a second there is nothing to see"
    );
}

/// A password prompt must not be drawn over. Tried, and it held.
#[test]
fn nothing_moves_where_ssh_may_ask() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::ssh()) else { return };
    if has_script().is_none() {
        return;
    }
    let clone = sandbox.clone(&remote, "a");
    remote.hook("pre-receive", "sleep 1");
    let shown = at_a_terminal(&clone, "take 42");
    assert_eq!(shown.trim_end(), format!("asking {}", remote.url), "{shown:?}");
}

on!(nothing_moves_where_there_is_no_terminal: path, ssh);
/// A log is no place for a spinner. Tried, and it held.
fn nothing_moves_where_there_is_no_terminal(kind: Kind) {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kind) else { return };
    let clone = sandbox.clone(&remote, "a");
    remote.hook("pre-receive", "sleep 1");
    let output = clone.run(&["take", "42"]).env("TERM", "xterm").go().is(0, "claimed issue-42 ");
    assert_eq!(output.stderr, "", "{output}");
}

on!(a_renewal_at_the_second_try_is_reported_with_its_own_id: path, daemon, https);
/// A passing refusal had the tip read, and the report kept the id of what was read then. The history of the fault lab found it.
fn a_renewal_at_the_second_try_is_reported_with_its_own_id(kind: Kind) {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kind) else { return };
    let clone = sandbox.clone(&remote, "a");
    let taken = clone.claim(&["take", "42"]).is(0, "claimed issue-42 ").id();
    // Once, as where another push holds the lock.
    let refuses_once = "test \"$1\" = prepared && test ! -e \"$GIT_DIR/once\" || exit 0\n: >\"$GIT_DIR/once\"; exit 1";
    remote.hook("reference-transaction", refuses_once);
    let renewed = clone.run(&["renew", "42"]).go_json().is(0, "{").json();
    assert!(remote.dir.join("once").exists(), "it was not tried twice");
    let tip = remote.tip("issue-42").unwrap();
    assert_ne!(tip, taken);
    assert_eq!(renewed["claims"][0]["id"], tip);
}
