//! What is configured and what the environment says, as values that a test can make up.
//!
//! git has done the reading: which files hold, in which order, and what they include is not decided here.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
};

use gix::bstr::{BStr, BString, ByteSlice};

/// The environment variables that decide: the process's own, or exactly these.
#[derive(Debug, Clone, Default)]
pub enum Environment {
    /// The variables of this process.
    #[default]
    Process,
    /// These and no others, also for children.
    Only(BTreeMap<OsString, OsString>),
}

impl Environment {
    /// The value of the variable `name`, if it is set.
    pub fn get(&self, name: &str) -> Option<OsString> {
        match self {
            Environment::Process => std::env::var_os(name),
            Environment::Only(variables) => variables.get(OsStr::new(name)).cloned(),
        }
    }

    /// The value of `name` as text, if it is set and not empty. Bytes that are no UTF-8 are replaced.
    pub fn text(&self, name: &str) -> Option<String> {
        let value = self.get(name)?.to_string_lossy().into_owned();
        (!value.is_empty()).then_some(value)
    }
}

/// The configuration as `git config --list` gives it: all sources, includes followed, the weakest first.
#[derive(Debug, Clone, Default)]
pub struct Config {
    entries: Vec<(BString, Option<BString>)>,
}

impl Config {
    /// From what `git config --list -z` prints.
    pub(super) fn from_listing(listing: &[u8]) -> Config {
        let entries = listing.split(|byte| *byte == 0).filter(|entry| !entry.is_empty());
        let entries = entries.map(|entry| match entry.split_once_str("\n") {
            Some((key, value)) => (key.into(), Some(value.into())),
            None => (entry.into(), None),
        });
        Config { entries: entries.collect() }
    }

    /// The value that wins for `key` (`claim.remote`, `remote.origin.vcs`; case matters only in the middle part).
    ///
    /// A key without `=` reads as the empty string; see [`switch`](Config::switch).
    pub fn string(&self, key: &str) -> Option<&BStr> {
        self.values(key).last().map(Option::unwrap_or_default)
    }

    /// As [`string`](Config::string), but a key without `=` reads as `true`, which it means for a switch.
    pub fn switch(&self, key: &str) -> Option<&BStr> {
        self.values(key).last().map(|value| value.unwrap_or(b"true".as_bstr()))
    }

    /// Everything below `section.<middle>.<name>`: middle, name in lower case, value.
    pub fn below(&self, section: &str) -> impl Iterator<Item = (&BStr, &BStr, &BStr)> {
        self.entries.iter().filter_map(move |(key, value)| {
            let rest = key.strip_prefix(section.as_bytes())?.strip_prefix(b".")?;
            let (middle, name) = rest.rsplit_once_str(".")?;
            Some((
                middle.as_bstr(),
                name.as_bstr(),
                value.as_ref().map_or(BStr::new(""), |v| v.as_ref()),
            ))
        })
    }

    /// Every value of `key`, the weakest first; `None` for a key without `=`.
    fn values(&self, key: &str) -> impl Iterator<Item = Option<&BStr>> {
        let key = canonical(key);
        self.entries
            .iter()
            .filter(move |(have, _)| *have == key)
            .map(|(_, value)| value.as_ref().map(|value| value.as_bstr()))
    }
}

/// The spelling that `git config --list` uses: first and last part in lower case.
fn canonical(key: &str) -> String {
    match (key.split_once('.'), key.rsplit_once('.')) {
        (Some((section, rest)), Some((_, name))) if rest.len() > name.len() => {
            let middle = &rest[..rest.len() - name.len() - 1];
            format!("{}.{middle}.{}", section.to_ascii_lowercase(), name.to_ascii_lowercase())
        }
        _ => key.to_ascii_lowercase(),
    }
}

