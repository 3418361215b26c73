//! The initial transient of a restart: what is measured before caches, page tables and the machine's memory serve the
//! program as they do in the middle of a run.
//!
//! How long that takes depends on the machine and the moment, so that no fixed warm-up is long enough; it is found in the
//! times themselves by the marginal standard error rule (White, "An effective truncation heuristic for bias reduction in
//! simulation output", Simulation 69(6), 1997): of all truncations the one after which the mean has the least standard
//! error.
use crate::estimate::median;
use std::collections::{BTreeMap, BTreeSet};

/// A start is only left out where its mean is by so many standard errors of the difference above that of what follows: less
/// is within the noise.
const ERRORS: f64 = 2.0;
/// And where it goes so many times as slowly: less changes nothing.
const SLOWER: f64 = 1.01;
/// So many pieces are left at least: fewer agree by chance.
const LEFT: usize = 8;

/// A measured piece, over all ranks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    /// The phase of which it is an occurrence, or a part of one.
    pub(crate) phase: usize,
    /// Its time on the base, in seconds.
    pub(crate) base: f64,
    /// Its time on the target, in seconds.
    pub(crate) target: f64,
}

/// How many of the first pieces are transient, as far as they take at most half of the base time of all. No phase loses all
/// its occurrences with them.
pub(crate) fn transient(steps: &[Step]) -> usize {
    let paces = relative_paces(steps);
    let whole: f64 = steps.iter().map(|step| step.base).sum();
    let (mut weight, mut sum, mut squares) = (0.0, 0.0, 0.0);
    // The best truncation: its error, where it ends, and of the rest base time and mean.
    let mut best = None::<(f64, usize, f64, f64)>;
    // From the end, so that each truncation's sums are those of the last one and one piece more.
    for (at, (step, pace)) in steps.iter().zip(&paces).enumerate().rev() {
        weight += step.base;
        sum += step.base * pace;
        squares += step.base * pace * pace;
        if steps.len() - at >= LEFT && 2.0 * weight >= whole && weight > 0.0 {
            let error = (squares - sum * sum / weight).max(0.0) / (weight * weight);
            if best.is_none_or(|(least, ..)| error <= least) {
                best = Some((error, at, weight, sum / weight));
            }
        }
    }
    let Some((error, at, base, rest)) = best.filter(|(_, at, ..)| *at > 0) else { return 0 };
    let phases = |steps: &[Step]| steps.iter().map(|step| step.phase).collect::<BTreeSet<_>>();
    let start = (sum - rest * base) / (weight - base);
    // The scatter of a piece is that of what follows: the start's own has its slope in it.
    let (before, after) = (at as f64, (steps.len() - at) as f64);
    let variance = error * base * (1.0 / before + 1.0 / after);
    let slow = start > SLOWER * rest && start - rest > ERRORS * variance.sqrt();
    if slow && phases(&steps[..at]).is_subset(&phases(&steps[at..])) { at } else { 0 }
}

/// The pace of each piece, target over base, in units of the median pace of its phase.
fn relative_paces(steps: &[Step]) -> Vec<f64> {
    let pace = |step: &Step| if step.base > 0.0 { step.target / step.base } else { 0.0 };
    let mut by_phase: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    for step in steps {
        by_phase.entry(step.phase).or_default().push(pace(step));
    }
    let medians: BTreeMap<usize, f64> =
        by_phase.into_iter().map(|(phase, paces)| (phase, median(paces.into_iter()))).collect();
    let relative = |step: &Step| if medians[&step.phase] > 0.0 { pace(step) / medians[&step.phase] } else { 1.0 };
    steps.iter().map(relative).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn steps(paces: impl IntoIterator<Item = f64>) -> Vec<Step> {
        paces.into_iter().map(|pace| Step { phase: 1, base: 0.01, target: 0.01 * pace }).collect()
    }

    #[test]
    fn a_slow_start_is_found() {
        let noise = |at: usize| 1.0 + 0.02 * ((at * 7 % 5) as f64 - 2.0);
        let pace = |at: usize| noise(at) * if at < 15 { 1.5 } else { 1.0 };
        // The rule may take a piece or two more with it.
        let found = transient(&steps((0..60).map(pace)));
        assert!((15..18).contains(&found), "{found}");
        // A slow end, or a slow middle, is no transient.
        let pace = |at: usize| noise(at) * if at > 45 { 1.5 } else { 1.0 };
        assert_eq!(transient(&steps((0..60).map(pace))), 0);
        // Nor is one that is within the noise, or longer than what follows.
        for (length, slow) in [(15, 1.01), (40, 1.5)] {
            let pace = |at: usize| noise(at) * if at < length { slow } else { 1.0 };
            assert_eq!(transient(&steps((0..60).map(pace))), 0);
        }
        // One that goes on behind the middle is left out about up to there.
        let pace = |at: usize| noise(at) + 0.3 * (40 - at.min(40)) as f64 / 40.0;
        assert!((26..=30).contains(&transient(&steps((0..60).map(pace)))));
        // How slow is slow enough depends on the noise.
        let pace = |at: usize| noise(at) * if at < 15 { 1.05 } else { 1.0 };
        assert!((13..18).contains(&transient(&steps((0..60).map(pace)))));
        let loud = |at: usize| 1.0 + 10.0 * (noise(at) - 1.0);
        assert_eq!(transient(&steps((0..60).map(|at| pace(at) + loud(at) - noise(at)))), 0);
        assert_eq!(transient(&steps((0..60).map(noise))), 0);
    }

    #[test]
    fn what_is_slower_on_the_target_by_its_kind_is_none() {
        let step = |at: usize| {
            let phase = usize::from(at.is_multiple_of(4));
            Step { phase, base: 0.01, target: if phase == 1 { 0.03 } else { 0.01 } }
        };
        assert_eq!(transient(&(0..40).map(step).collect::<Vec<_>>()), 0);
    }

    #[test]
    fn a_phase_that_does_not_come_again_is_kept() {
        let mut all = steps((0..60).map(|at| if at < 15 { 1.5 } else { 1.0 }));
        assert_eq!(transient(&all), 15);
        all[3].phase = 2;
        assert_eq!(transient(&all), 0);
    }

    proptest! {
        #[test]
        fn at_most_half_is_left_out_and_no_phase_is_lost(
            list in proptest::collection::vec((0usize..3, 0.0f64..2.0, 0.0f64..1e9), 0..60),
        ) {
            let all: Vec<Step> =
                list.into_iter().map(|(phase, base, target)| Step { phase, base, target }).collect();
            let at = transient(&all);
            let base = |steps: &[Step]| steps.iter().map(|step| step.base).sum::<f64>();
            prop_assert!(2.0 * base(&all[..at]) <= base(&all) * (1.0 + 1e-12));
            let phases = |steps: &[Step]| steps.iter().map(|step| step.phase).collect::<BTreeSet<_>>();
            prop_assert_eq!(phases(&all[at..]), phases(&all));
        }
    }
}
