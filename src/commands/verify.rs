//! `verify`: is it still ours?

use super::{context::Context, take};
use crate::{claim::name::ClaimRef, cli, output::ClaimReport, verdict::Verdict};

/// Asks the remote about one claim, and compares with what this clone can prove.
pub fn run(args: &cli::Verify, context: &mut Context<'_>) -> anyhow::Result<Vec<ClaimReport>> {
    let claim = ClaimRef::typed(&context.stage.settings.prefix, &args.name)?;
    let records = context.records(Some(&claim));
    let seen = match context.look(&claim, &records) {
        Ok(seen) => seen,
        Err(error) => {
            return Ok(vec![context.report_seen(
                &claim,
                Verdict::of_failure(error),
                None,
                &records,
            )]);
        }
    };
    let verdict = super::whose(seen.as_ref(), &records);
    if let Some(seen) = &seen
        && let Some(proof) = seen.proof(&records)
    {
        take::keep(context, &claim, proof, seen)?;
    }
    let mut report = context.report_seen(&claim, verdict, seen.as_ref(), &records);
    if context.strangers(&claim) && !report.mine {
        report.hints.push(
            "this clone was copied or moved here after the claim was taken, and owns nothing"
                .into(),
        );
    }
    Ok(vec![report])
}
