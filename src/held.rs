//! The clone's own records: the proof that *this clone* took a claim.
//!
//! A record is written before the command leaves, as *pending*, and becomes *held* when the remote said yes. So
//! whatever ends us in between, the next command still recognises a claim that did land. Each take has a file
//! of its own, named by its token: two processes of one clone can never overwrite or remove each
//! other's proof. A record is never the answer to "is it free"; it only says which of the remote's claims are ours.
//!
//! A record names the clone it was written in. A clone copied or moved elsewhere owns nothing.

use std::{
    borrow::Cow,
    cmp::Reverse,
    collections::{HashMap, HashSet},
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use chrono::{DateTime, Utc};
use gix::ObjectId;
use serde::{Deserialize, Serialize};

use crate::claim::{claim_ref::ClaimRef, token::Token};

/// The folder of all records, in the common git directory.
const FOLDER: &str = "claims";
/// How the names of files begin that are being written.
const UNFINISHED: &str = ".new-";
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// The version of a record's form.
pub const VERSION: u32 = 1;
/// A pending record this old, whose claim is not on the remote, never landed.
const PENDING_FOR: chrono::TimeDelta = chrono::TimeDelta::days(2);

/// The records of one clone about one remote.
#[derive(Debug, Clone)]
pub struct Held {
    folder: PathBuf,
    home: Home,
}

/// One record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldRecord {
    /// The form of this file: [`VERSION`].
    pub version: u32,
    /// The claim's full ref name.
    #[serde(rename = "ref")]
    pub refname: String,
    /// The token that went into the claim commit.
    pub token: Token,
    /// The claim's id when we last knew it; absent while the take is pending.
    pub tip: Option<String>,
    /// The raw commit at `tip`, to make its child from.
    pub commit: Option<String>,
    /// Whether a try of the take got no answer, and may still create the ref once the claim is released.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unanswered: bool,
    /// When it was taken, by this machine's clock.
    pub taken: DateTime<Utc>,
    /// The remote's URL, without credentials, for people who look into the file.
    pub remote: String,
    /// The process that took it.
    pub process: u32,
    /// The clone that it was taken in.
    pub clone: Home,
}

/// Which clone a record belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Home {
    /// The common git directory, with symbolic links resolved.
    path: String,
    /// Its number on its file system, where there is one: a copy at the same path has another.
    inode: Option<u64>,
}

impl Home {
    fn of(common_dir: &Path) -> io::Result<Self> {
        let path = common_dir.canonicalize()?;
        #[cfg(unix)]
        let inode = Some(std::os::unix::fs::MetadataExt::ino(&fs::metadata(&path)?));
        #[cfg(not(unix))]
        let inode = None;
        Ok(Self { path: path.to_string_lossy().into_owned(), inode })
    }
}

/// What a clone has on record.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Records {
    /// The records of this very clone, newest first.
    pub own: Vec<HeldRecord>,
    /// Whether there are records that were written in another clone, of which this one is a copy.
    pub strangers: bool,
    /// Why some of it could not be read: then it cannot be told what is *not* ours.
    pub damage: Option<String>,
    /// The names of the claims whose records are damaged.
    pub damaged: Vec<String>,
}

impl Records {
    /// Whether one of them is of a take that is known to have been won.
    pub fn won(&self) -> bool {
        self.own.iter().any(|record| record.tip.is_some())
    }
}

/// What a clone has on record about some claims, read in one go to be told claim by claim.
#[derive(Debug, Clone, Default)]
pub struct ByClaim {
    /// Why the folder could not be read, which is so for every claim.
    damage: Option<String>,
    /// By the part of the files' names that stands for the claim: under any namespace.
    named: HashMap<String, Records>,
}

impl ByClaim {
    /// What there is about `claim`: as [`Held::records`] would tell it.
    pub fn of(&self, claim: &ClaimRef) -> Records {
        let mut found = self.named.get(&*claim.short()).cloned().unwrap_or_default();
        found.own.retain(|record| *claim.full() == *record.refname);
        found.damage = found.damage.or_else(|| self.damage.clone());
        found
    }

