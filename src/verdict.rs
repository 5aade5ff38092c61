//! From what the remote said, and what the ref holds now, to the one answer that people and programs get.
//!
//! Pure, and total: every pair of a report and a look at the ref has its line below. Contract, rules 3 and 4: there
//! are three answers (yes, no, could not tell), and the text of a refusal never decides which; the ref does.
//! This module never asks anything itself and knows no transport.

use gix::ObjectId;

use crate::wire::{LinkError, Reported};

/// What a verb wants of the ref.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    /// Create it.
    Take,
    /// Delete it, since it is ours.
    Release,
    /// Delete it, if it is exactly what the user named, whosever it is.
    Clear,
    /// Move it to a child of what it holds, since it is ours.
    Renew,
    /// Move it to a child of exactly what the user named, whosever that is, and make it ours.
    Over,
}

/// The answer.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum Verdict {
    /// The claim is ours, with this id.
    Claimed(ObjectId),
    /// Somebody holds it; the id is theirs.
    Held(ObjectId),
    /// The claim that was to go is gone.
    Released,
    /// It is ours still, with this new id.
    Renewed(ObjectId),
    /// It is ours still.
    Yours(ObjectId),
    /// Its holder is asked to stop, by the commit with this id.
    Asked(ObjectId),
    /// It is not ours, or not any more: somebody else's, with this id.
    Lost(ObjectId),
    /// It is not the commit that was named; it holds this one.
    Moved(ObjectId),
    /// There is no such claim.
    Free,
    /// The claims were listed.
    Listed,
    /// The claim was shown, with this id: it is held.
    Shown(ObjectId),
    /// The remote does not let us, in its own words.
    Refused(String),
    /// Could not tell, and why.
    Unknown(String),
}

impl Verdict {
    /// The exit status that says the same.
    pub fn exit(&self) -> Exit {
        match self {
            Self::Claimed(_)
            | Self::Released
            | Self::Renewed(_)
            | Self::Yours(_)
            | Self::Asked(_)
            | Self::Listed
            | Self::Shown(_) => Exit::Yes,
            Self::Lost(_) | Self::Moved(_) | Self::Free => Exit::No,
            Self::Held(_) => Exit::Held,
            Self::Unknown(_) => Exit::Unknown,
            Self::Refused(_) => Exit::Refused,
        }
    }

    /// The claim's id, where the verdict is about one.
    pub fn id(&self) -> Option<ObjectId> {
        match self {
            Self::Claimed(id)
            | Self::Held(id)
            | Self::Renewed(id)
            | Self::Yours(id)
            | Self::Asked(id)
            | Self::Lost(id)
            | Self::Moved(id)
            | Self::Shown(id) => Some(*id),
            Self::Released | Self::Free | Self::Listed | Self::Refused(_) | Self::Unknown(_) => {
                None
            }
        }
    }

    /// The verdict's one word, first on the last line of standard output and in JSON.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Claimed(_) => "claimed",
            Self::Held(_) | Self::Shown(_) => "held",
            Self::Released => "released",
            Self::Renewed(_) => "renewed",
            Self::Yours(_) => "yours",
            Self::Asked(_) => "asked",
            Self::Lost(_) => "lost",
            Self::Moved(_) => "moved",
            Self::Free => "free",
            Self::Listed => "listed",
            Self::Refused(_) => "refused",
            Self::Unknown(_) => "unknown",
        }
    }

    /// What an exchange that failed before anything was asked of the ref amounts to.
    pub fn of_failure(error: LinkError) -> Self {
        match error {
            LinkError::Denied(said) => Self::Refused(said),
            error @ (LinkError::Unreachable(_)
            | LinkError::TimedOut(_)
            | LinkError::Nonsense(_)
            | LinkError::Local(_)) => Self::Unknown(error.to_string()),
        }
    }
}

