//! What works and is worth knowing all the same.
//!
//! Pure. A warning changes no verdict.

use std::time::Duration;

use chrono::TimeDelta;

use crate::{
    claim::prefix::Prefix,
    settings::{RELEASE, ReleaseBy},
};

/// At most so many probes of earlier examinations are named.
const MOST_NAMED: usize = 5;

/// What was learnt on the way.
#[derive(Debug)]
pub struct Facts {
    /// What there is to say about the choice of the remote.
    pub hints: Vec<String>,
    /// Where `git fetch` would ask, if elsewhere, and where we do.
    pub fetch: Option<String>,
    /// The URL that is used.
    pub url: String,
    /// The namespace of the claims.
    pub prefix: Prefix,
    /// How a claim is released.
    pub release: ReleaseBy,
    /// Whether the remote moves several refs together, if that came out.
    pub atomic: Option<bool>,
    /// How much later a new claim was shown to readers, if it was late.
    pub shown_late: Option<Duration>,
    /// How much later a deleted one was shown no more, if it was late.
    pub gone_late: Option<Duration>,
    /// Whether a deletion was let in, if it was tried.
    pub deletes: Option<bool>,
    /// Whether the probe is marked as released.
    pub marked: bool,
    /// Whether readers are shown no claims, or are turned away.
    pub hidden: bool,
    /// Another namespace where claims are usual, and how many there are.
    pub elsewhere: Vec<(Prefix, usize)>,
    /// Probes of other examinations.
    pub leftovers: Vec<Leftover>,
}

/// A probe of another examination.
#[derive(Debug)]
pub struct Leftover {
    /// Its ref.
    pub name: String,
    /// How long ago it began, by the clocks of both; nothing where it does not say.
    pub age: Option<TimeDelta>,
    /// The command that clears it.
    pub clear: String,
}

/// An examination that takes longer does not run any more.
const LONGEST: TimeDelta = TimeDelta::minutes(10);

impl Leftover {
    /// Whether it may be at work: by clocks that may differ a little.
    fn may_run(&self) -> bool {
        self.age.is_some_and(|age| age.abs() < LONGEST)
    }

    fn warning(&self) -> String {
        let Self { name, clear, .. } = self;
        match self.age {
            Some(age) if self.may_run() => format!(
                "{name} is the probe of another examination that runs now: it began {} s ago",
                age.num_seconds().max(0)
            ),
            _ => format!(
                "{name} is the probe of another examination, which was killed or could not remove it; to clear it: {clear}"
            ),
        }
    }
}

