//! The live prediction: runs the program on this (target) machine under the tracer, only until its phases have been
//! measured, and adds up time x weight.
use crate::launch::{Launcher, program_path};
use crate::live::observe::{Observation, Outcome};
use crate::live::track::Tracker;
use crate::output::{note, shell};
use crate::scratch::Scratch;
use crate::signature::{Manifest, Signature, this_machine};
use crate::trace_launch::traced_command;
use anyhow::Result;
use phasecast_analyzer::{Analysis, Estimate, Order, Piece, estimate};
use phasecast_prediction::report::timeline::thin;
use phasecast_prediction::{PhasePrediction, Prediction, TimelinePiece, Uncertainty, VERSION};
use phasecast_trace::{Nanos, PhaseId};
use std::path::Path;
use std::time::Instant;

/// Confidence of the intervals.
const CONFIDENCE: f64 = 0.95;
/// Rectangles of the report's timeline.
const TIMELINE: usize = 4000;
/// Occurrences of a relevant phase that must be seen before a run may be stopped.
const ENOUGH: u64 = 3;

/// The share of the run after which it is stopped, where none is asked for.
pub const SHARE: f64 = 0.3;

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Wish<'a> {
    /// Stop when this share of the run lies behind.
    pub share: f64,
    /// Stop as soon as the interval's half-width is at most this share of the prediction.
    pub precision: Option<f64>,
    /// The launcher, if not the usual one.
    pub launcher: Option<&'a str>,
    /// The program and its arguments; those that were signed if empty.
    pub command: &'a [String],
}

/// Predicts by running the program.
///
/// # Errors
/// If the program is not there, fails or cannot be traced.
pub fn predict(signature: &Signature, wish: &Wish<'_>, begun: Instant) -> Result<Prediction> {
    let Signature { manifest, analysis } = signature;
    let command = if wish.command.is_empty() { &manifest.command } else { wish.command };
    // A launcher of the user's may start it elsewhere.
    if wish.launcher.is_none() {
        program_path(&command[0])?;
    }
    let launcher = Launcher::find(wish.launcher, manifest.ranks, Path::new(&command[0]))?;
    let scratch = Scratch::here()?;
    let folder = scratch.path().join("target.trace");
    let mut notes = Vec::new();
    if !repeats(analysis) {
        notes.push(format!("the program is run to its end: {}", analysis.verdict.reason));
    }
    note(&format!("{launcher} {}", shell(command)));
    let bar = crate::progress::bar("measuring", "% of the run");
    let mut launch = launcher.start(&traced_command(&folder, command, None))?;
    let mut observation = Observation::new(analysis, &folder);
    let mut rule = StopRule::new(analysis, wish.share, wish.precision);
    let outcome = observation.run(&mut launch, |seen| {
        bar.set((seen.progress() * 100.0) as u64, 100);
        rule.stop(seen)
    });
    bar.finish();
    launch.stop(&observation.local_pids());
    let outcome = outcome?;
    notes.extend(rule.note.take());
    notes.extend(observation.divergence_note());
    let estimate = estimate(analysis, &observation.times(), CONFIDENCE);
    let startup_s = observation.startups(launch.started_ns()).into_iter().flatten().reduce(f64::min);
    let startup_s = startup_s.unwrap_or(manifest.startup_s);
    let wall_s = match outcome {
        Outcome::RanToEnd { wall_s } => {
            notes.push("the program ran to its end: its time was measured, not predicted".into());
            Some(wall_s)
        }
        Outcome::Stopped => None,
    };
    let mut prediction = assemble(manifest, &observation, &estimate, startup_s, wall_s);
    prediction.notes = notes;
    drop(launch);
    prediction.set_s = begun.elapsed().as_secs_f64();
    Ok(prediction)
}

/// Whether enough of the run is phases that come again, the same in every run, for a part of it to stand for the rest.
/// (That measuring *pays* is a stronger word: it means a small part suffices for 1 %. Here the user has named the part.)
fn repeats(analysis: &Analysis) -> bool {
    if analysis.verdict.refuses() || analysis.order == Order::Collectives {
        return false;
    }
    analysis.repeating_share() >= 0.5
}

/// When enough has been seen.
struct StopRule<'a> {
    analysis: &'a Analysis,
    share: f64,
    precision: Option<f64>,
    asked: Instant,
    note: Option<String>,
}

