//! Waiting for a claim that somebody holds.
