//! What clients were told, against what the server saw.
//!
//! The server's log of a name is one line of values: nobody can hold it while another one does. What can be wrong is what was
//! *told*: a win that is in no line, a claim that went although nobody who might remove it did, a holder that never was.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

/// Time since the beginning of the run.
pub(super) type At = Duration;

/// The server writes down a move a moment after it made it.
const SLACK: Duration = Duration::from_secs(3);

/// One move of a name's ref, as the server saw it. Nothing is no ref.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Move {
    pub(super) at: At,
    pub(super) name: String,
    pub(super) old: Option<String>,
    pub(super) new: Option<String>,
}

/// What a client set out to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Act {
    Take,
    Release,
    Renew,
    Verify,
    /// Takes over from this very commit.
    Over(String),
    /// Clears this very commit.
    Clear(String),
    /// Takes, works, releases.
    Run,
}

/// What it was told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Told {
    Claimed(String),
    Held(String),
    Released(String),
    Renewed(String),
    Yours(String),
    Lost(String),
    Moved(String),
    Free,
    /// The command of a `run` was run, and it ended well.
    Ran,
    /// 69 or 77, or it was killed before it said anything.
    Nothing,
}

/// One invocation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Call {
    pub(super) who: usize,
    pub(super) name: String,
    pub(super) act: Act,
    pub(super) start: At,
    pub(super) end: At,
    pub(super) told: Told,
}

/// From when to when a name had a value.
#[derive(Debug)]
struct Stretch {
    value: Option<String>,
    from: At,
    to: At,
}

/// Everything that is wrong with a history.
pub(super) fn violations(calls: &[Call], moves: &[Move]) -> Vec<String> {
    let mut wrong = Vec::new();
    let names: BTreeSet<&str> = calls
        .iter()
        .map(|call| call.name.as_str())
        .chain(moves.iter().map(|one| one.name.as_str()))
        .collect();
    for name in names {
        let calls: Vec<&Call> = calls.iter().filter(|call| call.name == name).collect();
        let moves: Vec<&Move> = moves.iter().filter(|one| one.name == name).collect();
        match in_line(&moves) {
            Ok(line) => of_one_name(&calls, &line, &mut wrong),
            Err(what) => wrong.push(format!("{name}: {what}")),
        }
    }
    wrong
}

/// The moves in the order in which they were made: each from what the one before left.
fn in_line<'a>(moves: &[&'a Move]) -> Result<Vec<&'a Move>, String> {
    let mut left: Vec<&Move> = moves.to_vec();
    left.sort_by_key(|one| one.at);
    let (mut line, mut value): (Vec<&Move>, Option<&str>) = (Vec::new(), None);
    while !left.is_empty() {
        let next = left.iter().position(|one| one.old.as_deref() == value);
        let Some(next) = next else {
            return Err(format!("the server's moves are no line: {value:?}, then {left:?}"));
        };
        let next = left.remove(next);
        value = next.new.as_deref();
        line.push(next);
    }
    Ok(line)
}

