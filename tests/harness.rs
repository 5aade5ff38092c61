//! The harness itself: a witness that sees nothing proves nothing, and a fault that is none tests nothing.
//!
//! Everything here is done with git's own commands.

use std::{fs, panic};

use crate::support::{
    Kind, Remote, Sandbox, kinds, on,
    proxy::{Mode, Proxy},
    sandbox::asks_for_force,
    servers::{self, Daemon},
    snapshot,
};

on!(a_push_gets_through_and_is_witnessed: path, reftable, sha256, file_url, daemon, ssh, ssh_v0, ssh_sha256, https,
    https_v0, https_sha256, https_reftable);
fn a_push_gets_through_and_is_witnessed(kind: Kind) {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kind) else { return };
    let clone = sandbox.clone(&remote, "a");
    clone.git(&["push", "--quiet", "origin", "HEAD:refs/claims/issue-42"]);
    let id = clone.git(&["rev-parse", "HEAD"]);
    assert_eq!(remote.tip("issue-42"), Some(id.clone()));
    let zeros = "0".repeat(id.len());
    assert_eq!(remote.witnessed(), [format!("refs/claims/issue-42 {zeros} {id}")]);
    // A server that is to be old is old.
    let listing = clone.run_git(&["ls-remote", "origin"]).env("GIT_TRACE_PACKET", "1").go();
    let is_v2 = listing.stderr.contains("< version 2");
    let is_old = [kinds::ssh_v0().via, kinds::https_v0().via].contains(&kind.via);
    assert_eq!(is_v2, !is_old, "{listing}");
}

/// A client is free not to ask: the server takes any update that names the old value.
#[test]
fn the_witness_sees_what_is_no_fast_forward() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let old = remote.plant("refs/claims/issue-1", "A <a@example.com>", "one");
    let new = remote.plant("refs/other", "A <a@example.com>", "two");
    let command = format!("{old} {new} refs/claims/issue-1\0report-status");
    let request = sandbox.path("request");
    let packet = format!("{:04x}{command}0000", command.len() + 4);
    fs::write(&request, packet).unwrap();
    let script = format!(
        "(cat '{}'; git pack-objects --stdout </dev/null) | git receive-pack . >&2",
        request.display()
    );
    remote.git(&["-c", &format!("alias.feed=!{script}"), "feed"]);
    assert_eq!(remote.tip("issue-1"), Some(new));
    let caught = panic::catch_unwind(panic::AssertUnwindSafe(|| drop::<Remote>(remote)));
    assert!(caught.is_err(), "the witness let it pass");
}

#[test]
fn force_is_recognised() {
    for line in [
        "git push --force origin x",
        "git push '--force-with-lease=a:b' x",
        "push '+refs/a:refs/b'",
        "push -f",
    ] {
        assert!(asks_for_force(line), "{line}");
    }
    assert!(!asks_for_force("git remote-https origin https://127.0.0.1/force/-f.git"));
}

#[test]
fn a_snapshot_sees_every_change_but_our_own_corner() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let clone = sandbox.clone(&remote, "a");
    let before = snapshot(&clone.dir);
    fs::create_dir(clone.dir.join(".git/claims")).unwrap();
    fs::write(clone.dir.join(".git/claims/x"), "x").unwrap();
    before.still_holds(&clone.dir);
    for change in [
        &["tag", "t"][..],
        &["fetch", "--quiet"],
        &["commit", "--quiet", "--allow-empty", "-m", "x"],
    ] {
        let before = snapshot(&clone.dir);
        clone.git(change);
        let caught =
            panic::catch_unwind(panic::AssertUnwindSafe(|| before.still_holds(&clone.dir)));
        assert!(caught.is_err(), "{change:?}");
    }
}

#[test]
fn the_servers_fail_as_they_should() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::https()) else { return };
    let clone = sandbox.clone(&remote, "a");
    let web = servers::web().unwrap();
    let below_root = remote.dir.strip_prefix(servers::root()).unwrap().display().to_string();
    let push = |url: &str, words: &str| {
        let output = clone.run_git(&["push", url, "HEAD:refs/claims/issue-42"]).go();
        assert!(
            output.code != Some(0) && output.stderr.contains(words),
            "expected `{words}`\n{output}"
        );
    };
    for status in [403, 429, 500, 503] {
        push(
            &format!("http://127.0.0.1:{}/status/{status}/x.git", web.http),
            &format!("error: {status}"),
        );
    }
    push(&format!("https://127.0.0.1:{}/status/401/x.git", web.https), "Authentication failed");
    push(&remote.url.replace("/auth/", "/reader/"), "error: 403");
    assert!(
        clone
            .git(&["ls-remote", &remote.url.replace("/auth/", "/reader/")])
            .contains("refs/heads/main")
    );
    if let Some(port) = servers::daemon(Daemon::ReadOnly) {
        push(&format!("git://127.0.0.1:{port}/{below_root}"), "service not enabled");
    }
    if servers::as_nobody().is_some() {
        push(&remote.url.replace("/auth/", "/frozen/"), "unpacker error");
    }
    if let Some(sshd) = servers::sshd(true) {
        let url = format!("ssh://127.0.0.1:{}{}", sshd.port, remote.dir.display());
        let run = clone.run_git(&["ls-remote", &url]);
        let output = run.env("GIT_SSH_COMMAND", format!("ssh -F {}", sshd.stranger)).go();
        assert!(output.stderr.contains("Permission denied (publickey)"), "{output}");
    }
    remote.set("http.receivepack", "true");
    assert_eq!(remote.tip("issue-42"), None);
    let proxy = Proxy::start(web.http, Mode::LosePushAnswers);
    push(&format!("http://127.0.0.1:{}/open/{below_root}", proxy.port), "");
    // More than one: libcurl tries again where a connection that was used before is closed without a word.
    assert!(proxy.lost() >= 1);
    assert!(remote.tip("issue-42").is_some(), "it landed all the same");
}
