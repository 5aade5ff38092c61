//! `renew`: a child commit with a new date, as a sign of life.

use gix::ObjectId;

use super::{
    context::Context,
    look::{self, Seen},
    names::{self, ListError},
    swap::{self, Bond, Outcome, Swap},
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

/// Renews claims of this clone, in one push. A name that makes no sense keeps all of them from being renewed.
pub fn run(args: &cli::Renew, context: &mut Context<'_>) -> Result<Vec<ClaimReport>, ListError> {
    let prefix = &context.stage.settings.prefix;
    let claims = names::typed(&args.names, |name| ClaimRef::typed(prefix, name))?;
    let records = context.records_of(&claims);
    let mut reports: Vec<Option<ClaimReport>> = vec![None; claims.len()];
    let known = records.iter().enumerate().filter_map(|(at, records)| {
        let ours = on_record(records)?;
        Some((at, claims[at].clone(), records.clone(), ours))
    });
    let known: Vec<(usize, ClaimRef, Records, Ours)> = known.collect();
    renew_at(known, &mut reports, context);
    // Where the newest record is not of the take that stands there, ask which of ours is.
    let doubtful = |report: &ClaimReport| matches!(report.verdict, Verdict::Lost(_)) && report.mine;
    let open = |at: &usize| reports[*at].as_ref().is_none_or(doubtful);
    let open: Vec<usize> = (0..claims.len()).filter(open).collect();
    let asked: Vec<(&ClaimRef, &Records)> =
        open.iter().map(|at| (&claims[*at], &records[*at])).collect();
    let mut found = Vec::new();
    for (at, ours) in open.iter().zip(on_remote(&asked, context)) {
        match ours {
            Ok(ours) => found.push((*at, claims[*at].clone(), records[*at].clone(), ours)),
            Err(report) => reports[*at] = Some(*report),
        }
    }
    renew_at(found, &mut reports, context);
    Ok(reports.into_iter().flatten().collect())
}

fn renew_at(
    these: Vec<(usize, ClaimRef, Records, Ours)>,
    reports: &mut [Option<ClaimReport>],
    context: &mut Context<'_>,
) {
    let places: Vec<usize> = these.iter().map(|(at, ..)| *at).collect();
    let these = these.into_iter().map(|(_, claim, records, ours)| (claim, records, ours));
    for (at, renewal) in places.into_iter().zip(renew(these.collect(), context)) {
        reports[at] = Some(renewal.report);
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

/// Each claim as the remote has it; or the report that it is not ours. Nothing is asked about none.
fn on_remote(
    claims: &[(&ClaimRef, &Records)],
    context: &mut Context<'_>,
) -> Vec<Result<Ours, Box<ClaimReport>>> {
    if claims.is_empty() {
        return Vec::new();
    }
    let seen = match context.look_each(claims) {
        Ok(seen) => seen,
        Err(error) => {
            let failed = |(claim, records): &(&ClaimRef, &Records)| {
                let report = context.report_failure(claim, error.clone());
                Err(Box::new(unsure(report, records, context)))
            };
            return claims.iter().map(failed).collect();
        }
    };
    let ours = |((claim, records), seen): (&(&ClaimRef, &Records), Option<Seen>)| {
        let ours = seen.as_ref().and_then(|seen| {
            Some(Ours {
                proof: seen.proof(records)?.clone(),
                tip: seen.id,
                commit: seen.commit.clone()?,
            })
        });
        ours.ok_or_else(|| {
            let verdict = look::verdict(seen.as_ref(), records);
            let mut report = context.report(claim, verdict, seen.as_ref(), records);
            report.hints.extend(context.copied(claim, &report.verdict, records));
            Box::new(unsure(report, records, context))
        })
    };
    claims.iter().zip(seen).map(ours).collect()
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
    let ours = match on_record(&records) {
        Some(ours) => Some(Ok(ours)),
        None => on_remote(&[(claim, &records)], context).pop(),
    };
    let report = match ours {
        Some(Ok(ours)) => match renew(vec![(claim.clone(), records, ours)], context).pop() {
            Some(renewal) => return renewal,
            None => None,
        },
        Some(Err(report)) => Some(*report),
        None => None,
    };
    let report = report.unwrap_or_else(|| context.report_nothing(claim));
    Renewal { report, proof: None, asked: None }
}

/// A renewal on its way.
struct Going {
    claim: ClaimRef,
    records: Records,
    ours: Ours,
    renewed: Option<Box<Record>>,
}

/// Renews each of the claims, in one push.
fn renew(claims: Vec<(ClaimRef, Records, Ours)>, context: &mut Context<'_>) -> Vec<Renewal> {
    let now = context.now;
    let all: Vec<Going> = claims
        .into_iter()
        .map(|(claim, records, ours)| {
            let renewed = match Reading::of_commit(&ours.commit) {
                Reading::Claim(record) => {
                    Some(Box::new(Record { renewed_at: Some(now), ..*record }))
                }
                Reading::ByHand(_) | Reading::Unreadable(_) => None,
            };
            Going { claim, records, ours, renewed }
        })
        .collect();
    let sent: Vec<&Going> = all.iter().filter(|one| one.renewed.is_some()).collect();
    let author = Identity::gather(&context.stage.checkout, None).author;
    let swaps = sent.iter().map(|one| {
        let tip = Some(one.ours.tip);
        let draft = one.renewed.as_ref().map(|record| Draft {
            message: record.message(),
            author: author.clone(),
            at: now,
            parent: tip,
        });
        Swap::of(Act::Renew, tip, Some(one.ours.commit.clone()), draft)
    });
    // Another take of this clone has a text of its own, which this one's must not replace.
    let this_take =
        |one: &&Going| Records { own: vec![one.ours.proof.clone()], ..one.records.clone() };
    let (claims, proofs): (Vec<ClaimRef>, Vec<Records>) =
        sent.iter().map(|one| (one.claim.clone(), this_take(one))).unzip();
    let mut places = context.refs(&claims, &proofs);
    let outcomes = swap::drive_all(&mut places, swaps.collect(), Bond::Each);
    let asked = std::mem::take(&mut places.asked);
    let mut ends = outcomes.into_iter().zip(asked);
    all.into_iter()
        .map(|one| {
            let end = one.renewed.is_some().then(|| ends.next()).flatten();
            ended(one, end, context)
        })
        .collect()
}

/// Makes the clone's record say what became of a renewal, and reports it.
fn ended(one: Going, end: Option<(Outcome, Option<ObjectId>)>, context: &Context<'_>) -> Renewal {
    let Going { claim, records, ours, renewed } = one;
    let (Some((outcome, asked)), Some(renewed)) = (end, renewed) else {
        let why = "the claim's own record cannot be read, so it cannot be renewed";
        let report = context.report(&claim, Verdict::Unknown(why.into()), None, &records);
        return Renewal { report, proof: None, asked: None };
    };
    let seen = outcome.looked.seen();
    let mut report = context.report(&claim, outcome.verdict, seen, &records);
    let mut proof = None;
    match report.verdict {
        Verdict::Renewed(id) => {
            // Where it was another process of this clone that renewed, its commit was seen.
            let seen = seen.and_then(|seen| String::from_utf8(seen.commit.clone()?).ok());
            let tip = Some(id.to_string());
            let now = HeldRecord { tip, commit: outcome.commit.or(seen), ..ours.proof };
            context.write(&claim, &now);
            proof = Some(now);
            report.mine = true;
            report.record = Shown::Read(Reading::Claim(renewed));
        }
        Verdict::Unknown(_) if outcome.pending => {
            let command = context.command(&format!("verify {}", claim.short()));
            report.hints.push(format!(
                "the renewal may or may not have landed; whether the claim is yours: {command}"
            ));
        }
        _ => report = unsure(report, &records, context),
    }
    Renewal { report, proof, asked }
}
