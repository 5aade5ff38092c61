//! A server that lies, or does not know what it says.
//!
//! It stands before a real one, and lets everything through up to the place of its lie. So what is true is what the real one
//! holds, and a command that the liar was given never reached it.

use std::{
    io::{self, Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    thread,
};

use super::{
    Chance, Size,
    stand::{ACTS, Act, DEADLINE, SHORT_DEADLINE, Stand, shuffle, stands, try_all},
};
use crate::support::{kinds, servers};

/// Where it begins to lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Where {
    /// Once it is connected to.
    Door,
    /// In what it shows to those who write.
    Shown,
    /// In what it says came of a command.
    Report,
    /// In what it lists for those who read.
    Listed,
    /// In the records that it hands out.
    Read,
}

/// What it does when it has said so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Then {
    Closes,
    /// Says nothing more, and stays.
    Waits,
    /// Says it over and over.
    GoesOn,
}

/// One lie.
#[derive(Clone, Copy)]
struct Lie {
    at: Where,
    name: &'static str,
    says: fn(&Facts) -> Vec<u8>,
    then: Then,
    /// Who cannot but believe it, since nothing in it shows that it is one.
    believed: Believed,
}

/// Who believes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Believed {
    ByNobody,
    /// Whoever does not confirm.
    AsAnOk,
    /// Whoever reads before anything else: it lists what it has, and this is not there. A server of the older protocols that
    /// has nothing at all says no more than that it is done.
    AsEmptiness,
}

/// What it goes by.
#[derive(Debug, Clone, Default)]
struct Facts {
    old: String,
    new: String,
    refname: String,
}

impl Lie {
    const fn new(at: Where, name: &'static str, says: fn(&Facts) -> Vec<u8>) -> Self {
        Lie { at, name, says, then: Then::Closes, believed: Believed::ByNobody }
    }

    const fn then(self, then: Then) -> Self {
        Lie { then, ..self }
    }

    const fn ok(self) -> Self {
        Lie { believed: Believed::AsAnOk, ..self }
    }

    const fn emptiness(self) -> Self {
        Lie { believed: Believed::AsEmptiness, ..self }
    }

    /// Whether it can be told as one in this act.
    fn shows(&self, act: Act) -> bool {
        match self.believed {
            Believed::ByNobody => true,
            Believed::AsAnOk => act.confirms(),
            Believed::AsEmptiness => !act.reads_first(),
        }
    }
}

fn line(payload: impl AsRef<[u8]>) -> Vec<u8> {
    let payload = payload.as_ref();
    [format!("{:04x}", payload.len() + 4).as_bytes(), payload].concat()
}

fn lines(payloads: &[&str]) -> Vec<u8> {
    payloads.iter().flat_map(line).collect()
}

/// On a band.
fn band(number: u8, payload: impl AsRef<[u8]>) -> Vec<u8> {
    line([&[number], payload.as_ref()].concat())
}

/// A report as it should be, of these lines.
fn report(payloads: &[&str]) -> Vec<u8> {
    let report = [lines(payloads).as_slice(), b"0000"].concat();
    [band(1, report), b"0000".to_vec()].concat()
}

/// What is shown to those who write: an id, a name, what the server can do.
fn shown(id: &str, name: &str, can: &str) -> Vec<u8> {
    [line(format!("{id} {name}\0{can}\n")), b"0000".to_vec()].concat()
}

const CAN: &str = "report-status delete-refs side-band-64k ofs-delta atomic object-format=sha1";
const REF: &str = "refs/claims/issue-42";
const ONE: &str = "1111111111111111111111111111111111111111";
const NOTHING: &str = "0000000000000000000000000000000000000000";

fn ok(facts: &Facts) -> String {
    format!("ok {}\n", facts.refname)
}

fn ng(facts: &Facts) -> String {
    format!("ng {} no\n", facts.refname)
}

