//! `phasecast model fit`: the formulae of an application from its traces.
use super::model::{List, list};
use crate::exit::Refusal;
use crate::output::{self, clean, seconds};
use crate::progress;
use anyhow::Result;
use clap::Args;
use phasecast_scaling::model::from_traces::{Derivation, derive, observe};
use phasecast_trace::model::file_name;
use phasecast_trace::{Rank, Trace};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Derive the formulae of an application from traces at several sizes and numbers of ranks
///
/// For each call site the computation before it is fitted in seconds, and the number and length of its calls, as sums of
/// c * p_size^i * log2(p_size)^j * n_procs^k * log2(n_procs)^l, chosen by cross-validation. The result is an application
/// file for `phasecast model`. Three different points at least; the runs must not share processors.
#[derive(Debug, Args)]
pub struct FitArgs {
    /// The traces
    #[arg(value_name = "TRACE", required = true)]
    traces: Vec<PathBuf>,
    /// The size of the problem in each trace, in their order (64,64,128); without it all are of one size, 1
    #[arg(long, value_name = "LIST", value_parser = list)]
    sizes: Option<List>,
    /// The application file to write
    #[arg(short, long, value_name = "APP.toml")]
    output: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Derives.
pub fn run(args: &FitArgs) -> Result<()> {
    output::refuse_existing(&args.output)?;
    let sizes = match &args.sizes {
        Some(List(sizes)) => sizes.clone(),
        None => vec![1.0; args.traces.len()],
    };
    if sizes.len() != args.traces.len() {
        let what = format!("there are {} sizes for {} traces", sizes.len(), args.traces.len());
        return Err(Refusal::Usage(what).into());
    }
    let mut name = String::new();
    let mut observed = Vec::new();
    let bar = progress::bar("reading", "traces");
    for (done, (path, &size)) in args.traces.iter().zip(&sizes).enumerate() {
        let trace = Trace::open(path)?;
        let program = trace.header(Rank(0)).map(|header| header.program.clone()).unwrap_or_default();
        let program = file_name(&program).to_owned();
        if name.is_empty() {
            name.clone_from(&program);
        } else if name != program {
            let what = format!(
                "{} is a run of {program}, the traces before it of {name}. Give traces of one program",
                path.display()
            );
            return Err(Refusal::Input(what).into());
        }
        observed.push(observe(&trace, size, &|_, _| {})?);
        bar.set(done as u64 + 1, args.traces.len() as u64);
    }
    bar.finish();
    let derivation = derive(&name, &observed)?;
    output::save(&args.output, derivation.file.as_bytes())?;
    if args.json { output::json(&derivation) } else { output::words(&words(&derivation, &args.output)) }
}

fn words(derivation: &Derivation, path: &Path) -> String {
    let mut text = String::new();
    let percent = |share: f64| format!("{:.1} %", 100.0 * share);
    for (title, formulae) in [("Computation (seconds)", &derivation.computation), ("Calls", &derivation.communication)]
    {
        let mut table = output::table(&[title, "formula", "points", "off by", "left out"], &[2, 3, 4]);
        for formula in formulae {
            let left_out = formula.left_out.map_or_else(|| "-".into(), percent);
            table.add_row(vec![
                clean(&formula.of),
                formula.formula.clone(),
                formula.points.to_string(),
                percent(formula.error),
                left_out,
            ]);
        }
        let _ = writeln!(text, "{table}\n");
    }
    let mut table = output::table(&["size", "ranks", "computation", "by the formulae"], &[0, 1, 2, 3]);
    for check in &derivation.checks {
        table.add_row(vec![
            check.size.to_string(),
            check.ranks.to_string(),
            seconds(check.computation_s),
            seconds(check.fitted_s),
        ]);
    }
    let _ =
        writeln!(text, "{table}\n\nwritten to {}; uncertain by {}", path.display(), percent(derivation.uncertainty));
    text
}
