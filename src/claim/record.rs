//! What a claim's commit says, for people and for programs, and the message that says it.
//!
//! Writing normalises: whatever the fields hold, the message has the shape of format 1 and reads back as the normalised
//! record. Reading never fails: a commit that is no record of ours is a value too (see [`Reading`]), because claims made by
//! hand, by other tools, or by somebody hostile are listed, shown and cleared like any other.

use std::fmt;

use chrono::{DateTime, SecondsFormat, Utc};

use super::{reading, text, token::Token};

/// The names of the trailers.
pub(super) mod key {
    pub(crate) const CLAIM: &str = "Claim";
    pub(crate) const FORMAT: &str = "Claim-Format";
    pub(crate) const BY: &str = "Claimed-By";
    pub(crate) const ON: &str = "Claimed-On";
    pub(crate) const AT: &str = "Claimed-At";
    pub(crate) const TOKEN: &str = "Claim-Token";
    pub(crate) const RENEWED: &str = "Renewed-At";
    pub(crate) const RELEASED: &str = "Released-At";
    pub(crate) const WAITED: &str = "Waited-Since";
    pub(crate) const HEARTBEAT: &str = "Heartbeat";
    pub(crate) const TOOK_OVER: &str = "Took-Over";
    pub(crate) const REASON: &str = "Reason";
    pub(crate) const HEAD: &str = "Head";
    pub(crate) const BRANCH: &str = "Branch";
    pub(crate) const JOB: &str = "Job";
    pub(crate) const PROCESS: &str = "Process";
    /// All of them; others are left to later versions and other tools.
    pub(crate) const ALL: [&str; 16] = [
        CLAIM, FORMAT, BY, ON, AT, TOKEN, RENEWED, RELEASED, WAITED, HEARTBEAT, TOOK_OVER, REASON,
        HEAD, BRANCH, JOB, PROCESS,
    ];
}

/// Stands for a text that must not be empty and is.
const UNKNOWN: &str = "unknown";

/// Somebody, as git names people.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Person {
    /// The name for people.
    pub name: String,
    /// The e-mail address; may be empty.
    pub email: String,
}

impl Person {
    /// Reads `Name <email>`. Text without brackets is all name. The result is [cleaned](Person::cleaned).
    pub fn parse(text: &str) -> Self {
        let text = text.trim();
        let (name, email) =
            text.strip_suffix('>').and_then(|text| text.rsplit_once('<')).unwrap_or((text, ""));
        Person { name: name.to_owned(), email: email.to_owned() }.cleaned()
    }

    /// The person without what would break a commit's header: no angle brackets, control characters or line ends, no
    /// punctuation at the ends, as git cleans names. The name is never empty: without one it is the part of the
    /// address before the `@`, or `unknown`.
    #[must_use]
    pub fn cleaned(&self) -> Self {
        let email = text::ident(&self.email);
        let local = email.split('@').next().unwrap_or_default();
        let name = [text::ident(&self.name), text::ident(local)]
            .into_iter()
            .find(|name| !name.is_empty())
            .unwrap_or_else(|| UNKNOWN.to_owned());
        Person { name, email }
    }
}

impl fmt::Display for Person {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} <{}>", self.name, self.email)
    }
}

/// A process, described so that a later one with the same number is not mistaken for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// When it started, in the system's own words; empty if unknown.
    pub start: String,
    /// Which boot of the host that was; empty if unknown.
    pub boot: String,
}

/// The claim that a takeover ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TookOver {
    /// The id of its tip.
    pub id: String,
    /// Who held it.
    pub who: String,
}

/// What the holder of a claim recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// What is claimed, as the ref spells it after the prefix.
    pub claim: String,
    /// Why, in the holder's words; several lines.
    pub note: Option<String>,
    /// Who holds the claim.
    pub holder: Person,
    /// The host that the holder works on.
    pub host: Option<String>,
    /// When the claim was taken, or taken over.
    pub claimed_at: DateTime<Utc>,
    /// What makes this claim different from every other.
    pub token: Token,
    /// The time of the last renewal.
    pub renewed_at: Option<DateTime<Utc>>,
    /// When it was released, where that is marked rather than done by deleting the ref: nobody holds it any more.
    pub released_at: Option<DateTime<Utc>>,
    /// Since when its holder waited for it, where the newest of those who wait is to have it.
    pub waited_since: Option<DateTime<Utc>>,
    /// The promised seconds between renewals.
    pub heartbeat: Option<u32>,
    /// The claim that this one took over.
    pub took_over: Option<TookOver>,
    /// Why it took over.
    pub reason: Option<String>,
    /// The commit that the work starts from.
    pub head: Option<String>,
    /// The branch that the work happens on.
    pub branch: Option<String>,
    /// The URL of the CI job that holds the claim.
    pub job: Option<String>,
    /// The process that holds the claim.
    pub process: Option<Process>,
}

