//! Compare-and-swaps, carried to verdicts: send, look again after anything but a plain answer, try again where that is
//! safe. Several go in one push, and are looked at in one exchange.
//!
//! Within one invocation every try sends the same commit, so a try whose answer was lost and that landed all the
//! same makes the next one a win. What any of it means is decided in [`crate::verdict`].

use std::time::Duration;

use gix::{
    ObjectId,
    bstr::{BString, ByteSlice},
};

use super::look::Seen;
use crate::{
    claim::{claim_ref::ClaimRef, commit::Draft, record::Reading},
    output::Shown,
    verdict::{self, Act, Doubt, Now, Step, Verdict, Whose},
    wait,
    wire::{self, Edit, LinkError, Push, Reported},
};

/// The refs as swaps meet them: written, looked at, waited for. Each is known by its number.
pub trait Places {
    /// The full name of the ref.
    fn refname(&self, which: usize) -> BString;
    /// Sends one push with an edit for each of `which`; says in their order what came of them.
    fn update(&mut self, which: &[usize], push: &Push<'_>) -> Vec<Reported>;
    /// Asks what each of `which` holds now, in their order.
    fn look(&mut self, which: &[usize]) -> Result<Vec<Option<Seen>>, LinkError>;
    /// Whose a tip is, by what the clone can prove.
    fn whose(&self, which: usize, seen: &Seen) -> Whose;
    /// Asks what stands at another ref, which the writing side shows with `id`, if it is a claim that somebody holds.
    fn look_elsewhere(&mut self, other: &ClaimRef, id: ObjectId) -> Option<Seen>;
    /// Waits before another try.
    fn pause(&mut self, pause: Duration);
    /// Whether the writing side showed that the namespaces of the other places are in use.
    fn near(&self) -> bool;
}

/// What is to be done to one ref.
pub struct Swap {
    /// What for.
    pub act: Act,
    /// The value that the ref must have.
    pub expected: Option<ObjectId>,
    /// The raw commit there.
    pub base: Option<Vec<u8>>,
    /// The commit to put there, on top of what it replaces then; a deletion puts none.
    pub draft: Option<Draft>,
    /// Where else the same claim may stand, for those who look there: then nothing is sent.
    pub others: Vec<ClaimRef>,
    /// Whether the ref is looked at before an `ok` to a take is believed.
    pub confirm: bool,
}

impl Swap {
    /// One that concerns nothing but its ref, and believes the remote.
    pub fn of(
        act: Act,
        expected: Option<ObjectId>,
        base: Option<Vec<u8>>,
        draft: Option<Draft>,
    ) -> Self {
        Self { act, expected, base, draft, others: Vec::new(), confirm: false }
    }
}

/// How it ended.
#[derive(Debug)]
pub struct Outcome {
    /// The answer.
    pub verdict: Verdict,
    /// The value that the last try was to replace: not the first one's, where the claim was renewed on the way.
    pub replaced: Option<ObjectId>,
    /// The last look at the ref.
    pub looked: Looked,
    /// Whether a command of ours left whose end is not known: it may still land.
    pub pending: bool,
    /// The raw commit at the new tip, if it is the one that was sent: text, as all that we write.
    pub commit: Option<String>,
    /// Whether a try got no answer that may still create the ref once it is gone again: the claim was won by another.
    pub unanswered: bool,
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

/// Carries out one swap, of the only ref that `places` has.
pub fn drive(places: &mut dyn Places, swap: Swap) -> Outcome {
    let mut one = [Going::new(0, swap, places)];
    carry_out(places, &mut one, Bond::Each);
    let [one] = one;
    one.ended(places.near())
}

/// Carries out swaps on the refs of `places`, one for each, in as few pushes as that takes: one, if nothing comes between.
pub fn drive_all(places: &mut dyn Places, swaps: Vec<Swap>, bond: Bond) -> Vec<Outcome> {
    let new = |(which, swap)| Going::new(which, swap, places);
    let mut all: Vec<Going> = swaps.into_iter().enumerate().map(new).collect();
    carry_out(places, &mut all, bond);
    if bond == Bond::Each {
        try_alone(places, &mut all);
    }
    let near = places.near();
    all.into_iter().map(|one| one.ended(near)).collect()
}

/// What swaps of one push have to do with each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bond {
    /// Nothing: each succeeds or fails by itself.
    Each,
    /// All succeed, or none does: the remote is asked for that, and whoever cannot succeed ends the others.
    All,
}

fn carry_out(places: &mut dyn Places, all: &mut [Going], bond: Bond) {
    for tried in 1..=wait::TRIES {
        let mut open: Vec<&mut Going> = all.iter_mut().filter(|one| one.goes_on).collect();
        if open.is_empty() {
            break;
        }
        if tried > 1 {
            // Without a random number the pause is merely not spread.
            places.pause(wait::pause(tried, getrandom::u64().unwrap_or_default()));
        }
        once(places, &mut open, bond);
        if bond == Bond::All {
            end_what_cannot_be_all(all);
        }
    }
}

/// Where a hook refuses a push as a whole, or the server dies over it, that may be for one of them only: the others are tried
/// once more, each by itself, unless that is in vain several times in a row.
fn try_alone(places: &mut dyn Places, all: &mut [Going]) {
    const IN_VAIN: usize = 3;
    let none_done = !all.iter().any(|one| one.done);
    let stuck = |one: &Going| one.goes_on || (one.turned_away && none_done);
    let mut stuck: Vec<&mut Going> = all.iter_mut().filter(|one| stuck(one)).collect();
    if stuck.len() < 2 {
        return;
    }
    let mut in_vain = 0;
    for one in &mut stuck {
        if in_vain == IN_VAIN {
            break;
        }
        one.goes_on = true;
        once(places, &mut [&mut **one], Bond::Each);
        in_vain = if one.goes_on || one.turned_away { in_vain + 1 } else { 0 };
    }
}

/// A swap on its way.
struct Going {
    which: usize,
    swap: Swap,
    refname: BString,
    others: Vec<BString>,
    sent: Vec<ObjectId>,
    /// Creations of the ref that got no answer.
    lost: usize,
    /// Whether the last try was answered with `ok`.
    done: bool,
    /// Whether it was answered with another word.
    turned_away: bool,
    outcome: Outcome,
    goes_on: bool,
}

impl Going {
    fn new(which: usize, swap: Swap, places: &dyn Places) -> Self {
        Self {
            which,
            swap,
            refname: places.refname(which),
            others: Vec::new(),
            sent: Vec::new(),
            lost: 0,
            done: false,
            turned_away: false,
            outcome: Outcome {
                verdict: Verdict::Unknown(ELSEWHERE.into()),
                replaced: None,
                looked: Looked::No,
                pending: false,
                commit: None,
                unanswered: false,
                elsewhere: None,
                near: false,
            },
            goes_on: true,
        }
    }

