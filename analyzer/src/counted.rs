//! Which events are counted: all, or only those collectives that keep all ranks together.
//!
//! Programs that send as messages come, or balance their load by the clock, have other messages in every run, so that a
//! count of all events is no position that another run has, too. The collectives in which every rank waits for all others
//! are often the same, and wherever each rank has done as many of them is a consistent cut: what was sent after one of
//! them is not received before it.
use crate::source::Item;
use phasecast_abi::by_name;
use phasecast_trace::{EventKind, Trace};

/// Which events of a trace are counted.
#[derive(Clone, Debug, Default)]
pub enum Counted {
    /// Every completed communication.
    #[default]
    All,
    /// Blocking collectives that synchronise all ranks.
    Collectives {
        /// Of the trace's procedures, which are such.
        procedures: Vec<bool>,
        /// Of the trace's communicators, which are of all ranks.
        comms: Vec<bool>,
    },
}

impl Counted {
    /// Only the collectives of `trace` that synchronise all ranks.
    pub fn collectives(trace: &Trace) -> Counted {
        let synchronises = |name: &String| by_name(name).and_then(|id| id.get()).is_some_and(|p| p.synchronises());
        let size = trace.size() as usize;
        Counted::Collectives {
            procedures: trace.procedures().iter().map(synchronises).collect(),
            comms: trace.comms().iter().map(|comm| comm.remote.is_empty() && comm.members.len() == size).collect(),
        }
    }

    /// Whether an event is counted.
    #[inline]
    pub fn counts(&self, item: &Item) -> bool {
        match self {
            Counted::All => true,
            Counted::Collectives { procedures, comms } => {
                let of = |list: &[bool], at: usize| list.get(at).copied().unwrap_or(false);
                item.kind == EventKind::Collective
                    && !item.nonblocking
                    && of(procedures, usize::from(item.proc))
                    && of(comms, item.comm as usize)
            }
        }
    }
}