/// What git takes for a boolean: `true`, `yes`, `on`, a number other than 0; `false`, `no`, `off`, nothing, 0.
pub fn boolean(text: &[u8]) -> Option<bool> {
    let text = text.to_str().ok()?.trim().to_ascii_lowercase();
    match text.as_str() {
        "true" | "yes" | "on" => Some(true),
        "false" | "no" | "off" | "" => Some(false),
        number => {
            let digits = number.strip_suffix(['k', 'm', 'g']).unwrap_or(number);
            digits.parse::<i64>().ok().map(|number| number != 0)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::{Checkout, sandbox::Sandbox},
        *,
    };

    fn value(checkout: &Checkout, key: &str) -> Option<String> {
        checkout.config().string(key).map(ToString::to_string)
    }

    #[test]
    fn nothing_configured_anywhere_is_no_error() {
        let sandbox = Sandbox::new().without("HOME");
        assert!(value(&sandbox.open(".").unwrap(), "user.name").is_none());
    }

    #[test]
    fn the_nearest_source_wins() {
        let sandbox = Sandbox::with_repository().without("GIT_CONFIG_NOSYSTEM");
        let system = sandbox.write("system", "[claim]\n\ta = system\n\tb = system\n\tc = system\n\td = system\n\te = system\n\tf = system\n");
        let global = sandbox.write(
            "global",
            "[claim]\n\tb = global\n\tc = global\n\td = global\n\te = global\n\tf = global\n",
        );
        for (key, source) in
            [("c", "--local"), ("d", "--local"), ("e", "--local"), ("f", "--local")]
        {
            sandbox.git("work", &["config", source, &format!("claim.{key}"), "local"]);
        }
        sandbox.git("work", &["config", "extensions.worktreeConfig", "true"]);
        for key in ["d", "e", "f"] {
            sandbox.git("work", &["config", "--worktree", &format!("claim.{key}"), "worktree"]);
        }
        let sandbox = sandbox
            .with("GIT_CONFIG_SYSTEM", system)
            .with("GIT_CONFIG_GLOBAL", global)
            .with("GIT_CONFIG_COUNT", "2")
            .with("GIT_CONFIG_KEY_0", "claim.e")
            .with("GIT_CONFIG_VALUE_0", "count")
            .with("GIT_CONFIG_KEY_1", "claim.f")
            .with("GIT_CONFIG_VALUE_1", "count")
            .with(
                "GIT_CONFIG_PARAMETERS",
                "'claim.f'='it'\\''s typed' 'claim.old=style' 'claim.switch'",
            );
        let checkout = sandbox.open("work").unwrap();
        let all: Vec<_> = ["a", "b", "c", "d", "e", "f"]
            .map(|key| value(&checkout, &format!("claim.{key}")).unwrap())
            .into();
        assert_eq!(all, ["system", "global", "local", "worktree", "count", "it's typed"]);
        assert_eq!(value(&checkout, "Claim.OLD").as_deref(), Some("style"));
        assert_eq!(value(&checkout, "claim.switch").as_deref(), Some(""));
        assert_eq!(checkout.config().switch("claim.switch").unwrap(), "true");

        let sandbox = sandbox.with("GIT_CONFIG_NOSYSTEM", "1").with("GIT_CONFIG", "/dev/null");
        let checkout = sandbox.open("work").unwrap();
        assert_eq!(value(&checkout, "claim.a"), None);
        assert_eq!(value(&checkout, "claim.b").as_deref(), Some("global"));
    }

    #[test]
    fn includes_are_followed_also_when_conditional() {
        let sandbox = Sandbox::with_repository();
        sandbox.write("home/plain", "[claim]\n\ta = plain\n");
        sandbox.write("home/by-folder", "[claim]\n\tb = folder\n");
        sandbox.write("home/by-branch", "[claim]\n\tc = branch\n");
        sandbox.write("home/by-url", "[claim]\n\td = url\n");
        sandbox.write("extra", "[claim]\n\te = typed\n");
        let work = sandbox.path("work");
        sandbox.write(
            "home/.gitconfig",
            format!(
                "[include]\n\tpath = plain\n[includeIf \"gitdir:{}/\"]\n\tpath = by-folder\n\
                 [includeIf \"onbranch:main\"]\n\tpath = ~/by-branch\n\
                 [includeIf \"hasconfig:remote.*.url:/srv/**\"]\n\tpath = by-url\n\
                 [includeIf \"gitdir:/elsewhere/\"]\n\tpath = /no/such/file\n",
                work.display()
            ),
        );
        sandbox.git("work", &["remote", "add", "origin", "/srv/x.git"]);
        let typed = format!("'include.path={}'", sandbox.path("extra").display());
        let checkout = sandbox.with("GIT_CONFIG_PARAMETERS", typed);
        let checkout = checkout.open("work").unwrap();
        for (key, expected) in
            [("a", "plain"), ("b", "folder"), ("c", "branch"), ("d", "url"), ("e", "typed")]
        {
            assert_eq!(value(&checkout, &format!("claim.{key}")).as_deref(), Some(expected));
        }
    }

    #[test]
    fn keys_and_booleans_read_as_git_reads_them() {
        assert_eq!(canonical("Remote.My.Fork.PushURL"), "remote.My.Fork.pushurl");
        assert_eq!(canonical("Claim.StaleAfter"), "claim.staleafter");
        for text in ["true", "YES", "on", "1", "-1", "2k"] {
            assert_eq!(boolean(text.as_bytes()), Some(true), "{text}");
        }
        for text in ["false", "No", "off", "", "0"] {
            assert_eq!(boolean(text.as_bytes()), Some(false), "{text}");
        }
        assert_eq!(boolean(b"perhaps"), None);
    }
}
