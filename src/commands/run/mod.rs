//! `run`: take a claim, do the work, say every so often that it is being done, give the claim back at any end.
//!
//! The work is never ended because of the network: a renewal that cannot be delivered is tried again. It is ended only
//! when the remote says that the claim is somebody else's or nobody's, and only if that is wanted. What is given back is
//! this very take, by its token; a claim that was lost meanwhile is left to whoever has it now.

mod job;
mod keeper;

use std::{
    io,
    process::ExitStatus,
    slice,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    },
    time::{Duration, Instant},
};

use anyhow::Context as _;
use chrono::Utc;
use gix::ObjectId;

use super::{
    context::Context,
    some::How,
    stage::Stage,
    take::{self, Taken, Wanted},
    waiting,
};
use crate::{
    claim::{
        claim_ref::ClaimRef,
        name::ClaimName,
        record::{Process, Record},
    },
    cli::{self, OnAsked, OnLost},
    escape,
    held::HeldRecord,
    output::{ClaimReport, human},
    process, settings,
    verdict::{Exit, Verdict},
    wire::{self, Relay},
};
use job::Job;
use keeper::{Keeper, Kept};

/// What happens while the command runs.
#[derive(Debug)]
pub enum Event {
    /// It ended.
    Ended(io::Result<ExitStatus>),
    /// A signal came, and was passed on.
    Signal(i32),
}

/// How a run ended.
pub struct Finish {
    /// The exit status.
    pub code: u8,
    /// What became of the claim. After the command ran, standard output is its own, and this is told on standard error.
    pub report: ClaimReport,
    /// Whether the command was started.
    pub started: bool,
}

/// The number of a shell's exit status for a command that was not found.
const NOT_FOUND: u8 = 127;
/// The same for one that is there and cannot be started.
const NOT_EXECUTABLE: u8 = 126;

/// What was asked for, understood.
struct Plan {
    heartbeat: Duration,
    grace: Duration,
    on_lost: OnLost,
    on_asked: OnAsked,
    held_code: Option<u8>,
    strict: bool,
}

impl Plan {
    fn of(args: &cli::Run) -> anyhow::Result<Self> {
        Ok(Self {
            heartbeat: Duration::from_secs(take::promise(&args.heartbeat)?.into()),
            grace: settings::duration(&args.grace).context("--grace")?,
            on_lost: args.on_lost,
            on_asked: args.on_asked,
            held_code: args.held_code,
            strict: args.strict_release,
        })
    }
}

/// Where we are, for a signal that comes.
enum Phase {
    /// Nothing runs yet.
    Taking,
    /// The command runs.
    Running(Job),
    /// The claim is given back.
    Releasing,
}

/// Runs the command under the claim.
pub fn run(args: &cli::Run, stage: &Stage) -> anyhow::Result<Finish> {
    let plan = Plan::of(args)?;
    let wanted = Wanted {
        name: ClaimName::parse(&args.name)?,
        claiming: &args.claiming,
        heartbeat: Some(take::promise(&args.heartbeat)?),
        process: process::describe(std::process::id()),
        since: Utc::now(),
    };
    let claim = wanted.claim(&stage.settings.prefix);
    let (events, inbox) = channel();
    let phase = Arc::new(Mutex::new(Phase::Taking));
    let _relay = relay(Arc::clone(&phase), events.clone());

    let mut signal = None;
    let manner = stage.manner();
    let (mut context, wait) = (Context::new(stage, &manner)?, args.claiming.wait.as_deref());
    let mut taken =
        waiting::take(slice::from_ref(&wanted), How::All, wait, &mut context, &mut |pause| {
            signal = came(inbox.recv_timeout(pause));
            signal.is_none()
        })?;
    drop(context);
    let Some(Taken { report, proof }) = taken.pop() else {
        anyhow::bail!("there is no answer");
    };
    // From here on nobody is asked for a password: the terminal is the command's.
    let manner = stage.manner_without_terminal();
    let mut context = Context::quiet(stage, &manner)?;
    // A signal comes before the command starts, and is found here, or after that, and is passed on.
    let mut now = lock(&phase);
    if let Some(signal) = signal.or_else(|| came(inbox.try_recv())) {
        *now = Phase::Releasing;
        drop(now);
        let report = match proof {
            Some(proof) => Keeper::new(claim, proof, &mut context).release(),
            None => report,
        };
        return Ok(Finish { code: of_signal(signal), report, started: false });
    }
    let (Verdict::Claimed(id), Some(proof)) = (&report.verdict, proof) else {
        let code = match (&report.verdict, plan.held_code) {
            (Verdict::Held(_), Some(code)) => code,
            (verdict, _) => verdict.exit().code(),
        };
        return Ok(Finish { code, report, started: false });
    };
    let ui = stage.ui();
    ui.say(&format!("claimed {} {id}", claim.short()));
    let variables = variables(&claim, &proof, stage);
    let mut keeper = Keeper::new(claim, proof, &mut context);
    let job = match Job::start(&args.command, &variables, events) {
        Ok(job) => job,
        Err(error) => {
            *now = Phase::Releasing;
            drop(now);
            let program = args.command.first().map(|program| program.to_string_lossy());
            let program = program.unwrap_or_default();
            ui.error(&format!("cannot start '{}': {error}", escape::line(&program)));
            let code = match error.kind() {
                io::ErrorKind::NotFound => NOT_FOUND,
                _ => NOT_EXECUTABLE,
            };
            return Ok(Finish { code, report: keeper.release(), started: true });
        }
    };
    *now = Phase::Running(job.clone());
    drop(now);
    let ending = Watch { plan: &plan, job, inbox: &inbox, stage }.until_the_end(&mut keeper);
    *lock(&phase) = Phase::Releasing;
    Ok(finish(ending, &mut keeper, &plan, stage))
}