/// Everything that is tried.
const LIES: &[Lie] = &[
    Lie::new(Where::Door, "nothing", |_| Vec::new()),
    Lie::new(Where::Door, "silence", |_| Vec::new()).then(Then::Waits),
    Lie::new(Where::Door, "half a length", |_| b"00".to_vec()),
    Lie::new(Where::Door, "half a length, and silence", |_| b"00".to_vec()).then(Then::Waits),
    Lie::new(Where::Door, "half a line", |_| b"0040abc".to_vec()),
    Lie::new(Where::Door, "a length that is none", |_| b"0003".to_vec()),
    Lie::new(Where::Door, "a length below nothing", |_| b"-001x".to_vec()),
    Lie::new(Where::Door, "a length with a sign", |_| b"+005x0000".to_vec()),
    Lie::new(Where::Door, "a length of letters", |_| b"zzzzzzzz".to_vec()),
    Lie::new(Where::Door, "too long a line", |_| [&b"fff5"[..], &[b'x'; 65_525]].concat()),
    Lie::new(Where::Door, "the longest line", |_| line([b'x'; 65_516])),
    Lie::new(Where::Door, "an end of all ends", |_| b"0002".to_vec()),
    Lie::new(Where::Door, "delimiters", |_| b"0001000100010001".to_vec()),
    Lie::new(Where::Door, "a flush", |_| b"0000".to_vec()).emptiness(),
    Lie::new(Where::Door, "empty lines", |_| b"00040004".repeat(100)).then(Then::GoesOn),
    Lie::new(Where::Door, "flushes without end", |_| b"0000".repeat(1000))
        .then(Then::GoesOn)
        .emptiness(),
    Lie::new(Where::Door, "noise", |_| vec![0xff; 4096]),
    Lie::new(Where::Door, "noise without end", |_| vec![0xff; 65_536]).then(Then::GoesOn),
    Lie::new(Where::Door, "nothing but zero bytes", |_| vec![0; 65_536]).then(Then::GoesOn),
    Lie::new(Where::Door, "another protocol", |_| b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec()),
    Lie::new(Where::Door, "an error", |_| line("ERR access denied")),
    Lie::new(Where::Door, "an error that moves the cursor", |_| line("ERR \x1b[2J\x1b[H\r\n\x07")),
    Lie::new(Where::Door, "a long error", |_| line(format!("ERR {}", "no ".repeat(20_000)))),
    Lie::new(Where::Door, "an error that is no text", |_| line(b"ERR \xff\xfe\x00\x80")),
    Lie::new(Where::Shown, "another hash", |facts| {
        let (id, name) = if facts.old.is_empty() {
            (NOTHING, "capabilities^{}")
        } else {
            (facts.old.as_str(), REF)
        };
        shown(&format!("{id}{}", "0".repeat(24)), name, &CAN.replace("sha1", "sha256"))
    }),
    Lie::new(Where::Shown, "a hash that there is not", |_| {
        shown(NOTHING, "capabilities^{}", &CAN.replace("sha1", "md5"))
    }),
    Lie::new(Where::Shown, "too short an id", |_| shown(&ONE[1..], REF, CAN)),
    Lie::new(Where::Shown, "too long an id", |_| shown(&format!("{ONE}1"), REF, CAN)),
    Lie::new(Where::Shown, "an id of the other hash's length", |_| {
        shown(&ONE.repeat(2)[..64], REF, CAN)
    }),
    Lie::new(Where::Shown, "an id of letters", |_| shown(&"z".repeat(40), REF, CAN)),
    Lie::new(Where::Shown, "the ref at nothing", |_| shown(NOTHING, REF, CAN)),
    Lie::new(Where::Shown, "no name", |_| shown(ONE, "", CAN)),
    Lie::new(Where::Shown, "no more than a name", |_| [line(REF), b"0000".to_vec()].concat()),
    Lie::new(Where::Shown, "a name that moves the cursor", |_| shown(ONE, "refs/\x1b[2J\r", CAN)),
    Lie::new(Where::Shown, "no abilities", |_| shown(NOTHING, "capabilities^{}", "")),
    Lie::new(Where::Shown, "no report", |_| {
        shown(NOTHING, "capabilities^{}", "delete-refs side-band-64k object-format=sha1")
    }),
    Lie::new(Where::Shown, "abilities without end", |_| {
        shown(NOTHING, "capabilities^{}", &"can=do ".repeat(9_000))
    }),
    Lie::new(Where::Shown, "half of it", |_| line(format!("{ONE} refs/heads/main\0{CAN}\n"))),
    Lie::new(Where::Shown, "half of it, and silence", |_| {
        line(format!("{ONE} refs/heads/main\0{CAN}\n"))
    })
    .then(Then::Waits),
    Lie::new(Where::Shown, "refs without end", |_| {
        (0..100).flat_map(|n| line(format!("{ONE} refs/claims/issue-1{n}\0{CAN}\n"))).collect()
    })
    .then(Then::GoesOn),
    Lie::new(Where::Shown, "long refs without end", |_| {
        line(format!("{ONE} refs/claims/{}\0{CAN}\n", "x".repeat(60_000)))
    })
    .then(Then::GoesOn),
    Lie::new(Where::Report, "nothing", |_| Vec::new()),
    Lie::new(Where::Report, "silence", |_| Vec::new()).then(Then::Waits),
    Lie::new(Where::Report, "a flush", |_| b"0000".to_vec()),
    Lie::new(Where::Report, "an empty report", |_| report(&[])),
    Lie::new(Where::Report, "unpack alone", |_| report(&["unpack ok\n"])),
    Lie::new(Where::Report, "no unpack", |facts| report(&[&ok(facts)])),
    Lie::new(Where::Report, "ok for another ref", |_| {
        report(&["unpack ok\n", "ok refs/claims/x\n"])
    }),
    Lie::new(Where::Report, "ok for a part of the name", |_| {
        report(&["unpack ok\n", "ok refs/claims/issue-4\n"])
    }),
    Lie::new(Where::Report, "ok for a longer name", |facts| {
        report(&["unpack ok\n", &format!("ok {}1\n", facts.refname)])
    }),
    Lie::new(Where::Report, "ok in capitals", |facts| {
        report(&["unpack ok\n", &format!("OK {}\n", facts.refname)])
    }),
    Lie::new(Where::Report, "ok for the name in capitals", |facts| {
        report(&["unpack ok\n", &format!("ok {}\n", facts.refname.to_uppercase())])
    }),
    Lie::new(Where::Report, "ok without a name", |_| report(&["unpack ok\n", "ok\n", "ok \n"])),
    Lie::new(Where::Report, "no for another ref", |_| {
        report(&["unpack ok\n", "ng refs/claims/x no\n"])
    }),
    Lie::new(Where::Report, "no", |facts| report(&["unpack ok\n", &ng(facts)])),
    Lie::new(Where::Report, "no without a reason", |facts| {
        report(&["unpack ok\n", &format!("ng {}\n", facts.refname)])
    }),
    Lie::new(Where::Report, "no, twice", |facts| report(&["unpack ok\n", &ng(facts), &ng(facts)])),
    Lie::new(Where::Report, "ok and no", |facts| report(&["unpack ok\n", &ok(facts), &ng(facts)])),
    Lie::new(Where::Report, "no and ok", |facts| report(&["unpack ok\n", &ng(facts), &ok(facts)])),
    Lie::new(Where::Report, "a pack that failed, and ok", |facts| {
        report(&["unpack index-pack abnormal exit\n", &ok(facts)])
    }),
    Lie::new(Where::Report, "ok", |facts| report(&["unpack ok\n", &ok(facts)])).ok(),
    Lie::new(Where::Report, "ok, twice", |facts| report(&["unpack ok\n", &ok(facts), &ok(facts)]))
        .ok(),
    Lie::new(Where::Report, "ok for all and sundry", |facts| {
        report(&["unpack ok\n", "ok refs/claims/x\n", &ok(facts)])
    })
    .ok(),
    Lie::new(Where::Report, "ok for another object", |facts| {
        report(&["unpack ok\n", &ok(facts), &format!("option new-oid {ONE}\n")])
    })
    .ok(),
    Lie::new(Where::Report, "ok for this object", |facts| {
        report(&["unpack ok\n", &ok(facts), &format!("option new-oid {}\n", facts.new)])
    })
    .ok(),
    Lie::new(Where::Report, "ok elsewhere", |facts| {
        report(&["unpack ok\n", &ok(facts), "option refname refs/pulls/1\n"])
    }),
    Lie::new(Where::Report, "an option of nothing", |facts| {
        report(&["unpack ok\n", "option refname refs/x\n", &ng(facts)])
    }),
    Lie::new(Where::Report, "half a report", |facts| {
        let whole = report(&["unpack ok\n", &ok(facts)]);
        whole[..whole.len() / 2].to_vec()
    }),
    Lie::new(Where::Report, "half a report, and silence", |facts| {
        let whole = report(&["unpack ok\n", &ok(facts)]);
        whole[..whole.len() / 2].to_vec()
    })
    .then(Then::Waits),
    Lie::new(Where::Report, "a name cut short", |_| {
        band(1, [lines(&["unpack ok\n"]), b"0030ok refs/claims/iss".to_vec()].concat())
    }),
    Lie::new(Where::Report, "a report beside the band", |facts| {
        [lines(&["unpack ok\n", &ng(facts)]), b"0000".to_vec()].concat()
    }),
    Lie::new(Where::Report, "a length that is none", |_| band(1, b"0003unpack ok")),
    Lie::new(Where::Report, "a length of letters", |_| band(1, b"zzzzunpack ok")),
    Lie::new(Where::Report, "an error on its band", |_| band(3, "out of disk\n")),
    Lie::new(Where::Report, "ok and an error on its band", |facts| {
        [band(1, lines(&["unpack ok\n"])), band(3, "died\n"), band(1, line(ok(facts)))].concat()
    }),
    Lie::new(Where::Report, "a band that there is not", |_| band(9, "hello")),
    Lie::new(Where::Report, "empty bands", |_| b"0004".repeat(10)),
    Lie::new(Where::Report, "words without end", |_| band(2, "hello \x1b[2J\n".repeat(1000)))
        .then(Then::GoesOn),
    Lie::new(Where::Report, "a word without end", |_| band(2, "x".repeat(60_000)))
        .then(Then::GoesOn),
    Lie::new(Where::Report, "a report without end", |_| {
        band(1, lines(&["ok refs/claims/x\n"]).repeat(1000))
    })
    .then(Then::GoesOn),
    Lie::new(Where::Listed, "nothing", |_| Vec::new()),
    Lie::new(Where::Listed, "silence", |_| Vec::new()).then(Then::Waits),
    Lie::new(Where::Listed, "an error", |_| line("ERR no refs today")),
    Lie::new(Where::Listed, "too short an id", |_| {
        [line(format!("{} {REF}\n", &ONE[1..])), b"0000".to_vec()].concat()
    }),
    Lie::new(Where::Listed, "an id of the other hash's length", |_| {
        [line(format!("{} {REF}\n", &ONE.repeat(2)[..64])), b"0000".to_vec()].concat()
    }),
    Lie::new(Where::Listed, "no id", |_| [line(format!("{REF}\n")), b"0000".to_vec()].concat()),
    Lie::new(Where::Listed, "unborn", |_| {
        [line(format!("unborn {REF}\n")), b"0000".to_vec()].concat()
    })
    .emptiness(),
    Lie::new(Where::Listed, "half of it", |_| format!("0045{ONE} refs/cl").into_bytes()),
    Lie::new(Where::Listed, "refs without end", |_| {
        (0..100).flat_map(|n| line(format!("{ONE} refs/claims/issue-42{n}\n"))).collect()
    })
    .then(Then::GoesOn),
    Lie::new(Where::Listed, "attributes without end", |_| {
        let many = "symref-target:refs/x peeled:y ".repeat(1_000);
        [line(format!("{ONE} refs/claims/x {many}\n")), b"0000".to_vec()].concat()
    })
    .emptiness(),
    Lie::new(Where::Read, "nothing", |_| Vec::new()),
    Lie::new(Where::Read, "silence", |_| Vec::new()).then(Then::Waits),
    Lie::new(Where::Read, "an error", |_| line("ERR not our ref")),
    Lie::new(Where::Read, "no pack", |_| b"0000".to_vec()),
    Lie::new(Where::Read, "a pack that is none", |_| {
        [line("packfile\n"), band(1, "this is no pack at all"), b"0000".to_vec()].concat()
    }),
    Lie::new(Where::Read, "an empty pack", |_| {
        // With the checksum that it should have.
        let sum =
            b"\x02\x9d\x08\x82\x3b\xd8\xa8\xea\xb5\x10\xad\x6a\xc7\x5c\x82\x3c\xfd\x3e\xd3\x1e";
        let pack = [&b"PACK\0\0\0\x02\0\0\0\0"[..], sum].concat();
        [line("packfile\n"), band(1, pack), b"0000".to_vec()].concat()
    }),
    Lie::new(Where::Read, "a pack of billions", |_| {
        let pack = b"PACK\0\0\0\x02\xff\xff\xff\xff".repeat(100);
        [line("packfile\n"), band(1, pack), b"0000".to_vec()].concat()
    }),
    Lie::new(Where::Read, "an object as large as can be", |_| {
        let pack = [&b"PACK\0\0\0\x02\0\0\0\x01"[..], b"\x9f\xff\xff\xff\xff\x7f\x78\x9c"].concat();
        [line("packfile\n"), band(1, pack), b"0000".to_vec()].concat()
    }),
    Lie::new(Where::Read, "an error in the middle", |_| {
        [line("packfile\n"), band(1, b"PACK\0\0\0\x02\0\0\0\x01"), band(3, "died\n")].concat()
    }),
    Lie::new(Where::Read, "words without end", |_| {
        [line("packfile\n"), band(2, "hello\n".repeat(1000))].concat()
    })
    .then(Then::GoesOn),
    Lie::new(Where::Read, "a pack without end", |_| {
        [line("packfile\n"), band(1, vec![b'x'; 60_000])].concat()
    })
    .then(Then::GoesOn),
];

