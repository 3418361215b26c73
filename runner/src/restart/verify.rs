//! `phasecast verify`: does the signature predict its own base? A prediction by restarts beside true runs, in total and
//! phase by phase.
use crate::launch::Launcher;
use crate::output::{note, shell};
use crate::restart::manifest::Verified;
use crate::restart::predict::{Wish, predict};
use crate::signature::Signature;
use anyhow::{Result, bail};
use phasecast_prediction::Prediction;
use std::ffi::OsString;
use std::path::Path;
use std::time::Instant;

/// Predicts and compares with `truth`, wall times of true runs in seconds: in total with their median, and each phase
/// with what it took in the base runs.
///
/// # Errors
/// Those of [`predict`].
pub fn verify(signature: &Signature, source: &Path, wish: &Wish<'_>, truth: &[f64]) -> Result<Prediction> {
    let mut prediction = predict(signature, source, wish, Instant::now())?;
    prediction.with_true_time(median(truth));
    for phase in &mut prediction.phases {
        let base = phase.base_s * phase.weight as f64;
        phase.pete = (phase.target_s.is_some() && base > 0.0).then(|| (phase.total_s - base).abs() / base);
    }
    Ok(prediction)
}

/// The mark that a signature keeps of it.
pub fn mark(prediction: &Prediction) -> Verified {
    let restarts: u64 = prediction.restarts.max(1);
    Verified {
        pet_s: prediction.pet_s,
        aet_s: prediction.aet_s.unwrap_or(0.0),
        pete: prediction.pete.unwrap_or(0.0),
        restart_s: prediction.restart_s / restarts as f64,
    }
}

/// Runs the program plainly, `count` times: wall times in seconds.
///
/// # Errors
/// If it fails.
pub fn true_runs(launcher: &Launcher, command: &[String], count: u32) -> Result<Vec<f64>> {
    let words: Vec<OsString> = command.iter().map(OsString::from).collect();
    let mut times = Vec::new();
    for number in 1..=count {
        note(&format!("true run {number} of {count}: {launcher} {}", shell(command)));
        let (status, wall_s) = launcher.run(&words)?;
        if !status.success() {
            bail!("the true run failed ({status})");
        }
        times.push(wall_s);
    }
    Ok(times)
}

/// The middle of some numbers; 0 of none.
fn median(of: &[f64]) -> f64 {
    let mut sorted = of.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => 0.0,
        n if n % 2 == 1 => sorted[middle],
        _ => 0.5 * (sorted[middle - 1] + sorted[middle]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!((median(&[]), median(&[3.0]), median(&[3.0, 1.0]), median(&[9.0, 1.0, 2.0])), (0.0, 3.0, 2.0, 2.0));
    }
}
