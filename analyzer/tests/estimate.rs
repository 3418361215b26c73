//! The estimator: what is measured is taken as it is, what is not goes at the pace of what is.
#[path = "support/pieces.rs"]
mod pieces;
use phasecast_analyzer::{Analysis, Piece, estimate};
use phasecast_trace::Nanos;
use pieces::analysis;
use proptest::prelude::*;

/// The first `keep` pieces of each rank, `factor` times as slow as on the base.
fn prefix(of: &Analysis, keep: usize, factor: f64) -> Vec<Vec<Option<Nanos>>> {
    let time = |at: usize, piece: &Piece| (at < keep).then_some(Nanos((piece.time.0 as f64 * factor) as u64));
    of.pieces.iter().map(|p| p.iter().enumerate().map(|(at, piece)| time(at, piece)).collect()).collect()
}

fn run() -> impl Strategy<Value = Vec<Vec<(u32, u64)>>> {
    proptest::collection::vec(proptest::collection::vec((0u32..4, 1_000u64..1_000_000), 1..60), 1..4)
}

fn seconds(of: &Analysis, rank: usize) -> f64 {
    of.pieces[rank].iter().map(|p| p.time.seconds()).sum()
}

proptest! {
    #[test]
    fn a_run_measured_whole_is_its_own_estimate(ranks in run(), factor in 0.2f64..5.0) {
        let analysis = analysis(&ranks, Some(1.0));
        let estimate = estimate(&analysis, &prefix(&analysis, usize::MAX, factor), 0.95);
        let slowest = (0..ranks.len()).map(|r| seconds(&analysis, r)).fold(0.0, f64::max) * factor;
        prop_assert!((estimate.total_s - slowest).abs() <= 1e-6 * slowest + 1e-7);
        prop_assert!((estimate.coverage - 1.0).abs() < 1e-9);
        prop_assert_eq!(estimate.unmeasured_s, 0.0);
    }

    #[test]
    fn equal_occurrences_on_a_slower_target_are_exact(
        weights in proptest::collection::vec(2usize..30, 1..4), times in proptest::collection::vec(10_000u64..1_000_000, 4),
        factor in 0.2f64..5.0, keep in 1usize..40,
    ) {
        // The phases in turn, all occurrences of a phase alike.
        let most = *weights.iter().max().unwrap();
        let turns = (0..most).flat_map(|turn| (0..weights.len()).map(move |p| (turn, p)));
        let list: Vec<_> = turns.filter(|(turn, p)| *turn < weights[*p]).map(|(_, p)| (p as u32, times[p])).collect();
        let analysis = analysis(&[list.clone(), list], Some(1.0));
        let estimate = estimate(&analysis, &prefix(&analysis, keep, factor), 0.95);
        let truth = seconds(&analysis, 0) * factor;
        prop_assert!((estimate.total_s - truth).abs() <= 1e-3 * truth, "{} instead of {truth}", estimate.total_s);
    }

    #[test]
    fn nothing_that_is_measured_makes_it_panic(
        ranks in run(), measured in proptest::collection::vec(proptest::collection::vec(proptest::option::of(any::<u64>()), 0..80), 0..5),
        confidence: f64, again in proptest::option::of(0.0f64..10.0),
    ) {
        let measured: Vec<Vec<Option<Nanos>>> =
            measured.into_iter().map(|rank| rank.into_iter().map(|t| t.map(Nanos)).collect()).collect();
        let estimate = estimate(&analysis(&ranks, again), &measured, confidence);
        prop_assert!(estimate.total_s.is_finite() && estimate.half_width_s >= 0.0);
    }
}

#[test]
fn a_rank_that_shows_nothing_goes_at_the_pace_of_the_others() {
    let busy: Vec<(u32, u64)> = (0..100).map(|_| (0, 1_000_000)).collect();
    let waiting = vec![(0, 10), (1, 110_000_000)];
    let analysis = analysis(&[busy, waiting], None);
    let estimate = estimate(&analysis, &prefix(&analysis, 1, 3.0), 0.95);
    assert_eq!(estimate.rank, 1);
    assert!((estimate.total_s - 0.33).abs() < 1e-3, "{}", estimate.total_s);
}

/// One of two phases has nine tenths of the time, and of the other more was measured than its share.
#[test]
fn what_was_not_measured_goes_at_the_pace_of_the_run_and_not_of_the_sample() {
    let mut run = vec![(2, 200_000_000)];
    run.extend((0..100).flat_map(|_| [(0, 9_000_000), (1, 1_000_000)]));
    let analysis = analysis(&[run], Some(1.0));
    // A pair, and ten more of the second phase, which takes three times as long there.
    let measured = |at: usize, (phase, piece): (u32, &Piece)| match phase {
        0 if at < 3 => Some(piece.time),
        1 if at < 24 => Some(Nanos(3 * piece.time.0)),
        _ => None,
    };
    let times = analysis.pieces[0].iter().enumerate().map(|(at, piece)| measured(at, (piece.phase.0, piece))).collect();
    let found = estimate(&analysis, &[times], 0.95);
    assert!((found.unmeasured_s - 0.24).abs() < 1e-6, "{}", found.unmeasured_s);
    // Twice how far the paces lie apart, which is half of their mean in root mean square.
    assert!((found.rest_s / found.unmeasured_s - 1.0).abs() < 1e-6, "{}", found.rest_s);
}

