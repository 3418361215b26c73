//! `phasecast completions`: what a shell needs to complete the command line, generated from its definition.
use crate::cli;
use anyhow::Result;
use clap::Args;
use clap_complete::Shell;
use std::io::Write;

/// Print the completion script of a shell
#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

/// Prints the script.
pub fn run(args: &CompletionsArgs) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut cli::command(), "phasecast", &mut script);
    let mut out = std::io::stdout().lock();
    out.write_all(&script)?;
    Ok(out.flush()?)
}
