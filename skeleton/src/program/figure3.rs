//! The seed's Figure 3: global and local calls, told from the text of one class of ranks alone.
//!
//! A call is global if its partner stands after it in the same text, where it can be reached: for a nonblocking call before
//! its wait, for a blocking one before any other blocking call that is not marked yet. What the seed makes local by this
//! rule may well have a partner among the ranks of other classes, or in a place that a rotated loop has moved: so the
//! skeleton goes by [`super::repair`], which matches all ranks' calls one by one, and this count is told beside it.
use super::plan::{Block, Plan, Side, StepId, ends};
use crate::logical::{End, Operation};

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
    for (at, step) in text.iter().enumerate() {
        let call = &plan.steps[*step].step.call;
        let slot = match call {
            Operation::Send { slot, .. } | Operation::Receive { slot, .. } => *slot,
            _ => None,
        };
        let wait = slot.map(|slot| {
            let waits =
                |id: &StepId| matches!(&plan.steps[*id].step.call, Operation::Wait { slots } if slots.contains(&slot));
            text[at..].iter().position(waits).map(|after| at + after)
        });
        // Both sides of MPI_Sendrecv are under way at once: each waits at this call.
        let both = matches!(call, Operation::SendReceive { .. });
        for (side, end) in [Side::Out, Side::In].into_iter().zip(ends(call)) {
            let Some(end) = end else { continue };
            calls.push(Call { at, side, end, wait: if both { Some(Some(at)) } else { wait }, marked: None });
        }
    }
    calls
}

/// Figure 3, line by line.
fn mark(plan: &Plan, text: &[StepId], ranks: &[u32]) -> Vec<Call> {
    let mut calls = calls(plan, text);
    for next in 0..calls.len() {
        if calls[next].marked.is_some() {
            continue;
        }
        let matching = (next + 1..calls.len())
            .find(|other| calls[*other].marked.is_none() && matches(plan, &calls[next], &calls[*other], ranks));
        let global = match (&calls[next].wait, matching) {
            (Some(wait), Some(other)) => wait.is_some_and(|wait| calls[other].at <= wait),
            (None, Some(other)) => {
                // One or more sends, then their receives: what stands between may be of the same side.
                let side = calls[next].side;
                !calls[next + 1..other].iter().any(|c| c.wait.is_none() && c.marked.is_none() && c.side != side)
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
fn matches(plan: &Plan, a: &Call, b: &Call, ranks: &[u32]) -> bool {
    if a.side == b.side || a.end.tag != b.end.tag {
        return false;
    }
    let mut any = false;
    for &rank in ranks {
        if let Some(peer) = plan.peer(&a.end, rank) {
            match plan.peer(&b.end, peer) {
                Some(back) if back == rank => any = true,
                Some(_) => return false,
                None => {}
            }
        }
    }
    any
}
