//! `take`: create the ref, if nobody has.

use gix::ObjectId;

use super::{
    context::{Context, Seen},
    swap::{self, Swap},
};
use crate::{
    claim::{
        commit::Draft,
        name::{ClaimName, ClaimRef},
        record::Record,
        token::Token,
    },
    cli,
    held::HeldRecord,
    identity::{self, Identity},
    output::ClaimReport,
    verdict::{Act, Verdict},
};

/// Takes one claim.
pub fn run(args: &cli::Take, context: &mut Context<'_>) -> anyhow::Result<Vec<ClaimReport>> {
    let stage = context.stage;
    let claim = ClaimRef::new(&stage.settings.prefix, &ClaimName::parse(&args.name)?);
    context.held()?.tidy(&claim, context.now, &[]);
    let records = context.records(Some(&claim));
    if args.resume
        && !records.is_empty()
        && let Some(report) = resume(&claim, &records, context)?
    {
        return Ok(vec![report]);
    }
    let identity = Identity::gather(&stage.checkout, stage.settings.who.as_deref());
    let token = identity::fresh_token()?;
    let record = record(args, context, &claim, &identity, token);
    let draft = |parent: Option<ObjectId>| Draft {
        message: record.message(),
        author: identity.author.clone(),
        at: record.claimed_at,
        parent,
    };
    // Before anything leaves: from here on a claim that lands can be recognised as ours.
    let mut held = HeldRecord {
        version: 1,
        refname: claim.full().to_string(),
        token,
        tip: None,
        commit: None,
        taken: context.now,
        remote: stage.to.shown.clone(),
        process: std::process::id(),
        clone: context.held()?.home().clone(),
    };
    context.held()?.write(&held, &claim).map_err(NotRecorded)?;
    let outcome = swap::drive(
        context,
        Swap {
            act: Act::Take,
            claim: &claim,
            expected: None,
            base: None,
            draft: Some(&draft),
            tokens: &[token],
            records: &records,
        },
    );
    let seen = outcome.seen.flatten();
    let mut report = context.report_seen(&claim, outcome.verdict, seen.as_ref(), &records);
    match &report.verdict {
        Verdict::Claimed(id) => {
            held.tip = Some(id.to_string());
            held.commit = outcome.commit.and_then(|commit| String::from_utf8(commit).ok());
            if let Err(error) = context.held()?.write(&held, &claim) {
                // The pending record proves as much, by the token.
                stage.ui().warn(&format!(
                    "the claim is yours, but its record could not be completed: {error}"
                ));
            }
            let reading = crate::claim::record::Reading::Claim(Box::new(record));
            report = ClaimReport {
                id: Some(*id),
                mine: true,
                record: crate::output::Shown::Read(reading),
                ..report
            };
        }
        Verdict::Unknown(_) if outcome.pending => {
            let command = context.command(&format!("take {} --resume", claim.short()));
            report
                .hints
                .push(format!("the claim may or may not have landed; this finds out: {command}"));
        }
        Verdict::Unknown(_) => report.hints.push("nothing was sent: the claim is not yours".into()),
        Verdict::Held(_) => {
            report.hints.extend(held_hints(&claim, seen.as_ref(), &records, context))
        }
        _ => {}
    }
    if !matches!(report.verdict, Verdict::Claimed(_)) && !outcome.pending {
        context.held()?.forget(&claim, token)?;
    }
    Ok(vec![report])
}

/// The clone's record cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot record the claim in this clone, so nothing was claimed: {0}")]
pub struct NotRecorded(std::io::Error);

fn record(
    args: &cli::Take,
    context: &Context<'_>,
    claim: &ClaimRef,
    identity: &Identity,
    token: Token,
) -> Record {
    let head = args.branch.as_deref().and_then(|branch| context.stage.checkout.resolve(branch));
    Record {
        claim: claim.short().into_owned(),
        note: args.note.clone(),
        holder: identity.holder.clone(),
        host: Some(identity.host.clone()),
        claimed_at: context.now,
        token,
        renewed_at: None,
        heartbeat: None,
        took_over: None,
        reason: None,
        head: head.map(|id| id.to_string()),
        branch: args.branch.clone(),
        job: identity.job.clone(),
        process: None,
    }
    .normalised()
}

/// Says yes if the remote holds a claim that one of `records` proves ours; `None` goes on to take it.
fn resume(
    claim: &ClaimRef,
    records: &[HeldRecord],
    context: &mut Context<'_>,
) -> anyhow::Result<Option<ClaimReport>> {
    let seen = match context.look(claim, records) {
        Ok(Some(seen)) => seen,
        Ok(None) => return Ok(None),
        Err(error) => {
            return Ok(Some(context.report_seen(claim, Verdict::of_failure(error), None, records)));
        }
    };
    let Some(proof) = seen.proof(records) else { return Ok(None) };
    keep(context, claim, proof, &seen)?;
    Ok(Some(context.report_seen(claim, Verdict::Claimed(seen.id), Some(&seen), records)))
}

/// Brings the record up to the tip that was seen.
pub fn keep(
    context: &Context<'_>,
    claim: &ClaimRef,
    proof: &HeldRecord,
    seen: &Seen,
) -> anyhow::Result<()> {
    let tip = Some(seen.id.to_string());
    if proof.tip != tip {
        let commit = seen.commit.clone().and_then(|commit| String::from_utf8(commit).ok());
        context.held()?.write(&HeldRecord { tip, commit, ..proof.clone() }, claim)?;
    }
    Ok(())
}

fn held_hints(
    claim: &ClaimRef,
    seen: Option<&Seen>,
    records: &[HeldRecord],
    context: &Context<'_>,
) -> Vec<String> {
    let name = claim.short();
    if seen.is_some_and(|seen| seen.is_of(records)) {
        let command = context.command(&format!("take {name} --resume"));
        return vec![format!("this clone holds it already; to go on with it: {command}")];
    }
    let command = context.command(&format!("show {name}"));
    let mut hints = vec![format!("come back when it is released; how it stands: {command}")];
    if context.strangers(claim) {
        hints.push(COPIED.into());
    }
    hints
}

/// What to know when records came with a copy of another clone.
pub const COPIED: &str =
    "this clone is a copy of the one that took the claim, or was moved, and owns nothing";
