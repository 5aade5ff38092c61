//! `release`: delete the ref, if it is ours, or if it is exactly what the user names; or mark it as released, where that
//! is the setting.

use std::slice;

use gix::ObjectId;

use super::{
    ask,
    context::Context,
    look::{self, Request, Seen},
    names::{self, OnlyOne},
    swap::{self, Bond, Looked, Outcome, Swap},
};
use crate::{
    claim::{
        abbreviated::Abbreviated,
        claim_ref::ClaimRef,
        commit::Draft,
        record::{Person, Reading, Record, TookOver},
        token::Token,
    },
    cli,
    held::{HeldRecord, Records},
    identity::{self, Identity},
    output::{ClaimReport, Shown, human},
    settings::{self, ReleaseBy},
    verdict::{Act, Verdict, Whose},
    wire::Tip,
};

/// Releases the claims that are named, or all of this clone.
pub fn run(args: &cli::Release, context: &mut Context<'_>) -> anyhow::Result<Vec<ClaimReport>> {
    if args.all {
        return all(context);
    }
    let prefix = &context.stage.settings.prefix;
    let claims = names::typed(&args.names, |name| ClaimRef::typed(prefix, name))?;
    if let Some(expect) = &args.expect {
        let [claim] = claims.as_slice() else { return Err(OnlyOne("--expect").into()) };
        return Ok(vec![named(claim, &Abbreviated::parse(expect)?, context)?]);
    }
    Ok(own(&claims, &context.records_of(&claims), context))
}

/// Releases what is on record here, in one push.
fn all(context: &mut Context<'_>) -> anyhow::Result<Vec<ClaimReport>> {
    let records = context.records(None);
    let prefix = &context.stage.settings.prefix;
    let names = records
        .own
        .iter()
        .map(|record| record.refname.as_str())
        .chain(records.damaged.iter().map(String::as_str));
    let (claims, elsewhere): (Vec<_>, Vec<_>) =
        names.map(|name| ClaimRef::typed(prefix, name)).partition(Result::is_ok);
    if !elsewhere.is_empty() {
        context.stage.ui().hint(&format!(
            "this clone has records of claims outside of {prefix}, which are left alone: see {}",
            settings::PREFIX
        ));
    }
    let mut claims: Vec<ClaimRef> = claims.into_iter().flatten().collect();
    claims.sort();
    claims.dedup();
    if let (true, Some(damage)) = (claims.is_empty(), records.damage) {
        anyhow::bail!(damage);
    }
    if records.strangers {
        context.stage.ui().warn("there are records of another clone here, of which this one is a copy: they prove nothing");
    }
    let reports = own(&claims, &context.records_of(&claims), context);
    // A take that never landed left a record of an attempt, not a claim.
    let won = |claim: &ClaimRef| {
        records.own.iter().any(|record| record.tip.is_some() && *claim.full() == *record.refname)
    };
    let never_ours = |report: &ClaimReport| {
        matches!(report.verdict, Verdict::Free | Verdict::Lost(_)) && !won(&report.claim)
    };
    let (attempts, reports): (Vec<ClaimReport>, Vec<ClaimReport>) =
        reports.into_iter().partition(never_ours);
    if !attempts.is_empty() {
        let names: Vec<_> = attempts.iter().map(|report| report.claim.short()).collect();
        let command = context.command("release --all");
        context.stage.ui().hint(&format!(
            "a take got no answer and may still land, of {}; to give that back as well, later: {command}",
            human::in_short(&names)
        ));
    }
    Ok(reports)
}

/// Releases the claims that `records` prove ours, in one push; gives the report about each.
pub fn own(
    claims: &[ClaimRef],
    records: &[Records],
    context: &mut Context<'_>,
) -> Vec<ClaimReport> {
    let mut reports: Vec<Option<ClaimReport>> = vec![None; claims.len()];
    let mut plans = Vec::with_capacity(claims.len());
    for (at, found) in tips(claims, records, context).into_iter().enumerate() {
        match found
            .and_then(|(tip, commit)| plan(at, tip, commit, &claims[at], &records[at], context))
        {
            Ok(plan) => plans.push(plan),
            Err(report) => reports[at] = Some(*report),
        }
    }
    let swaps = plans.iter().map(|plan| {
        let mark = plan.mark.as_ref().map(|mark| mark.draft(Some(plan.tip)));
        Swap::of(Act::Release, Some(plan.tip), plan.commit.clone(), mark)
    });
    let (to_go, proofs): (Vec<ClaimRef>, Vec<Records>) =
        plans.iter().map(|plan| (claims[plan.at].clone(), records[plan.at].clone())).unzip();
    let mut places = context.refs(&to_go, &proofs);
    let outcomes = swap::drive_all(&mut places, swaps.collect(), Bond::Each);
    let asked = std::mem::take(&mut places.asked);
    let mut over = Vec::new();
    for ((plan, outcome), asked) in plans.iter().zip(outcomes).zip(asked) {
        let (claim, records) = (&claims[plan.at], &records[plan.at]);
        if outcome.verdict == Verdict::Released {
            over.extend(asked.map(|id| (claim, id)));
        }
        let was = (plan.tip, plan.commit.as_deref());
        reports[plan.at] = Some(ended(claim, records, was, outcome, context));
    }
    end_requests(&over, context);
    reports.into_iter().flatten().collect()
}

