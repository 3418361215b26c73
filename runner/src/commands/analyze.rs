//! `phasecast analyze`: the phases of a traced program, as a table, as JSON, and as a file.
use crate::cli::{ClockArg, MethodArg};
use crate::output::{self, clean, count, percent, seconds, short};
use crate::progress;
use anyhow::Result;
use clap::Args;
use phasecast_analyzer::{Analysis, Method, Phase, Settings, analyze};
use phasecast_trace::Trace;
use serde_json::Value;
use std::fmt::Write;
use std::path::PathBuf;

/// Occurrences or ranges of them that a table names.
const MOST_RANGES: usize = 4;

/// Find the phases of a traced program and their weights
///
/// A phase is a piece of the run that repeats; its weight is how often it does. Planned are the occurrences that must
/// be measured to know the whole run. A second trace of the same program on the same machine tells levels of time
/// from noise, and shows whether the program does the same each time.
#[derive(Debug, Args)]
pub struct AnalyzeArgs {
    /// The trace, and further base runs of the same program
    #[arg(required = true, value_name = "TRACE")]
    traces: Vec<PathBuf>,
    /// Write the phases to this file, for `phasecast report`
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// How to find phases: marker looks for recurring patterns of communication, pbb follows the paper on PAS2P
    #[arg(long, value_enum, default_value_t = MethodArg::Marker)]
    method: MethodArg,
    /// By how much similar blocks may differ in volume and time (for pbb)
    #[arg(long, value_name = "SHARE", value_parser = share, default_value_t = Settings::default().similarity)]
    similarity: f64,
    /// The share of the run from which on a phase is relevant
    #[arg(long, value_name = "SHARE", value_parser = share, default_value_t = Settings::default().relevance)]
    relevance: f64,
    /// The logical clock (for pbb)
    #[arg(long, value_enum, default_value_t = ClockArg::Pas2p)]
    clock: ClockArg,
    /// Threads to use; the result does not depend on them [default: one for each processor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

fn share(text: &str) -> Result<f64, String> {
    let share: f64 = text.parse().map_err(|_| "it is not a number".to_string())?;
    if (0.0..1.0).contains(&share) { Ok(share) } else { Err("a share is at least 0 and less than 1".into()) }
}

/// Analyses.
pub fn run(args: &AnalyzeArgs) -> Result<()> {
    if let Some(output) = &args.output {
        output::refuse_existing(output)?;
    }
    let mut traces = Vec::new();
    for path in &args.traces {
        traces.push(Trace::open(path)?);
    }
    let mut settings = Settings {
        method: args.method.into(),
        similarity: args.similarity,
        relevance: args.relevance,
        clock: args.clock.into(),
        collectives: true,
        ..Settings::default()
    };
    if let Some(threads) = args.threads {
        settings.threads = threads.into();
    }
    let bar = progress::bar("analysing", "items");
    let analysis = analyze(&traces, &settings, &|done, of| bar.set(done, of))?;
    bar.finish();
    if let Some(output) = &args.output {
        analysis.save(output)?;
    }
    if args.json { output::json(&json(&analysis)) } else { output::words(&table(&analysis)) }
}

/// The analysis as JSON, without what only machines need.
pub fn json(analysis: &Analysis) -> Value {
    let mut value = serde_json::to_value(analysis).unwrap_or(Value::Null);
    if let Some(object) = value.as_object_mut() {
        object.remove("volume_classes");
        for phase in object.get_mut("phases").and_then(Value::as_array_mut).into_iter().flatten() {
            phase.as_object_mut().map(|phase| phase.remove("hashes"));
        }
    }
    value
}

/// The analysis in words: what the run is made of, the phases, the verdict.
pub fn table(analysis: &Analysis) -> String {
    let pays = if analysis.verdict.pays { "Measuring phases pays" } else { "Measuring phases does not pay" };
    format!("{}{pays}: {}\n", phases(analysis), clean(&analysis.verdict.reason))
}

/// The same without the verdict.
pub fn phases(analysis: &Analysis) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: String| {
        let _ = writeln!(text, "{name:<12} {value}");
    };
    let of_run = |s: f64| {
        format!("{} ({})", seconds(s), percent(if analysis.run_time_s > 0.0 { s / analysis.run_time_s } else { 0.0 }))
    };
    line("program", clean(&analysis.program));
    line("ranks", count(analysis.ranks.into()));
    line("events", count(analysis.events.iter().sum()));
    line("run time", analysis.base_runs_s.iter().map(|s| seconds(*s)).collect::<Vec<_>>().join(", "));
    line("method", method(analysis));
    line("explained", of_run(analysis.explained_s));
    line("planned", of_run(analysis.planned_s));
    line("coverage", percent(analysis.coverage));
    line("residual", of_run(analysis.residual_s));
    let headers = ["phase", "weight", "mean time", "share", "planned", "structure"];
    let mut table = output::table(&headers, &[0, 1, 2, 3]);
    for phase in analysis.phases.iter().filter(|phase| phase.relevant) {
        table.add_row(row(phase));
    }
    let (rest, share) = irrelevant(analysis);
    if rest > 0 {
        let last = [
            String::new(),
            String::new(),
            String::new(),
            percent(share),
            String::new(),
            format!("{rest} more, none of them relevant"),
        ];
        table.add_row(last);
    }
    let _ = writeln!(text, "\n{table}");
    text
}

