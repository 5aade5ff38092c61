//! What can go wrong between a clone and a server, provoked on real servers.
//!
//! For each fault: the right verdict and exit code, nothing changed that should not be, and the server's own words on
//! standard error where it has any. Three answers, never two: a fault is never "free" and never "held".

use std::fs;

use crate::support::{
    Clone, Kind, Remote, Sandbox, kinds, on,
    proxy::{Proxy, Silent},
    servers::{self, Daemon},
    snapshot,
};

/// Runs a verb that must not get anywhere: the verdict is as given, and neither side was touched.
#[track_caller]
fn in_vain(clone: &Clone, remote: &Remote, args: &[&str], code: i32, words: &[&str]) {
    let verdict = if code == 77 { "refused issue-42" } else { "unknown issue-42" };
    let (refs, state) = (remote.refs(), snapshot(&clone.dir));
    let mut output = clone.claim(args).is(code, verdict);
    for words in words {
        output = output.says(words);
    }
    assert_eq!(remote.refs(), refs, "{output}");
    state.still_holds(&clone.dir);
}

/// A claim that could not be made is not held afterwards: nothing is left that says so.
#[track_caller]
fn owns_nothing(clone: &Clone) {
    let _ = clone.claim(&["verify", "42"]).is(3, "free issue-42");
    let _ = clone.claim(&["release", "42"]).is(3, "free issue-42");
}

on!(the_repository_is_not_there: path, file_url, daemon, ssh, https);
fn the_repository_is_not_there(kind: Kind) {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kind) else { return };
    let clone = sandbox.clone(&remote, "a");
    clone.point_to(&remote.url.replace("origin.git", "nowhere.git"));
    for args in [
        &["take", "42"][..],
        &["release", "42", "--expect", "0123456"],
        &["verify", "42"],
        &["show", "42"],
    ] {
        in_vain(&clone, &remote, args, 69, &[]);
    }
    let listed = clone.claim(&["list"]);
    assert_eq!(listed.code, Some(69), "{listed}");
}

/// Port 1 of the loopback interface: nobody listens there.
#[test]
fn the_port_is_closed() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let clone = sandbox.clone(&remote, "a");
    for scheme in ["git", "ssh", "http", "https"] {
        clone.point_to(&format!("{scheme}://127.0.0.1:1/origin.git"));
        in_vain(&clone, &remote, &["take", "42"], 69, &[]);
        in_vain(&clone, &remote, &["verify", "42"], 69, &[]);
    }
}

/// Connections are accepted, and then there is silence. The deadline ends it, and the children with it.
#[test]
fn the_server_never_answers() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let clone = sandbox.clone(&remote, "a");
    let silent = Silent::start();
    for scheme in ["git", "ssh", "http", "https"] {
        clone.point_to(&format!("{scheme}://127.0.0.1:{}/origin.git", silent.port()));
        in_vain(&clone, &remote, &["take", "42", "--timeout", "1s"], 69, &[]);
        clone.set("claim.timeout", "1s");
        in_vain(&clone, &remote, &["verify", "42"], 69, &[]);
        clone.git(&["config", "--unset-all", "claim.timeout"]);
        assert_eq!(sandbox.left_running(), Vec::<String>::new(), "{scheme}");
    }
}

#[test]
fn an_ssh_that_never_answers_is_ended() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let clone = sandbox.clone(&remote, "a");
    let script = sandbox.script("sleeping-ssh", "exec sleep 60");
    clone.point_to("ssh://example.invalid/origin.git");
    let try_it = |variable: &str, value: &str| {
        for verb in ["take", "verify"] {
            let run = clone.run(&[verb, "42", "--timeout", "1s"]).env(variable, value);
            let _ = run.go().is(69, "unknown issue-42");
        }
        assert_eq!(sandbox.left_running(), Vec::<String>::new(), "{variable}");
    };
    let script = script.to_str().unwrap();
    try_it("GIT_SSH_COMMAND", script);
    try_it("GIT_SSH", script);
    clone.set("core.sshCommand", script);
    try_it("GIT_SSH_VARIANT", "ssh");
    try_it("UNRELATED", "");
    // A wrapper with a child that outlives it and holds our pipes: that is not waited for either.
    let wrapper = sandbox.script("wrapper", "sleep 20");
    let run = clone.run(&["take", "42", "--timeout", "1s"]).env("GIT_SSH", &wrapper);
    let _ = run.go().is(69, "unknown issue-42");
}

