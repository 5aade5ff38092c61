//! A verdict, told to people ([`human`]) or to programs ([`json`]).
//!
//! Both tell the same [`Report`]; neither decides anything.

pub mod doctor;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;
mod history;
pub mod human;
pub mod json;
pub mod stale;
pub mod ui;

use chrono::{DateTime, Utc};
use gix::ObjectId;

use crate::{
    claim::{
        chain::Chain,
        claim_ref::ClaimRef,
        record::{Reading, Record},
    },
    verdict::{Exit, Verdict},
};
use stale::{Assessment, Survey};
use ui::Ui;

/// All that one invocation has to say.
#[derive(Debug)]
#[must_use]
pub struct Report {
    /// The verb.
    pub command: &'static str,
    /// The remote's name, if it has one, and its URL without credentials.
    pub remote: (Option<String>, String),
    /// One entry for each claim in question.
    pub claims: Vec<ClaimReport>,
    /// How much of a record is wanted.
    pub detail: Detail,
    /// The exit status, where it is not the answer's but that of a command that ran.
    pub code: Option<u8>,
}

/// How much people are shown of each claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Detail {
    /// A verdict for each claim.
    Verdicts,
    /// A row for each claim, and their number.
    Table,
    /// All there is.
    Whole,
    /// What a person needs to decide about each claim, and how they were judged.
    Stale(Box<Survey>),
}

/// What there is to say about one claim.
#[derive(Debug, Clone)]
pub struct ClaimReport {
    /// The claim.
    pub claim: ClaimRef,
    /// The answer.
    pub verdict: Verdict,
    /// What the ref holds, as far as we know.
    pub id: Option<ObjectId>,
    /// Whether this clone can prove that it took the claim.
    pub mine: bool,
    /// The record at `id`.
    pub record: Shown,
    /// Who asks its holder to stop, and why.
    pub asked: Option<Box<Record>>,
    /// The record of the claim that this one took over just now.
    pub displaced: Option<Shown>,
    /// How it came to that.
    pub history: History,
    /// The next commands, for people.
    pub hints: Vec<String>,
    /// Whether it should be looked at, where that was the question.
    pub assessment: Option<Box<Assessment>>,
}

/// A record, as far as it is known.
#[derive(Debug, Clone)]
pub enum Shown {
    /// It was read.
    Read(Reading),
    /// It was asked for in vain.
    NotRead(String),
    /// It was not asked for.
    Unasked,
}

/// What happened to a claim, as far as it is known.
#[derive(Debug, Clone, Default)]
pub enum History {
    /// It was read, or needed no reading.
    Read(Chain),
    /// It was asked for in vain.
    NotRead(String),
    /// It was not asked for.
    #[default]
    Unasked,
}

impl Shown {
    /// The record, if it was read.
    pub fn reading(&self) -> Option<&Reading> {
        match self {
            Self::Read(reading) => Some(reading),
            Self::NotRead(_) | Self::Unasked => None,
        }
    }
}

/// `2026-11-30 16:34:00 UTC`
fn moment(at: DateTime<Utc>) -> String {
    format!("{} UTC", at.format("%Y-%m-%d %H:%M:%S"))
}

impl Report {
    /// The answer to the whole: that of the claim which most needs attention.
    pub fn exit(&self) -> Exit {
        if let Detail::Stale(survey) = &self.detail
            && survey.exit_code
            && self.stale() > 0
        {
            return Exit::No;
        }
        self.claims.iter().map(|claim| claim.verdict.exit()).fold(Exit::Yes, Exit::worse)
    }

    /// The verdict whose exit status that is.
    pub fn word(&self) -> &'static str {
        let exit = self.exit();
        match self.detail {
            Detail::Table => Verdict::Listed.word(),
            Detail::Stale(_) if self.stale() > 0 => "stale",
            Detail::Stale(_) => "fresh",
            Detail::Verdicts | Detail::Whole => self
                .claims
                .iter()
                .rev()
                .find(|claim| claim.verdict.exit() == exit)
                .map_or(Verdict::Released.word(), |claim| claim.verdict.word()),
        }
    }

    /// How many of the claims should be looked at.
    pub fn stale(&self) -> usize {
        let assessed = self.claims.iter().filter_map(|claim| claim.assessment.as_ref());
        assessed.filter(|assessment| !assessment.findings.is_empty()).count()
    }

    /// Tells it in the way that `ui` was asked for.
    pub fn tell(&self, ui: &Ui, now: DateTime<Utc>) -> Exit {
        if ui.json() {
            ui.result_of(|| json::pieces(self));
        } else {
            human::tell(self, ui, now);
        }
        if ui.unwritten() { Exit::Failure } else { self.exit() }
    }
}
