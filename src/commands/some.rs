//! Taking some of several claims: all of them or none, or those that are free.
//!
//! Whoever needs several and takes one after the other can wait for somebody who waits for them. So all is one push that
//! the remote carries out as a whole or not at all; where it cannot, nothing is kept while something is missing.

use super::{
    context::Context,
    look::SeenAt,
    swap::Bond,
    take::{self, Taken, Wanted},
};
use crate::{verdict::Verdict, wire::NOT_TOGETHER};

/// So many names that the remote refuses, one after the other, make it likely that it refuses all of them.
const REFUSALS: usize = 3;

/// Which of the claims that are wanted are to be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// All of them, or none.
    All,
    /// All of them, or none: one after the other, where the remote cannot do it at once.
    OneByOne,
    /// So many at most, whichever are free.
    Any(usize),
}

impl How {
    /// How many of `wanted` it is at most.
    pub fn most(self, wanted: usize) -> usize {
        match self {
            Self::All | Self::OneByOne => wanted,
            Self::Any(most) => most.min(wanted),
        }
    }
}

/// Takes all of them in one push, or none.
pub fn all(
    wanted: &[Wanted<'_>],
    seen: &SeenAt,
    context: &mut Context<'_>,
) -> anyhow::Result<Vec<Taken>> {
    let together = take::together(wanted);
    let these: Vec<&Wanted<'_>> = wanted.iter().collect();
    let mut answers = take::push(&these, seen, Bond::All, Some(&together), context)?;
    // A remote that keeps its word leaves nothing to do here.
    unless_all(&mut answers, context);
    if wanted.len() > 1 && !answers.iter().any(Taken::is_claimed) {
        let held = |answer: &&mut Taken| matches!(answer.report.verdict, Verdict::Held(_));
        if let Some(held) = answers.iter_mut().find(held) {
            held.report.hints.push(format!("all or none: none of the {} is taken", wanted.len()));
        }
    }
    let refused = Verdict::Refused(NOT_TOGETHER.into());
    if let Some(refused) = answers.iter_mut().find(|answer| answer.report.verdict == refused) {
        let command = context.command(&format!("take {together} --one-by-one"));
        refused
            .report
            .hints
            .push(format!("they can be taken one after the other, or none: {command}"));
    }
    Ok(answers)
}

/// Takes one after the other, in the order of their names, which is the same for all who do so; gives back what was
/// taken where one is not to be had. `answers` say that all were free.
pub fn one_by_one(
    wanted: &[Wanted<'_>],
    mut answers: Vec<Taken>,
    seen: &SeenAt,
    context: &mut Context<'_>,
) -> anyhow::Result<Vec<Taken>> {
    let together = format!("{} --one-by-one", take::together(wanted));
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by_key(|at| &wanted[*at].name);
    for at in order {
        match take::push(&[&wanted[at]], seen, Bond::Each, Some(&together), context) {
            Ok(taken) => {
                for taken in taken {
                    answers[at] = taken;
                }
            }
            Err(error) => {
                unless_all(&mut answers, context);
                return unless_ours(answers, error, context);
            }
        }
        if !answers[at].is_claimed() {
            break;
        }
    }
    unless_all(&mut answers, context);
    Ok(answers)
}

/// Takes as many as `most` of those that are free by `answers`, in their order; each push is of as many as are missing.
/// A name that the remote refuses is no reason not to try the next.
pub fn any(
    wanted: &[Wanted<'_>],
    mut answers: Vec<Taken>,
    most: usize,
    seen: &SeenAt,
    context: &mut Context<'_>,
) -> anyhow::Result<Vec<Taken>> {
    let free = |at: &usize| answers[*at].report.verdict == Verdict::Free;
    let mut free: Vec<usize> = (0..wanted.len()).filter(free).collect();
    let had = answers.iter().filter(|answer| answer.is_claimed()).count();
    let (mut missing, mut refusals) = (most.saturating_sub(had), 0);
    while missing > 0 && !free.is_empty() && refusals < REFUSALS {
        let now: Vec<usize> = free.drain(..missing.min(free.len())).collect();
        let these: Vec<&Wanted<'_>> = now.iter().map(|at| &wanted[*at]).collect();
        let taken = match take::push(&these, seen, Bond::Each, None, context) {
            Ok(taken) => taken,
            Err(error) => return unless_ours(answers, error, context),
        };
        refusals = if taken.iter().all(Taken::is_refused) { refusals + now.len() } else { 0 };
        let lost = |taken: &Taken| matches!(taken.report.verdict, Verdict::Held(_));
        // It may still land, or the remote could not be asked: then another would be one too many, or no better.
        let stuck = |taken: &Taken| !taken.is_claimed() && !taken.is_refused() && !lost(taken);
        let stuck = taken.iter().any(stuck);
        for (at, taken) in now.into_iter().zip(taken) {
            missing -= usize::from(taken.is_claimed());
            answers[at] = taken;
        }
        if stuck {
            break;
        }
    }
    Ok(answers)
}

/// The end that `error` made, unless there are claims that are ours or may become so: then these are told.
fn unless_ours(
    answers: Vec<Taken>,
    error: anyhow::Error,
    context: &Context<'_>,
) -> anyhow::Result<Vec<Taken>> {
    if answers.iter().all(|answer| answer.proof.is_none()) {
        return Err(error);
    }
    context.stage.ui().warn(&format!("{error:#}"));
    Ok(answers)
}

/// Gives back what was taken, unless that is everything.
pub fn unless_all(answers: &mut [Taken], context: &mut Context<'_>) {
    if answers.iter().all(Taken::is_claimed) {
        return;
    }
    let all: Vec<usize> = (0..answers.len()).collect();
    take::give_back(answers, &all, context);
}
