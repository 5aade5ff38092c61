//! A take on its way, by creation or over another claim: the record it claims with, and the clone's proof of it.
//!
//! The proof is written before anything leaves: from there on a claim that lands can be recognised as ours, whatever
//! ends us.

use gix::ObjectId;

use super::{
    context::Context,
    swap::{self, Outcome, Swap},
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

impl<'a> Attempt<'a> {
    /// Writes down in the clone that a take with `record` is on its way.
    pub fn begin(
        context: &Context<'_>,
        claim: &'a ClaimRef,
        records: &'a Records,
        record: Record,
        identity: Identity,
    ) -> anyhow::Result<Self> {
        let held = context.held()?;
        let pending = HeldRecord {
            version: held::VERSION,
            refname: claim.full().to_string(),
            token: record.token,
            tip: None,
            commit: None,
            taken: context.now,
            remote: context.stage.to.shown.clone(),
            process: std::process::id(),
            clone: held.home().clone(),
        };
        held.write(&pending, claim).map_err(NotRecorded)?;
        Ok(Self { claim, records, record, author: identity.author, pending })
    }

    /// Sends it, unless the same claim is at one of `others`.
    pub fn send(
        &self,
        context: &mut Context<'_>,
        act: Act,
        replaced: Replaced,
        others: Vec<ClaimRef>,
    ) -> Outcome {
        let draft = |parent: Option<ObjectId>| Draft {
            message: self.record.message(),
            author: self.author.clone(),
            at: self.record.claimed_at,
            parent,
        };
        let swap = Swap {
            act,
            expected: replaced.tip,
            base: replaced.commit,
            draft: Some(&draft),
            others,
        };
        swap::drive(&mut context.place(self.claim, self.records), swap)
    }

    /// Makes the clone's record say what became of it, and reports it.
    pub fn settle(self, context: &Context<'_>, outcome: Outcome) -> Taken {
        let seen = outcome.looked.seen();
        let report = context.report(self.claim, outcome.verdict, seen, self.records);
        if let Verdict::Claimed(id) = report.verdict {
            let tip = Some(id.to_string());
            let held = HeldRecord { tip, commit: outcome.commit, ..self.pending };
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
