//! What a walk over the calls of a rank finds: acts of communication, and what a logical trace does not hold.
use crate::logical::Mode;
use phasecast_trace::{Counts, ProcId};
use std::collections::HashSet;

/// A message as one of its ends sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Message {
    /// The other end.
    pub peer: u32,
    /// The communicator.
    pub comm: u32,
    /// The tag.
    pub tag: i32,
    /// Bytes.
    pub bytes: u64,
}

/// An act of a rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// A send; it blocks if it has no slot.
    Send(Message, Mode, Option<u16>),
    /// A receive, with what came; whether it took any source.
    Receive(Message, bool, Option<u16>),
    /// A send and a receive in one.
    Exchange(Option<Message>, Option<Message>),
    /// A completion.
    Wait(Vec<u16>),
    /// A collective.
    Collective {
        /// The procedure that says which; none stands for a barrier.
        procedure: Option<ProcId>,
        /// The communicator.
        comm: u32,
        /// Bytes of this rank's part.
        bytes: u64,
        /// The root, or a value below 0.
        root: i32,
        /// The slot of its request.
        slot: Option<u16>,
    },
    /// The end.
    End,
}

/// Computation before an act.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Computed {
    /// Its time in nanoseconds.
    pub ns: u64,
    /// The time of that part of it that was counted.
    pub counted_ns: u64,
    /// What was counted.
    pub counts: Counts,
}

impl Computed {
    /// Takes in more of it, counted or not.
    pub fn add(&mut self, ns: u64, counts: Option<Counts>) {
        self.ns += ns;
        if let Some(counts) = counts {
            self.counted_ns += ns;
            self.counts = self.counts.plus(counts);
        }
    }

    /// The sum.
    #[must_use]
    pub fn plus(self, other: Computed) -> Computed {
        Computed {
            ns: self.ns + other.ns,
            counted_ns: self.counted_ns + other.counted_ns,
            counts: self.counts.plus(other.counts),
        }
    }
}

/// What takes in the acts of a rank.
pub trait Sink {
    /// What a step is known by until it is known what its act was.
    type Token: Copy;
    /// The next step: computation, then a call in nanoseconds.
    fn step(&mut self, compute: Computed, call: u64) -> Self::Token;
    /// What the step was. Each step is settled or dropped once.
    fn settle(&mut self, token: Self::Token, act: Act);
    /// The step was nothing after all.
    fn drop(&mut self, token: Self::Token);
}

/// Where a completion was called from, within one rank: procedure and address.
pub type Site = (u16, u64);

/// What a first walk over a rank has found out of its completions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sites {
    /// One from here that received something, or found nothing, is not about sends.
    pub wary: HashSet<Site>,
    /// One of several from here is about collectives and the like too, whatever else it completes.
    pub about_all: HashSet<Site>,
}

/// What was met on the way that a logical trace does not hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Met {
    /// Start and end of the run in nanoseconds: after `MPI_Init`, before `MPI_Finalize`.
    pub span: (u64, u64),
    /// One-sided calls.
    pub one_sided: u64,
    /// Calls of MPI-IO.
    pub files: u64,
    /// Pauses of the recording.
    pub pauses: u64,
    /// Calls that failed.
    pub failed: u64,
    /// Receives that were posted but never completed, or cancelled.
    pub lost: u64,
    /// Receives that took any source.
    pub wildcards: u64,
    /// Acts that took what came first.
    pub as_it_comes: u64,
    /// Persistent requests that were started.
    pub persistent: u64,
    /// Collectives between neighbours of a topology.
    pub neighbours: u64,
    /// The highest thread that called.
    pub threads: u16,
}
