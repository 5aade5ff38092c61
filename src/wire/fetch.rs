//! Bringing tip commits into memory, and nothing else.
//!
//! One `fetch` request asks for the tips alone (`deepen 1`, no trees where the server can leave them out). The pack
//! is read as it streams by: servers write commits first, so reading stops being of interest as soon as every
//! tip was seen, however much the server would like to send. Nothing is written to the clone; only a pack
//! whose commits are deltas is indexed, in a temporary place.

use std::{
    collections::HashMap,
    io::{self, BufRead, Cursor, Read},
    sync::atomic::AtomicBool,
};

use gix::{
    ObjectId,
    hash::Kind,
    objs,
    odb::pack::{self, data::input},
    zlib,
};

use super::{
    LinkError, Tip,
    advertisement::{self, AGENT, Greeting, Version},
    conversation::{Conversation, Line},
    leavings::Place,
};

/// A record of ours is under a kilobyte; a commit larger than this is not shown.
const LARGEST_COMMIT: u64 = 1024 * 1024;
/// A server that cannot leave out trees sends them; past this much we hang up.
const LARGEST_PACK: usize = 8 * 1024 * 1024;

/// The objects of a pack that is indexed may have this size together.
const LARGEST_INFLATED: u64 = 32 * 1024 * 1024;
/// What is worth reading to keep the conversation for another request.
const SHORT_REST: usize = 64 * 1024;

/// Asks for `tips` (without duplicates) on a conversation that has been greeted, and reads what comes.
///
/// `have` are commits that the clone holds: with a server that offers no filter they keep it from sending
/// the trees of a claim that somebody made by hand on top of the project's history.
///
/// The flag says whether the conversation is still good for another request.
pub fn read(
    conversation: &mut Conversation,
    greeting: &Greeting,
    tips: &[ObjectId],
    have: impl FnOnce() -> Vec<ObjectId>,
) -> Result<(HashMap<ObjectId, Tip>, bool), LinkError> {
    match greeting.version {
        Version::Two => ask(conversation, greeting, tips, have)?,
        Version::Classic => ask_classic(conversation, greeting, tips, have)?,
    }
    let mut pack = PackStream {
        conversation,
        piece: Vec::new(),
        at: 0,
        kept: Vec::new(),
        limit: LARGEST_PACK,
        failure: None,
        ended: false,
    };
    let found = scan(&mut pack, tips, greeting.kind);
    let whole = pack.ended;
    let kept = std::mem::take(&mut pack.kept);
    match pack.failure.take() {
        Some(Stop::Link(error)) => return Err(error),
        Some(Stop::TooLarge) | None => {}
    }
    let Scan { mut found, indexable } = found?;
    if whole && indexable && tips.iter().any(|tip| !found.contains_key(tip)) {
        // Deltas: let gix resolve them.
        found.extend(index(&kept, tips, greeting.kind));
    }
    let reusable = whole && greeting.version == Version::Two;
    Ok((found, reusable))
}

fn ask(
    conversation: &mut Conversation,
    greeting: &Greeting,
    tips: &[ObjectId],
    have: impl FnOnce() -> Vec<ObjectId>,
) -> Result<(), LinkError> {
    let offers = |feature: &[u8]| {
        greeting
            .capabilities
            .value("fetch")
            .is_some_and(|offer| offer.split(|byte| *byte == b' ').any(|one| one == feature))
    };
    advertisement::command(conversation, greeting, "fetch")?;
    conversation.say(b"no-progress\n")?;
    for tip in tips {
        conversation.say(format!("want {tip}\n").as_bytes())?;
    }
    if offers(b"shallow") {
        conversation.say(b"deepen 1\n")?;
    }
    if offers(b"filter") {
        conversation.say(b"filter tree:0\n")?;
    } else {
        for id in have() {
            conversation.say(format!("have {id}\n").as_bytes())?;
        }
    }
    conversation.say(b"done\n")?;
    conversation.end()?;
    conversation.send()?;
    loop {
        match conversation.next()? {
            Line::Data(b"packfile\n" | b"packfile") => return Ok(()),
            // Sections before the pack (shallow-info, acknowledgments) say nothing that we need.
            Line::Data(_) | Line::Delimiter | Line::ResponseEnd => {}
            Line::Flush => return Err(LinkError::Nonsense("an answer without a pack".into())),
        }
    }
}

