//! The reading half of a link, whatever carries it: greet upload-pack, list refs, fetch tips on the same connection.

use std::collections::HashMap;

use gix::{ObjectId, bstr::BStr};

use super::{
    Advertised, LinkError, Tip,
    advertisement::{self, Greeting, Version},
    conversation::Conversation,
    fetch,
};

/// So many tips are asked for in one request, to bound its size and the loss if one of them is bad.
const BATCH: usize = 256;

/// A connection to upload-pack that has been greeted.
pub struct Reading {
    conversation: Conversation,
    greeting: Greeting,
}

impl Reading {
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
}

/// Reads `tips` in batches, first on the connection in `open` and then on those that `connect` makes.
///
/// A batch that cannot be read leaves its tips as [`Tip::NotRead`]. Only a link that is gone is an error.
pub fn read_tips(
    open: &mut Option<Reading>,
    mut connect: impl FnMut() -> Result<Conversation, LinkError>,
    tips: &[ObjectId],
    have: &dyn Fn() -> Vec<ObjectId>,
) -> Result<Vec<Tip>, LinkError> {
    let mut wanted = tips.to_vec();
    wanted.sort_unstable();
    wanted.dedup();
    let mut found = HashMap::new();
    for batch in wanted.chunks(BATCH) {
        let mut reading = match open.take() {
            Some(reading) => reading,
            None => Reading::list(connect()?, &[])?.0,
        };
        let (objects, reusable) =
            fetch::read(&mut reading.conversation, &reading.greeting, batch, have)?;
        found.extend(objects);
        if reusable {
            *open = Some(reading);
        }
    }
    let missing = || Tip::NotRead("the remote did not send it, or it is too large".into());
    Ok(tips.iter().map(|id| found.get(id).cloned().unwrap_or_else(missing)).collect())
}
