//! What came of a step, and what that means: for the verbs, and for the remote as a whole.
//!
//! Pure, and total: values in, values out. Which steps make sense after which failures is decided here too.

use std::time::Duration;

use crate::{
    claim::prefix::Prefix,
    output::doctor::Outcome,
    settings::{PREFIX, RELEASE, ReleaseBy},
    verdict::Exit,
};

/// One thing that a remote has to be able to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Create a ref.
    Create,
    /// Refuse to create it once more.
    Refuse,
    /// Show it to readers.
    List,
    /// Give its record back as it was sent.
    Read,
    /// Move it to a child.
    Renew,
    /// Move it to a child with another token.
    TakeOver,
    /// Move it to a child that says that it is released.
    Mark,
    /// Delete it.
    Delete,
    /// Show it to readers no more.
    Gone,
}

impl Step {
    /// The steps in their order.
    pub fn all(release: ReleaseBy) -> &'static [Step] {
        use Step::*;
        match release {
            ReleaseBy::Deletion => &[Create, Refuse, List, Read, Renew, TakeOver, Delete, Gone],
            ReleaseBy::Mark => &[Create, Refuse, List, Read, Renew, TakeOver, Mark, Delete, Gone],
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Refuse => "refuse",
            Self::List => "list",
            Self::Read => "read",
            Self::Renew => "renew",
            Self::TakeOver => "take-over",
            Self::Mark => "mark",
            Self::Delete => "delete",
            Self::Gone => "gone",
        }
    }

    /// Whether claims need it. Where a release is a mark, deleting only tidies up behind us.
    pub fn needed(self, release: ReleaseBy) -> bool {
        release == ReleaseBy::Deletion || !matches!(self, Self::Delete | Self::Gone)
    }

    fn writes(self) -> bool {
        !matches!(self, Self::List | Self::Read | Self::Gone)
    }
}

/// What came of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finding {
    /// As it should be.
    Good,
    /// Readers were shown it, but so much later.
    Late(Duration),
    /// The remote does not let us, in its own words.
    Refused(String),
    /// It does not even let us in to ask, in its own words.
    TurnedAway(String),
    /// Could not tell, and why.
    Unknown(String),
    /// Two who asked for the same were both told yes.
    TwoWinners,
    /// Those who write see it, those who read do not, or much later.
    Hidden,
    /// It was taken with an `ok`, and is shown to nobody.
    Nowhere,
    /// The ref holds, or the record says, something else than what was sent.
    Altered,
    /// It was deleted with an `ok`, and is still shown.
    StillShown,
    /// The remote answered; there was nothing to be shown.
    Answered,
    /// It makes no sense any more.
    NotTried,
}

impl Finding {
    /// In one word.
    pub fn outcome(&self) -> Outcome {
        match self {
            Self::Good | Self::Late(_) | Self::Answered => Outcome::Ok,
            Self::Refused(_)
            | Self::TurnedAway(_)
            | Self::TwoWinners
            | Self::Hidden
            | Self::Nowhere
            | Self::Altered
            | Self::StillShown => Outcome::Failed,
            Self::Unknown(_) => Outcome::Unknown,
            Self::NotTried => Outcome::NotTried,
        }
    }

    /// In a sentence, where it is not as it should be; the remote's own words, if there are any.
    pub fn words(&self) -> Option<&str> {
        Some(match self {
            Self::Refused(words) | Self::TurnedAway(words) | Self::Unknown(words) => words,
            Self::TwoWinners => "a second one was told that it has created the same ref",
            Self::Hidden => {
                "those who write are shown it, those who read are not, or more than 3 s later"
            }
            Self::Nowhere => "the remote said ok, and shows it to nobody",
            Self::Altered => "it is not what was sent",
            Self::StillShown => "the remote said ok, and still shows it",
            Self::Good | Self::Late(_) | Self::Answered | Self::NotTried => return None,
        })
    }

    fn good(&self) -> bool {
        matches!(self, Self::Good | Self::Late(_))
    }
}

