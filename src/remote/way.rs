//! How a remote is spoken to, which its URL says, and where a path leads.
//!
//! The rules are git's (`transport.c`, `connect.c`, `path.c`); whether the way may be gone is not asked here.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use gix::{
    bstr::{BStr, BString, ByteSlice},
    url::Scheme,
};

use crate::checkout::Environment;

/// How a remote is spoken to, with as much of its URL as that takes. It may hold credentials, as the URL does.
#[derive(Clone, PartialEq, Eq)]
pub enum Way {
    /// git's own programs, run for the repository at this path: an absolute one, or one that begins with `~user`.
    Local(BString),
    /// The same programs on another host, through ssh.
    Ssh(gix::Url),
    /// git-daemon.
    Git(gix::Url),
    /// The `git-remote-<name>` with this name, which makes of the whole URL what it likes.
    Helper(String),
}

/// Leaves URLs out: they may hold credentials.
impl fmt::Debug for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Way::Local(path) => f.debug_tuple("Local").field(path).finish(),
            Way::Ssh(_) => f.write_str("Ssh"),
            Way::Git(_) => f.write_str("Git"),
            Way::Helper(name) => f.debug_tuple("Helper").field(name).finish(),
        }
    }
}

/// What kind of thing git takes a URL for (`transport.c`, `connect.c`), before anything else is known of it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A path, with the `file://` taken off and decoded.
    Local(BString),
    Ssh,
    Git,
    /// The name of a `git-remote-<name>`, as the URL begins with it.
    Helper(String),
    /// The name of a `git-remote-<name>`, as `remote.<name>.vcs` has it: the URL may look like anything.
    Vcs(String),
}

impl Kind {
    /// The name in `protocol.<name>.allow`.
    pub(super) fn transport(&self) -> &str {
        match self {
            Kind::Local(_) => "file",
            Kind::Ssh => "ssh",
            Kind::Git => "git",
            Kind::Helper(name) | Kind::Vcs(name) => name,
        }
    }

    /// The way to `url`, which is of this kind; a relative path starts at `base`.
    ///
    /// Fails, saying what is wrong with `url`, for one that could not be used or could be taken for an option.
    pub(super) fn way(
        self,
        url: &BStr,
        base: &Path,
        environment: &Environment,
    ) -> Result<Way, &'static str> {
        Ok(match self {
            // Absolute now, or '~somebody': it does not begin with '-'.
            Kind::Local(path) => Way::Local(absolute(path.as_ref(), base, environment)),
            Kind::Ssh => Way::Ssh(parsed(url, Scheme::Ssh)?),
            Kind::Git => Way::Git(one_request(parsed(url, Scheme::Git)?)?),
            Kind::Helper(name) => {
                match gix::url::parse(url) {
                    Ok(parsed) => no_option(&parsed)?,
                    Err(_) if matches!(name.as_str(), "http" | "https") => return Err(NO_URL),
                    // Not ours to judge: a helper's addresses are its own.
                    Err(_) => {}
                }
                Way::Helper(name)
            }
            Kind::Vcs(name) => Way::Helper(name),
        })
    }
}

const NO_URL: &str = "it is not a URL that git could use";

fn parsed(url: &BStr, scheme: Scheme) -> Result<gix::Url, &'static str> {
    // git takes a URL with blanks in it, gix only one where they are written as %20; both read that alike.
    let parsed = gix::url::parse(url)
        .or_else(|_| gix::url::parse(url.replace(" ", "%20").as_bstr()))
        .ok()
        .filter(|parsed| parsed.scheme == scheme)
        .ok_or(NO_URL)?;
    no_option(&parsed)?;
    Ok(parsed)
}

/// No part of it could end a line or a word of what git-daemon is asked (`connect.c`), also not once it is decoded.
fn one_request(url: gix::Url) -> Result<gix::Url, &'static str> {
    let host = url.host.as_deref().unwrap_or_default().as_bytes();
    match [host, &**url.path].iter().any(|part| part.find_byteset(b"\0\n").is_some()) {
        true => Err("its host or path holds a line feed or a NUL"),
        false => Ok(url),
    }
}

/// No part of it could be an option to a program that is given that part alone.
fn no_option(url: &gix::Url) -> Result<(), &'static str> {
    let dashed = |part: &Option<String>| part.as_ref().is_some_and(|part| part.starts_with('-'));
    if dashed(&url.host) || dashed(&url.user) {
        return Err("its host begins with '-'");
    }
    if url.path.starts_with(b"-") {
        return Err("its path begins with '-'");
    }
    Ok(())
}

