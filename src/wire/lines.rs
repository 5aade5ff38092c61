//! Packet lines, taken apart in the buffer that they were read into.
//!
//! What a line is made of is decided by gix-packetline; gix-packetline's own reader, which is made of single reads of four
//! bytes and of the rest, costs more than all else that is done to a ref of a long advertisement.

use std::io::{self, Read};

use gix::protocol::transport::packetline::{
    PacketLineRef,
    decode::{Stream, streaming},
};

use super::conversation::Line;

/// Two of the longest lines: whoever is in the middle of one line has read it to its end before there is no more room.
const BUFFER: usize = 2 * 64 * 1024;

/// Why there is no line.
#[derive(Debug)]
pub enum Broken {
    /// The stream ended, or could not be read.
    Off(io::Error),
    /// It is none.
    Malformed(String),
}

/// The lines of a stream.
pub struct Lines {
    source: Box<dyn Read + Send>,
    buffer: Box<[u8]>,
    /// What was read and is not used yet.
    start: usize,
    end: usize,
}

impl Lines {
    /// The lines that `source` brings.
    pub fn of(source: Box<dyn Read + Send>) -> Self {
        Self { source, buffer: vec![0; BUFFER].into_boxed_slice(), start: 0, end: 0 }
    }

    /// The next line. The end of the stream is an error.
    pub fn next(&mut self) -> Result<Line<'_>, Broken> {
        let (length, mark) = loop {
            match streaming(&self.buffer[self.start..self.end]) {
                Ok(Stream::Complete { line, bytes_consumed }) => {
                    break (bytes_consumed, mark(line));
                }
                Ok(Stream::Incomplete { .. }) => self.fill().map_err(Broken::Off)?,
                Err(error) => return Err(Broken::Malformed(error.to_string())),
            }
        };
        let line = &self.buffer[self.start..][..length];
        self.start += length;
        Ok(mark.unwrap_or(Line::Data(&line[LENGTH..])))
    }

    /// Reads on; what was begun is moved to the front first.
    fn fill(&mut self) -> io::Result<()> {
        self.buffer.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        loop {
            match self.source.read(&mut self.buffer[self.end..]) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => {
                    self.end += count;
                    return Ok(());
                }
                // A signal that somebody takes care of is no end of the conversation.
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// The hexadecimal digits before a payload.
const LENGTH: usize = 4;

/// A line without a payload.
fn mark(line: PacketLineRef<'_>) -> Option<Line<'static>> {
    match line {
        PacketLineRef::Data(_) => None,
        PacketLineRef::Flush => Some(Line::Flush),
        PacketLineRef::Delimiter => Some(Line::Delimiter),
        PacketLineRef::ResponseEnd => Some(Line::ResponseEnd),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    /// Gives what it has in pieces of a size.
    struct Pieces(Cursor<Vec<u8>>, usize);

    impl Read for Pieces {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            let most = out.len().min(self.1);
            self.0.read(&mut out[..most])
        }
    }

    #[test]
    fn lines_are_the_same_however_they_are_cut_on_the_way() {
        let payloads: Vec<Vec<u8>> = [1, 2, 70, 65_516, 3, 65_516, 65_516, 4_000]
            .iter()
            .enumerate()
            .map(|(at, length)| vec![b'a' + u8::try_from(at).unwrap_or_default(); *length])
            .collect();
        let mut bytes = Vec::new();
        for payload in &payloads {
            bytes.extend_from_slice(format!("{:04x}", payload.len() + LENGTH).as_bytes());
            bytes.extend_from_slice(payload);
        }
        bytes.extend_from_slice(b"000100020000");
        for piece in [1, 3, 4, 5, 4_096, 65_535, 65_536, 1_000_000] {
            let mut lines = Lines::of(Box::new(Pieces(Cursor::new(bytes.clone()), piece)));
            for payload in &payloads {
                assert_eq!(lines.next().expect("a line"), Line::Data(payload), "by {piece}");
            }
            for mark in [Line::Delimiter, Line::ResponseEnd, Line::Flush] {
                assert_eq!(lines.next().expect("a line"), mark, "by {piece}");
            }
            assert!(matches!(lines.next(), Err(Broken::Off(_))), "by {piece}");
        }
    }

    #[test]
    fn what_is_no_line_is_told_from_the_end_of_the_stream() {
        for (bytes, off) in [
            ("", true),
            ("00", true),
            ("000ahell", true),
            ("0003", false),
            ("0004", false),
            ("zzzz", false),
            ("ffff", false),
        ] {
            let next = Lines::of(Box::new(Cursor::new(bytes.as_bytes()))).next().err();
            assert_eq!(matches!(next, Some(Broken::Off(_))), off, "{bytes}");
            assert!(next.is_some(), "{bytes}");
        }
    }
}