    /// All that were read and are of this very clone.
    pub fn own(&self) -> Vec<HeldRecord> {
        self.named.values().flat_map(|found| &found.own).cloned().collect()
    }
}

impl HeldRecord {
    /// What is to be known of it once the claim is released, at `now`: a try that got no answer may still land.
    pub fn released(&self, now: DateTime<Utc>) -> Option<Self> {
        let pending =
            Self { tip: None, commit: None, unanswered: false, taken: now, ..self.clone() };
        (self.unanswered && self.tip.is_some()).then_some(pending)
    }

    /// Whether a file with this name is the place for it, by what a name tells.
    fn is_named(&self, name: &str) -> bool {
        name.split_once('~').is_some_and(|(claim, rest)| {
            self.refname.ends_with(claim) && rest == format!("{}.json", self.token)
        })
    }

    /// The claim's id, if the take is known to have been won.
    pub fn tip(&self) -> Option<ObjectId> {
        self.tip.as_deref().and_then(|hex| ObjectId::from_hex(hex.as_bytes()).ok())
    }
}

impl Held {
    /// The records of the clone at `common_dir` about the remote that `key` stands for. Reads nothing yet.
    pub fn of(common_dir: &Path, key: &str) -> io::Result<Self> {
        Ok(Self { folder: common_dir.join(FOLDER).join(key), home: Home::of(common_dir)? })
    }

    /// The clone that records are written for.
    pub fn home(&self) -> &Home {
        &self.home
    }

    /// Writes `record`, in one step. Replaces an earlier state of the same take and nothing else.
    ///
    /// Not synced to the disk, which would cost more than the claim itself: after a power cut the file may be damaged,
    /// which [`records`](Self::records) tells.
    pub fn write(&self, record: &HeldRecord, claim: &ClaimRef) -> io::Result<()> {
        fs::create_dir_all(&self.folder)?;
        let mut text = serde_json::to_vec_pretty(record)?;
        text.push(b'\n');
        let mut builder = tempfile::Builder::new();
        builder.prefix(UNFINISHED);
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
        let mut file = builder.tempfile_in(&self.folder)?;
        io::Write::write_all(&mut file, &text)?;
        file.persist(self.path(claim, record.token)).map_err(|error| error.error)?;
        Ok(())
    }

