//! Cut everywhere: what the program says, against what the server holds.

use std::{fs, time::Instant};

use super::{
    Chance, Size,
    cutter::{Cut, How, Way},
    stand::{ACTS, Act, DEADLINE, NO_HURRY, SHORT_DEADLINE, Stand, shuffle, stands, try_all},
};
use crate::support::kinds;

/// How a connection may end, each as often as it is named.
const ENDS: [(How, bool); 8] = [
    (How::Closed, false),
    (How::Closed, false),
    (How::Closed, true),
    (How::Closed, true),
    (How::Reset, false),
    (How::Reset, true),
    (How::Silent, false),
    (How::Silent, true),
];

fn deadline(how: How) -> &'static str {
    if how == How::Silent { SHORT_DEADLINE } else { DEADLINE }
}

/// Cuts at every byte of every act, once.
fn cut_everywhere(name: &str, stands: &[Stand], short: usize) {
    let mut chance = Chance::new(Size::asked_for().seed);
    let all = every_point(&stands[0], &mut chance);
    try_all(&format!("cut {name}"), stands, &all, short, |stand, &(act, cut)| {
        let before = stand.prepare(act);
        stand.cutter.plan(Some(cut));
        let acted = stand.act(act, before.as_deref(), deadline(cut.how));
        let heal = || stand.cutter.plan(None);
        let ended = stand.compare(act, before.as_deref(), acted, heal);
        (format!("{:?}", cut.how), ended.map_err(|what| format!("{cut:?}: {what}")))
    });
}

/// Every place of every act where the connection may be cut, each with an end of chance, in an order of chance.
fn every_point(stand: &Stand, chance: &mut Chance) -> Vec<(Act, Cut)> {
    let mut all = Vec::new();
    for act in ACTS {
        let before = stand.prepare(act);
        stand.cutter.plan(None);
        let output = stand.act(act, before.as_deref(), NO_HURRY).output;
        assert_eq!(output.code, Some(0), "{output}");
        stand.cutter.settled();
        for way in [Way::Up, Way::Down] {
            all.extend((0..stand.cutter.bytes(way)).map(|after| {
                let (how, once) = *chance.one_of(&ENDS);
                (act, Cut { way, after, how, once })
            }));
        }
    }
    shuffle(&mut all, chance);
    all
}

/// Several in one push: after whatever end the server holds all of them or none, and the program says which.
fn cut_a_group(stand: &Stand, name: &str, short: u64) {
    const NAMES: [&str; 3] = ["a", "b", "c"];
    let size = Size::asked_for();
    let mut chance = Chance::new(size.seed);
    let tips = || NAMES.map(|name| stand.remote.tip(name));
    let take = |deadline, more: &[&str]| {
        stand.alice.claim(&[&["take"], &NAMES[..], &["--timeout", deadline], more].concat())
    };
    let clear = || {
        stand.cutter.plan(None);
        for (name, tip) in NAMES.iter().zip(tips()) {
            if let Some(tip) = tip {
                stand.remote.git(&["update-ref", "-d", &format!("refs/claims/{name}"), &tip]);
            }
        }
        let _ = fs::remove_dir_all(stand.alice.dir.join(".git/claims"));
    };
    clear();
    assert_eq!(take(NO_HURRY, &[]).code, Some(0));
    stand.cutter.settled();
    let whole = [Way::Up, Way::Down].map(|way| (way, stand.cutter.bytes(way)));
    let (mut points, mut claimed, started) = (0, 0, Instant::now());
    while size.time.map_or(points < short, |time| started.elapsed() < time) {
        clear();
        let (way, bytes) = whole[(points % 2) as usize];
        let (how, once) = *chance.one_of(&ENDS);
        let cut = Cut { way, after: chance.below(bytes), how, once };
        stand.cutter.plan(Some(cut));
        let output = take(deadline(how), &[]);
        stand.cutter.settled();
        let there = tips().iter().flatten().count();
        let told = || format!("seed {} {cut:?}\n{output}", size.seed);
        assert!(there == 0 || there == 3, "a part: {}", told());
        match output.code {
            Some(0) => assert_eq!(there, 3, "{}", told()),
            Some(69 | 77) => {}
            _ => panic!("a wrong verdict: {}", told()),
        }
        claimed += u64::from(output.code == Some(0));
        stand.cutter.plan(None);
        let before = tips();
        let again = take(NO_HURRY, &["--resume"]);
        assert_eq!(again.code, Some(0), "{}{again}", told());
        assert!(there == 0 || before == tips(), "gone on with: {}{again}", told());
        assert_eq!(tips().iter().flatten().count(), 3, "{}{again}", told());
        stand.cutter.settled();
        points += 1;
    }
    eprintln!(
        "lab: cut a group, {name}: {points} points, seed {}, {claimed} claimed, wrong: 0",
        size.seed
    );
}

#[test]
fn git_daemon() {
    let Some(stands) = stands(|| Stand::daemon(kinds::path())) else { return };
    cut_everywhere("git://", &stands, 70);
    cut_a_group(&stands[0], "git://", 12);
}

#[test]
fn ssh() {
    let Some(stands) = stands(|| Stand::ssh(kinds::path())) else { return };
    cut_everywhere("ssh", &stands, 70);
    cut_a_group(&stands[0], "ssh", 12);
}

#[test]
fn https() {
    let Some(stands) = stands(Stand::https) else { return };
    cut_everywhere("https", &stands, 24);
    cut_a_group(&stands[0], "https", 6);
}
