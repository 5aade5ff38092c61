//! URLs and configured text for people's eyes and for file names: never a password in them, never a control character.
//!
//! What a URL means is decided elsewhere. Here it is taken apart only as far as is needed to find what must not be
//! seen, and what git itself would not accept is redacted all the same.

use gix::bstr::{BStr, BString, ByteSlice, ByteVec};

use crate::escape;

/// Names a remote by its URL without credentials: 32 hexadecimal digits.
pub(super) fn key(text: &BStr) -> String {
    let mut hasher = gix::hash::hasher(gix::hash::Kind::Sha256);
    hasher.update(text);
    // Only SHA-1 can refuse (a collision attack); 128 bits name one of a handful of remotes.
    hasher.try_finalize().map_or_else(|_| String::new(), |id| id.to_hex_with_len(32).to_string())
}

/// A URL for people: escaped, without what [`presentable`] takes out.
pub(super) fn shown(url: &BStr) -> String {
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
pub(super) fn without_credentials(url: &BStr) -> BString {
    let Some(start) = url.find("://").map(|at| at + 3) else { return url.to_owned() };
    let (before, rest) = url.split_at(start);
    let end = rest.find_byteset(b"/?#").unwrap_or(rest.len());
    let authority = &rest[..end];
    let port = authority.rsplit_once_str(":").map_or(b"".as_slice(), |(_, port)| port);
    let bracketed = authority.starts_with(b"[");
    let at = match authority.rfind_byte(b'@') {
        Some(at) => Some(at),
        // A password that should have been encoded has a slash in it, or a user's name a mark that ends hosts.
        None if !bracketed && !port.iter().all(u8::is_ascii_digit) => rest.rfind_byte(b'@'),
        None if rest[end..].starts_with_str("?") || rest[end..].starts_with_str("#") => {
            rest.rfind_byte(b'@')
        }
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
pub(super) fn printable(text: &[u8]) -> String {
    escape::line(&text.to_str_lossy()).into_owned()
}

pub(super) fn quoted(names: &[String]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("'{}'", escape::line(name))).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::{super::testing::choose_url, *};

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
        for url in ["user:pa/ss@h/a", "user#:pass@h/a", "user?:pass@h/a", "us#er:pa#ss@h/a"] {
            assert_eq!(shown(format!("https://{url}").as_str().into()), "https://h/a");
        }
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
}
