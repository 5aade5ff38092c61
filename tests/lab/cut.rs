//! Cut everywhere: what the program says, against what the server holds.

use std::{
    collections::BTreeMap,
    fs,
    path::PathBuf,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use super::{
    Chance, Size,
    cutter::{Cut, Cutter, How, Way},
    pipe,
};
use crate::support::{Clone, Kind, Output, Remote, Sandbox, kinds, servers};

/// What is done while the connection is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Act {
    Take,
    /// With `--confirm`.
    Confirm,
    Renew,
    Release,
    /// Takes over from somebody.
    Over,
    /// Releases what somebody else has.
    Clear,
}

const ACTS: [Act; 6] = [Act::Take, Act::Confirm, Act::Renew, Act::Release, Act::Over, Act::Clear];

/// As many are at it side by side: most of the time is spent waiting.
const LANES: usize = 3;
/// One exchange may take so long.
const DEADLINE: &str = "2s";
/// The same, where it will.
const SHORT_DEADLINE: &str = "500ms";
/// A few exchanges, each with its deadline, and a busy machine.
const AT_MOST: Duration = Duration::from_secs(10);

/// A claimant behind the relay, and the relay.
struct Lab {
    remote: Remote,
    alice: Clone,
    cutter: Cutter,
    /// What is held before the act: the tip, and where Alice's records of hers are kept.
    hers: (String, PathBuf),
    bobs: String,
    /// Lives as long as what is in it.
    _sandbox: Sandbox,
}

impl Lab {
    /// `lead` leads Alice to the remote by way of the relay.
    fn new(
        kind: Kind,
        cutter: Cutter,
        lead: impl Fn(&Sandbox, &Remote, &Clone, u16) -> Option<()>,
    ) -> Option<Self> {
        let sandbox = Sandbox::new();
        let remote = sandbox.remote(kind)?;
        let [alice, bob] = sandbox.people(&remote, ["Alice", "Bob"]);
        lead(&sandbox, &remote, &alice, cutter.port)?;
        let bobs = bob.claim(&["take", "42"]).is(0, "claimed").id();
        remote.git(&["update-ref", "-d", "refs/claims/issue-42"]);
        let tip = alice.claim(&["take", "42"]).is(0, "claimed").id();
        let records = sandbox.path("records");
        fs::rename(alice.dir.join(".git/claims"), &records).unwrap();
        let hers = (tip, records);
        Some(Lab { remote, alice, cutter, hers, bobs, _sandbox: sandbox })
    }

    fn tip(&self) -> Option<String> {
        self.remote.tip("issue-42")
    }

    /// What is there before the act; gives the tip.
    fn prepare(&self, act: Act) -> Option<String> {
        self.cutter.plan(None);
        let claims = self.alice.dir.join(".git/claims");
        let _ = fs::remove_dir_all(&claims);
        let (tip, records) = &self.hers;
        let before = match act {
            Act::Take | Act::Confirm => None,
            Act::Renew | Act::Release => {
                for remote in fs::read_dir(records).unwrap().flatten() {
                    let to = claims.join(remote.file_name());
                    fs::create_dir_all(&to).unwrap();
                    for file in fs::read_dir(remote.path()).unwrap().flatten() {
                        fs::copy(file.path(), to.join(file.file_name())).unwrap();
                    }
                }
                Some(tip.clone())
            }
            Act::Over | Act::Clear => Some(self.bobs.clone()),
        };
        match &before {
            Some(tip) => self.remote.git(&["update-ref", "refs/claims/issue-42", tip]),
            None => self.remote.git(&["update-ref", "-d", "refs/claims/issue-42"]),
        };
        before
    }

    fn act(&self, act: Act, before: Option<&str>, deadline: &str) -> Output {
        let id = before.unwrap_or_default();
        let args: &[&str] = match act {
            Act::Take => &["take", "42"],
            Act::Confirm => &["take", "42", "--confirm"],
            Act::Renew => &["renew", "42"],
            Act::Release => &["release", "42"],
            Act::Over => &["take", "42", "--over", id, "--reason", "gone"],
            Act::Clear => &["release", "42", "--expect", id],
        };
        self.alice.claim(&[args, &["--timeout", deadline]].concat())
    }

