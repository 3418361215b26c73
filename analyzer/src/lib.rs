//! Finds the phases of a traced program: seed 004 (PAS2P), on the evidence of 24 programs.
//!
//! * [`source`], [`counted`], [`survey`], [`stream`], [`symbol`], [`volume`]: the stream of completed communications of
//!   each rank
//! * [`peers`], [`matching`], [`closure`]: who waits for whom, and the cuts of all ranks that follow from one rank's
//! * [`pilot`], [`candidates`], [`marker`], [`cover`], [`segments`], [`levels`]: `--method marker`
//! * [`clock`], [`pbb`]: logical time, and `--method pbb`
//! * [`phases`], [`plan`], [`words`]: phases with weights, coverage, what to measure, the verdict
//! * [`loops`], [`nest`]: loop nests of symbols, for the structure of phases and for performance skeletons (seed 002)
//! * [`estimate`], [`restarts`], [`noise`]: from measured pieces to the whole run, and how runs differ
//! * [`model`], [`file`]: the result, and how it is kept
pub mod candidates;
pub mod clock;
pub mod closure;
pub mod counted;
pub mod cover;
pub mod cuts_at;
pub mod error;
pub mod estimate;
pub mod file;
pub mod levels;
pub mod loops;
pub mod marker;
pub mod matching;
pub mod model;
pub mod nest;
pub mod noise;
pub mod parallel;
pub mod pbb;
pub mod peers;
pub mod phases;
pub mod pilot;
pub mod plan;
mod replayed;
pub mod restarts;
pub mod segments;
pub mod sinks;
pub mod source;
pub mod stream;
pub mod survey;
pub mod symbol;
mod transient;
pub mod volume;
pub mod words;

pub use clock::ClockKind;
pub use cuts_at::cuts_at_every_position;
pub use error::AnalyzeError;
pub use estimate::{Estimate, estimate};
pub use model::{Analysis, Marker, Method, Order, Phase, Piece, Share, Verdict, advances, longest};
pub use restarts::{Edge, Restart, estimate_restarts};
pub use symbol::{SegmentHasher, Symbols};

use counted::Counted;
use parallel::{Progress, Stage};
use phasecast_trace::model::file_name;
use phasecast_trace::{Rank, Trace};
use segments::Input;

/// Collectives are counted where so much of the run is phases of them that come again, even if it does not pay to measure
/// them well.
const REPEATING: f64 = 0.5;

/// How to analyse.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The method.
    pub method: Method,
    /// By how much volumes and times of similar blocks may differ, as a share (`--method pbb`).
    pub similarity: f64,
    /// The share of the run from which on a phase is relevant.
    pub relevance: f64,
    /// The logical clock (`--method pbb`).
    pub clock: ClockKind,
    /// Whether the program goes by what comes first, so that the same work is with one rank here and another there.
    pub first_come: bool,
    /// Whether positions may be counts of collectives only, where messages are others in every run. Only restarts count so.
    pub collectives: bool,
    /// Threads; the result does not depend on them.
    pub threads: usize,
}

impl Default for Settings {
    fn default() -> Self {
        let threads = std::thread::available_parallelism().map_or(1, |n| n.get());
        Settings {
            method: Method::Marker,
            similarity: 0.05,
            relevance: 0.01,
            clock: ClockKind::Pas2p,
            first_come: false,
            collectives: false,
            threads,
        }
    }
}

/// Analyses one base run, or more: the second confirms levels and gives the noise, further ones only the noise.
/// `progress` is told how many units of work are done, and of how many.
///
/// # Errors
/// If a trace is damaged or not complete, or if the traces are not of the same program with as many ranks. Streams
/// that differ are no error: the verdict says where. What comes before may do, or the collectives that all ranks have in
/// common ([`Counted::Collectives`], if the settings allow that); else the first run is analysed alone.
pub fn analyze(traces: &[Trace], settings: &Settings, progress: Progress<'_>) -> Result<Analysis, AnalyzeError> {
    let Some(first) = traces.first() else { return Err(AnalyzeError::Nothing) };
    for other in &traces[1..] {
        alike(first, other)?;
    }
    let all = Runs::look(traces, vec![Counted::All; traces.len()], settings, progress)?;
    let by_marker = settings.method == Method::Marker;
    let mut analysis = all.analyze(by_marker || all.difference.is_none())?;
    let Some(difference) = all.difference.clone() else { return Ok(analysis) };
    if by_marker && analysis.verdict.pays {
        let last = format!("; what comes last is not the same in every run ({difference}): it is as in the first");
        analysis.verdict.reason.push_str(&last);
        analysis.verdict.difference = Some(difference);
        return Ok(analysis);
    }
    if by_marker && settings.collectives {
        let some = Runs::look(traces, traces.iter().map(Counted::collectives).collect(), settings, progress)?;
        let mut other = some.analyze(true)?;
        // Where its times only scatter too much, the plan of images has the last word.
        if other.verdict.pays || some.difference.is_none() && other.repeating_share() >= REPEATING {
            other.order = Order::Collectives;
            other.verdict.reason.push_str(&format!(
                "; its messages are others in every run ({difference}), so that only collectives of all ranks are counted"
            ));
            other.verdict.difference = some.difference;
            return Ok(other);
        }
    }
    if by_marker {
        analysis = all.analyze(false)?;
    }
    analysis.verdict = Verdict {
        pays: false,
        reason: format!(
            "the program does not do the same in every run ({difference}), so that cuts cannot be carried from one \
             run to another: run it in full, or make its communication the same from run to run (fixed seeds, no \
             wall-clock decisions)"
        ),
        difference: Some(difference),
    };
    Ok(analysis)
}

