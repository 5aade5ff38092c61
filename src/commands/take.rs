//! `take`: create the ref, if nobody has; or a child of what is there, where that says that it is released.

use super::{
    attempt::{Attempt, Replaced},
    context::Context,
    look::{self, Seen},
    over,
};
use crate::{
    claim::{claim_ref::ClaimRef, name::ClaimName, record::Record, token::Token},
    cli,
    held::Records,
    identity::{self, Identity},
    output::ClaimReport,
    process::{self, NoProcess},
    settings,
    verdict::{Act, Verdict},
};

/// Takes one claim.
pub fn run(args: &cli::Take, context: &mut Context<'_>) -> anyhow::Result<Vec<ClaimReport>> {
    let stage = context.stage;
    let name = ClaimName::parse(&args.name)?;
    let claim = ClaimRef::new(&stage.settings.prefix, &name);
    if let (Some(id), Some(reason)) = (&args.over, &args.reason) {
        return Ok(vec![over::run(args, &claim, id, reason, context)?]);
    }
    let records = context.records(Some(&claim));
    if args.resume
        && let Some(report) = resume(&claim, &records, context)
    {
        return Ok(vec![report]);
    }
    let identity = Identity::gather(&stage.checkout, stage.settings.who.as_deref());
    let record = record(args, context, &claim, &identity, identity::fresh_token()?)?;
    let attempt = Attempt::begin(context, &claim, &records, record, identity)?;
    // Whoever looks for the claim in another place must not win beside us.
    let others: Vec<ClaimRef> =
        stage.settings.prefix.others().iter().map(|prefix| ClaimRef::new(prefix, &name)).collect();
    let mut outcome = attempt.send(context, Act::Take, Replaced::default(), others);
    let (elsewhere, pending) = (outcome.elsewhere.take(), outcome.pending);
    let seen = outcome.looked.seen().cloned();
    let mut report = attempt.settle(context, outcome);
    if let Some((other, seen)) = elsewhere {
        report = held_elsewhere(&other, &seen, context);
    } else {
        report.hints.extend(hints(context, &report, &records, seen.as_ref(), pending));
    }
    Ok(vec![report])
}

/// How a note ends that was cut.
const CUT: char = '…';

/// The record that a take makes, before it is known whether it wins.
///
/// # Errors
/// Where a process is named that does not exist.
pub fn record(
    args: &cli::Take,
    context: &Context<'_>,
    claim: &ClaimRef,
    identity: &Identity,
    token: Token,
) -> Result<Record, NoProcess> {
    let head = args.branch.as_deref().and_then(|branch| context.stage.checkout.resolve(branch));
    let record = Record {
        note: args.note.clone(),
        host: Some(identity.host.clone()),
        head: head.map(|id| id.to_string()),
        branch: args.branch.clone(),
        job: identity.job.clone(),
        process: args.process.as_deref().map(process::typed).transpose()?,
        ..Record::new(claim.short().into_owned(), identity.holder.clone(), context.now, token)
    }
    .normalised();
    if args.note.as_ref().is_some_and(|note| !note.ends_with(CUT))
        && record.note.as_ref().is_some_and(|note| note.ends_with(CUT))
    {
        context.stage.ui().warn("the note is too long, and was cut");
    }
    Ok(record)
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

/// The same claim is held where others look for it.
fn held_elsewhere(other: &ClaimRef, seen: &Seen, context: &Context<'_>) -> ClaimReport {
    let records = context.records(Some(other));
    let mut report = context.report(other, Verdict::Held(seen.id), Some(seen), &records);
    report.hints.push(format!(
        "it is at {}, and {} is set to {} here: all who share the claims need the same",
        other.full(),
        settings::PREFIX,
        context.stage.settings.prefix
    ));
    report
}

fn hints(
    context: &Context<'_>,
    report: &ClaimReport,
    records: &Records,
    seen: Option<&Seen>,
    pending: bool,
) -> Vec<String> {
    let (claim, verdict) = (&report.claim, &report.verdict);
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
