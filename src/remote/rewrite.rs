//! The user's own spellings of URLs: `url.<base>.insteadOf` and `url.<base>.pushInsteadOf`.
//!
//! A rewriting is never applied to the result of another one.

use gix::bstr::{BStr, BString, ByteSlice};

use crate::checkout::Config;

/// `url.<base>.insteadOf` and `url.<base>.pushInsteadOf`.
#[derive(Default)]
pub(super) struct Rewrites {
    all: Vec<(BString, BString)>,
    push: Vec<(BString, BString)>,
}

impl Rewrites {
    pub(super) fn configured(config: &Config) -> Rewrites {
        let mut rewrites = Rewrites::default();
        for (base, key, prefix) in config.below("url") {
            let pair = (prefix.to_owned(), base.to_owned());
            match key.as_bytes() {
                b"insteadof" => rewrites.all.push(pair),
                b"pushinsteadof" => rewrites.push.push(pair),
                _ => {}
            }
        }
        rewrites.all = grouped(rewrites.all);
        rewrites.push = grouped(rewrites.push);
        rewrites
    }

    pub(super) fn for_all(&self, url: &BStr) -> Option<BString> {
        rewritten(url, &self.all)
    }

    pub(super) fn for_push(&self, url: &BStr) -> Option<BString> {
        rewritten(url, &self.push)
    }
}

/// git keeps the prefixes of one base together, which decides who goes first when a prefix is there twice.
fn grouped(pairs: Vec<(BString, BString)>) -> Vec<(BString, BString)> {
    let mut bases: Vec<&BString> = Vec::new();
    for (_, base) in &pairs {
        if !bases.contains(&base) {
            bases.push(base);
        }
    }
    let of = |base| pairs.iter().filter(move |(_, other)| other == base);
    bases.into_iter().flat_map(of).cloned().collect()
}

/// The longest prefix wins, of equals the first.
fn rewritten(url: &BStr, rewrites: &[(BString, BString)]) -> Option<BString> {
    let mut best: Option<&(BString, BString)> = None;
    for candidate in rewrites {
        if url.starts_with(&candidate.0) && best.is_none_or(|best| candidate.0.len() > best.0.len())
        {
            best = Some(candidate);
        }
    }
    best.map(|(prefix, base)| [base.as_slice(), &url[prefix.len()..]].concat().into())
}

#[cfg(test)]
mod tests {
    use super::super::testing::{choose, configured};

    #[test]
    fn a_url_that_was_typed_is_rewritten_too() {
        let text = "[url \"https://h/\"]\n\tinsteadOf = gh:\n[url \"ssh://git@h/\"]\n\tpushInsteadOf = gl:\n[url \"https://h/\"]\n\tinsteadOf = short\n";
        let sandbox = configured(text);
        assert_eq!(choose(&sandbox, Some("gh:a")).unwrap().url, "https://h/a");
        assert_eq!(choose(&sandbox, Some("gl:a")).unwrap().url, "ssh://git@h/a");
        assert_eq!(choose(&sandbox, Some("short")).unwrap().url, "https://h/");
        let typed = sandbox.with("GIT_CONFIG_PARAMETERS", "'url.https://other/.insteadOf'='gh:a'");
        assert_eq!(choose(&typed, Some("gh:a/b")).unwrap().url, "https://other//b");
    }
}
