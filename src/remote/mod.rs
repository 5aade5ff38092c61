//! Which remote the claims live on: one URL, for reads and for writes.
//!
//! The choice is `--remote` > `claim.remote` > the only remote > `origin`, and nothing else: the branch's upstream and
//! `remote.pushDefault` often name a fork, where a claim would exclude nobody. A remote's URL is the one
//! that `git remote get-url --push` prints, and whether its transport may be used is decided as git decides it.
//!
//! A URL may hold a password. [`Destination::url`] and [`Destination::way`] are for the link; people, errors and file
//! names get [`Destination::shown`] and [`Destination::key`].

mod configured;
mod permission;
mod rewrite;
mod shown;
mod way;

#[cfg(test)]
mod testing;

use std::{fmt, path::Path};

use gix::bstr::{BStr, BString, ByteSlice};

use crate::{
    checkout::Checkout,
    escape,
    settings::{REMOTE, Settings},
};
use configured::{Remote, configured, fetch_url, push_urls};
use permission::allowed;
use rewrite::Rewrites;
use shown::{key, quoted, shown, without_credentials};
use way::{Kind, exists, kind, path_bytes, real_path};

pub use shown::redacted;
pub use way::Way;

/// The remote that a claim is a ref of.
#[derive(Clone)]
pub struct Destination {
    /// The remote's name in the configuration, if it has one.
    pub name: Option<String>,
    /// The URL as git would use it, after `insteadOf` and `pushInsteadOf`, a path made absolute. It may hold credentials: never print it.
    pub url: BString,
    /// How it is spoken to, with the same warning.
    pub way: Way,
    /// The URL for people: escaped, without password, and without user for http(s).
    pub shown: String,
    /// Names the folder of the held records: a hash of the URL without credentials, the same in every worktree.
    pub key: String,
    /// `remote.<name>.uploadpack`.
    pub upload_pack: Option<String>,
    /// `remote.<name>.receivepack`.
    pub receive_pack: Option<String>,
    /// Where `git fetch` would ask, for people, if that is spelled otherwise than [`url`](Self::url): perhaps another way
    /// to the same repository, perhaps another repository.
    pub fetch: Option<String>,
    /// What the user may want to know about the choice.
    pub hints: Vec<String>,
}

/// Leaves the URL out: it may hold credentials.
impl fmt::Debug for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Destination { name, way, shown, key, hints, .. } = self;
        f.debug_struct("Destination")
            .field("name", name)
            .field("way", way)
            .field("shown", shown)
            .field("key", key)
            .field("hints", hints)
            .finish_non_exhaustive()
    }
}

/// Why there is no remote to go to.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RemoteError {
    /// Nobody named one and there is none.
    #[error("no remote to claim on: no --remote, no {REMOTE}, and {}", if *.repository { "this repository has no remotes" } else { "this is not a git repository" })]
    NoRemote {
        /// Whether we are in a repository at all.
        repository: bool,
    },
    /// Nobody named one, there are several, and none is `origin`.
    #[error("no remote to claim on: no --remote, no {REMOTE}, no remote 'origin' among {}", quoted(.0))]
    Ambiguous(Vec<String>),
    /// The one that was named is neither a remote nor a path.
    #[error("'{asked}' is no remote{}, no URL, and no path from here", if .remotes.is_empty() { String::new() } else { format!(" (there is {})", quoted(.remotes)) })]
    Unknown {
        /// What was asked for, escaped.
        asked: String,
        /// The remotes that exist.
        remotes: Vec<String>,
    },
    /// `.`, outside of a repository.
    #[error("'.' is the repository we are in, and this is not a git repository")]
    NotARepository,
    /// A push would go to several places, and a claim can be in only one.
    #[error("remote '{}' has several push URLs: {}", escape::line(.name), quoted(.urls))]
    SeveralUrls {
        /// The remote's name.
        name: String,
        /// Its push URLs, for people.
        urls: Vec<String>,
    },
    /// It could be taken for an option by a program that we start, or holds what no URL holds.
    #[error("'{shown}' cannot be used: {reason}")]
    Unusable {
        /// The name or URL, for people.
        shown: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// git's configuration does not allow this kind of transport.
    #[error("transport '{transport}' is not allowed: {reason}")]
    Forbidden {
        /// As in `protocol.<name>.allow`.
        transport: String,
        /// The setting that says so.
        reason: String,
    },
    /// A setting about transports that cannot be read.
    #[error("{key} is '{value}': use {allowed}")]
    Setting {
        /// The key or variable.
        key: String,
        /// Its value, escaped.
        value: String,
        /// What is allowed.
        allowed: &'static str,
    },
}

