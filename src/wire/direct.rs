//! The link for local paths, `file://`, ssh and `git://`: we speak the protocol ourselves.
//!
//! Reading goes to upload-pack, writing to receive-pack, each over a connection of its own and never two at
//! once: a server may serve one client at a time. Processes are started and sockets opened here rather than by
//! gix-transport, which hides the child it starts: its words could not be heard nor its end brought about
//! when the deadline passes.

use std::{collections::HashMap, process::Command};

use gix::{
    ObjectId, Url,
    bstr::{BStr, BString},
};

use super::{
    Advertised, Link, LinkError, Manner, Push, Reported, Spoken, Tip, Updated,
    child::{self, clean_repository_environment},
    conversation::Conversation,
    deadline::Deadline,
    send_pack,
    session::{Session, find_refs, read_history, read_tips},
    ssh, tcp,
};
use crate::remote::Destination;

/// Who can be spoken to without a helper.
#[derive(Clone, Copy)]
pub enum Peer<'a> {
    /// git's programs on this machine, for the repository at a path.
    Local(&'a BStr),
    /// The same on another, through ssh.
    Ssh(&'a Url),
    /// A git-daemon.
    Git(&'a Url),
}

/// A link to a path, an ssh host or a git-daemon.
pub struct Direct<'a> {
    peer: Peer<'a>,
    to: &'a Destination,
    manner: &'a Manner<'a>,
    session: Option<Session>,
    /// A connection to receive-pack that was not spoken on yet.
    ready: Option<Result<Conversation, LinkError>>,
    spoken: Option<Spoken>,
}

/// The two services of a git server.
#[derive(Clone, Copy)]
enum Service {
    UploadPack,
    ReceivePack,
}

impl<'a> Direct<'a> {
    /// A link to `peer`, which is where `to` is; nothing is opened yet.
    pub fn new(peer: Peer<'a>, to: &'a Destination, manner: &'a Manner<'a>) -> Self {
        Self { peer, to, manner, session: None, ready: None, spoken: None }
    }

    fn connect(&self, service: Service) -> Result<Conversation, LinkError> {
        let deadline = Deadline::after(self.manner.timeout);
        let (program, configured, version) = match service {
            // Version 2 is for reading only; receive-pack is not told of it.
            Service::UploadPack => ("git-upload-pack", &self.to.upload_pack, Some("version=2")),
            Service::ReceivePack => ("git-receive-pack", &self.to.receive_pack, None),
        };
        let configured = configured.as_deref();
        let words = self.manner.words.fresh();
        let mut command = match self.peer {
            Peer::Local(path) => local(configured, program, path, version)?,
            Peer::Git(_) if self.manner.proxied => {
                let why = "core.gitProxy or GIT_PROXY_COMMAND is set, and git:// is not spoken through a proxy here";
                return Err(LinkError::Local(why.into()));
            }
            Peer::Git(url) => {
                let host =
                    url.host().ok_or_else(|| LinkError::Local("the URL names no host".into()))?;
                return tcp::connect(host, url.port, program, &url.path, version, deadline, words);
            }
            Peer::Ssh(url) => {
                let path: BString = gix::url::expand_path::for_shell(url.path.clone());
                let program = configured.unwrap_or(program);
                ssh::command(
                    &self.manner.ssh,
                    url,
                    program,
                    path.as_ref(),
                    version,
                    self.manner.terminal,
                    deadline,
                )?
            }
        };
        // What names our repository would mislead a server for another one, and programs that ssh starts.
        clean_repository_environment(&mut command);
        let (child, reader, writer) =
            child::spawn(command, self.manner.terminal, deadline, &words)?;
        Ok(Conversation::new(Box::new(reader), Box::new(writer), Some(child), deadline, words))
    }
}

/// The server's program, run here for a repository at `path`.
fn local(
    configured: Option<&str>,
    program: &str,
    path: &BStr,
    version: Option<&str>,
) -> Result<Command, LinkError> {
    let path = gix::path::from_bstr(path).map_err(|error| LinkError::Local(error.to_string()))?;
    let mut command = match configured {
        // A configured program is a shell snippet, as it is to git.
        Some(snippet) => {
            let mut command = Command::new("sh");
            command.arg("-c").arg(format!("{snippet} \"$@\"")).arg(snippet);
            command
        }
        // Through `git`, which finds its own programs wherever they are installed.
        None => {
            let mut command = Command::new("git");
            command.arg(program.trim_start_matches("git-"));
            command
        }
    };
    match version {
        Some(version) => command.env("GIT_PROTOCOL", version),
        None => command.env_remove("GIT_PROTOCOL"),
    };
    command.arg(path.as_os_str());
    Ok(command)
}

impl Link for Direct<'_> {
    fn list(&mut self, prefixes: &[&[u8]]) -> Result<Vec<Advertised>, LinkError> {
        self.hang_up();
        let (session, refs) = Session::list(self.connect(Service::UploadPack)?, prefixes)?;
        self.spoken = Some(session.spoken());
        self.session = Some(session);
        Ok(refs)
    }

    fn read(&mut self, tips: &[ObjectId]) -> Vec<Tip> {
        let mut session = self.session.take();
        let tips =
            read_tips(&mut session, || self.connect(Service::UploadPack), tips, &*self.manner.have);
        self.session = session;
        tips
    }

    fn history(
        &mut self,
        tip: ObjectId,
        parent: ObjectId,
        most: usize,
    ) -> Result<HashMap<ObjectId, Vec<u8>>, LinkError> {
        let mut session = self.session.take();
        let connect = || self.connect(Service::UploadPack);
        let commits = read_history(&mut session, connect, tip, parent, most, &*self.manner.have);
        self.session = session;
        commits
    }

    fn find(&mut self, names: &[&[u8]]) -> Result<Vec<Advertised>, LinkError> {
        let mut session = self.session.take();
        let found = find_refs(&mut session, || self.connect(Service::UploadPack), names);
        self.session = session;
        found
    }

    fn shown_for_writing(&mut self, names: &[&[u8]]) -> Result<Vec<Advertised>, LinkError> {
        self.hang_up();
        send_pack::shown(self.connect(Service::ReceivePack)?, names)
    }

    fn spoken(&self) -> Option<Spoken> {
        self.spoken
    }

    /// Here the program's start takes longest. Others' is not begun before the clone is ready: they may be busy, and count.
    fn make_ready(&mut self) {
        if let Peer::Local(_) = self.peer {
            self.hang_up();
            self.ready = Some(self.connect(Service::ReceivePack));
        }
    }

    fn update(&mut self, push: &Push<'_>) -> Vec<Updated> {
        let ready = self.ready.take();
        self.hang_up();
        match ready.unwrap_or_else(|| self.connect(Service::ReceivePack)) {
            Ok(conversation) => send_pack::update(conversation, push),
            Err(error) => push.all(&Reported::Unsent(error)),
        }
    }
}

impl Direct<'_> {
    fn hang_up(&mut self) {
        if let Some(session) = self.session.take() {
            session.hang_up();
        }
        if let Some(Ok(unused)) = self.ready.take() {
            unused.hang_up();
        }
    }
}

impl Drop for Direct<'_> {
    fn drop(&mut self) {
        self.hang_up();
    }
}
