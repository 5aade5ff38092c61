//! Which remote the claims live on: one URL, for reads and for writes.
//!
//! The choice is `--remote` > `claim.remote` > the only remote > `origin`, and nothing else: the branch's upstream and
//! `remote.pushDefault` often name a fork, where a claim would exclude nobody. A remote's URL is the one
//! that `git remote get-url --push` prints, and whether its transport may be used is decided as git decides it.
//!
//! A URL may hold a password. [`Destination::url`] and [`Destination::parsed`] are for the link; people, errors and file
//! names get [`Destination::shown`] and [`Destination::key`].

use std::{
    fmt,
    path::{Path, PathBuf},
};

use gix::{
    bstr::{BStr, BString, ByteSlice, ByteVec},
    url::Scheme,
};

use crate::{
    checkout::{Checkout, Config, Environment, boolean},
    escape,
    settings::{REMOTE, Settings},
};

/// The remote that a claim is a ref of.
#[derive(Clone)]
pub struct Destination {
    /// The remote's name in the configuration, if it has one.
    pub name: Option<String>,
    /// The URL as git would use it, after `insteadOf` and `pushInsteadOf`, a path made absolute. It may hold credentials: never print it.
    pub url: BString,
    /// The same in its parts, with the same warning. The path of a local repository is absolute (or begins with `~user`).
    pub parsed: gix::Url,
    /// The URL for people: escaped, without password, and without user for http(s).
    pub shown: String,
    /// Names the folder of the held records: a hash of the URL without credentials, the same in every worktree.
    pub key: String,
    /// `remote.<name>.uploadpack`.
    pub upload_pack: Option<String>,
    /// `remote.<name>.receivepack`.
    pub receive_pack: Option<String>,
    /// The `git-remote-<helper>` that speaks to it; none for paths, `file://`, ssh and `git://`.
    pub helper: Option<String>,
    /// What the user may want to know about the choice.
    pub hints: Vec<String>,
}

/// Leaves the URL out: it may hold credentials.
impl fmt::Debug for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Destination { name, shown, key, helper, hints, .. } = self;
        f.debug_struct("Destination")
            .field("name", name)
            .field("shown", shown)
            .field("key", key)
            .field("helper", helper)
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
    #[error("remote '{name}' has several push URLs: {}", quoted(.urls))]
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

/// A remote as it is configured, before any rewriting.
#[derive(Debug, Default)]
struct Remote {
    name: String,
    urls: Vec<BString>,
    push_urls: Vec<BString>,
    vcs: Option<String>,
    upload_pack: Option<String>,
    receive_pack: Option<String>,
}

/// The remotes that have somewhere to go, in the order in which the configuration first names them.
///
/// A section without URL (`remote.origin.prune` in a user's own configuration) is no remote.
fn configured(config: &Config) -> Vec<Remote> {
    let mut remotes: Vec<Remote> = Vec::new();
    for (name, key, value) in config.below("remote") {
        // git ignores names that begin with a slash, and a name that is no UTF-8 cannot be typed here.
        let Some(name) = name.to_str().ok().filter(|name| !name.starts_with('/')) else { continue };
        let at = remotes.iter().position(|remote| remote.name == name).unwrap_or_else(|| {
            remotes.push(Remote { name: name.to_owned(), ..Remote::default() });
            remotes.len() - 1
        });
        let remote = &mut remotes[at];
        let text = || value.to_str_lossy().into_owned();
        match key.as_bytes() {
            b"url" => add(&mut remote.urls, value),
            b"pushurl" => add(&mut remote.push_urls, value),
            b"vcs" => remote.vcs = Some(text()),
            // Of these git takes the first one and complains about the others.
            b"uploadpack" => drop(remote.upload_pack.get_or_insert_with(text)),
            b"receivepack" => drop(remote.receive_pack.get_or_insert_with(text)),
            _ => {}
        }
    }
    remotes.retain(|remote| {
        !remote.urls.is_empty() || !remote.push_urls.is_empty() || remote.vcs.is_some()
    });
    remotes
}

