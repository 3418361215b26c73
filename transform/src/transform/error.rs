//! Why a trace cannot be transformed, in sentences that name the file, the cause and the remedy.
use crate::machine::Place;
use phasecast_analyzer::AnalyzeError;
use phasecast_trace::TraceError;
use std::path::PathBuf;

/// An error of the transformation.
#[derive(Debug, thiserror::Error)]
pub enum TransformError {
    /// A trace cannot be read or written.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// A trace cannot be surveyed.
    #[error(transparent)]
    Survey(#[from] AnalyzeError),
    /// A machine file lacks what this trace needs.
    #[error(
        "the machine file of the {which} has no costs of messages {place}, which this trace needs. Characterise the {which} with ranks placed as in the run (`phasecast characterize`), or add the link to the file."
    )]
    NoLink {
        /// `base` or `target`.
        which: &'static str,
        /// Where the messages travel.
        place: Words,
    },
    /// A table of a machine file is empty or impossible.
    #[error("the machine file of the {which}: {key} {what}. Measure the machine again with `phasecast characterize`.")]
    Machine {
        /// `base` or `target`.
        which: &'static str,
        /// Where in it.
        key: String,
        /// What is wrong.
        what: String,
    },
    /// There is no ratio of processor speeds.
    #[error(
        "the machine files have no kernel in common, so that the ratio of the processors' speeds is not known. Give it with --ratio, or two small runs with --ratios-from, or characterise both machines with this version."
    )]
    NoRatio,
    /// A ratio that is none.
    #[error("{0} is no ratio of speeds: it must be a number above 0.")]
    BadRatio(f64),
    /// Two traces have different numbers of ranks.
    #[error("{a} has {a_ranks} ranks and {b} has {b_ranks}: {why}")]
    Ranks {
        /// The one trace.
        a: PathBuf,
        /// Its ranks.
        a_ranks: u32,
        /// The other.
        b: PathBuf,
        /// Its ranks.
        b_ranks: u32,
        /// Why they must have as many.
        why: &'static str,
    },
    /// Small runs that tell nothing.
    #[error(
        "{a} and {b} have no computation in common: {what}. Trace the same small run of the program on both machines."
    )]
    Alien {
        /// The base's small run.
        a: PathBuf,
        /// The target's.
        b: PathBuf,
        /// What was found.
        what: String,
    },
    /// A file of a rank is missing.
    #[error("{path}: rank {rank} is missing ({reason}). Copy the whole folder from every node, or trace again.")]
    Missing {
        /// The trace.
        path: PathBuf,
        /// The rank.
        rank: u32,
        /// What is known of it.
        reason: String,
    },
    /// The ranks wait for each other.
    #[error(
        "{path}: the ranks wait for each other in a circle ({who}), which no run can have done: the trace is damaged or not complete. Trace the program again."
    )]
    Circle {
        /// The trace.
        path: PathBuf,
        /// Some of the ranks, with what they wait for.
        who: String,
    },
}

impl TransformError {
    /// Whether the input is to blame (exit code 3) rather than the work (exit code 1).
    pub fn is_input(&self) -> bool {
        match self {
            TransformError::Trace(error) => error.is_input(),
            TransformError::Survey(error) => error.is_input(),
            _ => true,
        }
    }
}

/// A place in words.
#[derive(Clone, Copy, Debug)]
pub struct Words(pub Place);

impl std::fmt::Display for Words {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self.0 {
            Place::Within => "within a node (place = \"within\")",
            Place::Between => "between nodes (place = \"between\")",
        })
    }
}
