//! What the verbs have in common: where we are, whom we ask, what this clone can prove, and a look at a ref.

use std::io::IsTerminal;

use chrono::{DateTime, Utc};
use gix::ObjectId;

use crate::{
    checkout::Checkout,
    claim::{name::ClaimRef, record::Reading, token::Token},
    cli::{Cli, Verb, When},
    held::{Held, HeldRecord},
    output::{
        ClaimReport, Detail, Report, Shown,
        ui::{Progress, Ui},
    },
    remote::Destination,
    settings::{self, Asked, ColorWhen, Settings},
    verdict::Verdict,
    wire::{self, Link, LinkError, Manner, Tip, words::Words},
};

/// As many commits of the clone are named to a server that cannot leave out trees.
const KNOWN_TIPS: usize = 256;

/// What has to be known before a verb can begin. Owns what a [`Context`] borrows.
pub struct Stage {
    pub checkout: Checkout,
    pub settings: Settings,
    pub to: Destination,
    ui: Ui,
    command: &'static str,
    detail: Detail,
}

impl Stage {
    /// Finds the clone, its settings and the remote. Connects to nothing.
    pub fn set(cli: &Cli, ui: &Ui) -> anyhow::Result<Self> {
        let cwd = std::env::current_dir()?;
        let checkout = Checkout::open(&cwd)?;
        let asked = Asked {
            remote: cli.global.remote.clone(),
            timeout: cli.global.timeout.as_deref().map(settings::duration).transpose()?,
            who: match &cli.verb {
                Verb::Take(take) => take.who.clone(),
                _ => None,
            },
            color: cli.global.color.map(|when| match when {
                When::Auto => ColorWhen::Auto,
                When::Always => ColorWhen::Always,
                When::Never => ColorWhen::Never,
            }),
        };
        let settings = Settings::gather(asked, &checkout)?;
        let to = Destination::choose(&settings, &checkout, &cwd)?;
        let ui = ui.clone().with_color(settings.color);
        for hint in &to.hints {
            ui.hint(hint);
        }
        let detail = match &cli.verb {
            Verb::List(_) => Detail::Table,
            Verb::Show(_) => Detail::Whole,
            _ => Detail::Verdicts,
        };
        let command = super::name(&cli.verb);
        Ok(Self { checkout, settings, to, ui, command, detail })
    }

    /// The voice, with its colours set.
    pub fn ui(&self) -> &Ui {
        &self.ui
    }

    /// How to speak to the remote.
    pub fn manner(&self) -> Manner<'_> {
        let ui = self.ui.clone();
        let teller = if self.to.helper.is_some() { "git" } else { "remote" };
        Manner {
            timeout: self.settings.timeout,
            ssh: self.settings.ssh.clone(),
            may_ask: std::io::stdin().is_terminal() || std::io::stderr().is_terminal(),
            words: Words::new(move |line| ui.remote(teller, line)),
            git_dir: self.checkout.git_dir().map(Into::into),
            objects: self.checkout.common_dir().map(|dir| dir.join("objects")),
            have: Box::new(|| self.checkout.known_tips(KNOWN_TIPS)),
        }
    }

    /// The stage with a link to the remote.
    pub fn context<'a>(&'a self, manner: &'a Manner<'a>) -> anyhow::Result<Context<'a>> {
        let held = match self.checkout.common_dir() {
            Some(dir) => Some(Held::of(dir, &self.to.key)?),
            None => None,
        };
        // Only these children ever ask anybody anything.
        let asks = manner.may_ask
            && (self.to.helper.is_some() || self.to.parsed.scheme == gix::url::Scheme::Ssh);
        let progress = self.ui.progress(&format!("asking {}", self.to.shown), asks);
        Ok(Context {
            stage: self,
            link: wire::link(&self.to, manner),
            held,
            now: Utc::now(),
            _progress: progress,
        })
    }

    /// The report of this verb about `claims`.
    pub fn report(&self, claims: Vec<ClaimReport>) -> Report {
        let remote = Some((self.to.name.clone(), self.to.shown.clone()));
        Report { command: self.command, remote, claims, detail: self.detail }
    }
}

/// A verb at work.
pub struct Context<'a> {
    pub stage: &'a Stage,
    pub link: Box<dyn Link + 'a>,
    /// This clone's records; outside of a clone there are none.
    held: Option<Held>,
    /// The clock, read once.
    pub now: DateTime<Utc>,
    _progress: Progress,
}

/// What a look at one ref found.
#[derive(Debug, Clone)]
pub struct Seen {
    /// What the ref holds.
    pub id: ObjectId,
    /// The record there.
    pub record: Shown,
    /// The raw commit there.
    pub commit: Option<Vec<u8>>,
}

