//! A claim's commit before it has an id, and its bytes.
//!
//! Encoding is a function of the draft alone, so every retry sends the same object and finding it on the remote is a win.
//! It refuses to make what git would call malformed, whatever the text and names are.

use chrono::{DateTime, Utc};
use gix::{ObjectId, bstr::ByteVec as _};

use super::record::Person;

/// A commit to be: the empty tree, with at most one parent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draft {
    /// The whole message, as [`Record::message`](super::record::Record::message) makes it.
    pub message: String,
    /// Author and committer; cleaned like git does when encoded.
    pub author: Person,
    /// Author's and committer's time. Seconds count; times before 1970, which git does not know, become its first second.
    pub at: DateTime<Utc>,
    /// The earlier tip, for renewals and takeovers; of the hash kind that the draft is encoded for.
    pub parent: Option<ObjectId>,
}

/// A commit as an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Encoded {
    /// The commit's id.
    pub id: ObjectId,
    /// The bytes of the commit, without the object header.
    pub data: Vec<u8>,
}

impl Draft {
    /// The commit as git writes it in a repository of that hash `kind`; the same for the same draft, always.
    pub fn encode(&self, kind: gix::hash::Kind) -> Encoded {
        let person = self.author.cleaned();
        let signature = format!("{person} {} +0000", self.at.timestamp().max(0));
        let mut data = Vec::with_capacity(self.message.len() + 512);
        data.push_str(format!("tree {}\n", kind.empty_tree()));
        if let Some(parent) = self.parent {
            data.push_str(format!("parent {parent}\n"));
        }
        data.push_str(format!("author {signature}\ncommitter {signature}\n\n"));
        // Git ends a message at a NUL, and its fsck refuses the commit.
        data.extend(self.message.bytes().filter(|byte| *byte != 0));
        let id = gix::objs::compute_hash(kind, gix::objs::Kind::Commit, &data)
            .expect("it fails only for the binary blocks of a SHA-1 collision, and this is text");
        Encoded { id, data }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use gix::hash::Kind;
    use proptest::prelude::*;

    use super::{super::testing::git, *};

    fn draft(name: &str, email: &str, message: &str) -> Draft {
        Draft {
            message: message.to_owned(),
            author: Person { name: name.to_owned(), email: email.to_owned() },
            at: DateTime::from_timestamp(1_796_142_840, 999_000_000).expect("in range"),
            parent: None,
        }
    }

    /// Writes the commit with git, which must agree on its id.
    fn write(dir: &Path, commit: &Encoded) {
        let output = git(dir, &["hash-object", "-t", "commit", "-w", "--stdin"], &commit.data);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&commit.data));
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim_end(), commit.id.to_string());
    }

    #[test]
    fn the_bytes_are_those_of_git() {
        let commit =
            draft("Alice Example", "alice@example.com", "claim issue-42\n").encode(Kind::Sha1);
        assert_eq!(
            String::from_utf8_lossy(&commit.data),
            "tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904\n\
             author Alice Example <alice@example.com> 1796142840 +0000\n\
             committer Alice Example <alice@example.com> 1796142840 +0000\n\
             \n\
             claim issue-42\n"
        );
    }

    #[test]
    fn git_accepts_every_draft_and_gives_it_the_same_id() {
        for (format, kind) in [("sha1", Kind::Sha1), ("sha256", Kind::Sha256)] {
            let dir = tempfile::tempdir().expect("a temporary directory");
            let made =
                git(dir.path(), &["init", "-q", "--bare", "--object-format", format, "."], b"");
            assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
            assert!(git(dir.path(), &["mktree"], b"").status.success());

            let mut parent = None;
            for (name, email, message) in [
                ("Alice Example", "alice@example.com", "claim issue-42 by Alice Example\n"),
                ("", "", ""),
                ("", "bot@ci-7", "no line end"),
                ("<>", "<>", "\n\n\n"),
                ("a\nparent <b>", "c>\nd <e", "a NUL \0 in it\n"),
                ("\u{202e}Zoë", "zoë@example.com", "ünïcode\n\nTree: x\n"),
                (" .,:;\"'\\", "@", "\u{feff}bom\r\n"),
                ("tab\tand\0null", " spaced out ", "x\n"),
            ] {
                let draft = Draft { parent, ..draft(name, email, message) };
                let commit = draft.encode(kind);
                assert_eq!(commit, draft.clone().encode(kind));
                write(dir.path(), &commit);
                parent = Some(commit.id);
            }
            for at in [DateTime::<Utc>::MIN_UTC, DateTime::UNIX_EPOCH, DateTime::<Utc>::MAX_UTC] {
                write(dir.path(), &Draft { at, ..draft("a", "b", "c\n") }.encode(kind));
            }

            let checked = git(dir.path(), &["fsck", "--strict", "--no-dangling"], b"");
            let said = String::from_utf8_lossy(&checked.stderr);
            assert!(checked.status.success(), "{said}");
            assert!(said.lines().all(|line| line.starts_with("notice: ")), "{said}");
        }
    }

    proptest! {
        #[test]
        fn no_text_breaks_out_of_its_line(name: String, email: String, message: String) {
            let commit = draft(&name, &email, &message).encode(Kind::Sha256);
            let parsed = gix::objs::CommitRef::from_bytes(&commit.data, Kind::Sha256)
                .map_err(|error| TestCaseError::fail(error.to_string()))?;
            prop_assert!(parsed.parents.is_empty() && parsed.extra_headers.is_empty());
            prop_assert_eq!(parsed.message.to_string(), message.replace('\0', ""));
            let author = parsed.author().map_err(|error| TestCaseError::fail(error.to_string()))?;
            prop_assert!(!author.name.is_empty());
        }
    }
}
