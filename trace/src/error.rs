//! Why a file of ours cannot be read or written, in sentences that name the file, the cause and the remedy.
use std::path::{Path, PathBuf};

/// An error of reading or writing traces and containers.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The operating system refused.
    #[error("cannot {action} {path}: {source}")]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What was tried.
        action: &'static str,
        /// The system's word.
        source: std::io::Error,
    },
    /// Not one of our files.
    #[error("{path} is not a phasecast {expected}: {found}. Check the path, or import it with `phasecast import`.")]
    Foreign {
        /// The file or folder.
        path: PathBuf,
        /// What was wanted.
        expected: &'static str,
        /// What is there.
        found: String,
    },
    /// Written by another version.
    #[error(
        "{path} has format version {found}, this phasecast reads version {supported}. Use the phasecast that wrote it, or make it anew."
    )]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u16,
        /// Ours.
        supported: u16,
    },
    /// Damaged.
    #[error("{path} is damaged at byte {offset}: {what}. Copy it again from where it was written, or make it again.")]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// Where.
        offset: u64,
        /// What is wrong.
        what: String,
    },
    /// Ranks are missing.
    #[error("{path} holds {found} of {size} ranks ({missing} is missing). Copy the whole folder from every node.")]
    Incomplete {
        /// The folder.
        path: PathBuf,
        /// Files found.
        found: usize,
        /// Ranks of the run.
        size: u32,
        /// The first file that is missing.
        missing: String,
    },
    /// The output is there already.
    #[error("{path} exists already. Choose another name with -o, or remove it first.")]
    Exists {
        /// The file or folder.
        path: PathBuf,
    },
    /// Another tool's trace cannot be imported.
    #[error("cannot import {path}: {what}")]
    Import {
        /// The file or folder.
        path: PathBuf,
        /// The cause and the remedy.
        what: String,
    },
}

impl TraceError {
    /// Wraps an error of the operating system.
    pub fn io(path: &Path, action: &'static str) -> impl FnOnce(std::io::Error) -> TraceError {
        let path = path.to_owned();
        move |source| TraceError::Io { path, action, source }
    }

    /// Damage at `offset` of `path`.
    pub fn corrupt(path: &Path, offset: u64, what: impl Into<String>) -> TraceError {
        TraceError::Corrupt { path: path.to_owned(), offset, what: what.into() }
    }

    /// Whether the input is to blame (exit code 3) rather than the work (exit code 1).
    pub fn is_input(&self) -> bool {
        !matches!(self, TraceError::Io { .. })
    }
}
