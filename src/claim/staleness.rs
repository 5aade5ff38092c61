//! Which claims somebody should look at, and why: facts with their limits, never a decision.
//!
//! A pure function of what was read and of one clock. It refuses to guess: a stamp in the future says nothing about
//! an age, and what cannot be read is no old claim but an unreadable one. Nobody is declared gone here; who is to be
//! cleared or taken over is for a person to say.

use chrono::{DateTime, TimeDelta, Utc};

use super::{
    age,
    record::{Reading, Record},
};

/// What is still in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// A claim without a sign of life for this long, or longer, is old. Of zero length: every claim is.
    pub older_than: TimeDelta,
    /// A holder may miss so many of the renewals that it promised; past the time of that one, it is silent.
    pub missed: u32,
    /// A stamp may be this far in the future: no two clocks agree.
    pub ahead: TimeDelta,
}

impl Limits {
    /// The limits that are not the user's to set, with the one that is.
    pub fn older_than(older_than: TimeDelta) -> Self {
        Self { older_than, missed: 10, ahead: TimeDelta::minutes(2) }
    }
}

/// Something about a claim that a person should look at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finding {
    /// There is no record that can be judged, and why.
    Unreadable(String),
    /// It is stamped in the future, so its age is not known.
    ClockAhead {
        /// How far.
        by: TimeDelta,
    },
    /// The holder promised renewals, and there are none.
    Silent {
        /// The promised seconds between two.
        promised: u32,
        /// How many are missing.
        missed: i64,
    },
    /// It was taken or renewed long ago.
    Old {
        /// How long.
        quiet_for: TimeDelta,
    },
    /// The issue that it stands for is closed, as somebody said who knows.
    IssueClosed,
}

impl Finding {
    /// What was found, in words that a takeover can give as its reason.
    pub fn reason(&self) -> String {
        match self {
            Self::Unreadable(_) => "its record cannot be read".to_owned(),
            Self::ClockAhead { by } => format!("stamped {} ahead", age::span(*by)),
            Self::Silent { promised, missed } => {
                format!("{missed} promised renewals missed, one every {promised} s")
            }
            Self::Old { quiet_for } => format!("no sign of life for {}", age::span(*quiet_for)),
            Self::IssueClosed => "the issue is closed".to_owned(),
        }
    }

    /// Its one word, for programs.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Unreadable(_) => "unreadable",
            Self::ClockAhead { .. } => "clock-ahead",
            Self::Silent { .. } => "silent",
            Self::Old { .. } => "old",
            Self::IssueClosed => "closed",
        }
    }
}

/// What is wrong with a claim at the time `now`; nothing for one that is in order.
///
/// `reading` is the record at its tip, or why it did not travel. `closed` says whether its issue is known to be closed.
pub fn judge(
    reading: Result<&Reading, &str>,
    closed: bool,
    now: DateTime<Utc>,
    limits: &Limits,
) -> Vec<Finding> {
    let mut findings = match reading {
        Err(why) => vec![Finding::Unreadable(format!("not read: {why}"))],
        Ok(Reading::Unreadable(why)) => vec![Finding::Unreadable(why.clone())],
        Ok(Reading::Claim(record)) => {
            by_time(record.last_sign_of_life(), promised(record), now, limits)
        }
        Ok(Reading::ByHand(by_hand)) => match by_hand.at {
            Some(at) => by_time(at, None, now, limits),
            None => vec![Finding::Unreadable("its commit names no time that makes sense".into())],
        },
    };
    if closed {
        findings.push(Finding::IssueClosed);
    }
    findings
}

/// The last time that the holder is known to have acted on the claim, by the holder's clock.
pub fn last_sign_of_life(reading: &Reading) -> Option<DateTime<Utc>> {
    match reading {
        Reading::Claim(record) => Some(record.last_sign_of_life()),
        Reading::ByHand(by_hand) => by_hand.at,
        Reading::Unreadable(_) => None,
    }
}

fn promised(record: &Record) -> Option<u32> {
    record.heartbeat.filter(|seconds| *seconds > 0)
}

