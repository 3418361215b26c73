//! What to do when no rank can go on: threads far behind are asked again, assumed waits are given up, and a circle of
//! real ones is an error. A rank that ends lets go those who wait for it.
use super::{State, Walk};
use crate::transform::error::TransformError;
use crate::transform::output::Output;

impl Walk<'_, '_> {
    /// Finds something that can go on; false at the end of all ranks.
    pub(super) fn unstall(&mut self, output: &mut Output<'_>) -> Result<bool, TransformError> {
        let far: Vec<u32> = self.in_state(State::Far).collect();
        for id in far {
            self.fetch(id, output)?;
        }
        for rank in 0..self.ended.len() {
            if !self.ended[rank] && self.given.survey.threads[rank] > 0 {
                self.look(rank, output)?;
            }
        }
        if self.order.first().is_some() {
            return Ok(true);
        }
        let waiting: Vec<u32> = self.in_state(State::Waiting).collect();
        if waiting.is_empty() && self.in_state(State::Far).next().is_none() {
            return Ok(false);
        }
        if self.give_up_receive(output)? {
            return Ok(true);
        }
        if self.give_up_send(output)? || self.give_up_collective(output)? {
            self.counted.given_up += 1;
            return Ok(true);
        }
        let words = |id: &u32| {
            let lane = &self.lanes[*id as usize];
            let name = self.given.trace.procedure(lane.call.proc);
            let at = lane.call.enter.seconds();
            match self.channel_of(*id) {
                Some(channel) => {
                    format!("rank {} in {name} at {at:.6} s for tag {} from {}", lane.rank, channel.tag, channel.source)
                }
                None => format!("rank {} in {name} at {at:.6} s", lane.rank),
            }
        };
        let mut who: Vec<String> = waiting.iter().take(4).map(words).collect();
        if waiting.len() > who.len() {
            who.push(format!("{} more", waiting.len() - who.len()));
        }
        Err(TransformError::Circle { path: self.given.trace.path().to_owned(), who: who.join(", ") })
    }

    /// Looks for threads of a rank that have not been met: one of them may do what another waits for.
    fn look(&mut self, rank: usize, output: &mut Output<'_>) -> Result<(), TransformError> {
        loop {
            let (lanes, of_rank, supply) = (&self.lanes, &self.of_rank[rank], &mut self.supply);
            let known = |thread| of_rank.iter().any(|&lane| lanes[lane as usize].thread == thread);
            match self.threads[rank].look(known, || supply(rank))? {
                Some(thread) => self.meet(rank as u32, thread, output)?,
                None => return Ok(()),
            }
        }
    }

    fn in_state(&self, state: State) -> impl Iterator<Item = u32> {
        let lanes = self.lanes.iter().enumerate();
        lanes.filter(move |(_, lane)| lane.state == state).map(|(id, _)| id as u32)
    }

    /// All threads of a rank are done.
    pub(super) fn rank_ends(&mut self, rank: usize, output: &mut Output<'_>) -> Result<(), TransformError> {
        if std::mem::replace(&mut self.ended[rank], true) {
            return Ok(());
        }
        self.silent(rank as u32, output)?;
        self.leaves_all(rank as u32, output)
    }
}