/// Says it.
pub fn warnings(facts: &Facts) -> Vec<String> {
    let mut warnings = facts.hints.clone();
    let prefix = &facts.prefix;
    if let Some(fetch) = &facts.fetch
        && !facts.hints.iter().any(|hint| hint.contains(fetch))
    {
        let url = &facts.url;
        warnings.push(format!(
            "git fetch asks {fetch}; claims are read from and written to the push URL, {url}"
        ));
    }
    let kind = [("refs/heads/", "branches", "branch"), ("refs/tags/", "tags", "tag")]
        .into_iter()
        .find(|(start, ..)| prefix.as_str().starts_with(start));
    if let Some((_, many, one)) = kind {
        warnings.push(format!(
            "claims are {many} here ({prefix}): webhooks, CI and {one} rules see each of them, and so does everybody's fetch"
        ));
    }
    for (other, count) in &facts.elsewhere {
        let (claims, are) = if *count == 1 { ("claim", "is") } else { ("claims", "are") };
        warnings.push(format!(
            "there {are} {count} {claims} under {other} as well, which nobody sees who looks under {prefix}: \
             all who share this remote need the same claim.prefix"
        ));
    }
    if let Some(late) = facts.shown_late {
        warnings.push(format!(
            "reads lag behind writes: a new claim was shown after {} ms only, so list, show and verify may be that late",
            late.as_millis()
        ));
    }
    if let Some(late) = facts.gone_late {
        warnings.push(format!(
            "reads lag behind writes: a deleted claim was still shown for {} ms",
            late.as_millis()
        ));
    }
    if facts.atomic == Some(false) {
        warnings.push(
            "no atomic: the remote does not move several refs together, so several claims are all or nothing only with 'take --one-by-one'"
                .into(),
        );
    }
    match (facts.release, facts.deletes) {
        (ReleaseBy::Mark, Some(true)) => warnings.push(format!(
            "deletions are let in here, so the setting {RELEASE} = mark is not needed"
        )),
        (ReleaseBy::Mark, Some(false)) if facts.marked => warnings.push(
            "no deletion: released claims stay on the remote, marked as released, and so does the probe"
                .into(),
        ),
        _ => {}
    }
    if facts.hidden {
        warnings.push(
            "readers are not shown the probes either that other examinations may have left behind"
                .into(),
        );
    }
    warnings.extend(facts.leftovers.iter().take(MOST_NAMED).map(Leftover::warning));
    if let Some(more) = facts.leftovers.len().checked_sub(MOST_NAMED).filter(|more| *more > 0) {
        warnings.push(format!("and {more} more such probes: git claim list"));
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quiet() -> Facts {
        Facts {
            hints: Vec::new(),
            fetch: None,
            url: "https://h/a".into(),
            prefix: Prefix::default(),
            release: ReleaseBy::Deletion,
            atomic: Some(true),
            shown_late: None,
            gone_late: None,
            deletes: Some(true),
            marked: false,
            hidden: false,
            elsewhere: Vec::new(),
            leftovers: Vec::new(),
        }
    }

    #[test]
    fn each_fact_has_its_warning_and_a_quiet_remote_has_none() {
        assert_eq!(warnings(&quiet()), Vec::<String>::new());
        let second = Some(Duration::from_secs(1));
        let branches = Prefix::parse("refs/heads/claims/").expect("a prefix");
        let tags = Prefix::parse("refs/tags/claims/").expect("a prefix");
        for (facts, words) in [
            (Facts { fetch: Some("https://h/b".into()), ..quiet() }, "git fetch asks https://h/b"),
            (Facts { prefix: branches.clone(), ..quiet() }, "branch rules"),
            (Facts { prefix: tags, ..quiet() }, "tag rules"),
            (Facts { elsewhere: vec![(branches.clone(), 2)], ..quiet() }, "2 claims under"),
            (Facts { shown_late: second, ..quiet() }, "after 1000 ms"),
            (Facts { gone_late: second, ..quiet() }, "for 1000 ms"),
            (Facts { atomic: Some(false), ..quiet() }, "no atomic"),
            (Facts { release: ReleaseBy::Mark, ..quiet() }, "is not needed"),
            (
                Facts { release: ReleaseBy::Mark, deletes: Some(false), marked: true, ..quiet() },
                "no deletion",
            ),
            (Facts { hidden: true, ..quiet() }, "not shown the probes"),
        ] {
            let told = warnings(&facts);
            assert!(told.len() == 1 && told[0].contains(words), "{words}: {told:?}");
        }
    }

    #[test]
    fn what_could_not_be_marked_is_not_said_to_be() {
        let facts = Facts { release: ReleaseBy::Mark, deletes: Some(false), ..quiet() };
        assert_eq!(warnings(&facts), Vec::<String>::new());
    }

    #[test]
    fn a_probe_that_is_at_work_is_not_to_be_cleared() {
        for (age, runs) in [(Some(0), true), (Some(-60), true), (Some(599), true)]
            .into_iter()
            .chain([(Some(600), false), (Some(-600), false), (None, false)])
        {
            let leftover = Leftover {
                name: "refs/claims/doctor-0".into(),
                age: age.map(TimeDelta::seconds),
                clear: "clear it".into(),
            };
            let told = leftover.warning();
            assert_eq!(told.contains("runs now"), runs, "{age:?}: {told}");
            assert_eq!(told.contains("clear it"), !runs, "{age:?}: {told}");
        }
    }

    #[test]
    fn what_a_hint_says_is_not_said_twice() {
        let facts = Facts {
            hints: vec!["claims are read from https://h/a, not https://h/b".into()],
            fetch: Some("https://h/b".into()),
            ..quiet()
        };
        assert_eq!(warnings(&facts), facts.hints);
    }

    #[test]
    fn of_many_leftovers_a_few_are_named() {
        let leftovers = (0..8).map(|number| Leftover {
            name: format!("refs/claims/doctor-{number}"),
            age: None,
            clear: format!("clear {number}"),
        });
        let told = warnings(&Facts { leftovers: leftovers.collect(), ..quiet() });
        assert_eq!(told.len(), MOST_NAMED + 1);
        assert!(told[0].ends_with("clear 0") && told[5].contains("3 more"), "{told:?}");
    }
}