impl RemoteError {
    /// The command that puts it right, where there is one.
    pub fn hint(&self) -> Option<String> {
        match self {
            RemoteError::NoRemote { repository: true } => Some(
                "add one with 'git remote add origin <url>', or claim in this repository itself with '--remote .'"
                    .to_owned(),
            ),
            RemoteError::NoRemote { repository: false } => Some("run it inside of a clone; to look only, name the remote with '--remote <url>'".to_owned()),
            RemoteError::Ambiguous(remotes) => {
                let first = remotes.first().map_or("<name>", String::as_str);
                let first = escape::line(first);
                Some(format!("choose one with 'git config {REMOTE} {first}'"))
            }
            RemoteError::Unknown { .. } => {
                Some(format!("see 'git remote -v', and choose with '--remote <name>' or 'git config {REMOTE} <name>'"))
            }
            RemoteError::SeveralUrls { .. } => {
                Some(format!("choose one with 'git config {REMOTE} <url>'; 'git remote -v' shows them"))
            }
            _ => None,
        }
    }
}

impl Destination {
    /// Chooses the remote and finds its URL. Nothing is connected.
    ///
    /// A relative path that was typed starts at `cwd`; one from the configuration starts where git starts it, at the
    /// top of the work tree (or at the git directory when there is none).
    ///
    /// # Errors
    /// When there is no remote to choose, more than one URL to push to, or the URL cannot or must not be used.
    pub fn choose(
        settings: &Settings,
        checkout: &Checkout,
        cwd: &Path,
    ) -> Result<Destination, RemoteError> {
        let remotes = configured(checkout.config());
        let rewrites = Rewrites::configured(checkout.config());
        let top = checkout.work_dir().or(checkout.git_dir()).unwrap_or(cwd);
        let Some(asked) = &settings.remote else {
            let (remote, hints) = default_remote(&remotes, checkout)?;
            return from_remote(remote, &rewrites, top, hints, checkout);
        };
        if asked.starts_with('-') {
            return Err(unusable(asked.as_bytes().into(), DASH));
        }
        if asked == "." {
            let repository = checkout.common_dir().ok_or(RemoteError::NotARepository)?;
            return finish(path_bytes(repository), top, None, None, checkout);
        }
        if let Some(remote) = remotes.iter().find(|remote| remote.name == *asked) {
            return from_remote(remote, &rewrites, top, Vec::new(), checkout);
        }
        let asked = BStr::new(asked);
        let base = if settings.remote_typed { cwd } else { top };
        let url = rewrites.for_push(asked).or_else(|| rewrites.for_all(asked));
        if url.is_none() && !asked.contains(&b'/') && !asked.contains(&b':') && !exists(asked, base)
        {
            let remotes = remotes.into_iter().map(|remote| remote.name).collect();
            return Err(RemoteError::Unknown { asked: shown(asked), remotes });
        }
        finish(url.unwrap_or_else(|| asked.to_owned()), base, None, None, checkout)
    }
}

const DASH: &str = "it begins with '-'";

/// The only remote, else `origin`.
fn default_remote<'a>(
    remotes: &'a [Remote],
    checkout: &Checkout,
) -> Result<(&'a Remote, Vec<String>), RemoteError> {
    let named = |name: &str| remotes.iter().find(|remote| remote.name == name);
    match (remotes, named("origin")) {
        ([], _) => Err(RemoteError::NoRemote { repository: checkout.git_dir().is_some() }),
        ([only], _) => Ok((only, Vec::new())),
        (_, None) => {
            Err(RemoteError::Ambiguous(remotes.iter().map(|remote| remote.name.clone()).collect()))
        }
        (_, Some(origin)) => {
            let hint = format!(
                "claims go to 'origin'; if the repository that all share is 'upstream', say 'git config {REMOTE} upstream'"
            );
            Ok((origin, named("upstream").map(|_| hint).into_iter().collect()))
        }
    }
}

