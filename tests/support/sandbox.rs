//! A place for one test: folders, an environment, clones.

use std::{
    env, fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use tempfile::TempDir;

use super::{Kind, Remote, output::Run, servers};

/// A folder below [`servers::root`] with a home, a place for temporary files and an environment of its own.
pub(crate) struct Sandbox {
    dir: TempDir,
    env: Vec<(String, String)>,
}

/// Keeps git from working in the background, and gives it somebody to be.
const CONFIG: &str = "[user]\n\tname = Alice Example\n\temail = alice@example.com\n[init]\n\tdefaultBranch = main\n\
                      [gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n[receive]\n\tautogc = false\n\
                      [advice]\n\tdetachedHead = false\n";

impl Sandbox {
    pub(crate) fn new() -> Self {
        let dir = tempfile::Builder::new().prefix("t").tempdir_in(servers::root()).unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
        for name in ["home", "tmp"] {
            fs::create_dir(dir.path().join(name)).unwrap();
        }
        fs::write(dir.path().join("gitconfig"), CONFIG).unwrap();
        let at = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
        let program = Path::new(env!("CARGO_BIN_EXE_git-claim")).parent().unwrap();
        let env = [
            // `git claim` finds us where a user's git would: on the PATH.
            ("PATH", format!("{}:{}", program.display(), env::var("PATH").unwrap())),
            ("HOME", at("home")),
            ("TMPDIR", at("tmp")),
            ("GIT_CONFIG_GLOBAL", at("gitconfig")),
            ("GIT_CONFIG_NOSYSTEM", "1".to_owned()),
            ("LANG", "C.UTF-8".to_owned()),
            ("TZ", "UTC".to_owned()),
        ];
        let env = env.map(|(name, value)| (name.to_owned(), value)).to_vec();
        Sandbox { dir, env }
    }

    /// A path inside.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// A bare repository named `origin.git` behind the server that `kind` asks for.
    #[track_caller]
    pub(crate) fn remote(&self, kind: Kind) -> Option<Remote> {
        self.remote_named("origin.git", kind)
    }

    #[track_caller]
    pub(crate) fn remote_named(&self, name: &str, kind: Kind) -> Option<Remote> {
        let remote = Remote::new(self.path(name), kind)?;
        self.configure(&remote.client_config);
        Some(remote)
    }

    /// Adds to the user's configuration.
    pub(crate) fn configure(&self, more: &str) {
        let path = self.path("gitconfig");
        let mut config = fs::read_to_string(&path).unwrap();
        if !config.contains(more) {
            config.push_str(more);
            fs::write(&path, config).unwrap();
        }
    }

    /// Writes an executable script.
    pub(crate) fn script(&self, name: &str, body: &str) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, format!("#!/bin/sh\n{body}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    /// A clone of `remote` in the folder `name`.
    #[track_caller]
    pub(crate) fn clone(&self, remote: &Remote, name: &str) -> Clone {
        self.clone_with(remote, name, &[])
    }

    #[track_caller]
    pub(crate) fn clone_with(&self, remote: &Remote, name: &str, options: &[&str]) -> Clone {
        let mut args = vec!["clone", "--quiet", "--template="];
        args.extend(options);
        args.extend([remote.url.as_str(), name]);
        Run::new("git", args, self.dir.path(), &self.env).go().ok();
        self.at(name)
    }

    /// A clone for each of `names`, as a person with that name. Copies of one: cheaper than clones over ssh, and the same to
    /// the server.
    #[track_caller]
    pub(crate) fn people<const N: usize>(&self, remote: &Remote, names: [&str; N]) -> [Clone; N] {
        self.clone(remote, "first");
        names.map(|name| {
            self.copy("first", name);
            let clone = self.at(name);
            clone.set("user.name", &format!("{name} Example"));
            clone.set("user.email", &format!("{}@example.com", name.to_lowercase()));
            clone
        })
    }

    /// A repository of its own in the folder `name`, with no commit and one remote.
    #[track_caller]
    pub(crate) fn empty(&self, remote: &Remote, name: &str) -> Clone {
        let args = ["init", "--quiet", "--template=", name];
        Run::new("git", args, self.dir.path(), &self.env).go().ok();
        let clone = self.at(name);
        clone.git(&["remote", "add", "origin", &remote.url]);
        clone
    }

    /// Copies a folder, as a person or a CI cache would.
    #[track_caller]
    pub(crate) fn copy(&self, from: &str, to: &str) {
        Run::new("cp", ["-R", from, to], self.dir.path(), &self.env).go().ok();
    }

    /// Processes that still run in this sandbox's environment. Those that were just told to end get a moment for it.
    pub(crate) fn left_running(&self) -> Vec<String> {
        let home = format!("HOME={}", self.path("home").display());
        for _ in 0..500 {
            let alive = alive_in(&home);
            if alive.is_empty() {
                return alive;
            }
            thread::sleep(Duration::from_millis(10));
        }
        alive_in(&home)
    }

    /// Whatever repository is in the folder `name`.
    pub(crate) fn at(&self, name: &str) -> Clone {
        Clone { dir: self.path(name), env: self.env.clone(), trace: self.path("trace") }
    }
}

impl Drop for Sandbox {
    /// git wrote down every command that it, or we through it, started: none may ask for force.
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        let trace = fs::read(self.path("trace")).unwrap_or_default();
        let trace = String::from_utf8_lossy(&trace);
        let forced = trace.lines().filter(|line| asks_for_force(line)).collect::<Vec<_>>();
        assert!(forced.is_empty(), "a child was given a force option:\n{}", forced.join("\n"));
    }
}

/// Whether a traced command line holds an option or a refspec that overrides a refusal.
pub(crate) fn asks_for_force(line: &str) -> bool {
    line.split_whitespace().map(|word| word.trim_matches(['\'', '"'])).any(|word| {
        word == "-f"
            || word.starts_with("--force")
            || word.starts_with("+refs/")
            || word.starts_with("+:")
    })
}

/// The command lines of all processes whose environment holds `entry` (Linux; nothing elsewhere).
fn alive_in(entry: &str) -> Vec<String> {
    processes_with(entry).into_iter().map(|(_, command)| command).collect()
}

/// The same, each with its number.
pub(crate) fn processes_with(entry: &str) -> Vec<(i32, String)> {
    let Ok(processes) = fs::read_dir("/proc") else { return Vec::new() };
    let found = processes.flatten().filter_map(|process| {
        let number = process.file_name().to_str()?.parse().ok()?;
        let environment = fs::read(process.path().join("environ")).ok()?;
        let is_ours = environment.split(|byte| *byte == 0).any(|part| part == entry.as_bytes());
        let command = fs::read(process.path().join("cmdline")).ok()?;
        is_ours.then(|| (number, String::from_utf8_lossy(&command).replace('\0', " ")))
    });
    found.collect()
}

/// The numbers of the processes that stand in `dir`, or below it.
pub(crate) fn processes_in(dir: &Path) -> Vec<i32> {
    let Ok(processes) = fs::read_dir("/proc") else { return Vec::new() };
    let found = processes.flatten().filter_map(|process| {
        let number = process.file_name().to_str()?.parse().ok()?;
        let stands = fs::read_link(process.path().join("cwd")).ok()?;
        stands.starts_with(dir).then_some(number)
    });
    found.collect()
}

/// Whether INT and HUP are ignored here, and so by whatever is started (a job in the background of a script).
pub(crate) fn ignores_signals() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0) & 0b11 != 0
}

