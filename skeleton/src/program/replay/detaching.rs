//! A strict replay that detaches the sends on which it is stuck, and goes on.
use super::{NONE, Outcome, Replay};
use crate::program::plan::{Plan, Side, StepId};

impl<'a> Replay<'a> {
    /// Carries a plan out strictly. Wherever it is stuck, the sends that ranks wait for are detached, and it goes on.
    /// Returns the outcome and the steps that were detached. They are those of starting again each time, as what went
    /// before would have ended all the same.
    pub fn detaching(plan: &'a Plan) -> (Outcome, Vec<StepId>) {
        let mut replay = Replay::new(plan, true);
        let mut detached = Vec::new();
        loop {
            replay.go();
            let next = replay.detach();
            if next.is_empty() {
                break;
            }
            detached.extend(next);
        }
        replay.left_over();
        detached.sort_unstable();
        (replay.outcome, detached)
    }

    /// Detaches the sends that ranks wait for, wherever they are under way; returns their steps.
    fn detach(&mut self) -> Vec<StepId> {
        let mut steps = Vec::new();
        for lane in &self.lanes {
            let open = lane.waited.iter().map(|id| &self.requests[*id as usize]).filter(|request| !request.done);
            let sends = open.map(|request| request.pending).filter(|of| !of.collective && of.side == Side::Out);
            steps.extend(sends.map(|of| of.step));
        }
        steps.sort_unstable();
        steps.dedup();
        steps.iter().for_each(|step| self.detached[*step] = true);
        let mut done = Vec::new();
        for (id, pending) in self.channels.values_mut().flat_map(|channel| &mut channel.sent) {
            if *id != NONE && self.detached[pending.step] {
                done.push((pending.rank, std::mem::replace(id, NONE)));
            }
        }
        // Ranks go on in one order, whatever that of the channels.
        done.sort_unstable();
        done.into_iter().for_each(|(_, id)| self.complete(id));
        steps
    }
}
