//! Where the claims of a remote are, for servers that accept refs in some places only.
//!
//! All of `refs/`, all branches or all tags are no such place: whatever is there would be taken for a claim.

use std::fmt;

use gix::bstr::{BStr, ByteSlice};

use super::text::quoted;

/// The namespace beneath which every ref is a claim. It starts with `refs/` and ends in `/`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prefix(String);

/// What was set is no namespace for claims.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PrefixError {
    /// It starts with something else than `refs/`.
    #[error("{0:?} does not start with refs/, as in refs/claims/")]
    NotRefs(String),
    /// Every ref of its kind would be a claim.
    #[error("{0:?} holds more than claims: name a namespace below it, as in {0}claims/")]
    TooWide(String),
    /// A character outside the plain ones.
    #[error("{0:?} may hold only letters of ASCII, digits, '.', '_', '-' and '/'")]
    Letters(String),
    /// No ref beneath it would be legal.
    #[error("{0:?} is no legal beginning of a ref")]
    Illegal(String),
}

impl Prefix {
    /// The namespace that `typed` names; a missing `/` at its end is added.
    ///
    /// Fails for what is not below `refs/`, for the whole of `refs/`, `refs/heads/` or `refs/tags/`, and for what git's
    /// rules, or plain spelling, forbid.
    pub fn parse(typed: &str) -> Result<Self, PrefixError> {
        let mut full = typed.to_owned();
        if !full.ends_with('/') {
            full.push('/');
        }
        if !full.starts_with("refs/") {
            return Err(PrefixError::NotRefs(quoted(typed)));
        }
        // Servers on some file systems do not tell `refs/Heads/` from `refs/heads/`.
        if ["refs/", "refs/heads/", "refs/tags/"].iter().any(|wide| full.eq_ignore_ascii_case(wide))
        {
            return Err(PrefixError::TooWide(quoted(&full)));
        }
        let plain =
            |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-' | b'/');
        if !full.bytes().all(plain) {
            return Err(PrefixError::Letters(quoted(typed)));
        }
        if !is_legal_ref(format!("{full}x").as_bytes().as_bstr()) {
            return Err(PrefixError::Illegal(quoted(typed)));
        }
        Ok(Prefix(full))
    }

    /// The namespace with `/` at its end.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The namespace of the requests to the holders of these claims: `refs/claims-asked/`.
    pub fn asked(&self) -> Self {
        Prefix(format!("{}-asked/", self.0.trim_end_matches('/')))
    }

    /// The other namespaces that this program's documentation names: who is set up differently has claims there.
    pub fn others(&self) -> Vec<Prefix> {
        let known = KNOWN.iter().filter(|known| !self.0.eq_ignore_ascii_case(known));
        known.map(|known| Prefix((*known).to_owned())).collect()
    }
}

/// The default, and the one for hosts that accept branches only.
const KNOWN: [&str; 2] = ["refs/claims/", "refs/heads/claims/"];

impl Default for Prefix {
    fn default() -> Self {
        Prefix(KNOWN[0].to_owned())
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Whether git's rules allow a ref of this full name.
pub(super) fn is_legal_ref(full: &BStr) -> bool {
    gix::validate::reference::name(full).is_ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{
        super::{claim_ref::ClaimRef, name::ClaimName},
        *,
    };

    #[test]
    fn the_known_ones_look_at_each_other() {
        let others = |typed: &str| {
            let prefix = Prefix::parse(typed).expect("legal");
            prefix.others().iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(others("refs/claims"), ["refs/heads/claims/"]);
        assert_eq!(others("refs/heads/Claims"), ["refs/claims/"]);
        assert_eq!(others("refs/locks"), ["refs/claims/", "refs/heads/claims/"]);
    }

    #[test]
    fn prefixes() {
        let prefix = |typed: &str| Prefix::parse(typed).map(|prefix| prefix.to_string());
        assert_eq!(Prefix::default().to_string(), "refs/claims/");
        assert_eq!(prefix("refs/claims"), Ok("refs/claims/".into()));
        assert_eq!(prefix("refs/claims/"), Ok("refs/claims/".into()));
        assert_eq!(prefix("refs/heads/Claims"), Ok("refs/heads/Claims/".into()));
        assert_eq!(prefix("refs/tags/claims_1.0/x-y"), Ok("refs/tags/claims_1.0/x-y/".into()));
        for typed in ["", "/", "claims", "heads/claims/", "REFS/claims"] {
            assert!(matches!(prefix(typed), Err(PrefixError::NotRefs(_))), "{typed:?}");
        }
        for typed in ["refs/", "refs/heads", "refs/heads/", "refs/tags", "refs/Tags/"] {
            assert!(matches!(prefix(typed), Err(PrefixError::TooWide(_))), "{typed:?}");
        }
        for typed in
            ["refs/clai ms", "refs/cläims", "refs/claims\n", "refs/cl*ms", "refs/a@{b", "refs/a:b"]
        {
            assert!(matches!(prefix(typed), Err(PrefixError::Letters(_))), "{typed:?}");
        }
        for typed in [
            "refs//",
            "refs/claims//",
            "refs//claims",
            "refs/.claims",
            "refs/a..b",
            "refs/a.lock/b",
        ] {
            assert!(matches!(prefix(typed), Err(PrefixError::Illegal(_))), "{typed:?}");
        }
    }

    proptest! {
        #[test]
        fn a_prefix_is_its_own_spelling_and_keeps_names_legal(typed in "refs/[a-zA-Z0-9._/-]{0,12}") {
            if let Ok(prefix) = Prefix::parse(&typed) {
                prop_assert_eq!(Prefix::parse(prefix.as_str()), Ok(prefix.clone()));
                let name = ClaimName::parse("42")?;
                prop_assert!(is_legal_ref(ClaimRef::new(&prefix, &name).full()));
            }
        }
    }
}
