//! What is set, from all the places where it can be: flags > environment > `git -c` > configuration > defaults.
//!
//! Every key is named once, here, beside its default. `git -c` and the sources of configuration were merged by
//! git before this module looks (see [`crate::checkout`]). A value that cannot be used is an error that names
//! its key, never a silent default: a typo in `claim.prefix` must not move the claims elsewhere.

use std::{ffi::OsString, time::Duration};

use gix::bstr::{BStr, ByteSlice};

use crate::{
    checkout::{Checkout, boolean},
    claim::prefix::{Prefix, PrefixError},
    escape,
    wait::{Patience, Polls},
};

/// The remote that holds the claims: a remote's name, a URL or a path; `.` is this repository itself.
/// Unset: the only remote, else `origin` (see [`crate::remote`]).
pub const REMOTE: &str = "claim.remote";
/// The namespace of the claims' refs. Unset: [`Prefix::default`].
pub const PREFIX: &str = "claim.prefix";
/// How long one exchange with the remote may take. Unset: [`DEFAULT_TIMEOUT`].
pub const TIMEOUT: &str = "claim.timeout";
/// The default of [`TIMEOUT`].
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);
/// How a claim is released: `delete` its ref, or `mark` it by a child commit that says so, for hosts that allow no
/// deletion. Unset: [`ReleaseBy::default`].
pub const RELEASE: &str = "claim.release";
/// Whether the claim is read again before an `ok` to a take is believed. Unset: no.
pub const CONFIRM: &str = "claim.confirm";
/// After how long without a sign of life a claim is old, as [`duration`] reads it. Unset: [`DEFAULT_STALE_AFTER`].
pub const STALE_AFTER: &str = "claim.staleAfter";
/// The default of [`STALE_AFTER`].
pub const DEFAULT_STALE_AFTER: Duration = Duration::from_secs(24 * 60 * 60);
/// How long to wait before a claim that is held is asked for again, the first time. Unset: [`DEFAULT_POLL`].
pub const POLL: &str = "claim.poll";
/// The default of [`POLL`].
pub const DEFAULT_POLL: Duration = Duration::from_secs(2);
/// The longest such wait. Unset: [`DEFAULT_POLL_MAX`].
pub const POLL_MAX: &str = "claim.pollMax";
/// The default of [`POLL_MAX`].
pub const DEFAULT_POLL_MAX: Duration = Duration::from_secs(30);
/// Who holds the claims taken here: `Name` or `Name <email>`. Unset: git's author identity.
pub const WHO: &str = "claim.who";
/// The environment's word for [`WHO`], before the configuration's.
pub const WHO_VARIABLE: &str = "GIT_CLAIM_WHO";
/// When to colour. Unset: [`COLOR_UI`].
pub const COLOR: &str = "color.claim";
/// When to colour, for all of git. Unset: [`ColorWhen::Auto`].
pub const COLOR_UI: &str = "color.ui";
/// Set and not empty, it turns [`ColorWhen::Auto`] into [`ColorWhen::Never`]; who asks for colour by flag or
/// configuration gets it (<https://no-color.org>).
pub const NO_COLOR: &str = "NO_COLOR";

/// Longer lengths of time are typing errors, and would overflow a clock some day.
const LONGEST: Duration = Duration::from_secs(366 * 24 * 60 * 60);

/// What was typed.
#[derive(Debug, Clone, Default)]
pub struct Asked {
    /// `--remote`.
    pub remote: Option<String>,
    /// `--timeout`.
    pub timeout: Option<Duration>,
    /// `--older-than`.
    pub older_than: Option<Duration>,
    /// `--as`.
    pub who: Option<String>,
    /// `--confirm`.
    pub confirm: bool,
    /// `--color`.
    pub color: Option<ColorWhen>,
}

/// When to colour.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ColorWhen {
    /// On a terminal.
    #[default]
    Auto,
    /// Also into a pipe or a file.
    Always,
    /// Not at all.
    Never,
}

/// How a claim is released.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ReleaseBy {
    /// Its ref goes.
    #[default]
    Deletion,
    /// Its ref stays, and a child of its commit says that it is released.
    Mark,
}

/// What it means.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The namespace of the claims' refs.
    pub prefix: Prefix,
    /// How long one exchange may take, never zero.
    pub timeout: Duration,
    /// How a claim is released.
    pub release: ReleaseBy,
    /// Whether the claim is read again before an `ok` to a take is believed.
    pub confirm: bool,
    /// After how long without a sign of life a claim is old.
    pub stale_after: Duration,
    /// How often a claim that is held is asked for.
    pub polls: Polls,
    /// The holder to show instead of git's author identity.
    pub who: Option<String>,
    /// When to colour.
    pub color: ColorWhen,
    /// Which remote, if anybody said: never empty.
    pub remote: Option<String>,
    /// Whether [`remote`](Settings::remote) was typed: a relative path then starts where the user stands.
    pub remote_typed: bool,
    /// How to start ssh.
    pub ssh: Ssh,
}

