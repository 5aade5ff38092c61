//! The ref that everything is tried on, and the steps themselves: what they send and what they look at.
//!
//! A step is carried out as the verbs do it: by [`swap::drive`], which settles a doubt by looking. What came of it is a
//! [`Finding`]; what that means is decided in [`super::meaning`].

use std::{
    thread,
    time::{Duration, Instant},
};

use gix::{
    ObjectId,
    bstr::{BString, ByteSlice},
};

use super::meaning::{Finding, Step};
use crate::{
    claim::{
        claim_ref::ClaimRef,
        commit::Draft,
        record::{Person, Reading, Record, TookOver},
        token::Token,
    },
    commands::{
        context::Context,
        look::Seen,
        swap::{self, Looked, Outcome, Places, Swap},
    },
    output::{
        Shown,
        doctor::{Clear, Remains},
    },
    settings::ReleaseBy,
    verdict::{Act, Verdict, Whose},
    wire::{Advertised, Deferred, Edit, LinkError, Push, Reported, Tip, value},
};

/// Reads may lag behind writes by so much before it counts as hidden.
const PATIENCE: Duration = Duration::from_secs(3);
/// A command whose answer was lost may still be at work; so long the ref is watched for what it does.
const AFTERMATH: Duration = Duration::from_secs(3);
/// Between two looks.
const PAUSE: Duration = Duration::from_millis(200);
/// So many looks may fail before the probe is given up.
const MOST_FAILURES: u32 = 3;

const REMOVED: &str = "the probe was there and is gone: somebody removed it meanwhile";
const PUT_BACK: &str = "the remote said ok to its deletion, and it is there all the same";

/// The probe.
pub struct Probe<'c, 'a> {
    context: &'c mut Context<'a>,
    deferred: &'c Deferred,
    claim: ClaimRef,
    record: Record,
    author: Person,
    /// Of whoever comes too late.
    rival: Token,
    /// Of whoever takes over.
    successor: Token,
    /// Every commit that was sent.
    sent: Vec<(ObjectId, Vec<u8>)>,
    /// What the ref holds by the last word about it.
    tip: Option<ObjectId>,
    /// It says that it is released.
    marked: bool,
    /// The readers are shown it.
    readable: bool,
    /// They are not, although it is there, or they are turned away.
    pub hidden: bool,
    /// The remote has shown it, or has moved it on: what is gone after that was removed.
    kept: bool,
    /// A creation left whose end is not known.
    may_land: bool,
    /// Nothing is begun any more once a signal came, unless it is to tidy up.
    tidying: bool,
    /// The remote moves several refs together; nothing where it did not come out.
    pub moves_together: Option<bool>,
    /// What was listed first: everything in the namespaces that were asked for.
    pub listed: Vec<Advertised>,
}

impl<'c, 'a> Probe<'c, 'a> {
    /// A probe that is nowhere yet. The tokens are fresh.
    pub fn new(
        context: &'c mut Context<'a>,
        deferred: &'c Deferred,
        claim: ClaimRef,
        record: Record,
        author: Person,
        [rival, successor]: [Token; 2],
    ) -> Self {
        Self {
            context,
            deferred,
            claim,
            record,
            author,
            rival,
            successor,
            sent: Vec::new(),
            tip: None,
            readable: false,
            hidden: false,
            kept: false,
            marked: false,
            may_land: false,
            tidying: false,
            moves_together: None,
            listed: Vec::new(),
        }
    }

    /// Tries one step. All of `namespaces` are listed along with the probe.
    pub fn try_out(&mut self, step: Step, namespaces: &[&str]) -> Finding {
        match step {
            Step::Create => self.create(),
            Step::Refuse => self.create_again(),
            Step::List => self.list(namespaces),
            Step::Read => self.read(),
            Step::Renew => self.renew(),
            Step::TakeOver => self.take_over(),
            Step::Mark => self.mark(),
            Step::Delete => self.delete(),
            Step::Gone => self.gone(),
        }
    }

