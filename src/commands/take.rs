//! `take`: create the ref, if nobody has; or a child of what is there, where that says that it is released.

use std::{collections::HashSet, thread};

use anyhow::Context as _;
use chrono::{DateTime, Utc};

use super::{
    attempt::{Attempt, Replaced},
    context::Context,
    look::{self, Seen},
    over, release, waiting,
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
    verdict::{Act, Verdict},
};

/// Takes one claim.
pub fn run(args: &cli::Take, context: &mut Context<'_>) -> anyhow::Result<Vec<ClaimReport>> {
    let names = args.names.iter().map(|name| ClaimName::parse(name));
    let mut names = names.collect::<Result<Vec<_>, _>>()?;
    let heartbeat = args.heartbeat.as_deref().map(promise).transpose()?;
    let process = args.process.as_deref().map(process::typed).transpose()?;
    let since = context.now;
    let mut twice = HashSet::new();
    names.retain(|name| twice.insert(name.clone()));
    let wanted: Vec<Wanted<'_>> = names
        .into_iter()
        .map(|name| {
            let process = process.clone();
            Wanted { name, claiming: &args.claiming, heartbeat, process, since }
        })
        .collect();
    if let [wanted] = wanted.as_slice() {
        let claim = wanted.claim(&context.stage.settings.prefix);
        if let (Some(id), Some(reason)) = (&args.over, &args.reason) {
            return Ok(vec![over::run(wanted, &claim, id, reason, context)?]);
        }
        if args.resume {
            let records = context.records(Some(&claim));
            if let Some(report) = resume(&claim, &records, context) {
                return Ok(vec![report]);
            }
        }
    } else if !args.any {
        return Err(Several.into());
    }
    let mut rest = |pause| {
        thread::sleep(pause);
        true
    };
    let taken = waiting::take(&wanted, args.claiming.wait.as_deref(), context, &mut rest)?;
    Ok(taken.into_iter().map(|taken| taken.report).collect())
}

/// Several names, and no word on which.
#[derive(Debug, thiserror::Error)]
#[error("several names need --any: the first of them that is free is taken")]
pub struct Several;

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

/// Takes it now, or not.
pub fn once(wanted: &Wanted<'_>, context: &mut Context<'_>) -> anyhow::Result<Taken> {
    let stage = context.stage;
    let claim = wanted.claim(&stage.settings.prefix);
    let records = context.records(Some(&claim));
    let identity = Identity::gather(&stage.checkout, stage.settings.who.as_deref());
    let record = wanted.record(context, &identity, identity::fresh_token()?);
    let attempt = Attempt::begin(context, &claim, &records, record, identity)?;
    // Whoever looks for the claim in another place must not win beside us.
    let elsewhere = stage.settings.prefix.others();
    let others: Vec<ClaimRef> = elsewhere.iter().map(|prefix| wanted.claim(prefix)).collect();
    let mut outcome = attempt.send(context, Act::Take, Replaced::default(), others.clone());
    let (mut elsewhere, pending, near) = (outcome.elsewhere.take(), outcome.pending, outcome.near);
    let seen = outcome.looked.seen().cloned();
    let mut taken = attempt.settle(context, outcome);
    // The comparison of the remote is about one ref; somebody who looks elsewhere may have won there at the same time.
    if let Some(proof) = &taken.proof
        && let Verdict::Claimed(_) = taken.report.verdict
        && (near || stage.settings.prefix != Prefix::default())
        && let Some(found) = taken_elsewhere(&others, context)
    {
        let own = Records { own: vec![proof.clone()], ..Records::default() };
        taken = Taken { report: release::own(&claim, own, context), proof: None };
        if taken.report.verdict != Verdict::Released {
            return Ok(taken);
        }
        elsewhere = Some(found);
    }
    if let Some((other, seen)) = elsewhere {
        taken.report = held_elsewhere(&other, &seen, context);
    } else {
        let hints = hints(context, &taken.report, &records, seen.as_ref(), pending);
        taken.report.hints.extend(hints);
    }
    Ok(taken)
}

/// How a note ends that was cut.
const CUT: char = '…';

/// Says yes if the remote holds a claim that is provably ours; `None` goes on to take it.
fn resume(claim: &ClaimRef, records: &Records, context: &mut Context<'_>) -> Option<ClaimReport> {
    if records.own.is_empty() && records.damage.is_none() {
        return None;
    }
    let seen = match context.look(claim, records) {
        Ok(seen) => seen?,
        Err(error) => return Some(context.report_failure(claim, error)),
    };
    if let unknown @ Verdict::Unknown(_) = look::verdict(Some(&seen), records) {
        return Some(context.report(claim, unknown, Some(&seen), records));
    }
    context.keep(claim, seen.proof(records)?, &seen);
    Some(context.report(claim, Verdict::Claimed(seen.id), Some(&seen), records))
}

/// Where else the same claim is held, now that we have it here.
fn taken_elsewhere(others: &[ClaimRef], context: &mut Context<'_>) -> Option<(ClaimRef, Seen)> {
    others.iter().find_map(|other| match context.held_at(other) {
        Ok(seen) => Some((other.clone(), seen?)),
        Err(error) => {
            context.stage.ui().warn(&format!(
                "whether the claim is held at {} as well could not be told: {}",
                other.full(),
                escape::line(&error.to_string())
            ));
            None
        }
    })
}

/// The same claim is held where others look for it.
fn held_elsewhere(other: &ClaimRef, seen: &Seen, context: &Context<'_>) -> ClaimReport {
    let records = context.records(Some(other));
    let mut report = context.report(other, Verdict::Held(seen.id), Some(seen), &records);
    report.hints.push(context.differs(other));
    report
}

fn hints(
    context: &Context<'_>,
    report: &ClaimReport,
    records: &Records,
    seen: Option<&Seen>,
    pending: bool,
) -> Vec<String> {
    let (claim, verdict) = (&report.claim, &report.verdict);
    let name = claim.short();
    let resume = || context.command(&format!("take {name} --resume"));
    match verdict {
        Verdict::Unknown(_) if pending => {
            vec![format!("the claim may or may not have landed; this finds out: {}", resume())]
        }
        Verdict::Unknown(_) if !records.own.is_empty() => {
            vec![format!(
                "nothing was claimed; this clone has a record of an earlier take: {}",
                resume()
            )]
        }
        Verdict::Unknown(_) => vec!["nothing was claimed".into()],
        Verdict::Refused(_) => {
            let doctor = context.command("doctor");
            vec![format!("nothing was claimed; what the remote allows, and what helps: {doctor}")]
        }
        Verdict::Held(_) if seen.is_some_and(|seen| seen.proof(records).is_some()) => {
            vec![format!("this clone holds it already; to go on with it: {}", resume())]
        }
        Verdict::Held(_) => {
            let show = context.command(&format!("show {name}"));
            let come_back = format!("come back when it is released; how it stands: {show}");
            std::iter::once(come_back).chain(context.copied(claim, verdict, records)).collect()
        }
        _ => Vec::new(),
    }
}
