//! The fault lab: does any verdict ever say what is not so?
//!
//! - [`cut`]: a connection is cut at every byte, in both directions, over every transport ([`cutter`], [`pipe`]).
//! - [`server`]: servers whose hooks, disks and locks are wrong; [`lies`]: a server that lies.
//! - [`stand`]: who does what meanwhile, and the comparison of what is told with what is held.
//! - [`kill`]: the program is killed at every system call, and so are its children and the server's ([`killer`]);
//!   [`aftermath`] looks at what is left.
//! - [`records`]: what a clone has on record is ruined, cannot be written, or is written by several at once.
//! - [`history`]: many clients do at random what clients do; [`checker`] compares what they were told with what the server
//!   saw, of which [`witness`] keeps the log, and is itself held against histories that are [`spoiled`].
//! - [`twins`]: claimants that only their tokens tell apart.
//! - [`collected`]: claims of which the host no longer has the commit.
//! - [`bounds`]: more than anybody would have: names, claims, trailers, renewals, bytes.
//!
//! The short form runs with the other tests. The long form takes its size from the environment, see `README.md` here.

mod aftermath;
mod bounds;
mod checker;
mod collected;
mod cut;
mod cutter;
mod history;
mod kill;
mod killer;
mod lies;
mod pipe;
mod records;
mod server;
mod spoiled;
mod stand;
mod twins;
mod witness;

use std::{env, time::Duration};

/// How much is to be done.
struct Size {
    /// Where the random numbers begin.
    seed: u64,
    /// The time that each part is given; nothing in the short form.
    time: Option<Duration>,
}

impl Size {
    /// As the environment says: `GIT_CLAIM_LAB_SEED`, a number, and `GIT_CLAIM_LAB_SECONDS`.
    fn asked_for() -> Self {
        let number = |name: &str| env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
        let seed = number("GIT_CLAIM_LAB_SEED").unwrap_or_else(|| {
            let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
            now.as_secs()
        });
        Size { seed, time: number("GIT_CLAIM_LAB_SECONDS").map(Duration::from_secs) }
    }
}

/// Random numbers that are the same for the same seed (xorshift64*, Vigna 2016).
#[derive(Debug, Clone)]
struct Chance(u64);

impl Chance {
    fn new(seed: u64) -> Self {
        // Never nothing, which stays nothing.
        Chance(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// A number below `end`.
    fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }

    /// Puts them in an order of chance.
    fn shuffle<T>(&mut self, all: &mut [T]) {
        for end in (2..=all.len()).rev() {
            all.swap(end - 1, self.below(end as u64) as usize);
        }
    }

    fn one_of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len() as u64) as usize]
    }
}
