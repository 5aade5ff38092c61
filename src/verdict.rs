//! From what the remote said, and what the ref holds now, to the one answer that people and programs get.
//!
//! Pure, and total: every pair of a report and a look at the ref has its line below. Contract, rules 3 and 4: there
//! are three answers (yes, no, could not tell), and the text of a refusal never decides which; the ref does.
//! This module never asks anything itself and knows no transport.

use gix::ObjectId;

use crate::wire::{LinkError, Reported};

/// What a verb wanted of the ref.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    /// Create it.
    Take,
    /// Delete it.
    Release,
    /// Move it to a child of what it holds.
    Renew,
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
    /// It is not ours, or not any more: somebody else's, with this id.
    Lost(ObjectId),
    /// There is no such claim.
    Free,
    /// What was asked for was found out.
    Listed,
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
            | Self::Listed => Exit::Yes,
            Self::Lost(_) | Self::Free => Exit::No,
            Self::Held(_) => Exit::Held,
            Self::Unknown(_) => Exit::Unknown,
            Self::Refused(_) => Exit::Refused,
        }
    }

    /// The verdict's one word, first on the last line of standard output and in JSON.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Claimed(_) => "claimed",
            Self::Held(_) => "held",
            Self::Released => "released",
            Self::Renewed(_) => "renewed",
            Self::Yours(_) => "yours",
            Self::Lost(_) => "lost",
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
    At {
        /// The commit.
        id: ObjectId,
        /// Whether it carries a token of ours.
        ours: bool,
    },
    /// The look failed.
    NotRead(String),
}

/// An end of an update that the report alone does not settle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Doubt {
    /// The advertisement had another value than expected; nothing was sent.
    Unexpected(Option<ObjectId>),
    /// The server answered with other words than `ok`.
    Refused(String),
    /// The command left and no answer came.
    Lost(String),
}

/// What to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum Step {
    /// Nothing: this is the answer.
    Settled(Verdict),
    /// Send the same once more; if the chances are used up, this is the answer.
    Again(Verdict),
    /// The tip moved and is ours: go on from there. If the chances are used up, this is the answer.
    Follow(ObjectId, Verdict),
}

/// The answer that the report gives by itself, or the doubt that a look at the ref has to clear up.
pub fn settle(act: Act, reported: Reported) -> Result<Verdict, Doubt> {
    match (act, reported) {
        (Act::Take, Reported::Done(Some(id))) => Ok(Verdict::Claimed(id)),
        (Act::Renew, Reported::Done(Some(id))) => Ok(Verdict::Renewed(id)),
        (Act::Release, Reported::Done(None)) => Ok(Verdict::Released),
        (Act::Take | Act::Renew, Reported::Done(None))
        | (Act::Release, Reported::Done(Some(_))) => {
            Err(Doubt::Lost("the report is about another kind of update".into()))
        }
        (_, Reported::Unsent(error)) => Ok(Verdict::of_failure(error)),
        (_, Reported::Unexpected { found }) => Err(Doubt::Unexpected(found)),
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
        Act::Take => weigh_take(doubt, now),
        Act::Release => weigh_release(expected, doubt, now, left),
        Act::Renew => weigh_renew(expected, doubt, now),
    }
}

fn weigh_take(doubt: Doubt, now: Now) -> Step {
    use Step::{Again, Settled};
    match (doubt, now) {
        // Whatever was said: the ref has our token, so we have the claim.
        (_, Now::At { id, ours: true }) => Settled(Verdict::Claimed(id)),
        (_, Now::At { id, ours: false }) => Settled(Verdict::Held(id)),
        // The writing side showed somebody's claim; the reading side lags, hides it, or it was released just now.
        (Doubt::Unexpected(Some(id)), Now::Absent) => Again(Verdict::Held(id)),
        (Doubt::Unexpected(Some(id)), Now::NotRead(_)) => Settled(Verdict::Held(id)),
        // Not to be had: a take expects nothing there.
        (Doubt::Unexpected(None), Now::Absent) => {
            Again(Verdict::Unknown("the remote contradicts itself".into()))
        }
        (Doubt::Unexpected(None), Now::NotRead(why)) => Settled(Verdict::Unknown(why)),
        // Refused and nobody has it: no race was lost.
        (Doubt::Refused(reason), Now::Absent) => again_if_passing(reason),
        (Doubt::Refused(reason), Now::NotRead(why)) => {
            Settled(Verdict::Unknown(format!("the remote said '{reason}', and then: {why}")))
        }
        // No answer and nothing there: the server may still do it. The same commit can be sent again without harm.
        (Doubt::Lost(why), Now::Absent) => Again(Verdict::Unknown(why)),
        (Doubt::Lost(why), Now::NotRead(_)) => Settled(Verdict::Unknown(why)),
    }
}

