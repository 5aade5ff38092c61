//! One compare-and-swap, carried to a verdict: send, look again after anything but a plain answer, try again
//! where that is safe.
//!
//! Within one invocation every try sends the same commit, so a try whose answer was lost and that landed all the
//! same makes the next one a win. What any of it means is decided in [`crate::verdict`].

use std::time::Duration;

use gix::{ObjectId, bstr::BString};

use super::look::Seen;
use crate::{
    claim::{claim_ref::ClaimRef, commit::Draft, record::Reading},
    output::Shown,
    verdict::{self, Act, Now, Step, Verdict, Whose},
    wait,
    wire::{Edit, LinkError, Reported},
};

/// The ref as a swap meets it: written, looked at, waited for.
pub trait Place {
    /// Sends one update.
    fn update(&mut self, edit: &Edit<'_>) -> Reported;
    /// Asks what the ref holds now.
    fn look(&mut self) -> Result<Option<Seen>, LinkError>;
    /// Whose a tip is, by what the clone can prove.
    fn whose(&self, seen: &Seen) -> Whose;
    /// Asks what stands at another ref, which the writing side shows with `id`, if it is a claim that somebody holds.
    fn look_elsewhere(&mut self, other: &ClaimRef, id: ObjectId) -> Option<Seen>;
    /// Waits before another try.
    fn pause(&mut self, pause: Duration);
    /// The full name of the ref.
    fn refname(&self) -> Vec<u8>;
    /// Whether the writing side showed that the namespaces of the other places are in use.
    fn near(&self) -> bool;
}

/// What is to be done to one ref.
pub struct Swap<'a> {
    /// What for.
    pub act: Act,
    /// The value that the ref must have.
    pub expected: Option<ObjectId>,
    /// The raw commit there.
    pub base: Option<Vec<u8>>,
    /// Makes the commit to put there, given what it is to replace; a deletion makes none.
    pub draft: Option<&'a dyn Fn(Option<ObjectId>) -> Draft>,
    /// Where else the same claim may stand, for those who look there: then nothing is sent.
    pub others: Vec<ClaimRef>,
}

/// How it ended.
#[derive(Debug)]
pub struct Outcome {
    /// The answer.
    pub verdict: Verdict,
    /// The last look at the ref.
    pub looked: Looked,
    /// Whether a command of ours left whose end is not known: it may still land.
    pub pending: bool,
    /// The raw commit at the new tip, if it is the one that was sent: text, as all that we write.
    pub commit: Option<String>,
    /// Where else the claim stands, and what is there, so that nothing was sent.
    pub elsewhere: Option<(ClaimRef, Seen)>,
    /// Whether the namespaces of the others are in use at all.
    pub near: bool,
}

/// The end of a look at the ref.
#[derive(Debug, Clone)]
pub enum Looked {
    /// None was needed, or it failed.
    No,
    /// The remote says that there is no such ref.
    Absent,
    /// It holds this.
    At(Seen),
}

impl Looked {
    /// What was seen.
    pub fn seen(&self) -> Option<&Seen> {
        match self {
            Self::At(seen) => Some(seen),
            Self::No | Self::Absent => None,
        }
    }
}

