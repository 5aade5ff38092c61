//! Waiting for a claim that somebody holds: who gets it, what is told meanwhile, and what it costs the server.

use std::{
    fs::{self, OpenOptions},
    io::Write as _,
    path::Path,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};

use crate::support::{
    Clone, Kind, Remote, Sandbox, kinds, on,
    output::Running,
    proxy::{Mode, Proxy},
    sandbox::processes_with,
    servers::{self, Daemon},
    snapshot,
    terminal::Terminal,
    until,
};

/// Two clones whose users ask often; the first one holds the claim.
fn holder_and_waiter(sandbox: &Sandbox, remote: &Remote) -> (Clone, Clone) {
    let (alice, bob) = (sandbox.clone(remote, "alice"), sandbox.clone(remote, "bob"));
    sandbox.configure("[claim]\n\tpoll = 100ms\n\tpollMax = 200ms\n");
    bob.set("user.name", "Bob Builder");
    let _ = alice.claim(&["take", "42"]).is(0, "claimed");
    (alice, bob)
}

const WAITING: &str = "waiting for issue-42, held by Alice Example";

on!(the_time_runs_out: path, daemon, ssh, https);
fn the_time_runs_out(kind: Kind) {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kind) else { return };
    let (_alice, bob) = holder_and_waiter(&sandbox, &remote);
    let (refs, seen) = (remote.refs(), remote.witnessed());
    let state = snapshot(&bob.dir);
    for args in [
        &["take", "42", "--wait", "1s"][..],
        &["run", "42", "--wait", "1s", "--", "sh", "-c", "echo ran"],
    ] {
        let started = Instant::now();
        let output = bob.claim(args).is(75, "held issue-42 by Alice Example").says(WAITING);
        assert!(started.elapsed() >= Duration::from_secs(1), "{output}");
        assert!(!output.stdout.contains("ran"), "{output}");
        assert_eq!(output.stderr.matches("waiting for").count(), 1, "told once\n{output}");
        assert_eq!(
            (remote.refs(), remote.witnessed(), bob.records().len()),
            (refs.clone(), seen.clone(), 0)
        );
    }
    state.still_holds(&bob.dir);
    let output = bob.claim(&["take", "42", "--wait", "0"]).is(75, "held issue-42 by");
    assert!(!output.stderr.contains("waiting for"), "{output}");
    for wait in ["1x", "-1s", "for ever", ""] {
        assert_eq!(bob.claim(&["take", "42", &format!("--wait={wait}")]).code, Some(2), "{wait}");
    }
}

on!(it_is_taken_when_it_is_free: path, reftable, sha256, daemon, ssh, https, https_v0);
fn it_is_taken_when_it_is_free(kind: Kind) {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kind) else { return };
    let (alice, bob) = holder_and_waiter(&sandbox, &remote);
    // Freed by deletion, and by the mark of a release.
    for by in ["delete", "mark"] {
        sandbox.configure(&format!("[claim]\n\trelease = {by}\n"));
        let mut take = bob.run(&["take", "42", "--wait", "forever"]).start();
        take.until_it_says(WAITING);
        let _ = alice.claim(&["release", "42"]).is(0, "released");
        let _ = take.end().is(0, "claimed issue-42 ");
        let mut run = alice.run(&["run", "42", "--wait", "1m", "--", "echo", "ran"]).start();
        run.until_it_says("waiting for issue-42, held by Bob Builder");
        let _ = bob.claim(&["release", "42"]).is(0, "released");
        let output = run.end().says("released issue-42");
        assert_eq!((output.code, output.stdout.as_str()), (Some(0), "ran\n"), "{output}");
        let _ = alice.claim(&["take", "42", "--wait", "1m"]).is(0, "claimed issue-42");
    }
}

/// The holder is told of once, whatever signs of life come, and the next holder is told of too.
#[test]
fn each_holder_is_told_of_once() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let (alice, bob) = holder_and_waiter(&sandbox, &remote);
    let carol = sandbox.clone(&remote, "carol");
    carol.set("user.name", "Carol Cook");
    let log = sandbox.path("asked");
    let logging = sandbox
        .script("upload-pack", &format!("echo >>{}; exec git upload-pack \"$@\"", log.display()));
    bob.set("remote.origin.uploadpack", logging.to_str().unwrap());
    let asked = || fs::read_to_string(&log).unwrap_or_default().lines().count();
    let mut waiter = bob.run(&["run", "42", "--wait", "forever", "--", "true"]).start();
    waiter.until_it_says(WAITING);
    for _ in 0..2 {
        let _ = alice.claim(&["renew", "42"]).is(0, "renewed");
        let now = asked();
        until("it was asked again", || asked() > now + 1);
    }
    let tip = remote.tip("issue-42").unwrap();
    let _ = carol.claim(&["take", "42", "--over", &tip, "--reason", "mine"]).is(0, "claimed");
    waiter.until_it_says("waiting for issue-42, held by Carol Cook");
    let now = asked();
    until("it was asked again", || asked() > now + 1);
    let _ = carol.claim(&["release", "42"]).is(0, "released");
    let output = waiter.end();
    assert_eq!(output.code, Some(0), "{output}");
    assert_eq!(output.stderr.matches("waiting for").count(), 2, "{output}");
}

