//! What `stale` adds to a report: why a claim should be looked at, what is known for the decision, and the commands.
//!
//! Facts only. Nothing here says of anybody that they are gone, and nothing is advised: the person who reads decides,
//! and pastes one of two commands that name exactly the commit that was reported.

use chrono::{DateTime, Utc};
use gix::ObjectId;
use serde_json::{Map, Value, json};

use super::{
    ClaimReport, Report,
    human::{facts, moment, remote, short},
    json::time,
    ui::{Tone, Ui},
};
use crate::{
    claim::{
        age,
        claim_ref::ClaimRef,
        record::Reading,
        staleness::{Finding, Limits},
    },
    escape::line,
    process,
};

/// What there is to say about all of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Survey {
    /// What was still in order.
    pub limits: Limits,
    /// How many claims were judged.
    pub looked_at: usize,
    /// What was asked for and is not claimed.
    pub not_claimed: Vec<ClaimRef>,
    /// Whether it was known which issues are closed.
    pub knows_closed: bool,
    /// Whether the exit status says that something is stale.
    pub exit_code: bool,
}

/// What there is to say about one.
#[derive(Debug, Clone)]
pub struct Assessment {
    /// Why it should be looked at; nothing for one that is in order.
    pub findings: Vec<Finding>,
    /// When the holder acted on it last, by the holder's clock.
    pub last_sign_of_life: Option<DateTime<Utc>>,
    /// The recorded branch on the remote.
    pub branch: Option<BranchNow>,
    /// The recorded process, where this is the host that it ran on.
    pub process: Option<process::State>,
    /// The command that clears it, or why there is none.
    pub clear: Result<String, &'static str>,
    /// The command that takes it over.
    pub take_over: Option<String>,
}

/// A branch on the remote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BranchNow {
    /// It is not there.
    Absent,
    /// It is there.
    At {
        /// Its commit.
        id: ObjectId,
        /// Whether that is the commit that the work started from; `None` if none is recorded.
        is_recorded_head: Option<bool>,
    },
    /// It could not be asked for, and why.
    Unknown(String),
}

/// So many names of what is not claimed are listed to people.
const FEW: usize = 10;

/// Tells all of `report` to people.
pub fn tell(report: &Report, survey: &Survey, ui: &Ui, now: DateTime<Utc>) {
    for claim in &report.claims {
        let Some(assessment) = &claim.assessment else { continue };
        ui.result(&format!(
            "{} is {}",
            line(&claim.claim.short()),
            state(assessment, survey, ui, now)
        ));
        for (label, text) in evidence(claim, assessment, now) {
            ui.result(&format!("  {label:<14} {text}"));
        }
        match &assessment.clear {
            Ok(command) => ui.result(&format!("  {:<14} {}", "clear it:", line(command))),
            Err(why) => ui.result(&format!("  {:<14} ({why})", "clear it:")),
        }
        if let Some(command) = &assessment.take_over {
            ui.result(&format!("  {:<14} {}", "take it over:", line(command)));
        }
    }
    if !survey.not_claimed.is_empty() {
        let names = survey.not_claimed.iter().take(FEW).map(ClaimRef::short);
        let mut text = names.map(|name| line(&name).into_owned()).collect::<Vec<_>>().join(", ");
        if let Some(more) = survey.not_claimed.len().checked_sub(FEW).filter(|more| *more > 0) {
            text.push_str(&format!(" and {more} more"));
        }
        ui.result(&format!("not claimed: {text}"));
    }
    ui.result(&verdict(report, survey));
}

/// `old: no sign of life for 3 days (limit: 24 hours)`, and whatever else there is.
fn state(assessment: &Assessment, survey: &Survey, ui: &Ui, now: DateTime<Utc>) -> String {
    let limits = &survey.limits;
    let told = assessment.findings.iter().map(|finding| {
        let (word, fact) = match finding {
            Finding::Unreadable(why) => ("unreadable", line(why).into_owned()),
            Finding::ClockAhead { by } => (
                "stamped in the future",
                format!(
                    "{} ahead of the clock here (limit: {})",
                    age::span(*by),
                    age::exactly(limits.ahead)
                ),
            ),
            Finding::Silent { promised, missed } => (
                "silent",
                format!(
                    "{missed} promised renewals missed, one every {promised} s (limit: {})",
                    limits.missed
                ),
            ),
            Finding::Old { quiet_for } => (
                "old",
                format!(
                    "no sign of life for {} (limit: {})",
                    age::span(*quiet_for),
                    age::exactly(limits.older_than)
                ),
            ),
            Finding::IssueClosed => ("still claimed", "issue closed".to_owned()),
        };
        format!("{}: {fact}", ui.paint(Tone::Doubtful, word))
    });
    let told: Vec<String> = told.collect();
    if !told.is_empty() {
        return told.join("; ");
    }
    let fresh = ui.paint(Tone::Good, "fresh");
    match assessment.last_sign_of_life {
        Some(at) => format!("{fresh}: last sign of life {}", age::ago(at, now)),
        None => fresh,
    }
}