#[test]
fn the_ssh_key_is_not_known() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::ssh()) else { return };
    let clone = sandbox.clone(&remote, "a");
    let stranger = &servers::sshd(true).unwrap().stranger;
    clone.set("core.sshCommand", &format!("ssh -F {stranger}"));
    in_vain(&clone, &remote, &["take", "42"], 77, &["Permission denied"]);
    in_vain(&clone, &remote, &["verify", "42"], 77, &["Permission denied"]);
}

#[test]
fn the_web_server_answers_with_a_status_only() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::https()) else { return };
    let web = servers::web().unwrap();
    let clone = sandbox.clone(&remote, "a");
    for (port, scheme) in [(web.https, "https"), (web.http, "http")] {
        for (status, code) in [(401, 77), (403, 77), (429, 69), (500, 69), (503, 69)] {
            clone.point_to(&format!("{scheme}://127.0.0.1:{port}/status/{status}/origin.git"));
            in_vain(&clone, &remote, &["take", "42"], code, &[]);
            in_vain(&clone, &remote, &["verify", "42"], code, &[]);
            let listed = clone.claim(&["list"]);
            assert_eq!(listed.code, Some(code), "{status}: {listed}");
        }
    }
}

/// Reading is let in, and pushing is turned away at the door: a reader's token.
#[test]
fn the_web_server_lets_us_read_only() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::https()) else { return };
    let clone = sandbox.clone(&remote, "a");
    let writable = remote.url.clone();
    clone.point_to(&writable.replace("/auth/", "/reader/"));
    in_vain(&clone, &remote, &["take", "42"], 77, &["403"]);
    owns_nothing(&clone);
    let _ = clone.claim(&["take", "42", "--remote", &writable]).is(0, "claimed");
    in_vain(
        &clone,
        &remote,
        &["release", "42", "--expect", &remote.tip("issue-42").unwrap()],
        77,
        &["403"],
    );
}

on!(the_server_cannot_write: path, https);
/// A server process that may not write the repository.
fn the_server_cannot_write(kind: Kind) {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kind) else { return };
    let Some(nobody) = servers::as_nobody() else { return };
    let clone = sandbox.clone(&remote, "a");
    let writable = remote.url.clone();
    if kind.via == kinds::https().via {
        clone.point_to(&writable.replace("/auth/", "/frozen/"));
    } else {
        // By path the server is a process of ours, found on our PATH.
        sandbox.configure("[safe]\n\tdirectory = *\n");
        let (path, nobody) = (std::env::var("PATH").unwrap(), nobody.join(" "));
        fs::create_dir(sandbox.path("shims")).unwrap();
        for (program, wanted) in [("git", "receive-pack"), ("git-receive-pack", "*")] {
            let body = format!(
                "PATH='{path}'\nexport PATH\ncase $1 in {wanted}) exec {nobody} {program} \"$@\" ;; \
                 *) exec {program} \"$@\" ;; esac"
            );
            fs::rename(sandbox.script("shim", &body), sandbox.path("shims").join(program)).unwrap();
        }
    }
    let path = format!("{}:{}", sandbox.path("shims").display(), std::env::var("PATH").unwrap());
    let try_it = |args: &[&str], words: &str| {
        let state = (remote.refs(), snapshot(&clone.dir));
        let output = clone.run(args).env("PATH", &path).go();
        let _ = output.is(77, "refused issue-42").says(words);
        assert_eq!(remote.refs(), state.0);
        state.1.still_holds(&clone.dir);
    };
    try_it(&["take", "42"], "unable to create temporary object directory");
    owns_nothing(&clone);
    let _ = clone.claim(&["take", "42", "--remote", &writable]).is(0, "claimed");
    try_it(&["release", "42", "--expect", &remote.tip("issue-42").unwrap()], "remote: ");
}

