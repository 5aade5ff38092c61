//! Names of claims: those that were typed, and lists of them, one on a line, as people and their trackers' tools write them.
//!
//! A list is read as it streams by. What cannot be a name is an error with the number of its line, never skipped: a list
//! that was misread in silence would narrow a report without anybody's knowing.

use std::{
    collections::HashSet,
    hash::Hash,
    io::{self, BufRead},
};

use crate::claim::name::NameError;

/// A line longer than this holds no name, nor a comment that anybody wrote.
const LONGEST_LINE: usize = 64 * 1024;
/// Of each name something is remembered until its answer is told (measured: up to 1 KB), and all of it together is to stay
/// below 100 MB.
const MOST: usize = 50_000;
/// Of names that are only compared with others, little is remembered.
pub const MOST_COMPARED: usize = 500_000;

/// What is typed to have names read from standard input.
pub const INPUT: &str = "-";
/// What it is called.
pub const STANDARD_INPUT: &str = "standard input";

/// Names that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ListError {
    /// A word of the command line that is no name.
    #[error(transparent)]
    Typed(#[from] NameError),
    /// There is nothing to answer for. It is no yes either: whatever was to write the names may have failed.
    #[error("standard input names no claim")]
    Nothing,
    /// A line that is no name.
    #[error("{list}, line {number}: {error}")]
    Name {
        /// Which list.
        list: String,
        /// The number of the line, from 1.
        number: usize,
        /// What is wrong.
        error: NameError,
    },
    /// A line without an end.
    #[error("{list}, line {number}: longer than any name")]
    Long {
        /// Which list.
        list: String,
        /// The number of the line, from 1.
        number: usize,
    },
    /// More names than there can be.
    #[error("{0}: more than {1} names")]
    Many(String, usize),
    /// It could not be read.
    #[error("{list}: {error}")]
    Unread {
        /// Which list.
        list: String,
        /// What the system said.
        error: std::io::Error,
    },
    /// Standard input can be read once.
    #[error("'-' is given twice, and standard input can be read once only")]
    Twice,
}

/// An option about one commit, and several names.
#[derive(Debug, thiserror::Error)]
#[error("{0} names one commit, so there can be one NAME only")]
pub struct OnlyOne(pub &'static str);

/// What `typed` names, as `parse` reads a name, in that order and each once; [`INPUT`] stands for what is named in standard
/// input, which is not read before all other words make sense.
///
/// # Errors
/// For what is no name, and where nothing is named at all.
pub fn typed<T: Clone + Eq + Hash>(
    typed: &[String],
    parse: impl Fn(&str) -> Result<T, NameError>,
) -> Result<Vec<T>, ListError> {
    let (before, after) = match typed.iter().position(|word| word == INPUT) {
        Some(at) => (&typed[..at], &typed[at + 1..]),
        None => (typed, &[][..]),
    };
    if after.iter().any(|word| word == INPUT) {
        return Err(ListError::Twice);
    }
    let all = |words: &[String]| words.iter().map(|word| parse(word)).collect();
    let names: Result<Vec<T>, NameError> = all(before);
    let after_input: Result<Vec<T>, NameError> = all(after);
    let (mut names, after) = (names?, after_input?);
    if names.len() + after.len() < typed.len() {
        names.extend(from_input(&parse)?);
    }
    names.extend(after);
    let mut known = HashSet::new();
    names.retain(|name| known.insert(name.clone()));
    if names.is_empty() { Err(ListError::Nothing) } else { Ok(names) }
}

/// What is named in standard input.
///
/// # Errors
/// As for [`read`].
pub fn from_input<T: Clone + Eq + Hash>(
    parse: impl Fn(&str) -> Result<T, NameError>,
) -> Result<Vec<T>, ListError> {
    read(io::stdin().lock(), STANDARD_INPUT, parse)
}

/// What is named in `input`, as `parse` reads a name, in that order and each once; `list` is what people call it.
///
/// # Errors
/// As for [`each`].
pub fn read<T: Clone + Eq + Hash>(
    input: impl BufRead,
    list: &str,
    parse: impl Fn(&str) -> Result<T, NameError>,
) -> Result<Vec<T>, ListError> {
    let (mut names, mut known) = (Vec::new(), HashSet::new());
    each(input, list, MOST, parse, |name: T| {
        let is_new = known.insert(name.clone());
        names.extend(is_new.then_some(name));
        is_new
    })?;
    Ok(names)
}

/// Gives to `keep` what is named in `input`, as `parse` reads a name; `list` is what people call it. `keep` says whether the
/// name is a new one: there can be no more than `most`.
///
/// # Errors
/// For the first line that is no name, and where the list is too long to be one.
pub fn each<T>(
    mut input: impl BufRead,
    list: &str,
    most: usize,
    parse: impl Fn(&str) -> Result<T, NameError>,
    mut keep: impl FnMut(T) -> bool,
) -> Result<(), ListError> {
    let mut kept = 0;
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        let limit = LONGEST_LINE as u64 + 1;
        let length = std::io::Read::take(&mut input, limit)
            .read_until(b'\n', &mut line)
            .map_err(|error| ListError::Unread { list: list.into(), error })?;
        if length == 0 {
            break;
        }
        if length > LONGEST_LINE {
            return Err(ListError::Long { list: list.into(), number });
        }
        let line = String::from_utf8_lossy(&line);
        // Some systems begin their files so.
        let line = line.strip_prefix('\u{feff}').filter(|_| number == 1).unwrap_or(&line);
        let Some(typed) = name_in(line) else { continue };
        let name =
            parse(typed).map_err(|error| ListError::Name { list: list.into(), number, error })?;
        kept += usize::from(keep(name));
        if kept > most {
            return Err(ListError::Many(list.into(), most));
        }
    }
    Ok(())
}

