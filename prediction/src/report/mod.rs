//! One self-contained HTML page for a prediction or an analysis: no network, no other file, no dependency. The input is
//! a [`Report`], which is filled from a [`Prediction`] here and from an analysis by the command.
//!
//! * [`timeline`]: pieces of the ranks' runs thinned to what a screen can show
//! * `page`: the report as HTML; every text in it is escaped, as names of programs may hold anything
mod page;
pub mod timeline;

use crate::model::{Machine, Prediction, TimelinePiece};
use serde::Serialize;

/// What a report shows.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// What it is of, in a few words: `prediction (live)`, `analysis (marker)`.
    pub kind: String,
    /// The program.
    pub program: String,
    /// Facts under the title: name and value.
    pub facts: Vec<(String, String)>,
    /// The numbers at the top, the most important first.
    pub figures: Vec<Figure>,
    /// Times on an axis, for a prediction: PET with its intervals, and the true time.
    pub answer: Option<Answer>,
    /// Sentences that the user should read.
    pub notes: Vec<String>,
    /// The phases.
    pub phases: Vec<Row>,
    /// Time that belongs to no phase shown: its name and seconds.
    pub rest: Vec<(String, f64)>,
    /// What the timeline shows, in a sentence.
    pub timeline_caption: String,
    /// Its pieces, at most a few thousand.
    pub timeline: Vec<TimelinePiece>,
    /// Drawings, each in a section of its own.
    pub drawings: Vec<Drawing>,
}

/// A drawing in a report.
#[derive(Clone, Debug)]
pub struct Drawing {
    /// Its title.
    pub title: String,
    /// What it shows, in a sentence.
    pub help: String,
    /// The drawing: an element `svg` of ours, which goes into the page as it is.
    pub svg: String,
}

/// One number at the top of a report.
#[derive(Clone, Debug)]
pub struct Figure {
    /// Its name.
    pub name: String,
    /// Its value with its unit.
    pub value: String,
    /// A line under it.
    pub detail: String,
}

/// A predicted time with its intervals, in seconds.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Answer {
    /// Predicted execution time.
    pub pet_s: f64,
    /// Where the mean of many runs lies.
    pub interval_s: [f64; 2],
    /// Where another single run lies.
    pub run_interval_s: [f64; 2],
    /// Run time on the base machine.
    pub base_s: f64,
    /// The true time, where it is known.
    pub aet_s: Option<f64>,
}

/// One phase in a report; times in seconds.
#[derive(Clone, Debug, Default)]
pub struct Row {
    /// Its number.
    pub id: u32,
    /// How often it occurs in the run.
    pub weight: u64,
    /// Its structure in short.
    pub structure: String,
    /// Mean time of an occurrence on the base machine.
    pub base_s: f64,
    /// Mean time on the target, where it was measured.
    pub target_s: Option<f64>,
    /// weight x time on the target; none in an analysis.
    pub total_s: Option<f64>,
    /// Occurrences measured on the target, or planned to be.
    pub measured: u64,
    /// weight x time as a share of the whole, 0 to 1.
    pub share: f64,
}

