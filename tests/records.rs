//! Claims that we did not write: by hand, by other tools, damaged, hostile. All are listed, shown, reported, clearable.

use crate::support::{Kind, Sandbox, kinds, on};

on!(a_claim_made_by_hand_is_a_claim: path, reftable, sha256, daemon, ssh, ssh_v0, https, https_v0);
fn a_claim_made_by_hand_is_a_claim(kind: Kind) {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kind) else { return };
    let (alice, bob) = (sandbox.clone(&remote, "alice"), sandbox.clone(&remote, "bob"));
    bob.set("user.name", "Bob Example");
    bob.set("user.email", "bob@example.com");
    bob.git(&["commit", "--quiet", "--allow-empty", "--message", "claim issue 42 by me"]);
    bob.git(&["push", "--quiet", "origin", "HEAD:refs/claims/issue-42"]);
    let id = remote.tip("issue-42").unwrap();

    let _ = alice.claim(&["take", "42"]).is(75, "held issue-42 by Bob Example <bob@example.com>");
    let _ = alice.claim(&["release", "42"]).is(3, "lost issue-42 to Bob Example");
    // Not even the one who made it: no token says so.
    let _ = bob.claim(&["release", "42"]).is(3, "lost issue-42 to Bob Example");
    for args in [&["list"][..], &["list", "--long"], &["show", "42"]] {
        let output = alice.claim(args);
        assert!(output.code == Some(0) && output.stdout.contains("issue-42"), "{output}");
    }
    let shown = alice.claim(&["show", "42"]);
    assert!(
        shown.stdout.contains("Bob Example") && shown.stdout.contains("claim issue 42 by me"),
        "{shown}"
    );
    assert_eq!(alice.claim(&["release", "42", "--expect", &id[..8]]).code, Some(0));
    assert_eq!(remote.tip("issue-42"), None);
}

on!(whatever_a_tip_is_it_can_be_seen_and_cleared: path, sha256, daemon, ssh_v0, https, https_v0);
fn whatever_a_tip_is_it_can_be_seen_and_cleared(kind: Kind) {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kind) else { return };
    let clone = sandbox.clone(&remote, "a");
    let blob = remote.git_input(&["hash-object", "-w", "--stdin"], "not a claim\n");
    let tree = remote.git(&["rev-parse", "main^{tree}"]);
    let main = remote.git(&["rev-parse", "main"]);
    let tag = format!(
        "object {main}\ntype commit\ntag v1\ntagger Tom <tom@example.com> 1764500000 +0000\n\na tag\n"
    );
    let tag = remote.git_input(&["hash-object", "-t", "tag", "-w", "--stdin"], &tag);
    let tips = [("1", &blob), ("2", &tree), ("3", &tag), ("4", &main)];
    for (number, id) in tips {
        remote.git(&["update-ref", &format!("refs/claims/issue-{number}"), id]);
    }
    let listed = clone.run(&["list", "--long"]).go_json();
    assert_eq!(listed.code, Some(0), "{listed}");
    assert_eq!(listed.json()["claims"].as_array().unwrap().len(), 4, "{listed}");
    for (number, id) in tips {
        let name = format!("issue-{number}");
        let _ = clone.claim(&["take", number]).is(75, &format!("held {name}"));
        let _ = clone.claim(&["release", number]).is(3, &format!("lost {name}"));
        let shown = clone.claim(&["show", number]);
        assert!(shown.code == Some(0) && shown.stdout.contains(&id[..7]), "{shown}");
        assert_eq!(remote.tip(&name).as_ref(), Some(id));
        let _ =
            clone.claim(&["release", number, "--expect", id]).is(0, &format!("released {name}"));
        assert_eq!(remote.tip(&name), None);
    }
}

/// A stranger's text, and what it may not do to a terminal.
#[test]
fn hostile_text_is_shown_as_text() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let clone = sandbox.clone(&remote, "a");
    let hostile = "\u{1b}]0;owned\u{7}\u{1b}[2J\u{1b}[31mred\u{9b}31m \u{202e}gnp.exe\u{2066}\u{2069}\u{200f} \u{8}\u{7f}\u{85}\r-- ";
    let trailers = format!(
        "claim issue-1 by {hostile}\n\n{hostile}\n\nClaim: issue-1\nClaim-Format: 1\nClaimed-By: {hostile} <{hostile}>\n\
         Claimed-On: {hostile}\nClaimed-At: {hostile}\nClaim-Token: {hostile}\nJob: {hostile}\nBranch: {hostile}\n"
    );
    remote.plant("refs/claims/issue-1", &format!("E{hostile} <e@example.com>"), &trailers);
    remote.plant(
        "refs/claims/issue-2",
        &format!("E{hostile} <e@example.com>"),
        &format!("by {hostile}"),
    );
    for name in ["1", "2"] {
        for args in [
            &["list"][..],
            &["list", "--long"],
            &["list", "--long", "--color=always"],
            &["show", name],
            &["stale"],
            &["take", name],
            &["verify", name],
            &["release", name],
        ] {
            let colored = args.contains(&"--color=always");
            let output = clone.claim(args);
            let shown = format!("{}{}", output.stdout, output.stderr);
            for bad in shown.chars().filter(|c| is_dangerous(*c)) {
                assert!(colored && bad == '\u{1b}', "{bad:?} reaches the terminal\n{output}");
            }
            assert!(!shown.contains("\u{1b}]") && !shown.contains("\u{1b}[2J"), "{output}");
            let json = clone.run(args).go_json();
            let raw = json.stdout.chars().find(|c| is_dangerous(*c));
            assert_eq!(raw, None, "{json}");
            assert!(!json.json()["claims"].as_array().unwrap().is_empty(), "{json}");
        }
        let tip = remote.tip(&format!("issue-{name}")).unwrap();
        let _ = clone.claim(&["release", name, "--expect", &tip]).is(0, "released");
    }
}

