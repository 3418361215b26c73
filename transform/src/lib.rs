//! Prediction by trace transformation, and a verdict on stability (seed 000).
//!
//! * [`characterize`]: measuring a machine
//! * [`machine`]: what a machine's processors and network cost: measured once, kept as a file
pub mod characterize;
pub mod machine;
