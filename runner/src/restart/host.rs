//! `phasecast host JOB`: the process of one rank in a split run, which the launcher starts in place of the program. It is
//! no command for users, and it must not have done anything before: hence it is looked for before the command line is
//! read.
use crate::exit::report;
use crate::launch::in_path;
use crate::trace_launch::{library, preloading};
use anyhow::Context;
use phasecast_checkpoint::job::Program;
use phasecast_trace::awaited::VARIABLE;
use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// Name of the library that stands for MPI in the upper half.
const FACADE: &str = "libphasecast_facade.so";

/// Runs as a host if that is what the arguments say: `host JOB` of the job's program, `host JOB is FILE NAME ARGUMENTS` of
/// what a process is that was awaited, and `host JOB awaits WHAT COMMAND` becomes a command that starts such a process.
pub fn run_if_asked() -> Option<ExitCode> {
    let mut args = std::env::args_os().skip(1);
    if args.next()? != "host" {
        return None;
    }
    let job = PathBuf::from(args.next()?);
    let rest: Vec<OsString> = args.collect();
    let program = match rest.as_slice() {
        [word, awaited, program, args @ ..] if word == "awaits" => {
            return Some(report(&follow(awaited, program, args)));
        }
        [word, file, name, args @ ..] if word == "is" => Some(named(Path::new(file), name, args)),
        _ => None,
    };
    let code = phasecast_checkpoint::host::run(&job, &facade(), program);
    Some(ExitCode::from(u8::try_from(code).unwrap_or(1)))
}

/// Becomes a command, with the tracer in it and in all that it starts, which looks out for the awaited process; returns why
/// it could not. What that process has open then is its own or the command's, not the launcher's.
fn follow(awaited: &OsStr, program: &OsStr, args: &[OsString]) -> anyhow::Error {
    let exe = std::env::current_exe().context("cannot find out where the command phasecast is");
    let preload = match exe.and_then(|exe| preloading(&exe)) {
        Ok(preload) => preload,
        Err(error) => return error,
    };
    phasecast_checkpoint::set_aside();
    let mut command = Command::new(program);
    let error = command.args(args).env("LD_PRELOAD", preload).env(VARIABLE, awaited).exec();
    anyhow::Error::new(error).context(format!("cannot start {}", program.display()))
}

/// The program that a process is, by the name that it was called by if that leads to its file.
fn named(file: &Path, name: &OsStr, args: &[OsString]) -> Program {
    let called = in_path(name).and_then(|path| std::path::absolute(path).ok());
    let path = called.filter(|path| path.canonicalize().is_ok_and(|path| path == file)).unwrap_or_else(|| file.into());
    Program { path, args: args.iter().map(|arg| arg.to_string_lossy().into_owned()).collect() }
}

/// Where it lies, or ought to: only a job that saves images needs it, and says so.
fn facade() -> PathBuf {
    let command = std::env::current_exe().unwrap_or_default();
    library(&command, FACADE).unwrap_or_else(|_| command.with_file_name(FACADE))
}
