//! How a claim came to be what it is: its tip, and the records that the tip descends from.
//!
//! A renewal copies what its parent says about a takeover, so the token is what tells one claim from the next. Commits
//! may come from anybody: nothing here assumes that they follow from each other by our rules, and what is
//! not known is said to be missing, never made up.

use chrono::{DateTime, Utc};
use gix::{ObjectId, bstr::ByteSlice};

use super::record::{ByHand, Person, Reading, Record};

/// What happened to a claim, the oldest event first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chain {
    /// The events; none if the tip is no record.
    pub events: Vec<Event>,
    /// Whether that is all: no earlier record is missing.
    pub whole: bool,
}

/// One thing that happened, or several renewals in a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// What.
    pub what: What,
    /// When, by the clock of who did it; of renewals in a row, the last. `None` if a commit made by hand names no time.
    pub at: Option<DateTime<Utc>>,
    /// Who did it.
    pub by: Person,
    /// On which host.
    pub host: Option<String>,
    /// The commit that says so; of renewals in a row, the last.
    pub id: ObjectId,
}

/// The kinds of events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// Somebody took what nobody held.
    Taken,
    /// Somebody made a claim by hand, and somebody else took that over or let it go.
    ByHand {
        /// The first line of the message.
        subject: String,
    },
    /// The holder gave signs of life, with nothing else between them.
    Renewed {
        /// How many.
        times: usize,
        /// When the first of them was.
        since: DateTime<Utc>,
    },
    /// Somebody took it over from its holder.
    TakenOver(Ended),
    /// The holder let it go.
    Released,
    /// Somebody else let it go.
    Cleared(Ended),
}

/// The claim that a takeover or a clearing ended. Where its commit was read, that says so, whatever the record on
/// top of it says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// The id of its tip; empty if nothing names it.
    pub over: String,
    /// Who held it; may be empty.
    pub from: String,
    /// Why it was ended.
    pub reason: Option<String>,
}

/// The parent of the commit `raw` on its own line of descent; `None` for a root, and for what is no commit.
pub fn first_parent(raw: &[u8]) -> Option<ObjectId> {
    let mut lines = raw.lines();
    lines.next().filter(|line| line.starts_with(b"tree "))?;
    ObjectId::from_hex(lines.next()?.strip_prefix(b"parent ")?).ok()
}

/// The commits from `tip` down, first parents only: at most `most`, and as far as `find` has them.
pub fn line(
    tip: ObjectId,
    most: usize,
    mut find: impl FnMut(ObjectId) -> Option<Vec<u8>>,
) -> Vec<(ObjectId, Vec<u8>)> {
    let (mut line, mut next) = (Vec::new(), Some(tip));
    while let Some(id) = next
        && line.len() < most
        && let Some(raw) = find(id)
    {
        next = first_parent(&raw);
        line.push((id, raw));
    }
    line
}

/// What the oldest record that was read sits on, and then each in its turn.
enum Before {
    /// It is a root.
    Nothing,
    /// It has a parent that was not read, or of which nothing can be read.
    Unknown,
    ByHand(ObjectId, ByHand),
    Record(ObjectId, Box<Record>),
}

impl Chain {
    /// The events that a [`line()`] of commits tells of. It ends at the first that is no record: below a claim made by
    /// hand comes the project's history, which is none of ours.
    pub fn of(line: &[(ObjectId, Vec<u8>)]) -> Self {
        let (mut records, mut before) = (Vec::new(), Before::Nothing);
        for (id, raw) in line {
            match Reading::of_commit(raw) {
                Reading::Claim(record) => {
                    records.push((*id, record));
                    before = match first_parent(raw) {
                        Some(_) => Before::Unknown,
                        None => Before::Nothing,
                    };
                    continue;
                }
                Reading::ByHand(by_hand) => before = Before::ByHand(*id, by_hand),
                Reading::Unreadable(_) => before = Before::Unknown,
            }
            break;
        }
        let whole = !matches!(before, Before::Unknown);
        let mut events: Vec<Event> = Vec::new();
        if let Before::ByHand(id, by_hand) = &before
            && let Some((_, oldest)) = records.last()
            && oldest.took_over.is_some()
        {
            events.push(Event {
                what: What::ByHand { subject: by_hand.subject.clone() },
                at: by_hand.at,
                by: by_hand.who.clone(),
                host: None,
                id: *id,
            });
        }
        for (id, record) in records.into_iter().rev() {
            let (what, at) = happened(&before, &record);
            let event = Event {
                what,
                at: Some(at),
                by: record.holder.clone(),
                host: record.host.clone(),
                id,
            };
            match (events.last_mut(), &event.what) {
                // With another token there would be another event in between.
                (
                    Some(Event { what: What::Renewed { times, .. }, at, id, .. }),
                    What::Renewed { .. },
                ) => {
                    *times += 1;
                    (*at, *id) = (event.at, event.id);
                }
                _ => events.push(event),
            }
            before = Before::Record(id, record);
        }
        Self { events, whole }
    }
}

