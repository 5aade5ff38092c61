//! What holds of every answer of a server or helper, whatever it is (see [`crate::fuzzing`]).

use std::{
    collections::HashSet,
    io::{Cursor, Read},
    time::Duration,
};

use gix::{
    bstr::{BStr, ByteSlice},
    hash::Kind,
};

use super::{
    Advertised, LinkError,
    advertisement::{self, Capabilities, Greeting, Version},
    conversation::{Conversation, Line},
    deadline::Deadline,
    helper::answers::{self, Answer},
    lines::{Broken, Lines},
    report::{self, ReportError, Status},
    words::Words,
};

/// More than a hundred lines of words, with each byte replaced by a longer one.
const MOST_WORDS: usize = 1_000_000;
/// More than any reason that is kept.
const MOST_OF_A_REASON: usize = 20_000;

const CLAIMS: &[u8] = b"refs/claims/";

/// The payloads up to the flush packet, by nothing but the rules; none if it is not all there, or broken.
fn payloads(mut bytes: &[u8]) -> Option<Vec<&[u8]>> {
    let mut payloads = Vec::new();
    loop {
        let (hex, rest) = bytes.split_at_checked(4)?;
        let mut length = 0;
        for digit in hex {
            length = length * 16 + char::from(*digit).to_digit(16)? as usize;
        }
        if length == 0 {
            return Some(payloads);
        }
        let (payload, rest) = rest.split_at_checked(length.checked_sub(4)?)?;
        payloads.push(payload.strip_suffix(b"\n").unwrap_or(payload));
        bytes = rest;
    }
}

/// `ok` is told of a ref only where the server says it once, of this ref, and says nothing else about it.
pub(crate) fn report(raw: &[u8]) {
    let unasked = "refs/claims/nobody-asked-about-this";
    let parsed = report::parse(raw);
    let Some(lines) = payloads(raw) else {
        assert!(parsed.is_err(), "a report that is not all there");
        return;
    };
    let Ok(parsed) = parsed else { return };
    // Of `ok` the rest is the name, of `ng` the first word of the rest.
    let named = |line: &&[u8]| -> Option<Vec<u8>> {
        let refused = line.strip_prefix(b"ng ").and_then(|rest| rest.split_str(" ").next());
        Some(line.strip_prefix(b"ok ").or(refused)?.to_vec())
    };
    let names: HashSet<Vec<u8>> = lines.iter().filter_map(named).collect();
    for name in names.iter().map(Vec::as_slice).chain([unasked.as_bytes()]) {
        let is_about = |line: &&&[u8]| named(line).is_some_and(|about| about == name);
        let about: Vec<_> = lines.iter().filter(is_about).collect();
        match parsed.of(name.as_bstr()) {
            Ok(Status::Ok) => {
                assert_eq!(lines.first(), Some(&&b"unpack ok"[..]));
                assert_eq!(about, [&[b"ok ", name].concat()]);
            }
            Ok(Status::Ng(reason)) => {
                assert_eq!(about.len(), 1);
                assert!(reason.len() < MOST_OF_A_REASON);
            }
            Err(ReportError::NotOurs) => assert_ne!(about.len(), 1),
            Err(_) => assert_ne!(lines.first(), Some(&&b"unpack ok"[..])),
        }
    }
}

/// The same of a helper's answers; what it lists was listed, and its words have an end.
pub(crate) fn helper(raw: &[u8]) {
    let pushed = ["refs/claims/issue-4", "refs/claims/issue-42", "refs/claims/\u{fffd}"];
    let said: Vec<&[u8]> = raw.split(|byte| *byte == b'\n').take_while(|l| !l.is_empty()).collect();
    let set: HashSet<&BStr> = pushed.iter().map(BStr::new).collect();
    if let Ok(answers) = answers::answers(&mut &*raw, &set) {
        for name in pushed {
            let ok = format!("ok {name}");
            let error = format!("error {name}");
            let about = said.iter().filter(|line| {
                **line == ok.as_bytes()
                    || line
                        .strip_prefix(error.as_bytes())
                        .is_some_and(|end| end.is_empty() || end.starts_with(b" "))
            });
            let about: Vec<_> = about.collect();
            match answers.of(name.into()) {
                Ok(Answer::Ok) => assert_eq!(about, [&ok.as_bytes()]),
                Ok(Answer::Error(reason)) => {
                    assert_eq!(about.len(), 1);
                    assert!(reason.len() < MOST_OF_A_REASON);
                }
                Err(_) => assert_ne!(about.len(), 1),
            }
        }
    }
    if let Ok((refs, _)) = answers::list(&mut &*raw, |name| name.starts_with(CLAIMS)) {
        for found in refs {
            assert_listed(&found, &said);
        }
    }
    if let Ok(words) = answers::words(&mut &*raw) {
        assert_eq!(words.len(), said.len());
    }
}