/// The exit statuses, once; the man page has the same table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Exit {
    /// Yes.
    Yes,
    /// Anything unforeseen; never an answer, since git itself exits so when git-claim is not installed.
    Failure,
    /// The command line or the configuration makes no sense.
    Usage,
    /// No: not yours (any more), or nothing there.
    No,
    /// Could not tell (`EX_UNAVAILABLE`).
    Unknown,
    /// Held by somebody else (`EX_TEMPFAIL`).
    Held,
    /// The remote refuses (`EX_NOPERM`).
    Refused,
}

impl Exit {
    /// The number.
    pub fn code(self) -> u8 {
        match self {
            Self::Yes => 0,
            Self::Failure => 1,
            Self::Usage => 2,
            Self::No => 3,
            Self::Unknown => 69,
            Self::Held => 75,
            Self::Refused => 77,
        }
    }

    /// The one to exit with when several claims were asked about: the answer that most needs attention.
    pub fn worse(self, other: Self) -> Self {
        fn rank(exit: Exit) -> u8 {
            match exit {
                Exit::Yes => 0,
                Exit::No => 1,
                Exit::Held => 2,
                Exit::Refused => 3,
                Exit::Unknown => 4,
                Exit::Usage => 5,
                Exit::Failure => 6,
            }
        }
        if rank(other) > rank(self) { other } else { self }
    }
}

/// What the ref held when we looked again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Now {
    /// The remote says that there is no such ref.
    Absent,
    /// It holds this commit.
    At(ObjectId, Whose),
    /// The look failed.
    NotRead(String),
}

/// Whose a tip is, by what this clone can prove.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Whose {
    /// Ours: a commit that we sent, or one with a token of ours.
    Ours,
    /// Not ours.
    Others,
    /// Not ours, and grown from what was to be replaced: a renewal of it or a takeover. So what was to replace it did not.
    Heirs,
    /// Nobody's: the record says that the claim was released.
    Nobody,
    /// It cannot be told: the record at the tip, or our own, could not be read.
    Unread(String),
}

/// An end of an update that the report alone does not settle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Doubt {
    /// The advertisement had another value than expected; nothing was sent. A hidden ref looks absent there.
    Unexpected(Option<ObjectId>),
    /// The server answered with other words than `ok`.
    Refused(String),
    /// The command left and no answer came.
    Lost(String),
    /// Nothing was sent, since another ref of the same push was not as expected.
    Withheld,
    /// The server answered `ok`, and that alone is not to be believed.
    Unconfirmed,
}

/// What to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum Step {
    /// Nothing: this is the answer.
    Settled(Verdict),
    /// Send the same once more; when the caller's chances are used up, this is the answer.
    Again(Verdict),
    /// The ref holds another value, which may be replaced as well: go on from there. When the caller's chances are used
    /// up, this is the answer.
    Follow(Option<ObjectId>, Verdict),
}

const CONTRADICTS: &str =
    "the remote contradicts itself: what it shows for writing is not what it shows for reading";
const BUSY: &str = "the claim keeps being released and taken while it is to be taken";
const UNCONFIRMED: &str = "the remote said that it did it, and the claim is not there";
const HIDDEN: &str = "the remote hides the claim from those who write";

/// The answer that the report gives by itself, or the doubt that a look at the ref has to clear up.
///
/// `sent` are the commits that this invocation has sent so far: an advertisement that shows one of them is the
/// writing side's own word that it landed. With `confirm` an `ok` to a take is no more than a reason to look.
pub fn settle(
    act: Act,
    reported: Reported,
    sent: &[ObjectId],
    confirm: bool,
) -> Result<Verdict, Doubt> {
    match (act, reported) {
        (Act::Take | Act::Over, Reported::Done(Some(_))) if confirm => Err(Doubt::Unconfirmed),
        (Act::Take | Act::Over, Reported::Done(Some(id))) => Ok(Verdict::Claimed(id)),
        (Act::Renew, Reported::Done(Some(id))) => Ok(Verdict::Renewed(id)),
        // By deletion or by a mark.
        (Act::Release | Act::Clear, Reported::Done(_)) => Ok(Verdict::Released),
        (Act::Take | Act::Over | Act::Renew, Reported::Done(None)) => {
            Err(Doubt::Lost("the report is about another kind of update".into()))
        }
        (_, Reported::Unsent(error)) => Ok(Verdict::of_failure(error)),
        // The same claim elsewhere, by the writing side's own word.
        (_, Reported::Elsewhere { id, .. }) => Ok(Verdict::Held(id)),
        (_, Reported::Unexpected { found: Some(id) }) if sent.contains(&id) => Ok(match act {
            Act::Take | Act::Over => Verdict::Claimed(id),
            Act::Renew => Verdict::Renewed(id),
            Act::Release | Act::Clear => Verdict::Released,
        }),
        (_, Reported::Unexpected { found }) => Err(Doubt::Unexpected(found)),
        (_, Reported::Withheld) => Err(Doubt::Withheld),
        (_, Reported::Refused { reason, .. }) => Err(Doubt::Refused(reason)),
        (_, Reported::Lost { error, .. }) => Err(Doubt::Lost(error.to_string())),
    }
}

