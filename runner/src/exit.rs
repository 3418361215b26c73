//! Errors as the user meets them: one sentence with its causes on standard error, and an exit code.
use phasecast_analyzer::AnalyzeError;
pub use phasecast_checkpoint::sentence;
use phasecast_image::ImageError;
use phasecast_prediction::PredictionError;
use phasecast_scaling::model::ModelError;
use phasecast_scaling::signature::ScaleError;
use phasecast_skeleton::SkeletonError;
use phasecast_skeleton::program::error::ProgramError;
use phasecast_trace::TraceError;
use phasecast_transform::graph::GraphError;
use phasecast_transform::machine::MachineError;
use phasecast_transform::stability::StabilityError;
use phasecast_transform::transform::TransformError;
use std::io::{ErrorKind, Write};
use std::path::Path;
use std::process::ExitCode;

/// The work failed.
pub const FAILED: u8 = 1;
/// The command line is wrong (clap exits with the same code).
pub const USAGE: u8 = 2;
/// The input is refused: missing, foreign, damaged, of another version, or the output exists already.
pub const REFUSED: u8 = 3;
/// It makes no sense here: no signature or skeleton pays for this program, this machine cannot restart the images, or
/// there is no launcher or compiler.
pub const UNFIT: u8 = 4;
/// What was compared differs: the machine has changed.
pub const CHANGED: u8 = 5;

/// An error of the command itself.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// The input cannot be used; a sentence that says why and what to do.
    #[error("{0}")]
    Input(String),
    /// The command line asks for something that makes no sense.
    #[error("{0}. `phasecast help` has the usage.")]
    Usage(String),
    /// It can be done, but not here; a sentence that says why and what to do instead.
    #[error("{0}")]
    Unfit(String),
    /// What was compared differs; a sentence that says how.
    #[error("{0}")]
    Changed(String),
}

impl Refusal {
    /// There is nothing of that name.
    pub fn missing(path: &Path) -> Refusal {
        Refusal::Input(format!("{} does not exist. Check the path.", path.display()))
    }
}

/// The exit code of an error.
pub fn code(error: &anyhow::Error) -> u8 {
    for cause in error.chain() {
        if let Some(refusal) = cause.downcast_ref::<Refusal>() {
            return match refusal {
                Refusal::Usage(_) => USAGE,
                Refusal::Input(_) => REFUSED,
                Refusal::Unfit(_) => UNFIT,
                Refusal::Changed(_) => CHANGED,
            };
        }
        if let Some(ProgramError::NoCompiler { .. } | ProgramError::TooLong(_)) = cause.downcast_ref() {
            return UNFIT;
        }
        if let Some(SkeletonError::TooLong { .. }) = cause.downcast_ref() {
            return UNFIT;
        }
        let input = cause
            .downcast_ref::<TraceError>()
            .map(|error| error.is_input() || is_missing(error))
            .or_else(|| cause.downcast_ref::<AnalyzeError>().map(analysis_refused))
            .or_else(|| cause.downcast_ref::<StabilityError>().map(StabilityError::is_input))
            .or_else(|| cause.downcast_ref::<GraphError>().map(GraphError::is_input))
            .or_else(|| cause.downcast_ref::<PredictionError>().map(PredictionError::is_input))
            .or_else(|| cause.downcast_ref::<MachineError>().map(MachineError::is_input))
            .or_else(|| cause.downcast_ref::<ScaleError>().map(ScaleError::is_input))
            .or_else(|| cause.downcast_ref::<TransformError>().map(TransformError::is_input))
            .or_else(|| cause.downcast_ref::<ModelError>().map(ModelError::is_input))
            .or_else(|| cause.downcast_ref::<SkeletonError>().map(SkeletonError::is_input))
            .or_else(|| cause.downcast_ref::<ProgramError>().map(ProgramError::is_input))
            .or_else(|| cause.downcast_ref::<ImageError>().map(ImageError::is_input));
        if let Some(input) = input {
            return if input { REFUSED } else { FAILED };
        }
    }
    FAILED
}

fn analysis_refused(error: &AnalyzeError) -> bool {
    error.is_input() || matches!(error, AnalyzeError::Trace(error) if is_missing(error))
}

/// Whether an input is not there, or a folder in the place of a file: then it is refused, no work has failed.
fn is_missing(error: &TraceError) -> bool {
    matches!(error, TraceError::Io { source, action: "read" | "open" | "examine" | "list", .. }
        if matches!(source.kind(), ErrorKind::NotFound | ErrorKind::IsADirectory | ErrorKind::NotADirectory))
}

/// Prints an error on standard error; its exit code. A reader that has gone away (`phasecast dump | head`) is none.
pub fn report(error: &anyhow::Error) -> ExitCode {
    if closed(error) {
        return ExitCode::SUCCESS;
    }
    let _ = writeln!(std::io::stderr(), "phasecast: {}", with_remedy(sentence(error)));
    ExitCode::from(code(error))
}

/// The sentence of an error with what to do about a full disk, which any command may meet, or a rank that tells of it in words.
fn with_remedy(sentence: String) -> String {
    let full = std::io::Error::from(nix::errno::Errno::ENOSPC).to_string();
    if !sentence.contains(&full) {
        return sentence;
    }
    let sentence = sentence.trim_end_matches('.');
    format!("{sentence}. Make room on that disk, or write to another one (TMPDIR names that of temporary files).")
}

fn closed(error: &anyhow::Error) -> bool {
    let of_pipe = |e: &std::io::Error| e.kind() == ErrorKind::BrokenPipe;
    error.chain().any(|cause| cause.downcast_ref().is_some_and(of_pipe))
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::Context;
    use std::path::PathBuf;

    #[test]
    fn codes_look_through_context() {
        let exists = TraceError::Exists { path: PathBuf::from("a") };
        let error = Err::<(), _>(exists).context("cannot export").unwrap_err();
        assert_eq!(code(&error), REFUSED);
        assert_eq!(code(&Refusal::Usage("two of one".into()).into()), USAGE);
        assert_eq!(code(&Refusal::Unfit("not here".into()).into()), UNFIT);
        assert_eq!(code(&anyhow::anyhow!("it broke")), FAILED);
    }

    #[test]
    fn a_full_disk_is_told_with_what_to_do() {
        let full = std::io::Error::from(nix::errno::Errno::ENOSPC);
        let told = with_remedy(format!("cannot write a: {full}."));
        assert!(told.contains("(os error 28). Make room on that disk"), "{told}");
        assert_eq!(with_remedy("it broke.".into()), "it broke.");
    }
}