/// Trouble on the way is told once, and waited out.
#[test]
fn the_remote_may_fail_meanwhile() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let (alice, bob) = holder_and_waiter(&sandbox, &remote);
    let away = sandbox.path("away");
    let mut waiter = bob.run(&["run", "42", "--wait", "forever", "--", "true"]).start();
    waiter.until_it_says(WAITING);
    fs::rename(&remote.dir, &away).unwrap();
    waiter.until_it_says("could not ask");
    // Several more polls in vain.
    thread::sleep(Duration::from_secs(1));
    assert!(!waiter.has_ended());
    fs::rename(&away, &remote.dir).unwrap();
    until("the holder is told again", || waiter.stderr().matches(WAITING).count() == 2);
    let _ = alice.claim(&["release", "42"]).is(0, "released");
    let output = waiter.end();
    assert_eq!(output.code, Some(0), "{output}");
    assert_eq!(output.stderr.matches("could not ask").count(), 1, "{output}");
    // Away from the start, until the time runs out: that is not "held".
    fs::rename(&remote.dir, &away).unwrap();
    let args = ["run", "42", "--wait", "1s", "--", "true"];
    let _ = bob.claim(&args).is(69, "unknown issue-42").says("could not ask");
    fs::rename(&away, &remote.dir).unwrap();
    assert_eq!(bob.records().len(), 0);
}

/// Whoever is turned away is not let in by waiting.
#[test]
fn a_closed_door_is_not_waited_at() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let Some(web) = servers::web() else { return };
    let clone = sandbox.clone(&remote, "a");
    let url = format!("http://127.0.0.1:{}/status/403/origin.git", web.http);
    for verb in [&["take", "42"][..], &["run", "42"]] {
        let more = ["--wait", "forever", "--remote", &url];
        let command = if verb[0] == "run" { &["--", "true"][..] } else { &[] };
        let _ = clone.claim(&[verb, &more, command].concat()).is(77, "refused issue-42");
    }
    // It may be read and not be written: that is not waited for either.
    remote.hook("update", "echo 'not here' >&2; exit 1");
    let _ = clone.claim(&["take", "42", "--wait", "forever"]).is(77, "refused issue-42");
}

/// A signal ends the waiting, and nothing of it is left.
#[test]
fn a_signal_ends_the_waiting() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let (alice, bob) = holder_and_waiter(&sandbox, &remote);
    let seen = remote.witnessed();
    for (signal, number) in
        [(Signal::INT, 2), (Signal::TERM, 15), (Signal::HUP, 1), (Signal::QUIT, 3)]
    {
        let mut run = bob.run(&["run", "42", "--wait", "forever", "--", "true"]).start();
        run.until_it_says(WAITING);
        run.signal(signal);
        let output = run.end().is(128 + number, "held issue-42 by Alice Example");
        assert!(!output.stderr.contains("could not ask"), "{output}");
        let mut take = bob.run(&["take", "42", "--wait", "forever"]).start();
        take.until_it_says(WAITING);
        take.signal(signal);
        assert_eq!(take.end().code, None, "ended by the signal itself");
    }
    assert_eq!((bob.records().len(), remote.witnessed()), (0, seen));
    assert_eq!(sandbox.left_running(), Vec::<String>::new());
    // As a person does it.
    let Some(mut terminal) = Terminal::open(&bob) else { return };
    for (verb, shown) in [
        ("take 42 --wait 1h", "(59m 5"),
        ("run 42 --wait forever -- true", "(for as long as it takes)"),
    ] {
        terminal.type_in(&format!("git-claim {verb}\n"));
        terminal.until_it_shows(shown);
        terminal.type_in("\x03");
        assert_eq!(terminal.status(), "130", "{}", terminal.shown());
    }
    assert_eq!(bob.records().len(), 0);
    let _ = alice.claim(&["release", "42"]).is(0, "released");
}

