//! `stale` tells which claims a person should look at, with what is known about each and the commands; it changes nothing.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    process::{Child, Command, Stdio},
};

use chrono::{SecondsFormat, TimeDelta, Utc};
use serde_json::{Value, json};

use crate::support::{
    Clone, Kind, Output, Remote, Sandbox, kinds, on,
    proxy::{Mode, Proxy},
    servers::{self, Daemon},
    snapshot,
};

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

fn stamp(ago: i64) -> String {
    (Utc::now() - TimeDelta::seconds(ago)).to_rfc3339_opts(SecondsFormat::Secs, true)
}

/// A record of a claim taken so many seconds ago, with `more` trailers.
fn record(name: &str, holder: &str, ago: i64, more: &str) -> String {
    let token: String =
        name.bytes().chain(*b"________________").take(16).fold(String::new(), |mut hex, byte| {
            write!(hex, "{byte:02x}").unwrap();
            hex
        });
    format!(
        "claim {name} by {holder}\n\nClaim: {name}\nClaim-Format: 1\nClaimed-By: {holder} <{holder}@example.com>\n\
         Claimed-On: host-of-{holder}\nClaimed-At: {}\nClaim-Token: {token}\n{more}",
        stamp(ago)
    )
}

/// Puts a commit with `message` behind each ref, all at once, made so many seconds ago.
fn plant_all(remote: &Remote, claims: &[(String, i64, String)]) {
    let mut stream = String::new();
    for (refname, ago, message) in claims {
        let at = Utc::now().timestamp() - ago;
        write!(
            stream,
            "commit {refname}\ncommitter Hand Made <hand@example.com> {at} +0000\ndata {}\n{message}\n",
            message.len()
        )
        .unwrap();
    }
    remote.git_input(&["fast-import", "--quiet"], &stream);
}

/// One record behind the ref of its name.
fn plant(remote: &Remote, name: &str, message: &str) -> String {
    remote.plant(&format!("refs/claims/{name}"), "Hand Made <hand@example.com>", message)
}

/// The lines of the report about one claim, from its headline on.
#[track_caller]
fn about(output: &Output, name: &str) -> Vec<String> {
    let start = format!("{name} is ");
    let mut lines = output.stdout.lines().skip_while(|line| !line.starts_with(&start));
    let Some(headline) = lines.next() else { panic!("nothing about {name}\n{output}") };
    let more = lines.take_while(|line| line.starts_with("  "));
    std::iter::once(headline).chain(more).map(str::to_owned).collect()
}

/// What a label of the report about one claim says.
#[track_caller]
fn fact(output: &Output, name: &str, label: &str) -> String {
    let about = about(output, name);
    let found = about.iter().find_map(|line| {
        let rest = line.strip_prefix("  ")?.strip_prefix(label)?;
        rest.starts_with(' ').then(|| rest.trim().to_owned())
    });
    found.unwrap_or_else(|| panic!("no {label} of {name}\n{output}"))
}

/// The claims of a JSON report by their names.
fn by_name(output: &Output) -> BTreeMap<String, Value> {
    let json = output.json();
    let claims = json["claims"].as_array().unwrap().iter();
    claims.map(|claim| (claim["name"].as_str().unwrap().to_owned(), claim.clone())).collect()
}

#[track_caller]
fn stale_json(clone: &Clone, args: &[&str]) -> Output {
    let args: Vec<&str> = std::iter::once("stale").chain(args.iter().copied()).collect();
    clone.run(&args).go_json()
}