#[test]
fn receive_pack_is_switched_off_in_the_daemon() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let Some(port) = servers::daemon(Daemon::ReadOnly) else { return };
    let clone = sandbox.clone(&remote, "a");
    let below_root = remote.dir.strip_prefix(servers::root()).unwrap().display();
    clone.point_to(&format!("git://127.0.0.1:{port}/{below_root}"));
    in_vain(&clone, &remote, &["take", "42"], 77, &["service not enabled"]);
    owns_nothing(&clone);
}

#[test]
fn receive_pack_is_switched_off_over_https() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::https()) else { return };
    let clone = sandbox.clone(&remote, "a");
    remote.set("http.receivepack", "false");
    in_vain(&clone, &remote, &["take", "42"], 77, &["403"]);
    owns_nothing(&clone);
}

on!(a_hook_says_no: path, reftable, sha256, daemon, ssh, ssh_v0, https, https_v0);
fn a_hook_says_no(kind: Kind) {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kind) else { return };
    let clone = sandbox.clone(&remote, "a");
    for hook in ["update", "pre-receive"] {
        remote.hook(hook, "echo 'no claims on fridays' >&2; exit 1");
        in_vain(
            &clone,
            &remote,
            &["take", "42"],
            77,
            &["remote: no claims on fridays", "hook declined"],
        );
        remote.unhook(hook);
        owns_nothing(&clone);
    }
    let _ = clone.claim(&["take", "42"]).is(0, "claimed");
    for hook in ["update", "pre-receive"] {
        remote.hook(hook, "echo 'claims stay here' >&2; exit 1");
        for verb in ["release", "renew"] {
            in_vain(&clone, &remote, &[verb, "42"], 77, &["remote: claims stay here"]);
        }
        remote.unhook(hook);
        let _ = clone.claim(&["verify", "42"]).is(0, "yours");
    }
    let _ = clone.claim(&["release", "42"]).is(0, "released");
}

on!(deletions_are_forbidden: path, daemon, ssh, https);
/// The holder may come and the holder may go; here it may only come.
fn deletions_are_forbidden(kind: Kind) {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kind) else { return };
    let clone = sandbox.clone(&remote, "a");
    remote.hook(
        "update",
        "case $3 in *[!0]*) ;; *) echo 'nothing is ever deleted' >&2; exit 1 ;; esac",
    );
    let _ = clone.claim(&["take", "42"]).is(0, "claimed");
    in_vain(&clone, &remote, &["release", "42"], 77, &["remote: nothing is ever deleted"]);
    let _ = clone.claim(&["verify", "42"]).is(0, "yours");
    let _ = clone.claim(&["renew", "42"]).is(0, "renewed");
}

/// `receive.denyDeletes` knows branches only, and so it bites where claims must be branches.
#[test]
fn deletions_of_branches_are_forbidden() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let clone = sandbox.clone(&remote, "a");
    remote.set("receive.denyDeletes", "true");
    clone.set("claim.prefix", "refs/heads/claims/");
    let _ = clone.claim(&["take", "42"]).is(0, "claimed");
    in_vain(&clone, &remote, &["release", "42"], 77, &["deletion prohibited"]);
    let _ = clone.claim(&["verify", "42"]).is(0, "yours");
}

on!(the_namespace_is_hidden: path, daemon, https);
fn the_namespace_is_hidden(kind: Kind) {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kind) else { return };
    let clone = sandbox.clone(&remote, "a");
    remote.set("receive.hideRefs", "refs/claims");
    in_vain(&clone, &remote, &["take", "42"], 77, &["hidden ref"]);
    owns_nothing(&clone);
    // Also for reading: there may be a claim, and nobody can tell us.
    remote.set("transfer.hideRefs", "refs/claims");
    in_vain(&clone, &remote, &["take", "42"], 77, &["hidden ref"]);
    remote.plant("refs/claims/issue-42", "Rita Rival <rita@example.com>", "claim issue 42 by me\n");
    in_vain(&clone, &remote, &["take", "42"], 77, &["hidden ref"]);
}

