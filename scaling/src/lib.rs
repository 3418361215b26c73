//! How a program behaves on more processors or with a larger problem: seed 003 (execution profiles and signatures) and
//! seed 001 (PerPreT's analytic model).

pub mod model;
