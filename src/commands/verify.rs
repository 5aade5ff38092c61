//! `verify`: are they still ours?

use super::{
    context::Context,
    look,
    looks::Look,
    names::{self, ListError},
};
use crate::{claim::claim_ref::ClaimRef, cli, output::ClaimReport, verdict::Verdict};

/// Asks the remote about the claims that are named, and compares with what this clone can prove.
pub fn run(args: &cli::Verify, context: &mut Context<'_>) -> Result<Vec<ClaimReport>, ListError> {
    let prefix = &context.stage.settings.prefix;
    let claims = names::typed(&args.names, |name| ClaimRef::typed(prefix, name))?;
    Ok(context.looks(claims).into_iter().map(|look| answer(look, context)).collect())
}

fn answer(look: Look, context: &Context<'_>) -> ClaimReport {
    let Look { claim, records, seen, elsewhere } = look;
    let seen = match seen {
        Ok(seen) => seen,
        Err(error) => {
            let mut report = context.report_failure(&claim, error);
            report.hints.extend(context.unsure(&report, &records));
            return report;
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
        report.hints.extend(elsewhere.map(|other| context.differs(&other)));
    }
    report
}