/// An empty value begins the list anew, as in git since 2.46.
fn add(urls: &mut Vec<BString>, value: &BStr) {
    if value.is_empty() { urls.clear() } else { urls.push(value.to_owned()) }
}

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

/// `url.<base>.insteadOf` and `url.<base>.pushInsteadOf`.
#[derive(Default)]
struct Rewrites {
    all: Vec<(BString, BString)>,
    push: Vec<(BString, BString)>,
}

impl Rewrites {
    fn configured(config: &Config) -> Rewrites {
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

    fn for_all(&self, url: &BStr) -> Option<BString> {
        rewritten(url, &self.all)
    }

    fn for_push(&self, url: &BStr) -> Option<BString> {
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

/// Where `git push` would go: each `pushurl`, else whatever of the `url`s `pushInsteadOf` applies to, else the `url`s.
fn push_urls(remote: &Remote, rewrites: &Rewrites) -> Vec<BString> {
    let plain = |url: &BString| rewrites.for_all(url.as_ref()).unwrap_or_else(|| url.clone());
    if !remote.push_urls.is_empty() {
        return remote.push_urls.iter().map(plain).collect();
    }
    let pushed: Vec<BString> =
        remote.urls.iter().filter_map(|url| rewrites.for_push(url.as_ref())).collect();
    if pushed.is_empty() { remote.urls.iter().map(plain).collect() } else { pushed }
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
    if let Some(fetch) = remote.urls.first() {
        let fetch = rewrites.for_all(fetch.as_ref()).unwrap_or_else(|| fetch.clone());
        if spot(fetch.as_ref()) != spot(url.as_ref()) {
            hints.push(format!(
                "claims are read from and written to the push URL of '{}', {}, not {}",
                remote.name,
                shown(url.as_ref()),
                shown(fetch.as_ref())
            ));
        }
    }
    let mut destination = finish(url, top, Some(&remote.name), remote.vcs.as_deref(), checkout)?;
    destination.upload_pack.clone_from(&remote.upload_pack);
    destination.receive_pack.clone_from(&remote.receive_pack);
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

/// What kind of thing git takes a URL for (`transport.c`, `connect.c`).
#[derive(Debug, PartialEq, Eq)]
enum Kind {
    /// A path, with the `file://` taken off and decoded.
    Local(BString),
    Ssh,
    Git,
    /// The name of a `git-remote-<name>`.
    Helper(String),
}

fn kind(url: &BStr) -> Kind {
    let scheme_end = url
        .iter()
        .enumerate()
        .position(|(at, byte)| !(byte.is_ascii_alphanumeric() || at > 0 && b"+-.".contains(byte)))
        .unwrap_or(url.len());
    let (scheme, rest) = url.split_at(scheme_end);
    let scheme = scheme.to_str_lossy();
    if scheme_end > 0 && rest.starts_with(b"::") {
        return Kind::Helper(scheme.into_owned());
    }
    if scheme_end > 0
        && let Some(address) = rest.strip_prefix(b"://")
    {
        return match &*scheme {
            "file" => Kind::Local(file_path(address)),
            "git" => Kind::Git,
            "ssh" | "git+ssh" | "ssh+git" => Kind::Ssh,
            _ => Kind::Helper(scheme.into_owned()),
        };
    }
    let drive = cfg!(windows) && scheme_end == 1 && rest.starts_with(b":");
    let local = match (url.find_byte(b':'), url.find_byte(b'/')) {
        (None, _) => true,
        (Some(colon), Some(slash)) => slash < colon || drive,
        (Some(_), None) => drive,
    };
    if local { Kind::Local(url.to_owned()) } else { Kind::Ssh }
}

/// What follows `file://` is a path even without a third slash.
fn file_path(address: &[u8]) -> BString {
    let decoded = percent_decoded(address);
    if decoded.starts_with(b"/") || cfg!(windows) {
        return decoded;
    }
    [b"/".as_slice(), &decoded].concat().into()
}

fn percent_decoded(text: &[u8]) -> BString {
    let digit = |at: usize| text.get(at).and_then(|byte| char::from(*byte).to_digit(16));
    let mut decoded = Vec::with_capacity(text.len());
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        match (byte, digit(at + 1), digit(at + 2)) {
            (b'%', Some(high), Some(low)) => {
                // Two hexadecimal digits are one byte.
                decoded.push((high << 4 | low) as u8);
                at += 3;
            }
            _ => {
                decoded.push(*byte);
                at += 1;
            }
        }
    }
    decoded.into()
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
        Some(helper) => Kind::Helper(helper.to_owned()),
        None => kind(url.as_ref()),
    };
    let transport = match &kind {
        Kind::Local(_) => "file",
        Kind::Ssh => "ssh",
        Kind::Git => "git",
        Kind::Helper(helper) if helper.starts_with('-') || helper.contains(['/', '\\']) => {
            return Err(unusable(url.as_ref(), "its helper has no usable name"));
        }
        Kind::Helper(helper) => helper,
    };
    allowed(transport, checkout)?;

    let (url, parsed) = match &kind {
        Kind::Local(path) => {
            let path = absolute(path.as_ref(), base, checkout.environment());
            let parsed =
                gix::Url::from_parts(Scheme::File, None, None, None, None, path.clone(), true);
            // A `file://` URL stays one: the difference matters to `git clone` only, but it is what the user wrote.
            let url = if url.starts_with(b"file://") { url } else { path };
            (url, parsed.ok())
        }
        Kind::Helper(helper) => {
            let parsed = gix::url::parse(url.as_bstr()).ok().filter(|_| vcs.is_none());
            let opaque = || {
                let scheme = Scheme::HelperUrl(helper.clone());
                gix::Url::from_parts(scheme, None, None, None, None, url.clone(), true).ok()
            };
            let web = matches!(helper.as_str(), "http" | "https") && vcs.is_none();
            let parsed = parsed.or_else(|| if web { None } else { opaque() });
            (url, parsed)
        }
        Kind::Ssh | Kind::Git => {
            let scheme = if kind == Kind::Ssh { Scheme::Ssh } else { Scheme::Git };
            // git takes a URL with blanks in it, gix only one where they are written as %20; both read that alike.
            let parsed = gix::url::parse(url.as_bstr())
                .or_else(|_| gix::url::parse(url.replace(" ", "%20").as_bstr()))
                .ok();
            (url, parsed.filter(|parsed| parsed.scheme == scheme))
        }
    };
    let parsed =
        parsed.ok_or_else(|| unusable(url.as_ref(), "it is not a URL that git could use"))?;
    let dashed = |part: &Option<String>| part.as_ref().is_some_and(|part| part.starts_with('-'));
    if dashed(&parsed.host) || dashed(&parsed.user) {
        return Err(unusable(url.as_ref(), "its host begins with '-'"));
    }
    if parsed.path.starts_with(b"-") {
        return Err(unusable(url.as_ref(), "its path begins with '-'"));
    }
    let hashed = match &kind {
        Kind::Local(_) => real_path(parsed.path.as_ref()),
        _ => without_credentials(url.as_ref()).trim_end_with(|c| c == '/').into(),
    };
    let helper = match kind {
        Kind::Helper(helper) => Some(helper),
        _ => None,
    };
    Ok(Destination {
        name: name.map(str::to_owned),
        shown: shown(url.as_ref()),
        key: key(hashed.as_ref()),
        url,
        parsed,
        upload_pack: None,
        receive_pack: None,
        helper,
        hints: Vec::new(),
    })
}

/// `~/` is the user's home; `~somebody/` is left to upload-pack, which knows everybody's.
fn absolute(path: &BStr, base: &Path, environment: &Environment) -> BString {
    if let Some(rest) = path.strip_prefix(b"~/")
        && let Some(home) = environment.get("HOME").filter(|home| !home.is_empty())
        && let Ok(rest) = gix::path::from_byte_slice(rest)
    {
        return path_bytes(&PathBuf::from(home).join(rest));
    }
    match gix::path::from_byte_slice(path) {
        Ok(relative) if !path.starts_with(b"~") => path_bytes(&base.join(relative)),
        _ => path.to_owned(),
    }
}

fn path_bytes(path: &Path) -> BString {
    // Only Windows knows paths that are no bytes, and there the text is close enough.
    gix::path::into_bstr(path)
        .map_or_else(|_| path.to_string_lossy().as_bytes().into(), |path| path.into_owned())
}

fn exists(path: &BStr, base: &Path) -> bool {
    path.starts_with(b"~") || real(&base.join(path.to_path_lossy())).is_some()
}

/// The repository that upload-pack would find at `path`, without detours, so that every spelling has the same key.
fn real_path(path: &BStr) -> BString {
    let found = gix::path::from_byte_slice(path).ok().and_then(real);
    found.map_or_else(|| path.to_owned(), |found| path_bytes(&found))
}

fn real(path: &Path) -> Option<PathBuf> {
    let suffixed = |suffix: &str| {
        let mut longer = path.as_os_str().to_owned();
        longer.push(suffix);
        PathBuf::from(longer).canonicalize().ok()
    };
    // `enter_repo` in git's path.c.
    ["/.git", "", ".git/.git", ".git"].into_iter().find_map(suffixed)
}

/// git's rule (`transport.c`): `GIT_ALLOW_PROTOCOL`, else `protocol.<name>.allow`, else `protocol.allow`, else by kind.
fn allowed(transport: &str, checkout: &Checkout) -> Result<(), RemoteError> {
    let forbidden = |reason: String| RemoteError::Forbidden {
        transport: printable(transport.as_bytes()),
        reason,
    };
    let environment = checkout.environment();
    if let Some(list) = environment.get("GIT_ALLOW_PROTOCOL") {
        let list = list.to_string_lossy().into_owned();
        if list.split(':').any(|name| name == transport) {
            return Ok(());
        }
        return Err(forbidden(format!("GIT_ALLOW_PROTOCOL is '{}'", printable(list.as_bytes()))));
    }
    let own = format!("protocol.{transport}.allow");
    let configured = [own.as_str(), "protocol.allow"]
        .into_iter()
        .find_map(|key| Some((key, checkout.config().string(key)?)));
    let (policy, reason) = match configured {
        Some((key, value)) => {
            let policy = value.to_ascii_lowercase();
            if !matches!(policy.as_slice(), b"always" | b"never" | b"user") {
                let allowed = "always, never or user";
                return Err(RemoteError::Setting {
                    key: key.to_owned(),
                    value: printable(value),
                    allowed,
                });
            }
            let reason = format!("{key} is '{}'", printable(value));
            (policy, reason)
        }
        None => {
            let policy: &[u8] = match transport {
                "http" | "https" | "git" | "ssh" => b"always",
                "ext" => b"never",
                _ => b"user",
            };
            (policy.to_vec(), format!("{own} is '{}' by default", policy.to_str_lossy()))
        }
    };
    match policy.as_slice() {
        b"always" => Ok(()),
        b"never" => Err(forbidden(reason)),
        _ => match environment.get("GIT_PROTOCOL_FROM_USER") {
            None => Ok(()),
            Some(value) => match boolean(value.as_encoded_bytes()) {
                Some(true) => Ok(()),
                Some(false) => Err(forbidden(format!(
                    "{reason}, and GIT_PROTOCOL_FROM_USER says that no user named it"
                ))),
                None => Err(RemoteError::Setting {
                    key: "GIT_PROTOCOL_FROM_USER".to_owned(),
                    value: printable(value.as_encoded_bytes()),
                    allowed: "a boolean",
                }),
            },
        },
    }
}

fn key(text: &BStr) -> String {
    let mut hasher = gix::hash::hasher(gix::hash::Kind::Sha256);
    hasher.update(text);
    // Only SHA-1 can refuse (a collision attack); 128 bits name one of a handful of remotes.
    hasher.try_finalize().map_or_else(|_| String::new(), |id| id.to_hex_with_len(32).to_string())
}

fn unusable(text: &BStr, reason: &'static str) -> RemoteError {
    RemoteError::Unusable { shown: shown(text), reason }
}

fn shown(url: &BStr) -> String {
    printable(&presentable(url))
}

/// Without credentials, and without the query of a web address: it is no part of a repository's name, and may be a token.
fn presentable(url: &BStr) -> BString {
    let mut url = without_credentials(url);
    let web =
        url.starts_with(b"http://") || url.starts_with(b"https://") || url.contains_str("::http");
    if let Some(query) = url.find_byte(b'?').filter(|_| web) {
        url.truncate(query);
        url.push_str("?...");
    }
    url
}

/// Takes the password out, and the user too unless it is ssh's, where it is part of the address.
///
/// Also in the address of a helper (`foo::https://…`).
fn without_credentials(url: &BStr) -> BString {
    let Some(start) = url.find("://").map(|at| at + 3) else { return url.to_owned() };
    let (before, rest) = url.split_at(start);
    let end = rest.find_byteset(b"/?#").unwrap_or(rest.len());
    let authority = &rest[..end];
    let port = authority.rsplit_once_str(":").map_or(b"".as_slice(), |(_, port)| port);
    let bracketed = authority.starts_with(b"[");
    let at = match authority.rfind_byte(b'@') {
        Some(at) => Some(at),
        // A password that should have been encoded has a slash in it.
        None if !bracketed && !port.iter().all(u8::is_ascii_digit) => rest.rfind_byte(b'@'),
        None => None,
    };
    let Some(at) = at else { return url.to_owned() };
    let (user_info, host) = (&rest[..at], &rest[at + 1..]);
    let ssh = [b"ssh://".as_slice(), b"git+ssh://", b"ssh+git://"].contains(&before);
    match user_info.split(|byte| *byte == b':').next() {
        Some(user) if ssh && !user.is_empty() => [before, user, b"@", host].concat().into(),
        _ => [before, host].concat().into(),
    }
}

/// `text` with the credentials taken out of every URL in it: git's own messages quote URLs in full.
pub fn redacted(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let scheme = rest[..at]
            .rfind(|c: char| !c.is_ascii_alphanumeric() && !"+.-".contains(c))
            .map_or(0, |end| end + rest[end..].chars().next().map_or(0, char::len_utf8));
        let end = rest[at..]
            .find(|c: char| c.is_whitespace() || "'\"<>".contains(c))
            .map_or(rest.len(), |end| at + end);
        out.push_str(&rest[..scheme]);
        out.push_str(&presentable(rest[scheme..end].into()).to_str_lossy());
        rest = &rest[end..];
    }
    out + rest
}

/// Text from a configuration, safe to show.
fn printable(text: &[u8]) -> String {
    escape::line(&text.to_str_lossy()).into_owned()
}

fn quoted(names: &[String]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("'{}'", escape::line(name))).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_urls_lose_their_credentials() {
        for (said, shown) in [
            (
                "fatal: unable to access 'https://u:s3cret@h/r.git/': no",
                "fatal: unable to access 'https://h/r.git/': no",
            ),
            (
                "https::https://u:p@h/x and http://tok@h:8/y.",
                "https::https://h/x and http://h:8/y.",
            ),
            ("'http::http://h/x?token=s3cret/': bad", "'http::http://h/x?...': bad"),
            ("ssh://git@h/x stays", "ssh://git@h/x stays"),
            ("no URL: a@b, c", "no URL: a@b, c"),
            ("é://u:p@h", "é://h"),
            ("", ""),
        ] {
            assert_eq!(redacted(said), shown);
        }
    }
    use crate::{checkout::sandbox::Sandbox, settings::Asked};