    /// Makes what is to be sent now.
    fn prepare(&mut self) {
        if let Some(draft) = &mut self.swap.draft {
            draft.parent = self.swap.expected;
        }
        self.others = self.swap.others.iter().map(|other| other.full().to_owned()).collect();
    }

    fn edit(&self) -> Edit<'_> {
        Edit {
            refname: self.refname.as_bstr(),
            expected: self.swap.expected,
            new: self.swap.draft.as_ref(),
            base: self.swap.base.as_deref(),
            others: &self.others,
            beside: None,
        }
    }

    /// Takes in what the remote said; the doubt that only a look can clear up, if there is one.
    fn hear(&mut self, reported: Reported, places: &mut dyn Places) -> Option<Doubt> {
        let is_lost = matches!(reported, Reported::Lost { .. });
        self.outcome.pending |= is_lost;
        self.lost += usize::from(is_lost && self.swap.expected.is_none());
        self.done = matches!(reported, Reported::Done(_));
        self.turned_away = matches!(reported, Reported::Refused { .. });
        self.sent.extend(reported.sent());
        if let Reported::Elsewhere { refname, id } = &reported
            && let Some(at) = self.swap.others.iter().position(|other| other.full() == refname)
        {
            let other = self.swap.others.remove(at);
            match places.look_elsewhere(&other, *id) {
                Some(seen) => self.outcome.elsewhere = Some((other, seen)),
                // Nobody's: it need not be asked about again.
                None => return None,
            }
        }
        match verdict::settle(self.swap.act, reported, &self.sent, self.swap.confirm) {
            Ok(verdict) => {
                self.step(Step::Settled(verdict), false);
                None
            }
            Err(doubt) => {
                // What was said to be done may show later.
                self.outcome.pending |= doubt == Doubt::Unconfirmed;
                Some(doubt)
            }
        }
    }

    /// Clears up a doubt by what was found.
    fn clear_up(
        &mut self,
        doubt: Doubt,
        found: Result<Option<Seen>, LinkError>,
        timed_out: bool,
        places: &dyn Places,
    ) {
        let left = self.outcome.pending;
        let now = match found {
            Ok(None) => {
                self.outcome.looked = Looked::Absent;
                Now::Absent
            }
            Ok(Some(seen)) => {
                let now = Now::At(seen.id, self.whose(&seen, places));
                self.outcome.looked = Looked::At(seen);
                now
            }
            Err(error) => {
                self.outcome.looked = Looked::No;
                // Hosts have refused with words and done it all the same.
                self.outcome.pending |= matches!(doubt, Doubt::Refused(_));
                Now::NotRead(error.to_string())
            }
        };
        let step = verdict::weigh(self.swap.act, self.swap.expected, doubt, now, left);
        self.step(step, timed_out);
    }

