//! The remotes as they are configured, and where `git push` would go for each.
//!
//! Nothing is chosen here, and a URL is not looked into.

use gix::bstr::{BStr, BString, ByteSlice};

use super::rewrite::Rewrites;
use crate::checkout::Config;

/// A remote as it is configured, before any rewriting.
#[derive(Debug, Default)]
pub(super) struct Remote {
    pub(super) name: String,
    pub(super) urls: Vec<BString>,
    push_urls: Vec<BString>,
    pub(super) vcs: Option<String>,
    pub(super) upload_pack: Option<String>,
    pub(super) receive_pack: Option<String>,
}

/// The remotes that have somewhere to go, in the order in which the configuration first names them.
///
/// A section without URL (`remote.origin.prune` in a user's own configuration) is no remote.
pub(super) fn configured(config: &Config) -> Vec<Remote> {
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

/// Where `git push` would go: each `pushurl`, else whatever of the `url`s `pushInsteadOf` applies to, else the `url`s.
pub(super) fn push_urls(remote: &Remote, rewrites: &Rewrites) -> Vec<BString> {
    let plain = |url: &BString| rewrites.for_all(url.as_ref()).unwrap_or_else(|| url.clone());
    if !remote.push_urls.is_empty() {
        return remote.push_urls.iter().map(plain).collect();
    }
    let pushed: Vec<BString> =
        remote.urls.iter().filter_map(|url| rewrites.for_push(url.as_ref())).collect();
    if pushed.is_empty() { remote.urls.iter().map(plain).collect() } else { pushed }
}

/// Where `git fetch` would ask: the first `url`.
pub(super) fn fetch_url(remote: &Remote, rewrites: &Rewrites) -> Option<BString> {
    let url = remote.urls.first()?;
    Some(rewrites.for_all(url.as_ref()).unwrap_or_else(|| url.clone()))
}

#[cfg(test)]
mod tests {
    use super::{super::testing::configured, *};
    use crate::checkout::sandbox::Sandbox;

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
            let expected = sandbox.git("work", &["remote", "get-url", name]);
            let ours = fetch_url(remote, &Rewrites::configured(checkout.config()));
            assert_eq!(ours.map(|url| url.to_string()), Some(expected), "{text}");
        }
    }
}