/// Clears up a doubt by what the ref holds now.
///
/// `expected` is the value that the update was to replace. `left` says whether a command of ours, in this or an
/// earlier try, may still be under way to the server.
pub fn weigh(act: Act, expected: Option<ObjectId>, doubt: Doubt, now: Now, left: bool) -> Step {
    match act {
        Act::Take => weigh_take(expected, doubt, now),
        Act::Release => weigh_release(expected, doubt, now, left),
        Act::Clear => weigh_clear(expected, doubt, now, left),
        Act::Renew => weigh_renew(expected, doubt, now),
        Act::Over => weigh_over(expected, doubt, now),
    }
}

/// A take expects nothing there, or the mark of a release.
fn weigh_take(expected: Option<ObjectId>, doubt: Doubt, now: Now) -> Step {
    use Step::{Again, Follow, Settled};
    match (doubt, now) {
        // Whatever was said: the ref holds what we sent.
        (_, Now::At(id, Whose::Ours)) => Settled(Verdict::Claimed(id)),
        (_, Now::At(id, Whose::Others | Whose::Heirs | Whose::Unread(_))) => {
            Settled(Verdict::Held(id))
        }
        (Doubt::Unexpected(Some(shown)), Now::At(id, Whose::Nobody)) if shown != id => {
            // The reading side lags behind a claim that the writing side shows.
            if expected == Some(id) {
                Again(Verdict::Held(shown))
            } else {
                Follow(Some(id), Verdict::Held(shown))
            }
        }
        (Doubt::Unexpected(None), Now::At(_, Whose::Nobody)) => {
            Again(Verdict::Unknown(CONTRADICTS.into()))
        }
        // Released: ours as a child of the mark.
        (_, Now::At(id, Whose::Nobody)) if Some(id) != expected => {
            Follow(Some(id), Verdict::Unknown(BUSY.into()))
        }
        (Doubt::Unexpected(Some(_)), Now::At(_, Whose::Nobody)) => {
            Again(Verdict::Unknown(CONTRADICTS.into()))
        }
        (Doubt::Refused(reason), Now::At(_, Whose::Nobody)) => again_if_passing(reason),
        (Doubt::Lost(why), Now::At(_, Whose::Nobody)) => Again(Verdict::Unknown(why)),
        (Doubt::Withheld, Now::At(_, Whose::Nobody)) => Again(Verdict::Free),
        (Doubt::Unconfirmed, Now::At(_, Whose::Nobody)) => {
            Again(Verdict::Unknown(UNCONFIRMED.into()))
        }
        // The writing side showed somebody's claim; the reading side lags, hides it, or it was released just now.
        (Doubt::Unexpected(Some(id)), Now::Absent) => Again(Verdict::Held(id)),
        (Doubt::Unexpected(Some(id)), Now::NotRead(_)) => Settled(Verdict::Held(id)),
        // The mark that was to be replaced is gone.
        (_, Now::Absent) if expected.is_some() => Follow(None, Verdict::Unknown(BUSY.into())),
        // Not to be had: a take expects nothing there.
        (Doubt::Unexpected(None), Now::Absent) => Again(Verdict::Unknown(CONTRADICTS.into())),
        (Doubt::Unexpected(None), Now::NotRead(why)) => Settled(Verdict::Unknown(why)),
        // Refused and nobody has it: no race was lost.
        (Doubt::Refused(reason), Now::Absent) => again_if_passing(reason),
        (Doubt::Refused(reason), Now::NotRead(why)) => Settled(refused_then(&reason, &why)),
        // No answer and nothing there: the server may still do it. The same commit can be sent again without harm.
        (Doubt::Lost(why), Now::Absent) => Again(Verdict::Unknown(why)),
        (Doubt::Lost(why), Now::NotRead(_)) => Settled(Verdict::Unknown(why)),
        // Nothing was sent, and nobody has it: it is for the others of the push to say whether it is sent once more.
        (Doubt::Withheld, Now::Absent) => Again(Verdict::Free),
        (Doubt::Withheld, Now::NotRead(why)) => Settled(Verdict::Unknown(why)),
        // To send it once more brings the writing side's own word with it, where readers are shown less or later.
        (Doubt::Unconfirmed, Now::Absent) => Again(Verdict::Unknown(UNCONFIRMED.into())),
        (Doubt::Unconfirmed, Now::NotRead(why)) => Settled(unconfirmed(&why)),
    }
}

