//! A look at any number of claims: one listing, one reading, and the writing side where that is needed, asked once for all.
//!
//! What was found is told claim by claim, and decided elsewhere.

use std::collections::HashMap;

use gix::{
    ObjectId,
    bstr::{BStr, BString, ByteSlice},
};

use super::{
    context::{Context, tip_in},
    look::{Request, Seen},
};
use crate::{
    claim::{claim_ref::ClaimRef, prefix::Prefix},
    held::{ByClaim, Records},
    wire::{Advertised, LinkError},
};

/// Up to so many claims are asked for by their names; for more the namespaces are listed. A server compares each of its
/// refs there with every name that it was given, and so do we where it disregards them.
const NAMED: usize = 100;

/// What a look found out about one of several claims.
#[derive(Debug)]
pub struct Look {
    /// The claim.
    pub claim: ClaimRef,
    /// What this clone has on record about it.
    pub records: Records,
    /// What its ref holds; nothing where there is no ref.
    pub seen: Result<Option<Seen>, LinkError>,
    /// Where it is free: the ref by which somebody who is set up differently holds it.
    pub elsewhere: Option<ClaimRef>,
}

impl Context<'_> {
    /// Looks at each of `claims`, which are different ones, as [`look`](Context::look) does at one; and where they are free,
    /// at the other namespaces.
    pub fn looks(&mut self, claims: Vec<ClaimRef>) -> Vec<Look> {
        let records = self.by_claim(&claims);
        let own = records.own();
        let listed = match self.listed(&claims) {
            Ok(listed) => listed,
            Err(error) => {
                let failed = |claim: ClaimRef| Look {
                    records: records.of(&claim),
                    claim,
                    seen: Err(error.clone()),
                    elsewhere: None,
                };
                return claims.into_iter().map(failed).collect();
            }
        };
        let listed: HashMap<&BStr, &Advertised> =
            listed.iter().map(|found| (found.name.as_bstr(), found)).collect();
        let id = |claim: &ClaimRef| listed.get(claim.full()).map(|found| found.id);
        let others = self.others();
        let wanted = claims.iter().flat_map(|claim| match id(claim) {
            Some(tip) => [Some(tip), id(&claim.asked())].into_iter().flatten().collect(),
            // Read along, so that nothing is left to be asked for.
            None => in_other(&others, claim).iter().filter_map(id).collect::<Vec<_>>(),
        });
        let wanted: Vec<ObjectId> = wanted.collect();
        let mut tips = self.tips(&wanted, &own);
        let look = |claim: ClaimRef| {
            let seen = listed.get(claim.full()).map(|Advertised { id: tip, symref, .. }| Seen {
                symref: symref.as_ref().map(ToString::to_string),
                request: id(&claim.asked())
                    .map(|ask| Box::new(Request::at(ask, tip_in(&tips, ask)))),
                ..Seen::of(*tip, tip_in(&tips, *tip))
            });
            Look { records: records.of(&claim), claim, seen: Ok(seen), elsewhere: None }
        };
        let mut looks: Vec<Look> = claims.into_iter().map(look).collect();

        let hidden = self.shown_to_writers(&mut looks, &others, &records, &id);
        let unread: Vec<ObjectId> = hidden.values().copied().collect();
        tips.extend(self.tips(&unread, &own));
        for Look { claim, seen, .. } in &mut looks {
            if let (Ok(seen @ None), Some(id)) = (seen, hidden.get(claim.full())) {
                *seen = Some(Seen::of(*id, tip_in(&tips, *id)));
            }
        }

        let id = |claim: &ClaimRef| id(claim).or_else(|| hidden.get(claim.full()).copied());
        let free: Vec<(&mut Look, Vec<(ClaimRef, ObjectId)>)> = looks
            .iter_mut()
            .filter(|look| look.is_free())
            .map(|look| {
                let others = in_other(&others, &look.claim).into_iter();
                (
                    look,
                    others
                        .filter_map(|other| {
                            let id = id(&other)?;
                            Some((other, id))
                        })
                        .collect(),
                )
            })
            .collect();
        // Of those that were given back by a mark, which was not known before.
        let unread = free.iter().flat_map(|(_, others)| others.iter().map(|(_, id)| *id));
        let unread: Vec<ObjectId> = unread.filter(|id| !tips.contains_key(id)).collect();
        tips.extend(self.tips(&unread, &own));
        for (look, others) in free {
            look.elsewhere = others.into_iter().find_map(|(other, id)| {
                self.counts(&other, &Seen::of(id, tip_in(&tips, id))).then_some(other)
            });
        }
        self.tidy(looks.iter().filter_map(|look| {
            let seen = look.seen.as_ref().ok()?;
            Some((&look.claim, &look.records, seen.as_ref()))
        }));
        looks
    }

    /// What there is at the claims' refs, at those by which their holders are asked to stop, and in the other namespaces.
    fn listed(&mut self, claims: &[ClaimRef]) -> Result<Vec<Advertised>, LinkError> {
        let others = self.others();
        if claims.len() > NAMED {
            let prefix = &self.stage.settings.prefix;
            let asked = prefix.asked();
            let places = others.iter().chain([prefix, &asked]);
            let places: Vec<&[u8]> = places.map(|place| place.as_str().as_bytes()).collect();
            return self.link.list(&places);
        }
        let beside = claims
            .iter()
            .flat_map(|claim| std::iter::once(claim.asked()).chain(in_other(&others, claim)));
        let beside: Vec<ClaimRef> = beside.collect();
        let names: Vec<&[u8]> =
            claims.iter().chain(&beside).map(|claim| claim.full().as_bytes()).collect();
        self.link.list(&names)
    }

    /// Asks the writing side for the claims that this clone holds by its records and that readers are not shown, and for
    /// those in the other namespaces, on one connection for all. A look that cannot do without the answer fails with it.
    fn shown_to_writers(
        &mut self,
        looks: &mut [Look],
        others: &[Prefix],
        records: &ByClaim,
        id: &impl Fn(&ClaimRef) -> Option<ObjectId>,
    ) -> HashMap<BString, ObjectId> {
        let mut hidden = Vec::new();
        for look in looks.iter().filter(|look| look.is_free()) {
            let places = in_other(others, &look.claim).into_iter().chain([look.claim.clone()]);
            hidden.extend(places.filter(|place| id(place).is_none() && records.of(place).won()));
        }
        if hidden.is_empty() {
            return HashMap::new();
        }
        let names: Vec<&[u8]> = hidden.iter().map(|claim| claim.full().as_bytes()).collect();
        match self.link.shown_for_writing(&names) {
            Ok(shown) => shown.into_iter().map(|found| (found.name, found.id)).collect(),
            // Who is turned away there has only what is shown to readers to go by.
            Err(LinkError::Denied(_)) => HashMap::new(),
            Err(error) => {
                for look in looks.iter_mut().filter(|look| look.is_free() && look.records.won()) {
                    if id(&look.claim).is_none() {
                        look.seen = Err(error.clone());
                    }
                }
                HashMap::new()
            }
        }
    }
}

impl Look {
    /// Whether nobody holds it, as far as was seen.
    fn is_free(&self) -> bool {
        match &self.seen {
            Ok(None) => true,
            Ok(Some(seen)) => seen.released().is_some(),
            Err(_) => false,
        }
    }
}

/// The refs that stand for the same claim in the `others` of the known namespaces.
fn in_other(others: &[Prefix], claim: &ClaimRef) -> Vec<ClaimRef> {
    let name = claim.name();
    name.iter().flat_map(|name| others.iter().map(|other| ClaimRef::new(other, name))).collect()
}