on!(what_is_stale_is_told_and_nothing_is_touched: path, sha256, daemon, ssh, ssh_v0, https, https_v0);
fn what_is_stale_is_told_and_nothing_is_touched(kind: Kind) {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kind) else { return };
    let clone = sandbox.clone(&remote, "a");
    let none = clone.claim(&["stale", "--exit-code"]);
    let _ = none.is(
        0,
        "none of 0 claims on origin is stale (limits: 24 hours without a sign of life, 10 promised renewals, ",
    );
    let _ = clone.claim(&["take", "1", "--note", "mine"]).is(0, "claimed");
    let old = plant(
        &remote,
        "issue-2",
        &record("issue-2", "bob", 3 * DAY, "Job: https://ci.example.com/2\n"),
    );
    plant(&remote, "issue-3", &record("issue-3", "cid", HOUR, "Heartbeat: 120\n"));
    plant(&remote, "issue-4", &record("issue-4", "dan", -2 * HOUR, ""));
    let blob = remote.git_input(&["hash-object", "-w", "--stdin"], "not a claim\n");
    remote.git(&["update-ref", "refs/claims/issue-5", &blob]);
    let renewed = format!("Renewed-At: {}\n", stamp(MINUTE));
    plant(&remote, "issue-6", &record("issue-6", "eve", 9 * DAY, &renewed));
    let released = format!("Released-At: {}\n", stamp(5 * DAY));
    plant(&remote, "issue-7", &record("issue-7", "fay", 9 * DAY, &released));
    // By hand, in 2025.
    plant(&remote, "by-hand", "claim it by me\n");

    let (refs, witnessed, before) = (remote.refs(), remote.witnessed(), snapshot(&clone.dir));
    let records = snapshot(&clone.git_path("claims"));
    let report = clone.claim(&["stale"]);
    let verdict = "5 of 7 claims on origin are stale (limits: 24 hours without a sign of life, 10 promised renewals, \
                   2 minutes ahead)";
    assert_eq!((report.code, report.verdict()), (Some(0), verdict), "{report}");
    let named: Vec<&str> = report
        .stdout
        .lines()
        .filter(|line| !line.starts_with(' '))
        .map(|line| line.split(' ').next().unwrap())
        .collect();
    assert_eq!(
        named,
        ["by-hand", "issue-2", "issue-3", "issue-4", "issue-5", "5"],
        "oldest first\n{report}"
    );
    let headline = |name| about(&report, name).remove(0);
    assert_eq!(headline("issue-2"), "issue-2 is old: no sign of life for 3 days (limit: 24 hours)");
    let silent = "issue-3 is silent: 30 promised renewals missed, one every 120 s (limit: 10)";
    assert_eq!(headline("issue-3"), silent);
    // A minute may have passed since it was stamped.
    assert!(
        headline("issue-4")
            .starts_with("issue-4 is stamped in the future: 1 hour ahead of the clock here")
            || headline("issue-4")
                .starts_with("issue-4 is stamped in the future: 2 hours ahead of the clock here"),
        "{report}"
    );
    assert_eq!(headline("issue-5"), "issue-5 is unreadable: it points at a blob, not at a commit");
    assert_eq!(fact(&report, "issue-2", "holder"), "bob <bob@example.com>");
    assert_eq!(fact(&report, "issue-2", "host"), "host-of-bob");
    assert!(fact(&report, "issue-2", "since").ends_with(" UTC (3 days ago)"), "{report}");
    assert!(fact(&report, "issue-2", "last sign").ends_with(" UTC (3 days ago)"), "{report}");
    assert_eq!(fact(&report, "issue-2", "job"), "https://ci.example.com/2");
    assert_eq!(fact(&report, "issue-3", "promise"), "a renewal every 120 s");
    assert_eq!(fact(&report, "by-hand", "note"), "claim it by me");
    let short = &old[..12];
    assert_eq!(
        fact(&report, "issue-2", "clear it:"),
        format!("git claim release issue-2 --expect {short}")
    );
    let over =
        format!("git claim take issue-2 --over {short} --reason 'no sign of life for 3 days'");
    assert_eq!(fact(&report, "issue-2", "take it over:"), over);
    assert!(!about(&report, "issue-5").iter().any(|line| line.contains("--over")), "{report}");

    let strict = clone.claim(&["stale", "--exit-code"]);
    assert_eq!((strict.code, strict.verdict()), (Some(3), verdict), "{strict}");
    let all = clone.claim(&["stale", "--all", "--exit-code"]).is(3, "5 of 7 claims");
    assert_eq!(about(&all, "issue-6")[0], "issue-6 is fresh: last sign of life 1 minute ago");
    assert!(fact(&all, "issue-6", "since").contains("9 days ago"), "{all}");
    assert_eq!(fact(&all, "issue-1", "clear it:"), "git claim release issue-1");
    assert!(!about(&all, "issue-1").iter().any(|line| line.contains("--over")), "{all}");
    assert!(!all.stdout.contains("issue-7"), "it was given back\n{all}");

    let json = stale_json(&clone, &["--all", "--exit-code"]);
    let object = json.json();
    assert_eq!(
        (json.code, &object["verdict"], &object["looked_at"]),
        (Some(3), &json!("stale"), &json!(7)),
        "{json}"
    );
    assert_eq!(object["limits"], json!({ "older_than": 86_400, "missed": 10, "ahead": 120 }));
    let claims = by_name(&json);
    for (name, state) in [
        ("issue-1", json!([])),
        ("issue-2", json!(["old"])),
        ("issue-3", json!(["silent"])),
        ("issue-4", json!(["clock-ahead"])),
        ("issue-5", json!(["unreadable"])),
        ("issue-6", json!([])),
        ("by-hand", json!(["old"])),
    ] {
        assert_eq!(claims[name]["state"], state, "{name}\n{json}");
        assert_eq!(claims[name]["mine"], name == "issue-1", "{json}");
    }
    let commands = json!({ "clear": format!("git claim release issue-2 --expect {short}"), "take_over": over });
    assert_eq!(claims["issue-2"]["commands"], commands);
    assert_eq!(claims["issue-2"]["last_sign_of_life"], claims["issue-2"]["since"]);
    assert_eq!(claims["issue-6"]["last_sign_of_life"], claims["issue-6"]["renewed"]);
    assert_eq!(claims["issue-5"]["last_sign_of_life"], Value::Null);
    for said in [&report, &all, &json] {
        let said = format!("{}{}", said.stdout, said.stderr).to_lowercase();
        assert!(!said.contains("dead"), "{said}");
    }
    assert_eq!(remote.refs(), refs);
    assert_eq!(remote.witnessed(), witnessed);
    before.still_holds(&clone.dir);
    records.still_holds(&clone.git_path("claims"));
}

