//! `phasecast model`: PerPreT's tables and plots of an application on systems, from files; and `phasecast model fit`.
use crate::exit::Refusal;
use crate::output::{self, clean, seconds};
use anyhow::Result;
use clap::{Args, Subcommand};
use phasecast_scaling::model::application::Unit;
use phasecast_scaling::model::plot::{Curve, Over, svg};
use phasecast_scaling::model::tables::{Findings, Row, Setting};
use phasecast_scaling::model::{Application, System, answer};
use serde_json::json;
use std::fmt::Write;
use std::path::PathBuf;

/// The most points of a list.
const MAX_POINTS: usize = 10_000;

/// Predict from formulae: computation, communication and speedup over processors or problem sizes
///
/// The application file has formulae of the problem size and the number of processors, a task graph, or a LOOP program,
/// for one strategy or several; the system file has the five parts of a message's time and sustained rates. A machine file
/// of `phasecast characterize` is a system file, too. Several strategies and systems are compared in one table.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct ModelArgs {
    #[command(subcommand)]
    command: Option<ModelCommand>,
    /// The application
    #[arg(value_name = "APP.toml", required = true)]
    application: Option<PathBuf>,
    /// The systems
    #[arg(value_name = "SYSTEM.toml", required = true)]
    systems: Vec<PathBuf>,
    /// Processors: one number, a list (1,2,4) or doubling from one to another (1..512)
    #[arg(short = 'p', long, value_name = "LIST", default_value = "1..128", value_parser = list)]
    processors: List,
    /// Sizes of the problem, in the same way [default: the application's]
    #[arg(short, long, value_name = "LIST", value_parser = list)]
    size: Option<List>,
    /// Only these strategies of the application
    #[arg(long, value_name = "NAME")]
    strategy: Vec<String>,
    /// Millions of operations per second, instead of the system's sustained rate
    #[arg(long, value_name = "MFLOPS", value_parser = crate::cli::positive)]
    rate: Option<f64>,
    /// How many times as long computation takes on the system as where it was measured, for applications whose computation
    /// is in seconds [default: 1]
    #[arg(long, value_name = "K", value_parser = crate::cli::positive)]
    ratio: Option<f64>,
    /// Draw times and speedup, with logarithmic axes, to this file
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,
    /// Write the prediction of a single point to this file, for `phasecast compare` and `phasecast report`
    #[arg(long, value_name = "FILE")]
    prediction: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum ModelCommand {
    #[command(after_long_help = crate::cli::MODEL_FIT_HELP)]
    Fit(super::model_fit::FitArgs),
}

/// Numbers in the order in which they were given.
#[derive(Clone, Debug)]
pub(super) struct List(pub Vec<f64>);

/// Reads `4`, `1,2,4` or `1..512`.
pub(super) fn list(text: &str) -> Result<List, String> {
    let number = |text: &str| match text.trim().parse::<f64>() {
        Ok(number) if (1.0..=1e15).contains(&number) => Ok(number),
        _ => Err(format!("{text:?} is no number of 1 or more")),
    };
    let mut numbers = Vec::new();
    for part in text.split(',') {
        match part.split_once("..") {
            None => numbers.push(number(part)?),
            Some((from, to)) => {
                let (mut at, to) = (number(from)?, number(to)?);
                if at > to {
                    return Err(format!("{part:?} ends before it begins"));
                }
                while at < to {
                    numbers.push(at);
                    at *= 2.0;
                }
                numbers.push(to);
            }
        }
    }
    if numbers.len() > MAX_POINTS { Err(format!("more than {MAX_POINTS} numbers")) } else { Ok(List(numbers)) }
}

/// A table with what it is of.
struct Answer<'a> {
    setting: Setting<'a>,
    name: String,
    rows: Vec<Row>,
    findings: Option<Findings>,
}

impl Answer<'_> {
    /// More processors than the system has, in words.
    fn note(&self) -> Option<String> {
        let system = self.setting.system;
        let most = system.processors.filter(|most| self.rows.last().is_some_and(|last| last.processors > *most))?;
        Some(format!("{} has {most} processors", clean(&system.system)))
    }
}

/// Models.
pub fn run(args: &ModelArgs) -> Result<()> {
    match (&args.command, &args.application) {
        (Some(ModelCommand::Fit(fit)), _) => super::model_fit::run(fit),
        (None, Some(application)) => model(args, &Application::read(application)?),
        (None, None) => Err(Refusal::Usage("no application file is given".into()).into()),
    }
}