fn from_remote(
    remote: &Remote,
    rewrites: &Rewrites,
    top: &Path,
    mut hints: Vec<String>,
    checkout: &Checkout,
) -> Result<Destination, RemoteError> {
    if remote.name.starts_with('-') {
        return Err(unusable(remote.name.as_bytes().into(), DASH));
    }
    let mut urls = push_urls(remote, rewrites);
    urls.dedup();
    let url = match urls.as_slice() {
        [url] => url.clone(),
        [] => return Err(unusable(remote.name.as_bytes().into(), "it has a helper but no URL")),
        several => {
            let urls = several.iter().map(|url| shown(url.as_ref())).collect();
            return Err(RemoteError::SeveralUrls { name: remote.name.clone(), urls });
        }
    };
    let to = shown(url.as_ref());
    let mut from = None;
    if let Some(fetch) = fetch_url(remote, rewrites) {
        from = Some(shown(fetch.as_ref())).filter(|from| *from != to);
        if let Some(from) = &from
            && spot(fetch.as_ref()) != spot(url.as_ref())
        {
            hints.push(format!(
                "claims are read from and written to the push URL of '{}', {to}, not {from}",
                escape::line(&remote.name),
            ));
        }
    }
    let mut destination = finish(url, top, Some(&remote.name), remote.vcs.as_deref(), checkout)?;
    destination.upload_pack.clone_from(&remote.upload_pack);
    destination.receive_pack.clone_from(&remote.receive_pack);
    destination.fetch = from;
    destination.hints = hints;
    Ok(destination)
}

/// Host and path, by which https and ssh URLs of one repository are the same.
fn spot(url: &BStr) -> (Option<String>, BString) {
    let Ok(parsed) = gix::url::parse(url) else { return (None, url.to_owned()) };
    let path = parsed.path.trim_with(|c| c == '/');
    let path = path.strip_suffix(b".git").unwrap_or(path);
    (parsed.host.map(|host| host.to_ascii_lowercase()), path.into())
}

/// From the one URL to everything that is needed of it.
fn finish(
    url: BString,
    base: &Path,
    name: Option<&str>,
    vcs: Option<&str>,
    checkout: &Checkout,
) -> Result<Destination, RemoteError> {
    if url.is_empty() {
        return Err(unusable(BStr::new(name.unwrap_or("")), "its URL is empty"));
    }
    if url.starts_with(b"-") {
        return Err(unusable(url.as_ref(), DASH));
    }
    if url.find_byteset(b"\0\n\r").is_some() {
        return Err(unusable(url.as_ref(), "it holds a control character"));
    }
    let kind = match vcs {
        Some(helper) if helper.starts_with('-') || helper.contains(['/', '\\']) => {
            return Err(unusable(url.as_ref(), "its helper has no usable name"));
        }
        Some(helper) => Kind::Vcs(helper.to_owned()),
        None => kind(url.as_ref()),
    };
    allowed(kind.transport(), checkout)?;

    let way = kind
        .way(url.as_ref(), base, checkout.environment())
        .map_err(|reason| unusable(url.as_ref(), reason))?;
    let (url, hashed) = match &way {
        // A `file://` URL stays one: the difference matters to `git clone` only, but it is what the user wrote.
        Way::Local(path) if url.starts_with(b"file://") => (url, real_path(path.as_ref())),
        Way::Local(path) => (path.clone(), real_path(path.as_ref())),
        Way::Ssh(_) | Way::Git(_) | Way::Helper(_) => {
            let hashed = without_credentials(url.as_ref()).trim_end_with(|c| c == '/').into();
            (url, hashed)
        }
    };
    Ok(Destination {
        name: name.map(str::to_owned),
        shown: shown(url.as_ref()),
        key: key(hashed.as_ref()),
        url,
        way,
        upload_pack: None,
        receive_pack: None,
        fetch: None,
        hints: Vec::new(),
    })
}

