//! Servers and circumstances that are rare and legal: each of these made an answer wrong, or hid one, when it was tried.

use std::{fs, thread, time::Duration};

use crate::support::{Kind, Sandbox, kinds, on};

/// A `proc-receive` hook that does nothing, and says this, in perl, of the refs that it was given.
fn proc_receive(says: &str) -> String {
    format!(
        r#"exec perl -e '
    $| = 1;
    sub hear {{ read(STDIN, my $l, 4) == 4 or exit; my $n = hex $l; $n or return; read(STDIN, my $d, $n - 4); $d }}
    sub say_ {{ printf "%04x%s", length($_[0]) + 4, $_[0] }}
    hear(); hear();
    say_("version=1\n\0"); print "0000";
    my @refs;
    while (defined(my $line = hear())) {{ push @refs, (split " ", $line)[2] }}
    {says}
    print "0000";
'"#
    )
}

/// That it was done, and that the commit was put elsewhere.
const ELSEWHERE: &str = r#"for (@refs) { say_("ok $_\n"); say_("option refname refs/pulls/1\n") }"#;

on!(an_ok_for_another_ref_is_no_claim: path, daemon, https);
/// The server said `ok`, and in an option that it meant another ref: two clones both believed to have won.
fn an_ok_for_another_ref_is_no_claim(kind: Kind) {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kind) else { return };
    remote.set("receive.procReceiveRefs", "refs/claims");
    remote.hook("proc-receive", &proc_receive(ELSEWHERE));
    for name in ["a", "b"] {
        let clone = sandbox.clone(&remote, name);
        let _ = clone.claim(&["take", "42"]).is(77, "refused issue-42").says("refs/pulls/1");
        let _ = clone.claim(&["verify", "42"]).is(3, "free issue-42");
    }
    assert_eq!(remote.tip("issue-42"), None);
}

/// That it was done.
const NOWHERE: &str = r#"say_("ok $_\n") for @refs;"#;

on!(an_ok_for_what_was_not_done_is_seen_through: path, daemon, https);
/// Without `--confirm` the server is believed; nothing in its answer says that it lies.
fn an_ok_for_what_was_not_done_is_seen_through(kind: Kind) {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kind) else { return };
    let clone = sandbox.clone(&remote, "a");
    let held = clone.claim(&["take", "7", "--confirm"]).is(0, "claimed issue-7 ").id();
    remote.set("receive.procReceiveRefs", "refs/claims");
    remote.hook("proc-receive", &proc_receive(NOWHERE));
    let over = clone.claim(&["take", "7", "--over", &held, "--reason", "old", "--confirm"]);
    let _ = over.is(69, "unknown issue-7").says("is not there").says("--resume");
    for args in [&["take", "42"][..], &["take", "4", "5"], &["take", "4", "5", "--any"]] {
        let take = clone.claim(&[args, &["--confirm"]].concat()).says("is not there");
        assert_eq!(take.code, Some(69), "{take}");
        assert!(take.stdout.contains("unknown issue-4") && !take.stdout.contains("claimed"));
    }
    let run = clone.claim(&["run", "42", "--confirm", "--", "touch", "started"]);
    assert_eq!(run.code, Some(69), "{run}");
    assert!(!clone.dir.join("started").exists());
    clone.set("claim.confirm", "true");
    let _ = clone.claim(&["take", "42"]).is(69, "unknown issue-42");
    assert_eq!(remote.tip("issue-42"), None);
    // Once the remote keeps its word, so does what was begun.
    remote.unhook("proc-receive");
    remote.git(&["config", "--unset", "receive.procReceiveRefs"]);
    let id = clone.claim(&["take", "42", "--resume"]).is(0, "claimed issue-42 ").id();
    assert_eq!(remote.tip("issue-42"), Some(id));
}

/// The word of the writing side is enough.
#[test]
fn a_claim_that_readers_are_not_shown_is_confirmed() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let clone = sandbox.clone(&remote, "a");
    let (take, reads, writes) = clone.counted(&["take", "42", "--confirm"], "");
    let _ = take.is(0, "claimed issue-42 ");
    assert_eq!((reads, writes), (1, 1));
    remote.set("uploadpack.hideRefs", "refs/claims");
    let id = clone.claim(&["take", "43", "--confirm"]).is(0, "claimed issue-43 ").id();
    assert_eq!(remote.tip("issue-43"), Some(id));
}

on!(a_chain_of_renewals_goes_on: path, daemon, ssh, https, https_v0, https_sha256);
/// git's client side wants to see the parents of the commit to be replaced: over https a second renewal failed.
fn a_chain_of_renewals_goes_on(kind: Kind) {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kind) else { return };
    let clone = sandbox.clone(&remote, "a");
    let mut tip = clone.claim(&["take", "42"]).is(0, "claimed issue-42 ").id();
    for _ in 0..3 {
        let renewed = clone.claim(&["renew", "42"]).is(0, "renewed issue-42 ").id();
        assert_eq!(remote.tip("issue-42"), Some(renewed.clone()));
        assert_eq!(remote.git(&["rev-parse", &format!("{renewed}^")]).trim(), tip);
        tip = renewed;
    }
    let _ = clone.claim(&["release", "42"]).is(0, "released issue-42 ");
}

