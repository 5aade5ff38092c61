//! `list`: the claims on the remote, by one `ls-refs`.

use std::collections::HashMap;

use gix::ObjectId;

use super::context::{Context, Seen, seen};
use crate::{
    claim::name::ClaimRef,
    cli,
    held::HeldRecord,
    output::{ClaimReport, Shown},
    verdict::Verdict,
    wire::{Advertised, LinkError, Tip},
};

/// Lists all claims; with `--long`, reads the records that this clone does not know.
pub fn run(args: &cli::List, context: &mut Context<'_>) -> anyhow::Result<Vec<ClaimReport>> {
    let prefix = context.stage.settings.prefix.clone();
    let refs = match context.link.list(&[prefix.as_str().as_bytes()]) {
        Ok(refs) => refs,
        Err(error) => return Err(NotListed(error).into()),
    };
    let mut claims: Vec<(ClaimRef, ObjectId)> = refs
        .into_iter()
        .filter_map(|Advertised { name, id }| Some((ClaimRef::listed(&prefix, name.as_ref())?, id)))
        .collect();
    claims.sort();
    let records = context.records(None);
    let mut known: HashMap<ObjectId, Tip> =
        claims.iter().filter_map(|(_, id)| Some((*id, context.known(*id, &records)?))).collect();
    if args.long {
        let unknown: Vec<ObjectId> =
            claims.iter().map(|(_, id)| *id).filter(|id| !known.contains_key(id)).collect();
        let tips = context
            .link
            .read(&unknown)
            .unwrap_or_else(|error| vec![Tip::NotRead(error.to_string()); unknown.len()]);
        known.extend(unknown.into_iter().zip(tips));
    }
    Ok(claims.into_iter().map(|(claim, id)| row(claim, id, known.get(&id), &records)).collect())
}

/// The list could not be had.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct NotListed(pub LinkError);

fn row(claim: ClaimRef, id: ObjectId, tip: Option<&Tip>, records: &[HeldRecord]) -> ClaimReport {
    let seen = match tip {
        Some(tip) => seen(id, tip.clone()),
        None => Seen { id, record: Shown::Unasked, commit: None },
    };
    let of_this_claim: Vec<HeldRecord> =
        records.iter().filter(|record| *claim.full() == record.refname.as_str()).cloned().collect();
    ClaimReport {
        claim,
        verdict: Verdict::Listed,
        id: Some(id),
        mine: seen.is_of(&of_this_claim),
        record: seen.record,
        hints: Vec::new(),
    }
}
