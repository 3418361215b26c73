//! `phasecast man`: manual pages, generated from the definition of the command line.
use crate::cli;
use crate::output;
use anyhow::{Context, Result};
use clap::Args;
use std::path::PathBuf;

/// Write the manual pages, one for each subcommand, into a folder
#[derive(Debug, Args)]
pub struct ManArgs {
    /// The folder; it is made if it does not exist
    dir: PathBuf,
}

/// Writes the pages. Pages of an earlier version are replaced: they are generated files.
pub fn run(args: &ManArgs) -> Result<()> {
    std::fs::create_dir_all(&args.dir).with_context(|| format!("cannot make the folder {}", args.dir.display()))?;
    clap_mangen::generate_to(cli::command(), &args.dir)
        .with_context(|| format!("cannot write manual pages into the folder {}", args.dir.display()))?;
    output::note(&format!(
        "manual pages are in {}; read one with `{}`",
        args.dir.display(),
        output::shell_with("man", &args.dir.join("phasecast.1"))
    ));
    Ok(())
}
