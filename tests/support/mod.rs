//! The harness: where tests run, what they run against, and what is watched while they do.
//!
//! - [`Sandbox`]: a folder and an environment of its own for each test; nothing of the user's reaches it.
//! - [`Remote`]: a bare repository behind a real server, with a witness that saw every update.
//! - [`Clone`]: a repository in which the program is run, and a [`snapshot`] to prove that it was left alone.
//! - [`terminal`]: a shell at a terminal, with somebody who types.
//! - [`hostile`]: a server that wishes its clients ill.
//! - [`servers`]: sshd, nginx with git's http backend, git daemon: started once, ended with the process.

pub(crate) mod hostile;
pub(crate) mod output;
pub(crate) mod proxy;
pub(crate) mod remote;
pub(crate) mod sandbox;
pub(crate) mod servers;
pub(crate) mod snapshot;
pub(crate) mod terminal;

pub(crate) use output::{Output, Run, until};
pub(crate) use remote::{Kind, Remote, kinds};
pub(crate) use sandbox::{Clone, Sandbox, ignores_signals};
pub(crate) use snapshot::snapshot;

/// Turns one function that takes a [`Kind`] into one test for each kind of remote named.
macro_rules! on {
    ($test:ident: $($kind:ident),+ $(,)?) => {
        mod $test {
            $(#[test]
            fn $kind() {
                super::$test($crate::support::kinds::$kind())
            })+
        }
    };
}
pub(crate) use on;
