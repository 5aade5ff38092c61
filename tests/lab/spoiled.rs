//! The checker's own tests: histories that are as they should be, and one for each way in which they should not be.

use std::time::Duration;

use super::checker::{Act, Answer, At, Call, History, Made, Move, Told, violations};

const ANN: usize = 0;
const BOB: usize = 1;
const CAT: usize = 2;
const DAN: usize = 3;

/// Calls begin and end at full steps, moves are made in between.
fn step(step: u64) -> At {
    Duration::from_secs(step * 100)
}

fn call(number: usize, who: usize, act: Act, name: &str, from: u64, told: Told) -> Call {
    let answers = Some(vec![answer(name, told)]);
    let names = vec![name.to_owned()];
    let (start, end) = (step(from), step(from + 1));
    Call { number, who, act, names, start, end, hurried: false, answers }
}

fn answer(name: &str, told: Told) -> Answer {
    Answer { name: name.into(), told, holder: None, mine: false }
}

/// A move in the step after `at`. The commit is by `made`: who, its token, the call.
fn moved(name: &str, at: u64, old: &str, new: &str, made: Option<(usize, &str, usize)>) -> Move {
    let value = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let made = made.map(|(who, token, call)| Made {
        who,
        token: token.into(),
        call: Some(call),
        parents: value(old).into_iter().collect(),
    });
    Move {
        name: name.into(),
        old: value(old),
        new: value(new),
        from: step(at) + Duration::from_secs(50),
        to: step(at) + Duration::from_secs(60),
        push: at,
        made,
    }
}

fn claimed(id: &str) -> Told {
    Told::Claimed(id.into())
}

fn held(id: &str) -> Told {
    Told::Held(id.into())
}

fn lost(id: &str) -> Told {
    Told::Lost(id.into())
}

fn released(id: &str) -> Told {
    Told::Released(id.into())
}

/// Everything that can be done and told, once.
fn good() -> History {
    let mut calls = vec![
        call(0, ANN, Act::Take, "a", 0, claimed("x")),
        call(1, BOB, Act::Take, "a", 2, held("x")),
        call(2, ANN, Act::Renew, "a", 3, Told::Renewed("y".into())),
        call(3, ANN, Act::Verify, "a", 4, Told::Yours("y".into())),
        call(4, BOB, Act::Ask, "a", 5, Told::Asked("y".into())),
        call(5, BOB, Act::List, "a", 6, Told::Listed("y".into())),
        call(6, ANN, Act::Release, "a", 7, released("y")),
        call(7, BOB, Act::Verify, "a", 9, Told::Free),
        call(8, BOB, Act::Take, "a", 10, Told::Nothing),
        call(9, ANN, Act::Over("z".into()), "a", 12, claimed("w")),
        call(10, BOB, Act::Release, "a", 14, lost("w")),
        call(11, BOB, Act::Clear("w".into()), "a", 16, released("w")),
        call(12, CAT, Act::Take, "b", 0, claimed("b1")),
        call(13, ANN, Act::Clear("b0".into()), "b", 2, Told::Moved("b1".into())),
        call(14, DAN, Act::Any, "b", 4, claimed("d1")),
        call(15, DAN, Act::Resume, "d", 6, claimed("d1")),
    ];
    calls[1].answers.as_mut().unwrap()[0].holder = Some(ANN);
    calls[8].answers = None;
    calls[12].names.push("c".into());
    calls[12].answers.as_mut().unwrap().push(answer("c", claimed("c1")));
    calls[14].names.push("d".into());
    calls[14].answers = Some(vec![answer("d", claimed("d1"))]);
    let asked = Made { who: BOB, token: "ann".into(), call: None, parents: Vec::new() };
    let moves = vec![
        moved("a", 0, "", "x", Some((ANN, "ann", 0))),
        moved("a", 3, "x", "y", Some((ANN, "ann", 0))),
        Move { made: Some(asked), ..moved("refs/claims-asked/a", 5, "", "q", None) },
        moved("a", 7, "y", "", None),
        moved("a", 10, "", "z", Some((BOB, "bob", 8))),
        moved("a", 12, "z", "w", Some((ANN, "ann again", 9))),
        moved("a", 16, "w", "", None),
        moved("b", 0, "", "b1", Some((CAT, "cat b", 12))),
        moved("c", 0, "", "c1", Some((CAT, "cat c", 12))),
        moved("d", 4, "", "d1", Some((DAN, "dan", 14))),
    ];
    let left = [("refs/claims-asked/a", "q"), ("b", "b1"), ("c", "c1"), ("d", "d1")];
    let left = left.map(|(name, id)| (name.to_owned(), id.to_owned())).into();
    History { calls, moves, left }
}