    fn whose(&self, seen: &Seen, places: &dyn Places) -> Whose {
        match self.swap.act {
            // Also where it is what a release of ours put there.
            _ if seen.released().is_some() => Whose::Nobody,
            _ if self.sent.contains(&seen.id) => Whose::Ours,
            // A take can only have been won with what it sent.
            Act::Take => Whose::Others,
            // A clearing and a takeover name a commit, not a holder.
            Act::Over | Act::Clear => match &seen.record {
                Shown::NotRead(why) => Whose::Unread(why.clone()),
                _ if self.grew(seen) => Whose::Heirs,
                _ => Whose::Others,
            },
            Act::Release | Act::Renew => places.whose(self.which, seen),
        }
    }

    /// Whether what is there grew from what was to be replaced.
    fn grew(&self, seen: &Seen) -> bool {
        let token = self.swap.base.as_deref().and_then(|base| Reading::of_commit(base).token());
        self.swap.expected.is_some_and(|id| seen.id != id && seen.grew_from(id, token))
    }

    fn step(&mut self, step: Step, timed_out: bool) {
        (self.outcome.verdict, self.goes_on) = match step {
            Step::Settled(verdict) => (verdict, false),
            // The time given by the user is spent once it is spent.
            Step::Again(verdict) => (verdict, !timed_out),
            Step::Follow(id, verdict) => {
                self.swap.expected = id;
                self.swap.base = self.outcome.looked.seen().and_then(|seen| seen.commit.clone());
                (verdict, true)
            }
        };
    }

    /// Whether nobody has the claim, by the last look, and nothing of ours can land any more.
    fn stands_free(&self) -> bool {
        let free = match &self.outcome.looked {
            Looked::No => false,
            Looked::Absent => true,
            Looked::At(seen) => seen.released().is_some(),
        };
        free && !self.outcome.pending
    }

    fn ended(mut self, near: bool) -> Outcome {
        if !self.goes_on {
            self.outcome.commit = new_commit(self.swap.draft.as_ref(), &self.outcome.verdict);
        }
        self.outcome.near = near;
        self.outcome.replaced = self.swap.expected;
        match &self.outcome.verdict {
            // Final only if no earlier command of ours can still land.
            Verdict::Refused(why) if self.outcome.pending => {
                self.outcome.verdict = Verdict::Unknown(why.clone());
            }
            Verdict::Free if self.outcome.pending && self.swap.act == Act::Take => {
                let why = "nothing is there, and an earlier try of ours may still land";
                self.outcome.verdict = Verdict::Unknown(why.into());
            }
            Verdict::Claimed(_) => {
                self.outcome.pending = false;
                // Without an `ok` it is one of them that landed.
                self.outcome.unanswered = self.lost > usize::from(!self.done);
            }
            Verdict::Renewed(_) | Verdict::Released => self.outcome.pending = false,
            _ => {}
        }
        self.outcome
    }
}

const ELSEWHERE: &str = "the same claim keeps appearing elsewhere";

/// One try: a push of all that are `open` and, where its answers leave doubts, a look that clears them up.
fn once(places: &mut dyn Places, open: &mut [&mut Going], bond: Bond) {
    open.iter_mut().for_each(|one| one.prepare());
    let which: Vec<usize> = open.iter().map(|one| one.which).collect();
    let edits: Vec<Edit<'_>> = open.iter().map(|one| one.edit()).collect();
    let atomic = bond == Bond::All && edits.len() > 1;
    let reported = places.update(&which, &Push { edits: &edits, atomic });
    let timed_out = reported
        .iter()
        .any(|end| matches!(end, Reported::Lost { error: LinkError::TimedOut(_), .. }));
    let mut doubts = Vec::new();
    for (at, reported) in reported.into_iter().enumerate() {
        if let Some(doubt) = open[at].hear(reported, places) {
            doubts.push((at, doubt));
        }
    }
    if doubts.is_empty() {
        return;
    }
    let which: Vec<usize> = doubts.iter().map(|(at, _)| open[*at].which).collect();
    let mut looks = match places.look(&which) {
        Ok(found) => found.into_iter().map(Ok).collect(),
        Err(error) => vec![Err(error); which.len()],
    }
    .into_iter();
    for (at, doubt) in doubts {
        let found = looks.next().unwrap_or(Ok(None));
        open[at].clear_up(doubt, found, timed_out, places);
    }
}

