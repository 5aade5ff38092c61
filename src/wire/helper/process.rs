//! A running remote helper, spoken to in lines of text (gitremote-helpers(7)).
//!
//! This module knows the helpers' commands and nothing of what they are used for.

use std::{
    collections::HashSet,
    io::{BufReader, Write},
    process::Command,
};

use gix::{bstr::BStr, hash::Kind};

use super::answers::{self, Answers, Broken};
use crate::wire::{
    Advertised, LinkError,
    child::{self, Child, Terminal},
    conversation::Conversation,
    deadline::Deadline,
    pipe::{PipeReader, PipeWriter},
    words::Words,
};

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
        let line = answers::line(&mut self.reader);
        line.map_err(|broken| self.broken(broken))
    }

    /// Says a command and takes the lines of its answer, which an empty one ends.
    fn ask(&mut self, command: &str) -> Result<Vec<String>, LinkError> {
        self.say(command)?;
        let words = answers::words(&mut self.reader);
        words.map_err(|broken| self.broken(broken))
    }

    /// The `wanted` ones of the refs that the helper lists, and the hash of the repository.
    pub fn list(
        &mut self,
        suffix: &str,
        wanted: impl Fn(&BStr) -> bool,
    ) -> Result<(Vec<Advertised>, Kind), LinkError> {
        self.say(&format!("list{suffix}"))?;
        let listed = answers::list(&mut self.reader, wanted);
        listed.map_err(|broken| self.broken(broken))
    }

    /// What it says about the `pushed` refs. Lines about others are of no concern.
    pub fn answers(&mut self, pushed: &HashSet<&BStr>) -> Result<Answers, LinkError> {
        let answers = answers::answers(&mut self.reader, pushed);
        answers.map_err(|broken| self.broken(broken))
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

    fn broken(&self, broken: Broken) -> LinkError {
        match broken {
            Broken::Off(error) => self.broken_off(&error),
            Broken::Nonsense(error) => error,
        }
    }

    fn broken_off(&self, error: &std::io::Error) -> LinkError {
        child::broken_off(Some(&self.child), &self.deadline, &self.words, error)
    }
}
