//! What lands late: a push whose answer was lost is carried out once the claim has been won, lost or given back by others.

use std::{fs, path::PathBuf};

use crate::support::{Clone, Remote, Sandbox, kinds, on, until};

/// Passes a push on to git's own server and hangs up, once, while the server goes on.
const LOSE: &str = r##"
use IPC::Open2;
$| = 1;
my ($once, $ready, $repository) = ($ARGV[0], $ARGV[1], $ARGV[-1]);
exec 'git', 'receive-pack', $repository unless rename $once, "$once.gone";
$ENV{LATE} = 1;
# Whoever ends us does not end it.
open2(my $from, my $to, 'setsid', 'git', 'receive-pack', $repository);
until (-e $ready) {
    my $come = '';
    vec($come, 0, 1) = 1;
    vec($come, fileno $from, 1) = 1;
    select $come, undef, undef, 0.05;
    if (vec $come, fileno $from, 1) {
        sysread $from, my $bytes, 65536 or exit;
        syswrite STDOUT, $bytes;
    }
    if (vec $come, 0, 1) {
        sysread STDIN, my $bytes, 65536 or exit;
        syswrite $to, $bytes;
    }
}
unlink $ready;
"##;

/// Has the next push of `clone` hang up once the server has it and has done what is `meanwhile`, and the server carry it out
/// when [`let_on`] is called.
fn lose_the_next(sandbox: &Sandbox, remote: &Remote, clone: &Clone, meanwhile: &str) {
    let (once, program, on) = (sandbox.path("once"), sandbox.path("lose.pl"), gate(sandbox));
    let _ = fs::remove_file(&on);
    fs::write(&once, "").unwrap();
    fs::write(&program, LOSE).unwrap();
    let (program, once, ready) = (program.display(), once.display(), sandbox.path("ready"));
    let ready = ready.display();
    let lose = sandbox.script("lose", &format!("exec perl '{program}' '{once}' '{ready}' \"$@\""));
    clone.set("remote.origin.receivepack", lose.to_str().unwrap());
    let wait = format!("until test -e '{}'; do sleep 0.05; done", on.display());
    let hook = format!("cat >/dev/null\ntest \"$LATE\" || exit 0\n{meanwhile}\n>'{ready}'\n{wait}");
    remote.hook("pre-receive", &hook);
}

fn gate(sandbox: &Sandbox) -> PathBuf {
    sandbox.path("let-on")
}

fn let_on(sandbox: &Sandbox) {
    fs::write(gate(sandbox), "").unwrap();
}

on!(a_claim_that_comes_back_after_its_release_is_known: path, reftable);
/// The first try got no answer, the second one won; the first is carried out once the claim is released.
fn a_claim_that_comes_back_after_its_release_is_known(kind: crate::support::Kind) {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kind) else { return };
    let [alice, bob] = sandbox.people(&remote, ["Alice", "Bob"]);
    lose_the_next(&sandbox, &remote, &alice, "");
    let _ = alice.claim(&["take", "x", "y"]).gives(0, &["claimed x", "claimed y"]);
    assert!(sandbox.path("once.gone").exists());
    let released = alice.claim(&["release", "x", "y"]).gives(0, &["released x", "released y"]);
    let _ = released.says("may still land").says("git claim verify x");
    assert_eq!(remote.claims(), [""; 0]);
    let_on(&sandbox);
    until("it lands", || remote.claims() == ["x", "y"]);
    let _ = bob.claim(&["take", "x"]).is(75, "held x");
    let _ = alice.claim(&["verify", "x"]).is(0, "yours x");
    let _ = alice.claim(&["take", "x", "--resume"]).is(0, "claimed x");
    let _ = alice.claim(&["release", "--all"]).gives(0, &["released x", "released y"]);
    assert_eq!((remote.claims(), alice.records().len()), (vec![], 0));
}

/// Somebody else was faster than the second try; the first is carried out once that claim is released.
#[test]
fn whoever_waits_knows_an_earlier_try_that_lands() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    sandbox.configure("[claim]\n\tpoll = 100ms\n\tpollMax = 200ms\n");
    let [alice, bob] = sandbox.people(&remote, ["Alice", "Bob"]);
    let faster = format!(
        "(unset $(git rev-parse --local-env-vars) GIT_QUARANTINE_PATH LATE; cd '{}' && git-claim -q take x) >/dev/null 2>&1",
        bob.dir.display()
    );
    let faster = || lose_the_next(&sandbox, &remote, &alice, &faster);
    faster();
    let held = alice.claim(&["take", "x"]).is(75, "held x by Bob");
    let _ = held.says("an earlier try got no answer").says("git claim take x --resume");
    let _ = bob.claim(&["release", "x"]).is(0, "released x");
    let_on(&sandbox);
    until("it lands", || remote.claims() == ["x"]);
    let _ = alice.claim(&["take", "x", "--resume"]).is(0, "claimed x");
    let _ = alice.claim(&["release", "x"]).is(0, "released x");

    faster();
    let mut waiting = alice.run(&["take", "x", "y", "--wait", "60s"]).start();
    waiting.until_it_says("waiting for x, held by Bob");
    let _ = bob.claim(&["release", "x"]).is(0, "released x");
    let_on(&sandbox);
    let _ = waiting.end().gives(0, &["claimed x", "claimed y"]);
    assert_eq!((remote.claims(), alice.records().len()), (vec!["x".into(), "y".into()], 2));
}

/// Killed while its push is under way: what that leaves is neither called held nor anybody else's.
#[test]
fn what_was_never_won_is_no_loss() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let [alice, bob] = sandbox.people(&remote, ["Alice", "Bob"]);
    // An attempt that never landed, and somebody else's claim where it would have been.
    remote.hook("pre-receive", "kill -9 $PPID");
    let _ = bob.claim(&["take", "c"]).is(69, "unknown c");
    remote.unhook("pre-receive");
    let all = bob.claim(&["release", "--all"]);
    assert_eq!((all.code, all.verdicts()), (Some(0), vec!["released 0".to_owned()]), "{all}");
    let _ = all.says("a take got no answer and may still land, of c");
    let _ = bob.claim(&["release", "c"]).is(3, "free c").says("may still land");
    let _ = alice.claim(&["take", "c"]).is(0, "claimed c");
    let all = bob.claim(&["release", "--all"]);
    assert_eq!(all.code, Some(0), "{all}");
    assert!(!all.stderr.contains("--expect"), "{all}");
    assert!(remote.tip("c").is_some());
}