/// What is known for the decision, each with its label, safe to show.
fn evidence(
    claim: &ClaimReport,
    assessment: &Assessment,
    now: DateTime<Utc>,
) -> Vec<(&'static str, String)> {
    let recorded = match claim.record.reading() {
        Some(Reading::Claim(record)) => Some(record),
        _ => None,
    };
    let mut evidence = Vec::new();
    for (label, text) in facts(claim, now) {
        match label {
            "claim" | "renewed" => {}
            // It stands beside the branch.
            "head" if assessment.branch.is_some() => {}
            "since" => {
                evidence.push((label, text));
                evidence
                    .extend(assessment.last_sign_of_life.map(|at| ("last sign", moment(at, now))));
            }
            "branch" => {
                let head = recorded.and_then(|record| record.head.as_deref());
                let now = assessment.branch.as_ref().map(|branch| branch_now(branch, head));
                evidence
                    .push((label, [text].into_iter().chain(now).collect::<Vec<_>>().join(": ")));
            }
            "process" => {
                let pid =
                    recorded.and_then(|record| record.process.as_ref()).map(|process| process.pid);
                let told = match (assessment.process, pid) {
                    (Some(state), Some(pid)) => process_now(state, pid),
                    _ => text,
                };
                evidence.push((label, told));
            }
            _ => evidence.push((label, text)),
        }
    }
    evidence
}

fn branch_now(branch: &BranchNow, recorded_head: Option<&str>) -> String {
    match branch {
        BranchNow::Absent => "not on the remote".into(),
        BranchNow::Unknown(why) => {
            format!("whether it is on the remote could not be told: {}", line(why))
        }
        BranchNow::At { id, is_recorded_head } => {
            let head = match (is_recorded_head, recorded_head) {
                (Some(true), _) => "the recorded head".to_owned(),
                (Some(false), Some(head)) => {
                    let beginning: String = head.chars().take(12).collect();
                    format!("not the recorded head ({})", line(&beginning))
                }
                _ => "no head recorded".to_owned(),
            };
            format!("on the remote at {}, {head}", short(*id))
        }
    }
}

fn process_now(state: process::State, pid: u32) -> String {
    match state {
        process::State::Running => format!("{pid} runs on this host"),
        process::State::Ended => format!("{pid} has ended on this host"),
        process::State::Reused => {
            format!("{pid} has ended on this host: {pid} is another process now")
        }
        process::State::OtherBoot => {
            format!("{pid}; this host was restarted since, or another has its name")
        }
        process::State::Unknown => format!("{pid} on this host; whether it runs cannot be told"),
    }
}

/// The last line: how many of how many, by which limits.
fn verdict(report: &Report, survey: &Survey) -> String {
    let Limits { older_than, missed, ahead } = &survey.limits;
    let count = report.stale();
    let number = if count == 0 { "none".to_owned() } else { count.to_string() };
    let claims = if survey.looked_at == 1 { "claim" } else { "claims" };
    let are = if count > 1 { "are" } else { "is" };
    let closed = if survey.knows_closed { ", or closed" } else { "" };
    format!(
        "{number} of {} {claims} on {} {are} stale (limits: {} without a sign of life, {missed} promised renewals, {} ahead{closed})",
        survey.looked_at,
        remote(report),
        age::exactly(*older_than),
        age::exactly(*ahead),
    )
}

/// The fields that `--json` has for all of them.
pub fn fields(survey: &Survey, object: &mut Map<String, Value>) {
    let Limits { older_than, missed, ahead } = &survey.limits;
    let names: Vec<_> = survey.not_claimed.iter().map(ClaimRef::short).collect();
    object.insert("looked_at".into(), survey.looked_at.into());
    object.insert("not_claimed".into(), json!(names));
    object.insert(
        "limits".into(),
        json!({ "older_than": older_than.num_seconds(), "missed": missed, "ahead": ahead.num_seconds() }),
    );
}

/// The fields that `--json` has for one.
pub fn claim_fields(claim: &ClaimReport, assessment: &Assessment, object: &mut Map<String, Value>) {
    let process = match claim.record.reading() {
        Some(Reading::Claim(record)) => record.process.as_ref(),
        _ => None,
    };
    let branch = assessment.branch.as_ref().map(|branch| match branch {
        BranchNow::Absent => json!({ "exists": false, "id": null, "is_recorded_head": null }),
        BranchNow::At { id, is_recorded_head } => {
            json!({ "exists": true, "id": id.to_string(), "is_recorded_head": is_recorded_head })
        }
        BranchNow::Unknown(_) => json!({ "exists": null, "id": null, "is_recorded_head": null }),
    });
    let mut put = |key: &str, value: Value| object.insert(key.to_owned(), value);
    put("state", assessment.findings.iter().map(Finding::word).collect());
    put("last_sign_of_life", assessment.last_sign_of_life.map(time).into());
    put("branch_now", branch.into());
    put(
        "process",
        process
            .map(|process| {
                let state = assessment.process.unwrap_or(process::State::Unknown).word();
                json!({ "pid": process.pid, "state": state })
            })
            .into(),
    );
    put(
        "commands",
        json!({ "clear": assessment.clear.as_ref().ok(), "take_over": assessment.take_over }),
    );
}
