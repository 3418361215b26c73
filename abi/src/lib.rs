//! MPI as data: every procedure of the standard with the meaning of each argument, and the three binary interfaces that
//! programs speak (Open MPI's, MPICH's, MPI-5's), with the translation between them.

#[rustfmt::skip]
mod generated {
    pub mod procedures;
}
mod model;
mod procedures;

pub use generated::procedures::{PROCEDURES, SOURCE_VERSION};
pub use model::*;
pub use procedures::{ProcId, by_name};