impl History {
    fn tell(&mut self, number: usize, told: Told) {
        self.calls[number].answers.as_mut().unwrap()[0].told = told;
    }

    fn add(&mut self, who: usize, act: Act, from: u64, told: Told) {
        let number = self.calls.len();
        self.calls.push(call(number, who, act, "a", from, told));
    }

    /// Spoils the commit that is put there by the move to `id`.
    fn remake(&mut self, id: &str, spoil: impl FnOnce(&mut Made)) {
        let of = self.moves.iter_mut().find(|one| one.new.as_deref() == Some(id));
        spoil(of.unwrap().made.as_mut().unwrap());
    }
}

fn found(history: &History) -> Vec<String> {
    violations(history).iter().map(ToString::to_string).collect()
}

#[test]
fn a_good_history_has_no_fault() {
    assert_eq!(found(&good()), [""; 0]);
    // The server may write down a later move first.
    let mut history = good();
    history.moves.swap(0, 1);
    assert_eq!(found(&history), [""; 0]);
}

/// Each of these was taken for a fault once, or might be.
#[test]
fn what_only_looks_like_a_fault_is_none() {
    type Change = fn(&mut History);
    let histories: [(&str, Change); 7] = [
        ("a takeover that was killed lands much later, and its maker goes on with it", |history| {
            history.calls[9].answers = None;
            history.calls[9].start = step(8);
            history.calls[9].end = step(9);
            history.add(ANN, Act::Renew, 13, Told::Renewed("v".into()));
            history.moves.insert(6, moved("a", 13, "w", "v", Some((ANN, "ann again", 9))));
            history.moves[7].old = Some("v".into());
            history.calls[10].answers = Some(vec![answer("a", lost("v"))]);
            history.calls[11].act = Act::Clear("v".into());
            history.tell(11, released("v"));
        }),
        ("a take that was killed lands after its end", |history| {
            history.calls[8].start = step(8);
            history.calls[8].end = step(9);
        }),
        ("a release follows a renewal that was killed before", |history| {
            history.add(ANN, Act::Renew, 6, Told::Nothing);
            history.calls.last_mut().unwrap().answers = None;
            history.calls[6].start = step(6);
            history.calls[5].end = step(6) + Duration::from_secs(10);
            history.moves.insert(3, moved("a", 6, "y", "yy", Some((ANN, "ann", 0))));
            history.moves[4].old = Some("yy".into());
        }),
        ("what landed without an answer is cleared before it is looked at", |history| {
            history.tell(9, Told::Free);
            let went = Duration::from_secs(70);
            history.moves[6].from = step(12) + went;
            history.moves[6].to = step(12) + went;
            history.calls[11].start = step(12);
            history.tell(10, Told::Free);
        }),
        ("a take with little time leaves a command behind, and says who stands there", |history| {
            history.calls[8] = call(8, BOB, Act::Take, "a", 6, held("y"));
            history.calls[8].hurried = true;
        }),
        ("the same commit is sent again after it was cleared", |history| {
            history.calls[9].answers = None;
            history.calls[11].act = Act::Clear("z".into());
            history.tell(11, released("z"));
            history.tell(10, Told::Nothing);
            history.moves[5] = moved("a", 16, "z", "", None);
            history.moves[6] = moved("a", 17, "", "z", Some((BOB, "bob", 8)));
            history.left.insert("a".into(), "z".into());
        }),
        ("two are told that it is gone, and one of them removed it", |history| {
            history.add(CAT, Act::Clear("w".into()), 16, released("w"));
        }),
    ];
    for (what, change) in histories {
        let mut history = good();
        change(&mut history);
        assert_eq!(found(&history), [""; 0], "{what}");
    }
}

type Spoil = fn(&mut History);