    fn create(&mut self) -> Finding {
        let outcome = self.drive(Act::Take, Some(&self.record.clone()));
        self.may_land |= outcome.pending;
        match outcome.verdict {
            Verdict::Claimed(id) => {
                self.tip = Some(id);
                Finding::Good
            }
            // Turned away before anything was sent.
            Verdict::Refused(words) if self.sent.is_empty() => Finding::TurnedAway(words),
            Verdict::Held(id) => Finding::Unknown(format!("{id} is there, which nobody has sent")),
            other => ended(other),
        }
    }

    fn create_again(&mut self) -> Finding {
        let (own, record) = (self.tip, Record { token: self.rival, ..self.record.clone() });
        let outcome = self.drive(Act::Take, Some(&record));
        self.may_land |= outcome.pending;
        self.kept |= matches!(outcome.verdict, Verdict::Held(id) if Some(id) == own);
        match outcome.verdict {
            Verdict::Claimed(id) if Some(id) != own => Finding::TwoWinners,
            Verdict::Held(_) | Verdict::Refused(_) => Finding::Good,
            other => ended(other),
        }
    }

    fn list(&mut self, namespaces: &[&str]) -> Finding {
        let finding = self.listed_in(namespaces);
        self.hidden = self.tip.is_some()
            && matches!(finding, Finding::Hidden | Finding::Refused(_) | Finding::TurnedAway(_));
        self.kept |= self.readable || finding == Finding::Hidden;
        finding
    }

    fn listed_in(&mut self, namespaces: &[&str]) -> Finding {
        let prefixes: Vec<&[u8]> = namespaces.iter().map(|prefix| prefix.as_bytes()).collect();
        let begin = Instant::now();
        match self.context.link.list(&prefixes) {
            Ok(listed) => self.listed = listed,
            Err(error) => return failed(error),
        }
        let Some(tip) = self.tip else { return Finding::Answered };
        let mut shown = value(&self.listed, self.claim.full());
        let mut late = false;
        while shown.is_none() && begin.elapsed() < PATIENCE && self.may_go_on() {
            late = true;
            thread::sleep(PAUSE);
            shown = match self.shown_for_reading() {
                Ok(shown) => shown,
                Err(error) => return failed(error),
            };
        }
        match shown {
            Some(id) if id == tip => {
                self.readable = true;
                if late { Finding::Late(begin.elapsed()) } else { Finding::Good }
            }
            Some(_) => Finding::Altered,
            None => match self.shown_for_writing() {
                Ok(Some(_)) => Finding::Hidden,
                Ok(None) => self.nowhere(),
                Err(error) => failed(error),
            },
        }
    }

    /// What it means that nobody is shown it.
    fn nowhere(&self) -> Finding {
        if self.kept { Finding::Unknown(REMOVED.into()) } else { Finding::Nowhere }
    }

    fn read(&mut self) -> Finding {
        let Some(tip) = self.tip else { return Finding::NotTried };
        let sent = self.commit(tip);
        match self.context.link.read(&[tip]).pop() {
            Some(Tip::Commit(commit)) if Some(&commit) == sent.as_ref() => Finding::Good,
            Some(Tip::Commit(_) | Tip::Other(_)) => Finding::Altered,
            Some(Tip::NotRead(why)) => Finding::Unknown(why),
            None => Finding::Unknown("no answer".into()),
        }
    }

    /// With all or nothing first, which tells whether the remote can; as the verbs do it where it cannot.
    fn renew(&mut self) -> Finding {
        self.record.renewed_at = Some(self.context.now);
        let together = self.update_once(&self.record.clone(), true);
        let landed = match together {
            Reported::Done(id) => id,
            Reported::Lost { sent, .. } => {
                self.look_at_it().ok().flatten().map(|seen| seen.id).filter(|id| Some(*id) == sent)
            }
            _ => None,
        };
        if let Some(id) = landed {
            self.moves_together = Some(true);
            self.kept = true;
            self.tip = Some(id);
            return Finding::Good;
        }
        let finding = self.move_on(&self.record.clone());
        let timed_out = matches!(together, Reported::Lost { error: LinkError::TimedOut(_), .. });
        if finding == Finding::Good
            && !timed_out
            && matches!(together, Reported::Refused { .. } | Reported::Lost { .. })
        {
            self.moves_together = Some(false);
        }
        finding
    }

