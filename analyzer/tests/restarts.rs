//! The estimate from restarts: exact where the target is the base at another pace, narrower by repetition.
#[path = "support/pieces.rs"]
mod pieces;
use phasecast_analyzer::{Analysis, Edge, Restart, estimate_restarts};
use phasecast_trace::Nanos;
use pieces::analysis;
use proptest::prelude::*;

/// The restart of so many pieces from `first` on, `factor` times as slow as on the base.
fn restart(of: &Analysis, first: usize, count: usize, factor: f64) -> Restart {
    let time = |p: &phasecast_analyzer::Piece| Nanos((p.time.0 as f64 * factor) as u64);
    let times = of.pieces.iter().map(|pieces| pieces[first..first + count].iter().map(time).collect()).collect();
    Restart { first, times }
}

fn seconds(of: &Analysis, rank: usize) -> f64 {
    of.pieces[rank].iter().map(|p| p.time.seconds()).sum()
}

/// A start of 50 ms, then iterations of 10 ms on two ranks.
fn iterations(count: usize) -> Analysis {
    let mut list = vec![(0, 50_000_000)];
    list.extend((0..count).map(|_| (1, 10_000_000)));
    analysis(&[list.clone(), list], Some(1.0))
}

proptest! {
    #[test]
    fn a_run_measured_whole_is_its_own_estimate(
        list in proptest::collection::vec((0u32..4, 1_000u64..1_000_000), 1..60), ranks in 1usize..4, factor in 0.2f64..5.0,
    ) {
        let analysis = analysis(&vec![list.clone(); ranks], Some(1.0));
        let all = restart(&analysis, 0, list.len(), factor);
        let estimate = estimate_restarts(&analysis, &[all], &[], 0.95);
        let truth = seconds(&analysis, 0) * factor;
        prop_assert!((estimate.total_s - truth).abs() <= 1e-6 * truth + 1e-7);
        prop_assert!((estimate.coverage - 1.0).abs() < 1e-9);
        prop_assert_eq!(estimate.unmeasured_s, 0.0);
    }

    #[test]
    fn equal_occurrences_on_a_slower_target_are_exact(
        count in 5usize..200, at in 0.0f64..1.0, length in 1usize..4, factor in 0.2f64..5.0, times in 1usize..6,
    ) {
        let analysis = iterations(count);
        let first = 1 + ((count - length) as f64 * at) as usize;
        let restarts = vec![restart(&analysis, first, length, factor); times];
        let estimate = estimate_restarts(&analysis, &restarts, &[], 0.95);
        let truth = seconds(&analysis, 0) * factor;
        prop_assert!((estimate.total_s - truth).abs() <= 1e-6 * truth, "{} instead of {truth}", estimate.total_s);
        prop_assert_eq!(estimate.phases[1].measured, length as u64);
    }

    #[test]
    fn nothing_that_is_measured_makes_it_panic(
        list in proptest::collection::vec((0u32..4, 0u64..1_000_000), 0..40),
        restarts in proptest::collection::vec((any::<usize>(), proptest::collection::vec(proptest::collection::vec(any::<u64>(), 0..5), 0..4)), 0..8),
        small: bool, confidence: f64, edges in proptest::collection::vec(any::<[u64; 5]>(), 0..3),
    ) {
        let analysis = analysis(&[list.clone(), list], Some(1.3));
        let restart = |(first, times): (usize, Vec<Vec<u64>>)| Restart {
            first: if small { first % 40 } else { first },
            times: times.into_iter().map(|t| t.into_iter().map(Nanos).collect()).collect(),
        };
        let restarts: Vec<Restart> = restarts.into_iter().map(restart).collect();
        let edge = |times: [u64; 5]| {
            let [init_base, init_target, tail_base, finalize_base, finalize_target] = times.map(Nanos);
            Edge { init_base, init_target, tail_base, finalize_base, finalize_target }
        };
        let edges: Vec<Edge> = edges.into_iter().map(edge).collect();
        let estimate = estimate_restarts(&analysis, &restarts, &edges, confidence);
        prop_assert!(estimate.total_s.is_finite() && estimate.half_width_s >= 0.0);
    }
}

#[test]
fn repetition_narrows_the_interval() {
    let analysis = iterations(1000);
    let of = |repetitions: usize| {
        let factor = |i: usize| if i.is_multiple_of(2) { 1.02 } else { 0.98 };
        let restarts: Vec<Restart> = (0..repetitions).map(|i| restart(&analysis, 500, 5, factor(i))).collect();
        estimate_restarts(&analysis, &restarts, &[], 0.95).half_width_s
    };
    assert!(of(8) < 0.5 * of(1), "{} {}", of(8), of(1));
    assert!(of(1) < 0.5 * seconds(&analysis, 0), "one restart says something: {}", of(1));
}