impl<'a> StopRule<'a> {
    fn new(analysis: &'a Analysis, share: f64, precision: Option<f64>) -> StopRule<'a> {
        StopRule { analysis, share, precision, asked: Instant::now(), note: None }
    }

    fn stop(&mut self, seen: &Observation<'_>) -> bool {
        let progress = seen.progress();
        if !repeats(self.analysis) {
            return false;
        }
        if progress >= self.share {
            if !self.seen_enough(seen) {
                self.note = Some(format!(
                    "the phases that carry the run come late: {:.0} % of the run was needed instead of {:.0} %",
                    progress * 100.0,
                    self.share * 100.0
                ));
                return false;
            }
            return true;
        }
        // The interval is worked out a few times a second at most: it must not take the ranks' processors.
        let Some(precision) = self.precision.filter(|_| self.asked.elapsed().as_millis() >= 250) else { return false };
        self.asked = Instant::now();
        if !self.seen_enough(seen) {
            return false;
        }
        let now = estimate(self.analysis, &seen.times(), CONFIDENCE);
        now.half_width_s <= precision * now.total_s
    }

    /// Whether the relevant phases of most of the run's time have been seen a few times each.
    fn seen_enough(&self, seen: &Observation<'_>) -> bool {
        let counts = seen.counts();
        let relevant = || self.analysis.phases.iter().filter(|p| p.relevant && !p.one_off);
        let share = |phases: &mut dyn Iterator<Item = &phasecast_analyzer::Phase>| phases.map(|p| p.share).sum::<f64>();
        let met = share(&mut relevant().filter(|p| counts[p.id.index()] >= p.weight.min(ENOUGH)));
        met >= 0.5 * share(&mut relevant())
    }
}

impl Observation<'_> {
    /// Share of the base run's time that lies behind, on the rank that has the most behind it: one that only receives
    /// may have nearly all its time in the last piece.
    fn progress(&self) -> f64 {
        self.trackers.iter().flatten().map(Tracker::progress).fold(0.0, f64::max)
    }

    fn times(&self) -> Vec<Vec<Option<Nanos>>> {
        self.trackers.iter().map(|t| t.as_ref().map_or_else(Vec::new, |t| t.times.clone())).collect()
    }

    /// For each phase, how many occurrences every rank has completed (the fewest of any rank that takes part).
    fn counts(&self) -> Vec<u64> {
        let mut fewest = vec![u64::MAX; self.analysis().phases.len()];
        for (rank, tracker) in self.trackers.iter().enumerate() {
            let pieces = &self.analysis().pieces[rank];
            let done = tracker.as_ref().map_or(0, |t| t.measured());
            let (mut takes_part, mut counts) = (vec![false; fewest.len()], vec![0; fewest.len()]);
            for (at, piece) in pieces.iter().enumerate() {
                takes_part[piece.phase.index()] = true;
                counts[piece.phase.index()] += u64::from(at < done);
            }
            for (phase, least) in fewest.iter_mut().enumerate().filter(|(phase, _)| takes_part[*phase]) {
                *least = (*least).min(counts[phase]);
            }
        }
        fewest
    }

    fn divergence_note(&self) -> Option<String> {
        let strange: usize = self.trackers.iter().flatten().map(|t| t.strange).sum();
        let first = self.trackers.iter().flatten().find_map(|t| t.divergence.clone())?;
        Some(format!(
            "the program communicates differently here: {strange} pieces, the first on rank {} after its event {} (phase {}). Is it the same program with the same input?",
            first.rank, first.event, first.phase
        ))
    }
}

