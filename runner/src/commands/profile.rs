//! `phasecast profile`: how many processors are busy, over time.
use crate::exit::Refusal;
use crate::output::{self, clean, count, percent, seconds};
use crate::progress;
use anyhow::Result;
use clap::{Args, ValueEnum};
use phasecast_prediction::name_of;
use phasecast_prediction::report::{Drawing, Figure, Report, Row, seconds as short};
use phasecast_scaling::phases::{self, Found, Phase};
use phasecast_scaling::profile::{self, Busy, Part, Profile, Step, for_each_step};
use phasecast_scaling::smooth::Smoothing;
use phasecast_trace::atomic::AtomicFile;
use phasecast_trace::{Rank, Trace, TraceError};
use serde_json::json;
use std::fmt::Write;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// Levels and phases that are printed.
const SHOWN: usize = 40;

/// Show how many processors are busy over time, and the phases of that
///
/// A rank is busy while it is in no call of MPI. The profile is a step function that is exact to the nanosecond; for
/// smoothing and phases it is made into points of equal length. A phase is a stretch of the profile with one mean and
/// one variance: of full utilisation, sequential, or any other, which begins at a peak, trough or step.
#[derive(Debug, Args)]
pub struct ProfileArgs {
    /// The trace
    #[arg(value_name = "TRACE")]
    trace: PathBuf,
    #[command(flatten)]
    how: How,
    /// Write the points of the profile, smoothed ones beside them, to this file
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Write every step of the profile to this file: start and end in ns, busy processors
    #[arg(long, value_name = "FILE")]
    steps: Option<PathBuf>,
    /// Draw the profile to this file
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// How a profile and its phases are made.
#[derive(Debug, Args)]
pub struct How {
    /// What makes a processor busy
    #[arg(long, value_enum, default_value_t = BusyArg::Computing)]
    busy: BusyArg,
    /// Leave out what is before the end of MPI_Init and behind the start of MPI_Finalize
    #[arg(long)]
    main: bool,
    /// Points of the profile
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    points: u32,
    /// How to smooth: line:WINDOW, moving:DEGREE:WINDOW, round:UNIT, segments:PIECES[:DEGREE] (least largest error),
    /// squares:PIECES[:DEGREE] (least squares), PIECES may be auto; joined by +, or none
    #[arg(long, value_name = "HOW", default_value = "moving:3:11")]
    smooth: Smoothing,
    /// Points of the neighbourhood in which peaks and troughs are ranked: the coarser, the fewer phases
    #[arg(long, value_name = "POINTS", default_value_t = 11, value_parser = clap::value_parser!(u32).range(3..=100_001))]
    neighbourhood: u32,
    /// How many phases, instead of as many as fit best
    #[arg(long, value_name = "N")]
    count: Option<usize>,
}

impl Default for How {
    fn default() -> How {
        let smooth = Smoothing(vec![phasecast_scaling::smooth::SEED]);
        How { busy: BusyArg::Computing, main: false, points: 1000, smooth, neighbourhood: 11, count: None }
    }
}

/// What makes a processor busy.
#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
pub enum BusyArg {
    /// The program's own work: all of MPI is idle
    Computing,
    /// Anything but waiting for others: sends and posts are busy, too
    Unblocked,
}

impl How {
    /// For the profile.
    pub fn profile(&self) -> profile::Settings {
        let busy = match self.busy {
            BusyArg::Computing => Busy::Computing,
            BusyArg::Unblocked => Busy::Unblocked,
        };
        let part = if self.main { Part::Main } else { Part::Whole };
        profile::Settings { busy, part, points: self.points as usize, ..profile::Settings::default() }
    }

    /// An option that is not as where none is given.
    pub fn changed(&self) -> Option<&'static str> {
        let usual = How::default();
        let options = [
            ("--busy", self.busy != usual.busy),
            ("--main", self.main),
            ("--points", self.points != usual.points),
            ("--smooth", self.smooth != usual.smooth),
            ("--neighbourhood", self.neighbourhood != usual.neighbourhood),
            ("--count", self.count.is_some()),
        ];
        options.into_iter().find(|(_, changed)| *changed).map(|(name, _)| name)
    }

