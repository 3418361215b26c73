//! How a program behaves on more processors or with a larger problem: seed 003 (execution profiles and signatures) and
//! seed 001 (PerPreT's analytic model).
//!
//! * [`fit`]: least squares, cross-validation and bootstrap, shared by both
//! * [`model`]: PerPreT: formulae, systems, tables
//! * [`phases`]: stretches of a profile with one mean and one variance
//! * [`plot`]: small plots as SVG
//! * [`profile`]: how many processors are busy, over time
//! * [`signature`]: how fast a phase runs, by the number of processors
//! * [`smooth`]: noise taken out of a profile
pub mod fit;
pub mod model;
pub mod phases;
pub mod plot;
pub mod profile;
pub mod signature;
pub mod smooth;