fn of_one_name(calls: &[&Call], line: &[&Move], wrong: &mut Vec<String>) {
    let stretches = stretches(line);
    let stood = |value: Option<&str>, call: &Call| {
        stretches.iter().any(|stretch| {
            stretch.value.as_deref() == value
                && stretch.from.saturating_sub(SLACK) <= call.end
                && stretch.to + SLACK >= call.start
        })
    };
    let owners = owners(calls, line);
    let mut claimed = BTreeMap::new();
    for call in calls {
        let mut fault = |what: &str| wrong.push(format!("{what}: {call:?}\n  {line:?}"));
        let made = |id: &str| {
            line.iter().any(|one| one.new.as_deref() == Some(id) && during(one.at, call))
        };
        match &call.told {
            Told::Claimed(id) => {
                if !made(id) {
                    fault("a win that the server did not see");
                }
                if claimed.insert(id.clone(), call.who).is_some() {
                    fault("one claim won twice");
                }
            }
            Told::Renewed(id) if !made(id) && !stood(Some(id), call) => {
                fault("a renewal that the server did not see");
            }
            Told::Released(id) => {
                let gone = line.iter().any(|one| {
                    one.old.as_deref() == Some(id) && one.new.is_none() && during(one.at, call)
                });
                if !gone {
                    fault("a release that the server did not see");
                }
            }
            Told::Held(id) | Told::Lost(id) | Told::Moved(id) if !stood(Some(id), call) => {
                fault("a holder that was not there");
            }
            Told::Yours(id) => {
                if !stood(Some(id), call) {
                    fault("a claim that was not there is ours");
                } else if owners.get(id.as_str()).is_some_and(|who| *who != call.who) {
                    fault("somebody else's claim is ours");
                }
            }
            Told::Free if !stood(None, call) => fault("free, and it never was"),
            _ => {}
        }
    }
    for one in line {
        if !calls.iter().any(|call| may_have_made(one, call, &owners)) {
            wrong.push(format!("a move that nobody may have made: {one:?}\n  {calls:?}"));
        }
    }
}

fn during(at: At, call: &Call) -> bool {
    call.start <= at && at <= call.end + SLACK
}

