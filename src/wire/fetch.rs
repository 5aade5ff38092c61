//! Bringing tip commits into memory, or a bounded part of the history of one, and nothing else.
//!
//! One `fetch` request asks for those commits alone (`deepen`, no trees where the server can leave them out). The pack
//! is read as it streams by: servers write commits first, so reading stops being of interest as soon as all
//! that is wanted was seen, however much the server would like to send. Nothing is written to the clone; only a pack
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
use crate::claim::chain;

/// A record of ours is under a kilobyte; a commit larger than this is not shown. A batch of them is in memory at once.
const LARGEST_COMMIT: u64 = 128 * 1024;
/// A server that cannot leave out trees sends them; past this much we hang up.
const LARGEST_PACK: usize = 8 * 1024 * 1024;

/// The objects of a pack that is indexed may have this size together.
const LARGEST_INFLATED: u64 = 32 * 1024 * 1024;
/// What is worth reading to keep the conversation for another request.
const SHORT_REST: usize = 64 * 1024;

/// What a request is for.
#[derive(Debug, Clone, Copy)]
pub enum Wanted<'a> {
    /// These objects, without duplicates, and nothing behind them.
    Tips(&'a [ObjectId]),
    /// A commit and those that it descends from.
    History {
        /// The commit.
        from: ObjectId,
        /// How many, itself included.
        most: usize,
    },
}

impl Wanted<'_> {
    fn tips(&self) -> &[ObjectId] {
        match self {
            Wanted::Tips(tips) => tips,
            Wanted::History { from, .. } => std::slice::from_ref(from),
        }
    }

    /// How many commits deep the server is to go.
    fn depth(&self) -> usize {
        match self {
            Wanted::Tips(_) => 1,
            Wanted::History { most, .. } => *most,
        }
    }

    /// Whether an object of the stream is one of those.
    fn includes(&self, id: ObjectId, kind: objs::Kind) -> bool {
        match self {
            Wanted::Tips(tips) => tips.contains(&id),
            Wanted::History { .. } => kind == objs::Kind::Commit,
        }
    }

    /// Whether nothing more is to be had from the stream, whose last object was of this `kind`: with all tips seen, or
    /// after the last commit of a history. Behind a delta, of which the stream does not say what it is, all may follow.
    fn done(&self, found: &HashMap<ObjectId, Tip>, kind: objs::Kind, deltas: bool) -> bool {
        match self {
            Wanted::Tips(tips) => found.len() == tips.len(),
            Wanted::History { from, most } => {
                found.len() >= *most
                    || (kind != objs::Kind::Commit && found.contains_key(from) && !deltas)
            }
        }
    }
}

