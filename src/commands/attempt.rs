//! A take on its way, by creation or over another claim: the record it claims with, and the clone's proof of it.
//!
//! The proof is written before anything leaves: from there on a claim that lands can be recognised as ours, whatever
//! ends us.

use gix::ObjectId;

use super::{
    context::Context,
    look::Seen,
    swap::{self, Bond, Outcome, Places, Swap},
    take::Taken,
};
use crate::{
    claim::{
        claim_ref::ClaimRef,
        commit::Draft,
        record::{Person, Reading, Record},
    },
    held::{self, HeldRecord, Records},
    identity::Identity,
    output::{ClaimReport, Shown},
    verdict::{Act, Verdict},
};

/// A take on its way.
pub struct Attempt<'a> {
    claim: &'a ClaimRef,
    records: &'a Records,
    record: Record,
    author: Person,
    pending: HeldRecord,
    confirm: bool,
}

/// Sends takes of claims that nobody is to have, each in place of what is `replaced`, and unless the same claim is at one
/// of its `others`.
pub fn send_all(
    attempts: &[Attempt<'_>],
    replaced: Vec<Replaced>,
    others: &[Vec<ClaimRef>],
    bond: Bond,
    places: &mut dyn Places,
) -> Vec<Outcome> {
    let each = attempts.iter().zip(replaced).zip(others);
    let swaps = each.map(|((attempt, replaced), others)| Swap {
        others: others.clone(),
        ..attempt.swap(Act::Take, replaced)
    });
    swap::drive_all(places, swaps.collect(), bond)
}

/// The clone's record cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot record the claim in this clone, so nothing was claimed: {0}")]
pub struct NotRecorded(std::io::Error);

/// What a take replaces.
#[derive(Debug, Default)]
pub struct Replaced {
    /// The tip that must be there; `None` is nothing.
    pub tip: Option<ObjectId>,
    /// The raw commit there.
    pub commit: Option<Vec<u8>>,
}

impl Replaced {
    /// What was `seen`, if it says that the claim is released: whoever knows it need not be told so by the write.
    pub fn mark(seen: Option<&Seen>) -> Self {
        let mark = seen.filter(|seen| seen.released().is_some() && seen.symref.is_none());
        mark.map_or_else(Self::default, |mark| Self {
            tip: Some(mark.id),
            commit: mark.commit.clone(),
        })
    }
}

impl<'a> Attempt<'a> {
    /// Writes down in the clone that a take with `record` is on its way.
    pub fn begin(
        context: &Context<'_>,
        claim: &'a ClaimRef,
        records: &'a Records,
        record: Record,
        identity: &Identity,
    ) -> anyhow::Result<Self> {
        let held = context.held()?;
        let pending = HeldRecord {
            version: held::VERSION,
            refname: claim.full().to_string(),
            token: record.token,
            tip: None,
            commit: None,
            unanswered: false,
            taken: context.now,
            remote: context.stage.to.shown.clone(),
            process: std::process::id(),
            clone: held.home().clone(),
        };
        held.write(&pending, claim).map_err(NotRecorded)?;
        let confirm = context.stage.settings.confirm;
        Ok(Self { claim, records, record, author: identity.author.clone(), pending, confirm })
    }

    /// Sends it alone, in place of what is `replaced`.
    pub fn send(&self, context: &mut Context<'_>, act: Act, replaced: Replaced) -> Outcome {
        swap::drive(&mut context.place(self.claim, self.records), self.swap(act, replaced))
    }

    /// The commit that claims, in place of what is `replaced`.
    fn swap(&self, act: Act, replaced: Replaced) -> Swap {
        let draft = Draft {
            message: self.record.message(),
            author: self.author.clone(),
            at: self.record.claimed_at,
            parent: replaced.tip,
        };
        let swap = Swap::of(act, replaced.tip, replaced.commit, Some(draft));
        Swap { confirm: self.confirm, ..swap }
    }

    /// It was not sent: nothing is on its way any more.
    pub fn abandon(self, context: &Context<'_>) {
        context.forget(self.claim, [&self.pending]);
    }

    /// Makes the clone's record say what became of it, and reports it.
    pub fn settle(self, context: &Context<'_>, outcome: Outcome) -> Taken {
        let seen = outcome.looked.seen();
        let report = context.report(self.claim, outcome.verdict, seen, self.records);
        if let Verdict::Claimed(id) = report.verdict {
            let tip = Some(id.to_string());
            let Outcome { commit, unanswered, .. } = outcome;
            let held = HeldRecord { tip, commit, unanswered, ..self.pending };
            context.write(self.claim, &held);
            let record = Shown::Read(Reading::Claim(Box::new(self.record)));
            let report = ClaimReport { id: Some(id), mine: true, record, ..report };
            return Taken { report, proof: Some(held) };
        }
        if outcome.pending {
            return Taken { report, proof: Some(self.pending) };
        }
        context.forget(self.claim, [&self.pending]);
        Taken { report, proof: None }
    }
}
