//! `take`: create the ref, if nobody has; or a child of what is there, where that says that it is released.

use std::{num::NonZeroUsize, thread};

use anyhow::Context as _;
use chrono::{DateTime, Utc};

use super::{
    attempt::{Attempt, Replaced, send_all},
    context::Context,
    look::{self, Seen, SeenAt},
    names::{self, OnlyOne},
    over, release,
    some::How,
    swap::{Bond, Outcome},
    waiting,
};
use crate::{
    claim::{
        claim_ref::ClaimRef,
        name::ClaimName,
        prefix::Prefix,
        record::{Process, Record},
        token::Token,
    },
    cli, escape,
    held::{HeldRecord, Records},
    identity::{self, Identity},
    output::ClaimReport,
    process, settings,
    verdict::Verdict,
};

/// Takes the claims that are named, or those of them that are to be had.
pub fn run(args: &cli::Take, context: &mut Context<'_>) -> anyhow::Result<Vec<ClaimReport>> {
    let heartbeat = args.heartbeat.as_deref().map(promise).transpose()?;
    let process = args.process.as_deref().map(process::typed).transpose()?;
    let since = context.now;
    let names = names::typed(&args.names, ClaimName::parse)?;
    let mut wanted: Vec<Wanted<'_>> = names
        .into_iter()
        .map(|name| {
            let process = process.clone();
            Wanted { name, claiming: &args.claiming, heartbeat, process, since }
        })
        .collect();
    if args.shuffle {
        shuffle(&mut wanted);
    }
    if let (Some(id), Some(reason)) = (&args.over, &args.reason) {
        let [wanted] = wanted.as_slice() else { return Err(OnlyOne("--over").into()) };
        let claim = wanted.claim(&context.stage.settings.prefix);
        return Ok(vec![over::run(wanted, &claim, id, reason, context)?]);
    }
    let mut ours = Vec::new();
    if args.resume {
        let resumed = resume(&wanted, context);
        let claimed = |report: &ClaimReport| matches!(report.verdict, Verdict::Claimed(_));
        if resumed.iter().all(claimed) || resumed.iter().any(is_unsure) {
            return Ok(resumed);
        }
        ours = resumed.into_iter().filter(claimed).collect::<Vec<_>>();
        wanted.retain(|wanted| {
            let claim = wanted.claim(&context.stage.settings.prefix);
            !ours.iter().any(|report| report.claim == claim)
        });
    }
    let mut rest = |pause| {
        thread::sleep(pause);
        true
    };
    let taken = waiting::take(
        &wanted,
        how(args, wanted.len()),
        args.claiming.wait.as_deref(),
        context,
        &mut rest,
    )?;
    let held: Vec<_> = ours.iter().map(|report| report.claim.short().into_owned()).collect();
    let held = held.join(" ");
    if let (Some(last), false) = (ours.last_mut(), taken.iter().all(Taken::is_claimed)) {
        let release = context.command(&format!("release {held}"));
        last.hints.push(format!(
            "what this clone held before is still held, without the others; to give it back: {release}"
        ));
    }
    Ok(ours.into_iter().chain(taken.into_iter().map(|taken| taken.report)).collect())
}

/// Puts them in an order of chance; without random numbers they stay as they are.
fn shuffle<T>(all: &mut [T]) {
    for end in (2..=all.len()).rev() {
        let random = getrandom::u64().unwrap_or_default();
        let chosen = usize::try_from(random % end as u64).unwrap_or_default();
        all.swap(end - 1, chosen);
    }
}

/// Which of several claims are to be had.
fn how(args: &cli::Take, names: usize) -> How {
    match (args.any, args.one_by_one) {
        (true, _) if names > 1 => How::Any(args.limit.map_or(1, NonZeroUsize::get)),
        (false, true) if names > 1 => How::OneByOne,
        _ => How::All,
    }
}

/// A claim that somebody wants, and what it is to say.
pub struct Wanted<'a> {
    /// Its name.
    pub name: ClaimName,
    /// What it is to say, and how long to wait for it.
    pub claiming: &'a cli::Claiming,
    /// The promised seconds between renewals.
    pub heartbeat: Option<u32>,
    /// The process that is to hold it.
    pub process: Option<Process>,
    /// When it was first wanted.
    pub since: DateTime<Utc>,
}

/// How a take ended.
pub struct Taken {
    /// The answer.
    pub report: ClaimReport,
    /// The proof that it is ours, where it is or may yet become so.
    pub proof: Option<HeldRecord>,
}

