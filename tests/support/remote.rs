//! A bare repository behind a server, and the witness of everything that is done to it.

use std::{fs, os::unix::fs::PermissionsExt, path::PathBuf};

use super::{
    output::Run,
    servers::{self, Daemon},
};

/// How a remote is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Via {
    /// A local path.
    Path,
    /// The same, spelled `file://`.
    FileUrl,
    /// `git://`.
    Daemon,
    /// An sshd that passes `GIT_PROTOCOL` on: v2.
    Ssh,
    /// An sshd that does not: v0.
    OldSsh,
    /// TLS and basic auth.
    Https,
    /// The same, with the protocol header lost on the way: v0.
    OldHttps,
}

/// A kind of remote: how it is reached, how it keeps refs, how it names objects.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kind {
    pub(crate) via: Via,
    pub(crate) reftable: bool,
    pub(crate) sha256: bool,
}

/// The kinds that tests name.
pub(crate) mod kinds {
    use super::{Kind, Via};

    const fn kind(via: Via) -> Kind {
        Kind { via, reftable: false, sha256: false }
    }

    pub(crate) const fn path() -> Kind {
        kind(Via::Path)
    }

    pub(crate) const fn reftable() -> Kind {
        Kind { reftable: true, ..kind(Via::Path) }
    }

    pub(crate) const fn sha256() -> Kind {
        Kind { sha256: true, ..kind(Via::Path) }
    }

    pub(crate) const fn file_url() -> Kind {
        kind(Via::FileUrl)
    }

    pub(crate) const fn daemon() -> Kind {
        kind(Via::Daemon)
    }

    pub(crate) const fn ssh() -> Kind {
        kind(Via::Ssh)
    }

    pub(crate) const fn ssh_v0() -> Kind {
        kind(Via::OldSsh)
    }

    pub(crate) const fn ssh_sha256() -> Kind {
        Kind { sha256: true, ..kind(Via::Ssh) }
    }

    pub(crate) const fn https() -> Kind {
        kind(Via::Https)
    }

    pub(crate) const fn https_v0() -> Kind {
        kind(Via::OldHttps)
    }

    pub(crate) const fn https_sha256() -> Kind {
        Kind { sha256: true, ..kind(Via::Https) }
    }

    pub(crate) const fn https_reftable() -> Kind {
        Kind { reftable: true, ..kind(Via::Https) }
    }
}

/// A bare repository, its address, and its witness.
pub(crate) struct Remote {
    /// Where the repository is.
    pub(crate) dir: PathBuf,
    /// What clients call it.
    pub(crate) url: String,
    /// What a client's configuration must say to get in.
    pub(crate) client_config: String,
}

/// Writes down every update the server is asked for, and whether it is a fast-forward.
/// A test's own hook goes to `update.own`, so that the witness cannot be replaced by it.
const WITNESS: &str = r#"#!/bin/sh
echo "$1 $2 $3" >>"$GIT_DIR/witness"
case "$2$3" in
*[!0]*) case "$2" in *[!0]*) case "$3" in *[!0]*)
	git merge-base --is-ancestor "$2" "$3" || echo "$1 $2 $3" >>"$GIT_DIR/witness-forced" ;;
esac ;; esac ;; esac
if test -x "$GIT_DIR/hooks/update.own"
then
	exec "$GIT_DIR/hooks/update.own" "$@"
fi
"#;

impl Remote {
    /// Makes a bare repository with one commit on `main`, and starts the server for it if need be.
    ///
    /// Gives nothing where that server cannot be had here.
    #[track_caller]
    pub(crate) fn new(dir: PathBuf, kind: Kind) -> Option<Self> {
        let root = servers::root_name();
        let below_root = dir.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
        let path = dir.to_str().unwrap().to_owned();
        let mut client_config = String::new();
        let url = match kind.via {
            Via::Path => path.clone(),
            Via::FileUrl => format!("file://{path}"),
            Via::Daemon => {
                format!("git://127.0.0.1:{}/{below_root}", servers::daemon(Daemon::Writable)?)
            }
            Via::Ssh | Via::OldSsh => {
                let sshd = servers::sshd(kind.via == Via::Ssh)?;
                client_config = format!("[core]\n\tsshCommand = ssh -F {}\n", sshd.client);
                format!("ssh://127.0.0.1:{}{path}", sshd.port)
            }
            Via::Https | Via::OldHttps => {
                let web = servers::web()?;
                client_config = format!(
                    "[http]\n\tsslCAInfo = {}\n[credential \"https://127.0.0.1:{}\"]\n\t\
                     helper = \"!f() {{ test $1 = get && printf 'username=alice\\\\npassword={}\\\\n'; }}; f\"\n",
                    web.authority,
                    web.https,
                    servers::PASSWORD
                );
                let prefix = if kind.via == Via::Https { "auth" } else { "old" };
                format!("https://127.0.0.1:{}/{prefix}/{below_root}", web.https)
            }
        };
        let remote = Remote { dir, url, client_config };
        remote.init(kind)?;
        Some(remote)
    }