impl TookOver {
    /// The end of a claim with the tip `id`, whose record is `reading`.
    pub fn of(id: impl ToString, reading: Option<&Reading>) -> Self {
        let who = reading.and_then(Reading::holder).map(ToString::to_string);
        TookOver { id: id.to_string(), who: who.unwrap_or_else(|| UNKNOWN.to_owned()) }
    }
}

impl Record {
    /// A record with only what each must have.
    pub fn new(claim: String, holder: Person, claimed_at: DateTime<Utc>, token: Token) -> Self {
        Record {
            claim,
            note: None,
            holder,
            host: None,
            claimed_at,
            token,
            renewed_at: None,
            released_at: None,
            waited_since: None,
            heartbeat: None,
            took_over: None,
            reason: None,
            head: None,
            branch: None,
            job: None,
            process: None,
        }
    }

    /// The commit message: a subject for people, the note, and the trailers of format 1.
    pub fn message(&self) -> String {
        let record = self.normalised();
        let mut message = format!("claim {} by {}", record.claim, record.holder.name);
        if let Some(host) = &record.host {
            message.push_str(" on ");
            message.push_str(host);
        }
        message.push_str("\n\n");
        if let Some(note) = &record.note {
            message.push_str(note);
            message.push_str("\n\n");
        }
        for (key, value) in record.trailers() {
            message.push_str(key);
            message.push_str(": ");
            message.push_str(&value);
            message.push('\n');
        }
        message
    }

    fn trailers(self) -> impl Iterator<Item = (&'static str, String)> {
        let or_dash = |word: &str| if word.is_empty() { "-".to_owned() } else { word.to_owned() };
        let took_over =
            self.took_over.map(|over| format!("{} {}", over.id, over.who).trim_end().to_owned());
        let process = self.process.map(|process| {
            format!("{} {} {}", process.pid, or_dash(&process.start), or_dash(&process.boot))
        });
        [
            (key::CLAIM, Some(self.claim)),
            (key::FORMAT, Some("1".to_owned())),
            (key::BY, Some(self.holder.to_string())),
            (key::ON, self.host),
            (key::AT, Some(timestamp(self.claimed_at))),
            (key::TOKEN, Some(self.token.to_string())),
            (key::RENEWED, self.renewed_at.map(timestamp)),
            (key::RELEASED, self.released_at.map(timestamp)),
            (key::WAITED, self.waited_since.map(timestamp)),
            (key::HEARTBEAT, self.heartbeat.map(|seconds| seconds.to_string())),
            (key::TOOK_OVER, took_over),
            (key::REASON, self.reason),
            (key::HEAD, self.head),
            (key::BRANCH, self.branch),
            (key::JOB, self.job),
            (key::PROCESS, process),
        ]
        .into_iter()
        .filter_map(|(key, value)| Some((key, value?)))
    }

    /// The record as its message can carry it: values on one line, empty ones absent, whole seconds of the years 0 to
    /// 9999, overlong text cut.
    #[must_use]
    pub fn normalised(&self) -> Self {
        let optional = |value: &Option<String>| value.as_deref().and_then(text::optional_line);
        Record {
            claim: text::optional_line(&self.claim).unwrap_or_else(|| UNKNOWN.to_owned()),
            note: self.note.as_deref().and_then(text::note),
            holder: self.holder.cleaned(),
            host: optional(&self.host),
            claimed_at: whole_seconds(self.claimed_at),
            token: self.token,
            renewed_at: self.renewed_at.map(whole_seconds),
            released_at: self.released_at.map(whole_seconds),
            waited_since: self.waited_since.map(whole_seconds),
            heartbeat: self.heartbeat.filter(|seconds| *seconds > 0),
            took_over: self
                .took_over
                .as_ref()
                .map(|over| TookOver { id: text::word(&over.id), who: text::line(&over.who) })
                .filter(|over| !over.id.is_empty()),
            reason: optional(&self.reason),
            head: optional(&self.head),
            branch: optional(&self.branch),
            job: optional(&self.job),
            process: self.process.as_ref().map(|process| Process {
                pid: process.pid,
                start: dash_is_empty(text::word(&process.start)),
                boot: dash_is_empty(text::word(&process.boot)),
            }),
        }
    }

