//! From a trace to the logical trace (seed 002, sections 2 and 3): `logical_trace(trace, neighbours, settings, progress)`.
use crate::logical::Direction;

/// How the logical trace is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// How loops are found.
    pub method: Method,
    /// Threads; the result does not depend on them.
    pub threads: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Settings { method: Method::Greedy, threads: std::thread::available_parallelism().map_or(1, |n| n.get()) }
    }
}

/// How loops are found (seed 002, section 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Inner loops first, in linear time.
    Greedy,
    /// The longest loops first, or whatever is written with the fewest symbols.
    Optimal,
}

/// Who lies where: what is known of the topology.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Neighbours {
    /// The topology in words, if one was recognised.
    pub topology: Option<String>,
    /// The directions. A pair of ranks that no direction joins gets one of its own (`RANK_0`, `PLUS_3`).
    pub directions: Vec<Direction>,
}
