//! The claim while the command runs: its renewals and its release, for this very take and no other.

use chrono::Utc;
use gix::ObjectId;

use crate::{
    claim::{claim_ref::ClaimRef, record::Record},
    commands::{context::Context, release, renew},
    held::{HeldRecord, Records},
    output::{ClaimReport, Shown},
    verdict::Verdict,
    wire::LinkError,
};

/// A claim of ours that is being kept.
pub struct Keeper<'c, 'a> {
    claim: ClaimRef,
    /// Kept here too: whoever cleans the clone up while the command runs does not take our proof away.
    proof: HeldRecord,
    context: &'c mut Context<'a>,
}

/// What a renewal came to.
pub enum Kept {
    /// It is ours. Says what is at the ref by which we are asked to stop.
    Ours(Option<ObjectId>),
    /// It could not be told, or not be delivered: to be tried again.
    Unsure(Box<ClaimReport>),
    /// It is somebody else's, or nobody's.
    Lost(Box<ClaimReport>),
}

impl<'c, 'a> Keeper<'c, 'a> {
    /// Keeps the claim that `proof` proves ours.
    pub fn new(claim: ClaimRef, proof: HeldRecord, context: &'c mut Context<'a>) -> Self {
        Self { claim, proof, context }
    }

    /// Says on the remote that the work goes on.
    pub fn renew(&mut self) -> Kept {
        self.context.now = Utc::now();
        let renewal = renew::this_take(&self.claim, &self.proof, self.context);
        if let Some(proof) = renewal.proof {
            self.proof = proof;
        }
        let report = Box::new(renewal.report);
        match report.verdict {
            Verdict::Renewed(_) | Verdict::Yours(_) => Kept::Ours(renewal.asked),
            Verdict::Lost(_) | Verdict::Free | Verdict::Moved(_) | Verdict::Held(_) => {
                Kept::Lost(report)
            }
            Verdict::Refused(_)
            | Verdict::Unknown(_)
            | Verdict::Claimed(_)
            | Verdict::Asked(_)
            | Verdict::Released
            | Verdict::Listed
            | Verdict::Shown(_) => Kept::Unsure(report),
        }
    }

    /// Who asks us to stop, and why, if what is there is about this very take.
    ///
    /// # Errors
    /// Where that could not be read.
    pub fn asked(&mut self) -> Result<Option<Record>, LinkError> {
        let Some(request) = self.context.look_at_ask(&self.claim)? else { return Ok(None) };
        if let Shown::NotRead(why) = &request.record {
            return Err(LinkError::Unreachable(why.clone()));
        }
        Ok(request.of(Some(self.proof.token), request.id).cloned())
    }

    /// Gives it back, if it is still ours.
    pub fn release(&mut self) -> ClaimReport {
        self.context.now = Utc::now();
        let records = Records { own: vec![self.proof.clone()], ..Records::default() };
        let mut report = release::one(&self.claim, records, self.context);
        if let (Verdict::Refused(_) | Verdict::Unknown(_), Some(id)) =
            (&report.verdict, report.id.or(self.proof.tip()))
        {
            // From any clone: this one may be gone by the time that somebody reads it.
            let command = self.context.clear(&self.claim, id);
            report.hints.push(format!("to release it: {command}"));
        }
        report
    }
}