impl Taken {
    /// Whether it is ours now.
    pub fn is_claimed(&self) -> bool {
        matches!(self.report.verdict, Verdict::Claimed(_))
    }

    /// Whether the remote refused it, and nothing of it can land any more.
    pub fn is_refused(&self) -> bool {
        matches!(self.report.verdict, Verdict::Refused(_)) && self.proof.is_none()
    }
}

impl Wanted<'_> {
    /// Its ref.
    pub fn claim(&self, prefix: &Prefix) -> ClaimRef {
        ClaimRef::new(prefix, &self.name)
    }

    /// The record that it is taken with, at the present time of `context`.
    pub fn record(&self, context: &Context<'_>, identity: &Identity, token: Token) -> Record {
        let cli::Claiming { note, branch, .. } = self.claiming;
        let found = branch.as_deref().and_then(|branch| context.stage.checkout.resolve(branch));
        let record = Record {
            note: note.clone(),
            host: Some(identity.host.clone()),
            waited_since: self.claiming.ask.as_ref().map(|_| self.since),
            heartbeat: self.heartbeat,
            head: found.as_ref().map(|(_, id)| id.to_string()),
            branch: found.map(|(name, _)| name).or_else(|| branch.clone()),
            job: identity.job.clone(),
            process: self.process.clone(),
            ..Record::new(self.name.to_string(), identity.holder.clone(), context.now, token)
        }
        .normalised();
        if note.as_ref().is_some_and(|note| !note.ends_with(CUT))
            && record.note.as_ref().is_some_and(|note| note.ends_with(CUT))
        {
            context.stage.ui().warn("the note is too long, and was cut");
        }
        record
    }
}

/// The seconds between renewals that somebody promises.
pub fn promise(typed: &str) -> anyhow::Result<u32> {
    let seconds = settings::duration(typed).context("--heartbeat")?.as_secs();
    u32::try_from(seconds)
        .ok()
        .filter(|seconds| *seconds > 0)
        .ok_or_else(|| NoPromise(typed.to_owned()).into())
}

/// A heartbeat that nobody could keep.
#[derive(Debug, thiserror::Error)]
#[error("--heartbeat is '{0}': a second is the least")]
pub struct NoPromise(String);

