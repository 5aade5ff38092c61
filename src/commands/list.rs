//! `list`: the claims on the remote, by one `ls-refs`; where releases are marks, the tips are read too.

use gix::ObjectId;

use super::{context::Context, look::Seen};
use crate::{
    claim::claim_ref::ClaimRef,
    cli,
    output::{ClaimReport, Shown},
    settings::ReleaseBy,
    verdict::Verdict,
    wire::{Advertised, LinkError},
};

/// Lists all claims; with `--long`, reads the records that this clone does not know.
pub fn run(args: &cli::List, context: &mut Context<'_>) -> anyhow::Result<Vec<ClaimReport>> {
    let prefix = context.stage.settings.prefix.clone();
    let others = context.others();
    let places: Vec<&[u8]> =
        others.iter().chain([&prefix]).map(|place| place.as_str().as_bytes()).collect();
    let refs = context.link.list(&places).map_err(NotListed)?;
    context.tell_of_others(&refs);
    let mut claims: Vec<(ClaimRef, ObjectId)> = refs
        .into_iter()
        .filter_map(|Advertised { name, id, .. }| {
            Some((ClaimRef::listed(&prefix, name.as_ref())?, id))
        })
        .collect();
    claims.sort_by_cached_key(|(claim, _)| order(claim));
    let records = context.by_claim(claims.iter().map(|(claim, _)| claim));
    let ids: Vec<ObjectId> = claims.iter().map(|(_, id)| *id).collect();
    // A name alone does not tell whether its claim was released by a mark.
    let read = args.long || context.stage.settings.release == ReleaseBy::Mark;
    let found = context.records_at(&ids, &records.own(), read);
    let rows = claims.into_iter().filter_map(|(claim, id)| {
        let record = found.get(&id).cloned().unwrap_or(Shown::Unasked);
        let seen = Seen { id, record, commit: None, symref: None, request: None };
        if seen.released().is_some() {
            return None;
        }
        Some(context.report(&claim, Verdict::Listed, Some(&seen), &records.of(&claim)))
    });
    Ok(rows.collect())
}

/// Issues by number, then other keys by name.
fn order(claim: &ClaimRef) -> (bool, usize, String) {
    let name = claim.short().into_owned();
    let digits =
        name.strip_prefix("issue-").filter(|rest| rest.bytes().all(|byte| byte.is_ascii_digit()));
    match digits.map(str::len) {
        Some(length) => (false, length, name),
        None => (true, 0, name),
    }
}

/// The list could not be had.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct NotListed(pub LinkError);
