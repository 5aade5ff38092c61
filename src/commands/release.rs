//! `release`: delete the ref, if it is ours, or if it is exactly what the user names.

use gix::ObjectId;

use super::{
    context::{Context, Seen},
    swap::{self, Swap},
    take,
};
use crate::{
    claim::{name::ClaimRef, token::Token},
    cli,
    held::HeldRecord,
    output::ClaimReport,
    verdict::{Act, Verdict},
};

/// Releases one claim, or all of this clone.
pub fn run(args: &cli::Release, context: &mut Context<'_>) -> anyhow::Result<Vec<ClaimReport>> {
    let prefix = &context.stage.settings.prefix;
    let Some(name) = &args.name else {
        let mut claims: Vec<ClaimRef> = context
            .records(None)
            .iter()
            .filter_map(|record| ClaimRef::listed(prefix, record.refname.as_str().into()))
            .collect();
        claims.sort();
        claims.dedup();
        return claims.iter().map(|claim| own(claim, context)).collect();
    };
    let claim = ClaimRef::typed(prefix, name)?;
    let report = match &args.expect {
        Some(expect) => named(&claim, &Abbreviated::parse(expect)?, context),
        None => own(&claim, context),
    }?;
    Ok(vec![report])
}

/// Releases the claim that this clone can prove its own.
fn own(claim: &ClaimRef, context: &mut Context<'_>) -> anyhow::Result<ClaimReport> {
    let records = context.records(Some(claim));
    let mut seen = None;
    // With the tip known, the write itself finds out whether it is still there; else ask first.
    let expected = match records.iter().find_map(HeldRecord::tip) {
        Some(tip) => tip,
        None => match context.look(claim, &records) {
            Ok(Some(found)) if found.is_of(&records) => {
                let id = found.id;
                seen = Some(found);
                id
            }
            Ok(found) => return not_ours(claim, found.as_ref(), &records, context),
            Err(error) => {
                return Ok(context.report_seen(claim, Verdict::of_failure(error), None, &records));
            }
        },
    };
    let tokens: Vec<Token> = records.iter().map(|record| record.token).collect();
    let base = seen.and_then(|seen| seen.commit);
    let swap = Swap {
        act: Act::Release,
        claim,
        expected: Some(expected),
        base,
        draft: None,
        tokens: &tokens,
        records: &records,
    };
    let outcome = swap::drive(context, swap);
    let seen = outcome.seen.clone().flatten();
    let mut report = context.report_seen(claim, outcome.verdict, seen.as_ref(), &records);
    match &report.verdict {
        Verdict::Released => {
            report.id = Some(expected);
            forget(claim, &records, context)?;
        }
        // Both the writing and the reading side say that ours is gone.
        Verdict::Lost(_) | Verdict::Free if outcome.seen.is_some() => {
            forget(claim, &records, context)?;
            report = not_ours(claim, seen.as_ref(), &records, context)?;
        }
        Verdict::Refused(_) => {
            report.hints.push(format!("{} is NOT released and still yours", claim.short()))
        }
        Verdict::Unknown(_) => {
            let command = context.command(&format!("release {}", claim.short()));
            report.hints.push(format!(
                "whether {} is released is not known; ask again: {command}",
                claim.short()
            ));
        }
        _ => {}
    }
    Ok(report)
}

/// Releases whatever the claim is, if its id is the one that the user saw.
fn named(
    claim: &ClaimRef,
    expect: &Abbreviated,
    context: &mut Context<'_>,
) -> anyhow::Result<ClaimReport> {
    let records = context.records(Some(claim));
    let seen = match context.look(claim, &records) {
        Ok(Some(seen)) => seen,
        Ok(None) => return Ok(context.report_seen(claim, Verdict::Free, None, &records)),
        Err(error) => {
            return Ok(context.report_seen(claim, Verdict::of_failure(error), None, &records));
        }
    };
    if !expect.is(seen.id) {
        let mut report = context.report_seen(claim, Verdict::Lost(seen.id), Some(&seen), &records);
        report.hints.push(format!("it is not {} any more; nothing was released", expect.0));
        return Ok(report);
    }
    let base = seen.commit.clone();
    let swap = Swap {
        act: Act::Release,
        claim,
        expected: Some(seen.id),
        base,
        draft: None,
        tokens: &[],
        records: &records,
    };
    let outcome = swap::drive(context, swap);
    // What is shown is what was cleared, or else what stands there instead.
    let shown = match (&outcome.verdict, outcome.seen.flatten()) {
        (Verdict::Released | Verdict::Refused(_) | Verdict::Unknown(_), _) => Some(seen),
        (_, now) => now,
    };
    if outcome.verdict == Verdict::Released {
        forget(claim, &records, context)?;
    }
    Ok(context.report_seen(claim, outcome.verdict, shown.as_ref(), &records))
}

/// The claim is another's, or there is none.
fn not_ours(
    claim: &ClaimRef,
    seen: Option<&Seen>,
    records: &[HeldRecord],
    context: &Context<'_>,
) -> anyhow::Result<ClaimReport> {
    let verdict = seen.map_or(Verdict::Free, |seen| Verdict::Lost(seen.id));
    let mut report = context.report_seen(claim, verdict, seen, records);
    report.mine = false;
    if context.strangers(claim) {
        report.hints.push(take::COPIED.into());
    }
    if let Some(seen) = seen {
        let id = seen.id.to_hex_with_len(12);
        let command = context.command(&format!("release {} --expect {id}", claim.short()));
        report
            .hints
            .push(format!("if you are sure that its holder does not need it any more: {command}"));
    }
    Ok(report)
}

fn forget(claim: &ClaimRef, records: &[HeldRecord], context: &Context<'_>) -> anyhow::Result<()> {
    for record in records {
        context.held()?.forget(claim, record.token)?;
    }
    Ok(())
}

/// The beginning of an id, long enough to be meant.
#[derive(Debug)]
struct Abbreviated(String);

/// Not an id.
#[derive(Debug, thiserror::Error)]
#[error("'{0}' is not an id: use 7 or more hex digits, as 'git claim show' prints them")]
pub struct NotAnId(String);

impl Abbreviated {
    fn parse(typed: &str) -> Result<Self, NotAnId> {
        let fits =
            (7..=64).contains(&typed.len()) && typed.bytes().all(|byte| byte.is_ascii_hexdigit());
        if fits {
            Ok(Self(typed.to_ascii_lowercase()))
        } else {
            Err(NotAnId(typed.escape_debug().to_string()))
        }
    }

    fn is(&self, id: ObjectId) -> bool {
        id.to_string().starts_with(&self.0)
    }
}
