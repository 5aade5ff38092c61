//! Clients that do at random what clients do, and are stopped and killed at it; every answer is kept, and compared in the end
//! with what the server saw.

use std::{
    fs,
    sync::Mutex,
    thread,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use rustix::process::Signal;

use super::{
    Chance, Size,
    checker::{Act, Call, Move, Told, violations},
};
use crate::support::{Clone, Kind, Output, Remote, Sandbox, on};

const CLIENTS: usize = 4;
const NAMES: [&str; 3] = ["a", "b", "c"];
/// In the short form.
const SHORT: Duration = Duration::from_secs(12);

/// Writes down every move of a ref once it is made, with the time.
pub(super) const WITNESS: &str = r#"test "$1" = committed || exit 0
while read old new ref
do
	echo "$(date +%s%N) $old $new $ref"
done >>"$GIT_DIR/moves""#;

on!(what_was_told_was_so: path, reftable, daemon, ssh, https);
fn what_was_told_was_so(kind: Kind) {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kind) else { return };
    remote.hook("reference-transaction", WITNESS);
    let size = Size::asked_for();
    let people: [Clone; CLIENTS] = sandbox.people(&remote, ["Ann", "Bob", "Cat", "Dan"]);
    let (began, began_at) = (Instant::now(), SystemTime::now());
    let calls = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for (who, clone) in people.iter().enumerate() {
            let (calls, seed) = (&calls, size.seed + who as u64);
            scope.spawn(move || {
                let mut chance = Chance::new(seed);
                while began.elapsed() < size.time.unwrap_or(SHORT) {
                    let call = one_call(who, clone, &mut chance, began);
                    calls.lock().unwrap().push(call);
                }
            });
        }
    });
    // What was killed may still be at work on the server.
    thread::sleep(Duration::from_secs(1));
    let calls = calls.into_inner().unwrap();
    let moves = moves(&remote, began_at);
    let wrong = violations(&calls, &moves);
    let told = |told: fn(&Told) -> bool| calls.iter().filter(|call| told(&call.told)).count();
    eprintln!(
        "lab: history: {} calls in {:?}, {} moves, {} won, {} without an answer, seed {}, violations: {}",
        calls.len(),
        began.elapsed(),
        moves.len(),
        told(|told| matches!(told, Told::Claimed(_))),
        told(|told| *told == Told::Nothing),
        size.seed,
        wrong.len()
    );
    assert!(wrong.is_empty(), "seed {}\n{}", size.seed, wrong.join("\n"));
    assert!(told(|told| matches!(told, Told::Claimed(_))) > 3, "{calls:?}");
}

/// One invocation, chosen by chance.
fn one_call(who: usize, clone: &Clone, chance: &mut Chance, began: Instant) -> Call {
    let name = (*chance.one_of(&NAMES)).to_owned();
    let act = match chance.below(20) {
        0..=6 => Act::Take,
        7..=10 => Act::Release,
        11..=12 => Act::Renew,
        13..=14 => Act::Verify,
        15 => Act::Run,
        _ => match there(clone, &name) {
            Some(id) if chance.below(2) == 0 => Act::Over(id),
            Some(id) => Act::Clear(id),
            None => Act::Take,
        },
    };
    let mut args: Vec<&str> = match &act {
        Act::Take => vec!["take", &name],
        Act::Release => vec!["release", &name],
        Act::Renew => vec!["renew", &name],
        Act::Verify => vec!["verify", &name],
        Act::Over(id) => vec!["take", &name, "--over", id, "--reason", "chance"],
        Act::Clear(id) => vec!["release", &name, "--expect", id],
        Act::Run => vec!["run", &name, "--", "sleep", "0.2"],
    };
    args.insert(1, "--json");
    let start = began.elapsed();
    let mut running = clone.run(&args).start();
    match chance.below(10) {
        0 => {
            thread::sleep(Duration::from_millis(chance.below(120)));
            running.signal(Signal::KILL);
        }
        1 => {
            thread::sleep(Duration::from_millis(chance.below(60)));
            running.signal(Signal::STOP);
            thread::sleep(Duration::from_millis(chance.below(400)));
            running.signal(Signal::CONT);
        }
        _ => {}
    }
    let output = running.end();
    let told = told(&act, &output);
    Call { who, name, act, start, end: began.elapsed(), told }
}

/// The id that stands there now, as the client sees it.
fn there(clone: &Clone, name: &str) -> Option<String> {
    let shown = clone.run(&["verify", name]).go_json();
    shown.code?;
    shown.json()["claims"][0]["id"].as_str().map(str::to_owned)
}

pub(super) fn told(act: &Act, output: &Output) -> Told {
    let Some(code) = output.code else { return Told::Nothing };
    if *act == Act::Run && code == 0 {
        return Told::Ran;
    }
    // What `run` has to say is beside what its command says.
    if *act == Act::Run && code != 75 {
        return Told::Nothing;
    }
    let text = if output.stdout.trim().is_empty() { &output.stderr } else { &output.stdout };
    let Some(line) = text.lines().find(|line| line.starts_with('{')) else {
        panic!("no JSON\n{output}");
    };
    let json: serde_json::Value = serde_json::from_str(line).unwrap();
    let claim = &json["claims"][0];
    let id = || claim["id"].as_str().unwrap_or_default().to_owned();
    match claim["verdict"].as_str().unwrap_or_default() {
        "claimed" => Told::Claimed(id()),
        "held" => Told::Held(id()),
        "released" => Told::Released(id()),
        "renewed" => Told::Renewed(id()),
        "yours" => Told::Yours(id()),
        "lost" => Told::Lost(id()),
        "moved" => Told::Moved(id()),
        "free" => Told::Free,
        "unknown" | "refused" => Told::Nothing,
        other => panic!("{other}?\n{output}"),
    }
}

/// The server's moves of claims, by the clock of the run.
pub(super) fn moves(remote: &Remote, began: SystemTime) -> Vec<Move> {
    let log = fs::read_to_string(remote.dir.join("moves")).unwrap_or_default();
    let value = |hex: &str| hex.bytes().any(|byte| byte != b'0').then(|| hex.to_owned());
    log.lines()
        .filter_map(|line| {
            let [at, old, new, name] = line.split(' ').collect::<Vec<_>>()[..] else {
                panic!("not a move: {line}");
            };
            let name = name.strip_prefix("refs/claims/")?.to_owned();
            let at = UNIX_EPOCH + Duration::from_nanos(at.parse().unwrap());
            let at = at.duration_since(began).unwrap_or_default();
            Some(Move { at, name, old: value(old), new: value(new) })
        })
        .collect()
}
