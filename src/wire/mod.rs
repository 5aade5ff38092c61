//! Everything that crosses the network, behind one trait.
//!
//! A [`Link`] speaks to one remote. It reports what the remote said and never what that *means*:
//! verdicts are made in [`crate::verdict`], from these reports and a fresh look at the ref.

mod advertisement;
mod child;
mod conversation;
mod deadline;
mod direct;
mod fetch;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;
mod helper;
mod leavings;
mod lines;
mod pipe;
mod push;
mod report;
mod send_pack;
mod session;
mod ssh;
mod tcp;
pub mod words;

use std::{collections::HashMap, path::PathBuf, time::Duration};

use gix::{
    ObjectId,
    bstr::{BStr, BString},
};

use crate::{
    remote::{Destination, Way},
    settings::Ssh,
};
use direct::Peer;
use words::Words;

pub use child::Terminal;
pub use leavings::{Deferred, Relay, interrupt};
pub use push::{Edit, Push, Reported, Updated};
pub use send_pack::NOT_TOGETHER;

/// How to speak to remotes: the same for every link of one invocation.
pub struct Manner<'a> {
    /// The time given to one connection, what is typed at a password prompt included.
    pub timeout: Duration,
    /// The user's ssh, if not plain `ssh`.
    pub ssh: Ssh,
    /// Whether `core.gitProxy` or `GIT_PROXY_COMMAND` asks for a proxy on `git://`.
    pub proxied: bool,
    /// Whether there is a terminal at which somebody can be asked for a password.
    pub terminal: Terminal,
    /// Takes what the remote says in prose.
    pub words: Words,
    /// The git directory of the clone we stand in, whose configuration git's helpers read.
    pub git_dir: Option<PathBuf>,
    /// The hash of that clone.
    pub hash: Option<gix::hash::Kind>,
    /// The object directory of that clone, which a helper's fetch may compare with.
    pub objects: Option<PathBuf>,
    /// The commits that the clone holds, asked for only where a server cannot leave out trees.
    pub have: Box<dyn Fn() -> Vec<ObjectId> + 'a>,
}

/// The link that the URL of `to` asks for. Nothing is opened before it is used.
pub fn link<'a>(to: &'a Destination, manner: &'a Manner<'a>) -> Box<dyn Link + 'a> {
    let direct = |peer| -> Box<dyn Link + 'a> { Box::new(direct::Direct::new(peer, to, manner)) };
    match &to.way {
        Way::Local(path) => direct(Peer::Local(path.as_ref())),
        Way::Ssh(url) => direct(Peer::Ssh(url)),
        Way::Git(url) => direct(Peer::Git(url)),
        Way::Helper(name) => Box::new(helper::Helper::new(name, to, manner)),
    }
}

/// One remote, spoken to by whatever transport its URL asks for.
pub trait Link {
    /// Asks the remote which refs it has under any of `prefixes` (one `ls-refs` exchange, no object travels).
    ///
    /// The connection stays open for one [`read`](Link::read) that follows; refs outside `prefixes` are never returned.
    fn list(&mut self, prefixes: &[&[u8]]) -> Result<Vec<Advertised>, LinkError>;

    /// Brings the objects at `tips` into memory, on the connection that listed them.
    ///
    /// Gives one entry for each of `tips`, in their order. A tip that cannot be read is a value, not an error.
    fn read(&mut self, tips: &[ObjectId]) -> Vec<Tip>;

    /// Brings the commits into memory that `tip`, which was listed, descends from by way of `parent`, that one included:
    /// at most `most` of them.
    ///
    /// Which of them come is up to the remote: one that sends too much is hung up on, and those that came before count.
    fn history(
        &mut self,
        tip: ObjectId,
        parent: ObjectId,
        most: usize,
    ) -> Result<HashMap<ObjectId, Vec<u8>>, LinkError>;

    /// Asks which refs of exactly these names the remote has, on the connection that [`list`](Link::list) opened where
    /// it can be asked once more. Each of `names` is to be there once only.
    fn find(&mut self, names: &[&[u8]]) -> Result<Vec<Advertised>, LinkError>;

    /// Which of the refs of exactly these names the writing side of the remote shows, on one connection and without asking
    /// it for anything.
    fn shown_for_writing(&mut self, names: &[&[u8]]) -> Result<Vec<Advertised>, LinkError>;

    /// How the last [`list`](Link::list) that was answered was spoken; `None` before there was one.
    fn spoken(&self) -> Option<Spoken>;

    /// An [`update`](Link::update) is about to follow, as the next thing that is asked for. Whatever takes its time until the
    /// remote can be told may begin; the remote is told nothing.
    fn make_ready(&mut self) {}

    /// Moves refs by compare-and-swap, on one connection; says for each of them, in the order of the edits, what came of it.
    fn update(&mut self, push: &Push<'_>) -> Vec<Updated>;
}

/// How a listing was spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spoken {
    /// In which protocol.
    pub protocol: Protocol,
    /// The hash of the repository, as far as the server says.
    pub hash: gix::hash::Kind,
}

/// What refs are listed in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// Versions 0 and 1 of git's own: all refs cross the wire.
    Classic,
    /// Version 2: only those that were asked for do.
    Two,
    /// A remote helper's list; what it speaks with its server is its own affair.
    Helper,
}

/// A ref that the remote says it has, and the object it points at (never the peeled one).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Advertised {
    /// The full name of the ref.
    pub name: BString,
    /// What the ref points at.
    pub id: ObjectId,
    /// The ref that this one stands for, if the server says that it is a symbolic one.
    pub symref: Option<BString>,
}

/// The object at a tip, as far as it could be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tip {
    /// The raw bytes of a commit, without the loose object header.
    Commit(Vec<u8>),
    /// An object of another kind (`tag`, `tree`, `blob`): not a claim's record.
    Other(gix::objs::Kind),
    /// It did not travel, and why.
    NotRead(String),
}

/// What `name` holds, if it is among the refs that were shown.
pub fn value(shown: &[Advertised], name: &BStr) -> Option<ObjectId> {
    shown.iter().find(|shown| shown.name == *name).map(|shown| shown.id)
}

/// Why an exchange with the remote could not be completed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LinkError {
    /// The remote, or a gate before it, turned us away: credentials, rights, a service switched off.
    #[error("the remote refuses: {0}")]
    Denied(String),
    /// No conversation came about, or it ended early.
    #[error("{0}")]
    Unreachable(String),
    /// The deadline passed.
    #[error("no answer within {}", humantime::format_duration(*.0))]
    TimedOut(Duration),
    /// The other side does not speak the protocol.
    #[error("the remote's answer makes no sense: {0}")]
    Nonsense(String),
    /// Refused on our side before anything was started: a transport that git's configuration forbids, a missing program.
    #[error("{0}")]
    Local(String),
}