/// Every line right, over one connection: a thousand claims by fifty holders, a tenth of them stale in each way.
#[test]
fn a_thousand_claims_are_one_connection() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let main = remote.git(&["rev-parse", "main"]);
    let mut expected = BTreeMap::new();
    let mut claims = Vec::new();
    let mut closed = String::from("# closed\n");
    for number in 1..=1000_i64 {
        let name = format!("issue-{number}");
        let holder = format!("holder-{}", number / 10 % 50);
        let branch = format!("Branch: fix/{}\nHead: {main}\n", number % 7);
        let renewed = |ago| format!("{branch}Renewed-At: {}\n", stamp(ago));
        let fresh = record(&name, &holder, 10 * MINUTE, &branch);
        let (state, message) = match number % 10 {
            0 => (json!(["old"]), record(&name, &holder, 3 * DAY + number, &branch)),
            1 => (
                json!(["silent"]),
                record(&name, &holder, 20 * HOUR, &format!("{}Heartbeat: 60\n", renewed(HOUR))),
            ),
            2 => (json!(["clock-ahead"]), record(&name, &holder, -2 * HOUR, &branch)),
            3 => (json!(["unreadable"]), fresh.replace("Claim-Format: 1", "Claim-Format: 2")),
            4 => {
                writeln!(closed, "#{number}").unwrap();
                (json!(["closed"]), fresh)
            }
            5 => (json!([]), "claim it by hand".to_owned()),
            6 => (json!([]), record(&name, &holder, 3 * DAY, &renewed(HOUR))),
            7 => (
                json!([]),
                record(&name, &holder, 20 * HOUR, &format!("{branch}Heartbeat: 36000\n")),
            ),
            _ => (json!([]), fresh),
        };
        claims.push((format!("refs/claims/{name}"), MINUTE, message));
        expected.insert(name, (state, holder));
    }
    plant_all(&remote, &claims);
    remote.git(&["update-ref", "refs/heads/fix/1", &main]);
    let mut ids = BTreeMap::new();
    for line in remote
        .git(&["for-each-ref", "--format=%(refname:lstrip=2) %(objectname)", "refs/claims/"])
        .lines()
    {
        let (name, id) = line.split_once(' ').unwrap();
        ids.insert(name.to_owned(), id.to_owned());
    }
    assert_eq!(ids.len(), 1000);

    let below_root = remote.dir.strip_prefix(servers::root()).unwrap().display();
    let clone = sandbox.empty(&remote, "a");
    let mut links = Vec::new();
    if let Some(port) = servers::daemon(Daemon::Writable) {
        let proxy = Proxy::start(port, Mode::Count);
        links.push((format!("git://127.0.0.1:{}/{below_root}", proxy.port), proxy));
    }
    if let Some(web) = servers::web() {
        let proxy = Proxy::start(web.http, Mode::Count);
        links.push((format!("http://127.0.0.1:{}/open/{below_root}", proxy.port), proxy));
        let proxy = Proxy::start(web.https, Mode::Count);
        links.push((format!("https://127.0.0.1:{}/open/{below_root}", proxy.port), proxy));
        sandbox.configure(&format!("[http]\n\tsslCAInfo = {}\n", web.authority));
    }
    for (url, proxy) in links {
        let run = clone.run(&["stale", "--all", "--closed", "-", "--remote", &url]);
        let output = run.input(closed.clone()).go_json();
        assert_eq!((output.code, proxy.connections()), (Some(0), 1), "{url} {output}");
        let found = by_name(&output);
        assert_eq!(found.len(), 1000);
        for (name, (state, holder)) in &expected {
            let claim = &found[name];
            assert_eq!(
                (&claim["state"], claim["id"].as_str()),
                (state, Some(ids[name].as_str())),
                "{claim}"
            );
            let by_hand = claim["record"] == "by-hand";
            if claim["record"] != "unreadable" {
                let holder = if by_hand { "Hand Made" } else { holder };
                assert_eq!(claim["holder"]["name"], holder, "{claim}");
            }
            if let Some(branch) = claim["branch"].as_str() {
                let there = branch == "fix/1";
                let id = if there { json!(main) } else { Value::Null };
                let is_head = if there { json!(true) } else { Value::Null };
                let now = json!({ "exists": there, "id": id, "is_recorded_head": is_head });
                assert_eq!(claim["branch_now"], now, "{claim}");
            }
            let (short, remote) = (&ids[name][..12], format!("--remote {url}"));
            let clear = format!("git claim release {name} --expect {short} {remote}");
            assert_eq!(claim["commands"]["clear"], clear, "{claim}");
            let take_over = claim["commands"]["take_over"].as_str();
            let Some(take_over) = take_over else {
                assert_eq!(*state, json!(["unreadable"]), "{claim}");
                continue;
            };
            let start = format!("git claim take {name} --over {short} --reason '");
            let rest = take_over.strip_prefix(&start).and_then(|rest| rest.strip_suffix(&remote));
            let reason = rest.and_then(|rest| rest.strip_suffix("' ")).unwrap_or_default();
            let expected = match state[0].as_str() {
                Some("old") => "no sign of life for 3 days",
                Some("silent") => "promised renewals missed, one every 60 s",
                Some("clock-ahead") => " ahead",
                Some("closed") => "the issue is closed",
                _ => "…",
            };
            assert!(reason.ends_with(expected), "{claim}");
        }
        let run = clone.run(&["stale", "--closed", "-", "--remote", &url]);
        let report = run.input(closed.clone()).go();
        let verdict = report.verdict();
        assert!(verdict.starts_with("500 of 1000 claims on "), "{verdict}");
        assert!(verdict.ends_with(" ahead, or closed)"), "{verdict}");
        for (name, (state, _)) in &expected {
            let said = match state.get(0).and_then(Value::as_str) {
                Some("old") => "old: no sign of life for 3 days (limit: 24 hours)",
                Some("silent") => "silent: 6",
                Some("clock-ahead") => "stamped in the future: ",
                Some("unreadable") => {
                    "unreadable: Claim-Format: a newer git-claim made it (format 2)"
                }
                Some(_) => "still claimed: issue closed",
                None => {
                    assert!(!report.stdout.contains(&format!("{name} ")), "{name}");
                    continue;
                }
            };
            let headline = about(&report, name).remove(0);
            assert!(headline.starts_with(&format!("{name} is {said}")), "{headline}");
            assert!(fact(&report, name, "clear it:").contains(&ids[name][..12]), "{headline}");
        }
        assert_eq!(proxy.connections(), 2, "one for each run, {url}");
    }
}