fn unusable(text: &BStr, reason: &'static str) -> RemoteError {
    RemoteError::Unusable { shown: shown(text), reason }
}

#[cfg(test)]
mod tests {
    use super::{
        testing::{choose, choose_in, choose_url, configured, path},
        way::path_bytes,
        *,
    };
    use crate::checkout::sandbox::Sandbox;

    /// The name of a remote is whatever somebody wrote into a configuration.
    #[test]
    fn no_name_of_a_remote_acts_on_a_terminal() {
        for (text, typed) in [
            ("[remote \"a\u{1b}[2J\"]\n\turl = /a\n[remote \"b\"]\n\turl = /b\n", None),
            ("[remote \"a\u{1b}[2J\"]\n\turl = /a\n\tpushurl = /b\n\tpushurl = /c\n", None),
            ("[remote \"a\u{1b}[2J\"]\n\turl = /a\n", Some("other")),
        ] {
            let error = choose(&configured(text), typed).expect_err("not to be chosen");
            let told = format!("{error} {}", error.hint().unwrap_or_default());
            assert!(told.contains("a\\u{1b}[2J"), "{told}");
            assert!(!told.contains('\u{1b}'), "{told}");
        }
        let pushed = "[remote \"a\u{1b}[2J\"]\n\turl = /a\n\tpushurl = /b\n";
        let hints = choose(&configured(pushed), None).expect("the only one").hints;
        assert!(hints.len() == 1 && !hints[0].contains('\u{1b}'), "{hints:?}");
    }

    #[test]
    fn the_only_remote_then_origin_and_never_another() {
        let destination =
            choose(&configured("[remote \"hub\"]\n\turl = https://h/a\n"), None).unwrap();
        assert_eq!(
            (destination.name.as_deref(), destination.shown.as_str()),
            (Some("hub"), "https://h/a")
        );
        assert!(destination.hints.is_empty());

        let several = "[remote \"upstream\"]\n\turl = https://h/up\n[remote \"origin\"]\n\turl = https://h/fork\n\
            [remote]\n\tpushDefault = upstream\n[branch \"main\"]\n\tremote = upstream\n\tpushRemote = upstream\n";
        let sandbox = configured(several);
        let destination = choose(&sandbox, None).unwrap();
        assert_eq!(destination.name.as_deref(), Some("origin"));
        assert!(
            destination.hints[0].contains("git config claim.remote upstream"),
            "{:?}",
            destination.hints
        );
        let named = choose(&sandbox, Some("origin")).unwrap();
        assert!(named.hints.is_empty(), "who names origin means origin");
        sandbox.git("work", &["config", "claim.remote", "upstream"]);
        assert_eq!(choose(&sandbox, None).unwrap().shown, "https://h/up");
        assert_eq!(choose(&sandbox, Some("origin")).unwrap().shown, "https://h/fork");

        // A section without URL is no remote.
        let pruned = "[remote \"origin\"]\n\tprune = true\n[remote \"hub\"]\n\turl = https://h/a\n";
        assert_eq!(choose(&configured(pruned), None).unwrap().name.as_deref(), Some("hub"));
    }

    #[test]
    fn nowhere_to_go_names_the_way_out() {
        let error = choose(&configured(""), None).unwrap_err();
        assert_eq!(
            error.to_string(),
            "no remote to claim on: no --remote, no claim.remote, and this repository has no remotes"
        );
        assert!(error.hint().unwrap().contains("--remote ."));

        let outside = Sandbox::new();
        let error = choose_in(&outside, ".", None).unwrap_err();
        assert!(error.to_string().ends_with("this is not a git repository"), "{error}");
        assert_eq!(choose_in(&outside, ".", Some(".")).unwrap_err(), RemoteError::NotARepository);
        assert_eq!(choose_in(&outside, ".", Some("https://h/a")).unwrap().shown, "https://h/a");

        let two = configured("[remote \"a\"]\n\turl = u\n[remote \"b\"]\n\turl = u\n");
        let error = choose(&two, None).unwrap_err();
        assert!(error.to_string().ends_with("no remote 'origin' among 'a', 'b'"), "{error}");
        assert_eq!(error.hint().unwrap(), "choose one with 'git config claim.remote a'");
        let error = choose(&two, Some("orgin")).unwrap_err().to_string();
        assert_eq!(
            error,
            "'orgin' is no remote (there is 'a', 'b'), no URL, and no path from here"
        );
    }

