//! What the verbs have in common: a link to the remote, what this clone can prove, and a look at a ref.

use std::{collections::HashMap, io, slice, thread, time::Duration};

use chrono::{DateTime, Utc};
use gix::{
    ObjectId,
    bstr::{BStr, BString, ByteSlice},
};

use super::{
    look::{Request, Seen, SeenAt},
    stage::Stage,
    swap::Places,
};
use crate::{
    claim::{claim_ref::ClaimRef, prefix::Prefix, record::Reading},
    escape,
    held::{ByClaim, Held, HeldRecord, Records},
    output::{ClaimReport, History, Shown, ui::Progress},
    remote::{Way, redacted},
    settings::{self, ReleaseBy, Settings},
    verdict::{Verdict, Whose},
    wire::{self, Advertised, Edit, Link, LinkError, Manner, Push, Reported, Terminal, Tip},
};

/// A verb at work.
pub struct Context<'a> {
    /// Where, with what settings, and to whom.
    pub stage: &'a Stage,
    /// The remote.
    pub link: Box<dyn Link + 'a>,
    /// The clock, read once.
    pub now: DateTime<Utc>,
    /// This clone's records; outside of a clone there are none.
    held: Option<Held>,
    progress: Option<Progress>,
}

/// There is no clone, and the verb needs one.
#[derive(Debug, thiserror::Error)]
#[error("not in a git repository: a claim is recorded in the clone that takes it")]
pub struct NoClone;

impl<'a> Context<'a> {
    /// A link to the remote of `stage`. Nothing is asked yet.
    pub fn new(stage: &'a Stage, manner: &'a Manner<'a>) -> io::Result<Self> {
        let asks = manner.terminal == Terminal::May
            && match stage.to.way {
                // Only these children ever ask anybody anything.
                Way::Ssh(_) | Way::Helper(_) => true,
                Way::Local(_) | Way::Git(_) => false,
            };
        let progress = stage.ui().progress(&format!("asking {}", stage.to.shown), asks);
        Ok(Self { progress: Some(progress), ..Self::quiet(stage, manner)? })
    }

    /// The same, without showing that something is going on.
    pub fn quiet(stage: &'a Stage, manner: &'a Manner<'a>) -> io::Result<Self> {
        let held = match stage.checkout.common_dir() {
            Some(dir) => Some(Held::of(dir, &stage.to.key)?),
            None => None,
        };
        Ok(Self {
            stage,
            link: wire::link(&stage.to, manner),
            now: Utc::now(),
            held,
            progress: None,
        })
    }

    /// Shows from here on that we wait, and for how long at most.
    pub fn waits(&mut self, doing: &str, most: Option<Duration>) {
        // The one before has to go first: there is one line for both.
        self.progress = None;
        self.progress = Some(self.stage.ui().waiting(doing, most));
    }

    /// This clone's records, for verbs that cannot do without.
    pub fn held(&self) -> Result<&Held, NoClone> {
        self.held.as_ref().ok_or(NoClone)
    }

    /// What this clone has on record about `claim`, or about all.
    pub fn records(&self, claim: Option<&ClaimRef>) -> Records {
        self.held.as_ref().map(|held| held.records(claim)).unwrap_or_default()
    }

