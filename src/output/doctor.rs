//! An examination of a remote, told to people as it goes on and at its end, or to programs as one object.
//!
//! The report is the result, all of it: who keeps it for the remote's owner keeps standard output.

use std::time::Duration;

use serde_json::json;

use super::{
    json::{VERSION, safe, shown},
    ui::{Tone, Ui},
};
use crate::{escape::line, verdict::Exit};

/// How a step ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// As it should.
    Ok,
    /// The remote does not do it.
    Failed,
    /// Could not tell.
    Unknown,
    /// An earlier failure left it without sense.
    NotTried,
}

impl Outcome {
    /// In JSON.
    pub fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Failed => "failed",
            Self::Unknown => "unknown",
            Self::NotTried => "not-tried",
        }
    }
}

/// One step.
#[derive(Debug, Clone)]
pub struct StepReport {
    /// What was tried.
    pub name: &'static str,
    /// How it ended.
    pub outcome: Outcome,
    /// How long it took, if it was tried.
    pub took: Option<Duration>,
    /// The remote's words, or ours where it had none.
    pub words: Vec<String>,
    /// What that means for the verbs.
    pub means: Option<String>,
}

/// What became of the ref that everything was tried on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Remains {
    /// There is nothing of it on the remote.
    Nothing,
    /// It is there.
    Left {
        /// Why it could not be removed.
        why: String,
        /// How it can be later.
        clear: Clear,
    },
    /// That could not be told.
    Unsure {
        /// Why not.
        why: String,
        /// What to do later.
        clear: Clear,
    },
}

/// How what is left of the probe goes away.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Clear {
    /// By this command.
    By(String),
    /// By this command once those who read are shown the probe, and until then by the remote's owner only.
    OnceShown(String),
    /// It need not: it is marked as released, and so nobody's.
    Needless,
}

impl Clear {
    /// The command, if there is one that works now.
    fn command(&self) -> Option<&str> {
        match self {
            Self::By(command) => Some(command),
            Self::OnceShown(_) | Self::Needless => None,
        }
    }

    /// In a sentence. `by` is how the command is introduced.
    fn sentence(&self, by: &str) -> String {
        match self {
            Self::By(command) => format!("{by}: {}", line(command)),
            Self::OnceShown(command) => format!(
                "readers are not shown it, so only the remote's owner can clear it; once they are: {}",
                line(command)
            ),
            Self::Needless => "it is marked as released, so nobody holds it".to_owned(),
        }
    }
}

impl Remains {
    /// What is left of `probe`, and what to do about it.
    fn sentences(&self, probe: &str) -> Option<(String, String)> {
        match self {
            Self::Nothing => None,
            Self::Left { why, clear } => Some((
                format!("the probe {probe} is left behind: {}", joined(why)),
                clear.sentence("to clear it, once the remote allows that"),
            )),
            Self::Unsure { why, clear } => Some((
                format!("whether the probe {probe} is left behind is not known: {}", joined(why)),
                clear.sentence("to find out, and to clear it"),
            )),
        }
    }
}

/// Several lines of a remote's in one.
fn joined(words: &str) -> String {
    let lines: Vec<_> = words.lines().map(line).collect();
    lines.join("; ")
}

/// All that is known before the first step.
#[derive(Debug, Clone)]
pub struct Subject {
    /// The remote's name, if it has one, and its URL without credentials.
    pub remote: (Option<String>, String),
    /// What carries the exchange: `path`, `ssh`, `git`, or the name of git's helper.
    pub transport: String,
    /// The full name of the ref that everything is tried on.
    pub probe: String,
}

/// What came of it.
#[derive(Debug)]
#[must_use]
pub struct Examination {
    /// The remote.
    pub subject: Subject,
    /// The steps in their order.
    pub steps: Vec<StepReport>,
    /// What refs are listed in: `v2`, `v0/v1`, or `helper` where that is a helper's own affair.
    pub protocol: Option<&'static str>,
    /// The hash of the repository.
    pub hash: Option<String>,
    /// What works and is worth knowing.
    pub warnings: Vec<String>,
    /// What is left of the probe.
    pub remains: Remains,
    /// The answer in one word.
    pub verdict: &'static str,
    /// The answer in one line.
    pub sentence: String,
    /// Why it is not a plain yes.
    pub reason: Option<String>,
    /// The answer as an exit status.
    pub exit: Exit,
    /// The signal that put an end to it.
    pub signal: Option<i32>,
}

/// Tells people what is going to be examined.
pub fn begin(subject: &Subject, ui: &Ui) {
    if ui.json() {
        return;
    }
    let (name, url) = &subject.remote;
    let remote = match name {
        Some(name) => format!("{name}, {url}"),
        None => url.clone(),
    };
    for (label, text) in
        [("remote", &remote), ("transport", &subject.transport), ("probe", &subject.probe)]
    {
        fact(label, text, ui);
    }
}

/// Tells people how a step ended.
pub fn step(step: &StepReport, ui: &Ui) {
    if ui.json() {
        return;
    }
    let (tone, word) = match step.outcome {
        Outcome::Ok => (Tone::Good, "ok"),
        Outcome::Failed => (Tone::Bad, "failed"),
        Outcome::Unknown => (Tone::Doubtful, "unknown"),
        Outcome::NotTried => (Tone::Doubtful, "not tried"),
    };
    let painted = ui.paint(tone, word);
    match step.took {
        Some(took) => {
            let room = " ".repeat(9 - word.len());
            ui.result(&format!("{:<9} {painted}{room} {:>6} ms", step.name, took.as_millis()));
        }
        None => ui.result(&format!("{:<9} {painted}", step.name)),
    }
}

