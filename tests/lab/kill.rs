//! Kill everywhere: our process ends, without a word, before a call of its own; or what it works with does.

use std::{
    collections::BTreeSet,
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};

use super::{
    Chance, Size,
    aftermath::{ACTS, Act, Scene},
    killer::{self, Call, Calls, Moment},
};
use crate::support::{
    Kind, Sandbox, kinds,
    sandbox::{processes_in, processes_with},
    snapshot,
};

/// How many points are tried, and what came of them.
struct Tally {
    name: &'static str,
    size: Size,
    chance: Chance,
    started: Instant,
    /// In the short form.
    most: usize,
    tried: BTreeSet<usize>,
    killed: usize,
    wrong: Vec<String>,
}

impl Tally {
    fn new(name: &'static str, most: usize) -> Self {
        let size = Size::asked_for();
        let chance = Chance::new(size.seed);
        let started = Instant::now();
        let (tried, killed, wrong) = (BTreeSet::new(), 0, Vec::new());
        Tally { name, size, chance, started, most, tried, killed, wrong }
    }

    /// Tries `points` in an order of chance: as many as are asked for or, with time given, again and again.
    fn each<P>(
        &mut self,
        mut points: Vec<P>,
        mut try_at: impl FnMut(&P, &mut Chance) -> Result<bool, String>,
    ) -> usize {
        self.chance.shuffle(&mut points);
        for (count, (at, point)) in points.iter().enumerate().cycle().enumerate() {
            let over = match self.size.time {
                None => count >= self.most.min(points.len()),
                Some(time) => self.started.elapsed() >= time,
            };
            if over {
                break;
            }
            self.tried.insert(at);
            match try_at(point, &mut self.chance) {
                Ok(was_killed) => self.killed += usize::from(was_killed),
                Err(what) => self.wrong.push(what),
            }
        }
        points.len()
    }

    /// Prints what was done; where a kill has to come to something, `sure`, most of them did.
    #[track_caller]
    fn told(self, of: &str, sure: bool) {
        eprintln!(
            "lab: kill points: {}: {} of {of}, {} kills in {:?}, seed {}, wrong: {}",
            self.name,
            self.tried.len(),
            self.killed,
            self.started.elapsed(),
            self.size.seed,
            self.wrong.len()
        );
        assert!(self.wrong.is_empty(), "seed {}\n{}", self.size.seed, self.wrong.join("\n"));
        // Where a call comes a little later or earlier, a few come to their end.
        let least = if sure { self.tried.len() / 2 } else { 0 };
        assert!(self.killed > least, "{} of {}", self.killed, self.tried.len());
    }
}

/// Alice's whole way through `act`: the calls that are of interest, and the time that it takes.
fn whole(scene: &Scene<'_>, act: Act, calls: Calls) -> (Vec<Call>, Duration) {
    let (ready, log) = (scene.prepare(act), scene.sandbox.path("calls"));
    let watched = killer::may_watch();
    let before = if watched { killer::watch(calls, &log) } else { Vec::new() };
    let started = Instant::now();
    let output = scene.alice.run_under(&before, &ready.args()).go();
    assert_eq!(output.code, Some(0), "{output}");
    let time = started.elapsed();
    scene.settled();
    (if watched { killer::made(&log) } else { Vec::new() }, time)
}

/// Kills our process before as many of its calls as are asked for.
fn kill_ours(name: &'static str, kind: Kind, marks: bool, most: usize) {
    let sandbox = Sandbox::new();
    let (Some(()), Some(scene)) = (killer::is_there(), Scene::new(&sandbox, kind)) else { return };
    if marks {
        scene.use_marks();
    }
    let mut tally = Tally::new(name, most);
    let calls = if tally.size.time.is_some() { Calls::All } else { Calls::Writing };
    let mut points = Vec::new();
    for act in ACTS {
        let (made, time) = whole(&scene, act, calls);
        if made.is_empty() {
            points.extend((0..30).map(|at| (act, Moment::Time(time * at / 30))));
        }
        points.extend(made.into_iter().map(|call| (act, Moment::Call(call))));
    }
    let clone = snapshot(&scene.alice.dir);
    let all = tally.each(points, |(act, moment), chance| {
        let ready = scene.prepare(*act);
        let args = ready.args();
        let output = killer::killed(moment, |under| scene.alice.run_under(under, &args));
        scene.settled();
        let judged = scene.judge(*act, &ready, &output, chance);
        judged.map(|()| output.code.is_none()).map_err(|what| format!("{moment:?}: {what}"))
    });
    clone.still_holds(&scene.alice.dir);
    tally.told(&format!("{all} ({calls:?} calls)"), true);
}

#[test]
fn by_path() {
    kill_ours("path", kinds::path(), false, 48);
}

#[test]
fn by_path_with_marks() {
    kill_ours("marks", kinds::path(), true, 12);
}

#[test]
fn git_daemon() {
    kill_ours("git://", kinds::daemon(), false, 12);
}

