//! One command to receive-pack: the client's half of a push, cut down to a compare-and-swap of one ref.
//!
//! The value that the server advertises is compared with the expected one before anything is sent, and the
//! expected value travels with the command for the server to compare again under its lock. There is no
//! way to ask for an update without saying what it replaces.

use std::io::Write;

use gix::{
    ObjectId,
    bstr::ByteSlice,
    hash::Kind,
    odb::pack::data::entry::Header,
    zlib::{Compression, stream::deflate},
};

use super::{
    Edit, LinkError, Reported,
    advertisement::{self, AGENT, Greeting},
    conversation::{Conversation, Line},
    report::{self, Status},
};
use crate::claim::commit::Encoded;

/// The server's whole report on one command is a few lines; more is not a report.
const LARGEST_REPORT: usize = 1024 * 1024;

/// Carries out `edit` on a fresh connection to receive-pack.
pub fn update(conversation: &mut Conversation, edit: &Edit<'_>) -> Reported {
    let greeting = match advertisement::read(conversation, |name| name == edit.refname) {
        Ok(greeting) => greeting,
        Err(error) => return Reported::Unsent(error),
    };
    let found = greeting.refs.first().map(|found| found.id);
    if found != edit.expected {
        hang_up(conversation);
        return Reported::Unexpected { found };
    }
    if edit.new.is_none() && !greeting.capabilities.has("delete-refs") {
        hang_up(conversation);
        return Reported::Refused {
            sent: None,
            reason: "the remote does not support deleting refs".into(),
        };
    }
    let object = edit.new.map(|draft| draft.encode(greeting.kind));
    let sent = object.as_ref().map(|object| object.id);
    let pack = match object.map(|object| pack_of(&object, greeting.kind)).transpose() {
        Ok(pack) => pack,
        Err(error) => {
            return Reported::Unsent(LinkError::Local(format!("cannot make a pack: {error}")));
        }
    };
    let answer = say_command(conversation, &greeting, edit, sent, pack.as_deref())
        .and_then(|()| hear_report(conversation, &greeting))
        .and_then(|report| {
            report::parse(&report, edit.refname.as_bstr())
                .map_err(|error| LinkError::Nonsense(error.to_string()))
        });
    match answer {
        Ok(Status::Ok) => Reported::Done(sent),
        Ok(Status::Ng(reason)) => Reported::Refused { sent, reason },
        Err(error) => Reported::Lost { sent, error },
    }
}

/// Ends a conversation in which nothing is asked for; the server needs no answer to that, nor do we.
fn hang_up(conversation: &mut Conversation) {
    let _ = conversation.end().and_then(|()| conversation.send());
}

fn say_command(
    conversation: &mut Conversation,
    greeting: &Greeting,
    edit: &Edit<'_>,
    sent: Option<ObjectId>,
    pack: Option<&[u8]>,
) -> Result<(), LinkError> {
    let absent = greeting.kind.null();
    let mut line =
        format!("{} {} ", edit.expected.unwrap_or(absent), sent.unwrap_or(absent)).into_bytes();
    line.extend_from_slice(edit.refname);
    line.push(0);
    for wish in ["report-status", "side-band-64k", "quiet"] {
        if greeting.capabilities.has(wish) {
            line.extend_from_slice(format!(" {wish}").as_bytes());
        }
    }
    if greeting.capabilities.has("object-format") {
        line.extend_from_slice(format!(" object-format={}", greeting.kind).as_bytes());
    }
    if greeting.capabilities.has("agent") {
        line.extend_from_slice(format!(" agent={AGENT}").as_bytes());
    }
    conversation.say(&line)?;
    conversation.end()?;
    if let Some(pack) = pack {
        conversation.say_raw(pack)?;
    }
    conversation.send()
}

/// The report, complete with its flush packet, once the server has said all it has to say: with a side band,
/// `post-receive` hooks still speak after the report, and hanging up on them would end them.
///
/// A report that is complete counts even if the conversation breaks off behind it.
fn hear_report(conversation: &mut Conversation, greeting: &Greeting) -> Result<Vec<u8>, LinkError> {
    let mut report = Vec::new();
    if greeting.capabilities.has("side-band-64k") {
        loop {
            match conversation.next_band() {
                Ok(Some(data)) => report.extend_from_slice(&data),
                Ok(None) => return Ok(report),
                Err(_) if report.ends_with(b"0000") => return Ok(report),
                Err(error) => return Err(error),
            }
            if report.len() > LARGEST_REPORT {
                return Err(LinkError::Nonsense("a report without an end".into()));
            }
        }
    }
    loop {
        match conversation.next()? {
            Line::Data(data) => {
                let _ = write!(report, "{:04x}", data.len() + 4);
                report.extend_from_slice(data);
            }
            Line::Flush | Line::Delimiter | Line::ResponseEnd => {
                report.extend_from_slice(b"0000");
                return Ok(report);
            }
        }
        if report.len() > LARGEST_REPORT {
            return Err(LinkError::Nonsense("a report without an end".into()));
        }
    }
}

/// A pack of the claim commit and the empty tree, always both: nothing is assumed of what the server has.
fn pack_of(commit: &Encoded, kind: Kind) -> std::io::Result<Vec<u8>> {
    let mut pack = b"PACK\0\0\0\x02\0\0\0\x02".to_vec();
    for (header, data) in [(Header::Commit, commit.data.as_slice()), (Header::Tree, b"")] {
        header.write_to(data.len() as u64, &mut pack)?;
        let mut deflated = deflate::Write::new(&mut pack, Compression::default());
        deflated.write_all(data)?;
        deflated.flush()?;
    }
    let mut hasher = gix::hash::hasher(kind);
    hasher.update(&pack);
    let checksum = hasher.try_finalize().map_err(std::io::Error::other)?;
    pack.extend_from_slice(checksum.as_slice());
    Ok(pack)
}