/// What clocks do, and what stands where a time should be.
#[test]
fn no_clock_makes_a_claim_look_younger_than_it_may_be() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let clone = sandbox.clone(&remote, "a");
    let year_2099 = record("issue-3", "cid", 0, "").replace(&stamp(0)[..4], "2099");
    let odd = |name: &str, from: &str, to: &str| {
        let record = record(name, "dan", 0, "");
        let line = record.lines().find(|line| line.starts_with(from)).unwrap().to_owned();
        record.replace(&format!("{line}\n"), to)
    };
    for (name, message) in [
        ("issue-1", record("issue-1", "ann", -2 * HOUR, "")),
        ("issue-2", record("issue-2", "bob", 2 * HOUR, "")),
        ("issue-3", year_2099),
        ("issue-4", odd("issue-4", "Claimed-At", "Claimed-At: last tuesday\n")),
        ("issue-5", odd("issue-5", "Claimed-At", "")),
        ("issue-6", record("issue-6", "eve", DAY, &format!("Renewed-At: {}\n", stamp(-2 * HOUR)))),
        ("issue-7", record("issue-7", "fay", -MINUTE, "Heartbeat: 4294967295\n")),
    ] {
        plant(&remote, name, &message);
    }
    let timeless = "tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904\nauthor A <a@x> soon\ncommitter A <a@x> soon\n\nby me\n";
    let timeless = remote
        .git_input(&["hash-object", "-t", "commit", "-w", "--literally", "--stdin"], timeless);
    remote.git(&["update-ref", "refs/claims/issue-8", &timeless]);
    let json = stale_json(&clone, &["--all"]);
    let claims = by_name(&json);
    let ahead = json!(["clock-ahead"]);
    let unreadable = json!(["unreadable"]);
    for (name, state) in [
        ("issue-1", &ahead),
        ("issue-2", &json!([])),
        ("issue-3", &ahead),
        ("issue-4", &unreadable),
        ("issue-5", &unreadable),
        ("issue-6", &ahead),
        ("issue-7", &json!([])),
        ("issue-8", &unreadable),
    ] {
        assert_eq!(&claims[name]["state"], state, "{name}\n{json}");
    }
    let report = clone.claim(&["stale", "--older-than", "0"]).is(0, "8 of 8 claims");
    assert!(
        about(&report, "issue-3")[0].contains("days ahead of the clock here (limit: 2 minutes)"),
        "{report}"
    );
    assert!(fact(&report, "issue-1", "since").ends_with("(clock ahead))"), "{report}");
    assert!(about(&report, "issue-7")[0].starts_with("issue-7 is old: "), "{report}");
}

