//! What is the user's stays the user's: settings that do not reach a claim, and a clone that is left alone.

use std::fs;

use crate::support::{Clone, Kind, Remote, Sandbox, kinds, on, sandbox::asks_for_force, snapshot};

/// One claim from take to release, with a look at it in between; the clone is as it was, and the server too.
#[track_caller]
fn whole_life(clone: &Clone, remote: &Remote) {
    let (refs, state) = (remote.refs(), snapshot(&clone.dir));
    let _ = clone.claim(&["take", "42", "--note", "a look"]).is(0, "claimed issue-42 ");
    let landed = remote.refs();
    let new =
        landed.lines().filter(|line| !refs.lines().any(|old| old == *line)).collect::<Vec<_>>();
    assert_eq!(new.len(), 1, "only the claim lands: {landed}");
    let listed = clone.claim(&["list", "--long"]);
    assert!(listed.code == Some(0) && listed.stdout.contains("issue-42"), "{listed}");
    let shown = clone.claim(&["show", "42"]);
    assert_eq!(shown.code, Some(0), "{shown}");
    let _ = clone.claim(&["take", "42"]).is(75, "held issue-42 by ");
    let _ = clone.claim(&["renew", "42"]).is(0, "renewed issue-42 ");
    let _ = clone.claim(&["verify", "42"]).is(0, "yours issue-42 ");
    let _ = clone.claim(&["release", "42"]).is(0, "released issue-42 ");
    let _ = clone.claim(&["take", "42"]).is(0, "claimed issue-42 ");
    let _ = clone.claim(&["release", "--all"]).is(0, "released issue-42 ");
    assert_eq!(remote.refs(), refs);
    state.still_holds(&clone.dir);
}

on!(the_users_push_settings_do_not_reach_a_claim: path, daemon, ssh, https);
fn the_users_push_settings_do_not_reach_a_claim(kind: Kind) {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kind) else { return };
    let clone = sandbox.clone(&remote, "a");
    // Something to push by accident: a commit, a branch, a tag of either kind.
    clone.git(&["commit", "--quiet", "--allow-empty", "--message", "not published"]);
    clone.git(&["branch", "topic"]);
    clone.git(&["tag", "light"]);
    clone.git(&["tag", "--annotate", "--message", "heavy", "heavy"]);
    let unpublished = clone.git(&["rev-parse", "HEAD"]);
    for (key, value) in [
        ("remote.origin.mirror", "true"),
        ("remote.origin.push", "+refs/*:refs/*"),
        ("push.followTags", "true"),
        ("push.gpgSign", "true"),
        ("push.pushOption", "ci.skip"),
        ("push.recurseSubmodules", "only"),
        ("push.negotiate", "true"),
        ("push.default", "matching"),
        ("push.useForceIfIncludes", "true"),
        ("commit.gpgSign", "true"),
        ("tag.gpgSign", "true"),
        ("gpg.program", "/bin/false"),
        ("core.logAllRefUpdates", "always"),
        ("fetch.prune", "true"),
        ("fetch.writeCommitGraph", "true"),
        ("transfer.fsckObjects", "true"),
        ("protocol.version", "0"),
        ("user.useConfigOnly", "true"),
    ] {
        clone.set(key, value);
    }
    whole_life(&clone, &remote);
    let objects = remote.git(&["cat-file", "--batch-all-objects", "--batch-check=%(objectname)"]);
    assert!(!objects.contains(&unpublished), "what was not published was uploaded");
}

/// Each alone, so that one cannot hide another.
#[test]
fn no_single_setting_reaches_a_claim() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let clone = sandbox.clone(&remote, "a");
    clone.git(&["tag", "--annotate", "--message", "heavy", "heavy"]);
    for setting in [
        "remote.origin.mirror=true",
        "remote.origin.push=refs/heads/*:refs/heads/*",
        "push.followTags=true",
        "push.gpgSign=true",
        "push.pushOption=x",
        "push.recurseSubmodules=only",
        "push.negotiate=true",
        "commit.gpgSign=true",
    ] {
        let (key, value) = setting.split_once('=').unwrap();
        clone.set(key, value);
        let refs = remote.refs();
        let _ = clone.claim(&["take", "42"]).is(0, "claimed");
        let _ = clone.claim(&["release", "42"]).is(0, "released");
        assert_eq!(remote.refs(), refs, "{setting}");
        clone.git(&["config", "--unset-all", key]);
    }
}

