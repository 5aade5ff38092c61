//! A file for each verb: settings and wire in, a report out.
//!
//! [`run()`] is the table of contents of the program. Verbs know neither terminals nor JSON.

mod ask;
mod attempt;
pub mod completions;
mod context;
mod doctor;
mod list;
mod look;
mod looks;
pub mod man;
mod names;
mod over;
mod release;
mod renew;
mod run;
mod show;
mod some;
mod stage;
mod stale;
mod swap;
mod take;
mod verify;
mod waiting;

use std::{
    io::{self, Write},
    process::ExitCode,
};

use chrono::Utc;

use crate::{
    checkout::CheckoutError,
    claim::{abbreviated::NotAnId, name::NameError},
    cli::{self, Ask, Cli, Global, Verb},
    escape,
    output::{self, Detail, Report, human, json, ui::Ui},
    process::NoProcess,
    remote::RemoteError,
    settings::SettingsError,
    verdict::{Exit, Verdict},
    wire::Deferred,
};
use context::{Context, NoClone};
use doctor::{Audience, Overheard};
use list::NotListed;
use names::{ListError, OnlyOne};
use over::NoReason;
use run::Finish;
use stage::Stage;
use take::NoPromise;

/// Does what was typed, tells the outcome, and gives the exit status for it.
pub fn run(cli: &Cli) -> ExitCode {
    let ui = Ui::new(&cli.global);
    let exit = match &cli.verb {
        Verb::Ask(ask) => match &**ask {
            Ask::Run(args) => return ran(&cli.global, ask, args, &ui),
            _ => answered(&cli.global, ask, &ui),
        },
        Verb::Man(args) => printed(man::run(args, &mut io::stdout().lock()), &ui),
        Verb::Completions(args) => printed(completions::run(args, &mut io::stdout().lock()), &ui),
    };
    ExitCode::from(exit.code())
}

/// Tells what is wrong with the command line, or the help that was asked for there.
pub fn misused(error: &clap::Error) -> ExitCode {
    let exit = if error.use_stderr() { Exit::Usage } else { Exit::Yes };
    if error.use_stderr() && std::env::args_os().any(|argument| argument == "--json") {
        let text = error.render().to_string();
        let reason = text.lines().next().unwrap_or_default().trim_start_matches("error: ");
        // Whoever cannot read this reads the exit status.
        let _ = writeln!(io::stdout(), "{}", json::error(None, "error", exit, None, reason));
    }
    match error.print() {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            ExitCode::from(Exit::Failure.code())
        }
        _ => ExitCode::from(exit.code()),
    }
}

/// The verbs that ask a remote.
fn answered(global: &Global, ask: &Ask, ui: &Ui) -> Exit {
    let stage = match Stage::set(global, ask, ui) {
        Ok(stage) => stage,
        Err(error) => return failed(ask, ui, None, &error),
    };
    if let Ask::Doctor(_) = ask {
        return examined(&stage, ask);
    }
    let manner = stage.manner();
    let asked = Context::new(&stage, &manner).map_err(Into::into).and_then(|mut context| {
        let claims = match ask {
            // What it has to say is more than is to be said of the claims one by one.
            Ask::Stale(args) => return stale::run(args, &mut context),
            Ask::Take(args) => take::run(args, &mut context),
            Ask::Release(args) => release::run(args, &mut context),
            Ask::List(args) => list::run(args, &mut context),
            Ask::Show(args) => show::run(args, &mut context).map_err(Into::into),
            Ask::Verify(args) => verify::run(args, &mut context).map_err(Into::into),
            Ask::Renew(args) => renew::run(args, &mut context).map_err(Into::into),
            Ask::Ask(args) => ask::run(args, &mut context),
            // Answered above: they have a report or an exit status of their own.
            Ask::Doctor(_) | Ask::Run(_) => Ok(Vec::new()),
        };
        Ok((claims?, detail(ask)))
    });
    match asked {
        Ok((claims, detail)) => {
            let report = Report {
                command: command(ask),
                remote: stage.remote(),
                claims,
                detail,
                code: None,
            };
            report.tell(stage.ui(), Utc::now())
        }
        Err(error) => failed(ask, stage.ui(), Some(stage.remote()), &error),
    }
}