/// What was found so far, in the order of the steps.
#[derive(Debug, Default)]
pub struct Findings(Vec<(Step, Finding)>);

impl Findings {
    /// One more.
    pub fn add(&mut self, step: Step, finding: Finding) {
        self.0.push((step, finding));
    }

    /// What came of `step`.
    pub fn of(&self, step: Step) -> &Finding {
        self.0
            .iter()
            .find_map(|(other, finding)| (*other == step).then_some(finding))
            .unwrap_or(&Finding::NotTried)
    }

    /// Whether `step` makes sense after all that.
    pub fn allow(&self, step: Step) -> bool {
        // Past a lost write the ref is looked at and tidied up; past two winners there is nothing to go on with.
        let lost = self.0.iter().any(|(done, finding)| match finding {
            Finding::Unknown(_) => done.writes(),
            Finding::TwoWinners | Finding::Nowhere | Finding::Altered => true,
            _ => false,
        });
        match (step, self.of(Step::Create)) {
            (Step::Create, _) => true,
            // Whoever may not write may still read.
            (Step::List, Finding::Refused(_) | Finding::TurnedAway(_)) => true,
            (_, created) if lost || !created.good() => false,
            (Step::Read, _) => self.of(Step::List).good(),
            (Step::Gone, _) => self.of(Step::Delete).good(),
            _ => true,
        }
    }
}

/// What a step that is not as it should be means for the verbs.
pub fn means(step: Step, finding: &Finding, prefix: &Prefix, release: ReleaseBy) -> Option<String> {
    if finding.words().is_none() || !step.needed(release) {
        return None;
    }
    let unknown = matches!(finding, Finding::Unknown(_));
    let text = match (step, finding) {
        (_, Finding::TwoWinners) => {
            "take: two can win the same claim here; do not use this remote for claims"
        }
        (_, Finding::Nowhere) => {
            "take: says claimed, and nobody else will see it; do not use this remote for claims"
        }
        (Step::List, Finding::Altered) => {
            "take, verify: the remote puts other commits in the place of ours, and no claim can be proved"
        }
        (Step::Create, _) if unknown => "take: would answer 'unknown'; nothing can be claimed now",
        (Step::Create, Finding::TurnedAway(_)) => {
            "take: nothing can be claimed here; nobody may write, or not with these credentials"
        }
        (Step::Create, Finding::Refused(words)) if has_nothing_to_do_with_names(words) => {
            "take: nothing can be claimed here"
        }
        (Step::Create, _) if prefix.as_str().starts_with("refs/heads/") => {
            "take: nothing can be claimed here"
        }
        (Step::Create, _) => {
            return Some(format!(
                "take: nothing can be claimed here; where only branches are let in, this helps: git config {PREFIX} {BRANCHES}"
            ));
        }
        (Step::Refuse, _) => {
            "take: whether a second one is refused could not be told; do not go by claims until it is"
        }
        (Step::List, Finding::Hidden) => {
            "list, show: see no claim, or an old state; take: refuses what is held, and cannot say by whom; \
             verify, renew, release: work in the clone that took the claim where readers see nothing of it, not where \
             they see an old state; release --expect, take --over: find nothing, or an old state"
        }
        (Step::List, _) => {
            "list, show, verify: get no answer; take: cannot say who holds what it is refused"
        }
        (Step::Read, Finding::Altered) => {
            "verify, release: do not know claims of this clone again by their records"
        }
        (Step::Read, _) => {
            "show, list --long: cannot tell holder, age and note; take: cannot say who holds what it is refused"
        }
        (Step::Renew, _) if unknown => "renew: would answer 'unknown'",
        (Step::TakeOver, _) if unknown => "take --over: would answer 'unknown'",
        (Step::Mark, _) if unknown => "release: would answer 'unknown'",
        (Step::Renew, _) => {
            "renew: no sign of life can be given, so claims look older than they are"
        }
        (Step::TakeOver, _) => {
            "take --over: a claim that was left behind can only be cleared by release --expect"
        }
        (Step::Mark, _) => "release: claims cannot be given back",
        (Step::Delete, _) if unknown => "release: would answer 'unknown'",
        (Step::Delete, _) => {
            return Some(format!(
                "release: claims cannot be given back by deletion; where claims can be renewed, this helps: git config {RELEASE} mark"
            ));
        }
        (Step::Gone, _) => "list, show: go on showing claims that are released",
    };
    Some(text.to_owned())
}

