//! What is asked of a remote without writing to it: `list`, `verify`, `stale`; and what starting costs.

use crate::{
    Effort,
    pairs::pairs,
    place::{Place, Via, Way},
    remotes::Remote,
    run,
    table::{Row, Target},
};

/// Other refs of a big remote.
pub(crate) const MANY: usize = 120_000;

/// `list` of 10 claims on a big remote, over every way.
pub(crate) fn list(effort: &Effort) -> Vec<Row> {
    const OURS: &[&str] = &["git-claim", "list"];
    const THEIRS: &[&str] = &["git", "ls-remote", "origin", "refs/claims/*"];
    let remote = Remote::new(10, MANY);
    let ways = [
        Way::PATH,
        Way::near(Via::Git),
        Way::near(Via::Ssh),
        Way::near(Via::Https),
        Way::far(Via::Git),
        Way::far(Via::Ssh),
        Way::far(Via::Https),
    ];
    let mut rows = Vec::new();
    for way in ways {
        let Some(place) = Place::new(&remote, way) else { continue };
        let ours = place.traffic(|| place.time(OURS, 0));
        let theirs = place.traffic(|| place.time(THEIRS, 0));
        let rounds = effort.rounds(if way == Way::PATH { 15 } else { 5 });
        let times = pairs(rounds, |_| place.time(OURS, 0), |_| place.time(THEIRS, 0));
        let target = if way == Way::PATH { Target::Faster(30.0) } else { Target::None };
        let fewer = theirs.bytes() / ours.bytes();
        rows.push(
            Row::new(
                "`list`, 10 claims, 120,000 other refs",
                way,
                "`git ls-remote origin 'refs/claims/*'`",
                times,
                target,
            )
            .traffic(ours, theirs)
            .exact(format!("{fewer} × fewer bytes (≥ 500)"), fewer >= 500),
        );
    }
    rows
}

/// `verify` of one claim, and a program that does nothing at all.
pub(crate) fn small(effort: &Effort) -> Vec<Row> {
    let remote = Remote::new(0, 20);
    let Some(place) = Place::new(&remote, Way::PATH) else { return Vec::new() };
    let rounds = effort.rounds(25);
    let versions = pairs(
        rounds,
        |_| place.time(&["git-claim", "--version"], 0),
        |_| place.time(&["git", "--version"], 0),
    );
    let _ = place.time(&["git-claim", "take", "42"], 0);
    let (verify, look) =
        (["git-claim", "verify", "42"], ["git", "ls-remote", "origin", "refs/claims/issue-42"]);
    let ours = place.traffic(|| place.time(&verify, 0));
    let theirs = place.traffic(|| place.time(&look, 0));
    let times = pairs(rounds, |_| place.time(&verify, 0), |_| place.time(&look, 0));
    vec![
        Row::new("`--version`", Way::PATH, "`git --version`", versions, Target::None),
        Row::new(
            "`verify` of one claim",
            Way::PATH,
            "`git ls-remote origin REF`",
            times,
            Target::None,
        )
        .traffic(ours, theirs),
    ]
}

/// `stale` on 10,000 claims beside 200,000 other refs.
pub(crate) fn stale(effort: &Effort) -> Vec<Row> {
    const OURS: &[&str] = &["git-claim", "stale"];
    const CLAIMS: usize = 10_000;
    let part = if effort.quick { 5 } else { 20 };
    let script = format!(
        "for n in $(seq {part}); do ref=refs/claims/issue-$n; git ls-remote origin $ref && \
         git fetch -q --no-tags origin $ref && git log -1 FETCH_HEAD || exit 1; done"
    );
    let theirs = ["sh", "-c", &script];
    let factor = CLAIMS as f64 / f64::from(part);
    let remote = Remote::new(CLAIMS, 200_000);
    let mut rows = Vec::new();
    for way in [Way::PATH, Way::near(Via::Https)] {
        let Some(place) = Place::new(&remote, way) else { continue };
        let mut report = String::new();
        let ours = place.traffic(|| {
            report = String::from_utf8(place.go(OURS, "", 0).1.stdout).unwrap();
        });
        assert!(report.contains("issue-1 ") && report.contains("issue-10000 "), "{report:.2000}");
        let loop_traffic = place.traffic(|| place.time(&theirs, 0));
        let times = pairs(effort.rounds(5), |_| place.time(OURS, 0), |_| place.time(&theirs, 0));
        let peak = run::peak_memory(&mut place.command(OURS));
        let mut row = Row::new(
            "`stale`, 10,000 claims, 200,000 other refs",
            way,
            "a loop of `git ls-remote`, `git fetch`, `git log`",
            times.with_theirs_scaled(factor),
            Target::Faster(500.0),
        )
        .traffic(ours, loop_traffic.scaled(factor))
        .exact("1 connection", ours.connections == 1)
        .note(format!("the loop over {part} of them, scaled"));
        if let Some(peak) = peak {
            let shown = format!("peak memory {} MB (< 60)", peak / 1_000_000);
            row = row.exact(shown, peak < 60_000_000);
        }
        rows.push(row);
    }
    rows
}