    fn take_over(&mut self) -> Finding {
        let over = TookOver {
            id: self.tip.map(|id| id.to_string()).unwrap_or_default(),
            who: self.record.holder.to_string(),
        };
        self.record = Record {
            token: self.successor,
            renewed_at: None,
            took_over: Some(over),
            reason: Some("to see whether the remote lets us".into()),
            ..self.record.clone()
        };
        self.move_on(&self.record.clone())
    }

    /// Says of whatever of ours is there that it is released.
    fn mark(&mut self) -> Finding {
        let tip = self.tip.and_then(|tip| self.commit(tip));
        if let Some(Reading::Claim(record)) = tip.as_deref().map(Reading::of_commit) {
            self.record = *record;
        }
        self.record.released_at = Some(self.context.now);
        let finding = self.move_on(&self.record.clone());
        self.marked = finding == Finding::Good;
        finding
    }

    fn move_on(&mut self, record: &Record) -> Finding {
        let outcome = self.drive(Act::Renew, Some(record));
        match outcome.verdict {
            Verdict::Renewed(id) | Verdict::Yours(id) => {
                self.kept = true;
                self.tip = Some(id);
                Finding::Good
            }
            Verdict::Free => self.nowhere(),
            other => ended(other),
        }
    }

    fn delete(&mut self) -> Finding {
        match self.drive(Act::Release, None).verdict {
            // Whoever else cleared it: it is gone.
            Verdict::Released | Verdict::Free => Finding::Good,
            other => ended(other),
        }
    }

    fn gone(&mut self) -> Finding {
        let begin = Instant::now();
        let mut late = false;
        loop {
            // Where it never was shown to readers, it is gone once those who write do not see it.
            let shown =
                if self.readable { self.shown_for_reading() } else { self.shown_for_writing() };
            match shown {
                Err(error) => return failed(error),
                Ok(None) if late => return Finding::Late(begin.elapsed()),
                Ok(None) => return Finding::Good,
                Ok(Some(_)) if begin.elapsed() >= PATIENCE || !self.may_go_on() => {
                    return Finding::StillShown;
                }
                Ok(Some(_)) => late = true,
            }
            thread::sleep(PAUSE);
        }
    }

    /// Removes whatever of ours is there, or tells what is left. `deletion` is what came of deleting it, if that was tried,
    /// and `gone` of looking for it then.
    pub fn tidy_up(&mut self, deletion: &Finding, gone: &Finding) -> Remains {
        self.tidying = true;
        match (deletion, self.tip) {
            (Finding::Good, Some(tip)) if *gone == Finding::StillShown => {
                return self.still_shown(tip);
            }
            (Finding::Good, _) if !self.may_land => return Remains::Nothing,
            (Finding::Refused(why), Some(tip)) => return self.stays(tip, why.clone()),
            // Nothing has left that could be there.
            (_, None) if !self.may_land => return Remains::Nothing,
            _ => {}
        }
        let (begin, mut failures, mut deleted) = (Instant::now(), 0, false);
        loop {
            match self.look_at_it() {
                Ok(Some(seen)) if self.commit(seen.id).is_none() => {
                    return self.left(seen.id, "it holds what was not sent from here".into());
                }
                Ok(Some(seen)) if deleted && begin.elapsed() >= AFTERMATH => {
                    return self.stays(seen.id, PUT_BACK.into());
                }
                Ok(Some(seen)) => {
                    self.tip = Some(seen.id);
                    let outcome = self.drive(Act::Release, None);
                    match outcome.verdict {
                        Verdict::Released | Verdict::Free if !self.may_land => {
                            return Remains::Nothing;
                        }
                        Verdict::Released | Verdict::Free => deleted = true,
                        Verdict::Refused(why) => return self.stays(seen.id, why),
                        Verdict::Unknown(why) => return self.unanswered(&outcome.looked, why),
                        other => return self.unsure(format!("it is {}", other.word())),
                    }
                }
                Ok(None) if !self.may_land => return Remains::Nothing,
                Ok(None) if begin.elapsed() >= AFTERMATH => {
                    return self.unsure(
                        "an answer was lost, and the remote may still do what it was asked to"
                            .into(),
                    );
                }
                Ok(None) => {}
                Err(error) => {
                    failures += 1;
                    let timed_out = matches!(error, LinkError::TimedOut(_));
                    if failures == MOST_FAILURES || timed_out {
                        return self.unsure(error.to_string());
                    }
                }
            }
            thread::sleep(PAUSE);
        }
    }

