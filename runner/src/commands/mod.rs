//! The subcommands, one file each.
pub mod compare;
pub mod completions;
pub mod dump;
pub mod inspect;
pub mod man;
pub mod report;
pub mod stat;

use crate::cli::Command;
use anyhow::Result;

/// Runs a subcommand.
pub fn run(command: Command) -> Result<()> {
    match command {
        Command::Stat(args) => stat::run(&args),
        Command::Dump(args) => dump::run(&args),
        Command::Inspect(args) => inspect::run(&args),
        Command::Compare(args) => compare::run(&args),
        Command::Report(args) => report::run(&args),
        Command::Man(args) => man::run(&args),
        Command::Completions(args) => completions::run(&args),
    }
}