/// Of `<helper>::<address>` the helper was given the whole, and no such remote worked.
#[test]
fn a_helper_is_given_its_address() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let clone = sandbox.clone(&remote, "a");
    let url = clone.git(&["remote", "get-url", "origin"]);
    clone.git(&["remote", "set-url", "origin", &format!("ext::git %s {}", url.trim())]);
    let _ = clone.claim(&["take", "42"]).is(2, "");
    clone.set("protocol.ext.allow", "always");
    let id = clone.claim(&["take", "42"]).is(0, "claimed issue-42 ").id();
    assert_eq!(remote.tip("issue-42"), Some(id));
    let _ = clone.claim(&["renew", "42"]).is(0, "renewed issue-42 ");
    let _ = clone.claim(&["verify", "42"]).is(0, "yours issue-42 ");
    let _ = clone.claim(&["release", "42"]).is(0, "released issue-42 ");
}

/// Without a terminal a child has a process group of its own, which a signal to ours left running.
#[test]
fn a_signal_takes_the_children_along() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let clone = sandbox.clone(&remote, "a");
    let script = sandbox.script("sleeping-ssh", "exec sleep 60");
    clone.git(&["remote", "set-url", "origin", "ssh://example.invalid/origin.git"]);
    for verb in ["take", "list"] {
        let name = if verb == "take" { "42" } else { "" };
        let line = format!("git-claim {verb} {name} & sleep 0.6; kill -TERM $!; wait $!; exit $?");
        let run = clone.shell(&line).env("GIT_SSH_COMMAND", &script).env("GIT_SSH_VARIANT", "ssh");
        assert_eq!(run.go().code, Some(143), "{verb}");
        thread::sleep(Duration::from_millis(200));
        assert_eq!(sandbox.left_running(), Vec::<String>::new(), "{verb}");
    }
}

/// A record that could not be read was passed over, and `release --all` said that there was nothing to release.
#[test]
fn releasing_all_tells_what_it_could_not_read() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let clone = sandbox.clone(&remote, "a");
    for name in ["4", "5"] {
        let _ = clone.claim(&["take", name]).is(0, "claimed");
    }
    let folder = fs::read_dir(clone.git_path("claims")).unwrap().flatten().next().unwrap().path();
    for file in fs::read_dir(folder).unwrap().flatten() {
        if file.file_name().to_string_lossy().starts_with("issue-4~") {
            fs::write(file.path(), "{\"version\": 1, \"ref\":").unwrap();
        }
    }
    let all = clone.claim(&["release", "--all"]);
    assert_eq!(all.code, Some(69), "{all}");
    assert!(
        all.stdout.contains("unknown issue-4") && all.stdout.contains("released issue-5 "),
        "{all}"
    );
    assert!(remote.tip("issue-4").is_some() && remote.tip("issue-5").is_none());

    let _ = clone.claim(&["take", "6"]).is(0, "claimed");
    sandbox.copy("a", "copy");
    let copied = sandbox.at("copy").claim(&["release", "--all"]).says("copy");
    assert!(remote.tip("issue-6").is_some(), "{copied}");
}

/// A release that never reached the ref said that the claim was still ours.
#[test]
fn what_was_not_read_is_not_said_to_be_yours() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let clone = sandbox.clone(&remote, "a");
    let _ = clone.claim(&["take", "42"]).is(0, "claimed");
    let denied = sandbox.script("denied", "echo 'Permission denied (publickey).' >&2; exit 255");
    let denied = denied.to_str().unwrap();
    clone.set("remote.origin.receivepack", denied);
    let release = clone.claim(&["release", "42"]).is(77, "refused issue-42");
    assert!(!release.stderr.contains("still yours"), "{release}");
}

/// One claim whose commit the server cannot hand out blanked the records of all others in the same request.
#[test]
fn a_bad_tip_hides_no_other_claim() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let (alice, bob) = (sandbox.clone(&remote, "alice"), sandbox.clone(&remote, "bob"));
    for name in ["1", "2", "3", "4", "5"] {
        let _ = alice.claim(&["take", name, "--note", &format!("note of {name}")]).is(0, "claimed");
    }
    let broken = remote.tip("issue-3").unwrap();
    let object = remote.dir.join("objects").join(&broken[..2]).join(&broken[2..]);
    fs::remove_file(object).unwrap();
    let list = bob.claim(&["list", "--long"]);
    for name in ["1", "2", "4", "5"] {
        assert!(list.stdout.contains(&format!("note of {name}")), "{list}");
    }
    assert!(!list.stdout.contains("note of 3"), "{list}");
}

/// `list` took another claim on the very same commit for ours.
#[test]
fn mine_is_one_claim_and_not_whatever_points_there() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let clone = sandbox.clone(&remote, "a");
    let id = clone.claim(&["take", "7"]).is(0, "claimed").id();
    remote.git(&["update-ref", "refs/claims/other", &id]);
    let list = clone.claim(&["list", "--json"]).json();
    let mine = |name: &str| {
        let claims = list["claims"].as_array().unwrap();
        claims.iter().find(|claim| claim["name"] == name).unwrap()["mine"].clone()
    };
    assert_eq!((mine("issue-7"), mine("other")), (true.into(), false.into()));
}

/// Over https a clone of another hash than the server's failed with words about refspecs, as if something had been sent.
#[test]
fn two_hashes_are_told_apart_before_anything_is_sent() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::https_sha256()) else { return };
    let clone = sandbox.empty(&remote, "a");
    let hash = clone.git(&["rev-parse", "--show-object-format"]);
    let take = clone.claim(&["take", "42"]);
    if hash.trim() == "sha1" {
        let take = take.is(69, "unknown issue-42").says("sha256").says("nothing was claimed");
        assert!(!take.stderr.contains("refspec"), "{take}");
    } else {
        let _ = take.is(0, "claimed issue-42 ");
    }
}
