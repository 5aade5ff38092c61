//! What clients were told, against what the server saw.
//!
//! The server's log of a name is one line of values: nobody can hold it while another one does. What can be wrong is what was
//! *told*: a win that is in no line, a claim that went although nobody who might remove it did, a holder that never was.
//!
//! Whose a value is says its commit: who made it, with which token and, by its note, in which call. Nothing is concluded
//! from what a client was told, which is what is in question.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    time::Duration,
};

/// Time since the beginning of the run.
pub(super) type At = Duration;

/// One move of a name's ref, as the server saw it. Nothing is no ref.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Move {
    pub(super) name: String,
    pub(super) old: Option<String>,
    pub(super) new: Option<String>,
    /// It was not yet made: the ref was locked.
    pub(super) from: At,
    /// It was made.
    pub(super) to: At,
    /// The push that it was part of.
    pub(super) push: u64,
    /// What the new commit says of itself.
    pub(super) made: Option<Made>,
}

/// What a commit says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Made {
    pub(super) who: usize,
    pub(super) token: String,
    /// The call that it was made in, which a renewal does not change.
    pub(super) call: Option<usize>,
    pub(super) parents: Vec<String>,
}

/// What a client set out to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Act {
    /// Takes one name, or all of several or none.
    Take,
    /// Takes one of several.
    Any,
    /// Takes, or goes on with what is its own.
    Resume,
    Release,
    Renew,
    Verify,
    /// Takes over from this very commit.
    Over(String),
    /// Clears this very commit.
    Clear(String),
    /// Takes, works, releases.
    Run,
    /// Asks the holder to stop.
    Ask,
    /// Lists all claims.
    List,
    /// Reports the old ones.
    Stale,
}

/// What it was told of a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Told {
    Claimed(String),
    Held(String),
    Released(String),
    Renewed(String),
    Yours(String),
    Lost(String),
    Moved(String),
    Asked(String),
    Listed(String),
    Free,
    /// It could not be told, or it was refused.
    Nothing,
}

/// The answer about one name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) name: String,
    pub(super) told: Told,
    /// The holder that was named, if one was.
    pub(super) holder: Option<usize>,
    pub(super) mine: bool,
}

/// One invocation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Call {
    pub(super) number: usize,
    pub(super) who: usize,
    pub(super) act: Act,
    pub(super) names: Vec<String>,
    pub(super) start: At,
    pub(super) end: At,
    /// It had so little time that a command of its own may still be under way when it has its answer.
    pub(super) hurried: bool,
    /// Nothing where it was killed, or ended before it could say anything of a name.
    pub(super) answers: Option<Vec<Answer>>,
}

/// Everything that is known of a run.
#[derive(Debug, Clone)]
pub(super) struct History {
    pub(super) calls: Vec<Call>,
    pub(super) moves: Vec<Move>,
    /// What stands in the end.
    pub(super) left: BTreeMap<String, String>,
}

/// Something that is wrong.
#[derive(Debug)]
pub(super) struct Violation {
    what: &'static str,
    name: String,
    at: (At, At),
    about: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, of {}: {}", self.what, self.name, self.about)
    }
}

/// From when to when a name had a value: between two moves, as far as there are any.
struct Stretch<'a> {
    value: Option<&'a str>,
    entered: Option<&'a Move>,
    left: Option<&'a Move>,
}

impl Stretch<'_> {
    fn may_overlap(&self, from: At, to: At) -> bool {
        self.entered.is_none_or(|one| one.from <= to) && self.left.is_none_or(|one| one.to >= from)
    }

    fn covers(&self, from: At, to: At) -> bool {
        self.entered.is_none_or(|one| one.to <= from) && self.left.is_none_or(|one| one.from >= to)
    }
}

impl Move {
    fn within(&self, call: &Call) -> bool {
        self.to >= call.start && self.from <= call.end
    }
}

