//! Requests in slots. A trace names no requests: which one a call completes follows from what it received, and for sends
//! and nonblocking collectives, which leave no mark when they are done, from the order in which they began.
use phasecast_trace::Part;
use phasecast_trace::model::{PEER_ANY, TAG_ANY};
use std::collections::{BTreeSet, VecDeque};

/// A receive that was posted.
#[derive(Clone, Copy, Debug)]
pub struct Posted<T> {
    /// What its step is known by.
    pub token: T,
    /// Its slot.
    pub slot: u16,
    /// The source that was asked for; all, if it is below 0.
    pub peer: i32,
    /// The tag that was asked for; all, if it is below 0.
    pub tag: i32,
    /// The communicator; all, for the receiving side of a call that tells nothing of it.
    pub comm: Option<u32>,
}

/// Something else that was begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Begun {
    /// A send to this rank, or a collective.
    Slot(u16, Option<u32>),
    /// To or from `MPI_PROC_NULL`: done as it begins, but a call may wait for it.
    Null,
}

/// Sends to one rank that may be under way before the oldest is taken for one that nobody waits for.
const MOST_TO_ONE: usize = 256;

/// The requests of a rank that are under way.
#[derive(Debug)]
pub struct Requests<T> {
    receives: VecDeque<Posted<T>>,
    begun: VecDeque<Begun>,
    /// Slots that the next completion waits for too.
    overdue: Vec<u16>,
    free: BTreeSet<u16>,
    slots: u32,
}

impl<T> Default for Requests<T> {
    fn default() -> Requests<T> {
        let (receives, begun, overdue, free) = (VecDeque::new(), VecDeque::new(), Vec::new(), BTreeSet::new());
        Requests { receives, begun, overdue, free, slots: 0 }
    }
}

impl<T: Copy> Requests<T> {
    /// The lowest free slot; none if there are no more.
    pub fn slot(&mut self) -> Option<u16> {
        self.free.pop_first().or_else(|| {
            let next = u16::try_from(self.slots).ok()?;
            self.slots += 1;
            Some(next)
        })
    }

    /// A slot is free again.
    pub fn release(&mut self, slot: u16) {
        self.free.insert(slot);
    }

    /// A receive is posted.
    pub fn post(&mut self, posted: Posted<T>) {
        self.receives.push_back(posted);
    }

    /// A send to a rank, or a collective, begins.
    pub fn begin(&mut self, slot: u16, to: Option<u32>) {
        self.begun.push_back(Begun::Slot(slot, to));
        let same = |begun: &&Begun| matches!(begun, Begun::Slot(_, other) if *other == to);
        if self.begun.len() > MOST_TO_ONE
            && self.begun.iter().filter(same).count() > MOST_TO_ONE
            && let Some(at) = self.begun.iter().position(|begun| same(&begun))
            && let Some(Begun::Slot(slot, _)) = self.begun.remove(at)
        {
            self.overdue.push(slot);
        }
    }

    /// Something begins that is done at once.
    pub fn begin_null(&mut self) {
        self.begun.push_back(Begun::Null);
        if self.begun.iter().filter(|begun| **begun == Begun::Null).count() > MOST_TO_ONE {
            self.begun.retain(|begun| *begun != Begun::Null);
        }
    }

    /// The receive that a completed part was: the one posted first that could have been.
    pub fn received(&mut self, part: &Part) -> Option<Posted<T>> {
        let fits = |asked: i32, got: i32, any: i32| asked == got || asked == any || got == any;
        let at = self.receives.iter().position(|posted| {
            fits(posted.peer, part.peer, PEER_ANY)
                && fits(posted.tag, part.tag, TAG_ANY)
                && posted.comm.is_none_or(|comm| comm == part.comm.0)
        });
        self.receives.remove(at?)
    }

    /// What was begun first is done; returns false if there was nothing.
    pub fn complete_one(&mut self, into: &mut Vec<u16>) -> bool {
        match self.begun.pop_front() {
            Some(Begun::Slot(slot, _)) => into.push(slot),
            Some(Begun::Null) => {}
            None => return false,
        }
        true
    }

    /// All that was begun is done; returns false if there was nothing.
    pub fn complete_all(&mut self, into: &mut Vec<u16>) -> bool {
        let any = !self.begun.is_empty();
        while self.complete_one(into) {}
        any
    }

    /// Whether sends or collectives are under way.
    pub fn any_begun(&self) -> bool {
        self.begun.iter().any(|begun| matches!(begun, Begun::Slot(..)))
    }

    /// Slots of sends that nobody seems to wait for.
    pub fn overdue(&mut self) -> Vec<u16> {
        std::mem::take(&mut self.overdue)
    }

    /// Receives that were never completed.
    pub fn left(&mut self) -> impl Iterator<Item = Posted<T>> + '_ {
        self.receives.drain(..)
    }
}
