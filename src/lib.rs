//! `git-claim` answers one question for people and bots that share a git remote: *is this issue mine to start?*
//!
//! Data flows one way: typed ([`cli`]) → [`settings`] → names ([`claim`]) → [`wire`] → [`verdict`] → [`output`].
//! The pure modules ([`claim`], [`verdict`]) decide on values and know neither I/O, clock nor randomness;
//! the edge modules fetch those values and are kept thin.

pub mod checkout;
pub mod claim;
pub mod cli;
pub mod commands;
pub mod escape;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzzing;
pub mod held;
pub mod identity;
pub mod output;
pub mod process;
pub mod remote;
pub mod settings;
pub mod verdict;
pub mod wait;
pub mod wire;
