//! Which remote is meant: flag, setting, the only one, `origin`; and how settings reach us.

use std::fs;

use crate::support::{Kind, Sandbox, kinds, on};

#[test]
fn flag_before_setting_before_the_only_one_before_origin() {
    let sandbox = Sandbox::new();
    let remotes = ["origin.git", "second.git", "third.git"]
        .map(|name| sandbox.remote_named(name, kinds::path()).unwrap());
    let [origin, second, third] = &remotes;
    let clone = sandbox.clone(origin, "a");
    clone.git(&["remote", "rename", "origin", "somewhere"]);
    let _ = clone.claim(&["take", "1"]).is(0, "claimed");
    assert!(origin.tip("issue-1").is_some(), "the only remote is the one");
    clone.git(&["remote", "add", "origin", &second.url]);
    let _ = clone.claim(&["take", "2"]).is(0, "claimed");
    assert!(second.tip("issue-2").is_some(), "of several, origin is the one");
    clone.set("claim.remote", "somewhere");
    let _ = clone.claim(&["take", "3"]).is(0, "claimed");
    assert!(origin.tip("issue-3").is_some(), "a setting is stronger");
    let _ = clone.claim(&["take", "4", "--remote", &third.url]).is(0, "claimed");
    let _ = clone.claim(&["take", "5", "--remote", "origin"]).is(0, "claimed");
    let _ = clone.claim(&["--remote", "../third.git", "take", "6"]).is(0, "claimed");
    assert!(
        third.tip("issue-4").is_some()
            && second.tip("issue-5").is_some()
            && third.tip("issue-6").is_some()
    );
}

/// Never the branch's upstream, nor where its pushes go.
#[test]
fn the_branch_has_no_say() {
    let sandbox = Sandbox::new();
    let (Some(origin), Some(fork)) =
        (sandbox.remote(kinds::path()), sandbox.remote_named("fork.git", kinds::path()))
    else {
        return;
    };
    let clone = sandbox.clone(&origin, "a");
    clone.git(&["remote", "add", "fork", &fork.url]);
    clone.git(&["fetch", "--quiet", "fork"]);
    clone.git(&["branch", "--quiet", "--set-upstream-to=fork/main"]);
    clone.set("remote.pushDefault", "fork");
    clone.set("branch.main.pushRemote", "fork");
    let _ = clone.claim(&["take", "42"]).is(0, "claimed");
    assert!(origin.tip("issue-42").is_some() && fork.witnessed().is_empty());
}

/// In a fork's clone, `origin` is seldom where the issues are.
#[test]
fn an_upstream_beside_a_defaulted_origin_is_pointed_out() {
    let sandbox = Sandbox::new();
    let (Some(origin), Some(upstream)) =
        (sandbox.remote(kinds::path()), sandbox.remote_named("upstream.git", kinds::path()))
    else {
        return;
    };
    let clone = sandbox.clone(&origin, "a");
    clone.git(&["remote", "add", "upstream", &upstream.url]);
    let _ = clone.claim(&["take", "42"]).is(0, "claimed").says("upstream").says("claim.remote");
    let chosen = clone.claim(&["take", "43", "--remote", "origin"]).is(0, "claimed");
    assert!(!chosen.stderr.contains("upstream"), "{chosen}");
}

#[test]
fn a_remote_that_nobody_knows_is_named() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let clone = sandbox.clone(&remote, "a");
    let output = clone.claim(&["take", "42", "--remote", "nobody"]);
    assert!(!matches!(output.code, Some(0 | 3 | 75)), "{output}");
    let _ = output.says("nobody").says("origin");
    clone.git(&["remote", "remove", "origin"]);
    let output = clone.claim(&["take", "42"]);
    assert!(!matches!(output.code, Some(0 | 3 | 75)), "{output}");
    let _ = output.says("remote");
}

/// No server and no set-up: jobs that share one checkout.
#[test]
fn the_checkout_itself_can_be_the_remote() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let clone = sandbox.clone(&remote, "a");
    clone.git(&["remote", "remove", "origin"]);
    clone.git(&["worktree", "add", "--quiet", "--detach", "../side"]);
    let side = sandbox.at("side");
    let id = clone.claim(&["take", "42", "--remote", "."]).is(0, "claimed").id();
    assert_eq!(clone.git(&["rev-parse", "refs/claims/issue-42"]), id);
    let _ = side.claim(&["take", "42", "--remote", "."]).is(75, "held issue-42 by Alice Example");
    clone.set("claim.remote", ".");
    let _ = clone.run(&["verify", "42"]).within(clone.dir.join(".git")).go().is(0, "yours");
    let _ = side.claim(&["release", "42"]).is(0, "released");
    assert_eq!(clone.git(&["for-each-ref", "refs/claims"]), "");
}

