//! The command `phasecast`: reads the command line, runs one subcommand, and turns its outcome into an exit code.
mod base;
mod cli;
mod commands;
mod end;
mod exit;
mod files;
mod launch;
mod live;
mod orphans;
mod output;
mod perturb;
mod progress;
mod restart;
mod scratch;
mod signature;
mod skeleton;
mod trace_launch;
mod unfinished;

use clap::FromArgMatches;
use std::process::ExitCode;

fn main() -> ExitCode {
    if let Some(code) = restart::host::run_if_asked() {
        return code;
    }
    let given = cli::command().get_matches();
    let cli = cli::Cli::from_arg_matches(&given).unwrap_or_else(|error| error.exit());
    // `trace` becomes the program, which is to find the limit as it was, and `measure` is a rank like those of a program.
    if !matches!(cli.command, cli::Command::Trace(_) | cli::Command::Measure(_)) {
        files::raise();
    }
    match commands::run(cli.command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => exit::report(&error),
    }
}
