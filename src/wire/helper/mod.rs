//! The link for `https://`, `http://` and any `<helper>::`: git's own remote helpers (gitremote-helpers(7)).
//!
//! TLS, proxies, cookies, redirects and credentials stay git's: what `git push` can reach, this can reach with
//! the same settings. Reading is protocol version 2 through `stateless-connect` where the helper and the server
//! can; writing is the helper's `push`, after its `list for-push` was compared with the expected values. The value
//! listed is the value that the helper sends along (measured), so the server compares it again.
//!
//! The helper runs in the clone, for its configuration, but with an object directory of its own: what it is to
//! push is laid there and what it fetches lands there, and the clone gains nothing.

pub(crate) mod answers;
mod process;

use std::{
    collections::{HashMap, HashSet},
    process::Command,
};

use gix::{
    ObjectId,
    bstr::{BStr, ByteSlice},
    hash::Kind,
    objs::{self, Find, Write as _},
    odb::{self, loose},
};

use super::{
    Advertised, Edit, Link, LinkError, Manner, Protocol, Push, Reported, Spoken, Tip, Updated,
    child::Terminal,
    conversation::Conversation,
    deadline::Deadline,
    leavings::{Place, Sent},
    push::Sieve,
    send_pack::{self, NOT_TOGETHER},
    session::{Session, find_refs, read_history, read_tips},
    words,
};
use crate::{claim::chain, remote::Destination};
use answers::Answer;
use process::Process;

/// A link through `git remote-<name>`.
pub struct Helper<'a> {
    name: &'a str,
    to: &'a Destination,
    manner: &'a Manner<'a>,
    open: Open,
    spoken: Option<Spoken>,
    /// The hash of the remote, once it was told.
    hash: Option<Kind>,
}

/// What the last listing left behind.
enum Open {
    Nothing,
    /// A connection to upload-pack.
    Session(Box<Session>),
    /// What a helper listed that cannot hand us a connection; it fetches by name.
    Listed(Vec<Advertised>),
}

impl Open {
    fn left(session: Option<Session>) -> Self {
        session.map_or(Open::Nothing, |session| Open::Session(Box::new(session)))
    }
}

/// How far a helper takes us.
enum Reached {
    UploadPack(Conversation),
    HelperOnly(Process),
}

