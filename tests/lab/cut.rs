//! Cut everywhere: what the program says, against what the server holds.

use std::time::Instant;

use super::{
    Chance, Size,
    cutter::{Cut, Cutter, How, Way},
};
use crate::support::{Clone, Kind, Output, Remote, Sandbox, kinds, servers};

/// What is done while the connection is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Act {
    Take,
    Renew,
    Release,
    Over,
}

const ACTS: [Act; 4] = [Act::Take, Act::Renew, Act::Release, Act::Over];

/// A claimant behind the relay, a rival with a way of its own, and the relay.
struct Lab {
    remote: Remote,
    alice: Clone,
    bob: Clone,
    cutter: Cutter,
}

impl Lab {
    fn new(
        sandbox: &Sandbox,
        kind: Kind,
        upstream: u16,
        url: impl Fn(&Remote, u16) -> String,
    ) -> Option<Self> {
        let remote = sandbox.remote(kind)?;
        let [alice, bob] = sandbox.people(&remote, ["Alice", "Bob"]);
        let cutter = Cutter::start(upstream);
        alice.point_to(&url(&remote, cutter.port));
        Some(Lab { remote, alice, bob, cutter })
    }

    /// Nothing is held, and nobody believes so.
    fn clear(&self) {
        self.cutter.plan(None);
        if let Some(tip) = self.tip() {
            let _ = self.bob.claim(&["release", "42", "--expect", &tip]).is(0, "released");
        }
        for clone in [&self.alice, &self.bob] {
            let _ = std::fs::remove_dir_all(clone.dir.join(".git/claims"));
        }
    }

    fn tip(&self) -> Option<String> {
        self.remote.tip("issue-42")
    }

    /// What is there before the act; gives the tip.
    fn prepare(&self, act: Act) -> Option<String> {
        self.clear();
        match act {
            Act::Take => {}
            Act::Renew | Act::Release => {
                let _ = self.alice.claim(&["take", "42"]).is(0, "claimed");
            }
            Act::Over => {
                let _ = self.bob.claim(&["take", "42"]).is(0, "claimed");
            }
        }
        self.cutter.settled();
        self.tip()
    }

    fn act(&self, act: Act, before: Option<&str>) -> Output {
        let id = before.unwrap_or_default();
        let args: &[&str] = match act {
            Act::Take => &["take", "42"],
            Act::Renew => &["renew", "42"],
            Act::Release => &["release", "42"],
            Act::Over => &["take", "42", "--over", id, "--reason", "gone"],
        };
        self.alice.claim(&[args, &["--timeout", "1s"]].concat())
    }

    /// Does `act` with the connection cut, compares, mends the connection and finds out; says what is wrong.
    fn try_at(&self, act: Act, cut: Cut) -> Result<Option<i32>, String> {
        let before = self.prepare(act);
        self.cutter.plan(Some(cut));
        let output = self.act(act, before.as_deref());
        self.cutter.settled();
        let now = self.tip();
        let told =
            |what: &str| format!("{what}: {act:?} {cut:?}, was {before:?}, is {now:?}\n{output}");
        let id = output.verdict().split(' ').nth(2).map(str::to_owned);
        let landed = now != before;
        match (output.code, act) {
            (Some(0), Act::Release) if now.is_none() => {}
            (Some(0), Act::Take | Act::Renew | Act::Over) if landed && now == id => {}
            (Some(69 | 77), _) => {}
            _ => return Err(told("a wrong verdict")),
        }
        // Mended: the next command knows.
        self.cutter.plan(None);
        let again = match act {
            Act::Take => self.alice.claim(&["take", "42", "--resume"]),
            Act::Renew => self.alice.claim(&["verify", "42"]),
            Act::Release if landed => self.alice.claim(&["verify", "42"]),
            Act::Release => self.alice.claim(&["release", "42"]),
            Act::Over if landed => self.alice.claim(&["take", "42", "--resume"]),
            Act::Over => self.act(act, before.as_deref()),
        };
        self.cutter.settled();
        let at_last = self.tip();
        let right = match act {
            Act::Take | Act::Over => {
                again.code == Some(0)
                    && at_last.as_deref() == again.verdict().split(' ').nth(2)
                    // What has landed is what is gone on with.
                    && (!landed || at_last == now)
            }
            Act::Renew => again.code == Some(0) && at_last == now,
            Act::Release => at_last.is_none() && again.code == Some(if landed { 3 } else { 0 }),
        };
        if right { Ok(output.code) } else { Err(format!("{}{again}", told("not found out"))) }
    }
}

