//! `phasecast transform`: from the trace of a run on one machine the trace of the run on another, and so its time.
use crate::exit::Refusal;
use crate::output::{self, clean, count, percent, seconds};
use crate::progress;
use anyhow::Result;
use clap::Args;
use phasecast_prediction::Prediction;
use phasecast_trace::Trace;
use phasecast_transform::machine::Machine;
use phasecast_transform::transform::{Outcome, Row, Settings, answer, observed, transform};
use serde_json::json;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Regions of computation that the answer names.
const REGIONS: usize = 12;

/// Predict the trace of a run on another machine, from a trace and the costs of both machines
///
/// Computation takes K times as long, sends and receives take what they cost on the target, and no message is received
/// before it was sent. Transfers that are under way at the same time share a node's link. K comes from the kernels of both
/// machine files, or is given, or is derived for each region of the program from a smaller run on both machines. The
/// result is a trace like any other.
#[derive(Debug, Args)]
pub struct TransformArgs {
    /// The trace of the run on the base machine
    #[arg(value_name = "TRACE")]
    trace: PathBuf,
    /// What the base machine costs, as `phasecast characterize` measured it there. A trace made with `trace --clock
    /// computing` needs it only where the target's processors are others
    #[arg(long, value_name = "FILE")]
    base: Option<PathBuf>,
    /// What the target machine costs
    #[arg(long, value_name = "FILE")]
    target: PathBuf,
    /// The trace to write (a folder)
    #[arg(short, long, value_name = "TRACE")]
    output: PathBuf,
    /// How many times as long computation takes on the target, instead of what the kernels say
    #[arg(long, value_name = "K", value_parser = crate::cli::positive, conflicts_with = "ratios_from")]
    ratio: Option<f64>,
    /// Derive the ratio of each region of the program from traces of a smaller run on base and target
    #[arg(long, num_args = 2, value_names = ["BASE", "TARGET"])]
    ratios_from: Vec<PathBuf>,
    /// Let each message travel as if it were alone
    #[arg(long)]
    no_contention: bool,
    /// Compare with the trace of the same run on the target: predicted over observed time, by procedure and rank
    #[arg(long, value_name = "TRACE")]
    observed: Option<PathBuf>,
    /// Write the prediction to this file, for `phasecast compare` and `phasecast report`
    #[arg(long, value_name = "FILE")]
    prediction: Option<PathBuf>,
    /// Print one JSON object: the prediction, with ratios of speeds, and the table if a trace to compare with is given
    #[arg(long)]
    json: bool,
}

/// Transforms.
pub fn run(args: &TransformArgs) -> Result<()> {
    output::refuse_existing(&args.output)?;
    if let Some(path) = &args.prediction {
        output::refuse_existing(path)?;
    }
    let target = Machine::read(&args.target)?;
    let trace = Trace::open(&args.trace)?;
    let base = base(args, &trace, &target)?;
    let small = match args.ratios_from.as_slice() {
        [base, target] => Some([Trace::open(base)?, Trace::open(target)?]),
        _ => None,
    };
    let seen = args.observed.as_deref().map(Trace::open).transpose()?;
    if let Some(seen) = seen.as_ref().filter(|seen| seen.size() != trace.size()) {
        return Err(Refusal::Input(format!(
            "{} has {} ranks and {} has {}. Give the trace of the same run on the target.",
            args.trace.display(),
            trace.size(),
            seen.path().display(),
            seen.size()
        ))
        .into());
    }
    let settings = Settings {
        // Without a base machine, the target's processors are those that the ranks computed on.
        ratio: args.ratio.or((args.base.is_none() && args.ratios_from.is_empty()).then_some(1.0)),
        small: small.as_ref().map(|[base, target]| [base, target]),
        contention: !args.no_contention,
        ..Settings::default()
    };
    let bar = progress::bar("transforming", "items");
    let outcome = transform(&trace, &base, &target, &settings, &args.output, &|done, of| bar.set(done, of))?;
    bar.finish();
    let prediction = answer::prediction(&trace, &base, &target, &outcome);
    if let Some(path) = &args.prediction {
        output::save(path, prediction.to_json().as_bytes())?;
    }
    let rows = match &seen {
        Some(seen) => Some((observed(&Trace::open(&args.output)?, seen)?, seen.elapsed().seconds())),
        None => None,
    };
    if args.json {
        let mut object = serde_json::to_value(&prediction)?;
        if let Some(fields) = object.as_object_mut() {
            fields.insert("run_s".into(), json!(outcome.run_s));
            fields.insert("ratio".into(), json!(outcome.ratios.whole));
            fields.insert("ratio_from".into(), json!(outcome.ratios.from));
            fields.insert("regions".into(), json!(outcome.ratios.regions));
            fields.insert("calls".into(), json!(outcome.counted.calls));
            if let Some((rows, run_s)) = &rows {
                fields.insert("observed_run_s".into(), json!(run_s));
                fields.insert("table".into(), json!(rows));
            }
        }
        return output::json(&object);
    }
    let mut text = words(&prediction, &outcome, &args.output);
    if let Some((rows, run_s)) = &rows {
        text.push_str(&compared(rows, outcome.run_s, *run_s));
    }
    output::words(&text)
}