impl Call {
    /// What it was told of `name`; nothing where that is not known.
    fn told(&self, name: &str) -> &Told {
        let answers = self.answers.as_deref().unwrap_or_default();
        answers
            .iter()
            .find(|answer| answer.name == name)
            .map_or(&Told::Nothing, |found| &found.told)
    }
}

/// Everything that is wrong with a history.
pub(super) fn violations(history: &History) -> Vec<Violation> {
    let names: BTreeSet<&str> = history
        .moves
        .iter()
        .map(|one| one.name.as_str())
        .chain(history.calls.iter().flat_map(|call| call.names.iter().map(String::as_str)))
        .collect();
    let lines = names
        .into_iter()
        .map(|name| {
            let mut line: Vec<&Move> =
                history.moves.iter().filter(|one| one.name == name).collect();
            // The lock was held from there on, by one at a time.
            line.sort_by_key(|one| one.from);
            (name, line)
        })
        .collect();
    let mut check = Check { history, lines, owners: BTreeMap::new(), wrong: Vec::new() };
    check.lines_are_lines();
    check.find_owners();
    check.every_move_was_somebodys();
    for call in &history.calls {
        check.call(call);
    }
    check.wrong
}

struct Check<'a> {
    history: &'a History,
    /// The moves of each name, in their order.
    lines: BTreeMap<&'a str, Vec<&'a Move>>,
    /// Who took with each token, in which call, and what.
    owners: BTreeMap<&'a str, (usize, Option<usize>, &'a str)>,
    wrong: Vec<Violation>,
}

/// The requests to holders have refs of their own.
fn is_claim(name: &str) -> bool {
    !name.starts_with("refs/")
}

fn request_of(name: &str) -> String {
    format!("refs/claims-asked/{name}")
}

impl<'a> Check<'a> {
    fn of_move(&mut self, what: &'static str, one: &Move) {
        let about = format!("{one:?}");
        self.wrong.push(Violation { what, name: one.name.clone(), at: (one.from, one.to), about });
    }

    fn of_call(&mut self, what: &'static str, name: &str, call: &Call) {
        let about = format!("{call:?}");
        self.wrong.push(Violation { what, name: name.into(), at: (call.start, call.end), about });
    }

    /// Each move begins where the one before ended, and the last leaves what stands in the end.
    fn lines_are_lines(&mut self) {
        let mut broken = Vec::new();
        for (name, line) in &self.lines {
            let mut value = None;
            for one in line {
                if one.old.as_deref() != value {
                    broken.push(("the server's moves are no line", *one));
                }
                value = one.new.as_deref();
            }
            let left = self.history.left.get(*name).map(String::as_str);
            if let (true, Some(last)) = (value != left, line.last()) {
                broken.push(("what stands in the end was not put there", *last));
            }
        }
        for (what, one) in broken {
            self.of_move(what, one);
        }
    }

    fn find_owners(&mut self) {
        let mut shared = Vec::new();
        for (name, line) in self.lines.iter().filter(|(name, _)| is_claim(name)) {
            let mut before = None;
            for one in line {
                let Some(made) = &one.made else { continue };
                let renewal = one.old.is_some() && before == Some(made.token.as_str());
                let owner = (made.who, made.call, *name);
                if !renewal && *self.owners.entry(&made.token).or_insert(owner) != owner {
                    shared.push(*one);
                }
                before = Some(made.token.as_str());
            }
        }
        for one in shared {
            self.of_move("one token for two takes", one);
        }
    }

