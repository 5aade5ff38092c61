//! All that is told of a claim whose commit is whatever somebody pushed (see [`crate::fuzzing`]).

use chrono::{DateTime, Utc};
use gix::ObjectId;

use super::{ClaimReport, Detail, History, Report, Shown, human, json};
use crate::{
    claim::{chain::Chain, claim_ref::ClaimRef, record::Reading},
    verdict::Verdict,
};

/// What people are shown, line by line, and what programs are given.
pub(crate) fn told(
    claim: ClaimRef,
    id: ObjectId,
    reading: Reading,
    chain: Chain,
    now: DateTime<Utc>,
) -> (Vec<String>, String) {
    let asked = match &reading {
        Reading::Claim(record) => Some(record.clone()),
        Reading::ByHand(_) | Reading::Unreadable(_) => None,
    };
    let claim = ClaimReport {
        claim,
        verdict: Verdict::Shown(id),
        id: Some(id),
        mine: false,
        record: Shown::Read(reading.clone()),
        asked,
        displaced: Some(Shown::Read(reading)),
        history: History::Read(chain),
        hints: Vec::new(),
        assessment: None,
    };
    let mut lines: Vec<String> =
        human::facts(&claim, now).into_iter().map(|(_, text)| text).collect();
    lines.extend(human::row(&claim, now));
    let report = Report {
        command: "show",
        remote: (None, "/srv/it.git".into()),
        claims: vec![claim],
        detail: Detail::Whole,
        code: None,
    };
    (lines, json::pieces(&report).collect())
}
