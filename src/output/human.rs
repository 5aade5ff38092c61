//! The report for people: what happened, what it means for the claim, what to do next.
//!
//! Standard output gets the result, whose last line is one greppable verdict; the story goes to standard error.

use std::iter::{once, repeat};

use chrono::{DateTime, Utc};
use gix::ObjectId;

use super::{
    ClaimReport, Detail, Report, Shown, history, stale,
    ui::{Tone, Ui},
};
use crate::{
    claim::{
        age,
        record::{Reading, Record},
    },
    escape::line,
    verdict::{Exit, Verdict},
};

/// More claims that are held than this are told in a line each.
const MANY: usize = 10;

/// Tells all of `report`.
pub fn tell(report: &Report, ui: &Ui, now: DateTime<Utc>) {
    match &report.detail {
        Detail::Table => return table(report, ui, now),
        Detail::Stale(survey) => return stale::tell(report, survey, ui, now),
        Detail::Verdicts | Detail::Whole => {}
    }
    // What is so for all of them is told once, and of what is so for one it is said which.
    let alike = report.claims.windows(2).all(|two| two[0].verdict == two[1].verdict);
    let named = |claim: &ClaimReport, text: String| {
        if alike { text } else { format!("{}: {text}", line(&claim.claim.short())) }
    };
    // Of many that are held the lines with the holders are enough.
    let held = |claim: &&ClaimReport| matches!(claim.verdict, Verdict::Held(_));
    let many = report.claims.iter().filter(held).count() > MANY;
    let mut before: Option<&ClaimReport> = None;
    for claim in &report.claims {
        let last = before.replace(claim);
        let again = matches!(claim.verdict, Verdict::Refused(_) | Verdict::Unknown(_))
            && last.is_some_and(|last| last.verdict == claim.verdict);
        if report.detail == Detail::Whole && last.is_some() {
            ui.result("");
        }
        match &claim.verdict {
            _ if again => {}
            Verdict::Held(_) if many => {}
            Verdict::Shown(_) => {
                for (label, text) in facts(claim, now) {
                    ui.result(&format!("{label:<8} {text}"));
                }
            }
            Verdict::Held(_) => {
                ui.say(&format!("{} is held by {}", line(&claim.claim.short()), holder(claim)));
                tell_facts(claim, ui, now);
            }
            Verdict::Lost(_) => {
                ui.say(&format!(
                    "{} is not yours: {} holds it",
                    line(&claim.claim.short()),
                    holder(claim)
                ));
                tell_facts(claim, ui, now);
            }
            Verdict::Moved(_) => {
                ui.say(&format!(
                    "{} is not the one that was named: {} holds it",
                    line(&claim.claim.short()),
                    holder(claim)
                ));
                tell_facts(claim, ui, now);
            }
            Verdict::Refused(reason) => {
                ui.error(&named(claim, format!("the remote refuses: {}", because(reason, ui))));
            }
            Verdict::Unknown(reason) => {
                ui.error(&named(claim, format!("could not tell: {}", because(reason, ui))));
            }
            // Only a claim that was cleared by its id was looked at before.
            Verdict::Released if claim.record.reading().is_some() => {
                ui.say(&format!(
                    "cleared {}, held by {}",
                    line(&claim.claim.short()),
                    holder(claim)
                ));
                tell_facts(claim, ui, now);
            }
            Verdict::Claimed(_) if claim.displaced.is_some() => {
                let displaced = claim.displaced.as_ref();
                ui.say(&format!(
                    "took {} over from {}",
                    line(&claim.claim.short()),
                    displaced.map_or_else(String::new, who)
                ));
                for (label, text) in
                    displaced.map(|record| record_facts(record, now)).into_iter().flatten()
                {
                    if !matches!(label, "holder" | "host") {
                        ui.say(&format!("  {label:<8} {text}"));
                    }
                }
            }
            Verdict::Claimed(_)
            | Verdict::Released
            | Verdict::Renewed(_)
            | Verdict::Yours(_)
            | Verdict::Asked(_)
            | Verdict::Listed => {}
            // Of a mark, the holders before it are still known.
            Verdict::Free => {
                for (label, text) in history_facts(claim) {
                    ui.result(&format!("{label:<8} {text}"));
                }
            }
        }
        // What to do about one that is held is what to do about the others.
        let enough = many && held(&claim) && last.is_some_and(|last| held(&last));
        for hint in claim.hints.iter().filter(|_| !enough) {
            if !(again && last.is_some_and(|last| last.hints.contains(hint))) {
                ui.hint(&named(claim, line(hint).into_owned()));
            }
        }
        ui.result(&verdict(claim, ui));
    }
    if report.claims.is_empty() {
        ui.result(&format!("released 0 claims on {}", remote(report)));
    }
}

