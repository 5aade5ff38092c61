//! From the bytes of a commit to a [`Reading`].
//!
//! The bytes may come from anybody. So nothing here assumes that they are a commit, UTF-8, or of a sensible size: every
//! step passes over them at most a few times and copies only what fits the limits below. Git's own commit parser is not
//! used because it refuses commits that git still stores.

use chrono::{DateTime, Utc};
use gix::bstr::ByteSlice;

use super::{
    record::{
        ByHand, Person, Process, Reading, Record, TookOver, dash_is_empty, key, whole_seconds,
    },
    text,
};

/// The longest block of trailers that is read, in bytes; a record of ours has less than half of that.
pub(super) const MAX_TRAILERS: usize = 64 * 1024;

/// The most bytes of a line or name that are looked at.
const MAX_RAW_LINE: usize = 4 * text::MAX_LINE;

/// The most bytes of a note that are looked at.
const MAX_RAW_NOTE: usize = 4 * text::MAX_NOTE;

pub(super) fn read(raw: &[u8]) -> Reading {
    let Some(commit) = Commit::split(raw) else {
        return Reading::Unreadable("it is no commit that git would make".to_owned());
    };
    let recorded = last_paragraph(commit.message).filter(|(_, block)| {
        block.lines().any(|line| trailer(line).is_some_and(|(key, _)| key == key::FORMAT))
    });
    match recorded {
        None => Reading::ByHand(commit.by_hand()),
        Some((before, block)) => match record(before, block) {
            Ok(record) => Reading::Claim(Box::new(record)),
            Err(why) => Reading::Unreadable(why),
        },
    }
}

/// The parts of a commit that matter here.
struct Commit<'a> {
    author: &'a [u8],
    committer: Option<&'a [u8]>,
    /// Without blank lines at its ends.
    message: &'a [u8],
}

impl<'a> Commit<'a> {
    fn split(raw: &'a [u8]) -> Option<Self> {
        if !raw.starts_with(b"tree ") {
            return None;
        }
        let (mut author, mut committer) = (None, None);
        let mut rest = raw;
        while !rest.is_empty() {
            let (line, after) = split_at(rest, b'\n').unwrap_or((rest, b""));
            rest = after;
            if line.is_empty() {
                break;
            }
            author = author.or(line.strip_prefix(b"author "));
            committer = committer.or(line.strip_prefix(b"committer "));
        }
        Some(Commit { author: author.or(committer)?, committer, message: rest.trim_ascii() })
    }

    fn by_hand(&self) -> ByHand {
        let (who, written) = identity(self.author);
        // Rewriting keeps the author's time; the committer's is when this commit was made.
        let made = self.committer.and_then(|committer| identity(committer).1);
        let subject = self.message.lines().next().unwrap_or_default();
        ByHand { who, at: made.or(written), subject: text::line(&lossy(subject, MAX_RAW_LINE)) }
    }
}

/// Who and when, from `Name <email> seconds zone`, as much of it as is there.
fn identity(value: &[u8]) -> (Person, Option<DateTime<Utc>>) {
    let (name, rest) = split_at(value, b'<').unwrap_or((value, b""));
    let (email, _) = split_at(rest, b'>').unwrap_or((rest, b""));
    // Like git, which looks for the date from the end, so that a `>` too many does not hide it.
    let (_, date) = rest.rsplit_once_str(b">").unwrap_or((rest, b""));
    let seconds = date.trim_ascii().split(|byte| *byte == b' ').next().unwrap_or_default();
    let at = seconds
        .to_str()
        .ok()
        .and_then(|digits| digits.parse().ok())
        .and_then(|seconds| DateTime::from_timestamp(seconds, 0))
        .filter(|at| whole_seconds(*at) == *at);
    let person = Person {
        name: lossy(name.trim_ascii(), MAX_RAW_LINE),
        email: lossy(email.trim_ascii(), MAX_RAW_LINE),
    };
    (person.cleaned(), at)
}

