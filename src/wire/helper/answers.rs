//! What a remote helper says, line by line (gitremote-helpers(7)).
//!
//! Nothing here knows a process: any bytes can be tried. A line has a longest length and a list of words an end, so that a
//! helper, or the server that it repeats, cannot fill the memory.

use std::{
    collections::{HashMap, HashSet},
    io::{self, BufRead, Read as _},
};

use gix::{
    bstr::{BStr, BString, ByteSlice},
    hash::Kind,
};

use crate::wire::{
    Advertised, LinkError,
    advertisement::{self, Kept},
};

/// A server's line is a packet of less than 64 KiB; what a helper adds to it is a few words.
const LONGEST_LINE: usize = 128 * 1024;
/// More words than this are no list of what a helper can do.
const MOST_WORDS: usize = 1_000;
/// A reason is a line for people; more than this of it is not kept.
const LONGEST_REASON: usize = 2_000;

/// Why there is no answer.
#[derive(Debug)]
pub enum Broken {
    /// The stream ended, or could not be read.
    Off(io::Error),
    /// What came makes no sense.
    Nonsense(LinkError),
}

impl From<io::Error> for Broken {
    fn from(error: io::Error) -> Self {
        Broken::Off(error)
    }
}

impl From<LinkError> for Broken {
    fn from(error: LinkError) -> Self {
        Broken::Nonsense(error)
    }
}

fn nonsense(what: &str) -> Broken {
    Broken::Nonsense(LinkError::Nonsense(what.into()))
}

/// What the helper answers about one ref of a push.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Done as asked.
    Ok,
    /// Not done, in the helper's words.
    Error(String),
}

/// What it answers about each; nothing where it says more than one thing.
#[derive(Debug, Default)]
pub struct Answers(HashMap<BString, Option<Answer>>);

impl Answers {
    /// What became of `refname`.
    pub fn of(&self, refname: &BStr) -> Result<Answer, LinkError> {
        match self.0.get(refname) {
            Some(Some(answer)) => Ok(answer.clone()),
            Some(None) => {
                Err(LinkError::Nonsense("the helper says twice what became of the ref".into()))
            }
            None => {
                Err(LinkError::Nonsense("the helper does not say what became of the ref".into()))
            }
        }
    }
}

/// Reads the next line into `line`, without its line feed.
fn next<'a>(reader: &mut impl BufRead, line: &'a mut Vec<u8>) -> Result<&'a [u8], Broken> {
    line.clear();
    reader.by_ref().take(LONGEST_LINE as u64).read_until(b'\n', line)?;
    if let Some(whole) = line.strip_suffix(b"\n") {
        return Ok(whole);
    }
    if line.len() >= LONGEST_LINE {
        return Err(nonsense("a helper's line without an end"));
    }
    Err(io::Error::from(io::ErrorKind::UnexpectedEof).into())
}

/// One line of text.
pub fn line(reader: &mut impl BufRead) -> Result<String, Broken> {
    Ok(next(reader, &mut Vec::new())?.to_str_lossy().into_owned())
}

/// The lines up to an empty one.
pub fn words(reader: &mut impl BufRead) -> Result<Vec<String>, Broken> {
    let mut words = Vec::new();
    loop {
        match line(reader)? {
            line if line.is_empty() => return Ok(words),
            _ if words.len() >= MOST_WORDS => return Err(nonsense("words without an end")),
            line => words.push(line),
        }
    }
}

/// The `wanted` ones of the refs that the helper lists, and the hash of the repository.
pub fn list(
    reader: &mut impl BufRead,
    wanted: impl Fn(&BStr) -> bool,
) -> Result<(Vec<Advertised>, Kind), Broken> {
    let (mut kept, mut kind) = (Kept::default(), None);
    let mut line = Vec::new();
    loop {
        match next(reader, &mut line)? {
            [] => return Ok((kept.refs, kind.unwrap_or(Kind::Sha1))),
            [b':', attribute @ ..] => {
                if let Some(format) = attribute.strip_prefix(b"object-format ") {
                    kind = Some(format_of(format)?);
                }
            }
            // A symbolic ref, or a value that the helper does not know.
            [b'@' | b'?', ..] => {}
            line => {
                let known = kind.unwrap_or(if line.get(40) == Some(&b' ') {
                    Kind::Sha1
                } else {
                    Kind::Sha256
                });
                let (id, name) = advertisement::ref_line(line, known)?;
                kind = Some(known);
                if wanted(name) {
                    kept.keep(name, id, None)?;
                }
            }
        }
    }
}

/// What it says about the `pushed` refs. Lines about others are of no concern.
pub fn answers(reader: &mut impl BufRead, pushed: &HashSet<&BStr>) -> Result<Answers, Broken> {
    let (mut answers, mut last) = (Answers::default(), None);
    let mut line = Vec::new();
    loop {
        // Names are compared as they came: made into text, two of them may look the same.
        let line = next(reader, &mut line)?;
        if line.is_empty() {
            return Ok(answers);
        }
        let (name, said) = match line.split_once_str(" ") {
            Some((b"ok", name)) => (name, Answer::Ok),
            // Said of the ref before it: the server put the commit under another name.
            Some((b"option", rest))
                if rest.starts_with(b"refname ") || rest.starts_with(b"new-oid ") =>
            {
                if let Some(answer) = last.as_ref().and_then(|name| answers.0.get_mut(name))
                    && matches!(answer, Some(Answer::Ok))
                {
                    let instead =
                        format!("the server did something else instead: {}", reason(rest));
                    *answer = Some(Answer::Error(instead));
                }
                continue;
            }
            Some((b"error", rest)) => match rest.split_once_str(" ").unwrap_or((rest, b"")) {
                // git's word for "the server took the command and did not report".
                (name, b"expecting report") if pushed.contains(BStr::new(name)) => {
                    return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
                }
                (name, why) => (name, Answer::Error(reason(why).trim_matches('"').to_owned())),
            },
            _ => continue,
        };
        last = pushed.contains(BStr::new(name)).then(|| BString::from(name));
        if let Some(name) = last.clone() {
            answers.0.entry(name).and_modify(|known| *known = None).or_insert(Some(said));
        }
    }
}

