//! An id as people name it: its beginning, long enough to be meant.
//!
//! One ref has one tip, so whatever names that tip names it uniquely; seven digits are asked for so that nothing is
//! named by a slip.

use std::fmt;

use gix::ObjectId;

use super::text::quoted;

/// The beginning of an id: 7 or more hex digits, in lower case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Abbreviated(String);

/// Not an id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not an id: use 7 or more hex digits, as 'git claim show' prints them")]
pub struct NotAnId(String);

impl Abbreviated {
    /// Reads what was typed, in either case.
    ///
    /// # Errors
    /// For fewer than 7 digits, more than an id has, and anything that is no hex digit.
    pub fn parse(typed: &str) -> Result<Self, NotAnId> {
        let fits =
            (7..=64).contains(&typed.len()) && typed.bytes().all(|byte| byte.is_ascii_hexdigit());
        if fits { Ok(Self(typed.to_ascii_lowercase())) } else { Err(NotAnId(quoted(typed))) }
    }

    /// Whether `id` begins so.
    pub fn is(&self, id: ObjectId) -> bool {
        id.to_string().starts_with(&self.0)
    }
}

impl fmt::Display for Abbreviated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_named_by_seven_digits_or_more() {
        let id =
            ObjectId::from_hex("abcdef0123456789abcdef0123456789abcdef01".as_bytes()).expect("hex");
        assert!(Abbreviated::parse("ABCDEF0").expect("an id").is(id));
        assert!(!Abbreviated::parse("abcdef1").expect("an id").is(id));
        for typed in ["", "abcdef", "abcdefg", "-abcdef0", &"a".repeat(65)] {
            assert!(Abbreviated::parse(typed).is_err(), "{typed}");
        }
    }
}