/// What stands before the last paragraph, and that paragraph. `None` if it is the only one: git takes the first paragraph
/// for the title, never for trailers.
fn last_paragraph(message: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut start = message.len();
    let mut end = message.len();
    while let Some(newline) = message[..end].rfind_byte(b'\n') {
        if message[newline + 1..end].trim_ascii().is_empty() {
            return Some((&message[..newline], &message[start..]));
        }
        start = newline + 1;
        end = newline;
    }
    None
}

/// The trailer on a line, if it is one that we know: its name in our spelling (git ignores case) and its value.
fn trailer(line: &[u8]) -> Option<(&'static str, &[u8])> {
    let (name, value) = split_at(line, b':')?;
    let name = name.trim_ascii_end();
    let known = key::ALL.into_iter().find(|known| name.eq_ignore_ascii_case(known.as_bytes()))?;
    Some((known, value.trim_ascii()))
}

fn record(before: &[u8], block: &[u8]) -> Result<Record, String> {
    if block.len() > MAX_TRAILERS {
        return Err(format!("its trailers are longer than {} KiB", MAX_TRAILERS / 1024));
    }
    let trailers = Trailers::of(block);
    trailers.refuse_other_formats()?;
    trailers.refuse_repeated()?;

    let line = |key| Ok::<_, String>(trailers.get(key).and_then(text::optional_line));
    Ok(Record {
        claim: trailers.required(key::CLAIM, line(key::CLAIM)?)?,
        note: note(before),
        holder: trailers.required(key::BY, trailers.get(key::BY).map(Person::parse))?,
        host: line(key::ON)?,
        claimed_at: trailers.required(
            key::AT,
            trailers.parsed(key::AT, "a time such as 2026-11-30T16:34:00Z", time)?,
        )?,
        token: trailers.required(
            key::TOKEN,
            trailers.parsed(key::TOKEN, "32 hexadecimal digits", |text| text.parse().ok())?,
        )?,
        renewed_at: trailers.parsed(key::RENEWED, "a time such as 2026-11-30T16:34:00Z", time)?,
        released_at: trailers.parsed(key::RELEASED, "a time such as 2026-11-30T16:34:00Z", time)?,
        waited_since: trailers.parsed(key::WAITED, "a time such as 2026-11-30T16:34:00Z", time)?,
        heartbeat: trailers.parsed(key::HEARTBEAT, "a number of seconds above 0", |text| {
            number(text).filter(|seconds| *seconds > 0)
        })?,
        took_over: trailers.parsed(key::TOOK_OVER, "an id and who held it", took_over)?,
        reason: line(key::REASON)?,
        head: line(key::HEAD)?,
        branch: line(key::BRANCH)?,
        job: line(key::JOB)?,
        process: trailers.parsed(key::PROCESS, "a process id, its start and the boot", process)?,
    })
}

