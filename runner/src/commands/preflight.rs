//! `phasecast preflight`: will a signature with images run on this machine?
use crate::exit::{Refusal, UNFIT, code};
use crate::launch::{catch_interrupts, go_on};
use crate::output;
use crate::restart::preflight::{failing, launch, launcher, machine, no_launcher, refuse, table};
use crate::scratch::Scratch;
use crate::signature::Signature;
use anyhow::Result;
use clap::Args;
use serde_json::json;
use std::path::PathBuf;

/// Check whether this machine can restart the images of a signature
///
/// Processor, kernel, memory and disk are checked, and an MPI is started with as many ranks as the signature has. What
/// fails is named with what to do about it; the exit code is then 4.
#[derive(Args, Debug)]
pub struct PreflightArgs {
    /// The signature
    #[arg(value_name = "SIGNATURE")]
    signature: PathBuf,
    /// How to start the ranks instead of with the mpirun found; `{n}` stands for the number of ranks
    #[arg(long, value_name = "COMMAND")]
    launcher: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Runs the command.
///
/// # Errors
/// If the signature has no images, or a check fails.
pub fn run(args: &PreflightArgs) -> Result<()> {
    let signature = Signature::load(&args.signature)?;
    let manifest = &signature.manifest;
    let Some(images) = &manifest.images else {
        let what =
            format!("{} has no images: nothing is restarted, the program itself is run.", args.signature.display());
        return Err(Refusal::Input(what).into());
    };
    catch_interrupts();
    let mut checks = machine(images, manifest.ranks, args.launcher.is_some());
    if failing(&checks).is_none() {
        let scratch = Scratch::here()?;
        checks.push(match launcher(args.launcher.as_deref(), manifest) {
            Ok(launcher) => launch(&signature, images, &args.signature, &launcher, scratch.path()),
            Err(error) if code(&error) == UNFIT => no_launcher(&error),
            Err(error) => return Err(error),
        });
        go_on()?;
    }
    if args.json {
        output::json(&json!({ "checks": checks }))?;
    } else {
        output::words(&table(&checks))?;
    }
    refuse(&checks)
}
