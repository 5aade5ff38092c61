//! Which ref a claim is.
//!
//! A [`ClaimName`] has one spelling; a [`ClaimRef`] may also be a ref that somebody made by hand and spelled otherwise:
//! such claims can be seen and cleared, never taken.

use std::borrow::Cow;

use gix::bstr::{BStr, BString, ByteSlice};

use super::{
    name::{ClaimName, NameError},
    prefix::{Prefix, is_legal_ref},
    text::quoted,
};

/// A ref beneath the prefix, legal by git's rules: the one spelling of a name, or one that was made by hand.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClaimRef {
    full: BString,
    /// Where the prefix ends.
    start: usize,
}

impl ClaimRef {
    /// The ref of a name.
    pub fn new(prefix: &Prefix, name: &ClaimName) -> Self {
        ClaimRef { full: format!("{prefix}{name}").into(), start: prefix.as_str().len() }
    }

    /// The claim that an advertised ref is, however it is spelled. `None` for a ref elsewhere, and for a name that git's
    /// rules forbid: no git server has such a ref, so nothing could be done with it.
    pub fn listed(prefix: &Prefix, full: &BStr) -> Option<Self> {
        let beneath = full.starts_with(prefix.as_str().as_bytes()) && is_legal_ref(full);
        beneath.then(|| ClaimRef { full: full.to_owned(), start: prefix.as_str().len() })
    }

    /// The claim that somebody names who wants to act on an existing one: a full ref name beneath the prefix is taken
    /// verbatim, anything else is a name.
    ///
    /// Fails like [`ClaimName::parse`], and for full ref names that are elsewhere or illegal.
    pub fn typed(prefix: &Prefix, typed: &str) -> Result<Self, NameError> {
        if !typed.starts_with("refs/") {
            return Ok(ClaimRef::new(prefix, &ClaimName::parse(typed)?));
        }
        if !typed.starts_with(prefix.as_str()) {
            return Err(NameError::Elsewhere { typed: quoted(typed), prefix: prefix.clone() });
        }
        ClaimRef::listed(prefix, typed.as_bytes().as_bstr())
            .ok_or_else(|| NameError::IllegalRef(quoted(typed)))
    }

    /// The ref by which somebody asks the holder of this claim to stop: `refs/claims-asked/issue-42`.
    pub fn asked(&self) -> Self {
        let (prefix, short) = self.full.split_at(self.start);
        let prefix = [prefix.strip_suffix(b"/").unwrap_or(prefix), b"-asked/"].concat();
        ClaimRef { start: prefix.len(), full: [&prefix, short].concat().into() }
    }

    /// The full name of the ref, `refs/claims/issue-42`.
    pub fn full(&self) -> &BStr {
        self.full.as_bstr()
    }

    /// The name without the prefix, `issue-42`; what is not UTF-8 is replaced.
    pub fn short(&self) -> Cow<'_, str> {
        self.full[self.start..].to_str_lossy()
    }

    /// The name whose one spelling this ref is; `None` for refs made by hand that no name leads to.
    pub fn name(&self) -> Option<ClaimName> {
        let short = self.full[self.start..].to_str().ok()?;
        ClaimName::parse(short).ok().filter(|name| name.as_str() == short)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{super::testing::git, *};

    #[test]
    fn whom_to_ask_lies_beside_the_claim_and_is_none() {
        for (prefix, full) in [
            ("refs/claims/", "refs/claims-asked/issue-42"),
            ("refs/heads/claims/", "refs/heads/claims-asked/issue-42"),
        ] {
            let prefix = Prefix::parse(prefix).expect("legal");
            let asked = ClaimRef::typed(&prefix, "42").expect("a name").asked();
            assert_eq!((asked.full(), &*asked.short()), (BStr::new(full), "issue-42"));
            assert_eq!(ClaimRef::listed(&prefix, asked.full()), None);
        }
    }

    #[test]
    fn refs_made_by_hand_are_claims_too() {
        let prefix = Prefix::default();
        let listed = |full: &[u8]| ClaimRef::listed(&prefix, full.as_bstr());
        for (full, short, name) in [
            (&b"refs/claims/issue-42"[..], "issue-42", Some("issue-42")),
            (b"refs/claims/proj-1", "proj-1", Some("proj-1")),
            (b"refs/claims/Issue-42", "Issue-42", None),
            (b"refs/claims/issue-042", "issue-042", None),
            (b"refs/claims/42", "42", None),
            (b"refs/claims/issue-x", "issue-x", None),
            (b"refs/claims/team/issue-42", "team/issue-42", None),
            (b"refs/claims/caf\xe9", "caf\u{fffd}", None),
        ] {
            let claim = listed(full).expect("it is beneath the prefix");
            assert_eq!(claim.full(), full);
            assert_eq!(claim.short(), short);
            assert_eq!(claim.name().map(|name| name.to_string()).as_deref(), name);
        }
        for full in [
            &b"refs/claims/"[..],
            b"refs/claims",
            b"refs/claimsx",
            b"refs/heads/main",
            b"HEAD",
            b"",
            b"refs/claims/../x",
            b"refs/claims/a\nb",
        ] {
            assert_eq!(listed(full), None, "{full:?}");
        }
    }

    #[test]
    fn an_existing_claim_can_be_typed_in_full() {
        let prefix = Prefix::default();
        let typed =
            |typed: &str| ClaimRef::typed(&prefix, typed).map(|claim| claim.full().to_string());
        assert_eq!(typed("#42"), Ok("refs/claims/issue-42".into()));
        assert_eq!(typed("refs/claims/issue-42"), Ok("refs/claims/issue-42".into()));
        assert_eq!(typed("refs/claims/Issue-042/x"), Ok("refs/claims/Issue-042/x".into()));
        assert_eq!(typed("team/issue-42"), Err(NameError::NotAKey("team/issue-42".into())));
        assert_eq!(typed("refs/claims/"), Err(NameError::IllegalRef("refs/claims/".into())));
        assert_eq!(
            typed("refs/claims/a..b"),
            Err(NameError::IllegalRef("refs/claims/a..b".into()))
        );
        let elsewhere = typed("refs/heads/main").expect_err("it is no claim");
        assert_eq!(elsewhere.to_string(), r#""refs/heads/main" is not beneath refs/claims/"#);
    }

    #[test]
    fn git_and_we_agree_on_what_a_legal_ref_is() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        for name in [
            "issue-42", "proj-1", "a.lock.b", "x-", "7", "a.b_c-d", "a..b", "a.", "a.lock", ".a",
            "a/b", "-a", "a/.b", "a.lock/b", "a//b", "a/", "@", "a@{b", "a~b", "ä", "a.b.",
        ] {
            let full = format!("refs/claims/{name}");
            let legal = git(dir.path(), &["check-ref-format", &full], b"").status.success();
            let ours = ClaimRef::listed(&Prefix::default(), full.as_bytes().as_bstr());
            assert_eq!(ours.is_some(), legal, "{full}");
            assert!(legal || ClaimName::parse(name).is_err(), "{name}");
        }
    }

    proptest! {
        #[test]
        fn any_ref_is_read_without_panic(full in proptest::collection::vec(any::<u8>(), 0..40)) {
            let full = [&b"refs/claims/"[..], &full].concat();
            if let Some(claim) = ClaimRef::listed(&Prefix::default(), full.as_bstr()) {
                prop_assert_eq!(claim.full(), full.as_bstr());
                let _ = (claim.short(), claim.name());
            }
        }
    }
}
