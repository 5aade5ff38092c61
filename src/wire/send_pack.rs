//! Commands to receive-pack: the client's half of a push, cut down to compare-and-swaps of refs.
//!
//! Each value that the server advertises is compared with the expected one before anything is sent, and the
//! expected value travels with its command for the server to compare again under its lock. There is no
//! way to ask for an update without saying what it replaces.

use std::{
    collections::HashSet,
    io::{self, Write},
};

use gix::{
    ObjectId,
    bstr::{BStr, ByteSlice},
    hash::Kind,
    odb::pack::data::entry::Header,
    zlib::{Compression, stream::deflate},
};

use super::{
    Advertised, Edit, LinkError, Push, Reported, Updated,
    advertisement::{self, AGENT, Capabilities, Greeting, Version},
    conversation::{Conversation, Line},
    leavings::Sent,
    push::Sieve,
    report::{self, Status},
};
use crate::claim::commit::Encoded;

/// What is told where an atomic push cannot be had.
pub const NOT_TOGETHER: &str = "the remote does not offer to move several refs together";

/// The server's report on one command is a few lines; more is not a report.
const LARGEST_REPORT: usize = 64 * 1024;

/// Those of the refs called `names` that receive-pack advertises.
pub fn shown(
    mut conversation: Conversation,
    names: &[&[u8]],
) -> Result<Vec<Advertised>, LinkError> {
    let exactly: HashSet<&[u8]> = names.iter().copied().collect();
    let greeting = advertisement::read(&mut conversation, |name| exactly.contains(name.as_bytes()));
    let greeting = greeting.and_then(of_receive_pack)?;
    conversation.hang_up();
    Ok(greeting.refs)
}

/// A greeting, unless it cannot be one of receive-pack: then it says nothing about any ref.
fn of_receive_pack(greeting: Greeting) -> Result<Greeting, LinkError> {
    // There is no push in version 2; what follows would be taken for something else.
    if greeting.version == Version::Two {
        return Err(LinkError::Nonsense("version 2 of the protocol for a push".into()));
    }
    // With no ref at all it has a line with what it can do, and without that it could report nothing.
    if greeting.capabilities == Capabilities::default() {
        return Err(LinkError::Nonsense("nothing that it can do for a push".into()));
    }
    Ok(greeting)
}

/// Carries out `push` on a fresh connection to receive-pack.
pub fn update(mut conversation: Conversation, push: &Push<'_>) -> Vec<Updated> {
    let sieve = Sieve::new(push);
    let greeting = advertisement::read_until(
        &mut conversation,
        |name| sieve.wants(name),
        |found| sieve.ends_at(found),
    );
    let greeting = match greeting.and_then(of_receive_pack) {
        Ok(greeting) => greeting,
        Err(error) => return push.all(&Reported::Unsent(error)),
    };
    let mut conversation = Some(conversation);
    let updated = sieve.carry_out(&greeting.refs, |edits| match conversation.take() {
        Some(conversation) => answers(conversation, &greeting, edits, push.atomic),
        None => Vec::new(),
    });
    if let Some(unused) = conversation {
        unused.hang_up();
    }
    updated
}

/// Sends `edits`, and hears what became of each.
fn answers(
    mut conversation: Conversation,
    greeting: &Greeting,
    edits: &[&Edit<'_>],
    atomic: bool,
) -> Vec<Reported> {
    let missing = if edits.iter().any(|edit| edit.new.is_none())
        && !greeting.capabilities.has("delete-refs")
    {
        Some("the remote does not support deleting refs")
    } else if atomic && !greeting.capabilities.has("atomic") {
        Some(NOT_TOGETHER)
    } else {
        None
    };
    if let Some(missing) = missing {
        conversation.hang_up();
        let refused = Reported::Refused { sent: None, reason: missing.into() };
        return vec![refused; edits.len()];
    }
    let commits: Vec<Option<Encoded>> =
        edits.iter().map(|edit| Some(edit.new?.encode(greeting.kind))).collect();
    let pack = match pack_of(commits.iter().flatten(), greeting.kind) {
        Ok(pack) => pack,
        Err(error) => {
            let unsent = LinkError::Local(format!("cannot make a pack: {error}"));
            return vec![Reported::Unsent(unsent); edits.len()];
        }
    };
    let commands: Vec<Command<'_>> = edits
        .iter()
        .zip(&commits)
        .map(|(edit, commit)| Command {
            refname: edit.refname,
            old: edit.expected,
            new: commit.as_ref().map(|commit| commit.id),
        })
        .collect();
    let _sent = Sent::begin();
    let report = say_commands(&mut conversation, greeting, &commands, atomic, pack.as_deref())
        .and_then(|()| hear_report(&mut conversation, greeting, commands.len()))
        .and_then(|report| {
            report::parse(&report).map_err(|error| LinkError::Nonsense(error.to_string()))
        });
    let answer = |command: &Command<'_>| {
        let sent = command.new;
        let status = report.as_ref().map_err(LinkError::clone).and_then(|report| {
            report.of(command.refname).map_err(|error| LinkError::Nonsense(error.to_string()))
        });
        match status {
            Ok(Status::Ok) => Reported::Done(sent),
            Ok(Status::Ng(reason)) => Reported::Refused { sent, reason },
            Err(error) => Reported::Lost { sent, error },
        }
    };
    commands.iter().map(answer).collect()
}