    fn init(&self, kind: Kind) -> Option<()> {
        let path = self.dir.to_str().unwrap();
        let mut args = vec!["init", "--quiet", "--bare", "--template=", "--initial-branch=main"];
        if kind.reftable {
            args.push("--ref-format=reftable");
        }
        if kind.sha256 {
            args.push("--object-format=sha256");
        }
        args.push(path);
        let output = Run::new("git", args, servers::root(), &servers::server_env()).go();
        if output.code != Some(0) && kind.reftable {
            return servers::skip("this git has no reftable backend");
        }
        output.ok();
        fs::create_dir_all(self.dir.join("hooks")).unwrap();
        self.put_hook("update", WITNESS);
        let blob = self.git_input(&["hash-object", "-w", "--stdin"], "hello\n");
        let tree = self.git_input(&["mktree"], &format!("100644 blob {blob}\tREADME\n"));
        let commit = self.git(&[
            "-c",
            "user.name=Seed",
            "-c",
            "user.email=seed@example.com",
            "commit-tree",
            "-m",
            "first",
            &tree,
        ]);
        self.git(&["update-ref", "refs/heads/main", &commit]);
        Some(())
    }

    /// Runs git on the server's side of the repository; gives what it prints.
    #[track_caller]
    pub(crate) fn git(&self, args: &[&str]) -> String {
        self.git_input(args, "")
    }

    #[track_caller]
    pub(crate) fn git_input(&self, args: &[&str], input: &str) -> String {
        Run::new("git", args, &self.dir, &servers::server_env())
            .env("GIT_DIR", &self.dir)
            .input(input)
            .go()
            .ok()
    }

    /// What the claim ref of `name` points at.
    pub(crate) fn tip(&self, name: &str) -> Option<String> {
        let refname = format!("refs/claims/{name}");
        let line = self.git(&["for-each-ref", "--format=%(objectname)", &refname]);
        (!line.is_empty()).then_some(line)
    }

    /// The names of all claims.
    pub(crate) fn claims(&self) -> Vec<String> {
        let names = self.git(&["for-each-ref", "--format=%(refname:lstrip=2)", "refs/claims/"]);
        names.lines().map(str::to_owned).collect()
    }

    /// All refs with their values, a line each.
    pub(crate) fn refs(&self) -> String {
        self.git(&["for-each-ref", "--format=%(objectname) %(refname)"])
    }

    /// The record at a claim's tip, as git reads it.
    #[track_caller]
    pub(crate) fn record(&self, name: &str) -> String {
        self.git(&["cat-file", "-p", &format!("refs/claims/{name}")])
    }

    /// Sets a server-side option.
    pub(crate) fn set(&self, key: &str, value: &str) {
        self.git(&["config", key, value]);
    }

    /// Installs a hook. The witness stays in front of an `update` hook.
    pub(crate) fn hook(&self, name: &str, body: &str) {
        let name = if name == "update" { "update.own" } else { name };
        self.put_hook(name, &format!("#!/bin/sh\n{body}\n"));
    }

    /// Takes a hook away again.
    pub(crate) fn unhook(&self, name: &str) {
        let name = if name == "update" { "update.own" } else { name };
        fs::remove_file(self.dir.join("hooks").join(name)).unwrap();
    }

    fn put_hook(&self, name: &str, script: &str) {
        let path = self.dir.join("hooks").join(name);
        fs::write(&path, script).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Makes a commit on the server that looks like what a person would push by hand, and points `refname` at it.
    #[track_caller]
    pub(crate) fn plant(&self, refname: &str, author: &str, message: &str) -> String {
        let tree = self.git_input(&["mktree"], "");
        let raw = format!(
            "tree {tree}\nauthor {author} 1764500000 +0000\ncommitter {author} 1764500000 +0000\n\n{message}"
        );
        let id =
            self.git_input(&["hash-object", "-t", "commit", "-w", "--literally", "--stdin"], &raw);
        self.git(&["update-ref", refname, &id]);
        id
    }

    /// Every update that the server was asked for so far: `ref old new`, a line each.
    pub(crate) fn witnessed(&self) -> Vec<String> {
        let log = fs::read_to_string(self.dir.join("witness")).unwrap_or_default();
        log.lines().map(str::to_owned).collect()
    }
}

impl Drop for Remote {
    /// The last look at what the witness saw, for every remote of the suite.
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        if let Ok(forced) = fs::read_to_string(self.dir.join("witness-forced")) {
            panic!("not a fast-forward: {forced}");
        }
    }
}
