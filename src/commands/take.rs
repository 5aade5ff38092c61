//! `take`: create the ref, if nobody has.

use gix::ObjectId;

use super::{
    context::Context,
    look::{self, Seen},
    swap::{self, Outcome, Swap},
};
use crate::{
    claim::{
        claim_ref::ClaimRef,
        commit::Draft,
        name::ClaimName,
        record::{Reading, Record},
        token::Token,
    },
    cli,
    held::{self, HeldRecord, Records},
    identity::{self, Identity},
    output::{ClaimReport, Shown},
    verdict::{Act, Verdict},
};

/// Takes one claim.
pub fn run(args: &cli::Take, context: &mut Context<'_>) -> anyhow::Result<Vec<ClaimReport>> {
    let stage = context.stage;
    let claim = ClaimRef::new(&stage.settings.prefix, &ClaimName::parse(&args.name)?);
    let records = context.records(Some(&claim));
    if args.resume
        && let Some(report) = resume(&claim, &records, context)
    {
        return Ok(vec![report]);
    }
    let identity = Identity::gather(&stage.checkout, stage.settings.who.as_deref());
    let record = record(args, context, &claim, &identity, identity::fresh_token()?);
    if args.note.as_ref().is_some_and(|note| !note.ends_with(CUT))
        && record.note.as_ref().is_some_and(|note| note.ends_with(CUT))
    {
        stage.ui().warn("the note is too long, and was cut");
    }
    let pending = pending(context, &claim, record.token)?;
    // Before anything leaves: from here on a claim that lands can be recognised as ours.
    context.held()?.write(&pending, &claim).map_err(NotRecorded)?;
    let draft = |parent: Option<ObjectId>| Draft {
        message: record.message(),
        author: identity.author.clone(),
        at: record.claimed_at,
        parent,
    };
    let swap = Swap { act: Act::Take, expected: None, base: None, draft: Some(&draft) };
    let outcome = swap::drive(&mut context.place(&claim, &records), swap);
    Ok(vec![settle(context, &claim, &records, record, pending, outcome)])
}

/// How a note ends that was cut.
const CUT: char = '…';

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
        released_at: None,
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

fn pending(context: &Context<'_>, claim: &ClaimRef, token: Token) -> anyhow::Result<HeldRecord> {
    Ok(HeldRecord {
        version: held::VERSION,
        refname: claim.full().to_string(),
        token,
        tip: None,
        commit: None,
        taken: context.now,
        remote: context.stage.to.shown.clone(),
        process: std::process::id(),
        clone: context.held()?.home().clone(),
    })
}

/// Says yes if the remote holds a claim that is provably ours; `None` goes on to take it.
fn resume(claim: &ClaimRef, records: &Records, context: &mut Context<'_>) -> Option<ClaimReport> {
    if records.own.is_empty() && records.damage.is_none() {
        return None;
    }
    let seen = match context.look(claim, records) {
        Ok(seen) => seen?,
        Err(error) => return Some(context.report_failure(claim, error)),
    };
    if let unknown @ Verdict::Unknown(_) = look::verdict(Some(&seen), records) {
        return Some(context.report(claim, unknown, Some(&seen), records));
    }
    context.keep(claim, seen.proof(records)?, &seen);
    Some(context.report(claim, Verdict::Claimed(seen.id), Some(&seen), records))
}

/// Makes the clone's record say what became of the take, and reports it.
fn settle(
    context: &Context<'_>,
    claim: &ClaimRef,
    records: &Records,
    record: Record,
    pending: HeldRecord,
    outcome: Outcome,
) -> ClaimReport {
    let mut report = context.report(claim, outcome.verdict, outcome.looked.seen(), records);
    if let Verdict::Claimed(id) = report.verdict {
        let tip = Some(id.to_string());
        context.write(claim, &HeldRecord { tip, commit: outcome.commit, ..pending });
        return ClaimReport {
            id: Some(id),
            mine: true,
            record: Shown::Read(Reading::Claim(Box::new(record))),
            ..report
        };
    }
    if !outcome.pending {
        context.forget(claim, [&pending]);
    }
    report.hints =
        hints(context, claim, records, &report.verdict, outcome.looked.seen(), outcome.pending);
    report
}

fn hints(
    context: &Context<'_>,
    claim: &ClaimRef,
    records: &Records,
    verdict: &Verdict,
    seen: Option<&Seen>,
    pending: bool,
) -> Vec<String> {
    let name = claim.short();
    let resume = || context.command(&format!("take {name} --resume"));
    match verdict {
        Verdict::Unknown(_) if pending => {
            vec![format!("the claim may or may not have landed; this finds out: {}", resume())]
        }
        Verdict::Unknown(_) if !records.own.is_empty() => {
            vec![format!(
                "nothing was claimed; this clone has a record of an earlier take: {}",
                resume()
            )]
        }
        Verdict::Unknown(_) => vec!["nothing was claimed".into()],
        Verdict::Refused(_) => {
            vec![
                "nothing was claimed; what a remote must allow: git claim man, under REMOTES"
                    .into(),
            ]
        }
        Verdict::Held(_) if seen.is_some_and(|seen| seen.proof(records).is_some()) => {
            vec![format!("this clone holds it already; to go on with it: {}", resume())]
        }
        Verdict::Held(_) => {
            let show = context.command(&format!("show {name}"));
            let come_back = format!("come back when it is released; how it stands: {show}");
            std::iter::once(come_back).chain(context.copied(claim, verdict, records)).collect()
        }
        _ => Vec::new(),
    }
}
