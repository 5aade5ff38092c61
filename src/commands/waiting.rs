//! Taking a claim that may be held: now, or the moment it is free.
//!
//! Who waits asks for one ref, seldom, and sends nothing while the claim is held. Waiting is no sign of life and takes
//! no place in a queue: of all who wait, the remote lets one succeed, and the others go on waiting.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use chrono::{DateTime, Utc};

use super::{
    ask,
    context::Context,
    look::Seen,
    take::{self, Taken, Wanted},
};
use crate::{
    claim::{record::Reading, token::Token},
    output::human,
    settings,
    verdict::Verdict,
    wait::Patience,
};

/// Takes it, waiting as long as was asked for; `rest` lets time pass, and says no where the waiting is to end early.
pub fn take(
    wanted: &Wanted<'_>,
    context: &mut Context<'_>,
    rest: &mut dyn FnMut(Duration) -> bool,
) -> anyhow::Result<Taken> {
    let patience = match &wanted.claiming.wait {
        Some(typed) => settings::patience(typed).context("--wait")?,
        None => Patience::None,
    };
    if patience == Patience::None {
        return take::once(wanted, context);
    }
    let end = patience.end(Instant::now());
    let mut watch = Watch::default();
    let mut polls = 0;
    loop {
        let answer = match look(wanted, &mut watch, context) {
            Sight::Free => {
                context.now = Utc::now();
                let taken = take::once(wanted, context)?;
                if !matches!(taken.report.verdict, Verdict::Held(_)) {
                    return Ok(taken);
                }
                taken
            }
            Sight::NotFree(taken) => *taken,
        };
        let now = Instant::now();
        if end.over(now) {
            return Ok(answer);
        }
        watch.tell(&answer, context);
        if let Some(reason) = &wanted.claiming.ask
            && let Some(newer) = watch.ask(reason, wanted, &answer, context)?
        {
            return Ok(newer);
        }
        if polls == 0 {
            context.waits(&format!("waiting for {}", wanted.name), end.left(now));
        }
        polls += 1;
        let random = getrandom::u64().unwrap_or_default();
        if !rest(end.within(now, context.stage.settings.polls.pause(polls, random))) {
            return Ok(answer);
        }
    }
}

/// What a look at the claim leads to.
enum Sight {
    /// It can be tried.
    Free,
    /// It is held, or that cannot be told.
    NotFree(Box<Taken>),
}

/// `at` as a record would have it.
fn whole(at: DateTime<Utc>) -> DateTime<Utc> {
    DateTime::from_timestamp(at.timestamp(), 0).unwrap_or(at)
}

/// What is known from the looks before.
#[derive(Default)]
struct Watch {
    seen: Option<Seen>,
    /// The holder that was told of last, by the token, and whether a look that failed was.
    told: Option<(Option<Token>, bool)>,
}

fn look(wanted: &Wanted<'_>, watch: &mut Watch, context: &mut Context<'_>) -> Sight {
    let claim = wanted.claim(&context.stage.settings.prefix);
    let records = context.records(Some(&claim));
    let report = match context.look_again(&claim, &records, watch.seen.as_ref()) {
        Ok(Some(seen)) if seen.released().is_none() => {
            let report = context.report(&claim, Verdict::Held(seen.id), Some(&seen), &records);
            watch.seen = Some(seen);
            report
        }
        Ok(_) => return Sight::Free,
        Err(error) => context.report_failure(&claim, error),
    };
    Sight::NotFree(Box::new(Taken { report, proof: None }))
}

impl Watch {
    /// Asks a holder to stop who is older than we are, once; an answer where it is not.
    fn ask(
        &mut self,
        reason: &str,
        wanted: &Wanted<'_>,
        answer: &Taken,
        context: &mut Context<'_>,
    ) -> anyhow::Result<Option<Taken>> {
        let Some(seen) = self.seen.as_ref().filter(|seen| Some(seen.id) == answer.report.id) else {
            return Ok(None);
        };
        if let Some(Reading::Claim(record)) = seen.record.reading()
            && record.waited_since.unwrap_or(record.claimed_at) > whole(wanted.since)
        {
            let mut report = answer.report.clone();
            report.hints.push("its holder began after we did: the newest is to have it".into());
            return Ok(Some(Taken { report, proof: None }));
        }
        if seen.asked().is_none() {
            context.now = Utc::now();
            let claim = wanted.claim(&context.stage.settings.prefix);
            let records = context.records(Some(&claim));
            // Where it could not be put there, the next look finds that out, and it is tried again.
            let _ = ask::request(reason, &claim, seen, &records, context)?;
        }
        Ok(None)
    }

    /// Says who holds it, at first and whenever that changes.
    fn tell(&mut self, answer: &Taken, context: &Context<'_>) {
        let token = answer.report.record.reading().and_then(|reading| reading.token());
        let failed = !matches!(answer.report.verdict, Verdict::Held(_));
        let now = (token, failed);
        if self.told.replace(now) != Some(now) {
            let ui = context.stage.ui();
            ui.say(&human::waiting(&answer.report, Utc::now(), ui));
        }
    }
}