    /// A repository in `work` with this configuration added to its own.
    fn configured(text: &str) -> Sandbox {
        let sandbox = Sandbox::with_repository();
        let config = std::fs::read_to_string(sandbox.path("work/.git/config")).unwrap();
        sandbox.write("work/.git/config", config + text);
        sandbox
    }

    fn choose_in(
        sandbox: &Sandbox,
        below: &str,
        typed: Option<&str>,
    ) -> Result<Destination, RemoteError> {
        let checkout = sandbox.open(below).unwrap();
        let asked = Asked { remote: typed.map(str::to_owned), ..Asked::default() };
        let settings = Settings::gather(asked, &checkout).unwrap();
        Destination::choose(&settings, &checkout, &sandbox.path(below))
    }

    fn choose(sandbox: &Sandbox, typed: Option<&str>) -> Result<Destination, RemoteError> {
        choose_in(sandbox, "work", typed)
    }

    fn choose_url(url: &str) -> Result<Destination, RemoteError> {
        choose(&configured(""), Some(url))
    }

    /// Whether an empty URL begins the list anew for the git that we compare with.
    fn resets_lists(sandbox: &Sandbox) -> bool {
        let version = sandbox.git(".", &["version"]);
        let minor = version.split('.').nth(1).and_then(|minor| minor.parse().ok());
        !version.starts_with("git version 2.") || minor >= Some(46)
    }