/// Whose each value is, as far as it was told.
fn owners<'a>(calls: &[&'a Call], line: &[&'a Move]) -> BTreeMap<&'a str, usize> {
    let mut owners = BTreeMap::new();
    for call in calls {
        if let Told::Claimed(id) | Told::Renewed(id) = &call.told {
            owners.insert(id.as_str(), call.who);
        }
    }
    // A renewal whose answer was lost, of what was known.
    for one in line {
        if let (Some(old), Some(new)) = (&one.old, &one.new)
            && !owners.contains_key(new.as_str())
        {
            let taker = calls.iter().any(|call| {
                call.act == Act::Over(old.clone())
                    && during(one.at, call)
                    && call.told == Told::Nothing
            });
            if let (Some(who), false) = (owners.get(old.as_str()).copied(), taker) {
                owners.insert(new, who);
            }
        }
    }
    owners
}

/// Whether a call set out to do what the server saw, and was not told that it did not.
fn may_have_made(one: &Move, call: &Call, owners: &BTreeMap<&str, usize>) -> bool {
    // Whoever was killed may have left a command behind that lands later.
    let in_time = match call.told {
        Told::Nothing => call.start <= one.at,
        _ => during(one.at, call),
    };
    let unsure = matches!(call.told, Told::Nothing | Told::Ran);
    let its_own = |id: &str| owners.get(id).is_none_or(|who| *who == call.who);
    in_time
        && match (&one.old, &one.new, &call.act) {
            (None, Some(new), Act::Take | Act::Run) => {
                unsure || call.told == Told::Claimed(new.clone())
            }
            (Some(old), Some(new), Act::Over(id)) => {
                id == old && (unsure || call.told == Told::Claimed(new.clone()))
            }
            (Some(old), Some(new), Act::Renew | Act::Run) => {
                its_own(old) && (unsure || call.told == Told::Renewed(new.clone()))
            }
            (Some(old), None, Act::Release | Act::Run) => {
                its_own(old) && (unsure || call.told == Told::Released(old.clone()))
            }
            (Some(old), None, Act::Clear(id)) => {
                id == old && (unsure || call.told == Told::Released(old.clone()))
            }
            _ => false,
        }
}

fn stretches(line: &[&Move]) -> Vec<Stretch> {
    let mut all = vec![Stretch { value: None, from: At::ZERO, to: At::MAX - SLACK }];
    for one in line {
        if let Some(last) = all.last_mut() {
            last.to = one.at;
        }
        all.push(Stretch { value: one.new.clone(), from: one.at, to: At::MAX - SLACK });
    }
    all
}

/// Histories that are as they should be, and one for each way in which they should not be.
mod tests {
    use super::*;

    const STEP: u64 = 100;

    fn call(who: usize, act: Act, from: u64, to: u64, told: Told) -> Call {
        let at = |steps: u64| Duration::from_secs(steps * STEP);
        Call { who, name: "a".into(), act, start: at(from), end: at(to), told }
    }

    fn moved(at: u64, old: &str, new: &str) -> Move {
        let value = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let at = Duration::from_secs(at * STEP + STEP / 2);
        Move { at, name: "a".into(), old: value(old), new: value(new) }
    }

    fn claimed(id: &str) -> Told {
        Told::Claimed(id.into())
    }

    /// Alice takes, renews and releases, Bob is told so, takes, and is taken over by Alice.
    fn good() -> (Vec<Call>, Vec<Move>) {
        let calls = vec![
            call(1, Act::Take, 0, 1, claimed("x")),
            call(2, Act::Take, 2, 3, Told::Held("x".into())),
            call(1, Act::Renew, 3, 4, Told::Renewed("y".into())),
            call(1, Act::Verify, 4, 5, Told::Yours("y".into())),
            call(1, Act::Release, 5, 6, Told::Released("y".into())),
            call(2, Act::Verify, 7, 8, Told::Free),
            call(2, Act::Take, 8, 9, Told::Nothing),
            call(1, Act::Over("z".into()), 10, 11, claimed("w")),
            call(2, Act::Release, 12, 13, Told::Lost("w".into())),
            call(2, Act::Clear("w".into()), 14, 15, Told::Released("w".into())),
        ];
        let moves = vec![
            moved(0, "", "x"),
            moved(3, "x", "y"),
            moved(5, "y", ""),
            moved(8, "", "z"),
            moved(10, "z", "w"),
            moved(14, "w", ""),
        ];
        (calls, moves)
    }

    #[test]
    fn a_good_history_has_no_fault() {
        let (calls, moves) = good();
        assert_eq!(violations(&calls, &moves), [""; 0]);
        // The hook of a later move may write first.
        let mut moves = moves;
        moves.swap(1, 2);
        assert_eq!(violations(&calls, &moves), [""; 0]);
    }

    #[test]
    fn every_fault_is_found() {
        type Spoil = fn(&mut Vec<Call>, &mut Vec<Move>);
        let faults: [(&str, Spoil); 11] = [
            ("a win that the server did not see", |calls, _| {
                calls.push(call(2, Act::Take, 2, 3, claimed("q")));
            }),
            ("one claim won twice", |calls, _| calls.push(call(2, Act::Take, 0, 1, claimed("x")))),
            ("a renewal that the server did not see", |calls, _| {
                calls.push(call(1, Act::Renew, 4, 5, Told::Renewed("q".into())));
            }),
            ("a release that the server did not see", |calls, _| {
                calls.push(call(1, Act::Release, 3, 4, Told::Released("x".into())));
            }),
            ("a holder that was not there", |calls, _| {
                calls[1].told = Told::Held("z".into());
            }),
            ("a claim that was not there is ours", |calls, _| {
                calls[3].told = Told::Yours("z".into());
            }),
            ("somebody else's claim is ours", |calls, _| {
                calls.push(call(2, Act::Verify, 4, 5, Told::Yours("y".into())));
            }),
            ("free, and it never was", |calls, _| {
                calls.push(call(2, Act::Verify, 2, 3, Told::Free));
            }),
            // Bob's release removed what is Alice's.
            ("a move that nobody may have made", |calls, _| {
                calls[4] = call(2, Act::Release, 5, 6, Told::Released("y".into()));
            }),
            // A takeover replaced what it did not name.
            ("a move that nobody may have made", |calls, _| {
                calls[7] = call(1, Act::Over("y".into()), 10, 11, claimed("w"));
            }),
            ("the server's moves are no line", |_, moves| moves.push(moved(6, "x", "q"))),
        ];
        for (expected, spoil) in faults {
            let (mut calls, mut moves) = good();
            spoil(&mut calls, &mut moves);
            let found = violations(&calls, &moves);
            assert!(found.iter().any(|what| what.contains(expected)), "{expected}: {found:?}");
        }
    }
}
