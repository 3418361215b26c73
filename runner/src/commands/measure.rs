//! `phasecast measure`: one rank of a measurement. Started under the launcher by `characterize`, not by people.
use anyhow::Result;
use clap::Args;
use phasecast_checkpoint::complain;
use phasecast_transform::characterize::{self, Effort};
use std::path::PathBuf;

/// Run one rank of a measurement of this machine
#[derive(Debug, Args)]
pub struct MeasureArgs {
    /// Where rank 0 leaves the result
    folder: PathBuf,
    /// Ranks that there should be
    ranks: u32,
    /// Fewer repetitions
    #[arg(long)]
    quick: bool,
    /// Only start and end MPI
    #[arg(long)]
    life: bool,
}

/// Runs it and ends the process.
pub fn run(args: &MeasureArgs) -> Result<()> {
    if args.life {
        if let Err(reason) = characterize::live(&args.folder) {
            complain(reason);
            std::process::exit(1);
        }
        return Ok(());
    }
    let effort = if args.quick { Effort::QUICK } else { Effort::FULL };
    if let Err(reason) = characterize::run(&args.folder, args.ranks, &effort) {
        // `characterize` tells the user what is said so.
        complain(reason);
        std::process::exit(1);
    }
    Ok(())
}
