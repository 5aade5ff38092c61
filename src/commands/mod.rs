//! A file for each verb: settings and wire in, a report out.
//!
//! [`run`] is the table of contents of the program. Verbs know neither terminals nor JSON.

pub mod completions;
mod context;
mod list;
pub mod man;
mod release;
mod renew;
mod show;
mod swap;
mod take;
mod verify;

use std::{io, process::ExitCode};

use chrono::Utc;

use crate::{
    checkout::CheckoutError,
    claim::name::NameError,
    cli::{Cli, Verb},
    held::HeldRecord,
    output::{escape, json, ui::Ui},
    remote::RemoteError,
    settings::SettingsError,
    verdict::{Exit, Verdict},
};
use context::{NoClone, Seen, Stage};
use list::NotListed;
use release::NotAnId;

/// Does what was typed, tells the outcome, and gives the exit status for it.
pub fn run(cli: Cli) -> ExitCode {
    let ui = Ui::new(&cli.global);
    let exit = match &cli.verb {
        Verb::Man(args) => printed(man::run(args, &mut io::stdout().lock()), &ui),
        Verb::Completions(args) => printed(completions::run(args, &mut io::stdout().lock()), &ui),
        Verb::Take(_)
        | Verb::Release(_)
        | Verb::List(_)
        | Verb::Show(_)
        | Verb::Verify(_)
        | Verb::Renew(_) => answered(&cli, &ui),
    };
    ExitCode::from(exit.code())
}

/// The verb's name, as typed.
fn name(verb: &Verb) -> &'static str {
    match verb {
        Verb::Take(_) => "take",
        Verb::Release(_) => "release",
        Verb::List(_) => "list",
        Verb::Show(_) => "show",
        Verb::Verify(_) => "verify",
        Verb::Renew(_) => "renew",
        Verb::Man(_) => "man",
        Verb::Completions(_) => "completions",
    }
}

/// The verbs that ask a remote.
fn answered(cli: &Cli, ui: &Ui) -> Exit {
    let stage = match Stage::set(cli, ui) {
        Ok(stage) => stage,
        Err(error) => return failed(&cli.verb, ui, &error),
    };
    let manner = stage.manner();
    let asked = stage.context(&manner).and_then(|mut context| match &cli.verb {
        Verb::Take(args) => take::run(args, &mut context),
        Verb::Release(args) => release::run(args, &mut context),
        Verb::List(args) => list::run(args, &mut context),
        Verb::Show(args) => show::run(args, &mut context),
        Verb::Verify(args) => verify::run(args, &mut context),
        Verb::Renew(args) => renew::run(args, &mut context),
        Verb::Man(_) | Verb::Completions(_) => Ok(Vec::new()),
    });
    match asked {
        Ok(claims) => stage.report(claims).tell(stage.ui(), Utc::now()),
        Err(error) => failed(&cli.verb, stage.ui(), &error),
    }
}

/// Whose a claim is, as far as the clone's `records` can prove it.
fn whose(seen: Option<&Seen>, records: &[HeldRecord]) -> Verdict {
    match seen {
        None => Verdict::Free,
        Some(seen) if seen.is_of(records) => Verdict::Yours(seen.id),
        Some(seen) => Verdict::Lost(seen.id),
    }
}

fn printed(written: io::Result<()>, ui: &Ui) -> Exit {
    match written {
        Ok(()) => Exit::Yes,
        // A pager that was quit early has read all that its user wanted.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Exit::Yes,
        Err(error) => {
            ui.error(&error.to_string());
            Exit::Failure
        }
    }
}

/// Tells an error that kept a verdict from being sought. The one place that sorts errors.
fn failed(verb: &Verb, ui: &Ui, error: &anyhow::Error) -> Exit {
    let exit = exit_of(error);
    if ui.json() {
        ui.result(&json::error(name(verb), exit, &format!("{error:#}")));
    }
    ui.error(&escape::line(&format!("{error:#}")));
    if let Some(hint) = error.downcast_ref::<RemoteError>().and_then(RemoteError::hint) {
        ui.hint(&hint);
    }
    if let Some(CheckoutError::Dubious { fix, .. }) = error.downcast_ref() {
        ui.hint(fix);
    }
    exit
}

/// Whose fault an error is.
fn exit_of(error: &anyhow::Error) -> Exit {
    if error.is::<NameError>()
        || error.is::<NotAnId>()
        || error.is::<SettingsError>()
        || error.is::<RemoteError>()
        || error.is::<NoClone>()
    {
        return Exit::Usage;
    }
    match error.downcast_ref::<NotListed>() {
        Some(NotListed(error)) => Verdict::of_failure(error.clone()).exit(),
        None => Exit::Failure,
    }
}