/// What git would use to start ssh.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ssh {
    /// Set by the user; without it, it is the program `ssh`.
    pub command: Option<SshCommand>,
    /// `GIT_SSH_VARIANT`, else `ssh.variant`: the dialect of that program's options.
    pub variant: Option<String>,
}

/// A user's own way to start ssh.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SshCommand {
    /// A line for the shell: `GIT_SSH_COMMAND`, else `core.sshCommand`.
    Shell(OsString),
    /// A program: `GIT_SSH`.
    Program(OsString),
}

/// A setting that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// A length of time that is none.
    #[error("'{text}' is not a length of time: {reason}")]
    Duration {
        /// What was given.
        text: String,
        /// What is wrong, or what is allowed.
        reason: String,
    },
    /// A key or variable with a value that it cannot have.
    #[error("{key} is '{value}': {allowed}")]
    Value {
        /// The key, variable or flag.
        key: &'static str,
        /// Its value, escaped.
        value: String,
        /// What is allowed.
        allowed: String,
    },
    /// A namespace that claims cannot have.
    #[error("{PREFIX}: {0}")]
    Prefix(PrefixError),
    /// Given, but as nothing.
    #[error("{0} is empty")]
    Empty(&'static str),
}

impl Settings {
    /// Merges what was typed with the environment and the configuration of `checkout`.
    ///
    /// # Errors
    /// For the first value that cannot be used, with its key and what is allowed.
    pub fn gather(asked: Asked, checkout: &Checkout) -> Result<Settings, SettingsError> {
        let Asked { remote, timeout, older_than, who, confirm, color } = asked;
        let config = checkout.config();

        let prefix = match config.string(PREFIX) {
            Some(value) => Prefix::parse(text(PREFIX, value)?).map_err(SettingsError::Prefix)?,
            None => Prefix::default(),
        };
        let configured = |key, default| match config.string(key) {
            Some(value) => not_zero(key, configured_duration(key, value)?),
            None => Ok(default),
        };
        let timeout = match timeout {
            Some(typed) => not_zero("--timeout", typed)?,
            None => configured(TIMEOUT, DEFAULT_TIMEOUT)?,
        };
        let polls = Polls {
            first: configured(POLL, DEFAULT_POLL)?,
            most: configured(POLL_MAX, DEFAULT_POLL_MAX)?,
        };
        let stale_after = match (older_than, config.string(STALE_AFTER)) {
            (Some(typed), _) => typed,
            (None, Some(value)) => configured_duration(STALE_AFTER, value)?,
            (None, None) => DEFAULT_STALE_AFTER,
        };
        let remote_typed = remote.is_some();
        let remote = match (remote, config.string(REMOTE)) {
            (Some(typed), _) => Some(not_empty("--remote", typed)?),
            (None, Some(value)) => Some(not_empty(REMOTE, text(REMOTE, value)?.to_owned())?),
            (None, None) => None,
        };
        Ok(Settings {
            prefix,
            timeout,
            polls,
            release: match config.string(RELEASE) {
                None => ReleaseBy::default(),
                Some(value) => match value.as_bytes() {
                    b"delete" => ReleaseBy::Deletion,
                    b"mark" => ReleaseBy::Mark,
                    _ => return Err(bad(RELEASE, value, "use delete or mark")),
                },
            },
            confirm: confirm || gather_confirm(checkout)?,
            stale_after,
            who: gather_who(who, checkout)?,
            color: gather_color(color, checkout)?,
            remote,
            remote_typed,
            ssh: Ssh::gather(checkout),
        })
    }
}

impl Ssh {
    /// git's own order (`connect.c`): a command for the shell, wherever it is set, goes before a program.
    fn gather(checkout: &Checkout) -> Ssh {
        let (environment, config) = (checkout.environment(), checkout.config());
        let set = |name| environment.get(name).filter(|value| !value.is_empty());
        let configured = |key| config.string(key).filter(|value| !value.is_empty());
        let shell = set("GIT_SSH_COMMAND").or_else(|| {
            configured("core.sshCommand")
                .map(|value| gix::path::from_bstr(value).map(|path| path.into_owned().into()))
                .and_then(Result::ok)
        });
        let command = match shell {
            Some(line) => Some(SshCommand::Shell(line)),
            None => set("GIT_SSH").map(SshCommand::Program),
        };
        let variant = environment
            .text("GIT_SSH_VARIANT")
            .or_else(|| configured("ssh.variant").map(|value| value.to_str_lossy().into_owned()));
        Ssh { command, variant }
    }
}

