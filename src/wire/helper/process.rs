//! A running remote helper, spoken to in lines of text (gitremote-helpers(7)).
//!
//! This module knows the helpers' words and nothing of what they are used for.

use std::{
    collections::{HashMap, HashSet},
    io::{BufRead, BufReader, Write},
    process::Command,
};

use gix::{
    bstr::{BStr, BString, ByteSlice},
    hash::Kind,
};

use crate::wire::{
    Advertised, LinkError,
    advertisement::{self, Kept},
    child::{self, Child, Terminal},
    conversation::Conversation,
    deadline::Deadline,
    pipe::{PipeReader, PipeWriter},
    words::Words,
};

/// What the helper answers about one ref of a push.
#[derive(Debug, Clone)]
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

/// A running helper, spoken to in lines of text.
pub struct Process {
    // The order matters: hang up before the child is asked to end.
    writer: PipeWriter,
    reader: BufReader<PipeReader>,
    child: Child,
    deadline: Deadline,
    words: Words,
    capabilities: Vec<String>,
}

impl Process {
    /// Starts the helper of `command`, learns what it can do and asks it to be brief.
    pub fn start(
        command: Command,
        terminal: Terminal,
        deadline: Deadline,
        words: Words,
    ) -> Result<Self, LinkError> {
        let (child, reader, writer) = child::spawn(command, terminal, deadline, &words)?;
        let reader = BufReader::new(reader);
        let mut process = Self { writer, reader, child, deadline, words, capabilities: Vec::new() };
        process.capabilities = process.ask("capabilities")?;
        if process.can("option") {
            for option in ["verbosity 0", "progress false", "object-format true"] {
                process.say(&format!("option {option}"))?;
                process.line()?;
            }
        }
        Ok(process)
    }

    /// Whether the helper named this capability.
    pub fn can(&self, what: &str) -> bool {
        self.capabilities.iter().any(|can| can.trim_start_matches('*') == what)
    }

    /// Asks it to go by an option; whether it will.
    pub fn grants(&mut self, option: &str) -> Result<bool, LinkError> {
        if !self.can("option") {
            return Ok(false);
        }
        self.say(&format!("option {option}"))?;
        Ok(self.line()? == "ok")
    }

    /// Adds a line to what is to be said.
    pub fn say_more(&mut self, line: &str) -> Result<(), LinkError> {
        writeln!(self.writer, "{line}").map_err(|error| self.broken_off(&error))
    }

    /// Says a line, and all that was held back.
    pub fn say(&mut self, line: &str) -> Result<(), LinkError> {
        self.say_more(line)?;
        self.writer.flush().map_err(|error| self.broken_off(&error))
    }

    /// The next line of its answer, without the line feed.
    pub fn line(&mut self) -> Result<String, LinkError> {
        let mut line = Vec::new();
        match self.reader.read_until(b'\n', &mut line) {
            Ok(_) if line.pop() == Some(b'\n') => Ok(line.to_str_lossy().into_owned()),
            Ok(_) => Err(self.broken_off(&std::io::ErrorKind::UnexpectedEof.into())),
            Err(error) => Err(self.broken_off(&error)),
        }
    }

    /// Says a command and takes the lines of its answer, which an empty one ends.
    fn ask(&mut self, command: &str) -> Result<Vec<String>, LinkError> {
        self.say(command)?;
        let mut lines = Vec::new();
        loop {
            match self.line()? {
                line if line.is_empty() => return Ok(lines),
                line => lines.push(line),
            }
        }
    }

