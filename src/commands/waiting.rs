//! Taking claims that may be held: now, or the moment they are free.
//!
//! Who waits asks for the refs in question, seldom, and sends nothing while they are held. Waiting is no sign of life and
//! takes no place in a queue: of all who wait, the remote lets one succeed, and the others go on waiting.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use anyhow::Context as _;
use chrono::{DateTime, TimeDelta, Utc};

use super::{
    ask,
    context::Context,
    look::{Request, Seen, SeenAt},
    some::{self, How},
    take::{self, Taken, Wanted},
};
use crate::{
    claim::{
        claim_ref::ClaimRef,
        record::{Reading, Record},
        staleness::Limits,
        token::Token,
    },
    held::{HeldRecord, Records},
    output::human,
    settings,
    verdict::Verdict,
    wait::Patience,
    wire::LinkError,
};

/// Takes those of `wanted` that `how` says, waiting as long as was asked for. `rest` lets time pass, and says no where the
/// waiting is to end early.
///
/// Gives the answers about those that were taken or, where that was not to be, about each.
pub fn take(
    wanted: &[Wanted<'_>],
    how: How,
    wait: Option<&str>,
    context: &mut Context<'_>,
    rest: &mut dyn FnMut(Duration) -> bool,
) -> anyhow::Result<Vec<Taken>> {
    let patience = match wait {
        Some(typed) => settings::patience(typed).context("--wait")?,
        None => Patience::None,
    };
    for reason in wanted.iter().filter_map(|wanted| wanted.claiming.ask.as_deref()) {
        ask::says_why(reason)?;
    }
    if let (Patience::None, How::All) = (patience, how) {
        // The write itself finds out how they stand.
        return some::all(wanted, &SeenAt::new(), context);
    }
    let end = patience.end(Instant::now());
    let mut watch = Watch::default();
    let mut polls = 0;
    loop {
        let mut answers = match round(wanted, how, &mut watch, context)? {
            Round::Over(taken) => {
                watch.ask_no_more(&taken, how, context);
                return Ok(taken);
            }
            Round::NotYet(answers) => answers,
        };
        let now = Instant::now();
        // Whoever is turned away at the door from the start is not let in by waiting.
        let refused = |answer: &Taken| matches!(answer.report.verdict, Verdict::Refused(_));
        let shut = polls == 0 && answers.iter().all(refused);
        if shut || end.over(now) || !rest(Duration::ZERO) {
            return Ok(answers);
        }
        watch.tell(&answers, how, context);
        if !watch.ask(wanted, &mut answers, how, context)? {
            return Ok(answers);
        }
        if polls == 0 {
            let names: Vec<_> = wanted.iter().map(|wanted| wanted.name.as_str()).collect();
            context.waits(&format!("waiting for {}", human::in_short(&names)), end.left(now));
        }
        polls += 1;
        let random = getrandom::u64().unwrap_or_default();
        if !rest(end.within(now, context.stage.settings.polls.pause(polls, random))) {
            return Ok(answers);
        }
    }
}

/// What one round of asking came to.
enum Round {
    /// The answer is there: what was wanted was taken, or it cannot be gone on with.
    Over(Vec<Taken>),
    /// It is not to be had now, or that cannot be told. Holds an answer about each.
    NotYet(Vec<Taken>),
}

/// Asks how they stand, and tries to take what is to be had.
fn round(
    wanted: &[Wanted<'_>],
    how: How,
    watch: &mut Watch,
    context: &mut Context<'_>,
) -> anyhow::Result<Round> {
    let answers = match stand(wanted, watch, context) {
        Ok(answers) => answers,
        Err(answers) => return Ok(Round::NotYet(answers)),
    };
    context.now = Utc::now();
    let tried = match how {
        How::Any(most) => some::any(wanted, answers, most, &watch.seen, context)?,
        How::All | How::OneByOne if !answers.iter().all(is_free) => {
            let mut answers = answers;
            // Of what is only had together a part may have landed late.
            some::unless_all(&mut answers, context);
            answers
        }
        How::All => some::all(wanted, &watch.seen, context)?,
        How::OneByOne => some::one_by_one(wanted, answers, &watch.seen, context)?,
    };
    watch.remember(&tried);
    let open = |taken: &Taken| match &taken.report.verdict {
        // Somebody has it; should an earlier try of ours still land after that, the next look knows it.
        Verdict::Held(_) => true,
        // Somebody had it, or nothing has left: nothing of ours can land any more.
        Verdict::Free | Verdict::Released | Verdict::Unknown(_) => taken.proof.is_none(),
        _ => false,
    };
    let is_held = |answer: &Taken| matches!(answer.report.verdict, Verdict::Held(_));
    let some_held = tried.iter().any(is_held);
    let How::Any(_) = how else {
        // While one is held, a try for all of them can land no sooner than it is free.
        let unsure = |answer: &Taken| matches!(answer.report.verdict, Verdict::Unknown(_));
        let open = |answer: &Taken| open(answer) || (some_held && unsure(answer));
        let over = tried.iter().all(Taken::is_claimed) || !tried.iter().all(open);
        return Ok(if over { Round::Over(tried) } else { Round::NotYet(tried) });
    };
    if !tried.iter().any(|answer| !open(answer) && !answer.is_refused()) {
        // Something else may become free.
        return Ok(if some_held { Round::NotYet(tried) } else { Round::Over(tried) });
    }
    // Of what is held nobody asked where something else was to be had.
    let of_interest = tried.into_iter().filter(|answer| !open(answer));
    let (refused, others): (Vec<Taken>, Vec<Taken>) = of_interest.partition(Taken::is_refused);
    if let Some(Verdict::Refused(why)) = refused.first().map(|first| &first.report.verdict) {
        let names: Vec<_> = refused.iter().map(|answer| answer.report.claim.short()).collect();
        let ui = context.stage.ui();
        let (names, why) = (human::in_short(&names), human::because(why, ui));
        ui.warn(&format!("the remote refuses {names}, which is passed over: {why}"));
    }
    Ok(Round::Over(others))
}

/// Whether a look found that nobody has it.
fn is_free(answer: &Taken) -> bool {
    answer.report.verdict == Verdict::Free
}

/// An answer about each by a look at all of them; where there is none, the reason for each.
fn stand(
    wanted: &[Wanted<'_>],
    watch: &mut Watch,
    context: &mut Context<'_>,
) -> Result<Vec<Taken>, Vec<Taken>> {
    let prefix = &context.stage.settings.prefix;
    let claims: Vec<ClaimRef> = wanted.iter().map(|wanted| wanted.claim(prefix)).collect();
    let records = context.by_claim(&claims);
    let own = Records { own: records.own(), ..Records::default() };
    let found = look(&claims, &own, watch, context);
    let together = take::together(wanted);
    let answer = |(number, claim): (usize, &ClaimRef)| {
        let report = match &found {
            Err(error) => context.report_failure(claim, error.clone()),
            Ok(found) => match found.get(number).and_then(Option::as_ref) {
                Some(seen) if seen.released().is_none() => {
                    return watch.held(claim, seen, &records.of(claim), &together, context);
                }
                _ => {
                    let refused = watch.refused.get(claim).cloned().map(Verdict::Refused);
                    let verdict = refused.unwrap_or(Verdict::Free);
                    context.report(claim, verdict, None, &Records::default())
                }
            },
        };
        Taken { report, proof: None }
    };
    let answers = claims.iter().enumerate().map(answer).collect();
    if found.is_ok() { Ok(answers) } else { Err(answers) }
}

fn look(
    claims: &[ClaimRef],
    records: &Records,
    watch: &mut Watch,
    context: &mut Context<'_>,
) -> Result<Vec<Option<Seen>>, LinkError> {
    let seen = context.look_at_all(claims, records, &watch.seen)?;
    let pairs = claims.iter().cloned().zip(&seen);
    watch.seen = pairs.filter_map(|(claim, seen)| Some((claim, seen.clone()?))).collect();
    Ok(seen)
}

/// Whether the holder began later than somebody who waits `since`. Of two who began in one second, the one that has it
/// keeps it. A time that is not here yet is no time that anybody began.
fn is_newer(holder: &Record, since: DateTime<Utc>, now: DateTime<Utc>) -> bool {
    let since = whole(since);
    let (began, is_newer) = match holder.waited_since {
        Some(began) => (began, began >= since),
        None => (holder.claimed_at, holder.claimed_at > since),
    };
    is_newer && began - now <= Limits::older_than(TimeDelta::zero()).ahead
}

/// `at` as a record would have it.
fn whole(at: DateTime<Utc>) -> DateTime<Utc> {
    DateTime::from_timestamp(at.timestamp(), 0).unwrap_or(at)
}

/// What is known from the rounds before.
#[derive(Default)]
struct Watch {
    seen: SeenAt,
    /// The holder of each that was told of last, by the token, and whether it could not be told.
    told: HashMap<ClaimRef, (Option<Token>, bool)>,
    /// The requests that we made.
    put: HashMap<ClaimRef, Request>,
    /// Takes of which a try got no answer, while somebody else was faster.
    attempts: Vec<HeldRecord>,
    /// What the remote refused, and why: it is not tried again.
    refused: HashMap<ClaimRef, String>,
}

impl Watch {
    /// Asks holders to stop who are older than we are, each once, and no more of them than are to make room for us. Says
    /// whether there is anything left to wait for: the newest is to have it, and that may be the holder.
    fn ask(
        &mut self,
        wanted: &[Wanted<'_>],
        answers: &mut [Taken],
        how: How,
        context: &mut Context<'_>,
    ) -> anyhow::Result<bool> {
        let (mut newer, mut asked) = (0, 0);
        let most = how.most(wanted.len());
        for (wanted, Taken { report, .. }) in wanted.iter().zip(answers.iter_mut()) {
            let Some(reason) = &wanted.claiming.ask else { continue };
            let there = self.seen.get(&report.claim).filter(|seen| Some(seen.id) == report.id);
            let Some(seen) = there else { continue };
            if let Some(Reading::Claim(record)) = seen.record.reading()
                && is_newer(record, wanted.since, Utc::now())
            {
                let why = "its holder began after we did: the newest is to have it";
                report.hints.push(why.into());
                newer += 1;
            } else if asked < most {
                asked += 1;
                if seen.asked().is_none() {
                    context.now = Utc::now();
                    let records = context.records(Some(&report.claim));
                    // Where it could not be put there, the next look finds that out, and it is tried again.
                    let put = ask::request(reason, &report.claim, seen, &records, context)?.put;
                    self.put.extend(put.map(|put| (report.claim.clone(), put)));
                }
            }
        }
        Ok(match how {
            How::Any(_) => newer < answers.len(),
            How::All | How::OneByOne => newer == 0,
        })
    }

    /// Keeps what the next round has to know of this one.
    fn remember(&mut self, tried: &[Taken]) {
        for Taken { report, proof } in tried {
            match &report.verdict {
                Verdict::Held(_) | Verdict::Unknown(_) => self.attempts.extend(proof.clone()),
                Verdict::Refused(why) if proof.is_none() => {
                    self.refused.insert(report.claim.clone(), why.clone());
                }
                _ => {}
            }
        }
    }

    /// The answer about a claim that is held: by us, where an attempt of ours has landed late. `together` are the names
    /// that are wanted.
    fn held(
        &self,
        claim: &ClaimRef,
        seen: &Seen,
        records: &Records,
        together: &str,
        context: &Context<'_>,
    ) -> Taken {
        let attempts = self.attempts.iter().filter(|attempt| *claim.full() == *attempt.refname);
        let attempts = Records { own: attempts.cloned().collect(), ..Records::default() };
        if let Some(attempt) = seen.proof(&attempts) {
            let proof = Some(context.keep(claim, attempt, seen));
            let report = context.report(claim, Verdict::Claimed(seen.id), Some(seen), &attempts);
            return Taken { report, proof };
        }
        let mut report = context.report(claim, Verdict::Held(seen.id), Some(seen), records);
        if report.mine {
            report.hints.push(context.holds_already(together));
        } else if !attempts.own.is_empty() {
            report.hints.push(context.may_still_land(claim));
        }
        Taken { report, proof: None }
    }

    /// Others than those that we got need not make room for us any more.
    fn ask_no_more(&self, taken: &[Taken], how: How, context: &mut Context<'_>) {
        let got = |claim: &ClaimRef| taken.iter().any(|taken| taken.report.claim == *claim);
        if matches!(how, How::Any(_)) && taken.iter().any(Taken::is_claimed) {
            let put = self.put.iter().filter(|(claim, _)| !got(claim));
            let put: Vec<_> = put.map(|(claim, put)| (claim, put.clone())).collect();
            ask::withdraw(&put, context);
        }
    }

    /// Says who holds each, at first and whenever that changes; of many, how many it is that are held.
    fn tell(&mut self, answers: &[Taken], how: How, context: &Context<'_>) {
        const MANY: usize = 10;
        let many = answers.len() > MANY && self.told.is_empty();
        let ui = context.stage.ui();
        for Taken { report, .. } in answers.iter().filter(|answer| !is_free(answer)) {
            let token = report.record.reading().and_then(|reading| reading.token());
            let now = (token, !matches!(report.verdict, Verdict::Held(_)));
            if self.told.insert(report.claim.clone(), now) != Some(now) && !many {
                ui.say(&human::waiting(report, Utc::now(), ui));
            }
        }
        if many {
            let (all, held) = (answers.len(), answers.iter().filter(|one| !is_free(one)).count());
            ui.say(&match how {
                How::Any(_) => format!("waiting for {} of {all}, all of them held", how.most(all)),
                How::All | How::OneByOne => format!("waiting for all of {all}: {held} are held"),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claim::record::Person;

    #[test]
    fn the_newest_is_who_began_last_by_a_clock_that_makes_sense() {
        let at = |seconds| DateTime::from_timestamp(1_800_000_000 + seconds, 0).expect("in range");
        let holder = |claimed: i64, waited: Option<i64>| Record {
            waited_since: waited.map(at),
            ..Record::new(
                "issue-1".into(),
                Person { name: "A".into(), email: "a@example.com".into() },
                at(claimed),
                Token::from_bytes([0; 16]),
            )
        };
        for (claimed, waited, is_newer_than_ten) in [
            (9, None, false),
            (10, None, false),
            (11, None, true),
            (99, Some(9), false),
            (99, Some(10), true),
            (99, Some(11), true),
            (9, Some(1_000_000), false),
            (1_000_000, None, false),
        ] {
            let newer = is_newer(&holder(claimed, waited), at(10), at(100));
            assert_eq!(newer, is_newer_than_ten, "{claimed} {waited:?}");
        }
    }
}