fn model(args: &ModelArgs, application: &Application) -> Result<()> {
    for path in [&args.plot, &args.prediction].into_iter().flatten() {
        output::refuse_existing(path)?;
    }
    let useless = match application.unit {
        Unit::Seconds => args
            .rate
            .map(|_| "--rate is for computation in operations, and that of the application is in seconds: use --ratio"),
        Unit::Operations => args
            .ratio
            .map(|_| "--ratio is for computation in seconds, and that of the application is in operations: use --rate"),
    };
    if let Some(what) = useless {
        return Err(Refusal::Usage(what.into()).into());
    }
    let systems = args.systems.iter().map(|path| System::read(path)).collect::<Result<Vec<_>, _>>()?;
    let mut processors = Vec::new();
    for &count in &args.processors.0 {
        if count.fract() != 0.0 {
            return Err(Refusal::Usage(format!("there are no {count} processors")).into());
        }
        processors.push(count as u64);
    }
    processors.sort_unstable();
    processors.dedup();
    let sizes = match (&args.size, application.size) {
        (Some(List(sizes)), _) => sizes.clone(),
        (None, Some(size)) => vec![size],
        (None, None) => {
            let what = "the application file has no size. Give one with --size";
            return Err(Refusal::Input(what.into()).into());
        }
    };
    let over = if sizes.len() > 1 && processors.len() == 1 { Over::Sizes } else { Over::Processors };
    if sizes.len() > 1 && processors.len() > 1 {
        let what = "both sizes and processors are lists: a table is over one of them";
        return Err(Refusal::Usage(what.into()).into());
    }
    if let Some(unknown) = args.strategy.iter().find(|name| !application.strategies.iter().any(|s| s.name == **name)) {
        let names: Vec<&str> = application.strategies.iter().map(|s| s.name.as_str()).collect();
        let what = format!("the application has no strategy {unknown:?}. It has {}", names.join(", "));
        return Err(Refusal::Input(what).into());
    }
    let strategies = application.strategies.iter();
    let strategies: Vec<_> =
        strategies.filter(|s| args.strategy.is_empty() || args.strategy.contains(&s.name)).collect();
    let mut answers = Vec::new();
    for system in &systems {
        for &strategy in &strategies {
            let setting = Setting { application, strategy, system, rate: args.rate, ratio: args.ratio.unwrap_or(1.0) };
            let points = sizes.iter().flat_map(|&size| processors.iter().map(move |&p| (size, p)));
            let rows = setting.table(points)?;
            let findings = (over == Over::Processors).then(|| setting.findings(&rows)).transpose()?;
            let name = match (strategies.len(), systems.len()) {
                (_, 1) => strategy.name.clone(),
                (1, _) => system.system.clone(),
                _ => format!("{}, {}", strategy.name, system.system),
            };
            answers.push(Answer { setting, name, rows, findings });
        }
    }
    if let Some(path) = &args.prediction {
        match answers.as_slice() {
            [one] if one.rows.len() == 1 => {
                let prediction = answer::prediction(&one.setting, &one.rows[0]);
                output::save(path, prediction.to_json().as_bytes())?;
            }
            _ => {
                let what = "--prediction takes a single point: one size, one number of processors (-p), one system and one --strategy";
                return Err(Refusal::Usage(what.into()).into());
            }
        }
    }
    if let Some(path) = &args.plot {
        let curves: Vec<Curve> = answers.iter().map(|a| Curve { name: a.name.clone(), rows: &a.rows }).collect();
        let fixed =
            if over == Over::Sizes { format!("{} processors", processors[0]) } else { format!("size {}", sizes[0]) };
        let title = match answers.as_slice() {
            [one] => {
                format!("{}: {} on {}, {fixed}", application.name, one.setting.strategy.name, one.setting.system.system)
            }
            _ => format!("{}, {fixed}", application.name),
        };
        output::save(path, svg(&title, over, &curves)?.as_bytes())?;
    }
    if args.json {
        output::json(&object(application, &answers))
    } else {
        output::words(&words(application, over, &answers))
    }
}

fn object(application: &Application, answers: &[Answer]) -> serde_json::Value {
    let tables: Vec<serde_json::Value> = answers
        .iter()
        .map(|answer| {
            json!({
                "strategy": answer.setting.strategy.name,
                "given": answer.setting.strategy.given,
                "system": answer.setting.system.system,
                "computation": answer.setting.strategy.computation(),
                "communication": answer.setting.strategy.communication(),
                "rows": answer.rows,
                "findings": answer.findings,
                "notes": answer.note().into_iter().collect::<Vec<_>>(),
            })
        })
        .collect();
    json!({
        "application": application.name,
        "unit": application.unit,
        "uncertainty": application.uncertainty,
        "tables": tables,
    })
}

/// A time as the seed prints it: cut off after so many digits.
fn cut(seconds: f64, digits: usize) -> String {
    let scale = 10f64.powi(digits as i32);
    format!("{:.digits$}", (seconds * scale + 1e-6).floor() / scale)
}

/// So many digits does a column of these totals need.
fn digits(rows: &[Row]) -> usize {
    let largest = rows.iter().map(|row| row.total_s).fold(0.0, f64::max);
    if largest < 0.01 { 9 } else { 6 }
}

