//! `ask`: ask the holder of a claim to stop. Nothing happens to the claim itself.
//!
//! The request is a ref of its own beside the claim, made by the same compare-and-swap, with a record in the same form
//! that carries the token of the claim it is about. So it says nothing to whoever takes the claim next.

use super::{
    context::Context,
    look::{Request, Seen},
    over::NoReason,
    release::Mark,
    swap::{self, Outcome, Swap},
};
use crate::{
    claim::{
        claim_ref::ClaimRef,
        commit::Draft,
        record::{Reading, Record},
    },
    cli,
    held::Records,
    identity::{self, Identity},
    output::ClaimReport,
    settings::ReleaseBy,
    verdict::{Act, Verdict},
    wire::{Edit, Push, Reported, Tip},
};

/// Asks the holder of one claim to stop.
pub fn run(args: &cli::AskToStop, context: &mut Context<'_>) -> anyhow::Result<Vec<ClaimReport>> {
    let claim = ClaimRef::typed(&context.stage.settings.prefix, &args.name)?;
    says_why(&args.reason)?;
    let records = context.records(Some(&claim));
    let report = match context.look(&claim, &records) {
        Err(error) => context.report_failure(&claim, error),
        Ok(Some(seen)) if seen.released().is_none() && seen.asked().is_none() => {
            request(&args.reason, &claim, &seen, &records, context)?.report
        }
        Ok(seen) => as_it_stands(&claim, seen.as_ref(), &records, context),
    };
    Ok(vec![report])
}

/// Whether `reason` tells the one who is asked anything.
///
/// # Errors
/// Where it does not.
pub fn says_why(reason: &str) -> Result<(), NoReason> {
    NoReason::unless_said(reason, "for the one who is asked")
}

/// What became of a request.
pub struct Asked {
    /// The answer.
    pub report: ClaimReport,
    /// What was put there, if it stays.
    pub put: Option<Request>,
}

impl From<ClaimReport> for Asked {
    /// Nothing was put there.
    fn from(report: ClaimReport) -> Self {
        Self { report, put: None }
    }
}

/// Puts the request there, and looks whether it still reaches the one it is for.
pub fn request(
    reason: &str,
    claim: &ClaimRef,
    seen: &Seen,
    records: &Records,
    context: &mut Context<'_>,
) -> anyhow::Result<Asked> {
    if seen.request.as_ref().is_some_and(|there| there.commit.is_none()) {
        let why = format!(
            "what is at {} is no request, and was not replaced; the release of the claim removes it",
            claim.asked().full()
        );
        return Ok(context.report(claim, Verdict::Refused(why), Some(seen), records).into());
    }
    let identity = Identity::gather(&context.stage.checkout, context.stage.settings.who.as_deref());
    let token = seen.token().map_or_else(identity::fresh_token, Ok)?;
    let name = claim.short().into_owned();
    let record = Record {
        host: Some(identity.host),
        reason: Some(reason.to_owned()),
        head: Some(seen.id.to_string()),
        job: identity.job,
        ..Record::new(name, identity.holder, context.now, token)
    };
    // One about a claim of before is replaced, as is the mark of one that was withdrawn.
    let before = seen.request.as_ref();
    let act = if before.is_some() { Act::Over } else { Act::Take };
    let expected = before.map(|ask| ask.id);
    let draft = Draft {
        message: record.message(),
        author: identity.author,
        at: record.claimed_at,
        parent: expected,
    };
    let base = before.and_then(|ask| ask.commit.clone());
    let swap = Swap::of(act, expected, base, Some(draft));
    let (place, none) = (claim.asked(), Records::default());
    let Outcome { verdict, commit, .. } = swap::drive(&mut context.place(&place, &none), swap);
    if let Verdict::Refused(_) | Verdict::Unknown(_) = verdict {
        let mut report = context.report(claim, verdict, Some(seen), records);
        report.hints.push(
            "the claim is as it was; whether its holder is asked shows 'git claim show'".into(),
        );
        return Ok(report.into());
    }
    let put = verdict.id().zip(commit);
    let mut put = put.map(|(id, commit)| Request::at(id, Tip::Commit(commit.into_bytes())));
    let now = match context.look(claim, records) {
        Ok(now) => now,
        Err(error) => return Ok(Asked { report: context.report_failure(claim, error), put }),
    };
    if now.as_ref().is_none_or(|now| now.asked().is_none())
        && let Some(put) = put.take()
    {
        withdraw(&[(claim, put)], context);
    }
    Ok(Asked { report: as_it_stands(claim, now.as_ref(), records, context), put })
}

