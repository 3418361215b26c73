//! `phasecast predict --skeleton`: builds a skeleton with the target's compiler, runs it until its mean is known, and
//! scales what each part took.
use crate::output::note;
use crate::scratch::Scratch;
use crate::signature::this_machine;
use crate::skeleton::{Built, compiler};
use anyhow::Result;
use phasecast_analyzer::noise::{Seen, quantile};
use phasecast_prediction::{PhasePrediction, Prediction, Uncertainty};
use phasecast_skeleton::program::manifest::{Manifest, Run};
use std::path::Path;
use std::time::Instant;

/// Runs of the skeleton, at least and at most.
const RUNS: [usize; 2] = [3, 12];
/// Time that is spent in any case, in seconds, and beyond it the share of the program's run on the base.
const BUDGET: (f64, f64) = (2.0, 0.2);
/// A run after the first takes at most so long if it has more than one round, in seconds.
const LONGEST_S: f64 = 2.0;
/// Confidence of the intervals.
const CONFIDENCE: f64 = 0.95;

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Wish<'a> {
    /// The launcher, if not the usual one.
    pub launcher: Option<&'a str>,
    /// The compiler, if not the usual one.
    pub cc: Option<&'a str>,
    /// Stop when so much time was spent, in seconds.
    pub budget: Option<f64>,
    /// Stop as soon as the interval's half-width is at most this share of the prediction.
    pub precision: f64,
    /// Take a source that was changed.
    pub changed: bool,
}

/// Predicts with the skeleton in a folder.
///
/// # Errors
/// If it is no skeleton, cannot be built here, or fails.
pub fn predict(folder: &Path, wish: &Wish<'_>, begun: Instant) -> Result<Prediction> {
    let manifest = Manifest::read(folder)?;
    let source = manifest.source(folder, wish.changed)?;
    let scratch = Scratch::here()?;
    let compiler = compiler(wish.cc, wish.launcher, None);
    let built = Built::new(&source, &compiler, wish.launcher, manifest.ranks, scratch.path())?;
    note(&format!("{} ./skeleton", built.launcher()));
    let budget = wish.budget.unwrap_or(BUDGET.0 + BUDGET.1 * manifest.base_s());
    let bar = crate::progress::bar("running the skeleton", "runs");
    let mut runs: Vec<Run> = Vec::new();
    while runs.len() < RUNS[1] {
        // Where a round takes far longer than on the base, fewer will do.
        let most = runs.first().map_or(u64::MAX, |first| (LONGEST_S / first.run_s.max(1e-9)) as u64);
        runs.push(built.run(manifest.rounds().min(most).max(1))?);
        bar.set(runs.len() as u64, RUNS[1] as u64);
        let sample = Sample::of(runs.iter().map(|run| run.stands_for_s));
        if runs.len() >= RUNS[0]
            && (sample.half() <= wish.precision * sample.mean || begun.elapsed().as_secs_f64() >= budget)
        {
            break;
        }
    }
    bar.finish();
    let mut prediction = assemble(&manifest, &runs);
    if wish.changed {
        prediction.notes.push("the skeleton's source may have been changed since it was written".into());
    }
    prediction.set_s = begun.elapsed().as_secs_f64();
    Ok(prediction)
}

/// Mean and scatter of a few numbers.
struct Sample {
    mean: f64,
    deviation: f64,
    count: f64,
}

impl Sample {
    fn of(values: impl Iterator<Item = f64> + Clone) -> Sample {
        let count = values.clone().count() as f64;
        let mean = values.clone().sum::<f64>() / count.max(1.0);
        let squares: f64 = values.map(|v| (v - mean) * (v - mean)).sum();
        Sample { mean, deviation: (squares / (count - 1.0).max(1.0)).sqrt(), count }
    }

    /// Half of the interval in which the mean lies.
    fn half(&self) -> f64 {
        if self.count < 2.0 {
            f64::INFINITY
        } else {
            quantile(self.count - 1.0, CONFIDENCE) * self.deviation / self.count.sqrt()
        }
    }
}

fn assemble(manifest: &Manifest, runs: &[Run]) -> Prediction {
    let here = Sample::of(runs.iter().map(|run| run.stands_for_s));
    let startup_s = Sample::of(runs.iter().map(Run::launch_s)).mean;
    // What the skeleton cannot imitate made it too fast or too slow on the base: as much here.
    let factors = Sample::of(manifest.factors().into_iter());
    let known = factors.count >= 2.0 && factors.mean > 0.0;
    let factor = if known { factors.mean } else { 1.0 };
    let run_s = here.mean * factor;
    let pet_s = startup_s + run_s;
    let relative = if known { factors.half() / factors.mean } else { 0.0 };
    let sampling_s = (here.half() * factor).hypot(relative * run_s);
    let unmeasured_s = 0.5 * (factor - 1.0).abs() * run_s;
    let measured_s: f64 = runs.iter().map(Run::all_rounds_s).sum();
    let ratio = runs.iter().map(|run| run.stands_for_s).sum::<f64>() / measured_s.max(1e-9);
    // A whole run is so many times as long, and scatters the less.
    let freedom = here.count - 1.0;
    let squares = freedom * (here.deviation / here.mean.max(1e-12)).powi(2) / ratio.max(1.0);
    let machine_s = Seen { squares, freedom }.run_to_run(CONFIDENCE) * run_s;
    let half = sampling_s.hypot(unmeasured_s);
    let around = |half: f64| [(pet_s - half).max(0.0), pet_s + half];
    let mut notes = Vec::new();
    if !known {
        notes.push(
            "the skeleton was not compared with its program on the base: what it cannot imitate is not known".into(),
        );
    }
    notes.extend(manifest.left_out.iter().cloned());
    let mpi = runs.first().map_or("", |run| run.mpi.as_str());
    Prediction {
        program: manifest.program.clone(),
        ranks: manifest.ranks,
        target: this_machine(mpi),
        base: manifest.base.clone(),
        pet_s,
        interval_s: around(half),
        run_interval_s: around(half.hypot(machine_s)),
        confidence: CONFIDENCE,
        coverage: (1.0 / ratio.max(1.0)).min(1.0),
        startup_s,
        measured_s,
        uncertainty: Uncertainty { sampling_s, unmeasured_s, machine_s },
        base_run_s: manifest.base_s(),
        phases: phases(manifest, runs, factor),
        notes,
        ..Prediction::blank("skeleton")
    }
}

/// The parts of the slowest rank as phases.
fn phases(manifest: &Manifest, runs: &[Run], factor: f64) -> Vec<PhasePrediction> {
    let parts = manifest.parts.iter().enumerate();
    let of = parts.filter_map(|(at, part)| {
        let total = Sample::of(runs.iter().map(|run| run.parts_s.get(at).copied().unwrap_or(0.0))).mean * factor;
        let weight = part.full.max(1);
        (total > 0.0).then(|| PhasePrediction {
            id: at as u32,
            weight,
            measured: part.count.saturating_mul(runs.iter().map(|run| run.rounds).sum()),
            base_s: part.base_s / weight as f64,
            target_s: Some(total / weight as f64),
            total_s: total,
            pete: None,
            structure: format!("{}, ranks {}", part.name, part.ranks),
        })
    });
    of.collect()
}