/// Whether a refusal would be the same for a branch. It only chooses whether to give a piece of advice.
fn has_nothing_to_do_with_names(words: &str) -> bool {
    const SIGNS: &[&str] = &[
        // A read-only or full disk, and what follows from it.
        "unpacker error",
        "unable to create temporary",
        "exceeds maximum allowed size",
        // A hook or a proxy receive that writes refs where git forbids it.
        "inside quarantine environment",
    ];
    SIGNS.iter().any(|sign| words.contains(sign))
}

/// Where hosts that accept branches only take claims.
const BRANCHES: &str = "refs/heads/claims/";

/// The answer about the remote as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Health {
    /// It can hold claims.
    Healthy,
    /// It can, but not all that is needed.
    Limited(String),
    /// It cannot, and why.
    Refused(String),
    /// Worse: it says that it can.
    Unsafe(&'static str),
    /// It could not be told, and why.
    Unknown(String),
}

impl Health {
    /// From all findings. A certain no weighs more than what could not be told.
    pub fn of(findings: &Findings, release: ReleaseBy) -> Self {
        let needed = || findings.0.iter().filter(|(step, _)| step.needed(release));
        for (_, finding) in needed() {
            match finding {
                Finding::TwoWinners => return Self::Unsafe("two can win the same one"),
                Finding::Nowhere => return Self::Unsafe("it says ok and keeps nothing"),
                Finding::Altered => {
                    return Self::Unsafe("it keeps something else than what was sent");
                }
                _ => {}
            }
        }
        if let Finding::Refused(words) | Finding::TurnedAway(words) = findings.of(Step::Create) {
            return Self::Refused(telling_line(words));
        }
        let failed: Vec<&str> = needed()
            .filter(|(_, finding)| finding.outcome() == Outcome::Failed)
            .map(|(step, finding)| match step {
                Step::Create | Step::Refuse => "they are not safe",
                Step::List if *finding == Finding::Hidden => {
                    "those who read do not see them, or more than 3 s later"
                }
                Step::List => "those who read are refused",
                Step::Read => "their records cannot be read",
                Step::Renew => "they cannot be renewed",
                Step::TakeOver => "they cannot be taken over",
                Step::Mark | Step::Delete => "they cannot be released",
                Step::Gone => "released ones are still shown",
            })
            .collect();
        if !failed.is_empty() {
            return Self::Limited(failed.join(", "));
        }
        let open = needed().find_map(|(step, finding)| match finding {
            Finding::Unknown(why) => Some(format!("{}: {}", step.name(), telling_line(why))),
            _ => None,
        });
        let untried = || needed().find(|(_, finding)| *finding == Finding::NotTried);
        match open.or_else(|| untried().map(|(step, _)| format!("{} was not tried", step.name()))) {
            Some(why) => Self::Unknown(why),
            None => Self::Healthy,
        }
    }