    /// For its phases.
    pub fn phases(&self) -> phases::Settings {
        phases::Settings {
            smoothing: self.smooth.clone(),
            neighbourhood: self.neighbourhood as usize | 1,
            count: self.count,
        }
    }
}

/// Makes the profile of a trace, with a bar.
pub fn made(trace: &Trace, how: &How) -> Result<Profile> {
    let bar = progress::bar("profile", "ns of the run");
    let profile = Profile::of(trace, &how.profile(), &|done, of| bar.set(done, of))?;
    bar.finish();
    if profile.length_ns == 0 {
        let what = "no time passes in it. Trace a run that ends, or leave out --main.";
        return Err(Refusal::Input(format!("{} has no profile: {what}", trace.path().display())).into());
    }
    Ok(profile)
}

/// Makes the profile.
pub fn run(args: &ProfileArgs) -> Result<()> {
    for path in [&args.csv, &args.steps, &args.svg].into_iter().flatten() {
        output::refuse_existing(path)?;
    }
    let trace = Trace::open(&args.trace)?;
    let profile = made(&trace, &args.how)?;
    let found = phases::find(&profile.series, &args.how.phases());
    let phases = found.best(args.how.count);
    let smoothed = args.how.smooth.apply(&profile.series.values());
    if let Some(path) = &args.csv {
        output::save(path, profile::draw::csv(&profile, &smoothed, phases).as_bytes())?;
    }
    if let Some(path) = &args.svg {
        output::save(path, profile::draw::svg(&profile, &smoothed, phases).as_bytes())?;
    }
    if let Some(path) = &args.steps {
        steps(&trace, &args.how, path)?;
    }
    let notes = notes(&trace);
    if args.json {
        let levels: Vec<f64> = (0..profile.levels_ns.len()).map(|level| profile.share(level)).collect();
        return output::json(&json!({
            "program": program(&trace), "ranks": profile.ranks, "duration_s": profile.length_s(),
            "busy_s": profile.busy_ns() as f64 * 1e-9, "average_parallelism": profile.mean(),
            "variance": profile.variance(), "sequential": profile.sequential(), "levels": levels,
            "changes": profile.changes, "points": profile.series.points.len(), "point_s": profile.series.width_s(),
            "smooth": args.how.smooth.to_string(), "phases": phases, "transitions": found.transitions, "notes": notes,
        }));
    }
    output::words(&words(&trace, &profile, &found, phases, &notes))
}

/// Writes the steps of a profile as they are made: a run has millions of them.
fn steps(trace: &Trace, how: &How, path: &Path) -> Result<()> {
    let mut out = AtomicFile::create(path)?;
    let written = TraceError::io(path, "write");
    let mut text = String::from("start_ns,end_ns,busy\n");
    for_each_step(trace, &how.profile(), |step: Step| {
        let _ = writeln!(text, "{},{},{}", step.start_ns, step.end_ns, step.busy);
        if text.len() > 1 << 16 {
            out.write_all(text.as_bytes()).map_err(TraceError::io(path, "write"))?;
            text.clear();
        }
        Ok::<(), TraceError>(())
    })?;
    out.write_all(text.as_bytes()).map_err(written)?;
    Ok(out.finish()?)
}

fn program(trace: &Trace) -> String {
    trace.header(Rank(0)).map_or_else(String::new, |header| header.program.clone())
}

fn notes(trace: &Trace) -> Vec<String> {
    let cut = profile::cut_ranks(trace);
    let mut notes = Vec::new();
    if let Some(rank) = cut.first() {
        let reason = trace.cut_reason(*rank).unwrap_or_default();
        notes.push(format!(
            "{} of {} ranks are not recorded to their ends (rank {rank}: {reason}): they count as busy no longer",
            cut.len(),
            trace.size()
        ));
    }
    notes
}