/// The base machine. Where calls take no time in the trace, it is one on which the target's communication is free.
fn base(args: &TransformArgs, trace: &Trace, target: &Machine) -> Result<Machine> {
    let given = args.base.as_deref().map(Machine::read).transpose()?;
    if trace.is_of_computing() {
        let kernels = given.map_or_else(|| target.kernels.clone(), |base| base.kernels);
        return Ok(Machine { kernels, ..target.free() });
    }
    given.ok_or_else(|| {
        let what = "needs --base MACHINE, what the machine costs on which it was traced: measure that with `phasecast characterize` there";
        Refusal::Usage(format!("{} {what}", args.trace.display())).into()
    })
}

fn words(prediction: &Prediction, outcome: &Outcome, path: &Path) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: String| {
        let _ = writeln!(text, "{name:<12} {value}");
    };
    line("program", clean(&prediction.program));
    line("ranks", count(prediction.ranks.into()));
    line("base run", seconds(prediction.base_run_s));
    line("predicted", format!("{} of start-up and {} of run", seconds(prediction.startup_s), seconds(outcome.run_s)));
    let [low, high] = prediction.interval_s;
    line("PET", format!("{} ({} to {}, 95 %)", seconds(prediction.pet_s), seconds(low), seconds(high)));
    let ratios = &outcome.ratios;
    line("ratio", format!("{:.4} +- {}, {}", ratios.whole, percent(ratios.uncertain), answer::words(ratios.from)));
    line("trace", format!("{} calls in {}", count(outcome.counted.calls), path.display()));
    if !ratios.regions.is_empty() {
        let mut table =
            output::table(&["computation after", "and before", "count", "base", "target", "ratio"], &[2, 3, 4, 5]);
        for region in ratios.regions.iter().take(REGIONS) {
            table.add_row(vec![
                clean(&region.after),
                clean(&region.before),
                count(region.count),
                seconds(region.base_s),
                seconds(region.target_s),
                format!("{:.3}", region.ratio),
            ]);
        }
        let _ = writeln!(text, "\n{table}");
    }
    let mut table = output::table(&["the slowest rank's", "base", "target"], &[1, 2]);
    for part in &prediction.phases {
        table.add_row(vec![part.structure.clone(), seconds(part.base_s), seconds(part.total_s)]);
    }
    let _ = writeln!(text, "\n{table}");
    for note in &prediction.notes {
        let _ = writeln!(text, "note: {}", clean(note));
    }
    text
}

/// The seed's Table 2.
fn compared(rows: &[Row], predicted_s: f64, observed_s: f64) -> String {
    let ranks = rows.first().map_or(0, |row| row.ranks.len());
    let shown = ranks.min(8);
    let mut headers = vec!["predicted/observed".to_owned()];
    headers.extend((0..shown).map(|rank| format!("rank {rank}")));
    headers.extend(["all".to_owned(), "observed".to_owned()]);
    let names: Vec<&str> = headers.iter().map(String::as_str).collect();
    let mut table = output::table(&names, &(1..headers.len()).collect::<Vec<_>>());
    for row in rows {
        let mut cells = vec![clean(&row.name)];
        let cell = |cell: &Option<phasecast_transform::transform::table::Cell>| {
            cell.map_or_else(|| "-".into(), |c| format!("{:.2} ({:.2})", c.mean, c.total))
        };
        cells.extend(row.ranks.iter().take(shown).map(cell));
        let all = row.ranks.iter().flatten().fold((0.0, 0.0), |s, c| (s.0 + c.predicted_s, s.1 + c.observed_s));
        cells.push(if all.1 > 0.0 { format!("{:.2}", all.0 / all.1) } else { "-".into() });
        cells.push(seconds(all.1));
        table.add_row(cells);
    }
    let error = if observed_s > 0.0 { predicted_s / observed_s - 1.0 } else { 0.0 };
    format!(
        "\nMean over the calls of predicted by observed time (and of their sums):\n\n{table}\n\nrun time     {} predicted, {} observed: {:+.2} %\n",
        seconds(predicted_s),
        seconds(observed_s),
        100.0 * error
    )
}
