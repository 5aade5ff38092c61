//! What is left when somebody was killed: the clone's records, what the server holds once it is done, and what either of two
//! people is told next, in an order of chance. Nobody is to be told what another one can contradict.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use serde_json::Value;

use super::Chance;
use crate::support::{
    Clone, Kind, Output, Remote, Sandbox,
    sandbox::{processes_in, processes_with},
    until,
};

/// What is done meanwhile, by Alice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Act {
    Take,
    Renew,
    Release,
    Over,
    Clear,
    Group,
    ReleaseGroup,
    Run,
}

pub(super) const ACTS: [Act; 8] = [
    Act::Take,
    Act::Renew,
    Act::Release,
    Act::Over,
    Act::Clear,
    Act::Group,
    Act::ReleaseGroup,
    Act::Run,
];

impl Act {
    fn names(self) -> &'static [&'static str] {
        match self {
            Self::Group | Self::ReleaseGroup => &["a", "b", "c"],
            _ => &["a"],
        }
    }

    /// Who holds it before.
    fn holder(self) -> Holder {
        match self {
            Self::Take | Self::Group | Self::Run => Holder::Nobody,
            Self::Renew | Self::Release | Self::ReleaseGroup => Holder::Alice,
            Self::Over | Self::Clear => Holder::Bob,
        }
    }

    /// Who holds it once it is done.
    fn heir(self) -> Holder {
        match self {
            Self::Take | Self::Group | Self::Over | Self::Renew => Holder::Alice,
            Self::Release | Self::ReleaseGroup | Self::Clear | Self::Run => Holder::Nobody,
        }
    }

    /// Who may hold it in between.
    fn may_leave(self, holder: Holder) -> bool {
        let between = self == Self::Run && holder == Holder::Alice;
        between || holder == self.holder() || holder == self.heir()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Holder {
    Nobody,
    Alice,
    Bob,
}

/// What is done afterwards, to find out.
#[derive(Debug, Clone, Copy)]
enum Step {
    RivalTakes,
    Verify,
    Resume,
    Release,
}

/// A claim as the server has it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Tip {
    id: String,
    token: String,
}

/// The claims by their names.
type Tips = BTreeMap<String, Tip>;

/// A claimant to whom something happens, and a rival.
pub(super) struct Scene<'a> {
    pub(super) sandbox: &'a Sandbox,
    pub(super) remote: Remote,
    pub(super) alice: Clone,
    bob: Clone,
    /// What the command of a `run` leaves.
    ran: PathBuf,
}

/// What the command line of an act is, and what it meets.
pub(super) struct Ready {
    pub(super) args: Vec<String>,
    before: Tips,
    seen: usize,
}

impl Ready {
    pub(super) fn args(&self) -> Vec<&str> {
        self.args.iter().map(String::as_str).collect()
    }
}

type Wrong = Result<(), String>;

impl<'a> Scene<'a> {
    pub(super) fn new(sandbox: &'a Sandbox, kind: Kind) -> Option<Self> {
        let remote = sandbox.remote(kind)?;
        let [alice, bob] = sandbox.people(&remote, ["Alice", "Bob"]);
        Some(Scene { sandbox, remote, alice, bob, ran: sandbox.path("ran") })
    }

    /// Lets both release by marks.
    pub(super) fn use_marks(&self) {
        for clone in [&self.alice, &self.bob] {
            clone.set("claim.release", "mark");
        }
    }

    /// What stands there, but for what says itself that it is over.
    fn tips(&self) -> Tips {
        let trailer = |key| format!("%(contents:trailers:key={key},valueonly,separator=%2C)");
        let format = format!(
            "%(refname:lstrip=2)|%(objectname)|{}|{}|",
            trailer("Claim-Token"),
            trailer("Released-At")
        );
        let lines = self.remote.git(&["for-each-ref", "--format", &format, "refs/claims/"]);
        let held = lines.lines().filter_map(|line| {
            let [name, id, token, released, _] = line.split('|').collect::<Vec<_>>()[..] else {
                panic!("not a claim: {line}");
            };
            let tip = Tip { id: id.to_owned(), token: token.to_owned() };
            released.is_empty().then(|| (name.to_owned(), tip))
        });
        held.collect()
    }

