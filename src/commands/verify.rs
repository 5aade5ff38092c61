//! `verify`: is it still ours?

use super::{context::Context, look};
use crate::{claim::claim_ref::ClaimRef, cli, output::ClaimReport, verdict::Verdict};

/// Asks the remote about one claim, and compares with what this clone can prove.
pub fn run(args: &cli::Verify, context: &mut Context<'_>) -> anyhow::Result<Vec<ClaimReport>> {
    let claim = ClaimRef::typed(&context.stage.settings.prefix, &args.name)?;
    let records = context.records(Some(&claim));
    let seen = match context.look(&claim, &records) {
        Ok(seen) => seen,
        Err(error) => {
            let mut report = context.report_failure(&claim, error);
            report.hints.extend(context.unsure(&report, &records));
            return Ok(vec![report]);
        }
    };
    if let Some(seen) = &seen
        && let Some(proof) = seen.proof(&records)
    {
        context.keep(&claim, proof, seen);
    }
    let mut report =
        context.report(&claim, look::verdict(seen.as_ref(), &records), seen.as_ref(), &records);
    if !report.mine {
        report.hints.extend(context.copied(&claim, &report.verdict, &records));
    }
    report.hints.extend(context.unsure(&report, &records));
    if report.verdict == Verdict::Free {
        report.hints.extend(context.elsewhere(&claim));
    }
    Ok(vec![report])
}
