//! What can be claimed, so that one thing has one spelling on the remote, always.
//!
//! Nothing here guesses: what is not clearly a name is refused.

use std::fmt;

use gix::bstr::ByteSlice;

use super::{
    prefix::{Prefix, is_legal_ref},
    text::quoted,
};

/// The most bytes that a name has.
const MAX_NAME: usize = 100;

const ALLOWED: &str = "a name is an issue (42, #42, issue-42, or a URL ending in /issues/42), or a key of \
    a-z, 0-9, '.', '_' and '-' that starts with a letter or digit, has at most 100 bytes, no '..', \
    and ends neither in '.' nor in '.lock'";

/// The one spelling of a thing that can be claimed: `issue-42`, or a resource key such as `client-release-archive`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClaimName(String);

/// What was typed names nothing that can be claimed. Each variant repeats it, shortened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// Nothing was typed.
    #[error("the name is empty: {}", ALLOWED)]
    Empty,
    /// An issue numbered zero.
    #[error("{0:?} is no issue: numbers start at 1")]
    Zero(String),
    /// More digits or letters than a name may have.
    #[error("{0:?} is too long: a name has at most {max} bytes", max = MAX_NAME)]
    TooLong(String),
    /// It starts like the name of an issue and does not go on with a number.
    #[error("{0:?} is no issue: after 'issue-' comes a number, as in issue-42")]
    NotAnIssue(String),
    /// A URL of something else than an issue.
    #[error("{0:?} is no issue's URL: its path ends in /issues/ and a number")]
    NotAnIssueUrl(String),
    /// It breaks the rules for keys.
    #[error("{0:?} is no name for a claim: {allowed}", allowed = ALLOWED)]
    NotAKey(String),
    /// A full ref name of another place.
    #[error("{typed:?} is not beneath {prefix}")]
    Elsewhere {
        /// What was typed.
        typed: String,
        /// Where claims are.
        prefix: Prefix,
    },
    /// A full ref name that git's rules forbid.
    #[error("{0:?} is no legal name of a ref")]
    IllegalRef(String),
}

impl ClaimName {
    /// The name that `typed` means: `42`, `#42`, `042`, `Issue-42` and `https://host/owner/repo/issues/42` are all
    /// `issue-42`; anything else is a key, folded to lower case.
    ///
    /// Fails, saying what is allowed, for everything that could be a second spelling or no legal ref.
    pub fn parse(typed: &str) -> Result<Self, NameError> {
        if typed.is_empty() {
            return Err(NameError::Empty);
        }
        let lower = typed.to_ascii_lowercase();
        if lower.starts_with("https://") || lower.starts_with("http://") {
            return match number_in_url(typed) {
                Some(digits) => issue(digits, typed),
                None => Err(NameError::NotAnIssueUrl(quoted(typed))),
            };
        }
        if let Some(digits) = lower.strip_prefix("issue-") {
            return if is_number(digits) {
                issue(digits, typed)
            } else {
                Err(NameError::NotAnIssue(quoted(typed)))
            };
        }
        let digits = lower.strip_prefix('#').unwrap_or(&lower);
        if is_number(digits) { issue(digits, typed) } else { key(lower, typed) }
    }