/// Base runs of a program, as far as they were looked at before they are analysed.
struct Runs<'a> {
    traces: &'a [Trace],
    settings: &'a Settings,
    progress: Progress<'a>,
    counted: Vec<Counted>,
    surveys: Vec<survey::Survey>,
    volumes: volume::Volumes,
    zones: Vec<Vec<stream::Zone>>,
    /// Where the first two runs differ in what is counted.
    difference: Option<String>,
    /// Units of work so far, and in all.
    done: (u64, u64),
}

impl<'a> Runs<'a> {
    fn look(
        traces: &'a [Trace],
        counted: Vec<Counted>,
        settings: &'a Settings,
        progress: Progress<'a>,
    ) -> Result<Runs<'a>, AnalyzeError> {
        let items: u64 = traces.iter().map(Trace::items).sum::<u64>().max(1);
        let of = items * if traces.len() > 1 { 5 } else { 4 };
        let (mut surveys, mut start) = (Vec::new(), 0);
        for (trace, counted) in traces.iter().zip(&counted) {
            surveys.push(survey::survey(trace, counted, settings.threads, &Stage::new(progress, start, of))?);
            start += trace.items();
        }
        let mut volumes = surveys[0].volumes.clone();
        surveys.iter().skip(1).for_each(|s| volumes.merge(&s.volumes));
        let (zones, difference) = (Vec::new(), None);
        let mut runs =
            Runs { traces, settings, progress, counted, surveys, volumes, zones, difference, done: (start, of) };
        if let [first, second, ..] = traces {
            let stage = Stage::new(progress, start, of);
            let symbols = [first, second].map(|trace| runs.symbols(trace));
            let counted = [&runs.counted[0], &runs.counted[1]];
            let found =
                stream::compare([first, second], counted, [&symbols[0], &symbols[1]], settings.threads, &stage)?;
            (runs.zones, runs.difference) = (found.zones, found.difference);
            runs.done.0 += items;
        }
        Ok(runs)
    }

    fn symbols(&self, trace: &Trace) -> Symbols {
        Symbols::new(&self.volumes.classes(), trace.procedures(), Order::Kept)
    }

    /// Analyses the first run, confirmed by the second or alone.
    fn analyze(&self, confirmed: bool) -> Result<Analysis, AnalyzeError> {
        let (start, of) = self.done;
        let own = self.traces[0].items();
        let stages = [start, start + own / 4, start + own].map(|at| Stage::new(self.progress, at, of));
        let used = if confirmed { self.traces.len().min(2) } else { 1 };
        let input = Input {
            traces: &self.traces[..used],
            counted: &self.counted,
            surveys: &self.surveys,
            zones: if used > 1 { &self.zones } else { &[] },
            symbols: &self.symbols(&self.traces[0]),
            settings: self.settings,
        };
        let analysis = match self.settings.method {
            Method::Marker => segments::analyze(&input, &stages),
            Method::Pbb => pbb::analyze(&input, &stages[0]),
        };
        (self.progress)(of, of);
        analysis.map(|analysis| Analysis { volume_classes: self.volumes.classes(), ..analysis })
    }
}

/// Refuses traces that cannot be of the same program.
fn alike(first: &Trace, other: &Trace) -> Result<(), AnalyzeError> {
    let header = |trace: &Trace| trace.header(Rank(0)).map(|h| (h.program.clone(), h.args.clone()));
    let what = if first.size() != other.size() {
        format!("it has {} ranks instead of {}", other.size(), first.size())
    } else {
        match (header(first), header(other)) {
            (Some((a, _)), Some((b, _))) if file_name(&a) != file_name(&b) => format!("it is of {b} instead of {a}"),
            (Some((_, a)), Some((_, b))) if a != b => format!("its arguments are {b:?} instead of {a:?}"),
            _ => return Ok(()),
        }
    };
    Err(AnalyzeError::Unlike { path: other.path().to_owned(), what })
}

pub(crate) fn report(
    input: &Input<'_>,
    method: Method,
    markers: Vec<Marker>,
    summary: phases::Summary,
    pieces: Vec<Vec<Piece>>,
    unmatched: (u64, u64),
) -> Analysis {
    let header = input.traces[0].header(Rank(0));
    let text = |of: fn(&phasecast_trace::model::RankHeader) -> String| header.map(of).unwrap_or_default();
    let longest = |survey: &survey::Survey| survey.spans.iter().map(|s| s.1 - s.0).max().unwrap_or(0) as f64 * 1e-9;
    Analysis {
        method,
        program: text(|h| h.program.clone()),
        args: header.map(|h| h.args.clone()).unwrap_or_default(),
        mpi: text(|h| h.mpi.clone()),
        ranks: input.traces[0].size(),
        events: input.surveys[0].events.clone(),
        run_time_s: longest(&input.surveys[0]),
        base_runs_s: input.surveys.iter().map(longest).collect(),
        markers,
        volume_classes: Vec::new(),
        order: Order::Kept,
        phases: summary.phases,
        explained_s: summary.explained_s,
        planned_s: summary.planned_s,
        coverage: summary.coverage,
        residual_s: summary.residual_s,
        verdict: summary.verdict,
        unmatched_sends: unmatched.0,
        unmatched_receives: unmatched.1,
        pieces,
    }
}