    /// Does `act` with the connection cut, compares, mends the connection and finds out; says what is wrong.
    fn try_at(&self, act: Act, cut: Cut) -> Result<Option<i32>, String> {
        let before = self.prepare(act);
        self.cutter.plan(Some(cut));
        let started = Instant::now();
        let output = self.act(act, before.as_deref(), deadline(cut.how));
        let took = started.elapsed();
        self.cutter.settled();
        let now = self.tip();
        let told =
            |what: &str| format!("{what}: {act:?} {cut:?}, was {before:?}, is {now:?}\n{output}");
        let id = output.verdict().split(' ').nth(2).map(str::to_owned);
        let landed = now != before;
        match (output.code, act) {
            _ if took > AT_MOST => return Err(told("past every deadline")),
            (Some(0), Act::Release | Act::Clear) if now.is_none() => {}
            (Some(0), Act::Take | Act::Confirm | Act::Renew | Act::Over) if landed && now == id => {
            }
            (Some(69 | 77), _) => {}
            _ => return Err(told("a wrong verdict")),
        }
        // Mended: the next command knows.
        self.cutter.plan(None);
        let again = match act {
            Act::Take | Act::Confirm => self.alice.claim(&["take", "42", "--resume"]),
            Act::Renew => self.alice.claim(&["verify", "42"]),
            Act::Release if landed => self.alice.claim(&["verify", "42"]),
            Act::Release => self.alice.claim(&["release", "42"]),
            Act::Over if landed => self.alice.claim(&["take", "42", "--resume"]),
            Act::Over | Act::Clear => self.act(act, before.as_deref(), DEADLINE),
        };
        self.cutter.settled();
        let at_last = self.tip();
        let right = match act {
            Act::Take | Act::Confirm | Act::Over => {
                again.code == Some(0)
                    && at_last.as_deref() == again.verdict().split(' ').nth(2)
                    // What has landed is what is gone on with.
                    && (!landed || at_last == now)
            }
            Act::Renew => again.code == Some(0) && at_last == now,
            Act::Release | Act::Clear => {
                at_last.is_none() && again.code == Some(if landed { 3 } else { 0 })
            }
        };
        if right { Ok(output.code) } else { Err(format!("{}{again}", told("not found out"))) }
    }
}

fn deadline(how: How) -> &'static str {
    if how == How::Silent { SHORT_DEADLINE } else { DEADLINE }
}

/// How a connection may end, each as often as it is named.
const ENDS: [(How, bool); 8] = [
    (How::Closed, false),
    (How::Closed, false),
    (How::Closed, true),
    (How::Closed, true),
    (How::Reset, false),
    (How::Reset, true),
    (How::Silent, false),
    (How::Silent, true),
];

/// Cuts once at every byte of every act, in an order of chance: as far as the time allows or, where none was given, at the
/// first few; says how many of how many.
fn cut_everywhere(name: &str, labs: &[Lab], short: usize) {
    let size = Size::asked_for();
    let mut chance = Chance::new(size.seed);
    let all = every_point(&labs[0], &mut chance);
    let (started, next) = (Instant::now(), AtomicUsize::new(0));
    let done = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for lab in labs {
            scope.spawn(|| {
                while let Some(&(act, cut)) = all.get(next.fetch_add(1, Ordering::SeqCst)) {
                    let enough = |time| started.elapsed() >= time;
                    let over = done.lock().unwrap().len() >= short;
                    if size.time.map_or(over, enough) {
                        break;
                    }
                    let ended = lab.try_at(act, cut);
                    done.lock().unwrap().push((cut.how, ended));
                }
            });
        }
    });
    let done = done.into_inner().unwrap();
    let (mut codes, mut ends) = (BTreeMap::<_, u32>::new(), BTreeMap::<_, u32>::new());
    for (how, ended) in &done {
        *ends.entry(format!("{how:?}")).or_default() += 1;
        *codes.entry(ended.as_ref().ok().copied().flatten().unwrap_or(-1)).or_default() += 1;
    }
    let wrong: Vec<&str> =
        done.iter().filter_map(|(_, ended)| ended.as_ref().err().map(String::as_str)).collect();
    eprintln!(
        "lab: cut {name}: {} of {} points in {} s, seed {}, {ends:?}, exits {codes:?}, wrong: {}",
        done.len(),
        all.len(),
        started.elapsed().as_secs(),
        size.seed,
        wrong.len()
    );
    assert!(wrong.is_empty(), "seed {}\n{}", size.seed, wrong.join("\n"));
}