/// Of twenty who wait one gets it; the others wait on, and nobody tries to write while it is held.
#[test]
fn of_twenty_who_wait_one_gets_it() {
    const CROWD: u64 = 20;
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let Some(port) = servers::daemon(Daemon::Writable) else { return };
    let proxy = Proxy::start(port, Mode::Count);
    let alice = sandbox.clone(&remote, "alice");
    let _ = alice.claim(&["take", "42"]).is(0, "claimed");
    let below_root = remote.dir.strip_prefix(servers::root()).unwrap().display();
    let url = format!("git://127.0.0.1:{}/{below_root}", proxy.port);
    sandbox.configure("[claim]\n\tpoll = 500ms\n\tpollMax = 500ms\n");
    let won = sandbox.path("won");
    let script = format!("echo >>{}; while :; do sleep 0.05; done", won.display());
    let waiter = |number: u64| {
        let clone = sandbox.empty(&remote, &format!("c{number}"));
        clone.point_to(&url);
        clone.run(&["run", "42", "--wait", "forever", "--", "sh", "-c", &script]).start()
    };
    let mut crowd = (0..CROWD).map(waiter).collect::<Vec<Running>>();
    for waiter in &mut crowd {
        waiter.until_it_says(WAITING);
    }
    let asked = proxy.connections();
    until("everybody asked thrice", || proxy.connections() >= asked + 3 * CROWD);
    assert_eq!(proxy.pushes(), 0, "nobody writes while it is held");
    assert_eq!(remote.witnessed().len(), 1);
    let winners = || fs::read_to_string(&won).unwrap_or_default().lines().count();
    let _ = alice.claim(&["release", "42"]).is(0, "released");
    until("somebody got it", || winners() > 0);
    let asked = proxy.connections();
    until("everybody asked thrice", || proxy.connections() >= asked + 3 * CROWD);
    assert_eq!(winners(), 1);
    // Only those tried that had seen it free.
    let tried = proxy.pushes();
    assert!((1..=CROWD).contains(&tried), "{tried}");
    let asked = proxy.connections();
    until("everybody asked again", || proxy.connections() >= asked + CROWD);
    assert_eq!((winners(), proxy.pushes()), (1, tried));
    assert_eq!(crowd.iter_mut().filter_map(|waiter| waiter.has_ended().then_some(())).count(), 0);
    for waiter in &mut crowd {
        waiter.signal(Signal::INT);
    }
    let codes = crowd.into_iter().map(|waiter| waiter.end().code).collect::<Vec<_>>();
    assert_eq!(codes, [Some(130); CROWD as usize]);
    assert_eq!(remote.tip("issue-42"), None);
}

/// What a waiter costs the server with the settings that come with the program: it asks less and less often.
#[test]
fn a_waiter_asks_seldom() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let Some(port) = servers::daemon(Daemon::Writable) else { return };
    let proxy = Proxy::start(port, Mode::Count);
    let alice = sandbox.clone(&remote, "alice");
    let _ = alice.claim(&["take", "42"]).is(0, "claimed");
    let below_root = remote.dir.strip_prefix(servers::root()).unwrap().display();
    let url = format!("git://127.0.0.1:{}/{below_root}", proxy.port);
    let args = ["take", "42", "--wait", "6s", "--remote", &url];
    let output = alice.claim(&args).is(75, "held issue-42");
    // At 0, 2, 5 and the end; each a quarter earlier at most.
    assert!((4..=5).contains(&proxy.connections()), "{}: {output}", proxy.connections());
}

/// A number of the generator by Marsaglia, so that a round can be had again.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % most
    }
}

/// Jobs on one name, in rounds: started at random, some of them ended by TERM and some by KILL, whose claims somebody
/// clears who saw that they are dead. By what they append to a file no two of them ever overlap.
///
/// `GIT_CLAIM_TEST_ROUNDS` is how many rounds, `GIT_CLAIM_TEST_SEED` the seed.
#[test]
fn no_two_jobs_ever_overlap() {
    let number = |name: &str, default: u64| {
        std::env::var(name).map_or(default, |value| value.parse().unwrap())
    };
    let (rounds, seed) =
        (number("GIT_CLAIM_TEST_ROUNDS", 200), number("GIT_CLAIM_TEST_SEED", 4711));
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    sandbox.configure("[claim]\n\tpoll = 50ms\n\tpollMax = 100ms\n");
    let clones = Arc::new(["a", "b", "c", "judge"].map(|name| sandbox.clone(&remote, name)));
    let ran = thread::scope(|scope| {
        let lanes = (0..4).map(|lane: u64| {
            let (clones, sandbox, remote) = (&clones, &sandbox, &remote);
            scope.spawn(move || {
                let mut dice = Dice((seed + 1 + lane).wrapping_mul(0x9e37_79b9_7f4a_7c15));
                let lane = Lane {
                    name: format!("lane-{lane}"),
                    witness: sandbox.path(&format!("witness-{lane}")).display().to_string(),
                };
                (0..rounds.div_ceil(4)).for_each(|_| lane.round(clones, remote, &mut dice));
                lane.judge()
            })
        });
        let lanes = lanes.collect::<Vec<_>>();
        lanes.into_iter().map(|lane| lane.join().unwrap()).sum::<usize>()
    });
    // On a busy machine many are ended before they begin; but a test in which nobody works shows nothing.
    assert!(2 * ran >= usize::try_from(rounds).unwrap(), "{ran} jobs in {rounds} rounds");
}

