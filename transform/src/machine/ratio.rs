//! K, the ratio of two machines' processor speeds (seed 000, section 4.1: "derived from published performance data for
//! the two processors", here from kernels timed on both).
use super::Machine;

/// How many times as long as on the base machine computation takes on the target.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Ratio {
    /// K: the geometric mean of the kernels' ratios.
    pub k: f64,
    /// The geometric standard deviation of the kernels' ratios, a factor of at least 1: K lies between `k / factor` and
    /// `k * factor` for a program that is like one kernel or another.
    pub factor: f64,
    /// The ratio of each kernel that both machines have, in the base's order.
    pub kernels: Vec<(String, f64)>,
}

/// K between two machines, from the kernels that both have; none if they have none in common.
pub fn ratio(base: &Machine, target: &Machine) -> Option<Ratio> {
    let pairs = base.kernels.iter().filter_map(|kernel| {
        let other = target.kernels.iter().find(|other| other.name == kernel.name)?;
        let ratio = other.seconds / kernel.seconds;
        (ratio > 0.0 && ratio.is_finite()).then(|| (kernel.name.clone(), ratio))
    });
    let kernels: Vec<(String, f64)> = pairs.collect();
    let count = kernels.len() as f64;
    if kernels.is_empty() {
        return None;
    }
    let mean = kernels.iter().map(|(_, ratio)| ratio.ln()).sum::<f64>() / count;
    let square = |(_, ratio): &(String, f64)| (ratio.ln() - mean).powi(2);
    let variance = kernels.iter().map(square).sum::<f64>() / (count - 1.0).max(1.0);
    Some(Ratio { k: mean.exp(), factor: variance.sqrt().exp(), kernels })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Kernel;

    fn machine(kernels: &[(&str, f64)]) -> Machine {
        let kernel = |&(name, seconds): &(&str, f64)| Kernel { name: name.into(), seconds, spread: 0.0 };
        Machine { kernels: kernels.iter().map(kernel).collect(), ..Machine::empty() }
    }

    #[test]
    fn geometric_mean_of_common_kernels() {
        let base = machine(&[("stream", 1.0), ("dense", 2.0), ("branchy", 7.0)]);
        let target = machine(&[("dense", 1.0), ("stream", 8.0)]);
        let found = ratio(&base, &target).expect("two kernels in common");
        assert!((found.k - 2.0).abs() < 1e-12, "{found:?}");
        assert_eq!(found.kernels, [("stream".to_owned(), 8.0), ("dense".to_owned(), 0.5)]);
        // ln 8 - ln 2 = ln 4 either way; with two values the variance is twice its square.
        assert!((found.factor.ln() - 4f64.ln() * 2f64.sqrt()).abs() < 1e-12, "{found:?}");
        let back = ratio(&target, &base).expect("two kernels in common");
        assert!((found.k * back.k - 1.0).abs() < 1e-12 && (found.factor - back.factor).abs() < 1e-12);
        assert_eq!(ratio(&base, &machine(&[("random", 1.0)])), None);
        assert_eq!(ratio(&base, &base).map(|same| (same.k, same.factor)), Some((1.0, 1.0)));
    }
}