/// Control characters but the line end, and the marks that turn text around.
fn is_dangerous(c: char) -> bool {
    (c.is_control() && c != '\n')
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{61c}')
}

/// Half a record, two of a kind, one of the future, none at all.
#[test]
fn damaged_records_are_shown_as_such_and_can_be_cleared() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let clone = sandbox.clone(&remote, "a");
    let huge = "x".repeat(300_000);
    let messages = [
        "",
        "\n\n\n",
        "claim\n\nClaim-Format: 1\n",
        "claim\n\nClaim: issue-99\nClaim-Format: 1\nClaim-Token: 1\n",
        "claim\n\nClaim-Format: 999\nClaimed-By: F <f@example.com>\n",
        "claim\n\nClaim: a\nClaim: b\nClaim-Format: x\nClaimed-At: yesterday\n",
        "claim\n\nClaimed-At: 9999999-99-99T99:99:99Z\nHeartbeat: -1\nHeartbeat: 99999999999999999999\n",
        &huge,
    ];
    for (number, message) in messages.iter().enumerate() {
        remote.plant(&format!("refs/claims/issue-{}", number + 1), "F <f@example.com>", message);
    }
    let odd = "tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904\nauthor\ncommitter <> -1\nencoding latin1\n\nwhat?";
    let odd =
        remote.git_input(&["hash-object", "-t", "commit", "-w", "--literally", "--stdin"], odd);
    remote.git(&["update-ref", "refs/claims/issue-9", &odd]);
    let listed = clone.run(&["list", "--long"]).go_json();
    assert_eq!(listed.code, Some(0), "{listed}");
    assert_eq!(listed.json()["claims"].as_array().unwrap().len(), 9, "{listed}");
    for number in 1..=9 {
        let number = number.to_string();
        let name = format!("issue-{number}");
        let shown = clone.claim(&["show", &number]);
        assert_eq!(shown.code, Some(0), "{shown}");
        let _ = clone.claim(&["take", &number]).is(75, &format!("held {name}"));
        let tip = remote.tip(&name).unwrap();
        let _ =
            clone.claim(&["release", &number, "--expect", &tip]).is(0, &format!("released {name}"));
    }
}

/// A record can be read with git alone.
#[test]
fn git_reads_our_trailers() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let clone = sandbox.clone(&remote, "a");
    let note = "first line\n\nsecond paragraph: with a colon\nKey: value";
    let run = clone.run(&["take", "42", "--note", note, "--branch", "fix/42"]);
    let run = run
        .env("GITHUB_ACTIONS", "true")
        .env("GITHUB_SERVER_URL", "https://user:s3cret@ci.example.com");
    let run = run
        .env("GITHUB_REPOSITORY", "team/project")
        .env("GITHUB_RUN_ID", "7")
        .env("MY_TOKEN", "s3cret");
    let _ = run.go().is(0, "claimed");
    let message = remote.git(&["log", "-1", "--format=%B", "refs/claims/issue-42"]);
    let trailers = remote.git_input(&["interpret-trailers", "--parse"], &message);
    for key in [
        "Claim: issue-42",
        "Claim-Format: 1",
        "Claimed-By: Alice Example <alice@example.com>",
        "Branch: fix/42",
    ] {
        assert!(trailers.lines().any(|line| line == key), "{key} is not in\n{trailers}");
    }
    assert!(
        trailers.contains("Job: https://ci.example.com/team/project/actions/runs/7"),
        "{trailers}"
    );
    assert!(!message.contains("s3cret"), "{message}");
    let empty_tree = remote.git_input(&["mktree"], "");
    assert_eq!(remote.git(&["rev-parse", "refs/claims/issue-42^{tree}"]), empty_tree);
    remote.git(&["fsck", "--strict"]);
}