    /// The remote said ok to the deletion of `tip`, and shows it all the same.
    fn still_shown(&mut self, tip: ObjectId) -> Remains {
        match self.shown_for_writing() {
            Ok(Some(id)) if id == tip => self.stays(tip, PUT_BACK.into()),
            Ok(Some(id)) => self.left(id, "it holds what was not sent from here".into()),
            Ok(None) => self.unsure(
                "those who write are not shown it any more, and those who read still are".into(),
            ),
            Err(error) => self.unsure(error.to_string()),
        }
    }

    /// No answer came to a deletion. If a look showed that the ref was there after that, it is looked at for a while: the
    /// remote may be slow to delete it, and if it does not, then it stays.
    fn unanswered(&mut self, looked: &Looked, why: String) -> Remains {
        let Some(id) = looked.seen().map(|seen| seen.id) else { return self.unsure(why) };
        let begin = Instant::now();
        loop {
            thread::sleep(PAUSE);
            match self.look_at_it() {
                Ok(Some(seen)) if seen.id != id => return self.unsure(why),
                Ok(Some(_)) if begin.elapsed() >= AFTERMATH => return self.stays(id, why),
                Ok(Some(_)) => {}
                Ok(None) if self.may_land => return self.unsure(why),
                Ok(None) => return Remains::Nothing,
                Err(error) => return self.unsure(error.to_string()),
            }
        }
    }

    /// `id` cannot be deleted. Where claims are released by a mark, it gets one.
    fn stays(&mut self, id: ObjectId, why: String) -> Remains {
        if self.context.stage.settings.release == ReleaseBy::Mark && !self.marked {
            self.tip = Some(id);
            let _ = self.mark();
        }
        self.left(self.tip.unwrap_or(id), why)
    }

    fn left(&self, id: ObjectId, why: String) -> Remains {
        let clear = if self.marked { Clear::Needless } else { self.once_shown(self.clearing(id)) };
        Remains::Left { why, clear }
    }

    fn unsure(&self, why: String) -> Remains {
        let id = self.tip.or(self.sent.last().map(|(id, _)| *id));
        let clear = self.once_shown(match id {
            Some(id) => self.clearing(id),
            None => self.context.command(&format!("show {}", self.claim.short())),
        });
        Remains::Unsure { why, clear }
    }

    /// The verbs find a claim of others where those who read are shown it.
    fn once_shown(&self, command: String) -> Clear {
        if self.hidden { Clear::OnceShown(command) } else { Clear::By(command) }
    }

    fn clearing(&self, id: ObjectId) -> String {
        self.context.clear(&self.claim, id)
    }

    /// One swap of the ref from what it holds, carried to a verdict.
    fn drive(&mut self, act: Act, record: Option<&Record>) -> Outcome {
        let expected = self.tip.filter(|_| act != Act::Take);
        let base = expected.and_then(|id| self.commit(id));
        let draft = record.map(|record| self.draft(record, expected));
        swap::drive(self, Swap::of(act, expected, base, draft))
    }

    fn draft(&self, record: &Record, parent: Option<ObjectId>) -> Draft {
        let (author, at) = (self.author.clone(), self.context.now);
        Draft { message: record.message(), author, at, parent }
    }

    /// One update from what the ref holds, whatever comes of it.
    fn update_once(&mut self, record: &Record, atomic: bool) -> Reported {
        let draft = self.draft(record, self.tip);
        let base = self.tip.and_then(|id| self.commit(id));
        let refname = self.refname(0);
        let edit = Edit {
            refname: refname.as_bstr(),
            expected: self.tip,
            new: Some(&draft),
            base: base.as_deref(),
            others: &[],
            beside: None,
        };
        let reported = self.update(&[0], &Push { edits: &[edit], atomic }).pop();
        reported.unwrap_or_else(|| Reported::Unsent(LinkError::Nonsense("no answer".into())))
    }

    fn shown_for_reading(&mut self) -> Result<Option<ObjectId>, LinkError> {
        let listed = self.context.link.list(&[self.claim.full()])?;
        Ok(value(&listed, self.claim.full()))
    }

