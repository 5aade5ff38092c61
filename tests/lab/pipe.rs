//! A stand-in for ssh: the command of the other side runs here, at the end of a pipe of which every byte is git's.
//!
//! The real ssh and the real sshd are used elsewhere. Between them only what is encrypted could be cut; here the cut is
//! between two bytes of the protocol itself. The servers at the end are the real ones.

use std::{
    io::{self, Read},
    net::{TcpListener, TcpStream},
    path::PathBuf,
    process::{Command, Stdio},
    thread,
};

use crate::support::{Sandbox, servers};

/// What is started instead of ssh. Its first line says what is to be run. As ssh does, it ends with 255 where the
/// connection is lost, if it is told so.
const SSH: &str = r#"exec perl -e '
    use Socket;
    my $command = pop @ARGV;
    my ($port) = map { $ARGV[$_ + 1] } grep { $ARGV[$_] eq "-p" } 0 .. $#ARGV;
    socket(my $there, PF_INET, SOCK_STREAM, 0) or die;
    connect($there, sockaddr_in($port, INADDR_LOOPBACK)) or lost();
    sub lost { print STDERR "Connection to 127.0.0.1 lost: $!\n"; kill "KILL", $up if $up; exit 255 }
    sub put { my ($to, $bytes) = @_;
        while (length $bytes) { my $n = syswrite $to, $bytes; $n or return 0; substr($bytes, 0, $n) = ""; } 1 }
    $SIG{PIPE} = "IGNORE";
    put($there, ($ENV{GIT_PROTOCOL} || "") . "\t$command\n") or lost();
    $up = fork;
    if (!$up) {
        my $bytes;
        while (sysread STDIN, $bytes, 65536) { put($there, $bytes) or last }
        shutdown $there, 1;
        exit 0;
    }
    my ($bytes, $n);
    while ($n = sysread $there, $bytes, 65536) { put(*STDOUT, $bytes) or last }
    defined $n or lost();
    kill "KILL", $up;
    exit 0;
' -- "$@""#;

/// The command to start instead of ssh; `None` where there is no perl to run it.
pub(super) fn ssh(sandbox: &Sandbox) -> Option<PathBuf> {
    let perl = Command::new("perl").args(["-MSocket", "-e", ""]).status();
    if !perl.is_ok_and(|status| status.success()) {
        return servers::skip("there is no perl");
    }
    Some(sandbox.script("ssh", SSH))
}

/// Starts the other side; gives its port.
pub(super) fn listen() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            thread::spawn(move || serve(client));
        }
    });
    port
}

fn serve(mut client: TcpStream) -> io::Result<()> {
    let (mut line, mut byte) = (Vec::new(), [0]);
    loop {
        client.read_exact(&mut byte)?;
        if byte == *b"\n" {
            break;
        }
        line.extend(byte);
    }
    let line = String::from_utf8(line).map_err(io::Error::other)?;
    let (protocol, command) = line.split_once('\t').unwrap_or_default();
    let socket = || client.try_clone().map(std::os::fd::OwnedFd::from).map(Stdio::from);
    let mut child = Command::new("sh")
        .args(["-c", command])
        .env_clear()
        .envs(servers::server_env())
        .env("GIT_PROTOCOL", protocol)
        .stdin(socket()?)
        .stdout(socket()?)
        .stderr(Stdio::null())
        .spawn()?;
    // From here on the child alone has it: its end is the connection's.
    drop(client);
    child.wait().map(drop)
}
