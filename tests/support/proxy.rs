//! A loopback relay in front of a server: it counts what crosses the wire, or loses an answer on purpose.

use std::{
    io::{Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
};

use super::{Remote, servers};

/// What the relay does besides relaying.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Counts.
    Count,
    /// Lets the server finish a `POST …/git-receive-pack`, then closes the connection without passing its answer on.
    LosePushAnswers,
    /// Hangs up where the client asks for objects (protocol version 2): refs can be read, and nothing behind them.
    CutFetches,
}

/// A running relay. Its threads end with the connections, and with the process.
pub(crate) struct Proxy {
    pub(crate) port: u16,
    counts: Arc<Counts>,
}

#[derive(Default)]
struct Counts {
    connections: AtomicU64,
    bytes: AtomicU64,
    pushes: AtomicU64,
    lost: AtomicU64,
}

impl Proxy {
    /// Relays to `upstream`, a port on the loopback interface.
    pub(crate) fn start(upstream: u16, mode: Mode) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let counts = Arc::new(Counts::default());
        let shared = Arc::clone(&counts);
        thread::spawn(move || {
            for client in listener.incoming() {
                let Ok(client) = client else { continue };
                let counts = Arc::clone(&shared);
                counts.connections.fetch_add(1, Ordering::SeqCst);
                thread::spawn(move || relay(client, upstream, mode, &counts));
            }
        });
        Proxy { port, counts }
    }

    /// A relay before the web server that loses every answer to a push, and the URL of `remote` through it.
    pub(crate) fn losing_answers(remote: &Remote) -> Option<(Self, String)> {
        let web = servers::web()?;
        remote.set("http.receivepack", "true");
        let proxy = Self::start(web.http, Mode::LosePushAnswers);
        let below_root = remote.dir.strip_prefix(servers::root()).unwrap().display();
        let url = format!("http://127.0.0.1:{}/open/{below_root}", proxy.port);
        Some((proxy, url))
    }

    /// Connections so far.
    pub(crate) fn connections(&self) -> u64 {
        self.counts.connections.load(Ordering::SeqCst)
    }

    /// Bytes so far, both directions together.
    pub(crate) fn bytes(&self) -> u64 {
        self.counts.bytes.load(Ordering::SeqCst)
    }

    /// Connections over `git://` that asked for the writing side so far.
    pub(crate) fn pushes(&self) -> u64 {
        self.counts.pushes.load(Ordering::SeqCst)
    }

    /// Answers that were kept back.
    pub(crate) fn lost(&self) -> u64 {
        self.counts.lost.load(Ordering::SeqCst)
    }
}

fn relay(client: TcpStream, upstream: u16, mode: Mode, counts: &Arc<Counts>) {
    let Ok(server) = TcpStream::connect(("127.0.0.1", upstream)) else { return };
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let pushing = Arc::new(AtomicBool::new(false));
    let (to_server, from_client) = (server.try_clone().unwrap(), client.try_clone().unwrap());
    let ends = (server.try_clone().unwrap(), client.try_clone().unwrap());
    let (counts_up, pushing_up) = (Arc::clone(counts), Arc::clone(&pushing));
    let up = thread::spawn(move || {
        copy(from_client, to_server, |chunk| {
            counts_up.bytes.fetch_add(chunk.len() as u64, Ordering::SeqCst);
            if holds(chunk, b"git-receive-pack /") {
                counts_up.pushes.fetch_add(1, Ordering::SeqCst);
            }
            if mode == Mode::LosePushAnswers && is_push(chunk) {
                pushing_up.store(true, Ordering::SeqCst);
            }
            if mode == Mode::CutFetches && holds(chunk, b"command=fetch") {
                for end in [&ends.0, &ends.1] {
                    let _ = end.shutdown(Shutdown::Both);
                }
                return false;
            }
            true
        });
    });
    let mut tail = Vec::new();
    let mut kept_back = false;
    copy(server.try_clone().unwrap(), client.try_clone().unwrap(), |chunk| {
        if pushing.load(Ordering::SeqCst) {
            kept_back = true;
            tail.extend_from_slice(chunk);
            // The end of a chunked answer: the server is done, and nobody hears of it.
            if tail.ends_with(b"\r\n0\r\n\r\n") {
                let _ = server.shutdown(Shutdown::Both);
            }
            return false;
        }
        counts.bytes.fetch_add(chunk.len() as u64, Ordering::SeqCst);
        true
    });
    if kept_back {
        counts.lost.fetch_add(1, Ordering::SeqCst);
    }
    let _ = client.shutdown(Shutdown::Both);
    let _ = up.join();
}

fn holds(chunk: &[u8], word: &[u8]) -> bool {
    chunk.windows(word.len()).any(|part| part == word)
}

/// git sends the head of a request in one write, so one chunk shows it.
fn is_push(chunk: &[u8]) -> bool {
    let line = chunk.split(|byte| *byte == b'\r').next().unwrap_or_default();
    line.starts_with(b"POST ") && holds(line, b"/git-receive-pack")
}

/// Copies until either end is closed; `pass` sees each chunk and says whether it goes on.
fn copy(mut from: TcpStream, mut to: TcpStream, mut pass: impl FnMut(&[u8]) -> bool) {
    let mut buffer = [0; 16 * 1024];
    while let Ok(count) = from.read(&mut buffer) {
        if count == 0 || (pass(&buffer[..count]) && to.write_all(&buffer[..count]).is_err()) {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
}

/// A port that accepts connections and never says a word, for as long as the value lives.
pub(crate) struct Silent {
    listener: TcpListener,
}

impl Silent {
    pub(crate) fn start() -> Self {
        // The kernel completes handshakes for a listener that nobody ever calls `accept` on.
        Silent { listener: TcpListener::bind(("127.0.0.1", 0)).unwrap() }
    }

    pub(crate) fn port(&self) -> u16 {
        self.listener.local_addr().unwrap().port()
    }
}
