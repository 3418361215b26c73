//! How a program behaves on more processors or with a larger problem: seed 003 (execution profiles and signatures) and
//! seed 001 (PerPreT's analytic model).
//!
//! * [`fit`]: least squares, cross-validation and bootstrap, shared by both
//! * [`model`]: PerPreT: formulae, systems, tables
pub mod fit;
pub mod model;
