//! Why images cannot be read or written, in sentences that name the file, the cause and the remedy.
use phasecast_trace::TraceError;
use std::path::{Path, PathBuf};

/// An error of reading or writing images.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
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
    /// A state's container is foreign, damaged or of another version.
    #[error(transparent)]
    Container(#[from] TraceError),
    /// Damaged.
    #[error("{path} is damaged: {what}. Copy it again from where it was written, or sign again.")]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// What is wrong, and where.
        what: String,
    },
    /// Not an image.
    #[error("{path} holds no images: {found}. Check the path.")]
    Foreign {
        /// The file or folder.
        path: PathBuf,
        /// What is there.
        found: String,
    },
    /// Written by another version.
    #[error(
        "{path} has image version {found}, this phasecast reads version {supported}. Use the phasecast that wrote it, or sign again."
    )]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u16,
        /// Ours.
        supported: u16,
    },
    /// Saved on another kind of machine.
    #[error(
        "{path} was saved on {found}, this is {here}. Predict on a machine of the same kind, or sign again on this one."
    )]
    Machine {
        /// The file.
        path: PathBuf,
        /// The kind of machine that saved it.
        found: String,
        /// Ours.
        here: String,
    },
    /// An image is not there.
    #[error("{path} has no image of rank {rank} at cut {cut}. Copy the whole set from every node, or sign again.")]
    Missing {
        /// The folder or file.
        path: PathBuf,
        /// The rank.
        rank: u32,
        /// The cut.
        cut: u32,
    },
    /// A state that must not be written.
    #[error(
        "the state of rank {rank} at cut {cut} is inconsistent: {what}. This is an error in phasecast, please report it."
    )]
    Inconsistent {
        /// The rank.
        rank: u32,
        /// The cut.
        cut: u32,
        /// What does not fit.
        what: String,
    },
}

impl ImageError {
    /// Wraps an error of the operating system.
    pub fn io(path: &Path, action: &'static str) -> impl FnOnce(std::io::Error) -> ImageError {
        let path = path.to_owned();
        move |source| ImageError::Io { path, action, source }
    }

    /// Damage of `path`.
    pub fn corrupt(path: &Path, what: impl Into<String>) -> ImageError {
        ImageError::Corrupt { path: path.to_owned(), what: what.into() }
    }

    /// Whether the images are to blame (exit code 3) rather than the work (exit code 1).
    pub fn is_input(&self) -> bool {
        match self {
            ImageError::Io { .. } | ImageError::Inconsistent { .. } => false,
            ImageError::Container(error) => error.is_input(),
            _ => true,
        }
    }
}
