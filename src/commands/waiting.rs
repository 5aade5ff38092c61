//! Taking a claim that may be held: now, or the moment it is free.
//!
//! Who waits asks for one ref, seldom, and sends nothing while the claim is held. Waiting is no sign of life and takes
//! no place in a queue: of all who wait, the remote lets one succeed, and the others go on waiting.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use chrono::Utc;

use super::{
    context::Context,
    look::Seen,
    take::{self, Taken, Wanted},
};
use crate::{claim::token::Token, output::human, settings, verdict::Verdict, wait::Patience};

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
