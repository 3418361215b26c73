//! `phasecast scale`: from runs with few processors to the time with more of them.
use crate::commands::profile::{How, made};
use crate::exit::Refusal;
use crate::output::{self, clean, percent, seconds};
use anyhow::{Context, Result};
use clap::Args;
use phasecast_analyzer::Analysis;
use phasecast_prediction::Machine;
use phasecast_scaling::signature::csv::{self, Table};
use phasecast_scaling::signature::sources::{ProfiledRun, of_analyses, of_profiles};
use phasecast_scaling::signature::{Forecast, Runs, Scaled, Settings, answer, draw, scale};
use phasecast_trace::container::Container;
use phasecast_trace::model::file_name;
use phasecast_trace::{Rank, Trace};
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::PathBuf;
use std::time::Instant;

/// Level of the intervals.
const CONFIDENCE: f64 = 0.95;
/// Phases that are printed.
const SHOWN: usize = 40;
/// The longest table that is read.
const MOST_BYTES: u64 = 64 << 20;

/// Predict the time on more processors, from runs of the same program on few of them
///
/// The runs are traces, whose execution profiles are cut into the same phases; or files of `phasecast analyze`, whose
/// phases are matched by their structure; or one table of times (CSV). To each phase an execution signature is fitted:
/// the rate at p processors, p / (k1 p + k2) or another form with the same properties, chosen by how well it foresees
/// runs that are left out. The times of all phases add up to the program's.
#[derive(Debug, Args)]
pub struct ScaleArgs {
    /// Traces or analyses, one for each number of processors, at least 2; or one table: phase,kind,8,16,32
    #[arg(value_name = "RUN", required = true)]
    runs: Vec<PathBuf>,
    /// Numbers of processors to predict
    #[arg(long, value_name = "P", required = true, value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=1 << 24))]
    to: Vec<u32>,
    #[command(flatten)]
    how: How,
    /// Only the forms of the paper (Carlson et al.): k p for full utilisation, k for sequential phases, p/(k1 p + k2) for
    /// the rest
    #[arg(long)]
    seed_forms: bool,
    /// Seconds of one unit of a table [default: 1]
    #[arg(long, value_name = "SECONDS", value_parser = crate::cli::positive)]
    unit: Option<f64>,
    /// Draw the speedup to this file (SVG)
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Write the prediction for the first number of --to to this file, for `phasecast compare` and `phasecast report`
    #[arg(long, value_name = "FILE")]
    prediction: Option<PathBuf>,
    /// Print one JSON object: the prediction for the first number of --to, with all numbers and signatures
    #[arg(long)]
    json: bool,
}

/// What was read: the runs, the machine they are from, and true times where a table knows them.
struct Input {
    runs: Runs,
    machine: Machine,
    truth: Option<Table>,
}

/// Predicts.
pub fn run(args: &ScaleArgs) -> Result<()> {
    for path in [&args.svg, &args.prediction].into_iter().flatten() {
        output::refuse_existing(path)?;
    }
    let begun = Instant::now();
    let Input { runs, machine, truth } = read(args)?;
    let settings =
        Settings { to: args.to.clone(), seed_forms: args.seed_forms, confidence: CONFIDENCE, ..Settings::default() };
    let actual = |phase: usize, processors: u32| truth.as_ref().and_then(|table| table.time(phase, processors));
    let scaled = scale(runs, &settings, &actual)?;
    let took_s = begun.elapsed().as_secs_f64();
    let prediction = answer::prediction(&scaled, 0, &machine, CONFIDENCE, took_s);
    if let Some(path) = &args.svg {
        output::save(path, draw::speedup(&scaled).as_bytes())?;
    }
    if let Some(path) = &args.prediction {
        output::save(path, prediction.to_json().as_bytes())?;
    }
    if args.json {
        let mut object = serde_json::to_value(&prediction)?;
        if let Some(fields) = object.as_object_mut() {
            fields.insert("processors".into(), json!(scaled.runs.processors));
            fields.insert("unit_s".into(), json!(scaled.runs.unit_s));
            fields.insert("forecasts".into(), scaled.forecasts.iter().map(|f| forecast(&scaled, f)).collect());
            fields.insert("signatures".into(), json!(scaled.phases));
            fields.insert("holds_back".into(), json!(scaled.holds_back));
            fields.insert("bound".into(), json!(bound(&scaled)));
        }
        return output::json(&object);
    }
    let notes = prediction.notes.iter().fold(String::new(), |text, note| format!("{text}note: {}\n", clean(note)));
    output::words(&(words(&scaled) + &notes))
}

