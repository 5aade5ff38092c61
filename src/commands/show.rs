//! `show`: everything that the records of claims say, and how it came to that.

use std::collections::HashMap;

use gix::ObjectId;

use super::{
    context::Context,
    look::Seen,
    looks::Look,
    names::{self, ListError},
};
use crate::{
    claim::{
        chain::{self, Chain},
        claim_ref::ClaimRef,
        record::Reading,
    },
    cli,
    output::{ClaimReport, History},
    verdict::Verdict,
    wire::LinkError,
};

/// So many commits of a claim's history are read: enough for a person, and no burden however often it was renewed.
const MOST: usize = 100;

/// After so many histories that could not be read the remote is not asked for more of them.
const MOST_FAILURES: usize = 3;

/// Shows the claims that are named, however their refs are spelled.
pub fn run(args: &cli::Show, context: &mut Context<'_>) -> Result<Vec<ClaimReport>, ListError> {
    let prefix = &context.stage.settings.prefix;
    let claims = names::typed(&args.names, |name| ClaimRef::typed(prefix, name))?;
    let looks = context.looks(claims);
    let mut histories = Histories::default();
    Ok(looks.into_iter().map(|look| answer(look, &mut histories, context)).collect())
}

fn answer(look: Look, histories: &mut Histories, context: &mut Context<'_>) -> ClaimReport {
    let Look { claim, records, seen, elsewhere } = look;
    match seen {
        Err(error) => context.report_failure(&claim, error),
        Ok(None) => {
            let mut report = context.report(&claim, Verdict::Free, None, &records);
            report.hints.extend(elsewhere.map(|other| context.differs(&other)));
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
            report.history = histories.of(&seen, context);
            report
        }
    }
}

/// The histories of several claims, asked for one after the other on the connection that listed them.
#[derive(Default)]
struct Histories {
    failures: usize,
    /// Why no more are asked for.
    ended: Option<LinkError>,
}

impl Histories {
    /// What led to the record that was seen. A record without a parent tells it all; others cost one more exchange.
    fn of(&mut self, seen: &Seen, context: &mut Context<'_>) -> History {
        let (Some(Reading::Claim(_)), Some(tip)) = (seen.record.reading(), &seen.commit) else {
            return History::Unasked;
        };
        let read = match chain::first_parent(tip) {
            Some(parent) => self.read(seen.id, parent, context),
            None => Ok(HashMap::new()),
        };
        told(seen.id, tip, read, context)
    }

    fn read(
        &mut self,
        tip: ObjectId,
        parent: ObjectId,
        context: &mut Context<'_>,
    ) -> Result<HashMap<ObjectId, Vec<u8>>, LinkError> {
        if let Some(error) = &self.ended {
            return Err(error.clone());
        }
        let read = context.link.history(tip, parent, MOST - 1);
        if let Err(error) = &read {
            self.failures += 1;
            // The time is up for all of them.
            if matches!(error, LinkError::TimedOut(_)) || self.failures >= MOST_FAILURES {
                self.ended = Some(error.clone());
            }
        }
        read
    }
}

/// The history that ends in the commit `tip`, out of those that were `read`.
fn told(
    id: ObjectId,
    tip: &[u8],
    read: Result<HashMap<ObjectId, Vec<u8>>, LinkError>,
    context: &Context<'_>,
) -> History {
    let mut commits = match read {
        Ok(commits) => commits,
        Err(error) => return History::NotRead(error.to_string()),
    };
    commits.insert(id, tip.to_vec());
    // What the clone has, the remote was asked to leave out.
    let line = chain::line(id, MOST, |id| {
        commits.remove(&id).or_else(|| context.stage.checkout.find_commit(&id))
    });
    History::Read(Chain::of(&line))
}
