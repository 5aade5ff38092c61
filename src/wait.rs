//! How long to wait: before the same command is sent once more, and for a claim that is held.
//!
//! Policy only: randomness and the time come in as values and nobody sleeps here.

use std::time::{Duration, Instant};

/// So many times a command is sent at most, within one invocation.
pub const TRIES: u32 = 4;

/// The pause before try number `next` (from 2 on): doubling from 50 ms, stretched by up to as much again, so that
/// claimants who collided once do not collide again. `random` is any number.
pub fn pause(next: u32, random: u64) -> Duration {
    let base = 50_u64 << next.saturating_sub(2).min(5);
    Duration::from_millis(base + random % base)
}

/// For how long somebody waits for a claim that is held.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Patience {
    /// Not at all.
    #[default]
    None,
    /// For this long.
    For(Duration),
    /// Until it is free, however long that takes.
    Forever,
}

impl Patience {
    /// When it ends, for one who began to wait at `start`.
    pub fn end(self, start: Instant) -> End {
        match self {
            Self::None => End::At(start),
            Self::For(time) => End::At(start + time),
            Self::Forever => End::Never,
        }
    }
}

/// When somebody's patience ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Then.
    At(Instant),
    /// It does not.
    Never,
}

impl End {
    /// What is left of it at `now`; `None` is for ever.
    pub fn left(self, now: Instant) -> Option<Duration> {
        match self {
            Self::At(end) => Some(end.saturating_duration_since(now)),
            Self::Never => None,
        }
    }

    /// `pause`, if it is not over before that.
    pub fn within(self, now: Instant, pause: Duration) -> Duration {
        self.left(now).map_or(pause, |left| left.min(pause))
    }

    /// Whether it is over at `now`.
    pub fn over(self, now: Instant) -> bool {
        self.left(now).is_some_and(|left| left.is_zero())
    }
}

/// How often somebody who waits asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Polls {
    /// The first pause.
    pub first: Duration,
    /// The longest.
    pub most: Duration,
}

impl Polls {
    /// The pause after poll number `done` (from 1 on): half as long again each time, up to the longest, and by up to a
    /// quarter shorter, so that those who wait for the same do not ask at the same time. `random` is any number.
    pub fn pause(self, done: u32, random: u64) -> Duration {
        let most = self.most.max(self.first);
        let grown = self.first.as_secs_f64() * 1.5_f64.powi(done.clamp(1, 64) as i32 - 1);
        let pause = grown.min(most.as_secs_f64());
        let shorter = pause / 4.0 * (random % 1024) as f64 / 1024.0;
        Duration::from_secs_f64(pause - shorter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn polls_grow_to_their_longest_and_are_spread() {
        let polls = Polls { first: Duration::from_secs(2), most: Duration::from_secs(30) };
        assert_eq!(polls.pause(1, 0), Duration::from_secs(2));
        assert_eq!(polls.pause(2, 0), Duration::from_secs(3));
        assert_eq!(polls.pause(9, 0), Duration::from_secs(30));
        assert_eq!(polls.pause(u32::MAX, 0), Duration::from_secs(30));
        assert!(polls.pause(9, 1023) >= Duration::from_millis(22_500));
        assert!(polls.pause(9, 1023) < polls.pause(9, 100));
        let odd = Polls { first: Duration::from_secs(5), most: Duration::ZERO };
        assert_eq!(odd.pause(3, 0), Duration::from_secs(5), "never less than the first");
    }

    #[test]
    fn patience_ends_when_it_ends() {
        let start = Instant::now();
        let later = start + Duration::from_secs(7);
        let ten = Patience::For(Duration::from_secs(10)).end(start);
        assert!(Patience::None.end(start).over(start));
        assert!(!ten.over(later) && ten.over(start + Duration::from_secs(10)));
        assert_eq!(ten.within(later, Duration::from_secs(2)), Duration::from_secs(2));
        assert_eq!(ten.within(later, Duration::from_secs(30)), Duration::from_secs(3));
        let never = Patience::Forever.end(start);
        assert!(!never.over(start + Duration::from_secs(1 << 30)));
        assert_eq!(never.within(later, Duration::from_secs(30)), Duration::from_secs(30));
    }

    #[test]
    fn pauses_grow_and_differ_and_end() {
        assert_eq!(pause(2, 0), Duration::from_millis(50));
        assert_eq!(pause(2, 49), Duration::from_millis(99));
        assert_eq!(pause(4, 0), Duration::from_millis(200));
        assert!(pause(1_000, u64::MAX) < Duration::from_secs(4));
    }
}
