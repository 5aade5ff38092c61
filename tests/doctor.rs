//! `doctor`, on remotes that are well and on remotes with every ailment that a server can be given.
//!
//! For each: what is found, in lines and in JSON; that nothing is left behind but where it is said; that the clone is
//! left alone.

use std::{
    fs,
    os::unix::process::ExitStatusExt,
    path::Path,
    process::{Command, ExitStatus},
    thread,
    time::Duration,
};

use serde_json::Value;

use crate::support::{
    Clone, Kind, Output, Remote, Sandbox,
    hostile::{Hostile, Hostility},
    ignores_signals, kinds, on,
    proxy::{Mode, Proxy},
    remote::Via,
    servers::{self, Daemon},
    snapshot,
};

/// Every deletion is turned down.
const NO_DELETION: &str =
    "case $3 in *[!0]*) ;; *) echo 'nothing is ever deleted' >&2; exit 1 ;; esac";
/// Everything but branches is turned down.
const BRANCHES_ONLY: &str =
    "case $1 in refs/heads/*) ;; *) echo 'branches only' >&2; exit 1 ;; esac";

/// Create, refuse, list, read, renew, take over, (mark,) delete, gone: `+` well, `F` failed, `?` unknown, `.` not tried.
fn letters(json: &Value) -> String {
    let letter = |step: &Value| match step["outcome"].as_str().unwrap() {
        "ok" => '+',
        "failed" => 'F',
        "unknown" => '?',
        "not-tried" => '.',
        other => panic!("{other}"),
    };
    json["steps"].as_array().unwrap().iter().map(letter).collect()
}

/// Examines, for programs and then for people; both say the same, and the clone is left alone. Gives both reports.
#[track_caller]
fn examine(clone: &Clone, args: &[&str], code: i32, found: &str) -> (Value, Output) {
    let state = snapshot(&clone.dir);
    let args = [&["doctor"], args].concat();
    let output = clone.run(&args).go_json();
    assert_eq!(output.code, Some(code), "{output}");
    let json = output.json();
    assert_eq!((&json["command"], letters(&json).as_str()), (&"doctor".into(), found), "{output}");
    for step in json["steps"].as_array().unwrap() {
        assert_eq!(step["milliseconds"].is_u64(), step["outcome"] != "not-tried", "{output}");
        let failed = matches!(step["outcome"].as_str(), Some("failed" | "unknown"));
        assert!(!failed || !step["words"].as_array().unwrap().is_empty(), "{output}");
    }
    let told = clone.claim(&args);
    assert_eq!(told.code, Some(code), "{told}");
    for (step, letter) in json["steps"].as_array().unwrap().iter().zip(found.chars()) {
        let word = match letter {
            '+' => "ok ",
            'F' => "failed ",
            '?' => "unknown ",
            _ => "not tried",
        };
        let line = format!("{:<9} {word}", step["name"].as_str().unwrap());
        assert!(told.stdout.lines().any(|told| told.starts_with(&line)), "{line}\n{told}");
        if let Some(means) = step["means"].as_str() {
            assert!(told.stdout.contains(means), "{told}");
        }
    }
    state.still_holds(&clone.dir);
    (json, told)
}

/// Nothing of it is on the server, and it says so.
#[track_caller]
fn nothing_left(remote: &Remote, json: &Value) {
    assert_eq!(json["probe"]["left_behind"], false, "{json}");
    assert!(!remote.refs().contains("doctor-"), "{}", remote.refs());
}

fn warns(json: &Value, words: &str) -> bool {
    json["warnings"].as_array().unwrap().iter().any(|told| told.as_str().unwrap().contains(words))
}

on!(a_healthy_remote: path, reftable, sha256, file_url, daemon, ssh, ssh_v0, ssh_sha256, https, https_v0,
    https_sha256);