    #[test]
    fn the_push_url_is_the_one_that_git_says() {
        for text in [
            "[remote \"x\"]\n\turl = https://h/a\n",
            "[remote \"x\"]\n\turl = https://h/a\n\tpushurl = ssh://h/a\n",
            "[remote \"x\"]\n\turl = https://h/a\n\tpushurl = ssh://h/a\n\tpushurl =\n\tpushurl = ssh://h/b\n",
            "[remote \"x\"]\n\turl = https://h/a\n\tpushurl = ssh://h/a\n\tpushurl =\n",
            "[remote \"x\"]\n\turl = https://h/a\n\turl =\n\turl = https://h/b\n",
            "[remote \"x\"]\n\turl = https://h/a\n[url \"ssh://h/\"]\n\tinsteadOf = https://h/\n",
            "[remote \"x\"]\n\turl = https://h/a\n[url \"ssh://h/\"]\n\tpushInsteadOf = https://h/\n",
            // pushInsteadOf goes before insteadOf, and is not applied to its result.
            "[remote \"x\"]\n\turl = gh:a\n[url \"https://h/\"]\n\tinsteadOf = gh:\n[url \"ssh://h/\"]\n\tpushInsteadOf = https://h/\n",
            "[remote \"x\"]\n\turl = gh:a\n[url \"https://h/\"]\n\tinsteadOf = gh:\n[url \"ssh://h/\"]\n\tpushInsteadOf = gh:\n",
            // An explicit pushurl knows insteadOf only.
            "[remote \"x\"]\n\turl = u\n\tpushurl = gh:a\n[url \"https://h/\"]\n\tinsteadOf = gh:\n[url \"ssh://h/\"]\n\tpushInsteadOf = gh:\n",
            // The longest wins, then the first base that appears, not the first line.
            "[remote \"x\"]\n\turl = gh:a/b\n[url \"one/\"]\n\tinsteadOf = gh:\n[url \"two/\"]\n\tinsteadOf = gh:a/\n",
            "[remote \"x\"]\n\turl = gh:a/b\n[url \"two/\"]\n\tinsteadOf = gh:a/\n[url \"one/\"]\n\tinsteadOf = gh:\n",
            "[remote \"x\"]\n\turl = gh:a\n[url \"one/\"]\n\tinsteadOf = zz:\n[url \"two/\"]\n\tinsteadOf = gh:\n[url \"one/\"]\n\tinsteadOf = gh:\n",
            "[remote \"x\"]\n\turl = gh:a\n[url \"one/\"]\n\tinsteadOf = \"\"\n",
            "[remote \"x\"]\n\turl = GH:a\n[url \"one/\"]\n\tinsteadOf = gh:\n",
            // Of several URLs, only those that pushInsteadOf knows are pushed to.
            "[remote \"x\"]\n\turl = https://h/a\n\turl = https://g/a\n[url \"ssh://h/\"]\n\tpushInsteadOf = https://h/\n",
            "[remote \"my.fork\"]\n\turl = https://h/a\n",
        ] {
            let sandbox = configured(text);
            if text.contains("url =\n") && !resets_lists(&sandbox) {
                eprintln!("skipped, git is older than 2.46: {text}");
                continue;
            }
            let name = if text.contains("my.fork") { "my.fork" } else { "x" };
            let expected = sandbox.git("work", &["remote", "get-url", "--push", "--all", name]);
            let checkout = sandbox.open("work").unwrap();
            let remotes = super::configured(checkout.config());
            let remote = remotes.iter().find(|remote| remote.name == name).unwrap();
            let ours = push_urls(remote, &Rewrites::configured(checkout.config()));
            let ours: Vec<String> = ours.iter().map(ToString::to_string).collect();
            assert_eq!(ours.join("\n"), expected, "{text}");
        }
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
        let hints = choose(&configured(apart), None).unwrap().hints;
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
            assert_eq!(destination.parsed.path, path_bytes(&common), "{below}");
            assert_eq!((&destination.name, &destination.helper), (&None, &None));
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
    fn paths_start_where_their_author_stood() {
        let sandbox = configured("[remote \"origin\"]\n\turl = ../server.git\n");
        sandbox.git(".", &["init", "-q", "--bare", "server.git"]);
        std::fs::create_dir(sandbox.path("work/sub")).unwrap();
        let from_configuration = choose_in(&sandbox, "work/sub", None).unwrap();
        assert_eq!(from_configuration.parsed.path, path_bytes(&sandbox.path("work/../server.git")));
        let typed = choose_in(&sandbox, "work/sub", Some("../../server")).unwrap();
        assert_eq!(typed.parsed.path, path_bytes(&sandbox.path("work/sub/../../server")));
        let url = format!("file://{}", sandbox.path("server.git").display());
        let by_url = choose(&sandbox, Some(&url)).unwrap();
        assert_eq!((by_url.url.to_string(), by_url.parsed.scheme), (url, Scheme::File));
        assert_eq!(from_configuration.key, typed.key);
        assert_eq!(from_configuration.key, by_url.key);
        // git agrees about where it is.
        assert!(sandbox.try_git("work/sub", &["ls-remote", "origin"]).is_ok());

        sandbox.git("work", &["config", "claim.remote", "../server.git"]);
        let setting = choose_in(&sandbox, "work/sub", None).unwrap();
        assert_eq!((setting.name, &setting.key), (None, &typed.key));

        let bare = choose_in(&sandbox, "server.git", Some("sub/x.git")).unwrap();
        assert_eq!(bare.parsed.path, path_bytes(&sandbox.path("server.git/sub/x.git")));

        let home = choose(&sandbox, Some("~/x.git")).unwrap();
        assert_eq!(home.parsed.path, path_bytes(&sandbox.path("home").join("x.git")));
        assert_eq!(choose(&sandbox, Some("~bob/x.git")).unwrap().parsed.path, "~bob/x.git");
        assert_eq!(choose_url("file:///srv/a%20b.git").unwrap().parsed.path, "/srv/a b.git");
    }

    #[test]
    fn which_link_speaks_to_it() {
        for (url, helper, scheme) in [
            ("https://h/a", Some("https"), Scheme::Https),
            ("http://h/a", Some("http"), Scheme::Http),
            ("ssh://git@h:22/a", None, Scheme::Ssh),
            ("git+ssh://h/a", None, Scheme::Ssh),
            ("git@h:a/b.git", None, Scheme::Ssh),
            ("[::1]:a", None, Scheme::Ssh),
            ("git://h/a", None, Scheme::Git),
            ("./x:y", None, Scheme::File),
            ("/srv/a", None, Scheme::File),
            ("foo::bar", Some("foo"), Scheme::Helper("foo".into())),
            ("foo::https://h/a", Some("foo"), Scheme::Helper("foo".into())),
            ("s3://bucket/a", Some("s3"), Scheme::HelperUrl("s3".into())),
        ] {
            let destination = choose_url(url).unwrap();
            assert_eq!(destination.helper.as_deref(), helper, "{url}");
            assert_eq!(destination.parsed.scheme, scheme, "{url}");
        }
        let vcs = "[remote \"origin\"]\n\turl = https://h/a\n\tvcs = hg\n\tuploadpack = up\n\tuploadpack = no\n\treceivepack = down\n";
        let destination = choose(&configured(vcs), None).unwrap();
        assert_eq!(destination.helper.as_deref(), Some("hg"));
        assert_eq!(destination.upload_pack.as_deref(), Some("up"));
        assert_eq!(destination.receive_pack.as_deref(), Some("down"));
    }

    #[test]
    fn credentials_stay_out_of_sight_and_of_the_key() {
        for (url, expected) in [
            ("https://user:pass@h:8443/a", "https://h:8443/a"),
            ("https://token@h/a", "https://h/a"),
            ("https://user:p@ss@h/a", "https://h/a"),
            ("https://h/a@b", "https://h/a@b"),
            ("ssh://git:pass@h/a", "ssh://git@h/a"),
            ("git@h:a", "git@h:a"),
            ("foo::https://user:pass@h/a", "foo::https://h/a"),
            ("https://[::1]:80/a@b", "https://[::1]:80/a@b"),
        ] {
            let destination = choose_url(url).unwrap();
            assert_eq!(destination.shown, expected);
            assert_eq!(destination.url, url);
            let debug = format!("{destination:?}");
            assert!(!debug.contains("pass") && !debug.contains("token"), "{debug}");
        }
        assert_eq!(shown("https://user:pa/ss@h/a".into()), "https://h/a");
        let keys = ["https://h/a", "https://u:p@h/a", "https://h/a/"]
            .map(|url| choose_url(url).unwrap().key);
        assert!(keys[0] == keys[1] && keys[1] == keys[2]);
        assert_ne!(choose_url("https://h/b").unwrap().key, keys[0]);
        assert_eq!(
            choose_url("https://h/\u{1b}[31m\u{202e}")
                .map(|d| d.shown)
                .unwrap_or_default()
                .find('\u{1b}'),
            None
        );
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

    #[test]
    fn transports_are_allowed_as_git_allows_them() {
        let file = "/srv/a";
        for (url, text, variable, message) in [
            ("https://h/a", "", None, ""),
            (file, "", None, ""),
            ("foo::bar", "", None, ""),
            (
                "ext::sh -c x",
                "",
                None,
                "transport 'ext' is not allowed: protocol.ext.allow is 'never' by default",
            ),
            ("ext::sh -c x", "[protocol \"ext\"]\n\tallow = always\n", None, ""),
            (
                file,
                "[protocol]\n\tallow = never\n",
                None,
                "transport 'file' is not allowed: protocol.allow is 'never'",
            ),
            (
                file,
                "[protocol]\n\tallow = never\n[protocol \"file\"]\n\tallow = Always\n",
                None,
                "",
            ),
            (
                "ssh://h/a",
                "[protocol \"ssh\"]\n\tallow = never\n",
                None,
                "transport 'ssh' is not allowed: protocol.ssh.allow is 'never'",
            ),
            (
                file,
                "[protocol]\n\tallow = perhaps\n",
                None,
                "protocol.allow is 'perhaps': use always, never or user",
            ),
            (
                file,
                "",
                Some(("GIT_ALLOW_PROTOCOL", "https:ssh")),
                "transport 'file' is not allowed: GIT_ALLOW_PROTOCOL is 'https:ssh'",
            ),
            (
                file,
                "",
                Some(("GIT_ALLOW_PROTOCOL", "")),
                "transport 'file' is not allowed: GIT_ALLOW_PROTOCOL is ''",
            ),
            (
                "ext::x",
                "[protocol \"ext\"]\n\tallow = never\n",
                Some(("GIT_ALLOW_PROTOCOL", "file:ext")),
                "",
            ),
            ("https://h/a", "", Some(("GIT_PROTOCOL_FROM_USER", "0")), ""),
            (file, "", Some(("GIT_PROTOCOL_FROM_USER", "1")), ""),
            (
                file,
                "",
                Some(("GIT_PROTOCOL_FROM_USER", "no")),
                "transport 'file' is not allowed: protocol.file.allow is 'user' by default, and GIT_PROTOCOL_FROM_USER says that no user named it",
            ),
            (
                file,
                "",
                Some(("GIT_PROTOCOL_FROM_USER", "huh")),
                "GIT_PROTOCOL_FROM_USER is 'huh': use a boolean",
            ),
        ] {
            let mut sandbox = configured(text);
            if let Some((name, value)) = variable {
                sandbox = sandbox.with(name, value);
            }
            let said = choose(&sandbox, Some(url)).err().map(|error| error.to_string());
            assert_eq!(said.unwrap_or_default(), message, "{url} {text} {variable:?}");
        }
    }

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