    fn shown_for_writing(&mut self) -> Result<Option<ObjectId>, LinkError> {
        let shown = self.context.link.shown_for_writing(&[self.claim.full()])?;
        Ok(value(&shown, self.claim.full()))
    }

    /// As the readers are shown it; where they are shown nothing, as those who write are.
    fn look_at_it(&mut self) -> Result<Option<Seen>, LinkError> {
        if !self.may_go_on() {
            return Err(interrupted());
        }
        let found = match self.shown_for_reading() {
            Ok(Some(id)) => Some(id),
            Ok(None) if self.sent.is_empty() => None,
            Ok(None) => self.shown_for_writing()?,
            // Where nobody may read, those who write are still shown it.
            Err(error) => match self.shown_for_writing() {
                Ok(found) => found,
                Err(_) => return Err(error),
            },
        };
        let seen = |id| Seen {
            id,
            record: Shown::Unasked,
            commit: self.commit(id),
            symref: None,
            request: None,
        };
        Ok(found.map(seen))
    }

    fn commit(&self, id: ObjectId) -> Option<Vec<u8>> {
        self.sent.iter().find_map(|(other, data)| (*other == id).then(|| data.clone()))
    }

    fn may_go_on(&self) -> bool {
        self.tidying || self.deferred.signal().is_none()
    }
}

/// The probe's ref is the only one, with the number 0.
impl Places for Probe<'_, '_> {
    fn refname(&self, _: usize) -> BString {
        self.claim.full().to_owned()
    }

    fn update(&mut self, _: &[usize], push: &Push<'_>) -> Vec<Reported> {
        if !self.may_go_on() {
            return vec![Reported::Unsent(interrupted())];
        }
        let mut all = Vec::new();
        for (edit, updated) in push.edits.iter().zip(self.context.link.update(push)) {
            let reported = updated.reported;
            if let (Some(id), Some(draft)) = (reported.sent(), edit.new)
                && self.commit(id).is_none()
            {
                self.sent.push((id, draft.encode(id.kind()).data));
            }
            all.push(reported);
        }
        all
    }

    fn look(&mut self, _: &[usize]) -> Result<Vec<Option<Seen>>, LinkError> {
        Ok(vec![self.look_at_it()?])
    }

    fn whose(&self, _: usize, seen: &Seen) -> Whose {
        if self.commit(seen.id).is_some() { Whose::Ours } else { Whose::Others }
    }

    /// Nobody is asked about other refs for a name that nobody else uses.
    fn look_elsewhere(&mut self, _: &ClaimRef, _: ObjectId) -> Option<Seen> {
        None
    }

    fn pause(&mut self, pause: Duration) {
        if self.may_go_on() {
            thread::sleep(pause);
        }
    }

    fn near(&self) -> bool {
        false
    }
}

fn interrupted() -> LinkError {
    LinkError::Local("interrupted".into())
}

/// A failure to be let in is a refusal; any other tells nothing.
fn failed(error: LinkError) -> Finding {
    ended(Verdict::of_failure(error))
}

/// A verdict that is not the one hoped for.
fn ended(verdict: Verdict) -> Finding {
    match verdict {
        Verdict::Refused(words) => Finding::Refused(words),
        Verdict::Unknown(why) => Finding::Unknown(why),
        Verdict::Held(id) | Verdict::Lost(id) | Verdict::Moved(id) => {
            Finding::Unknown(format!("{id} is there, which nobody has sent"))
        }
        other => Finding::Unknown(format!("an answer of another kind: {}", other.word())),
    }
}

/// Whether a claim has the name that probes have, so that it is nobody's work.
pub fn is_probe(short: &str) -> bool {
    short.strip_prefix(NAME).is_some_and(|rest| {
        rest.len() == 16 && rest.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    })
}

/// How the names of probes begin.
pub const NAME: &str = "doctor-";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_about_a_doctor_is_no_probe() {
        assert!(is_probe("doctor-0123456789abcdef"));
        for other in
            ["doctor-who", "doctor-0123456789ABCDEF", "doctor-0123456789abcdef0", "issue-1"]
        {
            assert!(!is_probe(other), "{other}");
        }
    }
}
