//! What a program took in the base run where MPI lets it take whatever comes first: receives and probes from any source,
//! and the completion of one of several requests. Programs that go by what came (a master that serves whichever worker
//! asks) do the same again only if they take the same again.
use crate::memory::TAG_BOUND;
use crate::requests::Stage;
use crate::session::Session;
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

    /// Leaves of these requests, by their numbers, only the one that is to be completed, if it is among them.
    pub fn choose_recorded(&self, numbers: &mut [u32]) -> Option<u32> {
        let Some(Taken::Completion(source, tag)) = self.recorded.next() else { return None };
        let any_tag = self.values.upper.layout().any_tag;
        // A tag above what programs are told of here comes from the bound that the base run was told of: it is another.
        let fits = |wanted: i32| wanted == tag || wanted == any_tag || tag > TAG_BOUND;
        let chosen = numbers.iter().position(|&number| self.receives_from(number, source).is_some_and(fits))?;
        let number = numbers[chosen];
        numbers.iter_mut().enumerate().filter(|(i, _)| *i != chosen).for_each(|(_, other)| *other = u32::MAX);
        Some(number)
    }

    /// The tag that a request receives with, if it is a receive under way from this rank of the world.
    fn receives_from(&self, number: u32, source: u32) -> Option<i32> {
        let request = self.requests.get(number).filter(|request| request.stage != Stage::Inactive)?;
        let places = self.shape(usize::from(request.index)).point;
        let (from, tag) = (places.source?, places.tag?);
        let peer = *self.comms.get(&request.comm)?.peers.get(request.args[from] as i32 as usize)?;
        (i64::from(peer) == i64::from(source)).then_some(request.args[tag] as i32)
    }

    /// Takes note of the chosen request if it is complete.
    pub fn chosen_is_taken(&mut self, chosen: Option<u32>) {
        let waits = |number| self.requests.get(number).is_some_and(|request| request.stage != Stage::Inactive);
        if chosen.is_some_and(|number| !waits(number)) {
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