fn weigh_release(expected: Option<ObjectId>, doubt: Doubt, now: Now, left: bool) -> Step {
    use Step::{Again, Follow, Settled};
    match (doubt, now) {
        // Nothing was sent, whatever was shown.
        (Doubt::Withheld, now) => weigh_release(expected, Doubt::Unexpected(expected), now, left),
        (Doubt::Unconfirmed, now) => weigh_release(expected, not_to_be_believed(), now, left),
        // An earlier deletion of ours went out, and the writing side does not have the ref any more.
        (Doubt::Unexpected(None), _) if left => Settled(Verdict::Released),
        // By a mark: of ours, or of another process of this clone, or of whoever had the claim meanwhile.
        (Doubt::Unexpected(_), Now::At(_, Whose::Nobody)) if left => Settled(Verdict::Released),
        (Doubt::Unexpected(_), Now::At(_, Whose::Nobody)) => Settled(Verdict::Free),
        (Doubt::Refused(_) | Doubt::Lost(_), Now::At(_, Whose::Nobody)) => {
            Settled(Verdict::Released)
        }
        (Doubt::Unexpected(None), Now::Absent) => Settled(Verdict::Free),
        (Doubt::Unexpected(None), Now::NotRead(why)) => Settled(Verdict::Unknown(why)),
        (Doubt::Unexpected(None), Now::At(id, _)) if Some(id) == expected => {
            Again(Verdict::Refused(HIDDEN.into()))
        }
        (Doubt::Unexpected(Some(_)), Now::Absent) => Again(Verdict::Unknown(CONTRADICTS.into())),
        (Doubt::Unexpected(Some(_)), Now::NotRead(why)) => Settled(Verdict::Unknown(why)),
        (Doubt::Unexpected(Some(_)), Now::At(id, _)) if Some(id) == expected => {
            Again(Verdict::Unknown(CONTRADICTS.into()))
        }
        // Ours was there when the command left, and is not there now.
        (Doubt::Refused(_) | Doubt::Lost(_), Now::Absent) => Settled(Verdict::Released),
        (Doubt::Refused(reason), Now::At(id, _)) if Some(id) == expected => {
            again_if_passing(reason)
        }
        (Doubt::Refused(reason), Now::NotRead(why)) => Settled(refused_then(&reason, &why)),
        (Doubt::Lost(why), Now::At(id, _)) if Some(id) == expected => Again(Verdict::Unknown(why)),
        (Doubt::Lost(why), Now::NotRead(_)) => Settled(Verdict::Unknown(why)),
        // Renewed meanwhile by another process of this clone.
        (_, Now::At(id, Whose::Ours)) => Follow(
            Some(id),
            Verdict::Unknown("the claim keeps being renewed while it is to be released".into()),
        ),
        (_, Now::At(_, Whose::Unread(why))) => Settled(Verdict::Unknown(why)),
        // Another's where ours was, after a deletion of ours that may have made room for it.
        (Doubt::Lost(_), Now::At(_, Whose::Others)) => Settled(Verdict::Released),
        (Doubt::Unexpected(Some(_)), Now::At(_, Whose::Others)) if left => {
            Settled(Verdict::Released)
        }
        (Doubt::Unexpected(_) | Doubt::Refused(_), Now::At(id, Whose::Others))
        | (_, Now::At(id, Whose::Heirs)) => Settled(Verdict::Lost(id)),
    }
}

