//! How to start ssh: the same program with the same arguments as git would (connect.c), and nothing more.

use std::{ffi::OsStr, path::Path, process::Command};

use gix::{Url, bstr::BStr, url::ArgumentSafety};

use super::{
    LinkError,
    child::{self, Terminal, clean_repository_environment},
    deadline::Deadline,
};
use crate::settings::{Ssh, SshCommand};

/// The families of ssh programs, by the arguments that they take (git-config(1), `ssh.variant`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Variant {
    Ssh,
    Plink,
    Putty,
    TortoisePlink,
    /// Only `[user@]host command`.
    Simple,
}

/// The command that runs `service` for `path` on the host of `url`.
///
/// `version` is the protocol version to ask for in the environment (`GIT_PROTOCOL`), where the server takes it.
/// `terminal` says whether the user can be asked for a password there.
pub fn command(
    ssh: &Ssh,
    url: &Url,
    service: &str,
    path: &BStr,
    version: Option<&str>,
    terminal: Terminal,
    deadline: Deadline,
) -> Result<Command, LinkError> {
    let host = match url.host_as_argument() {
        ArgumentSafety::Usable(host) => host,
        ArgumentSafety::Dangerous(host) => {
            return Err(LinkError::Local(format!("strange hostname '{host}' blocked")));
        }
        ArgumentSafety::Absent => return Err(LinkError::Local("the URL names no host".into())),
    };
    let target = match url.user_as_argument() {
        ArgumentSafety::Usable(user) => format!("{user}@{host}"),
        ArgumentSafety::Dangerous(user) => {
            return Err(LinkError::Local(format!("strange username '{user}' blocked")));
        }
        ArgumentSafety::Absent => host.to_owned(),
    };
    let variant = variant(ssh, host, terminal, deadline)?;
    let mut command = program(ssh.command.as_ref());
    if variant == Variant::Ssh {
        if let Some(version) = version {
            command.env("GIT_PROTOCOL", version).args(["-o", "SendEnv=GIT_PROTOCOL"]);
        }
        if terminal == Terminal::No && ssh.command.is_none() {
            command.args(["-o", "BatchMode=yes"]);
        }
    }
    if variant == Variant::TortoisePlink {
        command.arg("-batch");
    }
    if let Some(port) = url.port {
        let flag = match variant {
            Variant::Ssh => "-p",
            Variant::Plink | Variant::Putty | Variant::TortoisePlink => "-P",
            Variant::Simple => {
                return Err(LinkError::Local(
                    "ssh variant 'simple' does not support setting port".into(),
                ));
            }
        };
        command.arg(flag).arg(port.to_string());
    }
    // The path is quoted for the remote's shell, so it needs no guard against a leading '-' on our side;
    // on the far side git's services take a path that begins with '-' for an option.
    if path.starts_with(b"-") {
        return Err(LinkError::Local(format!("strange pathname '{path}' blocked")));
    }
    command.arg(target).arg(format!("{service} {}", gix::quote::single(path)));
    Ok(command)
}

/// The program itself. A configured command is a shell snippet, `GIT_SSH` is a bare program (git(1)).
fn program(configured: Option<&SshCommand>) -> Command {
    match configured {
        None => Command::new("ssh"),
        Some(SshCommand::Program(program)) => Command::new(program),
        Some(SshCommand::Shell(snippet)) => {
            let mut command = Command::new("sh");
            let mut script = snippet.clone();
            script.push(" \"$@\"");
            command.arg("-c").arg(script).arg(snippet);
            command
        }
    }
}

fn variant(
    ssh: &Ssh,
    host: &str,
    terminal: Terminal,
    deadline: Deadline,
) -> Result<Variant, LinkError> {
    match ssh.variant.as_deref() {
        Some("plink") => return Ok(Variant::Plink),
        Some("putty") => return Ok(Variant::Putty),
        Some("tortoiseplink") => return Ok(Variant::TortoisePlink),
        Some("simple") => return Ok(Variant::Simple),
        Some("auto") | None => {}
        Some(_) => return Ok(Variant::Ssh),
    }
    let first = match &ssh.command {
        None => return Ok(Variant::Ssh),
        Some(SshCommand::Program(program)) => program.clone(),
        Some(SshCommand::Shell(snippet)) => first_word(&snippet.to_string_lossy()).into(),
    };
    match base_name(&first).as_str() {
        "ssh" | "ssh.exe" => return Ok(Variant::Ssh),
        "plink" | "plink.exe" => return Ok(Variant::Plink),
        "tortoiseplink" | "tortoiseplink.exe" => return Ok(Variant::TortoisePlink),
        _ => {}
    }
    // As git does: a program that understands `-G` is OpenSSH under another name.
    let mut probe = program(ssh.command.as_ref());
    clean_repository_environment(&mut probe);
    probe.args(["-G", host]);
    Ok(if child::succeeds(probe, terminal, deadline)? { Variant::Ssh } else { Variant::Simple })
}

