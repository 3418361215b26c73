//! `phasecast dump`: one line a call, streamed. The columns are those of [`phasecast_trace::export`].
use crate::exit::Refusal;
use anyhow::{Error, Result};
use clap::{Args, ValueEnum};
use phasecast_trace::export::{PartRow, columns, each_row};
use phasecast_trace::{Rank, Trace};
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

/// Print a trace, one line a call
///
/// Ranks follow one another, each rank's calls in the order of their exits. Times are nanoseconds from the start of
/// the run. The parts of a call are the messages that it completed or started; in CSV they read
/// kind:peer:tag:bytes:communicator, with spaces between. Where computation was counted, what was counted before the call
/// comes last. JSON is one object a line.
#[derive(Debug, Args)]
pub struct DumpArgs {
    /// The trace (a folder)
    #[arg(value_name = "TRACE")]
    trace: PathBuf,
    /// The form of a line
    #[arg(long, value_enum, default_value_t = Form::Csv)]
    format: Form,
    /// Only this rank
    #[arg(long)]
    rank: Option<u32>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Form {
    Csv,
    Json,
}

/// Prints. What was read before damage is found is printed too.
pub fn run(args: &DumpArgs) -> Result<()> {
    let trace = Trace::open(&args.trace)?;
    if let Some(rank) = args.rank.filter(|&rank| rank >= trace.size()) {
        let what = format!("{} has ranks 0 to {}, not {rank}.", args.trace.display(), trace.size() - 1);
        return Err(Refusal::Input(what).into());
    }
    let ranks: Vec<Rank> = trace.ranks().filter(|rank| args.rank.is_none_or(|only| rank.0 == only)).collect();
    let mut out = BufWriter::with_capacity(1 << 18, io::stdout().lock());
    let dumped = match args.format {
        Form::Csv => csv(&trace, &ranks, &mut out),
        Form::Json => json(&trace, &ranks, &mut out),
    };
    let flushed = out.flush();
    dumped?;
    Ok(flushed?)
}

fn csv(trace: &Trace, ranks: &[Rank], out: &mut impl Write) -> Result<()> {
    writeln!(out, "{}", columns(trace))?;
    let counted = trace.counters().is_some();
    let mut lines = csv::WriterBuilder::new().has_headers(false).from_writer(out);
    for rank in ranks {
        each_row::<Error>(trace, *rank, |row| {
            row.write_csv(counted, &mut lines).map_err(|error| failure(error).into())
        })?;
    }
    Ok(lines.flush()?)
}

/// The error of the system in one of CSV, so that a closed pipe is known for what it is.
fn failure(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => io::Error::other(format!("a line cannot be written: {other:?}")),
    }
}

fn json(trace: &Trace, ranks: &[Rank], out: &mut impl Write) -> Result<()> {
    for rank in ranks {
        each_row::<Error>(trace, *rank, |row| {
            let parts: Vec<PartRow> = row.parts.iter().map(PartRow::from).collect();
            serde_json::to_writer(&mut *out, &row.with_parts(parts)).map_err(io::Error::from)?;
            Ok(out.write_all(b"\n")?)
        })?;
    }
    Ok(())
}