/// Takes them now, or not, in one push: each by itself, or all or none. Gives an answer about each, in their order.
/// `seen` is what a look that was just made found at their refs; `together` is what to type for all that are to be had
/// together, where that is more than one.
pub fn push(
    wanted: &[&Wanted<'_>],
    seen: &SeenAt,
    bond: Bond,
    together: Option<&str>,
    context: &mut Context<'_>,
) -> anyhow::Result<Vec<Taken>> {
    let stage = context.stage;
    let prefix = &stage.settings.prefix;
    let claims: Vec<ClaimRef> = wanted.iter().map(|wanted| wanted.claim(prefix)).collect();
    let records = context.records_of(&claims);
    context.link.make_ready();
    let attempts = begin(wanted, &claims, &records, context)?;
    // Whoever looks for a claim in another place must not win beside us.
    let others: Vec<Vec<ClaimRef>> = wanted
        .iter()
        .map(|wanted| prefix.others().iter().map(|prefix| wanted.claim(prefix)).collect())
        .collect();
    let replaced = claims.iter().map(|claim| Replaced::mark(seen.get(claim))).collect();
    let places = &mut context.refs(&claims, &records);
    let outcomes = send_all(&attempts, replaced, &others, bond, places);
    let won = |outcome: &Outcome| matches!(outcome.verdict, Verdict::Claimed(_));
    let won_some = outcomes.iter().any(won);
    let mut answers = Vec::with_capacity(outcomes.len());
    for ((attempt, mut outcome), records) in attempts.into_iter().zip(outcomes).zip(&records) {
        let (elsewhere, pending) = (outcome.elsewhere.take(), outcome.pending);
        let (near, seen) = (outcome.near, outcome.looked.seen().cloned());
        let mut taken = attempt.settle(context, outcome);
        if let Some((other, seen)) = elsewhere {
            taken.report = held_elsewhere(&other, &seen, context);
        } else {
            let short = taken.report.claim.short().into_owned();
            let together = together.unwrap_or(&short);
            let not_had = match bond {
                Bond::All if !won_some => "nothing was claimed".into(),
                Bond::All | Bond::Each => format!("{short} was not claimed"),
            };
            let names = Names { together, not_had: &not_had };
            let hints = hints(context, &taken.report, records, seen.as_ref(), pending, names);
            taken.report.hints.extend(hints);
        }
        answers.push((taken, near));
    }
    // The comparison of the remote is about one ref; somebody who looks elsewhere may have won there at the same time.
    let doubtful = |(taken, near): &(Taken, bool)| {
        (*near || *prefix != Prefix::default()) && taken.is_claimed()
    };
    let doubtful: Vec<usize> = (0..answers.len()).filter(|at| doubtful(&answers[*at])).collect();
    let mut answers: Vec<Taken> = answers.into_iter().map(|(taken, _)| taken).collect();
    let both = taken_elsewhere(&doubtful, &others, context);
    let to_give_back: Vec<usize> = both.iter().map(|(at, ..)| *at).collect();
    give_back(&mut answers, &to_give_back, context);
    for (at, other, seen) in both {
        if answers[at].report.verdict == Verdict::Released {
            answers[at].report = held_elsewhere(&other, &seen, context);
        } else {
            answers[at].report.hints.push(context.differs(&other));
        }
    }
    Ok(answers)
}

/// The names, to be typed in a command; of many it is left to the one who typed them.
pub fn together(wanted: &[Wanted<'_>]) -> String {
    const TYPED: usize = 20;
    if wanted.len() > TYPED {
        return "NAME...".into();
    }
    let names: Vec<&str> = wanted.iter().map(|wanted| wanted.name.as_str()).collect();
    names.join(" ")
}

/// Writes down in the clone that takes of all of them are on their way.
fn begin<'a>(
    wanted: &[&Wanted<'_>],
    claims: &'a [ClaimRef],
    records: &'a [Records],
    context: &Context<'_>,
) -> anyhow::Result<Vec<Attempt<'a>>> {
    let stage = context.stage;
    let identity = Identity::gather(&stage.checkout, stage.settings.who.as_deref());
    let mut attempts = Vec::with_capacity(wanted.len());
    for ((wanted, claim), records) in wanted.iter().zip(claims).zip(records) {
        let begun = identity::fresh_token().map_err(Into::into).and_then(|token| {
            let record = wanted.record(context, &identity, token);
            Attempt::begin(context, claim, records, record, &identity)
        });
        match begun {
            Ok(attempt) => attempts.push(attempt),
            Err(error) => {
                attempts.into_iter().for_each(|attempt: Attempt<'_>| attempt.abandon(context));
                return Err(error);
            }
        }
    }
    Ok(attempts)
}

/// Releases those of the claims that were won, at `which`: the answers about them say what became of that.
pub fn give_back(taken: &mut [Taken], which: &[usize], context: &mut Context<'_>) {
    let won: Vec<(usize, ClaimRef, Records)> = which
        .iter()
        .filter_map(|at| {
            let Taken { report, proof } = &taken[*at];
            let (Verdict::Claimed(_), Some(proof)) = (&report.verdict, proof) else { return None };
            let records = Records { own: vec![proof.clone()], ..Records::default() };
            Some((*at, report.claim.clone(), records))
        })
        .collect();
    let (claims, records): (Vec<ClaimRef>, Vec<Records>) =
        won.iter().map(|(_, claim, records)| (claim.clone(), records.clone())).unzip();
    let reports = release::own(&claims, &records, context);
    for ((at, _, records), report) in won.iter().zip(reports) {
        // Where it is not known to be gone, it may well be ours still.
        let gone = matches!(report.verdict, Verdict::Released | Verdict::Free | Verdict::Lost(_));
        let proof = records.own.first().filter(|_| !gone).cloned();
        taken[*at] = Taken { report, proof };
    }
}

/// How a note ends that was cut.
const CUT: char = '…';

/// How each stands for whoever goes on with what an earlier take began: claimed, if it is provably ours. Nothing is asked
/// where the clone has no record of any.
fn resume(wanted: &[Wanted<'_>], context: &mut Context<'_>) -> Vec<ClaimReport> {
    let prefix = &context.stage.settings.prefix;
    let claims: Vec<ClaimRef> = wanted.iter().map(|wanted| wanted.claim(prefix)).collect();
    let records = context.records_of(&claims);
    let begun = |records: &Records| !records.own.is_empty() || records.damage.is_some();
    if !records.iter().any(begun) {
        return claims
            .iter()
            .map(|claim| context.report(claim, Verdict::Free, None, &Records::default()))
            .collect();
    }
    let seen = match context.look_each(&claims.iter().zip(&records).collect::<Vec<_>>()) {
        Ok(seen) => seen,
        Err(error) => {
            let failed = |claim| context.report_failure(claim, error.clone());
            return claims.iter().map(failed).collect();
        }
    };
    let report = |((claim, records), seen): ((&ClaimRef, &Records), Option<Seen>)| {
        let proof = seen.as_ref().and_then(|seen| Some((seen, seen.proof(records)?)));
        if let Some((seen, proof)) = proof {
            context.keep(claim, proof, seen);
            return context.report(claim, Verdict::Claimed(seen.id), Some(seen), records);
        }
        context.report(claim, look::verdict(seen.as_ref(), records), seen.as_ref(), records)
    };
    claims.iter().zip(&records).zip(seen).map(report).collect()
}

/// Whether whose it is could not be told.
fn is_unsure(report: &ClaimReport) -> bool {
    matches!(report.verdict, Verdict::Unknown(_) | Verdict::Refused(_))
}

/// Which of the claims at `which`, that we have here now, are held at one of their `others` as well, and what is there;
/// asked in one look.
fn taken_elsewhere(
    which: &[usize],
    others: &[Vec<ClaimRef>],
    context: &mut Context<'_>,
) -> Vec<(usize, ClaimRef, Seen)> {
    let places = which.iter().flat_map(|at| others[*at].iter().map(|other| (*at, other.clone())));
    let (which, places): (Vec<usize>, Vec<ClaimRef>) = places.unzip();
    let found = match context.held_among(&places) {
        Ok(found) => found,
        Err(error) => {
            let more = if places.len() > 1 { " and the like" } else { "" };
            context.stage.ui().warn(&format!(
                "whether the claim is held at {}{more} as well could not be told: {}",
                places.first().map(|place| place.full().to_string()).unwrap_or_default(),
                escape::line(&error.to_string())
            ));
            return Vec::new();
        }
    };
    let both = which.into_iter().zip(places).zip(found);
    let mut both: Vec<_> =
        both.filter_map(|((at, place), seen)| Some((at, place, seen?))).collect();
    both.dedup_by_key(|(at, ..)| *at);
    both
}

/// The same claim is held where others look for it.
fn held_elsewhere(other: &ClaimRef, seen: &Seen, context: &Context<'_>) -> ClaimReport {
    let records = context.records(Some(other));
    let mut report = context.report(other, Verdict::Held(seen.id), Some(seen), &records);
    report.hints.push(context.differs(other));
    report
}

/// How claims are called in what is said about one of them.
#[derive(Clone, Copy)]
struct Names<'a> {
    /// Those that are to be had all or none: a command about one of them would have it alone.
    together: &'a str,
    /// The sentence that nothing was claimed, as far as that is true.
    not_had: &'a str,
}

fn hints(
    context: &Context<'_>,
    report: &ClaimReport,
    records: &Records,
    seen: Option<&Seen>,
    pending: bool,
    Names { together, not_had }: Names<'_>,
) -> Vec<String> {
    let (claim, verdict) = (&report.claim, &report.verdict);
    let name = claim.short();
    let resume = || context.command(&format!("take {together} --resume"));
    match verdict {
        Verdict::Unknown(_) if pending => {
            vec![format!("the claim may or may not have landed; this finds out: {}", resume())]
        }
        Verdict::Unknown(_) if !records.own.is_empty() => {
            vec![format!("{not_had}; this clone has a record of an earlier take: {}", resume())]
        }
        Verdict::Unknown(_) => vec![not_had.to_owned()],
        Verdict::Refused(_) => {
            let doctor = context.command("doctor");
            vec![format!("{not_had}; what the remote allows, and what helps: {doctor}")]
        }
        Verdict::Held(_) if seen.is_some_and(|seen| seen.proof(records).is_some()) => {
            vec![context.holds_already(together)]
        }
        Verdict::Held(_) if pending => {
            vec![format!(
                "an earlier try got no answer, and may still land once it is free; this finds out: {}",
                resume()
            )]
        }
        Verdict::Held(_) => {
            let show = context.command(&format!("show {name}"));
            let come_back = format!("come back when it is released; how it stands: {show}");
            std::iter::once(come_back).chain(context.copied(claim, verdict, records)).collect()
        }
        _ => Vec::new(),
    }
}
