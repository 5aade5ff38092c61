//! `show`: everything that a claim's record says.

use super::context::Context;
use crate::{claim::name::ClaimRef, cli, output::ClaimReport, verdict::Verdict};

/// Shows one claim, however its ref is spelled.
pub fn run(args: &cli::Show, context: &mut Context<'_>) -> anyhow::Result<Vec<ClaimReport>> {
    let claim = ClaimRef::typed(&context.stage.settings.prefix, &args.name)?;
    let records = context.records(Some(&claim));
    let report = match context.look(&claim, &records) {
        Err(error) => context.report_seen(&claim, Verdict::of_failure(error), None, &records),
        Ok(None) => context.report_seen(&claim, Verdict::Free, None, &records),
        Ok(Some(seen)) => context.report_seen(&claim, Verdict::Listed, Some(&seen), &records),
    };
    Ok(vec![report])
}
