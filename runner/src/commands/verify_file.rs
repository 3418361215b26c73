//! `phasecast verify-file`: every checksum of a signature.
use crate::output::{self, count};
use crate::restart::save::digest;
use crate::signature::{Signature, container_of};
use anyhow::Result;
use clap::Args;
use phasecast_trace::TraceError;
use serde_json::json;
use std::path::PathBuf;

/// Check that a signature is whole: every checksum, every rank's image at every cut
#[derive(Args, Debug)]
pub struct VerifyFileArgs {
    /// The signature
    #[arg(value_name = "SIGNATURE")]
    signature: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Runs the command.
///
/// # Errors
/// If the file is damaged or not complete.
pub fn run(args: &VerifyFileArgs) -> Result<()> {
    let signature = Signature::load(&args.signature)?;
    let (_, images) = container_of(&args.signature)?;
    let checked = images.map(|images| images.verify()).transpose()?.unwrap_or_default();
    let told = signature.manifest.images.as_ref().map_or(0, |images| images.cuts.len());
    if checked.cuts != told || (told > 0 && checked.ranks != signature.manifest.ranks) {
        let what = format!(
            "its manifest tells of {told} cuts of {} ranks, but it holds {} of {}",
            signature.manifest.ranks, checked.cuts, checked.ranks
        );
        return Err(TraceError::corrupt(&args.signature, 0, what).into());
    }
    let (sha256, bytes) = digest(&args.signature)?;
    if args.json {
        return output::json(&json!({
            "ok": true, "kind": signature.manifest.kind, "bytes": bytes, "sha256": sha256, "ranks": signature.manifest.ranks,
            "cuts": checked.cuts, "states": checked.states, "pages": checked.pages,
        }));
    }
    output::words(&format!(
        "{}: whole, {}, {} cuts of {} ranks with {} pages\nsha256:{sha256}\n",
        args.signature.display(),
        output::bytes(bytes),
        checked.cuts,
        signature.manifest.ranks,
        count(checked.pages)
    ))
}