/// An empty variable or key says "nobody in particular", so that `git -c claim.who=` undoes a configured one.
fn gather_who(asked: Option<String>, checkout: &Checkout) -> Result<Option<String>, SettingsError> {
    if let Some(typed) = asked {
        return not_empty("--as", typed).map(Some);
    }
    if let Some(value) = checkout.environment().get(WHO_VARIABLE) {
        let value = value.to_string_lossy().trim().to_owned();
        return Ok((!value.is_empty()).then_some(value));
    }
    let configured =
        checkout.config().string(WHO).map(|value| value.to_str_lossy().trim().to_owned());
    Ok(configured.filter(|value| !value.is_empty()))
}

fn gather_confirm(checkout: &Checkout) -> Result<bool, SettingsError> {
    match checkout.config().switch(CONFIRM) {
        None => Ok(false),
        Some(value) => boolean(value).ok_or_else(|| bad(CONFIRM, value, "use a boolean")),
    }
}

fn gather_color(asked: Option<ColorWhen>, checkout: &Checkout) -> Result<ColorWhen, SettingsError> {
    let configured =
        [COLOR, COLOR_UI].into_iter().find_map(|key| Some((key, checkout.config().switch(key)?)));
    let when = match (asked, configured) {
        (Some(typed), _) => typed,
        (None, Some((key, value))) => color(key, value)?,
        (None, None) => ColorWhen::default(),
    };
    match when {
        ColorWhen::Auto if checkout.environment().text(NO_COLOR).is_some() => Ok(ColorWhen::Never),
        other => Ok(other),
    }
}

/// As git reads its `color.*` keys: a plain `true` is `auto`.
fn color(key: &'static str, value: &BStr) -> Result<ColorWhen, SettingsError> {
    match value.to_ascii_lowercase().as_slice() {
        b"always" => Ok(ColorWhen::Always),
        b"never" => Ok(ColorWhen::Never),
        b"auto" => Ok(ColorWhen::Auto),
        _ => match boolean(value) {
            Some(true) => Ok(ColorWhen::Auto),
            Some(false) => Ok(ColorWhen::Never),
            None => Err(bad(key, value, "use always, auto, never or a boolean")),
        },
    }
}

/// Reads a length of time: `90s`, `2m 30s`, `1h`, `3days`; a bare number is seconds. Zero is allowed here.
///
/// # Errors
/// For anything else, and for more than a year.
pub fn duration(text: &str) -> Result<Duration, SettingsError> {
    let wrong = |reason: &str| SettingsError::Duration {
        text: escape::line(text).into_owned(),
        reason: reason.to_owned(),
    };
    let trimmed = text.trim();
    let parsed = if !trimmed.is_empty() && trimmed.bytes().all(|byte| byte.is_ascii_digit()) {
        trimmed.parse().ok().map(Duration::from_secs)
    } else {
        match humantime::parse_duration(trimmed) {
            Ok(parsed) => Some(parsed),
            Err(humantime::DurationError::NumberOverflow) => None,
            Err(_) => return Err(wrong("use seconds (30) or units (90s, 10m, 1h 30m)")),
        }
    };
    parsed.filter(|parsed| *parsed <= LONGEST).ok_or_else(|| wrong("a year is the most"))
}

fn configured_duration(key: &'static str, value: &BStr) -> Result<Duration, SettingsError> {
    duration(text(key, value)?).map_err(|error| match error {
        SettingsError::Duration { reason, .. } => bad(key, value, reason),
        other => other,
    })
}

/// Reads for how long to wait: a [`duration`], `0` for not at all, or `forever`.
///
/// # Errors
/// For anything else.
pub fn patience(text: &str) -> Result<Patience, SettingsError> {
    match text.trim() {
        "forever" => Ok(Patience::Forever),
        text => duration(text)
            .map(|time| if time.is_zero() { Patience::None } else { Patience::For(time) }),
    }
}

fn not_zero(key: &'static str, time: Duration) -> Result<Duration, SettingsError> {
    if time.is_zero() {
        return Err(bad(key, BStr::new("0"), "no time is too short, use 30s or the like"));
    }
    Ok(time)
}

fn not_empty(key: &'static str, value: String) -> Result<String, SettingsError> {
    if value.trim().is_empty() { Err(SettingsError::Empty(key)) } else { Ok(value) }
}