/// A forecast of the program, with what follows from it.
fn forecast(scaled: &Scaled, forecast: &Forecast) -> Value {
    let mut object = json!(forecast);
    let speedup = speedup(&scaled.runs, forecast);
    object["run_interval"] = json!(answer::run_interval(forecast, CONFIDENCE));
    object["speedup"] = json!(speedup);
    object["efficiency"] = json!(speedup / f64::from(forecast.processors));
    object
}

/// Against one processor, as many times as slow as the smallest run has processors.
fn speedup(runs: &Runs, forecast: &Forecast) -> f64 {
    runs.total(0) * f64::from(runs.processors[0]) / forecast.time.max(1e-300)
}

/// How many times as fast as in the largest run the phase that holds the program back can become at most.
fn bound(scaled: &Scaled) -> Option<f64> {
    let largest = scaled.runs.processors[scaled.runs.processors.len() - 1];
    scaled.phases[scaled.holds_back?].bound(f64::from(largest))
}

fn read(args: &ScaleArgs) -> Result<Input> {
    let first = &args.runs[0];
    if !first.exists() {
        return Err(Refusal::missing(first).into());
    }
    let of_tables = args.unit.map(|_| "--unit");
    if first.is_dir() {
        fits(of_tables, "a table", "traces")?;
        return traces(args);
    }
    if Container::kind_of(first).is_some() {
        fits(of_tables, "a table", "analyses")?;
        fits(args.how.changed(), "traces", "analyses")?;
        return analyses(&args.runs);
    }
    let [path] = args.runs.as_slice() else {
        let what = "is neither a trace nor an analysis, and a table stands alone. Give traces, or files of `phasecast analyze`.";
        return Err(Refusal::Input(format!("{} {what}", first.display())).into());
    };
    fits(args.how.changed(), "traces", "a table")?;
    let refused = |what: &str| Refusal::Input(format!("{} cannot be read: {what}.", path.display()));
    let length = path.metadata().with_context(|| format!("cannot read {}", path.display()))?.len();
    if length > MOST_BYTES {
        return Err(refused("a table of times is not that long").into());
    }
    let bytes = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let text = String::from_utf8(bytes).map_err(|_| refused("it is neither a trace, an analysis nor a table"))?;
    let (runs, truth) = csv::parse(path, &text)?.runs(path, &args.to, args.unit.unwrap_or(1.0))?;
    Ok(Input { runs, machine: Machine::default(), truth: Some(truth) })
}

/// Refuses an option that says nothing of the runs that are given.
fn fits(option: Option<&str>, of: &str, given: &str) -> Result<()> {
    match option {
        Some(option) => Err(Refusal::Usage(format!("{option} is for {of}, not for {given}")).into()),
        None => Ok(()),
    }
}

fn traces(args: &ScaleArgs) -> Result<Input> {
    let mut runs = Vec::new();
    let mut machine = Machine::default();
    for path in &args.runs {
        let trace = Trace::open(path)?;
        if let Some((rank, reason)) = trace.ranks().find_map(|rank| Some((rank, trace.cut_reason(rank)?))) {
            let cut = phasecast_scaling::signature::ScaleError::Cut { path: path.clone(), rank: rank.0, reason };
            return Err(cut.into());
        }
        let header = trace.header(Rank(0));
        if let Some(header) = header {
            machine = Machine { host: header.host.clone(), mpi: header.mpi.clone(), ..Machine::default() };
        }
        let program = header.map_or_else(String::new, |header| header.program.clone());
        runs.push(ProfiledRun { path: path.clone(), program, profile: made(&trace, &args.how)? });
    }
    Ok(Input { runs: of_profiles(&runs, &args.how.phases(), args.seed_forms)?, machine, truth: None })
}