/// All time of the second rank lies in a piece that was not measured, and is no longer than the first's.
#[test]
fn a_rank_that_shows_nothing_does_not_speak_for_the_run() {
    let busy: Vec<(u32, u64)> = (0..100).map(|_| (0, 1_000_000)).collect();
    let analysis = analysis(&[busy, vec![(0, 10), (0, 10), (1, 101_000_000)]], None);
    let found = estimate(&analysis, &prefix(&analysis, 2, 3.0), 0.95);
    assert!(found.rank == 0 && found.coverage > 0.0, "{found:?}");
    let analysis = Analysis { pieces: analysis.pieces[1..].to_vec(), ..analysis };
    assert_eq!(estimate(&analysis, &prefix(&analysis, 1, 1.0), 0.95).rank, 0, "there is no other");
}

/// One run tells from itself how far its beginning is off.
#[test]
fn the_drift_that_the_estimate_follows_does_not_widen_the_interval() {
    let falling: Vec<(u32, u64)> = (0..100).map(|i| (0, 3_000_000 - 20_000 * i)).collect();
    let analysis = analysis(std::slice::from_ref(&falling), Some(1.0));
    let found = estimate(&analysis, &prefix(&analysis, 30, 1.0), 0.95);
    assert!((found.total_s / seconds(&analysis, 0) - 1.0).abs() < 0.01, "{}", found.total_s);
    assert!(found.sampling_s < 0.2 * found.total_s, "{} of {}", found.sampling_s, found.total_s);
}

/// The first of twenty occurrences takes three times as long as the others: it touches memory for the first time.
#[test]
fn what_stands_out_does_not_speak_for_the_others() {
    let run: Vec<(u32, u64)> = (0..20).map(|at| (0, if at == 0 { 3_000_000 } else { 1_000_000 })).collect();
    let analysis = analysis(std::slice::from_ref(&run), Some(1.1));
    let of = |times: &[(usize, u64)]| {
        let time = |at| times.iter().find(|t| t.0 == at).map(|t| Nanos(t.1));
        estimate(&analysis, &[(0..20).map(time).collect()], 0.95)
    };
    // Memory is cheaper there, the rest as fast.
    let seen = of(&[(0, 1_500_000), (1, 1_000_000), (2, 1_000_000)]);
    assert!((seen.total_s - 20.5e-3).abs() < 1e-6, "{}", seen.total_s);
    // It is not seen: it takes what it took, at the pace of the others (the base is the mean of 1 and 1.1 times).
    let unseen = of(&[(5, 2_000_000), (6, 2_000_000)]);
    assert!((unseen.total_s - 44e-3).abs() < 1e-6, "{}", unseen.total_s);
    assert!(unseen.half_width_s > seen.half_width_s);
}

#[test]
fn drift_of_the_base_is_carried_over_only_where_two_runs_confirm_it() {
    let rising: Vec<(u32, u64)> = (0..100).map(|i| (0, 1_000_000 + 10_000 * i)).collect();
    let of = |again| {
        let analysis = analysis(std::slice::from_ref(&rising), again);
        (estimate(&analysis, &prefix(&analysis, 30, 2.0), 0.95), 2.0 * seconds(&analysis, 0))
    };
    let (once, truth) = of(None);
    assert!(once.total_s < 0.85 * truth, "one run cannot tell drift from noise: {} of {truth}", once.total_s);
    let (twice, truth) = of(Some(1.0));
    assert!((twice.total_s - truth).abs() < 0.01 * truth, "{} instead of {truth}", twice.total_s);
}

#[test]
fn drift_is_seen_through_noise_in_stretches_as_long_as_those_measured() {
    // 400 occurrences rise by 30 %; single ones scatter by as much again, differently in each run.
    let noise = |at: u64, step: u64| (at * step % 101) as i64 * 6_000 - 300_000;
    let time = |at: u64, step: u64| (1_000_000 + 750 * at as i64 + noise(at, step)) as u64;
    let rising: Vec<(u32, u64)> = (0..400).map(|at| (0, time(at, 37))).collect();
    let mut analysis = analysis(std::slice::from_ref(&rising), Some(1.0));
    for (at, piece) in (0..).zip(&mut analysis.pieces[0]) {
        piece.again = Some(Nanos(time(at, 59)));
    }
    let of = |seen: std::ops::Range<usize>| {
        let times: Vec<Option<Nanos>> =
            (0..400).map(|at| seen.contains(&at).then_some(analysis.pieces[0][at].time)).collect();
        estimate(&analysis, &[times], 0.95).total_s / seconds(&analysis, 0)
    };
    assert!((of(0..80) - 1.0).abs() < 0.03, "{}", of(0..80));
    assert!((of(320..400) - 1.0).abs() < 0.03, "{}", of(320..400));
}
