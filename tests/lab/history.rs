//! Clients that do at random what clients do, and are stopped and killed at it, on a server that takes its time; every answer
//! is kept, and compared in the end with what the server saw.

use std::{
    collections::BTreeMap,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, SystemTime},
};

use rustix::process::Signal;
use serde_json::Value;

use super::{
    Chance, Size,
    checker::{Act, Answer, Call, History, Told, story, violations},
    witness,
};
use crate::support::{Clone, Kind, Output, Remote, Sandbox, on, until};

const PEOPLE: [&str; 4] = ["Ann", "Bob", "Cat", "Dan"];
/// The clones that somebody works in: Ann's has two at once.
const AT_WORK: [usize; 5] = [0, 1, 2, 3, 0];
const NAMES: [&str; 3] = ["a", "b", "c"];
/// In the short form.
const SHORT: Duration = Duration::from_secs(8);
const LONGER: Duration = Duration::from_secs(60);
/// As many violations are told with all that happened around them.
const TOLD: usize = 5;

on!(what_was_told_was_so: path, reftable, daemon, ssh, https);
fn what_was_told_was_so(kind: Kind) {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kind) else { return };
    let size = Size::asked_for();
    let people = sandbox.people(&remote, PEOPLE);
    witness::watch(&remote);
    let field = Field {
        remote: &remote,
        people: &people,
        began: SystemTime::now(),
        time: size.time.unwrap_or(SHORT),
        number: AtomicUsize::new(0),
        calls: Mutex::new(Vec::new()),
    };
    thread::scope(|scope| {
        for (worker, who) in AT_WORK.into_iter().enumerate() {
            let (field, seed) = (&field, size.seed + worker as u64);
            scope.spawn(move || field.work(who, Chance::new(seed)));
        }
        scope.spawn(|| field.keep_house());
    });
    // What was killed may still be at work.
    until("all children have ended", || sandbox.left_running().is_empty());
    witness::until_quiet(&remote);
    let tip = |name: &str| Some((name.to_owned(), remote.tip(name)?));
    let left = NAMES.into_iter().filter_map(tip).chain(requests(&remote)).collect();
    let history = History {
        moves: witness::moves(&remote, field.began, &PEOPLE, &left),
        left,
        calls: field.calls.into_inner().unwrap(),
    };
    let wrong = violations(&history);
    eprintln!(
        "lab: history, {kind:?}: {} calls in {:?}, {} moves, {} wins, {} ended without an answer, seed {}, violations: {}",
        history.calls.len(),
        field.time,
        history.moves.len(),
        history.calls.iter().flat_map(answers).filter(|one| is_win(one)).count(),
        history.calls.iter().filter(|call| call.answers.is_none()).count(),
        size.seed,
        wrong.len()
    );
    let stories: Vec<String> = wrong.iter().take(TOLD).map(|one| story(&history, one)).collect();
    assert!(
        wrong.is_empty(),
        "{}\nThe same choices again: GIT_CLAIM_LAB_SEED={} GIT_CLAIM_LAB_SECONDS={} cargo test --test suite {} -- --nocapture",
        stories.join("\n"),
        size.seed,
        field.time.as_secs(),
        thread::current().name().unwrap_or("lab::history"),
    );
    assert!(history.calls.iter().flat_map(answers).any(is_win), "nobody ever won");
}

fn answers(call: &Call) -> &[Answer] {
    call.answers.as_deref().unwrap_or_default()
}

fn is_win(answer: &Answer) -> bool {
    matches!(answer.told, Told::Claimed(_))
}

/// What stands in the end beside the claims.
fn requests(remote: &Remote) -> BTreeMap<String, String> {
    let refs = remote.refs();
    let of = |line: &str| {
        let (id, name) = line.split_once(' ')?;
        name.starts_with("refs/claims-asked/").then(|| (name.to_owned(), id.to_owned()))
    };
    refs.lines().filter_map(of).collect()
}

/// Where all of it happens.
struct Field<'a> {
    remote: &'a Remote,
    people: &'a [Clone],
    began: SystemTime,
    time: Duration,
    number: AtomicUsize,
    calls: Mutex<Vec<Call>>,
}

