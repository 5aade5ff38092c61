//! `take --over ID`: make a claim of somebody else ours, if it is exactly the commit that the user names.
//!
//! The new claim is a child of the old tip, so a renewal by a living holder, which moves the tip, makes the swap
//! fail: the comparison itself is the check for life.

use super::{
    attempt::{Attempt, Replaced},
    context::Context,
    look::Seen,
    take::Wanted,
};
use crate::{
    claim::{
        abbreviated::Abbreviated,
        claim_ref::ClaimRef,
        record::{Record, TookOver},
    },
    held::Records,
    identity::{self, Identity},
    output::{ClaimReport, Shown},
    verdict::{Act, Verdict},
};

/// Whoever bears on somebody else's claim has to say why.
#[derive(Debug, thiserror::Error)]
#[error("--reason says nothing: say why, {0}")]
pub struct NoReason(&'static str);

impl NoReason {
    /// Whether `reason` says anything, for whom it is.
    ///
    /// # Errors
    /// Where it holds neither a letter nor a digit, as the one that a report's command leaves to be filled in.
    pub fn unless_said(reason: &str, whom: &'static str) -> Result<(), Self> {
        if reason.contains(char::is_alphanumeric) { Ok(()) } else { Err(Self(whom)) }
    }
}

/// Takes `claim` over from whoever holds it as `id`.
pub fn run(
    wanted: &Wanted<'_>,
    claim: &ClaimRef,
    id: &str,
    reason: &str,
    context: &mut Context<'_>,
) -> anyhow::Result<ClaimReport> {
    let named = Abbreviated::parse(id)?;
    NoReason::unless_said(reason, "for the one whose claim it was")?;
    context.held()?;
    let records = context.records(Some(claim));
    let seen = match context.look(claim, &records) {
        Ok(Some(seen)) if seen.released().is_none() => seen,
        Ok(seen) => return Ok(gone(claim, seen.as_ref(), &records, context)),
        Err(error) => return Ok(context.report_failure(claim, error)),
    };
    if !named.is(seen.id) {
        return Ok(moved(claim, &named, &seen, &records, context));
    }
    if let Some(verdict) = impossible(&seen) {
        return Ok(context.report(claim, verdict, Some(&seen), &records));
    }
    let identity = Identity::gather(&context.stage.checkout, context.stage.settings.who.as_deref());
    let record = Record {
        took_over: Some(TookOver::of(seen.id, seen.record.reading())),
        reason: Some(reason.to_owned()),
        ..wanted.record(context, &identity, identity::fresh_token()?)
    }
    .normalised();
    let attempt = Attempt::begin(context, claim, &records, record, &identity)?;
    let replaced = Replaced { tip: Some(seen.id), commit: seen.commit.clone() };
    let outcome = attempt.send(context, Act::Over, replaced);
    let (now, pending) = (outcome.looked.seen().cloned(), outcome.pending);
    let mut report = attempt.settle(context, outcome).report;
    match (&report.verdict, now) {
        (Verdict::Claimed(_), _) => report.displaced = Some(seen.record),
        (Verdict::Moved(id), _) if pending => {
            let id = id.to_hex_with_len(12);
            report.hints.push(format!(
                "its id is {id} now; the answer was lost, so whether it was taken over in between cannot be told: it is not yours"
            ));
        }
        (Verdict::Moved(_), Some(now)) => report = moved(claim, &named, &now, &records, context),
        (Verdict::Free, now) => report = gone(claim, now.as_ref(), &records, context),
        (Verdict::Unknown(_), _) if pending => {
            let resume = context.command(&format!("take {} --resume", claim.short()));
            report
                .hints
                .push(format!("the takeover may or may not have landed; this finds out: {resume}"));
        }
        _ => report.hints.push("nothing was taken over".into()),
    }
    Ok(report)
}

/// What no child commit can be put on.
fn impossible(seen: &Seen) -> Option<Verdict> {
    match (&seen.symref, &seen.record, &seen.commit) {
        (Some(target), ..) => Some(Verdict::Refused(format!(
            "it is a symbolic ref to {target}, which a takeover would move"
        ))),
        (None, Shown::NotRead(why), _) => Some(Verdict::Unknown(format!(
            "the claim's commit could not be read, so nothing was taken over: {why}"
        ))),
        (None, _, None) => Some(Verdict::Refused(
            "it points at no commit, so it cannot be taken over, only cleared".into(),
        )),
        (None, _, Some(_)) => None,
    }
}

/// There is nothing to take over any more.
fn gone(
    claim: &ClaimRef,
    seen: Option<&Seen>,
    records: &Records,
    context: &mut Context<'_>,
) -> ClaimReport {
    let mut report = context.report(claim, Verdict::Free, seen, records);
    if let Some(elsewhere) = context.elsewhere(claim) {
        report.hints.push(format!("nothing was taken over: {elsewhere}"));
        return report;
    }
    let take = context.command(&format!("take {}", claim.short()));
    report.hints.push(format!(
        "it is gone: released or cleared since; nothing was taken over. To take it like anybody: {take}"
    ));
    report
}

fn moved(
    claim: &ClaimRef,
    named: &Abbreviated,
    seen: &Seen,
    records: &Records,
    context: &Context<'_>,
) -> ClaimReport {
    let mut report = context.report(claim, Verdict::Moved(seen.id), Some(seen), records);
    let id = seen.id.to_hex_with_len(12);
    report.hints.push(format!("its id is {id}, not {named}, so nothing was taken over"));
    report
}
