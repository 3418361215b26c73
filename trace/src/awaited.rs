//! A program that is to be saved and that a script or a tool starts: what the process that the launcher has started hands on in
//! the environment, by which the tracer knows the program when it comes.
use crate::Trace;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The environment variable that holds an [`Awaited`] as JSON.
pub const VARIABLE: &str = "PHASECAST_AWAITED";

/// Which process is to become the host of a program, and of which job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Awaited {
    /// The process.
    pub ran: Ran,
    /// The command phasecast.
    pub host: PathBuf,
    /// The job.
    pub job: PathBuf,
}

/// What called MPI in base runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ran {
    /// The file of the process, as the kernel names it.
    pub program: PathBuf,
    /// Its arguments without its name; none if they were not the same in all runs.
    pub args: Option<Vec<String>>,
}

impl Ran {
    /// What all ranks of all runs ran; none if they did not run the same.
    pub fn in_all(traces: &[Trace]) -> Option<Ran> {
        let headers = || traces.iter().flat_map(|trace| trace.ranks().filter_map(|rank| trace.header(rank)));
        let first = headers().next()?;
        let same_args = headers().all(|header| header.args == first.args);
        headers()
            .all(|header| header.program == first.program)
            .then(|| Ran { program: PathBuf::from(&first.program), args: same_args.then(|| first.args.clone()) })
    }
}

impl Awaited {
    /// What this process was told.
    pub fn told() -> Option<Awaited> {
        serde_json::from_str(&std::env::var(VARIABLE).ok()?).ok()
    }
}