on!(no_hook_of_the_clone_runs: path, https);
fn no_hook_of_the_clone_runs(kind: Kind) {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kind) else { return };
    let clone = sandbox.clone(&remote, "a");
    let ran = sandbox.path("a-hook-ran");
    for dir in [clone.dir.join(".git/hooks"), sandbox.path("own-hooks")] {
        fs::create_dir_all(&dir).unwrap();
        for hook in [
            "pre-push",
            "post-update",
            "reference-transaction",
            "pre-commit",
            "commit-msg",
            "post-commit",
            "prepare-commit-msg",
            "pre-auto-gc",
            "push-to-checkout",
            "post-checkout",
            "post-merge",
            "fsmonitor-watchman",
        ] {
            let script =
                sandbox.script("hook", &format!("echo {hook} >>{}; exit 1", ran.display()));
            fs::rename(script, dir.join(hook)).unwrap();
        }
    }
    whole_life(&clone, &remote);
    // By path, a server runs in our environment and has hooks of its own, so this one is set for the clone only.
    clone.set("core.hooksPath", sandbox.path("own-hooks").to_str().unwrap());
    whole_life(&clone, &remote);
    assert!(!ran.exists(), "{}", fs::read_to_string(ran).unwrap());
}

/// Where pushes go is where claims are, for reading as for writing.
#[test]
fn the_push_url_is_the_one_url() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let Some(mirror) = sandbox.remote_named("mirror.git", kinds::path()) else { return };
    let clone = sandbox.clone(&mirror, "a");
    let base = mirror.url.strip_suffix("mirror.git").unwrap();
    clone.set(&format!("url.{}.pushInsteadOf", remote.url), &mirror.url);
    whole_life(&clone, &remote);
    clone.git(&["config", "--remove-section", &format!("url.{}", remote.url)]);
    clone.set(&format!("url.{base}.insteadOf"), "here:");
    clone.set("remote.origin.pushurl", "here:origin.git");
    whole_life(&clone, &remote);
    assert!(mirror.witnessed().is_empty());
}

#[test]
fn several_push_urls_are_named_and_not_used() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let Some(second) = sandbox.remote_named("second.git", kinds::path()) else { return };
    let clone = sandbox.clone(&remote, "a");
    clone.set("remote.origin.pushurl", &remote.url);
    clone.set("remote.origin.pushurl", &second.url);
    let output = clone.claim(&["take", "42"]);
    assert!(output.code == Some(2) && output.stdout.is_empty(), "{output}");
    let _ = output.says(&remote.url).says(&second.url);
    assert!(remote.witnessed().is_empty() && second.witnessed().is_empty());
}

on!(the_clone_is_left_alone: path, reftable, sha256, file_url, daemon, ssh_v0, https, https_v0);
fn the_clone_is_left_alone(kind: Kind) {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kind) else { return };
    let clone = sandbox.clone(&remote, "a");
    // State that a careless command would move: something staged, something fetched, packed refs, a stash.
    clone.git(&["fetch", "--quiet", "origin", "main"]);
    fs::write(clone.dir.join("README"), "changed\n").unwrap();
    clone.git(&["stash", "--quiet"]);
    fs::write(clone.dir.join("new"), "new\n").unwrap();
    clone.git(&["add", "new"]);
    clone.git(&["pack-refs", "--all"]);
    whole_life(&clone, &remote);
    // Claims of others pass through memory only, however they came to be.
    remote.plant("refs/claims/issue-7", "Rita Rival <rita@example.com>", "claim issue 7 by me\n");
    let state = snapshot(&clone.dir);
    for args in
        [&["list"][..], &["list", "--long"], &["show", "7"], &["take", "7"], &["verify", "7"]]
    {
        let output = clone.claim(args);
        assert!(matches!(output.code, Some(0 | 3 | 75)), "{output}");
    }
    state.still_holds(&clone.dir);
    let left =
        fs::read_dir(sandbox.path("tmp")).unwrap().map(|e| e.unwrap().path()).collect::<Vec<_>>();
    assert!(left.is_empty(), "left in the temporary folder: {left:?}");
}

on!(every_kind_of_clone_can_claim: file_url, https);
fn every_kind_of_clone_can_claim(kind: Kind) {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kind) else { return };
    remote.set("uploadpack.allowFilter", "true");
    remote.plant("refs/claims/issue-7", "Rita Rival <rita@example.com>", "claim issue 7 by me\n");
    for (name, options) in [
        ("bare.git", &["--bare"][..]),
        ("mirror.git", &["--mirror"]),
        ("shallow", &["--depth=1"]),
        ("blobless", &["--filter=blob:none"]),
        ("treeless", &["--filter=tree:0"]),
        ("sparse", &["--sparse"]),
        ("single", &["--single-branch", "--no-tags"]),
    ] {
        let clone = sandbox.clone_with(&remote, name, options);
        whole_life(&clone, &remote);
        let _ = clone.claim(&["take", "7"]).is(75, "held issue-7 by Rita Rival");
    }
    whole_life(&sandbox.empty(&remote, "empty"), &remote);
}