/// Lengths of time, from each place where one can be set, and what is none.
#[test]
fn how_old_is_old_can_be_said_as_people_say_it() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let clone = sandbox.clone(&remote, "a");
    plant(&remote, "issue-1", &record("issue-1", "ann", 2 * HOUR, ""));
    for (length, stale, told) in [
        ("90m", 1, "90 minutes"),
        ("2h30m", 0, "150 minutes"),
        ("3 days", 0, "3 days"),
        ("7200", 1, "2 hours"),
        ("0", 1, "0 seconds"),
    ] {
        let report = clone.claim(&["stale", "--older-than", length]);
        let start = if stale == 1 {
            "1 of 1 claim on origin is stale"
        } else {
            "none of 1 claim on origin is stale"
        };
        let _ = report.is(0, &format!("{start} (limits: {told} without a sign of life, "));
    }
    clone.set("claim.staleAfter", "90m");
    let _ = clone
        .claim(&["stale", "--exit-code"])
        .is(3, "1 of 1 claim on origin is stale (limits: 90 minutes without a sign of life");
    let _ = clone.claim(&["stale", "--exit-code", "--older-than", "1d"]).is(0, "none of 1 claim");
    let wrong = clone.claim(&["stale", "--older-than", "a while"]);
    assert_eq!(wrong.code, Some(2), "{wrong}");
    let _ = wrong.says("--older-than: 'a while' is not a length of time");
    clone.set("claim.staleAfter", "soon");
    let wrong = clone.claim(&["stale"]);
    assert_eq!(wrong.code, Some(2), "{wrong}");
    let _ = wrong.says("claim.staleAfter is 'soon'");
}

on!(the_recorded_branch_is_looked_up: path, reftable, sha256, daemon, ssh_v0, https, https_v0);
fn the_recorded_branch_is_looked_up(kind: Kind) {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kind) else { return };
    let clone = sandbox.clone(&remote, "a");
    let main = remote.git(&["rev-parse", "main"]);
    let other = remote.plant("refs/changes/17/1", "Ann <ann@example.com>", "work\n");
    // One that begins with the name of another, and one that only ends so.
    remote.git(&["update-ref", "refs/heads/fix-2", &main]);
    remote.git(&["update-ref", "refs/heads/refs/heads/fix", &main]);
    let trailers = |branch: &str, head: &str| {
        format!("Head: {head}\nBranch: {branch}\n").replace("Head: \n", "")
    };
    let short = |id: &str| id[..12].to_owned();
    let mut expected = Vec::new();
    for (number, (branch, head, exists, told)) in [
        (
            "main",
            main.as_str(),
            true,
            format!("main: on the remote at {}, the recorded head", short(&main)),
        ),
        (
            "refs/heads/main",
            &other,
            true,
            format!(
                "refs/heads/main: on the remote at {}, not the recorded head ({})",
                short(&main),
                short(&other)
            ),
        ),
        (
            "refs/changes/17/1",
            "",
            true,
            format!("refs/changes/17/1: on the remote at {}, no head recorded", short(&other)),
        ),
        ("fix", &main, false, "fix: not on the remote".to_owned()),
        ("mai", &main, false, "mai: not on the remote".to_owned()),
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("issue-{}", number + 1);
        plant(&remote, &name, &record(&name, "ann", 2 * DAY, &trailers(branch, head)));
        expected.push((name, exists, told));
    }
    // No ref could have these names: nothing is asked, and nothing is said.
    plant(&remote, "issue-8", &record("issue-8", "ann", 2 * DAY, &trailers("refs/", &main)));
    plant(&remote, "issue-9", &record("issue-9", "ann", 2 * DAY, &trailers("my work", &main)));
    let report = clone.claim(&["stale"]).is(0, "7 of 7 claims");
    let json = by_name(&stale_json(&clone, &[]));
    for (name, exists, told) in expected {
        assert_eq!(fact(&report, &name, "branch"), told, "{report}");
        assert_eq!(json[&name]["branch_now"]["exists"], exists, "{name}");
    }
    assert_eq!(json["issue-1"]["branch_now"]["is_recorded_head"], true);
    assert_eq!(json["issue-2"]["branch_now"]["is_recorded_head"], false);
    assert_eq!(json["issue-3"]["branch_now"]["is_recorded_head"], Value::Null);
    assert_eq!(fact(&report, "issue-9", "branch"), "my work");
    assert_eq!(json["issue-8"]["branch_now"], Value::Null);
}

/// Ends with the test, whatever that does.
struct Sleeper(Child);

impl Sleeper {
    fn start() -> Self {
        let mut command = Command::new("sleep");
        command.arg("600").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Sleeper(command.spawn().unwrap())
    }

