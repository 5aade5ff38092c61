//! Ages as people say them.
//!
//! It refuses to call a time in the future "now": a clock that is ahead is evidence a reader of a report needs.

use chrono::{DateTime, TimeDelta, Utc};

/// How long before `now` the time `at` was, in the largest unit that keeps the number useful: `just now` (under a
/// minute), `3 minutes ago`, `36 hours ago` (hours up to two days), `5 days ago`.
///
/// A time after `now` is `in 2 hours (clock ahead)`, and at least a second away.
pub fn ago(at: DateTime<Utc>, now: DateTime<Utc>) -> String {
    let age = now.signed_duration_since(at);
    if age < TimeDelta::zero() {
        return format!("in {} (clock ahead)", span(-age));
    }
    if age < TimeDelta::minutes(1) { "just now".to_owned() } else { format!("{} ago", span(age)) }
}

/// A length of time in the largest unit that keeps the number useful, rounded down, and at least a second.
pub fn span(length: TimeDelta) -> String {
    let (count, unit) = if length < TimeDelta::minutes(1) {
        (length.num_seconds().max(1), "second")
    } else if length < TimeDelta::hours(1) {
        (length.num_minutes(), "minute")
    } else if length < TimeDelta::days(2) {
        (length.num_hours(), "hour")
    } else {
        (length.num_days(), "day")
    };
    counted(count, unit)
}

/// A length of time as it was set, in the largest unit that divides it: `90 minutes`, `24 hours`, `3 days`. Whole
/// seconds count.
pub fn exactly(length: TimeDelta) -> String {
    const UNITS: [(i64, &str); 3] = [(24 * 60 * 60, "day"), (60 * 60, "hour"), (60, "minute")];
    let seconds = length.num_seconds();
    let fits = |(size, unit): &(i64, &str)| {
        // A day is told as 24 hours.
        seconds % size == 0 && seconds >= if *unit == "day" { 2 * size } else { *size }
    };
    match UNITS.iter().find(|unit| fits(unit)) {
        Some((size, unit)) => counted(seconds / size, unit),
        None => counted(seconds, "second"),
    }
}

fn counted(count: i64, unit: &str) -> String {
    format!("{count} {unit}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(seconds: i64) -> String {
        let at = DateTime::from_timestamp(1_800_000_000, 0).expect("in range");
        ago(at, at + TimeDelta::seconds(seconds))
    }

    #[test]
    fn past_times_are_told_in_the_largest_useful_unit() {
        const HOUR: i64 = 3600;
        for (seconds, told) in [
            (0, "just now"),
            (59, "just now"),
            (60, "1 minute ago"),
            (3 * 60 + 59, "3 minutes ago"),
            (HOUR - 1, "59 minutes ago"),
            (HOUR, "1 hour ago"),
            (2 * HOUR, "2 hours ago"),
            (36 * HOUR, "36 hours ago"),
            (48 * HOUR, "2 days ago"),
            (5 * 24 * HOUR, "5 days ago"),
            (400 * 24 * HOUR, "400 days ago"),
        ] {
            assert_eq!(after(seconds), told, "{seconds} s");
        }
    }

    #[test]
    fn future_times_are_never_age_zero() {
        assert_eq!(after(-1), "in 1 second (clock ahead)");
        assert_eq!(after(-45), "in 45 seconds (clock ahead)");
        assert_eq!(after(-2 * 3600), "in 2 hours (clock ahead)");
        let now = DateTime::from_timestamp(0, 0).expect("in range");
        assert_eq!(ago(now + TimeDelta::nanoseconds(1), now), "in 1 second (clock ahead)");
    }

    #[test]
    fn a_limit_is_told_exactly() {
        for (seconds, told) in [
            (0, "0 seconds"),
            (1, "1 second"),
            (90, "90 seconds"),
            (120, "2 minutes"),
            (90 * 60, "90 minutes"),
            (150 * 60, "150 minutes"),
            (60 * 60, "1 hour"),
            (24 * 60 * 60, "24 hours"),
            (36 * 60 * 60, "36 hours"),
            (3 * 24 * 60 * 60, "3 days"),
            (3 * 24 * 60 * 60 + 1, "259201 seconds"),
        ] {
            assert_eq!(exactly(TimeDelta::seconds(seconds)), told);
        }
    }

    #[test]
    fn the_ends_of_time_do_not_overflow() {
        assert!(ago(DateTime::<Utc>::MIN_UTC, DateTime::<Utc>::MAX_UTC).ends_with("days ago"));
        assert!(
            ago(DateTime::<Utc>::MAX_UTC, DateTime::<Utc>::MIN_UTC).ends_with("days (clock ahead)")
        );
    }
}