    /// The last time that the holder is known to have acted on the claim.
    pub fn last_sign_of_life(&self) -> DateTime<Utc> {
        self.renewed_at.map_or(self.claimed_at, |renewed| renewed.max(self.claimed_at))
    }
}

/// A lone dash holds the place of an unknown word.
pub(super) fn dash_is_empty(word: String) -> String {
    if word == "-" { String::new() } else { word }
}

fn timestamp(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Secs, true)
}

/// `at` in whole seconds, within the years that RFC 3339 can write.
pub(super) fn whole_seconds(at: DateTime<Utc>) -> DateTime<Utc> {
    const FIRST: i64 = -62_167_219_200;
    const LAST: i64 = 253_402_300_799;
    DateTime::from_timestamp(at.timestamp().clamp(FIRST, LAST), 0).unwrap_or(at)
}

/// What is known of a claim that `git-claim` did not make, from its commit's header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ByHand {
    /// The commit's author.
    pub who: Person,
    /// The time of the commit; `None` if it names none that makes sense.
    pub at: Option<DateTime<Utc>>,
    /// The first line of the message; may be empty.
    pub subject: String,
}

/// What a claim's commit turned out to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reading {
    /// A record of format 1.
    Claim(Box<Record>),
    /// A commit without a record.
    ByHand(ByHand),
    /// No commit, or a record that is damaged or of a later format. Says why, for people.
    Unreadable(String),
}

impl Reading {
    /// Reads the bytes of a commit, without the object header. It never fails, takes time linear in the length of `raw`
    /// and keeps a bounded part of it.
    pub fn of_commit(raw: &[u8]) -> Self {
        reading::read(raw)
    }

    /// The token, if this is a record.
    pub fn token(&self) -> Option<Token> {
        match self {
            Reading::Claim(record) => Some(record.token),
            Reading::ByHand(_) | Reading::Unreadable(_) => None,
        }
    }

    /// Who holds the claim, as far as it says so.
    pub fn holder(&self) -> Option<&Person> {
        match self {
            Reading::Claim(record) => Some(&record.holder),
            Reading::ByHand(by_hand) => Some(&by_hand.who),
            Reading::Unreadable(_) => None,
        }
    }