    /// The same about each of `claims`, under any namespace; read in one go.
    pub fn by_claim<'c>(&self, claims: impl IntoIterator<Item = &'c ClaimRef>) -> ByClaim {
        self.held.as_ref().map(|held| held.by_claim(claims)).unwrap_or_default()
    }

    /// The same about each of `claims`.
    pub fn records_of(&self, claims: &[ClaimRef]) -> Vec<Records> {
        let by_claim = self.by_claim(claims);
        claims.iter().map(|claim| by_claim.of(claim)).collect()
    }

    /// Asks the remote what `claim` holds now, and for the record there unless the clone has that very commit.
    ///
    /// Where the reading side has nothing and this clone holds the claim by its records, the writing side is asked too: a
    /// host may hide claims from readers, or serve reads from a copy that lags behind.
    pub fn look(&mut self, claim: &ClaimRef, records: &Records) -> Result<Option<Seen>, LinkError> {
        Ok(self.look_each(&[(claim, records)])?.pop().flatten())
    }

    /// The same for each of several claims, with what is on record here about it; in one exchange for all.
    pub fn look_each(
        &mut self,
        of: &[(&ClaimRef, &Records)],
    ) -> Result<Vec<Option<Seen>>, LinkError> {
        let claims: Vec<ClaimRef> = of.iter().map(|(claim, _)| (*claim).clone()).collect();
        let own = of.iter().flat_map(|(_, records)| records.own.iter().cloned()).collect();
        let known = Records { own, ..Records::default() };
        let mut all = self.look_at_all(&claims, &known, &SeenAt::new())?;
        let hidden =
            of.iter().zip(&all).filter(|((_, records), seen)| seen.is_none() && records.won());
        let hidden: Vec<&[u8]> = hidden.map(|((claim, _), _)| claim.full().as_bytes()).collect();
        if !hidden.is_empty() {
            let shown = match self.link.shown_for_writing(&hidden) {
                Ok(shown) => shown,
                // Who is turned away there has only what is shown to readers to go by.
                Err(LinkError::Denied(_)) => Vec::new(),
                Err(error) => return Err(error),
            };
            let ids: Vec<ObjectId> = shown.iter().map(|shown| shown.id).collect();
            let tips = self.tips(&ids, &known.own);
            for (seen, (claim, _)) in all.iter_mut().zip(of).filter(|(seen, _)| seen.is_none()) {
                *seen = wire::value(&shown, claim.full()).map(|id| Seen::of(id, tip_in(&tips, id)));
            }
        }
        self.tidy(
            of.iter().zip(&all).map(|((claim, records), seen)| (*claim, *records, seen.as_ref())),
        );
        Ok(all)
    }

    /// Removes records of takes that never landed, by what the remote was seen to hold: of each claim those among its
    /// `Records`.
    pub fn tidy<'r>(
        &self,
        seen: impl IntoIterator<Item = (&'r ClaimRef, &'r Records, Option<&'r Seen>)>,
    ) {
        let Some(held) = &self.held else { return };
        let known = seen.into_iter().filter_map(|(claim, records, seen)| {
            let unread = seen.is_some_and(|seen| matches!(seen.record, Shown::NotRead(_)));
            (!unread).then(|| (claim, records, seen.and_then(Seen::token)))
        });
        held.tidy(self.now, known);
    }

    /// Those of the commits `ids` that are `own` records' or happen to be in the clone. An id stands for one content only,
    /// so this says nothing about what the remote has.
    fn known(&self, ids: &[ObjectId], own: &[HeldRecord]) -> HashMap<ObjectId, Tip> {
        let on_record: HashMap<ObjectId, &str> = own
            .iter()
            .filter_map(|record| Some((record.tip()?, record.commit.as_deref()?)))
            .collect();
        let known = ids.iter().filter_map(|id| {
            let on_record = on_record.get(id).map(|commit| commit.as_bytes().to_vec());
            let commit = on_record.or_else(|| self.stage.checkout.find_commit(id))?;
            Some((*id, Tip::Commit(commit)))
        });
        known.collect()
    }

    /// What is at `ids`, read in one go as far as it is not known here.
    pub fn tips(&mut self, ids: &[ObjectId], own: &[HeldRecord]) -> HashMap<ObjectId, Tip> {
        let mut tips = self.known(ids, own);
        let unknown: Vec<ObjectId> =
            ids.iter().copied().filter(|id| !tips.contains_key(id)).collect();
        if !unknown.is_empty() {
            tips.extend(unknown.iter().copied().zip(self.link.read(&unknown)));
        }
        tips
    }

    /// What is at `ids`, read in batches: of many tips only the records are kept, whatever else their commits hold.
    pub fn records_at(
        &mut self,
        ids: &[ObjectId],
        own: &[HeldRecord],
        read: bool,
    ) -> HashMap<ObjectId, Shown> {
        const BATCH: usize = 256;
        let known = self.known(ids, own);
        let unknown: Vec<ObjectId> =
            ids.iter().copied().filter(|id| !known.contains_key(id)).collect();
        let mut found: HashMap<ObjectId, Shown> =
            known.into_iter().map(|(id, tip)| (id, Seen::of(id, tip).record)).collect();
        if read {
            for batch in unknown.chunks(BATCH) {
                let tips = self.link.read(batch);
                found.extend(
                    batch.iter().zip(tips).map(|(id, tip)| (*id, Seen::of(*id, tip).record)),
                );
            }
        }
        found
    }

    /// What `claims` hold now, asked for in one exchange: nothing where there is no ref. What did not move since `before` is
    /// not read again.
    pub fn look_at_all(
        &mut self,
        claims: &[ClaimRef],
        records: &Records,
        before: &SeenAt,
    ) -> Result<Vec<Option<Seen>>, LinkError> {
        let asked: Vec<ClaimRef> = claims.iter().map(ClaimRef::asked).collect();
        let names: Vec<&[u8]> =
            claims.iter().chain(&asked).map(|claim| claim.full().as_bytes()).collect();
        let refs = self.link.list(&names)?;
        // A prefix is only that: `issue-4` also brings `issue-42`.
        let found: HashMap<&BStr, &Advertised> =
            refs.iter().map(|found| (found.name.as_bstr(), found)).collect();
        let id = |claim: &ClaimRef| found.get(claim.full()).map(|found| found.id);
        let known = |claim: &ClaimRef, asked: &ClaimRef| {
            before.get(claim).filter(|seen| {
                Some(seen.id) == id(claim)
                    // What could not be read then may be readable now.
                    && !matches!(seen.record, Shown::NotRead(_))
                    && seen.request.as_ref().map(|request| request.id) == id(asked)
            })
        };
        let wanted: Vec<ObjectId> = claims
            .iter()
            .zip(&asked)
            .filter(|(claim, asked)| id(claim).is_some() && known(claim, asked).is_none())
            .flat_map(|(claim, asked)| [id(claim), id(asked)])
            .flatten()
            .collect();
        let tips = self.tips(&wanted, &records.own);
        let seen = claims.iter().zip(&asked).map(|(claim, asked)| {
            let Advertised { id: tip, symref, .. } = found.get(claim.full())?;
            Some(known(claim, asked).cloned().unwrap_or_else(|| Seen {
                symref: symref.as_ref().map(ToString::to_string),
                request: id(asked).map(|ask| Box::new(Request::at(ask, tip_in(&tips, ask)))),
                ..Seen::of(*tip, tip_in(&tips, *tip))
            }))
        });
        Ok(seen.collect())
    }

    /// What is at the ref by which the holder of `claim` is asked to stop.
    pub fn look_at_ask(&mut self, claim: &ClaimRef) -> Result<Option<Request>, LinkError> {
        let asked = claim.asked();
        let refs = self.link.list(&[asked.full()])?;
        let found = refs.into_iter().find(|found| found.name == *asked.full());
        Ok(found.map(|found| {
            let tip = self.link.read(&[found.id]).pop();
            let tip = tip.unwrap_or_else(|| Tip::NotRead("no answer".into()));
            Request::at(found.id, tip)
        }))
    }

    /// What is at `other`, where the same claim would be for somebody who is set up differently, if it is a claim that
    /// somebody holds.
    pub fn held_at(&mut self, other: &ClaimRef) -> Result<Option<Seen>, LinkError> {
        Ok(self.held_among(slice::from_ref(other))?.pop().flatten())
    }

    /// The same for each of several places, in one exchange for all. Nothing is asked about none.
    pub fn held_among(&mut self, others: &[ClaimRef]) -> Result<Vec<Option<Seen>>, LinkError> {
        if others.is_empty() {
            return Ok(Vec::new());
        }
        let records = self.records_of(others);
        let seen = self.look_each(&others.iter().zip(&records).collect::<Vec<_>>())?;
        let held = others.iter().zip(seen);
        Ok(held.map(|(other, seen)| seen.filter(|seen| self.counts(other, seen))).collect())
    }

    /// Whether what was seen at `other` is a claim that somebody holds.
    pub fn counts(&self, other: &ClaimRef, seen: &Seen) -> bool {
        if seen.released().is_some() {
            return false;
        }
        // Among branches a name alone makes no claim: it may be one that people work on.
        let by_hand = matches!(seen.record.reading(), Some(Reading::ByHand(_)));
        if by_hand && other.full().starts_with(b"refs/heads/") {
            self.stage.ui().warn(&format!(
                "there is a branch {} that was made by hand, and not taken for a claim",
                escape::line(&other.full().to_str_lossy())
            ));
            return false;
        }
        true
    }

    /// Where else `claim`, which is free here, is held by somebody who is set up differently, for people.
    pub fn elsewhere(&mut self, claim: &ClaimRef) -> Option<String> {
        let name = claim.name()?;
        self.stage.settings.prefix.others().iter().find_map(|prefix| {
            let other = ClaimRef::new(prefix, &name);
            // The answer about this namespace stands, whatever keeps the other from being asked.
            self.held_at(&other).ok().flatten()?;
            Some(self.differs(&other))
        })
    }

    /// The refs under the other namespaces that claims are known to be in.
    pub fn others(&self) -> Vec<Prefix> {
        self.stage.settings.prefix.others()
    }

    /// Says that there are refs where others may have their claims, of which this listing tells nothing.
    pub fn tell_of_others(&self, refs: &[Advertised]) {
        for other in self.others() {
            let count = refs
                .iter()
                .filter(|found| found.name.starts_with(other.as_str().as_bytes()))
                .count();
            if count > 0 {
                let (are, refs) = if count == 1 { ("is", "ref") } else { ("are", "refs") };
                self.stage.ui().hint(&format!(
                    "there {are} {count} {refs} under {other}, which is not looked at here; if claims are kept there: git config {} {other}",
                    settings::PREFIX
                ));
            }
        }
    }

    /// What to know about a claim that is held at `other`.
    pub fn differs(&self, other: &ClaimRef) -> String {
        format!(
            "it is held at {}, and {} is {} here: all who share the claims need the same",
            other.full(),
            settings::PREFIX,
            self.stage.settings.prefix
        )
    }

    /// The refs of `claims`, to be swapped; `records` are what is on record here about each.
    pub fn refs<'c>(&'c mut self, claims: &'c [ClaimRef], records: &'c [Records]) -> Refs<'c, 'a> {
        let requests = claims.iter().map(ClaimRef::asked).collect();
        let asked = vec![None; claims.len()];
        Refs { context: self, claims, records, requests, asked, near: false }
    }

    /// The ref of `claim` alone.
    pub fn place<'c>(&'c mut self, claim: &'c ClaimRef, records: &'c Records) -> Refs<'c, 'a> {
        self.refs(slice::from_ref(claim), slice::from_ref(records))
    }

    /// A report about what was seen.
    pub fn report(
        &self,
        claim: &ClaimRef,
        verdict: Verdict,
        seen: Option<&Seen>,
        records: &Records,
    ) -> ClaimReport {
        // A verdict that came after a look may be about another commit than was seen then. A request has an id of its own.
        let is_seen = |id| seen.is_some_and(|seen| seen.id == id);
        let about_it = match &verdict {
            Verdict::Asked(_) => true,
            verdict => verdict.id().is_none_or(is_seen),
        };
        let seen = seen.filter(|_| about_it);
        ClaimReport {
            claim: claim.clone(),
            id: seen.map(|seen| seen.id).or(verdict.id()),
            verdict,
            mine: seen.is_some_and(|seen| seen.proof(records).is_some()),
            record: seen.map_or(Shown::Unasked, |seen| seen.record.clone()),
            displaced: None,
            asked: seen.and_then(Seen::asked).cloned().map(Box::new),
            history: History::Unasked,
            hints: Vec::new(),
            assessment: None,
        }
    }

    /// A report where there should be one, and is none.
    pub fn report_nothing(&self, claim: &ClaimRef) -> ClaimReport {
        let unknown = Verdict::Unknown("there is no answer".into());
        self.report(claim, unknown, None, &Records::default())
    }

    /// A report about an exchange that failed before it said anything about the claim.
    pub fn report_failure(&self, claim: &ClaimRef, error: LinkError) -> ClaimReport {
        self.report(claim, Verdict::of_failure(error), None, &Records::default())
    }

    /// Brings the proof up to the tip that was seen.
    pub fn keep(&self, claim: &ClaimRef, proof: &HeldRecord, seen: &Seen) -> HeldRecord {
        let tip = Some(seen.id.to_string());
        if proof.tip == tip {
            return proof.clone();
        }
        let commit = seen.commit.clone().and_then(|commit| String::from_utf8(commit).ok());
        let now = HeldRecord { tip, commit, ..proof.clone() };
        self.write(claim, &now);
        now
    }

    /// Writes a record of a claim that is ours already: its pending record proves as much, by the token, so a failure
    /// is no more than a warning.
    pub fn write(&self, claim: &ClaimRef, record: &HeldRecord) {
        if let Some(held) = &self.held
            && let Err(error) = held.write(record, claim)
        {
            self.stage.ui().warn(&format!(
                "{} is yours, but its record could not be brought up to date: {error}",
                claim.short()
            ));
        }
    }

    /// Removes records that prove nothing any more; of what may still land the proof is kept. The remote's answer stands,
    /// whatever becomes of the files.
    pub fn forget<'r>(&self, claim: &ClaimRef, records: impl IntoIterator<Item = &'r HeldRecord>) {
        let Some(held) = &self.held else { return };
        for record in records {
            let done = match record.released(self.now) {
                Some(pending) => held.write(&pending, claim),
                None => held.forget(claim, record.token),
            };
            if let Err(error) = done {
                self.stage.ui().warn(&format!(
                    "a record that proves nothing any more could not be removed: {error}"
                ));
            }
        }
    }

    /// What to know where this clone holds what is wanted; `together` is what to type for all of it.
    pub fn holds_already(&self, together: &str) -> String {
        let resume = self.command(&format!("take {together} --resume"));
        format!("this clone holds it already; to go on with it: {resume}")
    }

    /// What to know where a take of this clone got no answer.
    pub fn may_still_land(&self, claim: &ClaimRef) -> String {
        let command = self.command(&format!("verify {}", claim.short()));
        format!("a take of this clone got no answer, and may still land; whether it did: {command}")
    }

    /// What to know about records that came with a copy of another clone, and how to go on with the claim.
    pub fn copied(&self, claim: &ClaimRef, verdict: &Verdict, records: &Records) -> Vec<String> {
        let mut hints = Vec::new();
        if records.strangers {
            hints.push("this clone is a copy of the one that took the claim, or was moved, and owns nothing".into());
            hints.extend(self.clearing(claim, verdict));
        }
        hints
    }

    /// How to clear a claim that is not ours.
    pub fn clearing(&self, claim: &ClaimRef, verdict: &Verdict) -> Option<String> {
        let (Verdict::Lost(id) | Verdict::Held(id)) = verdict else { return None };
        let command = self.clear(claim, *id);
        Some(format!("if you are sure that its holder does not need it any more: {command}"))
    }

    /// The command that clears `claim` if it is still `id`, from any clone.
    pub fn clear(&self, claim: &ClaimRef, id: ObjectId) -> String {
        self.command(&format!("release {} --expect {}", claim.short(), id.to_hex_with_len(12)))
    }

    /// What an answer means for the work that was to be done under the claim.
    pub fn unsure(&self, report: &ClaimReport, records: &Records) -> Option<String> {
        let taken_over = matches!(
            report.record.reading(),
            Some(Reading::Claim(record)) if record.took_over.is_some()
        );
        let meaning = match &report.verdict {
            Verdict::Unknown(_) | Verdict::Refused(_) => {
                "do not go by the claim until an answer says that it is yours"
            }
            Verdict::Lost(_) if records.won() && taken_over => {
                "this clone had it, and it was taken over; stop before you push"
            }
            Verdict::Lost(_) | Verdict::Free if records.won() => {
                "this clone had it: somebody cleared or took it, or another process here released it; stop before you push"
            }
            _ => return None,
        };
        Some(meaning.into())
    }

    /// A command to suggest, which means the same remote as this one. Credentials typed in a URL are left out.
    pub fn command(&self, command: &str) -> String {
        let git = self.git();
        let Settings { remote, remote_typed: true, .. } = &self.stage.settings else {
            return format!("{git} claim {command}");
        };
        let to = &self.stage.to;
        let remote = match (&to.name, remote.as_deref()) {
            (Some(name), _) => name,
            (None, Some(".")) => ".",
            (None, _) => &to.shown,
        };
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"@:/._~+-".contains(&byte);
        if remote.bytes().all(plain) {
            format!("{git} claim {command} --remote {remote}")
        } else {
            format!("{git} claim {command} --remote {}", gix::quote::single(remote.into()))
        }
    }

    /// `git`, with what was said by `git -c` about where the claims are and how they end.
    fn git(&self) -> String {
        let Settings { prefix, release, remote, remote_typed, .. } = &self.stage.settings;
        let said = self.stage.checkout.environment().text("GIT_CONFIG_PARAMETERS");
        let said = said.unwrap_or_default().to_ascii_lowercase();
        let release = match release {
            ReleaseBy::Deletion => "delete",
            ReleaseBy::Mark => "mark",
        };
        let remote = remote.as_deref().filter(|_| !remote_typed).unwrap_or_default();
        let mut git = String::from("git");
        for (key, value) in [
            (settings::PREFIX, prefix.as_str()),
            (settings::RELEASE, release),
            (settings::REMOTE, remote),
        ] {
            if !value.is_empty() && said.contains(&format!("'{}'", key.to_ascii_lowercase())) {
                let setting = format!("{key}={}", redacted(value));
                let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"@:/._~+-=".contains(&byte);
                let quoted = gix::quote::single(setting.as_str().into()).to_string();
                git.push_str(" -c ");
                git.push_str(if setting.bytes().all(plain) { &setting } else { &quoted });
            }
        }
        git
    }
}