/// Carries out `swap`.
pub fn drive(place: &mut dyn Place, mut swap: Swap<'_>) -> Outcome {
    let mut outcome = Outcome {
        verdict: Verdict::Unknown("the same claim keeps appearing elsewhere".into()),
        looked: Looked::No,
        pending: false,
        commit: None,
        elsewhere: None,
        near: false,
    };
    let refname = place.refname();
    let mut sent = Vec::new();
    for tried in 1..=wait::TRIES {
        if tried > 1 {
            // Without a random number the pause is merely not spread.
            place.pause(wait::pause(tried, getrandom::u64().unwrap_or_default()));
        }
        let draft = swap.draft.map(|draft| draft(swap.expected));
        let others: Vec<BString> =
            swap.others.iter().map(|other| other.full().to_owned()).collect();
        let reported = place.update(&Edit {
            refname: &refname,
            expected: swap.expected,
            new: draft.as_ref(),
            base: swap.base.as_deref(),
            others: &others,
            atomic: false,
            beside: None,
        });
        let timed_out = matches!(reported, Reported::Lost { error: LinkError::TimedOut(_), .. });
        outcome.pending |= matches!(reported, Reported::Lost { .. });
        let refused = matches!(reported, Reported::Refused { .. });
        sent.extend(reported.sent());
        if let Reported::Elsewhere { refname, id } = &reported
            && let Some(at) = swap.others.iter().position(|other| other.full() == refname)
        {
            let other = swap.others.remove(at);
            match place.look_elsewhere(&other, *id) {
                Some(seen) => outcome.elsewhere = Some((other, seen)),
                // Nobody's: it need not be asked about again.
                None => continue,
            }
        }
        let step = match verdict::settle(swap.act, reported, &sent) {
            Ok(verdict) => Step::Settled(verdict),
            Err(doubt) => {
                let left = outcome.pending;
                let now;
                (now, outcome.looked) = look(place, &swap, &sent);
                // Hosts have refused with words and done it all the same.
                outcome.pending |= refused && matches!(now, Now::NotRead(_));
                verdict::weigh(swap.act, swap.expected, doubt, now, left)
            }
        };
        let again;
        (outcome.verdict, again) = match step {
            Step::Settled(verdict) => (verdict, false),
            // The time given by the user is spent once it is spent.
            Step::Again(verdict) => (verdict, !timed_out),
            Step::Follow(id, verdict) => {
                swap.expected = id;
                swap.base = outcome.looked.seen().and_then(|seen| seen.commit.clone());
                (verdict, true)
            }
        };
        if !again {
            outcome.commit = new_commit(draft.as_ref(), &outcome.verdict);
            break;
        }
    }
    outcome.near = place.near();
    match &outcome.verdict {
        // Final only if no earlier command of ours can still land.
        Verdict::Refused(why) if outcome.pending => outcome.verdict = Verdict::Unknown(why.clone()),
        Verdict::Claimed(_) | Verdict::Renewed(_) | Verdict::Released => outcome.pending = false,
        _ => {}
    }
    outcome
}

fn look(place: &mut dyn Place, swap: &Swap<'_>, sent: &[ObjectId]) -> (Now, Looked) {
    match place.look() {
        Ok(None) => (Now::Absent, Looked::Absent),
        Ok(Some(seen)) => {
            let whose = match swap.act {
                // Also where it is what a release of ours put there.
                _ if seen.released().is_some() => Whose::Nobody,
                _ if sent.contains(&seen.id) => Whose::Ours,
                // A take can only have been won with what it sent.
                Act::Take => Whose::Others,
                // A clearing and a takeover name a commit, not a holder.
                Act::Over | Act::Clear => match &seen.record {
                    Shown::NotRead(why) => Whose::Unread(why.clone()),
                    _ if grew(&seen, swap) => Whose::Heirs,
                    _ => Whose::Others,
                },
                Act::Release | Act::Renew => place.whose(&seen),
            };
            (Now::At(seen.id, whose), Looked::At(seen))
        }
        Err(error) => (Now::NotRead(error.to_string()), Looked::No),
    }
}

/// Whether what is there grew from what was to be replaced.
fn grew(seen: &Seen, swap: &Swap<'_>) -> bool {
    let token = swap.base.as_deref().and_then(|base| Reading::of_commit(base).token());
    swap.expected.is_some_and(|id| seen.id != id && seen.grew_from(id, token))
}