    /// In one word.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Healthy => "healthy",
            Self::Limited(_) => "limited",
            Self::Refused(_) => "refused",
            Self::Unsafe(_) => "unsafe",
            Self::Unknown(_) => "unknown",
        }
    }

    /// As an exit status.
    pub fn exit(&self) -> Exit {
        match self {
            Self::Healthy => Exit::Yes,
            Self::Limited(_) | Self::Refused(_) | Self::Unsafe(_) => Exit::Refused,
            Self::Unknown(_) => Exit::Unknown,
        }
    }

    /// In a sentence about `remote`.
    pub fn sentence(&self, remote: &str) -> String {
        match self {
            Self::Healthy => format!("{remote} can hold claims"),
            Self::Limited(but) => format!("{remote} can hold claims, but {but}"),
            Self::Refused(why) => format!("{remote} cannot hold claims: {why}"),
            Self::Unsafe(why) => format!("{remote} cannot hold claims: {why}"),
            Self::Unknown(why) => {
                format!("whether {remote} can hold claims could not be told: {why}")
            }
        }
    }

    /// Why it is not well.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Healthy => None,
            Self::Limited(why) | Self::Refused(why) | Self::Unknown(why) => Some(why),
            Self::Unsafe(why) => Some(why),
        }
    }
}