/// The tip `id` out of those that were asked for.
pub fn tip_in(tips: &HashMap<ObjectId, Tip>, id: ObjectId) -> Tip {
    tips.get(&id).cloned().unwrap_or_else(|| Tip::NotRead("no answer".into()))
}

/// The refs of claims on the remote.
pub struct Refs<'c, 'a> {
    context: &'c mut Context<'a>,
    claims: &'c [ClaimRef],
    records: &'c [Records],
    requests: Vec<ClaimRef>,
    /// What the ref beside each held at the last update, by which somebody asks the holder to stop.
    pub asked: Vec<Option<ObjectId>>,
    near: bool,
}

impl Places for Refs<'_, '_> {
    fn refname(&self, which: usize) -> BString {
        self.claims[which].full().to_owned()
    }

    fn update(&mut self, which: &[usize], push: &Push<'_>) -> Vec<Reported> {
        let beside = which.iter().map(|which| Some(self.requests[*which].full()));
        let edits: Vec<Edit<'_>> =
            push.edits.iter().zip(beside).map(|(edit, beside)| Edit { beside, ..*edit }).collect();
        let updated = self.context.link.update(&Push { edits: &edits, ..*push });
        let mut reported = Vec::with_capacity(updated.len());
        for (which, updated) in which.iter().zip(updated) {
            self.asked[*which] = updated.beside;
            self.near |= updated.near;
            reported.push(updated.reported);
        }
        reported
    }

    fn look(&mut self, which: &[usize]) -> Result<Vec<Option<Seen>>, LinkError> {
        let of = |which: &usize| (&self.claims[*which], &self.records[*which]);
        self.context.look_each(&which.iter().map(of).collect::<Vec<_>>())
    }

    fn look_elsewhere(&mut self, other: &ClaimRef, id: ObjectId) -> Option<Seen> {
        match self.context.held_at(other) {
            Ok(seen) => seen,
            Err(error) => Some(Seen::of(id, Tip::NotRead(error.to_string()))),
        }
    }

    fn whose(&self, which: usize, seen: &Seen) -> Whose {
        seen.whose(&self.records[which])
    }

    fn pause(&mut self, pause: Duration) {
        thread::sleep(pause);
    }

    fn near(&self) -> bool {
        self.near
    }
}