fn a_healthy_remote(kind: Kind) {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kind) else { return };
    let clone = sandbox.clone(&remote, "a");
    let refs = remote.refs();
    let (json, told) = examine(&clone, &[], 0, "++++++++");
    nothing_left(&remote, &json);
    assert_eq!(remote.refs(), refs);
    assert_eq!(told.verdict(), "origin can hold claims", "{told}");
    assert!(told.stdout.contains(&format!("origin, {}\n", remote.url)), "{told}");
    let protocol = match kind.via {
        Via::OldSsh => "v0/v1",
        Via::OldHttps => "helper",
        _ => "v2",
    };
    assert_eq!(json["protocol"], protocol, "{json}");
    // An old helper complains of what it is asked for in vain.
    assert!(told.stderr.is_empty() || kind.via == Via::OldHttps, "{told}");
    assert_eq!(json["hash"], if kind.sha256 { "sha256" } else { "sha1" }, "{json}");
    assert_eq!((&json["verdict"], &json["reason"]), (&"healthy".into(), &Value::Null));
    assert_eq!(json["warnings"].as_array().unwrap().len(), 0, "{json}");
    // Create, renew, take over, delete, twice: what the second creation found was not sent.
    assert_eq!(remote.witnessed().len(), 8, "{:?}", remote.witnessed());
    assert!(!told.stdout.contains(servers::PASSWORD));
}

on!(outside_of_a_clone: path, daemon, ssh, https, https_sha256);
fn outside_of_a_clone(kind: Kind) {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kind) else { return };
    fs::create_dir(sandbox.path("nowhere")).unwrap();
    let (json, told) = examine(&sandbox.at("nowhere"), &["--remote", &remote.url], 0, "++++++++");
    nothing_left(&remote, &json);
    assert_eq!(told.verdict(), format!("{} can hold claims", remote.url), "{told}");
}

on!(hidden_refs: path, daemon, ssh, https);
fn hidden_refs(kind: Kind) {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kind) else { return };
    let clone = sandbox.clone(&remote, "a");
    remote.set("transfer.hideRefs", "refs/claims");
    let (json, told) = examine(&clone, &[], 77, "F.+.....");
    nothing_left(&remote, &json);
    assert!(told.verdict().starts_with("origin cannot hold claims: "), "{told}");
    assert!(told.verdict().contains("hidden ref"), "{told}");
    assert_eq!(json["verdict"], "refused", "{json}");
}

on!(hidden_for_reading_only: path, daemon, ssh, ssh_v0, https);
fn hidden_for_reading_only(kind: Kind) {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kind) else { return };
    let clone = sandbox.clone(&remote, "a");
    remote.set("uploadpack.hideRefs", "refs/claims");
    let (json, told) = examine(&clone, &[], 77, "++F.++++");
    nothing_left(&remote, &json);
    assert_eq!(
        told.verdict(),
        "origin can hold claims, but those who read do not see them, or more than 3 s later"
    );
    assert_eq!(json["verdict"], "limited", "{json}");
    assert!(warns(&json, "not shown the probes"), "{json}");
}

/// The command that clears a claim looks for it as a reader.
#[test]
fn what_is_left_behind_unseen_is_not_said_to_be_clearable() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let clone = sandbox.clone(&remote, "a");
    remote.set("uploadpack.hideRefs", "refs/claims");
    remote.hook("update", NO_DELETION);
    let (json, told) = examine(&clone, &[], 77, "++F.++F.");
    assert_eq!(json["probe"]["left_behind"], true, "{json}");
    assert_eq!(json["probe"]["clear"], Value::Null, "{json}");
    assert!(told.stdout.contains("only the remote's owner can clear it"), "{told}");
}

#[test]
fn nobody_may_read() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::https()) else { return };
    let clone = sandbox.clone(&remote, "a");
    remote.set("http.uploadpack", "false");
    let (json, told) = examine(&clone, &[], 77, "++F.++++");
    nothing_left(&remote, &json);
    assert_eq!(told.verdict(), "origin can hold claims, but those who read are refused");
}