impl Report {
    /// The report of a prediction.
    pub fn of_prediction(p: &Prediction) -> Report {
        let covered: f64 = p.phases.iter().map(|phase| phase.total_s).sum();
        let speed = if p.pet_s > 0.0 { p.base_run_s / p.pet_s } else { 1.0 };
        let level = p.confidence * 100.0;
        let interval = format!("{} to {} ({level:.0} %)", seconds(p.interval_s[0]), seconds(p.interval_s[1]));
        let mut figures = vec![
            Figure { name: "Predicted run time (PET)".into(), value: seconds(p.pet_s), detail: interval },
            Figure {
                name: "Predicting took (SET)".into(),
                value: seconds(p.set_s),
                detail: format!("{:.1} % of the predicted time", percent_of(p.set_s, p.pet_s)),
            },
            Figure {
                name: "Coverage".into(),
                value: format!("{:.1} %", p.coverage * 100.0),
                detail: "of the base run was measured here".into(),
            },
        ];
        figures.push(match (p.aet_s, p.pete) {
            (Some(aet), Some(pete)) => Figure {
                name: "Error (PETE)".into(),
                value: format!("{:.2} %", pete * 100.0),
                detail: format!("true run time (AET) {}", seconds(aet)),
            },
            _ => Figure {
                name: "Base machine".into(),
                value: seconds(p.base_run_s),
                detail: format!("the target is {speed:.2} \u{d7} as fast"),
            },
        });
        let rest = [("start-up", p.startup_s), ("the rest", (p.pet_s - p.startup_s - covered).max(0.0))];
        Report {
            kind: format!("prediction ({})", p.method),
            program: p.name().into(),
            facts: vec![
                ("program".into(), p.program.clone()),
                ("ranks".into(), p.ranks.to_string()),
                ("target".into(), machine(&p.target)),
                ("base".into(), machine(&p.base)),
                ("time spent".into(), spent(p)),
                ("uncertainty".into(), uncertainty(p)),
            ],
            figures,
            answer: Some(Answer {
                pet_s: p.pet_s,
                interval_s: p.interval_s,
                run_interval_s: p.run_interval_s,
                base_s: p.base_run_s,
                aet_s: p.aet_s,
            }),
            notes: p.notes.clone(),
            phases: p
                .phases
                .iter()
                .map(|phase| Row {
                    id: phase.id,
                    weight: phase.weight,
                    structure: phase.structure.clone(),
                    base_s: phase.base_s,
                    target_s: phase.target_s,
                    total_s: Some(phase.total_s),
                    measured: phase.measured,
                    share: if covered > 0.0 { phase.total_s / covered.max(p.pet_s) } else { 0.0 },
                })
                .collect(),
            rest: rest.iter().filter(|(_, s)| *s > 0.0).map(|(name, s)| ((*name).into(), *s)).collect(),
            timeline_caption: "What was measured on the target machine, rank by rank.".into(),
            timeline: p.timeline.clone(),
            drawings: Vec::new(),
        }
    }

    /// The page.
    pub fn to_html(&self) -> String {
        page::html(self)
    }
}

/// A time in seconds with the unit that suits it.
pub fn seconds(s: f64) -> String {
    let (value, unit) = match s.abs() {
        0.0 => return "0 s".into(),
        a if a >= 1.0 => return if a >= 100.0 { format!("{s:.1} s") } else { format!("{s:.2} s") },
        a if a >= 1e-3 => (s * 1e3, "ms"),
        _ => (s * 1e6, "us"),
    };
    let digits = match value.abs() {
        v if v >= 100.0 => 0,
        v if v >= 10.0 => 1,
        _ => 2,
    };
    format!("{value:.digits$} {unit}")
}

fn percent_of(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole * 100.0 } else { 0.0 }
}

fn machine(machine: &Machine) -> String {
    let mut text = machine.host.clone();
    for (value, unit) in [(&machine.cpu, ""), (&machine.cores.to_string(), " cores"), (&machine.mpi, "")] {
        if !value.is_empty() && value != "0" {
            text.push_str(if text.is_empty() { "" } else { ", " });
            text.push_str(value);
            text.push_str(unit);
        }
    }
    if text.is_empty() { "unknown".into() } else { text }
}

fn spent(p: &Prediction) -> String {
    let parts = [("measuring", p.measured_s), ("warming up", p.warmup_s), ("restarting", p.restart_s)];
    let parts: Vec<String> =
        parts.iter().filter(|(_, s)| *s > 0.0).map(|(name, s)| format!("{name} {}", seconds(*s))).collect();
    if parts.is_empty() { "nothing was measured".into() } else { parts.join(", ") }
}

fn uncertainty(p: &Prediction) -> String {
    let u = &p.uncertainty;
    format!(
        "sampling \u{b1} {}, not measured \u{b1} {}, noise of the machine \u{b1} {}",
        seconds(u.sampling_s),
        seconds(u.unmeasured_s),
        seconds(u.machine_s)
    )
}
