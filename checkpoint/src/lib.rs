//! The host of the split process.
pub mod job;