on!(a_deletion_is_undone: path, https);
/// A mirror of some kind puts back what was deleted with an `ok`.
fn a_deletion_is_undone(kind: Kind) {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kind) else { return };
    let clone = sandbox.clone(&remote, "a");
    remote.hook(
        "post-receive",
        "while read old new ref; do case $new in *[!0]*) ;; *) git update-ref $ref $old ;; esac; done",
    );
    let (json, told) = examine(&clone, &[], 77, "+++++++F");
    assert_eq!(json["probe"]["left_behind"], true, "{json}");
    assert!(told.stdout.contains("is left behind: the remote said ok"), "{told}");
    remote.unhook("post-receive");
    let cleared = clone.shell(json["probe"]["clear"].as_str().unwrap()).go();
    assert_eq!(cleared.code, Some(0), "{cleared}");
    assert!(!remote.refs().contains(json["probe"]["ref"].as_str().unwrap()), "{}", remote.refs());
}

/// Somebody tidies up on the server while the examination runs. That says nothing against the remote.
#[test]
fn the_probe_is_removed_by_somebody() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let clone = sandbox.clone(&remote, "a");
    remote.hook("update", "case $2 in *[!0]*) git update-ref -d $1 ;; esac");
    let (json, told) = examine(&clone, &[], 69, "++++?...");
    nothing_left(&remote, &json);
    assert_eq!(json["verdict"], "unknown", "{json}");
    assert!(told.verdict().contains("somebody removed it"), "{told}");
}

/// git's server dies over a deletion that this hook turns down, so that no answer comes to it.
const DEADLY: &str = "test $1 = prepared || exit 0\n\
    while read old new ref; do case $new in *[!0]*) ;; *) echo 'kept for ever' >&2; exit 1 ;; esac; done";

#[test]
fn no_answer_comes_to_a_deletion() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let clone = sandbox.clone(&remote, "a");
    remote.hook("reference-transaction", DEADLY);
    let (json, told) = examine(&clone, &[], 69, "++++++?.");
    assert_eq!(json["probe"]["left_behind"], true, "{json}");
    assert!(told.stdout.contains("is left behind: ") && !told.stdout.contains("\\n"), "{told}");
    assert!(json["probe"]["clear"].is_string(), "{json}");

    let _ = clone.claim(&["take", "42"]).is(0, "claimed");
    let told = clone.claim(&["release", "42"]).is(69, "unknown");
    let _ = told.says("was NOT released").says("git config claim.release mark");
    let id = remote.tip("issue-42").unwrap();
    let told = clone.claim(&["release", "42", "--expect", &id]).is(69, "unknown");
    let _ = told.says("was NOT released").says("git config claim.release mark");
}

#[test]
fn quiet_as_it_is_it_says_what_is_left_behind() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let clone = sandbox.clone(&remote, "a");
    let told = clone.claim(&["doctor", "-q"]);
    assert_eq!((told.code, &*told.stdout, &*told.stderr), (Some(0), "", ""), "{told}");
    remote.hook("update", NO_DELETION);
    let told = clone.claim(&["doctor", "-q"]);
    assert_eq!((told.code, &*told.stdout), (Some(77), ""), "{told}");
    assert!(told.stderr.starts_with("error: the probe refs/claims/doctor-"), "{told}");
    assert!(told.stderr.contains("git claim release doctor-"), "{told}");
}

/// Reads are served from a copy that is behind for a while.
#[test]
fn reads_that_lag_behind() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let clone = sandbox.clone(&remote, "a");
    let copy = sandbox.path("copy.git");
    sandbox.copy("origin.git", "copy.git");
    let script = sandbox.script(
        "lagging",
        &format!(
            "echo >>'{0}'\ntest $(wc -l <'{0}') -gt 3 || exec git upload-pack '{1}'\nexec git upload-pack \"$@\"",
            sandbox.path("count").display(),
            copy.display()
        ),
    );
    clone.set("remote.origin.uploadpack", script.to_str().unwrap());
    let output = clone.run(&["doctor"]).go_json();
    assert_eq!(output.code, Some(0), "{output}");
    let json = output.json();
    assert!(letters(&json) == "++++++++" && warns(&json, "reads lag behind writes"), "{output}");
    nothing_left(&remote, &json);
}