/// Starts the liar in front of the real one; gives its port. Its threads end with the connections, and with the process.
fn start(lie: Lie, real: u16) -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            thread::spawn(move || {
                let server = TcpStream::connect(("127.0.0.1", real))?;
                serve(&client, &server, lie)
            });
        }
    });
    port
}

fn serve(mut client: &TcpStream, mut server: &TcpStream, lie: Lie) -> io::Result<()> {
    let mut request = raw(client)?;
    if lie.at == Where::Door {
        return tell(client, lie, &Facts::default());
    }
    server.write_all(&request)?;
    let reads = request[4..].starts_with(b"git-upload-pack");
    if reads != matches!(lie.at, Where::Listed | Where::Read) {
        return through(client, server);
    }
    if lie.at == Where::Shown {
        let shown = section(server)?;
        let at = find(&shown, REF.as_bytes());
        let old = at.and_then(|at| shown.get(at - 41..at - 1)).unwrap_or_default();
        let old = String::from_utf8_lossy(old).into_owned();
        return tell(client, lie, &Facts { old, ..Facts::default() });
    }
    client.write_all(&section(server)?)?;
    loop {
        request = section(client)?;
        let text = String::from_utf8_lossy(&request).into_owned();
        let now = match lie.at {
            Where::Listed => text.contains("command=ls-refs"),
            Where::Read => text.contains("command=fetch"),
            _ => true,
        };
        if now {
            let mut words = text.get(4..).unwrap_or_default().split([' ', '\0']);
            let mut word = || words.next().unwrap_or_default().to_owned();
            let facts = Facts { old: word(), new: word(), refname: word() };
            return tell(client, lie, &facts);
        }
        server.write_all(&request)?;
        client.write_all(&section(server)?)?;
    }
}