fn text<'a>(key: &'static str, value: &'a BStr) -> Result<&'a str, SettingsError> {
    value.to_str().map_err(|_| bad(key, value, "use UTF-8"))
}

fn bad(key: &'static str, value: &BStr, allowed: impl ToString) -> SettingsError {
    let value = escape::line(&value.to_str_lossy()).into_owned();
    SettingsError::Value { key, value, allowed: allowed.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkout::sandbox::Sandbox;

    fn gather(sandbox: &Sandbox, typed: Asked) -> Result<Settings, SettingsError> {
        Settings::gather(typed, &sandbox.open("work").unwrap())
    }

    /// With `git -c` for each of these.
    fn configured(pairs: &[(&str, &str)]) -> Sandbox {
        let sandbox = Sandbox::with_repository();
        for (key, value) in pairs {
            sandbox.git("work", &["config", key, value]);
        }
        sandbox
    }

    #[test]
    fn defaults() {
        let settings = gather(&configured(&[]), Asked::default()).unwrap();
        assert_eq!(
            (settings.prefix, settings.timeout),
            (Prefix::default(), Duration::from_secs(30))
        );
        assert_eq!((settings.who, settings.remote, settings.color), (None, None, ColorWhen::Auto));
        assert_eq!(settings.ssh, Ssh::default());
        assert_eq!(settings.stale_after, Duration::from_secs(24 * 60 * 60));
        assert!(!settings.confirm);
    }

    #[test]
    fn configuration_then_environment_then_what_was_typed() {
        let sandbox = configured(&[
            ("claim.prefix", "refs/heads/claims/"),
            ("claim.timeout", "2m"),
            ("claim.staleAfter", "3 days"),
            ("claim.confirm", "yes"),
            ("claim.who", "configured"),
            ("claim.remote", "upstream"),
            ("color.ui", "never"),
        ]);
        let settings = gather(&sandbox, Asked::default()).unwrap();
        assert_eq!(settings.prefix, Prefix::parse("refs/heads/claims/").unwrap());
        assert_eq!(settings.timeout, Duration::from_secs(120));
        assert_eq!(settings.stale_after, Duration::from_secs(3 * 24 * 60 * 60));
        assert_eq!(settings.who.as_deref(), Some("configured"));
        assert_eq!(settings.remote.as_deref(), Some("upstream"));
        assert!(!settings.remote_typed && settings.confirm);
        assert_eq!(settings.color, ColorWhen::Never);

        let sandbox = sandbox.with("GIT_CLAIM_WHO", "environment").with(
            "GIT_CONFIG_PARAMETERS",
            "'claim.timeout=3' 'claim.confirm'='false' 'color.claim'='always' 'claim.remote'='.'",
        );
        let settings = gather(&sandbox, Asked::default()).unwrap();
        assert_eq!(settings.who.as_deref(), Some("environment"));
        assert_eq!(settings.timeout, Duration::from_secs(3));
        assert_eq!(settings.remote.as_deref(), Some("."));
        assert_eq!(settings.color, ColorWhen::Always);
        assert!(!settings.confirm);

        let typed = Asked {
            remote: Some("typed".into()),
            timeout: Some(Duration::from_secs(1)),
            older_than: Some(Duration::ZERO),
            who: Some("typed".into()),
            confirm: true,
            color: Some(ColorWhen::Auto),
        };
        let settings = gather(&sandbox, typed).unwrap();
        assert_eq!(
            (settings.who.as_deref(), settings.remote.as_deref()),
            (Some("typed"), Some("typed"))
        );
        assert!(settings.remote_typed && settings.confirm);
        assert_eq!(settings.stale_after, Duration::ZERO);
        assert_eq!((settings.timeout, settings.color), (Duration::from_secs(1), ColorWhen::Auto));

        assert_eq!(gather(&sandbox.with("GIT_CLAIM_WHO", ""), Asked::default()).unwrap().who, None);
    }

    #[test]
    fn what_cannot_be_used_is_named() {
        for (key, value, message) in [
            (
                "claim.timeout",
                "0",
                "claim.timeout is '0': no time is too short, use 30s or the like",
            ),
            (
                "claim.timeout",
                "soon",
                "claim.timeout is 'soon': use seconds (30) or units (90s, 10m, 1h 30m)",
            ),
            (
                "claim.timeout",
                "",
                "claim.timeout is '': use seconds (30) or units (90s, 10m, 1h 30m)",
            ),
            (
                "claim.staleAfter",
                "a while",
                "claim.staleAfter is 'a while': use seconds (30) or units (90s, 10m, 1h 30m)",
            ),
            ("claim.remote", "", "claim.remote is empty"),
            ("claim.confirm", "perhaps", "claim.confirm is 'perhaps': use a boolean"),
            ("color.claim", "pink", "color.claim is 'pink': use always, auto, never or a boolean"),
        ] {
            let error = gather(&configured(&[(key, value)]), Asked::default()).unwrap_err();
            assert_eq!(error.to_string(), message);
        }
        let error =
            gather(&configured(&[("claim.prefix", "claims")]), Asked::default()).unwrap_err();
        assert!(error.to_string().starts_with("claim.prefix: "), "{error}");
        let typed = Asked { timeout: Some(Duration::ZERO), ..Asked::default() };
        let error = gather(&configured(&[]), typed).unwrap_err().to_string();
        assert!(error.starts_with("--timeout is '0'"), "{error}");
        let typed = Asked { who: Some(" ".into()), ..Asked::default() };
        assert_eq!(gather(&configured(&[]), typed).unwrap_err(), SettingsError::Empty("--as"));
    }

    #[test]
    fn lengths_of_time() {
        for (text, seconds) in [
            ("30", 30),
            ("90s", 90),
            (" 2m 30s ", 150),
            ("1h", 3600),
            ("3days", 259_200),
            ("0", 0),
            ("90m", 5400),
            ("2h30m", 9000),
            ("3 days", 259_200),
        ] {
            assert_eq!(duration(text).unwrap(), Duration::from_secs(seconds), "{text}");
        }
        assert_eq!(duration("250ms").unwrap(), Duration::from_millis(250));
        for text in [
            "",
            "-1",
            "1.5",
            "ten",
            "10 parsecs",
            "99999999999999999999",
            "2 years",
            "9999999999999999999h",
        ] {
            assert!(duration(text).is_err(), "{text}");
        }
        assert_eq!(
            duration("2years").unwrap_err().to_string(),
            "'2years' is not a length of time: a year is the most"
        );
    }

    #[test]
    fn patience_as_people_write_it() {
        assert_eq!(patience("0").unwrap(), Patience::None);
        assert_eq!(patience(" forever ").unwrap(), Patience::Forever);
        assert_eq!(patience("10m").unwrap(), Patience::For(Duration::from_secs(600)));
        assert!(patience("for ever").is_err() && patience("").is_err());
    }

    #[test]
    fn colour_as_git_reads_it() {
        for (value, expected) in [
            ("always", ColorWhen::Always),
            ("Never", ColorWhen::Never),
            ("true", ColorWhen::Auto),
            ("false", ColorWhen::Never),
            ("auto", ColorWhen::Auto),
        ] {
            let sandbox = configured(&[("color.claim", value), ("color.ui", "always")]);
            assert_eq!(gather(&sandbox, Asked::default()).unwrap().color, expected, "{value}");
        }
        let bare = Sandbox::with_repository().with("GIT_CONFIG_PARAMETERS", "'color.ui'");
        assert_eq!(gather(&bare, Asked::default()).unwrap().color, ColorWhen::Auto);
        for (value, no_color, expected) in [
            ("always", "1", ColorWhen::Always),
            ("auto", "1", ColorWhen::Never),
            ("auto", "", ColorWhen::Auto),
        ] {
            let sandbox = configured(&[("color.ui", value)]).with("NO_COLOR", no_color);
            assert_eq!(gather(&sandbox, Asked::default()).unwrap().color, expected, "{value}");
        }
    }

    #[test]
    fn ssh_in_the_order_of_git() {
        let shell = |line: &str| Some(SshCommand::Shell(line.into()));
        let sandbox = configured(&[]).with("GIT_SSH", "/opt/ssh").with("GIT_SSH_VARIANT", "plink");
        let ssh = gather(&sandbox, Asked::default()).unwrap().ssh;
        assert_eq!(ssh.command, Some(SshCommand::Program("/opt/ssh".into())));
        assert_eq!(ssh.variant.as_deref(), Some("plink"));

        let sandbox = configured(&[("core.sshCommand", "ssh -i key"), ("ssh.variant", "simple")])
            .with("GIT_SSH", "/opt/ssh");
        let ssh = gather(&sandbox, Asked::default()).unwrap().ssh;
        assert_eq!((ssh.command, ssh.variant.as_deref()), (shell("ssh -i key"), Some("simple")));

        let ssh =
            gather(&sandbox.with("GIT_SSH_COMMAND", "ssh -F none"), Asked::default()).unwrap().ssh;
        assert_eq!(ssh.command, shell("ssh -F none"));
    }
}