/// The known trailers in the order of the block, values in UTF-8.
struct Trailers(Vec<(&'static str, String)>);

impl Trailers {
    fn of(block: &[u8]) -> Self {
        let mut found: Vec<(&'static str, String)> = Vec::new();
        let mut continues = false;
        for line in block.lines() {
            if line.starts_with(b" ") || line.starts_with(b"\t") {
                // Git folds long values; we never do, but other tools may.
                if let (true, Some((_, value))) = (continues, found.last_mut()) {
                    value.push(' ');
                    value.push_str(&line.trim_ascii().to_str_lossy());
                }
                continue;
            }
            let known = trailer(line);
            continues = known.is_some();
            found.extend(known.map(|(key, value)| (key, value.to_str_lossy().into_owned())));
        }
        Trailers(found)
    }

    /// The value, `None` if it is absent or empty.
    fn get(&self, key: &str) -> Option<&str> {
        let (_, value) = self.0.iter().find(|(found, _)| *found == key)?;
        Some(value.trim()).filter(|value| !value.is_empty())
    }

    fn refuse_other_formats(&self) -> Result<(), String> {
        for (_, value) in self.0.iter().filter(|(key, _)| *key == key::FORMAT) {
            let digits = value.trim().trim_start_matches('0');
            if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
                return Err(broken(key::FORMAT, "a number above 0", value));
            }
            if digits != "1" {
                return Err(format!(
                    "{}: a newer git-claim made it (format {})",
                    key::FORMAT,
                    text::quoted(digits)
                ));
            }
        }
        Ok(())
    }

    fn refuse_repeated(&self) -> Result<(), String> {
        match key::ALL
            .into_iter()
            .find(|key| self.0.iter().filter(|(found, _)| found == key).count() > 1)
        {
            Some(key) => Err(format!("{key} is there more than once")),
            None => Ok(()),
        }
    }

    fn required<T>(&self, key: &str, value: Option<T>) -> Result<T, String> {
        value.ok_or_else(|| format!("{key} is missing"))
    }

    fn parsed<T>(
        &self,
        key: &str,
        shape: &str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Result<Option<T>, String> {
        match self.get(key) {
            None => Ok(None),
            Some(value) => parse(value).map(Some).ok_or_else(|| broken(key, shape, value)),
        }
    }
}

fn broken(key: &str, shape: &str, value: &str) -> String {
    format!("{key} is not {shape}: {:?}", text::quoted(value))
}

fn time(text: &str) -> Option<DateTime<Utc>> {
    DateTime::parse_from_rfc3339(text).ok().map(|at| whole_seconds(at.to_utc()))
}

/// A number in plain digits.
fn number(text: &str) -> Option<u32> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

fn took_over(text: &str) -> Option<TookOver> {
    let (id, who) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let id = text::word(id);
    (!id.is_empty()).then(|| TookOver { id, who: text::line(who) })
}

fn process(text: &str) -> Option<Process> {
    let mut words = text.split_whitespace();
    let (pid, start, boot) = (words.next()?, words.next()?, words.next()?);
    let word = |word| dash_is_empty(text::word(word));
    words.next().is_none().then_some(Process {
        pid: number(pid)?,
        start: word(start),
        boot: word(boot),
    })
}

/// The note between the subject, one line, and the trailers.
fn note(before: &[u8]) -> Option<String> {
    let (_subject, note) = split_at(before, b'\n')?;
    // Blank lines would use up what is looked at; blanks that begin a line belong to it.
    let blank = note.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
    let start = note[..blank].rfind_byte(b'\n').map_or(0, |newline| newline + 1);
    text::note(&lossy(&note[start..], MAX_RAW_NOTE))
}

/// What stands before and after the first `byte`.
fn split_at(bytes: &[u8], byte: u8) -> Option<(&[u8], &[u8])> {
    let at = bytes.find_byte(byte)?;
    Some((&bytes[..at], &bytes[at + 1..]))
}

/// The first `max` bytes, with what is not UTF-8 replaced.
fn lossy(bytes: &[u8], max: usize) -> String {
    bytes[..bytes.len().min(max)].to_str_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{
        super::record::tests::{bare, commit_of, full},
        *,
    };

    fn message(message: &str) -> Reading {
        let header = "tree x\nauthor Author <author@example.com> 1796083200 +0000\n\n";
        read(format!("{header}{message}").as_bytes())
    }

    fn why(reading: Reading) -> String {
        match reading {
            Reading::Unreadable(why) => why,
            other => panic!("it is readable: {other:?}"),
        }
    }

    fn by_hand(reading: Reading) -> ByHand {
        match reading {
            Reading::ByHand(by_hand) => by_hand,
            other => panic!("it was not made by hand: {other:?}"),
        }
    }

    #[test]
    fn a_full_record_is_read() {
        assert_eq!(message(&full().message()), Reading::Claim(Box::new(full())));
    }

    #[test]
    fn other_tools_may_write_it_in_their_way() {
        let text = bare().message();
        let crlf = text.replace('\n', "\r\n");
        assert_eq!(message(&crlf), Reading::Claim(Box::new(bare())));
        let other_case = text.replace("Claimed-By:", "claimed-by :");
        assert_eq!(message(&other_case), Reading::Claim(Box::new(bare())));
        let folded = text.replace("Alice Example <", "Alice\n  Example\n <");
        assert_eq!(message(&folded), Reading::Claim(Box::new(bare())));
        let with_offset = text.replace("16:34:00Z", "17:34:00.5+01:00");
        assert_eq!(message(&with_offset), Reading::Claim(Box::new(bare())));
        let more = format!("\n\n{text}Signed-off-by: x <y>\n folded: on\nno trailer\n\n \n");
        assert_eq!(message(&more), Reading::Claim(Box::new(bare())));
        let emptied = format!("{text}Reason:\nJob: \nRenewed-At:\n");
        assert_eq!(message(&emptied), Reading::Claim(Box::new(bare())));
    }

    #[test]
    fn damage_is_named() {
        let text = full().message();
        for (from, to, reason) in [
            (
                "Claim-Format: 1",
                "Claim-Format: 2",
                "Claim-Format: a newer git-claim made it (format 2)",
            ),
            (
                "Claim-Format: 1",
                "Claim-Format: 99999999999999999999",
                "(format 99999999999999999999)",
            ),
            ("Claim-Format: 1", "Claim-Format: 0", "Claim-Format is not a number above 0: \"0\""),
            ("Claim-Format: 1", "Claim-Format:", "Claim-Format is not a number"),
            ("Claim-Format: 1", "Claim-Format: one", "Claim-Format is not a number"),
            (
                "Claim-Format: 1",
                "Claim-Format: 1\nclaim-format: 1",
                "Claim-Format is there more than once",
            ),
            ("Claim: issue-42", "Claim:", "Claim is missing"),
            ("Claimed-By:", "Claimed-Bye:", "Claimed-By is missing"),
            ("Claimed-At:", "X-Claimed-At:", "Claimed-At is missing"),
            ("Claim-Token:", "Token:", "Claim-Token is missing"),
            ("5e5e5e", "5e5e5", "Claim-Token is not 32 hexadecimal digits: \"5e5e5"),
            ("At: 2026-11-30T16:34:00Z", "At: yester\x1bday", "Claimed-At is not a time"),
            ("At: 2026-11-30T16:34:00Z", "At: yester\x1bday", "yester\\u{1b}day"),
            ("At: 2026-11-30T16:36:00Z", "At: 2026-02-30T00:00:00Z", "Renewed-At is not a time"),
            (
                "Heartbeat: 120",
                "Heartbeat: 0",
                "Heartbeat is not a number of seconds above 0: \"0\"",
            ),
            ("Heartbeat: 120", "Heartbeat: +5", "Heartbeat is not"),
            ("Heartbeat: 120", "Heartbeat: 4294967296", "Heartbeat is not"),
            ("Process: 4711 889123 -", "Process: 4711", "Process is not"),
            ("Process: 4711 889123 -", "Process: x 889123 -", "Process is not"),
            ("Process: 4711 889123 -", "Process: 1 2 3 4", "Process is not"),
            ("Reason: ", "Job: x\nReason: ", "Job is there more than once"),
        ] {
            assert!(text.contains(from), "{from}");
            let why = why(message(&text.replace(from, to)));
            assert!(why.contains(reason), "{to}: {why}");
        }
    }

    #[test]
    fn a_commit_without_a_record_was_made_by_hand() {
        let hand = by_hand(message("claim issue 42 by me\n\nwith a body\n"));
        assert_eq!(hand.subject, "claim issue 42 by me");
        assert_eq!(hand.who.to_string(), "Author <author@example.com>");
        assert_eq!(hand.at.map(|at| at.timestamp()), Some(1_796_083_200));

        assert_eq!(by_hand(message("")).subject, "");
        assert_eq!(by_hand(message("\n \n  a\x1b[2J\n")).subject, "a [2J");
        // Trailers that are no last paragraph, or the title, are prose to git too.
        let trailers = bare().message();
        by_hand(message(&format!("{trailers}\nand more\n")));
        by_hand(message(trailers.split_once("\n\n").expect("a subject").1));
    }

    #[test]
    fn commits_by_other_programs_are_read_as_far_as_possible() {
        let hand = |raw: &[u8]| by_hand(read(raw));
        let odd = hand(b"tree x\nauthor \xe9ric <e@x> 1 +0000\ncommitter C <c@x> 2 +0100\ngpgsig a\n author b\n\ncaf\xe9\n");
        assert_eq!(odd.who.name, "\u{fffd}ric");
        assert_eq!(odd.subject, "caf\u{fffd}");
        assert_eq!(odd.at.map(|at| at.timestamp()), Some(2));
        for (author, who, seconds) in [
            ("A <a@x> 5 +0000", "A <a@x>", Some(5)),
            ("A <a@x>> 5 +0000", "A <a@x>", Some(5)),
            ("<a@x> -5 +0000", "a <a@x>", Some(-5)),
            ("A <a@x>", "A <a@x>", None),
            ("A a@x 5 +0000", "A a@x 5 +0000 <>", None),
            ("A <a@x> 99999999999999999999 +0000", "A <a@x>", None),
            ("A <a@x> 253402300800 +0000", "A <a@x>", None),
            ("", "unknown <>", None),
        ] {
            let odd = hand(format!("tree x\nauthor {author}").as_bytes());
            assert_eq!(
                (odd.who.to_string().as_str(), odd.at.map(|at| at.timestamp())),
                (who, seconds)
            );
        }
    }

    #[test]
    fn what_is_no_commit_is_unreadable() {
        for raw in [
            &b""[..],
            b"tree x\n\nmessage\n",
            b"object x\ntype commit\ntag v1\ntagger A <a@x> 1 +0000\n\nx\n",
            b"100644 file\0\x01\x02",
            b"author A <a@x> 1 +0000\n\nx\n",
            b"tree ",
        ] {
            assert_eq!(why(read(raw)), "it is no commit that git would make", "{raw:?}");
        }
    }

    /// The shapes that make careless readers slow or fat, in a size at which quadratic work would not end.
    #[test]
    fn size_is_no_weapon() {
        const HUGE: usize = 1 << 19;
        let trailers = bare().message();
        let (subject, block) = trailers.split_once("\n\n").expect("a subject");
        for filler in [
            "x",
            "\n",
            " ",
            "\n\n",
            " \n",
            "a\n",
            "a\n\n",
            "\r\n",
            "a: b\n",
            "Job: x\n\n",
            "\u{202e}",
            "\0",
        ] {
            let filler = filler.repeat(HUGE / filler.len());
            by_hand(message(&filler));
            by_hand(message(&format!("{trailers}\n{filler}x")));
            match message(&format!("{subject}\n\n{filler}\n\n{block}{filler}")) {
                Reading::Claim(record) => {
                    assert!(record.note.unwrap_or_default().len() <= text::MAX_NOTE);
                }
                Reading::ByHand(by_hand) => assert!(by_hand.subject.len() <= text::MAX_LINE),
                Reading::Unreadable(why) => assert!(why.len() < 1000),
            }
            let header = filler.replace('\n', "\n ");
            by_hand(read(
                format!("tree {header}\nauthor {header} <{header}> {header}\n\nx").as_bytes(),
            ));
        }
        let many = block.replace("Claim:", &format!("{}Claim:", "Job: x\n".repeat(100_000)));
        assert_eq!(
            why(message(&format!("{subject}\n\n{many}"))),
            "its trailers are longer than 64 KiB"
        );
        let long = format!("{trailers}Reason: {}\n", "y".repeat(MAX_TRAILERS));
        assert_eq!(why(message(&long)), "its trailers are longer than 64 KiB");
        let note = format!("{subject}\n\n{}\n\n{block}", "word \n".repeat(1_000_000));
        match message(&note) {
            Reading::Claim(record) => assert!(record.note.is_some_and(|note| note.ends_with('…'))),
            other => panic!("{other:?}"),
        }
    }

    proptest! {
        #[test]
        fn nothing_makes_it_fail(raw in proptest::collection::vec(any::<u8>(), 0..300)) {
            read(&raw);
            read(&[b"tree x\nauthor ", &raw[..]].concat());
            read(&[bare().message().as_bytes(), &raw].concat());
            read(&[&commit_of(bare().message()), &raw[..]].concat());
        }

        #[test]
        fn no_damage_makes_it_fail(at in 0..2000_usize, byte: u8) {
            let mut raw = commit_of(full().message());
            let len = raw.len();
            raw[at % len] = byte;
            read(&raw);
            read(&raw[..at % len]);
        }
    }
}
