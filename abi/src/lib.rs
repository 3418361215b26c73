//! MPI as data: every procedure of the standard with the meaning of each argument, and the three binary interfaces that
//! programs speak (Open MPI's, MPICH's, MPI-5's), with the translation between them.

mod constants;
#[rustfmt::skip]
mod generated {
    pub mod procedures;
}
mod interface;
mod model;
mod procedures;
mod translate;

pub use constants::{Constant, Domain, Value, constant, constants};
pub use generated::procedures::{PROCEDURES, SOURCE_VERSION};
pub use interface::{Abi, CountLayout, Layout, StatusLayout};
pub use model::*;
pub use procedures::{ProcId, by_name};
pub use translate::{NoSymbols, Status, Symbols};