on!(everything_is_turned_down_by_a_hook: path, ssh, https);
fn everything_is_turned_down_by_a_hook(kind: Kind) {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kind) else { return };
    let clone = sandbox.clone(&remote, "a");
    remote.hook("pre-receive", "echo 'this one is read only' >&2; exit 1");
    let (json, told) = examine(&clone, &[], 77, "F.+.....");
    nothing_left(&remote, &json);
    let words = json["steps"][0]["words"].to_string();
    assert!(words.contains("this one is read only"), "{json}");
    let _ = told.says("remote: this one is read only");
}

/// No receive-pack, in each way in which a server can be without one.
#[test]
fn nobody_may_write() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::https()) else { return };
    let Some(port) = servers::daemon(Daemon::ReadOnly) else { return };
    let clone = sandbox.clone(&remote, "a");
    let below_root = remote.dir.strip_prefix(servers::root()).unwrap().display();
    for (url, words) in [
        (format!("git://127.0.0.1:{port}/{below_root}"), "service not enabled"),
        (remote.url.replace("/auth/", "/reader/"), "403"),
        (remote.url.clone(), "403"),
    ] {
        remote.set("http.receivepack", if url == remote.url { "false" } else { "true" });
        clone.point_to(&url);
        let (json, told) = examine(&clone, &[], 77, "F.+.....");
        nothing_left(&remote, &json);
        assert!(told.stdout.contains(words) && told.stdout.contains("credentials"), "{told}");
    }
    assert!(remote.witnessed().is_empty(), "{:?}", remote.witnessed());
}

on!(no_deletion: path, daemon, ssh, https);
/// The one case in which the probe stays; what is said to clear it does so, once the server lets it.
fn no_deletion(kind: Kind) {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kind) else { return };
    let clone = sandbox.clone(&remote, "a");
    remote.hook("update", NO_DELETION);
    let (json, told) = examine(&clone, &[], 77, "++++++F.");
    assert_eq!(told.verdict(), "origin can hold claims, but they cannot be released");
    assert!(told.stdout.contains("claim.release mark"), "{told}");
    assert_eq!(json["probe"]["left_behind"], true, "{json}");
    let name = json["probe"]["ref"].as_str().unwrap();
    assert!(remote.refs().contains(name), "{}", remote.refs());
    // The second examination names what the first has left; for all it knows that one goes on.
    let clear = json["probe"]["clear"].as_str().unwrap();
    let warning = format!("warning: {name} is the probe of another examination that runs now");
    assert!(told.stdout.contains(&warning) && !told.stdout.contains(clear), "{told}");
    assert!(told.stdout.contains("is left behind"), "{told}");
    remote.unhook("update");
    let cleared = clone.shell(clear).go();
    assert_eq!(cleared.code, Some(0), "{cleared}");
    assert!(!remote.refs().contains(name), "{}", remote.refs());
}

/// `receive.denyDeletes` is about branches.
#[test]
fn no_deletion_of_branches() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let clone = sandbox.clone(&remote, "a");
    remote.set("receive.denyDeletes", "true");
    clone.set("claim.prefix", "refs/heads/claims/");
    let (json, told) = examine(&clone, &[], 77, "++++++F.");
    assert!(told.stdout.contains("deletion prohibited"), "{told}");
    assert_eq!(json["probe"]["left_behind"], true, "{json}");
}

on!(branches_only: path, ssh, https);
fn branches_only(kind: Kind) {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kind) else { return };
    let clone = sandbox.clone(&remote, "a");
    remote.hook("update", BRANCHES_ONLY);
    let (json, told) = examine(&clone, &[], 77, "F.+.....");
    nothing_left(&remote, &json);
    assert!(told.stdout.contains("git config claim.prefix refs/heads/claims/"), "{told}");
    clone.set("claim.prefix", "refs/heads/claims/");
    let (json, told) = examine(&clone, &[], 0, "++++++++");
    nothing_left(&remote, &json);
    assert!(warns(&json, "claims are branches here"), "{json}");
    assert_eq!(told.verdict(), "origin can hold claims", "{told}");
}