/// The method's name, as on the command line.
pub fn method_name(analysis: &Analysis) -> &'static str {
    match analysis.method {
        Method::Marker => "marker",
        Method::Pbb => "pbb",
    }
}

fn method(analysis: &Analysis) -> String {
    let name = method_name(analysis);
    match analysis.markers.as_slice() {
        [] => name.into(),
        [marker] => format!("{name}, cut at {}", short(&marker.words, 80)),
        [first, others @ ..] => format!("{name}, cut at {} and {} more", short(&first.words, 80), others.len()),
    }
}

fn irrelevant(analysis: &Analysis) -> (usize, f64) {
    let rest = analysis.phases.iter().filter(|phase| !phase.relevant);
    rest.fold((0, 0.0), |(count, share), phase| (count + 1, share + phase.share))
}

fn row(phase: &Phase) -> Vec<String> {
    vec![
        phase.id.to_string(),
        count(phase.weight),
        seconds(phase.time_s),
        percent(phase.share),
        planned(&phase.planned),
        short(&phase.structure, 70),
    ]
}

/// The planned occurrences: how many, and the first of them as ranges.
fn planned(occurrences: &[u64]) -> String {
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    for &n in occurrences {
        match ranges.last_mut().filter(|range| range.1.checked_add(1) == Some(n)) {
            Some(range) => range.1 = n,
            None => ranges.push((n, n)),
        }
    }
    let mut names: Vec<String> =
        ranges.iter().take(MOST_RANGES).map(|(a, b)| if a == b { a.to_string() } else { format!("{a}-{b}") }).collect();
    if ranges.len() > MOST_RANGES {
        names.push("\u{2026}".into());
    }
    match occurrences.len() {
        0 => "-".into(),
        1 => names.join(""),
        n => format!("{}: {}", count(n as u64), names.join(" ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn planned_occurrences_are_told_as_ranges() {
        assert_eq!(planned(&[]), "-");
        assert_eq!(planned(&[7]), "7");
        assert_eq!(planned(&[1, 2, 3, 9]), "4: 1-3 9");
        assert_eq!(planned(&[1, 3, 5, 7, 9, u64::MAX]), "6: 1 3 5 7 \u{2026}");
    }

    #[test]
    fn shares_are_shares() {
        assert_eq!(share("0.05"), Ok(0.05));
        assert!(share("1").is_err() && share("-0.1").is_err() && share("NaN").is_err() && share("x").is_err());
    }
}