/// The same for one.
pub fn one(claim: &ClaimRef, records: Records, context: &mut Context<'_>) -> ClaimReport {
    let report = own(slice::from_ref(claim), &[records], context).pop();
    report.unwrap_or_else(|| context.report_nothing(claim))
}

/// What is to be released, and what it is to be replaced by.
struct Plan {
    at: usize,
    tip: ObjectId,
    commit: Option<Vec<u8>>,
    mark: Option<Mark>,
}

/// A tip, and the raw commit there as far as it is known.
type At = (ObjectId, Option<Vec<u8>>);

/// The tip of each and its commit, or the report that it is not ours. With the tip on record, the write itself finds out
/// whether it is still there; the others are asked about first, all at once.
fn tips(
    claims: &[ClaimRef],
    records: &[Records],
    context: &mut Context<'_>,
) -> Vec<Result<At, Box<ClaimReport>>> {
    let by = context.stage.settings.release;
    let on_record = |records: &Records| {
        let record = records.own.first()?;
        Some((record.tip()?, record.commit.clone().map(String::into_bytes)))
            .filter(|(_, commit)| by == ReleaseBy::Deletion || commit.is_some())
    };
    let known: Vec<Option<At>> = records.iter().map(on_record).collect();
    let unknown = claims.iter().zip(records).zip(&known).filter(|(_, known)| known.is_none());
    let unknown: Vec<(&ClaimRef, &Records)> = unknown.map(|(of, _)| of).collect();
    let looked = if unknown.is_empty() { Ok(Vec::new()) } else { context.look_each(&unknown) };
    let mut looked = looked.map(Vec::into_iter);
    let one = |((claim, records), known): ((&ClaimRef, &Records), Option<_>)| {
        let seen = match (known, &mut looked) {
            (Some(known), _) => return Ok(known),
            (None, Ok(looked)) => looked.next().flatten(),
            (None, Err(error)) => {
                return Err(Box::new(context.report_failure(claim, error.clone())));
            }
        };
        match seen {
            Some(seen) if seen.whose(records) == Whose::Ours => Ok((seen.id, seen.commit)),
            seen => Err(Box::new(not_ours(claim, seen.as_ref(), records, context))),
        }
    };
    claims.iter().zip(records).zip(known).map(one).collect()
}

fn plan(
    at: usize,
    tip: ObjectId,
    commit: Option<Vec<u8>>,
    claim: &ClaimRef,
    records: &Records,
    context: &Context<'_>,
) -> Result<Plan, Box<ClaimReport>> {
    let by = context.stage.settings.release;
    let mark = match (by, commit.as_deref().map(Reading::of_commit)) {
        (ReleaseBy::Deletion, _) => None,
        (ReleaseBy::Mark, Some(Reading::Claim(record))) => Some(Mark::of(*record, context)),
        (ReleaseBy::Mark, _) => {
            let why = "the claim's own record cannot be read, so it cannot be marked as released";
            let verdict = Verdict::Unknown(why.into());
            return Err(Box::new(context.report(claim, verdict, None, records)));
        }
    };
    Ok(Plan { at, tip, commit, mark })
}