    /// The name as it stands in the ref, after the prefix.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ClaimName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The number of an issue whose URL this is, query and fragment left aside.
fn number_in_url(url: &str) -> Option<&str> {
    let path = url.split(['?', '#']).next()?;
    let (_scheme, path) = path.split_once("://")?;
    let (before, digits) = path.strip_suffix('/').unwrap_or(path).rsplit_once("/issues/")?;
    let has_host = !before.is_empty() && !before.starts_with('/');
    (has_host && is_number(digits)).then_some(digits)
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// The digits stay text, so that no number is too large to be told apart from another.
fn issue(digits: &str, typed: &str) -> Result<ClaimName, NameError> {
    let number = digits.trim_start_matches('0');
    if number.is_empty() {
        return Err(NameError::Zero(quoted(typed)));
    }
    let name = format!("issue-{number}");
    if name.len() > MAX_NAME {
        return Err(NameError::TooLong(quoted(typed)));
    }
    Ok(ClaimName(name))
}

fn key(lower: String, typed: &str) -> Result<ClaimName, NameError> {
    let starts_well = lower.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit());
    let spelled_well = lower.bytes().all(|byte| {
        byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'.' | b'_' | b'-')
    });
    if !starts_well || !spelled_well || !is_legal_ref(format!("refs/{lower}").as_bytes().as_bstr())
    {
        return Err(NameError::NotAKey(quoted(typed)));
    }
    if lower.len() > MAX_NAME {
        return Err(NameError::TooLong(quoted(typed)));
    }
    Ok(ClaimName(lower))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{super::claim_ref::ClaimRef, *};

    fn parsed(typed: &str) -> String {
        match ClaimName::parse(typed) {
            Ok(name) => name.to_string(),
            Err(error) => format!("error: {error}"),
        }
    }

    #[test]
    fn one_issue_has_one_name() {
        for typed in [
            "42",
            "#42",
            "#042",
            "issue-42",
            "Issue-042",
            "ISSUE-42",
            "042",
            "00000000000000000000000000000000000000000000000042",
            "https://example.org/owner/repo/issues/42",
            "http://example.org/owner/repo/issues/42/",
            "HTTPS://example.org/issues/042?tab=all&x=/issues/7",
            "https://example.org/owner/repo/-/issues/42#note_1",
            "https://user@example.org:8443/issues/7/issues/42/?q#f",
        ] {
            assert_eq!(parsed(typed), "issue-42", "{typed}");
        }
    }

    #[test]
    fn numbers_are_not_bounded_by_a_machine_word() {
        let digits = "9".repeat(MAX_NAME - "issue-".len());
        assert_eq!(parsed(&digits), format!("issue-{digits}"));
        assert!(matches!(ClaimName::parse(&format!("{digits}9")), Err(NameError::TooLong(_))));
    }

    #[test]
    fn keys_fold_to_lower_case() {
        for (typed, name) in [
            ("client-release-archive", "client-release-archive"),
            ("PROJ-123", "proj-123"),
            ("a", "a"),
            ("7zip_1.0", "7zip_1.0"),
            ("042x", "042x"),
            ("issue", "issue"),
            ("issues-42", "issues-42"),
            ("a.lock.b", "a.lock.b"),
            ("x-", "x-"),
        ] {
            assert_eq!(parsed(typed), name);
        }
        assert_eq!(parsed(&"k".repeat(MAX_NAME)), "k".repeat(MAX_NAME));
        assert!(matches!(ClaimName::parse(&"k".repeat(MAX_NAME + 1)), Err(NameError::TooLong(_))));
    }

    #[test]
    fn everything_else_is_refused() {
        for typed in [
            "-x",
            ".x",
            "_x",
            "a/b",
            "a..b",
            "a.",
            "a.lock",
            "A.LOCK",
            "a b",
            " 42",
            "42 ",
            "#",
            "#x",
            "##42",
            "+42",
            "-42",
            "a~1",
            "a^",
            "a:b",
            "a?",
            "a*",
            "a[",
            "a\\b",
            "a@{1}",
            "@",
            "a\n",
            "a\0",
            "naïve",
            "４２",
            "٤٢",
            "ſ",
            "\u{212a}",
            "issue/42",
            "issue 42",
            "ftp://example.org/issues/42",
            "refs/claims/issue-42",
        ] {
            assert!(matches!(ClaimName::parse(typed), Err(NameError::NotAKey(_))), "{typed:?}");
        }
        for typed in ["issue-", "issue-x", "Issue-42a", "issue--42", "issue-#42", "issue-４"] {
            assert!(matches!(ClaimName::parse(typed), Err(NameError::NotAnIssue(_))), "{typed:?}");
        }
        for typed in ["0", "#0", "000", "issue-0", "https://example.org/issues/00"] {
            assert!(matches!(ClaimName::parse(typed), Err(NameError::Zero(_))), "{typed:?}");
        }
        for typed in [
            "https://example.org/owner/repo/pull/42",
            "https://example.org/issues/",
            "https://example.org/issues/42/edit",
            "https://example.org/issues/42//",
            "https://example.org/issues/4x",
            "https://example.org/?u=/issues/42",
            "https://example.org/#/issues/42",
            "https:///issues/42",
            "https://issues/42",
            "https://",
        ] {
            assert!(
                matches!(ClaimName::parse(typed), Err(NameError::NotAnIssueUrl(_))),
                "{typed:?}"
            );
        }
        assert_eq!(ClaimName::parse(""), Err(NameError::Empty));
    }

