//! `renew`: a child commit with a new date, as a sign of life.

use gix::ObjectId;

use super::{
    context::Context,
    look,
    swap::{self, Swap},
};
use crate::{
    claim::{
        claim_ref::ClaimRef,
        commit::Draft,
        record::{Reading, Record},
    },
    cli,
    held::{HeldRecord, Records},
    identity::Identity,
    output::{ClaimReport, Shown},
    verdict::{Act, Verdict},
};

/// Renews claims of this clone, one after the other. A name that makes no sense keeps all of them from being renewed.
pub fn run(args: &cli::Renew, context: &mut Context<'_>) -> anyhow::Result<Vec<ClaimReport>> {
    let prefix = &context.stage.settings.prefix;
    let claims = args.names.iter().map(|name| ClaimRef::typed(prefix, name));
    let claims = claims.collect::<Result<Vec<_>, _>>()?;
    Ok(claims.iter().map(|claim| one(claim, context)).collect())
}

fn one(claim: &ClaimRef, context: &mut Context<'_>) -> ClaimReport {
    let records = context.records(Some(claim));
    let by_record = on_record(&records).map(|ours| renew(claim, &records, ours, context).report);
    match by_record {
        // Where the newest record is not of the take that stands there, ask which of ours is.
        Some(report) if !(matches!(report.verdict, Verdict::Lost(_)) && report.mine) => report,
        _ => match on_remote(claim, &records, context) {
            Ok(ours) => renew(claim, &records, ours, context).report,
            Err(report) => *report,
        },
    }
}

/// The claim that is to be renewed.
struct Ours {
    proof: HeldRecord,
    tip: ObjectId,
    commit: Vec<u8>,
}

/// The claim as the newest record has it: an older one may be of a claim that is gone.
fn on_record(records: &Records) -> Option<Ours> {
    let record = records.own.first()?;
    Some(Ours {
        proof: record.clone(),
        tip: record.tip()?,
        commit: record.commit.clone()?.into_bytes(),
    })
}

/// The claim as the remote has it; or the report that it is not ours.
fn on_remote(
    claim: &ClaimRef,
    records: &Records,
    context: &mut Context<'_>,
) -> Result<Ours, Box<ClaimReport>> {
    let seen = match context.look(claim, records) {
        Ok(seen) => seen,
        Err(error) => {
            return Err(Box::new(unsure(context.report_failure(claim, error), records, context)));
        }
    };
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
        report.hints.extend(context.copied(claim, &report.verdict, records));
        Box::new(unsure(report, records, context))
    })
}

fn unsure(mut report: ClaimReport, records: &Records, context: &Context<'_>) -> ClaimReport {
    report.hints.extend(context.unsure(&report, records));
    report
}

/// How the renewal of one take ended.
pub struct Renewal {
    /// The answer.
    pub report: ClaimReport,
    /// The proof as it is now, if it changed.
    pub proof: Option<HeldRecord>,
    /// What is at the ref by which the holder is asked to stop.
    pub asked: Option<ObjectId>,
}

/// Renews the very take that `proof` is of.
pub fn this_take(claim: &ClaimRef, proof: &HeldRecord, context: &mut Context<'_>) -> Renewal {
    let records = Records { own: vec![proof.clone()], ..Records::default() };
    match on_record(&records) {
        Some(ours) => renew(claim, &records, ours, context),
        None => match on_remote(claim, &records, context) {
            Ok(ours) => renew(claim, &records, ours, context),
            Err(report) => Renewal { report: *report, proof: None, asked: None },
        },
    }
}

fn renew(claim: &ClaimRef, records: &Records, ours: Ours, context: &mut Context<'_>) -> Renewal {
    let Reading::Claim(record) = Reading::of_commit(&ours.commit) else {
        let why = "the claim's own record cannot be read, so it cannot be renewed";
        let report = context.report(claim, Verdict::Unknown(why.into()), None, records);
        return Renewal { report, proof: None, asked: None };
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
        others: Vec::new(),
    };
    // Another take of this clone has a text of its own, which this one's must not replace.
    let this_take = Records { own: vec![ours.proof.clone()], ..records.clone() };
    let mut place = context.place(claim, &this_take);
    let outcome = swap::drive(&mut place, swap);
    let asked = place.asked.pop().flatten();
    let seen = outcome.looked.seen();
    let mut report = context.report(claim, outcome.verdict, seen, records);
    let mut proof = None;
    match report.verdict {
        Verdict::Renewed(id) => {
            // Where it was another process of this clone that renewed, its commit was seen.
            let seen = seen.and_then(|seen| String::from_utf8(seen.commit.clone()?).ok());
            let tip = Some(id.to_string());
            let now = HeldRecord { tip, commit: outcome.commit.or(seen), ..ours.proof };
            context.write(claim, &now);
            proof = Some(now);
            report.mine = true;
            report.record = Shown::Read(Reading::Claim(Box::new(renewed)));
        }
        Verdict::Unknown(_) if outcome.pending => {
            let command = context.command(&format!("verify {}", claim.short()));
            report.hints.push(format!(
                "the renewal may or may not have landed; whether the claim is yours: {command}"
            ));
        }
        _ => report = unsure(report, records, context),
    }
    Renewal { report, proof, asked }
}