    /// Nothing is held, and nobody believes so; then what is there before `act`.
    pub(super) fn prepare(&self, act: Act) -> Ready {
        let refs = self.remote.refs();
        let claims = refs.lines().filter_map(|line| line.split(' ').nth(1));
        let lines: String = claims
            .filter(|name| name.starts_with("refs/claims/"))
            .map(|name| format!("delete {name}\n"))
            .collect();
        if !lines.is_empty() {
            self.remote.git_input(&["update-ref", "--stdin"], &lines);
        }
        for clone in [&self.alice, &self.bob] {
            let _ = fs::remove_dir_all(clone.dir.join(".git/claims"));
        }
        let _ = fs::remove_file(&self.ran);
        let holder = match act.holder() {
            Holder::Nobody => None,
            Holder::Alice => Some(&self.alice),
            Holder::Bob => Some(&self.bob),
        };
        if let Some(holder) = holder {
            let _ = holder.claim(&[&["take"], act.names()].concat()).is(0, "claimed");
        }
        let before = self.tips();
        let id = before.get("a").map(|tip| tip.id.clone()).unwrap_or_default();
        let script = format!("echo ran >>{}", self.ran.display());
        let args = match act {
            Act::Take => vec!["take", "a"],
            Act::Renew => vec!["renew", "a"],
            Act::Release => vec!["release", "a"],
            Act::Over => vec!["take", "a", "--over", &id, "--reason", "gone"],
            Act::Clear => vec!["release", "a", "--expect", &id],
            Act::Group => vec!["take", "a", "b", "c"],
            Act::ReleaseGroup => vec!["release", "a", "b", "c"],
            Act::Run => vec!["run", "a", "--", "sh", "-c", &script],
        };
        let args = args.into_iter().map(str::to_owned).collect();
        Ready { args, before, seen: self.remote.witnessed().len() }
    }

    /// Waits until nobody is at work, on either side.
    pub(super) fn settled(&self) {
        let home = format!("HOME={}", self.sandbox.path("home").display());
        until("all are done", || {
            processes_in(&self.remote.dir).is_empty() && processes_with(&home).is_empty()
        });
    }

    /// Compares all that there is, and has everybody find out; says what is wrong.
    pub(super) fn judge(
        &self,
        act: Act,
        ready: &Ready,
        output: &Output,
        chance: &mut Chance,
    ) -> Wrong {
        self.compare(act, ready, output)
            .and_then(|holders| match holders[..] {
                [first, ref others @ ..] if others.iter().any(|other| *other != first) => {
                    self.make_whole(act, &holders)
                }
                _ => Ok(holders[0]),
            })
            .and_then(|holder| self.find_out(act, holder, chance))
            .map_err(|what| format!("{what}\n{act:?}, was {:?}\n{output}", ready.before))
    }

    /// Compares what is there with what was said, as far as it came to saying anything.
    fn compare(&self, act: Act, ready: &Ready, output: &Output) -> Result<Vec<Holder>, String> {
        let holders = self.holders(act)?;
        for (name, holder) in act.names().iter().zip(&holders) {
            if !act.may_leave(*holder) {
                return Err(format!("{name} is held by {holder:?}"));
            }
            let said = output.stdout.lines().find(|line| line.split(' ').nth(1) == Some(name));
            let said = match said.and_then(|line| line.split(' ').next()) {
                None | Some("unknown" | "refused") => *holder,
                Some("claimed" | "renewed") => Holder::Alice,
                Some("released") => Holder::Nobody,
                // None of several was taken, as one could not be told.
                Some("free") if act == Act::Group => Holder::Nobody,
                Some(other) => return Err(format!("it said {other}, held by {holder:?}")),
            };
            if said != *holder {
                return Err(format!("it said that {name} is {said:?}'s, and {holder:?} has it"));
            }
        }
        match output.code {
            None | Some(69 | 77) => {}
            // Without the git that reads the settings nothing can begin.
            Some(1) if self.remote.witnessed().len() == ready.seen => {}
            Some(0) if act == Act::Run || holders.iter().all(|holder| *holder == act.heir()) => {}
            Some(_) => return Err(format!("a wrong end, held by {holders:?}")),
        }
        if self.ran.exists() && self.remote.witnessed().len() == ready.seen {
            return Err("the command was run without a claim".into());
        }
        Ok(holders)
    }

