//! The two ends of a child's pipes that are ours, used no longer than the deadline allows.
//!
//! On Unix neither end ever blocks: who has to wait waits for the pipe and the deadline together. Elsewhere pipes can only be
//! waited for by threads. What travels is not looked at here.

#[cfg(not(unix))]
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::{
    io::{self, Read, Write},
    process::{ChildStdin, ChildStdout},
    sync::mpsc::{Sender, channel},
    thread,
};

use super::deadline::Deadline;

/// The child's standard output, read no longer than the deadline allows.
#[cfg(unix)]
pub struct PipeReader {
    pipe: ChildStdout,
    deadline: Deadline,
    /// How much came so far.
    taken: usize,
    /// Whether much more is to be expected, a little at a time.
    trickles: bool,
}

/// What is longer than this is a long answer.
#[cfg(unix)]
const LONG: usize = 64 * 1024;
/// Who says a long answer in pieces smaller than this says it line by line.
#[cfg(unix)]
const SMALL: usize = 16 * 1024;
/// The start that is given to such a one. git's receive-pack writes each ref for itself, and to be woken for each costs
/// both sides more than the ref does; in this time a pipe fills by half.
#[cfg(unix)]
const HEAD_START: std::time::Duration = std::time::Duration::from_micros(500);

#[cfg(unix)]
impl PipeReader {
    /// Reads from `pipe`.
    pub fn over(pipe: ChildStdout, deadline: Deadline) -> io::Result<Self> {
        rustix::io::ioctl_fionbio(&pipe, true)?;
        Ok(Self { pipe, deadline, taken: 0, trickles: false })
    }