    fn pid(&self) -> String {
        self.0.id().to_string()
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The number alone proves nothing: the start and the boot must be those of the record.
#[cfg(target_os = "linux")]
#[test]
fn a_process_of_this_host_is_looked_up() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let clone = sandbox.clone(&remote, "a");
    let mut worker = Sleeper::start();
    let pid = worker.pid();
    let _ = clone.claim(&["take", "1", "--process", &pid]).is(0, "claimed");
    let record = remote.record("issue-1");
    let line = record.lines().find(|line| line.starts_with("Process: ")).unwrap().to_owned();
    let words: Vec<&str> = line.split(' ').collect();
    assert_eq!((words.len(), words[1]), (4, pid.as_str()), "{line}");
    let message = record.split_once("\n\n").unwrap().1.to_owned() + "\n";
    let host = message.lines().find(|line| line.starts_with("Claimed-On: ")).unwrap().to_owned();
    for (name, from, to) in [
        ("issue-2", line.as_str(), format!("Process: {pid} 17 {}", words[3])),
        (
            "issue-3",
            &line,
            format!("Process: {pid} {} 00000000-1111-4222-8333-444444444444", words[2]),
        ),
        ("issue-4", &line, format!("Process: {pid} - {}", words[3])),
        ("issue-5", &line, format!("Process: {pid} {} -", words[2])),
        ("issue-6", &line, format!("Process: {pid} {} {}:4026530000", words[2], words[3])),
        ("issue-7", &host, "Claimed-On: some-other-host".to_owned()),
    ] {
        plant(&remote, name, &message.replace(from, &to));
    }
    let told = |worker: &str| {
        let json = by_name(&stale_json(&clone, &["--all"]));
        let report = clone.claim(&["stale", "--all"]);
        for (name, state, text) in [
            (
                "issue-1",
                worker,
                if worker == "running" { "runs on this host" } else { "has ended on this host" },
            ),
            (
                "issue-2",
                "ended",
                if worker == "running" { "another process now" } else { "has ended on this host" },
            ),
            ("issue-3", "other-boot", "this host was restarted since, or another has its name"),
            ("issue-4", if worker == "running" { "unknown" } else { "ended" }, &pid),
            ("issue-5", "unknown", "whether it runs cannot be told"),
            ("issue-6", "unknown", "whether it runs cannot be told"),
            ("issue-7", "unknown", "on that host"),
        ] {
            assert_eq!(
                json[name]["process"],
                json!({ "pid": pid.parse::<u32>().unwrap(), "state": state }),
                "{name}"
            );
            let fact = fact(&report, name, "process");
            assert!(fact.starts_with(&pid) && fact.contains(text), "{name}: {fact}");
            assert!(!report.stdout.to_lowercase().contains("dead"), "{report}");
        }
    };
    told("running");
    // Ended, and not waited for: it is in the table of processes still.
    worker.0.kill().unwrap();
    let stat = format!("/proc/{pid}/stat");
    while !std::fs::read_to_string(&stat).unwrap().contains(") Z ") {
        std::thread::yield_now();
    }
    told("ended");
    worker.0.wait().unwrap();
    told("ended");

    for typed in [pid.as_str(), "0", "4294967295", "-1", "me", ""] {
        let refused = clone.claim(&["take", "8", &format!("--process={typed}")]);
        assert_eq!(refused.code, Some(2), "{refused}");
        let _ = refused.says(&format!("there is no process '{typed}' here"));
    }
    assert_eq!(remote.tip("issue-8"), None);
}

/// What a tracker knows is joined by a list of names, and so is what is to be looked at.
#[test]
fn lists_of_names_are_read_from_files_and_from_standard_input() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let clone = sandbox.clone(&remote, "a");
    for (number, ago) in [(1, 3 * DAY), (2, MINUTE), (3, MINUTE), (4, 3 * DAY)] {
        let name = format!("issue-{number}");
        plant(&remote, &name, &record(&name, "ann", ago, ""));
    }
    let names = |output: &Output| by_name(output).into_keys().collect::<BTreeSet<_>>();
    let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();

    let list = "# open ones\n\n#2\n3\r\nhttps://example.com/o/r/issues/4\n2\n99\n";
    let output = clone.run(&["stale", "--all", "-"]).input(list).go_json();
    assert_eq!(names(&output), set(&["issue-2", "issue-3", "issue-4"]), "{output}");
    assert_eq!(output.json()["not_claimed"], json!(["issue-99"]));
    let report =
        clone.run(&["stale", "-", "1"]).input(list).go().is(0, "2 of 4 claims on origin are stale");
    assert!(report.stdout.contains("\nnot claimed: issue-99\n"), "{report}");
    let _ = clone.claim(&["stale", "2", "issue-3"]).is(0, "none of 2 claims on origin is stale");
    // A list of nothing is not "all of them".
    let _ = clone.claim(&["stale", "-"]).is(0, "none of 0 claims on origin is stale");
    let many: String = (1..=30).map(|number| format!("{number}\n")).collect();
    let report = clone.run(&["stale", "-"]).input(many).go().is(0, "2 of 4 claims");
    assert!(report.stdout.contains("issue-19 and 16 more\n"), "{report}");