/// One line of what receive-pack is told.
struct Command<'a> {
    refname: &'a BStr,
    old: Option<ObjectId>,
    new: Option<ObjectId>,
}

fn say_commands(
    conversation: &mut Conversation,
    greeting: &Greeting,
    commands: &[Command<'_>],
    atomic: bool,
    pack: Option<&[u8]>,
) -> Result<(), LinkError> {
    let absent = greeting.kind.null();
    let mut wishes = wishes(greeting, atomic);
    for command in commands {
        let (old, new) = (command.old.unwrap_or(absent), command.new.unwrap_or(absent));
        let mut line = format!("{old} {new} ").into_bytes();
        line.extend_from_slice(command.refname);
        // The first says how all of them are to be treated.
        line.append(&mut wishes);
        conversation.say(&line)?;
    }
    conversation.end()?;
    if let Some(pack) = pack {
        conversation.say_raw(pack)?;
    }
    conversation.send()
}

/// The capabilities that we make use of, behind the NUL that parts them from the command.
fn wishes(greeting: &Greeting, atomic: bool) -> Vec<u8> {
    let mut wishes = vec![0];
    // The newer form tells when the server did something else than it was asked to.
    let report = ["report-status-v2", "report-status"]
        .into_iter()
        .find(|form| greeting.capabilities.has(form));
    for wish in report.into_iter().chain(
        ["side-band-64k", "quiet"].into_iter().filter(|wish| greeting.capabilities.has(wish)),
    ) {
        wishes.extend_from_slice(format!(" {wish}").as_bytes());
    }
    if atomic {
        wishes.extend_from_slice(b" atomic");
    }
    if greeting.capabilities.has("object-format") {
        wishes.extend_from_slice(format!(" object-format={}", greeting.kind).as_bytes());
    }
    if greeting.capabilities.has("agent") {
        wishes.extend_from_slice(format!(" agent={AGENT}").as_bytes());
    }
    wishes
}

/// The report, complete with its flush packet, once the server has said all it has to say: with a side band,
/// `post-receive` hooks still speak after the report, and hanging up on them would end them.
///
/// A report that is complete counts even if the conversation breaks off behind it.
fn hear_report(
    conversation: &mut Conversation,
    greeting: &Greeting,
    commands: usize,
) -> Result<Vec<u8>, LinkError> {
    let most = LARGEST_REPORT.saturating_mul(commands);
    let mut report = Vec::new();
    if greeting.capabilities.has("side-band-64k") {
        loop {
            match conversation.next_band() {
                Ok(Some(data)) => report.extend_from_slice(&data),
                Ok(None) => return Ok(report),
                Err(_) if report.ends_with(b"0000") => return Ok(report),
                Err(error) => return Err(error),
            }
            if report.len() > most {
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
        if report.len() > most {
            return Err(LinkError::Nonsense("a report without an end".into()));
        }
    }
}

/// A pack of the claims' commits and the empty tree, always with it: nothing is assumed of what the server has. None where
/// there is no commit, since a deletion brings no pack.
fn pack_of<'c>(
    commits: impl Iterator<Item = &'c Encoded>,
    kind: Kind,
) -> io::Result<Option<Vec<u8>>> {
    let objects: Vec<(Header, &[u8])> =
        commits.map(|commit| (Header::Commit, commit.data.as_slice())).collect();
    if objects.is_empty() {
        return Ok(None);
    }
    let count = u32::try_from(objects.len() + 1).map_err(io::Error::other)?;
    let mut pack = b"PACK\0\0\0\x02".to_vec();
    pack.extend_from_slice(&count.to_be_bytes());
    for (header, data) in objects.into_iter().chain([(Header::Tree, b"".as_slice())]) {
        header.write_to(data.len() as u64, &mut pack)?;
        let mut deflated = deflate::Write::new(&mut pack, Compression::default());
        deflated.write_all(data)?;
        deflated.flush()?;
    }
    let mut hasher = gix::hash::hasher(kind);
    hasher.update(&pack);
    let checksum = hasher.try_finalize().map_err(io::Error::other)?;
    pack.extend_from_slice(checksum.as_slice());
    Ok(Some(pack))
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
        let refname = REF.into();
        let edit = Edit { refname, expected, new, base: None, others: &[], beside: None };
        let mut updated = update(conversation, &Push { edits: &[edit], atomic });
        let bytes = written.0.lock().expect("not poisoned").clone();
        (updated.pop().expect("an end for the edit").reported, bytes)
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
        for greeting in ["000eversion 2\n0000", "0000"] {
            let (reported, written) = play(greeting, None, Some(&draft(None)));
            assert!(matches!(reported, Reported::Unsent(LinkError::Nonsense(_))), "{reported:?}");
            assert_eq!(written.as_bstr(), "");
        }
    }
}