on!(the_server_dies_before_the_commit_of_the_ref: path, reftable, daemon, ssh, https);
/// Nothing landed, and no line came back: it could still have, for all we know.
fn the_server_dies_before_the_commit_of_the_ref(kind: Kind) {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kind) else { return };
    let clone = sandbox.clone(&remote, "a");
    remote.hook("reference-transaction", "cat >/dev/null; test $1 != prepared");
    in_vain(&clone, &remote, &["take", "42"], 69, &[]);
    remote.unhook("reference-transaction");
    // It did not land, and the next step finds that out.
    let _ = clone.claim(&["take", "42", "--resume"]).is(0, "claimed");
    remote.hook("reference-transaction", "cat >/dev/null; test $1 != prepared");
    in_vain(&clone, &remote, &["release", "42"], 69, &[]);
    in_vain(&clone, &remote, &["renew", "42"], 69, &[]);
    remote.unhook("reference-transaction");
    let _ = clone.claim(&["verify", "42"]).is(0, "yours");
    let _ = clone.claim(&["release", "42"]).is(0, "released");
}

on!(the_server_dies_after_the_commit_of_the_ref: path, reftable, daemon, ssh, https);
/// It landed, and no line came back.
fn the_server_dies_after_the_commit_of_the_ref(kind: Kind) {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kind) else { return };
    let clone = sandbox.clone(&remote, "a");
    remote.hook("reference-transaction", "cat >/dev/null; test $1 != committed || kill -9 $PPID");
    let id = clone.claim(&["take", "42"]).is(0, "claimed issue-42 ").id();
    assert_eq!(remote.tip("issue-42"), Some(id.clone()));
    assert_eq!(clone.claim(&["verify", "42"]).is(0, "yours issue-42 ").id(), id);
    let renewed = clone.claim(&["renew", "42"]).is(0, "renewed issue-42 ").id();
    assert_eq!(remote.tip("issue-42"), Some(renewed));
    let _ = clone.claim(&["release", "42"]).is(0, "released issue-42 ");
    assert_eq!(remote.tip("issue-42"), None);
}

/// receive-pack did its work, and the web server closes the connection instead of passing the answer on. libcurl may
/// then send the same once more, and be refused because of what it did itself.
#[test]
fn the_web_server_loses_the_answer() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let clone = sandbox.clone(&remote, "a");
    let Some((proxy, url)) = Proxy::losing_answers(&remote) else { return };
    clone.point_to(&url);
    let id = clone.claim(&["take", "42"]).is(0, "claimed issue-42 ").id();
    assert_eq!(remote.tip("issue-42"), Some(id));
    let renewed = clone.claim(&["renew", "42"]).is(0, "renewed issue-42 ").id();
    assert_eq!(remote.tip("issue-42"), Some(renewed));
    let _ = clone.claim(&["release", "42"]).is(0, "released issue-42 ");
    assert_eq!(remote.tip("issue-42"), None);
    assert!(proxy.lost() >= 3, "{} answers lost", proxy.lost());
}

on!(a_lock_file_was_left_on_the_server: path, daemon, ssh, https);
/// The same words as for a lost race, and nobody holds anything.
fn a_lock_file_was_left_on_the_server(kind: Kind) {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kind) else { return };
    let clone = sandbox.clone(&remote, "a");
    let lock = remote.dir.join("refs/claims/issue-42.lock");
    fs::create_dir_all(lock.parent().unwrap()).unwrap();
    fs::write(&lock, "").unwrap();
    in_vain(&clone, &remote, &["take", "42"], 77, &["remote: ", "issue-42.lock': File exists"]);
    fs::remove_file(&lock).unwrap();
    owns_nothing(&clone);
    let _ = clone.claim(&["take", "42"]).is(0, "claimed");
    fs::write(&lock, "").unwrap();
    in_vain(&clone, &remote, &["release", "42"], 77, &["issue-42.lock': File exists"]);
    fs::remove_file(&lock).unwrap();
    let _ = clone.claim(&["release", "42"]).is(0, "released");
}

