//! Why no skeleton can be made of a trace, in sentences that name the trace, the cause and the remedy.
use phasecast_analyzer::AnalyzeError;
use phasecast_trace::TraceError;
use std::fmt;
use std::path::PathBuf;

/// Calls that are written down at most: no compiler is to be tried with more.
pub const MOST_CALLS: u64 = 100_000;

/// The calls of all classes of ranks are more than [`MOST_CALLS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong {
    /// Calls of all classes.
    pub calls: u64,
    /// Classes.
    pub classes: usize,
    /// Calls of the longest.
    pub longest: u64,
}

impl TooLong {
    /// Refuses classes of so many calls each.
    ///
    /// # Errors
    /// If these are too many.
    pub fn refuse(calls: impl Iterator<Item = u64> + Clone) -> Result<(), TooLong> {
        let sum = calls.clone().fold(0, u64::saturating_add);
        let (classes, longest) = (calls.clone().count(), calls.max().unwrap_or(0));
        if sum <= MOST_CALLS { Ok(()) } else { Err(TooLong { calls: sum, classes, longest }) }
    }
}

impl fmt::Display for TooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TooLong { calls, classes, longest } = self;
        write!(
            f,
            "a skeleton would have {calls} calls written down, of {classes} classes of ranks, the longest of {longest}; \
             it may have {MOST_CALLS}. "
        )?;
        f.write_str(if *longest > MOST_CALLS / 4 {
            "The program repeats too little: trace a run with fewer iterations"
        } else {
            "Too many ranks do something of their own: trace a run with fewer ranks"
        })?;
        f.write_str(", or predict with `phasecast sign` or `phasecast transform`.")
    }
}

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
    /// Too many calls.
    #[error("{path}: {of}")]
    TooLong {
        /// The trace.
        path: PathBuf,
        /// How many.
        of: TooLong,
    },
}

impl SkeletonError {
    /// Whether the input is to blame (exit code 3) rather than the work (exit code 1).
    pub fn is_input(&self) -> bool {
        match self {
            SkeletonError::Trace(error) => error.is_input(),
            SkeletonError::Analyze(error) => error.is_input(),
            SkeletonError::Cut { .. } | SkeletonError::Unfit { .. } | SkeletonError::TooLong { .. } => true,
        }
    }
}
