//! What a claim is called, what its commit says, and how old it is.
//!
//! Everything here is a pure function on values: no I/O, no clock, no randomness. These modules exist so that names and
//! records can be tested without a remote; they refuse to know who asks, which remote is meant, or what a claim's age
//! should lead to.

pub mod abbreviated;
pub mod age;
pub mod chain;
pub mod claim_ref;
pub mod commit;
pub mod name;
pub mod prefix;
mod reading;
pub mod record;
pub mod staleness;
mod text;
pub mod token;

#[cfg(test)]
mod testing;
