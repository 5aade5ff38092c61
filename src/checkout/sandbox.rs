//! A temporary folder, real git, and an environment of its own.

use std::path::{Path, PathBuf};

use super::{Checkout, CheckoutError, Environment};

pub(crate) struct Sandbox {
    folder: tempfile::TempDir,
    environment: Environment,
}

impl Sandbox {
    pub(crate) fn new() -> Sandbox {
        let folder = tempfile::tempdir().unwrap();
        let path = std::env::var_os("PATH").unwrap();
        let variables = [("PATH", path), ("HOME", folder.path().join("home").into())];
        std::fs::create_dir(folder.path().join("home")).unwrap();
        let environment = Environment::Only(
            variables.into_iter().map(|(name, value)| (name.into(), value)).collect(),
        );
        Sandbox { folder, environment }
            .with("GIT_CONFIG_NOSYSTEM", "1")
            .with("GIT_AUTHOR_NAME", "A")
            .with("GIT_AUTHOR_EMAIL", "a@example.com")
            .with("GIT_COMMITTER_NAME", "A")
            .with("GIT_COMMITTER_EMAIL", "a@example.com")
    }

    /// With a repository in `work`.
    pub(crate) fn with_repository() -> Sandbox {
        let sandbox = Sandbox::new();
        sandbox.git(".", &["init", "-q", "-b", "main", "work"]);
        sandbox
    }

    pub(crate) fn with(mut self, name: &str, value: impl Into<std::ffi::OsString>) -> Sandbox {
        let Environment::Only(variables) = &mut self.environment else { unreachable!() };
        variables.insert(name.into(), value.into());
        self
    }

    pub(crate) fn without(mut self, name: &str) -> Sandbox {
        let Environment::Only(variables) = &mut self.environment else { unreachable!() };
        variables.remove(std::ffi::OsStr::new(name));
        self
    }

    pub(crate) fn path(&self, below: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(below)
    }

    pub(crate) fn open(&self, below: &str) -> Result<Checkout, CheckoutError> {
        Checkout::open_with(&self.path(below), self.environment.clone())
    }

    pub(crate) fn git(&self, below: &str, arguments: &[&str]) -> String {
        self.try_git(below, arguments).unwrap_or_else(|said| panic!("git {arguments:?}: {said}"))
    }

    pub(crate) fn try_git(&self, below: &str, arguments: &[&str]) -> Result<String, String> {
        let mut command = super::git(&self.environment, &self.path(below));
        let output = command.args(arguments).output().unwrap();
        match output.status.success() {
            true => Ok(String::from_utf8(output.stdout).unwrap().trim_end().to_owned()),
            false => Err(super::said(&output)),
        }
    }

    pub(crate) fn write(&self, below: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(below);
        std::fs::create_dir_all(path.parent().unwrap_or(Path::new("/"))).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }
}
