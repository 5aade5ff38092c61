//! `stale`: which claims a person should look at, with the evidence and the commands. It reads, and nothing else.
//!
//! One connection, whatever the number of claims: the listing, the records behind it and the recorded work branches are
//! asked for in one conversation.

use std::{
    collections::{BTreeSet, HashMap},
    fs::File,
    io::{self, BufRead, BufReader},
};

use chrono::{DateTime, TimeDelta, Utc};
use gix::{
    ObjectId,
    bstr::{BString, ByteSlice},
};

use super::{
    context::Context,
    list::NotListed,
    look::{Request, Seen},
    names::{self, INPUT, ListError},
};
use crate::{
    claim::{
        claim_ref::ClaimRef,
        prefix::Prefix,
        record::{Reading, Record},
        staleness::{self, Finding, Limits},
    },
    cli, escape, identity,
    output::{
        ClaimReport, Detail, Shown,
        stale::{Assessment, BranchNow, Survey},
    },
    process,
    settings::ReleaseBy,
    verdict::Verdict,
    wire::{Advertised, LinkError},
};

/// Reports the claims that are stale; with `--all`, every claim.
pub fn run(
    args: &cli::Stale,
    context: &mut Context<'_>,
) -> anyhow::Result<(Vec<ClaimReport>, Detail)> {
    let settings = &context.stage.settings;
    let prefix = settings.prefix.clone();
    // A year fits.
    let older_than = TimeDelta::from_std(settings.stale_after).unwrap_or(TimeDelta::MAX);
    let limits = Limits::older_than(older_than);
    // Before anything is connected: whoever writes to our standard input may take its time.
    let Lists { names, closed } = Lists::read(args, &prefix)?;

    let found = listed(context, &prefix, names.as_ref()).map_err(NotListed)?;
    let now = Utc::now();
    let mut claims = judged(found, closed.as_ref(), now, &limits, context);
    let there: BTreeSet<&ClaimRef> = claims.iter().map(|judged| &judged.report.claim).collect();
    let not_claimed =
        names.iter().flatten().filter(|name| !there.contains(name)).cloned().collect();
    let survey = Survey {
        limits,
        looked_at: claims.len(),
        not_claimed,
        knows_closed: closed.is_some(),
        exit_code: args.exit_code,
    };
    claims.retain(|judged| args.all || !judged.assessment.findings.is_empty());
    claims.sort_by_cached_key(|judged| {
        let at = judged.assessment.last_sign_of_life;
        (at.is_none(), at, judged.report.claim.clone())
    });
    ask_for_branches(&mut claims, context);
    let reports = claims.into_iter().map(|Judged { report, assessment }| ClaimReport {
        assessment: Some(Box::new(assessment)),
        ..report
    });
    Ok((reports.collect(), Detail::Stale(Box::new(survey))))
}

/// What the user names in lists.
struct Lists {
    /// The claims to look at, if not all.
    names: Option<BTreeSet<ClaimRef>>,
    /// The issues that are closed, if that is known.
    closed: Option<BTreeSet<ClaimRef>>,
}

impl Lists {
    fn read(args: &cli::Stale, prefix: &Prefix) -> anyhow::Result<Self> {
        let of_names = args.names.iter().filter(|name| *name == INPUT).count();
        let of_closed = args.closed.as_ref().is_some_and(|file| file.as_os_str() == INPUT);
        if of_names + usize::from(of_closed) > 1 {
            return Err(ListError::Twice.into());
        }
        let parse = |name: &str| ClaimRef::typed(prefix, name);
        let mut names = (!args.names.is_empty()).then(BTreeSet::new);
        if let Some(names) = &mut names {
            for name in args.names.iter().filter(|name| *name != INPUT) {
                names.insert(parse(name)?);
            }
            if of_names > 0 {
                names.extend(names::from_input(parse)?);
            }
        }
        let mut closed = args.closed.is_some().then(BTreeSet::new);
        if let (Some(path), Some(closed)) = (&args.closed, &mut closed) {
            let (list, input): (_, Box<dyn BufRead>) = if of_closed {
                (names::STANDARD_INPUT.to_owned(), Box::new(io::stdin().lock()))
            } else {
                let list = format!("--closed {}", path.display());
                match File::open(path) {
                    Ok(file) => (list, Box::new(BufReader::new(file))),
                    Err(error) => return Err(ListError::Unread { list, error }.into()),
                }
            };
            let keep = |claim| closed.insert(claim);
            names::each(input, &list, names::MOST_COMPARED, parse, keep)?;
        }
        Ok(Self { names, closed })
    }
}

