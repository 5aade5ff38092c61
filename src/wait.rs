//! How long to wait before the same command is sent once more.
//!
//! Policy only: randomness comes in as a value and nobody sleeps here.

use std::time::Duration;

/// So many times a command is sent at most, within one invocation.
pub const TRIES: u32 = 4;

/// The pause before try number `next` (from 2 on): doubling from 50 ms, stretched by up to as much again, so that
/// claimants who collided once do not collide again. `random` is any number.
pub fn pause(next: u32, random: u64) -> Duration {
    let base = 50_u64 << next.saturating_sub(2).min(5);
    Duration::from_millis(base + random % base)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_differ_and_end() {
        assert_eq!(pause(2, 0), Duration::from_millis(50));
        assert_eq!(pause(2, 49), Duration::from_millis(99));
        assert_eq!(pause(4, 0), Duration::from_millis(200));
        assert!(pause(1_000, u64::MAX) < Duration::from_secs(4));
    }
}
