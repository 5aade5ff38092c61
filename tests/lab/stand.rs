//! A claimant behind a relay, who does one thing while something goes wrong; and the comparison of what she is told with what
//! the server holds.

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

use super::{Chance, Size, cutter::Cutter, pipe};
use crate::support::{Clone, Kind, Output, Remote, Sandbox, kinds, servers};

/// What is done meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Act {
    Take,
    /// A take that reads what it took.
    Confirm,
    Renew,
    Release,
    /// Takes over from somebody.
    Over,
    /// The same, and reads what it took.
    ConfirmOver,
    /// Releases what somebody else has.
    Clear,
}

pub(super) const ACTS: [Act; 7] =
    [Act::Take, Act::Confirm, Act::Renew, Act::Release, Act::Over, Act::ConfirmOver, Act::Clear];

impl Act {
    pub(super) fn ends_with_nothing(self) -> bool {
        matches!(self, Act::Release | Act::Clear)
    }

    /// Whether it begins with a look at what it names.
    pub(super) fn reads_first(self) -> bool {
        matches!(self, Act::Over | Act::ConfirmOver | Act::Clear)
    }

    /// Whether an `ok` is not enough for it.
    pub(super) fn confirms(self) -> bool {
        matches!(self, Act::Confirm | Act::ConfirmOver)
    }
}

/// One exchange may take so long.
pub(super) const DEADLINE: &str = "2s";
/// The same, where it will.
pub(super) const SHORT_DEADLINE: &str = "500ms";
/// The same, where nothing is wrong and the machine may be busy.
pub(super) const NO_HURRY: &str = "30s";
/// A few exchanges, each with its deadline, and a busy machine.
const AT_MOST: Duration = Duration::from_secs(20);
/// What the program may need of the machine's memory, in kB.
const MOST_MEMORY: u64 = 100_000;

/// The claimant, and what is around her.
pub(super) struct Stand {
    pub(super) remote: Remote,
    pub(super) alice: Clone,
    pub(super) cutter: Cutter,
    /// What is held before the act where it is hers: the tip, and where her records of it are kept.
    hers: (String, PathBuf),
    bobs: String,
    /// Lives as long as what is in it.
    pub(super) sandbox: Sandbox,
}

/// What came of it.
pub(super) struct Acted {
    pub(super) output: Output,
    took: Duration,
    /// The most memory that the program had, in kB.
    peak: u64,
}

impl Stand {
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
        Some(Stand { remote, alice, cutter, hers, bobs, sandbox })
    }

    /// Over `git://`.
    pub(super) fn daemon(kind: Kind) -> Option<Self> {
        let cutter = Cutter::start(servers::daemon(servers::Daemon::Writable)?);
        Self::new(kind, cutter, |_, remote, alice, port| {
            let below = remote.dir.strip_prefix(servers::root()).unwrap().display();
            alice.point_to(&format!("git://127.0.0.1:{port}/{below}"));
            Some(())
        })
    }

    /// Through a stand-in for ssh.
    pub(super) fn ssh(kind: Kind) -> Option<Self> {
        let cutter = Cutter::start_after_a_line(pipe::listen());
        Self::new(kind, cutter, |sandbox, remote, alice, port| {
            alice.set("core.sshCommand", pipe::ssh(sandbox)?.to_str()?);
            alice.point_to(&format!("ssh://127.0.0.1:{port}{}", remote.dir.display()));
            Some(())
        })
    }

    /// Over https.
    pub(super) fn https() -> Option<Self> {
        let web = servers::web()?;
        Self::new(kinds::https(), Cutter::start(web.https), |_, remote, alice, port| {
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
    }

    pub(super) fn tip(&self) -> Option<String> {
        self.remote.tip("issue-42")
    }

    /// Brings about what is there before the act; gives the tip.
    pub(super) fn prepare(&self, act: Act) -> Option<String> {
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
            Act::Over | Act::ConfirmOver | Act::Clear => Some(self.bobs.clone()),
        };
        match &before {
            Some(tip) => self.remote.git(&["update-ref", "refs/claims/issue-42", tip]),
            None => self.remote.git(&["update-ref", "-d", "refs/claims/issue-42"]),
        };
        before
    }

    pub(super) fn act(&self, act: Act, before: Option<&str>, deadline: &str) -> Acted {
        let id = before.unwrap_or_default();
        let args: &[&str] = match act {
            Act::Take => &["take", "42"],
            Act::Confirm => &["take", "42", "--confirm"],
            Act::Renew => &["renew", "42"],
            Act::Release => &["release", "42"],
            Act::Over => &["take", "42", "--over", id, "--reason", "gone"],
            Act::ConfirmOver => &["take", "42", "--over", id, "--reason", "gone", "--confirm"],
            Act::Clear => &["release", "42", "--expect", id],
        };
        let started = Instant::now();
        let mut running = self.alice.run(&[args, &["--timeout", deadline]].concat()).start();
        let mut peak = 0;
        while !running.has_ended() && started.elapsed() <= AT_MOST * 2 {
            peak = peak.max(most_memory(running.pid()));
            thread::sleep(Duration::from_millis(5));
        }
        let took = started.elapsed();
        Acted { output: running.end(), took, peak }
    }

    /// Compares what was told with what is held, makes all well again by `heal`, and finds out by the next command; says what
    /// is wrong, or how the act ended.
    pub(super) fn compare(
        &self,
        act: Act,
        before: Option<&str>,
        acted: Acted,
        heal: impl FnOnce(),
    ) -> Result<i32, String> {
        self.cutter.settled();
        let now = self.tip();
        let output = acted.output;
        let told = |what: &str| format!("{what}: {act:?}, was {before:?}, is {now:?}\n{output}");
        let id = output.verdict().split(' ').nth(2);
        let landed = now.as_deref() != before;
        let right = match output.code {
            Some(0) if act.ends_with_nothing() => now.is_none(),
            Some(0) => landed && now.as_deref() == id,
            Some(77) => !landed,
            code => code == Some(69),
        };
        // Whatever else may happen next, this has to be undone.
        heal();
        let fault = if output.code.is_none() || output.stderr.contains("panicked") {
            "a bad end"
        } else if !right {
            "a wrong verdict"
        } else if acted.took > AT_MOST {
            "past every deadline"
        } else if acted.peak > MOST_MEMORY {
            "too much memory"
        } else {
            return match self.find_out(act, before, now.as_deref()) {
                Ok(()) => Ok(output.code.unwrap_or_default()),
                Err(again) => Err(format!("{}{again}", told("not found out"))),
            };
        };
        Err(format!("{} ({:?}, {} kB)", told(fault), acted.took, acted.peak))
    }

    /// The next command knows how it stands, where nothing is wrong any more.
    fn find_out(&self, act: Act, before: Option<&str>, now: Option<&str>) -> Result<(), Output> {
        let landed = now != before;
        let again = match act {
            Act::Take | Act::Confirm => self.alice.claim(&["take", "42", "--resume"]),
            Act::Renew => self.alice.claim(&["verify", "42"]),
            Act::Release if landed => self.alice.claim(&["verify", "42"]),
            Act::Release => self.alice.claim(&["release", "42"]),
            Act::Over | Act::ConfirmOver if landed => self.alice.claim(&["take", "42", "--resume"]),
            Act::Over | Act::ConfirmOver | Act::Clear => self.act(act, before, NO_HURRY).output,
        };
        self.cutter.settled();
        let at_last = self.tip();
        let right = if !act.ends_with_nothing() {
            again.code == Some(0)
                && at_last.as_deref() == again.verdict().split(' ').nth(2)
                // What has landed is what is gone on with.
                && (!landed || at_last.as_deref() == now)
        } else {
            at_last.is_none() && again.code == Some(if landed { 3 } else { 0 })
        };
        let right = right && (act != Act::Renew || at_last.as_deref() == now);
        if right { Ok(()) } else { Err(again) }
    }
}

