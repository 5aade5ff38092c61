//! `show`: everything that a claim's record says, and how it came to that.

use std::collections::HashMap;

use super::{context::Context, look::Seen};
use crate::{
    claim::{
        chain::{self, Chain},
        claim_ref::ClaimRef,
        record::Reading,
    },
    cli,
    output::{ClaimReport, History},
    verdict::Verdict,
};

/// So many commits of a claim's history are read: enough for a person, and no burden however often it was renewed.
const MOST: usize = 100;

/// Shows one claim, however its ref is spelled.
pub fn run(args: &cli::Show, context: &mut Context<'_>) -> anyhow::Result<Vec<ClaimReport>> {
    let claim = ClaimRef::typed(&context.stage.settings.prefix, &args.name)?;
    let records = context.records(Some(&claim));
    let report = match context.look(&claim, &records) {
        Err(error) => context.report_failure(&claim, error),
        Ok(None) => {
            let mut report = context.report(&claim, Verdict::Free, None, &records);
            report.hints.extend(context.elsewhere(&claim));
            report
        }
        Ok(Some(seen)) => {
            let verdict = match seen.released() {
                None => Verdict::Shown(seen.id),
                Some(_) => Verdict::Free,
            };
            let mut report = context.report(&claim, verdict, Some(&seen), &records);
            if seen.released().is_some() {
                report.hints.push(
                    "nobody holds it: its ref stays as the mark of a release, see its history"
                        .into(),
                );
            }
            report.history = history(&seen, context);
            report
        }
    };
    Ok(vec![report])
}

/// What led to the record that was seen. A record without a parent tells it all; others cost one more exchange.
fn history(seen: &Seen, context: &mut Context<'_>) -> History {
    let (Some(Reading::Claim(_)), Some(tip)) = (seen.record.reading(), &seen.commit) else {
        return History::Unasked;
    };
    let read = match chain::first_parent(tip) {
        Some(parent) => context.link.history(seen.id, parent, MOST - 1),
        None => Ok(HashMap::new()),
    };
    let mut commits = match read {
        Ok(commits) => commits,
        Err(error) => return History::NotRead(error.to_string()),
    };
    commits.insert(seen.id, tip.clone());
    // What the clone has, the remote was asked to leave out.
    let line = chain::line(seen.id, MOST, |id| {
        commits.remove(&id).or_else(|| context.stage.checkout.find_commit(&id))
    });
    History::Read(Chain::of(&line))
}
