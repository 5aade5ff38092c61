//! The one object that `--json` prints, documented in the man page under OUTPUT.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use super::{ClaimReport, Detail, History, Report, Shown, stale};
use crate::{
    claim::{
        chain::{Event, What},
        record::{Person, Reading, Record, TookOver},
    },
    escape,
    verdict::{Exit, Verdict},
};

/// The version of the object's form; a field may be added without a new one.
pub(super) const VERSION: u32 = 1;

/// The report as one line of JSON, in pieces: of a hundred thousand claims, all that is said together fills the memory.
pub fn pieces(report: &Report) -> impl Iterator<Item = String> {
    let whole = around(report);
    // Inside of a string its quotes would be escaped.
    let (before, after) = whole.split_once(NO_CLAIMS).unwrap_or((&whole, ""));
    let begin = format!("{before}\"claims\":[");
    let claims = report.claims.iter().enumerate().map(|(at, one)| {
        let comma = if at == 0 { "" } else { "," };
        format!("{comma}{}", safe(&claim(one)))
    });
    std::iter::once(begin).chain(claims).chain(std::iter::once(format!("]{after}")))
}

/// Where the claims go.
const NO_CLAIMS: &str = "\"claims\":[]";

/// All but the claims.
fn around(report: &Report) -> String {
    let reason = report.claims.iter().find_map(|claim| reason(&claim.verdict));
    let mut object = json!({
        "version": VERSION,
        "command": report.command,
        "verdict": report.word(),
        "exit": report.code.unwrap_or_else(|| report.exit().code()),
        "remote": shown(&report.remote),
        "claims": [],
        "reason": reason,
    });
    if let (Detail::Stale(survey), Some(object)) = (&report.detail, object.as_object_mut()) {
        stale::fields(survey, object);
    }
    safe(&object)
}

/// An error that kept a verdict about any claim from being sought, in the same form. `word` stands for the verdict.
pub fn error(
    command: Option<&str>,
    word: &str,
    exit: Exit,
    remote: Option<&(Option<String>, String)>,
    reason: &str,
) -> String {
    safe(&json!({
        "version": VERSION,
        "command": command,
        "verdict": word,
        "exit": exit.code(),
        "remote": remote.map(shown),
        "claims": [],
        "reason": reason,
    }))
}

pub(super) fn shown((name, url): &(Option<String>, String)) -> Value {
    json!({ "name": name, "url": url })
}

/// Valid JSON that a terminal can be shown: what acts on one and is not escaped by JSON's own rules (C1 controls, marks
/// that reorder text) occurs inside of strings only, where it can be written as `\u…`.
pub(super) fn safe(value: &Value) -> String {
    let mut safe = String::new();
    for character in value.to_string().chars() {
        if escape::acts(character) {
            let mut units = [0; 2];
            for unit in character.encode_utf16(&mut units) {
                let _ = write!(safe, "\\u{unit:04x}");
            }
        } else {
            safe.push(character);
        }
    }
    safe
}

fn reason(verdict: &Verdict) -> Option<&str> {
    match verdict {
        Verdict::Refused(reason) | Verdict::Unknown(reason) => Some(reason),
        _ => None,
    }
}

