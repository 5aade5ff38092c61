//! A loopback relay that makes a server far away, and counts what crosses the wire.
//!
//! The relay of the tests (`tests/support/proxy.rs`) counts what it passes on at once; here each byte travels for
//! `delay`, a connection costs the round trip that TCP's handshake costs, and round trips are counted. It changes nothing.

use std::{
    io::{Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    sync::{
        Arc, Condvar, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc::{self, Receiver, Sender},
    },
    thread,
    time::{Duration, Instant},
};

/// What crossed the wire.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Traffic {
    /// Connections that were opened.
    pub(crate) connections: u64,
    /// Bytes from the client.
    pub(crate) up: u64,
    /// Bytes from the server.
    pub(crate) down: u64,
    /// The longest chain of answers of which each was waited for before the next question: the turns of a conversation
    /// in which the two sides take turns. What is on its way in both directions at once counts once. Told where there is a delay: without one it is chance what
    /// had arrived before what was said.
    pub(crate) round_trips: Option<u64>,
}

impl Traffic {
    /// Both directions together.
    pub(crate) fn bytes(self) -> u64 {
        self.up + self.down
    }

    /// That of `factor` times the work.
    pub(crate) fn scaled(self, factor: f64) -> Self {
        let scaled = |count: u64| (count as f64 * factor).round() as u64;
        Traffic {
            connections: scaled(self.connections),
            up: scaled(self.up),
            down: scaled(self.down),
            round_trips: self.round_trips.map(scaled),
        }
    }
}

/// A running relay. Its threads end with the connections, and with the process.
pub(crate) struct Proxy {
    pub(crate) port: u16,
    far: bool,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    counts: Mutex<Counts>,
    idle: Condvar,
}

#[derive(Default)]
struct Counts {
    connections: u64,
    up: u64,
    down: u64,
    /// How many answers deep the conversation is, as the client knows it.
    answered: u64,
    live: usize,
}

/// Bytes on their way.
struct Parcel {
    due: Instant,
    bytes: Vec<u8>,
    /// The round trip that the bytes belong to.
    depth: u64,
}

impl Proxy {
    /// Relays to `upstream`, a port on the loopback interface, with `delay` added in each direction.
    pub(crate) fn start(upstream: u16, delay: Duration) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let shared = Arc::new(Shared::default());
        let for_threads = Arc::clone(&shared);
        thread::spawn(move || {
            for client in listener.incoming() {
                let Ok(client) = client else { continue };
                let shared = Arc::clone(&for_threads);
                {
                    let mut counts = shared.counts.lock().unwrap();
                    counts.connections += 1;
                    counts.live += 1;
                }
                thread::spawn(move || {
                    relay(&client, upstream, delay, &shared);
                    shared.counts.lock().unwrap().live -= 1;
                    shared.idle.notify_all();
                });
            }
        });
        Proxy { port, far: !delay.is_zero(), shared }
    }

    /// What crossed the wire since the last call, once no connection is open any more.
    pub(crate) fn take(&self) -> Traffic {
        let patience = Duration::from_secs(10);
        let counts = self.shared.counts.lock().unwrap();
        let (mut counts, _) = self
            .shared
            .idle
            .wait_timeout_while(counts, patience, |counts| counts.live > 0)
            .unwrap();
        let live = counts.live;
        let past = std::mem::replace(&mut *counts, Counts { live, ..Counts::default() });
        Traffic {
            connections: past.connections,
            up: past.up,
            down: past.down,
            round_trips: self.far.then_some(past.answered),
        }
    }
}

fn relay(client: &TcpStream, upstream: u16, delay: Duration, shared: &Arc<Shared>) {
    // On loopback the handshake took no time. Far away the client could speak after one round trip only, and the server
    // would hear it half a round trip later.
    let established = Instant::now() + 2 * delay;
    let (up, for_server) = mpsc::channel();
    let (down, for_client) = mpsc::channel();
    let from_client = client.try_clone().unwrap();
    let shared_up = Arc::clone(shared);
    let gone = Arc::new(AtomicBool::new(false));
    let goes = Arc::clone(&gone);
    let reads_client = thread::spawn(move || {
        read(from_client, &up, |count| {
            let mut counts = shared_up.counts.lock().unwrap();
            counts.up += count;
            (Instant::now().max(established) + delay, counts.answered + 1)
        });
        goes.store(true, Ordering::SeqCst);
    });
    sleep_until(established + delay);
    let Ok(server) = TcpStream::connect(("127.0.0.1", upstream)) else {
        let _ = client.shutdown(Shutdown::Both);
        return;
    };
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let asked = Arc::new(AtomicU64::new(0));
    let (asked_down, from_server) = (Arc::clone(&asked), server.try_clone().unwrap());
    let shared_down = Arc::clone(shared);
    let reads_server = thread::spawn(move || {
        read(from_server, &down, |count| {
            shared_down.counts.lock().unwrap().down += count;
            (Instant::now() + delay, asked_down.load(Ordering::SeqCst))
        });
    });
    let writes_server = thread::spawn(move || {
        write(&server, for_server, |depth| {
            asked.fetch_max(depth, Ordering::SeqCst);
        });
    });
    write(client, for_client, |depth| {
        if gone.load(Ordering::SeqCst) {
            // An answer to a good-bye (TLS has one) is waited for by nobody.
            return;
        }
        let mut counts = shared.counts.lock().unwrap();
        counts.answered = counts.answered.max(depth);
    });
    for thread in [reads_client, reads_server, writes_server] {
        let _ = thread.join();
    }
}

/// Reads until the end; `stamp` is told how many bytes came, and says when they are due and how deep they are.
fn read(mut from: TcpStream, to: &Sender<Parcel>, mut stamp: impl FnMut(u64) -> (Instant, u64)) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        let (due, depth) = stamp(count as u64);
        if to.send(Parcel { due, bytes: buffer[..count].to_vec(), depth }).is_err() {
            break;
        }
    }
}

/// Delivers what is due; `arrives` is told of each parcel just before.
fn write(mut to: &TcpStream, parcels: Receiver<Parcel>, arrives: impl Fn(u64)) {
    for parcel in parcels {
        sleep_until(parcel.due);
        arrives(parcel.depth);
        if to.write_all(&parcel.bytes).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
}

fn sleep_until(when: Instant) {
    thread::sleep(when.saturating_duration_since(Instant::now()));
}
