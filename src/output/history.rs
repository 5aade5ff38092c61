//! How a claim came to be what it is, in lines for people.

use chrono::{DateTime, Utc};

use super::{History, moment};
use crate::claim::chain::{Chain, Ended, Event, What};

/// The lines; none if there is nothing to tell. They hold text of other people's as it came.
pub fn lines(history: &History) -> Vec<String> {
    match history {
        History::Unasked => Vec::new(),
        History::NotRead(why) => {
            vec![format!("not read: {}", why.lines().collect::<Vec<_>>().join("; "))]
        }
        History::Read(chain) if chain.events.is_empty() => Vec::new(),
        History::Read(Chain { events, whole }) => {
            let missing = (!whole).then(|| "(earlier ones not read)".to_owned());
            missing.into_iter().chain(events.iter().map(event)).collect()
        }
    }
}

fn event(event: &Event) -> String {
    let at = event.at.map_or_else(|| "at an unknown time".to_owned(), moment);
    let who = match &event.host {
        Some(host) => format!("{} on {host}", event.by),
        None => event.by.to_string(),
    };
    let what = match &event.what {
        What::Taken => format!("taken by {who}"),
        What::ByHand { subject } if subject.is_empty() => format!("made by hand by {who}"),
        What::ByHand { subject } => format!("made by hand by {who}: {subject}"),
        What::Renewed { times: 1, .. } => "renewed".to_owned(),
        What::Renewed { times, since } => {
            format!("renewed ({times} times since {})", beginning(*since, event.at))
        }
        What::TakenOver(ended) => format!("taken over by {who}{}", from(ended)),
        What::Released => format!("released by {who}"),
        What::Cleared(ended) => format!("cleared by {who}{}", from(ended)),
    };
    format!("{at}  {what}")
}

/// The time alone, where the day is that of `end`.
fn beginning(at: DateTime<Utc>, end: Option<DateTime<Utc>>) -> String {
    if end.is_some_and(|end| end.date_naive() == at.date_naive()) {
        at.format("%H:%M:%S").to_string()
    } else {
        moment(at)
    }
}

fn from(ended: &Ended) -> String {
    // Enough of an id to find it by; it may be any text.
    let mut told = format!(", from {}", ended.over.chars().take(12).collect::<String>());
    if !ended.from.is_empty() {
        told.push_str(&format!(" of {}", ended.from));
    }
    if let Some(reason) = &ended.reason {
        told.push_str(&format!(": {reason}"));
    }
    told
}

#[cfg(test)]
mod tests {
    use gix::ObjectId;

    use super::*;
    use crate::claim::record::Person;

    fn told(what: What, at: Option<&str>, host: Option<&str>) -> String {
        event(&Event {
            what,
            at: at.map(time),
            by: Person { name: "Bob".into(), email: "b@example.com".into() },
            host: host.map(str::to_owned),
            id: ObjectId::null(gix::hash::Kind::Sha1),
        })
    }

    fn time(text: &str) -> DateTime<Utc> {
        DateTime::parse_from_rfc3339(text).expect("a time").to_utc()
    }

    #[test]
    fn each_event_is_a_line() {
        let now = Some("2026-11-30T16:40:00Z");
        let ended = |from: &str, reason: Option<&str>| Ended {
            over: "1f6e0c94c2d5aaaa".into(),
            from: from.into(),
            reason: reason.map(Into::into),
        };
        let renewed = |times, since| What::Renewed { times, since: time(since) };
        for (what, at, host, expected) in [
            (What::Taken, now, Some("ci-7"), "taken by Bob <b@example.com> on ci-7"),
            (renewed(1, "2026-11-30T16:40:00Z"), now, None, "renewed"),
            (renewed(12, "2026-11-30T16:36:00Z"), now, None, "renewed (12 times since 16:36:00)"),
            (
                renewed(2, "2026-11-29T16:36:00Z"),
                now,
                None,
                "renewed (2 times since 2026-11-29 16:36:00 UTC)",
            ),
            (
                What::TakenOver(ended("Al <a@b>", Some("silent"))),
                now,
                None,
                "taken over by Bob <b@example.com>, from 1f6e0c94c2d5 of Al <a@b>: silent",
            ),
            (
                What::Cleared(ended("", None)),
                now,
                None,
                "cleared by Bob <b@example.com>, from 1f6e0c94c2d5",
            ),
            (What::Released, now, None, "released by Bob <b@example.com>"),
        ] {
            assert_eq!(told(what, at, host), format!("2026-11-30 16:40:00 UTC  {expected}"));
        }
        let by_hand = What::ByHand { subject: String::new() };
        assert_eq!(
            told(by_hand, None, None),
            "at an unknown time  made by hand by Bob <b@example.com>"
        );
    }
}
