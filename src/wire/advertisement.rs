//! What a server says first: its capabilities and, before protocol version 2, all its refs.
//!
//! Refs are looked at as they stream by and only the wanted ones are kept: a remote with a hundred thousand
//! other refs costs time, never memory.

use gix::{
    ObjectId,
    bstr::{BStr, BString, ByteSlice},
    hash::Kind,
};

use super::{
    Advertised, LinkError,
    conversation::{Conversation, Line},
};

/// The protocol that the server chose to speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// Versions 0 and 1: refs come with the greeting.
    Classic,
    /// Version 2: capabilities only, then commands.
    Two,
}

/// What the server is able to do, as it said so.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Capabilities(Vec<Vec<u8>>);

impl Capabilities {
    pub(super) fn of_line(rest_of_first_line: &[u8]) -> Self {
        Self(
            rest_of_first_line
                .split(|byte| *byte == b' ')
                .filter(|word| !word.is_empty())
                .map(<[u8]>::to_vec)
                .collect(),
        )
    }

    /// Whether `name` was offered, with or without a value.
    pub fn has(&self, name: &str) -> bool {
        self.value(name).is_some()
    }

    /// The value offered for `name`: empty where it came without one.
    pub fn value(&self, name: &str) -> Option<&BStr> {
        self.0.iter().find_map(|word| {
            let rest = word.strip_prefix(name.as_bytes())?;
            match rest.split_first() {
                None => Some(BStr::new("")),
                Some((b'=', value)) => Some(value.as_bstr()),
                Some(_) => None,
            }
        })
    }

    /// The hash that the repository uses; SHA-1 where it says nothing (gitprotocol-capabilities(5)).
    pub fn object_format(&self) -> Result<Kind, LinkError> {
        match self.value("object-format") {
            None => Ok(Kind::Sha1),
            Some(format) if format == "sha1" => Ok(Kind::Sha1),
            Some(format) if format == "sha256" => Ok(Kind::Sha256),
            Some(format) => Err(LinkError::Nonsense(format!("unknown object format '{format}'"))),
        }
    }
}

/// A server's greeting, with those of its refs that `wanted` asked for.
#[derive(Debug)]
pub struct Greeting {
    /// The protocol spoken from here on.
    pub version: Version,
    /// What it can do.
    pub capabilities: Capabilities,
    /// The repository's hash.
    pub kind: Kind,
    /// The wanted refs. Empty in version 2, where one has to ask.
    pub refs: Vec<Advertised>,
}

/// Reads the greeting to its end, keeping the refs whose names are `wanted`.
pub fn read(
    conversation: &mut Conversation,
    wanted: impl Fn(&BStr) -> bool,
) -> Result<Greeting, LinkError> {
    read_until(conversation, wanted, |_| false)
}

/// The same, to its end or to the first ref that is `enough`; the conversation is good for nothing but its end then.
pub fn read_until(
    conversation: &mut Conversation,
    wanted: impl Fn(&BStr) -> bool,
    enough: impl Fn(&Advertised) -> bool,
) -> Result<Greeting, LinkError> {
    let mut greeting = Greeting {
        version: Version::Classic,
        capabilities: Capabilities::default(),
        kind: Kind::Sha1,
        refs: Vec::new(),
    };
    let (mut first, mut kept) = (true, Kept::default());
    loop {
        let Some(line) = text(conversation)? else {
            return Ok(Greeting { refs: kept.refs, ..greeting });
        };
        if line == b"version 2" && first {
            return read_capabilities(conversation);
        }
        if line == b"version 1" && first {
            continue;
        }
        let end = if first { line.find_byte(0) } else { None };
        let line = match end {
            Some(end) => {
                greeting.capabilities = Capabilities::of_line(&line[end + 1..]);
                greeting.kind = greeting.capabilities.object_format()?;
                &line[..end]
            }
            None => line,
        };
        first = false;
        if line.starts_with(b"shallow ") {
            continue;
        }
        let (hex, name) = parts(line, greeting.kind)?;
        // `capabilities^{}` stands for an empty repository, `^{}` ends a peeled value, `.have` is no ref.
        if wanted(name) && !name.ends_with(b"^{}") && name != ".have" {
            kept.keep(name, id(hex, line, greeting.kind)?, None)?;
            if kept.refs.last().is_some_and(&enough) {
                return Ok(Greeting { refs: kept.refs, ..greeting });
            }
        }
    }
}

/// The next line of a greeting, without its line feed; none at its end. Any other end is one of something else: what was
/// not shown by then is not known to be absent.
fn text(conversation: &mut Conversation) -> Result<Option<&[u8]>, LinkError> {
    match conversation.next()? {
        Line::Flush => Ok(None),
        line @ Line::Data(_) => Ok(line.text()),
        Line::Delimiter | Line::ResponseEnd => {
            Err(LinkError::Nonsense("a greeting that does not end as one".into()))
        }
    }
}