/// The object directory that a helper is given instead of the clone's.
#[derive(Clone, Copy)]
enum Objects<'a> {
    None,
    ToPush(&'a Place),
    ToFetch(&'a Place),
}

impl<'a> Helper<'a> {
    /// A link to `to` through the helper called `name`; nothing is started yet.
    pub fn new(name: &'a str, to: &'a Destination, manner: &'a Manner<'a>) -> Self {
        Self { name, to, manner, open: Open::Nothing, spoken: None, hash: None }
    }

    fn start(&self, objects: Objects<'_>) -> Result<Process, LinkError> {
        let deadline = Deadline::after(self.manner.timeout);
        let mut command = Command::new("git");
        // A push certificate and a negotiation are for pushes of people's work; both would come from configuration.
        command.args(["-c", "push.gpgSign=false", "-c", "push.negotiate=false"]);
        command.arg(format!("remote-{}", self.name));
        let url = gix::path::from_bstr(self.to.url.as_bstr())
            .map_err(|error| LinkError::Local(error.to_string()))?;
        // Of `<helper>::<address>` the helper is given the address only.
        let address =
            self.to.url.strip_prefix(format!("{}::", self.name).as_bytes()).unwrap_or(&self.to.url);
        let address = gix::path::from_bstr(address.as_bstr())
            .map_err(|error| LinkError::Local(error.to_string()))?;
        match &self.to.name {
            Some(name) => command.arg(name),
            None => command.arg(url.as_os_str()),
        };
        command.arg(address.as_os_str());
        command.env("GIT_NO_REPLACE_OBJECTS", "1").env("GIT_NO_LAZY_FETCH", "1");
        if self.manner.terminal == Terminal::No {
            command.env("GIT_TERMINAL_PROMPT", "0");
        }
        if let Some(git_dir) = &self.manner.git_dir {
            command.env("GIT_DIR", git_dir);
        }
        match objects {
            Objects::None => {}
            Objects::ToPush(place) => {
                command.env("GIT_OBJECT_DIRECTORY", place.path());
                if self.manner.git_dir.is_none() {
                    command.env("GIT_DIR", place.path().join(REPOSITORY));
                }
                // Not the clone's own boundary of history: see `lay_out`.
                command.env("GIT_SHALLOW_FILE", place.path().join(SHALLOW));
            }
            Objects::ToFetch(place) => {
                command.env("GIT_OBJECT_DIRECTORY", place.path());
                // What the clone has need not travel.
                if let Some(objects) = &self.manner.objects {
                    command.env("GIT_ALTERNATE_OBJECT_DIRECTORIES", objects);
                }
            }
        }
        Process::start(command, self.manner.terminal, deadline, self.manner.words.fresh())
    }

    /// A conversation with upload-pack through the helper, or the helper itself where it cannot give us one.
    fn connect(&self) -> Result<Reached, LinkError> {
        let mut process = self.start(Objects::None)?;
        for way in ["stateless-connect", "connect"] {
            if process.can(way) {
                process.say(&format!("{way} git-upload-pack"))?;
                return match process.line()?.as_str() {
                    "" => Ok(Reached::UploadPack(process.into_conversation())),
                    "fallback" => Ok(Reached::HelperOnly(process)),
                    other => {
                        Err(LinkError::Nonsense(format!("git remote-{} says '{other}'", self.name)))
                    }
                };
            }
        }
        Ok(Reached::HelperOnly(process))
    }

    /// A conversation with receive-pack, where the helper can give us one. Those for the web cannot, and are not asked.
    ///
    /// Such a helper may run the server itself, so it gets no object directory of ours in its environment.
    fn receive_pack(&self) -> Result<Option<Conversation>, LinkError> {
        if matches!(self.name, "http" | "https") {
            return Ok(None);
        }
        let mut process = self.start(Objects::None)?;
        if process.can("connect") {
            process.say("connect git-receive-pack")?;
            if process.line()?.is_empty() {
                return Ok(Some(process.into_conversation()));
            }
        }
        Ok(None)
    }

    /// A place for what is to be pushed; around it a repository, where we stand in none: git pushes from nothing else.
    fn place_to_push(&mut self) -> Result<Place, LinkError> {
        let place = place()?;
        if self.manner.git_dir.is_none() {
            let kind = match self.hash {
                Some(kind) => kind,
                None => self.pusher(Objects::None)?.list(" for-push", |_| false)?.1,
            };
            self.hash = Some(kind);
            make_repository(&place, kind).map_err(|error| {
                LinkError::Local(format!("cannot make a temporary repository: {error}"))
            })?;
        }
        Ok(place)
    }

    /// A helper that pushes by itself.
    fn pusher(&self, objects: Objects<'_>) -> Result<Process, LinkError> {
        let process = self.start(objects)?;
        if process.can("push") {
            return Ok(process);
        }
        Err(LinkError::Local(format!("git remote-{} can neither push nor connect", self.name)))
    }

    fn push(
        &self,
        process: &mut Process,
        push: &Push<'_>,
        objects: &Place,
    ) -> Result<Vec<Updated>, LinkError> {
        if push.atomic && !process.grants("atomic true")? {
            let reason = format!("git remote-{} cannot move several refs together", self.name);
            return Ok(push.all(&Reported::Refused { sent: None, reason }));
        }
        let sieve = Sieve::new(push);
        let (refs, kind) = process.list(" for-push", |name| sieve.wants(name))?;
        Ok(sieve.carry_out(&refs, |edits| {
            self.answers(process, edits, push.atomic, objects, kind)
                .unwrap_or_else(|error| vec![Reported::Unsent(error); edits.len()])
        }))
    }

    /// Has the helper send `edits`, and hears what became of each. An error means that nothing was sent.
    fn answers(
        &self,
        process: &mut Process,
        edits: &[&Edit<'_>],
        atomic: bool,
        objects: &Place,
        kind: Kind,
    ) -> Result<Vec<Reported>, LinkError> {
        if let Some(clone) = self.manner.hash.filter(|clone| *clone != kind) {
            return Err(LinkError::Local(format!(
                "the clone is of {clone} and the remote of {kind}, which git remote-{} cannot bring together",
                self.name
            )));
        }
        let sent = lay_out(objects, edits, kind).map_err(|error| {
            LinkError::Local(format!(
                "cannot lay out the claim in {}: {error}",
                objects.path().display()
            ))
        })?;
        let mut commands = String::new();
        for (edit, sent) in edits.iter().zip(&sent) {
            let Ok(refname) = edit.refname.to_str() else {
                return Err(LinkError::Local(format!(
                    "git remote-{} takes no such ref name",
                    self.name
                )));
            };
            let source = sent.map(|id| id.to_string()).unwrap_or_default();
            commands.push_str(&format!("push {source}:{refname}\n"));
        }
        // From here on the server may have the commands.
        let _sent = Sent::begin();
        let pushed = edits.iter().map(|edit| edit.refname).collect();
        let said = process.say(&commands).and_then(|()| process.answers(&pushed));
        let answer = |(edit, sent): (&&Edit<'_>, Option<ObjectId>)| match said
            .as_ref()
            .map_err(LinkError::clone)
            .and_then(|said| said.of(edit.refname))
        {
            Ok(Answer::Ok) => Reported::Done(sent),
            Ok(Answer::Error(reason)) => Reported::Refused { sent, reason },
            // Before it has sent anything.
            Err(LinkError::Unreachable(said)) if atomic && words::not_atomic(&said) => {
                Reported::Refused { sent: None, reason: NOT_TOGETHER.into() }
            }
            Err(error) => Reported::Lost { sent, error },
        };
        Ok(edits.iter().zip(sent).map(answer).collect())
    }

    /// Has a helper without a connection for us fetch `tips`, and all that is behind them, by the names they were
    /// listed under; they lie in `objects` then.
    fn fetch(
        &self,
        listed: &[Advertised],
        tips: &[ObjectId],
        objects: &Place,
    ) -> Result<Option<odb::Handle>, LinkError> {
        let mut process = self.start(Objects::ToFetch(objects))?;
        if process.can("option") {
            // Where the server can leave out trees; otherwise what the clone has is left out, by the alternates.
            process.say("option filter tree:0")?;
            process.line()?;
        }
        // The helper resolves names by its own listing.
        process.list("", |_| false)?;
        for tip in tips {
            if let Some(listed) = listed.iter().find(|listed| listed.id == *tip)
                && let Ok(name) = listed.name.to_str()
            {
                process.say_more(&format!("fetch {tip} {name}"))?;
            }
        }
        process.say("")?;
        while !process.line()?.is_empty() {}
        drop(process);
        Ok(tips.first().and_then(|tip| odb::at(objects.path(), tip.kind()).ok()))
    }

    fn fetch_tips(&self, listed: &[Advertised], tips: &[ObjectId]) -> Result<Vec<Tip>, LinkError> {
        let objects = place()?;
        let store = self.fetch(listed, tips, &objects)?;
        let read = |id: &ObjectId| store.as_ref().and_then(|store| read_object(store, *id));
        let missing = || Tip::NotRead("the remote did not send it".into());
        Ok(tips.iter().map(|id| read(id).unwrap_or_else(missing)).collect())
    }

    fn fetch_history(
        &self,
        listed: &[Advertised],
        tip: ObjectId,
        parent: ObjectId,
        most: usize,
    ) -> Result<HashMap<ObjectId, Vec<u8>>, LinkError> {
        let objects = place()?;
        let store = self.fetch(listed, &[tip], &objects)?;
        let commit = |id| match store.as_ref().and_then(|store| read_object(store, id)) {
            Some(Tip::Commit(raw)) => Some(raw),
            Some(Tip::Other(_) | Tip::NotRead(_)) | None => None,
        };
        Ok(chain::line(parent, most, commit).into_iter().collect())
    }

    /// Another connection to upload-pack, where the first was one.
    fn connect_again(&self) -> Result<Conversation, LinkError> {
        match self.connect()? {
            Reached::UploadPack(conversation) => Ok(conversation),
            Reached::HelperOnly(_) => {
                Err(LinkError::Nonsense("the helper gives no second connection".into()))
            }
        }
    }
}

impl Link for Helper<'_> {
    fn list(&mut self, prefixes: &[&[u8]]) -> Result<Vec<Advertised>, LinkError> {
        self.open = Open::Nothing;
        let (open, refs, spoken) = match self.connect()? {
            Reached::UploadPack(conversation) => {
                let (session, refs) = Session::list(conversation, prefixes)?;
                let spoken = session.spoken();
                (Open::Session(Box::new(session)), refs, spoken)
            }
            Reached::HelperOnly(mut process) => {
                let wanted = |name: &BStr| prefixes.iter().any(|prefix| name.starts_with(prefix));
                let (refs, hash) = process.list("", wanted)?;
                let spoken = Spoken { protocol: Protocol::Helper, hash };
                (Open::Listed(refs.clone()), refs, spoken)
            }
        };
        self.open = open;
        self.spoken = Some(spoken);
        self.hash = Some(spoken.hash);
        Ok(refs)
    }

    fn read(&mut self, tips: &[ObjectId]) -> Vec<Tip> {
        let mut session = match std::mem::replace(&mut self.open, Open::Nothing) {
            Open::Listed(listed) => {
                let fetched = self.fetch_tips(&listed, tips);
                self.open = Open::Listed(listed);
                return fetched
                    .unwrap_or_else(|error| vec![Tip::NotRead(error.to_string()); tips.len()]);
            }
            Open::Session(session) => Some(*session),
            Open::Nothing => None,
        };
        let tips = read_tips(&mut session, || self.connect_again(), tips, &*self.manner.have);
        self.open = Open::left(session);
        tips
    }

    fn history(
        &mut self,
        tip: ObjectId,
        parent: ObjectId,
        most: usize,
    ) -> Result<HashMap<ObjectId, Vec<u8>>, LinkError> {
        let mut session = match std::mem::replace(&mut self.open, Open::Nothing) {
            Open::Listed(listed) => {
                let found = self.fetch_history(&listed, tip, parent, most);
                self.open = Open::Listed(listed);
                return found;
            }
            Open::Session(session) => Some(*session),
            Open::Nothing => None,
        };
        let connect = || self.connect_again();
        let commits = read_history(&mut session, connect, tip, parent, most, &*self.manner.have);
        self.open = Open::left(session);
        commits
    }

    fn find(&mut self, names: &[&[u8]]) -> Result<Vec<Advertised>, LinkError> {
        let (mut session, mut fresh) = (None, None);
        match std::mem::replace(&mut self.open, Open::Nothing) {
            Open::Session(open) => session = Some(*open),
            Open::Listed(_) | Open::Nothing => match self.connect()? {
                Reached::UploadPack(conversation) => fresh = Some(conversation),
                Reached::HelperOnly(mut process) => {
                    let exactly: HashSet<&[u8]> = names.iter().copied().collect();
                    return Ok(process.list("", |name| exactly.contains(name.as_bytes()))?.0);
                }
            },
        }
        let connect = || fresh.take().map_or_else(|| self.connect_again(), Ok);
        let found = find_refs(&mut session, connect, names);
        self.open = Open::left(session);
        found
    }

    fn shown_for_writing(&mut self, names: &[&[u8]]) -> Result<Vec<Advertised>, LinkError> {
        self.open = Open::Nothing;
        if let Some(conversation) = self.receive_pack()? {
            return send_pack::shown(conversation, names);
        }
        let exactly: HashSet<&[u8]> = names.iter().copied().collect();
        let wanted = |name: &BStr| exactly.contains(name.as_bytes());
        Ok(self.pusher(Objects::None)?.list(" for-push", wanted)?.0)
    }

    fn spoken(&self) -> Option<Spoken> {
        self.spoken
    }

    fn update(&mut self, push: &Push<'_>) -> Vec<Updated> {
        self.open = Open::Nothing;
        let updated = self.receive_pack().and_then(|conversation| match conversation {
            Some(conversation) => Ok(send_pack::update(conversation, push)),
            None => {
                let objects = self.place_to_push()?;
                let mut process = self.pusher(Objects::ToPush(&objects))?;
                self.push(&mut process, push, &objects)
            }
        });
        updated.unwrap_or_else(|error| push.all(&Reported::Unsent(error)))
    }
}

fn place() -> Result<Place, LinkError> {
    Place::new()
        .map_err(|error| LinkError::Local(format!("no place for temporary objects: {error}")))
}

/// The repository around the temporary objects, and inside of their place.
const REPOSITORY: &str = "repository";

/// As little as git takes for a repository (gitrepository-layout(5)).
fn make_repository(place: &Place, kind: Kind) -> std::io::Result<()> {
    let folder = place.path().join(REPOSITORY);
    std::fs::create_dir_all(folder.join("refs"))?;
    std::fs::create_dir(folder.join("objects"))?;
    std::fs::write(folder.join("HEAD"), "ref: refs/heads/none\n")?;
    let config = format!(
        "[core]\n\trepositoryFormatVersion = 1\n\tbare = true\n[extensions]\n\tobjectFormat = {kind}\n"
    );
    std::fs::write(folder.join("config"), config)
}

/// The boundary of history, in the place of temporary objects.
const SHALLOW: &str = "shallow";

/// Writes the commits, the empty tree and the commits to be replaced as loose objects. Gives the id of each commit, in the
/// order of `edits`.
///
/// git's client side wants to see by itself that an update is a fast-forward, and walks on to the parents of the
/// commit to be replaced (measured with 2.47: a second renewal fails without them). There the history laid out here ends.
fn lay_out(objects: &Place, edits: &[&Edit<'_>], kind: Kind) -> gix::Result<Vec<Option<ObjectId>>> {
    let store = loose::Store::at(objects.path(), kind);
    if edits.iter().any(|edit| edit.new.is_some()) {
        store.write_buf(objs::Kind::Tree, b"")?;
    }
    let mut boundary = String::new();
    let mut sent = Vec::with_capacity(edits.len());
    for edit in edits {
        let Some(draft) = edit.new else {
            sent.push(None);
            continue;
        };
        if let Some(base) = edit.base {
            let id = store.write_buf(objs::Kind::Commit, base)?;
            boundary.push_str(&format!("{id}\n"));
        }
        sent.push(Some(store.write_buf(objs::Kind::Commit, &draft.encode(kind).data)?));
    }
    if !boundary.is_empty() {
        std::fs::write(objects.path().join(SHALLOW), boundary).map_err(gix::Error::from_error)?;
    }
    Ok(sent)
}

fn read_object(store: &odb::Handle, id: ObjectId) -> Option<Tip> {
    let mut buffer = Vec::new();
    let object = store.try_find(&id, &mut buffer).ok()??;
    Some(match object.kind {
        objs::Kind::Commit => Tip::Commit(object.data.to_vec()),
        other => Tip::Other(other),
    })
}