/// The reftable backend on the clone's side, and a hash that is not the server's.
#[test]
fn the_clones_own_format_does_not_matter() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let Some(tables) = sandbox.remote_named("tables.git", kinds::reftable()) else { return };
    let clone = sandbox.at("tables.git");
    whole_life(&clone, &remote_of(&clone, remote));
    drop(tables);
}

/// Makes `remote` the origin of the repository that `clone` stands in.
fn remote_of(clone: &Clone, remote: Remote) -> Remote {
    clone.git(&["remote", "add", "origin", &remote.url]);
    remote
}

#[test]
fn linked_worktrees_share_their_claims() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let clone = sandbox.clone(&remote, "a");
    clone.git(&["worktree", "add", "--quiet", "-b", "side", "../side"]);
    clone.git(&["worktree", "add", "--quiet", "--detach", "../other"]);
    let (side, other) = (sandbox.at("side"), sandbox.at("other"));
    let states = [&clone, &side, &other].map(|tree| snapshot(&tree.dir));
    let id = side.claim(&["take", "42"]).is(0, "claimed").id();
    assert_eq!(other.claim(&["verify", "42"]).is(0, "yours").id(), id);
    let _ = clone.claim(&["take", "42"]).is(75, "held issue-42 by ");
    let _ = other.claim(&["renew", "42"]).is(0, "renewed");
    side.git(&["status"]);
    let _ = clone.claim(&["release", "42"]).is(0, "released");
    let _ = side.claim(&["verify", "42"]).is(3, "");
    for (state, tree) in states.iter().zip([&clone, &side, &other]) {
        state.still_holds(&tree.dir);
    }
}

#[test]
fn a_sub_folder_is_as_good_as_the_top() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let clone = sandbox.clone(&remote, "a");
    let deep = clone.dir.join("deep/er");
    fs::create_dir_all(&deep).unwrap();
    // A relative URL counts from the top of the work tree, as git has it.
    clone.point_to("../origin.git");
    let _ = clone.run(&["take", "42"]).within(&deep).go().is(0, "claimed");
    let _ = clone.claim(&["verify", "42"]).is(0, "yours");
    let _ = clone.run(&["release", "42"]).within(&deep).go().is(0, "released");
    // From outside, `git -C` and `--git-dir` mean what they mean to git.
    let dir = clone.dir.to_str().unwrap();
    let outside = sandbox.path("home");
    let _ =
        clone.run_git(&["-C", dir, "claim", "take", "42"]).within(&outside).go().is(0, "claimed");
    let git_dir = format!("--git-dir={dir}/.git");
    clone.point_to(&remote.url);
    let _ = clone
        .run_git(&[&git_dir, "claim", "release", "42"])
        .within(&outside)
        .go()
        .is(0, "released");
}

on!(a_hook_of_the_clone_may_claim: path, ssh, https);
/// In a hook, git has set `GIT_DIR`, `GIT_INDEX_FILE` and more, and none of it may reach the server's side.
fn a_hook_of_the_clone_may_claim(kind: Kind) {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kind) else { return };
    let clone = sandbox.clone(&remote, "a");
    let said = sandbox.path("said");
    let script = sandbox.script("hook", &format!("git claim take 42 >{} 2>&1", said.display()));
    fs::create_dir_all(clone.dir.join(".git/hooks")).unwrap();
    fs::rename(script, clone.dir.join(".git/hooks/post-commit")).unwrap();
    clone.git(&["commit", "--quiet", "--allow-empty", "--message", "work"]);
    let said = fs::read_to_string(said).unwrap();
    assert!(said.contains("claimed issue-42 "), "{said}");
    let _ = clone.claim(&["release", "42"]).is(0, "released");
}

on!(no_home_is_no_reason: path, ssh, https);
fn no_home_is_no_reason(kind: Kind) {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kind) else { return };
    let clone = sandbox.clone(&remote, "a");
    for (verb, verdict) in
        [("take", "claimed"), ("verify", "yours"), ("renew", "renewed"), ("release", "released")]
    {
        let _ = clone.run(&[verb, "42"]).without("HOME").go().is(0, verdict);
    }
}

