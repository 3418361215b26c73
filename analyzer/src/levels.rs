//! Levels of time within a phase, believed only where a second base run confirms them.
//!
//! A split, either by one threshold on the logarithm of the time or at one point in the run, is found in the first run
//! and must be seen again in the second: it explains a quarter of the variance there (R2 >= 0.25), F exceeds 16, and
//! the levels differ by more than 2 %.

/// The fewest occurrences that are split, and the fewest on either side.
const FEWEST: usize = 8;
const SIDE: usize = 3;

/// Splits the occurrences of a phase in two by their times in both runs (seconds); true is the second level. None if
/// there is no split that the second run confirms.
pub fn split(first: &[f64], second: &[f64]) -> Option<Vec<bool>> {
    if first.len() != second.len() || first.len() < FEWEST {
        return None;
    }
    let log = |times: &[f64]| -> Vec<f64> { times.iter().map(|t| t.max(1e-9).ln()).collect() };
    let (a, b) = (log(first), log(second));
    let mut order: Vec<usize> = (0..a.len()).collect();
    let by_point = labels(&a, &order);
    order.sort_by(|&x, &y| a[x].total_cmp(&a[y]));
    let by_level = labels(&a, &order);
    let confirmed = [by_point, by_level].into_iter().filter_map(|labels| Some((confirm(&a, &b, &labels)?, labels)));
    confirmed.max_by(|x, y| x.0.total_cmp(&y.0)).map(|(_, labels)| labels)
}

/// The split of the sequence in `order` that explains most of the variance of `values`.
fn labels(values: &[f64], order: &[usize]) -> Vec<bool> {
    let n = values.len();
    let total: f64 = values.iter().sum();
    let (mut sum, mut best) = (0.0, (f64::NEG_INFINITY, SIDE));
    for (taken, &at) in order.iter().enumerate().map(|(i, at)| (i + 1, at)) {
        sum += values[at];
        if (SIDE..=n - SIDE).contains(&taken) {
            let (left, right) = (taken as f64, (n - taken) as f64);
            let between = sum * sum / left + (total - sum) * (total - sum) / right;
            if between > best.0 {
                best = (between, taken);
            }
        }
    }
    let mut labels = vec![false; n];
    order[best.1..].iter().for_each(|&at| labels[at] = true);
    labels
}

/// How much of the variance of `values` the labels explain, if it is enough, and the same level is the higher one as in
/// the run in which they were `found`.
fn confirm(found: &[f64], values: &[f64], labels: &[bool]) -> Option<f64> {
    let n = values.len() as f64;
    let mean_of = |values: &[f64], level: bool| {
        let (count, sum) = values
            .iter()
            .zip(labels)
            .filter(|(_, label)| **label == level)
            .fold((0.0, 0.0), |(count, sum), (value, _)| (count + 1.0, sum + value));
        (count, sum / f64::max(count, 1.0))
    };
    let ((n0, m0), (n1, m1)) = (mean_of(values, false), mean_of(values, true));
    let before = mean_of(found, true).1 - mean_of(found, false).1;
    let mean = values.iter().sum::<f64>() / n;
    let all: f64 = values.iter().map(|v| (v - mean) * (v - mean)).sum();
    let between = n0 * (m0 - mean) * (m0 - mean) + n1 * (m1 - mean) * (m1 - mean);
    let within = (all - between).max(all * 1e-12);
    let r2 = if all > 0.0 { between / all } else { 0.0 };
    let f = between / (within / (n - 2.0)).max(f64::MIN_POSITIVE);
    (r2 >= 0.25 && f > 16.0 && (m1 - m0) * before.signum() > 0.02).then_some(r2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(i: usize) -> f64 {
        (crate::symbol::mix(i as u64) % 1000) as f64 * 1e-5
    }

    #[test]
    fn a_split_is_believed_only_if_the_second_run_has_it() {
        let level = |i: usize| if i.is_multiple_of(3) { 1.2 } else { 1.0 };
        let a: Vec<f64> = (0..30).map(|i| level(i) + noise(i)).collect();
        let again: Vec<f64> = (0..30).map(|i| level(i) + noise(i + 100)).collect();
        let other: Vec<f64> = (0..30).map(|i| level(i + 1 + i / 2) + noise(i + 100)).collect();
        assert_eq!(split(&a, &again).unwrap(), (0..30usize).map(|i| i.is_multiple_of(3)).collect::<Vec<_>>());
        assert_eq!(split(&a, &other), None);
        assert_eq!(split(&a[..7], &again[..7]), None);
    }

    #[test]
    fn a_change_point_is_found() {
        let a: Vec<f64> = (0..12).map(|i| if i < 7 { 3.39 } else { 3.73 } + noise(i)).collect();
        let b: Vec<f64> = (0..12).map(|i| if i < 7 { 3.38 } else { 3.72 } + noise(i + 50)).collect();
        assert_eq!(split(&a, &b).unwrap(), (0..12).map(|i| i >= 7).collect::<Vec<_>>());
        assert_eq!(split(&[1.0; 20], &[1.0; 20]), None);
        // At the same point, but the other way: the machine drifted.
        let back: Vec<f64> = b.iter().rev().copied().collect();
        assert_eq!(split(&a[1..11], &back[1..11]), None);
    }
}
