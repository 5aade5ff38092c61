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

use super::context::Context;
use crate::{
    claim::{claim_ref::ClaimRef, name::ClaimName, prefix::Prefix, record::Record},
    identity::{self, Identity},
    output::doctor::{Examination, Outcome, StepReport, Subject},
    remote::Way,
    settings::Settings,
    wire::{Deferred, Protocol},
};
use meaning::{BRANCHES, Finding, Findings, Health, Step, means};
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
    let record = record(context, &claim, &identity)?;
    let mut namespaces = vec![prefix.as_str()];
    namespaces.append(&mut usual(prefix));
    let mut found = Findings::default();
    let mut steps = Vec::new();
    let mut probe = Probe::new(context, deferred, claim.clone(), record, identity.author);
    for step in Step::all(*release).iter().copied() {
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
            finding = probe.try_out(step, &namespaces, identity::fresh_token()?);
            report.took = Some(begin.elapsed());
            let said = overheard.take();
            if deferred.signal().is_some() && finding.outcome() != Outcome::Ok {
                finding = Finding::Unknown("interrupted".into());
            } else {
                report.means = means(step, &finding, prefix, *release);
            }
            report.words = words(&finding, said);
        }
        report.outcome = finding.outcome();
        (audience.step)(&report);
        steps.push(report);
        found.add(step, finding);
    }
    let remains = probe.tidy_up(found.of(Step::Delete));
    let (listed, atomic) = (std::mem::take(&mut probe.listed), probe.moves_together);

    let beneath = |name: &[u8], prefix: &str| name.starts_with(prefix.as_bytes());
    let elsewhere = usual(prefix).into_iter().map(|other| {
        let there = |name: &[u8]| beneath(name, other) && !beneath(name, prefix.as_str());
        (other, listed.iter().filter(|listed| there(&listed.name)).count())
    });
    let leftovers = listed.iter().filter_map(|listed| {
        let left = ClaimRef::listed(prefix, listed.name.as_ref())?;
        let other = is_probe(&left.short()) && left != claim;
        other.then(|| (left.full().to_string(), clearing(context, &left, listed.id)))
    });
    let facts = Facts {
        hints: stage.to.hints.clone(),
        fetch: stage.to.fetch.clone(),
        url: stage.to.shown.clone(),
        prefix: prefix.clone(),
        release: *release,
        atomic,
        shown_late: late(found.of(Step::List)),
        gone_late: late(found.of(Step::Gone)),
        deletes: match found.of(Step::Delete).outcome() {
            Outcome::Ok => Some(true),
            Outcome::Failed => Some(false),
            Outcome::Unknown | Outcome::NotTried => None,
        },
        elsewhere: elsewhere.filter(|(_, count)| *count > 0).collect(),
        leftovers: leftovers.collect(),
    };
    let spoken = context.link.spoken();
    let health = Health::of(&found, *release);
    let (name, url) = &subject.remote;
    let sentence = health.sentence(name.as_ref().unwrap_or(url));
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
        sentence,
        reason: health.reason().map(str::to_owned),
        exit: health.exit(),
        signal: deferred.signal(),
        subject,
    })
}

/// Where claims usually are, but for where they are here.
fn usual(prefix: &Prefix) -> Vec<&'static str> {
    let mut usual = vec!["refs/claims/", BRANCHES];
    usual.retain(|usual| usual != &prefix.as_str());
    usual
}

fn transport(way: &Way) -> &str {
    match way {
        Way::Local(_) => "path",
        Way::Ssh(_) => "ssh",
        Way::Git(_) => "git",
        Way::Helper(name) => name,
    }
}

fn record(context: &Context<'_>, claim: &ClaimRef, identity: &Identity) -> anyhow::Result<Record> {
    Ok(Record {
        claim: claim.short().into_owned(),
        note: Some("a probe of 'git claim doctor', which removes it: nobody works on this".into()),
        holder: identity.holder.clone(),
        host: Some(identity.host.clone()),
        claimed_at: context.now,
        token: identity::fresh_token()?,
        renewed_at: None,
        released_at: None,
        heartbeat: None,
        took_over: None,
        reason: None,
        head: None,
        branch: None,
        job: identity.job.clone(),
        process: None,
    })
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