    #[test]
    fn several_push_urls_are_named_without_their_passwords() {
        let text = "[remote \"origin\"]\n\turl = https://u:secret@h/a\n\turl = ssh://git@h/b\n";
        let error = choose(&configured(text), None).unwrap_err().to_string();
        assert_eq!(error, "remote 'origin' has several push URLs: 'https://h/a', 'ssh://git@h/b'");
        let twice = "[remote \"origin\"]\n\turl = https://h/a\n\turl = https://h/a\n";
        assert!(choose(&configured(twice), None).is_ok());
    }

    #[test]
    fn another_place_to_push_is_pointed_out_but_not_another_way() {
        let apart = "[remote \"origin\"]\n\turl = https://h/a\n\tpushurl = https://me:pw@h/fork\n";
        let Destination { hints, fetch, .. } = choose(&configured(apart), None).unwrap();
        assert_eq!(fetch.as_deref(), Some("https://h/a"));
        assert_eq!(
            hints,
            [
                "claims are read from and written to the push URL of 'origin', https://h/fork, not https://h/a"
            ]
        );
        let same = "[remote \"origin\"]\n\turl = https://h/team/a\n\tpushurl = git@h:team/a.git\n";
        assert!(choose(&configured(same), None).unwrap().hints.is_empty());
    }

    #[test]
    fn this_repository_itself_is_one_place_from_everywhere() {
        let sandbox = Sandbox::with_repository();
        sandbox.git("work", &["commit", "-q", "--allow-empty", "-m", "one"]);
        sandbox.git("work", &["worktree", "add", "-q", "../linked"]);
        std::fs::create_dir(sandbox.path("linked/sub")).unwrap();
        let common = sandbox.path("work/.git");
        let mut keys = Vec::new();
        for below in ["work", "linked", "linked/sub", "work/.git"] {
            let destination = choose_in(&sandbox, below, Some(".")).unwrap();
            assert_eq!(path(&destination), path_bytes(&common), "{below}");
            assert_eq!(destination.name, None);
            keys.push(destination.key);
        }
        let path = choose_in(&sandbox, "linked", Some("../work")).unwrap();
        keys.push(path.key);
        keys.dedup();
        assert_eq!(keys.len(), 1);
        assert_eq!(keys[0].len(), 32);
        sandbox.git("work", &["config", "claim.remote", "."]);
        assert_eq!(choose_in(&sandbox, "linked/sub", None).unwrap().key, keys[0]);
    }

    #[test]
    fn nothing_that_could_be_an_option_is_used() {
        for (typed, message) in [
            ("-x", "'-x' cannot be used: it begins with '-'"),
            ("--upload-pack=touch", "'--upload-pack=touch' cannot be used: it begins with '-'"),
            (
                "ssh://-oProxyCommand=x/a",
                "'ssh://-oProxyCommand=x/a' cannot be used: its host begins with '-'",
            ),
            ("h:-a", "'h:-a' cannot be used: its path begins with '-'"),
            ("https://-h/a", "'https://-h/a' cannot be used: its host begins with '-'"),
            (
                "git://h/a\nhost=evil",
                "'git://h/a\\nhost=evil' cannot be used: it holds a control character",
            ),
        ] {
            assert_eq!(choose_url(typed).unwrap_err().to_string(), message);
        }
        let named = configured("[remote \"-x\"]\n\turl = https://h/a\n");
        assert_eq!(
            choose(&named, None).unwrap_err().to_string(),
            "'-x' cannot be used: it begins with '-'"
        );
        let rewritten = configured("[url \"-x\"]\n\tinsteadOf = gh:\n");
        assert!(matches!(choose(&rewritten, Some("gh:a")), Err(RemoteError::Unusable { .. })));
        let empty = configured("[remote \"origin\"]\n\turl = a\n\turl =\n\tvcs = hg\n");
        assert!(matches!(choose(&empty, None), Err(RemoteError::Unusable { .. })));
    }
}