fn claim(report: &ClaimReport) -> Value {
    let mut object = Map::new();
    let mut put = |key: &str, value: Value| object.insert(key.to_owned(), value);
    put("name", report.claim.short().into());
    put("ref", report.claim.full().to_string().into());
    put("id", report.id.map(|id| id.to_string()).into());
    put("mine", report.mine.into());
    put("verdict", report.verdict.word().into());
    put("reason", reason(&report.verdict).into());
    put("record", kind(&report.record).into());
    let (mut holder, mut since, mut subject, mut unreadable) =
        (Value::Null, Value::Null, Value::Null, Value::Null);
    let mut record = None;
    match &report.record {
        Shown::Read(Reading::Claim(read)) => {
            holder = person(&read.holder);
            since = time(read.claimed_at);
            record = Some(read);
        }
        Shown::Read(Reading::ByHand(by_hand)) => {
            holder = person(&by_hand.who);
            since = by_hand.at.map(time).into();
            subject = by_hand.subject.clone().into();
        }
        Shown::Read(Reading::Unreadable(why)) | Shown::NotRead(why) => {
            unreadable = why.clone().into()
        }
        Shown::Unasked => {}
    }
    put("holder", holder);
    put("host", record.and_then(|read| read.host.clone()).into());
    put("since", since);
    put("renewed", record.and_then(|read| read.renewed_at).map(time).into());
    put("released", record.and_then(|read| read.released_at).map(time).into());
    put("took_over", record.and_then(|read| read.took_over.as_ref()).map(took_over).into());
    put("took_over_because", record.and_then(|read| read.reason.clone()).into());
    put("heartbeat", record.and_then(|read| read.heartbeat).into());
    put("note", record.and_then(|read| read.note.clone()).into());
    put("branch", record.and_then(|read| read.branch.clone()).into());
    put("head", record.and_then(|read| read.head.clone()).into());
    put("job", record.and_then(|read| read.job.clone()).into());
    put("token", record.map(|read| read.token.to_string()).into());
    put("asked", report.asked.as_deref().map(asked).into());
    put("subject", subject);
    put("unreadable", unreadable);
    let (history, history_unread) = match &report.history {
        History::Unasked => (Value::Null, Value::Null),
        History::NotRead(why) => (Value::Null, why.clone().into()),
        History::Read(chain) => (
            chain.events.iter().map(event).collect(),
            if chain.whole { Value::Null } else { "earlier ones not read".into() },
        ),
    };
    put("hints", report.hints.clone().into());
    put("history", history);
    put("history_unread", history_unread);
    if let Some(assessment) = &report.assessment {
        stale::claim_fields(report, assessment, &mut object);
    }
    Value::Object(object)
}

fn asked(ask: &Record) -> Value {
    json!({
        "by": person(&ask.holder),
        "host": ask.host,
        "at": time(ask.claimed_at),
        "reason": ask.reason,
    })
}

fn took_over(over: &TookOver) -> Value {
    json!({ "id": over.id, "who": over.who })
}

fn event(event: &Event) -> Value {
    let (mut ended, mut renewals, mut subject) = (None, None, None);
    let word = match &event.what {
        What::Taken => "taken",
        What::ByHand { subject: words } => {
            subject = Some(words);
            "by-hand"
        }
        What::Renewed { times, since } => {
            renewals = Some((times, time(*since)));
            "renewed"
        }
        What::TakenOver(from) => {
            ended = Some(from);
            "taken-over"
        }
        What::Released => "released",
        What::Cleared(from) => {
            ended = Some(from);
            "cleared"
        }
    };
    json!({
        "event": word,
        "at": event.at.map(time),
        "by": person(&event.by),
        "host": event.host,
        "id": event.id.to_string(),
        "over": ended.map(|ended| &ended.over),
        "from": ended.map(|ended| &ended.from),
        "reason": ended.and_then(|ended| ended.reason.as_ref()),
        "times": renewals.as_ref().map(|(times, _)| times),
        "since": renewals.as_ref().map(|(_, since)| since),
        "subject": subject,
    })
}

fn kind(record: &Shown) -> &'static str {
    match record {
        Shown::Read(Reading::Claim(_)) => "claim",
        Shown::Read(Reading::ByHand(_)) => "by-hand",
        Shown::Read(Reading::Unreadable(_)) => "unreadable",
        Shown::NotRead(_) | Shown::Unasked => "not-read",
    }
}

fn person(person: &Person) -> Value {
    json!({ "name": person.name, "email": person.email })
}

pub(super) fn time(at: chrono::DateTime<chrono::Utc>) -> Value {
    at.to_rfc3339_opts(chrono::SecondsFormat::Secs, true).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_acts_on_a_terminal_is_written_out_and_reads_back_the_same() {
        let hostile = "a\u{202e}b\u{9b}31m\u{e0041}\x1b[2J\n\u{feff}é🦀";
        let text = error(Some("take"), "error", Exit::Usage, None, hostile);
        assert!(!text.chars().any(escape::acts), "{text}");
        let read: Value = serde_json::from_str(&text).expect("valid");
        assert_eq!(read["reason"], hostile);
    }
}
