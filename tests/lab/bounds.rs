//! More of everything than anybody has: the answer is a clear word, in bounded time and memory.

use std::{
    fmt::Write as _,
    fs,
    time::{Duration, Instant},
};

use super::Size;
use crate::support::{Clone, Kind, Output, Remote, Sandbox, kinds};

/// What may be used for anything, in KiB.
const ALL: u64 = 100_000;
/// What may be used where nothing has to be remembered; a third of it is used for anything at all.
const LITTLE: u64 = 40_000;
/// A single answer is worth no more time, on a machine that has other things to do as well.
const LONG: Duration = Duration::from_secs(58);

/// What was asked for, and how much it took at most.
#[derive(Default)]
struct Asked {
    times: usize,
    most: u64,
}

impl Asked {
    /// Runs the program within `limit` KiB and in time.
    #[track_caller]
    fn run(&mut self, clone: &Clone, args: &[&str], input: &str, limit: u64) -> Output {
        let began = Instant::now();
        let mut peak = 0;
        let output = clone.run(args).input(input).go_while(|pid| {
            // Whoever has ended has no memory any more, also where nobody has waited for him yet.
            while let Some(used) = resident(pid) {
                peak = peak.max(used);
                std::thread::sleep(Duration::from_millis(2));
            }
        });
        assert!(peak < limit, "{peak} KiB\n{output}");
        assert!(began.elapsed() < LONG, "{:?}\n{output}", began.elapsed());
        self.times += 1;
        self.most = self.most.max(peak);
        output
    }

    fn told(&self, about: &str) {
        println!(
            "lab: bounds: {about}: {} commands, at most {} MB, wrong: 0",
            self.times,
            self.most / 1000
        );
    }
}

/// The most memory that a process has used so far, in KiB.
fn resident(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse().ok()
}

fn is_long() -> bool {
    Size::asked_for().time.is_some()
}

/// A remote, and somebody who holds nothing there.
fn lab(sandbox: &Sandbox, kind: Kind) -> Option<(Remote, Clone)> {
    let remote = sandbox.remote(kind)?;
    let clone = sandbox.empty(&remote, "a");
    Some((remote, clone))
}

#[test]
fn names_without_an_end_are_refused_and_many_are_answered() {
    const MOST: usize = 50_000;
    let sandbox = Sandbox::new();
    let Some((remote, clone)) = lab(&sandbox, kinds::path()) else { return };
    let mut asked = Asked::default();
    let list = |count: usize| {
        (1..=count).fold(String::new(), |mut list, number| {
            writeln!(list, "{number}").unwrap();
            list
        })
    };
    let million = list(1_000_000);
    for args in [
        &["verify", "-"][..],
        &["take", "-"],
        &["take", "--any", "-"],
        &["show", "-"],
        &["stale", "-"],
        &["renew", "-"],
        &["release", "-"],
    ] {
        let output = asked.run(&clone, args, &million, LITTLE);
        assert_eq!((output.code, &*output.stdout), (Some(2), ""), "{output}");
        let _ = output.says("standard input: more than 50000 names");
    }
    let output = asked.run(&clone, &["stale", "--closed", "-"], &million, ALL);
    assert_eq!(output.code, Some(2), "{output}");
    let _ = output.says("standard input: more than 500000 names");
    let closed = list(500_000);
    let _ = asked.run(&clone, &["stale", "--closed", "-"], &closed, ALL).is(0, "");
    assert!(remote.witnessed().is_empty());
    // The longest names that there are.
    let long = (0..MOST).fold(String::new(), |mut list, number| {
        writeln!(list, "{number:0>99}x").unwrap();
        list
    });
    let output = asked.run(&clone, &["verify", "-"], &long, ALL);
    assert_eq!((output.code, output.stdout.lines().count()), (Some(3), MOST));
    let fitting = list(MOST);
    let _ = asked.run(&clone, &["take", "--any", "-"], &fitting, ALL).is(0, "claimed issue-1 ");
    if is_long() {
        let output = asked.run(&clone, &["show", "-", "--json"], &fitting, ALL);
        assert_eq!(output.json()["claims"].as_array().unwrap().len(), MOST);
    }
    asked.told("names from standard input");
}

