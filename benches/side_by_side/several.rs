//! Many names at once: the first free one of a long list, a hundred given back, a fleet that shares a list.

use std::{collections::BTreeSet, fs, thread, time::Instant};

use crate::{
    Effort,
    pairs::pairs,
    place::{Place, Via, Way},
    remotes::Remote,
    servers,
    table::{Row, Target},
    taking::RECIPE,
};

fn issues(count: usize) -> impl Iterator<Item = String> {
    (1..=count).map(|number| format!("issue-{number}"))
}

/// `take --any -` over 500 names of which the last is free.
pub(crate) fn any(effort: &Effort) -> Vec<Row> {
    const NAMES: usize = 500;
    let part = if effort.quick { 5 } else { 20 };
    let factor = NAMES as f64 / f64::from(part);
    let names: String = issues(NAMES).map(|name| name + "\n").collect();
    let remote = Remote::new(NAMES - 1, 20);
    let mut rows = Vec::new();
    for way in [Way::PATH, Way::near(Via::Https), Way::far(Via::Https)] {
        let Some(place) = Place::new(&remote, way) else { continue };
        let take = || {
            let (time, output) = place.go(&["git-claim", "take", "--any", "-"], &names, 0);
            let told = String::from_utf8_lossy(&output.stdout);
            assert!(told.contains("claimed issue-500 "), "{told}");
            remote.clear(["issue-500".to_owned()]);
            place.forget();
            time
        };
        let pushes = format!(
            "for n in $(seq {part}); do git push -q origin HEAD:refs/claims/issue-$n && exit 1; done; true"
        );
        let pushes = ["sh", "-c", &pushes];
        let ours = place.traffic(take);
        let theirs = place.traffic(|| place.time(&pushes, 0));
        let rounds = effort.rounds(if way.far { 3 } else { 5 });
        let times = pairs(rounds, |_| take(), |_| place.time(&pushes, 0));
        rows.push(
            Row::new(
                "`take --any -`, 500 names, 499 held",
                way,
                "a loop of pushes",
                times.with_theirs_scaled(factor),
                if way == Way::near(Via::Https) { Target::Faster(100.0) } else { Target::None },
            )
            .traffic(ours, theirs.scaled(factor))
            .exact("≤ 3 connections", ours.connections <= 3)
            .note(format!("the loop over {part} of them, scaled")),
        );
    }
    rows
}

/// A hundred claims given back.
pub(crate) fn release(effort: &Effort) -> Vec<Row> {
    const CLAIMS: usize = 100;
    let part: usize = if effort.quick { 5 } else { 20 };
    let factor = CLAIMS as f64 / part as f64;
    let remote = Remote::new(0, 20);
    let names: Vec<String> = issues(CLAIMS).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let take = [&["git-claim", "take"], &names[..]].concat();
    let deletions = format!(
        "for n in $(seq {part}); do git push -q origin --delete refs/claims/issue-$n || exit 1; done"
    );
    let deletions = ["sh", "-c", &deletions];
    let by_name = [&["git-claim", "release"], &names[..]].concat();
    let mut rows = Vec::new();
    for way in [Way::PATH, Way::near(Via::Git), Way::near(Via::Ssh), Way::near(Via::Https)] {
        let Some(place) = Place::new(&remote, way) else { continue };
        for (work, release) in [
            ("`release` of 100 claims by name", &by_name[..]),
            ("`release --all` of 100 claims", &["git-claim", "release", "--all"]),
        ] {
            let ours = || {
                let _ = place.time(&take, 0);
                place.traffic(|| place.time(release, 0))
            };
            let theirs = || {
                remote.plant(issues(part));
                place.traffic(|| place.time(&deletions, 0))
            };
            let (ours, theirs) = (ours(), theirs());
            let times = pairs(
                effort.rounds(5),
                |_| {
                    let _ = place.time(&take, 0);
                    place.time(release, 0)
                },
                |_| {
                    remote.plant(issues(part));
                    place.time(&deletions, 0)
                },
            );
            rows.push(
                Row::new(
                    work,
                    way,
                    "a loop of `git push origin --delete`",
                    times.with_theirs_scaled(factor),
                    Target::None,
                )
                .traffic(ours, theirs.scaled(factor))
                .exact("1 connection", ours.connections == 1)
                .note(format!("the loop over {part} of them, scaled")),
            );
        }
    }
    rows
}

/// Eight claimants share a list of a hundred names, each until none is free.
pub(crate) fn fleet(effort: &Effort) -> Vec<Row> {
    const NAMES: usize = 100;
    const OURS: &str = "while :; do git-claim take --any --shuffle - <\"$0\"; code=$?; \
                        [ $code = 0 ] || { [ $code = 75 ]; exit; }; done";
    let theirs = format!(
        "for name in $(shuf \"$0\"); do set -- $name; {{ {RECIPE}; }} >/dev/null 2>&1 && echo \"claimed $1\"; done; true"
    );
    let list = servers::root().join("names");
    fs::write(&list, issues(NAMES).map(|name| name + "\n").collect::<String>()).unwrap();
    let list = list.to_str().unwrap();
    let remote = Remote::new(0, 20);
    let places: Vec<Place> = (0..8).filter_map(|_| Place::new(&remote, Way::PATH)).collect();
    let sweep = |script: &str| {
        let started = Instant::now();
        let claimed = thread::scope(|scope| {
            let go = |place: &Place| place.go(&["sh", "-c", script, list], "", 0).1.stdout;
            let threads: Vec<_> =
                places.iter().map(|place| scope.spawn(move || go(place))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>().concat()
        });
        let time = started.elapsed();
        let claimed = String::from_utf8(claimed).unwrap();
        let claimed: Vec<&str> = claimed
            .lines()
            .filter_map(|line| line.strip_prefix("claimed ")?.split(' ').next())
            .collect();
        let distinct: BTreeSet<&str> = claimed.iter().copied().collect();
        let once = (claimed.len(), distinct.len()) == (NAMES, NAMES);
        remote.clear(issues(NAMES));
        places.iter().for_each(Place::forget);
        (time, once)
    };
    let (mut ours_once, mut theirs_once) = (true, true);
    let times = pairs(
        effort.rounds(3),
        |_| {
            let (time, once) = sweep(OURS);
            ours_once &= once;
            time
        },
        |_| {
            let (time, once) = sweep(&theirs);
            theirs_once &= once;
            time
        },
    );
    let rate = |time: std::time::Duration| NAMES as f64 / time.as_secs_f64();
    let rates = format!("claims/s {:.1} / {:.1}", rate(times.ours()), rate(times.theirs()));
    vec![
        Row::new(
            "8 claimants, 100 names, `take --any --shuffle -` until none is free",
            Way::PATH,
            "eight shells with the recipe",
            times,
            Target::None,
        )
        .exact("every name taken exactly once", ours_once)
        .note(format!("theirs too: {}", if theirs_once { "yes" } else { "no" }))
        .note(rates),
    ]
}
