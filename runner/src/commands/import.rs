//! `phasecast import`: other tools' traces as ours.
use crate::output::{self, clean, count};
use crate::progress;
use anyhow::Result;
use clap::Args;
use phasecast_trace::import::{Format, import};
use serde_json::json;
use std::path::PathBuf;

/// Import another tool's trace: liballprof's text, or an OTF2 archive
///
/// The format is found out from the files. OTF2 is read through the system's library (Debian's package
/// libopen-trace-format2-dev), which is needed for it only.
#[derive(Debug, Args)]
pub struct ImportArgs {
    /// The files of one run, or the folder that holds them; of OTF2, the anchor file *.otf2
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The trace to write (a folder)
    #[arg(short, long, value_name = "TRACE")]
    output: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Imports.
pub fn run(args: &ImportArgs) -> Result<()> {
    output::refuse_existing(&args.output)?;
    let bar = progress::bar("importing", "bytes");
    let imported = import(&args.files, &args.output, &|done, of| bar.set(done, of))?;
    bar.finish();
    let format = match imported.format {
        Format::Liballprof => "liballprof",
        Format::Otf2 => "otf2",
    };
    if args.json {
        return output::json(&json!({
            "format": format,
            "ranks": imported.ranks,
            "calls": imported.calls,
            "notes": imported.notes,
            "trace": args.output,
        }));
    }
    for note in &imported.notes {
        output::note(&clean(note));
    }
    let (calls, ranks) = (count(imported.calls), count(imported.ranks.into()));
    output::words(&format!("{calls} calls of {ranks} ranks ({format}) are in {}", args.output.display()))
}
