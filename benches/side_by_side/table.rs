//! The rows of the report, and the report.

use std::{fmt::Write as _, time::Duration};

use crate::{pairs::Times, place::Way, proxy::Traffic};

/// What the issue asks of a ratio.
#[derive(Clone, Copy)]
pub(crate) enum Target {
    /// Our time by theirs, at most.
    AtMost(f64),
    /// Their time by ours, at least.
    Faster(f64),
    /// Nothing: the figure is there to be known.
    None,
}

/// One pair of ways to do one thing.
pub(crate) struct Row {
    work: String,
    way: String,
    against: String,
    times: Times,
    target: Target,
    traffic: Option<(Traffic, Traffic)>,
    notes: Vec<String>,
}

impl Row {
    pub(crate) fn new(work: &str, way: Way, against: &str, times: Times, target: Target) -> Self {
        Row {
            work: work.to_owned(),
            way: way.to_string(),
            against: against.to_owned(),
            times,
            target,
            traffic: None,
            notes: Vec::new(),
        }
    }

    /// What crossed the wire for ours and for theirs.
    #[must_use]
    pub(crate) fn traffic(mut self, ours: Traffic, theirs: Traffic) -> Self {
        self.traffic = Some((ours, theirs));
        self
    }

    #[must_use]
    pub(crate) fn note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }

    /// Something exact that the issue asks for, and whether it is so.
    #[must_use]
    pub(crate) fn exact(self, what: impl Into<String>, met: bool) -> Self {
        let what = what.into();
        self.note(format!("{what}: {}", met_or_missed(met)))
    }

    /// The row in the table.
    pub(crate) fn line(&self) -> String {
        let ratio = self.times.ratio();
        let target = match self.target {
            Target::AtMost(most) => format!("≤ {most:.2}: {}", met_or_missed(ratio <= most)),
            Target::Faster(least) => {
                format!("≥ {least:.0} ×: {}", met_or_missed(1.0 / ratio >= least))
            }
            Target::None => "–".to_owned(),
        };
        let ratio = match self.target {
            Target::Faster(_) => format!("{:.0} × faster", 1.0 / ratio),
            Target::AtMost(_) | Target::None if ratio < 0.1 => format!("{ratio:.3}"),
            Target::AtMost(_) | Target::None => format!("{ratio:.2}"),
        };
        let cells = [
            self.work.clone(),
            self.way.clone(),
            self.against.clone(),
            shown(self.times.ours()),
            shown(self.times.theirs()),
            ratio,
            target,
            self.both(|traffic| Some(traffic.connections.to_string())),
            self.both(|traffic| Some(traffic.round_trips?.to_string())),
            self.both(|traffic| Some(bytes(traffic.bytes()))),
            self.times.rounds().to_string(),
            self.notes.join("; "),
        ];
        format!("| {} |", cells.map(|cell| cell.replace('|', "\\|")).join(" | "))
    }

    fn both(&self, of: impl Fn(Traffic) -> Option<String>) -> String {
        let both = self.traffic.and_then(|(ours, theirs)| Some((of(ours)?, of(theirs)?)));
        both.map_or("–".to_owned(), |(ours, theirs)| format!("{ours} / {theirs}"))
    }
}

/// The head of the table.
pub(crate) const HEAD: &str = "\
| work | remote | against | ours | theirs | ours / theirs | target | connections | round trips | bytes | rounds | notes |
| --- | --- | --- | ---: | ---: | ---: | --- | ---: | ---: | ---: | ---: | --- |";

/// The whole report.
pub(crate) fn report(machine: &str, lines: &[String]) -> String {
    let mut report = String::from(
        "# Side by side\n\nWritten by `cargo bench --bench side_by_side`: our verb, and what people do today, in turns (A B A B) in one \
         run.\n\n",
    );
    let _ = write!(report, "{machine}\n\n{HEAD}\n{}\n\n{READING}", lines.join("\n"));
    report
}

const READING: &str = "\
- **ours / theirs** is the median of the ratios of the pairs; the times are medians. On a busy machine (see the load) \
ratios of what takes some milliseconds differ widely from run to run, for and against us.
- Connections, round trips and bytes are those of one run each, ours / theirs, both directions together. Over `git`, `ssh` and \
`https` a relay on loopback counts them, by path a wrapper around git's server programs. They are exact, but for ssh's and TLS's own \
padding.
- A **round trip** is an answer that was waited for before the next question; a TCP connection costs one more.
- `+50ms`: the relay holds every byte back for 50 ms in each direction, and a new connection for a round trip.
- **the recipe** is `git mktree`, `git commit-tree` and `git push origin $commit:refs/claims/NAME`, in sh.
- Ours is `git-claim VERB`; through `git claim VERB` git itself starts first, see the row that says so.
";

fn met_or_missed(met: bool) -> &'static str {
    if met { "met" } else { "**missed**" }
}

/// Exact, where that can be read.
fn bytes(count: u64) -> String {
    if count < 100_000_000 { count.to_string() } else { format!("{} MB", count / 1_000_000) }
}

/// A time, to three digits or so.
fn shown(time: Duration) -> String {
    match time.as_secs_f64() * 1000.0 {
        ms if ms < 10.0 => format!("{ms:.2} ms"),
        ms if ms < 1000.0 => format!("{ms:.0} ms"),
        ms => format!("{:.1} s", ms / 1000.0),
    }
}
