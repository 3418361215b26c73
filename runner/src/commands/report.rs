//! `phasecast report`: one HTML page to look at, of a trace, phases, a signature or a prediction.
use crate::commands::{analyze, profile};
use crate::output::{self, percent};
use crate::signature::Signature;
use anyhow::Result;
use clap::Args;
use phasecast_analyzer::Analysis;
use phasecast_prediction::report::{Figure, Report, Row, seconds, timeline};
use phasecast_prediction::{Prediction, TimelinePiece, name_of};
use phasecast_trace::container::Container;
use std::path::{Path, PathBuf};

/// Write a report as one HTML page: phases, times on base and target, ranks over time
///
/// The page needs no network and no other file.
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// A trace (then its execution profile), phases, a signature, or a prediction
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
        return profile::report(path);
    }
    match Container::kind_of(path).as_deref() {
        Some("signature") => Ok(of_analysis(&Signature::load(path)?.analysis)),
        Some(_) => Ok(of_analysis(&Analysis::load(path)?)),
        None => Ok(Report::of_prediction(&Prediction::read(path)?)),
    }
}

/// The report of an analysis.
fn of_analysis(analysis: &Analysis) -> Report {
    let of_run = |s: f64| if analysis.run_time_s > 0.0 { s / analysis.run_time_s } else { 0.0 };
    let figure = |name: &str, value: String, detail: String| Figure { name: name.into(), value, detail };
    let relevant = analysis.phases.iter().filter(|phase| phase.relevant).count();
    let runs = analysis.base_runs_s.iter().map(|s| seconds(*s)).collect::<Vec<_>>().join(", ");
    let known: f64 = analysis.phases.iter().map(|phase| phase.share).sum();
    let mut notes = Vec::new();
    if !analysis.verdict.pays {
        notes.push(format!("Measuring phases does not pay: {}", analysis.verdict.reason));
    }
    let words: Vec<&str> = std::iter::once(&analysis.program).chain(&analysis.args).map(String::as_str).collect();
    let mut facts = vec![
        ("program".into(), words.join(" ")),
        ("ranks".into(), analysis.ranks.to_string()),
        ("MPI".into(), analysis.mpi.clone()),
        ("events".into(), output::count(analysis.events.iter().sum())),
        ("base runs".into(), runs),
    ];
    for marker in &analysis.markers {
        facts.push(("cut at".into(), marker.words.clone()));
    }
    Report {
        kind: format!("analysis ({})", analyze::method_name(analysis)),
        program: name_of(words).into(),
        facts,
        figures: vec![
            figure("Run time", seconds(analysis.run_time_s), format!("{relevant} relevant phases")),
            figure("Explained", percent(of_run(analysis.explained_s)), "by what is to be measured".into()),
            figure("To be measured", percent(of_run(analysis.planned_s)), seconds(analysis.planned_s)),
            figure("Coverage", percent(analysis.coverage), format!("{} remain", seconds(analysis.residual_s))),
        ],
        answer: None,
        notes,
        phases: analysis
            .phases
            .iter()
            .map(|phase| Row {
                id: phase.id.0,
                weight: phase.weight,
                structure: phase.structure.clone(),
                base_s: phase.time_s,
                target_s: None,
                total_s: None,
                measured: phase.planned.len() as u64,
                share: phase.share,
            })
            .collect(),
        rest: [("in no phase".to_string(), analysis.run_time_s * (1.0 - known))]
            .into_iter()
            .filter(|(_, s)| *s > 0.0)
            .collect(),
        timeline_caption: caption(analysis.pieces.len()),
        timeline: pieces(analysis),
        drawings: Vec::new(),
    }
}

fn caption(ranks: usize) -> String {
    match timeline::shown(ranks).len() {
        shown if shown < ranks => {
            format!("The base run; {shown} of its {ranks} ranks, each with the phase that takes the most of a moment.")
        }
        _ => "The base run, each moment with the phase that takes the most of it.".into(),
    }
}

fn pieces(analysis: &Analysis) -> Vec<TimelinePiece> {
    let ranks = timeline::shown(analysis.pieces.len());
    let each = timeline::MOST_PIECES / ranks.len().max(1);
    let of = |rank: &usize| {
        let lengths = analysis.pieces[*rank].iter().map(|piece| (piece.phase.0, piece.time.seconds()));
        timeline::thin(*rank as u32, 0.0, lengths, each)
    };
    ranks.iter().flat_map(of).collect()
}