fn weigh_release(expected: Option<ObjectId>, doubt: Doubt, now: Now, left: bool) -> Step {
    use Step::{Again, Follow, Settled};
    match (doubt, now) {
        (Doubt::Unexpected(_), Now::Absent) => {
            Settled(if left { Verdict::Released } else { Verdict::Free })
        }
        // Ours was there when the command left, and is not there now.
        (Doubt::Refused(_) | Doubt::Lost(_), Now::Absent) => Settled(Verdict::Released),
        (Doubt::Refused(reason), Now::At { id, .. }) if Some(id) == expected => {
            again_if_passing(reason)
        }
        (Doubt::Lost(why), Now::At { id, .. }) if Some(id) == expected => {
            Again(Verdict::Unknown(why))
        }
        (Doubt::Unexpected(_), Now::At { id, .. }) if Some(id) == expected => {
            Again(Verdict::Unknown("the remote contradicts itself".into()))
        }
        // Renewed meanwhile by another process of this clone.
        (_, Now::At { id, ours: true }) => Follow(
            id,
            Verdict::Unknown("the claim keeps being renewed while it is to be released".into()),
        ),
        (Doubt::Unexpected(_), Now::At { id, ours: false }) => {
            Settled(if left { Verdict::Released } else { Verdict::Lost(id) })
        }
        (Doubt::Refused(_) | Doubt::Lost(_), Now::At { ours: false, .. }) => {
            Settled(Verdict::Released)
        }
        (Doubt::Unexpected(None), Now::NotRead(_)) => {
            Settled(if left { Verdict::Released } else { Verdict::Free })
        }
        // The writing side showed another value than ours, and whose it is cannot be read.
        (Doubt::Unexpected(Some(_)), Now::NotRead(why)) => Settled(Verdict::Unknown(why)),
        (Doubt::Refused(reason), Now::NotRead(why)) => {
            Settled(Verdict::Unknown(format!("the remote said '{reason}', and then: {why}")))
        }
        (Doubt::Lost(why), Now::NotRead(_)) => Settled(Verdict::Unknown(why)),
    }
}

fn weigh_renew(expected: Option<ObjectId>, doubt: Doubt, now: Now) -> Step {
    use Step::{Again, Follow, Settled};
    match (doubt, now) {
        (_, Now::Absent) => Settled(Verdict::Free),
        (_, Now::At { id, ours: false }) => Settled(Verdict::Lost(id)),
        (Doubt::Refused(reason), Now::At { id, ours: true }) if Some(id) == expected => {
            again_if_passing(reason)
        }
        (Doubt::Lost(why), Now::At { id, ours: true }) if Some(id) == expected => {
            Again(Verdict::Unknown(why))
        }
        (Doubt::Unexpected(_), Now::At { id, ours: true }) if Some(id) == expected => {
            Again(Verdict::Unknown("the remote contradicts itself".into()))
        }
        // Ours and new: either this very renewal landed, or one by another process of this clone did.
        (Doubt::Refused(_) | Doubt::Lost(_), Now::At { id, ours: true }) => {
            Settled(Verdict::Renewed(id))
        }
        (Doubt::Unexpected(_), Now::At { id, ours: true }) => Follow(id, Verdict::Yours(id)),
        (Doubt::Unexpected(None), Now::NotRead(_)) => Settled(Verdict::Free),
        (Doubt::Unexpected(Some(_)), Now::NotRead(why)) => Settled(Verdict::Unknown(why)),
        (Doubt::Refused(reason), Now::NotRead(why)) => {
            Settled(Verdict::Unknown(format!("the remote said '{reason}', and then: {why}")))
        }
        (Doubt::Lost(why), Now::NotRead(_)) => Settled(Verdict::Unknown(why)),
    }
}

