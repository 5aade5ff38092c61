//! What a look at one ref found, and whose it is by what the clone can prove.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use gix::ObjectId;

use crate::{
    claim::{
        chain,
        claim_ref::ClaimRef,
        record::{Reading, Record},
        token::Token,
    },
    held::{HeldRecord, Records},
    output::Shown,
    verdict::{Verdict, Whose},
    wire::Tip,
};

/// What a ref holds.
#[derive(Debug, Clone)]
pub struct Seen {
    /// The commit's id.
    pub id: ObjectId,
    /// The record there.
    pub record: Shown,
    /// The raw commit there.
    pub commit: Option<Vec<u8>>,
    /// The ref that this one stands for: it is no claim, and deleting it would delete that one.
    pub symref: Option<String>,
    /// What is at the ref beside it, by which a holder is asked to stop; it may be about a claim of before.
    pub request: Option<Box<Request>>,
}

/// What a look found, by the claim; nothing is said about a claim that has no ref, nor about one that was not looked at.
pub type SeenAt = HashMap<ClaimRef, Seen>;

/// What is at the ref by which a holder is asked to stop.
#[derive(Debug, Clone)]
pub struct Request {
    /// The commit's id.
    pub id: ObjectId,
    /// The record there.
    pub record: Shown,
    /// The raw commit there.
    pub commit: Option<Vec<u8>>,
}

impl Request {
    /// What `tip` says.
    pub fn at(id: ObjectId, tip: Tip) -> Self {
        let Seen { record, commit, .. } = Seen::of(id, tip);
        Self { id, record, commit }
    }

    /// Who asks, and why, if it is the holder with `token` or, for a claim that has none, of the tip `id` who is asked.
    pub fn of(&self, token: Option<Token>, id: ObjectId) -> Option<&Record> {
        let Some(Reading::Claim(ask)) = self.record.reading() else { return None };
        let about = match token {
            Some(token) => ask.token == token,
            None => ask.head.as_deref() == Some(id.to_string().as_str()),
        };
        (about && ask.released_at.is_none()).then_some(ask)
    }
}

impl Seen {
    /// What `tip` says about a ref that holds `id`.
    pub fn of(id: ObjectId, tip: Tip) -> Self {
        match tip {
            Tip::Commit(commit) => Self {
                id,
                record: Shown::Read(Reading::of_commit(&commit)),
                commit: Some(commit),
                symref: None,
                request: None,
            },
            Tip::Other(kind) => {
                let why = format!("it points at a {kind}, not at a commit");
                Self {
                    id,
                    record: Shown::Read(Reading::Unreadable(why)),
                    commit: None,
                    symref: None,
                    request: None,
                }
            }
            Tip::NotRead(why) => {
                Self { id, record: Shown::NotRead(why), commit: None, symref: None, request: None }
            }
        }
    }

    /// The token in the record.
    pub fn token(&self) -> Option<Token> {
        self.record.reading().and_then(Reading::token)
    }

    /// Who asks its holder to stop, and why.
    pub fn asked(&self) -> Option<&Record> {
        self.request.as_ref()?.of(self.token(), self.id)
    }

    /// When it was released, if that is what the record there says.
    pub fn released(&self) -> Option<DateTime<Utc>> {
        self.record.reading().and_then(Reading::released)
    }

    /// Whether it grew from the claim with the tip `id` and `token`: by a renewal, or as a child of that very commit.
    pub fn grew_from(&self, id: ObjectId, token: Option<Token>) -> bool {
        let parent = self.commit.as_deref().and_then(chain::first_parent);
        parent == Some(id) || token.is_some() && self.token() == token
    }

    /// The record of ours that proves it ours: of the same tip, or with the same token at an earlier one. Nothing proves
    /// ours what is released.
    pub fn proof<'r>(&self, records: &'r Records) -> Option<&'r HeldRecord> {
        if self.released().is_some() {
            return None;
        }
        let token = self.token();
        records
            .own
            .iter()
            .find(|record| record.tip() == Some(self.id) || Some(record.token) == token)
    }

    /// Whose it is. What could not be read, there or here, is never taken for somebody else's.
    pub fn whose(&self, records: &Records) -> Whose {
        if self.released().is_some() {
            return Whose::Nobody;
        }
        if self.proof(records).is_some() {
            return Whose::Ours;
        }
        match (&self.record, &records.damage) {
            (_, Some(damage)) => Whose::Unread(damage.clone()),
            (Shown::NotRead(why), None) if !records.own.is_empty() => Whose::Unread(why.clone()),
            (Shown::NotRead(_) | Shown::Read(_) | Shown::Unasked, None) => Whose::Others,
        }
    }
}

/// The answer to "is it ours?" for what was seen.
pub fn verdict(seen: Option<&Seen>, records: &Records) -> Verdict {
    match seen.map(|seen| (seen.id, seen.whose(records))) {
        None | Some((_, Whose::Nobody)) => Verdict::Free,
        Some((id, Whose::Ours)) => Verdict::Yours(id),
        Some((id, Whose::Others | Whose::Heirs)) => Verdict::Lost(id),
        Some((_, Whose::Unread(why))) => {
            Verdict::Unknown(format!("it is there, but whose it is cannot be told: {why}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(digit: char) -> ObjectId {
        ObjectId::from_hex(digit.to_string().repeat(40).as_bytes()).expect("hex")
    }

    #[test]
    fn what_cannot_be_read_is_nobody_elses() {
        let unread = Seen::of(id('b'), Tip::NotRead("cut".into()));
        let none = Records::default();
        let damaged = Records { damage: Some("torn".into()), ..Records::default() };
        assert_eq!(
            verdict(Some(&unread), &none),
            Verdict::Lost(id('b')),
            "this clone never took it"
        );
        assert!(matches!(verdict(Some(&unread), &damaged), Verdict::Unknown(_)));
        let tag = Seen::of(id('b'), Tip::Other(gix::objs::Kind::Tag));
        assert_eq!(verdict(Some(&tag), &none), Verdict::Lost(id('b')));
        assert_eq!(verdict(None, &none), Verdict::Free);
    }
}
