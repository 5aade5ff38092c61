//! `doctor`: can this remote, from here and now, hold claims?
//!
//! Everything that the verbs ask of a remote is tried on a ref that nobody else uses, with the user's own credentials
//! and over the same link. The ref is removed at any end, a signal included; where that cannot be done, the report says
//! so. Claims of others are not touched, and neither is the clone.

mod meaning;
mod probe;
mod warnings;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use gix::ObjectId;

use super::{context::Context, look::Seen};
use crate::{
    claim::{
        claim_ref::ClaimRef,
        name::ClaimName,
        prefix::Prefix,
        record::{Reading, Record},
    },
    identity::{self, Identity},
    output::doctor::{Clear, Examination, Outcome, Remains, StepReport, Subject},
    remote::Way,
    settings::{ReleaseBy, Settings},
    wire::{Advertised, Deferred, Protocol},
};
use meaning::{Finding, Findings, Health, Step, means};
use probe::{NAME, Probe, is_probe};
use warnings::{Facts, Leftover, warnings};

/// What the remote says, line by line, to be told with the step during which it said so.
#[derive(Clone, Default)]
pub struct Overheard(Arc<Mutex<Vec<String>>>);

impl Overheard {
    /// One more line.
    pub fn hear(&self, line: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(line.to_owned());
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Who wants to be told as it goes on.
pub struct Audience<'a> {
    /// Before the first step.
    pub begin: &'a dyn Fn(&Subject),
    /// After each step.
    pub step: &'a dyn Fn(&StepReport),
}

/// Examines the remote.
pub fn run(
    context: &mut Context<'_>,
    deferred: &Deferred,
    overheard: &Overheard,
    audience: &Audience<'_>,
) -> anyhow::Result<Examination> {
    let stage = context.stage;
    let Settings { prefix, release, .. } = &stage.settings;
    let mut digits = [0; 8];
    getrandom::fill(&mut digits)?;
    let name = format!("{NAME}{:016x}", u64::from_be_bytes(digits));
    let claim = ClaimRef::new(prefix, &ClaimName::parse(&name)?);
    let subject = Subject {
        remote: stage.remote(),
        transport: transport(&stage.to.way).to_owned(),
        probe: claim.full().to_string(),
    };
    (audience.begin)(&subject);

    let identity = Identity::gather(&stage.checkout, stage.settings.who.as_deref());
    let record = Record {
        note: Some("a probe of 'git claim doctor', which removes it: nobody works on this".into()),
        host: Some(identity.host),
        job: identity.job,
        ..Record::new(name, identity.holder, context.now, identity::fresh_token()?)
    };
    // Drawn beforehand: nothing between the first step and the tidying up may end this.
    let tokens = [identity::fresh_token()?, identity::fresh_token()?];
    let mut probe = Probe::new(context, deferred, claim.clone(), record, identity.author, tokens);
    let (steps, found) = tried(&mut probe, prefix, *release, deferred, overheard, audience);
    let remains = probe.tidy_up(found.of(Step::Delete), found.of(Step::Gone));
    let (listed, moves_together) = (std::mem::take(&mut probe.listed), probe.moves_together);
    let hidden = probe.hidden;
    let others = Others::of(&claim, &listed, context);

    let facts = Facts {
        hints: stage.to.hints.clone(),
        fetch: stage.to.fetch.clone(),
        url: stage.to.shown.clone(),
        prefix: prefix.clone(),
        release: *release,
        atomic: moves_together,
        shown_late: late(found.of(Step::List)),
        gone_late: late(found.of(Step::Gone)),
        deletes: match found.of(Step::Delete).outcome() {
            Outcome::Ok => Some(true),
            Outcome::Failed => Some(false),
            Outcome::Unknown | Outcome::NotTried => None,
        },
        marked: matches!(remains, Remains::Left { clear: Clear::Needless, .. }),
        hidden,
        elsewhere: others.elsewhere,
        leftovers: others.probes,
    };
    let spoken = context.link.spoken();
    let health = Health::of(&found, *release);
    let (name, url) = &subject.remote;
    Ok(Examination {
        steps,
        protocol: spoken.map(|spoken| match spoken.protocol {
            Protocol::Two => "v2",
            Protocol::Classic => "v0/v1",
            Protocol::Helper => "helper",
        }),
        hash: spoken.map(|spoken| spoken.hash.to_string()),
        warnings: warnings(&facts),
        remains,
        verdict: health.word(),
        sentence: health.sentence(name.as_ref().unwrap_or(url)),
        reason: health.reason().map(str::to_owned),
        exit: health.exit(),
        signal: deferred.signal(),
        subject,
    })
}

/// Tries the steps in their order, as far as they make sense and no signal came.
fn tried(
    probe: &mut Probe<'_, '_>,
    prefix: &Prefix,
    release: ReleaseBy,
    deferred: &Deferred,
    overheard: &Overheard,
    audience: &Audience<'_>,
) -> (Vec<StepReport>, Findings) {
    let others = prefix.others();
    let namespaces: Vec<&str> =
        std::iter::once(prefix).chain(&others).map(Prefix::as_str).collect();
    let (mut steps, mut found) = (Vec::new(), Findings::default());
    for step in Step::all(release).iter().copied() {
        let mut report = StepReport {
            name: step.name(),
            outcome: Outcome::NotTried,
            took: None,
            words: Vec::new(),
            means: None,
        };
        let mut finding = Finding::NotTried;
        if deferred.signal().is_none() && found.allow(step) {
            overheard.take();
            let begin = Instant::now();
            finding = probe.try_out(step, &namespaces);
            report.took = Some(begin.elapsed());
            let said = overheard.take();
            if deferred.signal().is_some() && finding.outcome() != Outcome::Ok {
                finding = Finding::Unknown("interrupted".into());
            } else {
                report.means = means(step, &finding, prefix, release);
            }
            report.words = words(&finding, said);
        }
        report.outcome = finding.outcome();
        (audience.step)(&report);
        steps.push(report);
        found.add(step, finding);
    }
    (steps, found)
}

/// What others have on the remote.
struct Others {
    /// How many claims there are in the other usual namespaces.
    elsewhere: Vec<(Prefix, usize)>,
    /// Probes that somebody holds.
    probes: Vec<Leftover>,
}

/// So many records are read at the most, to leave out those that are marked as released.
const MOST_READ: usize = 256;

impl Others {
    /// Those that were `listed` beside `own`. What is marked as released is nobody's, and stays.
    fn of(own: &ClaimRef, listed: &[Advertised], context: &mut Context<'_>) -> Self {
        let prefix = &context.stage.settings.prefix;
        let others = prefix.others();
        let of = |prefix: &Prefix| -> Vec<(ClaimRef, ObjectId)> {
            let claim = |listed: &Advertised| ClaimRef::listed(prefix, listed.name.as_ref());
            listed.iter().filter_map(|listed| Some((claim(listed)?, listed.id))).collect()
        };
        let mut probes = of(prefix);
        probes.retain(|(claim, _)| is_probe(&claim.short()) && claim != own);
        let mut elsewhere: Vec<(Prefix, Vec<(ClaimRef, ObjectId)>)> =
            others.into_iter().map(|other| (other.clone(), of(&other))).collect();
        for (_, claims) in &mut elsewhere {
            // One namespace may lie beneath another.
            claims.retain(|(claim, _)| {
                !is_probe(&claim.short()) && !claim.full().starts_with(prefix.as_str().as_bytes())
            });
        }

        let beyond = elsewhere.iter().flat_map(|(_, claims)| claims);
        let ids: Vec<ObjectId> = probes.iter().chain(beyond).map(|(_, id)| *id).collect();
        let seen = read(&ids, context);
        let held = |id: &ObjectId| seen.get(id).is_none_or(|seen| seen.released().is_none());
        let now = context.now;
        let age = |id: &ObjectId| match seen.get(id)?.record.reading()? {
            Reading::Claim(record) => Some(now - record.last_sign_of_life()),
            Reading::ByHand(_) | Reading::Unreadable(_) => None,
        };
        probes.retain(|(_, id)| held(id));
        let probes = probes.into_iter().map(|(claim, id)| Leftover {
            name: claim.full().to_string(),
            age: age(&id),
            clear: context.clear(&claim, id),
        });
        let counted = elsewhere
            .into_iter()
            .map(|(other, claims)| (other, claims.iter().filter(|(_, id)| held(id)).count()));
        Self {
            elsewhere: counted.filter(|(_, count)| *count > 0).collect(),
            probes: probes.collect(),
        }
    }
}

/// What is at `ids`, as far as they can be read and are not too many.
fn read(ids: &[ObjectId], context: &mut Context<'_>) -> HashMap<ObjectId, Seen> {
    let prefix = &context.stage.settings.prefix;
    let others = prefix.others();
    let prefixes: Vec<&[u8]> =
        std::iter::once(prefix).chain(&others).map(|prefix| prefix.as_str().as_bytes()).collect();
    let ids = &ids[..ids.len().min(MOST_READ)];
    if ids.is_empty() || context.link.list(&prefixes).is_err() {
        return HashMap::new();
    }
    let tips = context.link.read(ids);
    ids.iter().zip(tips).map(|(id, tip)| (*id, Seen::of(*id, tip))).collect()
}

fn transport(way: &Way) -> &str {
    match way {
        Way::Local(_) => "path",
        Way::Ssh(_) => "ssh",
        Way::Git(_) => "git",
        Way::Helper(name) => name,
    }
}

/// What was found, in the remote's words, then what it said besides.
fn words(finding: &Finding, said: Vec<String>) -> Vec<String> {
    let mut words: Vec<String> =
        finding.words().unwrap_or_default().lines().map(str::to_owned).collect();
    for line in said {
        if !words.contains(&line) {
            words.push(line);
        }
    }
    words
}

fn late(finding: &Finding) -> Option<Duration> {
    match finding {
        Finding::Late(late) => Some(*late),
        _ => None,
    }
}
