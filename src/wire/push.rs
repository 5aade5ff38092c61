//! What is to be pushed, how it is compared with what the writing side shows, and what came of it.
//!
//! A push moves refs by compare-and-swap and in no other way: an [`Edit`] cannot be made without saying what it replaces.
//! What an end of one *means* is not decided here.

use std::{cell::Cell, collections::HashMap};

use gix::{
    ObjectId,
    bstr::{BStr, BString, ByteSlice},
};

use super::{Advertised, LinkError};
use crate::claim::commit::Draft;

/// Refs to be moved on one connection.
#[derive(Debug, Clone, Copy)]
pub struct Push<'a> {
    /// Each of another ref.
    pub edits: &'a [Edit<'a>],
    /// Whether to ask the server for all or nothing, which a server that does not offer it refuses. For a single ref
    /// it changes nothing, but it tells whether several could be moved together.
    pub atomic: bool,
}

/// One compare-and-swap: `refname` goes from `expected` to `new`.
#[derive(Debug, Clone, Copy)]
pub struct Edit<'a> {
    /// The full name of the ref.
    pub refname: &'a BStr,
    /// The value that the ref must have now; `None` is absent.
    pub expected: Option<ObjectId>,
    /// The commit to put there; `None` deletes the ref.
    pub new: Option<&'a Draft>,
    /// For an update of an existing ref: the raw commit at `expected`, which git's own helper wants to have at hand.
    pub base: Option<&'a [u8]>,
    /// Other refs that nobody may have: where one of them is, nothing is sent. The advertisement tells, so that this
    /// costs nothing; it is no part of the comparison that the server makes.
    pub others: &'a [BString],
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
    /// Whether it showed any ref in the namespaces of [`Edit::others`], of this edit or of one beside it.
    pub near: bool,
}

/// What the remote said to an [`Edit`].
#[derive(Debug, Clone)]
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
    /// Nothing was sent, since that is so for another edit of the same atomic push. What the ref holds was not compared.
    Withheld,
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

impl Reported {
    /// The commit that may be there now, or later, by what was sent.
    pub fn sent(&self) -> Option<ObjectId> {
        match self {
            Self::Done(id) => *id,
            Self::Refused { sent, .. } | Self::Lost { sent, .. } => *sent,
            Self::Unexpected { .. } | Self::Elsewhere { .. } | Self::Withheld | Self::Unsent(_) => {
                None
            }
        }
    }
}

impl<'a> Push<'a> {
    /// The same end for every edit, before anything was compared.
    pub fn all(&self, reported: &Reported) -> Vec<Updated> {
        let updated = |_| Updated { reported: reported.clone(), beside: None, near: false };
        self.edits.iter().map(updated).collect()
    }

    /// The push cut down to the edits that `ends` has no end for.
    fn left<'e>(&self, ends: &'e [Option<Reported>]) -> Vec<&'e Edit<'a>>
    where
        'a: 'e,
    {
        let open = |(edit, end): (&'a Edit<'a>, &Option<Reported>)| end.is_none().then_some(edit);
        self.edits.iter().zip(ends).filter_map(open).collect()
    }
}

/// Sifts the refs that the writing side shows for those that a push is about.
///
/// A remote may show a hundred thousand others, so a name is looked up only where it is in the namespace of one of ours.
pub struct Sieve<'a> {
    push: &'a Push<'a>,
    edits: HashMap<&'a BStr, &'a Edit<'a>>,
    /// Each with whether it ends an edit that its ref is there at all.
    beside: HashMap<&'a BStr, Role>,
    namespaces: Vec<&'a [u8]>,
    others: Vec<&'a [u8]>,
    near: Cell<bool>,
}

/// Why a ref matters that no edit moves.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Told,
    Forbidden,
}

impl<'a> Sieve<'a> {
    /// For the refs of `push`.
    pub fn new(push: &'a Push<'a>) -> Self {
        let edits = push.edits.iter().map(|edit| (edit.refname, edit)).collect();
        let beside = push
            .edits
            .iter()
            .flat_map(|edit| {
                let told = edit.beside.map(|name| (name, Role::Told));
                let others = edit.others.iter().map(|name| (name.as_bstr(), Role::Forbidden));
                told.into_iter().chain(others)
            })
            .collect();
        let mut sieve = Self {
            push,
            edits,
            beside,
            namespaces: Vec::new(),
            others: Vec::new(),
            near: Cell::new(false),
        };
        let names = sieve.edits.keys().chain(sieve.beside.keys()).map(|name| namespace(name));
        sieve.namespaces = once_each(names.collect());
        let others = push.edits.iter().flat_map(|edit| edit.others);
        sieve.others = once_each(others.map(|name| namespace(name.as_bstr())).collect());
        sieve
    }

