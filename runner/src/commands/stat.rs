//! `phasecast stat`: what is in a trace, in numbers. The numbers come from [`phasecast_trace::summary`].
use crate::output::{self, bytes, clean, count, percent, seconds};
use crate::progress;
use anyhow::Result;
use clap::Args;
use phasecast_trace::Trace;
use phasecast_trace::summary::{Computed, Summary};
use std::fmt::Write;
use std::path::PathBuf;

/// Print what is in a trace: ranks, events, calls by procedure, bytes, and what is missing
///
/// Events are communications: sends, completed receives, a rank's part in a collective. Bytes per event are the bytes
/// of the stored chunks per recorded item (a call, or one of the messages that a call completed); "raw" is before
/// compression. Unmatched messages have only one end in the trace; pending receives were posted and never completed.
#[derive(Debug, Args)]
pub struct StatArgs {
    /// The trace (a folder)
    #[arg(value_name = "TRACE")]
    trace: PathBuf,
    /// Leave out the table of calls
    #[arg(long)]
    summary: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Summarises.
pub fn run(args: &StatArgs) -> Result<()> {
    let trace = Trace::open(&args.trace)?;
    let bar = progress::bar("reading", "items");
    let summary = Summary::of(&trace, &|done, of| bar.set(done, of))?;
    bar.finish();
    if args.json {
        return output::json(&summary);
    }
    output::words(&print(&summary, !args.summary))
}

/// The summary in words; with `calls`, the table of calls too.
pub fn print(summary: &Summary, calls: bool) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: &str| {
        let _ = writeln!(text, "{name:<18} {value}");
    };
    line("program", &clean(&summary.program));
    line("MPI", &clean(&summary.mpi));
    line("ranks", &count(u64::from(summary.ranks)));
    line("events", &count(summary.events));
    line("run time", &seconds(summary.duration_s));
    line("on disk", &bytes(summary.bytes_on_disk));
    let (stored, raw) = (summary.bytes_per_event, summary.bytes_per_event_raw);
    line("bytes per event", &format!("{stored:.3} ({raw:.3} before compression)"));
    line("unmatched", &format!("{} messages", count(summary.unmatched)));
    line("pending", &format!("{} receives", count(summary.pending)));
    if let Some(share) = summary.tracer_share {
        line("tracer's share", &format!("{:.3} % of the run time", share * 100.0));
    }
    if let Some(computed) = &summary.computed {
        computed_lines(computed, &mut line);
    }
    for cut in &summary.truncated_ranks {
        let at = format!("after {} calls, at {}: {}", count(cut.calls), seconds(cut.at_s), clean(&cut.reason));
        line(&format!("rank {} is cut", cut.rank), &at);
    }
    if calls && !summary.calls.is_empty() {
        let _ = writeln!(text, "\n{}", call_table(summary));
    }
    text
}

/// What was counted of computation.
fn computed_lines(computed: &Computed, line: &mut impl FnMut(&str, &str)) {
    let share = percent(computed.counted_s / computed.computing_s.max(f64::MIN_POSITIVE));
    line("counted", &format!("{} in {share} of the time between calls", clean(&computed.counters.names())));
    let (instructions, cycles, misses) = (computed.counts.instructions, computed.counts.cycles, computed.counts.misses);
    match (computed.instructions_per_cycle, computed.memory_bytes_per_s) {
        (Some(rate), Some(memory)) => {
            line("instructions", &format!("{}, {rate:.2} a cycle", count(instructions)));
            line("from memory", &format!("{} a second of computation", bytes(memory as u64)));
        }
        _ => line("sums", &[instructions, cycles, misses].map(count).join(", ")),
    }
}

fn call_table(summary: &Summary) -> comfy_table::Table {
    let total: u64 = summary.calls.values().sum();
    let mut calls: Vec<(&String, u64)> = summary.calls.iter().map(|(name, n)| (name, *n)).collect();
    calls.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
    let mut table = output::table(&["procedure", "calls", "share"], &[1, 2]);
    for (name, calls) in calls {
        table.add_row([clean(name), count(calls), percent(calls as f64 / total.max(1) as f64)]);
    }
    table
}
