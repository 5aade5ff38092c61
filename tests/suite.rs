//! The one test binary.

mod docs;
