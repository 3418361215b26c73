//! `phasecast predict`: by restarting the images of a signature, live, by running the program until its phases were seen,
//! or by running a skeleton.
use crate::commands::{compare, predict_skeleton};
use crate::exit::Refusal;
use crate::launch::catch_interrupts;
use crate::live;
use crate::output::{self, clean, note};
use crate::restart::manifest::Verified;
use crate::restart::predict::{self, Wish};
use crate::restart::preflight::fit_launcher;
use crate::restart::save::digest;
use crate::signature::Signature;
use anyhow::Result;
use clap::Args;
use phasecast_prediction::Prediction;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// The half-width that is enough where nothing is asked for, as a share of the prediction (`restart`).
pub const PRECISION: f64 = 0.02;
/// A signature that was as far off its own base, as a share, was made beside other work.
const DOUBTFUL: f64 = 0.25;

/// Predict the full run time of a program on this (target) machine
///
/// With images: they are restarted here, one after the other in one launch, and the phases timed; the program itself is
/// not needed. An image is code that will run: predict says whose it is, and --expect makes sure.
///
/// Without images, or with --live: the program is run under the tracer, only until the share or the precision asked for
/// is reached. It may be another build than the one that was signed (another MPI, say), with the same input and ranks.
/// A program whose phases do not come again runs to its end, and the prediction says so.
///
/// With --skeleton: the folder that `phasecast skeleton` wrote is built with the compiler that is here, run a few times,
/// and what its parts took is scaled. The source is code that will run.
#[derive(Args, Debug)]
pub struct PredictArgs {
    /// The signature, or the folder of a skeleton
    #[arg(value_name = "SIGNATURE")]
    signature: PathBuf,
    /// It is the folder of a skeleton: build and run it
    #[arg(long, conflicts_with_all = ["live", "share", "expect", "command"])]
    skeleton: bool,
    /// The compiler of the MPI that is here (skeleton) [default: mpicc]
    #[arg(long, value_name = "COMMAND", requires = "skeleton")]
    cc: Option<String>,
    /// Take a source that was changed since it was written (skeleton)
    #[arg(long, requires = "skeleton")]
    changed: bool,
    /// Run the program, although the signature has images
    #[arg(long)]
    live: bool,
    /// Stop when so much time was spent, as in 60s or 2m (images, skeleton) [default: 2 s and 2 % of the base run; of a
    /// skeleton, 2 s and 20 %]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    budget: Option<f64>,
    /// Stop as soon as the interval's half-width is at most this share of the prediction [default with images:
    /// 0.02, with a skeleton: 0.01]
    #[arg(long, value_name = "0..1", value_parser = share)]
    precision: Option<f64>,
    /// Refuse the signature unless the SHA-256 of the file is this
    #[arg(long, value_name = "sha256:DIGEST")]
    expect: Option<String>,
    /// Stop when this share of the run lies behind (live) [default: 0.3]
    #[arg(long, value_name = "0..1", value_parser = share)]
    share: Option<f64>,
    /// How to start the ranks instead of with the mpirun that fits the program; `{n}` stands for the
    /// number of ranks
    #[arg(long, value_name = "COMMAND")]
    launcher: Option<String>,
    /// The true run time in seconds, if it is known: the error is printed too
    #[arg(long, value_name = "SECONDS", value_parser = crate::cli::positive)]
    aet: Option<f64>,
    /// Write the prediction (JSON) to this file
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Print the prediction as one JSON object
    #[arg(long)]
    json: bool,
    /// The program and its arguments, if they are not those that were signed (live)
    #[arg(last = true, value_name = "PROGRAM")]
    command: Vec<String>,
}

fn share(text: &str) -> Result<f64, String> {
    text.parse().ok().filter(|share| *share > 0.0 && *share <= 1.0).ok_or_else(|| "a number above 0, at most 1".into())
}

/// A time in seconds: a number, with ms, s, m or h if you like.
pub fn duration(text: &str) -> Result<f64, String> {
    let number = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let factor = match &text[number.len()..] {
        "" | "s" => 1.0,
        "ms" => 1e-3,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err("a time as in 60s, 2m or 1h".into()),
    };
    let seconds = number.parse::<f64>().ok().map(|n| n * factor).filter(|s| *s > 0.0 && *s < 1e9);
    seconds.ok_or_else(|| "a time above 0, as in 60s, 2m or 1h".into())
}