/// Without anybody to be, a claim is still made, by `user@host`.
#[test]
fn no_identity_is_no_reason() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let clone = sandbox.clone(&remote, "a");
    for only in ["false", "true"] {
        clone.set("user.useConfigOnly", only);
        let _ =
            clone.run(&["take", "42"]).env("GIT_CONFIG_GLOBAL", "/dev/null").go().is(0, "claimed");
        assert!(remote.record("issue-42").contains('@'), "{}", remote.record("issue-42"));
        let _ = clone
            .run(&["release", "42"])
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .go()
            .is(0, "released");
    }
}

on!(garbage_collection_changes_nothing: path, https);
/// Ownership needs nothing but the record: not the object that was pushed.
fn garbage_collection_changes_nothing(kind: Kind) {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kind) else { return };
    let clone = sandbox.clone(&remote, "a");
    let collect = || {
        clone.git(&["reflog", "expire", "--all", "--expire=now"]);
        clone.git(&["gc", "--quiet", "--prune=now"]);
    };
    let _ = clone.claim(&["take", "42"]).is(0, "claimed");
    collect();
    let _ = clone.claim(&["verify", "42"]).is(0, "yours");
    let _ = clone.claim(&["renew", "42"]).is(0, "renewed");
    collect();
    let _ = clone.claim(&["take", "42", "--resume"]).is(0, "claimed");
    let _ = clone.claim(&["release", "42"]).is(0, "released");
}

#[test]
fn a_copy_made_before_the_take_owns_nothing() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let clone = sandbox.clone(&remote, "a");
    sandbox.copy("a", "b");
    let copy = sandbox.at("b");
    let id = clone.claim(&["take", "42"]).is(0, "claimed").id();
    for verb in ["verify", "renew", "release"] {
        let _ = copy.claim(&[verb, "42"]).is(3, "lost issue-42 to Alice Example");
    }
    let _ = copy.claim(&["take", "42", "--resume"]).is(75, "held issue-42 by Alice Example");
    assert_eq!(remote.tip("issue-42"), Some(id));
}

/// Nor does one made after it: a record names the clone that it belongs to. It is told how to go on.
#[test]
fn a_copy_made_after_the_take_owns_nothing() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let clone = sandbox.clone(&remote, "a");
    let id = clone.claim(&["take", "42"]).is(0, "claimed").id();
    sandbox.copy("a", "b");
    let copy = sandbox.at("b");
    for verb in ["verify", "renew", "release"] {
        let _ = copy.claim(&[verb, "42"]).is(3, "lost issue-42 to Alice Example");
    }
    let _ = copy
        .claim(&["release", "42"])
        .is(3, "lost issue-42")
        .says(&format!("--expect {}", &id[..7]));
    let _ = copy.claim(&["take", "42", "--resume"]).is(75, "held issue-42 by ");
    let _ = clone.claim(&["verify", "42"]).is(0, "yours");
    let _ = copy.claim(&["release", "42", "--expect", &id]).is(0, "released");
}

on!(nothing_is_ever_forced: path, daemon, ssh, https);
/// The whole of what is started on our side, by name and by trace, and what git's own helper is told.
fn nothing_is_ever_forced(kind: Kind) {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kind) else { return };
    let clone = sandbox.clone(&remote, "a");
    let log = sandbox.path("children");
    fs::create_dir(sandbox.path("shims")).unwrap();
    let path = std::env::var("PATH").unwrap();
    for program in ["git", "ssh"] {
        let body = format!(
            "echo \"{program} $*\" >>{0}\nPATH='{path}'\nexport PATH\n\
             case $* in *' remote-'*) tee -a {0} | {program} \"$@\" ;; *) exec {program} \"$@\" ;; esac",
            log.display()
        );
        fs::rename(sandbox.script("shim", &body), sandbox.path("shims").join(program)).unwrap();
    }
    let path = format!("{}:{path}", sandbox.path("shims").display());
    let rival = remote.plant(
        "refs/claims/issue-7",
        "Rita Rival <rita@example.com>",
        "claim issue 7 by me\n",
    );
    for args in [
        &["take", "42"][..],
        &["take", "42"],
        &["take", "42", "--resume"],
        &["renew", "42"],
        &["verify", "42"],
        &["list", "--long"],
        &["show", "7"],
        &["release", "7", "--expect", &rival],
        &["release", "42"],
    ] {
        let output = clone.run(args).env("PATH", &path).go();
        assert!(matches!(output.code, Some(0 | 75)), "{output}");
    }
    let log = fs::read_to_string(log).unwrap_or_default();
    for line in log.lines() {
        let pushes_plus = line.trim_start().starts_with("push +");
        assert!(!asks_for_force(line) && !pushes_plus && !line.contains("option force"), "{line}");
    }
    if kind.via == kinds::https().via {
        assert!(log.contains(" remote-https ") && log.contains("\npush "), "{log}");
    }
}