/// The claims on the remote that are to be looked at, each with what its ref holds.
fn listed(
    context: &mut Context<'_>,
    prefix: &Prefix,
    names: Option<&BTreeSet<ClaimRef>>,
) -> Result<Vec<(ClaimRef, Seen)>, LinkError> {
    let asking = prefix.asked();
    let others = context.others();
    let places: Vec<&[u8]> =
        others.iter().chain([prefix, &asking]).map(|place| place.as_str().as_bytes()).collect();
    let refs = context.link.list(&places)?;
    context.tell_of_others(&refs);
    let requests: HashMap<BString, ObjectId> = refs
        .iter()
        .filter(|found| found.name.starts_with(asking.as_str().as_bytes()))
        .map(|found| (found.name.clone(), found.id))
        .collect();
    let claims: Vec<(ClaimRef, Advertised)> = refs
        .into_iter()
        .filter_map(|found| Some((ClaimRef::listed(prefix, found.name.as_ref())?, found)))
        .filter(|(claim, _)| names.is_none_or(|names| names.contains(claim)))
        .collect();
    let request_to = |claim: &ClaimRef| requests.get(claim.asked().full()).copied();
    let records = context.records(None);
    let of_interest: Vec<ObjectId> = claims
        .iter()
        .flat_map(|(claim, found)| [Some(found.id), request_to(claim)])
        .flatten()
        .collect();
    let found = context.records_at(&of_interest, &records.own, true);
    let record = |id| found.get(&id).cloned().unwrap_or(Shown::Unasked);
    let seen = claims.into_iter().map(|(claim, Advertised { id, symref, .. })| {
        let request =
            request_to(&claim).map(|id| Box::new(Request { id, record: record(id), commit: None }));
        let symref = symref.map(|target| target.to_string());
        (claim, Seen { id, record: record(id), commit: None, symref, request })
    });
    Ok(seen.collect())
}

/// A claim, and what there is to say about it.
struct Judged {
    report: ClaimReport,
    assessment: Assessment,
}

/// Judges them. Those that were given back by a mark are nobody's any more, and left out.
fn judged(
    found: Vec<(ClaimRef, Seen)>,
    closed: Option<&BTreeSet<ClaimRef>>,
    now: DateTime<Utc>,
    limits: &Limits,
    context: &Context<'_>,
) -> Vec<Judged> {
    let records = context.by_claim(found.iter().map(|(claim, _)| claim));
    let host = identity::host();
    let held = found
        .into_iter()
        .filter(|(_, seen)| seen.record.reading().and_then(Reading::released).is_none());
    let judged = held.map(|(claim, seen)| {
        let report = context.report(&claim, Verdict::Listed, Some(&seen), &records.of(&claim));
        let reading = match &seen.record {
            Shown::Read(reading) => Ok(reading),
            Shown::NotRead(why) => Err(why.as_str()),
            Shown::Unasked => Err("it was not asked for"),
        };
        let is_closed = closed.is_some_and(|closed| closed.contains(&claim));
        let here = record(&report).filter(|record| record.host.as_deref() == Some(host.as_str()));
        let process = here.and_then(|record| record.process.as_ref()).map(process::state);
        let findings = staleness::judge(reading, is_closed, now, limits);
        let assessment = Assessment {
            last_sign_of_life: reading.ok().and_then(staleness::last_sign_of_life),
            branch: None,
            process,
            clear: clear(&claim, &seen, report.mine, context),
            take_over: take_over(&claim, &seen, report.mine, &findings, context),
            findings,
        };
        Judged { report, assessment }
    });
    judged.collect()
}