/// Cuts at points chosen by chance or, with time given, at as many as it allows; says how many.
fn cut_everywhere(name: &str, lab: &Lab, short: u64) {
    let size = Size::asked_for();
    let mut chance = Chance::new(size.seed);
    let started = Instant::now();
    let (mut points, mut wrong) = (0_u64, Vec::new());
    let mut codes = std::collections::BTreeMap::<Option<i32>, u64>::new();
    let mut whole = Vec::new();
    for act in ACTS {
        let before = lab.prepare(act);
        lab.cutter.plan(None);
        assert_eq!(lab.act(act, before.as_deref()).code, Some(0));
        lab.cutter.settled();
        whole.push((act, lab.cutter.bytes(Way::Up), lab.cutter.bytes(Way::Down)));
    }
    loop {
        let over = match size.time {
            None => points >= short,
            Some(time) => started.elapsed() >= time,
        };
        if over {
            break;
        }
        let (act, up, down) = whole[(points % 4) as usize];
        let (way, bytes) = if points / 4 % 2 == 0 { (Way::Up, up) } else { (Way::Down, down) };
        let how = *chance.one_of(&[
            How::Closed,
            How::Closed,
            How::ClosedOnce,
            How::ClosedOnce,
            How::Silent,
        ]);
        let cut = Cut { way, after: chance.below(bytes), how };
        points += 1;
        match lab.try_at(act, cut) {
            Ok(code) => *codes.entry(code).or_default() += 1,
            Err(what) => wrong.push(what),
        }
    }
    eprintln!(
        "lab: cut {name}: {points} points of {} bytes, seed {}, exits {codes:?}, wrong: {}",
        whole.iter().map(|(_, up, down)| up + down).sum::<u64>(),
        size.seed,
        wrong.len()
    );
    assert!(wrong.is_empty(), "seed {}\n{}", size.seed, wrong.join("\n"));
}

/// Several in one push: after whatever end the server holds all of them or none, and the program says which.
fn cut_a_group(lab: &Lab, name: &str, short: u64) {
    const NAMES: [&str; 3] = ["a", "b", "c"];
    let size = Size::asked_for();
    let mut chance = Chance::new(size.seed);
    let tips = || NAMES.map(|name| lab.remote.tip(name));
    let take = |more: &[&str]| {
        lab.alice.claim(&[&["take"], &NAMES[..], &["--timeout", "1s"], more].concat())
    };
    let clear = || {
        lab.cutter.plan(None);
        for (name, tip) in NAMES.iter().zip(tips()) {
            if let Some(tip) = tip {
                let _ = lab.bob.claim(&["release", name, "--expect", &tip]).is(0, "released");
            }
        }
        let _ = std::fs::remove_dir_all(lab.alice.dir.join(".git/claims"));
    };
    clear();
    assert_eq!(take(&[]).code, Some(0));
    lab.cutter.settled();
    let whole = [Way::Up, Way::Down].map(|way| (way, lab.cutter.bytes(way)));
    let (mut points, mut claimed, started) = (0, 0, Instant::now());
    while size.time.map_or(points < short, |time| started.elapsed() < time) {
        clear();
        let (way, bytes) = whole[(points % 2) as usize];
        let how = *chance.one_of(&[How::Closed, How::ClosedOnce, How::Silent]);
        let cut = Cut { way, after: chance.below(bytes), how };
        lab.cutter.plan(Some(cut));
        let output = take(&[]);
        lab.cutter.settled();
        let there = tips().iter().flatten().count();
        let told = || format!("seed {} {cut:?}\n{output}", size.seed);
        assert!(there == 0 || there == 3, "a part: {}", told());
        match output.code {
            Some(0) => assert_eq!(there, 3, "{}", told()),
            Some(69 | 77) => {}
            _ => panic!("a wrong verdict: {}", told()),
        }
        claimed += u64::from(output.code == Some(0));
        lab.cutter.plan(None);
        let before = tips();
        let again = take(&["--resume"]);
        assert_eq!(again.code, Some(0), "{}{again}", told());
        assert!(there == 0 || before == tips(), "gone on with: {}{again}", told());
        assert_eq!(tips().iter().flatten().count(), 3, "{}{again}", told());
        lab.cutter.settled();
        points += 1;
    }
    eprintln!(
        "lab: cut a group, {name}: {points} points, seed {}, {claimed} claimed, wrong: 0",
        size.seed
    );
}

#[test]
fn git_daemon() {
    let sandbox = Sandbox::new();
    let Some(port) = servers::daemon(servers::Daemon::Writable) else { return };
    let url = |remote: &Remote, port| {
        let below = remote.dir.strip_prefix(servers::root()).unwrap().display().to_string();
        format!("git://127.0.0.1:{port}/{below}")
    };
    let Some(lab) = Lab::new(&sandbox, kinds::path(), port, url) else { return };
    cut_everywhere("git://", &lab, 120);
    cut_a_group(&lab, "git://", 40);
}

#[test]
fn https() {
    let sandbox = Sandbox::new();
    let Some(web) = servers::web() else { return };
    let url = |remote: &Remote, port: u16| {
        remote.url.replace(&format!(":{}/", web.https), &format!(":{port}/"))
    };
    let Some(lab) = Lab::new(&sandbox, kinds::https(), web.https, url) else { return };
    let key = format!("credential.https://127.0.0.1:{}.helper", lab.cutter.port);
    let helper = format!(
        "!f() {{ test $1 = get && printf 'username=alice\\npassword={}\\n'; }}; f",
        servers::PASSWORD
    );
    lab.alice.set(&key, &helper);
    cut_everywhere("https", &lab, 40);
    cut_a_group(&lab, "https", 12);
}
