//! Prediction by trace transformation, and a verdict on stability (seed 000).
//!
//! * [`machine`]: what a machine's processors and network cost: measured once, kept as a file
pub mod machine;