/// Tells that a claim was lost while a command ran under it: by whom, and why.
pub fn lost(claim: &ClaimReport, ui: &Ui, now: DateTime<Utc>) {
    let short = claim.claim.short();
    let name = line(&short);
    if claim.record.reading().is_some() {
        ui.error(&format!("{name} was lost: {} holds it", holder(claim)));
        tell_facts(claim, ui, now);
    } else {
        ui.error(&format!("{name} was lost: somebody cleared it, or released it in this clone"));
    }
}

/// One line about a renewal that was not delivered.
pub fn not_renewed(claim: &ClaimReport, ui: &Ui) -> String {
    let reason = match &claim.verdict {
        Verdict::Refused(reason) | Verdict::Unknown(reason) => because(reason, ui),
        other => other.word().to_owned(),
    };
    format!("{} could not be renewed: {reason}", line(&claim.claim.short()))
}

/// One line for somebody who waits: who holds the claim, or why that cannot be told.
pub fn waiting(claim: &ClaimReport, now: DateTime<Utc>, ui: &Ui) -> String {
    let name = claim.claim.short();
    let name = line(&name);
    match &claim.verdict {
        Verdict::Refused(reason) | Verdict::Unknown(reason) => {
            format!("waiting for {name}; could not ask: {}", because(reason, ui))
        }
        _ => {
            let since =
                record_facts(&claim.record, now).into_iter().find(|(label, _)| *label == "since");
            let since = since.map(|(_, text)| format!(" since {text}")).unwrap_or_default();
            let here = if claim.mine { ", by this clone" } else { "" };
            format!("waiting for {name}, held by {}{since}{here}", holder(claim))
        }
    }
}

/// The verdict's line: `claimed issue-42 <id>`, `held issue-42 by …`.
fn verdict(claim: &ClaimReport, ui: &Ui) -> String {
    let tone = match claim.verdict.exit() {
        Exit::Yes => Tone::Good,
        Exit::Unknown => Tone::Doubtful,
        Exit::No | Exit::Held | Exit::Refused | Exit::Usage | Exit::Failure => Tone::Bad,
    };
    let word = ui.paint(tone, claim.verdict.word());
    let short = claim.claim.short();
    let name = line(&short);
    match &claim.verdict {
        Verdict::Claimed(id) | Verdict::Renewed(id) | Verdict::Yours(id) | Verdict::Asked(id) => {
            format!("{word} {name} {id}")
        }
        Verdict::Released => match claim.id {
            Some(id) => format!("{word} {name} {id}"),
            None => format!("{word} {name}"),
        },
        Verdict::Held(_) | Verdict::Shown(_) | Verdict::Moved(_) => {
            format!("{word} {name} by {}", holder(claim))
        }
        Verdict::Lost(_) => format!("{word} {name} to {}", holder(claim)),
        Verdict::Free | Verdict::Listed | Verdict::Refused(_) | Verdict::Unknown(_) => {
            format!("{word} {name}")
        }
    }
}

/// Who holds the claim.
fn holder(claim: &ClaimReport) -> String {
    who(&claim.record)
}

/// `Name <email> on host`, as far as it is known.
fn who(record: &Shown) -> String {
    match record.reading() {
        Some(Reading::Claim(record)) => {
            let who = record.holder.to_string();
            match &record.host {
                Some(host) => format!("{} on {}", line(&who), line(host)),
                None => line(&who).into_owned(),
            }
        }
        Some(Reading::ByHand(by_hand)) => line(&by_hand.who.to_string()).into_owned(),
        Some(Reading::Unreadable(_)) => "somebody (record unreadable)".into(),
        None => "somebody (record not read)".into(),
    }
}

fn tell_facts(claim: &ClaimReport, ui: &Ui, now: DateTime<Utc>) {
    for (label, text) in facts(claim, now)
        .into_iter()
        .filter(|(label, _)| !matches!(*label, "claim" | "holder" | "host"))
    {
        ui.say(&format!("  {label:<8} {text}"));
    }
}

/// Everything known about a claim, each with its label, safe to show.
pub(super) fn facts(claim: &ClaimReport, now: DateTime<Utc>) -> Vec<(&'static str, String)> {
    let mut facts = vec![("claim", line(&claim.claim.short()).into_owned())];
    facts.extend(record_facts(&claim.record, now));
    facts.extend(claim.asked.as_ref().map(|ask| ("asked", asked(ask, now))));
    facts.extend(claim.id.map(|id| ("id", id.to_string())));
    facts.extend(claim.mine.then(|| ("mine", "yes, taken by this clone".into())));
    facts.extend(history_facts(claim));
    facts
}

/// What happened to a claim, with a label for the first line.
fn history_facts(claim: &ClaimReport) -> impl Iterator<Item = (&'static str, String)> {
    let labels = once("history").chain(repeat(""));
    labels.zip(history::lines(&claim.history)).map(|(label, text)| (label, line(&text).into()))
}

/// Who asks the holder to stop, when and why.
pub fn asked(ask: &Record, now: DateTime<Utc>) -> String {
    let host = ask.host.as_ref().map(|host| format!(" on {host}")).unwrap_or_default();
    let reason = ask.reason.as_deref().unwrap_or("no reason given");
    let told =
        format!("to stop by {}{host}, {}: {reason}", ask.holder, moment(ask.claimed_at, now));
    line(&told).into_owned()
}

