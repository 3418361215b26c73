//! Why stability cannot be judged, in sentences that name the trace, the cause and the remedy.
use phasecast_analyzer::AnalyzeError;
use phasecast_trace::TraceError;
use std::path::PathBuf;

/// An error of a comparison of execution graphs.
#[derive(Debug, thiserror::Error)]
pub enum StabilityError {
    /// A trace cannot be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// A rank is missing or was cut off, or the analysis failed.
    #[error(transparent)]
    Analysis(#[from] AnalyzeError),
    /// The traces cannot be of the same program.
    #[error(
        "{path} cannot be compared with the other trace: {what}. Compare runs of the same program with as many ranks."
    )]
    Unlike {
        /// The second trace.
        path: PathBuf,
        /// How it differs.
        what: String,
    },
    /// There are too many events to hold.
    #[error("{path} has more than {most} events on one rank. Trace a shorter run.")]
    Long {
        /// The trace.
        path: PathBuf,
        /// The most that a rank may have.
        most: u32,
    },
    /// An experiment makes no sense.
    #[error("{0}")]
    Design(String),
}

impl StabilityError {
    /// Whether the input is to blame (exit code 3) rather than the work (exit code 1).
    pub fn is_input(&self) -> bool {
        match self {
            StabilityError::Trace(error) => error.is_input(),
            StabilityError::Analysis(error) => error.is_input(),
            _ => true,
        }
    }
}