/// A tip that is too large to be read is held by somebody, and can be cleared by its id.
fn a_tip_of_any_size(kind: Kind) {
    let sandbox = Sandbox::new();
    let Some((remote, clone)) = lab(&sandbox, kind) else { return };
    // So that it is not the server's work which is waited for.
    remote.set("pack.compression", "0");
    remote.set("core.looseCompression", "1");
    let record = "claim issue-7 by A\n\nClaim: issue-7\nClaim-Format: 1\n";
    for (message, about) in [
        ("n".repeat(100_000_000), "a tip of 100 MB"),
        (format!("{record}{}", "Job: https://example.com/\n".repeat(100_000)), "many trailers"),
    ] {
        let tip = remote.plant("refs/claims/issue-7", "A <a@example.com>", &message);
        drop(message);
        let mut asked = Asked::default();
        let before = remote.witnessed().len();
        let mut held = |args: &[&str], code, verdict: &str| {
            asked.run(&clone, args, "", LITTLE).is(code, verdict)
        };
        let _ = held(&["list"], 0, "1 claim on");
        let told = held(&["list", "--long"], 0, "1 claim on");
        assert!(told.stdout.contains("too large"), "{told}");
        let told = held(&["show", "7"], 0, "held issue-7 by somebody");
        assert!(told.stdout.contains("too large"), "{told}");
        let _ = held(&["verify", "7"], 3, "lost issue-7").says("too large");
        let _ = held(&["take", "7"], 75, "held issue-7").says("too large");
        let told = held(&["stale"], 0, "1 of 1 claim");
        assert!(told.stdout.contains(&format!("--expect {}", &tip[..12])), "{told}");
        let over = ["take", "7", "--over", &tip, "--reason", "too large"];
        let _ = held(&over, 69, "unknown issue-7").says("too large");
        assert_eq!(remote.witnessed().len(), before, "nothing was asked to change");
        let _ = held(&["release", "7", "--expect", &tip], 0, "released issue-7");
        assert_eq!(remote.tip("issue-7"), None);
        asked.told(about);
    }
}

#[test]
fn a_tip_of_any_size_by_path() {
    a_tip_of_any_size(kinds::path());
}

#[test]
fn a_tip_of_any_size_by_https() {
    // Slower, as it goes through three programs.
    if is_long() {
        a_tip_of_any_size(kinds::https());
    }
}

/// However often it was renewed, the last commit is enough.
#[test]
fn ten_thousand_renewals_are_no_more_than_one() {
    let sandbox = Sandbox::new();
    let Some((remote, clone)) = lab(&sandbox, kinds::path()) else { return };
    let mut asked = Asked::default();
    let tip = clone.claim(&["take", "7"]).is(0, "claimed").id();
    let record = remote.record("issue-7");
    let (_, message) = record.split_once("\n\n").unwrap();
    let mut script = String::new();
    for number in 0..10_000 {
        let (hour, minute, second) = (number / 3600, number / 60 % 60, number % 60);
        let renewed =
            format!("{message}\nRenewed-At: 2026-11-30T{hour:02}:{minute:02}:{second:02}Z\n");
        let from = if number == 0 { format!("from {tip}\n") } else { String::new() };
        writeln!(
            script,
            "commit refs/claims/issue-7\ncommitter A <a@example.com> 1764500000 +0000\n\
             data {}\n{renewed}\n{from}",
            renewed.len()
        )
        .unwrap();
    }
    remote.git_input(&["fast-import", "--quiet"], &script);
    // What the reading side sends is written down on its way.
    let sent = sandbox.path("sent");
    let upload = format!("git upload-pack \"$@\" | tee -a {}", sent.display());
    clone.set("remote.origin.uploadpack", sandbox.script("upload", &upload).to_str().unwrap());
    for (args, code, verdict) in [
        (&["list"][..], 0, "1 claim on"),
        (&["list", "--long"], 0, "1 claim on"),
        (&["verify", "7"], 0, "yours issue-7"),
        (&["take", "7"], 75, "held issue-7"),
        (&["show", "7"], 0, "held issue-7"),
        (&["stale"], 0, ""),
        (&["renew", "7"], 0, "renewed issue-7"),
        (&["verify", "7"], 0, "yours issue-7"),
        (&["release", "7"], 0, "released issue-7"),
    ] {
        let _ = fs::remove_file(&sent);
        let output = asked.run(&clone, args, "", LITTLE).is(code, verdict);
        let bytes = fs::metadata(&sent).map(|sent| sent.len()).unwrap_or_default();
        // All of it would be more than a megabyte.
        assert!(bytes < 64 * 1024, "{bytes} bytes\n{output}");
    }
    asked.told("10,000 renewals");
}

