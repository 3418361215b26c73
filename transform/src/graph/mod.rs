//! The execution graph of a trace (seed 000, section 3.1.2): events are its vertices, Lamport's order is the order along
//! its edges.
//!
//! Edges go from an event to the next one of its task (a thread of a rank), and from a send to the receive of its message:
//! the n-th receive of a channel (source, destination, communicator, tag) has the message of its n-th send. A blocking
//! collective joins its members: all that comes before it on any of them comes before what follows it on each; its members
//! themselves are not ordered. A nonblocking collective orders nothing, as the trace does not say when it completes.
//!
//! * [`walk`]: streams over a trace in an order in which nothing comes before what it depends on
//! * [`counts`]: the graph in numbers
//! * [`ask`]: whether two events are ordered
//! * [`draw`]: vertices and edges as DOT or JSON
pub mod ask;
pub mod counts;
pub mod draw;
pub mod walk;

pub use ask::{Relation, relation};
pub use counts::{Counts, count};
pub use draw::{Form, Window, draw};

use phasecast_trace::TraceError;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// An event: its rank, and its number among that rank's events, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EventId {
    /// The rank.
    pub rank: u32,
    /// The number.
    pub event: u64,
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.rank, self.event)
    }
}

impl FromStr for EventId {
    type Err = String;

    fn from_str(text: &str) -> Result<EventId, String> {
        let parsed = text
            .split_once(':')
            .and_then(|(rank, event)| Some(EventId { rank: rank.parse().ok()?, event: event.parse().ok()? }));
        parsed.ok_or_else(|| "an event is its rank and its number there, as in 2:117".into())
    }
}

/// Why there is no graph, in sentences that name the trace, the cause and the remedy.
#[derive(Debug, thiserror::Error)]
pub enum GraphError {
    /// The trace cannot be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// An event is asked for that is not there.
    #[error("{path} has no event {id}: rank {rank} has {events} events, from 0. `phasecast stat` counts them.", rank = id.rank)]
    Missing {
        /// The trace.
        path: PathBuf,
        /// The event.
        id: EventId,
        /// Events of its rank.
        events: u64,
    },
    /// The output cannot be written.
    #[error("the graph cannot be written: {0}")]
    Out(#[from] std::io::Error),
}

impl GraphError {
    /// Whether the input is to blame (exit code 3) rather than the work (exit code 1).
    pub fn is_input(&self) -> bool {
        match self {
            GraphError::Trace(error) => error.is_input(),
            GraphError::Missing { .. } => true,
            GraphError::Out(_) => false,
        }
    }
}
