//! `renew`: a child commit with a new date, as a sign of life.

use gix::ObjectId;

use super::{
    context::Context,
    look,
    swap::{self, Swap},
};
use crate::{
    claim::{
        commit::Draft,
        name::ClaimRef,
        record::{Reading, Record},
    },
    cli,
    held::{HeldRecord, Records},
    identity::Identity,
    output::{ClaimReport, Shown},
    verdict::{Act, Verdict},
};

/// Renews one claim of this clone.
pub fn run(args: &cli::Renew, context: &mut Context<'_>) -> anyhow::Result<Vec<ClaimReport>> {
    let claim = ClaimRef::typed(&context.stage.settings.prefix, &args.name)?;
    let records = context.records(Some(&claim));
    let report = match find(&claim, &records, context) {
        Ok(ours) => renew(&claim, &records, ours, context),
        Err(report) => *report,
    };
    Ok(vec![report])
}

/// The claim that is to be renewed.
struct Ours {
    proof: HeldRecord,
    tip: ObjectId,
    commit: Vec<u8>,
}

/// The claim as it is on record here, else as the remote shows it; or the report that it is not ours.
fn find(
    claim: &ClaimRef,
    records: &Records,
    context: &mut Context<'_>,
) -> Result<Ours, Box<ClaimReport>> {
    let on_record = records.own.iter().find_map(|record| {
        Some(Ours {
            proof: record.clone(),
            tip: record.tip()?,
            commit: record.commit.clone()?.into_bytes(),
        })
    });
    if let Some(ours) = on_record {
        return Ok(ours);
    }
    let seen =
        context.look(claim, records).map_err(|error| context.report_failure(claim, error))?;
    let ours = seen.as_ref().and_then(|seen| {
        Some(Ours {
            proof: seen.proof(records)?.clone(),
            tip: seen.id,
            commit: seen.commit.clone()?,
        })
    });
    ours.ok_or_else(|| {
        let mut report =
            context.report(claim, look::verdict(seen.as_ref(), records), seen.as_ref(), records);
        report.hints.extend(context.copied(records));
        Box::new(report)
    })
}

fn renew(
    claim: &ClaimRef,
    records: &Records,
    ours: Ours,
    context: &mut Context<'_>,
) -> ClaimReport {
    let Reading::Claim(record) = Reading::of_commit(&ours.commit) else {
        let why = "the claim's own record cannot be read, so it cannot be renewed";
        return context.report(claim, Verdict::Unknown(why.into()), None, records);
    };
    let renewed = Record { renewed_at: Some(context.now), ..*record };
    let identity = Identity::gather(&context.stage.checkout, None);
    let now = context.now;
    let draft = |parent: Option<ObjectId>| Draft {
        message: renewed.message(),
        author: identity.author.clone(),
        at: now,
        parent,
    };
    let swap = Swap {
        act: Act::Renew,
        expected: Some(ours.tip),
        base: Some(ours.commit),
        draft: Some(&draft),
    };
    let outcome = swap::drive(&mut context.place(claim, records), swap);
    let seen = outcome.looked.seen();
    let mut report = context.report(claim, outcome.verdict, seen, records);
    match report.verdict {
        Verdict::Renewed(id) => {
            match (outcome.commit.and_then(|commit| String::from_utf8(commit).ok()), seen) {
                (Some(commit), _) => {
                    context.write(
                        claim,
                        &HeldRecord {
                            tip: Some(id.to_string()),
                            commit: Some(commit),
                            ..ours.proof
                        },
                    );
                }
                (None, Some(seen)) => context.keep(claim, &ours.proof, seen),
                (None, None) => {}
            }
            report.mine = true;
            report.record = Shown::Read(Reading::Claim(Box::new(renewed)));
        }
        Verdict::Unknown(_) if outcome.pending => {
            let command = context.command(&format!("verify {}", claim.short()));
            report.hints.push(format!(
                "the renewal may or may not have landed; whether the claim is yours: {command}"
            ));
        }
        _ => {}
    }
    report
}