/// What a line names: nothing where it is blank or a comment. `#42` is a name.
fn name_in(line: &str) -> Option<&str> {
    let line = line.trim();
    let comment = line
        .strip_prefix('#')
        .is_some_and(|rest| !rest.starts_with(|first: char| first.is_ascii_digit()));
    (!line.is_empty() && !comment).then_some(line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claim::{claim_ref::ClaimRef, prefix::Prefix};

    fn names(text: &[u8]) -> Result<Vec<String>, String> {
        let prefix = Prefix::default();
        let read = read(text, "standard input", |name| ClaimRef::typed(&prefix, name));
        read.map(|names| names.iter().map(|name| name.short().into_owned()).collect())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn a_name_on_a_line_and_comments_between() {
        let text =
            b"# closed this week\n\n  42 \r\n#43\n#\n#comment\n\t# 44\nIssue-0042\nproj-1\n42\n\
                     https://example.com/o/r/issues/7\nrefs/claims/Odd/one";
        assert_eq!(names(text).unwrap(), ["issue-42", "issue-43", "proj-1", "issue-7", "Odd/one"]);
        assert_eq!(names("\u{feff}42\r\n43\r\n".as_bytes()).unwrap(), ["issue-42", "issue-43"]);
        assert!(names("42\n\u{feff}43\n".as_bytes()).is_err());
        assert_eq!(names(b"").unwrap(), [""; 0]);
        assert_eq!(names(b"\n\n").unwrap(), [""; 0]);
    }

    #[test]
    fn what_is_no_name_is_told_with_its_line() {
        for (text, start) in [
            (&b"42\n\n4 2\n"[..], "standard input, line 3: \"4 2\" is no name"),
            (b"#42 fixed", "standard input, line 1: "),
            (b"0", "standard input, line 1: \"0\" is no issue"),
            (b"42\nrefs/heads/main", "standard input, line 2: \"refs/heads/main\" is not beneath"),
            (b"caf\xe9", "standard input, line 1: "),
        ] {
            let error = names(text).unwrap_err();
            assert!(error.starts_with(start), "{error}");
        }
        let long = names(&[b"42\n".as_slice(), &vec![b'7'; 1 << 20]].concat()).unwrap_err();
        assert_eq!(long, "standard input, line 2: longer than any name");
    }
}
