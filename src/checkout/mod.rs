//! The clone we stand in, as git itself sees it.
//!
//! Where the repository is, whether it is ours to trust and what is configured are questions that git answers
//! by rules of its own: `GIT_DIR`, `GIT_COMMON_DIR` and their kin, ceilings, `safe.directory`, `git -c`,
//! conditional includes, the place of the system's configuration file. So git is asked: `git rev-parse` and
//! `git config --list`, side by side, in one to two milliseconds. gix would take one, but it does not read
//! `GIT_CONFIG_PARAMETERS` or `GIT_COMMON_DIR`, does not know reftable, and has to start git as well to learn where
//! the system's configuration is. Objects are read with gix, which never fetches those that a partial clone lacks.
//!
//! Nothing here writes, and no ref read here is ever an answer about a claim: the remote decides.

mod config;
#[cfg(test)]
pub(crate) mod sandbox;

use std::{
    cell::OnceCell,
    io,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
};

use gix::{
    ObjectId,
    bstr::ByteSlice,
    objs::{Find, FindHeader},
};

pub use config::{Config, Environment, boolean};

/// Why the place we stand in cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CheckoutError {
    /// `git` could not be started.
    #[error("cannot run 'git' in '{}': {error}", directory.display())]
    NoGit {
        /// Where it was to run.
        directory: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// The repository belongs to somebody else, and `safe.directory` does not allow it.
    #[error("{said}")]
    Dubious {
        /// git's own first line.
        said: String,
        /// The command that allows it, as git words it.
        fix: String,
    },
    /// git refuses the repository or its configuration.
    #[error("{0}")]
    Refused(String),
    /// git's answer has another shape than the one documented.
    #[error("cannot make sense of the answer of '{0}'")]
    Nonsense(&'static str),
    /// git does not know an option that came with 2.31.
    #[error("git 2.31 or newer is needed")]
    TooOld,
}

/// Where a repository keeps its things; all paths absolute.
#[derive(Debug)]
struct Place {
    git_dir: PathBuf,
    common_dir: PathBuf,
    objects: PathBuf,
    hash: gix::hash::Kind,
    work_dir: Option<PathBuf>,
}

/// The clone we stand in, or none; the configuration; the environment.
pub struct Checkout {
    place: Option<Place>,
    config: Config,
    environment: Environment,
    cwd: PathBuf,
    objects: OnceCell<Option<gix::odb::Handle>>,
}

impl Checkout {
    /// Finds the repository that git would use in `cwd`, and reads its configuration.
    ///
    /// Outside of any repository this is a checkout without one, and the configuration is that of the user and the system.
    ///
    /// # Errors
    /// For whatever git refuses: a repository owned by somebody else, one that is broken or of a kind that this git
    /// does not know, a `GIT_DIR` that is none, a configuration that cannot be parsed.
    pub fn open(cwd: &Path) -> Result<Self, CheckoutError> {
        Self::open_with(cwd, Environment::Process)
    }

    /// As [`open`](Checkout::open), with these environment variables.
    fn open_with(cwd: &Path, environment: Environment) -> Result<Self, CheckoutError> {
        let cwd = std::path::absolute(cwd)
            .map_err(|error| CheckoutError::NoGit { directory: cwd.to_owned(), error })?;
        // One after the other would cost twice the time. GIT_CONFIG is an alias of `--file` to
        // `git config`, and nothing to any other git command.
        let place = start(git(&environment, &cwd).args(PLACE), &cwd)?;
        let listing = start(git(&environment, &cwd).args(LISTING).env_remove("GIT_CONFIG"), &cwd)?;
        let failed = |error| CheckoutError::NoGit { directory: cwd.clone(), error };
        let place = place.wait_with_output().map_err(failed);
        let listing = listing.wait_with_output().map_err(failed)?;

        let place = place_from(&place?)?;
        if !listing.status.success() {
            return Err(CheckoutError::Refused(said(&listing)));
        }
        let config = Config::from_listing(&listing.stdout);
        Ok(Checkout { place, config, environment, cwd, objects: OnceCell::new() })
    }

    /// No repository, no environment, and the configuration of this listing.
    #[cfg(any(test, fuzzing))]
    pub(crate) fn listed(listing: &[u8]) -> Self {
        Checkout {
            place: None,
            config: Config::from_listing(listing),
            environment: Environment::Only(Default::default()),
            cwd: "/".into(),
            objects: OnceCell::new(),
        }
    }

    /// The configuration, `git -c` included.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The environment that the repository was found with.
    pub fn environment(&self) -> &Environment {
        &self.environment
    }

    /// The git directory (a linked worktree's own), absolute.
    pub fn git_dir(&self) -> Option<&Path> {
        self.place.as_ref().map(|place| place.git_dir.as_path())
    }

    /// The git directory that all worktrees share, absolute.
    pub fn common_dir(&self) -> Option<&Path> {
        self.place.as_ref().map(|place| place.common_dir.as_path())
    }

    /// The top of the work tree, absolute; none in a bare repository and inside a git directory.
    pub fn work_dir(&self) -> Option<&Path> {
        self.place.as_ref()?.work_dir.as_deref()
    }

    /// The hash of its objects.
    pub fn hash_kind(&self) -> Option<gix::hash::Kind> {
        self.place.as_ref().map(|place| place.hash)
    }

    /// At most `limit` commits that a fetch could name as `have`: HEAD, the remotes' HEADs, local and
    /// remote-tracking branches, each once, and only if it is here. What cannot be read is left out.
    pub fn known_tips(&self, limit: usize) -> Vec<ObjectId> {
        let mut tips = Vec::new();
        // Unborn or detached, HEAD comes last: rev-parse stops at what it cannot resolve.
        let heads = self.begin(&["rev-parse", "--revs-only", "--glob=refs/remotes/*/HEAD", "HEAD"]);
        let count = format!("--count={limit}");
        let format = "--format=%(objectname)";
        let branches = self.begin(&["for-each-ref", &count, format, "refs/heads", "refs/remotes"]);
        // Side by side: one after the other would cost twice the time.
        let (heads, branches) = (end(heads), end(branches));
        for line in heads.lines().chain(branches.lines()) {
            if tips.len() == limit {
                break;
            }
            if let Ok(id) = ObjectId::from_hex(line)
                && !tips.contains(&id)
                && self.has_commit(&id)
            {
                tips.push(id);
            }
        }
        tips
    }

    /// The branch that somebody means, and its commit: a local one, else a remote-tracking one (`topic` or `origin/topic`;
    /// `origin` goes first), or the one that is checked out (`HEAD`). Its name is the one that it has on the remote.
    pub fn resolve(&self, branch: &str) -> Option<(String, ObjectId)> {
        let head;
        let branch = match branch {
            "HEAD" | "@" => {
                head = self.ask(&["symbolic-ref", "--quiet", "HEAD"]);
                head.trim_ascii_end().to_str().ok()?
            }
            named => named,
        };
        let branch = branch.strip_prefix("refs/heads/").unwrap_or(branch);
        if branch.is_empty() || branch.contains(['*', '?', '[', '\\']) {
            return None;
        }
        let exact = [
            format!("refs/heads/{branch}"),
            format!("refs/remotes/{branch}"),
            format!("refs/remotes/origin/{branch}"),
        ];
        let anywhere = format!("refs/remotes/*/{branch}");
        let listing = self.ask(&[
            "for-each-ref",
            "--format=%(objectname) %(refname)",
            &exact[0],
            &exact[1],
            &anywhere,
        ]);
        let mut found: Vec<(usize, &[u8], ObjectId)> = Vec::new();
        for line in listing.lines() {
            let (id, name) = line.split_once_str(" ")?;
            // A pattern also matches what lies below it.
            let rank = exact.iter().position(|exact| exact.as_bytes() == name).or_else(|| {
                let (_, rest) = name.strip_prefix(b"refs/remotes/")?.split_once_str("/")?;
                (rest == branch.as_bytes()).then_some(exact.len())
            });
            if let (Some(rank), Ok(id)) = (rank, ObjectId::from_hex(id)) {
                found.push((rank, name, id));
            }
        }
        let (_, full, id) = found.into_iter().min_by_key(|(rank, ..)| *rank)?;
        // Without the name of the remote, which is this clone's own.
        let name = match full.strip_prefix(b"refs/remotes/") {
            Some(tracking) => tracking.split_once_str("/")?.1,
            None => full.strip_prefix(b"refs/heads/")?,
        };
        Some((name.to_str_lossy().into_owned(), id))
    }

    /// The raw commit `id`, without the loose object header, if it happens to be here.
    pub fn find_commit(&self, id: &gix::oid) -> Option<Vec<u8>> {
        // The header first: a blob of any size may be named, and is not to be read.
        if !self.has_commit(id) {
            return None;
        }
        let mut buffer = Vec::new();
        self.objects()?.try_find(id, &mut buffer).ok()??;
        Some(buffer)
    }

    fn has_commit(&self, id: &gix::oid) -> bool {
        self.hash_kind() == Some(id.kind())
            && self
                .objects()
                .and_then(|objects| objects.try_header(id).ok()?)
                .is_some_and(|header| header.kind == gix::objs::Kind::Commit)
    }

    fn objects(&self) -> Option<&gix::odb::Handle> {
        let open = || {
            let place = self.place.as_ref()?;
            let mut objects = gix::odb::at(&place.objects, place.hash).ok()?;
            // What is not here now is of no use: do not look for new packs at every miss.
            objects.refresh_never();
            Some(objects)
        };
        self.objects.get_or_init(open).as_ref()
    }

    /// What git prints to a question about refs; nothing when it cannot say.
    fn ask(&self, arguments: &[&str]) -> Vec<u8> {
        end(self.begin(arguments))
    }

    /// Begins to ask; nothing where there is no clone to ask about.
    fn begin(&self, arguments: &[&str]) -> Option<Child> {
        self.place.as_ref()?;
        // A missing object of a partial clone is not worth a connection.
        let mut command = git(&self.environment, &self.cwd);
        command.args(arguments).env("GIT_NO_LAZY_FETCH", "1");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().ok()
    }
}

/// What it says; nothing where it could not be asked.
fn end(asked: Option<Child>) -> Vec<u8> {
    let output = asked.and_then(|child| child.wait_with_output().ok());
    output.map(|output| output.stdout).unwrap_or_default()
}

/// `--show-toplevel` goes last: it fails where there is no work tree, after the others were printed.
const PLACE: [&str; 8] = [
    "rev-parse",
    ABSOLUTE,
    "--absolute-git-dir",
    "--git-common-dir",
    "--git-path",
    "objects",
    "--show-object-format",
    "--show-toplevel",
];
const ABSOLUTE: &str = "--path-format=absolute";
const LISTING: [&str; 3] = ["config", "--list", "-z"];

/// The one place where git is prepared for a question about the clone.
fn git(environment: &Environment, cwd: &Path) -> Command {
    let mut command = Command::new("git");
    if let Environment::Only(variables) = environment {
        command.env_clear().envs(variables);
    }
    // git's messages are translated, and two of them are recognised.
    command.current_dir(cwd).env("LC_ALL", "C");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn start(command: &mut Command, cwd: &Path) -> Result<Child, CheckoutError> {
    command.spawn().map_err(|error| CheckoutError::NoGit { directory: cwd.to_owned(), error })
}

fn place_from(output: &Output) -> Result<Option<Place>, CheckoutError> {
    const QUESTION: &str = "git rev-parse";
    let complaint = said(output);
    if !output.status.success() {
        if complaint.starts_with("not a git repository (or any") {
            return Ok(None);
        }
        if !complaint.starts_with("this operation must be run in a work tree") {
            return Err(refusal(complaint));
        }
    }
    let answer = output.stdout.strip_suffix(b"\n").unwrap_or(&output.stdout);
    let lines: Vec<&[u8]> = answer.split(|byte| *byte == b'\n').collect();
    if lines[0] == ABSOLUTE.as_bytes() {
        return Err(CheckoutError::TooOld);
    }
    let (git_dir, common_dir, objects, hash, work_dir) = match (output.status.success(), &lines[..])
    {
        (true, &[git_dir, common_dir, objects, hash, top]) => {
            (git_dir, common_dir, objects, hash, Some(top))
        }
        (false, &[git_dir, common_dir, objects, hash]) => {
            (git_dir, common_dir, objects, hash, None)
        }
        // A path with a line break in it, most likely.
        _ => return Err(CheckoutError::Nonsense(QUESTION)),
    };
    let hash = match hash {
        b"sha1" => gix::hash::Kind::Sha1,
        b"sha256" => gix::hash::Kind::Sha256,
        _ => return Err(CheckoutError::Nonsense(QUESTION)),
    };
    let path = |bytes: &[u8]| {
        gix::path::from_byte_slice(bytes)
            .ok()
            .filter(|path| path.is_absolute())
            .map(Path::to_owned)
            .ok_or(CheckoutError::Nonsense(QUESTION))
    };
    Ok(Some(Place {
        git_dir: path(git_dir)?,
        common_dir: path(common_dir)?,
        objects: path(objects)?,
        hash,
        work_dir: work_dir.map(path).transpose()?,
    }))
}

fn refusal(complaint: String) -> CheckoutError {
    if complaint.starts_with("detected dubious ownership")
        && let Some(fix) = complaint.lines().find(|line| line.contains("safe.directory"))
    {
        let said = complaint.lines().next().unwrap_or_default().to_owned();
        return CheckoutError::Dubious { said, fix: fix.trim().to_owned() };
    }
    CheckoutError::Refused(complaint)
}

/// git's complaint without `fatal:` and without what tracing may have written before it.
fn said(output: &Output) -> String {
    let text = output.stderr.to_str_lossy();
    let mut lines = text
        .lines()
        .skip_while(|line| !line.starts_with("fatal: ") && !line.starts_with("error: "));
    let first = lines.next().unwrap_or("git failed without a word");
    let first = first.strip_prefix("fatal: ").or(first.strip_prefix("error: ")).unwrap_or(first);
    let rest: Vec<&str> = lines.map(|line| line.strip_prefix("fatal: ").unwrap_or(line)).collect();
    format!("{first}\n{}", rest.join("\n")).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::{sandbox::Sandbox, *};

    #[test]
    fn outside_of_any_repository_the_user_configuration_holds() {
        let sandbox = Sandbox::new();
        sandbox.write("home/.gitconfig", "[claim]\n\tremote = everywhere\n");
        let checkout = sandbox.open(".").unwrap();
        assert!(checkout.git_dir().is_none() && checkout.hash_kind().is_none());
        assert_eq!(checkout.config().string("claim.remote"), Some("everywhere".into()));
        assert!(checkout.known_tips(9).is_empty() && checkout.resolve("main").is_none());
    }

    #[test]
    fn every_kind_of_repository_opens() {
        let sandbox = Sandbox::new();
        for (hash, refs) in
            [("sha1", "files"), ("sha256", "files"), ("sha1", "reftable"), ("sha256", "reftable")]
        {
            let name = format!("{hash}-{refs}");
            let (hash_option, ref_option) =
                (format!("--object-format={hash}"), format!("--ref-format={refs}"));
            if let Err(said) = sandbox
                .try_git(".", &["init", "-q", "-b", "main", &hash_option, &ref_option, &name])
            {
                eprintln!("skipped {name}: {said}");
                continue;
            }
            let empty = sandbox.open(&name).unwrap();
            assert!(empty.known_tips(9).is_empty(), "{name}");

            sandbox.git(&name, &["commit", "-q", "--allow-empty", "-m", "one"]);
            let head = sandbox.git(&name, &["rev-parse", "HEAD"]);
            sandbox.git(&name, &["update-ref", "refs/remotes/origin/topic", "HEAD"]);
            let checkout = sandbox.open(&name).unwrap();
            assert_eq!(checkout.git_dir(), Some(sandbox.path(&name).join(".git").as_path()));
            assert_eq!(checkout.common_dir(), checkout.git_dir());
            assert_eq!(checkout.work_dir(), Some(sandbox.path(&name).as_path()));
            let tips = checkout.known_tips(9);
            assert_eq!((tips.len(), tips[0].to_string()), (1, head));
            assert_eq!(checkout.hash_kind(), Some(tips[0].kind()));
            let is = |typed: &str, name: &str| {
                assert_eq!(checkout.resolve(typed), Some((name.to_owned(), tips[0])), "{typed}");
            };
            is("main", "main");
            is("HEAD", "main");
            is("topic", "topic");
            is("origin/topic", "topic");
            assert_eq!(checkout.resolve("nothing"), None);
            let raw = sandbox.git(&name, &["cat-file", "commit", "HEAD"]);
            let found = checkout.find_commit(&tips[0]).unwrap();
            assert_eq!(String::from_utf8(found).unwrap().trim_end(), raw);
        }
    }

    #[test]
    fn other_objects_and_unknown_ids_are_no_commits() {
        let sandbox = Sandbox::with_repository();
        sandbox.git("work", &["commit", "-q", "--allow-empty", "-m", "one"]);
        let checkout = sandbox.open("work").unwrap();
        let tree =
            ObjectId::from_hex(sandbox.git("work", &["rev-parse", "HEAD^{tree}"]).as_bytes());
        assert!(checkout.find_commit(&tree.unwrap()).is_none());
        assert!(checkout.find_commit(&ObjectId::null(gix::hash::Kind::Sha256)).is_none());
        assert!(checkout.find_commit(&ObjectId::null(gix::hash::Kind::Sha1)).is_none());
    }

    #[test]
    fn worktrees_sub_folders_bare_repositories_and_submodules() {
        let sandbox = Sandbox::with_repository();
        sandbox.git("work", &["commit", "-q", "--allow-empty", "-m", "one"]);
        sandbox.git("work", &["worktree", "add", "-q", "../linked"]);
        std::fs::create_dir(sandbox.path("linked/sub")).unwrap();
        let linked = sandbox.open("linked/sub").unwrap();
        assert_eq!(linked.work_dir(), Some(sandbox.path("linked").as_path()));
        assert_eq!(linked.git_dir(), Some(sandbox.path("work/.git/worktrees/linked").as_path()));
        assert_eq!(linked.common_dir(), Some(sandbox.path("work/.git").as_path()));
        assert_eq!(linked.known_tips(9).len(), 1);

        for (option, name) in [("--bare", "bare"), ("--mirror", "mirror")] {
            sandbox.git(".", &["clone", "-q", option, "work", name]);
            let bare = sandbox.open(name).unwrap();
            assert_eq!(
                (bare.work_dir(), bare.git_dir()),
                (None, Some(sandbox.path(name).as_path()))
            );
            assert_eq!(bare.known_tips(9).len(), 1);
        }
        let inside = sandbox.open("work/.git").unwrap();
        assert_eq!(
            (inside.work_dir(), inside.git_dir()),
            (None, Some(sandbox.path("work/.git").as_path()))
        );

        sandbox.git(".", &["init", "-q", "super"]);
        let module =
            ["-c", "protocol.file.allow=always", "submodule", "add", "-q", "../work", "inner"];
        let url = sandbox.path("work");
        let mut module = module.map(str::to_owned);
        module[5] = url.to_str().unwrap().to_owned();
        sandbox.git("super", &module.each_ref().map(String::as_str));
        let inner = sandbox.open("super/inner").unwrap();
        assert_eq!(inner.git_dir(), Some(sandbox.path("super/.git/modules/inner").as_path()));

        let url = format!("file://{}", sandbox.path("work").display());
        sandbox.git(
            ".",
            &["clone", "-q", "--depth=1", "--sparse", "--filter=blob:none", &url, "thin"],
        );
        assert_eq!(sandbox.open("thin").unwrap().known_tips(9).len(), 1);
    }

    #[test]
    fn the_environment_names_the_repository_as_in_a_hook() {
        let sandbox = Sandbox::with_repository().with("GIT_DIR", ".git");
        assert_eq!(
            sandbox.open("work").unwrap().git_dir(),
            Some(sandbox.path("work/.git").as_path())
        );
        let sandbox = sandbox.with("GIT_DIR", "nowhere");
        let error = sandbox.open("work").err().unwrap();
        assert!(matches!(&error, CheckoutError::Refused(_)));
        assert_eq!(error.to_string(), "not a git repository: 'nowhere'");

        let sandbox = Sandbox::with_repository();
        std::fs::create_dir(sandbox.path("work/sub")).unwrap();
        let ceiling = sandbox.path("work");
        let sandbox = sandbox.with("GIT_CEILING_DIRECTORIES", ceiling);
        assert!(sandbox.open("work/sub").unwrap().git_dir().is_none());

        let sandbox = Sandbox::with_repository();
        sandbox.git(".", &["init", "-q", "other"]);
        let (own, common) = (sandbox.path("other/.git"), sandbox.path("work/.git"));
        let sandbox = sandbox.with("GIT_DIR", own).with("GIT_COMMON_DIR", common);
        let checkout = sandbox.open(".").unwrap();
        assert_eq!(checkout.common_dir(), Some(sandbox.path("work/.git").as_path()));
    }

    #[test]
    fn what_git_refuses_is_refused_in_its_words() {
        let sandbox = Sandbox::new();
        sandbox.write("lost/.git", "gitdir: /nowhere/at/all\n");
        let error = sandbox.open("lost").err().unwrap().to_string();
        assert_eq!(error, "not a git repository: /nowhere/at/all");

        let sandbox = Sandbox::with_repository();
        sandbox.write("work/.git/config", "[core\n");
        let error = sandbox.open("work").err().unwrap().to_string();
        assert!(error.starts_with("bad config line 1 in file"), "{error}");

        let sandbox = Sandbox::with_repository().with("GIT_CONFIG_PARAMETERS", "'claim.remote");
        let error = sandbox.open("work").err().unwrap().to_string();
        assert!(error.contains("bogus format in GIT_CONFIG_PARAMETERS"), "{error}");

        let missing = sandbox.open("no/such/folder").err().unwrap();
        assert!(matches!(missing, CheckoutError::NoGit { .. }));
    }

    #[cfg(unix)]
    #[test]
    fn a_repository_of_somebody_else_needs_safe_directory() {
        let sandbox = Sandbox::with_repository();
        for part in ["work", "work/.git"] {
            if std::os::unix::fs::chown(sandbox.path(part), Some(12345), None).is_err() {
                eprintln!("skipped: only root can give a folder away");
                return;
            }
        }
        let error = sandbox.open("work").err().unwrap();
        let CheckoutError::Dubious { said, fix } = error else { panic!("{error:?}") };
        let path = sandbox.path("work").display().to_string();
        assert_eq!(said, format!("detected dubious ownership in repository at '{path}'"));
        assert_eq!(fix, format!("git config --global --add safe.directory {path}"));
        sandbox.write("home/.gitconfig", format!("[safe]\n\tdirectory = {path}\n"));
        assert!(sandbox.open("work").is_ok());
    }
}
