//! `phasecast report`: one HTML page to look at, of a prediction.
use crate::exit::Refusal;
use crate::output;
use anyhow::Result;
use clap::Args;
use phasecast_prediction::Prediction;
use phasecast_prediction::report::Report;
use phasecast_trace::container::Container;
use std::path::{Path, PathBuf};

/// Write a report as one HTML page: phases, times on base and target, ranks over time
///
/// The page needs no network and no other file.
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// Phases, a signature, or a prediction
    file: PathBuf,
    /// The page to write
    #[arg(short, long, value_name = "HTML")]
    output: PathBuf,
}

/// Writes the page.
pub fn run(args: &ReportArgs) -> Result<()> {
    output::refuse_existing(&args.output)?;
    let report = read(&args.file)?;
    output::save(&args.output, report.to_html().as_bytes())
}

fn read(path: &Path) -> Result<Report> {
    if path.is_dir() {
        let what = "it is a folder. Analyse a trace first: `phasecast analyze TRACE -o FILE`.";
        return Err(Refusal::Input(format!("{} cannot be reported: {what}", path.display())).into());
    }
    match Container::kind_of(path).as_deref() {
        _ => Ok(Report::of_prediction(&Prediction::read(path)?)),
    }
}
