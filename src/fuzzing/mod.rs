//! What holds for any input whatever: one function for each thing that reads what others wrote.
//!
//! A function fails by a panic. The same ones are run by the tests, on the samples in `fixtures/` and on mutations of
//! them, and by libFuzzer (`fuzz/`), which sets `cfg(fuzzing)`. They are no part of the library: without one of the two
//! this module does not exist.

#[cfg(test)]
mod mutations;

use std::time::Duration;

use chrono::DateTime;
use gix::{
    bstr::{BStr, ByteSlice},
    hash::Kind,
};

use crate::{
    checkout::Checkout,
    claim::{
        chain::{Chain, first_parent},
        claim_ref::ClaimRef,
        commit::Draft,
        name::ClaimName,
        prefix::Prefix,
        record::Reading,
        token::Token,
    },
    escape, held, output,
    remote::{Destination, Way},
    settings::{self, Asked, Settings},
    wait::Patience,
    wire,
};

/// The name of a target and of its samples' folder, and what is run.
type Target = (&'static str, fn(&[u8]));

/// All of them.
pub const TARGETS: [Target; 10] = [
    ("advertisement", wire::fuzzing::advertisement),
    ("duration", duration),
    ("held", held_record),
    ("helper", wire::fuzzing::helper),
    ("lines", wire::fuzzing::lines),
    ("ls-refs", wire::fuzzing::ls_refs),
    ("name", name),
    ("record", record),
    ("report", wire::fuzzing::report),
    ("settings", settings),
];

/// Runs one of them.
pub fn run(target: &str, input: &[u8]) {
    match TARGETS.iter().find(|(name, _)| *name == target) {
        Some((_, function)) => function(input),
        None => panic!("there is no target '{target}'"),
    }
}

/// Nothing in it acts on a terminal.
fn assert_safe(text: &str) {
    assert!(!text.chars().any(escape::acts), "{text:?}");
}

/// A commit that somebody pushed: what is read of it is bounded and is told safely, and a record that it holds is, written
/// by us, the same record.
fn record(raw: &[u8]) {
    let reading = Reading::of_commit(raw);
    match &reading {
        Reading::Claim(record) => {
            assert_eq!(record.normalised(), **record);
            let draft = Draft {
                message: record.message(),
                author: record.holder.clone(),
                at: record.claimed_at,
                parent: first_parent(raw),
            };
            let again = draft.encode(Kind::Sha1).data;
            assert_eq!(Reading::of_commit(&again), reading);
            assert!(again.len() < 64 * 1024, "{}", again.len());
        }
        Reading::ByHand(by_hand) => {
            assert_eq!(by_hand.who.cleaned(), by_hand.who);
            assert!(by_hand.subject.len() < 4 * 1024);
            assert!(!by_hand.subject.contains(char::is_control));
        }
        Reading::Unreadable(why) => assert!(why.len() < 1024),
    }
    let Ok(id) = gix::objs::compute_hash(Kind::Sha1, gix::objs::Kind::Commit, raw) else { return };
    let chain = Chain::of(&[(id, raw.to_vec())]);
    let claim = ClaimRef::new(&Prefix::default(), &ClaimName::parse("4").expect("a name"));
    let (lines, json) =
        output::fuzzing::told(claim, id, reading.clone(), chain, DateTime::UNIX_EPOCH);
    lines.iter().for_each(|line| assert_safe(line));
    assert_safe(&json);
    let read: serde_json::Value = serde_json::from_str(&json).expect("valid JSON");
    let claim = &read["claims"][0];
    match reading {
        Reading::Claim(record) => {
            assert_eq!(claim["note"].as_str(), record.note.as_deref());
            assert_eq!(claim["token"], record.token.to_string());
            assert_eq!(claim["holder"]["name"], record.holder.name);
        }
        Reading::ByHand(by_hand) => assert_eq!(claim["subject"], by_hand.subject),
        Reading::Unreadable(why) => assert_eq!(claim["unreadable"], why),
    }
}

/// A name as it is typed, and the name of a ref as it is listed: one thing has one spelling.
fn name(raw: &[u8]) {
    let prefix = Prefix::default();
    if let Some(claim) = ClaimRef::listed(&prefix, raw.as_bstr()) {
        assert_eq!(claim.full(), raw.as_bstr());
        assert_safe(&escape::line(&claim.short()));
        if let Some(name) = claim.name() {
            assert_eq!(ClaimRef::new(&prefix, &name), claim);
        }
    }
    let Ok(typed) = raw.to_str() else { return };
    match ClaimName::parse(typed) {
        Ok(name) => {
            let text = name.as_str();
            assert_eq!(ClaimName::parse(text).as_ref(), Ok(&name));
            // The paths of URLs are no words of ours.
            if !typed.contains('/') {
                assert_eq!(ClaimName::parse(&typed.to_ascii_uppercase()).as_ref(), Ok(&name));
            }
            let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
            assert!(text.len() <= 100 && text.bytes().next().is_some_and(plain), "{text}");
            assert!(text.bytes().all(|byte| plain(byte) || b"._-".contains(&byte)), "{text}");
            let claim = ClaimRef::new(&prefix, &name);
            assert!(gix::validate::reference::name(claim.full()).is_ok(), "{text}");
            assert_eq!(ClaimRef::listed(&prefix, claim.full()).as_ref(), Some(&claim));
            assert_eq!(claim.name(), Some(name));
        }
        Err(error) => assert_short_and_safe(&error.to_string()),
    }
    match ClaimRef::typed(&prefix, typed) {
        Ok(claim) => {
            assert!(claim.full().starts_with(prefix.as_str().as_bytes()));
            assert!(claim.asked().full().starts_with(b"refs/claims-asked/"));
            let full = claim.full().to_str().expect("as it was typed");
            assert_eq!(ClaimRef::typed(&prefix, full).as_ref(), Ok(&claim));
        }
        Err(error) => assert_short_and_safe(&error.to_string()),
    }
    match Prefix::parse(typed) {
        Ok(prefix) => assert_eq!(Prefix::parse(prefix.as_str()), Ok(prefix)),
        Err(error) => assert_short_and_safe(&error.to_string()),
    }
}

fn assert_short_and_safe(text: &str) {
    assert!(text.len() < 2_000, "{}", text.len());
    assert_safe(text);
}

/// The file of a held record: it is read whole or not at all.
fn held_record(raw: &[u8]) {
    let record = match held::parse(raw) {
        Err(error) => return assert_safe(&escape::line(&error.to_string())),
        Ok(record) => record,
    };
    assert_eq!(record.version, held::VERSION);
    let again = serde_json::to_vec_pretty(&record).expect("it is written");
    assert_eq!(held::parse(&again).expect("it reads back"), record);
    assert_eq!(record.token.to_string().parse::<Token>().ok(), Some(record.token));
    if let Some(tip) = record.tip() {
        assert!(record.tip.as_ref().is_some_and(|hex| hex.eq_ignore_ascii_case(&tip.to_string())));
    }
}

/// What `git config --list -z` prints, down to the remote that is spoken to.
fn settings(raw: &[u8]) {
    let checkout = Checkout::listed(raw);
    let settings = match Settings::gather(Asked::default(), &checkout) {
        Ok(settings) => settings,
        Err(error) => return assert_safe(&error.to_string()),
    };
    let year = Duration::from_secs(366 * 24 * 60 * 60);
    assert!(!settings.timeout.is_zero() && settings.timeout <= year);
    assert!(settings.stale_after <= year);
    assert!(!settings.polls.first.is_zero() && !settings.polls.most.is_zero());
    assert!(settings.prefix.as_str().starts_with("refs/") && settings.prefix.as_str().len() > 6);
    let destination = match Destination::choose(&settings, &checkout, "/".as_ref()) {
        Ok(destination) => destination,
        Err(error) => {
            assert_safe(&error.to_string());
            return assert_safe(&error.hint().unwrap_or_default());
        }
    };
    assert_destination(&destination, &checkout);
}

/// It is no option to a program, git allows its transport, and what is shown of it tells no password.
fn assert_destination(destination: &Destination, checkout: &Checkout) {
    let Destination { url, way, shown, key, hints, .. } = destination;
    let allowed = |transport: &str| {
        let own = checkout.config().string(&format!("protocol.{transport}.allow"));
        own.or_else(|| checkout.config().string("protocol.allow")).map(|value| value.to_lowercase())
    };
    let dashed = |text: &Option<String>| text.as_ref().is_some_and(|text| text.starts_with('-'));
    assert!(!url.starts_with(b"-") && url.find_byteset(b"\0\r\n").is_none());
    let transport = match way {
        Way::Local(path) => {
            assert!(path.starts_with(b"/") || path.starts_with(b"~"), "{path}");
            "file"
        }
        Way::Ssh(url) => {
            assert!(!dashed(&url.host) && !dashed(&url.user) && !url.path.starts_with(b"-"));
            "ssh"
        }
        Way::Git(url) => {
            assert!(!dashed(&url.host) && !url.path.starts_with(b"-"));
            assert!(url.path.find_byteset(b"\0\n").is_none());
            "git"
        }
        Way::Helper(name) => {
            assert!(!name.starts_with('-') && !name.contains('/'));
            name
        }
    };
    let policy = allowed(transport);
    assert_ne!(policy.as_deref(), Some(&b"never"[..]), "{transport}");
    assert!(transport != "ext" || policy.is_some());
    assert_safe(shown);
    hints.iter().chain(&destination.fetch).for_each(|text| assert_safe(text));
    assert_eq!(key.len(), 32);
    if let Some(password) = password(url.as_ref()) {
        assert!(!shown.contains(&password), "{shown}");
    }
}

/// The password of a URL, if it is one that could not be anything else in it.
fn password(url: &BStr) -> Option<String> {
    let password = gix::url::parse(url).ok()?.password?;
    let once = url.find_iter(&password).count() == 1;
    (password.len() > 5 && once).then_some(password)
}

/// A length of time is no longer than a year, and reads back as it is written.
fn duration(raw: &[u8]) {
    let Ok(text) = raw.to_str() else { return };
    match settings::duration(text) {
        Ok(time) => {
            assert!(time <= Duration::from_secs(366 * 24 * 60 * 60));
            let again = humantime::format_duration(time).to_string();
            assert_eq!(settings::duration(&again), Ok(time), "{again}");
            let patience = settings::patience(text);
            let expected = if time.is_zero() { Patience::None } else { Patience::For(time) };
            assert_eq!(patience, Ok(expected));
        }
        Err(error) => {
            assert_safe(&error.to_string());
            let forever = settings::patience(text) == Ok(Patience::Forever);
            assert_eq!(forever, text.trim() == "forever");
        }
    }
}