/// As a release, but what was named is one commit and not "ours": whatever stands there now instead, a renewal by
/// its living holder above all, stays.
fn weigh_clear(expected: Option<ObjectId>, doubt: Doubt, now: Now, left: bool) -> Step {
    use Step::Settled;
    match (doubt, now) {
        (Doubt::Unconfirmed, now) => weigh_clear(expected, not_to_be_believed(), now, left),
        (_, Now::At(id, Whose::Heirs)) => Settled(Verdict::Moved(id)),
        // Another claim, not grown from the one that was named, after a command of ours that may have made room for it.
        (Doubt::Lost(_), Now::At(id, Whose::Others)) if Some(id) != expected => {
            Settled(Verdict::Released)
        }
        (Doubt::Unexpected(_), Now::At(id, Whose::Others)) if left && Some(id) != expected => {
            Settled(Verdict::Released)
        }
        (Doubt::Lost(_), Now::At(_, Whose::Unread(why))) => Settled(Verdict::Unknown(why)),
        (_, Now::At(id, Whose::Ours | Whose::Others | Whose::Unread(_)))
            if Some(id) != expected =>
        {
            Settled(Verdict::Moved(id))
        }
        (Doubt::Unexpected(Some(id)), Now::NotRead(_)) => Settled(Verdict::Moved(id)),
        (doubt, now) => weigh_release(expected, doubt, now, left),
    }
}

fn weigh_renew(expected: Option<ObjectId>, doubt: Doubt, now: Now) -> Step {
    use Step::{Again, Follow, Settled};
    match (doubt, now) {
        (Doubt::Withheld, now) => weigh_renew(expected, Doubt::Unexpected(expected), now),
        (Doubt::Unconfirmed, now) => weigh_renew(expected, not_to_be_believed(), now),
        (_, Now::At(_, Whose::Nobody)) => Settled(Verdict::Free),
        (Doubt::Unexpected(None), Now::At(id, _)) if Some(id) == expected => {
            Again(Verdict::Refused(HIDDEN.into()))
        }
        (Doubt::Unexpected(Some(_)), Now::At(id, _)) if Some(id) == expected => {
            Again(Verdict::Unknown(CONTRADICTS.into()))
        }
        (Doubt::Unexpected(Some(_)), Now::Absent) => Again(Verdict::Unknown(CONTRADICTS.into())),
        (Doubt::Unexpected(None) | Doubt::Refused(_) | Doubt::Lost(_), Now::Absent) => {
            Settled(Verdict::Free)
        }
        (Doubt::Refused(reason), Now::At(id, _)) if Some(id) == expected => {
            again_if_passing(reason)
        }
        (Doubt::Lost(why), Now::At(id, _)) if Some(id) == expected => Again(Verdict::Unknown(why)),
        // Ours and new: either this very renewal landed, or one by another process of this clone did.
        (Doubt::Refused(_) | Doubt::Lost(_), Now::At(id, Whose::Ours)) => {
            Settled(Verdict::Renewed(id))
        }
        (Doubt::Unexpected(_), Now::At(id, Whose::Ours)) => Follow(Some(id), Verdict::Yours(id)),
        (_, Now::At(id, Whose::Others | Whose::Heirs)) => Settled(Verdict::Lost(id)),
        (_, Now::At(_, Whose::Unread(why))) => Settled(Verdict::Unknown(why)),
        (Doubt::Unexpected(_), Now::NotRead(why)) => Settled(Verdict::Unknown(why)),
        (Doubt::Refused(reason), Now::NotRead(why)) => Settled(refused_then(&reason, &why)),
        (Doubt::Lost(why), Now::NotRead(_)) => Settled(Verdict::Unknown(why)),
    }
}