/// The signal that came, if it was one.
fn came<E>(event: Result<Event, E>) -> Option<i32> {
    match event {
        Ok(Event::Signal(signal)) => Some(signal),
        Ok(Event::Ended(_)) | Err(_) => None,
    }
}

/// Has signals go to the command, and us live on to give the claim back. Before it runs the first one cuts short what we
/// ask the remote; while the claim is given back the first one waits for the end of that. A second one ends us.
fn relay(phase: Arc<Mutex<Phase>>, events: Sender<Event>) -> Relay {
    let seen = AtomicBool::new(false);
    Relay::begin(move |signal, from_terminal| {
        // Held to the end: who changes the phase finds either the event here or the next one at the command.
        let phase = lock(&phase);
        let handled = match &*phase {
            // A renewal may still be under way.
            Phase::Running(job) if job.has_ended() => {
                wire::interrupt();
                !seen.swap(true, Ordering::SeqCst)
            }
            Phase::Running(job) => {
                // A terminal sends to all of the group, and the command is in it.
                if !from_terminal {
                    job.signal(signal);
                }
                true
            }
            Phase::Taking => {
                wire::interrupt();
                !seen.swap(true, Ordering::SeqCst)
            }
            // Those that the command was sent do not count.
            Phase::Releasing => !seen.swap(true, Ordering::SeqCst),
        };
        let _ = events.send(Event::Signal(signal));
        handled
    })
}

fn lock(phase: &Mutex<Phase>) -> MutexGuard<'_, Phase> {
    phase.lock().unwrap_or_else(PoisonError::into_inner)
}

fn of_signal(signal: i32) -> u8 {
    u8::try_from(128 + signal).unwrap_or(u8::MAX)
}

/// What the command is told about its claim; no credentials.
fn variables(claim: &ClaimRef, proof: &HeldRecord, stage: &Stage) -> [(&'static str, String); 5] {
    [
        ("GIT_CLAIM_NAME", claim.short().into_owned()),
        ("GIT_CLAIM_ID", proof.tip.clone().unwrap_or_default()),
        ("GIT_CLAIM_TOKEN", proof.token.to_string()),
        ("GIT_CLAIM_REF", claim.full().to_string()),
        ("GIT_CLAIM_REMOTE", stage.to.shown.clone()),
    ]
}

/// Gives the claim back, if it is still ours, and finds the exit status.
fn finish(ending: Ending, keeper: &mut Keeper<'_, '_>, plan: &Plan, stage: &Stage) -> Finish {
    let code = match ending.status {
        Ok(status) => job::code(status),
        Err(error) => {
            stage.ui().error(&format!("how the command ended cannot be told: {error}"));
            Exit::Failure.code()
        }
    };
    if let Some(report) = ending.lost {
        return Finish { code: report.verdict.exit().code(), report, started: true };
    }
    let report = keeper.release();
    let code = match report.verdict {
        Verdict::Lost(_) | Verdict::Free => Exit::No.code(),
        Verdict::Refused(_) | Verdict::Unknown(_) if code == 0 && plan.strict => {
            report.verdict.exit().code()
        }
        _ => code,
    };
    Finish { code, report, started: true }
}

/// How the command ended, and the claim's fate until then.
struct Ending {
    status: io::Result<ExitStatus>,
    lost: Option<ClaimReport>,
}

/// Everything that is looked after while the command runs.
struct Watch<'w> {
    plan: &'w Plan,
    job: Job,
    inbox: &'w Receiver<Event>,
    stage: &'w Stage,
}

/// The command was asked to end.
struct Stopping {
    /// Then it is ended.
    at: Instant,
    /// What it had started, and is ended with it.
    started: Vec<Process>,
}

/// What is known of the claim while the command runs.
struct Known {
    /// The next renewal; none is due for a claim that is lost.
    due: Option<Instant>,
    lost: Option<ClaimReport>,
    /// Why the last renewal was not delivered.
    trouble: Option<Verdict>,
    /// The last request to stop that was read.
    heard: Option<ObjectId>,
}

