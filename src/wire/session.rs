//! The reading half of a link, whatever carries it: greet upload-pack, list refs, fetch tips on the same connection.

use std::collections::HashMap;

use gix::{ObjectId, bstr::BStr};

use super::{
    Advertised, LinkError, Tip,
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
        mut conversation: Conversation,
        prefixes: &[&[u8]],
    ) -> Result<(Self, Vec<Advertised>), LinkError> {
        let wanted = |name: &BStr| prefixes.iter().any(|prefix| name.starts_with(prefix));
        let mut greeting = advertisement::read(&mut conversation, wanted)?;
        let refs = match greeting.version {
            Version::Two if prefixes.is_empty() => Vec::new(),
            Version::Two => advertisement::ls_refs(&mut conversation, &greeting, prefixes)?,
            Version::Classic => std::mem::take(&mut greeting.refs),
        };
        Ok((Self { conversation, greeting }, refs))
    }

    /// Ends it as the protocol asks for.
    pub fn hang_up(self) {
        self.conversation.hang_up();
    }
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
        match fetch_on(open, &mut connect, Wanted::Tips(batch), have) {
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
    tips.iter()
        .map(|id| found.get(id).cloned().unwrap_or_else(|| Tip::NotRead(missing.clone())))
        .collect()
}

/// Reads the commits that `tip` descends from, at most `most` of them with itself, on the connection in `open` or on
/// one that `connect` makes.
pub fn read_history(
    open: &mut Option<Session>,
    mut connect: impl FnMut() -> Result<Conversation, LinkError>,
    tip: ObjectId,
    most: usize,
    have: &dyn Fn() -> Vec<ObjectId>,
) -> Result<HashMap<ObjectId, Vec<u8>>, LinkError> {
    let found = fetch_on(open, &mut connect, Wanted::History { tip, most }, have)?;
    let commits = found.into_iter().filter_map(|(id, object)| match object {
        Tip::Commit(raw) => Some((id, raw)),
        Tip::Other(_) | Tip::NotRead(_) => None,
    });
    Ok(commits.collect())
}

fn fetch_on(
    open: &mut Option<Session>,
    connect: &mut impl FnMut() -> Result<Conversation, LinkError>,
    wanted: Wanted<'_>,
    have: &dyn Fn() -> Vec<ObjectId>,
) -> Result<HashMap<ObjectId, Tip>, LinkError> {
    let mut session = match open.take() {
        Some(session) => session,
        None => Session::list(connect()?, &[])?.0,
    };
    let (objects, reusable) =
        fetch::read(&mut session.conversation, &session.greeting, wanted, have)?;
    if reusable {
        *open = Some(session);
    }
    Ok(objects)
}
