//! `doctor`: can this remote, from here and now, hold claims?
//!
//! Everything that the verbs ask of a remote is tried on a ref that nobody else uses, with the user's own credentials
//! and over the same link. The ref is removed at any end, a signal included; where that cannot be done, the report says
//! so. Claims of others are not touched, and neither is the clone.

mod meaning;
mod probe;
mod warnings;

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use gix::ObjectId;

use super::{context::Context, look::Seen};
use crate::{
    claim::{claim_ref::ClaimRef, name::ClaimName, prefix::Prefix, record::Record},
    identity::{self, Identity},
    output::doctor::{Examination, Outcome, StepReport, Subject},
    remote::Way,
    settings::{ReleaseBy, Settings},
    wire::{Advertised, Deferred, Protocol},
};
use meaning::{Finding, Findings, Health, Step, means};
use probe::{NAME, Probe, clearing, is_probe};
use warnings::{Facts, warnings};

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
        elsewhere: elsewhere(prefix, &listed),
        leftovers: leftovers(&claim, &listed, context),
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

/// How many claims there are in the other usual namespaces.
fn elsewhere(prefix: &Prefix, listed: &[Advertised]) -> Vec<(Prefix, usize)> {
    let beneath = |name: &[u8], prefix: &Prefix| name.starts_with(prefix.as_str().as_bytes());
    let count = |other: &Prefix| {
        let there = |name: &[u8]| beneath(name, other) && !beneath(name, prefix);
        listed.iter().filter(|listed| there(&listed.name)).count()
    };
    let counted = prefix.others().into_iter().map(|other| {
        let count = count(&other);
        (other, count)
    });
    counted.filter(|(_, count)| *count > 0).collect()
}

/// Other probes than `own`, each with the command that clears it; but for those that are marked as released, which are
/// nobody's and stay.
fn leftovers(
    own: &ClaimRef,
    listed: &[Advertised],
    context: &mut Context<'_>,
) -> Vec<(String, String)> {
    let prefix = &context.stage.settings.prefix;
    let mut left: Vec<(ClaimRef, ObjectId)> = listed
        .iter()
        .filter_map(|listed| Some((ClaimRef::listed(prefix, listed.name.as_ref())?, listed.id)))
        .filter(|(claim, _)| is_probe(&claim.short()) && claim != own)
        .collect();
    if !left.is_empty() && context.link.list(&[prefix.as_str().as_bytes()]).is_ok() {
        let ids: Vec<ObjectId> = left.iter().map(|(_, id)| *id).collect();
        let mut tips = context.link.read(&ids).into_iter();
        left.retain(|(_, id)| {
            let tip = tips.next();
            let seen = tip.map(|tip| Seen::of(*id, tip));
            seen.is_none_or(|seen| seen.released().is_none())
        });
    }
    let named = |(claim, id): (ClaimRef, ObjectId)| {
        (claim.full().to_string(), clearing(context, &claim, id))
    };
    left.into_iter().map(named).collect()
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