fn record(report: &ClaimReport) -> Option<&Record> {
    match report.record.reading() {
        Some(Reading::Claim(record)) => Some(record),
        _ => None,
    }
}

/// The command that clears the claim, and nothing but what was seen there.
fn clear(
    claim: &ClaimRef,
    seen: &Seen,
    mine: bool,
    context: &Context<'_>,
) -> Result<String, &'static str> {
    if seen.symref.is_some() {
        return Err("it is a symbolic ref, which its server's owner can remove");
    }
    let unread = matches!(seen.record, Shown::NotRead(_));
    if context.stage.settings.release == ReleaseBy::Mark && unread {
        return Err("no mark can be put on what was not read");
    }
    let name = match claim.name() {
        Some(name) => name.to_string(),
        // Git's rules allow what a shell acts on.
        None => match claim.full().to_str() {
            Ok(full) if !full.chars().any(escape::acts) => {
                gix::quote::single(full.into()).to_string()
            }
            _ => return Err("its name cannot be written in a line"),
        },
    };
    Ok(if mine {
        context.command(&format!("release {name}"))
    } else {
        context.command(&format!("release {name} --expect {}", seen.id.to_hex_with_len(12)))
    })
}

/// The command that takes the claim over; none for one of this clone, nor where there is no record of a holder to displace.
fn take_over(
    claim: &ClaimRef,
    seen: &Seen,
    mine: bool,
    findings: &[Finding],
    context: &Context<'_>,
) -> Option<String> {
    let holder = seen.record.reading().and_then(Reading::holder);
    if mine || seen.symref.is_some() || holder.is_none() {
        return None;
    }
    let id = seen.id.to_hex_with_len(12);
    // For one that is in order there is a reason only if somebody has it.
    let reason = findings.first().map_or_else(|| "…".to_owned(), Finding::reason);
    Some(context.command(&format!("take {} --over {id} --reason '{reason}'", claim.name()?)))
}

/// Asks where the recorded branches are now, in the same conversation.
fn ask_for_branches(claims: &mut [Judged], context: &mut Context<'_>) {
    let branch_of =
        |judged: &Judged| record(&judged.report)?.branch.as_deref().and_then(branch_ref);
    let wanted: BTreeSet<BString> = claims.iter().filter_map(branch_of).collect();
    if wanted.is_empty() {
        return;
    }
    let names: Vec<&[u8]> = wanted.iter().map(|name| name.as_bytes()).collect();
    let found = context.link.find(&names).map(|refs| {
        refs.into_iter().map(|found| (found.name, found.id)).collect::<HashMap<_, _>>()
    });
    for judged in claims {
        let Some(name) = branch_of(judged) else { continue };
        judged.assessment.branch = Some(match &found {
            Err(error) => BranchNow::Unknown(error.to_string()),
            Ok(refs) => match refs.get(&name) {
                None => BranchNow::Absent,
                Some(id) => {
                    let head = record(&judged.report).and_then(|record| record.head.as_deref());
                    let is_recorded_head = head.map(|head| {
                        ObjectId::from_hex(head.as_bytes()).is_ok_and(|head| head == *id)
                    });
                    BranchNow::At { id: *id, is_recorded_head }
                }
            },
        });
    }
}

/// The ref that somebody means by `branch`; nothing where that could be no ref.
fn branch_ref(branch: &str) -> Option<BString> {
    let full: BString = if branch.starts_with("refs/") {
        branch.into()
    } else {
        format!("refs/heads/{branch}").into()
    };
    gix::validate::reference::name(full.as_bstr()).is_ok().then_some(full)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_branch_is_a_ref_and_nothing_that_a_stranger_makes_of_it() {
        for (branch, full) in [
            ("fix/17", Some("refs/heads/fix/17")),
            ("refs/changes/17/1", Some("refs/changes/17/1")),
            ("refs/", None),
            ("", None),
            ("a b", None),
            ("../x", None),
            ("a\nref-prefix refs/", None),
        ] {
            assert_eq!(branch_ref(branch), full.map(Into::into), "{branch:?}");
        }
    }
}