/// Asks for what is `wanted` on a conversation that has been greeted, and reads what comes.
///
/// `have` are commits that the clone holds: with a server that offers no filter they keep it from sending
/// the trees of a claim that somebody made by hand on top of the project's history.
///
/// The flag says whether the conversation is still good for another request.
pub fn read(
    conversation: &mut Conversation,
    greeting: &Greeting,
    wanted: Wanted<'_>,
    have: impl FnOnce() -> Vec<ObjectId>,
) -> Result<(HashMap<ObjectId, Tip>, bool), LinkError> {
    match greeting.version {
        Version::Two => ask(conversation, greeting, &wanted, have)?,
        Version::Classic => ask_classic(conversation, greeting, &wanted, have)?,
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
    let found = scan(&mut pack, &wanted, greeting.kind);
    let whole = pack.ended;
    let kept = std::mem::take(&mut pack.kept);
    match pack.failure.take() {
        Some(Stop::Link(error)) => return Err(error),
        Some(Stop::TooLarge) | None => {}
    }
    let Scan { mut found, done, deltas, indexable } = found?;
    if whole && indexable && deltas && !done {
        // Let gix resolve them.
        found.extend(index(&kept, &wanted, greeting.kind));
    }
    let reusable = whole && greeting.version == Version::Two;
    Ok((found, reusable))
}

fn ask(
    conversation: &mut Conversation,
    greeting: &Greeting,
    wanted: &Wanted<'_>,
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
    for tip in wanted.tips() {
        conversation.say(format!("want {tip}\n").as_bytes())?;
    }
    if offers(b"shallow") {
        conversation.say(format!("deepen {}\n", wanted.depth()).as_bytes())?;
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
    wanted: &Wanted<'_>,
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
        wanted.tips().iter().zip(std::iter::once(wishes.as_str()).chain(std::iter::repeat("")))
    {
        conversation.say(format!("want {tip}{wishes}\n").as_bytes())?;
    }
    if has("shallow") {
        conversation.say(format!("deepen {}\n", wanted.depth()).as_bytes())?;
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
        // A server that is still at work says so by pieces with nothing in them (`uploadpack.keepAlive`): no end yet.
        while self.at == self.piece.len() && !self.ended {
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
#[derive(Default)]
struct Scan {
    found: HashMap<ObjectId, Tip>,
    /// Whether that is all that is wanted.
    done: bool,
    /// Whether there were deltas before that.
    deltas: bool,
    /// Whether what was kept can be indexed without growing beyond what a small pack may: an index inflates everything.
    indexable: bool,
}

/// Takes the wanted objects out of the stream; stops early only where the stream was cut or grew too large.
fn scan(pack: &mut PackStream<'_>, wanted: &Wanted<'_>, kind: Kind) -> Result<Scan, LinkError> {
    let (mut scan, mut inflated) = (Scan::default(), 0_u64);
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
                Ok(scan)
            } else {
                Err(LinkError::Nonsense(error.to_string()))
            };
        }
    };
    for entry in entries {
        let Ok(entry) = entry else { break };
        let Some(object_kind) = entry.header.as_kind() else {
            scan.deltas = true;
            let delta = entry
                .compressed
                .and_then(|bytes| inflate(&bytes, entry.decompressed_size.min(LARGEST_COMMIT)));
            inflated = inflated.saturating_add(delta.map_or(u64::MAX, |delta| result_size(&delta)));
            continue;
        };
        inflated = inflated.saturating_add(entry.decompressed_size);
        if entry.decompressed_size <= LARGEST_COMMIT {
            let Some(data) =
                entry.compressed.and_then(|bytes| inflate(&bytes, entry.decompressed_size))
            else {
                break;
            };
            let Ok(id) = objs::compute_hash(kind, object_kind, &data) else { break };
            if wanted.includes(id, object_kind) {
                scan.found.insert(id, tip(object_kind, data));
            }
        }
        if wanted.done(&scan.found, object_kind, scan.deltas) {
            // All that is of interest was seen; a server that has much more to send is hung up on.
            scan.done = true;
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
    if scan.done && matches!(pack.failure, Some(Stop::Link(_))) {
        pack.failure = None;
    }
    scan.indexable = inflated <= LARGEST_INFLATED;
    Ok(scan)
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
fn index(kept: &[u8], wanted: &Wanted<'_>, kind: Kind) -> HashMap<ObjectId, Tip> {
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
    let mut object = |id: &ObjectId| {
        let found = bundle.find(id, &mut buffer, &mut inflate, &mut pack::cache::Never);
        let (object, _) = found.ok().flatten()?;
        let small = object.data.len() as u64 <= LARGEST_COMMIT;
        small.then(|| tip(object.kind, object.data.to_vec()))
    };
    match wanted {
        Wanted::Tips(tips) => {
            found.extend(tips.iter().filter_map(|id| Some((*id, object(id)?))));
        }
        Wanted::History { from, most } => {
            let line = chain::line(*from, *most, |id| match object(&id) {
                Some(Tip::Commit(raw)) => Some(raw),
                Some(Tip::Other(_) | Tip::NotRead(_)) | None => None,
            });
            found.extend(line.into_iter().map(|(id, raw)| (id, Tip::Commit(raw))));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::wire::{deadline::Deadline, words::Words};

    /// A pack of one commit, sent in these pieces.
    fn sent_in(pieces: impl Fn(&[u8]) -> Vec<Vec<u8>>) -> Result<Tip, LinkError> {
        let commit = b"tree x\nauthor A <a@x> 1 +0000\n\nclaim\n";
        let tip = objs::compute_hash(Kind::Sha1, objs::Kind::Commit, commit).expect("hashed");
        let mut pack = b"PACK\0\0\0\x02\0\0\0\x01".to_vec();
        let header = pack::data::entry::Header::Commit;
        header.write_to(commit.len() as u64, &mut pack).expect("written");
        let mut deflated =
            zlib::stream::deflate::Write::new(&mut pack, zlib::Compression::default());
        io::Write::write_all(&mut deflated, commit).expect("written");
        io::Write::flush(&mut deflated).expect("written");
        let mut hasher = gix::hash::hasher(Kind::Sha1);
        hasher.update(&pack);
        pack.extend_from_slice(hasher.try_finalize().expect("hashed").as_slice());
        let mut sent = b"000dpackfile\n".to_vec();
        for piece in pieces(&pack) {
            sent.extend_from_slice(format!("{:04x}\x01", piece.len() + 5).as_bytes());
            sent.extend_from_slice(&piece);
        }
        sent.extend_from_slice(b"0000");
        let mut conversation = Conversation::new(
            Box::new(Cursor::new(sent)),
            Box::new(io::sink()),
            None,
            Deadline::after(Duration::from_secs(60)),
            Words::new(|_| {}),
        );
        let greeting = Greeting {
            version: Version::Two,
            capabilities: advertisement::Capabilities::of_line(b"fetch=shallow"),
            kind: Kind::Sha1,
            refs: Vec::new(),
        };
        let (mut found, reusable) =
            read(&mut conversation, &greeting, Wanted::Tips(&[tip]), Vec::new)?;
        assert!(reusable);
        assert_eq!(found.get(&tip), Some(&Tip::Commit(commit.to_vec())));
        Ok(found.remove(&tip).expect("it was looked at"))
    }

    /// A server that takes its time says every few seconds that it is still there.
    #[test]
    fn a_sign_of_life_is_no_end_of_the_pack() {
        let nothing = Vec::new;
        let whole = sent_in(|pack| vec![pack.to_vec()]);
        assert!(matches!(whole, Ok(Tip::Commit(_))), "{whole:?}");
        for told in [
            sent_in(|pack| vec![nothing(), nothing(), pack.to_vec()]),
            sent_in(|pack| vec![pack[..5].to_vec(), nothing(), pack[5..].to_vec(), nothing()]),
            sent_in(|pack| pack.iter().flat_map(|byte| [nothing(), vec![*byte]]).collect()),
        ] {
            assert_eq!(told, whole);
        }
    }

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
