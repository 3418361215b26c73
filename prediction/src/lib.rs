//! The answer of every method of phasecast, and what is done with it.
//!
//! * [`model`]: a predicted run time with its interval, and the parts it is made of
//! * [`file`]: predictions as files (JSON)
//! * [`compare`]: several predictions side by side, machines ranked
//! * [`report`]: one self-contained HTML page for a prediction or an analysis
pub mod compare;
pub mod file;
pub mod model;
pub mod report;

pub use file::PredictionError;
pub use model::{Machine, PhasePrediction, Prediction, TimelinePiece, Uncertainty, VERSION, name_of};
