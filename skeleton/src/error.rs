//! Why no skeleton can be made of a trace, in sentences that name the trace, the cause and the remedy.
use phasecast_analyzer::AnalyzeError;
use phasecast_trace::TraceError;
use std::path::PathBuf;

/// An error of the making of a skeleton.
#[derive(Debug, thiserror::Error)]
pub enum SkeletonError {
    /// The trace cannot be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// A pass over the trace failed.
    #[error(transparent)]
    Analyze(#[from] AnalyzeError),
    /// A rank is missing or was cut off.
    #[error(
        "{path}: rank {rank} is not complete: {reason}. A skeleton stands for a whole run: trace it again and let it finish."
    )]
    Cut {
        /// The trace.
        path: PathBuf,
        /// The rank.
        rank: u32,
        /// What is known of it.
        reason: String,
    },
    /// A skeleton cannot hold what the program does.
    #[error("{path}: {what}")]
    Unfit {
        /// The trace.
        path: PathBuf,
        /// What it is, and what to do.
        what: String,
    },
}

impl SkeletonError {
    /// Whether the input is to blame (exit code 3) rather than the work (exit code 1).
    pub fn is_input(&self) -> bool {
        match self {
            SkeletonError::Trace(error) => error.is_input(),
            SkeletonError::Analyze(error) => error.is_input(),
            SkeletonError::Cut { .. } | SkeletonError::Unfit { .. } => true,
        }
    }
}