on!(no_atomic: path, ssh, https);
fn no_atomic(kind: Kind) {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kind) else { return };
    let clone = sandbox.clone(&remote, "a");
    remote.set("receive.advertiseAtomic", "false");
    let (json, told) = examine(&clone, &[], 0, "++++++++");
    nothing_left(&remote, &json);
    assert!(warns(&json, "no atomic") && told.stdout.contains("warning: no atomic"), "{told}");
}

/// Every answer to a push is lost: each step is settled by looking, as it is for the verbs.
#[test]
fn the_answers_get_lost() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let clone = sandbox.clone(&remote, "a");
    let Some((proxy, url)) = Proxy::losing_answers(&remote) else { return };
    clone.point_to(&url);
    let (json, told) = examine(&clone, &[], 0, "++++++++");
    nothing_left(&remote, &json);
    assert!(!warns(&json, "no atomic"), "{told}");
    assert!(proxy.lost() >= 4, "{} answers lost", proxy.lost());
}

/// Refs can be read, and nothing behind them.
#[test]
fn records_cannot_be_read() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::daemon()) else { return };
    let clone = sandbox.clone(&remote, "a");
    let proxy = Proxy::start(servers::daemon(Daemon::Writable).unwrap(), Mode::CutFetches);
    let (_, path) = remote.url["git://".len()..].split_once('/').unwrap();
    let url = format!("git://127.0.0.1:{}/{path}", proxy.port);
    clone.point_to(&url);
    let (json, _) = examine(&clone, &[], 69, "+++?++++");
    nothing_left(&remote, &json);
}

/// Whoever asks is told yes. The one remote that must not be used at all, and it looks well at first.
#[test]
fn a_server_that_says_ok_to_everybody() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let clone = sandbox.clone(&remote, "a");
    let hostile = Hostile::start(Hostility::SayOk);
    let (json, told) = examine(&clone, &["--remote", &hostile.url], 77, "+F......");
    assert_eq!(json["verdict"], "unsafe", "{json}");
    assert!(told.verdict().ends_with("cannot hold claims: two can win the same one"), "{told}");
    assert!(told.stdout.contains("do not use this remote for claims"), "{told}");
}

#[test]
fn nobody_is_there() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let clone = sandbox.clone(&remote, "a");
    for url in ["/nonexistent/origin.git", "git://127.0.0.1:1/x", "https://127.0.0.1:1/x"] {
        let (json, told) = examine(&clone, &["--remote", url], 69, "?.......");
        assert_eq!(
            (&json["verdict"], &json["probe"]["left_behind"]),
            (&"unknown".into(), &false.into())
        );
        let start = format!("whether {url} can hold claims could not be told: create: ");
        assert!(told.verdict().starts_with(&start), "{told}");
    }
}

on!(released_by_a_mark: path, ssh, https);
fn released_by_a_mark(kind: Kind) {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kind) else { return };
    let clone = sandbox.clone(&remote, "a");
    clone.set("claim.release", "mark");
    let (json, _) = examine(&clone, &[], 0, "+++++++++");
    nothing_left(&remote, &json);
    assert!(warns(&json, "claim.release = mark is not needed"), "{json}");

    remote.hook("update", NO_DELETION);
    let (json, told) = examine(&clone, &[], 0, "+++++++F.");
    assert_eq!(told.verdict(), "origin can hold claims", "{told}");
    assert!(warns(&json, "no deletion"), "{json}");
    assert_eq!(json["probe"]["left_behind"], true, "{json}");
    let record = remote.git(&["cat-file", "-p", json["probe"]["ref"].as_str().unwrap()]);
    for trailer in ["\nReleased-At: ", "\nTook-Over: ", "\nReason: "] {
        assert!(record.contains(trailer), "{record}");
    }
    // It is nobody's: there is nothing to clear, nor does the next examination complain of it.
    assert_eq!(json["probe"]["clear"], Value::Null, "{json}");
    assert!(!told.stdout.contains("another examination"), "{told}");
    let listed = clone.claim(&["list"]);
    assert!(listed.verdict().starts_with("0 claims"), "{listed}");
    remote.unhook("update");
    clone.git(&["config", "--unset", "claim.release"]);
    let (json, _) = examine(&clone, &[], 0, "++++++++");
    assert!(!warns(&json, "another examination"), "{json}");
}

