//! The reading half of a link, whatever carries it: greet upload-pack, list refs, fetch tips on the same connection.

use std::collections::{HashMap, HashSet};

use gix::{
    ObjectId,
    bstr::{BStr, ByteSlice},
};

use super::{
    Advertised, LinkError, Protocol, Spoken, Tip,
    advertisement::{self, Greeting, Version},
    conversation::Conversation,
    fetch::{self, Wanted},
};

/// So many tips are asked for in one request, to bound its size and the loss if one of them is bad.
const BATCH: usize = 256;

/// A connection to upload-pack that has been greeted.
pub struct Session {
    conversation: Conversation,
    greeting: Greeting,
}

impl Session {
    /// Greets the server and asks for the refs under `prefixes`.
    pub fn list(
        conversation: Conversation,
        prefixes: &[&[u8]],
    ) -> Result<(Self, Vec<Advertised>), LinkError> {
        let wanted = |name: &BStr| prefixes.iter().any(|prefix| name.starts_with(prefix));
        let (mut session, mut refs) = Self::greet(conversation, wanted)?;
        if session.greeting.version == Version::Two && !prefixes.is_empty() {
            refs = session.ls_refs(prefixes, wanted)?;
        }
        Ok((session, refs))
    }

    /// Greets the server. Those before version 2 list their refs with the greeting: the `wanted` ones are kept.
    fn greet(
        mut conversation: Conversation,
        wanted: impl Fn(&BStr) -> bool,
    ) -> Result<(Self, Vec<Advertised>), LinkError> {
        let mut greeting = advertisement::read(&mut conversation, wanted)?;
        let refs = std::mem::take(&mut greeting.refs);
        Ok((Self { conversation, greeting }, refs))
    }

    /// Fetches what is `wanted`, and leaves the session in `open` if it is good for more.
    fn fetch(
        mut self,
        open: &mut Option<Session>,
        wanted: Wanted<'_>,
        have: &dyn Fn() -> Vec<ObjectId>,
    ) -> Result<HashMap<ObjectId, Tip>, LinkError> {
        let (objects, reusable) =
            fetch::read(&mut self.conversation, &self.greeting, wanted, have)?;
        if reusable {
            *open = Some(self);
        }
        Ok(objects)
    }

    fn ls_refs(
        &mut self,
        prefixes: &[&[u8]],
        wanted: impl Fn(&BStr) -> bool,
    ) -> Result<Vec<Advertised>, LinkError> {
        advertisement::ls_refs(&mut self.conversation, &self.greeting, prefixes, wanted)
    }

    /// How it is spoken.
    pub fn spoken(&self) -> Spoken {
        let protocol = match self.greeting.version {
            Version::Classic => Protocol::Classic,
            Version::Two => Protocol::Two,
        };
        Spoken { protocol, hash: self.greeting.kind }
    }

    /// Ends it as the protocol asks for.
    pub fn hang_up(self) {
        self.conversation.hang_up();
    }
}

/// So many refs are asked for in one request: git's servers disregard the names, and send every ref that they have,
/// where there are 65,536 or more.
const NAMES: usize = 10_000;

/// Asks which of the refs called `names` there are, on the connection in `open` if it can be asked once more, and else
/// on one that `connect` makes.
pub fn find_refs(
    open: &mut Option<Session>,
    mut connect: impl FnMut() -> Result<Conversation, LinkError>,
    names: &[&[u8]],
) -> Result<Vec<Advertised>, LinkError> {
    let exactly: HashSet<&[u8]> = names.iter().copied().collect();
    // What begins with a wanted name comes along.
    let wanted = |name: &BStr| exactly.contains(name.as_bytes());
    let mut session = match open.take() {
        Some(session) if session.greeting.version == Version::Two => session,
        told => {
            // Before version 2 a server tells its refs once, to whoever connects.
            if let Some(session) = told {
                session.hang_up();
            }
            let (session, refs) = Session::greet(connect()?, wanted)?;
            if session.greeting.version == Version::Classic {
                session.hang_up();
                return Ok(refs);
            }
            session
        }
    };
    let mut refs = Vec::new();
    for names in names.chunks(NAMES) {
        refs.extend(session.ls_refs(names, wanted)?);
    }
    *open = Some(session);
    Ok(refs)
}

