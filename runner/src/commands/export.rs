//! `phasecast export`: a trace for other tools.
use crate::output::{self, bytes};
use crate::progress;
use anyhow::Result;
use clap::{Args, ValueEnum};
use phasecast_trace::Trace;
use phasecast_trace::export::{Format, export};
use serde_json::json;
use std::path::PathBuf;

/// Export a trace for other tools: CSV, or JSON for Perfetto and Chrome's trace viewer
#[derive(Debug, Args)]
pub struct ExportArgs {
    /// The trace (a folder)
    #[arg(value_name = "TRACE")]
    trace: PathBuf,
    /// The format
    #[arg(long, value_enum)]
    format: Form,
    /// The file to write
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Form {
    /// Open at <https://ui.perfetto.dev>
    Perfetto,
    /// One line a call, the columns of `phasecast dump`
    Csv,
}

/// Exports.
pub fn run(args: &ExportArgs) -> Result<()> {
    output::refuse_existing(&args.output)?;
    let trace = Trace::open(&args.trace)?;
    let format = match args.format {
        Form::Perfetto => Format::Perfetto,
        Form::Csv => Format::Csv,
    };
    let bar = progress::bar("exporting", "items");
    export(&trace, format, &args.output, &|done, of| bar.set(done, of))?;
    bar.finish();
    let length = args.output.metadata().map_or(0, |file| file.len());
    if args.json {
        return output::json(&json!({ "file": args.output, "bytes": length, "ranks": trace.size() }));
    }
    output::words(&format!("{} of {} ranks are in {}", bytes(length), trace.size(), args.output.display()))
}