fn new_commit(draft: Option<&Draft>, verdict: &Verdict) -> Option<String> {
    let (Verdict::Claimed(id) | Verdict::Renewed(id)) = verdict else { return None };
    let encoded = draft?.encode(id.kind());
    String::from_utf8(encoded.data).ok().filter(|_| encoded.id == *id)
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use chrono::DateTime;
    use gix::hash::Kind;

    use super::*;
    use crate::claim::{
        record::{Person, Record},
        token::Token,
    };

    /// A remote that answers from a script.
    struct Script {
        reports: VecDeque<Report>,
        looks: VecDeque<Look>,
        updates: Vec<Option<ObjectId>>,
        whose: Whose,
    }

    enum Report {
        Done,
        Shows(Option<ObjectId>),
        Refused(&'static str),
        Lost,
        TimedOut,
        Unreachable,
    }

    enum Look {
        Absent,
        At(ObjectId),
        Released(ObjectId),
        Down,
    }

    /// A ref that holds the mark of a release.
    fn mark(id: ObjectId) -> Seen {
        let holder = Person { name: "B".into(), email: "b@example.com".into() };
        let token = Token::from_bytes([7; 16]);
        let record = Record {
            released_at: Some(DateTime::UNIX_EPOCH),
            ..Record::new("issue-4".into(), holder, DateTime::UNIX_EPOCH, token)
        };
        let record = Shown::Read(Reading::Claim(Box::new(record)));
        Seen { id, record, commit: Some(b"the mark".to_vec()), symref: None, request: None }
    }

    impl Place for Script {
        fn update(&mut self, edit: &Edit<'_>) -> Reported {
            self.updates.push(edit.expected);
            let sent = edit.new.map(|draft| draft.encode(Kind::Sha1).id);
            match self.reports.pop_front().expect("not more updates than scripted") {
                Report::Done => Reported::Done(sent),
                Report::Shows(found) => Reported::Unexpected { found },
                Report::Refused(reason) => Reported::Refused { sent, reason: reason.into() },
                Report::Lost => {
                    Reported::Lost { sent, error: LinkError::Unreachable("cut".into()) }
                }
                Report::TimedOut => {
                    Reported::Lost { sent, error: LinkError::TimedOut(Duration::from_secs(1)) }
                }
                Report::Unreachable => Reported::Unsent(LinkError::Unreachable("down".into())),
            }
        }

        fn look(&mut self) -> Result<Option<Seen>, LinkError> {
            match self.looks.pop_front().expect("not more looks than scripted") {
                Look::Absent => Ok(None),
                Look::At(id) => Ok(Some(Seen {
                    id,
                    record: Shown::Unasked,
                    commit: None,
                    symref: None,
                    request: None,
                })),
                Look::Released(id) => Ok(Some(mark(id))),
                Look::Down => Err(LinkError::Unreachable("down".into())),
            }
        }

        fn look_elsewhere(&mut self, _: &ClaimRef, _: ObjectId) -> Option<Seen> {
            unreachable!("no script has another place")
        }

        fn whose(&self, _: &Seen) -> Whose {
            self.whose.clone()
        }

        fn pause(&mut self, _: Duration) {}

        fn refname(&self) -> Vec<u8> {
            b"refs/claims/issue-4".to_vec()
        }

        fn near(&self) -> bool {
            false
        }
    }

    fn id(digit: char) -> ObjectId {
        ObjectId::from_hex(digit.to_string().repeat(40).as_bytes()).expect("hex")
    }

    fn draft(parent: Option<ObjectId>) -> Draft {
        let author = Person { name: "A".into(), email: "a@example.com".into() };
        Draft { message: "claim issue-4\n".into(), author, at: DateTime::UNIX_EPOCH, parent }
    }

    fn mine() -> ObjectId {
        draft(None).encode(Kind::Sha1).id
    }

    fn run(
        act: Act,
        whose: Whose,
        reports: Vec<Report>,
        looks: Vec<Look>,
    ) -> (Outcome, Vec<Option<ObjectId>>) {
        let mut script =
            Script { reports: reports.into(), looks: looks.into(), updates: Vec::new(), whose };
        let expected = (act != Act::Take).then(|| id('a'));
        let make: &dyn Fn(Option<ObjectId>) -> Draft = &draft;
        let draft = matches!(act, Act::Take | Act::Renew | Act::Over).then_some(make);
        let outcome =
            drive(&mut script, Swap { act, expected, base: None, draft, others: Vec::new() });
        assert!(
            script.reports.is_empty() && script.looks.is_empty(),
            "the script was played to its end"
        );
        (outcome, script.updates)
    }

    fn take(reports: Vec<Report>, looks: Vec<Look>) -> Outcome {
        run(Act::Take, Whose::Others, reports, looks).0
    }

    #[test]
    fn a_plain_answer_needs_no_look() {
        let outcome = take(vec![Report::Done], vec![]);
        assert_eq!((outcome.verdict, outcome.pending), (Verdict::Claimed(mine()), false));
        assert!(outcome.commit.is_some());
    }

    #[test]
    fn what_landed_without_an_answer_is_a_win() {
        let seen_at_once = take(vec![Report::Lost], vec![Look::At(mine())]);
        assert_eq!((seen_at_once.verdict, seen_at_once.pending), (Verdict::Claimed(mine()), false));
        let shown_at_the_next_try =
            take(vec![Report::Lost, Report::Shows(Some(mine()))], vec![Look::Absent]);
        assert_eq!(shown_at_the_next_try.verdict, Verdict::Claimed(mine()));
        let refused_but_done = take(vec![Report::Refused("failure")], vec![Look::At(mine())]);
        assert_eq!(refused_but_done.verdict, Verdict::Claimed(mine()));
    }

    #[test]
    fn what_may_still_land_stays_pending() {
        for (reports, looks) in [
            (vec![Report::Lost], vec![Look::Down]),
            (vec![Report::TimedOut], vec![Look::Absent]),
            (vec![Report::Lost, Report::Unreachable], vec![Look::Absent]),
            (
                vec![Report::Lost, Report::Refused("hook declined")],
                vec![Look::Absent, Look::Absent],
            ),
            (vec![Report::Refused("failure")], vec![Look::Down]),
        ] {
            let outcome = take(reports, looks);
            assert!(matches!(outcome.verdict, Verdict::Unknown(_)), "{outcome:?}");
            assert!(outcome.pending, "{outcome:?}");
        }
        let never_left = take(vec![Report::Unreachable], vec![]);
        assert!(
            matches!(never_left.verdict, Verdict::Unknown(_)) && !never_left.pending,
            "{never_left:?}"
        );
    }

    #[test]
    fn a_race_that_is_lost_is_held_and_one_that_ended_is_tried_again() {
        let lost = take(vec![Report::Refused("failed to update ref")], vec![Look::At(id('b'))]);
        assert_eq!((lost.verdict, lost.pending), (Verdict::Held(id('b')), false));
        let ended = take(vec![Report::Shows(Some(id('b'))), Report::Done], vec![Look::Absent]);
        assert_eq!(ended.verdict, Verdict::Claimed(mine()));
        let for_ever =
            || (0..wait::TRIES).map(|_| Report::Refused("failed to update ref")).collect();
        let refused = take(for_ever(), (0..wait::TRIES).map(|_| Look::Absent).collect());
        assert!(matches!(refused.verdict, Verdict::Refused(_)), "{refused:?}");
    }

    #[test]
    fn a_clearing_stops_at_what_its_living_holder_put_there() {
        let (outcome, updates) = run(
            Act::Clear,
            Whose::Ours,
            vec![Report::Refused("failed to update ref")],
            vec![Look::At(id('b'))],
        );
        assert_eq!((outcome.verdict, updates.len()), (Verdict::Moved(id('b')), 1));
    }

    #[test]
    fn a_release_follows_our_own_renewal() {
        let (outcome, updates) = run(
            Act::Release,
            Whose::Ours,
            vec![Report::Shows(Some(id('b'))), Report::Done],
            vec![Look::At(id('b'))],
        );
        assert_eq!(outcome.verdict, Verdict::Released);
        assert_eq!(updates, [Some(id('a')), Some(id('b'))]);
    }
    #[test]
    fn a_take_goes_on_from_a_mark_and_from_the_mark_after_that() {
        let (outcome, updates) = run(
            Act::Take,
            Whose::Others,
            vec![
                Report::Shows(Some(id('b'))),
                Report::Refused("failed to update ref"),
                Report::Refused("failed to update ref"),
                Report::Done,
            ],
            vec![Look::Released(id('b')), Look::Released(id('c')), Look::Absent],
        );
        assert_eq!(outcome.verdict, Verdict::Claimed(mine()));
        assert_eq!(updates, [None, Some(id('b')), Some(id('c')), None]);
        let (outcome, updates) = run(
            Act::Take,
            Whose::Others,
            vec![Report::Shows(Some(id('b'))), Report::Shows(Some(id('c')))],
            vec![Look::Released(id('b')), Look::At(id('c'))],
        );
        assert_eq!((outcome.verdict, updates.len()), (Verdict::Held(id('c')), 2));
    }

    #[test]
    fn a_child_of_a_mark_that_landed_without_an_answer_is_a_win() {
        let child = draft(Some(id('b'))).encode(Kind::Sha1).id;
        let (outcome, _) = run(
            Act::Take,
            Whose::Others,
            vec![Report::Shows(Some(id('b'))), Report::Lost],
            vec![Look::Released(id('b')), Look::At(child)],
        );
        assert_eq!((outcome.verdict, outcome.pending), (Verdict::Claimed(child), false));
        assert!(outcome.commit.is_some());
    }

    #[test]
    fn a_takeover_stops_at_whatever_else_is_there() {
        for (report, look, verdict) in [
            (Report::Shows(Some(id('b'))), Look::At(id('b')), Verdict::Moved(id('b'))),
            (Report::Refused("failed to update ref"), Look::At(id('b')), Verdict::Moved(id('b'))),
            (Report::Shows(None), Look::Absent, Verdict::Free),
            (Report::Shows(Some(id('b'))), Look::Released(id('b')), Verdict::Free),
        ] {
            let (outcome, updates) = run(Act::Over, Whose::Others, vec![report], vec![look]);
            assert_eq!((outcome.verdict, updates.len()), (verdict, 1));
        }
        let child = draft(Some(id('a'))).encode(Kind::Sha1).id;
        let (outcome, _) = run(Act::Over, Whose::Others, vec![Report::Lost], vec![Look::At(child)]);
        assert_eq!(outcome.verdict, Verdict::Claimed(child));
    }
}
