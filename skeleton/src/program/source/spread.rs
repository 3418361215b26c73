//! Computation that spreads, as eight times that a source takes in turn.
use super::EVEN;
use crate::logical::Computation;

/// A loop around a step: its iterations, and what the first and each other of them stands for.
pub(super) type Around = (u64, f64, f64);

/// The means of the eighths of a distribution, in an order that begins in the middle and mixes short and long; none if it
/// hardly spreads. Their mean is that of the distribution.
pub(super) fn eighths(compute: &Computation) -> Option<[f64; 8]> {
    let q: &[f64; 9] = compute.quantiles_ns.as_slice().try_into().ok()?;
    if compute.deviation_ns < EVEN * compute.mean_ns || q.windows(2).any(|pair| pair[0] > pair[1]) {
        return None;
    }
    let mut means: [f64; 8] = std::array::from_fn(|i| 0.5 * (q[i] + q[i + 1]));
    // The last one may have a long tail, of which its ends say nothing: it gets what the others leave of the mean.
    let others: f64 = means[..7].iter().sum();
    let left = 8.0 * compute.mean_ns - others;
    if left >= q[7] {
        means[7] = left;
    } else {
        let sum: f64 = means.iter().sum();
        let factor = if sum > 0.0 { 8.0 * compute.mean_ns / sum } else { 1.0 };
        means.iter_mut().for_each(|mean| *mean *= factor);
    }
    Some([3, 5, 1, 6, 2, 7, 0, 4].map(|i| means[i]))
}

/// For each of eight times taken in turn, what the executions that take it stand for, within these loops, the outermost
/// first.
pub(super) fn turns(around: &[Around]) -> [f64; 8] {
    let (mut inside, mut length) = ([0.0; 8], 1);
    inside[0] = 1.0;
    for &(count, first, rest) in around.iter().rev() {
        let mut sum = [0.0; 8];
        let mut add = |turn: u64, weight: f64| {
            for (at, of) in (turn..).zip(&inside) {
                sum[at as usize % 8] += weight * of;
            }
        };
        add(0, first);
        // The others, by their numbers modulo eight.
        for turn in 0..8u64 {
            let times = (count.saturating_sub(1) + 8 - turn) / 8 - u64::from(turn == 0);
            add(turn * length % 8, rest * times as f64);
        }
        (inside, length) = (sum, length * (count % 8) % 8);
    }
    inside
}

/// By what times must be longer so that what they stand for has this mean, as turns may end before all have come.
pub(super) fn keeping(times: &[f64; 8], mean: f64, turns: &[f64; 8]) -> f64 {
    let wanted = mean * turns.iter().sum::<f64>();
    let have: f64 = times.iter().zip(turns).map(|(time, weight)| time * weight).sum();
    if have > 0.0 && wanted > 0.0 { wanted / have } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What each execution stands for, one after the other.
    fn weights(around: &[Around]) -> Vec<f64> {
        let Some((&(count, first, rest), inner)) = around.split_first() else { return vec![1.0] };
        let inner = weights(inner);
        let each = |i: u64| if i == 0 { first } else { rest };
        (0..count).flat_map(|i| inner.iter().map(move |weight| each(i) * weight)).collect()
    }

    proptest! {
        #[test]
        fn what_is_computed_keeps_its_mean(
            around in prop::collection::vec((1u64..40, 1.0f64..2.0, 1.0f64..50.0), 0..4),
            mut quantiles_ns in prop::collection::vec(1000.0f64..1e6, 9))
        {
            quantiles_ns.sort_by(f64::total_cmp);
            let mean_ns = quantiles_ns.iter().sum::<f64>() / 9.0;
            let compute = Computation { mean_ns, deviation_ns: mean_ns, quantiles_ns, ..Computation::default() };
            let times = eighths(&compute).expect("it spreads");
            let keeps = keeping(&times, mean_ns, &turns(&around));
            let all = weights(&around);
            let stands: f64 = all.iter().enumerate().map(|(k, weight)| weight * keeps * times[k % 8]).sum();
            let wanted = mean_ns * all.iter().sum::<f64>();
            prop_assert!((stands / wanted - 1.0).abs() < 1e-9, "{stands} {wanted}");
            let least = times.iter().copied().fold(f64::INFINITY, f64::min);
            prop_assert!(times[0] > least || times.iter().all(|time| *time == least));
        }
    }
}
