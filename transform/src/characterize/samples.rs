//! Times of one thing, and what is said of them.
use crate::machine::Cost;

/// Times in ns.
#[derive(Clone, Debug, Default)]
pub struct Samples(Vec<f64>);

impl Samples {
    /// Adds times without what reading the clock takes; none is less than a nanosecond.
    pub fn add(&mut self, times: impl IntoIterator<Item = i64>, reading: i64) {
        self.0.extend(times.into_iter().map(|time| (time - reading).max(1) as f64));
    }

    /// Median in ns; 0 if there is none.
    pub fn median(&self) -> f64 {
        self.quantile(0.5)
    }

    /// Half the distance between the quartiles, in ns.
    pub fn spread(&self) -> f64 {
        (self.quantile(0.75) - self.quantile(0.25)) / 2.0
    }

    /// As a point of a table.
    pub fn cost(&self, bytes: u64) -> Cost {
        Cost { bytes, seconds: rounded(self.median() * 1e-9), spread: rounded(self.spread() * 1e-9) }
    }

    /// A quantile, by a line between the two nearest.
    fn quantile(&self, share: f64) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        let at = share * sorted.len().saturating_sub(1) as f64;
        let of = |i: usize| sorted.get(i).copied().unwrap_or(0.0);
        let (below, above) = (of(at.floor() as usize), of(at.ceil() as usize));
        below + (above - below) * at.fract()
    }
}

/// A number of four digits: more are noise, and read badly.
pub fn rounded(value: f64) -> f64 {
    format!("{value:.3e}").parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quartiles() {
        let mut samples = Samples::default();
        assert_eq!((samples.median(), samples.spread()), (0.0, 0.0));
        samples.add([15, 11, 13, 12, 14], 10);
        assert_eq!((samples.median(), samples.spread()), (3.0, 1.0));
        samples.add([5], 10);
        assert_eq!(samples.median(), 2.5);
        assert_eq!(rounded(1.23456e-7), 1.235e-7);
    }
}