fn ask_classic(
    conversation: &mut Conversation,
    greeting: &Greeting,
    tips: &[ObjectId],
    have: impl FnOnce() -> Vec<ObjectId>,
) -> Result<(), LinkError> {
    let has = |name: &str| greeting.capabilities.has(name);
    if !has("side-band-64k") {
        return Err(LinkError::Nonsense("a server without side-band-64k".into()));
    }
    let mut wishes = String::from(" side-band-64k");
    for wish in ["no-progress", "shallow", "filter"] {
        if has(wish) {
            wishes.push_str(&format!(" {wish}"));
        }
    }
    if has("object-format") {
        wishes.push_str(&format!(" object-format={}", greeting.kind));
    }
    if has("agent") {
        wishes.push_str(&format!(" agent={AGENT}"));
    }
    for (tip, wishes) in
        tips.iter().zip(std::iter::once(wishes.as_str()).chain(std::iter::repeat("")))
    {
        conversation.say(format!("want {tip}{wishes}\n").as_bytes())?;
    }
    if has("shallow") {
        conversation.say(b"deepen 1\n")?;
    }
    if has("filter") {
        conversation.say(b"filter tree:0\n")?;
    }
    conversation.end()?;
    if !has("filter") {
        for id in have() {
            conversation.say(format!("have {id}\n").as_bytes())?;
        }
    }
    conversation.say(b"done\n")?;
    conversation.send()?;
    // `shallow` lines and their flush, then exactly one ACK or NAK, since we asked for no multi_ack.
    loop {
        if let Line::Data(data) = conversation.next()?
            && (data.starts_with(b"NAK") || data.starts_with(b"ACK "))
        {
            return Ok(());
        }
    }
}

enum Stop {
    Link(LinkError),
    TooLarge,
}

/// The pack on the side band, kept while it is small enough.
struct PackStream<'a> {
    conversation: &'a mut Conversation,
    piece: Vec<u8>,
    at: usize,
    kept: Vec<u8>,
    limit: usize,
    failure: Option<Stop>,
    ended: bool,
}

impl BufRead for PackStream<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.at == self.piece.len() && !self.ended {
            if self.kept.len() >= self.limit {
                self.failure = Some(Stop::TooLarge);
                return Err(io::Error::other("too large"));
            }
            match self.conversation.next_band() {
                Ok(Some(piece)) => {
                    self.kept.extend_from_slice(&piece);
                    (self.piece, self.at) = (piece, 0);
                }
                Ok(None) => self.ended = true,
                Err(error) => {
                    self.failure = Some(Stop::Link(error));
                    return Err(io::Error::other("broken off"));
                }
            }
        }
        Ok(&self.piece[self.at..])
    }

    fn consume(&mut self, amount: usize) {
        self.at = self.piece.len().min(self.at + amount);
    }
}

impl Read for PackStream<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = self.fill_buf()?.read(out)?;
        self.consume(count);
        Ok(count)
    }
}

/// What came out of the stream.
struct Scan {
    found: HashMap<ObjectId, Tip>,
    /// Whether what was kept can be indexed without growing beyond what a small pack may: an index inflates everything.
    indexable: bool,
}