/// Tells the rest, and gives the exit status.
pub fn end(examination: &Examination, ui: &Ui) -> Exit {
    if ui.json() {
        ui.result(&object(examination));
    } else {
        tell(examination, ui);
    }
    if ui.quiet()
        && let Some((left, clear)) = examination.remains.sentences(&examination.subject.probe)
    {
        ui.error(&format!("{left}; {clear}"));
    }
    if ui.unwritten() { Exit::Failure } else { examination.exit }
}

fn fact(label: &str, text: &str, ui: &Ui) {
    ui.result(&format!("{label:<9} {}", line(text)));
}

fn tell(examination: &Examination, ui: &Ui) {
    let protocol = examination.protocol.map(|name| match name {
        "helper" => "the helper's own",
        name => name,
    });
    let spoken = [protocol, examination.hash.as_deref()];
    let spoken: Vec<&str> = spoken.into_iter().flatten().collect();
    if !spoken.is_empty() {
        fact("protocol", &spoken.join(", "), ui);
    }
    for step in &examination.steps {
        if matches!(step.outcome, Outcome::Failed | Outcome::Unknown) {
            let word = if step.outcome == Outcome::Failed { "failed" } else { "unknown" };
            ui.result(&format!("{} {word}:", step.name));
            for words in &step.words {
                ui.result(&format!("  {}", line(words)));
            }
            if let Some(means) = &step.means {
                ui.result(&format!("  that is: {}", line(means)));
            }
        }
    }
    for warning in &examination.warnings {
        ui.result(&format!("warning: {}", line(warning)));
    }
    let probe = &examination.subject.probe;
    match examination.remains.sentences(probe) {
        Some((left, clear)) => {
            ui.result(&left);
            ui.result(&format!("  {clear}"));
        }
        None if examination.signal.is_some() => {
            ui.result(&format!("interrupted; nothing is left of the probe {probe}"));
        }
        None => {}
    }
    ui.result(&line(&examination.sentence));
}

fn object(examination: &Examination) -> String {
    let (left_behind, why, clear) = match &examination.remains {
        Remains::Nothing => (Some(false), None, None),
        Remains::Left { why, clear } => (Some(true), Some(why), clear.command()),
        Remains::Unsure { why, clear } => (None, Some(why), clear.command()),
    };
    let steps: Vec<_> = examination.steps.iter().map(|step| {
        json!({
            "name": step.name,
            "outcome": step.outcome.word(),
            "milliseconds": step.took.map(|took| u64::try_from(took.as_millis()).unwrap_or(u64::MAX)),
            "words": step.words,
            "means": step.means,
        })
    }).collect();
    let exit = examination.signal.map_or(i32::from(examination.exit.code()), |signal| 128 + signal);
    safe(&json!({
        "version": VERSION,
        "command": "doctor",
        "verdict": examination.verdict,
        "exit": exit,
        "remote": shown(&examination.subject.remote),
        "claims": [],
        "reason": examination.reason,
        "transport": examination.subject.transport,
        "protocol": examination.protocol,
        "hash": examination.hash,
        "steps": steps,
        "warnings": examination.warnings,
        "probe": {
            "ref": examination.subject.probe,
            "left_behind": left_behind,
            "why": why,
            "clear": clear,
        },
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn examination() -> Examination {
        Examination {
            subject: Subject {
                remote: (None, "https://h/a".into()),
                transport: "https".into(),
                probe: "refs/claims/doctor-0".into(),
            },
            steps: vec![StepReport {
                name: "create",
                outcome: Outcome::Failed,
                took: Some(Duration::from_millis(7)),
                words: vec!["no\u{9b}2J".into()],
                means: None,
            }],
            protocol: None,
            hash: None,
            warnings: Vec::new(),
            remains: Remains::Nothing,
            verdict: "refused",
            sentence: String::new(),
            reason: None,
            exit: Exit::Refused,
            signal: None,
        }
    }

    #[test]
    fn the_object_is_whole_and_safe_to_show() {
        let text = object(&examination());
        assert!(!text.chars().any(crate::escape::acts), "{text}");
        let read: serde_json::Value = serde_json::from_str(&text).expect("valid");
        assert_eq!(read["steps"][0]["words"][0], "no\u{9b}2J");
        assert_eq!(read["steps"][0]["milliseconds"], 7);
        assert_eq!((&read["exit"], &read["probe"]["left_behind"]), (&77.into(), &false.into()));
    }

    #[test]
    fn three_answers_about_the_probe_and_the_exit_of_a_signal() {
        let of = |remains| Examination { remains, signal: Some(2), ..examination() };
        let why = || "one\ntwo".to_owned();
        let unsure = Remains::Unsure { why: why(), clear: Clear::By("clear it".into()) };
        let (told, _) = unsure.sentences("refs/x").expect("told");
        assert!(told.ends_with(": one; two"), "{told}");
        let unsure = object(&of(unsure));
        assert!(unsure.contains("\"left_behind\":null") && unsure.contains("\"exit\":130"));
        assert!(unsure.contains("\"clear\":\"clear it\""), "{unsure}");
        for clear in [Clear::Needless, Clear::OnceShown("clear it".into())] {
            let left = object(&of(Remains::Left { why: why(), clear }));
            assert!(left.contains("\"left_behind\":true"), "{left}");
            assert!(left.contains("\"clear\":null"), "{left}");
        }
    }
}
