//! `release`: delete the ref, if it is ours, or if it is exactly what the user names.

use gix::ObjectId;

use super::{
    context::Context,
    look::{self, Seen},
    swap::{self, Looked, Swap},
};
use crate::{
    claim::claim_ref::ClaimRef,
    cli,
    held::{HeldRecord, Records},
    output::ClaimReport,
    verdict::{Act, Verdict, Whose},
};

/// Releases one claim, or all of this clone.
pub fn run(args: &cli::Release, context: &mut Context<'_>) -> anyhow::Result<Vec<ClaimReport>> {
    let prefix = &context.stage.settings.prefix;
    let Some(name) = &args.name else {
        return all(context);
    };
    let claim = ClaimRef::typed(prefix, name)?;
    Ok(vec![match &args.expect {
        Some(expect) => named(&claim, &Abbreviated::parse(expect)?, context),
        None => own(&claim, context),
    }])
}

/// Releases what is on record here, one by one.
fn all(context: &mut Context<'_>) -> anyhow::Result<Vec<ClaimReport>> {
    let records = context.records(None);
    let prefix = &context.stage.settings.prefix;
    let names = records
        .own
        .iter()
        .map(|record| record.refname.as_str())
        .chain(records.damaged.iter().map(String::as_str));
    let mut claims: Vec<ClaimRef> =
        names.filter_map(|name| ClaimRef::typed(prefix, name).ok()).collect();
    claims.sort();
    claims.dedup();
    if let (true, Some(damage)) = (claims.is_empty(), records.damage) {
        anyhow::bail!(damage);
    }
    if records.strangers {
        context.stage.ui().warn("there are records of another clone here, of which this one is a copy: they prove nothing");
    }
    let mut reports: Vec<ClaimReport> = claims.iter().map(|claim| own(claim, context)).collect();
    // A take that never landed left a record of an attempt, not a claim.
    let won = |claim: &ClaimRef| {
        records.own.iter().any(|record| record.tip.is_some() && *claim.full() == *record.refname)
    };
    reports.retain(|report| report.verdict != Verdict::Free || won(&report.claim));
    Ok(reports)
}

/// Releases the claim that this clone can prove its own.
fn own(claim: &ClaimRef, context: &mut Context<'_>) -> ClaimReport {
    let records = context.records(Some(claim));
    // With the tip on record, the write itself finds out whether it is still there; else ask first.
    let expected = match records.own.first().and_then(HeldRecord::tip) {
        Some(tip) => tip,
        None => match context.look(claim, &records) {
            Ok(Some(seen)) if seen.whose(&records) == Whose::Ours => seen.id,
            Ok(seen) => return not_ours(claim, seen.as_ref(), &records, context),
            Err(error) => return context.report_failure(claim, error),
        },
    };
    let swap = Swap { act: Act::Release, expected: Some(expected), base: None, draft: None };
    let outcome = swap::drive(&mut context.place(claim, &records), swap);
    let seen = outcome.looked.seen();
    let mut report = context.report(claim, outcome.verdict.clone(), seen, &records);
    match (&outcome.verdict, &outcome.looked) {
        (Verdict::Released, _) => {
            report.id = Some(expected);
            context.forget(claim, disproved(&records, None));
        }
        // Both the writing and the reading side say that ours is gone.
        (Verdict::Lost(_) | Verdict::Free, Looked::Absent | Looked::At(_)) => {
            context.forget(claim, disproved(&records, seen));
            report = not_ours(claim, seen, &records, context);
        }
        (Verdict::Refused(_), Looked::At(_)) => {
            report.hints.push(format!("{} is NOT released and still yours", claim.short()))
        }
        (Verdict::Unknown(_) | Verdict::Refused(_), _) => {
            let command = context.command(&format!("release {}", claim.short()));
            report.hints.push(format!(
                "whether {} is released is not known; ask again: {command}",
                claim.short()
            ));
        }
        _ => {}
    }
    report
}

/// Releases whatever the claim is, if its id is the one that the user saw.
fn named(claim: &ClaimRef, expect: &Abbreviated, context: &mut Context<'_>) -> ClaimReport {
    let records = context.records(Some(claim));
    let seen = match context.look(claim, &records) {
        Ok(Some(seen)) => seen,
        Ok(None) => return context.report(claim, Verdict::Free, None, &records),
        Err(error) => return context.report_failure(claim, error),
    };
    if let Some(target) = &seen.symref {
        let why = format!(
            "it is a symbolic ref, and deleting it would delete {target}; its server's owner can remove it"
        );
        return context.report(claim, Verdict::Refused(why), Some(&seen), &records);
    }
    if !expect.is(seen.id) {
        return moved(claim, expect, &seen, &records, context);
    }
    let swap = Swap { act: Act::Clear, expected: Some(seen.id), base: None, draft: None };
    let outcome = swap::drive(&mut context.place(claim, &records), swap);
    match (&outcome.verdict, outcome.looked.seen()) {
        (Verdict::Moved(_), Some(now)) => moved(claim, expect, now, &records, context),
        (Verdict::Released, _) => {
            context.forget(claim, disproved(&records, None));
            let mut report = context.report(claim, Verdict::Released, Some(&seen), &records);
            report.mine = false;
            report
        }
        (verdict, _) => context.report(claim, verdict.clone(), Some(&seen), &records),
    }
}

fn moved(
    claim: &ClaimRef,
    expect: &Abbreviated,
    seen: &Seen,
    records: &Records,
    context: &Context<'_>,
) -> ClaimReport {
    let mut report = context.report(claim, Verdict::Moved(seen.id), Some(seen), records);
    let id = seen.id.to_hex_with_len(12);
    report.hints.push(format!("its id is {id}, not {}, so nothing was released", expect.0));
    if report.mine {
        let command = context.command(&format!("release {}", claim.short()));
        report.hints.push(format!("this clone holds it and needs no id: {command}"));
    }
    report
}

/// The claim is another's, or there is none, or that cannot be told.
fn not_ours(
    claim: &ClaimRef,
    seen: Option<&Seen>,
    records: &Records,
    context: &Context<'_>,
) -> ClaimReport {
    let mut report = context.report(claim, look::verdict(seen, records), seen, records);
    if records.strangers {
        report.hints.extend(context.copied(claim, &report.verdict, records));
    } else {
        report.hints.extend(context.clearing(claim, &report.verdict));
    }
    report
}

/// The records that prove nothing any more, now that the ref holds what was `seen`: those of takes that were won.
/// Pending ones may be another process's, and still land.
fn disproved<'r>(
    records: &'r Records,
    seen: Option<&Seen>,
) -> impl Iterator<Item = &'r HeldRecord> {
    let alive = seen.and_then(Seen::token);
    records.own.iter().filter(move |record| record.tip.is_some() && Some(record.token) != alive)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_named_by_seven_digits_or_more() {
        let id =
            ObjectId::from_hex("abcdef0123456789abcdef0123456789abcdef01".as_bytes()).expect("hex");
        assert!(Abbreviated::parse("ABCDEF0").expect("an id").is(id));
        assert!(!Abbreviated::parse("abcdef1").expect("an id").is(id));
        for typed in ["", "abcdef", "abcdefg", "-abcdef0", &"a".repeat(65)] {
            assert!(Abbreviated::parse(typed).is_err(), "{typed}");
        }
    }
}
