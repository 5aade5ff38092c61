//! Packet lines over any pair of pipes: a child's, or a socket's.
//!
//! Framing is gix-packetline's; this module adds the deadline, the remote's words and one error for
//! every way in which a conversation can break off. It knows no command of the protocol.

use std::io::{self, Read, Write};

use gix::protocol::transport::packetline::{
    BandRef, PacketLineRef,
    blocking_io::encode::{data_to_write, delim_to_write, flush_to_write},
};

use super::{
    LinkError,
    child::{Child, broken_off},
    deadline::Deadline,
    lines::{Broken, Lines},
    words::{self, Words},
};

/// One packet line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Line<'a> {
    /// A payload.
    Data(&'a [u8]),
    /// `0000`
    Flush,
    /// `0001`
    Delimiter,
    /// `0002`
    ResponseEnd,
}

impl<'a> Line<'a> {
    /// The payload without its line feed, if it is one.
    pub fn text(self) -> Option<&'a [u8]> {
        match self {
            Line::Data(data) => Some(data.strip_suffix(b"\n").unwrap_or(data)),
            Line::Flush | Line::Delimiter | Line::ResponseEnd => None,
        }
    }
}

/// An open connection to a service of the remote. Dropping it hangs up.
pub struct Conversation {
    // The order matters: hang up before the child is asked to end.
    writer: Box<dyn Write + Send>,
    lines: Lines,
    child: Option<Child>,
    deadline: Deadline,
    words: Words,
}

impl Conversation {
    /// Speaks over `reader` and `writer`; `child` is the program behind them, if there is one.
    pub fn new(
        reader: Box<dyn Read + Send>,
        writer: Box<dyn Write + Send>,
        child: Option<Child>,
        deadline: Deadline,
        words: Words,
    ) -> Self {
        Self { writer, lines: Lines::of(reader), child, deadline, words }
    }

    /// The next line. An `ERR` line and the end of the stream are errors.
    pub fn next(&mut self) -> Result<Line<'_>, LinkError> {
        match self.lines.next() {
            Ok(Line::Data(data)) => match data.strip_prefix(b"ERR ") {
                Some(said) => {
                    self.words.hear_line(said);
                    Err(words::no_conversation(&self.words.take(), ""))
                }
                None => Ok(Line::Data(data)),
            },
            Ok(mark) => Ok(mark),
            Err(Broken::Malformed(why)) => Err(LinkError::Nonsense(why)),
            Err(Broken::Off(error)) => {
                Err(broken_off(self.child.as_ref(), &self.deadline, &self.words, &error))
            }
        }
    }

    /// The next piece of a side band's data; `None` at its end. What comes on the other bands becomes words.
    pub fn next_band(&mut self) -> Result<Option<Vec<u8>>, LinkError> {
        loop {
            let line = match self.next()? {
                Line::Data(data) => PacketLineRef::Data(data),
                Line::Flush | Line::Delimiter | Line::ResponseEnd => return Ok(None),
            };
            match line.decode_band() {
                Ok(BandRef::Data(data)) => return Ok(Some(data.to_vec())),
                Ok(BandRef::Progress(said)) => {
                    let said = said.to_vec();
                    self.words.hear(&said);
                }
                Ok(BandRef::Error(said)) => {
                    let said = said.to_vec();
                    self.words.hear_line(&said);
                    return Err(words::no_conversation(&self.words.take(), ""));
                }
                Err(error) => return Err(LinkError::Nonsense(error.to_string())),
            }
        }
    }

    /// Writes one payload line.
    pub fn say(&mut self, payload: &[u8]) -> Result<(), LinkError> {
        let written = data_to_write(payload, &mut self.writer).map(drop);
        self.sent(written)
    }

    /// Writes bytes that are not packet lines (a pack).
    pub fn say_raw(&mut self, bytes: &[u8]) -> Result<(), LinkError> {
        let written = self.writer.write_all(bytes);
        self.sent(written)
    }

    /// Writes `0001`.
    pub fn delimit(&mut self) -> Result<(), LinkError> {
        let written = delim_to_write(&mut self.writer).map(drop);
        self.sent(written)
    }

    /// Writes `0000`; it stays with us until [`send`](Self::send).
    pub fn end(&mut self) -> Result<(), LinkError> {
        let written = flush_to_write(&mut self.writer).map(drop);
        self.sent(written)
    }

    /// Sends on its way all that was said.
    pub fn send(&mut self) -> Result<(), LinkError> {
        let written = self.writer.flush();
        self.sent(written)
    }

    /// Ends a conversation in which nothing more is asked for; the server needs no answer to that, nor do we.
    /// A server of the older protocols complains if one hangs up without it.
    pub fn hang_up(mut self) {
        let _ = self.end().and_then(|()| self.send());
    }

    fn sent(&self, written: io::Result<()>) -> Result<(), LinkError> {
        written
            .map_err(|error| broken_off(self.child.as_ref(), &self.deadline, &self.words, &error))
    }
}