#[test]
fn what_else_is_on_the_remote_is_named_and_left_alone() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let clone = sandbox.clone(&remote, "a");
    let rita = "Rita Rival <rita@example.com>";
    let id = remote.plant("refs/claims/doctor-0123456789abcdef", rita, "a probe\n");
    remote.plant("refs/claims/doctor-who", rita, "claim doctor-who by me\n");
    remote.plant("refs/heads/claims/issue-7", rita, "claim issue 7 by me\n");
    // Neither is held by anybody.
    remote.plant("refs/heads/claims/doctor-0123456789abcdef", rita, "a probe\n");
    clone.git(&[
        "-c",
        "claim.prefix=refs/heads/claims/",
        "-c",
        "claim.release=mark",
        "claim",
        "take",
        "8",
    ]);
    clone.git(&[
        "-c",
        "claim.prefix=refs/heads/claims/",
        "-c",
        "claim.release=mark",
        "claim",
        "release",
        "8",
    ]);
    let refs = remote.refs();
    let (json, _) = examine(&clone, &[], 0, "++++++++");
    assert_eq!(remote.refs(), refs);
    let clear = format!("git claim release doctor-0123456789abcdef --expect {}", &id[..12]);
    assert!(warns(&json, &clear) && warns(&json, "1 claim under refs/heads/claims/"), "{json}");
    assert!(!warns(&json, "doctor-who"), "{json}");
}

#[test]
fn which_remote_and_where_it_is_read() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let clone = sandbox.clone(&remote, "a");
    clone.git(&["remote", "add", "upstream", "https://example.invalid/up.git"]);
    let (json, told) = examine(&clone, &[], 0, "++++++++");
    assert!(warns(&json, "git config claim.remote upstream"), "{json}");
    assert!(!told.stderr.contains("hint"), "said once: {told}");
    clone.point_to("https://example.invalid/fork.git");
    clone.git(&["remote", "set-url", "--push", "origin", &remote.url]);
    let (json, _) = examine(&clone, &[], 0, "++++++++");
    assert!(warns(&json, "https://example.invalid/fork.git"), "{json}");
    clone.git(&["remote", "set-url", "--push", "--add", "origin", "ssh://example.invalid/x"]);
    let output = clone.run(&["doctor"]).go_json();
    assert_eq!(output.code, Some(2), "{output}");
    assert!(output.json()["reason"].to_string().contains("several push URLs"), "{output}");
}

/// A signal, sent once the server says that it has `reached` the point.
fn interrupt(clone: &Clone, reached: &Path, name: &str) -> Output {
    clone.run(&["doctor"]).go_while(|process| send_once(reached, process, name))
}

fn send_once(reached: &Path, process: u32, name: &str) {
    for _ in 0..3_000 {
        if reached.exists() {
            break;
        }
        thread::sleep(Duration::from_millis(10));
    }
    let sent = Command::new("kill").args([&format!("-{name}"), &process.to_string()]).status();
    assert!(sent.unwrap().success());
}

on!(a_signal_leaves_nothing: path, daemon, ssh, https);
/// The server takes its time over a renewal, and somebody loses patience.
fn a_signal_leaves_nothing(kind: Kind) {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kind) else { return };
    if ignores_signals() {
        eprintln!("skipped: signals are ignored here, and so they are by whatever is started");
        return;
    }
    let clone = sandbox.clone(&remote, "a");
    let state = snapshot(&clone.dir);
    for (name, number) in [("INT", 2), ("TERM", 15), ("HUP", 1)] {
        let reached = sandbox.path(&format!("reached-{name}"));
        remote.hook(
            "update",
            &format!(
                "case $2 in *[!0]*) test -e '{0}' || {{ touch '{0}'; sleep 20; }} ;; esac",
                reached.display()
            ),
        );
        let output = interrupt(&clone, &reached, name);
        assert_eq!(output.code, None, "{output}");
        let ended = ExitStatus::from_raw(number).to_string();
        assert!(output.to_string().contains(&ended), "{name}: {output}");
        assert!(output.stdout.contains("\ncreate    ok"), "{output}");
        assert!(output.verdict().ends_with("could not be told: renew: interrupted"), "{output}");
        assert!(output.stdout.contains("\ninterrupted; nothing is left of the probe"), "{output}");
        assert!(!remote.refs().contains("doctor-"), "{name}: {}", remote.refs());
        assert_eq!(sandbox.left_running(), Vec::<String>::new(), "{name}");
        assert_eq!(fs::read_dir(sandbox.path("tmp")).unwrap().count(), 0, "{name}");
    }
    state.still_holds(&clone.dir);
}