fn words(trace: &Trace, profile: &Profile, found: &Found, phases: &[Phase], notes: &[String]) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: String| {
        let _ = writeln!(text, "{name:<20} {value}");
    };
    line("program", clean(&program(trace)));
    line("processors", count(profile.ranks.into()));
    line("duration", seconds(profile.length_s()));
    line("average parallelism", format!("{:.3} (variance {:.3})", profile.mean(), profile.variance()));
    line("all busy", percent(profile.share(profile.ranks as usize)));
    line("sequential", format!("{} of the time exactly one processor is busy", percent(profile.sequential())));
    line("changes", count(profile.changes));
    let mut levels = output::table(&["busy", "time", "share"], &[0, 1, 2]);
    let shown = (0..profile.levels_ns.len()).rev().filter(|&level| profile.levels_ns[level] > 0);
    for level in shown.take(SHOWN) {
        let time = profile.levels_ns[level] as f64 * 1e-9;
        levels.add_row(vec![level.to_string(), seconds(time), percent(profile.share(level))]);
    }
    let _ = writeln!(text, "\n{levels}\n");
    let mut table = output::table(&["phase", "kind", "begins with", "time", "mean", "variance"], &[3, 4, 5]);
    for (number, phase) in (1..).zip(phases.iter().take(SHOWN)) {
        let begins = phase.begins.map_or_else(|| "-".into(), |shape| format!("{shape:?}").to_lowercase());
        table.add_row(vec![
            format!("P{number}"),
            phase.kind.name().into(),
            begins,
            seconds(phase.time_s),
            format!("{:.2}", phase.mean),
            format!("{:.2}", phase.variance),
        ]);
    }
    let _ = writeln!(text, "{table}");
    if phases.len() > SHOWN {
        let _ = writeln!(text, "and {} more phases", phases.len() - SHOWN);
    }
    let _ = writeln!(text, "\n{} transitions were ranked", found.transitions.len());
    for note in notes {
        let _ = writeln!(text, "note: {}", clean(note));
    }
    text
}

/// The report of a trace: its profile.
pub fn report(path: &Path) -> Result<Report> {
    let trace = Trace::open(path)?;
    let how = How::default();
    let profile = made(&trace, &how)?;
    let found = phases::find(&profile.series, &how.phases());
    let phases = found.best(None);
    let smoothed = how.smooth.apply(&profile.series.values());
    let header = trace.header(Rank(0));
    let words = header.iter().flat_map(|header| std::iter::once(&header.program).chain(&header.args));
    let figure = |name: &str, value: String, detail: String| Figure { name: name.into(), value, detail };
    let ranks = profile.ranks;
    let row = |(id, phase): (u32, &Phase)| Row {
        id,
        weight: 1,
        structure: format!("{}, mean {:.2}, variance {:.2}", phase.kind.name(), phase.mean, phase.variance),
        base_s: phase.time_s,
        share: phase.time_s / profile.length_s(),
        ..Row::default()
    };
    Ok(Report {
        kind: "execution profile".into(),
        program: name_of(words.map(String::as_str)).into(),
        facts: vec![
            ("program".into(), program(&trace)),
            ("arguments".into(), header.map_or_else(String::new, |header| header.args.join(" "))),
            ("ranks".into(), ranks.to_string()),
            ("MPI".into(), header.map_or_else(String::new, |header| header.mpi.clone())),
        ],
        figures: vec![
            figure("Run time", short(profile.length_s()), format!("{} changes of level", count(profile.changes))),
            figure("Average parallelism", format!("{:.2}", profile.mean()), format!("of {ranks} processors")),
            figure("Variance", format!("{:.2}", profile.variance()), "of the number of busy processors".into()),
            figure("Sequential", percent(profile.sequential()), "exactly one processor is busy".into()),
        ],
        notes: notes(&trace),
        phases: (1..).zip(phases).map(row).collect(),
        drawings: vec![Drawing {
            title: "Busy processors over time".into(),
            help: "Ranks outside of MPI, as means over short stretches of the run, smoothed by a cubic on 11 of them."
                .into(),
            svg: profile::draw::svg(&profile, &smoothed, phases),
        }],
        ..Report::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[test]
    fn options_that_are_not_given_are_the_default() {
        #[derive(Parser)]
        struct Line {
            #[command(flatten)]
            how: How,
        }
        let changed = |words: &[&str]| Line::parse_from([&["profile"], words].concat()).how.changed();
        assert_eq!(changed(&[]), None);
        assert_eq!(changed(&["--points", "10"]), Some("--points"));
        assert_eq!(changed(&["--smooth", "none"]), Some("--smooth"));
    }
}