/// As much of a reason as is kept.
fn reason(text: &[u8]) -> String {
    text[..text.len().min(LONGEST_REASON)].to_str_lossy().into_owned()
}

fn format_of(name: &[u8]) -> Result<Kind, LinkError> {
    match name {
        b"sha1" => Ok(Kind::Sha1),
        b"sha256" => Ok(Kind::Sha256),
        other => Err(LinkError::Nonsense(format!("unknown object format '{}'", reason(other)))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "1111111111111111111111111111111111111111";

    fn answer(lines: &str) -> Result<String, String> {
        let refname = BStr::new("refs/claims/issue-4");
        let answers = answers(&mut lines.as_bytes(), &HashSet::from([refname]))
            .map_err(|broken| format!("{broken:?}"))?;
        match answers.of(refname).map_err(|error| error.to_string())? {
            Answer::Ok => Ok("ok".into()),
            Answer::Error(why) => Ok(why),
        }
    }

    #[test]
    fn only_ok_for_our_ref_done_as_asked_is_ok() {
        assert_eq!(
            answer("ok refs/claims/issue-4\nerror refs/heads/main no match\n\n"),
            Ok("ok".into())
        );
        assert_eq!(
            answer("error refs/claims/issue-4 \"hook declined\"\n\n"),
            Ok("hook declined".into())
        );
        assert!(
            answer("ok refs/claims/issue-4\noption refname refs/x\n\n")
                .expect("an answer")
                .contains("refs/x")
        );
    }

    #[test]
    fn anything_else_is_no_answer() {
        for lines in [
            "",
            "\n",
            "ok refs/claims/issue-4",
            "ok refs/claims/issue-4\n",
            "ok refs/claims/issue-42\n\n",
            "ok refs/claims/issue-4\nok refs/claims/issue-4\n\n",
            "ok refs/claims/issue-4\nerror refs/claims/issue-4 no\n\n",
            "error refs/claims/issue-4 expecting report\n\n",
        ] {
            assert!(answer(lines).is_err(), "{lines:?}");
        }
    }

    #[test]
    fn a_listing_is_sifted_and_names_the_hash() {
        let list = |lines: &str| super::list(&mut lines.as_bytes(), |name| name.ends_with(b"-4"));
        let lines = format!(
            "@refs/heads/main HEAD\n? refs/x\n{ONE} refs/claims/issue-4\n{ONE} refs/heads/main\n\n"
        );
        let (refs, kind) = list(&lines).expect("a listing");
        assert_eq!((refs.len(), kind), (1, Kind::Sha1));
        let (refs, kind) = list(":object-format sha256\n\n").expect("an empty one");
        assert_eq!((refs.len(), kind), (0, Kind::Sha256));
        assert!(list(":object-format md5\n\n").is_err());
    }

    #[test]
    fn a_name_that_only_looks_like_ours_is_not_ours() {
        let ours = "refs/claims/\u{fffd}";
        let pushed = HashSet::from([BStr::new(ours)]);
        let said = |bytes: &[u8]| {
            answers(&mut &bytes[..], &pushed).expect("whole").of(ours.into()).is_ok()
        };
        assert!(said("ok refs/claims/\u{fffd}\n\n".as_bytes()));
        assert!(!said(b"ok refs/claims/\xff\n\n"));
    }

    /// What a stream without an end does to the memory.
    struct Endless<'a>(&'a [u8], usize);

    impl io::Read for Endless<'_> {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            for byte in out.iter_mut() {
                *byte = self.0[self.1 % self.0.len()];
                self.1 += 1;
            }
            assert!(self.1 < 64 * 1024 * 1024, "it is still being read");
            Ok(out.len())
        }
    }

    #[test]
    fn neither_a_line_nor_a_list_is_read_without_an_end() {
        let endless = |bytes| io::BufReader::new(Endless(bytes, 0));
        for broken in [
            line(&mut endless(b"x")).err(),
            words(&mut endless(b"push\n")).err(),
            words(&mut endless(b"x")).err(),
            list(&mut endless(b"? x"), |_| true).err(),
            answers(&mut endless(b"ok x"), &HashSet::new()).err(),
        ] {
            assert!(matches!(broken, Some(Broken::Nonsense(_))), "{broken:?}");
        }
    }

    #[test]
    fn what_is_kept_of_a_reason_is_bounded() {
        let long = "é".repeat(30_000);
        for lines in [
            format!("error refs/claims/issue-4 {long}\n\n"),
            format!("ok refs/claims/issue-4\noption refname {long}\n\n"),
        ] {
            let told = answer(&lines).expect("an answer");
            assert!((LONGEST_REASON - 8..LONGEST_REASON + 100).contains(&told.len()), "{told}");
        }
    }
}
