//! x
pub mod lcs;