    let file = sandbox.path("closed");
    std::fs::write(&file, "#3\n#4\n# 1\nsomething-else\n").unwrap();
    let closed = clone.run(&["stale", "--closed", file.to_str().unwrap()]).go_json();
    let found = by_name(&closed);
    let states: Vec<_> =
        found.iter().map(|(name, claim)| (name.as_str(), claim["state"].clone())).collect();
    let expected = [
        ("issue-1", json!(["old"])),
        ("issue-3", json!(["closed"])),
        ("issue-4", json!(["old", "closed"])),
    ];
    assert_eq!(states, expected, "{closed}");
    let report = clone.run(&["stale", "--closed", "-"]).input("3\n4\n").go();
    let both =
        "issue-4 is old: no sign of life for 3 days (limit: 24 hours); still claimed: issue closed";
    assert_eq!(about(&report, "issue-4")[0], both, "{report}");
    assert!(report.verdict().ends_with(", or closed)"), "{report}");
    let mixed = clone
        .run(&["stale", "-", "--closed", file.to_str().unwrap(), "--exit-code"])
        .input("2\n3\n");
    let _ = mixed.go().is(3, "1 of 2 claims on origin is stale");

    for (args, input, said) in [
        (&["stale", "-", "-"][..], "1\n", "'-' is given twice"),
        (&["stale", "-", "--closed", "-"], "1\n", "'-' is given twice"),
        (&["stale", "-"], "1\n\nnot one\n", "standard input, line 3: \"not one\" is no name"),
        (&["stale", "--closed", "-"], "1 # done\n", "standard input, line 1: "),
        (&["stale", "--closed", "no-such-file"], "", "--closed no-such-file: "),
        (&["stale", "4 2"], "", "\"4 2\" is no name"),
    ] {
        let output = clone.run(args).input(input).go();
        assert_eq!(output.code, Some(2), "{output}");
        let _ = output.says(said);
    }
}

/// A ref that no name leads to, and whose own name a shell would act on, is cleared by the very line that is printed.
#[test]
fn the_printed_command_clears_what_was_reported() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let clone = sandbox.clone(&remote, "a");
    let odd = ["refs/claims/Team/$(touch>owned)';touch>owned;\"", "refs/claims/issue-042"];
    for refname in odd {
        remote.plant(refname, "Rita <rita@example.com>", "by me\n");
    }
    remote.git(&["symbolic-ref", "refs/claims/pointer", "refs/heads/main"]);
    let report = clone.claim(&["stale", "--older-than", "0"]).is(0, "3 of 3 claims");
    assert!(!about(&report, "pointer").iter().any(|line| line.contains("git claim")), "{report}");
    assert!(!report.stdout.contains("--over"), "{report}");
    for line in report.stdout.lines().filter_map(|line| line.trim().strip_prefix("clear it:")) {
        if line.contains("git claim") {
            let _ = clone.shell(line.trim()).go().is(0, "released");
        }
    }
    assert!(!clone.dir.join("owned").exists());
    let left = remote.git(&["for-each-ref", "--format=%(refname)", "refs/claims/"]);
    assert_eq!(left, "refs/claims/pointer");
}

/// The other line takes over exactly what was reported, on the remote that was meant.
#[test]
fn the_printed_command_takes_over_what_was_reported() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let clone = sandbox.empty(&remote, "a");
    let old = plant(&remote, "issue-1", &record("issue-1", "ann", 3 * DAY, ""));
    let report = clone.claim(&["stale", "--remote", &remote.url]).is(0, "1 of 1 claim on ");
    let command = fact(&report, "issue-1", "take it over:");
    let end = format!(" --reason 'no sign of life for 3 days' --remote {}", remote.url);
    assert!(command.ends_with(&end), "{command}");
    let _ = clone.shell(&command).go().is(0, "claimed issue-1");
    let taken = remote.record("issue-1");
    assert!(taken.contains(&format!("Took-Over: {old} ann")), "{taken}");
    // The same line once more: what it names is not there any more.
    assert_eq!(clone.shell(&command).go().code, Some(3));
    let left = clone.claim(&["stale", "--all", "--remote", &remote.url]).is(0, "none of 1 claim");
    let clear = format!("git claim release issue-1 --remote {}", remote.url);
    assert_eq!(fact(&left, "issue-1", "clear it:"), clear, "{left}");
}

/// A report that cannot be had is no report that all is well.
#[test]
fn what_could_not_be_looked_at_is_not_fresh() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let clone = sandbox.clone(&remote, "a");
    let _ =
        clone.claim(&["stale", "--exit-code", "--remote", "./nowhere"]).is(69, "unknown claims");
    if let Some(port) = servers::daemon(Daemon::Writable) {
        let name = "issue-1";
        plant(&remote, name, &record(name, "ann", MINUTE, "Branch: main\n"));
        let proxy = Proxy::start(port, Mode::CutFetches);
        let below_root = remote.dir.strip_prefix(servers::root()).unwrap().display();
        let url = format!("git://127.0.0.1:{}/{below_root}", proxy.port);
        let cut = clone.run(&["stale", "--exit-code", "--remote", &url]).go_json();
        assert_eq!(
            (cut.code, &by_name(&cut)[name]["state"]),
            (Some(3), &json!(["unreadable"])),
            "{cut}"
        );
    }
}