on!(a_ref_below_the_name_is_in_the_way: path, reftable, daemon, ssh, https);
fn a_ref_below_the_name_is_in_the_way(kind: Kind) {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kind) else { return };
    let clone = sandbox.clone(&remote, "a");
    remote.plant("refs/claims/issue-42/x", "Rita Rival <rita@example.com>", "in the way\n");
    in_vain(&clone, &remote, &["take", "42"], 77, &["refs/claims/issue-42"]);
    owns_nothing(&clone);
    let listed = clone.claim(&["list"]);
    assert_eq!(listed.code, Some(0), "{listed}");
}

on!(the_remembered_tip_was_pruned_on_the_server: path, reftable, daemon, ssh, https);
/// The server forgot the old object. receive-pack then compares nothing and deletes what is there: it must not be asked.
fn the_remembered_tip_was_pruned_on_the_server(kind: Kind) {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kind) else { return };
    let (alice, bob) = (sandbox.clone(&remote, "alice"), sandbox.clone(&remote, "bob"));
    bob.set("user.name", "Bob Example");
    let old = alice.claim(&["take", "42"]).is(0, "claimed").id();
    remote.git(&["update-ref", "-d", "refs/claims/issue-42", &old]);
    let new = bob.claim(&["take", "42"]).is(0, "claimed").id();
    remote.git(&["reflog", "expire", "--all", "--expire=now", "--expire-unreachable=now"]);
    remote.git(&["prune", "--expire=now"]);
    let present = remote.git_input(&["cat-file", "--batch-check"], &old);
    assert_eq!(present, format!("{old} missing"));

    let seen = remote.witnessed().len();
    for (args, verdict) in [
        (&["release", "42"][..], "lost issue-42 to Bob Example"),
        (&["release", "42", "--expect", &old], "moved issue-42 by Bob Example"),
        (&["renew", "42"], "lost issue-42 to Bob Example"),
    ] {
        let _ = alice.claim(args).is(3, verdict);
        assert_eq!(remote.tip("issue-42"), Some(new.clone()));
    }
    assert_eq!(remote.witnessed().len(), seen, "the server was asked: {:?}", remote.witnessed());
    let _ = bob.claim(&["verify", "42"]).is(0, "yours");
}

on!(an_answer_that_comes_too_late_is_ours_all_the_same: daemon, ssh);
/// The deadline passes while the server is still at it, and then it lands. The next step recognises it.
fn an_answer_that_comes_too_late_is_ours_all_the_same(kind: Kind) {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kind) else { return };
    let clone = sandbox.clone(&remote, "a");
    let go = sandbox.path("go");
    // The server waits until it is told to go on, or for so long that the test has failed.
    let wait = format!(
        "cat >/dev/null; n=0; until test -e '{}' || test $n = 300; do sleep 0.1; n=$((n+1)); done",
        go.display()
    );
    let apply_late = |gone: bool| {
        fs::write(&go, "").unwrap();
        for _ in 0..1000 {
            if remote.tip("issue-42").is_none() == gone {
                return fs::remove_file(&go).unwrap();
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        panic!("the server did not apply what it received");
    };
    for verb in ["verify", "release", "take"] {
        remote.hook("reference-transaction", &format!("test $1 = prepared || exit 0; {wait}"));
        let _ = clone.claim(&["take", "42", "--timeout", "3s"]).is(69, "unknown issue-42");
        assert_eq!(remote.tip("issue-42"), None);
        apply_late(false);
        remote.unhook("reference-transaction");
        match verb {
            "verify" => drop(clone.claim(&["verify", "42"]).is(0, "yours issue-42 ")),
            "take" => drop(clone.claim(&["take", "42", "--resume"]).is(0, "claimed issue-42 ")),
            _ => {}
        }
        let _ = clone.claim(&["release", "42"]).is(0, "released issue-42 ");
    }
}