/// One name, and the file that its jobs append to.
struct Lane {
    name: String,
    witness: String,
}

impl Lane {
    fn round(&self, clones: &[Clone; 4], remote: &Remote, dice: &mut Dice) {
        let [jobs @ .., judge] = clones;
        let count = 2 + usize::try_from(dice.below(2)).unwrap();
        let mut running = Vec::new();
        for clone in jobs.iter().take(count) {
            let id = format!("{}-{:016x}", self.name, dice.0);
            let nap = dice.below(80) + 10;
            let script = format!(
                "trap 'echo end {id} >>{w}; exit 143' TERM; echo start {id} >>{w}; sleep 0.0{nap}; \
                 sleep 0.02; echo end {id} >>{w}",
                w = self.witness
            );
            let args = ["run", &self.name, "--wait", "50s", "--heartbeat", "1s", "--", "sh", "-c"];
            let run = clone.run(&[&args[..], &[&script]].concat()).env("JOB", &id).start();
            running.push((id, run));
            thread::sleep(Duration::from_millis(dice.below(60)));
        }
        let mut dead = Vec::new();
        for (id, run) in &mut running {
            thread::sleep(Duration::from_millis(dice.below(120)));
            match dice.below(10) {
                0..3 => run.signal(Signal::TERM),
                3..6 => {
                    run.signal(Signal::KILL);
                    self.bury(id, run);
                    dead.push(run.pid());
                }
                _ => {}
            }
        }
        // Somebody who knows that they are dead clears what they left, also what lands only now.
        until("all jobs of the round have ended", || {
            self.clear(&dead, judge, remote);
            running.iter_mut().all(|(_, run)| run.has_ended())
        });
        self.clear(&dead, judge, remote);
        let outputs = running.into_iter().map(|(_, run)| run.end()).collect::<Vec<_>>();
        let told = || outputs.iter().map(ToString::to_string).collect::<String>();
        assert_eq!(remote.tip(&self.name), None, "{}", told());
        let ended = |code| matches!(code, Some(0 | 143) | None);
        assert!(outputs.iter().all(|output| ended(output.code)), "{}", told());
    }

    /// Ends whatever a killed job has left running, and says in its stead that it has ended.
    fn bury(&self, id: &str, run: &mut Running) {
        until("it has ended", || run.has_ended());
        let entry = format!("JOB={id}");
        until("nothing of it runs", || {
            let left = processes_with(&entry);
            // Not the server's programs, which a kill would make leave a lock behind: those end by themselves.
            for (pid, _) in left.iter().filter(|(_, command)| command.contains(id)) {
                let _ = kill_process(Pid::from_raw(*pid).unwrap(), Signal::KILL);
            }
            left.is_empty()
        });
        let mut witness = OpenOptions::new().append(true).create(true).open(&self.witness).unwrap();
        writeln!(witness, "end {id}").unwrap();
    }

    fn clear(&self, dead: &[u32], judge: &Clone, remote: &Remote) {
        let Some(tip) = remote.tip(&self.name) else { return };
        let record = remote.git(&["cat-file", "-p", &tip]);
        if dead.iter().any(|pid| record.contains(&format!("\nProcess: {pid} "))) {
            let _ = judge.claim(&["release", &self.name, "--expect", &tip]);
        }
    }

    /// Reads the file; gives the number of jobs that ran.
    fn judge(&self) -> usize {
        let text = fs::read_to_string(Path::new(&self.witness)).unwrap_or_default();
        let (mut now, mut ran) = (None, 0);
        for line in text.lines() {
            let (word, id) = line.split_once(' ').unwrap();
            if word == "start" {
                assert_eq!(now, None, "{id} started meanwhile\n{text}");
                (now, ran) = (Some(id), ran + 1);
            } else if now == Some(id) {
                now = None;
            }
        }
        assert_eq!(now, None, "{text}");
        ran
    }
}
