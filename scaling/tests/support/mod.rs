//! Made profiles, and the seed's Table 1.
#![allow(dead_code, reason = "each test file uses a part of it")]
use phasecast_scaling::fit::Random;
use phasecast_scaling::profile::{Point, Series};

/// Table 1 of seed 003: for each phase its lengths in units of 0.5 ms, its means and its variances at 8, 16, 32 and 64
/// processors.
pub const TABLE: [([u32; 4], [f64; 4], [f64; 4]); 9] = [
    ([447, 270, 185, 149], [7.85, 15.29, 28.70, 53.74], [0.39, 0.84, 2.17, 6.21]),
    ([217, 102, 48, 26], [8.00, 16.00, 32.00, 64.00], [0.00, 0.00, 0.00, 0.00]),
    ([379, 222, 154, 136], [7.71, 15.16, 27.60, 45.78], [0.50, 0.61, 1.52, 4.52]),
    ([425, 263, 182, 144], [7.89, 15.33, 28.81, 54.03], [0.31, 0.74, 1.95, 5.16]),
    ([218, 99, 46, 25], [8.00, 16.00, 32.00, 64.00], [0.00, 0.00, 0.00, 0.00]),
    ([374, 219, 154, 137], [7.72, 15.17, 27.55, 45.76], [0.52, 0.60, 1.28, 4.32]),
    ([430, 271, 184, 143], [7.88, 15.32, 28.81, 54.00], [0.40, 0.82, 1.79, 5.11]),
    ([216, 98, 44, 26], [8.00, 16.00, 32.00, 64.00], [0.00, 0.00, 0.00, 0.00]),
    ([303, 224, 153, 133], [7.77, 15.18, 27.41, 46.07], [0.51, 0.61, 1.34, 4.22]),
];
/// The numbers of processors.
pub const PROCESSORS: [u32; 4] = [8, 16, 32, 64];
/// A unit of the table, 0.5 ms in ns.
pub const UNIT: u64 = 500_000;

/// A series of these values.
pub fn series(ranks: u32, values: &[f64]) -> Series {
    let point = |value: &f64| {
        let level = value.round() as u32;
        let whole = (value - value.round()).abs() < 1e-12;
        Point {
            length_ns: UNIT,
            busy_ns: (value * UNIT as f64).round() as u128,
            least: if whole { level } else { 0 },
            most: if whole { level } else { ranks },
        }
    };
    Series { ranks, length_ns: UNIT * values.len() as u64, points: values.iter().map(point).collect() }
}

/// The nine phases at one of the numbers of processors, with each phase's mean and variance. No more processors can be
/// busy than there are, so that noise around a mean close to that is small: the rest of the variance is in the trough
/// with which a phase begins. Returns the values and where phases end.
pub fn nine(column: usize, random: &mut Random) -> (Vec<f64>, Vec<usize>) {
    let most = f64::from(PROCESSORS[column]);
    let full = |at: usize| TABLE[at].2[column] == 0.0;
    let (mut values, mut ends, mut troughs) = (Vec::new(), Vec::new(), Vec::new());
    for (at, (lengths, means, variances)) in TABLE.iter().enumerate() {
        let (length, mean, variance) = (lengths[column], means[column], variances[column]);
        let noise = (0.5 * variance).min((0.5 * (most - mean)).powi(2));
        // Five points of equal depth hold the rest.
        let depth = ((variance - noise) * f64::from(length) / 5.0).sqrt().min(0.9 * mean);
        let level = mean + 5.0 * depth / f64::from(length);
        let begin = values.len();
        values.extend((0..length).map(|_| match full(at) {
            true => mean,
            false => (level + noise.sqrt() * random.normal()).clamp(0.0, most - 1e-3),
        }));
        if !full(at) {
            // Half of it before the phase, unless a phase of full utilisation is there.
            let from = if at == 0 || full(at - 1) { begin } else { begin - 2 };
            troughs.push((from, depth));
        }
        ends.push(values.len());
    }
    for (from, depth) in troughs {
        values[from..from + 5].iter_mut().for_each(|value| *value = (*value - depth).max(0.0));
    }
    (values, ends)
}

/// Mean and variance.
pub fn moments(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    (mean, values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n)
}