/// Runs the command.
///
/// # Errors
/// If the signature cannot be read or is not the one expected, or what it starts fails.
pub fn run(args: &PredictArgs) -> Result<()> {
    let begun = Instant::now();
    if let Some(output) = &args.output {
        output::refuse_existing(output)?;
    }
    if let Some(expected) = &args.expect {
        expect(&args.signature, expected)?;
    }
    let prediction = if args.skeleton { by_skeleton(args, begun)? } else { by_signature(args, begun)? };
    tell(args, prediction)
}

fn by_skeleton(args: &PredictArgs, begun: Instant) -> Result<Prediction> {
    catch_interrupts();
    let wish = predict_skeleton::Wish {
        launcher: args.launcher.as_deref(),
        cc: args.cc.as_deref(),
        budget: args.budget,
        precision: args.precision.unwrap_or(PRECISION / 2.0),
        changed: args.changed,
    };
    predict_skeleton::predict(&args.signature, &wish, begun)
}

fn by_signature(args: &PredictArgs, begun: Instant) -> Result<Prediction> {
    if args.signature.is_dir() {
        let what = format!("{} is a folder and no signature. A skeleton's takes --skeleton.", args.signature.display());
        return Err(Refusal::Input(what).into());
    }
    let signature = Signature::load(&args.signature)?;
    let by_images = signature.manifest.images.is_some() && !args.live;
    catch_interrupts();
    if by_images {
        if !args.command.is_empty() || args.share.is_some() {
            let what = "images are restarted, no program is run: with a program or --share, give --live too";
            return Err(Refusal::Usage(what.into()).into());
        }
        introduce(&signature);
        let precision = args.precision.unwrap_or(PRECISION);
        let launcher = fit_launcher(args.launcher.as_deref(), &signature.manifest)?;
        let wish = Wish { launcher: &launcher, budget_s: args.budget, precision };
        predict::predict(&signature, &args.signature, &wish, begun)
    } else {
        if args.budget.is_some() {
            let what = "--budget is for images, and this prediction is live: use --share";
            return Err(Refusal::Usage(what.into()).into());
        }
        let wish = live::Wish {
            share: args.share.unwrap_or(live::SHARE),
            precision: args.precision,
            launcher: args.launcher.as_deref(),
            command: &args.command,
        };
        live::predict(&signature, &wish, begun)
    }
}

fn tell(args: &PredictArgs, mut prediction: Prediction) -> Result<()> {
    if let Some(aet) = args.aet {
        prediction.with_true_time(aet);
    }
    let told = if args.json { output::json(&prediction) } else { output::words(&compare::one(&prediction)) };
    if let Some(output) = &args.output {
        output::save(output, prediction.to_json().as_bytes())?;
    }
    told
}

/// Says whose signature it is: its images are code.
pub fn introduce(signature: &Signature) {
    let Some(images) = &signature.manifest.images else { return };
    let digest: String = images.program.sha256.chars().take(16).collect();
    note(&format!(
        "{} ({digest}), signed by {}@{}{}",
        clean(&images.program.path),
        clean(&images.user),
        clean(&signature.manifest.machine.host),
        match &images.verified {
            Some(Verified { pete, .. }) => {
                let advice = if *pete > DOUBTFUL { ": sign it again where nothing else runs" } else { "" };
                format!(", {} off its own base{advice}", output::percent(*pete))
            }
            None => ", not verified".into(),
        }
    ));
}

/// Refuses a file whose digest is another.
fn expect(path: &Path, expected: &str) -> Result<()> {
    let Some(wanted) = expected.strip_prefix("sha256:").filter(|d| d.len() == 64) else {
        let what = "--expect takes sha256: and 64 hexadecimal digits, as `phasecast verify-file` prints them";
        return Err(Refusal::Usage(what.into()).into());
    };
    if !path.is_file() {
        return Err(Refusal::missing(path).into());
    }
    let (found, _) = digest(path)?;
    if !found.eq_ignore_ascii_case(wanted) {
        let path = path.display();
        return Err(Refusal::Input(format!(
            "{path} is not the signature expected: its digest is sha256:{found}. Get it again from who made it."
        ))
        .into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        assert_eq!(
            (duration("60s"), duration("2m"), duration("1.5"), duration("250ms")),
            (Ok(60.0), Ok(120.0), Ok(1.5), Ok(0.25))
        );
        assert!(
            duration("0").is_err() && duration("-1s").is_err() && duration("s").is_err() && duration("3 days").is_err()
        );
    }
}