impl Watch<'_> {
    fn until_the_end(&self, keeper: &mut Keeper<'_, '_>) -> Ending {
        let due = Some(Instant::now() + self.plan.heartbeat);
        let mut known = Known { due, lost: None, trouble: None, heard: None };
        let mut stopping: Option<Stopping> = None;
        loop {
            let times = [known.due, stopping.as_ref().map(|stopping| stopping.at)];
            let event = match times.into_iter().flatten().min() {
                Some(at) => self.inbox.recv_timeout(at.saturating_duration_since(Instant::now())),
                None => self.inbox.recv().map_err(RecvTimeoutError::from),
            };
            match event {
                Ok(Event::Ended(status)) => {
                    if let Some(Stopping { at, started }) = stopping {
                        self.job.end_left(&started, at);
                    } else if let Ok(status) = status {
                        let left = self.job.left_behind(status);
                        self.job.end_left(&left, Instant::now() + self.plan.grace);
                    }
                    return Ending { status, lost: known.lost };
                }
                // It was passed on already; what follows is up to the command.
                Ok(Event::Signal(_)) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    let status = Err(io::Error::other("its end was not told"));
                    return Ending { status, lost: known.lost };
                }
                Err(RecvTimeoutError::Timeout) => {
                    let now = Instant::now();
                    if let Some(over) = stopping.take_if(|stopping| stopping.at <= now) {
                        self.job.end(&over.started);
                    }
                    if known.due.is_some_and(|at| at <= now) && self.beat(&mut known, keeper) {
                        stopping = stopping.or_else(|| Some(self.stop()));
                    }
                }
            }
        }
    }

    /// One renewal, and what comes of it. Says whether the command is to end.
    fn beat(&self, known: &mut Known, keeper: &mut Keeper<'_, '_>) -> bool {
        let at = known.due.unwrap_or_else(Instant::now);
        match keeper.renew() {
            Kept::Ours(ask) => {
                self.recovered(&mut known.trouble);
                known.due = Some(later(at, self.plan.heartbeat));
                let listens = self.plan.on_asked != OnAsked::Ignore;
                let is_new = listens && ask.is_some() && ask != known.heard;
                // One that could not be read is read at the next beat.
                match is_new.then(|| keeper.asked()) {
                    Some(Err(_)) => false,
                    Some(Ok(request)) => {
                        known.heard = ask;
                        request.is_some_and(|request| self.heed(&request))
                    }
                    None => false,
                }
            }
            Kept::Unsure(report) => {
                self.troubled(&mut known.trouble, &report);
                known.due = Some(Instant::now() + self.plan.heartbeat.min(RETRY));
                false
            }
            Kept::Lost(report) => {
                known.due = None;
                let stops = self.lose(&report);
                known.lost = Some(*report);
                stops
            }
        }
    }

    /// Says that the claim is lost, and whether the command is to end.
    fn lose(&self, report: &ClaimReport) -> bool {
        let ui = self.stage.ui();
        human::lost(report, ui, Utc::now());
        if self.plan.on_lost == OnLost::Warn {
            ui.warn("the command goes on without the claim");
        }
        self.plan.on_lost == OnLost::Stop
    }

    /// Says that somebody asks us to stop, and whether the command is to end.
    fn heed(&self, request: &Record) -> bool {
        let ui = self.stage.ui();
        ui.warn(&format!("the holder is asked {}", human::asked(request, Utc::now())));
        self.plan.on_asked == OnAsked::Stop
    }

    fn stop(&self) -> Stopping {
        let grace = self.plan.grace;
        let shown = humantime::format_duration(grace);
        self.stage.ui().warn(&format!("the command is asked to end, and ended in {shown}"));
        Stopping { at: Instant::now() + grace, started: self.job.ask_to_end() }
    }

    /// Says that the renewals are not delivered, once for each reason.
    fn troubled(&self, trouble: &mut Option<Verdict>, report: &ClaimReport) {
        if trouble.as_ref() != Some(&report.verdict) {
            let ui = self.stage.ui();
            ui.warn(&format!(
                "{}; the command goes on, and the renewal is tried again",
                human::not_renewed(report, ui)
            ));
            *trouble = Some(report.verdict.clone());
        }
    }

    fn recovered(&self, trouble: &mut Option<Verdict>) {
        if trouble.take().is_some() {
            self.stage.ui().say("the claim is renewed again");
        }
    }
}

/// A renewal that was not delivered is tried again so soon, or at the next heartbeat.
const RETRY: Duration = Duration::from_secs(10);

/// The next beat after the one at `at`; those that were missed, while we were stopped, are not made up for.
fn later(at: Instant, heartbeat: Duration) -> Instant {
    let next = at + heartbeat;
    if next > Instant::now() { next } else { Instant::now() + heartbeat }
}