#[test]
fn ssh() {
    kill_ours("ssh", kinds::ssh(), false, 6);
}

#[test]
fn https() {
    kill_ours("https", kinds::https(), false, 6);
}

/// Kills a program that we start instead of us, before as many of its calls as are asked for. `option` has it started by us.
fn kill_theirs(name: &'static str, kind: Kind, option: &str, program: &str, most: usize) {
    let sandbox = Sandbox::new();
    let (Some(()), Some(scene)) = (killer::is_there(), Scene::new(&sandbox, kind)) else { return };
    if !killer::may_watch() {
        return;
    }
    let start = |before: &[String]| {
        let words: Vec<String> = before.iter().map(|word| format!("'{word}'")).collect();
        sandbox.script("program", &format!("exec {} {program} \"$@\"", words.join(" ")));
    };
    scene.alice.set(option, sandbox.path("program").to_str().unwrap());
    scene.alice.set("ssh.variant", "ssh");
    let mut tally = Tally::new(name, most);
    let calls = if tally.size.time.is_some() { Calls::All } else { Calls::Writing };
    let log = sandbox.path("calls");
    let mut points = Vec::new();
    for act in ACTS {
        start(&[]);
        let ready = scene.prepare(act);
        start(&killer::watch(calls, &log));
        let _ = std::fs::remove_file(&log);
        assert_eq!(scene.alice.claim(&ready.args()).code, Some(0));
        scene.settled();
        // Nobody starts it for what needs no such program.
        if log.exists() {
            points.extend(killer::made(&log).into_iter().map(|call| (act, call)));
        }
    }
    let mut locks = 0;
    let all = tally.each(points, |(act, call), chance| {
        start(&[]);
        let ready = scene.prepare(*act);
        start(&killer::kill_at(call));
        let output = scene.alice.claim(&ready.args());
        scene.settled();
        start(&[]);
        let told = scene.is_told_beside_locks(*act);
        locks += scene.remove_locks();
        told.and_then(|()| scene.judge(*act, &ready, &output, chance))
            .map(|()| true)
            .map_err(|what| format!("{call:?}: {what}"))
    });
    tally.told(&format!("{all} ({calls:?} calls), {locks} locks left"), true);
}

#[test]
fn the_servers_writer() {
    let option = "remote.origin.receivepack";
    kill_theirs("receive-pack", kinds::path(), option, "git-receive-pack", 16);
}

#[test]
fn the_servers_reader() {
    kill_theirs("upload-pack", kinds::path(), "remote.origin.uploadpack", "git-upload-pack", 8);
}

#[test]
fn the_ssh_that_we_start() {
    let config = crate::support::servers::sshd(true).map(|sshd| sshd.client.clone());
    let Some(config) = config else { return };
    kill_theirs("ssh itself", kinds::ssh(), "core.sshCommand", &format!("ssh -F {config}"), 4);
}

/// Kills one of those that are at work for us, on either side, after a time of chance.
fn kill_anybody(name: &'static str, kind: Kind, most: usize) {
    let sandbox = Sandbox::new();
    let Some(scene) = Scene::new(&sandbox, kind) else { return };
    let mut tally = Tally::new(name, most);
    let home = format!("HOME={}", sandbox.path("home").display());
    let points: Vec<(usize, Act)> = (0..most).flat_map(|_| ACTS).enumerate().collect();
    let all = tally.each(points, |(_, act), chance| {
        let ready = scene.prepare(*act);
        scene.settled();
        let mut running = scene.alice.run(&ready.args()).start();
        let (ours, wait) = (running.pid() as i32, Duration::from_micros(chance.below(6_000)));
        let mut killed = false;
        while !killed && !running.has_ended() {
            let mut found: Vec<i32> = processes_with(&home)
                .into_iter()
                // A command that was run is not what is at work for us.
                .filter(|(pid, line)| *pid != ours && !line.starts_with("sh -c"))
                .map(|(pid, _)| pid)
                .chain(processes_in(&scene.remote.dir))
                .collect();
            chance.shuffle(&mut found);
            if let Some(pid) = found.first().and_then(|pid| Pid::from_raw(*pid)) {
                thread::sleep(wait);
                killed = kill_process(pid, Signal::KILL).is_ok();
            }
        }
        let output = running.end();
        scene.settled();
        let told = scene.is_told_beside_locks(*act);
        let _ = scene.remove_locks();
        told.and_then(|()| scene.judge(*act, &ready, &output, chance)).map(|()| killed)
    });
    tally.told(&format!("{all} (at random)"), false);
}

#[test]
fn anybody_by_path() {
    kill_anybody("anybody, path", kinds::path(), 12);
}

#[test]
fn anybody_behind_git_daemon() {
    kill_anybody("anybody, git://", kinds::daemon(), 12);
}

#[test]
fn anybody_behind_https() {
    kill_anybody("anybody, https", kinds::https(), 8);
}
