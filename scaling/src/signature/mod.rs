//! Execution signatures (seed 003, section 3.1): how fast a phase runs, as a function of the number of processors.
//!
//! * [`forms`]: the seed's p / (k1 p + k2), its line for full utilisation, and others with the same properties
//! * [`runs`]: phases with their times at several numbers of processors, checked
//! * [`csv`]: such times from a table
//! * [`sources`]: such times from traces (phases of their profiles) and from analyses (phases of PAS2P)
//! * [`scale`]: signatures of all phases, what they say of more processors, and which phase holds the program back first
//! * [`answer`]: the same as a prediction
//! * [`draw`]: the speedup as SVG
pub mod answer;
pub mod csv;
pub mod draw;
pub mod forms;
pub mod runs;
pub mod scale;
pub mod sources;

pub use forms::Signature;
pub use runs::{Runs, ScaledPhase};
pub use scale::{Forecast, Scaled, Settings, foresight, scale};

use crate::fit::FitError;
use std::path::PathBuf;

/// Why nothing can be said of more processors.
#[derive(Debug, thiserror::Error)]
pub enum ScaleError {
    /// Too few runs.
    #[error("there are {0} different numbers of processors; a signature has 2 parameters, so give runs at 2 or more.")]
    TooFew(usize),
    /// Two runs with the same number of processors.
    #[error("{first} and {second} both have {processors} processors. Give one run for each number of processors.")]
    Twice {
        /// The number.
        processors: u32,
        /// One of them.
        first: String,
        /// The other.
        second: String,
    },
    /// A time that cannot be.
    #[error(
        "phase {phase} takes {value} at {processors} processors in {source_name}: a time must be a number above 0. Correct it, or leave that run out."
    )]
    Time {
        /// The phase.
        phase: String,
        /// The processors.
        processors: u32,
        /// The time.
        value: f64,
        /// Where it stands.
        source_name: String,
    },
    /// A number of processors that cannot be.
    #[error("{0} is no number of processors: give whole numbers from 1 up.")]
    Processors(String),
    /// A table that cannot be read.
    #[error("{path} is no table of phases (line {line}): {what}.", path = path.display())]
    Table {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// What is wrong, and what should be there.
        what: String,
    },
    /// The runs have no phases in common.
    #[error(
        "the runs cannot be cut into {0} phases each. Leave out --count, or give a number that the profiles of all runs show."
    )]
    Phases(usize),
    /// The runs are not of one program.
    #[error("{path} is of {other}, and the first input of {program}. Give runs of one program.", path = path.display())]
    Program {
        /// The input.
        path: PathBuf,
        /// Its program.
        other: String,
        /// The program of the first.
        program: String,
    },
    /// A rank was cut off.
    #[error("{path} is not complete (rank {rank}: {reason}), so that its length is not that of a run. Trace it again.", path = path.display())]
    Cut {
        /// The trace.
        path: PathBuf,
        /// A rank.
        rank: u32,
        /// Why it breaks off.
        reason: String,
    },
    /// The forms cannot be fitted.
    #[error("phase {phase}: {source}")]
    Fit {
        /// The phase.
        phase: String,
        /// Why.
        source: FitError,
    },
    /// A trace is damaged.
    #[error(transparent)]
    Trace(#[from] phasecast_trace::TraceError),
}

impl ScaleError {
    /// Whether the input is at fault.
    pub fn is_input(&self) -> bool {
        match self {
            ScaleError::Trace(error) => error.is_input(),
            _ => true,
        }
    }
}