/// The line that says most: git's programs mark it, whatever others said before. Else the first.
fn telling_line(words: &str) -> String {
    let marked = |line: &&str| line.starts_with("fatal: ") || line.starts_with("error: ");
    words.lines().find(marked).or(words.lines().next()).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(list: &[(Step, Finding)]) -> Findings {
        Findings(list.to_vec())
    }

    fn no() -> Finding {
        Finding::Refused("no".into())
    }

    fn away() -> Finding {
        Finding::TurnedAway("no entry".into())
    }

    fn lost() -> Finding {
        Finding::Unknown("cut".into())
    }

    /// Plays all steps: those in `odd` come to what is given there, the others are good; in the order of the steps.
    fn play(release: ReleaseBy, odd: &[(Step, Finding)]) -> (String, Health) {
        let mut found = Findings::default();
        for step in Step::all(release) {
            let finding = if found.allow(*step) {
                let odd = odd.iter().find(|(other, _)| other == step);
                odd.map_or(Finding::Good, |(_, finding)| finding.clone())
            } else {
                Finding::NotTried
            };
            found.add(*step, finding);
        }
        let letters = found.0.iter().map(|(_, finding)| match finding.outcome() {
            Outcome::Ok => '+',
            Outcome::Failed => 'F',
            Outcome::Unknown => '?',
            Outcome::NotTried => '.',
        });
        (letters.collect(), Health::of(&found, release))
    }

    #[test]
    fn the_table_of_remotes() {
        use {Finding::*, Step::*};
        let (deletion, mark) = (ReleaseBy::Deletion, ReleaseBy::Mark);
        let late = || Late(Duration::from_secs(1));
        type Row<'a> = (ReleaseBy, &'a [(Step, Finding)], &'a str, &'a str, u8);
        let table: &[Row<'_>] = &[
            // Create, refuse, list, read, renew, take over, (mark,) delete, gone.
            (deletion, &[], "++++++++", "healthy", 0),
            (deletion, &[(List, late()), (Gone, late())], "++++++++", "healthy", 0),
            (deletion, &[(Create, no()), (List, Answered)], "F.+.....", "refused", 77),
            (deletion, &[(Create, no()), (List, lost())], "F.?.....", "refused", 77),
            (deletion, &[(Create, away()), (List, Answered)], "F.+.....", "refused", 77),
            (deletion, &[(Create, lost())], "?.......", "unknown", 69),
            (deletion, &[(Refuse, TwoWinners)], "+F......", "unsafe", 77),
            (deletion, &[(Refuse, lost())], "+?......", "unknown", 69),
            (deletion, &[(List, Nowhere)], "++F.....", "unsafe", 77),
            (deletion, &[(List, Altered)], "++F.....", "unsafe", 77),
            (deletion, &[(List, Hidden)], "++F.++++", "limited", 77),
            (deletion, &[(List, lost())], "++?.++++", "unknown", 69),
            (deletion, &[(List, no())], "++F.++++", "limited", 77),
            (deletion, &[(Read, lost())], "+++?++++", "unknown", 69),
            (deletion, &[(Renew, no()), (TakeOver, no())], "++++FF++", "limited", 77),
            (deletion, &[(Renew, lost())], "++++?...", "unknown", 69),
            (deletion, &[(Delete, no())], "++++++F.", "limited", 77),
            (deletion, &[(Delete, lost())], "++++++?.", "unknown", 69),
            (deletion, &[(Gone, StillShown)], "+++++++F", "limited", 77),
            (mark, &[], "+++++++++", "healthy", 0),
            (mark, &[(Delete, no())], "+++++++F.", "healthy", 0),
            (mark, &[(Mark, no())], "++++++F++", "limited", 77),
        ];
        for (release, odd, letters, word, code) in table {
            let (played, health) = play(*release, odd);
            assert_eq!(
                (played.as_str(), health.word(), health.exit().code()),
                (*letters, *word, *code),
                "{release:?} {odd:?}"
            );
        }
    }

    #[test]
    fn every_failure_of_a_needed_step_is_explained_and_nothing_else_is() {
        let prefix = Prefix::default();
        for release in [ReleaseBy::Deletion, ReleaseBy::Mark] {
            for step in Step::all(release) {
                for finding in [no(), away(), lost()] {
                    let means = means(*step, &finding, &prefix, release);
                    assert_eq!(means.is_some(), step.needed(release), "{step:?} {finding:?}");
                }
                for finding in [Finding::Good, Finding::Answered, Finding::NotTried] {
                    assert_eq!(means(*step, &finding, &prefix, release), None);
                }
            }
        }
    }

    #[test]
    fn the_setting_that_helps_is_named_unless_it_is_set() {
        let of = |prefix: &str| {
            let prefix = Prefix::parse(prefix).expect("a prefix");
            means(Step::Create, &no(), &prefix, ReleaseBy::Deletion).expect("a meaning")
        };
        assert!(of("refs/claims/").contains("claim.prefix refs/heads/claims/"));
        assert!(!of("refs/heads/work/").contains("claim.prefix"));
        let prefix = Prefix::default();
        let of = |release| means(Step::Delete, &no(), &prefix, release);
        assert!(of(ReleaseBy::Deletion).is_some_and(|text| text.contains("claim.release mark")));
    }

    #[test]
    fn the_last_line_begins_with_the_remote_and_says_why() {
        let one = Health::of(
            &findings(&[(Step::Create, Finding::Refused("hook declined\nmore".into()))]),
            ReleaseBy::Deletion,
        );
        assert_eq!(one.sentence("origin"), "origin cannot hold claims: hook declined");
        let (_, many) =
            play(ReleaseBy::Deletion, &[(Step::List, Finding::Hidden), (Step::Delete, no())]);
        assert_eq!(
            many.sentence("origin"),
            "origin can hold claims, but those who read do not see them, or more than 3 s later, they cannot be released"
        );
        let (_, refused) = play(ReleaseBy::Deletion, &[(Step::List, no())]);
        assert_eq!(
            refused.sentence("origin"),
            "origin can hold claims, but those who read are refused"
        );
    }

    #[test]
    fn the_line_that_git_marks_says_why() {
        for (words, told) in [
            ("my helper: hello\nfatal: Authentication failed for 'https://h/'", 1),
            ("error: RPC failed; HTTP 403\nfatal: the remote end hung up", 0),
            ("hook declined\nmore", 0),
        ] {
            assert_eq!(telling_line(words), words.lines().nth(told).expect("a line"));
        }
        assert_eq!(telling_line(""), "");
    }

    #[test]
    fn a_namespace_is_no_advice_where_none_would_be_better() {
        let prefix = Prefix::default();
        for (words, advised) in [
            ("branches only", true),
            ("unpacker error", false),
            ("pack exceeds maximum allowed size (10 bytes)", false),
            ("ref updates forbidden inside quarantine environment", false),
        ] {
            let finding = Finding::Refused(words.into());
            let text = means(Step::Create, &finding, &prefix, ReleaseBy::Deletion);
            let text = text.expect("a meaning");
            assert_eq!(text.contains("claim.prefix"), advised, "{words}: {text}");
        }
    }
}
