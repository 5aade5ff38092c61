//! Two who cannot be told apart but by their tokens: the same name, the same host, the same second.

use super::Size;
use crate::support::{Kind, Sandbox, on};

on!(one_of_two_twins_has_it: path, ssh, https);
fn one_of_two_twins_has_it(kind: Kind) {
    const ROUNDS: usize = 8;
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kind) else { return };
    let twins = sandbox.people(&remote, ["Bot", "Bot2"]);
    for twin in &twins {
        twin.set("claim.who", "Bot <bot@example.com>");
        twin.set("user.name", "Bot");
        twin.set("user.email", "bot@example.com");
    }
    for round in 0..ROUNDS {
        let name = format!("job-{round}");
        let both = twins.each_ref().map(|twin| twin.run(&["take", &name]).start());
        let both = both.map(|one| one.end());
        let won = both.iter().filter(|output| output.code == Some(0)).count();
        let held = both.iter().filter(|output| output.code == Some(75)).count();
        assert_eq!((won, held), (1, 1), "{}{}", both[0], both[1]);
        for (twin, output) in twins.iter().zip(&both) {
            let is_winner = output.code == Some(0);
            let verified = twin.claim(&["verify", &name]);
            assert_eq!(verified.code, Some(if is_winner { 0 } else { 3 }), "{output}{verified}");
            assert!(!is_winner || Some(output.id()) == remote.tip(&name), "{output}");
        }
    }
    eprintln!(
        "lab: twins, {kind:?}: {ROUNDS} races, seed {}, won by both or none: 0",
        Size::asked_for().seed
    );
}

/// What is taken again in the same second is another claim: who was told of the first has no right to the second.
#[test]
fn what_is_taken_again_is_another_claim() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(crate::support::kinds::path()) else { return };
    let [ann] = sandbox.people(&remote, ["Ann"]);
    let mut before = std::collections::BTreeSet::new();
    for _ in 0..10 {
        let id = ann.claim(&["take", "job"]).is(0, "claimed").id();
        assert!(before.insert(id.clone()), "the same claim twice: {id}");
        let _ = ann.claim(&["release", "job"]).is(0, "released");
    }
}
