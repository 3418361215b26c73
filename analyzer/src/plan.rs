//! The plan: which occurrences of a phase are to be measured.
use crate::marker::Times;

/// More occurrences than needed are tried so often.
const TRIES: u64 = 16;

/// Chooses at least `needed` of the occurrences with these times (seconds), and up to half of them until they stand
/// for all within `tolerance` seconds. Ascending.
pub fn choose(times: &[f64], needed: u64, tolerance: f64) -> Vec<u64> {
    let n = times.len() as u64;
    let sum: f64 = times.iter().sum();
    let off = |planned: &Vec<u64>| (n as f64 * mean(times, planned) - sum).abs();
    let last = (n / 2).min(needed + TRIES).max(needed);
    let mut best = spread(times, needed);
    for k in needed + 1..=last {
        if off(&best) <= tolerance {
            break;
        }
        let planned = spread(times, k);
        if off(&planned) < off(&best) {
            best = planned;
        }
    }
    best
}

/// Chooses `k` of the occurrences: the run is divided into k strata of equal length, and of each the occurrence is
/// taken that keeps the running error of the sum least (balanced sampling). Ascending.
fn spread(times: &[f64], k: u64) -> Vec<u64> {
    let n = times.len();
    let k = (k as usize).clamp(1, n.max(1)).min(n);
    let centre = times.iter().sum::<f64>() / n.max(1) as f64;
    let weight = n as f64 / k.max(1) as f64;
    let mut chosen = Vec::with_capacity(k);
    let mut error = 0.0;
    for stratum in 0..k {
        let range = stratum * n / k..(stratum + 1) * n / k;
        let sum: f64 = times[range.clone()].iter().map(|t| t - centre).sum();
        let off = |at: &usize| (error + weight * (times[*at] - centre) - sum).abs();
        let best = range.min_by(|a, b| off(a).total_cmp(&off(b))).expect("a stratum holds an occurrence");
        error += weight * (times[best] - centre) - sum;
        chosen.push(best as u64);
    }
    chosen
}

/// The occurrences' statistics.
pub fn times(of: &[f64]) -> Times {
    let mut times = Times::default();
    of.iter().for_each(|&t| times.push(t));
    times
}

/// The mean of the planned occurrences.
pub fn mean(times: &[f64], planned: &[u64]) -> f64 {
    let sum: f64 = planned.iter().filter_map(|&at| times.get(at as usize)).sum();
    sum / planned.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strata_are_balanced() {
        let sweep3d = [3.388, 3.387, 3.388, 3.389, 3.387, 3.388, 3.388, 3.73, 3.73, 3.731, 3.729, 3.56];
        let planned = spread(&sweep3d, 4);
        assert_eq!(planned.len(), 4);
        assert!(planned.iter().enumerate().all(|(s, &at)| (3 * s as u64..3 * s as u64 + 3).contains(&at)));
        let estimate = mean(&sweep3d, &planned) * 12.0;
        let truth: f64 = sweep3d.iter().sum();
        assert!((estimate / truth - 1.0).abs() < 0.002, "{estimate} {truth}");
        assert_eq!(spread(&sweep3d, 12), (0..12).collect::<Vec<_>>());
        assert_eq!(spread(&[1.0], 3), [0]);
        // Eleven do not divide evenly: more are taken until they stand for all.
        let planned = choose(&sweep3d[1..], 3, 0.1);
        let truth: f64 = sweep3d[1..].iter().sum();
        assert!(planned.len() <= 5 && (mean(&sweep3d[1..], &planned) * 11.0 - truth).abs() <= 0.1, "{planned:?}");
    }
}