/// What a stamp of `at` amounts to. The latest of a record's stamps is looked at: after one that is ahead, no other
/// tells when the holder acted last.
fn by_time(
    at: DateTime<Utc>,
    promised: Option<u32>,
    now: DateTime<Utc>,
    limits: &Limits,
) -> Vec<Finding> {
    let since = now.signed_duration_since(at);
    if -since > limits.ahead {
        return vec![Finding::ClockAhead { by: -since }];
    }
    let quiet_for = since.max(TimeDelta::zero());
    let mut findings = Vec::new();
    if let Some(promised) = promised {
        let allowed = i64::from(promised).saturating_mul(i64::from(limits.missed));
        if quiet_for > TimeDelta::try_seconds(allowed).unwrap_or(TimeDelta::MAX) {
            let missed = quiet_for.num_seconds() / i64::from(promised);
            findings.push(Finding::Silent { promised, missed });
        }
    }
    if quiet_for >= limits.older_than {
        findings.push(Finding::Old { quiet_for });
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::{
        super::record::{
            ByHand, Person,
            tests::{bare, commit_of},
        },
        *,
    };

    const HOUR: i64 = 3600;
    const DAY: i64 = 24 * HOUR;

    fn now() -> DateTime<Utc> {
        DateTime::from_timestamp(1_796_142_840, 0).expect("in range")
    }

    fn day() -> Limits {
        Limits::older_than(TimeDelta::days(1))
    }

    /// A claim taken, and perhaps renewed, so many seconds ago by its holder's clock.
    fn taken(ago: i64, renewed: Option<i64>, heartbeat: Option<u32>) -> Reading {
        let at = |ago| now() - TimeDelta::seconds(ago);
        let renewed_at = renewed.map(at);
        Reading::Claim(Box::new(Record { claimed_at: at(ago), renewed_at, heartbeat, ..bare() }))
    }

    fn words(reading: &Reading, limits: &Limits) -> String {
        let found = judge(Ok(reading), false, now(), limits);
        found.iter().map(Finding::word).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn age_counts_from_the_last_sign_of_life() {
        for (ago, renewed, found) in [
            (0, None, ""),
            (DAY - 1, None, ""),
            (DAY, None, "old"),
            (30 * DAY, None, "old"),
            (30 * DAY, Some(DAY - 1), ""),
            (30 * DAY, Some(DAY), "old"),
            // A clock that was set back between the two.
            (DAY - 1, Some(3 * DAY), ""),
            // Two hours behind: older than it is, and no worse.
            (2 * HOUR, None, ""),
        ] {
            assert_eq!(words(&taken(ago, renewed, None), &day()), found, "{ago} {renewed:?}");
        }
        let found = judge(Ok(&taken(3 * DAY, None, None)), false, now(), &day());
        assert_eq!(found, [Finding::Old { quiet_for: TimeDelta::days(3) }]);
        let none = Limits::older_than(TimeDelta::zero());
        for ago in [0, -60, 1] {
            assert_eq!(words(&taken(ago, None, None), &none), "old", "everything is, {ago}");
        }
    }

    #[test]
    fn a_stamp_in_the_future_is_no_age() {
        let year_2099 = DateTime::parse_from_rfc3339("2099-01-01T00:00:00Z").expect("a time");
        let until_2099 = (year_2099.to_utc() - now()).num_seconds();
        for (ago, renewed, found) in [
            (-120, None, ""),
            (-121, None, "clock-ahead"),
            (-2 * HOUR, None, "clock-ahead"),
            (-until_2099, None, "clock-ahead"),
            (30 * DAY, Some(-2 * HOUR), "clock-ahead"),
            (-2 * HOUR, Some(30 * DAY), "clock-ahead"),
        ] {
            let reading = taken(ago, renewed, Some(1));
            assert_eq!(words(&reading, &day()), found, "{ago} {renewed:?}");
            let everything = Limits::older_than(TimeDelta::zero());
            let found = if found.is_empty() { "old" } else { found };
            assert_eq!(words(&reading, &everything), found, "{ago} {renewed:?}");
        }
        let found = judge(Ok(&taken(-2 * HOUR, None, None)), false, now(), &day());
        assert_eq!(found, [Finding::ClockAhead { by: TimeDelta::hours(2) }]);
    }

    #[test]
    fn silence_is_measured_by_what_was_promised() {
        for (ago, renewed, heartbeat, found) in [
            (1200, None, 120, ""),
            (1201, None, 120, "silent"),
            (30 * DAY, Some(1200), 120, ""),
            (30 * DAY, Some(1201), 120, "silent"),
            (2 * DAY, None, 120, "silent old"),
            (2 * DAY, None, 86_400, "old"),
            (30 * DAY, None, u32::MAX, "old"),
        ] {
            let reading = taken(ago, renewed, Some(heartbeat));
            assert_eq!(words(&reading, &day()), found, "{ago} {renewed:?} {heartbeat}");
        }
        let found = judge(Ok(&taken(3000, None, Some(120))), false, now(), &day());
        assert_eq!(found, [Finding::Silent { promised: 120, missed: 25 }]);
        // No record that was read promises nothing in no time; one in memory might.
        assert_eq!(words(&taken(HOUR, None, Some(0)), &day()), "");
    }

    #[test]
    fn what_cannot_be_read_is_not_judged_by_age() {
        let by_hand = |at| {
            let who = Person { name: "Rita".into(), email: String::new() };
            Reading::ByHand(ByHand { who, at, subject: "by me".into() })
        };
        assert_eq!(words(&by_hand(Some(now() - TimeDelta::days(2))), &day()), "old");
        assert_eq!(words(&by_hand(Some(now())), &day()), "");
        assert_eq!(words(&by_hand(None), &day()), "unreadable");
        let message = bare().message();
        let garbage = message.replace("2026-11-30T16:34:00Z", "yesterday, about noon");
        let missing = message.replace("Claimed-At: 2026-11-30T16:34:00Z\n", "");
        for (message, why) in [
            (
                garbage,
                "Claimed-At is not a time such as 2026-11-30T16:34:00Z: \"yesterday, about noon\"",
            ),
            (missing, "Claimed-At is missing"),
        ] {
            let reading = Reading::of_commit(&commit_of(message));
            let found = judge(Ok(&reading), false, now(), &day());
            assert_eq!(found, [Finding::Unreadable(why.into())]);
            assert_eq!(last_sign_of_life(&reading), None);
        }
        let found = judge(Err("the remote did not send it"), true, now(), &day());
        let why = "not read: the remote did not send it".into();
        assert_eq!(found, [Finding::Unreadable(why), Finding::IssueClosed]);
    }

    #[test]
    fn a_closed_issue_is_a_finding_of_its_own() {
        let of = |reading: Reading| judge(Ok(&reading), true, now(), &day());
        assert_eq!(of(taken(0, None, None)), [Finding::IssueClosed]);
        let old = Finding::Old { quiet_for: TimeDelta::days(1) };
        assert_eq!(of(taken(DAY, None, None)), [old, Finding::IssueClosed]);
    }

    #[test]
    fn the_ends_of_time_do_not_overflow() {
        let ends = [DateTime::<Utc>::MIN_UTC, DateTime::UNIX_EPOCH, DateTime::<Utc>::MAX_UTC];
        let spans = [TimeDelta::MIN, TimeDelta::zero(), TimeDelta::MAX];
        for claimed_at in ends {
            for now in ends {
                for older_than in spans {
                    for heartbeat in [None, Some(1), Some(u32::MAX)] {
                        let limits = Limits { missed: u32::MAX, ..Limits::older_than(older_than) };
                        let record = Record { claimed_at, heartbeat, ..bare() };
                        let found =
                            judge(Ok(&Reading::Claim(Box::new(record))), false, now, &limits);
                        let ahead = found.iter().any(|found| found.word() == "clock-ahead");
                        assert_eq!(ahead, claimed_at > now, "{claimed_at} {now}");
                    }
                }
            }
        }
    }
}
