//! The seed's Figure 3: global and local calls, told from the text of one class of ranks alone.
//!
//! A call is global if its partner stands after it in the same text, where it can be reached: for a nonblocking call before
//! its wait, for a blocking one before any other blocking call that is not marked yet. What the seed makes local by this
//! rule may well have a partner among the ranks of other classes, or in a place that a rotated loop has moved: so the
//! skeleton goes by [`super::repair`], which matches all ranks' calls one by one, and this count is told beside it.
use super::plan::{Block, Plan, Side, StepId, ends};
use crate::logical::{End, Operation};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

/// How many calls of each kind there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Marks {
    /// Calls with a partner in the text.
    pub global: usize,
    /// Calls without one.
    pub local: usize,
}

/// One send or receive of a text.
struct Call {
    at: usize,
    side: Side,
    end: End,
    /// The place of its wait, if it does not block.
    wait: Option<Option<usize>>,
    marked: Option<bool>,
}

/// Marks the sends and receives of all classes.
pub fn marks(plan: &Plan) -> Marks {
    let mut sum = Marks::default();
    for class in &plan.classes {
        let mut text = Vec::new();
        flat(plan, &class.body, &mut text);
        for call in mark(plan, &text, &class.ranks) {
            if call.marked == Some(true) { sum.global += 1 } else { sum.local += 1 }
        }
    }
    sum
}

fn flat(plan: &Plan, blocks: &[Block], out: &mut Vec<StepId>) {
    for block in blocks {
        match *block {
            Block::Step(step) => out.push(step),
            Block::Loop(id) => flat(plan, &plan.loops[id].body, out),
        }
    }
}

fn calls(plan: &Plan, text: &[StepId]) -> Vec<Call> {
    let mut calls = Vec::new();
    // From the end, so that the next wait for each slot is known.
    let mut waits: FxHashMap<u16, usize> = FxHashMap::default();
    for (at, step) in text.iter().enumerate().rev() {
        let call = &plan.steps[*step].step.call;
        if let Operation::Wait { slots } = call {
            waits.extend(slots.iter().map(|slot| (*slot, at)));
        }
        let slot = match call {
            Operation::Send { slot, .. } | Operation::Receive { slot, .. } => *slot,
            _ => None,
        };
        let wait = slot.map(|slot| waits.get(&slot).copied());
        // Both sides of MPI_Sendrecv are under way at once: each waits at this call.
        let both = matches!(call, Operation::SendReceive { .. });
        for (side, end) in [Side::Out, Side::In].into_iter().zip(ends(call)).rev() {
            let Some(end) = end else { continue };
            calls.push(Call { at, side, end, wait: if both { Some(Some(at)) } else { wait }, marked: None });
        }
    }
    calls.reverse();
    calls
}

/// The places of calls of one kind that come next, those that are marked left out as they are met.
#[derive(Default)]
struct Next(VecDeque<usize>);

impl Next {
    fn after(&mut self, place: usize, calls: &[Call]) -> Option<usize> {
        while self.0.front().is_some_and(|at| *at <= place || calls[*at].marked.is_some()) {
            self.0.pop_front();
        }
        self.0.front().copied()
    }
}

/// Figure 3, line by line.
fn mark(plan: &Plan, text: &[StepId], ranks: &[u32]) -> Vec<Call> {
    let mut calls = calls(plan, text);
    let mut like: FxHashMap<(Side, i32, u16), Next> = FxHashMap::default();
    let mut blocking: [Next; 2] = Default::default();
    for (at, call) in calls.iter().enumerate() {
        like.entry((call.side, call.end.tag, call.end.direction)).or_default().0.push_back(at);
        if call.wait.is_none() {
            blocking[call.side as usize].0.push_back(at);
        }
    }
    // For each direction, those in which the other ends of its messages look back.
    let mut back: FxHashMap<u16, Vec<u16>> = FxHashMap::default();
    for next in 0..calls.len() {
        if calls[next].marked.is_some() {
            continue;
        }
        let (side, end) = (calls[next].side, calls[next].end);
        let other_side = if side == Side::Out { Side::In } else { Side::Out };
        let back = back.entry(end.direction).or_insert_with(|| {
            (0..plan.directions.len() as u16).filter(|other| matches(plan, end.direction, *other, ranks)).collect()
        });
        let after = |direction: &u16| like.get_mut(&(other_side, end.tag, *direction))?.after(next, &calls);
        let matching = back.iter().filter_map(after).min();
        let global = match (&calls[next].wait, matching) {
            (Some(wait), Some(other)) => wait.is_some_and(|wait| calls[other].at <= wait),
            (None, Some(other)) => {
                // One or more sends, then their receives: what stands between may be of the same side.
                blocking[other_side as usize].after(next, &calls).is_none_or(|first| first >= other)
            }
            (_, None) => false,
        };
        calls[next].marked = Some(global);
        if let Some(other) = matching.filter(|_| global) {
            calls[other].marked = Some(true);
        }
    }
    calls
}

/// Whether a send and a receive match in their directions: what goes EAST comes from WEST.
fn matches(plan: &Plan, a: u16, b: u16, ranks: &[u32]) -> bool {
    let peer = |direction: u16, rank: u32| plan.directions[usize::from(direction)].peer[rank as usize];
    let mut any = false;
    for &rank in ranks {
        if let Some(to) = peer(a, rank) {
            match peer(b, to) {
                Some(back) if back == rank => any = true,
                Some(_) => return false,
                None => {}
            }
        }
    }
    any
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::made;
    use proptest::prelude::*;

    /// Figure 3 as the seed has it: for each call all that follow are looked at.
    fn mark_one_by_one(plan: &Plan, text: &[StepId], ranks: &[u32]) -> Vec<Option<bool>> {
        let mut calls = calls(plan, text);
        for next in 0..calls.len() {
            if calls[next].marked.is_some() {
                continue;
            }
            let (side, end) = (calls[next].side, calls[next].end);
            let matching = (next + 1..calls.len()).find(|other| {
                let other = &calls[*other];
                let fits = other.side != side && other.end.tag == end.tag;
                other.marked.is_none() && fits && matches(plan, end.direction, other.end.direction, ranks)
            });
            let blocks = |call: &Call| call.wait.is_none() && call.marked.is_none() && call.side != side;
            let global = match (&calls[next].wait, matching) {
                (Some(wait), Some(other)) => wait.is_some_and(|wait| calls[other].at <= wait),
                (None, Some(other)) => !calls[next + 1..other].iter().any(blocks),
                (_, None) => false,
            };
            calls[next].marked = Some(global);
            if let Some(other) = matching.filter(|_| global) {
                calls[other].marked = Some(true);
            }
        }
        calls.iter().map(|call| call.marked).collect()
    }

    proptest! {
        #[test]
        fn calls_are_marked_as_in_the_seed(seed in any::<u64>()) {
            let plan = Plan::new(&made::logical(seed, 8)).expect("a plan");
            for class in &plan.classes {
                let mut text = Vec::new();
                flat(&plan, &class.body, &mut text);
                let marked: Vec<_> = mark(&plan, &text, &class.ranks).iter().map(|call| call.marked).collect();
                prop_assert_eq!(marked, mark_one_by_one(&plan, &text, &class.ranks));
            }
        }
    }
}
