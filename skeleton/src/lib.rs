//! Coordinated performance skeletons (seed 002): from a trace, a short C program that behaves like the traced one.
//!
//! * [`nest`]: loop nests over any symbol (the analyzer's, which finds them)
//! * [`logical`]: the logical trace, which all ranks share
//! * [`steps`]: from a trace to the logical trace
pub mod error;
pub mod logical;
pub mod steps;

pub use error::SkeletonError;
pub use phasecast_analyzer::nest;