/// A repository in which commands are run.
pub(crate) struct Clone {
    /// Its work tree, or the repository itself where it is bare.
    pub(crate) dir: PathBuf,
    env: Vec<(String, String)>,
    trace: PathBuf,
}

impl Clone {
    /// Runs git to a good end; gives what it prints.
    #[track_caller]
    pub(crate) fn git(&self, args: &[&str]) -> String {
        self.run_git(args).go().ok()
    }

    /// A git command to be run.
    pub(crate) fn run_git(&self, args: &[&str]) -> Run {
        Run::new("git", args, &self.dir, &self.env)
    }

    /// Sets an option in this repository.
    pub(crate) fn set(&self, key: &str, value: &str) {
        self.git(&["config", "--add", key, value]);
    }

    /// Runs the program to its end.
    #[track_caller]
    pub(crate) fn claim(&self, args: &[&str]) -> super::Output {
        self.run(args).go()
    }

    /// A run of the program, to be started with [`Run::go`].
    pub(crate) fn run(&self, args: &[&str]) -> Run {
        Run::new(env!("CARGO_BIN_EXE_git-claim"), args, &self.dir, &self.env)
            .env("GIT_TRACE", &self.trace)
    }

    /// The same, by the words of another command that are put before it.
    pub(crate) fn run_under(&self, before: &[String], args: &[&str]) -> Run {
        let [program, rest @ ..] = before else { return self.run(args) };
        let rest = rest.iter().map(String::as_str);
        let args = rest.chain([env!("CARGO_BIN_EXE_git-claim")]).chain(args.iter().copied());
        Run::new(program, args, &self.dir, &self.env).env("GIT_TRACE", &self.trace)
    }

    /// A line of shell to be run, for what needs one: redirections, limits, signals. `git-claim` is on its PATH.
    pub(crate) fn shell(&self, script: &str) -> Run {
        Run::new("sh", ["-c", script], &self.dir, &self.env).env("GIT_TRACE", &self.trace)
    }

    /// Lets `origin` be at another URL.
    #[track_caller]
    pub(crate) fn point_to(&self, url: &str) {
        self.git(&["remote", "set-url", "origin", url]);
    }

    /// The files with records of claims.
    pub(crate) fn records(&self) -> Vec<PathBuf> {
        let remotes = fs::read_dir(self.dir.join(".git/claims")).into_iter().flatten().flatten();
        let files =
            remotes.flat_map(|remote| fs::read_dir(remote.path()).into_iter().flatten().flatten());
        files.map(|file| file.path()).filter(|path| path.extension().is_some()).collect()
    }

    /// Runs the program, and counts the programs of git's server that it starts where the remote is a path: those that read,
    /// and those that write.
    pub(crate) fn counted(&self, args: &[&str], input: &str) -> (super::Output, usize, usize) {
        let log = self.trace.with_extension("counted");
        let _ = fs::remove_file(&log);
        let output = self.run(args).env("GIT_TRACE2_EVENT", &log).input(input).go();
        let log = fs::read_to_string(log).unwrap_or_default();
        let starts = |program: &str| {
            let of = |line: &&str| line.contains("\"event\":\"start\"") && line.contains(program);
            log.lines().filter(of).count()
        };
        (output, starts("\"upload-pack\""), starts("\"receive-pack\""))
    }

    /// What git calls `name` inside this repository.
    pub(crate) fn git_path(&self, name: &str) -> PathBuf {
        self.dir.join(self.git(&["rev-parse", "--git-path", name]))
    }
}
