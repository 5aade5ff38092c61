//! Bare repositories with any number of claims and of other refs, made without a push for each.
//!
//! The claims are records as `take` writes them, each a commit of its own; the other refs stand for the pull requests of a
//! big project. Nothing here is measured.

use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use crate::{run, servers};

/// Distinct commits behind the other refs.
const COMMITS: usize = 2000;
/// 2025-12-30T13:06:40Z, in seconds: every claim is old.
const THEN: u64 = 1_767_100_000;

/// A bare repository below [`servers::root`], gone with the value.
pub(crate) struct Remote {
    pub(crate) dir: PathBuf,
}

impl Remote {
    /// A repository with `claims` claims (`issue-1` and on) beside `others` other refs. All are packed, as refs are some
    /// time after they were made.
    pub(crate) fn new(claims: usize, others: usize) -> Self {
        let dir = servers::root().join(format!("remote-{}.git", crate::next_number()));
        let remote = Remote { dir };
        let path = remote.dir.to_str().unwrap();
        let args = ["init", "-q", "--bare", "--template=", "--initial-branch=main", path];
        run::quietly(Command::new("git").args(args).envs(servers::server_env()));
        let commits = others.clamp(1, COMMITS);
        remote.git_with(&["fast-import", "--quiet", "--done"], &history(commits, claims));
        remote.git(&["pack-refs", "--all"]);
        remote.add_refs(others, commits);
        remote
    }

    /// Writes the other refs into `packed-refs`, in the order that git expects there.
    fn add_refs(&self, others: usize, commits: usize) {
        let ids = self.git(&["rev-list", "main"]);
        let ids: Vec<&str> = ids.lines().collect();
        assert_eq!(ids.len(), commits);
        let path = self.dir.join("packed-refs");
        let packed = fs::read_to_string(&path).unwrap();
        let (head, refs) = packed.split_once('\n').unwrap();
        let mut refs: Vec<String> = refs.lines().map(str::to_owned).collect();
        refs.extend((1..=others).map(|n| format!("{} refs/pull/{n}/head", ids[n % commits])));
        refs.sort_unstable_by(|a, b| a.split(' ').nth(1).cmp(&b.split(' ').nth(1)));
        fs::write(&path, format!("{head}\n{}\n", refs.join("\n"))).unwrap();
    }

    /// Runs git on the server's side; gives what it prints.
    pub(crate) fn git(&self, args: &[&str]) -> String {
        self.git_with(args, "")
    }

    pub(crate) fn git_with(&self, args: &[&str], input: &str) -> String {
        let mut command = Command::new("git");
        command.args(args).env("GIT_DIR", &self.dir).envs(servers::server_env());
        run::quietly_with(&mut command, input.as_bytes())
    }

    /// Deletes claims by the back door, between two rounds.
    pub(crate) fn clear(&self, names: impl IntoIterator<Item = String>) {
        let lines: String =
            names.into_iter().map(|name| format!("delete refs/claims/{name}\n")).collect();
        self.git_with(&["update-ref", "--stdin"], &lines);
    }

    /// Makes claims by the back door, of the commit that `main` is at.
    pub(crate) fn plant(&self, names: impl IntoIterator<Item = String>) {
        let lines: String =
            names.into_iter().map(|name| format!("create refs/claims/{name} main\n")).collect();
        self.git_with(&["update-ref", "--stdin"], &lines);
    }

    /// The path below the folder that the servers serve.
    pub(crate) fn below_root(&self) -> &Path {
        self.dir.strip_prefix(servers::root()).unwrap()
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        let _ = Command::new("rm").arg("-rf").arg(&self.dir).stderr(Stdio::null()).status();
    }
}

/// A stream for `git fast-import`: a branch of `commits` commits, and the claims.
fn history(commits: usize, claims: usize) -> String {
    let mut stream = String::new();
    for number in 1..=commits {
        let who = format!("Seed <seed@example.com> {} +0000", THEN + number as u64);
        let message = format!("commit {number}\n");
        commit(&mut stream, "refs/heads/main", &who, &message);
        let _ = writeln!(stream, "M 644 inline file\ndata {}\n{message}", message.len());
    }
    for number in 1..=claims {
        let who = format!("Bob Example <bob@example.com> {THEN} +0000");
        let refname = format!("refs/claims/issue-{number}");
        commit(&mut stream, &refname, &who, &record(number));
    }
    stream.push_str("done\n");
    stream
}

fn commit(stream: &mut String, refname: &str, who: &str, message: &str) {
    let length = message.len();
    let _ = write!(
        stream,
        "commit {refname}\nauthor {who}\ncommitter {who}\ndata {length}\n{message}\n"
    );
}

/// A record of format 1, as `take` writes it.
fn record(number: usize) -> String {
    format!(
        "claim issue-{number} by Bob Example on ci-{host}\n\nfrom the hourly sweep\n\nClaim: issue-{number}\n\
         Claim-Format: 1\nClaimed-By: Bob Example <bob@example.com>\nClaimed-On: ci-{host}\n\
         Claimed-At: 2025-12-30T13:06:40Z\nClaim-Token: {number:032x}\n",
        host = number % 50
    )
}