    /// The `wanted` ones of the refs that the helper lists, and the hash of the repository.
    pub fn list(
        &mut self,
        suffix: &str,
        wanted: impl Fn(&BStr) -> bool,
    ) -> Result<(Vec<Advertised>, Kind), LinkError> {
        self.say(&format!("list{suffix}"))?;
        let (mut kept, mut kind) = (Kept::default(), None);
        let mut line = Vec::new();
        loop {
            line.clear();
            if let Err(error) = self.reader.read_until(b'\n', &mut line) {
                return Err(self.broken_off(&error));
            }
            let Some(line) = line.strip_suffix(b"\n") else {
                return Err(self.broken_off(&std::io::ErrorKind::UnexpectedEof.into()));
            };
            match line {
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
    pub fn answers(&mut self, pushed: &HashSet<&BStr>) -> Result<Answers, LinkError> {
        let (mut answers, mut last) = (Answers::default(), None);
        loop {
            let line = self.line()?;
            if line.is_empty() {
                return Ok(answers);
            }
            let (name, said) = match line.split_once(' ') {
                Some(("ok", name)) => (name, Answer::Ok),
                // Said of the ref before it: the server put the commit under another name.
                Some(("option", rest))
                    if rest.starts_with("refname ") || rest.starts_with("new-oid ") =>
                {
                    if let Some(answer) = last.as_ref().and_then(|name| answers.0.get_mut(name))
                        && matches!(answer, Some(Answer::Ok))
                    {
                        let instead = format!("the server did something else instead: {rest}");
                        *answer = Some(Answer::Error(instead));
                    }
                    continue;
                }
                Some(("error", rest)) => match rest.split_once(' ').unwrap_or((rest, "")) {
                    // git's word for "the server took the command and did not report".
                    (name, "expecting report") if pushed.contains(BStr::new(name)) => {
                        return Err(self.broken_off(&std::io::ErrorKind::UnexpectedEof.into()));
                    }
                    (name, why) => (name, Answer::Error(why.trim_matches('"').to_owned())),
                },
                _ => continue,
            };
            last = pushed.contains(BStr::new(name)).then(|| BString::from(name));
            if let Some(name) = last.clone() {
                answers.0.entry(name).and_modify(|known| *known = None).or_insert(Some(said));
            }
        }
    }

    /// The connection that the helper has made, in packet lines from here on.
    pub fn into_conversation(self) -> Conversation {
        Conversation::new(
            Box::new(self.reader),
            Box::new(self.writer),
            Some(self.child),
            self.deadline,
            self.words,
        )
    }

    fn broken_off(&self, error: &std::io::Error) -> LinkError {
        child::broken_off(Some(&self.child), &self.deadline, &self.words, error)
    }
}

fn format_of(name: &[u8]) -> Result<Kind, LinkError> {
    match name {
        b"sha1" => Ok(Kind::Sha1),
        b"sha256" => Ok(Kind::Sha256),
        other => Err(LinkError::Nonsense(format!("unknown object format '{}'", other.as_bstr()))),
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::time::Duration;

    use super::*;

    const ONE: &str = "1111111111111111111111111111111111111111";

    /// A helper that can nothing and says `lines` to whatever comes.
    fn says(lines: &str) -> Process {
        let mut command = Command::new("sh");
        command.args(["-c", "read it; echo; printf %s \"$1\"; cat >&2", "sh", lines]);
        let deadline = Deadline::after(Duration::from_secs(20));
        Process::start(command, Terminal::No, deadline, Words::new(|_| {})).expect("sh starts")
    }

    fn answer(lines: &str) -> Result<String, LinkError> {
        let refname = BStr::new("refs/claims/issue-4");
        let answers = says(lines).answers(&HashSet::from([refname]));
        answers.and_then(|answers| answers.of(refname)).map(|answer| match answer {
            Answer::Ok => "ok".into(),
            Answer::Error(why) => why,
        })
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
            "\n",
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
        let lines = format!(
            "@refs/heads/main HEAD\n? refs/x\n{ONE} refs/claims/issue-4\n{ONE} refs/heads/main\n\n"
        );
        let (refs, kind) =
            says(&lines).list("", |name| name == "refs/claims/issue-4").expect("a listing");
        assert_eq!((refs.len(), kind), (1, Kind::Sha1));
        let (refs, kind) =
            says(":object-format sha256\n\n").list("", |_| true).expect("an empty one");
        assert_eq!((refs.len(), kind), (0, Kind::Sha256));
        assert!(says(":object-format md5\n\n").list("", |_| true).is_err());
    }
}
