//! Everything in a repository that a verb must leave as it found it.

use std::{
    collections::BTreeMap,
    fmt, fs,
    path::{Path, PathBuf},
};

/// Every file below a folder with its bytes, but for the program's own corner (`claims/` in a git directory).
#[derive(PartialEq, Eq)]
pub(crate) struct Snapshot(BTreeMap<PathBuf, Vec<u8>>);

/// Takes the state of a clone: work tree and git directory, refs, packs, loose objects, index, hooks, configuration.
pub(crate) fn snapshot(dir: &Path) -> Snapshot {
    let mut files = BTreeMap::new();
    walk(dir, dir, &mut files);
    Snapshot(files)
}

fn walk(top: &Path, dir: &Path, files: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in fs::read_dir(dir).unwrap() {
        let entry = entry.unwrap();
        let path = entry.path();
        let kind = entry.file_type().unwrap();
        let in_git_dir = dir.join("HEAD").exists() && dir.join("objects").exists();
        if in_git_dir && entry.file_name() == "claims" {
            continue;
        }
        let name = path.strip_prefix(top).unwrap().to_owned();
        if kind.is_dir() {
            files.insert(name, b"<a folder>".to_vec());
            walk(top, &path, files);
        } else if kind.is_symlink() {
            files.insert(name, fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes());
        } else {
            files.insert(name, fs::read(&path).unwrap());
        }
    }
}

impl Snapshot {
    /// Fails with the names of all files that came, went or changed between `self` and the present state of `dir`.
    #[track_caller]
    pub(crate) fn still_holds(&self, dir: &Path) {
        let now = snapshot(dir);
        let mut changes = Vec::new();
        for (name, bytes) in &self.0 {
            match now.0.get(name) {
                None => changes.push(format!("gone: {}", name.display())),
                Some(other) if other != bytes => {
                    changes.push(format!("changed: {}", name.display()))
                }
                Some(_) => {}
            }
        }
        let came = now.0.keys().filter(|name| !self.0.contains_key(*name));
        changes.extend(came.map(|name| format!("new: {}", name.display())));
        assert!(
            changes.is_empty(),
            "{} was not left alone:\n{}",
            dir.display(),
            changes.join("\n")
        );
    }
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}