/// Every place of every act where the connection may be cut, each with an end of chance, in an order of chance.
fn every_point(lab: &Lab, chance: &mut Chance) -> Vec<(Act, Cut)> {
    let mut all = Vec::new();
    for act in ACTS {
        let before = lab.prepare(act);
        let output = lab.act(act, before.as_deref(), "10s");
        assert_eq!(output.code, Some(0), "{output}");
        lab.cutter.settled();
        for way in [Way::Up, Way::Down] {
            all.extend((0..lab.cutter.bytes(way)).map(|after| {
                let (how, once) = *chance.one_of(&ENDS);
                (act, Cut { way, after, how, once })
            }));
        }
    }
    for end in (1..all.len()).rev() {
        all.swap(end, chance.below(end as u64 + 1) as usize);
    }
    all
}

/// Several in one push: after whatever end the server holds all of them or none, and the program says which.
fn cut_a_group(lab: &Lab, name: &str, short: u64) {
    const NAMES: [&str; 3] = ["a", "b", "c"];
    let size = Size::asked_for();
    let mut chance = Chance::new(size.seed);
    let tips = || NAMES.map(|name| lab.remote.tip(name));
    let take = |deadline, more: &[&str]| {
        lab.alice.claim(&[&["take"], &NAMES[..], &["--timeout", deadline], more].concat())
    };
    let clear = || {
        lab.cutter.plan(None);
        for (name, tip) in NAMES.iter().zip(tips()) {
            if let Some(tip) = tip {
                lab.remote.git(&["update-ref", "-d", &format!("refs/claims/{name}"), &tip]);
            }
        }
        let _ = std::fs::remove_dir_all(lab.alice.dir.join(".git/claims"));
    };
    clear();
    assert_eq!(take("10s", &[]).code, Some(0));
    lab.cutter.settled();
    let whole = [Way::Up, Way::Down].map(|way| (way, lab.cutter.bytes(way)));
    let (mut points, mut claimed, started) = (0, 0, Instant::now());
    while size.time.map_or(points < short, |time| started.elapsed() < time) {
        clear();
        let (way, bytes) = whole[(points % 2) as usize];
        let (how, once) = *chance.one_of(&ENDS);
        let cut = Cut { way, after: chance.below(bytes), how, once };
        lab.cutter.plan(Some(cut));
        let output = take(deadline(how), &[]);
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
        let again = take(DEADLINE, &["--resume"]);
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

/// As many as are at it side by side.
fn labs(new: impl Fn() -> Option<Lab>) -> Option<Vec<Lab>> {
    (0..LANES).map(|_| new()).collect()
}

#[test]
fn git_daemon() {
    let Some(port) = servers::daemon(servers::Daemon::Writable) else { return };
    let new = || {
        Lab::new(kinds::path(), Cutter::start(port), |_, remote, alice, port| {
            let below = remote.dir.strip_prefix(servers::root()).unwrap().display();
            alice.point_to(&format!("git://127.0.0.1:{port}/{below}"));
            Some(())
        })
    };
    let Some(labs) = labs(new) else { return };
    cut_everywhere("git://", &labs, 70);
    cut_a_group(&labs[0], "git://", 12);
}

#[test]
fn ssh() {
    let new = || {
        let cutter = Cutter::start_after_a_line(pipe::listen());
        Lab::new(kinds::path(), cutter, |sandbox, remote, alice, port| {
            alice.set("core.sshCommand", pipe::ssh(sandbox)?.to_str()?);
            alice.point_to(&format!("ssh://127.0.0.1:{port}{}", remote.dir.display()));
            Some(())
        })
    };
    let Some(labs) = labs(new) else { return };
    cut_everywhere("ssh", &labs, 70);
    cut_a_group(&labs[0], "ssh", 12);
}

#[test]
fn https() {
    let Some(web) = servers::web() else { return };
    let new = || {
        Lab::new(kinds::https(), Cutter::start(web.https), |_, remote, alice, port| {
            let url = remote.url.replace(&format!(":{}/", web.https), &format!(":{port}/"));
            alice.point_to(&url);
            let key = format!("credential.https://127.0.0.1:{port}.helper");
            let helper = format!(
                "!f() {{ test $1 = get && printf 'username=alice\\npassword={}\\n'; }}; f",
                servers::PASSWORD
            );
            alice.set(&key, &helper);
            Some(())
        })
    };
    let Some(labs) = labs(new) else { return };
    cut_everywhere("https", &labs, 24);
    cut_a_group(&labs[0], "https", 6);
}
