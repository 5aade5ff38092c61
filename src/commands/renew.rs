//! `renew`: a child commit with a new date, as a sign of life.

use gix::ObjectId;

use super::{
    context::Context,
    swap::{self, Swap},
    take,
};
use crate::{
    claim::{
        commit::Draft,
        name::ClaimRef,
        record::{Reading, Record},
        token::Token,
    },
    cli,
    held::HeldRecord,
    identity::Identity,
    output::ClaimReport,
    verdict::{Act, Verdict},
};

/// Renews one claim of this clone.
pub fn run(args: &cli::Renew, context: &mut Context<'_>) -> anyhow::Result<Vec<ClaimReport>> {
    let stage = context.stage;
    let claim = ClaimRef::typed(&stage.settings.prefix, &args.name)?;
    let records = context.records(Some(&claim));
    let (proof, tip, commit) = match known(&records) {
        Some(known) => known,
        None => match context.look(&claim, &records) {
            Err(error) => {
                return Ok(vec![context.report_seen(
                    &claim,
                    Verdict::of_failure(error),
                    None,
                    &records,
                )]);
            }
            Ok(seen) => match seen
                .as_ref()
                .and_then(|seen| Some((seen.proof(&records)?, seen.id, seen.commit.clone()?)))
            {
                Some((proof, tip, commit)) => (proof.clone(), tip, commit),
                None => {
                    let verdict = super::whose(seen.as_ref(), &records);
                    return Ok(vec![context.report_seen(&claim, verdict, seen.as_ref(), &records)]);
                }
            },
        },
    };
    let Reading::Claim(record) = Reading::of_commit(&commit) else {
        let why = "the claim's own record cannot be read, so it cannot be renewed".to_owned();
        return Ok(vec![context.report_seen(&claim, Verdict::Unknown(why), None, &records)]);
    };
    let renewed = Record { renewed_at: Some(context.now), ..*record };
    let identity = Identity::gather(&stage.checkout, None);
    let now = context.now;
    let draft = |parent: Option<ObjectId>| Draft {
        message: renewed.message(),
        author: identity.author.clone(),
        at: now,
        parent,
    };
    let tokens: Vec<Token> = records.iter().map(|record| record.token).collect();
    let outcome = swap::drive(
        context,
        Swap {
            act: Act::Renew,
            claim: &claim,
            expected: Some(tip),
            base: Some(commit),
            draft: Some(&draft),
            tokens: &tokens,
            records: &records,
        },
    );
    let seen = outcome.seen.flatten();
    let mut report = context.report_seen(&claim, outcome.verdict, seen.as_ref(), &records);
    if let Verdict::Renewed(id) = report.verdict {
        match (outcome.commit.and_then(|commit| String::from_utf8(commit).ok()), &seen) {
            (Some(commit), _) => {
                let record =
                    HeldRecord { tip: Some(id.to_string()), commit: Some(commit), ..proof };
                context.held()?.write(&record, &claim)?;
            }
            (None, Some(seen)) => take::keep(context, &claim, &proof, seen)?,
            (None, None) => {}
        }
        report.id = Some(id);
        report.mine = true;
        report.record = crate::output::Shown::Read(Reading::Claim(Box::new(renewed)));
    }
    Ok(vec![report])
}

/// The newest claim of ours whose tip and commit are on record.
fn known(records: &[HeldRecord]) -> Option<(HeldRecord, ObjectId, Vec<u8>)> {
    records.iter().find_map(|record| {
        Some((record.clone(), record.tip()?, record.commit.clone()?.into_bytes()))
    })
}