fn first_word(snippet: &str) -> String {
    let snippet = snippet.trim_start();
    let (end, skip) = match snippet.chars().next() {
        Some(quote @ ('\'' | '"')) => (snippet[1..].find(quote).map(|at| at + 1), 1),
        _ => (snippet.find(char::is_whitespace), 0),
    };
    snippet[skip..end.unwrap_or(snippet.len())].to_owned()
}

fn base_name(program: &OsStr) -> String {
    Path::new(program).file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn arguments(ssh: &Ssh, url: &str, terminal: Terminal) -> Vec<String> {
        let url = gix::url::parse(url).expect("a URL");
        let command = command(
            ssh,
            &url,
            "git-upload-pack",
            "/srv/it's.git".into(),
            Some("version=2"),
            terminal,
            Deadline::after(Duration::from_secs(10)),
        )
        .expect("usable");
        std::iter::once(command.get_program())
            .chain(command.get_args())
            .map(|argument| argument.to_string_lossy().into_owned())
            .collect()
    }

    #[test]
    fn the_default_asks_no_questions_without_a_terminal() {
        assert_eq!(
            arguments(&Ssh::default(), "ssh://me@host:29418/srv/x", Terminal::No),
            [
                "ssh",
                "-o",
                "SendEnv=GIT_PROTOCOL",
                "-o",
                "BatchMode=yes",
                "-p",
                "29418",
                "me@host",
                r"git-upload-pack '/srv/it'\''s.git'"
            ]
        );
        assert!(
            !arguments(&Ssh::default(), "host:x", Terminal::May)
                .contains(&"BatchMode=yes".to_owned())
        );
    }

    #[test]
    fn a_users_command_is_left_as_it_is() {
        let ssh = Ssh { command: Some(SshCommand::Shell("ssh -i 'my key'".into())), variant: None };
        let got = arguments(&ssh, "host:x", Terminal::No);
        assert_eq!(got[..4], ["sh", "-c", "ssh -i 'my key' \"$@\"", "ssh -i 'my key'"]);
        assert!(!got.contains(&"BatchMode=yes".to_owned()));
        let plink =
            Ssh { command: Some(SshCommand::Program("/opt/plink.exe".into())), variant: None };
        assert_eq!(arguments(&plink, "ssh://host:7/x", Terminal::No)[1..4], ["-P", "7", "host"]);
    }

    #[test]
    fn the_variant_is_told_as_git_tells_it() {
        let of = |command: &str, variant: Option<&str>| {
            let command = Some(SshCommand::Shell(command.into()));
            let ssh = Ssh { command, variant: variant.map(str::to_owned) };
            super::variant(&ssh, "host", Terminal::No, Deadline::after(Duration::from_secs(10)))
        };
        assert_eq!(of("'/opt/my tools/Plink.EXE' -x", None), Ok(Variant::Plink));
        assert_eq!(of("tortoiseplink", Some("auto")), Ok(Variant::TortoisePlink));
        assert_eq!(of("false", None), Ok(Variant::Simple));
        assert_eq!(of("true", None), Ok(Variant::Ssh), "whatever understands -G");
        assert_eq!(of("plink", Some("ssh")), Ok(Variant::Ssh));
        assert_eq!(of("plink", Some("nonesuch")), Ok(Variant::Ssh));
        let slow = Ssh { command: Some(SshCommand::Shell("sleep 60; true".into())), variant: None };
        assert!(
            super::variant(&slow, "host", Terminal::No, Deadline::after(Duration::from_millis(20)))
                .is_err()
        );
    }

    #[test]
    fn hosts_that_look_like_options_are_blocked() {
        let url = gix::Url::from_parts(
            gix::url::Scheme::Ssh,
            None,
            None,
            Some("-oProxyCommand=x".into()),
            None,
            "/x".into(),
            false,
        );
        if let Ok(url) = url {
            assert!(
                command(
                    &Ssh::default(),
                    &url,
                    "git-upload-pack",
                    "/x".into(),
                    None,
                    Terminal::No,
                    Deadline::after(Duration::from_secs(10))
                )
                .is_err()
            );
        }
    }
}