    fn wait(&self) -> io::Result<()> {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let left = self.deadline.left();
        let timeout = Timespec::try_from(left).map_err(io::Error::other)?;
        match poll(&mut [PollFd::new(&self.pipe, PollFlags::IN)], Some(&timeout)) {
            Ok(0) => Err(io::ErrorKind::TimedOut.into()),
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

#[cfg(unix)]
impl Read for PipeReader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.trickles {
            thread::sleep(HEAD_START);
        }
        loop {
            match self.pipe.read(out) {
                Ok(count) => {
                    self.taken = self.taken.saturating_add(count);
                    self.trickles = self.taken > LONG && (1..SMALL).contains(&count);
                    return Ok(count);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.wait()?,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// The child's standard output, read no longer than the deadline allows.
#[cfg(not(unix))]
pub struct PipeReader {
    chunks: Receiver<io::Result<Vec<u8>>>,
    chunk: Vec<u8>,
    at: usize,
    deadline: Deadline,
}

#[cfg(not(unix))]
impl PipeReader {
    /// Reads from `pipe`.
    pub fn over(pipe: ChildStdout, deadline: Deadline) -> io::Result<Self> {
        // The bound keeps a fast server from filling our memory faster than we read.
        let (sender, chunks) = sync_channel(4);
        thread::spawn(move || pump(pipe, &sender));
        Ok(Self { chunks, chunk: Vec::new(), at: 0, deadline })
    }
}

#[cfg(not(unix))]
fn pump(mut source: impl Read, sender: &SyncSender<io::Result<Vec<u8>>>) {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let read = match source.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => Ok(buffer[..count].to_vec()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => Err(error),
        };
        let failed = read.is_err();
        if sender.send(read).is_err() || failed {
            break;
        }
    }
}

#[cfg(not(unix))]
impl Read for PipeReader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.at == self.chunk.len() {
            match self.chunks.recv_timeout(self.deadline.left()) {
                Ok(chunk) => (self.chunk, self.at) = (chunk?, 0),
                Err(RecvTimeoutError::Timeout) => return Err(io::ErrorKind::TimedOut.into()),
                Err(RecvTimeoutError::Disconnected) => return Ok(0),
            }
        }
        let count = (&self.chunk[self.at..]).read(out)?;
        self.at += count;
        Ok(count)
    }
}

/// The child's standard input. What is flushed is on its way; dropping it closes the pipe.
///
/// A child that stops reading is no error of the write that finds out: the reader learns why.
pub struct PipeWriter {
    /// Nothing where nobody reads it.
    sink: Option<Sink>,
    chunk: Vec<u8>,
}

/// How what is flushed gets there.
enum Sink {
    /// As much as fits into the pipe.
    #[cfg(unix)]
    Pipe(ChildStdin),
    /// By a thread, which may wait until there is room.
    Thread(Sender<Vec<u8>>),
}

impl PipeWriter {
    /// Writes to `pipe`.
    pub fn over(pipe: ChildStdin) -> io::Result<Self> {
        #[cfg(unix)]
        let sink = {
            rustix::io::ioctl_fionbio(&pipe, true)?;
            Sink::Pipe(pipe)
        };
        #[cfg(not(unix))]
        let sink = Sink::Thread(by_thread(pipe));
        Ok(Self { sink: Some(sink), chunk: Vec::new() })
    }
}

fn by_thread(mut pipe: ChildStdin) -> Sender<Vec<u8>> {
    let (chunks, receiver) = channel::<Vec<u8>>();
    thread::spawn(
        move || while receiver.recv().is_ok_and(|chunk| pipe.write_all(&chunk).is_ok()) {},
    );
    chunks
}

impl Sink {
    /// Sends `chunk`; nothing is left to send the next one with if nobody reads it.
    fn send(self, chunk: Vec<u8>) -> Option<Self> {
        match self {
            #[cfg(unix)]
            Self::Pipe(mut pipe) => {
                let count = write_what_fits(&mut pipe, &chunk).ok()?;
                if count == chunk.len() {
                    return Some(Self::Pipe(pipe));
                }
                rustix::io::ioctl_fionbio(&pipe, false).ok()?;
                Self::Thread(by_thread(pipe)).send(chunk[count..].to_vec())
            }
            Self::Thread(chunks) => chunks.send(chunk).is_ok().then_some(Self::Thread(chunks)),
        }
    }
}

impl Write for PipeWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.chunk.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let sink = self.sink.take().ok_or(io::ErrorKind::BrokenPipe)?;
        self.sink = sink.send(std::mem::take(&mut self.chunk));
        Ok(())
    }
}

/// How much of `bytes` the pipe took.
#[cfg(unix)]
fn write_what_fits(pipe: &mut ChildStdin, bytes: &[u8]) -> io::Result<usize> {
    let mut count = 0;
    while count < bytes.len() {
        match pipe.write(&bytes[count..]) {
            Ok(more) => count += more,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(count)
}

#[cfg(all(test, unix))]
mod tests {
    use std::{
        process::{Command, Stdio},
        time::Duration,
    };

    use super::*;

    fn shell(script: &str) -> (std::process::Child, PipeReader, PipeWriter) {
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("sh starts");
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let deadline = Deadline::after(Duration::from_secs(20));
        let reader = PipeReader::over(stdout.expect("piped"), deadline).expect("a pipe");
        (child, reader, PipeWriter::over(stdin.expect("piped")).expect("a pipe"))
    }

    #[test]
    fn what_does_not_fit_into_the_pipe_gets_there_all_the_same() {
        let (mut child, mut reader, mut writer) = shell("exec cat");
        let bytes: Vec<u8> = (0..1_000_003_u32).map(|at| (at % 251) as u8).collect();
        // Nothing is read meanwhile, so that the child cannot go on either.
        for piece in bytes.chunks(300_000) {
            writer.write_all(piece).and_then(|()| writer.flush()).expect("on its way");
        }
        drop(writer);
        let mut out = Vec::new();
        reader.read_to_end(&mut out).expect("until the end");
        assert!(out == bytes, "{} of {} bytes, or others", out.len(), bytes.len());
        child.wait().expect("it ended");
    }

    #[test]
    fn a_child_that_does_not_read_is_left_to_the_reader_to_explain() {
        let (mut child, mut reader, mut writer) = shell("exec 0<&-; echo no");
        let mut out = String::new();
        reader.read_to_string(&mut out).expect("until the end");
        child.wait().expect("it ended");
        let mut write = || writer.write_all(b"hello").and_then(|()| writer.flush());
        assert!(write().is_ok());
        assert_eq!(write().map_err(|error| error.kind()), Err(io::ErrorKind::BrokenPipe));
        assert_eq!(out, "no\n");
    }
}
