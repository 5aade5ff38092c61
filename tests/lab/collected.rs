//! A claim whose commit the host has collected, which a clone still has on record.
//!
//! Where receive-pack no longer has what it is told to delete, it compares nothing and deletes whatever is there. What keeps
//! the next holder's claim is our own comparison with what is advertised.

use std::fs;

use crate::support::{Kind, Remote, Sandbox, on};

on!(what_stands_instead_stays: path, reftable, daemon, ssh, https);
fn what_stands_instead_stays(kind: Kind) {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kind) else { return };
    let [ann, bob] = sandbox.people(&remote, ["Ann", "Bob"]);
    let acts: [&[&str]; 3] = [&["release", "42"], &["release", "--all"], &["renew", "42"]];
    for act in acts {
        let old = ann.claim(&["take", "42"]).is(0, "claimed").id();
        let _ = bob.claim(&["release", "42", "--expect", &old]).is(0, "released");
        let new = bob.claim(&["take", "42"]).is(0, "claimed").id();
        collect(&remote, &old);
        let _ = ann.claim(act).is(3, "lost");
        assert_eq!(remote.tip("issue-42"), Some(new), "after {act:?}");
        let _ = bob.claim(&["release", "42"]).is(0, "released");
    }
    eprintln!("lab: collected, {kind:?}: {} acts, removed what is another's: 0", acts.len());
}

on!(what_is_taken_anew_needs_nothing_of_before: path, daemon, ssh, https);
/// A claim that is taken has no parent: whatever this clone had before, the host may have collected it.
fn what_is_taken_anew_needs_nothing_of_before(kind: Kind) {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kind) else { return };
    let [ann, bob] = sandbox.people(&remote, ["Ann", "Bob"]);
    for collects in [false, true] {
        let old = ann.claim(&["take", "42"]).is(0, "claimed").id();
        let _ = bob.claim(&["release", "42", "--expect", &old]).is(0, "released");
        if collects {
            collect(&remote, &old);
        }
        let new = ann.claim(&["take", "42"]).is(0, "claimed").id();
        let commit = remote.record("issue-42");
        assert!(new != old && !commit.contains("\nparent "), "{commit}");
        let _ = ann.claim(&["release", "42"]).is(0, "released");
    }
}

/// The host no longer has the commit.
fn collect(remote: &Remote, id: &str) {
    fs::remove_file(remote.dir.join("objects").join(&id[..2]).join(&id[2..])).unwrap();
}