/// By path there is no socket to count at: git's own account of the packets tells.
#[test]
fn by_path_it_is_one_program_and_three_questions() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let clone = sandbox.clone(&remote, "a");
    plant(&remote, "issue-1", &record("issue-1", "ann", 3 * DAY, "Branch: main\n"));
    let log = sandbox.path("packets");
    let output = clone.run(&["stale"]).env("GIT_TRACE_PACKET", &log).go().is(0, "1 of 1 claim");
    let packets = std::fs::read_to_string(log).unwrap();
    assert_eq!(packets.matches("< command=ls-refs").count(), 2, "{packets}\n{output}");
    assert_eq!(packets.matches("< command=fetch").count(), 1, "{packets}");
    assert_eq!(packets.matches("> version 2").count(), 1, "{packets}");
    assert!(packets.contains("< ref-prefix refs/heads/main"), "{packets}");
}

/// The most memory that the program uses while it does `args`, in KiB, and its last line.
fn peak(clone: &Clone, args: &str) -> (u64, String) {
    let script = format!(
        "git-claim {args} >out & pid=$!; while grep VmHWM /proc/$pid/status 2>&-; do :; done; \
         wait $pid; tail -n 1 out >&2"
    );
    let output = clone.shell(&script).go();
    let peak =
        output.stdout.lines().filter_map(|line| line.split_whitespace().nth(1)?.parse().ok());
    (peak.max().unwrap_or_default(), output.stderr.trim().to_owned())
}

#[test]
fn what_strangers_write_into_their_commits_does_not_fill_the_memory() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    remote.set("pack.window", "0");
    // Below what is taken for a record, and above.
    let mut script = String::new();
    for number in 1..=700 {
        let length = if number % 15 == 0 { 1_000_000 } else { 100_000 };
        let message = format!("claim {number}\n\n{}{number}\n", "n".repeat(length));
        script.push_str(&format!(
            "commit refs/claims/issue-{number}\ncommitter A <a@example.com> 1764500000 +0000\n\
             data {}\n{message}\n",
            message.len()
        ));
    }
    remote.git_input(&["fast-import", "--quiet"], &script);
    let clone = sandbox.empty(&remote, "a");
    for (args, last) in [("stale --all", "700 of 700 claims"), ("list --long", "700 claims on")] {
        let (kilobytes, told) = peak(&clone, args);
        assert!(told.starts_with(last), "{told}");
        // All of it together would be more than 65 MB, and more than 110 MB without a limit for each.
        assert!((1..60_000).contains(&kilobytes), "{kilobytes} KiB for {args}");
    }
}

#[test]
fn a_branch_is_recorded_by_the_name_that_it_has_on_the_remote() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let clone = sandbox.clone(&remote, "a");
    clone.git(&["switch", "--quiet", "--create", "fix"]);
    clone.git(&["push", "--quiet", "origin", "fix"]);
    for (number, typed) in ["fix", "origin/fix", "HEAD", "refs/heads/fix"].iter().enumerate() {
        let name = (number + 1).to_string();
        let _ = clone.claim(&["take", &name, "--branch", typed]).is(0, "claimed");
        let record = remote.record(&format!("issue-{name}"));
        assert!(record.contains("\nBranch: fix"), "{typed}\n{record}");
        let stale = clone.claim(&["stale", "--all", &name]);
        assert!(stale.stdout.contains(", the recorded head"), "{typed}\n{stale}");
    }
}

#[test]
fn the_commands_keep_what_was_said_by_git_c() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let clone = sandbox.clone(&remote, "a");
    sandbox.copy("a", "b");
    let other = sandbox.at("b");
    let options = ["-c", "claim.prefix=refs/locks/", "-c", "claim.release=mark", "claim"];
    let claim = |clone: &Clone, args: &[&str]| clone.run_git(&[&options[..], args].concat()).go();
    let _ = claim(&clone, &["take", "7"]).is(0, "claimed issue-7 ");
    let stale = claim(&other, &["stale", "--all"]);
    let line = stale.stdout.lines().find(|line| line.contains("clear it:")).unwrap();
    let command = line.split_once("clear it:").unwrap().1.trim();
    assert!(
        command.starts_with("git -c claim.prefix=refs/locks/ -c claim.release=mark claim release"),
        "{command}"
    );
    let _ = other.shell(command).go().is(0, "released issue-7 ");
    let refs = remote.refs();
    assert!(refs.contains("refs/locks/issue-7"), "{refs}");
    let stale = claim(&other, &["stale", "--all"]);
    assert!(stale.stdout.contains("none of 0 claims"), "{stale}");
}

#[test]
fn a_reason_that_was_left_to_be_filled_in_says_nothing() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let clone = sandbox.clone(&remote, "a");
    let id = clone.claim(&["take", "7"]).is(0, "claimed").id();
    for reason in ["…", "...", " ", "\u{2014}"] {
        let refused = clone.claim(&["take", "7", "--over", &id, "--reason", reason]);
        assert_eq!(refused.code, Some(2), "{refused}");
    }
    assert_eq!(remote.tip("issue-7"), Some(id));
}
