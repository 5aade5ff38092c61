//! One command to receive-pack: the client's half of a push, cut down to a compare-and-swap of one ref.
//!
//! The value that the server advertises is compared with the expected one before anything is sent, and the
//! expected value travels with the command for the server to compare again under its lock. There is no
//! way to ask for an update without saying what it replaces.

use std::{cell::Cell, io::Write};

use gix::{
    ObjectId,
    bstr::ByteSlice,
    hash::Kind,
    odb::pack::data::entry::Header,
    zlib::{Compression, stream::deflate},
};

use super::{
    Edit, LinkError, Reported, Updated,
    advertisement::{self, AGENT, Greeting, Version},
    conversation::{Conversation, Line},
    leavings::Sent,
    report::{self, Status},
};
use crate::claim::commit::Encoded;

/// The server's whole report on one command is a few lines; more is not a report.
const LARGEST_REPORT: usize = 1024 * 1024;

/// The value that receive-pack advertises for `refname`.
pub fn shown(
    mut conversation: Conversation,
    refname: &[u8],
) -> Result<Option<ObjectId>, LinkError> {
    let greeting = advertisement::read(&mut conversation, |name| name == refname)?;
    conversation.hang_up();
    Ok(greeting.refs.first().map(|found| found.id))
}

/// Carries out `edit` on a fresh connection to receive-pack.
pub fn update(mut conversation: Conversation, edit: &Edit<'_>) -> Updated {
    let near = Cell::new(false);
    match advertisement::read(&mut conversation, |name| edit.concerns(name, &near)) {
        Ok(greeting) => edit.ended(&greeting.refs, &near, answer(conversation, &greeting, edit)),
        Err(error) => error.into(),
    }
}