    #[test]
    fn errors_quote_what_was_typed_and_say_what_is_allowed() {
        let error = parsed("a\x1b[31m\u{202e}b");
        assert!(
            error.starts_with(r#"error: "a\u{1b}[31m\u{202e}b" is no name for a claim: a name is"#),
            "{error}"
        );
        let error = parsed(&"/".repeat(1_000_000));
        assert!(error.len() < 1000, "{}", error.len());
    }

    /// Text made of the letters that names, URLs and illegal refs are made of.
    fn almost_a_name() -> impl Strategy<Value = String> {
        prop_oneof![
            "[0-9a-zA-Z._#/-]{0,12}",
            "(issue-|ISSUE-|#)?0{0,3}[0-9]{1,4}[a-z]?",
            "\\PC{0,8}",
            any::<String>()
        ]
    }

    proptest! {
        #[test]
        fn every_spelling_of_an_issue_is_one_name(number in "[1-9][0-9]{0,93}", zeros in 0..4usize, case: [bool; 5]) {
            let digits = "0".repeat(zeros) + &number;
            let word: String = "issue".chars().zip(case)
                .map(|(c, upper)| if upper { c.to_ascii_uppercase() } else { c })
                .collect();
            let name = format!("issue-{number}");
            for typed in [
                digits.clone(),
                format!("#{digits}"),
                format!("{word}-{digits}"),
                format!("https://example.org/o/r/issues/{digits}/?q=1#f"),
            ] {
                prop_assert_eq!(parsed(&typed), name.clone());
            }
        }

        #[test]
        fn a_name_is_its_own_and_only_spelling(typed in almost_a_name()) {
            if let Ok(name) = ClaimName::parse(&typed) {
                let text = name.as_str();
                prop_assert_eq!(ClaimName::parse(text), Ok(name.clone()));
                prop_assert_eq!(ClaimName::parse(&text.to_ascii_uppercase()), Ok(name.clone()));
                prop_assert!(text.len() <= MAX_NAME && !text.bytes().all(|b| b.is_ascii_digit()));
                if let Some(digits) = text.strip_prefix("issue-") {
                    prop_assert!(is_number(digits) && !digits.starts_with('0'));
                }
                let claim = ClaimRef::new(&Prefix::default(), &name);
                prop_assert!(is_legal_ref(claim.full()));
                prop_assert_eq!(ClaimRef::listed(&Prefix::default(), claim.full()), Some(claim.clone()));
                prop_assert_eq!(claim.short(), text);
                prop_assert_eq!(claim.name(), Some(name));
            }
        }

        #[test]
        fn two_typed_texts_are_one_claim_only_if_they_differ_in_case_or_in_how_an_issue_is_named(
            a in almost_a_name(), b in almost_a_name()
        ) {
            let plain = |typed: &str| {
                let bare = typed.to_ascii_lowercase().replace("issue-", "").replace('#', "");
                bare.trim_start_matches('0').to_owned()
            };
            if let (Ok(one), Ok(other)) = (ClaimName::parse(&a), ClaimName::parse(&b)) && one == other {
                prop_assert_eq!(plain(&a), plain(&b));
            }
        }
    }
}