/// There is no clone, and the verb needs one.
#[derive(Debug, thiserror::Error)]
#[error("not in a git repository: a claim is recorded in the clone that takes it")]
pub struct NoClone;

impl Context<'_> {
    /// This clone's records, for verbs that cannot do without.
    pub fn held(&self) -> Result<&Held, NoClone> {
        self.held.as_ref().ok_or(NoClone)
    }

    /// This clone's records of `claim`, newest first.
    pub fn records(&self, claim: Option<&ClaimRef>) -> Vec<HeldRecord> {
        self.held.as_ref().map(|held| held.records(claim)).unwrap_or_default()
    }

    /// Whether records of `claim` came here with a copy of another clone.
    pub fn strangers(&self, claim: &ClaimRef) -> bool {
        self.held.as_ref().is_some_and(|held| held.strangers(claim))
    }

    /// Asks the remote what `claim` holds now, and for the record there unless one of `records` is of that very tip.
    pub fn look(
        &mut self,
        claim: &ClaimRef,
        records: &[HeldRecord],
    ) -> Result<Option<Seen>, LinkError> {
        let refs = self.link.list(&[claim.full()])?;
        // A prefix is only that: `issue-4` also brings `issue-42`.
        let Some(found) = refs.into_iter().find(|found| found.name == *claim.full()) else {
            return Ok(None);
        };
        let tip = self.known(found.id, records).unwrap_or_else(|| self.read_one(found.id));
        Ok(Some(seen(found.id, tip)))
    }

    /// The commit `id`, if it is on record here or happens to be in the clone. An id stands for one content only, so this
    /// says nothing about what the remote has.
    pub fn known(&self, id: ObjectId, records: &[HeldRecord]) -> Option<Tip> {
        let on_record = records
            .iter()
            .find(|record| record.tip() == Some(id))
            .and_then(|record| record.commit.clone());
        on_record
            .map(String::into_bytes)
            .or_else(|| self.stage.checkout.find_commit(&id))
            .map(Tip::Commit)
    }

    fn read_one(&mut self, id: ObjectId) -> Tip {
        match self.link.read(&[id]) {
            Ok(tips) => tips.into_iter().next().unwrap_or_else(|| Tip::NotRead("no answer".into())),
            Err(error) => Tip::NotRead(error.to_string()),
        }
    }

    /// A report about what was seen.
    pub fn report_seen(
        &self,
        claim: &ClaimRef,
        verdict: Verdict,
        seen: Option<&Seen>,
        records: &[HeldRecord],
    ) -> ClaimReport {
        ClaimReport {
            claim: claim.clone(),
            verdict,
            id: seen.map(|seen| seen.id),
            mine: seen.is_some_and(|seen| seen.is_of(records)),
            record: seen.map_or(Shown::Unasked, |seen| seen.record.clone()),
            hints: Vec::new(),
        }
    }

    /// A command to suggest, which means the same remote as this one. Credentials typed in a URL are left out.
    pub fn command(&self, command: &str) -> String {
        let Settings { remote, remote_typed: true, .. } = &self.stage.settings else {
            return format!("git claim {command}");
        };
        let to = &self.stage.to;
        let remote = match (&to.name, remote.as_deref()) {
            (Some(name), _) => name,
            (None, Some(".")) => ".",
            (None, _) => &to.shown,
        };
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"@:/._~+-".contains(&byte);
        if remote.bytes().all(plain) {
            format!("git claim {command} --remote {remote}")
        } else {
            format!("git claim {command} --remote {}", gix::quote::single(remote.into()))
        }
    }
}

/// What `tip` says about the ref that holds `id`.
pub fn seen(id: ObjectId, tip: Tip) -> Seen {
    match tip {
        Tip::Commit(commit) => {
            Seen { id, record: Shown::Read(Reading::of_commit(&commit)), commit: Some(commit) }
        }
        Tip::Other(kind) => {
            let why = format!("it points at a {kind}, not at a commit");
            Seen { id, record: Shown::Read(Reading::Unreadable(why)), commit: None }
        }
        Tip::NotRead(why) => Seen { id, record: Shown::NotRead(why), commit: None },
    }
}

impl Seen {
    /// The token in the record.
    pub fn token(&self) -> Option<Token> {
        self.record.reading().and_then(Reading::token)
    }

    /// The one of `records` that proves that what was seen is ours: the same tip, or the same token at a later one.
    pub fn proof<'r>(&self, records: &'r [HeldRecord]) -> Option<&'r HeldRecord> {
        let token = self.token();
        records.iter().find(|record| record.tip() == Some(self.id) || Some(record.token) == token)
    }

    /// Whether one of `records` proves it ours.
    pub fn is_of(&self, records: &[HeldRecord]) -> bool {
        self.proof(records).is_some()
    }
}
