//! `phasecast verify`: a prediction by restarts on the base machine beside true runs.
use crate::commands::compare;
use crate::commands::predict::{PRECISION, duration, introduce};
use crate::exit::Refusal;
use crate::launch::{catch_interrupts, program_path};
use crate::output::{self, percent, seconds};
use crate::restart::predict::Wish;
use crate::restart::preflight::fit_launcher;
use crate::restart::save::digest;
use crate::restart::verify::{true_runs, verify};
use crate::signature::Signature;
use anyhow::{Context, Result};
use clap::Args;
use serde_json::json;
use std::path::PathBuf;

/// Test a signature with images on its base machine: does it predict its own program?
///
/// The program is run in full, the signature predicts it, and the errors are printed: in total against the median of
/// the true runs, phase by phase against the base runs.
#[derive(Args, Debug)]
pub struct VerifyArgs {
    /// The signature
    #[arg(value_name = "SIGNATURE")]
    signature: PathBuf,
    /// True runs
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: u32,
    /// As for `phasecast predict`
    #[arg(long, value_name = "TIME", value_parser = duration)]
    budget: Option<f64>,
    /// How to start the ranks instead of with the mpirun that fits the program; `{n}` stands for the
    /// number of ranks
    #[arg(long, value_name = "COMMAND")]
    launcher: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Runs the command.
///
/// # Errors
/// If the signature has no images, or the program or a restart fails.
pub fn run(args: &VerifyArgs) -> Result<()> {
    let signature = Signature::load(&args.signature)?;
    let manifest = &signature.manifest;
    if manifest.images.is_none() {
        let what = format!(
            "{} has no images to restart. A live signature is tested with `phasecast predict --aet`.",
            args.signature.display()
        );
        return Err(Refusal::Input(what).into());
    }
    same_program(&signature)?;
    let launcher = fit_launcher(args.launcher.as_deref(), manifest)?;
    catch_interrupts();
    introduce(&signature);
    let truth = true_runs(&launcher, &manifest.command, args.runs)?;
    let wish = Wish { launcher: &launcher, budget_s: args.budget, precision: PRECISION };
    let prediction = verify(&signature, &args.signature, &wish, &truth)?;
    if args.json {
        let mut object = serde_json::to_value(&prediction)?;
        object["true_runs_s"] = json!(truth);
        return output::json(&object);
    }
    let mut text = compare::one(&prediction);
    let runs: Vec<String> = truth.iter().map(|s| seconds(*s)).collect();
    text.push_str(&format!("true runs: {}\n", runs.join(", ")));
    let off: Vec<String> =
        prediction.phases.iter().filter_map(|p| Some(format!("{} {}", p.id, percent(p.pete?)))).collect();
    text.push_str(&format!("error by phase: {}\n", off.join(", ")));
    output::words(&text)
}

/// Refuses to compare with another program than the one that was signed.
fn same_program(signature: &Signature) -> Result<()> {
    let name = &signature.manifest.command[0];
    let path = program_path(name).context("the program is needed for a true run")?;
    let (sha256, _) = digest(&path)?;
    match &signature.manifest.images {
        Some(images) if images.program.sha256 != sha256 => {
            let what = format!("{} is not the program that was signed: it has changed. Sign it again.", path.display());
            Err(Refusal::Input(what).into())
        }
        _ => Ok(()),
    }
}