    /// Whether the advertisement of a ref called `name` matters; notes whether the namespaces of others are in use.
    pub fn wants(&self, name: &BStr) -> bool {
        if self.others.iter().any(|namespace| name.starts_with(namespace)) {
            self.near.set(true);
        }
        self.namespaces.iter().any(|namespace| name.starts_with(namespace))
            && (self.edits.contains_key(name) || self.beside.contains_key(name))
    }

    /// Whether nothing will be sent, whatever else is shown: `found` ends a push that is one edit, or all or nothing.
    ///
    /// It spares the losers the rest of a long advertisement. What we put there ourselves is no such end: it is to be seen
    /// whole, with what stands beside it.
    pub fn ends_at(&self, found: &Advertised) -> bool {
        if self.push.edits.len() > 1 && !self.push.atomic {
            return false;
        }
        match self.edits.get(found.name.as_bstr()) {
            Some(edit) => {
                let ours = edit.new.map(|draft| draft.encode(found.id.kind()).id);
                edit.expected != Some(found.id) && ours != Some(found.id)
            }
            None => self.beside.get(found.name.as_bstr()) == Some(&Role::Forbidden),
        }
    }

    /// What keeps each of the edits from being sent, by what was `shown`: nothing where it is to be sent.
    fn compare(&self, shown: &HashMap<&BStr, ObjectId>) -> Vec<Option<Reported>> {
        let compare = |edit: &Edit<'_>| {
            let found = shown.get(edit.refname).copied();
            let unexpected = (found != edit.expected).then_some(Reported::Unexpected { found });
            // What was shown comes first: where the listing was cut short, the rest is not known.
            if found.is_some() && unexpected.is_some() {
                return unexpected;
            }
            let elsewhere = edit.others.iter().find_map(|other| {
                let id = *shown.get(other.as_bstr())?;
                Some(Reported::Elsewhere { refname: other.clone(), id })
            });
            elsewhere.or(unexpected)
        };
        self.push.edits.iter().map(compare).collect()
    }

    /// Carries out the push, now that the writing side has shown `refs`: `send` is given the edits that are to be sent and
    /// answers for each, in their order. It is not called where there are none.
    pub fn carry_out(
        &self,
        refs: &[Advertised],
        send: impl FnOnce(&[&Edit<'a>]) -> Vec<Reported>,
    ) -> Vec<Updated> {
        let shown: HashMap<&BStr, ObjectId> =
            refs.iter().map(|found| (found.name.as_bstr(), found.id)).collect();
        let mut ends = self.compare(&shown);
        if self.push.atomic && ends.iter().any(Option::is_some) {
            // Where the listing was cut short, what was not shown yet is not known to be absent.
            for end in &mut ends {
                if !end.as_ref().is_some_and(known) {
                    *end = Some(Reported::Withheld);
                }
            }
        }
        let left = self.push.left(&ends);
        let mut answers = if left.is_empty() { Vec::new() } else { send(&left) }.into_iter();
        let near = self.near.get();
        let updated = |(edit, end): (&Edit<'_>, Option<Reported>)| {
            let silent = LinkError::Nonsense("no answer about this ref".into());
            let reported = end
                .or_else(|| answers.next())
                .unwrap_or(Reported::Lost { sent: None, error: silent });
            let beside = edit.beside.and_then(|name| shown.get(name).copied());
            Updated { reported, beside, near }
        };
        self.push.edits.iter().zip(ends).map(updated).collect()
    }
}

/// Whether an end is one by what was shown, and not by what was not.
fn known(end: &Reported) -> bool {
    matches!(end, Reported::Unexpected { found: Some(_) } | Reported::Elsewhere { .. })
}

fn namespace(name: &BStr) -> &[u8] {
    &name[..name.rfind_byte(b'/').map_or(0, |end| end + 1)]
}

fn once_each(mut names: Vec<&[u8]>) -> Vec<&[u8]> {
    names.sort_unstable();
    names.dedup();
    names
}
