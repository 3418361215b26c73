//! Logicalisation (seed 002, section 2): whom the ranks of a program talk to as a topology, whatever the numbers of the
//! ranks, so that their messages go EAST and WEST instead of to ranks 1 and 15.
//!
//! * [`matrix`]: the communication matrix of a trace, and its significant pairs
//! * [`shapes`], [`mesh`]: the topologies that are known
//! * [`recognise`]: the decision tree: simple tests, spectrum, isomorphism
//! * [`directions`]: names for whom a rank talks to, by the topology, and for what it does not have
//! * [`made`]: matrices made after NPB's formulas, for tests and benchmarks
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use phasecast_skeleton::topology;
//! let trace = phasecast_trace::Trace::open("bt.trace".as_ref())?;
//! let matrix = topology::Matrix::of_trace(&trace, &|_, _| {})?;
//! let recognition = topology::recognise(&matrix);
//! println!("{}", recognition.words());
//! let directions = topology::directions(&matrix, &recognition);
//! let east = directions.index(0, 1);
//! # Ok(())
//! # }
//! ```
pub mod directions;
pub mod graph;
pub mod isomorphism;
mod layers;
pub mod made;
pub mod matrix;
pub mod mesh;
pub mod recognise;
pub mod shapes;
pub mod spectrum;

pub use directions::{Directions, directions};
pub use matrix::{Matrix, Traffic};
pub use recognise::{Recognition, Stage, recognise};
pub use shapes::Topology;
