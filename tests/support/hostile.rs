//! A `git://` server that wishes its clients ill: it floods them, or reports what nobody asked for.

use std::{
    io::{self, Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    thread,
};

/// What it does to whoever connects.
#[derive(Clone, Copy)]
pub(crate) enum Hostility {
    /// Lists claims without an end, with names of so many bytes and a few more.
    EndlessRefs(usize),
    /// Accepts a push and then speaks without an end, line after line, of progress.
    EndlessProgress,
    /// Says ok to whatever it is asked for, and keeps nothing.
    SayOk,
    /// Accepts a push and reports these lines. There is never anything to be read.
    Report(&'static [&'static str]),
}

/// A running server. Its threads end with the connections, and with the process.
pub(crate) struct Hostile {
    /// Where it is.
    pub(crate) url: String,
}

impl Hostile {
    pub(crate) fn start(how: Hostility) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                // A client that hangs up has had enough, and so has this thread.
                thread::spawn(move || serve(client, how).is_ok());
            }
        });
        Hostile { url: format!("git://127.0.0.1:{port}/x") }
    }
}

fn serve(mut client: TcpStream, how: Hostility) -> io::Result<()> {
    let request = packet(&mut client)?.unwrap_or_default();
    if request.starts_with(b"git-upload-pack") {
        for line in ["version 2\n", "ls-refs\n", "fetch=shallow\n", "object-format=sha1\n"] {
            client.write_all(&framed(line.as_bytes()))?;
        }
        client.write_all(b"0000")?;
        loop {
            while packet(&mut client)?.is_some() {}
            if let Hostility::EndlessRefs(length) = how {
                endless_refs(&mut client, length)?;
            }
            client.write_all(b"0000")?;
        }
    }
    let nothing = "0".repeat(40);
    let line = format!(
        "{nothing} capabilities^{{}}\0report-status delete-refs side-band-64k object-format=sha1"
    );
    client.write_all(&framed(line.as_bytes()))?;
    client.write_all(b"0000")?;
    let mut command = Vec::new();
    while let Some(payload) = packet(&mut client)? {
        command = payload;
    }
    match how {
        Hostility::EndlessRefs(_) => {}
        Hostility::EndlessProgress => {
            for number in 0_u64.. {
                let line = format!("\x02\x1b[2J{number} {}\n", "hello ".repeat(1_000));
                client.write_all(&framed(line.as_bytes()))?;
            }
        }
        Hostility::SayOk => {
            let command = command.split(|byte| *byte == 0).next().unwrap_or_default();
            let name = command.rsplit(|byte| *byte == b' ').next().unwrap_or_default();
            report(&mut client, &["unpack ok", &format!("ok {}", String::from_utf8_lossy(name))])?;
        }
        Hostility::Report(lines) => report(&mut client, lines)?,
    }
    // What the client still has to say is read, or its kernel would throw our words away.
    client.shutdown(Shutdown::Write)?;
    io::copy(&mut client, &mut io::sink()).map(drop)
}

/// A report on the side band.
fn report(client: &mut TcpStream, lines: &[&str]) -> io::Result<()> {
    let mut report = vec![1];
    lines.iter().for_each(|line| report.extend(framed(line.as_bytes())));
    report.extend(b"0000");
    client.write_all(&framed(&report))?;
    client.write_all(b"0000")
}

/// The same few over and over, since it takes longer to make them than to send them.
fn endless_refs(client: &mut TcpStream, length: usize) -> io::Result<()> {
    let (id, rest) = ("1".repeat(40), "x".repeat(length));
    let line = |number| format!("{id} refs/claims/issue-1{number}-{rest}\n");
    let many = (0..100).flat_map(|number| framed(line(number).as_bytes())).collect::<Vec<_>>();
    loop {
        client.write_all(&many)?;
    }
}

fn framed(payload: &[u8]) -> Vec<u8> {
    [format!("{:04x}", payload.len() + 4).as_bytes(), payload].concat()
}

/// The next packet's payload; nothing where it is a flush. A delimiter is an empty payload.
fn packet(client: &mut TcpStream) -> io::Result<Option<Vec<u8>>> {
    let mut length = [0; 4];
    client.read_exact(&mut length)?;
    let length = usize::from_str_radix(&String::from_utf8_lossy(&length), 16);
    match length.map_err(io::Error::other)? {
        0 => Ok(None),
        length => {
            let mut payload = vec![0; length.saturating_sub(4)];
            client.read_exact(&mut payload)?;
            Ok(Some(payload))
        }
    }
}
