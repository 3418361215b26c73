//! The prediction that a transformed trace stands for, with an honest interval.
use crate::machine;
use crate::transform::walk::Totals;
use crate::transform::{Origin, Outcome};
use phasecast_analyzer::noise::Seen;
use phasecast_prediction::{Machine, PhasePrediction, Prediction, Uncertainty};
use phasecast_trace::{Rank, Trace};

/// Confidence of the intervals.
pub const CONFIDENCE: f64 = 0.95;
/// The prediction of an outcome.
pub fn prediction(trace: &Trace, base: &machine::Machine, target: &machine::Machine, outcome: &Outcome) -> Prediction {
    let header = trace.header(Rank(0));
    let program = header.map_or_else(String::new, |h| {
        std::iter::once(h.program.clone()).chain(h.args.iter().cloned()).collect::<Vec<_>>().join(" ")
    });
    let startup_s = target.life.map_or(0.0, |life| life.launch_s);
    let run_s = outcome.run_s;
    let pet_s = startup_s + run_s;
    let slowest = outcome.totals.iter().max_by(|a, b| sum(&a.target).total_cmp(&sum(&b.target)));
    let totals = slowest.copied().unwrap_or_default();
    let [compute, rest @ ..] = totals.target.map(|ns| ns * 1e-9);
    let sampling_s = outcome.uncertain * compute;
    let unmeasured_s = totals.spread * 1e-9;
    // The run that was traced differs from others by as much as the run to come.
    let squares = kernel_noise(base).powi(2) + kernel_noise(target).powi(2);
    let machine_s = 2f64.sqrt() * Seen { squares, freedom: 2.0 }.run_to_run(CONFIDENCE) * run_s;
    let mean_half = sampling_s.hypot(unmeasured_s).hypot(machine_s / 2f64.sqrt());
    let run_half = sampling_s.hypot(unmeasured_s).hypot(machine_s);
    let around = |half: f64| [(pet_s - half).max(0.0), pet_s + half];
    Prediction {
        program,
        ranks: trace.size(),
        target: side(target),
        base: side(base),
        pet_s,
        interval_s: around(mean_half),
        run_interval_s: around(run_half),
        confidence: CONFIDENCE,
        set_s: outcome.took_s,
        startup_s,
        residual_s: rest.iter().sum(),
        uncertainty: Uncertainty { sampling_s, unmeasured_s, machine_s },
        base_run_s: trace.elapsed().seconds(),
        phases: parts(&totals),
        notes: outcome.notes.clone(),
        ..Prediction::blank("transform")
    }
}

fn sum(of: &[f64; 5]) -> f64 {
    of.iter().sum()
}

/// What the slowest rank's time goes into, as parts of weight 1.
fn parts(totals: &Totals) -> Vec<PhasePrediction> {
    let kinds = Totals::kinds().into_iter().enumerate();
    let with_time = kinds.filter(|(at, _)| totals.base[*at] > 0.0 || totals.target[*at] > 0.0);
    with_time
        .map(|(at, name)| PhasePrediction {
            id: at as u32,
            weight: 1,
            measured: 0,
            base_s: totals.base[at] * 1e-9,
            target_s: Some(totals.target[at] * 1e-9),
            total_s: totals.target[at] * 1e-9,
            pete: None,
            structure: name.to_owned(),
        })
        .collect()
}

/// How far a machine's kernels scatter from pass to pass: a standard deviation as a share.
fn kernel_noise(machine: &machine::Machine) -> f64 {
    let shares: Vec<f64> = machine.kernels.iter().map(|k| k.spread / k.seconds / 0.6745).collect();
    if shares.is_empty() { 0.0 } else { shares.iter().sum::<f64>() / shares.len() as f64 }
}

fn side(machine: &machine::Machine) -> Machine {
    let identity = &machine.identity;
    Machine {
        host: identity.hosts.first().cloned().unwrap_or_default(),
        cpu: identity.cpu.clone(),
        cores: identity.cores,
        mpi: identity.mpi.clone(),
    }
}

/// Where K comes from, in words.
pub fn words(from: Origin) -> &'static str {
    match from {
        Origin::Given => "given",
        Origin::Kernels => "from the kernels of both machine files",
        Origin::Runs => "from the small runs on both machines",
    }
}
