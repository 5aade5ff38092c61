//! A shell at a terminal, with somebody who types: job control as a person meets it.
//!
//! The terminal is made by `script` of util-linux, which every Linux system has that has a package manager's base
//! system; there is no safe way in Rust alone to give a child a terminal of its own.

use std::{io::Write, process::ChildStdin};

use super::{
    output::{Running, until},
    sandbox::Clone,
    servers,
};

impl Drop for Terminal {
    /// What was shown explains why a test failed that waited for something else.
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("--- terminal\n{}\n---", self.shown());
        }
    }
}

/// An interactive `bash`, in the folder of a clone.
pub(crate) struct Terminal {
    shell: Running,
    keys: ChildStdin,
}

impl Terminal {
    /// Opens one. Gives nothing where it cannot be had here.
    #[track_caller]
    pub(crate) fn open(clone: &Clone) -> Option<Self> {
        if clone.shell("command -v script bash").go().code != Some(0) {
            return servers::skip("there is no script, or no bash");
        }
        // Colours would stand between the words that are waited for.
        let shell = clone.shell("exec script -qfec 'bash --norc --noprofile -i' /dev/null");
        let (shell, keys) =
            shell.env("PS1", "> ").env("TERM", "xterm").env("NO_COLOR", "1").start_typing();
        let mut terminal = Self { shell, keys };
        terminal.until_it_shows("> ");
        Some(terminal)
    }

    /// Types `keys`: what is typed is shown too.
    pub(crate) fn type_in(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
        self.keys.flush().unwrap();
    }

    /// All that was shown so far.
    pub(crate) fn shown(&self) -> String {
        self.shell.stdout()
    }

    #[track_caller]
    pub(crate) fn until_it_shows(&mut self, words: &str) {
        until(words, || self.shown().contains(words) || self.shell.has_ended());
        assert!(self.shown().contains(words), "`{words}` was not shown\n{}", self.shown());
    }

    /// The exit status of the command before.
    #[track_caller]
    pub(crate) fn status(&mut self) -> String {
        let before = self.shown().matches("status=").count();
        // Once as it is typed, and once as the answer.
        let answer = |shown: &str| {
            let found = shown.split("status=").skip(before + 1).find(|part| !part.starts_with('$'));
            found.and_then(|part| part.split_once('.')).map(|(status, _)| status.to_owned())
        };
        // What is typed while the keys of before are still at work may be thrown away with them.
        let typed = "echo status=$?.\n";
        let mut waited = 0;
        until("the exit status", || {
            if waited % 200 == 0 {
                self.type_in(typed);
            }
            waited += 1;
            answer(&self.shown()).is_some()
        });
        answer(&self.shown()).unwrap()
    }
}
