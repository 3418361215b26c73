//! What the signatures say of one number of processors, as a prediction like those of all methods.
use super::scale::{Forecast, Scaled};
use phasecast_analyzer::noise::Seen;
use phasecast_prediction::{Machine, PhasePrediction, Prediction, Uncertainty};

/// Where another single run lies, in the unit of the runs: the forecast's interval, widened by how runs differ.
pub fn run_interval(forecast: &Forecast, confidence: f64) -> [f64; 2] {
    let noise = noise(forecast, confidence);
    let [below, above] = forecast.interval.map(|bound| (bound - forecast.time).hypot(noise));
    [(forecast.time - below).max(0.0), forecast.time + above]
}

/// How runs differ, in the unit of the runs: there is one run for each number of processors, which says nothing of it.
fn noise(forecast: &Forecast, confidence: f64) -> f64 {
    Seen::default().run_to_run(confidence) * forecast.time
}

/// The prediction of forecast number `at`. Base and target are one machine: more processors of the same kind.
pub fn prediction(scaled: &Scaled, at: usize, machine: &Machine, confidence: f64, took_s: f64) -> Prediction {
    let (forecast, runs) = (&scaled.forecasts[at], &scaled.runs);
    let unit = runs.unit_s;
    let largest = runs.processors.len() - 1;
    let [sampling, reach] = scaled.halves[at];
    let mut notes = runs.notes.clone();
    let (processors, most) = (forecast.processors, runs.processors[largest]);
    if u64::from(processors) > 8 * u64::from(most) {
        notes.push(format!(
            "{processors} processors are far beyond the largest run ({most}): signatures are no proof there"
        ));
    }
    for ranks in &runs.shared_out {
        notes.push(format!(
            "the run with {ranks} processors shows no phases: its time is shared out as in the smallest run that does"
        ));
    }
    if let Some(phase) = scaled.holds_back {
        notes.push(format!("phase {} holds the program back first", scaled.phases[phase].phase.name));
    }
    let phases = scaled.phases.iter().zip(0..).map(|(signature, id)| {
        let (phase, weight) = (&signature.phase, signature.phase.weight.max(1) as f64);
        let total_s = signature.forecasts[at].time * unit;
        PhasePrediction {
            id,
            weight: phase.weight,
            measured: 0,
            base_s: phase.times[largest] * unit / weight,
            target_s: Some(total_s / weight),
            total_s,
            pete: None,
            structure: match phase.weight {
                1 => format!("{} ({})", phase.name, phase.kind.name()),
                _ => phase.name.clone(),
            },
        }
    });
    let pet_s = forecast.time * unit;
    let interval_s = forecast.interval.map(|time| time * unit);
    let mut prediction = Prediction {
        program: runs.program.clone(),
        ranks: processors,
        target: machine.clone(),
        base: machine.clone(),
        pet_s,
        interval_s,
        run_interval_s: run_interval(forecast, confidence).map(|time| time * unit),
        confidence,
        set_s: took_s,
        uncertainty: Uncertainty {
            sampling_s: sampling * unit,
            unmeasured_s: reach * unit,
            machine_s: noise(forecast, confidence) * unit,
        },
        base_run_s: runs.total(largest) * unit,
        phases: phases.collect(),
        notes,
        ..Prediction::blank("scale")
    };
    if let Some(actual) = forecast.actual {
        prediction.with_true_time(actual * unit);
    }
    prediction
}
