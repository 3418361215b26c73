//! The command `phasecast`: reads the command line, runs one subcommand, and turns its outcome into an exit code.
mod cli;
mod commands;
mod exit;
mod launch;
mod live;
mod output;
mod progress;
mod signature;
mod trace_launch;

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = cli::Cli::parse();
    match commands::run(cli.command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => exit::report(&error),
    }
}
