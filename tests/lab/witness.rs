//! What the server saw: every move of a ref, from when to when it was made, and what the commit that was put there says of
//! itself.
//!
//! The log has two lines for a move: one once the lock is held and nothing is moved yet, one once it is moved. So the very
//! moment lies between two times that are known, and nothing has to be taken on trust.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use super::checker::{At, Made, Move};
use crate::support::{Remote, until};

/// Writes down each step of a ref's transaction. At some ids, which are as good as chance, it stays there: with the lock
/// held, or with the ref moved and the answer not given.
const MOVES: &str = r#"while read old new ref
do
	echo "$1 $(date +%s%N) $PPID $old $new $ref" >>"$GIT_DIR/moves"
	case "$new" in *[!0]*) id=$new ;; *) id=$old ;; esac
done
case "$1$id" in
prepared*1) sleep 0.3 ;;
committed*2) sleep 0.7 ;;
esac"#;

/// Stays at some ids before anything is locked.
const DELAYS: &str = r#"case "$3" in *[!0]*) id=$3 ;; *) id=$2 ;; esac
case "$id" in
*3) sleep 1.5 ;;
*[45]) sleep 0.2 ;;
esac"#;

/// Lets the server write down what it does, and take its time for it.
pub(super) fn watch(remote: &Remote) {
    fs::create_dir(remote.dir.join("collected")).unwrap();
    remote.hook("reference-transaction", MOVES);
    remote.hook("update", DELAYS);
}

/// The time now, since `began`.
pub(super) fn since(began: SystemTime) -> At {
    SystemTime::now().duration_since(began).unwrap_or_default()
}

/// A host keeps what nothing refers to for days. Shorter than any push takes it must not be: receive-pack compares
/// nothing where what it is to delete is gone.
const KEPT: Duration = Duration::from_secs(6);

/// Throws away the commits of claims that went long ago, as a host does sooner or later. What they said is kept beside.
pub(super) fn collect(remote: &Remote) {
    let log = fs::read_to_string(remote.dir.join("moves")).unwrap_or_default();
    let standing = remote.refs();
    for line in log.lines() {
        let [state, at, _, old, new, _] = line.split(' ').collect::<Vec<_>>()[..] else { continue };
        let gone_at = UNIX_EPOCH + Duration::from_nanos(at.parse().unwrap());
        if gone_at.elapsed().unwrap_or_default() < KEPT {
            continue;
        }
        let object = remote.dir.join("objects").join(&old[..2]).join(&old[2..]);
        let gone = state == "committed" && value(new).is_none() && !standing.contains(old);
        if gone && object.exists() {
            let says = remote.git(&["cat-file", "commit", old]);
            fs::write(remote.dir.join("collected").join(old), says).unwrap();
            fs::remove_file(object).unwrap();
        }
    }
}

/// Waits until nothing is at work on the server any more.
pub(super) fn until_quiet(remote: &Remote) {
    let mut quiet = 0;
    until("the server has done all it was asked to", || {
        quiet = if at_work(remote) { 0 } else { quiet + 1 };
        quiet > 30
    });
}

/// Whether a process is in the repository, where git's server programs go.
fn at_work(remote: &Remote) -> bool {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    processes
        .filter_map(|process| fs::read_link(process.path().join("cwd")).ok())
        .any(|cwd| cwd == remote.dir)
}

/// All moves of claims and of requests to their holders, as they were made, by the clock of the run. `left` is what stands
/// in the end.
pub(super) fn moves(
    remote: &Remote,
    began: SystemTime,
    people: &[&str],
    left: &BTreeMap<String, String>,
) -> Vec<Move> {
    let log = fs::read_to_string(remote.dir.join("moves")).unwrap_or_default();
    let mut under_way = BTreeMap::new();
    let mut steps: BTreeMap<String, Vec<Step>> = BTreeMap::new();
    for line in log.lines() {
        let [state, at, push, old, new, refname] = line.split(' ').collect::<Vec<_>>()[..] else {
            panic!("not a move: {line}");
        };
        let name = match refname.strip_prefix("refs/claims/") {
            Some(name) => name,
            None if refname.starts_with("refs/claims-asked/") => refname,
            None => continue,
        };
        let at = UNIX_EPOCH + Duration::from_nanos(at.parse().unwrap());
        let at = at.duration_since(began).unwrap_or_default();
        let of_name = steps.entry(name.to_owned()).or_default();
        let key = (push, old, new, refname);
        if state == "prepared" {
            under_way.insert(key, of_name.len());
            let (old, new) = (value(old), value(new));
            let push = push.parse().unwrap();
            let name = name.to_owned();
            let made = Move { name, old, new, from: at, to: At::ZERO, push, made: None };
            of_name.push(Step { made, end: End::NotSaid });
            continue;
        }
        // Nothing was locked where it came to nothing before.
        let Some(step) = under_way.remove(&key) else {
            assert_ne!(state, "committed", "what is moved was prepared: {line}");
            continue;
        };
        let step = &mut of_name[step];
        step.end = if state == "committed" { End::Moved } else { End::Stayed };
        step.made.to = at;
    }
    let now = since(began);
    let lines = steps.into_iter().flat_map(|(name, mut steps)| {
        steps.retain(|step| step.end != End::Stayed);
        steps.sort_by_key(|step| step.made.from);
        in_line(steps, left.get(&name).map(String::as_str), now)
    });
    let mut moves: Vec<Move> = lines.collect();
    for one in &mut moves {
        one.made = one.new.as_deref().map(|id| made(&says(remote, id), people));
    }
    moves
}