fn tell(mut client: &TcpStream, lie: Lie, facts: &Facts) -> io::Result<()> {
    let words = (lie.says)(facts);
    client.write_all(&words)?;
    match lie.then {
        Then::Closes => client.shutdown(Shutdown::Write)?,
        Then::Waits => {}
        Then::GoesOn => loop {
            client.write_all(&words)?;
        },
    }
    // What the client still has to say is read, or its kernel would throw our words away.
    io::copy(&mut client, &mut io::sink()).map(drop)
}

/// Lets everything through.
fn through(mut client: &TcpStream, mut server: &TcpStream) -> io::Result<()> {
    thread::scope(|scope| {
        scope.spawn(move || {
            let copied = io::copy(&mut client, &mut server);
            let _ = server.shutdown(Shutdown::Write);
            copied
        });
        let copied = io::copy(&mut server, &mut client);
        let _ = client.shutdown(Shutdown::Both);
        copied.map(drop)
    })
}

/// The next packet as it stands.
fn raw(mut from: &TcpStream) -> io::Result<Vec<u8>> {
    let mut packet = vec![0; 4];
    from.read_exact(&mut packet)?;
    let length = usize::from_str_radix(&String::from_utf8_lossy(&packet), 16);
    let length = length.map_err(io::Error::other)?;
    packet.resize(length.max(4), 0);
    from.read_exact(&mut packet[4..])?;
    Ok(packet)
}

