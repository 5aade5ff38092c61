//! `git-claim` answers one question for people and bots that share a git remote: *is this issue mine to start?*
//!
//! Data flows one way: typed ([`cli`]) → [`settings`] → names ([`claim`]) → [`wire`] → [`verdict`] → [`output`].
//! The pure modules ([`claim`], [`verdict`]) decide on values and know neither I/O, clock nor randomness;
//! the edge modules fetch those values and are kept thin.

pub mod cli;