/// Wherever git reads a setting, we read it too.
#[test]
fn settings_come_from_wherever_git_has_them() {
    let sandbox = Sandbox::new();
    let (Some(origin), Some(second)) =
        (sandbox.remote(kinds::path()), sandbox.remote_named("second.git", kinds::path()))
    else {
        return;
    };
    let clone = sandbox.clone(&origin, "a");
    let here = format!("claim.remote={}", second.url);
    let _ = clone.run_git(&["-c", &here, "claim", "take", "1"]).go().is(0, "claimed");
    // Quotes and blanks in a value survive the trip through git's quoting.
    let who = "claim.who=it's \"me\", really";
    let _ = clone.run_git(&["-c", who, "-c", &here, "claim", "take", "2"]).go().is(0, "claimed");
    assert!(
        second.record("issue-2").contains("it's \"me\", really"),
        "{}",
        second.record("issue-2")
    );
    let run = clone
        .run(&["take", "3"])
        .env("GIT_CONFIG_COUNT", "1")
        .env("GIT_CONFIG_KEY_0", "claim.remote");
    let _ = run.env("GIT_CONFIG_VALUE_0", &second.url).go().is(0, "claimed");
    fs::write(sandbox.path("included"), format!("[claim]\n\tremote = {}\n", second.url)).unwrap();
    clone.set("include.path", sandbox.path("included").to_str().unwrap());
    let _ = clone.claim(&["take", "4"]).is(0, "claimed");
    // The command line is stronger than a file.
    let run = clone.run_git(&["-c", &format!("claim.remote={}", origin.url), "claim", "take", "5"]);
    let _ = run.go().is(0, "claimed");
    for number in 1..=4 {
        assert!(second.tip(&format!("issue-{number}")).is_some(), "{number}");
    }
    assert!(origin.tip("issue-5").is_some());
}

on!(the_namespace_is_a_setting: path, daemon, https);
/// Some hosts accept branches only.
fn the_namespace_is_a_setting(kind: Kind) {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kind) else { return };
    let clone = sandbox.clone(&remote, "a");
    clone.set("claim.prefix", "refs/heads/claims/");
    let id = clone.claim(&["take", "42"]).is(0, "claimed").id();
    assert_eq!(remote.git(&["rev-parse", "refs/heads/claims/issue-42"]), id);
    let _ = clone.claim(&["take", "42"]).is(75, "held");
    let listed = clone.claim(&["list"]);
    assert!(listed.stdout.contains("issue-42") && !listed.stdout.contains("main"), "{listed}");
    let _ = clone.claim(&["release", "42"]).is(0, "released");
    assert_eq!(remote.tip("issue-42"), None);
}

/// A blank, a quote and letters beyond ASCII in the path, on both sides.
#[test]
fn paths_are_quoted_everywhere() {
    let sandbox = Sandbox::new();
    for (name, kind) in [("o'r i$gü.git", kinds::path()), ("o'r i$gü-2.git", kinds::ssh())] {
        let Some(remote) = sandbox.remote_named(name, kind) else { continue };
        let clone = sandbox.clone(&remote, &format!("cl öne of {name}"));
        let _ = clone.claim(&["take", "42"]).is(0, "claimed");
        let _ = clone.claim(&["verify", "42"]).is(0, "yours");
        let _ = clone.claim(&["release", "42"]).is(0, "released");
    }
}

/// An upload-pack hook, a pager or a prompt have no place here: nothing waits for a person that is not there.
#[test]
fn ssh_is_asked_not_to_ask() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::ssh()) else { return };
    let clone = sandbox.clone(&remote, "a");
    let log = sandbox.path("ssh-was-given");
    fs::create_dir(sandbox.path("shims")).unwrap();
    let client = &crate::support::servers::sshd(true).unwrap().client;
    let path = std::env::var("PATH").unwrap();
    let body =
        format!("echo \"$*\" >>{}\nPATH='{path}' exec ssh -F {client} \"$@\"", log.display());
    fs::rename(sandbox.script("shim", &body), sandbox.path("shims/ssh")).unwrap();
    fs::write(sandbox.path("gitconfig"), "[user]\n\tname = A\n\temail = a@example.com\n").unwrap();
    let path = format!("{}:{path}", sandbox.path("shims").display());
    let _ = clone.run(&["take", "42"]).env("PATH", path).go().is(0, "claimed");
    let log = fs::read_to_string(log).unwrap();
    assert!(log.lines().all(|line| line.contains("BatchMode")), "{log}");
}

on!(an_older_git_will_do: path, daemon, ssh, https);
/// Where the machine has a second git, an older or a newer one, the client may be that one.
fn an_older_git_will_do(kind: Kind) {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kind) else { return };
    let clone = sandbox.clone(&remote, "a");
    let ours = clone.git(&["--version"]);
    let other = clone.run_git(&["--version"]).env("PATH", "/usr/bin:/bin").go();
    if other.code != Some(0) || other.stdout.trim() == ours {
        // Not a server that could be required: one git is all that is promised to be there.
        return;
    }
    for (args, verdict) in [
        (&["take", "42"][..], "claimed"),
        (&["renew", "42"], "renewed"),
        (&["verify", "42"], "yours"),
        (&["release", "42"], "released"),
    ] {
        let _ = clone.run(args).env("PATH", "/usr/bin:/bin").go().is(0, verdict);
    }
}