/// A refusal that moved nothing stands, unless its words are those of a lock held for a moment or of a race that
/// has ended meanwhile; then it is tried again. The words only ever buy another try, never a verdict.
fn again_if_passing(reason: String) -> Step {
    // FACTS: the spellings of git before and since 2.51, JGit, and hosts whose reason is empty.
    const PASSING: [&str; 8] = [
        "failed to update ref",
        "atomic transaction failed",
        "reference already exists",
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

    fn doubts() -> Vec<Doubt> {
        vec![
            Doubt::Unexpected(None),
            Doubt::Unexpected(Some(id('b'))),
            Doubt::Refused("failed to update ref".into()),
            Doubt::Refused("pre-receive hook declined".into()),
            Doubt::Refused(String::new()),
            Doubt::Lost("closed".into()),
        ]
    }

    fn looks() -> Vec<Now> {
        vec![
            Now::Absent,
            Now::At { id: id('a'), ours: true },
            Now::At { id: id('b'), ours: true },
            Now::At { id: id('b'), ours: false },
            Now::NotRead("down".into()),
        ]
    }

    /// Every verdict that a step can lead to.
    fn verdict(step: Step) -> Verdict {
        match step {
            Step::Settled(verdict) | Step::Again(verdict) | Step::Follow(_, verdict) => verdict,
        }
    }

    #[test]
    fn a_take_is_won_exactly_when_the_ref_is_ours() {
        for doubt in doubts() {
            for now in looks() {
                let ours = matches!(now, Now::At { ours: true, .. });
                let got = verdict(weigh(Act::Take, None, doubt.clone(), now.clone(), false));
                assert_eq!(matches!(got, Verdict::Claimed(_)), ours, "{doubt:?} {now:?}");
                if now == (Now::At { id: id('b'), ours: false }) {
                    assert_eq!(got, Verdict::Held(id('b')), "{doubt:?}");
                }
            }
        }
    }

    #[test]
    fn a_look_that_failed_never_says_free_held_or_released_by_the_words_of_a_refusal() {
        for act in [Act::Take, Act::Release, Act::Renew] {
            for doubt in doubts() {
                if matches!(doubt, Doubt::Unexpected(_)) {
                    continue;
                }
                let got = verdict(weigh(
                    act,
                    Some(id('a')),
                    doubt.clone(),
                    Now::NotRead("down".into()),
                    true,
                ));
                assert!(matches!(got, Verdict::Unknown(_)), "{act:?} {doubt:?}: {got:?}");
            }
        }
    }

    #[test]
    fn a_lost_answer_with_the_old_value_still_there_is_unknown() {
        let still = Now::At { id: id('a'), ours: true };
        for act in [Act::Release, Act::Renew] {
            let got = verdict(weigh(
                act,
                Some(id('a')),
                Doubt::Lost("closed".into()),
                still.clone(),
                true,
            ));
            assert!(matches!(got, Verdict::Unknown(_)), "{act:?}: {got:?}");
        }
        let got = verdict(weigh(Act::Take, None, Doubt::Lost("closed".into()), Now::Absent, true));
        assert!(matches!(got, Verdict::Unknown(_)), "{got:?}");
    }

    #[test]
    fn somebody_elses_claim_is_never_reported_as_ours() {
        let other = Now::At { id: id('b'), ours: false };
        for doubt in doubts() {
            let released =
                verdict(weigh(Act::Release, Some(id('a')), doubt.clone(), other.clone(), false));
            let expected = matches!(doubt, Doubt::Refused(_) | Doubt::Lost(_));
            assert_eq!(released == Verdict::Released, expected, "{doubt:?}: {released:?}");
            let renewed =
                verdict(weigh(Act::Renew, Some(id('a')), doubt.clone(), other.clone(), false));
            assert_eq!(renewed, Verdict::Lost(id('b')), "{doubt:?}");
        }
    }

    #[test]
    fn policy_is_final_and_contention_is_tried_again() {
        let weigh = |reason: &str| {
            weigh(Act::Take, None, Doubt::Refused(reason.into()), Now::Absent, false)
        };
        assert!(matches!(weigh("pre-receive hook declined"), Step::Settled(Verdict::Refused(_))));
        assert!(matches!(weigh("deny updating a hidden ref"), Step::Settled(Verdict::Refused(_))));
        assert!(matches!(weigh("failed to update ref"), Step::Again(Verdict::Refused(_))));
        assert!(matches!(weigh(""), Step::Again(Verdict::Refused(_))));
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
