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
mod helper;
mod leavings;
mod report;
mod send_pack;
mod session;
mod ssh;
mod tcp;
pub mod words;

use std::{cell::Cell, collections::HashMap, path::PathBuf, time::Duration};

use gix::{
    ObjectId,
    bstr::{BStr, BString, ByteSlice},
};

use crate::{
    claim::commit::Draft,
    remote::{Destination, Way},
    settings::Ssh,
};
use direct::Peer;
use words::Words;

pub use child::Terminal;
pub use leavings::{Deferred, Relay, interrupt};

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

    /// What the writing side of the remote shows for one ref, without asking it for anything.
    fn shown_for_writing(&mut self, refname: &[u8]) -> Result<Option<ObjectId>, LinkError>;

    /// How the last [`list`](Link::list) that was answered was spoken; `None` before there was one.
    fn spoken(&self) -> Option<Spoken>;

    /// Moves one ref by compare-and-swap, or says why that did not happen.
    fn update(&mut self, edit: &Edit<'_>) -> Updated;
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

/// One compare-and-swap: `refname` goes from `expected` to `new`.
#[derive(Debug, Clone, Copy)]
pub struct Edit<'a> {
    /// The full name of the ref.
    pub refname: &'a [u8],
    /// The value that the ref must have now; `None` is absent.
    pub expected: Option<ObjectId>,
    /// The commit to put there; `None` deletes the ref.
    pub new: Option<&'a Draft>,
    /// For an update of an existing ref: the raw commit at `expected`, which git's own helper wants to have at hand.
    pub base: Option<&'a [u8]>,
    /// Other refs that nobody may have: where one of them is, nothing is sent. The advertisement tells, so that this
    /// costs nothing; it is no part of the comparison that the server makes.
    pub others: &'a [BString],
    /// Whether to ask the server for all or nothing, which a server that does not offer it refuses. For a single ref
    /// it changes nothing, but it tells whether several could be moved together.
    pub atomic: bool,
    /// One more ref, whose value is told along.
    pub beside: Option<&'a BStr>,
}

/// How an [`Edit`] ended, and what was seen on the way.
#[derive(Debug)]
#[must_use]
pub struct Updated {
    /// What the remote said to the edit.
    pub reported: Reported,
    /// What the writing side showed for [`Edit::beside`].
    pub beside: Option<ObjectId>,
    /// Whether it showed any ref in the namespaces of [`Edit::others`].
    pub near: bool,
}

/// What `name` holds, if it is among the refs that were shown.
pub fn value(shown: &[Advertised], name: &BStr) -> Option<ObjectId> {
    shown.iter().find(|shown| shown.name == *name).map(|shown| shown.id)
}

impl Edit<'_> {
    /// Whether the advertisement of a ref called `name` matters; notes in `near` that one of its kind is there at all.
    fn concerns(&self, name: &BStr, near: &Cell<bool>) -> bool {
        let namespace = |other: &BString| other.rfind_byte(b'/').map_or(0, |end| end + 1);
        if self.others.iter().any(|other| name.starts_with(&other[..namespace(other)])) {
            near.set(true);
        }
        name == self.refname
            || self.beside == Some(name)
            || self.others.iter().any(|other| other == name)
    }

    /// What keeps the edit from being sent, by what the writing side shows.
    fn compared_with(&self, shown: &[Advertised]) -> Option<Reported> {
        let found = value(shown, self.refname.as_bstr());
        if found != self.expected {
            return Some(Reported::Unexpected { found });
        }
        self.others.iter().find_map(|other| {
            let id = value(shown, other.as_bstr())?;
            Some(Reported::Elsewhere { refname: other.clone(), id })
        })
    }

    /// This end, with what was told along.
    fn ended(&self, shown: &[Advertised], near: &Cell<bool>, reported: Reported) -> Updated {
        let beside = self.beside.and_then(|name| value(shown, name));
        Updated { reported, beside, near: near.get() }
    }
}

/// What the remote said to an [`Edit`].
#[derive(Debug)]
#[must_use]
pub enum Reported {
    /// The server reports `ok` for exactly our ref. Holds the new value, `None` after a deletion.
    Done(Option<ObjectId>),
    /// The advertisement showed another value than the expected one; nothing was sent.
    Unexpected {
        /// The value that the ref has instead; `None` is absent.
        found: Option<ObjectId>,
    },
    /// The advertisement showed one of the [`others`](Edit::others); nothing was sent.
    Elsewhere {
        /// The full name of that ref.
        refname: BString,
        /// Its value.
        id: ObjectId,
    },
    /// The server answered, and the answer was not `ok`. Its words are no verdict.
    Refused {
        /// What would be there now had it been accepted.
        sent: Option<ObjectId>,
        /// The server's own words.
        reason: String,
    },
    /// Nothing was sent: the exchange failed before the command left.
    Unsent(LinkError),
    /// The command left and no answer came: the server may still apply it.
    Lost {
        /// The value that may be there now or later.
        sent: Option<ObjectId>,
        /// What became of the exchange.
        error: LinkError,
    },
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

impl Reported {
    /// The commit that may be there now, or later, by what was sent.
    pub fn sent(&self) -> Option<ObjectId> {
        match self {
            Self::Done(id) => *id,
            Self::Refused { sent, .. } | Self::Lost { sent, .. } => *sent,
            Self::Unexpected { .. } | Self::Elsewhere { .. } | Self::Unsent(_) => None,
        }
    }
}

impl From<LinkError> for Updated {
    /// Nothing was sent.
    fn from(error: LinkError) -> Self {
        Updated { reported: Reported::Unsent(error), beside: None, near: false }
    }
}
