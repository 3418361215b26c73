//! A program that is to be saved and that a script or a tool starts: what the process that the launcher has started hands on in
//! the environment, by which the tracer knows the program when it comes.
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The environment variable that holds an [`Awaited`] as JSON.
pub const VARIABLE: &str = "PHASECAST_AWAITED";

/// Which process is to become the host of a program, and of which job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Awaited {
    /// The file of the process, as the kernel names it.
    pub program: PathBuf,
    /// Its arguments without its name; none if they are others in every run.
    pub args: Option<Vec<String>>,
    /// The command phasecast.
    pub host: PathBuf,
    /// The job.
    pub job: PathBuf,
}

impl Awaited {
    /// What this process was told.
    pub fn told() -> Option<Awaited> {
        serde_json::from_str(&std::env::var(VARIABLE).ok()?).ok()
    }
}
