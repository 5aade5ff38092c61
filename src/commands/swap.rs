//! One compare-and-swap, carried to a verdict: send, look again after anything but a plain answer, try again
//! where that is safe.
//!
//! Within one invocation every try sends the same commit, so a try whose answer was lost and that landed all the
//! same makes the next one a win. What any of it means is decided in [`crate::verdict`].

use std::{thread, time::Duration};

use gix::ObjectId;

use super::context::{Context, Seen};
use crate::{
    claim::{commit::Draft, name::ClaimRef, token::Token},
    held::HeldRecord,
    output::Shown,
    verdict::{self, Act, Now, Step, Verdict},
    wait,
    wire::{Edit, LinkError, Reported},
};

/// What is to be done to one ref.
pub struct Swap<'a> {
    pub act: Act,
    pub claim: &'a ClaimRef,
    /// The value that the ref must have.
    pub expected: Option<ObjectId>,
    /// The raw commit there.
    pub base: Option<Vec<u8>>,
    /// Makes the commit to put there, given what it is to replace; a deletion makes none.
    pub draft: Option<&'a dyn Fn(Option<ObjectId>) -> Draft>,
    /// The tokens by which a tip is known to be ours.
    pub tokens: &'a [Token],
    /// The clone's records of this claim, to spare reading what is known.
    pub records: &'a [HeldRecord],
}

/// How it ended.
pub struct Outcome {
    pub verdict: Verdict,
    /// What the last look at the ref found, if there was one: the outer `None` is no look, or one that failed.
    pub seen: Option<Option<Seen>>,
    /// Whether a command of ours may still be under way.
    pub pending: bool,
    /// The raw commit at the new tip, if it is the one that was sent.
    pub commit: Option<Vec<u8>>,
}

/// Carries out `swap`.
pub fn drive(context: &mut Context<'_>, mut swap: Swap<'_>) -> Outcome {
    let mut outcome = Outcome {
        verdict: Verdict::Unknown("nothing was tried".into()),
        seen: None,
        pending: false,
        commit: None,
    };
    for tried in 1..=wait::TRIES {
        if tried > 1 {
            thread::sleep(pause(tried));
        }
        let draft = swap.draft.map(|draft| draft(swap.expected));
        let reported = context.link.update(&Edit {
            refname: swap.claim.full(),
            expected: swap.expected,
            new: draft.as_ref(),
            base: swap.base.as_deref(),
        });
        let sent = sent(&reported);
        let lost = matches!(reported, Reported::Lost { .. });
        let timed_out = matches!(reported, Reported::Lost { error: LinkError::TimedOut(_), .. });
        outcome.pending |= lost;
        let step = match verdict::settle(swap.act, reported) {
            Ok(verdict) => Step::Settled(verdict),
            Err(doubt) => {
                let now = look(context, &swap, sent, &mut outcome);
                let left = outcome.pending;
                verdict::weigh(swap.act, swap.expected, doubt, now, left)
            }
        };
        outcome.verdict = match step {
            Step::Settled(verdict) => {
                outcome.verdict = verdict;
                outcome.commit = new_commit(draft.as_ref(), &outcome.verdict);
                break;
            }
            // The time given by the user is spent.
            Step::Again(verdict) if timed_out => {
                outcome.verdict = verdict;
                break;
            }
            Step::Again(verdict) => verdict,
            Step::Follow(id, verdict) => {
                swap.expected = Some(id);
                swap.base = outcome.seen.as_ref().and_then(|seen| seen.as_ref()?.commit.clone());
                verdict
            }
        };
    }
    conclude(outcome)
}

/// A refusal is final only if no earlier command of ours can still land.
fn conclude(mut outcome: Outcome) -> Outcome {
    match &outcome.verdict {
        Verdict::Refused(why) if outcome.pending => outcome.verdict = Verdict::Unknown(why.clone()),
        Verdict::Claimed(_) | Verdict::Renewed(_) | Verdict::Released => outcome.pending = false,
        _ => {}
    }
    outcome
}

fn sent(reported: &Reported) -> Option<ObjectId> {
    match reported {
        Reported::Done(id) => *id,
        Reported::Refused { sent, .. } | Reported::Lost { sent, .. } => *sent,
        Reported::Unexpected { .. } | Reported::Unsent(_) => None,
    }
}

fn look(
    context: &mut Context<'_>,
    swap: &Swap<'_>,
    sent: Option<ObjectId>,
    outcome: &mut Outcome,
) -> Now {
    match context.look(swap.claim, swap.records) {
        Ok(None) => {
            outcome.seen = Some(None);
            Now::Absent
        }
        Ok(Some(seen)) => {
            let known =
                sent == Some(seen.id) || (swap.act != Act::Take && swap.expected == Some(seen.id));
            let ours = known || seen.token().is_some_and(|token| swap.tokens.contains(&token));
            // Neither ours by its id nor readable: whose it is cannot be told, unless it cannot be ours.
            let unread =
                matches!(seen.record, Shown::NotRead(_)) && !swap.tokens.is_empty() && !ours;
            let now = match &seen.record {
                Shown::NotRead(why) if unread && swap.act != Act::Take => Now::NotRead(why.clone()),
                _ => Now::At { id: seen.id, ours },
            };
            outcome.seen = Some(Some(seen));
            now
        }
        Err(error) => {
            outcome.seen = None;
            Now::NotRead(error.to_string())
        }
    }
}

fn new_commit(draft: Option<&Draft>, verdict: &Verdict) -> Option<Vec<u8>> {
    let (Verdict::Claimed(id) | Verdict::Renewed(id)) = verdict else { return None };
    let encoded = draft?.encode(id.kind());
    (encoded.id == *id).then_some(encoded.data)
}

fn pause(tried: u32) -> Duration {
    // Without a random number the pause is merely not spread.
    wait::pause(tried, getrandom::u64().unwrap_or_default())
}
