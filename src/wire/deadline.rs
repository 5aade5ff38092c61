//! The one limit on how long an exchange may take.
//!
//! A deadline is a value that every read, write and wait of an exchange is given; nothing else in the
//! crate decides how long to wait for a remote.

use std::time::{Duration, Instant};

use super::LinkError;

/// The end of the time given to one exchange with the remote.
#[derive(Debug, Clone, Copy)]
pub struct Deadline {
    end: Instant,
    given: Duration,
}

impl Deadline {
    /// A deadline `given` from now.
    pub fn after(given: Duration) -> Self {
        Self { end: Instant::now() + given, given }
    }

    /// What is left; zero once it has passed.
    pub fn left(&self) -> Duration {
        self.end.saturating_duration_since(Instant::now())
    }

    /// Whether it has passed.
    pub fn passed(&self) -> bool {
        self.left().is_zero()
    }

    /// The error of an exchange that it ended.
    pub fn error(&self) -> LinkError {
        LinkError::TimedOut(self.given)
    }
}
