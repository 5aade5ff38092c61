//! What git takes a URL for, and where a path leads.
//!
//! The rules are git's (`transport.c`, `connect.c`, `path.c`); whether the way may be gone is not asked here.

use std::path::{Path, PathBuf};

use gix::bstr::{BStr, BString, ByteSlice};

use crate::checkout::Environment;

/// What kind of thing git takes a URL for (`transport.c`, `connect.c`).
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A path, with the `file://` taken off and decoded.
    Local(BString),
    Ssh,
    Git,
    /// The name of a `git-remote-<name>`.
    Helper(String),
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
    use gix::url::Scheme;

    use super::{
        super::testing::{choose, choose_in, choose_url, configured},
        *,
    };

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
}