    /// Who can prove that each claim is theirs, and nobody beside.
    fn holders(&self, act: Act) -> Result<Vec<Holder>, String> {
        let (alice, bob) = (records(&self.alice)?, records(&self.bob)?);
        let tips = self.tips();
        let one = |name: &&str| {
            let proof = tips
                .get(*name)
                .map(|tip| (alice.contains_key(&tip.token), bob.contains_key(&tip.token)));
            let found = match proof {
                None => Holder::Nobody,
                Some((true, true)) => return Err(format!("{name} is everybody's")),
                Some((false, false)) => return Err(format!("{name} is there and nobody's")),
                Some((true, false)) => Holder::Alice,
                Some((false, true)) => Holder::Bob,
            };
            // Whoever has on record that it was won, did win: it stands, or it is what the act was to end.
            let of = format!("refs/claims/{name}");
            let won = alice.values().any(|(refname, tip)| *refname == of && tip.is_some());
            if won && found != Holder::Alice && act.heir() == Holder::Alice {
                return Err(format!("{name} is on record as won, and it is {found:?}'s"));
            }
            Ok(found)
        };
        act.names().iter().map(one).collect()
    }

    /// A server that dies while it moves refs has moved a part of them, whatever it was asked for. Alice is told which, and
    /// makes it whole.
    fn make_whole(&self, act: Act, holders: &[Holder]) -> Result<Holder, String> {
        let all = |word: &str, holder: Holder| {
            let of = act.names().iter().zip(holders).filter(|(_, other)| **other == holder);
            of.map(|(name, _)| format!("{word} {name}")).collect::<Vec<_>>()
        };
        let said = |output: &Output, expected: Vec<String>| {
            let words = |line: &str| line.split(' ').take(2).collect::<Vec<_>>().join(" ");
            let said: BTreeSet<String> = output.stdout.lines().map(words).collect();
            let right = said == expected.into_iter().collect();
            if right { Ok(()) } else { Err(format!("a part of them, {holders:?}:\n{output}")) }
        };
        let verified = self.alice.claim(&[&["verify"], act.names()].concat());
        said(&verified, [all("yours", Holder::Alice), all("free", Holder::Nobody)].concat())?;
        if act.heir() == Holder::Nobody {
            let output = self.alice.claim(&[&["release"], act.names()].concat());
            said(&output, [all("released", Holder::Alice), all("free", Holder::Nobody)].concat())?;
            return Ok(Holder::Nobody);
        }
        let output = self.alice.claim(&[&["take"], act.names(), &["--resume"]].concat());
        said(&output, [all("claimed", Holder::Alice), all("claimed", Holder::Nobody)].concat())?;
        Ok(Holder::Alice)
    }

    /// Everybody asks, in an order of chance, and is told what is so; then nothing is left.
    fn find_out(&self, act: Act, mut holder: Holder, chance: &mut Chance) -> Wrong {
        let mut steps = [Step::RivalTakes, Step::Verify, Step::Resume, Step::Release];
        chance.shuffle(&mut steps);
        let mut tips = self.tips();
        for step in steps {
            let then = self.one_step(act, step, holder, &tips).map_err(|what| {
                format!("{what}\n{step:?} of {steps:?}, held by {holder:?} {tips:?}")
            })?;
            tips = self.tips();
            holder = then;
        }
        self.nothing_is_left(act, holder)
    }

    /// Does it, given who holds the claims; says who does then.
    fn one_step(
        &self,
        act: Act,
        step: Step,
        holder: Holder,
        tips: &Tips,
    ) -> Result<Holder, String> {
        let (who, verb, more) = match step {
            Step::RivalTakes => (&self.bob, "take", None),
            Step::Verify => (&self.alice, "verify", None),
            Step::Resume => (&self.alice, "take", Some("--resume")),
            Step::Release => (&self.alice, "release", None),
        };
        let (code, word, then) = match (step, holder) {
            (Step::RivalTakes, Holder::Nobody) => (0, "claimed", Holder::Bob),
            (Step::Resume, Holder::Nobody | Holder::Alice) => (0, "claimed", Holder::Alice),
            (Step::RivalTakes | Step::Resume, _) => (75, "held", holder),
            (Step::Verify, Holder::Alice) => (0, "yours", holder),
            (Step::Release, Holder::Alice) => (0, "released", Holder::Nobody),
            (Step::Verify | Step::Release, Holder::Bob) => (3, "lost", holder),
            (Step::Verify | Step::Release, Holder::Nobody) => (3, "free", holder),
        };
        let args = [verb].iter().chain(act.names()).copied().chain(more).collect::<Vec<_>>();
        let output = who.claim(&args);
        if output.code != Some(code) || !says_of_each(&output, word, act.names()) {
            return Err(format!("expected {code} and `{word}`\n{output}"));
        }
        let now = self.tips();
        if then == holder && now != *tips {
            return Err(format!("it was moved: {now:?}\n{output}"));
        }
        let all = if then == Holder::Nobody { 0 } else { act.names().len() };
        if now.len() == all {
            Ok(then)
        } else {
            Err(format!("is not {then:?}'s: {now:?}\n{output}"))
        }
    }

