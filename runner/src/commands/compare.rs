//! `phasecast compare`: several predictions side by side, machines ranked by their predicted time.
use crate::exit::Refusal;
use crate::output::{self, percent, seconds, short};
use anyhow::Result;
use clap::Args;
use phasecast_prediction::Prediction;
use phasecast_prediction::compare::{Comparison, Entry};
use std::path::PathBuf;

/// Put several predictions side by side, the fastest machine first
///
/// Reads what `phasecast predict` saved with -o or printed with --json. Machines whose interval for another run reaches
/// into that of the fastest are marked with ~: which of them is faster is not certain. The column "interval" is the
/// narrower one, for the mean.
#[derive(Debug, Args)]
pub struct CompareArgs {
    /// The predictions
    #[arg(required = true, value_name = "PREDICTION")]
    predictions: Vec<PathBuf>,
    /// True run times in seconds, one for each prediction in their order (or one, if there is one prediction)
    #[arg(long, value_name = "SECONDS", value_delimiter = ',', value_parser = crate::cli::positive)]
    aet: Vec<f64>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Compares.
pub fn run(args: &CompareArgs) -> Result<()> {
    if !args.aet.is_empty() && args.aet.len() != args.predictions.len() {
        let (times, files) = (args.aet.len(), args.predictions.len());
        let what = format!("--aet gives {times} true times for {files} predictions; each needs one of its own");
        return Err(Refusal::Usage(what).into());
    }
    let mut predictions = Vec::new();
    for (i, path) in args.predictions.iter().enumerate() {
        let mut prediction = Prediction::read(path)?;
        if let Some(&aet) = args.aet.get(i) {
            prediction.with_true_time(aet);
        }
        predictions.push((path.display().to_string(), prediction));
    }
    let comparison = Comparison::of(&predictions);
    if args.json { output::json(&comparison) } else { output::words(&print(&comparison)) }
}

fn print(comparison: &Comparison) -> String {
    let headers =
        ["", "machine", "processor", "MPI", "method", "PET", "interval", "x", "SET", "coverage", "AET", "PETE"];
    let mut table = output::table(&headers, &[0, 5, 7, 8, 9, 10, 11]);
    for entry in &comparison.predictions {
        table.add_row(row(entry));
    }
    let mut text = format!("{table}\n");
    for note in &comparison.notes {
        text.push_str(&format!("note: {}\n", output::clean(note)));
    }
    text
}

fn row(entry: &Entry) -> Vec<String> {
    let unknown = || "-".to_string();
    let machine = if entry.target.host.is_empty() { &entry.name } else { &entry.target.host };
    vec![
        format!("{}{}", entry.place, if entry.tied && entry.ratio > 1.0 { "~" } else { "" }),
        short(machine, 24),
        short(&entry.target.cpu, 28),
        short(&entry.target.mpi, 20),
        short(&entry.method, 10),
        seconds(entry.pet_s),
        format!("{} .. {}", seconds(entry.interval_s[0]), seconds(entry.interval_s[1])),
        format!("{:.2}", entry.ratio),
        seconds(entry.set_s),
        percent(entry.coverage),
        entry.aet_s.map_or_else(unknown, seconds),
        entry.pete.map_or_else(unknown, percent),
    ]
}

/// One prediction in words: the answer, what it is made of, and its phases.
pub fn one(p: &Prediction) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: String| text.push_str(&format!("{name:<20} {value}\n"));
    let range = |range: [f64; 2]| format!("{} to {}", seconds(range[0]), seconds(range[1]));
    let level = percent(p.confidence);
    line("predicted (PET)", seconds(p.pet_s));
    line(
        "interval",
        format!("{} for the mean, {} for one run ({level})", range(p.interval_s), range(p.run_interval_s)),
    );
    if let (Some(aet), Some(pete)) = (p.aet_s, p.pete) {
        line("true (AET)", seconds(aet));
        line("error (PETE)", format!("{:.2} %", pete * 100.0));
    }
    let of_pet = if p.pet_s > 0.0 { p.set_s / p.pet_s } else { 0.0 };
    line("predicting (SET)", format!("{}, {} of PET", seconds(p.set_s), percent(of_pet)));
    line("coverage", percent(p.coverage));
    line("start-up", seconds(p.startup_s));
    line("not measured", seconds(p.residual_s));
    if p.restarts > 0 {
        let times = [p.restart_s, p.warmup_s, p.measured_s].map(seconds);
        let [restart, warm, measured] = times;
        line("restarts", format!("{}: {restart} restarting, {warm} warming up, {measured} measuring", p.restarts));
    }
    line("on the base", seconds(p.base_run_s));
    let headers = ["phase", "weight", "measured", "base", "target", "weight x time", "structure"];
    let mut table = output::table(&headers, &[0, 1, 2, 3, 4, 5]);
    for phase in &p.phases {
        table.add_row([
            phase.id.to_string(),
            output::count(phase.weight),
            output::count(phase.measured),
            seconds(phase.base_s),
            phase.target_s.map_or_else(|| "-".into(), seconds),
            seconds(phase.total_s),
            short(&phase.structure, 60),
        ]);
    }
    text.push_str(&format!("\n{table}\n"));
    for note in &p.notes {
        text.push_str(&format!("note: {}\n", output::clean(note)));
    }
    text
}