/// One of the lines says it.
fn assert_listed(found: &Advertised, lines: &[impl AsRef<[u8]>]) {
    assert!(found.name.starts_with(CLAIMS), "{found:?}");
    let listed = lines.iter().any(|line| {
        let line = line.as_ref();
        line.split_at_checked(found.id.kind().len_in_hex()).is_some_and(|(hex, rest)| {
            let rest = rest.strip_prefix(b" ").and_then(|rest| rest.strip_prefix(&**found.name));
            hex.eq_ignore_ascii_case(found.id.to_string().as_bytes())
                && rest.is_some_and(|end| end.first().is_none_or(|end| b" \n\0".contains(end)))
        })
    });
    assert!(listed, "{found:?}");
}

fn hears(raw: &[u8]) -> Conversation {
    Conversation::new(
        Box::new(Cursor::new(raw.to_vec())),
        Box::new(std::io::sink()),
        None,
        Deadline::after(Duration::from_secs(60)),
        Words::new(|_| {}),
    )
}

fn assert_bounded(error: &LinkError) {
    assert!(error.to_string().len() < MOST_WORDS);
}

/// The payloads of the lines that can be read.
fn lines_of(raw: &[u8]) -> Vec<Vec<u8>> {
    let mut lines = Lines::of(Box::new(Cursor::new(raw.to_vec())));
    let mut payloads = Vec::new();
    while let Ok(line) = lines.next() {
        payloads.extend(line.text().map(<[u8]>::to_vec));
    }
    payloads
}

/// What is said to be listed was listed, and nothing but what was asked for.
pub(crate) fn ls_refs(raw: &[u8]) {
    let wanted = |name: &BStr| name.starts_with(CLAIMS);
    for kind in [Kind::Sha1, Kind::Sha256] {
        let greeting = Greeting {
            version: Version::Two,
            capabilities: Capabilities::of_line(b"ls-refs agent=x object-format=x"),
            kind,
            refs: Vec::new(),
        };
        match advertisement::ls_refs(&mut hears(raw), &greeting, &[CLAIMS], wanted) {
            Err(error) => assert_bounded(&error),
            Ok(refs) => {
                let lines = lines_of(raw);
                refs.iter().for_each(|found| {
                    assert_eq!(found.id.kind(), kind);
                    assert_listed(found, &lines);
                });
            }
        }
    }
}

/// The same of the greeting of a server of any version.
pub(crate) fn advertisement(raw: &[u8]) {
    match advertisement::read(&mut hears(raw), |name| name.starts_with(CLAIMS)) {
        Err(error) => assert_bounded(&error),
        Ok(greeting) => {
            let lines = lines_of(raw);
            for found in &greeting.refs {
                assert_eq!(greeting.version, Version::Classic);
                assert_eq!(found.id.kind(), greeting.kind);
                assert_listed(found, &lines);
            }
        }
    }
}

/// Gives what it has in pieces of a size.
struct Pieces(Cursor<Vec<u8>>, usize);

impl Read for Pieces {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let most = out.len().min(self.1);
        self.0.read(&mut out[..most])
    }
}

/// Lines are the same however they are cut on the way, and written down again they are what was read.
pub(crate) fn lines(raw: &[u8]) {
    let read = |piece| {
        let mut lines = Lines::of(Box::new(Pieces(Cursor::new(raw.to_vec()), piece)));
        let mut again = Vec::new();
        loop {
            match lines.next() {
                Ok(Line::Data(data)) => {
                    again.extend_from_slice(format!("{:04x}", data.len() + 4).as_bytes());
                    again.extend_from_slice(data);
                }
                Ok(Line::Flush) => again.extend_from_slice(b"0000"),
                Ok(Line::Delimiter) => again.extend_from_slice(b"0001"),
                Ok(Line::ResponseEnd) => again.extend_from_slice(b"0002"),
                Err(Broken::Off(_)) => return (again, true),
                Err(Broken::Malformed(_)) => return (again, false),
            }
        }
    };
    let (again, off) = read(usize::MAX);
    // The digits of a length may be of either case.
    assert!(raw[..again.len()].eq_ignore_ascii_case(&again));
    for piece in [1, 3, 4, 1_000] {
        assert_eq!(read(piece), (again.clone(), off), "by {piece}");
    }
}
