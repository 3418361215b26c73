//! Why an analysis is refused, in sentences that name the trace, the cause and the remedy.
use phasecast_trace::TraceError;
use std::path::PathBuf;

/// An error of the analysis.
#[derive(Debug, thiserror::Error)]
pub enum AnalyzeError {
    /// A trace cannot be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// No trace was given.
    #[error("there is no trace to analyse. Name one or two traces of the same program.")]
    Nothing,
    /// A rank is missing or was cut off.
    #[error(
        "{path}: rank {rank} is not complete: {reason}. Phases can only be found in a whole run: trace it again and let it finish."
    )]
    Cut {
        /// The trace.
        path: PathBuf,
        /// The rank.
        rank: u32,
        /// What is known of it.
        reason: String,
    },
    /// The traces are of different runs.
    #[error("{path} cannot be a second base run: {what}. Trace the same program with the same arguments and ranks.")]
    Unlike {
        /// The second trace.
        path: PathBuf,
        /// How it differs.
        what: String,
    },
    /// A file of phases is damaged or makes no sense.
    #[error("{path} is damaged: {what}. Copy it again from where it was made, or analyse the trace again.")]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// Pieces were asked for where there are none.
    #[error("{what}")]
    Pieces {
        /// Which pieces, and what to do.
        what: String,
    },
}

impl AnalyzeError {
    /// Whether the input is to blame (exit code 3) rather than the work (exit code 1).
    pub fn is_input(&self) -> bool {
        match self {
            AnalyzeError::Trace(error) => error.is_input(),
            _ => true,
        }
    }
}
