//! `phasecast host JOB`: the process of one rank in a split run, which the launcher starts in place of the program. It is
//! no command for users, and it must not have done anything before: hence it is looked for before the command line is
//! read.
use crate::trace_launch::library;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Name of the library that stands for MPI in the upper half.
const FACADE: &str = "libphasecast_facade.so";

/// Runs as a host if that is what the arguments say.
pub fn run_if_asked() -> Option<ExitCode> {
    let mut args = std::env::args_os().skip(1);
    if args.next()? != "host" {
        return None;
    }
    let job = args.next()?;
    let code = phasecast_checkpoint::host::run(Path::new(&job), &facade());
    Some(ExitCode::from(u8::try_from(code).unwrap_or(1)))
}

/// Where it lies, or ought to: only a job that saves images needs it, and says so.
fn facade() -> PathBuf {
    let command = std::env::current_exe().unwrap_or_default();
    library(&command, FACADE).unwrap_or_else(|_| command.with_file_name(FACADE))
}