/// What made `record` out of what was there before it, and when.
fn happened(before: &Before, record: &Record) -> (What, DateTime<Utc>) {
    let taken = (What::Taken, record.claimed_at);
    let renewed = |since| (What::Renewed { times: 1, since }, since);
    let recorded = record.took_over.as_ref();
    let ended = |over: String, from: String| Ended { over, from, reason: record.reason.clone() };
    match before {
        Before::Nothing => taken,
        Before::ByHand(id, by_hand) if recorded.is_some() => {
            let ended = ended(id.to_string(), by_hand.who.to_string());
            match record.released_at {
                Some(at) => (What::Cleared(ended), at),
                None => (What::TakenOver(ended), record.claimed_at),
            }
        }
        Before::ByHand(..) => taken,
        Before::Record(_, earlier) if earlier.token == record.token => match record.released_at {
            Some(at) => (What::Released, at),
            None => renewed(record.renewed_at.unwrap_or(record.claimed_at)),
        },
        Before::Record(id, earlier) => {
            let ended = || ended(id.to_string(), earlier.holder.to_string());
            match (record.released_at, recorded) {
                (Some(at), _) => (What::Cleared(ended()), at),
                (None, Some(_)) => (What::TakenOver(ended()), record.claimed_at),
                (None, None) => taken,
            }
        }
        // By the record alone; of what a renewal copies, the last act is what it is about.
        Before::Unknown => match (record.released_at, record.renewed_at, recorded) {
            (Some(at), _, _) => (What::Released, at),
            (None, Some(at), _) => renewed(at),
            (None, None, Some(over)) => {
                (What::TakenOver(ended(over.id.clone(), over.who.clone())), record.claimed_at)
            }
            (None, None, None) => taken,
        },
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use chrono::TimeDelta;
    use gix::hash::Kind;
    use proptest::prelude::*;

    use super::{
        super::{
            commit::Draft,
            record::{TookOver, tests::bare},
            token::Token,
        },
        *,
    };

    /// Commits, the oldest first, each a child of the one before.
    #[derive(Default)]
    struct History {
        commits: HashMap<ObjectId, Vec<u8>>,
        tip: Option<ObjectId>,
    }

    impl History {
        fn message(mut self, message: &str) -> Self {
            let draft = Draft {
                message: message.to_owned(),
                author: Person { name: "Hand".into(), email: "h@example.com".into() },
                at: minute(0),
                parent: self.tip,
            };
            let commit = draft.encode(Kind::Sha1);
            self.tip = Some(commit.id);
            self.commits.insert(commit.id, commit.data);
            self
        }

        fn then(self, record: &Record) -> Self {
            self.message(&record.message())
        }

        fn line(&self, most: usize) -> Vec<(ObjectId, Vec<u8>)> {
            line(self.tip.expect("a tip"), most, |id| self.commits.get(&id).cloned())
        }

        fn chain(&self) -> Chain {
            Chain::of(&self.line(100))
        }
    }

    fn minute(number: i64) -> DateTime<Utc> {
        bare().claimed_at + TimeDelta::minutes(number)
    }

    fn taken(who: &str, at: i64) -> Record {
        let token = Token::from_bytes([at as u8; 16]);
        let holder = Person { name: who.into(), email: String::new() };
        Record { holder, claimed_at: minute(at), token, ..bare() }
    }

    fn over(who: &str, at: i64, from: &str) -> Record {
        let took_over = Some(TookOver { id: "abcdef0".into(), who: from.into() });
        Record { took_over, reason: Some("silent".into()), ..taken(who, at) }
    }

    fn renewed(record: &Record, at: i64) -> Record {
        Record { renewed_at: Some(minute(at)), ..record.clone() }
    }

    fn released(record: &Record, at: i64) -> Record {
        Record { released_at: Some(minute(at)), ..record.clone() }
    }

    /// Each event in a word: what, who, the minute, and what else there is.
    fn told(chain: &Chain) -> Vec<String> {
        let mut told: Vec<String> = chain
            .events
            .iter()
            .map(|event| {
                let what = match &event.what {
                    What::Taken => "taken".to_owned(),
                    What::ByHand { subject } => format!("by hand '{subject}'"),
                    What::Renewed { times, since } => {
                        format!("renewed {times} since {}", (*since - minute(0)).num_minutes())
                    }
                    What::TakenOver(ended) => format!("over {}", ended.from),
                    What::Released => "released".to_owned(),
                    What::Cleared(ended) => format!("cleared {}", ended.from),
                };
                let at = event.at.map(|at| (at - minute(0)).num_minutes());
                format!("{} {} {what}", at.unwrap_or(-1), event.by.name)
            })
            .collect();
        if !chain.whole {
            told.insert(0, "…".into());
        }
        told
    }

    #[test]
    fn what_happened_is_told_by_the_tokens() {
        let alice = taken("Alice", 1);
        let bob = over("Bob", 5, "Mallory");
        let carol = taken("Carol", 9);
        let start = History::default;
        for (history, expected) in [
            (start().then(&alice), vec!["1 Alice taken"]),
            (
                start().then(&alice).then(&renewed(&alice, 2)).then(&renewed(&alice, 3)),
                vec!["1 Alice taken", "3 Alice renewed 2 since 2"],
            ),
            (
                // Whom Bob's record names is not who was there.
                start().then(&alice).then(&bob).then(&renewed(&bob, 6)).then(&renewed(&bob, 7)),
                vec!["1 Alice taken", "5 Bob over Alice <>", "7 Bob renewed 2 since 6"],
            ),
            (
                start().then(&alice).then(&released(&alice, 2)).then(&carol),
                vec!["1 Alice taken", "2 Alice released", "9 Carol taken"],
            ),
            (
                start().then(&alice).then(&bob).then(&released(&renewed(&bob, 6), 7)),
                vec!["1 Alice taken", "5 Bob over Alice <>", "7 Bob released"],
            ),
            (
                start()
                    .then(&alice)
                    .then(&renewed(&alice, 2))
                    .then(&released(&bob, 6))
                    .then(&carol),
                vec![
                    "1 Alice taken",
                    "2 Alice renewed 1 since 2",
                    "6 Bob cleared Alice <>",
                    "9 Carol taken",
                ],
            ),
            (
                start().message("fix").message("mine, by hand").then(&bob),
                vec!["0 Hand by hand 'mine, by hand'", "5 Bob over Hand <h@example.com>"],
            ),
            (
                start().message("mine, by hand").then(&released(&bob, 6)),
                vec!["0 Hand by hand 'mine, by hand'", "6 Bob cleared Hand <h@example.com>"],
            ),
            (start().message("the project's").then(&alice), vec!["1 Alice taken"]),
            (start().then(&alice).message("by hand over a record"), vec![]),
            (start().message("x\n\nClaim-Format: 2\n").then(&bob), vec!["…", "5 Bob over Mallory"]),
        ] {
            assert_eq!(told(&history.chain()), expected);
        }
    }

    #[test]
    fn what_is_missing_is_said_to_be() {
        let (alice, bob) = (taken("Alice", 1), over("Bob", 5, "Mallory"));
        for (tip, expected) in [
            (alice.clone(), "1 Alice taken"),
            (renewed(&bob, 6), "6 Bob renewed 1 since 6"),
            (bob.clone(), "5 Bob over Mallory"),
            (released(&bob, 7), "7 Bob released"),
        ] {
            let history = History::default().then(&taken("Zoe", 0)).then(&tip);
            assert_eq!(told(&Chain::of(&history.line(1))), ["…", expected]);
        }
        let mut history = History::default().then(&alice);
        for minute in 2..200 {
            history = history.then(&renewed(&alice, minute));
        }
        assert_eq!(told(&history.chain()), ["…", "199 Alice renewed 100 since 100"]);
    }

    #[test]
    fn a_line_follows_first_parents_and_ends_where_they_do() {
        let id = |digit: &str| ObjectId::from_hex(digit.repeat(40).as_bytes()).expect("hex");
        let (one, two) = (id("1"), id("2"));
        for (raw, parent) in [
            (format!("tree {two}\nparent {one}\nparent {two}\nauthor x\n"), Some(one)),
            (format!("tree {two}\nauthor x\nparent {one}\n"), None),
            (format!("tree {two}\n\nparent {one}\n"), None),
            (format!("parent {one}\n"), None),
            (format!("tree {two}\nparent {one}1\n"), None),
            ("tree".into(), None),
            (String::new(), None),
        ] {
            assert_eq!(first_parent(raw.as_bytes()), parent, "{raw}");
        }
        // No hash makes such a loop; whoever hands us one gets an end all the same.
        let raw = format!("tree {two}\nparent {one}\n").into_bytes();
        assert_eq!(line(one, 7, |_| Some(raw.clone())).len(), 7);
        assert_eq!(line(one, 7, |_| None), []);
    }

    proptest! {
        #[test]
        fn any_bytes_are_no_more_than_missing(raws in proptest::collection::vec(any::<Vec<u8>>(), 0..4)) {
            let id = ObjectId::null(Kind::Sha1);
            let line: Vec<_> = raws.into_iter().map(|raw| (id, raw)).collect();
            prop_assert!(Chain::of(&line).events.is_empty());
        }
    }
}