impl Field<'_> {
    /// For the time given, and on a machine that is busy until somebody has won.
    fn is_open(&self) -> bool {
        let over = witness::since(self.began);
        let won = || self.calls.lock().unwrap().iter().flat_map(answers).any(is_win);
        over < self.time || (over < self.time + LONGER && !won())
    }

    /// One call after the other.
    fn work(&self, who: usize, mut chance: Chance) {
        let mut known = BTreeMap::new();
        while self.is_open() {
            let call = self.one_call(who, &mut known, &mut chance);
            self.calls.lock().unwrap().push(call);
        }
    }

    /// What a host does meanwhile.
    fn keep_house(&self) {
        while self.is_open() {
            thread::sleep(Duration::from_millis(500));
            witness::collect(self.remote);
        }
    }

    /// One invocation, chosen by chance. `known` are the ids that were there when it was last looked.
    fn one_call(
        &self,
        who: usize,
        known: &mut BTreeMap<String, String>,
        chance: &mut Chance,
    ) -> Call {
        let first = chance.below(NAMES.len() as u64) as usize;
        let several = 2 + chance.below(2) as usize;
        let names = |count: usize| -> Vec<String> {
            let order = NAMES.iter().cycle().skip(first).take(count);
            order.map(|name| (*name).to_owned()).collect()
        };
        let (act, names) = match chance.below(34) {
            0..=6 => (Act::Take, names(1)),
            7..=8 => (Act::Take, names(several)),
            9..=10 => (Act::Any, names(several)),
            11..=12 => (Act::Resume, names(1)),
            13..=18 => (Act::Release, names(1)),
            19..=20 => (Act::Renew, names(1)),
            21..=22 => (Act::Verify, names(1)),
            23 => (Act::Run, names(1)),
            24 => (Act::Ask, names(1)),
            25 => (Act::List, names(NAMES.len())),
            26 => (Act::Stale, names(NAMES.len())),
            what => {
                // As the last report showed it, or as a new one does.
                let seen = known.get(NAMES[first]).filter(|_| chance.below(4) == 0).cloned();
                match (seen.or_else(|| self.remote.tip(NAMES[first])), what % 2) {
                    (Some(id), 0) => (Act::Over(id), names(1)),
                    (Some(id), _) => (Act::Clear(id), names(1)),
                    (None, _) => (Act::Take, names(1)),
                }
            }
        };
        if let Act::Over(id) | Act::Clear(id) = &act {
            known.insert(names[0].clone(), id.clone());
        }
        let number = self.number.fetch_add(1, Ordering::Relaxed);
        let hurried = chance.below(7) == 0;
        let words = words(&act, &names, number, hurried);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let start = witness::since(self.began);
        let mut running = self.people[who].run(&words).start();
        disturb(&mut running, chance);
        let output = running.end();
        let end = witness::since(self.began);
        let answers = heard(&act, &output);
        Call { number, who, act, names, start, end, hurried, answers }
    }
}

/// What is typed.
fn words(act: &Act, names: &[String], number: usize, hurried: bool) -> Vec<String> {
    let note = format!("call {number}");
    let (verb, options): (&str, Vec<&str>) = match act {
        Act::Take => ("take", vec!["--note", &note]),
        Act::Any => ("take", vec!["--note", &note, "--any"]),
        Act::Resume => ("take", vec!["--note", &note, "--resume"]),
        Act::Release => ("release", vec![]),
        Act::Renew => ("renew", vec![]),
        Act::Verify => ("verify", vec![]),
        Act::Over(id) => ("take", vec!["--note", &note, "--over", id, "--reason", "chance"]),
        Act::Clear(id) => ("release", vec!["--expect", id]),
        Act::Run => ("run", vec!["--note", &note, "--heartbeat", "1s"]),
        Act::Ask => ("ask", vec!["--reason", "chance"]),
        Act::List => ("list", vec![]),
        Act::Stale => ("stale", vec!["--older-than", "1s"]),
    };
    let mut words = vec![verb, "--json"];
    if hurried {
        words.extend(["--timeout", "500ms"]);
    }
    words.extend(options);
    if !matches!(act, Act::List | Act::Stale) {
        words.extend(names.iter().map(String::as_str));
    }
    if *act == Act::Run {
        words.extend(["--", "sleep", if number.is_multiple_of(4) { "1.5" } else { "0.1" }]);
    }
    words.into_iter().map(str::to_owned).collect()
}

/// Kills it, or stops it for a while, or lets it be.
fn disturb(running: &mut crate::support::output::Running, chance: &mut Chance) {
    let what = chance.below(10);
    let (before, stopped) = (chance.below(300), chance.below(1000));
    if what > 1 {
        return;
    }
    thread::sleep(Duration::from_millis(before));
    if what == 0 {
        running.signal(Signal::KILL);
    } else {
        running.signal(Signal::STOP);
        thread::sleep(Duration::from_millis(stopped));
        running.signal(Signal::CONT);
    }
}

/// What a client was told of each name; nothing where it was killed or could not begin.
fn heard(act: &Act, output: &Output) -> Option<Vec<Answer>> {
    let code = output.code?;
    assert!([0, 3, 69, 75, 77].contains(&code), "no verdict\n{output}");
    // What `run` has to say of its end is beside what its command says.
    let line =
        output.stdout.lines().chain(output.stderr.lines()).find(|line| line.starts_with('{'));
    let Some(line) = line else { panic!("no JSON\n{output}") };
    let json: Value = serde_json::from_str(line).unwrap();
    if code == 69 && *act == Act::List {
        return None;
    }
    let claims = json["claims"].as_array().unwrap();
    Some(claims.iter().map(|claim| answer(act, claim, output)).collect())
}

fn answer(act: &Act, claim: &Value, output: &Output) -> Answer {
    let id = || claim["id"].as_str().unwrap_or_default().to_owned();
    let told = match claim["verdict"].as_str().unwrap_or_default() {
        _ if *act == Act::Stale => Told::Listed(id()),
        "claimed" => Told::Claimed(id()),
        "held" => Told::Held(id()),
        "released" => Told::Released(id()),
        "renewed" => Told::Renewed(id()),
        "yours" => Told::Yours(id()),
        "lost" => Told::Lost(id()),
        "moved" => Told::Moved(id()),
        "asked" => Told::Asked(id()),
        "listed" => Told::Listed(id()),
        "free" => Told::Free,
        "unknown" | "refused" => Told::Nothing,
        other => panic!("{other}?\n{output}"),
    };
    let holder = claim["holder"]["name"].as_str().map(|name| {
        let who = PEOPLE.iter().position(|known| name.starts_with(known));
        who.unwrap_or(PEOPLE.len())
    });
    let name = claim["name"].as_str().unwrap().to_owned();
    Answer { name, told, holder, mine: claim["mine"] == true }
}
