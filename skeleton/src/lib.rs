//! Coordinated performance skeletons (seed 002): from a trace, a short C program that behaves like the traced one.
//!
//! * [`nest`]: loop nests over any symbol
//! * [`logical`]: the logical trace, which all ranks share
//! * [`topology`]: whom ranks talk to, and the names of directions
pub mod logical;
pub mod nest;
pub mod topology;