/// What a record says.
fn record_facts(record: &Shown, now: DateTime<Utc>) -> Vec<(&'static str, String)> {
    let mut facts = Vec::new();
    let mut add = |label: &'static str, text: Option<String>| {
        if let Some(text) = text {
            facts.push((label, line(&text).into_owned()));
        }
    };
    match record {
        Shown::Read(Reading::Claim(record)) => {
            add("holder", Some(record.holder.to_string()));
            add("host", record.host.clone());
            add("since", Some(moment(record.claimed_at, now)));
            add("renewed", record.renewed_at.map(|at| moment(at, now)));
            add("promise", record.heartbeat.map(|seconds| format!("a renewal every {seconds} s")));
            add("branch", record.branch.clone());
            add("head", record.head.clone());
            add("job", record.job.clone());
            add(
                "process",
                record.process.as_ref().map(|process| format!("{} on that host", process.pid)),
            );
            add(
                "took",
                record.took_over.as_ref().map(|took| format!("over {} of {}", took.id, took.who)),
            );
            add("reason", record.reason.clone());
            add("note", record.note.clone());
        }
        Shown::Read(Reading::ByHand(by_hand)) => {
            add("holder", Some(by_hand.who.to_string()));
            add("since", by_hand.at.map(|at| moment(at, now)));
            add("note", Some(by_hand.subject.clone()));
            add("record", Some("made by hand or by another tool".into()));
        }
        Shown::Read(Reading::Unreadable(why)) => add("record", Some(format!("unreadable: {why}"))),
        Shown::NotRead(why) => add("record", Some(format!("not read: {why}"))),
        Shown::Unasked => {}
    }
    facts
}

/// `2026-11-30 16:34:00 UTC (2 hours ago)`
pub(super) fn moment(at: DateTime<Utc>, now: DateTime<Utc>) -> String {
    format!("{} ({})", super::moment(at), age::ago(at, now))
}

fn table(report: &Report, ui: &Ui, now: DateTime<Utc>) {
    let rows: Vec<[String; 7]> = report.claims.iter().map(|claim| row(claim, now)).collect();
    let mut widths = [0; 7];
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.chars().count().max(*width);
        }
    }
    for row in &rows {
        let cells: Vec<String> =
            row.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        ui.result(cells.join("  ").trim_end());
    }
    let count = rows.len();
    let claims = if count == 1 { "claim" } else { "claims" };
    ui.result(&format!("{count} {claims} on {}", remote(report)));
}

/// Name, id, mine, holder, host, age, note.
pub(super) fn row(claim: &ClaimReport, now: DateTime<Utc>) -> [String; 7] {
    let [who, host, age, note] = match &claim.record {
        Shown::Read(Reading::Claim(record)) => [
            record.holder.name.clone(),
            record.host.clone().unwrap_or_default(),
            age::ago(record.last_sign_of_life(), now),
            record
                .note
                .as_deref()
                .and_then(|note| note.lines().next())
                .unwrap_or_default()
                .to_owned(),
        ],
        Shown::Read(Reading::ByHand(by_hand)) => [
            by_hand.who.name.clone(),
            String::new(),
            by_hand.at.map(|at| age::ago(at, now)).unwrap_or_default(),
            by_hand.subject.clone(),
        ],
        Shown::Read(Reading::Unreadable(why)) => {
            [format!("(unreadable: {why})"), String::new(), String::new(), String::new()]
        }
        Shown::NotRead(why) => {
            [format!("(not read: {why})"), String::new(), String::new(), String::new()]
        }
        Shown::Unasked => Default::default(),
    };
    let name = claim.claim.short().into_owned();
    let mine = if claim.mine { "mine" } else { "-" };
    [name, claim.id.map(short).unwrap_or_default(), mine.into(), who, host, age, note]
        .map(|cell| line(&cell).into_owned())
}

/// Enough of an id to name it in `--expect`, where there is one tip to mean.
pub(super) fn short(id: ObjectId) -> String {
    id.to_hex_with_len(12).to_string()
}

/// The remote, as people call it.
pub(super) fn remote(report: &Report) -> String {
    let (name, url) = &report.remote;
    line(name.as_ref().unwrap_or(url)).into_owned()
}

/// The names, as far as a line has room for them.
pub fn in_short(names: &[impl AsRef<str>]) -> String {
    const SHOWN: usize = 5;
    let shown: Vec<&str> = names.iter().take(SHOWN).map(AsRef::as_ref).collect();
    match names.len().saturating_sub(SHOWN) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// `reason`, as far as the remote's own words do not stand above already.
pub fn because(reason: &str, ui: &Ui) -> String {
    let unheard: Vec<String> =
        ui.unheard(reason).iter().map(|text| line(text).into_owned()).collect();
    if unheard.is_empty() { "see the words above".into() } else { unheard.join("\n  ") }
}
