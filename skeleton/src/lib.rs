//! Coordinated performance skeletons (seed 002): from a trace, a short C program that behaves like the traced one.
//!
//! * [`nest`]: loop nests over any symbol (the analyzer finds them: [`phasecast_analyzer::loops`])
//! * [`logical`]: the logical trace, which all ranks share
//! * [`topology`]: whom ranks talk to, and the names of directions
//! * [`steps`]: from a trace to the logical trace
//! * [`compress`]: loop nests in numbers and as text
//! * [`program`]: from a logical trace to a C program
pub mod compress;
pub mod error;
pub mod logical;
pub mod program;
pub mod steps;
pub mod topology;

pub use error::{SkeletonError, TooLong};
pub use phasecast_analyzer::nest;