pub(super) fn kind(url: &BStr) -> Kind {
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

/// `~/` is the user's home; `~somebody/` is left to upload-pack, which knows everybody's.
pub(super) fn absolute(path: &BStr, base: &Path, environment: &Environment) -> BString {
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

pub(super) fn path_bytes(path: &Path) -> BString {
    // Only Windows knows paths that are no bytes, and there the text is close enough.
    gix::path::into_bstr(path)
        .map_or_else(|_| path.to_string_lossy().as_bytes().into(), |path| path.into_owned())
}

pub(super) fn exists(path: &BStr, base: &Path) -> bool {
    path.starts_with(b"~") || real(&base.join(path.to_path_lossy())).is_some()
}

/// The repository that upload-pack would find at `path`, without detours, so that every spelling has the same key.
pub(super) fn real_path(path: &BStr) -> BString {
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

#[cfg(test)]
mod tests {
    use super::{
        super::testing::{choose, choose_in, choose_url, configured, path},
        *,
    };

    #[test]
    fn paths_start_where_their_author_stood() {
        let sandbox = configured("[remote \"origin\"]\n\turl = ../server.git\n");
        sandbox.git(".", &["init", "-q", "--bare", "server.git"]);
        std::fs::create_dir(sandbox.path("work/sub")).unwrap();
        let from_configuration = choose_in(&sandbox, "work/sub", None).unwrap();
        assert_eq!(path(&from_configuration), path_bytes(&sandbox.path("work/../server.git")));
        let typed = choose_in(&sandbox, "work/sub", Some("../../server")).unwrap();
        assert_eq!(path(&typed), path_bytes(&sandbox.path("work/sub/../../server")));
        let url = format!("file://{}", sandbox.path("server.git").display());
        let by_url = choose(&sandbox, Some(&url)).unwrap();
        assert_eq!(
            (by_url.url.to_string(), path(&by_url)),
            (url, path_bytes(&sandbox.path("server.git")))
        );
        assert_eq!(from_configuration.key, typed.key);
        assert_eq!(from_configuration.key, by_url.key);
        // git agrees about where it is.
        assert!(sandbox.try_git("work/sub", &["ls-remote", "origin"]).is_ok());

        sandbox.git("work", &["config", "claim.remote", "../server.git"]);
        let setting = choose_in(&sandbox, "work/sub", None).unwrap();
        assert_eq!((setting.name, &setting.key), (None, &typed.key));

        let bare = choose_in(&sandbox, "server.git", Some("sub/x.git")).unwrap();
        assert_eq!(path(&bare), path_bytes(&sandbox.path("server.git/sub/x.git")));

        let home = choose(&sandbox, Some("~/x.git")).unwrap();
        assert_eq!(path(&home), path_bytes(&sandbox.path("home").join("x.git")));
        assert_eq!(path(&choose(&sandbox, Some("~bob/x.git")).unwrap()), "~bob/x.git");
        assert_eq!(path(&choose_url("file:///srv/a%20b.git").unwrap()), "/srv/a b.git");
    }

    #[test]
    fn which_link_speaks_to_it() {
        for (url, transport, helper) in [
            ("https://h/a", "helper", Some("https")),
            ("http://h/a", "helper", Some("http")),
            ("ssh://git@h:22/a", "ssh", None),
            ("git+ssh://h/a", "ssh", None),
            ("git@h:a/b.git", "ssh", None),
            ("[::1]:a", "ssh", None),
            ("git://h/a", "git", None),
            ("./x:y", "local", None),
            ("/srv/a", "local", None),
            ("/srv/x://y", "local", None),
            ("foo::bar", "helper", Some("foo")),
            ("foo::https://h/a", "helper", Some("foo")),
            ("s3://bucket/a", "helper", Some("s3")),
        ] {
            let destination = choose_url(url).unwrap();
            let way = match &destination.way {
                Way::Local(_) => ("local", None),
                Way::Ssh(_) => ("ssh", None),
                Way::Git(_) => ("git", None),
                Way::Helper(name) => ("helper", Some(name.as_str())),
            };
            assert_eq!(way, (transport, helper), "{url}");
        }
        let vcs = "[remote \"origin\"]\n\turl = https://h/a\n\tvcs = hg\n\tuploadpack = up\n\tuploadpack = no\n\treceivepack = down\n";
        let destination = choose(&configured(vcs), None).unwrap();
        assert_eq!(destination.way, Way::Helper("hg".into()));
        assert_eq!(destination.upload_pack.as_deref(), Some("up"));
        assert_eq!(destination.receive_pack.as_deref(), Some("down"));
        let odd = "[remote \"origin\"]\n\turl = git@h:a.git\n\tvcs = hg\n";
        let destination = choose(&configured(odd), None).unwrap();
        assert_eq!(destination.way, Way::Helper("hg".into()));
        assert_eq!(destination.url, "git@h:a.git");
    }
}