fn analyses(paths: &[PathBuf]) -> Result<Input> {
    let load = |path: &PathBuf| Ok((path.clone(), Analysis::load(path)?));
    let runs: Vec<(PathBuf, Analysis)> = paths.iter().map(load).collect::<Result<_>>()?;
    let mpi = runs.first().map_or_else(String::new, |(_, analysis)| analysis.mpi.clone());
    Ok(Input { runs: of_analyses(&runs)?, machine: Machine { mpi, ..Machine::default() }, truth: None })
}

/// The seed's Table 2, and the program.
fn words(scaled: &Scaled) -> String {
    let runs = &scaled.runs;
    let mut text = String::new();
    let list = |numbers: &[u32]| numbers.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
    let _ = writeln!(text, "{:<12} {}", "program", clean(file_name(&runs.program)));
    let _ = writeln!(text, "{:<12} {} processors", "runs", list(&runs.processors));
    let unit = runs.unit_s;
    let largest = runs.processors.len() - 1;
    for (at, forecast) in scaled.forecasts.iter().enumerate() {
        let p = forecast.processors;
        let known = scaled.phases.iter().any(|phase| phase.forecasts[at].actual.is_some());
        let mut names =
            vec!["phase".into(), "kind".into(), "signature".into(), format!("at {}", runs.processors[largest])];
        names.extend([format!("at {p}"), "from".into(), "to".into(), "gain".into()]);
        if known {
            names.extend(["actual".into(), "error".into()]);
        }
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut table = output::table(&names, &(3..names.len()).collect::<Vec<_>>());
        let mut row = |name: &str, kind: &str, form: &str, before: f64, forecast: &Forecast| {
            let mut cells = vec![output::short(name, 40), kind.to_owned(), form.to_owned(), seconds(before * unit)];
            cells.extend([forecast.time, forecast.interval[0], forecast.interval[1]].map(|time| seconds(time * unit)));
            cells.push(format!("{:.2}", before / forecast.time.max(1e-300)));
            if known {
                cells.push(forecast.actual.map_or_else(|| "-".into(), |time| seconds(time * unit)));
                cells.push(forecast.error().map_or_else(|| "-".into(), percent));
            }
            table.add_row(cells);
        };
        for phase in scaled.phases.iter().take(SHOWN) {
            let before = phase.phase.times[largest];
            row(&phase.phase.name, phase.phase.kind.name(), phase.form.formula(), before, &phase.forecasts[at]);
        }
        row("program", "", "", runs.total(largest), forecast);
        let _ = writeln!(text, "\n{table}");
        if scaled.phases.len() > SHOWN {
            let _ = writeln!(text, "and {} more phases", scaled.phases.len() - SHOWN);
        }
        let one_run = answer::run_interval(forecast, CONFIDENCE);
        let speedup = speedup(runs, forecast);
        let _ = writeln!(
            text,
            "\nPET at {p} processors {} ({} to {} for the mean, {} to {} for one run, 95 %), speedup {speedup:.2}, efficiency {}",
            seconds(forecast.time * unit),
            seconds(forecast.interval[0] * unit),
            seconds(forecast.interval[1] * unit),
            seconds(one_run[0] * unit),
            seconds(one_run[1] * unit),
            percent(speedup / f64::from(p))
        );
    }
    if let Some(phase) = scaled.holds_back.map(|at| &scaled.phases[at]) {
        let from = runs.processors[largest];
        let bound = match bound(scaled) {
            Some(bound) => format!("it can become at most {bound:.2} times as fast as with {from} processors"),
            None => "its signature has no bound".into(),
        };
        let _ = writeln!(text, "held back by  phase {}: {bound}", clean(&phase.phase.name));
    }
    text
}