fn read_capabilities(conversation: &mut Conversation) -> Result<Greeting, LinkError> {
    let mut capabilities = Capabilities::default();
    while let Some(line) = text(conversation)? {
        if capabilities.0.len() >= 1_000 {
            return Err(LinkError::Nonsense("capabilities without an end".into()));
        }
        capabilities.0.push(line.to_vec());
    }
    let kind = capabilities.object_format()?;
    Ok(Greeting { version: Version::Two, capabilities, kind, refs: Vec::new() })
}

/// One exchange of `ls-refs` (gitprotocol-v2(5)) for refs whose names begin with one of `prefixes`.
///
/// The prefixes are a hint that servers may ignore, so of what they send only the `wanted` names are kept.
pub fn ls_refs(
    conversation: &mut Conversation,
    greeting: &Greeting,
    prefixes: &[&[u8]],
    wanted: impl Fn(&BStr) -> bool,
) -> Result<Vec<Advertised>, LinkError> {
    command(conversation, greeting, "ls-refs")?;
    // Who deletes a symbolic ref deletes what it stands for.
    conversation.say(b"symrefs\n")?;
    for prefix in prefixes {
        conversation.say(&[b"ref-prefix ", *prefix, b"\n"].concat())?;
    }
    conversation.end()?;
    conversation.send()?;
    let mut kept = Kept::default();
    loop {
        match conversation.next()? {
            Line::Flush => return Ok(kept.refs),
            // git's http helper ends each response so; the one before this may still be unread.
            Line::ResponseEnd => {}
            Line::Delimiter => return Err(LinkError::Nonsense("a delimiter among refs".into())),
            line @ Line::Data(_) => {
                let line = line.text().unwrap_or_default();
                if line.starts_with(b"unborn ") {
                    continue;
                }
                let (hex, name) = parts(line, greeting.kind)?;
                if wanted(name) {
                    kept.keep(name, id(hex, line, greeting.kind)?, symref(line))?;
                }
            }
        }
    }
}

/// The value of the `symref-target` attribute of a version 2 line.
fn symref(line: &[u8]) -> Option<BString> {
    let mut words = line.split(|byte| *byte == b' ').skip(2);
    words.find_map(|word| word.strip_prefix(b"symref-target:")).map(Into::into)
}

/// More refs in the namespace of claims than this, or longer names, are no claims but an attack on our memory.
const MOST_REFS: usize = 100_000;
const MOST_BYTES: usize = 8 * 1024 * 1024;

/// The refs that are kept, within bounds.
#[derive(Default)]
pub struct Kept {
    /// Those refs.
    pub refs: Vec<Advertised>,
    bytes: usize,
}

impl Kept {
    /// Keeps one more, or says that these cannot be claims.
    pub fn keep(
        &mut self,
        name: &BStr,
        id: ObjectId,
        symref: Option<BString>,
    ) -> Result<(), LinkError> {
        if id.is_null() {
            return Err(LinkError::Nonsense("a ref that points at nothing".into()));
        }
        self.bytes += name.len() + symref.as_ref().map_or(0, |target| target.len());
        if self.refs.len() >= MOST_REFS || self.bytes > MOST_BYTES {
            return Err(LinkError::Nonsense("too many refs in the namespace of claims".into()));
        }
        self.refs.push(Advertised { name: name.to_owned(), id, symref });
        Ok(())
    }
}

/// Begins a version 2 command, up to and including the delimiter before its arguments.
pub fn command(
    conversation: &mut Conversation,
    greeting: &Greeting,
    name: &str,
) -> Result<(), LinkError> {
    if !greeting.capabilities.has(name) {
        return Err(LinkError::Nonsense(format!("the server offers no '{name}'")));
    }
    conversation.say(format!("command={name}\n").as_bytes())?;
    if greeting.capabilities.has("agent") {
        conversation.say(format!("agent={AGENT}\n").as_bytes())?;
    }
    if greeting.capabilities.has("object-format") {
        conversation.say(format!("object-format={}\n", greeting.kind).as_bytes())?;
    }
    conversation.delimit()
}

/// How we introduce ourselves to servers.
pub const AGENT: &str = concat!("git-claim/", env!("CARGO_PKG_VERSION"));

/// `<id> SP <name>`, and in version 2 attributes that we did not ask for.
pub fn ref_line(line: &[u8], kind: Kind) -> Result<(ObjectId, &BStr), LinkError> {
    let (hex, name) = parts(line, kind)?;
    Ok((id(hex, line, kind)?, name))
}

/// The same, the id as it came: of the refs that nobody wants it is not worth being read.
fn parts(line: &[u8], kind: Kind) -> Result<(&[u8], &BStr), LinkError> {
    let parted = line.split_at_checked(kind.len_in_hex()).and_then(|(hex, rest)| {
        let rest = rest.strip_prefix(b" ")?;
        let name = &rest[..rest.find_byte(b' ').unwrap_or(rest.len())];
        (!name.is_empty()).then_some((hex, name.as_bstr()))
    });
    parted.ok_or_else(|| no_ref_line(line, kind))
}

/// The id that `line` begins with.
fn id(hex: &[u8], line: &[u8], kind: Kind) -> Result<ObjectId, LinkError> {
    ObjectId::from_hex(hex).map_err(|_| no_ref_line(line, kind))
}