/// Makes the clone's records say what became of a release, and reports it.
fn ended(
    claim: &ClaimRef,
    records: &Records,
    (tip, commit): (ObjectId, Option<&[u8]>),
    outcome: Outcome,
    context: &Context<'_>,
) -> ClaimReport {
    let by = context.stage.settings.release;
    let seen = outcome.looked.seen();
    let tip = outcome.replaced.unwrap_or(tip);
    let mut report = context.report(claim, outcome.verdict.clone(), seen, records);
    match (&outcome.verdict, &outcome.looked) {
        (Verdict::Released, _) => {
            report.id = Some(tip);
            let token = commit.and_then(|commit| Reading::of_commit(commit).token());
            context.forget(claim, ended_with(records, token));
            if records.own.iter().any(|record| record.released(context.now).is_some()) {
                report.hints.push(context.may_still_land(claim));
            }
        }
        // Both the writing and the reading side say that ours is gone.
        (Verdict::Lost(_) | Verdict::Free, Looked::Absent | Looked::At(_)) => {
            context.forget(claim, disproved(records, seen));
            report = not_ours(claim, seen, records, context);
        }
        (Verdict::Refused(_), Looked::At(_)) => {
            report.hints.push(format!("{} is NOT released and still yours", claim.short()));
            report.hints.extend(no_deletion(by));
        }
        (Verdict::Unknown(_) | Verdict::Refused(_), looked) => {
            report.hints.extend(unanswered(claim, tip, looked, by));
            let command = context.command(&format!("release {}", claim.short()));
            report.hints.push(format!(
                "whether {} is released is not known; ask again: {command}",
                claim.short()
            ));
        }
        _ => {}
    }
    report
}

/// Releases whatever the claim is, if its id is the one that the user saw.
fn named(
    claim: &ClaimRef,
    expect: &Abbreviated,
    context: &mut Context<'_>,
) -> anyhow::Result<ClaimReport> {
    let records = context.records(Some(claim));
    let seen = match context.look(claim, &records) {
        Ok(Some(seen)) if seen.released().is_none() => seen,
        Ok(seen) => {
            let mut report = context.report(claim, Verdict::Free, seen.as_ref(), &records);
            report.hints.extend(context.elsewhere(claim));
            return Ok(report);
        }
        Err(error) => return Ok(context.report_failure(claim, error)),
    };
    if let Some(target) = &seen.symref {
        let why = format!(
            "it is a symbolic ref, and releasing it would change {target}; its server's owner can remove it"
        );
        return Ok(context.report(claim, Verdict::Refused(why), Some(&seen), &records));
    }
    if !expect.is(seen.id) {
        return Ok(moved(claim, expect, &seen, &records, context));
    }
    let by = context.stage.settings.release;
    let mark = match (by, &seen.commit) {
        (ReleaseBy::Deletion, _) => None,
        (ReleaseBy::Mark, Some(_)) => Some(Mark::over(claim, &seen, context)?),
        (ReleaseBy::Mark, None) => {
            let verdict = match &seen.record {
                Shown::NotRead(why) => Verdict::Unknown(format!(
                    "its commit could not be read, so it cannot be marked as released: {why}"
                )),
                Shown::Read(_) | Shown::Unasked => Verdict::Refused(
                    "it points at no commit, so it cannot be marked as released".into(),
                ),
            };
            return Ok(context.report(claim, verdict, Some(&seen), &records));
        }
    };
    let mark = mark.map(|mark| mark.draft(Some(seen.id)));
    let swap = Swap::of(Act::Clear, Some(seen.id), seen.commit.clone(), mark);
    let mut place = context.place(claim, &records);
    let outcome = swap::drive(&mut place, swap);
    let asked = place.asked.pop().flatten();
    Ok(match (&outcome.verdict, outcome.looked.seen()) {
        (Verdict::Moved(_), Some(now)) => moved(claim, expect, now, &records, context),
        (Verdict::Released, _) => {
            context.forget(claim, ended_with(&records, seen.token()));
            end_requests(&asked.map(|id| (claim, id)).into_iter().collect::<Vec<_>>(), context);
            let mut report = context.report(claim, Verdict::Released, Some(&seen), &records);
            report.mine = false;
            report
        }
        (verdict, _) => {
            let mut report = context.report(claim, verdict.clone(), Some(&seen), &records);
            match verdict {
                Verdict::Refused(_) => {
                    report.hints.push(format!("{} is NOT released", claim.short()));
                    report.hints.extend(no_deletion(by));
                }
                Verdict::Unknown(_) => {
                    report.hints.extend(unanswered(claim, seen.id, &outcome.looked, by))
                }
                _ => {}
            }
            report
        }
    })
}

/// The commit that says that its parent's claim is released, where the ref is not deleted.
pub struct Mark {
    record: Record,
    author: Person,
}

impl Mark {
    /// The end of a claim of ours.
    pub fn of(record: Record, context: &Context<'_>) -> Self {
        let author = Identity::gather(&context.stage.checkout, None).author;
        Self { record: Record { released_at: Some(context.now), ..record }, author }
    }