    /// Removes the record of one take. That it is gone already is fine.
    pub fn forget(&self, claim: &ClaimRef, token: Token) -> io::Result<()> {
        match fs::remove_file(self.path(claim, token)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// What this clone has on record about `claim`, or about all claims.
    pub fn records(&self, claim: Option<&ClaimRef>) -> Records {
        let start = claim.map(|claim| format!("{}~", claim.short())).unwrap_or_default();
        let mut found = Records::default();
        let damage = self.each(&start, |entry| self.add(entry, &mut found));
        // The same name under another namespace is another claim.
        found.own.retain(|record| claim.is_none_or(|claim| *claim.full() == *record.refname));
        found.own.sort_by_key(|record| Reverse(record.taken));
        found.damage = found.damage.or(damage);
        found
    }

    /// What this clone has on record about those `claims`, under any namespace, to be asked for one after the other.
    pub fn by_claim<'c>(&self, claims: impl IntoIterator<Item = &'c ClaimRef>) -> ByClaim {
        let wanted: HashSet<Cow<'_, str>> = claims.into_iter().map(ClaimRef::short).collect();
        let mut found = ByClaim::default();
        found.damage = self.each("", |entry| {
            // No record of ours is named otherwise.
            let claim = entry.name.split_once('~').map_or(entry.name, |(claim, _)| claim);
            if wanted.contains(claim) {
                self.add(entry, found.named.entry(claim.to_owned()).or_default());
            }
        });
        for records in found.named.values_mut() {
            records.own.sort_by_key(|record| Reverse(record.taken));
        }
        found
    }

    /// Gives each record's file whose name begins with `start`; says why that cannot be all.
    fn each(&self, start: &str, mut give: impl FnMut(Entry<'_>)) -> Option<String> {
        let entries = match fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound && !self.leads_nowhere() => {
                return None;
            }
            Err(error) => return Some(format!("cannot read {}: {error}", self.folder.display())),
        };
        let mut damage = None;
        for entry in entries {
            let Ok(entry) = entry else {
                damage = Some(format!("cannot read all of {}", self.folder.display()));
                continue;
            };
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if name.starts_with(start) && !name.starts_with('.') && name.ends_with(".json") {
                give(Entry { name: &name, path: &entry.path(), is_other: is_other(&entry) });
            }
        }
        damage
    }

    /// Whether the folder is somewhere else, and that is not there.
    fn leads_nowhere(&self) -> bool {
        let is_link = |path: &Path| path.symlink_metadata().is_ok_and(|data| data.is_symlink());
        is_link(&self.folder) || self.folder.parent().is_some_and(is_link)
    }

    /// Adds the record in one file to what was `found`.
    fn add(&self, entry: Entry<'_>, found: &mut Records) {
        let Entry { name, path, is_other } = entry;
        let record = match is_other {
            // Whoever opens a pipe waits for its other end.
            true => Err(io::Error::other("it is no file")),
            false => read(path).and_then(|record| match record.is_named(name) {
                true => Ok(record),
                false => Err(io::Error::other("it does not hold what its name says")),
            }),
        };
        match record {
            Ok(record) if record.clone != self.home => found.strangers = true,
            Ok(record) => found.own.push(record),
            // Released by another process between the listing and the reading.
            Err(error)
                if error.kind() == io::ErrorKind::NotFound && path.symlink_metadata().is_err() => {}
            Err(error) => {
                found.damaged.extend(name.split_once('~').map(|(claim, _)| claim.to_owned()));
                found.damage = Some(format!("cannot read {}: {error}", path.display()));
            }
        }
    }

    /// Removes pending records that are too old to land any more: of each claim those among its `Records`, except the one
    /// with the token that is there.
    ///
    /// To be called only with what the remote was seen to hold.
    pub fn tidy<'r>(
        &self,
        now: DateTime<Utc>,
        seen: impl IntoIterator<Item = (&'r ClaimRef, &'r Records, Option<Token>)>,
    ) {
        self.sweep();
        let too_old =
            |record: &HeldRecord| record.tip.is_none() && now - record.taken > PENDING_FOR;
        for (claim, records, alive) in seen {
            for record in &records.own {
                if too_old(record)
                    && Some(record.token) != alive
                    // Another process may have learned meanwhile that it did land.
                    && read(&self.path(claim, record.token)).is_ok_and(|record| too_old(&record))
                {
                    // One that stays is looked at again next time.
                    let _ = self.forget(claim, record.token);
                }
            }
        }
    }

    /// Removes what a process left that was killed while it wrote a record.
    fn sweep(&self) {
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let age = entry
                .metadata()
                .and_then(|data| data.modified())
                .ok()
                .and_then(|at| at.elapsed().ok());
            if entry.file_name().to_string_lossy().starts_with(UNFINISHED)
                && age.is_some_and(|age| age > DAY)
            {
                let _ = fs::remove_file(entry.path());
            }
        }
    }

    fn path(&self, claim: &ClaimRef, token: Token) -> PathBuf {
        // `~` occurs in no claim's name, so no name is the beginning of another.
        self.folder.join(format!("{}~{token}.json", claim.short()))
    }
}

/// What is in the folder of records by the name of one.
struct Entry<'e> {
    name: &'e str,
    path: &'e Path,
    /// Whether it is something that no record is kept in.
    is_other: bool,
}

/// Whether it is known to be no file, nor to lead to one.
fn is_other(entry: &fs::DirEntry) -> bool {
    match entry.file_type() {
        Ok(kind) if kind.is_symlink() => fs::metadata(entry.path()).is_ok_and(|to| !to.is_file()),
        kind => kind.is_ok_and(|kind| !kind.is_file()),
    }
}

fn read(path: &Path) -> io::Result<HeldRecord> {
    parse(&fs::read(path)?)
}

