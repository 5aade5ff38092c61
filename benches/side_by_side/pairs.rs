//! A B A B: two ways to do one thing, in turns, so that whatever else the machine does falls on both.

use std::time::Duration;

/// The times of both sides, a pair for each round.
pub(crate) struct Times {
    ours: Vec<Duration>,
    theirs: Vec<Duration>,
}

/// Runs the two sides in turns. Each gets the number of the round and gives the time it took.
pub(crate) fn pairs(
    rounds: usize,
    mut ours: impl FnMut(usize) -> Duration,
    mut theirs: impl FnMut(usize) -> Duration,
) -> Times {
    let mut times = Times { ours: Vec::new(), theirs: Vec::new() };
    for round in 0..rounds {
        times.ours.push(ours(round));
        times.theirs.push(theirs(round));
    }
    times
}

impl Times {
    /// Their times times `factor`, for work of which only a part was done.
    pub(crate) fn with_theirs_scaled(mut self, factor: f64) -> Self {
        for time in &mut self.theirs {
            *time = time.mul_f64(factor);
        }
        self
    }

    pub(crate) fn rounds(&self) -> usize {
        self.ours.len()
    }

    /// The median of ours.
    pub(crate) fn ours(&self) -> Duration {
        median(self.ours.clone())
    }

    /// The median of theirs.
    pub(crate) fn theirs(&self) -> Duration {
        median(self.theirs.clone())
    }

    /// The median over the pairs of our time by theirs.
    pub(crate) fn ratio(&self) -> f64 {
        let pairs = self.ours.iter().zip(&self.theirs);
        let mut ratios: Vec<f64> =
            pairs.map(|(ours, theirs)| ours.as_secs_f64() / theirs.as_secs_f64()).collect();
        ratios.sort_unstable_by(f64::total_cmp);
        middle(&ratios, f64::midpoint)
    }
}

fn median(mut values: Vec<Duration>) -> Duration {
    values.sort_unstable();
    middle(&values, |low, high| (low + high) / 2)
}

/// The one in the middle of what is sorted, or what `between` says of the two that are.
fn middle<T: Copy>(sorted: &[T], between: impl Fn(T, T) -> T) -> T {
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 { sorted[middle] } else { between(sorted[middle - 1], sorted[middle]) }
}
