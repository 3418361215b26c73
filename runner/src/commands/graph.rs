//! `phasecast graph`: the execution graph of a trace: in numbers, as DOT or JSON, or whether two events are ordered.
use crate::exit::Refusal;
use crate::output::{self, count, note};
use crate::progress;
use anyhow::Result;
use clap::{Args, ValueEnum};
use phasecast_trace::atomic::AtomicFile;
use phasecast_trace::{Rank, Trace};
use phasecast_transform::graph::{Counts, EventId, Form, Relation, Window, count as counts_of, draw, relation};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::io::{BufWriter, Write};
use std::ops::Range;
use std::path::PathBuf;

/// Events of each rank that are written unless more are asked for.
const EVENTS: u64 = 200;

/// Show the execution graph of a trace: its events, and which must come before which
///
/// Vertices are events: sends, completed receives, and ranks' parts in collectives. Edges lead from an event to the
/// next one of its thread, and from a send to its receive; a collective joins its members. Without --format the graph is
/// told in numbers. With --from and --to it is told whether two events are ordered or concurrent. Events are named
/// RANK:NUMBER, with numbers from 0 on each rank.
#[derive(Debug, Args)]
pub struct GraphArgs {
    /// The trace (a folder)
    #[arg(value_name = "TRACE")]
    trace: PathBuf,
    /// Write vertices and edges in this format
    #[arg(long, value_enum)]
    format: Option<FormArg>,
    /// The file to write [default: standard output]
    #[arg(short, long, value_name = "FILE", requires = "format")]
    output: Option<PathBuf>,
    /// Only these events of each rank, as in 100..300 [default: the first 200]
    #[arg(long, value_name = "FIRST..END", value_parser = range, requires = "format")]
    events: Option<Range<u64>>,
    /// All events, however many there are
    #[arg(long, conflicts_with = "events", requires = "format")]
    all: bool,
    /// Only these ranks, as in 0,3
    #[arg(long, value_name = "RANKS", value_delimiter = ',', requires = "format")]
    ranks: Vec<u32>,
    /// Ask whether this event is before another
    #[arg(long, value_name = "EVENT", requires = "to", conflicts_with = "format")]
    from: Option<EventId>,
    /// The other event
    #[arg(long, value_name = "EVENT", requires = "from")]
    to: Option<EventId>,
    /// Print one JSON object
    #[arg(long, conflicts_with = "format")]
    json: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum FormArg {
    /// For Graphviz: dot -Tsvg
    Dot,
    /// One object: ranks, window, events, edges
    Json,
}

fn range(text: &str) -> Result<Range<u64>, String> {
    let parsed = text.split_once("..").and_then(|(first, end)| Some(first.parse().ok()?..end.parse().ok()?));
    parsed.filter(|range| range.start < range.end).ok_or_else(|| "two numbers of events, as in 100..300".into())
}

/// Shows.
///
/// # Errors
/// If the trace cannot be read, has no such event, or the output cannot be written.
pub fn run(args: &GraphArgs) -> Result<()> {
    if let Some(output) = &args.output {
        output::refuse_existing(output)?;
    }
    let trace = Trace::open(&args.trace)?;
    for rank in trace.ranks() {
        if let Some(reason) = trace.cut_reason(rank) {
            note(&format!("rank {rank} is not complete ({reason}): the graph holds what was recorded"));
        }
    }
    if let Some(rank) = args.ranks.iter().find(|rank| **rank >= trace.size()) {
        let what = format!("{} has ranks 0 to {}, not {rank}.", args.trace.display(), trace.size() - 1);
        return Err(Refusal::Input(what).into());
    }
    let bar = progress::bar("walking", "events");
    let items = trace.items();
    let progress = |done: u64| bar.set(done.min(items), items);
    match (args.format, args.from, args.to) {
        (Some(form), ..) => write(args, &trace, form, &progress),
        (None, Some(from), Some(to)) => {
            let relation = relation(&trace, from, to, &progress)?;
            bar.finish();
            if args.json {
                return output::json(&json!({ "from": from.to_string(), "to": to.to_string(), "order": relation }));
            }
            output::words(&match relation {
                Relation::Before => format!("{from} is before {to}"),
                Relation::After => format!("{to} is before {from}"),
                Relation::Concurrent => format!("{from} and {to} are concurrent"),
                Relation::Joined => format!("{from} and {to} are members of one collective"),
                Relation::Same => format!("{from} is one event"),
            })
        }
        _ => {
            let counts = counts_of(&trace, &progress)?;
            bar.finish();
            if args.json { output::json(&object(&trace, &counts)?) } else { output::words(&table(&trace, &counts)) }
        }
    }
}

fn write(args: &GraphArgs, trace: &Trace, form: FormArg, progress: &dyn Fn(u64)) -> Result<()> {
    let events = match (&args.events, args.all) {
        (Some(range), _) => range.clone(),
        (None, true) => 0..u64::MAX,
        (None, false) => 0..EVENTS,
    };
    let window = Window { events, ranks: args.ranks.clone() };
    let form = match form {
        FormArg::Dot => Form::Dot,
        FormArg::Json => Form::Json,
    };
    let drawn = match &args.output {
        Some(path) => {
            let mut file = AtomicFile::create(path)?;
            let drawn = draw(trace, form, &window, &mut file, progress)?;
            file.finish()?;
            drawn
        }
        None => {
            let mut out = BufWriter::with_capacity(1 << 18, std::io::stdout().lock());
            let drawn = draw(trace, form, &window, &mut out, progress)?;
            out.flush()?;
            drawn
        }
    };
    // With --ranks there is more in any case: of ranks of which it is cut off so many are written.
    if drawn.more && drawn.events >= EVENTS && args.events.is_none() && !args.all {
        let (written, all) = (count(drawn.events), "--all writes all of them, --events FIRST..END others");
        note(&format!("{written} events are written, the first {EVENTS} of each rank; {all}"));
    }
    Ok(())
}

fn object(trace: &Trace, counts: &Counts) -> Result<Value> {
    let mut object = serde_json::to_value(counts)?;
    let cut = |rank: Rank| Some(json!({ "rank": rank.0, "reason": trace.cut_reason(rank)? }));
    object["program"] = json!(program(trace));
    object["ranks"] = json!(trace.size());
    object["truncated_ranks"] = trace.ranks().filter_map(cut).collect();
    Ok(object)
}

fn program(trace: &Trace) -> &str {
    trace.header(Rank(0)).map_or("", |header| &header.program)
}

fn table(trace: &Trace, counts: &Counts) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: String| {
        let _ = writeln!(text, "{name:<14} {value}");
    };
    line("program", output::clean(program(trace)));
    line("ranks", count(trace.size().into()));
    let Counts { events, sends, receives, members, wildcards, .. } = *counts;
    let of = format!("{} sends, {} receives, {} of collectives", count(sends), count(receives), count(members));
    line("events", format!("{}: {of}", count(events)));
    line("from any", format!("{} of the receives", count(wildcards)));
    let Counts { program_edges, message_edges, joins, .. } = *counts;
    let edges = format!("{} along programs, {} of messages", count(program_edges), count(message_edges));
    line("edges", format!("{edges}; {} collectives join their members", count(joins)));
    line("longest chain", format!("{} events", count(counts.longest_chain)));
    let loose = counts.unmatched;
    if loose != Default::default() {
        let (sends, receives, members) = (count(loose.sends), count(loose.receives), count(loose.members));
        line(
            "unmatched",
            format!("{sends} sends, {receives} receives, {members} parts in collectives that join nobody"),
        );
    }
    text
}