/// So many requests may fail before what is left is given up.
const MOST_FAILURES: usize = 16;

/// Reads `tips` in batches, first on the connection in `open` and then on those that `connect` makes.
///
/// One entry for each of `tips`. A batch that fails is asked for again in halves, since one bad tip fails them all.
pub fn read_tips(
    open: &mut Option<Session>,
    mut connect: impl FnMut() -> Result<Conversation, LinkError>,
    tips: &[ObjectId],
    have: &dyn Fn() -> Vec<ObjectId>,
) -> Vec<Tip> {
    let mut wanted = tips.to_vec();
    wanted.sort_unstable();
    wanted.dedup();
    let mut found: HashMap<ObjectId, Tip> = HashMap::new();
    let mut missing = String::from("the remote did not send it, or it is too large");
    let mut failures = 0;
    let mut batches: Vec<&[ObjectId]> = wanted.chunks(BATCH).rev().collect();
    while let Some(batch) = batches.pop() {
        let fetched = opened(open, &mut connect)
            .and_then(|session| session.fetch(open, Wanted::Tips(batch), have));
        match fetched {
            Ok(objects) => found.extend(objects),
            Err(error) => {
                failures += 1;
                if failures >= MOST_FAILURES || matches!(error, LinkError::TimedOut(_)) {
                    missing = error.to_string();
                    break;
                }
                match batch.split_at(batch.len() / 2) {
                    ([], [id]) => drop(found.insert(*id, Tip::NotRead(error.to_string()))),
                    (one, two) => batches.extend([two, one]),
                }
            }
        }
    }
    // Tips may be large, so they are not copied where each was asked for once.
    let once = wanted.len() == tips.len();
    tips.iter()
        .map(|id| if once { found.remove(id) } else { found.get(id).cloned() })
        .map(|tip| tip.unwrap_or_else(|| Tip::NotRead(missing.clone())))
        .collect()
}

/// Reads the commits that `tip` descends from by way of `parent`, at most `most`, on the connection in `open` or on one that
/// `connect` makes.
pub fn read_history(
    open: &mut Option<Session>,
    mut connect: impl FnMut() -> Result<Conversation, LinkError>,
    tip: ObjectId,
    parent: ObjectId,
    most: usize,
    have: &dyn Fn() -> Vec<ObjectId>,
) -> Result<HashMap<ObjectId, Vec<u8>>, LinkError> {
    let from_tip = Wanted::History { from: tip, most: most + 1 };
    let session = opened(open, &mut connect)?;
    let found = match session.greeting.version {
        // Before version 2 there is only what was listed to be asked for.
        Version::Classic => session.fetch(open, from_tip, have)?,
        // A tip that was read on this connection is not asked for again: git's server remembers that history ended
        // there, and sends all of it instead of the depth asked for (measured with 2.47).
        Version::Two => match session.fetch(open, Wanted::History { from: parent, most }, have) {
            Err(error) if !matches!(error, LinkError::TimedOut(_)) => {
                // Wants can be anything (gitprotocol-v2(5)), but not every server thinks so.
                opened(&mut None, &mut connect)?.fetch(open, from_tip, have)?
            }
            found => found?,
        },
    };
    let commits = found.into_iter().filter_map(|(id, object)| match object {
        Tip::Commit(raw) => Some((id, raw)),
        Tip::Other(_) | Tip::NotRead(_) => None,
    });
    Ok(commits.collect())
}

fn opened(
    open: &mut Option<Session>,
    connect: &mut impl FnMut() -> Result<Conversation, LinkError>,
) -> Result<Session, LinkError> {
    match open.take() {
        Some(session) => Ok(session),
        None => Ok(Session::list(connect()?, &[])?.0),
    }
}
