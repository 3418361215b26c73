//! What a program took in the base run where MPI lets it take whatever comes first: receives and probes from any source,
//! and the completion of one of several requests. Programs that go by what came (a master that serves whichever worker
//! asks) do the same again only if they take the same again.
use crate::memory::TAG_BOUND;
use crate::requests::{Stage, What};
use crate::session::Session;
use phasecast_abi::Status;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Something that was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Taken {
    /// A receive from any source: the sender's rank in the world; none if it received nothing (it was cancelled).
    Receive(Option<u32>),
    /// A probe of any source has found a message of this rank.
    Probe(u32),
    /// A receive that was completed by `MPI_Waitany`, `MPI_Testsome` and their kin: the sender's rank and the tag.
    Completion(u32, i32),
}

/// What a rank is still to take, in the order of its calls.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Recorded(VecDeque<Taken>);

impl From<Vec<Taken>> for Recorded {
    fn from(taken: Vec<Taken>) -> Recorded {
        Recorded(taken.into())
    }
}

impl Recorded {
    /// Whether nothing is prescribed.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What comes next.
    pub fn next(&self) -> Option<Taken> {
        self.0.front().copied()
    }

    /// The next one was taken.
    pub fn taken(&mut self) {
        self.0.pop_front();
    }
}

/// Whether a tag is the recorded one. One above what programs are told of here comes from the bound that the base run was
/// told of: it is another.
fn is_tag(recorded: i32, tag: i32) -> bool {
    tag == recorded || recorded > TAG_BOUND
}

impl Session {
    /// The source, in the program's form, that a receive is to name: what was recorded in place of any.
    pub fn recorded_source(&mut self, comm: usize, source: usize) -> usize {
        if self.recorded.is_empty() || !self.any_source(source) {
            return source;
        }
        let Some(Taken::Receive(from)) = self.recorded.next() else { return source };
        self.recorded.taken();
        from.and_then(|world| self.rank_in(comm, world)).unwrap_or(source)
    }

    /// The same for a probe, which is not counted as taken before it has found the message. None: the program found
    /// nothing here before it took something else.
    pub fn recorded_probe(&mut self, comm: usize, source: usize) -> Option<usize> {
        match self.recorded.next() {
            Some(Taken::Probe(world)) => Some(self.rank_in(comm, world).unwrap_or(source)),
            Some(_) => None,
            None => Some(source),
        }
    }

    /// Leaves of the receives among these requests, by their numbers, only the one that is to be completed, if it is there.
    pub fn choose_recorded(&self, numbers: &mut [u32]) {
        let Some(Taken::Completion(source, tag)) = self.recorded.next() else { return };
        let any_tag = self.values.upper.layout().any_tag;
        let fits = |wanted: i32| is_tag(tag, wanted) || wanted == any_tag;
        let chosen = numbers.iter().position(|&number| self.receives_from(number, source).is_some_and(fits));
        let Some(chosen) = chosen else { return };
        let receives = |number: &u32| {
            self.requests.get(*number).is_some_and(|request| matches!(request.what, What::Recv | What::Exchange))
        };
        let others = numbers.iter_mut().enumerate().filter(|(i, number)| *i != chosen && receives(number));
        others.for_each(|(_, other)| *other = u32::MAX);
    }

    /// The tag that a request receives with, if it is a receive under way from this rank of the world.
    fn receives_from(&self, number: u32, source: u32) -> Option<i32> {
        let request = self.requests.get(number).filter(|request| request.stage != Stage::Inactive)?;
        let places = self.shape(usize::from(request.index)).point;
        let (from, tag) = (places.source?, places.tag?);
        let peer = *self.comms.get(&request.comm)?.peers.get(request.args[from] as i32 as usize)?;
        (i64::from(peer) == i64::from(source)).then_some(request.args[tag] as i32)
    }

    /// A receive is complete: takes note if that is what comes next, whichever call has completed it.
    #[cold]
    pub fn completion_is_taken(&mut self, comm: usize, status: &Status) {
        if let Some(Taken::Completion(source, tag)) = self.recorded.next()
            && self.world_rank(comm, status.source) == Some(source as usize)
            && is_tag(tag, status.tag)
        {
            self.recorded.taken();
        }
    }

    /// Whether a rank is `MPI_ANY_SOURCE`.
    pub fn any_source(&self, rank: usize) -> bool {
        rank as i32 == self.values.upper.layout().any_source
    }

    /// The rank in a communicator of a rank of the world.
    fn rank_in(&mut self, comm: usize, world: u32) -> Option<usize> {
        self.comm(comm)?.peers.iter().position(|&peer| peer as i64 == i64::from(world))
    }
}
