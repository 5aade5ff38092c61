//! One claim: won and lost, near and far, with few and with many other refs.

use crate::{
    Effort, next_number,
    pairs::pairs,
    place::{FAR, Place, Via, Way},
    proxy::Traffic,
    reading::MANY,
    remotes::Remote,
    servers,
    table::{Row, Target},
};

/// What people do without the program; the claim is `$1`. The number makes two claims two commits.
pub(crate) const RECIPE: &str = "tree=$(git mktree </dev/null) && commit=$(git commit-tree -m \"claim $1 by $$\" $tree) && \
                                 git push origin $commit:refs/claims/$1";

const AGAINST: &str = "the recipe";

/// A claim that nobody has taken. All are of one length.
fn fresh() -> String {
    format!("issue-{}", 100_000 + next_number())
}

fn take(place: &Place, name: &str) -> std::time::Duration {
    place.time(&["git-claim", "take", name], 0)
}

fn recipe(place: &Place, name: &str, code: i32) -> std::time::Duration {
    place.time(&["sh", "-c", RECIPE, "recipe", name], code)
}

/// `take` with few other refs: against the recipe, through git, and against the server's share of it alone.
pub(crate) fn few(effort: &Effort) -> Vec<Row> {
    let (work, rounds) = ("`take`, few refs", effort.rounds(21));
    let remote = Remote::new(0, 20);
    let Some(place) = Place::new(&remote, Way::PATH) else { return Vec::new() };
    let ours = place.traffic(|| take(&place, &fresh()));
    let theirs = place.traffic(|| recipe(&place, &fresh(), 0));
    let row = |work: &str, against: &str, times, target| {
        Row::new(work, Way::PATH, against, times, target)
    };
    let against_recipe = pairs(rounds, |_| take(&place, &fresh()), |_| recipe(&place, &fresh(), 0));
    let through_git = pairs(
        rounds,
        |_| place.time(&["git", "claim", "take", &fresh()], 0),
        |_| recipe(&place, &fresh(), 0),
    );
    let against_server = pairs(rounds, |_| take(&place, &fresh()), |_| server_alone(&remote));
    vec![
        row(work, AGAINST, against_recipe, Target::AtMost(0.70)).traffic(ours, theirs),
        row("the same, as `git claim take`", AGAINST, through_git, Target::None),
        row(
            work,
            "`git receive-pack REMOTE` fed the same bytes",
            against_server,
            Target::AtMost(1.35),
        ),
    ]
}

/// The time of a bare `git receive-pack` that is fed what a take of ours sends. The bytes are those of a take on another
/// remote, so that the objects are as new to this one as those of a take would be.
fn server_alone(remote: &Remote) -> std::time::Duration {
    let (twin, name) = (Remote::new(0, 0), fresh());
    let place = Place::new(&twin, Way::PATH).unwrap();
    let sent = place.pushed(|| take(&place, &name));
    let mut command = place.command(&["git", "receive-pack", remote.dir.to_str().unwrap()]);
    command.envs(servers::server_env());
    let (time, output) = crate::run::timed(&mut command, &sent, 0);
    let answer = String::from_utf8_lossy(&output.stdout);
    assert!(answer.contains(&format!("ok refs/claims/{name}")), "{answer}");
    time
}

/// `take` on a big remote, won and lost.
pub(crate) fn many(effort: &Effort) -> Vec<Row> {
    let rounds = effort.rounds(9);
    let remote = Remote::new(1, MANY);
    let Some(place) = Place::new(&remote, Way::PATH) else { return Vec::new() };
    let ours = place.traffic(|| take(&place, &fresh()));
    let theirs = place.traffic(|| recipe(&place, &fresh(), 0));
    let times = pairs(rounds, |_| take(&place, &fresh()), |_| recipe(&place, &fresh(), 0));
    let won =
        Row::new("`take`, 120,000 other refs", Way::PATH, AGAINST, times, Target::AtMost(0.65))
            .traffic(ours, theirs);

    let lose = ["git-claim", "take", "issue-1"];
    let mut told = Vec::new();
    let ours = place.traffic(|| told = place.go(&lose, "", 75).1.stdout);
    let theirs = place.traffic(|| recipe(&place, "issue-1", 1));
    let times = pairs(rounds, |_| place.time(&lose, 75), |_| recipe(&place, "issue-1", 1));
    let named = String::from_utf8_lossy(&told).contains("held issue-1 by Bob Example");
    let lost = Row::new(
        "`take` that loses, 120,000 other refs",
        Way::PATH,
        AGAINST,
        times,
        Target::AtMost(0.05),
    )
    .traffic(ours, theirs)
    .exact("holder named", named);
    vec![won, lost]
}

/// `take` over the network, near and far.
pub(crate) fn network(effort: &Effort) -> Vec<Row> {
    let remote = Remote::new(0, 20);
    let mut rows = Vec::new();
    for via in [Via::Git, Via::Ssh, Via::Https] {
        for way in [Way::near(via), Way::far(via)] {
            let Some(place) = Place::new(&remote, way) else { continue };
            let ours = place.traffic(|| take(&place, &fresh()));
            let theirs = place.traffic(|| recipe(&place, &fresh(), 0));
            let rounds = effort.rounds(7);
            let times = pairs(rounds, |_| take(&place, &fresh()), |_| recipe(&place, &fresh(), 0));
            let target = way.far && via != Via::Git;
            let target = if target { Target::AtMost(0.9) } else { Target::None };
            let row =
                Row::new("`take`, few refs", way, AGAINST, times, target).traffic(ours, theirs);
            rows.push(if way.far {
                let crossings =
                    |traffic: Traffic| traffic.round_trips.unwrap() + traffic.connections;
                let wire = |traffic| crossings(traffic) as u128 * (2 * FAR).as_millis();
                row.exact("no more round trips", ours.round_trips <= theirs.round_trips)
                    .note(format!("{} / {} ms of it are the delay", wire(ours), wire(theirs)))
            } else {
                row
            });
        }
    }
    rows
}