/// As a renewal, but what was named is one commit: whatever stands there now instead, a renewal by its living holder
/// above all, stays. "Ours" is only what this invocation sent.
fn weigh_over(expected: Option<ObjectId>, doubt: Doubt, now: Now) -> Step {
    use Step::{Again, Settled};
    match (doubt, now) {
        (_, Now::At(id, Whose::Ours)) => Settled(Verdict::Claimed(id)),
        // The writing side's own word comes with another try.
        (Doubt::Unconfirmed, Now::Absent | Now::At(_, Whose::Nobody)) => {
            Again(Verdict::Unknown(UNCONFIRMED.into()))
        }
        (Doubt::Unconfirmed, Now::NotRead(why)) => Settled(unconfirmed(&why)),
        // Released meanwhile: it is for everybody to take.
        (_, Now::At(_, Whose::Nobody)) => Settled(Verdict::Free),
        (_, Now::At(id, Whose::Others | Whose::Heirs | Whose::Unread(_)))
            if Some(id) != expected =>
        {
            Settled(Verdict::Moved(id))
        }
        (Doubt::Unexpected(Some(id)), Now::NotRead(_)) => Settled(Verdict::Moved(id)),
        (doubt, now) => weigh_renew(expected, doubt, now),
    }
}

fn refused_then(reason: &str, why: &str) -> Verdict {
    Verdict::Unknown(format!("the remote said '{reason}', and the look after that failed: {why}"))
}

fn unconfirmed(why: &str) -> Verdict {
    Verdict::Unknown(format!(
        "the remote said that it did it, and the look that was to confirm that failed: {why}"
    ))
}

/// An `ok` that is not believed is worth as much as an answer that was lost.
fn not_to_be_believed() -> Doubt {
    Doubt::Lost(UNCONFIRMED.into())
}

/// A refusal that moved nothing stands, unless its words are those of a lock held for a moment or of a race that
/// has ended meanwhile; then it is tried again. The words only ever buy another try, never a verdict.
fn again_if_passing(reason: String) -> Step {
    // FACTS: the spellings of git before and since 2.51, JGit, and hosts whose reason is empty.
    const PASSING: [&str; 7] = [
        "failed to update ref",
        "atomic transaction failed",
        "incorrect old value",
        "failed to lock",
        "cannot lock ref",
        "fatal error in commit_refs",
        "already exists",
    ];
    let passing = reason.trim().is_empty() || PASSING.iter().any(|words| reason.contains(words));
    let reason = if reason.trim().is_empty() {
        "the remote refused and did not say why".into()
    } else {
        reason
    };
    if passing {
        Step::Again(Verdict::Refused(reason))
    } else {
        Step::Settled(Verdict::Refused(reason))
    }
}

#[cfg(test)]
mod tests {
    use gix::hash::Kind;

    use super::*;

    fn id(digit: char) -> ObjectId {
        ObjectId::from_hex(digit.to_string().repeat(Kind::Sha1.len_in_hex()).as_bytes())
            .expect("hex")
    }

    /// Every doubt, by its name in the table.
    fn doubts() -> Vec<(&'static str, Doubt)> {
        vec![
            ("absent", Doubt::Unexpected(None)),
            ("other", Doubt::Unexpected(Some(id('b')))),
            ("policy", Doubt::Refused("hook declined".into())),
            ("race", Doubt::Refused("failed to update ref".into())),
            ("lost", Doubt::Lost("cut".into())),
            ("withheld", Doubt::Withheld),
            ("ok", Doubt::Unconfirmed),
        ]
    }

