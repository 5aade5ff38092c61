//! What the other side and its gatekeepers say in prose: standard error of children, side band, `ERR` lines.
//!
//! Words are kept for the report and shown as they come. They never decide who holds a claim; the one
//! thing read from them is whether a *conversation that did not come about* was turned away
//! ([`LinkError::Denied`]) or never reached anybody ([`LinkError::Unreachable`]).

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gix::bstr::{BStr, ByteSlice};

use super::LinkError;
use crate::remote::redacted;

/// At most this many lines are kept; a hook that prints a log does not fill the memory.
const KEPT_LINES: usize = 100;
/// A single line is cut here.
const KEPT_BYTES: usize = 2_000;

/// The bounded memory of what was said in one conversation, with a listener for what is said now.
#[derive(Clone)]
pub struct Words {
    heard: Arc<Mutex<Heard>>,
    listener: Arc<Mutex<Listener>>,
}

type Listener = dyn FnMut(&str) + Send;

#[derive(Default)]
struct Heard {
    lines: Vec<String>,
    /// The unfinished last line of a side band, whose packets do not end where lines end.
    rest: Vec<u8>,
}

impl Words {
    /// Hands every complete line to `listener` as it comes. The text is raw: who shows it escapes it.
    pub fn new(listener: impl FnMut(&str) + Send + 'static) -> Self {
        Self { heard: Arc::default(), listener: Arc::new(Mutex::new(listener)) }
    }

    /// The same listener with an empty memory: what is said in one conversation explains no other.
    pub fn fresh(&self) -> Self {
        Self { heard: Arc::default(), listener: self.listener.clone() }
    }

    /// The same listener, with one more beside it.
    pub fn overheard(&self, mut also: impl FnMut(&str) + Send + 'static) -> Self {
        let listener = self.listener.clone();
        Self::new(move |line| {
            lock(&listener)(line);
            also(line);
        })
    }

    /// Takes in some bytes; a line ends at LF or CR.
    pub fn hear(&self, bytes: &[u8]) {
        let mut heard = lock(&self.heard);
        for byte in bytes {
            match byte {
                b'\n' | b'\r' => self.end_line(&mut heard),
                _ if heard.rest.len() < KEPT_BYTES => heard.rest.push(*byte),
                _ => {}
            }
        }
    }

    /// Takes in one whole line.
    pub fn hear_line(&self, line: &[u8]) {
        self.hear(line);
        self.hear(b"\n");
    }

    /// The lines heard since the last call, joined by LF; forgets them.
    pub fn take(&self) -> String {
        let mut heard = lock(&self.heard);
        self.end_line(&mut heard);
        std::mem::take(&mut heard.lines).join("\n")
    }

    fn end_line(&self, heard: &mut Heard) {
        let line = std::mem::take(&mut heard.rest);
        let line = redacted(&line.as_bstr().trim_end().to_str_lossy());
        if line.is_empty() || heard.lines.len() >= KEPT_LINES {
            return;
        }
        lock(&self.listener)(&line);
        heard.lines.push(line);
    }
}

/// A panic of another thread while it held the lock leaves words that are still worth showing.
fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sorts the end of a conversation that never got to an answer, by what was said.
///
/// `otherwise` describes the end where nothing was said. The samples in the tests are the texts of git, OpenSSH,
/// curl and git-daemon; they only choose between two ways of saying that there is no answer.
pub fn no_conversation(said: &str, otherwise: &str) -> LinkError {
    let text = if said.is_empty() { otherwise.to_owned() } else { said.to_owned() };
    if said.lines().any(|line| turned_away(line.into())) {
        LinkError::Denied(text)
    } else {
        LinkError::Unreachable(text)
    }
}

/// Whether a ref was refused because another one of the same atomic push was: the words of git's server and of its client.
pub fn for_another(reason: &str) -> bool {
    ["atomic push failure", "atomic push failed"].iter().any(|words| reason.contains(words))
}

/// Whether git's own client says that it has not sent an atomic push, which it ends over where the server does not offer it.
pub fn not_atomic(said: &str) -> bool {
    said.lines().any(|line| line == "fatal: the receiving end does not support --atomic push")
}

/// Whether a line is a gatekeeper's "not you" or "not this".
fn turned_away(line: &BStr) -> bool {
    const SIGNS: &[&str] = &[
        "Permission denied",
        "permission denied",
        "access denied",
        "Access denied",
        "Authentication failed",
        "Host key verification failed",
        "could not read Username",
        "could not read Password",
        "returned error: 401",
        "returned error: 403",
        "error: 403",
        "service not enabled",
        "detected dubious ownership",
        // GitHub, GitLab and gitolite over ssh, as their users report them.
        " denied to ",
        "DENIED by ",
        "not allowed to push",
        "marked as read only",
    ];
    SIGNS.iter().any(|sign| line.contains_str(sign))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_at_either_end_of_line_and_across_packets() {
        let words = Words::new(|_| {});
        words.hear(b"one\ntw");
        words.hear(b"o\rthree");
        assert_eq!(words.take(), "one\ntwo\nthree");
        assert_eq!(words.take(), "", "taken once");
        words.hear(b"of this one\n");
        assert_eq!(words.fresh().take(), "", "another conversation");
    }

    #[test]
    fn a_flood_is_bounded() {
        let words = Words::new(|_| {});
        words.hear(&vec![b'x'; 1_000_000]);
        for _ in 0..10_000 {
            words.hear_line(b"again and again");
        }
        assert!(words.take().len() < KEPT_LINES * (KEPT_BYTES + 1));
    }

    #[test]
    fn gatekeepers_are_told_from_silence() {
        for said in [
            "alice@127.0.0.1: Permission denied (publickey).",
            "Host key verification failed.",
            "fatal: unable to access 'https://host/r.git/': The requested URL returned error: 403",
            "fatal: Authentication failed for 'https://host/r.git/'",
            "fatal: could not read Username for 'https://host': terminal prompts disabled",
            "fatal: remote error: access denied or repository not exported: /r.git",
            "fatal: detected dubious ownership in repository at '/srv/r.git'",
            "ERROR: Permission to owner/repo.git denied to somebody.",
            "FATAL: W refs/claims/issue-1 repo somebody DENIED by fallthru",
            "GitLab: You are not allowed to push code to this project.",
        ] {
            assert!(matches!(no_conversation(said, "closed"), LinkError::Denied(_)), "{said}");
        }
        for said in [
            "",
            "ssh: connect to host 127.0.0.1 port 1: Connection refused",
            "fatal: '/srv/none.git' does not appear to be a git repository",
            "fatal: unable to access 'https://host/': The requested URL returned error: 503",
            "fatal: unable to access 'https://host/': The requested URL returned error: 429",
        ] {
            assert!(matches!(no_conversation(said, "closed"), LinkError::Unreachable(_)), "{said}");
        }
    }
}