/// A history for each thing that the checker can find wrong.
const FAULTS: [(&str, Spoil); 36] = [
    ("the server's moves are no line", |history| {
        history.moves.push(moved("a", 8, "x", "v", Some((ANN, "ann", 0))));
    }),
    ("what stands in the end was not put there", |history| {
        history.left.remove("c");
    }),
    ("a move of nothing", |history| history.moves.push(moved("a", 8, "", "", None))),
    ("one token for two takes", |history| {
        history.remake("z", |made| made.token = "ann".into());
    }),
    ("one token for two takes", |history| {
        history.remake("c1", |made| made.token = "cat b".into());
    }),
    ("a commit that is no child of what it replaced", |history| {
        history.remake("z", |made| made.parents = vec!["y".into()]);
    }),
    ("a commit that is no child of what it replaced", |history| {
        history.remake("y", |made| made.parents.clear());
    }),
    // Bob's renewal of what is Ann's.
    ("a renewal that nobody may have made", |history| {
        history.remake("y", |made| made.who = BOB);
    }),
    ("a renewal that nobody may have made", |history| {
        history.tell(2, lost("y"));
    }),
    // A win that its maker was told to be somebody else's.
    ("a take that nobody may have made", |history| history.tell(0, held("x"))),
    ("a take that nobody may have made", |history| history.tell(0, Told::Free)),
    // Of what is said to be free, no command may be under way.
    ("a take that nobody may have made", |history| {
        history.calls[8] = call(8, BOB, Act::Take, "a", 8, Told::Free);
        history.calls[8].hurried = true;
    }),
    // A takeover of what it did not name.
    ("a take that nobody may have made", |history| {
        history.calls[9].act = Act::Over("y".into());
    }),
    // Nobody has begun yet.
    ("a take that nobody may have made", |history| {
        history.calls[8].start = step(11);
        history.calls[8].end = step(12);
    }),
    // A release removed what is somebody else's.
    ("a release that nobody may have made", |history| history.calls[6].who = BOB),
    ("a release that nobody may have made", |history| {
        history.calls[11].act = Act::Clear("z".into());
    }),
    ("a list without a claim that stood all the time", |history| {
        history.calls[5].answers = Some(Vec::new());
    }),
    ("a part of what is to be had all or none", |history| history.tell(12, held("b1"))),
    ("a part of all or none on the server", |history| {
        history.moves.retain(|one| one.name != "c");
        history.calls[12].answers = None;
    }),
    ("a part of all or none on the server", |history| {
        history.moves.iter_mut().for_each(|one| one.push += u64::from(one.name == "c"));
    }),
    ("more than one of several", |history| {
        let answers = history.calls[14].answers.as_mut().unwrap();
        answers.push(answer("b", claimed("b1")));
    }),
    ("a holder by the wrong name", |history| {
        history.calls[1].answers.as_mut().unwrap()[0].holder = Some(BOB);
    }),
    ("a win that the server did not see", |history| history.tell(0, claimed("v"))),
    ("a win of what another call won", |history| {
        history.add(BOB, Act::Take, 0, claimed("x"));
    }),
    // It stands, and was won before.
    ("a win of what another call won", |history| {
        history.add(ANN, Act::Take, 4, claimed("y"));
    }),
    ("a renewal that the server did not see", |history| {
        history.add(ANN, Act::Renew, 4, Told::Renewed("y".into()));
    }),
    ("a release that the server did not see", |history| {
        history.add(ANN, Act::Release, 4, released("y"));
    }),
    ("a release of somebody else's", |history| {
        history.add(BOB, Act::Release, 7, released("y"));
    }),
    ("a holder that was not there", |history| {
        history.calls[1].answers = Some(vec![answer("a", held("z"))]);
    }),
    ("a loss to one who was not there", |history| history.tell(10, lost("y"))),
    ("lost to oneself", |history| history.add(ANN, Act::Verify, 4, lost("y"))),
    ("moved to where it never was", |history| history.tell(13, Told::Moved("b2".into()))),
    ("moved to where it was", |history| history.calls[13].act = Act::Clear("b1".into())),
    ("a claim in a list that did not stand", |history| {
        history.tell(5, Told::Listed("x".into()));
    }),
    ("free, and it never was", |history| history.add(BOB, Act::Verify, 4, Told::Free)),
    ("a holder that was not asked", |history| {
        let request = history.moves.iter_mut().find(|one| one.name.starts_with("refs/")).unwrap();
        request.made.as_mut().unwrap().token = "of before".into();
    }),
];

/// The same for what a clone is told of its own.
const FAULTS_OF_ONES_OWN: [(&str, Spoil); 3] = [
    ("a claim that was not there is ours", |history| history.tell(3, Told::Yours("x".into()))),
    ("somebody else's claim is ours", |history| history.calls[3].who = BOB),
    ("somebody else's claim is marked as ours", |history| {
        history.calls[1].answers.as_mut().unwrap()[0].mine = true;
    }),
];

#[test]
fn every_fault_is_found() {
    for (expected, spoil) in FAULTS.iter().chain(&FAULTS_OF_ONES_OWN) {
        let mut history = good();
        spoil(&mut history);
        let found = found(&history);
        assert!(found.iter().any(|what| what.starts_with(expected)), "{expected}: {found:?}");
    }
    eprintln!(
        "lab: checker: {} spoiled histories, not found: 0",
        FAULTS.len() + FAULTS_OF_ONES_OWN.len()
    );
}
