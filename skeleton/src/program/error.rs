//! Why no skeleton can be written or read.
use crate::error::TooLong;
use std::path::PathBuf;

/// An error; each is a sentence with cause and remedy.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// The logical trace contradicts itself.
    #[error("the logical trace contradicts itself: {what}. Trace the program again.")]
    Inconsistent {
        /// What does not hold.
        what: String,
    },
    /// Too many calls.
    #[error("{0}")]
    TooLong(TooLong),
    /// The replay got stuck, and nothing more can be left out.
    #[error("the skeleton would hang, so it is not written: rank {rank} waits for ever in {call}")]
    Hangs {
        /// The rank.
        rank: u32,
        /// The call.
        call: String,
    },
    /// A file cannot be read or written.
    #[error("cannot {action} {path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What was to be done.
        action: &'static str,
        /// The system's word.
        source: std::io::Error,
    },
    /// Not a skeleton.
    #[error("{path} is no skeleton: {what}. Write one with `phasecast skeleton TRACE -o FOLDER`.")]
    Foreign {
        /// The folder or file.
        path: PathBuf,
        /// What is there.
        what: String,
    },
    /// Written by another version.
    #[error(
        "{path} has version {found} of the format of skeletons, this phasecast reads version {version}. Write the skeleton again."
    )]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u64,
        /// What is read.
        version: u32,
    },
    /// Its source is not what was written.
    #[error(
        "{path} was changed since the skeleton was written: its weights may not hold any more. Write the skeleton again, or say --changed."
    )]
    Changed {
        /// The source.
        path: PathBuf,
    },
    /// What `phasecast predict` would not read.
    #[error(
        "{path} would have {bytes} bytes, more than {most} are not read: so many classes of ranks and loops are too much for a skeleton. Trace a run with fewer ranks."
    )]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Its bytes.
        bytes: u64,
        /// How many there may be.
        most: u64,
    },
    /// There is no compiler.
    #[error("there is no {compiler} here. Install an MPI with its compiler, or name one with --cc.")]
    NoCompiler {
        /// Its name.
        compiler: String,
    },
    /// The compiler failed.
    #[error("{compiler} cannot build the skeleton: {what}")]
    Compiler {
        /// The compiler.
        compiler: String,
        /// What it said.
        what: String,
    },
}

impl ProgramError {
    /// An error of the system.
    pub fn io(path: &std::path::Path, action: &'static str) -> impl FnOnce(std::io::Error) -> ProgramError {
        let path = path.to_owned();
        move |source| ProgramError::Io { path, action, source }
    }

    /// Whether the input is to blame (exit code 3) rather than the work (exit code 1).
    pub fn is_input(&self) -> bool {
        match self {
            ProgramError::Io { source, action, .. } => {
                *action == "read" && source.kind() == std::io::ErrorKind::NotFound
            }
            ProgramError::Compiler { .. } | ProgramError::NoCompiler { .. } => false,
            _ => true,
        }
    }
}
