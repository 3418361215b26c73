//! Coordinated performance skeletons (seed 002): from a trace, a short C program that behaves like the traced one.
//!
//! * [`nest`]: loop nests over any symbol
//! * [`logical`]: the logical trace, which all ranks share
//! * [`program`]: from a logical trace to a C program
pub mod logical;
pub mod nest;
pub mod program;