fn no_ref_line(line: &[u8], kind: Kind) -> LinkError {
    let shown = line[..line.len().min(200)].as_bstr().to_string();
    LinkError::Nonsense(format!("not a line about a {kind} ref: {}", shown.escape_debug()))
}

#[cfg(test)]
mod tests {
    use std::{io::Cursor, time::Duration};

    use super::*;
    use crate::wire::{deadline::Deadline, words::Words};

    fn hears(bytes: &[u8]) -> Conversation {
        Conversation::new(
            Box::new(Cursor::new(bytes.to_vec())),
            Box::new(Vec::new()),
            None,
            Deadline::after(Duration::from_secs(5)),
            Words::new(|_| {}),
        )
    }

    const ONE: &str = "1111111111111111111111111111111111111111";

    fn packet(payload: &str) -> String {
        format!("{:04x}{payload}", payload.len() + 4)
    }

    #[test]
    fn a_classic_greeting_is_sifted() {
        let bytes = packet(&format!("{ONE} HEAD\0report-status object-format=sha1 agent=git/2\n"))
            + &packet(&format!("{ONE} .have\n"))
            + &packet(&format!("{ONE} refs/claims/issue-1\n"))
            + &packet(&format!("{ONE} refs/heads/refs/claims/issue-1\n"))
            + "0000";
        let greeting = read(&mut hears(bytes.as_bytes()), |name| name == "refs/claims/issue-1")
            .expect("a greeting");
        assert_eq!(greeting.version, Version::Classic);
        assert!(greeting.capabilities.has("report-status"));
        assert!(!greeting.capabilities.has("report"));
        assert_eq!(greeting.capabilities.value("agent"), Some("git/2".into()));
        assert_eq!(greeting.refs.len(), 1);
    }

    #[test]
    fn an_empty_repository_has_capabilities_and_no_refs() {
        let zero = "0".repeat(64);
        let bytes =
            packet(&format!("{zero} capabilities^{{}}\0delete-refs object-format=sha256")) + "0000";
        let greeting = read(&mut hears(bytes.as_bytes()), |_| true).expect("a greeting");
        assert_eq!((greeting.kind, greeting.refs.len()), (Kind::Sha256, 0));
        assert_eq!(read(&mut hears(b"0000"), |_| true).expect("older servers").refs.len(), 0);
    }

    #[test]
    fn a_greeting_that_ends_as_something_else_shows_nothing_to_be_absent() {
        let classic = packet(&format!("{ONE} HEAD\0report-status\n"));
        for begun in ["".to_owned(), classic, packet("version 2\n") + &packet("ls-refs\n")] {
            assert!(read(&mut hears(format!("{begun}0000").as_bytes()), |_| true).is_ok());
            for end in ["0001", "0002"] {
                let bytes = format!("{begun}{end}");
                let greeting = read(&mut hears(bytes.as_bytes()), |_| true);
                assert!(matches!(greeting, Err(LinkError::Nonsense(_))), "{bytes}");
            }
        }
    }

    #[test]
    fn a_ref_at_nothing_is_nobodys_claim() {
        let zero = "0".repeat(40);
        let bytes = packet(&format!("{zero} refs/claims/issue-1\0report-status\n")) + "0000";
        let greeting = read(&mut hears(bytes.as_bytes()), |_| true);
        assert!(matches!(greeting, Err(LinkError::Nonsense(_))), "{greeting:?}");
    }

    #[test]
    fn what_is_kept_is_bounded_by_number_and_by_bytes() {
        let id = ObjectId::from_hex(ONE.as_bytes()).expect("hex");
        let mut kept = Kept::default();
        let long = "x".repeat(60_000);
        let fitting =
            (0..).take_while(|_| kept.keep(long.as_str().into(), id, None).is_ok()).count();
        assert_eq!(fitting, MOST_BYTES / long.len());
        let mut kept = Kept::default();
        assert_eq!(
            (0..).take_while(|_| kept.keep("x".into(), id, None).is_ok()).count(),
            MOST_REFS
        );
    }

    #[test]
    fn a_symbolic_ref_is_told_from_others() {
        let line =
            |attributes: &str| symref(format!("{ONE} refs/claims/issue-1{attributes}").as_bytes());
        assert_eq!(line(" symref-target:refs/heads/main peeled:1"), Some("refs/heads/main".into()));
        assert_eq!(line(""), None);
    }

    #[test]
    fn nonsense_is_an_error_and_never_a_panic() {
        for bytes in [
            "",
            "00",
            "0003",
            "zzzz",
            "ffff",
            "0004",
            "000ahello\n",
            &packet(&format!("{ONE} refs/x\0object-format=sha256\n")),
            &packet("not an id refs/x\0\n"),
            &packet("ERR access denied"),
            &packet(&format!("{ONE} \0caps\n")),
        ] {
            assert!(read(&mut hears(bytes.as_bytes()), |_| true).is_err(), "{bytes:?}");
        }
    }
}
