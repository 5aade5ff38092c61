//! Every kind of remote.
use crate::support::{Kind, Sandbox, on, snapshot};
on!(the_harness_works: path, reftable, sha256, file_url, daemon, ssh, ssh_v0, ssh_sha256, https, https_v0, https_sha256, https_reftable);
fn the_harness_works(kind: Kind) {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kind) else { return };
    let clone = sandbox.clone(&remote, "a");
    let before = snapshot(&clone.dir);
    let tree = clone.git(&["hash-object", "-t", "tree", "-w", "--stdin"]);
    let id = clone.git(&["commit-tree", "-m", "x", &tree]);
    let out = clone.run_git(&["push", "origin", &format!("{id}:refs/claims/issue-42")]).env("GIT_TRACE_PACKET","1").go();
    println!("{out}");
    out.ok();
    let out = clone.run_git(&["ls-remote", "origin", "refs/claims/*"]).env("GIT_TRACE_PACKET","1").go();
    println!("{out}");
    out.ok();
    assert_eq!(remote.tip("issue-42"), Some(id));
    assert_eq!(remote.witnessed().len(), 1);
    let _ = before;
}
