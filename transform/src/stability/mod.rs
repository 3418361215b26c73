//! Whether a program does the same when its time is perturbed (seed 000, section 3.2): which is to be known before its
//! trace is transformed for another machine.
//!
//! * [`candidates`], [`design`]: where to delay it, and in which runs
//! * [`tape`], [`lcs`], [`compare`]: how far the execution graph of a run is from the unperturbed one
//! * [`regions`], [`exact`]: the same by regions that repeat, with an exact search within them
//! * [`verdict`]: what all runs say together
pub mod candidates;
pub mod compare;
pub mod design;
pub mod error;
pub mod exact;
pub mod lcs;
pub mod regions;
pub mod tape;
pub mod verdict;

pub use candidates::{Candidate, Reason, candidates};
pub use compare::{Change, Comparison, compare};
pub use design::{Design, Effect};
pub use error::StabilityError;
pub use lcs::Effort;
pub use regions::{Regions, by_regions};
pub use tape::{Names, Place, Symbol, Tape};
pub use verdict::{Outcome, Trouble, Verdict, judge};

use phasecast_trace::EventKind;

/// Completions that take what is there first.
const ANY_ORDER: [&str; 4] = ["MPI_Waitany", "MPI_Waitsome", "MPI_Testany", "MPI_Testsome"];

/// Whether a procedure completes requests in whatever order they are done.
pub fn takes_any_order(procedure: &str) -> bool {
    ANY_ORDER.contains(&procedure)
}

/// Whether what is received at a place may depend on which message comes first.
pub fn place_may_reorder(place: &Place) -> bool {
    place.kind == EventKind::Recv && (place.wildcard || takes_any_order(&place.procedure))
}