/// The verb that runs a command, whose exit status is the command's.
fn ran(global: &Global, ask: &Ask, args: &cli::Run, ui: &Ui) -> ExitCode {
    let stage = match Stage::set(global, ask, ui) {
        Ok(stage) => stage,
        Err(error) => return ExitCode::from(failed(ask, ui, None, &error).code()),
    };
    match run::run(args, &stage) {
        Ok(Finish { code, report, started }) => {
            let ui = if started { stage.ui().aside() } else { stage.ui().clone() };
            let report = Report {
                command: command(ask),
                remote: stage.remote(),
                claims: vec![report],
                detail: Detail::Verdicts,
                code: Some(code),
            };
            let _ = report.tell(&ui, Utc::now());
            ExitCode::from(code)
        }
        Err(error) => ExitCode::from(failed(ask, stage.ui(), Some(stage.remote()), &error).code()),
    }
}

/// The verb that examines a remote, and tells what it finds as it goes on.
fn examined(stage: &Stage, ask: &Ask) -> Exit {
    let ui = stage.ui();
    // The probe is removed before a signal ends us.
    let deferred = Deferred::begin();
    let overheard = Overheard::default();
    let mut manner = stage.manner();
    let hearing = overheard.clone();
    manner.words = manner.words.overheard(move |line| hearing.hear(line));
    let audience = Audience {
        begin: &|subject| output::doctor::begin(subject, ui),
        step: &|step| output::doctor::step(step, ui),
    };
    let examination = Context::new(stage, &manner)
        .map_err(Into::into)
        .and_then(|mut context| doctor::run(&mut context, &deferred, &overheard, &audience));
    match examination {
        Ok(examination) => output::doctor::end(&examination, ui),
        Err(error) => failed(ask, ui, Some(stage.remote()), &error),
    }
}

/// The verb's name.
fn command(ask: &Ask) -> &'static str {
    match ask {
        Ask::Take(_) => "take",
        Ask::Release(_) => "release",
        Ask::List(_) => "list",
        Ask::Show(_) => "show",
        Ask::Stale(_) => "stale",
        Ask::Verify(_) => "verify",
        Ask::Renew(_) => "renew",
        Ask::Doctor(_) => "doctor",
        Ask::Run(_) => "run",
        Ask::Ask(_) => "ask",
    }
}

/// How much the report of a verb tells people, where the verb does not say so itself.
fn detail(ask: &Ask) -> Detail {
    match ask {
        Ask::List(_) => Detail::Table,
        Ask::Show(_) => Detail::Whole,
        _ => Detail::Verdicts,
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

/// Tells an error that kept a verdict about any claim from being sought. The one place that sorts errors.
fn failed(
    ask: &Ask,
    ui: &Ui,
    remote: Option<(Option<String>, String)>,
    error: &anyhow::Error,
) -> Exit {
    let (word, exit, reason) = sort(error);
    match exit {
        Exit::Unknown => ui.error(&format!("could not tell: {}", human::because(&reason, ui))),
        Exit::Refused => ui.error(&format!("the remote refuses: {}", human::because(&reason, ui))),
        _ => ui.error(&escape::line(&reason)),
    }
    if let Some(hint) = error.downcast_ref::<RemoteError>().and_then(RemoteError::hint) {
        ui.hint(&hint);
    }
    if error.is::<NoClone>() {
        ui.hint("run it inside of a clone; 'list', 'show' and 'stale' need none when '--remote <url>' names the remote");
    }
    if let Some(CheckoutError::Dubious { fix, .. }) = error.downcast_ref() {
        ui.hint(fix);
    }
    if ui.json() {
        ui.result(&json::error(Some(command(ask)), word, exit, remote.as_ref(), &reason));
    } else if error.is::<NotListed>() {
        ui.result(&format!("{word} claims"));
    }
    exit
}

/// Whose fault an error is.
fn sort(error: &anyhow::Error) -> (&'static str, Exit, String) {
    if let Some(NotListed(error)) = error.downcast_ref() {
        let verdict = Verdict::of_failure(error.clone());
        let (word, exit) = (verdict.word(), verdict.exit());
        return match verdict {
            Verdict::Refused(reason) => (word, exit, reason),
            _ => (word, exit, error.to_string()),
        };
    }
    let usage = error.is::<NameError>()
        || error.is::<NotAnId>()
        || error.is::<NoReason>()
        || error.is::<ListError>()
        || error.is::<NoProcess>()
        || error.is::<NoPromise>()
        || error.is::<OnlyOne>()
        || error.is::<SettingsError>()
        || error.is::<RemoteError>()
        || error.is::<NoClone>();
    ("error", if usage { Exit::Usage } else { Exit::Failure }, format!("{error:#}"))
}