    fn made(&self, name: &str, id: &str) -> Option<&'a Made> {
        let line = self.lines.get(name)?;
        line.iter().find(|one| one.new.as_deref() == Some(id))?.made.as_ref()
    }

    fn owner(&self, name: &str, id: &str) -> Option<usize> {
        let (who, ..) = self.owners.get(self.made(name, id)?.token.as_str())?;
        Some(*who)
    }

    fn stretches(&self, name: &str) -> Vec<Stretch<'a>> {
        let line = self.lines.get(name).map(Vec::as_slice).unwrap_or_default();
        let first = Stretch { value: None, entered: None, left: line.first().copied() };
        let rest = line.iter().enumerate().map(|(at, one)| Stretch {
            value: one.new.as_deref(),
            entered: Some(one),
            left: line.get(at + 1).copied(),
        });
        [first].into_iter().chain(rest).collect()
    }

    /// Whether a name may have had a value at some moment of a call.
    fn stood(&self, name: &str, value: Option<&str>, call: &Call) -> bool {
        let may = |stretch: &Stretch<'_>| {
            stretch.value == value && stretch.may_overlap(call.start, call.end)
        };
        self.stretches(name).iter().any(may)
    }

    fn every_move_was_somebodys(&mut self) {
        let mut wrong = Vec::new();
        for (_, line) in self.lines.iter().filter(|(name, _)| is_claim(name)) {
            for (at, one) in line.iter().enumerate() {
                wrong.extend(self.wrong_with(one, line.get(at + 1)).map(|what| (what, *one)));
            }
        }
        for (what, one) in wrong {
            self.of_move(what, one);
        }
    }

    fn wrong_with(&self, one: &Move, next: Option<&&Move>) -> Option<&'static str> {
        let before = one.old.as_deref().and_then(|old| self.made(&one.name, old));
        let mut fitting = self.history.calls.iter();
        match (&one.made, &one.old) {
            (Some(made), old) if made.parents.iter().ne(old.iter()) => {
                Some("a commit that is no child of what it replaced")
            }
            (Some(made), Some(old)) if before.is_some_and(|before| before.token == made.token) => {
                let owner = self.owner(&one.name, old);
                let by = |call: &Call| {
                    matches!(call.act, Act::Renew | Act::Run)
                        && Some(call.who) == owner
                        && allows(call, one, next, Told::Renewed)
                };
                let found = made.who == owner.unwrap_or(usize::MAX) && fitting.any(by);
                (!found).then_some("a renewal that nobody may have made")
            }
            (Some(made), old) => {
                let by = |call: &Call| {
                    let act = match (&call.act, old) {
                        (Act::Over(named), Some(old)) => named == old,
                        (Act::Take | Act::Any | Act::Resume | Act::Run, None) => true,
                        _ => false,
                    };
                    act && Some(call.number) == made.call
                        && call.who == made.who
                        && allows(call, one, next, Told::Claimed)
                };
                (!fitting.any(by)).then_some("a take that nobody may have made")
            }
            (None, Some(old)) => {
                let by = |call: &Call| {
                    let act = match &call.act {
                        Act::Clear(named) => named == old,
                        // What was won beside the one that was wanted goes again.
                        Act::Run | Act::Any => before.is_some_and(|made| {
                            made.call == Some(call.number) && made.who == call.who
                        }),
                        Act::Release => self.owner(&one.name, old) == Some(call.who),
                        _ => false,
                    };
                    act && self.allows_deletion(call, one)
                };
                (!fitting.any(by)).then_some("a release that nobody may have made")
            }
            (None, None) => Some("a move of nothing"),
        }
    }

    /// Whether what a call was told leaves room for a deletion by it.
    fn allows_deletion(&self, call: &Call, one: &Move) -> bool {
        if !call.names.contains(&one.name) || one.to < call.start {
            return false;
        }
        match call.told(&one.name) {
            Told::Nothing => true,
            Told::Released(_) => one.from <= call.end,
            // One of several that was won, and given back.
            Told::Held(_) | Told::Free => call.act == Act::Any && one.from <= call.end,
            // A command without an answer went ahead, and what made the answer came after it.
            Told::Lost(_) | Told::Moved(_) => call.hurried,
            _ => false,
        }
    }

    fn call(&mut self, call: &Call) {
        let answers = call.answers.as_deref().unwrap_or_default();
        for answer in answers {
            if let Some(what) = self.wrong_answer(call, answer) {
                self.of_call(what, &answer.name, call);
            }
        }
        if call.act == Act::List && call.answers.is_some() {
            let stands = |name: &str| {
                let covers =
                    |one: &Stretch<'_>| one.value.is_some() && one.covers(call.start, call.end);
                self.stretches(name).iter().any(covers)
            };
            let left_out = call
                .names
                .iter()
                .find(|name| stands(name) && answers.iter().all(|answer| answer.name != **name));
            if let Some(name) = left_out {
                self.of_call("a list without a claim that stood all the time", name, call);
            }
        }
        self.together(call, answers);
    }

    /// All of several or none; one of several.
    fn together(&mut self, call: &Call, answers: &[Answer]) {
        let Some(name) = call.names.first().filter(|_| call.names.len() > 1) else { return };
        let claimed = answers.iter().filter(|one| matches!(one.told, Told::Claimed(_))).count();
        let created: BTreeMap<&str, u64> = self
            .history
            .moves
            .iter()
            .filter(|one| {
                one.old.is_none()
                    && one.made.as_ref().is_some_and(|made| made.call == Some(call.number))
            })
            .map(|one| (one.name.as_str(), one.push))
            .collect();
        let pushes: BTreeSet<u64> = created.values().copied().collect();
        match call.act {
            Act::Take if ![0, call.names.len()].contains(&claimed) => {
                self.of_call("a part of what is to be had all or none", name, call);
            }
            Act::Take if ![0, call.names.len()].contains(&created.len()) || pushes.len() > 1 => {
                self.of_call("a part of all or none on the server", name, call);
            }
            Act::Any if claimed > 1 => self.of_call("more than one of several", name, call),
            _ => {}
        }
    }

    fn wrong_answer(&self, call: &Call, answer: &Answer) -> Option<&'static str> {
        let name = answer.name.as_str();
        let stood = |id: &str| self.stood(name, Some(id), call);
        let owner = |id: &str| self.owner(name, id);
        let is_callers = |id: &str| owner(id) == Some(call.who);
        // It was there before the call began, so that the clone had it on record.
        let was_callers = |id: &str| {
            is_callers(id)
                && self.lines[name]
                    .iter()
                    .any(|one| one.new.as_deref() == Some(id) && one.to < call.start)
        };
        let entered = |id: &str| {
            let enters = |one: &&&Move| one.new.as_deref() == Some(id) && one.within(call);
            self.lines.get(name).and_then(|line| line.iter().find(enters)).copied()
        };
        if let Told::Held(id) | Told::Lost(id) | Told::Moved(id) | Told::Listed(id) = &answer.told
            && answer.holder.is_some_and(|holder| owner(id) != Some(holder))
        {
            return Some("a holder by the wrong name");
        }
        match &answer.told {
            Told::Claimed(id) => {
                let won = entered(id)
                    .and_then(|one| one.made.as_ref())
                    .is_some_and(|made| made.call == Some(call.number) && made.who == call.who);
                let resumed = call.act == Act::Resume && is_callers(id) && stood(id);
                match owner(id) {
                    None => Some("a win that the server did not see"),
                    Some(_) if won || resumed => None,
                    Some(_) => Some("a win of what another call won"),
                }
            }
            Told::Renewed(id) => {
                let made = entered(id).and_then(|one| one.made.as_ref());
                made.is_none_or(|made| made.who != call.who)
                    .then_some("a renewal that the server did not see")
            }
            Told::Released(id) => self.wrong_release(call, name, id),
            Told::Held(id) if !stood(id) => Some("a holder that was not there"),
            Told::Lost(id) if !stood(id) => Some("a loss to one who was not there"),
            Told::Moved(id) if !stood(id) => Some("moved to where it never was"),
            Told::Listed(id) if !stood(id) => Some("a claim in a list that did not stand"),
            Told::Lost(id) if was_callers(id) => Some("lost to oneself"),
            Told::Moved(id) if call.act == Act::Clear(id.clone()) => Some("moved to where it was"),
            Told::Held(_) | Told::Lost(_) | Told::Moved(_) | Told::Listed(_) => None,
            Told::Yours(id) if !stood(id) => Some("a claim that was not there is ours"),
            Told::Yours(id) if !is_callers(id) => Some("somebody else's claim is ours"),
            Told::Yours(_) => None,
            Told::Asked(id) => {
                let token = self.made(name, id).map(|made| made.token.as_str());
                let request = request_of(name);
                let asked = self.stretches(&request).iter().any(|stretch| {
                    let made = stretch.entered.and_then(|one| one.made.as_ref());
                    made.is_some_and(|made| Some(made.token.as_str()) == token)
                        && stretch.may_overlap(call.start, call.end)
                });
                (!asked || !stood(id)).then_some("a holder that was not asked")
            }
            Told::Free => (!self.stood(name, None, call)).then_some("free, and it never was"),
            Told::Nothing => None,
        }
        .or_else(|| {
            let id = self.lines.get(name)?.iter().filter_map(|one| one.new.as_deref());
            let shown = match &answer.told {
                Told::Claimed(shown) | Told::Held(shown) | Told::Listed(shown) => shown,
                _ => return None,
            };
            let known = id.filter(|id| id == shown).any(is_callers);
            (answer.mine && !known).then_some("somebody else's claim is marked as ours")
        })
    }

    /// What is released is gone at some moment of the call, and was for this one to remove.
    fn wrong_release(&self, call: &Call, name: &str, id: &str) -> Option<&'static str> {
        let line = self.lines.get(name).map(Vec::as_slice).unwrap_or_default();
        let there = line.iter().position(|one| one.new.as_deref() == Some(id));
        let gone = there.is_some_and(|there| {
            line[there..].iter().any(|one| one.new.is_none() && one.within(call))
        });
        let ours = match &call.act {
            Act::Clear(named) => named == id,
            _ => self.owner(name, id) == Some(call.who),
        };
        match (gone, ours) {
            (false, _) => Some("a release that the server did not see"),
            (true, false) => Some("a release of somebody else's"),
            (true, true) => None,
        }
    }
}

