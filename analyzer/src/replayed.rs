//! What a sample is worth: replayed on the base runs, whose time is known (docs/src/algorithms/estimate.md).
use crate::estimate::{Sample, by_phase, drifted, reliability, strata};

/// The error of the sample replayed on the base runs: each is predicted from its own times of the measured pieces and
/// the other's profile; the larger error, as a share. A single run says of itself how far its measured pieces are off.
pub(crate) fn replayed(list: &[(usize, Sample)], phases: usize) -> f64 {
    let by_phase = by_phase(phases, list);
    let again = |s: &Sample| s.again.unwrap_or(s.base);
    let error = |time: &dyn Fn(&Sample) -> f64, profile: &dyn Fn(&Sample) -> f64| {
        let (mut truth, mut total) = (0.0, 0.0);
        for own in by_phase.iter().flat_map(|list| strata(list)) {
            let (seen, unseen): (Vec<&Sample>, Vec<&Sample>) = own.iter().partition(|s| s.target.is_some());
            let sum = |list: &[&Sample], of: &dyn Fn(&Sample) -> f64| list.iter().map(|s| of(s)).sum::<f64>();
            let (measured, rest) = (sum(&seen, time), sum(&unseen, time));
            truth += measured + rest;
            total += measured;
            if seen.is_empty() || unseen.is_empty() {
                // What was never measured has its own share of the interval.
                total += rest;
                continue;
            }
            let (n, m) = (seen.len() as f64, unseen.len() as f64);
            let (here, there) = (sum(&seen, profile) / n, sum(&unseen, profile) / m);
            total += m * drifted(measured / n, reliability(&own), here, there);
        }
        if truth > 0.0 { (total - truth).abs() / truth } else { 0.0 }
    };
    error(&|s: &Sample| s.base, &again).max(error(&again, &|s: &Sample| s.base))
}