fn assemble(
    manifest: &Manifest,
    observation: &Observation<'_>,
    estimate: &Estimate,
    startup_s: f64,
    wall_s: Option<f64>,
) -> Prediction {
    let analysis = observation.analysis();
    let run_s = startup_s + estimate.total_s + manifest.teardown_s;
    let pet_s = wall_s.unwrap_or(run_s);
    // Of what was measured in place of the estimate another run differs by the same share.
    let machine_s = estimate.machine_s * wall_s.filter(|_| run_s > 0.0).map_or(1.0, |wall_s| wall_s / run_s);
    let around = |half: f64| if wall_s.is_some() { [pet_s, pet_s] } else { [(pet_s - half).max(0.0), pet_s + half] };
    // A program that has run to its end leaves nothing open but what another run would take.
    let [run_half, residual_s, sampling_s, unmeasured_s] = match wall_s {
        Some(_) => [machine_s, 0.0, 0.0, 0.0],
        None => [estimate.run_half_width_s, estimate.unmeasured_s, estimate.sampling_s, estimate.rest_s],
    };
    let measured = observation.trackers.iter().flatten().map(|t| t.measured_time().seconds()).fold(0.0, f64::max);
    Prediction {
        version: VERSION,
        method: "live".into(),
        program: manifest.command.join(" "),
        ranks: manifest.ranks,
        target: this_machine(&observation.mpi()),
        base: manifest.machine.clone(),
        pet_s,
        interval_s: around(estimate.half_width_s),
        run_interval_s: [(pet_s - run_half).max(0.0), pet_s + run_half],
        confidence: CONFIDENCE,
        set_s: 0.0,
        coverage: if wall_s.is_some() { 1.0 } else { estimate.coverage },
        startup_s,
        residual_s,
        restarts: 0,
        restart_s: 0.0,
        warmup_s: 0.0,
        measured_s: measured,
        uncertainty: Uncertainty { sampling_s, unmeasured_s, machine_s },
        base_run_s: manifest.base_run_s(),
        naive_s: observation.naive(startup_s),
        phases: phases(analysis, estimate),
        notes: Vec::new(),
        aet_s: None,
        pete: None,
        timeline: timeline(observation),
    }
}

/// The phases of an estimate beside those of the base.
pub fn phases(analysis: &Analysis, estimate: &Estimate) -> Vec<PhasePrediction> {
    let both = analysis.phases.iter().zip(&estimate.phases);
    let of =
        |(phase, target): (&phasecast_analyzer::Phase, &phasecast_analyzer::estimate::PhaseEstimate)| PhasePrediction {
            id: phase.id.0,
            weight: phase.weight,
            measured: target.measured,
            base_s: base_mean(analysis, estimate.rank, phase.id).unwrap_or(phase.time_s),
            target_s: target.mean_s,
            total_s: target.total_s,
            pete: None,
            structure: phase.structure.clone(),
        };
    both.map(of).collect()
}

/// Mean time of a phase in the base runs, on the rank that the estimate speaks of.
fn base_mean(analysis: &Analysis, rank: usize, phase: PhaseId) -> Option<f64> {
    let pieces = analysis.pieces.get(rank)?.iter().filter(|piece| piece.phase == phase);
    let (count, sum) = pieces.fold((0u32, 0.0), |(count, sum), piece| (count + 1, sum + piece.profile()));
    (count > 0).then(|| sum / f64::from(count))
}

impl Observation<'_> {
    /// What one would guess without phasecast: the time of the first twentieth of the iterations (the pieces that
    /// repeat and matter), times twenty, after the start-up and what comes before them.
    fn naive(&self, startup_s: f64) -> Option<f64> {
        let tracker = self.trackers.first()?.as_ref()?;
        let phase = |p: &Piece| self.analysis().phases.get(p.phase.index());
        let repeats = |p: &Piece| phase(p).is_some_and(|phase| phase.relevant && !phase.one_off);
        let pieces = self.analysis().pieces.first()?;
        let first = pieces.iter().position(repeats)?;
        let iterations = pieces.iter().filter(|p| repeats(p)).count();
        let twentieth = (iterations / 20).max(1);
        let seconds = |time: &Option<Nanos>| time.map(|t| t.seconds());
        let before: f64 = tracker.times.iter().take(first).filter_map(seconds).sum();
        let timed: Vec<_> = pieces.iter().zip(&tracker.times).filter(|(p, _)| repeats(p)).take(twentieth).collect();
        let timed: Option<Vec<f64>> = timed.into_iter().map(|(_, time)| seconds(time)).collect();
        (iterations > 1)
            .then_some(startup_s + before + timed?.iter().sum::<f64>() * iterations as f64 / twentieth as f64)
    }
}

/// The measured pieces of all ranks, at most [`TIMELINE`] in all.
fn timeline(observation: &Observation<'_>) -> Vec<TimelinePiece> {
    let origin = observation.trackers.iter().flatten().map(|t| t.started().0).min().unwrap_or(0);
    let each = TIMELINE / observation.trackers.len().max(1);
    let of_rank = |(rank, tracker): (usize, &Option<Tracker<'_>>)| {
        let Some(tracker) = tracker else { return Vec::new() };
        let start_s = (tracker.started().0 - origin) as f64 * 1e-9;
        let timed = observation.analysis().pieces[rank].iter().zip(tracker.times.iter().map_while(|time| *time));
        thin(rank as u32, start_s, timed.map(|(piece, time)| (piece.phase.0, time.seconds())), each)
    };
    observation.trackers.iter().enumerate().flat_map(of_rank).collect()
}