    /// The commit, as a child of `parent`.
    pub fn draft(&self, parent: Option<ObjectId>) -> Draft {
        Draft {
            message: self.record.message(),
            author: self.author.clone(),
            at: self.record.released_at.unwrap_or(self.record.claimed_at),
            parent,
        }
    }

    /// The end of somebody else's claim, in our name.
    fn over(claim: &ClaimRef, seen: &Seen, context: &Context<'_>) -> anyhow::Result<Self> {
        let settings = &context.stage.settings;
        let identity = Identity::gather(&context.stage.checkout, settings.who.as_deref());
        let (name, token) = (claim.short().into_owned(), identity::fresh_token()?);
        let record = Record {
            host: Some(identity.host),
            released_at: Some(context.now),
            took_over: Some(TookOver::of(seen.id, seen.record.reading())),
            ..Record::new(name, identity.holder, context.now, token)
        };
        Ok(Self { record, author: identity.author })
    }
}

/// Whoever was asked to stop, by the commits with these ids, has stopped.
fn end_requests(asked: &[(&ClaimRef, ObjectId)], context: &mut Context<'_>) {
    let mut requests = Vec::new();
    for (claim, id) in asked {
        // What it says matters only where it stays.
        let request = match context.stage.settings.release {
            ReleaseBy::Deletion => {
                Some(Request::at(*id, Tip::NotRead("it was not asked for".into())))
            }
            ReleaseBy::Mark => context.look_at_ask(claim).ok().flatten(),
        };
        requests.extend(request.map(|request| (*claim, request)));
    }
    ask::withdraw(&requests, context);
}

/// What to know where no answer came and the ref stood unchanged after that: a server that dies over a deletion does
/// so each time.
fn unanswered(claim: &ClaimRef, expected: ObjectId, looked: &Looked, by: ReleaseBy) -> Vec<String> {
    if looked.seen().is_none_or(|seen| seen.id != expected) {
        return Vec::new();
    }
    let not_yet = format!("{} was NOT released when it was looked at after that", claim.short());
    std::iter::once(not_yet).chain(no_deletion(by)).collect()
}

/// What helps on hosts that let nobody delete a ref.
fn no_deletion(by: ReleaseBy) -> Option<String> {
    (by == ReleaseBy::Deletion).then(|| {
        format!(
            "where a host lets nobody delete refs, 'git config {} mark' releases by a mark instead, for all who share the claims",
            settings::RELEASE
        )
    })
}

fn moved(
    claim: &ClaimRef,
    expect: &Abbreviated,
    seen: &Seen,
    records: &Records,
    context: &Context<'_>,
) -> ClaimReport {
    let mut report = context.report(claim, Verdict::Moved(seen.id), Some(seen), records);
    let id = seen.id.to_hex_with_len(12);
    report.hints.push(format!("its id is {id}, not {expect}, so nothing was released"));
    if report.mine {
        let command = context.command(&format!("release {}", claim.short()));
        report.hints.push(format!("this clone holds it and needs no id: {command}"));
    }
    report
}

/// The claim is another's, or there is none, or that cannot be told.
fn not_ours(
    claim: &ClaimRef,
    seen: Option<&Seen>,
    records: &Records,
    context: &Context<'_>,
) -> ClaimReport {
    let mut report = context.report(claim, look::verdict(seen, records), seen, records);
    if records.strangers {
        report.hints.extend(context.copied(claim, &report.verdict, records));
    } else if records.won() {
        report.hints.push("this clone had it; there is nothing of it left to release".into());
    } else {
        if !records.own.is_empty() {
            report.hints.push(context.may_still_land(claim));
        }
        if seen.is_none_or(|seen| seen.symref.is_none()) {
            report.hints.extend(context.clearing(claim, &report.verdict));
        }
    }
    report
}

/// The records that prove nothing any more, now that the claim with `token` is released.
fn ended_with(records: &Records, token: Option<Token>) -> impl Iterator<Item = &HeldRecord> {
    records.own.iter().filter(move |record| record.tip.is_some() || Some(record.token) == token)
}

/// The records that prove nothing any more, now that the ref holds what was `seen`: those of takes that were won.
/// Pending ones may be another process's, and still land.
fn disproved<'r>(
    records: &'r Records,
    seen: Option<&Seen>,
) -> impl Iterator<Item = &'r HeldRecord> {
    let alive = seen.and_then(Seen::token);
    records.own.iter().filter(move |record| record.tip.is_some() && Some(record.token) != alive)
}