/// Names that fill a packet, and as many claims as a listing takes; one more is told to be no claims at all.
#[test]
fn a_remote_full_of_claims_is_listed_or_refused() {
    const MOST: usize = 100_000;
    let sandbox = Sandbox::new();
    let Some((remote, clone)) = lab(&sandbox, kinds::path()) else { return };
    let mut asked = Asked::default();
    let tip = remote.plant("refs/claims/issue-1", "A <a@example.com>", "claim issue 1");
    remote.git(&["pack-refs", "--all"]);
    let packed = fs::read_to_string(remote.dir.join("packed-refs")).unwrap();
    let refs = |names: &mut dyn Iterator<Item = String>| {
        let lines: String = names.map(|name| format!("{tip} refs/claims/{name}\n")).collect();
        let main = packed.lines().filter(|line| line.ends_with("refs/heads/main"));
        let main: String = main.map(|line| format!("{line}\n")).collect();
        fs::write(remote.dir.join("packed-refs"), lines + &main).unwrap();
    };
    let long = "x".repeat(4_000);
    refs(&mut [long.clone()].into_iter());
    let told = asked.run(&clone, &["list"], "", LITTLE).is(0, "1 claim on");
    assert!(told.stdout.contains(&long));
    let full = format!("refs/claims/{long}");
    let _ = asked.run(&clone, &["show", &full], "", LITTLE).is(0, "held xxx");
    let _ = asked.run(&clone, &["verify", &full], "", LITTLE).is(3, "lost xxx");
    let _ = asked.run(&clone, &["stale"], "", LITTLE).is(0, "1 of 1 claim");

    refs(&mut (0..=MOST).map(|number| format!("key-{number:06}")));
    for args in [&["list"][..], &["stale"]] {
        let output = asked.run(&clone, args, "", ALL);
        assert_eq!(output.code, Some(69), "{output}");
        let _ = output.says("too many refs in the namespace of claims");
    }
    // One name is asked for alone, whatever else is there.
    let _ = asked.run(&clone, &["take", "key-000007"], "", LITTLE).is(75, "held key-000007");
    let _ = asked.run(&clone, &["take", "42"], "", LITTLE).is(0, "claimed issue-42");
    let _ = asked.run(&clone, &["release", "42"], "", LITTLE).is(0, "released issue-42");

    let most = if is_long() { 50_000 } else { 20_000 };
    refs(&mut (0..most).map(|number| format!("key-{number:06}")));
    let _ = asked.run(&clone, &["list"], "", ALL).is(0, &format!("{most} claims on"));
    let json = asked.run(&clone, &["list", "--json"], "", ALL).json();
    assert_eq!(json["claims"].as_array().unwrap().len(), most);
    let _ = asked.run(&clone, &["stale"], "", ALL).is(0, &format!("{most} of {most} claims"));
    asked.told("a remote full of claims");
}