/// The record that a file holds.
pub(crate) fn parse(text: &[u8]) -> io::Result<HeldRecord> {
    let record: HeldRecord = serde_json::from_slice(text)?;
    match record.version {
        VERSION => Ok(record),
        other => Err(io::Error::other(format!("it is of version {other}, from another git-claim"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claim::{name::ClaimName, prefix::Prefix};

    fn claim(name: &str) -> ClaimRef {
        ClaimRef::new(&Prefix::default(), &ClaimName::parse(name).expect("a name"))
    }

    fn record(held: &Held, claim: &ClaimRef, byte: u8) -> HeldRecord {
        HeldRecord {
            version: VERSION,
            refname: claim.full().to_string(),
            token: Token::from_bytes([byte; 16]),
            tip: None,
            commit: None,
            unanswered: false,
            taken: DateTime::UNIX_EPOCH + chrono::TimeDelta::seconds(i64::from(byte)),
            remote: "/srv/it.git".into(),
            process: 1,
            clone: held.home().clone(),
        }
    }

    #[test]
    fn each_take_has_its_own_file() {
        let dir = tempfile::tempdir().expect("a folder");
        let held = Held::of(dir.path(), "key").expect("it exists");
        let (four, forty_two) = (claim("4"), claim("42"));
        let (first, second, other) =
            (record(&held, &four, 1), record(&held, &four, 2), record(&held, &forty_two, 3));
        for (record, claim) in [(&first, &four), (&second, &four), (&other, &forty_two)] {
            held.write(record, claim).expect("written");
        }
        assert_eq!(held.records(Some(&four)).own, [second.clone(), first.clone()], "newest first");
        held.forget(&four, first.token).expect("removed");
        held.forget(&four, first.token).expect("twice is fine");
        assert_eq!(held.records(Some(&four)).own, [second]);
        assert_eq!(held.records(None).own.len(), 2);
    }

    #[test]
    fn a_copy_owns_nothing_and_damage_is_told() {
        let dir = tempfile::tempdir().expect("a folder");
        let held = Held::of(dir.path(), "key").expect("it exists");
        let four = claim("4");
        held.write(&record(&held, &four, 1), &four).expect("written");
        let copy = tempfile::tempdir().expect("a folder");
        let there = copy.path().join(FOLDER).join("key");
        fs::create_dir_all(&there).expect("made");
        for entry in fs::read_dir(dir.path().join(FOLDER).join("key")).expect("there").flatten() {
            fs::copy(entry.path(), there.join(entry.file_name())).expect("copied");
        }
        fs::write(there.join("issue-4~torn.json"), "{\"version\": 1, \"ref").expect("written");
        let elsewhere = Held::of(copy.path(), "key").expect("it exists");
        let found = elsewhere.records(Some(&four));
        assert_eq!((found.own.len(), found.strangers, found.damage.is_some()), (0, true, true));
        let found = held.records(Some(&four));
        assert_eq!((found.own.len(), found.strangers, found.damage), (1, false, None));
    }

    /// A pipe kept every verb waiting, and what led nowhere was taken for a release by another process.
    #[cfg(unix)]
    #[test]
    fn what_stands_in_the_place_of_a_record_is_damage() {
        use std::os::unix::fs::symlink;

        let dir = tempfile::tempdir().expect("a folder");
        let held = Held::of(dir.path(), "key").expect("it exists");
        let (four, five) = (claim("4"), claim("5"));
        let first = record(&held, &four, 1);
        held.write(&first, &four).expect("written");
        let (path, kept) = (held.path(&four, first.token), dir.path().join("kept"));
        fs::rename(&path, &kept).expect("moved");
        let is_told = |what: &str| {
            let found = held.records(Some(&four));
            assert_eq!(
                (found.own.len(), &*found.damaged),
                (0, &["issue-4".to_owned()][..]),
                "{what}"
            );
            assert!(held.by_claim([&four]).of(&four).damage.is_some(), "{what}");
        };
        let pipe = std::process::Command::new("mkfifo").arg(&path).status();
        if pipe.is_ok_and(|status| status.success()) {
            is_told("a pipe");
            fs::remove_file(&path).expect("removed");
        }
        fs::create_dir(&path).expect("made");
        is_told("a folder");
        fs::remove_dir(&path).expect("removed");
        symlink("nowhere", &path).expect("made");
        is_told("what leads nowhere");
        fs::remove_file(&path).expect("removed");
        for name in [held.path(&four, Token::from_bytes([2; 16])), held.path(&five, first.token)] {
            fs::copy(&kept, &name).expect("copied");
            assert_eq!(held.records(None).own.len(), 0, "the record of another take");
            fs::remove_file(&name).expect("removed");
        }
        symlink(&kept, &path).expect("made");
        assert_eq!(held.records(Some(&four)).own, [first], "what leads to it is as good");
        fs::rename(&held.folder, dir.path().join("elsewhere")).expect("moved");
        assert_eq!(held.records(None), Records::default(), "there is none");
        symlink("gone", &held.folder).expect("made");
        assert!(held.records(None).damage.is_some(), "they are somewhere else");
    }

    #[test]
    fn what_is_read_in_one_go_is_what_is_read_claim_by_claim() {
        let dir = tempfile::tempdir().expect("a folder");
        let held = Held::of(dir.path(), "key").expect("it exists");
        let folder = dir.path().join(FOLDER).join("key");
        let claims = ["4", "42", "key-1", "torn", "copied", "none"].map(claim);
        let branches = Prefix::parse("refs/heads/claims/").expect("legal");
        let branch = ClaimRef::new(&branches, &ClaimName::parse("4").expect("a name"));
        let same = |held: &Held| {
            let all = held.by_claim(&claims);
            for claim in claims.iter().chain([&branch]) {
                assert_eq!(all.of(claim), held.records(Some(claim)), "{claim:?}");
                let alone = held.by_claim([claim]);
                assert_eq!(alone.of(claim), held.records(Some(claim)), "{claim:?}");
                assert!(alone.named.len() <= 1, "{alone:?}");
            }
            all
        };
        assert_eq!(same(&held).own(), [], "no folder yet");
        let [four, forty_two, key, torn, copied, _] = &claims;
        for (claim, byte) in
            [(four, 1), (four, 2), (forty_two, 3), (key, 4), (&branch, 5), (torn, 6)]
        {
            held.write(&record(&held, claim, byte), claim).expect("written");
        }
        fs::write(folder.join("torn~cut.json"), "{\"version\": 1, \"ref").expect("written");
        fs::write(folder.join("no-token.json"), "{}").expect("written");
        fs::write(folder.join(".new-1.json"), "{}").expect("written");
        let elsewhere = tempfile::tempdir().expect("a folder");
        let other = Held::of(elsewhere.path(), "key").expect("it exists");
        let stranger = record(&other, copied, 7);
        other.write(&stranger, copied).expect("written");
        fs::copy(other.path(copied, stranger.token), held.path(copied, stranger.token))
            .expect("copied");
        let all = same(&held);
        assert_eq!(all.own().len(), 6);
        assert!(all.of(torn).damage.is_some() && all.of(copied).strangers);
        fs::remove_dir_all(&folder).expect("removed");
        fs::write(&folder, "no folder").expect("written");
        assert!(same(&held).of(four).damage.is_some());
    }

    #[test]
    fn a_pending_record_is_kept_while_it_may_land() {
        let dir = tempfile::tempdir().expect("a folder");
        let held = Held::of(dir.path(), "key").expect("it exists");
        let four = claim("4");
        let pending = record(&held, &four, 1);
        held.write(&pending, &four).expect("written");
        let tidy = |days, records: &Records, alive| {
            held.tidy(pending.taken + chrono::TimeDelta::days(days), [(&four, records, alive)]);
        };
        let records = held.records(Some(&four));
        tidy(1, &records, None);
        tidy(9, &records, Some(pending.token));
        assert_eq!(held.records(Some(&four)), records);
        let landed = HeldRecord { tip: Some("1".repeat(40)), ..pending.clone() };
        held.write(&landed, &four).expect("written");
        tidy(9, &records, None);
        assert_eq!(held.records(Some(&four)).own, [landed], "it landed since it was read");
        held.write(&pending, &four).expect("written");
        tidy(9, &records, None);
        assert_eq!(held.records(Some(&four)).own.len(), 0);
    }
}