    /// Every look. `a` is the expected value, `b` another.
    fn looks() -> Vec<Now> {
        vec![
            Now::Absent,
            Now::At(id('a'), Whose::Ours),
            Now::At(id('b'), Whose::Ours),
            Now::At(id('b'), Whose::Others),
            Now::At(id('b'), Whose::Heirs),
            Now::At(id('b'), Whose::Unread("?".into())),
            Now::At(id('a'), Whose::Nobody),
            Now::At(id('b'), Whose::Nobody),
            Now::NotRead("down".into()),
        ]
    }

    fn word(step: &Step) -> String {
        match step {
            Step::Settled(verdict) => verdict.word().into(),
            Step::Again(verdict) => format!("again/{}", verdict.word()),
            Step::Follow(_, verdict) => format!("follow/{}", verdict.word()),
        }
    }

    /// One line a doubt: what each look leads to, with no command under way and, where that differs, with one.
    fn table(act: Act, expected: Option<ObjectId>) -> String {
        let mut table = String::new();
        for (name, doubt) in doubts() {
            let cells = looks().into_iter().map(|now| {
                let step = |left| word(&weigh(act, expected, doubt.clone(), now.clone(), left));
                let (plain, left) = (step(false), step(true));
                if plain == left { plain } else { format!("{plain}|{left}") }
            });
            table += &format!("{name:<9}{}\n", cells.collect::<Vec<_>>().join(" "));
        }
        table
    }

    // Columns: absent, expected and ours, another and ours, another's, another's and grown from the expected, another and
    // unread, expected and released, another and released, look failed.
    // `x|y`: y with a command of ours under way.

    #[test]
    fn the_table_of_a_take() {
        assert_eq!(
            table(Act::Take, None),
            "\
absent   again/unknown claimed claimed held held held again/unknown again/unknown unknown
other    again/held claimed claimed held held held follow/held follow/unknown held
policy   refused claimed claimed held held held follow/unknown follow/unknown unknown
race     again/refused claimed claimed held held held follow/unknown follow/unknown unknown
lost     again/unknown claimed claimed held held held follow/unknown follow/unknown unknown
withheld again/free claimed claimed held held held follow/unknown follow/unknown unknown
ok       again/unknown claimed claimed held held held follow/unknown follow/unknown unknown
"
        );
    }

    #[test]
    fn the_table_of_a_take_where_a_release_was_marked() {
        assert_eq!(
            table(Act::Take, Some(id('a'))),
            "\
absent   follow/unknown claimed claimed held held held again/unknown again/unknown unknown
other    again/held claimed claimed held held held again/held follow/unknown held
policy   follow/unknown claimed claimed held held held refused follow/unknown unknown
race     follow/unknown claimed claimed held held held again/refused follow/unknown unknown
lost     follow/unknown claimed claimed held held held again/unknown follow/unknown unknown
withheld follow/unknown claimed claimed held held held again/free follow/unknown unknown
ok       follow/unknown claimed claimed held held held again/unknown follow/unknown unknown
"
        );
    }

    #[test]
    fn the_table_of_a_takeover() {
        assert_eq!(
            table(Act::Over, Some(id('a'))),
            "\
absent   free claimed claimed moved moved moved free free unknown
other    again/unknown claimed claimed moved moved moved free free moved
policy   free claimed claimed moved moved moved free free unknown
race     free claimed claimed moved moved moved free free unknown
lost     free claimed claimed moved moved moved free free unknown
withheld again/unknown claimed claimed moved moved moved free free unknown
ok       again/unknown claimed claimed moved moved moved again/unknown again/unknown unknown
"
        );
        // What was named is still there.
        let step = |doubt| {
            word(&weigh(Act::Over, Some(id('a')), doubt, Now::At(id('a'), Whose::Others), false))
        };
        let steps: Vec<String> = doubts().into_iter().map(|(_, doubt)| step(doubt)).collect();
        assert_eq!(
            steps,
            [
                "again/refused",
                "again/unknown",
                "refused",
                "again/refused",
                "again/unknown",
                "again/unknown",
                "again/unknown"
            ]
        );
    }

