//! `phasecast host JOB`: one rank of a split process. Started under the launcher by `sign`, `predict` and their kin, not by
//! people.
use crate::trace_launch::library;
use anyhow::{Context, Result};
use clap::Args;
use std::path::PathBuf;

/// Name of the library that a program gets in place of its MPI.
const FACADE: &str = "libphasecast_facade.so";

/// Run one rank of a program under the host, as a job file says
#[derive(Debug, Args)]
pub struct HostArgs {
    /// The job
    job: PathBuf,
}

/// Runs the job and ends the process with its exit code.
///
/// # Errors
/// If the facade is not beside the command.
pub fn run(args: &HostArgs) -> Result<()> {
    let command = std::env::current_exe().context("cannot find out where the command phasecast is")?;
    let facade = library(&command, FACADE)?;
    std::process::exit(phasecast_checkpoint::host::run(&args.job, &facade))
}