/// Takes the wanted objects out of the stream; stops early only where the stream was cut or grew too large.
fn scan(pack: &mut PackStream<'_>, tips: &[ObjectId], kind: Kind) -> Result<Scan, LinkError> {
    let (mut found, mut inflated) = (HashMap::new(), 0_u64);
    let entries = input::BytesToEntriesIter::new_from_header(
        &mut *pack,
        input::Mode::AsIs,
        input::EntryDataMode::Keep,
        kind,
    );
    let entries = match entries {
        Ok(entries) => entries,
        Err(error) => {
            // A failure of the link is reported by the caller, who looks at the stream.
            return if pack.failure.is_some() {
                Ok(Scan { found, indexable: false })
            } else {
                Err(LinkError::Nonsense(error.to_string()))
            };
        }
    };
    for entry in entries {
        let Ok(entry) = entry else { break };
        let Some(object_kind) = entry.header.as_kind() else {
            let delta = entry
                .compressed
                .and_then(|bytes| inflate(&bytes, entry.decompressed_size.min(LARGEST_COMMIT)));
            inflated = inflated.saturating_add(delta.map_or(u64::MAX, |delta| result_size(&delta)));
            continue;
        };
        inflated = inflated.saturating_add(entry.decompressed_size);
        if entry.decompressed_size > LARGEST_COMMIT {
            continue;
        }
        let Some(data) =
            entry.compressed.and_then(|bytes| inflate(&bytes, entry.decompressed_size))
        else {
            break;
        };
        let Ok(id) = objs::compute_hash(kind, object_kind, &data) else { break };
        if tips.contains(&id) {
            found.insert(id, tip(object_kind, data));
        }
        if found.len() == tips.len() {
            // All that is of interest was seen; a server that has much more to send is hung up on.
            pack.limit = pack.kept.len() + SHORT_REST;
            break;
        }
    }
    // What is left of the stream (the trailer, or all of it after bad data) is drained within the limits,
    // so that the conversation can go on.
    while let Ok(rest) = pack.fill_buf() {
        let count = rest.len();
        if count == 0 {
            break;
        }
        pack.consume(count);
    }
    if matches!(pack.failure, Some(Stop::Link(_))) && tips.iter().all(|tip| found.contains_key(tip))
    {
        pack.failure = None;
    }
    Ok(Scan { found, indexable: inflated <= LARGEST_INFLATED })
}

/// The size of the object that a delta makes: the second of the two numbers that it begins with (gitformat-pack(5)).
fn result_size(delta: &[u8]) -> u64 {
    let mut bytes = delta.iter();
    let mut number = || {
        let (mut value, mut shift) = (0_u64, 0_u32);
        for byte in bytes.by_ref() {
            value |= u64::from(byte & 0x7f).checked_shl(shift).unwrap_or(u64::MAX);
            shift += 7;
            if byte & 0x80 == 0 {
                return value;
            }
        }
        u64::MAX
    };
    number();
    number()
}

fn tip(kind: objs::Kind, data: Vec<u8>) -> Tip {
    match kind {
        objs::Kind::Commit => Tip::Commit(data),
        other => Tip::Other(other),
    }
}

fn inflate(bytes: &[u8], size: u64) -> Option<Vec<u8>> {
    let mut out = vec![0; usize::try_from(size).ok()?];
    let mut inflate = zlib::Inflate::default();
    let (_, _, written) = inflate.once(bytes, &mut out).ok()?;
    (written == out.len()).then_some(out)
}

/// Resolves deltas by way of an index in a temporary folder. A pack that cannot be indexed holds nothing.
fn index(kept: &[u8], tips: &[ObjectId], kind: Kind) -> HashMap<ObjectId, Tip> {
    let mut found = HashMap::new();
    let Ok(place) = Place::new() else { return found };
    let written = pack::Bundle::write_to_directory(
        &mut Cursor::new(kept),
        Some(place.path()),
        &mut gix::progress::Discard,
        &AtomicBool::new(false),
        None::<gix::odb::HandleArc>,
        kind,
        pack::bundle::write::Options {
            thread_limit: Some(1),
            iteration_mode: input::Mode::Verify,
            index_version: pack::index::Version::V2,
            ..Default::default()
        },
    );
    let Some(bundle) = written.ok().and_then(|outcome| outcome.to_bundle()).and_then(Result::ok)
    else {
        return found;
    };
    let (mut buffer, mut inflate) = (Vec::new(), zlib::Inflate::default());
    for id in tips {
        if let Ok(Some((object, _))) =
            bundle.find(id, &mut buffer, &mut inflate, &mut pack::cache::Never)
            && object.data.len() as u64 <= LARGEST_COMMIT
        {
            found.insert(*id, tip(object.kind, object.data.to_vec()));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delta_says_what_size_it_makes() {
        assert_eq!(result_size(&[0x05, 0x0a, 0x90]), 10);
        assert_eq!(result_size(&[0x80, 0x01, 0x80, 0x80, 0x40]), 1 << 20);
        for cut in [&[][..], &[0x05], &[0x80], &[0x05, 0x80]] {
            assert_eq!(
                result_size(cut),
                u64::MAX,
                "{cut:?} says nothing, so it is not to be trusted"
            );
        }
    }
}
