//! What has to be known before a verb can begin: the clone, its settings and the remote. Nothing is connected here.

use std::io::IsTerminal;

use anyhow::Context as _;

use crate::{
    checkout::Checkout,
    cli::{Ask, Global, When},
    output::ui::Ui,
    remote::{Destination, Way},
    settings::{self, Asked, ColorWhen, Settings},
    wire::{Manner, Terminal, words::Words},
};

/// As many commits of the clone are named to a server that cannot leave out trees.
const KNOWN_TIPS: usize = 256;

/// What has to be known before a verb can begin. Owns what a [`Context`](super::context::Context) borrows.
pub struct Stage {
    /// The clone.
    pub checkout: Checkout,
    /// What is set.
    pub settings: Settings,
    /// The remote.
    pub to: Destination,
    ui: Ui,
}

impl Stage {
    /// Finds the clone, its settings and the remote. Connects to nothing.
    pub fn set(global: &Global, ask: &Ask, ui: &Ui) -> anyhow::Result<Self> {
        let cwd = std::env::current_dir()?;
        let checkout = Checkout::open(&cwd)?;
        let asked = Asked {
            remote: global.remote.clone(),
            timeout: global
                .timeout
                .as_deref()
                .map(settings::duration)
                .transpose()
                .context("--timeout")?,
            older_than: match ask {
                Ask::Stale(stale) => stale
                    .older_than
                    .as_deref()
                    .map(settings::duration)
                    .transpose()
                    .context("--older-than")?,
                _ => None,
            },
            who: match ask {
                Ask::Take(take) => take.claiming.who.clone(),
                Ask::Run(run) => run.claiming.who.clone(),
                _ => None,
            },
            confirm: match ask {
                Ask::Take(take) => take.claiming.confirm,
                Ask::Run(run) => run.claiming.confirm,
                _ => false,
            },
            color: global.color.map(|when| match when {
                When::Auto => ColorWhen::Auto,
                When::Always => ColorWhen::Always,
                When::Never => ColorWhen::Never,
            }),
        };
        let settings = Settings::gather(asked, &checkout)?;
        let to = Destination::choose(&settings, &checkout, &cwd)?;
        let ui = ui.clone().with_color(settings.color);
        // An examination has them in its report.
        if !matches!(ask, Ask::Doctor(_)) {
            for hint in &to.hints {
                ui.hint(hint);
            }
        }
        Ok(Self { checkout, settings, to, ui })
    }

    /// The voice, with its colours set.
    pub fn ui(&self) -> &Ui {
        &self.ui
    }

    /// How to speak to the remote while the terminal is somebody else's.
    pub fn manner_without_terminal(&self) -> Manner<'_> {
        Manner { terminal: Terminal::No, ..self.manner() }
    }

    /// How to speak to the remote.
    pub fn manner(&self) -> Manner<'_> {
        let ui = self.ui.clone();
        let teller = match self.to.way {
            Way::Helper(_) => "git",
            Way::Local(_) | Way::Ssh(_) | Way::Git(_) => "remote",
        };
        Manner {
            timeout: self.settings.timeout,
            ssh: self.settings.ssh.clone(),
            terminal: if std::io::stdin().is_terminal() || std::io::stderr().is_terminal() {
                Terminal::May
            } else {
                Terminal::No
            },
            proxied: self.checkout.environment().get("GIT_PROXY_COMMAND").is_some()
                || self.checkout.config().string("core.gitproxy").is_some(),
            words: Words::new(move |line| ui.remote(teller, line)),
            git_dir: self.checkout.git_dir().map(Into::into),
            hash: self.checkout.hash_kind(),
            objects: self.checkout.common_dir().map(|dir| dir.join("objects")),
            have: Box::new(|| self.checkout.known_tips(KNOWN_TIPS)),
        }
    }

    /// The remote's name and URL, for people.
    pub fn remote(&self) -> (Option<String>, String) {
        (self.to.name.clone(), self.to.shown.clone())
    }
}