/// What a transaction did to one ref.
struct Step {
    made: Move,
    end: End,
}

/// How it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Moved,
    Stayed,
    /// The server's program was ended before it could say so: by a client whose time was up, whose child it is.
    NotSaid,
}

/// The moves that were made: those that say so, and of the others those without which they are no line.
fn in_line(steps: Vec<Step>, left: Option<&str>, now: At) -> Vec<Move> {
    let chosen = chosen(&steps, None, left);
    let is_chosen = |at: usize, step: &Step| match &chosen {
        Some(chosen) => chosen.contains(&at),
        None => step.end == End::Moved,
    };
    let steps = steps.into_iter().enumerate().filter(|(at, step)| is_chosen(*at, step));
    let mut moves: Vec<(Move, End)> = steps.map(|(_, step)| (step.made, step.end)).collect();
    for at in 0..moves.len() {
        let next = moves.get(at + 1).map_or(now, |(next, _)| next.from);
        let (one, end) = &mut moves[at];
        if *end == End::NotSaid {
            one.to = next;
        }
    }
    moves.into_iter().map(|(one, _)| one).collect()
}

/// The numbers of the steps that lead from `value` to `left`.
fn chosen(steps: &[Step], value: Option<&str>, left: Option<&str>) -> Option<BTreeSet<usize>> {
    // Not by recursion over all of them: a choice is where an end is not said, which is rare.
    let mut open = vec![(0, value, BTreeSet::new())];
    while let Some((at, value, chosen)) = open.pop() {
        let Some(step) = steps.get(at) else {
            if value == left {
                return Some(chosen);
            }
            continue;
        };
        if step.end == End::NotSaid {
            open.push((at + 1, value, chosen.clone()));
        }
        if step.made.old.as_deref() == value {
            let with_it = chosen.into_iter().chain([at]).collect();
            open.push((at + 1, step.made.new.as_deref(), with_it));
        }
    }
    None
}

fn value(hex: &str) -> Option<String> {
    hex.bytes().any(|byte| byte != b'0').then(|| hex.to_owned())
}

fn says(remote: &Remote, id: &str) -> String {
    fs::read_to_string(remote.dir.join("collected").join(id))
        .unwrap_or_else(|_| remote.git(&["cat-file", "commit", id]))
}

/// What a commit says of itself. The note of a take is the number of the call.
fn made(commit: &str, people: &[&str]) -> Made {
    let after = |key: &str| commit.lines().find_map(|line| line.strip_prefix(key));
    let author = after("author ").unwrap_or_default();
    let who = people.iter().position(|name| author.starts_with(name));
    Made {
        who: who.expect("the commit of one of the clients"),
        token: after("Claim-Token: ").unwrap_or_default().to_owned(),
        call: after("call ").and_then(|number| number.parse().ok()),
        parents: commit
            .lines()
            .map_while(|line| (!line.is_empty()).then(|| line.strip_prefix("parent ")))
            .flatten()
            .map(str::to_owned)
            .collect(),
    }
}

#[test]
fn a_move_that_is_not_said_to_have_been_made_is_told_by_what_came_after() {
    let step = |at: u64, old: &str, new: &str, end| {
        let value = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let (old, new, from) = (value(old), value(new), Duration::from_secs(at));
        let made = Move { name: "a".into(), old, new, from, to: from, push: at, made: None };
        Step { made, end }
    };
    let steps = || {
        vec![
            step(1, "", "x", End::Moved),
            step(2, "x", "y", End::NotSaid),
            step(3, "x", "", End::NotSaid),
            step(4, "", "z", End::Moved),
        ]
    };
    let made = |steps, left| {
        let line = in_line(steps, left, Duration::from_secs(9));
        line.into_iter().map(|one| (one.push, one.to.as_secs())).collect::<Vec<_>>()
    };
    // The deletion ended before the next began.
    assert_eq!(made(steps(), Some("z")), [(1, 1), (3, 4), (4, 4)]);
    assert_eq!(made(steps().into_iter().take(2).collect(), Some("x")), [(1, 1)]);
    assert_eq!(made(steps().into_iter().take(2).collect(), Some("y")), [(1, 1), (2, 9)]);
    // No choice makes them a line: it is for the checker to say so.
    assert_eq!(made(steps(), Some("q")), [(1, 1), (4, 4)]);
}