    #[test]
    fn the_table_of_a_release() {
        assert_eq!(
            table(Act::Release, Some(id('a'))),
            "\
absent   free|released again/refused|released follow/unknown|released lost|released lost|released unknown|released free|released free|released unknown|released
other    again/unknown again/unknown follow/unknown lost|released lost unknown free|released free|released unknown
policy   released refused follow/unknown lost lost unknown released released unknown
race     released again/refused follow/unknown lost lost unknown released released unknown
lost     released again/unknown follow/unknown released lost unknown released released unknown
withheld again/unknown again/unknown follow/unknown lost|released lost unknown free|released free|released unknown
ok       released again/unknown follow/unknown released lost unknown released released unknown
"
        );
    }

    #[test]
    fn the_table_of_a_clearing() {
        assert_eq!(
            table(Act::Clear, Some(id('a'))),
            "\
absent   free|released again/refused|released moved moved|released moved moved free|released free|released unknown|released
other    again/unknown again/unknown moved moved|released moved moved free|released free|released moved
policy   released refused moved moved moved moved released released unknown
race     released again/refused moved moved moved moved released released unknown
lost     released again/unknown moved released moved unknown released released unknown
withheld again/unknown again/unknown moved moved moved moved free|released free|released unknown
ok       released again/unknown moved released moved unknown released released unknown
"
        );
    }

    #[test]
    fn the_table_of_a_renewal() {
        assert_eq!(
            table(Act::Renew, Some(id('a'))),
            "\
absent   free again/refused follow/yours lost lost unknown free free unknown
other    again/unknown again/unknown follow/yours lost lost unknown free free unknown
policy   free refused renewed lost lost unknown free free unknown
race     free again/refused renewed lost lost unknown free free unknown
lost     free again/unknown renewed lost lost unknown free free unknown
withheld again/unknown again/unknown follow/yours lost lost unknown free free unknown
ok       free again/unknown renewed lost lost unknown free free unknown
"
        );
    }

    #[test]
    fn what_we_sent_and_the_writing_side_shows_has_landed() {
        let shown = || Reported::Unexpected { found: Some(id('b')) };
        assert_eq!(settle(Act::Take, shown(), &[id('b')], true), Ok(Verdict::Claimed(id('b'))));
        assert_eq!(settle(Act::Renew, shown(), &[id('b')], false), Ok(Verdict::Renewed(id('b'))));
        assert_eq!(settle(Act::Take, shown(), &[], false), Err(Doubt::Unexpected(Some(id('b')))));
    }

    #[test]
    fn an_exchange_that_never_began_is_a_refusal_only_if_we_were_turned_away() {
        let of = |error| {
            settle(Act::Take, Reported::Unsent(error), &[], true).map(|verdict| verdict.exit())
        };
        assert_eq!(of(LinkError::Denied("no".into())), Ok(Exit::Refused));
        for error in [
            LinkError::Unreachable("gone".into()),
            LinkError::TimedOut(std::time::Duration::from_secs(1)),
            LinkError::Nonsense("?".into()),
            LinkError::Local("no ssh".into()),
        ] {
            assert_eq!(of(error), Ok(Exit::Unknown));
        }
    }

    #[test]
    fn the_words_of_a_refusal_only_ever_buy_another_try() {
        for (reason, again) in [
            ("pre-receive hook declined", false),
            ("deny updating a hidden ref", false),
            ("failed to update ref", true),
            ("reference already exists", true),
            ("", true),
        ] {
            let step = weigh(Act::Take, None, Doubt::Refused(reason.into()), Now::Absent, false);
            assert_eq!(
                matches!(step, Step::Again(Verdict::Refused(_))),
                again,
                "{reason}: {step:?}"
            );
        }
    }

    #[test]
    fn the_numbers_are_the_contracts() {
        use Exit::*;
        let table =
            [(Yes, 0), (Failure, 1), (Usage, 2), (No, 3), (Unknown, 69), (Held, 75), (Refused, 77)];
        for (exit, code) in table {
            assert_eq!(exit.code(), code);
            assert_eq!(exit.worse(Yes), exit);
            assert_eq!(Yes.worse(exit), exit);
        }
    }
}