fn words(application: &Application, over: Over, answers: &[Answer]) -> String {
    let mut text = String::new();
    for answer in answers {
        let (rows, strategy) = (&answer.rows, answer.setting.strategy);
        let (Some(first), Some(last)) = (rows.first(), rows.last()) else { continue };
        let range = |from: f64, to: f64| if from == to { format!("{from}") } else { format!("{from}...{to}") };
        let name = if strategy.name == application.name {
            clean(&strategy.name)
        } else {
            format!("{}: {}", clean(&application.name), clean(&strategy.name))
        };
        let _ = writeln!(text, "{name} ({})", strategy.given);
        let processors = range(first.processors as f64, last.processors as f64);
        let _ = writeln!(text, "Processors: {processors}  Problem Size: {}", range(first.size, last.size));
        let _ = writeln!(text, "System: {}", clean(&answer.setting.system.system));
        let digits = digits(rows);
        let mut table = match over {
            Over::Processors => output::table(&["P", "COMM", "COMP", "TOTAL", "SP"], &[0, 1, 2, 3, 4]),
            Over::Sizes => output::table(&["PSZ", "SINGLE", "COMM", "COMP", "TOTAL", "SP"], &[0, 1, 2, 3, 4, 5]),
        };
        for row in rows {
            let mut cells = match over {
                Over::Processors => vec![row.processors.to_string()],
                Over::Sizes => vec![row.size.to_string(), cut(row.single_s, digits)],
            };
            cells.extend([row.comm_s, row.comp_s, row.total_s].map(|s| cut(s, digits)));
            cells.push(format!("{:.2}", row.speedup));
            table.add_row(cells);
        }
        let _ = writeln!(text, "Speedup estimate (all times in seconds):\n\n{table}\n");
        if let Some(findings) = &answer.findings {
            text.push_str(&found(findings, last.processors));
        }
        if let Some(note) = answer.note() {
            let _ = writeln!(text, "note: {note}");
        }
        text.push('\n');
    }
    if answers.len() > 1 {
        text.push_str(&compared(over, answers));
    }
    if application.unit == Unit::Seconds {
        let _ = writeln!(
            text,
            "note: computation was measured on {}; --ratio says how much longer it takes elsewhere",
            clean(&application.measured_on)
        );
    }
    text
}

fn found(findings: &Findings, last: u64) -> String {
    let mut text = String::new();
    for threshold in &findings.thresholds {
        let _ = writeln!(
            text,
            "efficiency {:.0} % up to {} processors",
            100.0 * threshold.efficiency,
            threshold.processors
        );
    }
    match findings.crossover {
        Some(crossover) => {
            let _ = writeln!(text, "communication takes longer than computation from {crossover} processors on");
        }
        None => {
            let _ = writeln!(text, "computation takes longer than communication up to {last} processors");
        }
    }
    let _ = writeln!(text, "best with {} processors: {}", findings.best, seconds(findings.best_s));
    text
}

/// All totals side by side, the shortest named.
fn compared(over: Over, answers: &[Answer]) -> String {
    let mut headers = vec![if over == Over::Processors { "P" } else { "PSZ" }.to_owned()];
    headers.extend(answers.iter().map(|answer| format!("{} TOTAL", clean(&answer.name))));
    headers.push("shortest".into());
    let names: Vec<&str> = headers.iter().map(String::as_str).collect();
    let mut table = output::table(&names, &(0..headers.len() - 1).collect::<Vec<_>>());
    let rows = answers.first().map_or(0, |answer| answer.rows.len());
    for at in 0..rows {
        let row = &answers[0].rows[at];
        let place = if over == Over::Processors { row.processors.to_string() } else { row.size.to_string() };
        let mut cells = vec![place];
        cells.extend(answers.iter().map(|answer| cut(answer.rows[at].total_s, digits(&answer.rows))));
        let shortest = answers.iter().min_by(|a, b| a.rows[at].total_s.total_cmp(&b.rows[at].total_s));
        let shortest = shortest.map(|shortest| {
            let best = shortest.rows[at].total_s;
            let alike = answers.iter().filter(|a| a.rows[at].total_s <= best * (1.0 + 1e-9)).count();
            if alike > 1 { "the same".to_owned() } else { clean(&shortest.name) }
        });
        cells.push(shortest.unwrap_or_default());
        table.add_row(cells);
    }
    format!("{table}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_times_have_more_digits() {
        let row = |total_s| Row {
            processors: 1,
            size: 1.0,
            comm_s: 0.0,
            comp_s: total_s,
            total_s,
            single_s: total_s,
            speedup: 1.0,
            efficiency: 1.0,
        };
        assert_eq!(cut(4e-7, digits(&[row(4e-7), row(2e-7)])), "0.000000400");
        assert_eq!(digits(&[row(4e-7), row(0.02)]), 6);
    }

    #[test]
    fn lists_double_and_end_where_they_should() {
        assert_eq!(list("1..8").expect("a list").0, [1.0, 2.0, 4.0, 8.0]);
        assert_eq!(list("3..10,64").expect("a list").0, [3.0, 6.0, 10.0, 64.0]);
        assert_eq!(list("5").expect("a list").0, [5.0]);
        for wrong in ["", "0", "8..4", "a", "1..", "1..1e99", "-3"] {
            assert!(list(wrong).is_err(), "{wrong}");
        }
        assert_eq!(
            (cut(0.0120615, 6), cut(0.771938, 6), cut(0.00150769, 5)),
            ("0.012061".into(), "0.771938".into(), "0.00150".into())
        );
    }
}