/// The packets up to the next flush, and that.
fn section(from: &TcpStream) -> io::Result<Vec<u8>> {
    let mut all = Vec::new();
    loop {
        let packet = raw(from)?;
        all.extend_from_slice(&packet);
        if packet == b"0000" {
            return Ok(all);
        }
    }
}

fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    text.windows(part.len()).position(|window| window == part)
}

#[test]
fn a_server_that_lies() {
    let Some(real) = servers::daemon(servers::Daemon::Writable) else { return };
    let Some(stands) = stands(|| Stand::daemon(kinds::path())) else { return };
    let mut cases = Vec::new();
    for lie in LIES {
        cases.extend(ACTS.into_iter().filter(|act| lie.shows(*act)).map(|act| (lie, act)));
    }
    shuffle(&mut cases, &mut Chance::new(Size::asked_for().seed));
    try_all("server faults, lies", &stands, &cases, 90, |stand, &(lie, act)| {
        let before = stand.prepare(act);
        stand.cutter.redirect(start(*lie, real));
        let deadline = if lie.then == Then::Closes { DEADLINE } else { SHORT_DEADLINE };
        let acted = stand.act(act, before.as_deref(), deadline);
        let heal = || stand.cutter.redirect(real);
        let ended = stand.compare(act, before.as_deref(), acted, heal);
        let told = format!("{:?}: {}", lie.at, lie.name);
        (format!("{:?}", lie.at), ended.map_err(|what| format!("{told}: {what}")))
    });
}