/// A second launch has time left for longer stretches: they say more, and not that there is more to be said.
#[test]
fn stretches_of_several_lengths_narrow_the_interval_too() {
    let analysis = iterations(1000);
    let of = |counts: &[usize]| {
        let restarts: Vec<Restart> = counts.iter().map(|&count| restart(&analysis, 500, count, 1.0)).collect();
        estimate_restarts(&analysis, &restarts, &[], 0.95).half_width_s
    };
    assert!(of(&[40, 41, 42, 43]) < 0.6 * of(&[40]), "{} {}", of(&[40, 41, 42, 43]), of(&[40]));
}

/// The same two places again and again, each time a little longer, are two places.
#[test]
fn places_that_are_shown_again_are_not_more_places() {
    let analysis = iterations(1000);
    let of = |lengths: [usize; 3]| {
        let both = |length| [restart(&analysis, 100, length, 1.0), restart(&analysis, 700, length, 1.2)];
        let restarts: Vec<Restart> = lengths.into_iter().flat_map(both).collect();
        estimate_restarts(&analysis, &restarts, &[], 0.95).half_width_s
    };
    let (same, longer) = (of([40; 3]), of([40, 41, 42]));
    assert!((longer / same - 1.0).abs() < 0.05, "{longer} instead of {same}");
}

/// MPI_Init took a second longer in the first base run: what the rank sets up beside it is not taken from the second's.
#[test]
fn the_set_up_of_a_rank_is_what_it_was_beside_its_init() {
    let mut analysis = iterations(100);
    for pieces in &mut analysis.pieces {
        (pieces[0].time, pieces[0].again) = (Nanos(3_200_000_000), Some(Nanos(2_200_000_000)));
    }
    let second = 1_000_000_000;
    let edge = Edge { init_base: Nanos(second + second / 5), init_target: Nanos(second), ..Edge::default() };
    let estimate = estimate_restarts(&analysis, &[restart(&analysis, 10, 5, 1.0)], &[edge; 2], 0.95);
    assert!((estimate.total_s - (1.0 + 2.0 + 1.0)).abs() < 1e-6, "{}", estimate.total_s);
}

/// The start of a rank without an event before the first cut, or the second, lies behind those.
#[test]
fn a_rank_that_begins_late_has_its_init_taken_out_once() {
    let mut analysis = iterations(100);
    for (at, time) in [(0, 0), (1, 0), (2, 70_000_000)] {
        (analysis.pieces[1][at].time, analysis.pieces[1][at].again) = (Nanos(time), Some(Nanos(time)));
    }
    let edge = Edge { init_base: Nanos(30_000_000), init_target: Nanos(30_000_000), ..Edge::default() };
    let estimate = estimate_restarts(&analysis, &[restart(&analysis, 10, 5, 1.0)], &[edge; 2], 0.95);
    assert!((estimate.total_s - seconds(&analysis, 0)).abs() < 1e-6, "{}", estimate.total_s);
}

#[test]
fn a_burst_of_noise_in_one_repetition_is_left_out() {
    let analysis = iterations(100);
    let mut restarts = vec![restart(&analysis, 50, 5, 1.0); 4];
    restarts.push(restart(&analysis, 50, 5, 3.0));
    let estimate = estimate_restarts(&analysis, &restarts, &[], 0.95);
    assert!((estimate.total_s / seconds(&analysis, 0) - 1.0).abs() < 1e-9, "{}", estimate.total_s);
}

#[test]
fn the_slow_start_of_a_restart_is_left_out() {
    let analysis = iterations(1000);
    let of = |slow: std::ops::Range<usize>| {
        let mut one = restart(&analysis, 500, 60, 1.0);
        one.times.iter_mut().flat_map(|times| &mut times[slow.clone()]).for_each(|time| time.0 = time.0 * 3 / 2);
        let estimate = estimate_restarts(&analysis, &[one], &[], 0.95);
        (estimate.total_s / seconds(&analysis, 0), estimate.phases[1].measured)
    };
    let (start, measured) = of(0..12);
    assert!((start - 1.0).abs() < 1e-6 && measured == 48, "{start}, {measured}");
    let (end, measured) = of(48..60);
    assert!((end - 1.1).abs() < 1e-3 && measured == 60, "{end}, {measured}");
}

#[test]
fn start_and_end_are_what_the_launch_shows_and_the_rest_goes_at_the_pace() {
    let analysis = iterations(100);
    let restarts = [restart(&analysis, 10, 5, 2.0)];
    // Of the first 50 ms, MPI_Init is 30; here it takes 200. Of the last 10, MPI_Finalize is 4; here it takes 100.
    let edge = Edge {
        init_base: Nanos(30_000_000),
        init_target: Nanos(200_000_000),
        finalize_base: Nanos(4_000_000),
        finalize_target: Nanos(100_000_000),
        ..Edge::default()
    };
    let estimate = estimate_restarts(&analysis, &restarts, &[edge; 2], 0.95);
    let truth = 0.2 + 2.0 * 0.02 + 2.0 * 0.996 + 0.1;
    assert!((estimate.total_s - truth).abs() < 1e-6, "{}", estimate.total_s);
    assert!(estimate.rest_s > 0.0 && estimate.coverage < 1.0);
}