    /// When it was released, if the record says so: then the ref is there and nobody holds the claim.
    pub fn released(&self) -> Option<DateTime<Utc>> {
        match self {
            Reading::Claim(record) => record.released_at,
            Reading::ByHand(_) | Reading::Unreadable(_) => None,
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::{collection::vec, option, prelude::*};

    use super::{
        super::{commit::Draft, testing::git},
        *,
    };

    fn at(text: &str) -> DateTime<Utc> {
        DateTime::parse_from_rfc3339(text).expect("a time").to_utc()
    }

    /// A record with only what must be there.
    pub(crate) fn bare() -> Record {
        Record::new(
            "issue-42".into(),
            Person { name: "Alice Example".into(), email: "alice@example.com".into() },
            at("2026-11-30T16:34:00Z"),
            Token::from_bytes([0x5e; 16]),
        )
    }

    /// A record with everything.
    pub(crate) fn full() -> Record {
        Record {
            note: Some(
                "the login loop, from the hourly sweep\n\nSee-Also: elsewhere\n---\nCc: nobody"
                    .into(),
            ),
            host: Some("ci-7".into()),
            renewed_at: Some(at("2026-11-30T16:36:00Z")),
            released_at: Some(at("2026-11-30T16:38:00Z")),
            waited_since: Some(at("2026-11-30T16:30:00Z")),
            heartbeat: Some(120),
            took_over: Some(TookOver {
                id: "4b825dc6".into(),
                who: "Bob <bob@example.com>".into(),
            }),
            reason: Some("silent since Monday".into()),
            head: Some("9c1185a5".into()),
            branch: Some("fix/login".into()),
            job: Some("https://ci.example.org/jobs/7".into()),
            process: Some(Process { pid: 4711, start: "889123".into(), boot: String::new() }),
            ..bare()
        }
    }

    pub(crate) fn commit_of(message: String) -> Vec<u8> {
        let author = Person { name: "Author".into(), email: "author@example.com".into() };
        let draft = Draft { message, author, at: at("2026-12-01T00:00:00Z"), parent: None };
        draft.encode(gix::hash::Kind::Sha1).data
    }

    #[test]
    fn a_bare_message_has_a_subject_and_the_trailers_that_must_be() {
        assert_eq!(
            bare().message(),
            "claim issue-42 by Alice Example\n\
             \n\
             Claim: issue-42\n\
             Claim-Format: 1\n\
             Claimed-By: Alice Example <alice@example.com>\n\
             Claimed-At: 2026-11-30T16:34:00Z\n\
             Claim-Token: 5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e\n"
        );
    }

    const ALL_TRAILERS: &str = "\
Claim: issue-42
Claim-Format: 1
Claimed-By: Alice Example <alice@example.com>
Claimed-On: ci-7
Claimed-At: 2026-11-30T16:34:00Z
Claim-Token: 5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e
Renewed-At: 2026-11-30T16:36:00Z
Released-At: 2026-11-30T16:38:00Z
Waited-Since: 2026-11-30T16:30:00Z
Heartbeat: 120
Took-Over: 4b825dc6 Bob <bob@example.com>
Reason: silent since Monday
Head: 9c1185a5
Branch: fix/login
Job: https://ci.example.org/jobs/7
Process: 4711 889123 -
";

    #[test]
    fn a_full_message_has_everything_in_its_order() {
        assert_eq!(
            full().message(),
            format!(
                "claim issue-42 by Alice Example on ci-7\n\n\
                 the login loop, from the hourly sweep\n\nSee-Also: elsewhere\n---\nCc: nobody\n\n{ALL_TRAILERS}"
            )
        );
    }

    #[test]
    fn git_reads_the_trailers() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        // A line of three dashes in a note ends a patch's message, unless git is told that this is none.
        let args = ["interpret-trailers", "--parse", "--no-divider"];
        let output = git(dir.path(), &args, full().message().as_bytes());
        assert_eq!(String::from_utf8_lossy(&output.stdout), ALL_TRAILERS);

        let plain = Record { note: Some("the login loop".into()), ..full() };
        let output =
            git(dir.path(), &["interpret-trailers", "--parse"], plain.message().as_bytes());
        assert_eq!(String::from_utf8_lossy(&output.stdout), ALL_TRAILERS);
    }

    #[test]
    fn values_are_normalised() {
        let rough = Record {
            claim: " \n".into(),
            note: Some("\r\n  a \r\nb\x07\n\n".into()),
            holder: Person { name: String::new(), email: "ci-bot@example.com".into() },
            host: Some("ci\n7\0".into()),
            claimed_at: at("2026-11-30T17:34:00.75+01:00"),
            heartbeat: Some(0),
            took_over: Some(TookOver { id: "\n".into(), who: "x".into() }),
            reason: Some(" \t ".into()),
            process: Some(Process { pid: 1, start: "Mon Nov 30".into(), boot: "-".into() }),
            ..bare()
        };
        let normalised = Record {
            claim: "unknown".into(),
            note: Some("  a\nb".into()),
            holder: Person { name: "ci-bot".into(), email: "ci-bot@example.com".into() },
            host: Some("ci 7".into()),
            process: Some(Process { pid: 1, start: "MonNov30".into(), boot: String::new() }),
            ..bare()
        };
        assert_eq!(rough.normalised(), normalised);
    }

    #[test]
    fn people_are_read_and_cleaned() {
        let person = |name: &str, email: &str| Person { name: name.into(), email: email.into() };
        for (text, read) in [
            ("Alice Example <alice@example.com>", person("Alice Example", "alice@example.com")),
            (" Alice\t<a@b> ", person("Alice", "a@b")),
            ("bot-7", person("bot-7", "")),
            ("<bot@ci>", person("bot", "bot@ci")),
            ("A <x> <a@b>", person("A x", "a@b")),
            ("A <a@b", person("A a@b", "")),
            ("<@>", person("unknown", "@")),
            ("", person("unknown", "")),
        ] {
            assert_eq!(Person::parse(text), read, "{text:?}");
        }
    }

    #[test]
    fn the_last_sign_of_life_is_the_later_time() {
        assert_eq!(bare().last_sign_of_life(), at("2026-11-30T16:34:00Z"));
        assert_eq!(full().last_sign_of_life(), at("2026-11-30T16:36:00Z"));
        let odd = Record { renewed_at: Some(at("2020-01-01T00:00:00Z")), ..bare() };
        assert_eq!(odd.last_sign_of_life(), at("2026-11-30T16:34:00Z"));
    }

    /// One line, or almost one.
    fn value() -> impl Strategy<Value = String> {
        prop_oneof![
            "\\PC{0,16}",
            any::<String>(),
            "[ \\t\\r\\n<>:.\\-\u{202e}\u{2028}a]{0,6}",
            (2000..3000_usize).prop_map(|n| "é".repeat(n)),
        ]
    }

    /// Notes that try to look like trailers.
    fn note() -> impl Strategy<Value = String> {
        let line = prop_oneof![
            Just(String::new()),
            Just("---".to_owned()),
            Just("Claim-Format: 2".to_owned()),
            Just("Claim-Token: 00000000000000000000000000000000".to_owned()),
            Just(" folded: \u{202e}sdrawkcab\u{202c}".to_owned()),
            Just("Signed-off-by: x".to_owned()),
            Just("\u{a0} \t".to_owned()),
            (1..20_000_usize).prop_map(|n| "long ".repeat(n)),
            value(),
        ];
        (vec(line, 0..8), prop_oneof![Just("\n"), Just("\r\n")])
            .prop_map(|(lines, end)| lines.join(end))
    }

    fn time() -> impl Strategy<Value = DateTime<Utc>> {
        let any_time = (-8_334_601_228_800..=8_210_266_876_799_i64, 0..1_999_999_999_u32)
            .prop_filter_map("chrono's range", |(secs, nanos)| {
                DateTime::from_timestamp(secs, nanos)
            });
        prop_oneof![
            any_time,
            (0..4_000_000_000_i64)
                .prop_filter_map("chrono's range", |secs| DateTime::from_timestamp(secs, 0))
        ]
    }

    fn person() -> impl Strategy<Value = Person> {
        (value(), value()).prop_map(|(name, email)| Person { name, email })
    }

    fn record() -> impl Strategy<Value = Record> {
        let first =
            (value(), option::of(note()), person(), option::of(value()), time(), any::<[u8; 16]>());
        let then = (
            (option::of(time()), option::of(time()), option::of(time())),
            option::of(any::<u32>()),
            option::of((value(), value()).prop_map(|(id, who)| TookOver { id, who })),
            option::of(value()),
            option::of(value()),
            option::of(value()),
            option::of(value()),
            option::of((any::<u32>(), value(), value()).prop_map(|(pid, start, boot)| Process {
                pid,
                start,
                boot,
            })),
        );
        (first, then).prop_map(|(first, then)| {
            let (claim, note, holder, host, claimed_at, token) = first;
            let (
                (renewed_at, released_at, waited_since),
                heartbeat,
                took_over,
                reason,
                head,
                branch,
                job,
                process,
            ) = then;
            Record {
                claim,
                note,
                holder,
                host,
                claimed_at,
                token: Token::from_bytes(token),
                renewed_at,
                released_at,
                waited_since,
                heartbeat,
                took_over,
                reason,
                head,
                branch,
                job,
                process,
            }
        })
    }

    proptest! {
        #[test]
        fn a_record_reads_back_as_it_was_normalised(record in record()) {
            let normalised = record.normalised();
            prop_assert_eq!(&normalised.normalised(), &normalised);
            prop_assert_eq!(record.message(), normalised.message());
            let reading = Reading::of_commit(&commit_of(record.message()));
            prop_assert_eq!(reading.token(), Some(record.token));
            prop_assert_eq!(reading, Reading::Claim(Box::new(normalised)));
        }

        #[test]
        fn the_trailers_of_any_record_are_short_enough_to_be_read(record in record()) {
            let message = Record { note: None, ..record }.message();
            prop_assert!(message.len() < reading::MAX_TRAILERS);
        }

        #[test]
        fn a_person_reads_back_cleaned(person in person()) {
            let cleaned = person.cleaned();
            prop_assert_eq!(cleaned.cleaned(), cleaned.clone());
            prop_assert_eq!(Person::parse(&cleaned.to_string()), cleaned);
        }
    }
}