    /// Everybody releases; what a take left that never landed goes when it is old.
    fn nothing_is_left(&self, act: Act, holder: Holder) -> Wrong {
        for (clone, who) in [(&self.alice, Holder::Alice), (&self.bob, Holder::Bob)] {
            let output = clone.claim(&[&["release"], act.names()].concat());
            if holder == who && output.code != Some(0) {
                return Err(format!("not released in the end\n{output}"));
            }
            if left_in(clone).is_empty() {
                continue;
            }
            grow_old(clone);
            let output = clone.claim(&[&["verify"], act.names()].concat());
            let left = left_in(clone);
            if !left.is_empty() {
                return Err(format!("left in the clone: {left:?}\n{output}"));
            }
        }
        let tips = self.tips();
        if tips.is_empty() { Ok(()) } else { Err(format!("something is left there: {tips:?}")) }
    }

    /// Whether Alice is told what is so while the server's own leavings are still there.
    pub(super) fn is_told_beside_locks(&self, act: Act) -> Wrong {
        let holders = self.holders(act)?;
        for (name, holder) in act.names().iter().zip(holders) {
            let word = match holder {
                Holder::Nobody => "free",
                Holder::Alice => "yours",
                Holder::Bob => "lost",
            };
            let output = self.alice.claim(&["verify", name]);
            if !says_of_each(&output, word, &[name]) {
                return Err(format!("beside locks it is {holder:?}'s\n{output}"));
            }
        }
        Ok(())
    }

    /// Removes the locks that a server's program left which was killed, as the one whose server it is would; says how many.
    pub(super) fn remove_locks(&self) -> usize {
        let locks = locks_below(&self.remote.dir);
        locks.iter().for_each(|lock| fs::remove_file(lock).unwrap());
        locks.len()
    }
}

/// Every line of the answer is `word` about one of `names`.
fn says_of_each(output: &Output, word: &str, names: &[&str]) -> bool {
    let about = |line: &str| {
        let mut words = line.split(' ');
        let is_it = words.next() == Some(word);
        words.next().filter(|_| is_it).unwrap_or_default().to_owned()
    };
    let said: BTreeSet<String> = output.stdout.lines().map(about).collect();
    said == names.iter().map(|name| (*name).to_owned()).collect()
}

/// A clone's records: the ref and the tip of each token. None of them is torn.
fn records(clone: &Clone) -> Result<BTreeMap<String, (String, Option<String>)>, String> {
    let mut found = BTreeMap::new();
    for path in clone.records() {
        let text = fs::read_to_string(&path).unwrap();
        let json: Value =
            serde_json::from_str(&text).map_err(|error| format!("torn: {error}: {text}"))?;
        let field = |name: &str| json[name].as_str().map(str::to_owned);
        let refname = field("ref").unwrap_or_default();
        found.insert(field("token").unwrap_or_default(), (refname, field("tip")));
    }
    Ok(found)
}

/// Everything in the clone's corner is as if it had been written long ago.
fn grow_old(clone: &Clone) {
    let days_ago = SystemTime::now() - Duration::from_secs(3 * 24 * 60 * 60);
    for path in left_in(clone) {
        if let Ok(mut json) = serde_json::from_slice::<Value>(&fs::read(&path).unwrap()) {
            json["taken"] = "2020-01-01T00:00:00Z".into();
            fs::write(&path, json.to_string()).unwrap();
        }
        fs::File::options().write(true).open(&path).unwrap().set_modified(days_ago).unwrap();
    }
}

/// All files in the clone's corner.
fn left_in(clone: &Clone) -> Vec<PathBuf> {
    let remotes = fs::read_dir(clone.dir.join(".git/claims")).into_iter().flatten().flatten();
    let files = remotes.flat_map(|remote| fs::read_dir(remote.path()).unwrap().flatten());
    files.map(|file| file.path()).collect()
}

fn locks_below(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(locks_below(&path));
        } else if path.extension().is_some_and(|extension| extension == "lock") {
            found.push(path);
        }
    }
    found
}
