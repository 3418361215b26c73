//! The host of the split process.
pub mod dump;
pub mod host;
pub mod job;
pub mod memory;
mod memory_kinds;
#[cfg(test)]
mod memory_tests;
pub mod moment;
mod replay_time;
mod replaying;
pub mod restore;
mod restore_huge;
pub mod restore_over;
mod saving;
mod sentence;
mod sharing;
mod touches;

pub use phasecast_mpi::{Stand, Taken};
pub use phasecast_process::children::state_and_parent;
pub use phasecast_process::files::set_aside;
pub use phasecast_process::signal_state::told as told_signals;
pub use phasecast_process::threads::{ASKING, ask};
pub use phasecast_process::{COMPLAINT, MadeAfter, complain};
pub use sentence::sentence;
