//! How times spread: sums and a histogram in whole numbers, so that the order in which ranks are added never shows.
use crate::logical::Computation;
use std::collections::BTreeMap;

/// Buckets of the histogram an octave.
const FINE: u32 = 32;
/// Below this standard deviation, as a share of the mean, times count as equal.
const EQUAL: f64 = 0.05;
/// Quantiles are kept of so many times or more.
const FEWEST: u64 = 9;
/// Steps between the quantiles that are kept.
const STEPS: u64 = 8;

/// The times of one place.
#[derive(Clone, Debug, Default)]
pub struct Spread {
    count: u64,
    sum: u128,
    squares: u128,
    least: u64,
    most: u64,
    histogram: BTreeMap<u16, u64>,
}

fn bucket(ns: u64) -> u16 {
    let fine = u64::from(FINE);
    if ns < fine {
        return ns as u16;
    }
    let exponent = ns.ilog2() - FINE.ilog2();
    (exponent * FINE) as u16 + (ns >> exponent) as u16
}

/// The least time of a bucket.
fn floor(bucket: u16) -> f64 {
    let (bucket, fine) = (f64::from(bucket), f64::from(FINE));
    if bucket < fine {
        return bucket;
    }
    let exponent = (bucket / fine).floor() - 1.0;
    (bucket - exponent * fine) * exponent.exp2()
}

impl Spread {
    /// Takes in a time in nanoseconds.
    pub fn add(&mut self, ns: u64) {
        self.least = if self.count == 0 { ns } else { self.least.min(ns) };
        self.most = self.most.max(ns);
        self.count += 1;
        self.sum += u128::from(ns);
        self.squares += u128::from(ns) * u128::from(ns);
        *self.histogram.entry(bucket(ns)).or_default() += 1;
    }

    /// Takes in the times of another rank.
    pub fn merge(&mut self, other: &Spread) {
        if other.count == 0 {
            return;
        }
        self.least = if self.count == 0 { other.least } else { self.least.min(other.least) };
        self.most = self.most.max(other.most);
        self.count += other.count;
        self.sum += other.sum;
        self.squares += other.squares;
        for (&bucket, &count) in &other.histogram {
            *self.histogram.entry(bucket).or_default() += count;
        }
    }

    /// The distribution.
    pub fn computation(&self) -> Computation {
        if self.count == 0 {
            return Computation::default();
        }
        let n = self.count as f64;
        let mean_ns = self.sum as f64 / n;
        let deviation_ns = (self.squares as f64 / n - mean_ns * mean_ns).max(0.0).sqrt();
        let spreads = self.count >= FEWEST && deviation_ns > EQUAL * mean_ns;
        let quantiles_ns = if spreads { (0..=STEPS).map(|step| self.quantile(step)).collect() } else { Vec::new() };
        Computation { count: self.count, mean_ns, deviation_ns, quantiles_ns, work: None }
    }

    /// The quantile at `step` / [`STEPS`], between the bounds of its bucket.
    fn quantile(&self, step: u64) -> f64 {
        let wanted = step as f64 / STEPS as f64 * self.count as f64;
        let mut before = 0.0;
        for (&bucket, &count) in &self.histogram {
            let count = count as f64;
            if before + count >= wanted && count > 0.0 {
                let (low, high) = (floor(bucket), floor(bucket + 1));
                let at = low + (high - low) * ((wanted - before) / count).clamp(0.0, 1.0);
                return at.clamp(self.least as f64, self.most as f64);
            }
            before += count;
        }
        self.most as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn two_modes_show_in_the_quantiles() {
        let mut spread = Spread::default();
        (0..50).for_each(|i| spread.add(if i % 2 == 0 { 1000 } else { 100_000 }));
        let told = spread.computation();
        assert_eq!((told.count, told.mean_ns), (50, 50_500.0));
        assert_eq!((told.quantiles_ns[0], told.quantiles_ns[8]), (1000.0, 100_000.0));
        assert!(told.quantiles_ns[2] < 1040.0 && told.quantiles_ns[6] > 96_000.0, "{told:?}");
        let mut even = Spread::default();
        (0..50).for_each(|i| even.add(1000 + i));
        assert!(even.computation().quantiles_ns.is_empty());
    }

    proptest! {
        #[test]
        fn quantiles_are_near_those_of_the_times(
            times in proptest::collection::vec(prop_oneof![0u64..100, 0u64..1 << 40], 9..200))
        {
            let mut halves = [Spread::default(), Spread::default()];
            times.iter().enumerate().for_each(|(at, &ns)| halves[at % 2].add(ns));
            let [mut spread, other] = halves;
            spread.merge(&other);
            let mut sorted = times.clone();
            sorted.sort_unstable();
            for step in 0..=STEPS {
                let told = spread.quantile(step);
                let at = (step * times.len() as u64).div_ceil(STEPS).clamp(1, times.len() as u64) as usize - 1;
                let true_ns = sorted[at] as f64;
                prop_assert!((told - true_ns).abs() <= true_ns / f64::from(FINE) + 1.0, "{told} {true_ns}");
            }
        }

        #[test]
        fn a_time_lies_in_its_bucket(ns in any::<u64>().prop_map(|ns| ns >> 1)) {
            let bucket = bucket(ns);
            prop_assert!(floor(bucket) <= ns as f64 && ns as f64 <= floor(bucket + 1));
        }
    }
}
