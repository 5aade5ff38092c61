//! Whether a transport may be used, which git's configuration decides for us as it does for `git push`.
//!
//! The rule is git's own (`transport.c`). Nothing is added to it: a transport that git would use is never refused here.

use gix::bstr::ByteSlice;

use super::{RemoteError, shown::printable};
use crate::checkout::{Checkout, boolean};

/// git's rule (`transport.c`): `GIT_ALLOW_PROTOCOL`, else `protocol.<name>.allow`, else `protocol.allow`, else by kind.
pub(super) fn allowed(transport: &str, checkout: &Checkout) -> Result<(), RemoteError> {
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

#[cfg(test)]
mod tests {
    use super::super::testing::{choose, configured};

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
}
