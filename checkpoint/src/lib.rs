//! The host of the split process.
pub mod dump;
pub mod job;
pub mod memory;
mod memory_kinds;
pub mod restore;
