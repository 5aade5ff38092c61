//! A relay that forwards so many bytes and no more.
//!
//! The server is left to do what it can with what it got, and [`Cutter::settled`] waits until it has: only then is what it
//! holds compared with what the client was told.

use std::{
    io::{self, Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU16, AtomicU64, AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use crate::support::until;

/// Which way bytes go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// From the client to the server.
    Up,
    /// From the server to the client.
    Down,
}

/// What becomes of the connection then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum How {
    /// It is closed.
    Closed,
    /// It is reset.
    Reset,
    /// Nothing comes through any more, and nobody says so.
    Silent,
}

/// Where a connection is cut: after so many bytes that way, counted over all connections.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cut {
    pub(super) way: Way,
    pub(super) after: u64,
    pub(super) how: How,
    /// Whether the next connections are let through. Else it goes for them as well.
    pub(super) once: bool,
}

/// The relay.
pub(super) struct Cutter {
    pub(super) port: u16,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    /// The port of the server.
    upstream: AtomicU16,
    cut: Mutex<Option<Cut>>,
    up: AtomicU64,
    down: AtomicU64,
    /// Connections to the server that it has not ended.
    open: AtomicUsize,
    /// Whether the first line of every connection is for the server's door: it is neither counted nor cut.
    led_by_a_line: bool,
}

impl Cutter {
    /// Relays to `upstream`, a port on the loopback interface.
    pub(super) fn start(upstream: u16) -> Self {
        Self::start_with(upstream, false)
    }

    /// The same, where the first line of every connection is neither counted nor cut.
    pub(super) fn start_after_a_line(upstream: u16) -> Self {
        Self::start_with(upstream, true)
    }

    fn start_with(upstream: u16, led_by_a_line: bool) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let upstream = AtomicU16::new(upstream);
        let state = Arc::new(State { upstream, led_by_a_line, ..State::default() });
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let state = Arc::clone(&shared);
                state.open.fetch_add(1, Ordering::SeqCst);
                thread::spawn(move || {
                    relay(&client, &state);
                    state.open.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        Cutter { port, state }
    }

    /// Relays to another server from now on.
    pub(super) fn redirect(&self, upstream: u16) {
        self.state.upstream.store(upstream, Ordering::SeqCst);
    }

    /// Counts from nothing, and cuts where that is said.
    pub(super) fn plan(&self, cut: Option<Cut>) {
        *self.state.cut.lock().unwrap() = cut;
        self.state.up.store(0, Ordering::SeqCst);
        self.state.down.store(0, Ordering::SeqCst);
    }

    /// Bytes since the plan was made.
    pub(super) fn bytes(&self, way: Way) -> u64 {
        self.state.count(way).load(Ordering::SeqCst)
    }

    /// Waits until the server has ended every connection.
    pub(super) fn settled(&self) {
        until("the server is done", || self.state.open.load(Ordering::SeqCst) == 0);
    }
}

impl State {
    fn count(&self, way: Way) -> &AtomicU64 {
        match way {
            Way::Up => &self.up,
            Way::Down => &self.down,
        }
    }

    /// How many of `more` bytes may pass, and what becomes of the connection if that is not all.
    fn pass(&self, way: Way, more: usize) -> (usize, Option<How>) {
        let before = self.count(way).fetch_add(more as u64, Ordering::SeqCst);
        let Some(cut) = *self.cut.lock().unwrap() else { return (more, None) };
        if cut.way != way || (cut.once && before > cut.after) {
            return (more, None);
        }
        let left = cut.after.saturating_sub(before);
        if left >= more as u64 { (more, None) } else { (left as usize, Some(cut.how)) }
    }

    /// What becomes of a connection that begins now and has nowhere to go.
    fn is_cut_off(&self) -> Option<How> {
        let cut = (*self.cut.lock().unwrap())?;
        let over = !cut.once && self.count(cut.way).load(Ordering::SeqCst) > cut.after;
        (over && cut.how != How::Silent).then_some(cut.how)
    }
}

fn relay(client: &TcpStream, state: &Arc<State>) {
    if let Some(how) = state.is_cut_off() {
        return end(client, how);
    }
    let upstream = state.upstream.load(Ordering::SeqCst);
    let Ok(mut server) = TcpStream::connect(("127.0.0.1", upstream)) else { return };
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    if state.led_by_a_line && pass_a_line(client, &mut server).is_err() {
        return;
    }
    let (up_client, up_server) = (client.try_clone().unwrap(), server.try_clone().unwrap());
    let up_state = Arc::clone(state);
    let up = thread::spawn(move || copy(&up_client, &up_server, Way::Up, &up_state));
    copy(&server, client, Way::Down, state);
    let _ = client.shutdown(Shutdown::Both);
    let _ = up.join();
}

fn pass_a_line(mut from: &TcpStream, to: &mut TcpStream) -> io::Result<()> {
    let (mut line, mut byte) = (Vec::new(), [0]);
    while line.last() != Some(&b'\n') {
        from.read_exact(&mut byte)?;
        line.extend(byte);
    }
    to.write_all(&line)
}

/// Ends a connection for the one at its other end.
fn end(connection: &TcpStream, how: How) {
    if how == How::Reset {
        // Undoing a connection resets it, whoever else has it open here.
        let _ = rustix::net::connect_unspec(connection);
    }
    let _ = connection.shutdown(Shutdown::Both);
}

/// What is still read from a server that nobody listens to any more.
const DRAINED: usize = 32 << 20;

/// Copies to the end of `from`. Past a cut the rest is read and thrown away, so that `from` can come to its end; unless it has
/// none.
fn copy(mut from: &TcpStream, mut to: &TcpStream, way: Way, state: &State) {
    let mut buffer = [0; 16 * 1024];
    let (mut gone, mut drained) = (false, 0);
    while let Ok(count) = from.read(&mut buffer) {
        if count == 0 {
            break;
        }
        if gone {
            drained += count;
            if drained > DRAINED {
                let _ = from.shutdown(Shutdown::Both);
            }
            continue;
        }
        let (passing, how) = state.pass(way, count);
        gone = to.write_all(&buffer[..passing]).is_err() || how.is_some();
        match (how, way) {
            (Some(How::Silent) | None, _) => {}
            // The client is told, the server sees the end of what it was sent.
            (Some(how), Way::Up) => {
                let _ = to.shutdown(Shutdown::Write);
                end(from, how);
                break;
            }
            (Some(how), Way::Down) => end(to, how),
        }
    }
    // Silence goes on until the client gives up; then the server is told, as a host that is gone would be at last.
    if !gone || way == Way::Up {
        let _ = to.shutdown(Shutdown::Write);
    }
    thread::sleep(Duration::from_millis(1));
}