/// Where one of those that are to succeed together cannot, the others end where they are.
fn end_what_cannot_be_all(all: &mut [Going]) {
    let won = |one: &Going| matches!(one.outcome.verdict, Verdict::Claimed(_));
    if !all.iter().any(|one| !one.goes_on && !won(one)) {
        return;
    }
    let is_to_blame = |one: &Going| match &one.outcome.verdict {
        Verdict::Held(_) => true,
        Verdict::Refused(why) => !wire::words::for_another(why) && why != wire::NOT_TOGETHER,
        _ => false,
    };
    let blamed: Vec<bool> = all.iter().map(is_to_blame).collect();
    let held = all.iter().any(|one| matches!(one.outcome.verdict, Verdict::Held(_)));
    let is_known = blamed.contains(&true);
    for (one, blamed) in all.iter_mut().zip(blamed) {
        one.goes_on &= won(one);
        // The words for it were about all of them, and it is known which one they were about.
        let blameless = held || (is_known && !blamed);
        if blameless && !won(one) && one.stands_free() {
            one.outcome.verdict = Verdict::Free;
        }
    }
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

    impl Places for Script {
        fn update(&mut self, _: &[usize], push: &Push<'_>) -> Vec<Reported> {
            let [edit] = push.edits else { unreachable!("one ref, one edit") };
            self.updates.push(edit.expected);
            let sent = edit.new.map(|draft| draft.encode(Kind::Sha1).id);
            vec![match self.reports.pop_front().expect("not more updates than scripted") {
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
            }]
        }

        fn look(&mut self, _: &[usize]) -> Result<Vec<Option<Seen>>, LinkError> {
            let seen = match self.looks.pop_front().expect("not more looks than scripted") {
                Look::Absent => None,
                Look::At(id) => Some(Seen {
                    id,
                    record: Shown::Unasked,
                    commit: None,
                    symref: None,
                    request: None,
                }),
                Look::Released(id) => Some(mark(id)),
                Look::Down => return Err(LinkError::Unreachable("down".into())),
            };
            Ok(vec![seen])
        }

        fn look_elsewhere(&mut self, _: &ClaimRef, _: ObjectId) -> Option<Seen> {
            unreachable!("no script has another place")
        }

        fn whose(&self, _: usize, _: &Seen) -> Whose {
            self.whose.clone()
        }

        fn pause(&mut self, _: Duration) {}

        fn refname(&self, _: usize) -> BString {
            "refs/claims/issue-4".into()
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
        run_with(act, false, whose, reports, looks)
    }

    fn run_with(
        act: Act,
        confirm: bool,
        whose: Whose,
        reports: Vec<Report>,
        looks: Vec<Look>,
    ) -> (Outcome, Vec<Option<ObjectId>>) {
        let mut script =
            Script { reports: reports.into(), looks: looks.into(), updates: Vec::new(), whose };
        let expected = (act != Act::Take).then(|| id('a'));
        let draft = matches!(act, Act::Take | Act::Renew | Act::Over).then(|| draft(None));
        let swap = Swap { confirm, ..Swap::of(act, expected, None, draft) };
        let outcome = drive(&mut script, swap);
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
    fn an_ok_that_is_to_be_confirmed_is_not_believed() {
        let take = |reports, looks| run_with(Act::Take, true, Whose::Others, reports, looks).0;
        let there = take(vec![Report::Done], vec![Look::At(mine())]);
        assert_eq!((there.verdict, there.pending), (Verdict::Claimed(mine()), false));
        assert!(there.commit.is_some());
        // Readers are shown less than writers.
        let hidden = take(vec![Report::Done, Report::Shows(Some(mine()))], vec![Look::Absent]);
        assert_eq!((hidden.verdict, hidden.pending), (Verdict::Claimed(mine()), false));
        let others = take(vec![Report::Done], vec![Look::At(id('b'))]);
        assert_eq!(others.verdict, Verdict::Held(id('b')));
        let all = || 0..wait::TRIES;
        for (reports, looks) in [
            (vec![Report::Done], vec![Look::Down]),
            (all().map(|_| Report::Done).collect(), all().map(|_| Look::Absent).collect()),
        ] {
            let outcome = take(reports, looks);
            assert!(matches!(outcome.verdict, Verdict::Unknown(_)), "{outcome:?}");
            assert!(outcome.pending, "{outcome:?}");
        }
        let (not_moved, _) = run_with(
            Act::Over,
            true,
            Whose::Others,
            all().map(|_| Report::Done).collect(),
            all().map(|_| Look::At(id('a'))).collect(),
        );
        assert!(matches!(not_moved.verdict, Verdict::Unknown(_)), "{not_moved:?}");
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
