//! `show`: everything that a claim's record says.

use super::context::Context;
use crate::{claim::claim_ref::ClaimRef, cli, output::ClaimReport, verdict::Verdict};

/// Shows one claim, however its ref is spelled.
pub fn run(args: &cli::Show, context: &mut Context<'_>) -> anyhow::Result<Vec<ClaimReport>> {
    let claim = ClaimRef::typed(&context.stage.settings.prefix, &args.name)?;
    let records = context.records(Some(&claim));
    let report = match context.look(&claim, &records) {
        Err(error) => context.report_failure(&claim, error),
        Ok(Some(seen)) if seen.released().is_none() => {
            context.report(&claim, Verdict::Shown(seen.id), Some(&seen), &records)
        }
        Ok(gone) => {
            let mut report = context.report(&claim, Verdict::Free, gone.as_ref(), &records);
            if gone.is_some() {
                report.hints.push("it was released; its ref stays as a mark that says so".into());
            }
            report
        }
    };
    Ok(vec![report])
}