/// What cannot be deleted is at least nobody's, where that is how claims are released.
#[test]
fn a_signal_leaves_a_mark_where_nothing_can_be_deleted() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    if ignores_signals() {
        eprintln!("skipped: signals are ignored here, and so they are by whatever is started");
        return;
    }
    let clone = sandbox.clone(&remote, "a");
    clone.set("claim.release", "mark");
    let reached = sandbox.path("reached");
    remote.hook(
        "update",
        &format!(
            "{NO_DELETION}\ncase $2 in *[!0]*) test -e '{0}' || {{ touch '{0}'; sleep 20; }} ;; esac",
            reached.display()
        ),
    );
    let output = interrupt(&clone, &reached, "TERM");
    assert_eq!(output.code, None, "{output}");
    assert!(output.stdout.contains("it is marked as released"), "{output}");
    let refs = remote.refs();
    let name = refs.lines().find_map(|line| line.split_once("refs/claims/")).unwrap().1;
    assert!(remote.record(name).contains("\nReleased-At: "), "{}", remote.record(name));
    let listed = clone.claim(&["list"]);
    assert!(listed.verdict().starts_with("0 claims"), "{listed}");
}

on!(what_lands_after_a_signal_is_removed: daemon, ssh);
/// The creation itself is under way: the server goes on with it after we hung up.
fn what_lands_after_a_signal_is_removed(kind: Kind) {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kind) else { return };
    if ignores_signals() {
        eprintln!("skipped: signals are ignored here, and so they are by whatever is started");
        return;
    }
    let clone = sandbox.clone(&remote, "a");
    let reached = sandbox.path("reached");
    remote.hook(
        "reference-transaction",
        &format!(
            "test $1 = prepared || exit 0; cat >/dev/null\n\
             test -e '{0}' || {{ touch '{0}'; sleep 1; }}",
            reached.display()
        ),
    );
    let output = interrupt(&clone, &reached, "TERM");
    assert_eq!(output.code, None, "{output}");
    thread::sleep(Duration::from_secs(2));
    assert!(!remote.refs().contains("doctor-"), "{output}{}", remote.refs());
    let deleted = |line: &String| line.ends_with(&"0".repeat(40));
    assert!(remote.witnessed().iter().any(deleted), "it did land: {:?}", remote.witnessed());
}

/// Who cannot wait for the tidying up either need not.
#[test]
fn a_second_signal_ends_it_at_once() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    if ignores_signals() {
        eprintln!("skipped: signals are ignored here, and so they are by whatever is started");
        return;
    }
    let clone = sandbox.clone(&remote, "a");
    let (first, second) = (sandbox.path("first"), sandbox.path("second"));
    remote.hook(
        "update",
        &format!(
            "case $3 in *[!0]*) ;; *) touch '{1}'; exec sleep 50 ;; esac\n\
             case $2 in *[!0]*) touch '{0}'; exec sleep 50 ;; esac",
            first.display(),
            second.display()
        ),
    );
    let output = clone.run(&["doctor"]).go_while(|process| {
        send_once(&first, process, "INT");
        send_once(&second, process, "TERM");
    });
    assert_eq!(output.code, None, "{output}");
    assert!(output.to_string().contains(&ExitStatus::from_raw(15).to_string()), "{output}");
    assert_eq!(sandbox.left_running(), Vec::<String>::new());
}