/// Whether what a call was told leaves room for its having put there what `one` put there, until `next`.
fn allows(call: &Call, one: &Move, next: Option<&&Move>, yes: fn(String) -> Told) -> bool {
    if !call.names.contains(&one.name) || one.to < call.start {
        return false;
    }
    let new = one.new.clone().unwrap_or_default();
    let gone_by_the_end = next.is_some_and(|next| next.from <= call.end);
    match call.told(&one.name) {
        // What was killed may have left a command behind that lands later.
        Told::Nothing => {
            call.answers.is_none() || call.act != Act::Any || gone_by_the_end || call.hurried
        }
        told if *told == yes(new) => one.from <= call.end,
        // The end of a `run`, or of one of several that was given back.
        Told::Released(_) => one.from <= call.end,
        // A command without an answer may land later; but of what is said to be free none may be under way.
        Told::Free => gone_by_the_end,
        _ => gone_by_the_end || call.hurried,
    }
}

/// What happened to the name of a violation, in the time around it.
pub(super) fn story(history: &History, violation: &Violation) -> String {
    const AROUND: Duration = Duration::from_secs(8);
    let (from, to) = violation.at;
    let near = |start: At, end: At| end + AROUND >= from && start <= to + AROUND;
    let calls = history
        .calls
        .iter()
        .filter(|call| call.names.contains(&violation.name) && near(call.start, call.end))
        .map(|call| (call.start, format!("{call:?}")));
    let moves = history
        .moves
        .iter()
        .filter(|one| one.name == violation.name && near(one.from, one.to))
        .map(|one| (one.from, format!("{one:?}")));
    let mut lines: Vec<(At, String)> = calls.chain(moves).collect();
    lines.sort();
    let lines: Vec<String> = lines.into_iter().map(|(_, line)| format!("    {line}\n")).collect();
    format!("{violation}\n{}", lines.concat())
}
