//! Prediction by trace transformation, and a verdict on stability (seed 000).
//!
//! * [`characterize`]: measuring a machine
//! * [`machine`]: what a machine's processors and network cost: measured once, kept as a file
//! * [`graph`]: the execution graph of a trace
//! * [`stability`]: whether a program does the same when its time is perturbed
//! * [`transform`]: from the trace of a run on one machine the trace of the run on another
pub mod characterize;
pub mod graph;
pub mod machine;
pub mod stability;
pub mod transform;
