//! One point of a model as the prediction type of all methods.
use super::tables::{Row, Setting};
use phasecast_prediction::{Machine, PhasePrediction, Prediction, Uncertainty};

/// The prediction of a line of a table. Its interval is the application's own uncertainty: what `phasecast model fit` found,
/// else the 10 % that the seed claims.
pub fn prediction(setting: &Setting, row: &Row) -> Prediction {
    let application = setting.application;
    let target = setting
        .system
        .measured
        .clone()
        .unwrap_or_else(|| Machine { host: setting.system.system.clone(), ..Machine::default() });
    let half = application.uncertainty * row.total_s;
    let interval = [(row.total_s - half).max(0.0), row.total_s + half];
    let part = |id: u32, structure: &str, total_s: f64, base_s: f64| PhasePrediction {
        id,
        weight: 1,
        measured: 0,
        base_s,
        target_s: Some(total_s),
        total_s,
        pete: None,
        structure: structure.to_owned(),
    };
    let mut program = application.name.clone();
    if setting.strategy.name != program {
        program = format!("{program}, {}", setting.strategy.name);
    }
    Prediction {
        program: format!("{program}, size {}", row.size),
        ranks: u32::try_from(row.processors).unwrap_or(u32::MAX),
        target,
        base: Machine { host: application.measured_on.clone(), ..Machine::default() },
        pet_s: row.total_s,
        interval_s: interval,
        run_interval_s: interval,
        confidence: 0.95,
        uncertainty: Uncertainty { sampling_s: 0.0, unmeasured_s: half, machine_s: 0.0 },
        base_run_s: row.single_s,
        phases: vec![part(0, "computation", row.comp_s, row.single_s), part(1, "communication", row.comm_s, 0.0)],
        notes: vec![
            "the base run is the model's own, on one processor; starting and ending the run is not in it".into(),
        ],
        ..Prediction::blank("model")
    }
}
