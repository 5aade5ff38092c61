//! `git://`: a socket to git-daemon, with the request line that it expects (gitprotocol-pack(5), "Git Transport").

use std::{
    io::{self, BufReader, BufWriter, Read, Write},
    net::{SocketAddr, TcpStream, ToSocketAddrs},
    sync::mpsc::{RecvTimeoutError, channel},
    thread,
};

use super::{
    LinkError, conversation::Conversation, deadline::Deadline, leavings::Socket, words::Words,
};

/// git-daemon's port, assigned by IANA.
const PORT: u16 = 9418;

/// Connects and asks for `service` on `path`; `version` as in `GIT_PROTOCOL`.
///
/// The socket is ours rather than gix-transport's: that one has no time-outs and waits out Nagle's algorithm
/// (measured: 40 ms an exchange).
pub fn connect(
    host: &str,
    port: Option<u16>,
    service: &str,
    path: &[u8],
    version: Option<&str>,
    deadline: Deadline,
    words: Words,
) -> Result<Conversation, LinkError> {
    let stream = open(host, port.unwrap_or(PORT), deadline)?;
    let unusable = |error: io::Error| {
        LinkError::Unreachable(format!("cannot use the connection to {host}: {error}"))
    };
    stream.set_nodelay(true).map_err(unusable)?;
    let limited = |stream: TcpStream| -> io::Result<Limited> {
        Ok(Limited { _leaving: Socket::of(&stream)?, stream, deadline })
    };
    let reader = stream.try_clone().and_then(limited).map_err(unusable)?;
    let (reader, writer) =
        (BufReader::new(reader), BufWriter::new(limited(stream).map_err(unusable)?));
    let mut conversation =
        Conversation::new(Box::new(reader), Box::new(writer), None, deadline, words);
    let mut request = format!("{service} ").into_bytes();
    request.extend_from_slice(path);
    let asked = port.map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
    let asked = std::env::var("GIT_OVERRIDE_VIRTUAL_HOST").unwrap_or(asked);
    request.extend_from_slice(format!("\0host={asked}\0").as_bytes());
    if let Some(version) = version {
        request.extend_from_slice(format!("\0{version}\0").as_bytes());
    }
    conversation.say(&request)?;
    conversation.send()?;
    Ok(conversation)
}

fn open(host: &str, port: u16, deadline: Deadline) -> Result<TcpStream, LinkError> {
    let mut last = format!("no address for {host}");
    for address in resolve(host, port, deadline)? {
        if deadline.passed() {
            return Err(deadline.error());
        }
        match TcpStream::connect_timeout(&address, deadline.left()) {
            Ok(stream) => return Ok(stream),
            Err(error) if error.kind() == io::ErrorKind::TimedOut => return Err(deadline.error()),
            Err(error) => last = format!("cannot connect to {host} port {port}: {error}"),
        }
    }
    Err(LinkError::Unreachable(last))
}

/// The system's resolver takes no time limit, so it runs beside us.
fn resolve(host: &str, port: u16, deadline: Deadline) -> Result<Vec<SocketAddr>, LinkError> {
    let (sender, answer) = channel();
    let wanted = (host.trim_start_matches('[').trim_end_matches(']').to_owned(), port);
    thread::spawn(move || sender.send(wanted.to_socket_addrs().map(Iterator::collect)));
    match answer.recv_timeout(deadline.left()) {
        Ok(Ok(addresses)) => Ok(addresses),
        Ok(Err(error)) => Err(LinkError::Unreachable(format!("cannot resolve {host}: {error}"))),
        Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => Err(deadline.error()),
    }
}

/// A socket whose every operation ends by the deadline.
struct Limited {
    stream: TcpStream,
    deadline: Deadline,
    _leaving: Socket,
}

impl Limited {
    fn left(&self) -> io::Result<Option<std::time::Duration>> {
        let left = self.deadline.left();
        if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(Some(left)) }
    }
}

impl Read for Limited {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(self.left()?)?;
        self.stream.read(out)
    }
}

impl Write for Limited {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(self.left()?)?;
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}
