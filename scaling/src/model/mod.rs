//! PerPreT, the analytic model of seed 001: an application is formulae for computation and communication over the size
//! of the problem and the number of processors, a system is the five parts of a message's time and a sustained rate.
//!
//! * [`formula`]: the formulae (section 2), read with the place of every name, and evaluated
//! * [`sums`]: sums of products, in which formulae that were derived are kept and written
//! * [`library`]: the communication library (section 2.3) over the five parts of section 3.1
//! * [`system`]: systems: files, and the machine files of `phasecast characterize`
//! * [`application`]: applications: files with strategies given in one of the seed's three ways
//! * [`graph`]: task graphs (Figure 4), [`loops`]: the LOOP language (Figure 5)
//! * [`tables`]: the seed's tables (Figures 7 and 10), thresholds, crossover, best number of processors
//! * [`plot`]: its plots (Figures 8, 9 and 11)
//! * [`answer`]: one point as the prediction type of all methods
//! * [`from_traces`]: formulae from traces
pub mod answer;
pub mod application;
mod error;
pub mod formula;
pub mod from_traces;
pub mod graph;
pub mod library;
pub mod loops;
pub mod plot;
pub mod sums;
pub mod system;
pub mod tables;

pub use application::{Application, Strategy};
pub use error::{Fault, ModelError, Source};
pub use system::System;