/// The answer, by what is there.
fn as_it_stands(
    claim: &ClaimRef,
    seen: Option<&Seen>,
    records: &Records,
    context: &Context<'_>,
) -> ClaimReport {
    match seen {
        Some(seen) if seen.released().is_none() => match (&seen.request, seen.asked()) {
            (Some(ask), Some(_)) => {
                context.report(claim, Verdict::Asked(ask.id), Some(seen), records)
            }
            _ => {
                let mut report =
                    context.report(claim, Verdict::Moved(seen.id), Some(seen), records);
                report.hints.push("its holder changed meanwhile, and is not asked".into());
                report
            }
        },
        _ => {
            let mut report = context.report(claim, Verdict::Free, None, records);
            let take = context.command(&format!("take {}", claim.short()));
            report.hints.push(format!("nobody holds it, so nobody is asked; to take it: {take}"));
            report
        }
    }
}

/// Removes requests to the holders of claims that are over, each if it is still the one that was seen: in one push.
pub fn withdraw(requests: &[(&ClaimRef, Request)], context: &mut Context<'_>) {
    let over: Vec<Over<'_>> = requests
        .iter()
        .filter_map(|(claim, ask)| {
            Some(Over { claim, place: claim.asked(), ask, draft: ending(ask, context)? })
        })
        .collect();
    let edits: Vec<Edit<'_>> = over.iter().map(Over::edit).collect();
    if edits.is_empty() {
        return;
    }
    let updated = context.link.update(&Push { edits: &edits, atomic: false });
    for (Over { claim, .. }, updated) in over.iter().zip(updated) {
        match updated.reported {
            // Somebody else did it, or asked anew.
            Reported::Done(_)
            | Reported::Unexpected { .. }
            | Reported::Elsewhere { .. }
            | Reported::Withheld => {}
            Reported::Refused { reason: why, .. } => not_withdrawn(claim, &why, context),
            Reported::Unsent(error) | Reported::Lost { error, .. } => {
                not_withdrawn(claim, &error.to_string(), context);
            }
        }
    }
}

/// A request that is over.
struct Over<'a> {
    claim: &'a ClaimRef,
    place: ClaimRef,
    ask: &'a Request,
    draft: Option<Draft>,
}

impl Over<'_> {
    fn edit(&self) -> Edit<'_> {
        Edit {
            refname: self.place.full(),
            expected: Some(self.ask.id),
            new: self.draft.as_ref(),
            base: self.ask.commit.as_deref(),
            others: &[],
            beside: None,
        }
    }
}

/// What is to stand where a request was: nothing, or a mark. Outer nothing where the request is to stay.
fn ending(ask: &Request, context: &Context<'_>) -> Option<Option<Draft>> {
    match (context.stage.settings.release, ask.record.reading()) {
        (_, Some(reading)) if reading.released().is_some() => None,
        (ReleaseBy::Mark, Some(Reading::Claim(record))) => {
            Some(Some(Mark::of((**record).clone(), context).draft(Some(ask.id))))
        }
        (ReleaseBy::Mark, _) => None,
        (ReleaseBy::Deletion, _) => Some(None),
    }
}

fn not_withdrawn(claim: &ClaimRef, why: &str, context: &Context<'_>) {
    context.stage.ui().warn(&format!(
        "the request to stop at {} could not be removed, which does no harm: {why}",
        claim.asked().full()
    ));
}
