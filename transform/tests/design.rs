//! Factorial designs: balance, orthogonality, resolution, and the effects they find; with numbers from Jain's book.
use phasecast_transform::stability::design::{Design, Kind, effects};
use proptest::prelude::*;

fn dot(design: &Design, of: &[usize], other: &[usize]) -> i64 {
    let sign = |levels: &[bool], set: &[usize]| set.iter().map(|&f| if levels[f] { 1 } else { -1 }).product::<i64>();
    design.runs.iter().map(|levels| sign(levels, of) * sign(levels, other)).sum()
}

proptest! {
    #[test]
    fn factors_are_balanced_and_told_apart(factors in 1usize..20, runs in 2usize..70) {
        let Ok(design) = Design::fitting(factors, runs) else {
            prop_assert!(runs <= factors || !(runs >= 24 || 1 << runs.ilog2() > factors), "{factors} in {runs}");
            return Ok(());
        };
        prop_assert!(design.runs.len() <= runs && design.factors() == factors);
        for x in 0..factors {
            prop_assert_eq!(dot(&design, &[x], &[]), 0);
            for y in 0..x {
                prop_assert_eq!(dot(&design, &[x], &[y]), 0);
            }
        }
        if design.resolution.is_none_or(|r| r >= 4) {
            for (x, y, z) in (0..factors).flat_map(|x| (0..x).flat_map(move |y| (0..y).map(move |z| (x, y, z)))) {
                prop_assert_eq!(dot(&design, &[x], &[y, z]), 0);
            }
        }
    }

    #[test]
    fn a_full_design_finds_what_was_put_in(
        terms in prop::collection::vec(-10i32..10, 6),
        mean in -10i32..10,
    ) {
        let design = Design::fitting(3, 8).unwrap();
        let pairs = [(0, 1), (0, 2), (1, 2)];
        let y: Vec<f64> = design.runs.iter().map(|levels| {
            let s: Vec<f64> = levels.iter().map(|&l| if l { 1.0 } else { -1.0 }).collect();
            let single: f64 = (0..3).map(|f| s[f] * f64::from(terms[f])).sum();
            let double: f64 = pairs.iter().zip(&terms[3..]).map(|((x, y), t)| s[*x] * s[*y] * f64::from(*t)).sum();
            f64::from(mean) + single + double
        }).collect();
        let found = effects(&design, &y);
        prop_assert_eq!(found.len(), 6);
        for (effect, term) in found.iter().zip(&terms) {
            prop_assert!((effect.effect - 2.0 * f64::from(*term)).abs() < 1e-9);
        }
        let explained: f64 = found.iter().map(|e| e.share).sum();
        prop_assert!(terms.iter().all(|t| *t == 0) || (explained - 1.0).abs() < 1e-9);
    }
}

#[test]
fn what_is_chosen_where_nothing_is_said_fits() {
    for (kind, least) in
        [(None, 2), (Some(Kind::Full), 2), (Some(Kind::Fractional), 4), (Some(Kind::PlackettBurman), 12)]
    {
        for runs in least..=256 {
            let factors = Design::usual_factors(kind, runs);
            let design = match kind {
                Some(kind) => Design::of_kind(kind, factors, runs),
                None => Design::fitting(factors, runs),
            };
            let design = design.unwrap_or_else(|error| panic!("{kind:?} {factors} in {runs}: {error}"));
            assert!(design.runs.len() <= runs && design.factors() == factors, "{kind:?} {factors} in {runs}");
        }
    }
    // Its defining relation has 2^25 words.
    assert_eq!(Design::of_kind(Kind::Fractional, 31, 64).unwrap().runs.len(), 64);
}

#[test]
fn known_resolutions() {
    for (factors, runs, resolution) in [(4, 8, 4), (5, 16, 5), (5, 8, 3), (6, 16, 4), (7, 8, 3), (8, 16, 4), (3, 4, 3)]
    {
        let design = Design::of_kind(Kind::Fractional, factors, runs).unwrap();
        assert_eq!(design.resolution, Some(resolution), "{factors} factors in {runs} runs");
    }
    assert_eq!(Design::fitting(4, 8).unwrap().words(), "fractional 2^(4-1) of resolution 4");
    assert_eq!(Design::fitting(2, 8).unwrap().words(), "full 2^2, 2 times");
    assert_eq!(Design::fitting(11, 12).unwrap().kind, Kind::PlackettBurman);
    for (factors, runs) in [(0, 8), (8, 8), (3, 1), (40, 100), (3, 1000)] {
        assert!(Design::fitting(factors, runs).is_err(), "{factors} in {runs}");
    }
    assert!(Design::of_kind(Kind::Full, 4, 8).is_err());
    assert!(Design::of_kind(Kind::PlackettBurman, 4, 8).is_err());
}

/// Jain, example 17.1: memory 4 and 16 MB, cache 1 and 2 KB; 15, 45, 25, 75 MIPS: effects 20, 10, 5 (half of ours),
/// 76 %, 19 % and 5 % of the variation.
#[test]
fn the_numbers_of_jains_example() {
    let found = effects(&Design::fitting(2, 4).unwrap(), &[15.0, 45.0, 25.0, 75.0]);
    let halves: Vec<f64> = found.iter().map(|e| e.effect / 2.0).collect();
    assert_eq!(halves, [20.0, 10.0, 5.0]);
    let percent: Vec<f64> = found.iter().map(|e| (100.0 * e.share).round()).collect();
    assert_eq!(percent, [76.0, 19.0, 5.0]);
}

/// In a half fraction of four factors, each pair is mixed up with one other.
#[test]
fn what_is_mixed_up_is_named() {
    let design = Design::fitting(4, 8).unwrap();
    let found = effects(&design, &[0.0; 8]);
    assert_eq!(found.len(), 7);
    assert!(found[..4].iter().all(|e| e.mixed_with.is_empty()));
    assert!(found[4..].iter().all(|e| e.mixed_with.len() == 1));
}