/// The most memory that a process had so far, in kB; nothing where that cannot be known.
fn most_memory(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

/// So many stands, for as many cases side by side: most of the time is spent waiting.
pub(super) fn stands(new: impl Fn() -> Option<Stand>) -> Option<Vec<Stand>> {
    const LANES: usize = 3;
    (0..LANES).map(|_| new()).collect()
}

/// Puts them in an order of chance.
pub(super) fn shuffle<T>(all: &mut [T], chance: &mut Chance) {
    for end in (1..all.len()).rev() {
        all.swap(end, chance.below(end as u64 + 1) as usize);
    }
}

/// Tries cases in their order, as far as the time allows or, where none was given, the first few; prints how many of how many,
/// and how those of each kind ended. A case gives its kind, and the exit or what is wrong.
pub(super) fn try_all<T: Sync>(
    what: &str,
    stands: &[Stand],
    cases: &[T],
    short: usize,
    try_one: impl Fn(&Stand, &T) -> (String, Result<i32, String>) + Sync,
) {
    let size = Size::asked_for();
    let (started, next) = (Instant::now(), AtomicUsize::new(0));
    let done = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for stand in stands {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::SeqCst);
                    let enough = |time| started.elapsed() >= time;
                    let Some(case) = cases.get(number) else { break };
                    if size.time.map_or(number >= short, enough) {
                        break;
                    }
                    let ended = try_one(stand, case);
                    done.lock().unwrap().push(ended);
                }
            });
        }
    });
    let done = done.into_inner().unwrap();
    let mut exits = BTreeMap::<&str, BTreeMap<i32, u32>>::new();
    for (kind, ended) in &done {
        let exit = ended.as_ref().copied().unwrap_or(-1);
        *exits.entry(kind).or_default().entry(exit).or_default() += 1;
    }
    let wrong: Vec<&str> =
        done.iter().filter_map(|(_, ended)| ended.as_ref().err().map(String::as_str)).collect();
    eprintln!(
        "lab: {what}: {} of {} in {} s, seed {}, exits {exits:?}, wrong: {}",
        done.len(),
        cases.len(),
        started.elapsed().as_secs(),
        size.seed,
        wrong.len()
    );
    assert!(wrong.is_empty(), "seed {}\n{}", size.seed, wrong.join("\n"));
    let went_wrong = |exits: &BTreeMap<i32, u32>| exits.keys().any(|exit| *exit != 0);
    assert!(exits.values().any(went_wrong), "nothing of what was done did any harm");
}