fn answer(mut conversation: Conversation, greeting: &Greeting, edit: &Edit<'_>) -> Reported {
    if greeting.version == Version::Two {
        // There is no push in version 2; what follows would be taken for something else.
        return Reported::Unsent(LinkError::Nonsense(
            "version 2 of the protocol for a push".into(),
        ));
    }
    if let Some(reported) = edit.compared_with(&greeting.refs) {
        conversation.hang_up();
        return reported;
    }
    if edit.new.is_none() && !greeting.capabilities.has("delete-refs") {
        conversation.hang_up();
        return Reported::Refused {
            sent: None,
            reason: "the remote does not support deleting refs".into(),
        };
    }
    if edit.atomic && !greeting.capabilities.has("atomic") {
        conversation.hang_up();
        return Reported::Refused {
            sent: None,
            reason: "the remote does not offer to move several refs together".into(),
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
    let _sent = Sent::begin();
    let answer = say_command(&mut conversation, greeting, edit, sent, pack.as_deref())
        .and_then(|()| hear_report(&mut conversation, greeting))
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
    // The newer form tells when the server did something else than it was asked to.
    let report = ["report-status-v2", "report-status"]
        .into_iter()
        .find(|form| greeting.capabilities.has(form));
    for wish in report.into_iter().chain(
        ["side-band-64k", "quiet"].into_iter().filter(|wish| greeting.capabilities.has(wish)),
    ) {
        line.extend_from_slice(format!(" {wish}").as_bytes());
    }
    if edit.atomic {
        line.extend_from_slice(b" atomic");
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

#[cfg(test)]
mod tests {
    use std::{
        io::Cursor,
        sync::{Arc, Mutex},
        time::Duration,
    };

    use chrono::DateTime;

    use super::*;
    use crate::{
        claim::{commit::Draft, record::Person},
        wire::{deadline::Deadline, words::Words},
    };

    const REF: &str = "refs/claims/issue-4";

    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl Write for Written {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().expect("not poisoned").write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn packet(payload: &str) -> String {
        format!("{:04x}{payload}", payload.len() + 4)
    }

    fn greeting(kind: Kind, tip: Option<ObjectId>, capabilities: &str) -> String {
        let null = kind.null();
        let line = match tip {
            Some(tip) => format!("{tip} {REF}\0{capabilities}\n"),
            None => format!("{null} capabilities^{{}}\0{capabilities}\n"),
        };
        packet(&line) + "0000"
    }

    fn draft(parent: Option<ObjectId>) -> Draft {
        let author = Person { name: "A".into(), email: "a@example.com".into() };
        Draft { message: "claim issue-4\n".into(), author, at: DateTime::UNIX_EPOCH, parent }
    }

    /// Plays a server that says `said`; gives the report and what was written to the server.
    fn play(said: &str, expected: Option<ObjectId>, new: Option<&Draft>) -> (Reported, Vec<u8>) {
        play_with(said, expected, new, false)
    }

    fn play_with(
        said: &str,
        expected: Option<ObjectId>,
        new: Option<&Draft>,
        atomic: bool,
    ) -> (Reported, Vec<u8>) {
        let written = Written::default();
        let conversation = Conversation::new(
            Box::new(Cursor::new(said.as_bytes().to_vec())),
            Box::new(written.clone()),
            None,
            Deadline::after(Duration::from_secs(5)),
            Words::new(|_| {}),
        );
        let updated = update(
            conversation,
            &Edit {
                refname: REF.as_bytes(),
                expected,
                new,
                base: None,
                others: &[],
                atomic,
                beside: None,
            },
        );
        let bytes = written.0.lock().expect("not poisoned").clone();
        (updated.reported, bytes)
    }

    #[test]
    fn a_creation_names_absence_and_brings_its_pack() {
        for (kind, name) in [(Kind::Sha1, "sha1"), (Kind::Sha256, "sha256")] {
            let said =
                greeting(kind, None, &format!("report-status delete-refs object-format={name}"))
                    + &packet("unpack ok\n")
                    + &packet(&format!("ok {REF}\n"))
                    + "0000";
            let (reported, written) = play(&said, None, Some(&draft(None)));
            let id = draft(None).encode(kind).id;
            assert!(matches!(reported, Reported::Done(Some(done)) if done == id), "{reported:?}");
            let command =
                format!("{} {id} {REF}\0 report-status object-format={name}", kind.null());
            let start = packet(&command) + "0000PACK\0\0\0\u{2}\0\0\0\u{2}";
            assert!(written.starts_with(start.as_bytes()), "{:?}", written.as_bstr());
        }
    }

    #[test]
    fn a_deletion_names_its_value_and_brings_no_pack() {
        let old = draft(None).encode(Kind::Sha1).id;
        let said = greeting(Kind::Sha1, Some(old), "report-status delete-refs")
            + &packet("unpack ok\n")
            + &packet(&format!("ok {REF}\n"))
            + "0000";
        let (reported, written) = play(&said, Some(old), None);
        assert!(matches!(reported, Reported::Done(None)), "{reported:?}");
        let command =
            packet(&format!("{old} {} {REF}\0 report-status", Kind::Sha1.null())) + "0000";
        assert_eq!(written.as_bstr(), command.as_bytes().as_bstr());
    }

    #[test]
    fn another_value_than_expected_is_answered_with_nothing_but_a_flush() {
        let (one, two) = (draft(None).encode(Kind::Sha1).id, Kind::Sha1.empty_tree());
        for (tip, expected, new) in [
            (Some(one), None, Some(draft(None))),
            (Some(one), Some(two), None),
            (None, Some(one), None),
            (Some(one), Some(two), Some(draft(Some(two)))),
        ] {
            let (reported, written) =
                play(&greeting(Kind::Sha1, tip, "delete-refs"), expected, new.as_ref());
            assert!(
                matches!(reported, Reported::Unexpected { found } if found == tip),
                "{reported:?}"
            );
            assert_eq!(written.as_bstr(), "0000");
        }
    }

    #[test]
    fn every_cut_of_the_answer_is_lost_and_every_cut_before_the_command_sends_nothing() {
        let hello = greeting(Kind::Sha1, None, "report-status side-band-64k");
        let report = packet("unpack ok\n") + &packet(&format!("ok {REF}\n")) + "0000";
        let whole = hello.clone() + &packet(&format!("\u{1}{report}")) + "0000";
        for end in 0..whole.len() {
            let (reported, written) = play(&whole[..end], None, Some(&draft(None)));
            if end < hello.len() {
                assert!(matches!(reported, Reported::Unsent(_)), "cut at {end}: {reported:?}");
                assert_eq!(written.as_bstr(), "", "cut at {end}");
            } else if end < whole.len() - "0000".len() {
                assert!(matches!(reported, Reported::Lost { .. }), "cut at {end}: {reported:?}");
            } else {
                // The report was complete; what broke off were only a hook's last words.
                assert!(matches!(reported, Reported::Done(_)), "cut at {end}: {reported:?}");
            }
        }
    }

    #[test]
    fn all_or_nothing_is_asked_for_where_it_is_offered_and_refused_where_not() {
        let draft = draft(None);
        let (reported, written) =
            play_with(&greeting(Kind::Sha1, None, "report-status"), None, Some(&draft), true);
        assert!(matches!(reported, Reported::Refused { sent: None, .. }), "{reported:?}");
        assert_eq!(written.as_bstr(), "0000");
        let said = greeting(Kind::Sha1, None, "report-status atomic");
        for atomic in [false, true] {
            let (_, written) = play_with(&said, None, Some(&draft), atomic);
            assert_eq!(written.contains_str("report-status atomic0000PACK"), atomic);
        }
    }

    #[test]
    fn a_server_without_deletions_or_of_version_two_is_told_nothing() {
        let old = draft(None).encode(Kind::Sha1).id;
        let (reported, _) =
            play(&greeting(Kind::Sha1, Some(old), "report-status"), Some(old), None);
        assert!(matches!(reported, Reported::Refused { .. }), "{reported:?}");
        let (reported, written) = play("000eversion 2\n0000", None, Some(&draft(None)));
        assert!(matches!(reported, Reported::Unsent(LinkError::Nonsense(_))), "{reported:?}");
        assert_eq!(written.as_bstr(), "");
    }
}
