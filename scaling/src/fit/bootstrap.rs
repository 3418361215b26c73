//! Bootstrap of relative residuals: points are made anew from the fitted form and residuals drawn from those seen, and
//! the whole choice is made again. Deterministic: the numbers drawn follow from a seed alone.
use super::form::Point;

/// A small generator of random numbers (SplitMix64, Steele, Lea and Flood 2014): the same numbers on every machine and
/// with every version.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The generator of a seed.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number from 0 (inclusive) to 1 (exclusive).
    pub fn share(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A whole number below `most` (at least 1).
    pub fn below(&mut self, most: usize) -> usize {
        ((u128::from(self.bits()) * most.max(1) as u128) >> 64) as usize
    }

    /// A number from the normal distribution with mean 0 and deviation 1 (Box and Muller).
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.share()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.share()).cos()
    }
}

/// What a bootstrap draws from: the fitted values, and the relative residuals.
#[derive(Clone, Debug)]
pub struct Draws {
    points: Vec<Point>,
    residuals: Vec<f64>,
}

impl Draws {
    /// From points, the values fitted to them, and how many parameters that took. Residuals are centred, widened by what
    /// the parameters have taken up (the root of n / (n - k)), and `floor` is the least scatter (as a share) that a
    /// measurement has.
    pub fn new(points: &[Point], fitted: &[f64], parameters: usize, floor: f64) -> Draws {
        let n = points.len();
        let widen = (n as f64 / (n.saturating_sub(parameters)).max(1) as f64).sqrt();
        let mut residuals: Vec<f64> = points.iter().zip(fitted).map(|(p, f)| (p.value / f - 1.0) * widen).collect();
        residuals.retain(|r| r.is_finite());
        let mean = residuals.iter().sum::<f64>() / residuals.len().max(1) as f64;
        residuals.iter_mut().for_each(|r| *r -= mean);
        let spread = (residuals.iter().map(|r| r * r).sum::<f64>() / residuals.len().max(1) as f64).sqrt();
        if spread < floor {
            // As many on either side of 0, of the least scatter.
            residuals = vec![-floor, floor];
        }
        let points = points.iter().zip(fitted).map(|(p, f)| Point { at: p.at.clone(), value: *f }).collect();
        Draws { points, residuals }
    }

    /// One set of points that could have been measured.
    pub fn points(&self, random: &mut Random) -> Vec<Point> {
        let mut points = self.points.clone();
        points.iter_mut().for_each(|point| point.value *= (1.0 + self.residual(random)).max(0.05));
        points
    }

    /// One relative residual.
    pub fn residual(&self, random: &mut Random) -> f64 {
        self.residuals.get(random.below(self.residuals.len())).copied().unwrap_or(0.0)
    }
}

/// The value below which the share `q` of `sorted` lies, between neighbours in a straight line; not a number of none.
pub fn quantile(sorted: &[f64], q: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return f64::NAN };
    let at = q.clamp(0.0, 1.0) * last as f64;
    let low = at.floor() as usize;
    let high = (low + 1).min(last);
    sorted[low] + (at - low as f64) * (sorted[high] - sorted[low])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_follow_from_the_seed() {
        // The first output of the reference implementation for the seed 1234567.
        assert_eq!(Random::new(1_234_567).bits(), 6_457_827_717_110_365_317);
        let mut random = Random::new(1);
        let drawn: Vec<f64> = (0..10_000).map(|_| random.normal()).collect();
        let mean = drawn.iter().sum::<f64>() / 1e4;
        let square = drawn.iter().map(|x| x * x).sum::<f64>() / 1e4;
        assert!(mean.abs() < 0.05 && (square - 1.0).abs() < 0.05, "{mean} {square}");
        assert!((0..1000).all(|_| random.below(3) < 3));
    }

    #[test]
    fn quantiles_lie_between_neighbours() {
        assert_eq!(quantile(&[1.0, 2.0, 4.0], 0.5), 2.0);
        assert_eq!(quantile(&[1.0, 2.0, 4.0], 0.75), 3.0);
        assert!(quantile(&[], 0.5).is_nan());
    }
}
