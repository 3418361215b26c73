//! The plan on made analyses: what it must show, where it must start, and what it may cost.
use super::*;
use crate::restart::windows::{COLD_S, LONG_S, WARM_S};
use phasecast_analyzer::{Method, Piece, Verdict};
use phasecast_trace::{Nanos, PhaseId};
use proptest::prelude::*;

/// An analysis of one rank with these pieces: phase, and ns in either base run. A phase with 1 % of the run is relevant.
fn analysis(pieces: &[(u32, u64, u64)]) -> Analysis {
    let total: u64 = pieces.iter().map(|p| p.1).sum();
    let phases = pieces.iter().map(|p| p.0 + 1).max().unwrap_or(0);
    let phase = |id: u32| {
        let own: Vec<u64> = pieces.iter().filter(|p| p.0 == id).map(|p| p.1).collect();
        Phase {
            id: PhaseId(id),
            weight: own.len() as u64,
            relevant: own.iter().sum::<u64>() * 100 >= total,
            one_off: own.len() == 1,
            time_s: 0.0,
            sd_s: 0.0,
            share: own.iter().sum::<u64>() as f64 / total.max(1) as f64,
            events: 1,
            structure: String::new(),
            hashes: vec![],
            planned: vec![],
        }
    };
    let piece = |(at, &(id, ns, again)): (usize, &(u32, u64, u64))| Piece {
        phase: PhaseId(id),
        end: at as u64 + 1,
        time: Nanos(ns),
        again: Some(Nanos(again)),
    };
    let run_time_s = total as f64 * 1e-9;
    Analysis {
        method: Method::Marker,
        program: String::new(),
        args: vec![],
        mpi: String::new(),
        ranks: 1,
        events: vec![pieces.len() as u64],
        run_time_s,
        base_runs_s: vec![run_time_s; 2],
        markers: Vec::new(),
        volume_classes: vec![],
        order: Default::default(),
        phases: (0..phases).map(phase).collect(),
        explained_s: 0.0,
        planned_s: 0.0,
        coverage: 1.0,
        residual_s: 0.0,
        verdict: Verdict { pays: true, reason: String::new(), difference: None },
        unmatched_sends: 0,
        unmatched_receives: 0,
        pieces: vec![pieces.iter().enumerate().map(piece).collect()],
    }
}

/// A start, then iterations of two short pieces and a long one of another kind, and an end.
pub fn two_kinds(iterations: usize) -> Analysis {
    let mut pieces = vec![(0, 300 * MS, 310 * MS)];
    for _ in 0..iterations {
        pieces.extend([(1, 240 * MS, 241 * MS), (1, 239 * MS, 240 * MS), (2, 560 * MS, 561 * MS)]);
    }
    pieces.push((3, 5 * MS, 5 * MS));
    analysis(&pieces)
}

/// The same with a third kind, once in ten iterations.
pub fn two_kinds_and_a_rare_one(iterations: usize) -> Analysis {
    let mut pieces = vec![(0, 300 * MS, 310 * MS)];
    for at in 0..iterations {
        pieces.extend([(1, 240 * MS, 241 * MS), (2, 460 * MS, 461 * MS)]);
        pieces.extend((at % 10 == 5).then_some((4, 350 * MS, 351 * MS)));
    }
    pieces.push((3, 5 * MS, 5 * MS));
    analysis(&pieces)
}

fn planned(analysis: &Analysis, most: Option<usize>) -> (Profile, Vec<Window>) {
    let profile = Profile::of(analysis).expect("the pieces are cuts");
    let windows = plan(analysis, &profile, most, 0.1);
    (profile, windows)
}

/// How far off a base run the plan's occurrences are, all of a phase taken like them, as a share of what repeats.
fn off(analysis: &Analysis, windows: &[Window], time: fn(&Piece) -> u64) -> f64 {
    let pieces = &analysis.pieces[0];
    let (mut error, mut whole) = (0.0, 0.0);
    for phase in analysis.phases.iter().filter(|p| p.relevant && p.weight > 1) {
        let all: u64 = pieces.iter().filter(|p| p.phase == phase.id).map(time).sum();
        let seen: Vec<u64> =
            windows.iter().flat_map(|w| &pieces[w.pieces()]).filter(|p| p.phase == phase.id).map(time).collect();
        let mean = seen.iter().sum::<u64>() as f64 / seen.len().max(1) as f64;
        error += (mean * phase.weight as f64 - all as f64).abs();
        whole += all as f64;
    }
    error / whole
}

pub const MS: u64 = 1_000_000;

/// A start, a set-up, `count` iterations and an end.
pub fn loop_of(count: usize, time: impl Fn(usize) -> u64) -> Analysis {
    let mut pieces = vec![(0, 300 * MS, 310 * MS), (1, 700 * MS, 690 * MS)];
    pieces.extend((0..count).map(|i| (2, time(i), time(i) + 1000)));
    pieces.push((3, 5 * MS, 5 * MS));
    analysis(&pieces)
}

#[test]
fn a_plain_loop_needs_two_images_and_one_for_its_set_up() {
    let analysis = loop_of(2000, |_| 10 * MS);
    let (profile, windows) = planned(&analysis, None);
    let (one_offs, repeating): (Vec<Window>, Vec<Window>) = windows.iter().partition(|w| w.one_off);
    assert_eq!(repeating.len(), 2, "{windows:?}");
    assert_eq!(one_offs, [Window { after: 0, warm: 0, measured: 1, one_off: true }]);
    for window in &repeating {
        let warm = profile.time(window.after + 1..window.pieces().start);
        assert!(window.warm >= 1 && (WARM_S..WARM_S + 0.011).contains(&warm), "{window:?} warms up for {warm} s");
        assert!((0.05..0.1).contains(&profile.time(window.pieces())), "{window:?}");
    }
    assert!(off(&analysis, &windows, |p| p.time.0) < 1e-6);
}

#[test]
fn drift_that_both_runs_have_is_followed() {
    let analysis = loop_of(1000, |i| 10 * MS + 20_000 * i as u64);
    let (_, windows) = planned(&analysis, None);
    assert!(off(&analysis, &windows, |p| p.time.0) < 0.01, "{windows:?}");
    assert!(off(&analysis, &windows, |p| p.again.unwrap().0) < 0.01, "{windows:?}");
}

#[test]
fn a_phase_that_comes_now_and_then_is_seen() {
    // Every 50th iteration ends with an output of another kind.
    let mut pieces = vec![(0, 100 * MS, 100 * MS)];
    for i in 0..1000 {
        pieces.push(if i % 50 == 49 { (2, 40 * MS, 41 * MS) } else { (1, 10 * MS, 10 * MS) });
    }
    pieces.push((3, MS, MS));
    let analysis = analysis(&pieces);
    let (_, windows) = planned(&analysis, None);
    for phase in [1, 2] {
        let shows = |w: &Window| analysis.pieces[0][w.pieces()].iter().any(|p| p.phase == PhaseId(phase));
        assert!(windows.iter().any(shows), "phase {phase} is in none of {windows:?}");
    }
}

#[test]
fn dear_restarts_make_images_few() {
    let analysis = two_kinds(20);
    let profile = Profile::of(&analysis).expect("the pieces are cuts");
    let images = |restart_s| plan(&analysis, &profile, None, restart_s).len();
    assert!(images(3.0) <= images(0.05) && images(3.0) <= 2, "{} and {}", images(0.05), images(3.0));
    // The set-up has 1.4 % of the run: an image for it pays only where restarts are cheap.
    let mut pieces = vec![(0, 100 * MS, 100 * MS), (1, 700 * MS, 700 * MS)];
    pieces.extend((0..5000).map(|_| (2, 10 * MS, 10 * MS)));
    pieces.push((3, MS, MS));
    let analysis = self::analysis(&pieces);
    let profile = Profile::of(&analysis).expect("the pieces are cuts");
    let one_offs = |restart_s| plan(&analysis, &profile, None, restart_s).iter().filter(|w| w.one_off).count();
    assert_eq!((one_offs(0.05), one_offs(3.0)), (1, 0));
}

#[test]
fn a_window_can_be_made_to_show_what_follows() {
    let profile = Profile::of(&two_kinds(20)).expect("the pieces are cuts");
    let window = Window { after: 3, warm: 1, measured: 1, one_off: false };
    let both = profile.showing(&window, &[1, 2].into()).expect("both follow");
    assert_eq!(both, Window { measured: 2, ..window });
    assert_eq!(profile.showing(&window, &[1].into()), Some(window));
    assert_eq!(profile.showing(&window, &[0].into()), None, "the start does not come again");
}

#[test]
fn long_pieces_are_measured_cold() {
    let mut pieces = vec![(0, 500 * MS, 500 * MS)];
    pieces.extend((0..12).map(|_| (1, 3400 * MS, 3390 * MS)));
    pieces.push((2, MS, MS));
    let (_, windows) = planned(&analysis(&pieces), None);
    assert!(!windows.is_empty() && windows.iter().all(|w| w.warm == 0 && w.measured == 1), "{windows:?}");
}

#[test]
fn what_is_not_there_is_not_planned() {
    let (_, windows) = planned(&analysis(&[(0, MS, MS), (1, MS, MS)]), None);
    assert!(windows.iter().all(|w| w.one_off), "{windows:?}");
    assert!(Profile::of(&analysis(&[(0, MS, MS)])).is_none(), "one piece has no cut");
}

#[test]
fn a_faster_target_runs_more_pieces() {
    let analysis = loop_of(2000, |_| 10 * MS);
    let (profile, windows) = planned(&analysis, None);
    for window in windows.iter().filter(|w| !w.one_off) {
        assert_eq!(profile.paced(window, 1.0), *window);
        assert_eq!(profile.paced(window, 3.0), *window, "a slower target warms up and is measured for longer anyway");
        let paced = profile.paced(window, 0.1);
        let warm = 0.1 * profile.time(paced.after + 1..paced.pieces().start);
        assert!(paced.after == window.after && warm >= WARM_S, "{paced:?}");
        assert!(0.1 * profile.time(paced.pieces()) >= 0.05 || paced.pieces().end + 1 >= profile.pieces(), "{paced:?}");
    }
}

/// Every fifth step writes, which takes ten times as long.
#[test]
fn a_rare_phase_stays_in_the_window_that_measures_it() {
    let mut pieces = vec![(0, 100 * MS, 100 * MS)];
    pieces.extend((0..200).map(|at| if at % 5 == 4 { (2, 100 * MS, 100 * MS) } else { (1, 10 * MS, 10 * MS) }));
    pieces.push((3, MS, MS));
    let profile = Profile::of(&analysis(&pieces)).expect("the pieces are cuts");
    let window = profile.around(20, false).expect("there is a cut before it");
    assert_eq!(profile.phases(window.pieces()).collect::<Vec<_>>(), [2]);
    for pace in [0.6, 0.1, 0.01] {
        assert!(profile.phases(profile.paced(&window, pace).pieces()).any(|phase| phase == 2), "{pace}");
    }
    let other = profile.neighbour(&window).expect("there is another cut");
    assert!(other.after != window.after && profile.phases(other.pieces()).any(|phase| phase == 2), "{other:?}");
}

#[test]
fn what_does_not_pay_is_told_why() {
    let objection_to = |analysis: &Analysis| {
        let (profile, windows) = planned(analysis, None);
        objection(analysis, &profile, &windows)
    };
    assert_eq!(objection_to(&loop_of(2000, |_| 10 * MS)), None);
    let set_up = loop_of(10, |_| 10 * MS);
    assert!(objection_to(&set_up).is_some_and(|why| why.contains("repeats")), "nearly all is set-up");
    // A start, a set-up of its own, and a loop that is a little less than half.
    let split = |start, set_up| {
        let mut pieces = vec![(0, start, start), (1, set_up, set_up)];
        pieces.extend(vec![(2, 10 * MS, 10 * MS); 80]);
        objection_to(&analysis(&pieces))
    };
    assert_eq!(split(MS, 900 * MS), None, "the set-up can be restarted");
    assert!(split(900 * MS, MS).is_some_and(|why| why.contains("repeats")), "the start cannot");
    let few = loop_of(4, |_| 400 * MS);
    assert!(objection_to(&few).is_some_and(|why| why.contains("have to be run")), "one of four, after a warm-up");
    let mut other = loop_of(2000, |_| 10 * MS);
    other.verdict.difference = Some("rank 0".into());
    assert_eq!(objection_to(&other), None, "only what comes last differs");
    other.verdict.pays = false;
    other.verdict.reason = "it differs".into();
    assert_eq!(objection_to(&other), Some("it differs".into()));
}

#[test]
fn a_neighbour_measures_the_same() {
    let analysis = loop_of(100, |_| 10 * MS);
    let (profile, windows) = planned(&analysis, None);
    for window in &windows {
        let Some(other) = profile.neighbour(window) else {
            assert_eq!(window.after, 0, "{window:?} has none");
            continue;
        };
        assert_ne!(other.after, window.after);
        if window.one_off {
            assert_eq!(other.pieces(), window.pieces());
        }
    }
}

fn runs() -> impl Strategy<Value = Vec<(u32, u64, u64)>> {
    let piece = (0u32..6, 10_000u64..2_000_000_000, 10_000u64..2_000_000_000);
    proptest::collection::vec(piece, 2..120)
}

proptest! {
    #[test]
    fn windows_lie_within_the_run_and_warm_up(pieces in runs(), most in proptest::option::of(1usize..5)) {
        let analysis = analysis(&pieces);
        let (profile, windows) = planned(&analysis, most);
        let last = pieces.len() - 1;
        prop_assert!(windows.is_sorted_by_key(|w| (w.after, w.warm)));
        prop_assert!(cuts(&windows).len() <= most.unwrap_or(usize::MAX));
        for window in &windows {
            prop_assert!(window.measured > 0 && window.pieces().end <= pieces.len());
            prop_assert!(analysis.cut(window.after).is_some(), "{:?} starts where the program has ended", window);
            if !window.one_off {
                prop_assert!(window.pieces().end <= last, "{:?} goes to the end of the program", window);
            }
            let warm = profile.time(window.after + 1..window.pieces().start);
            let cold = profile.time(window.pieces().start..window.pieces().start + 1) >= COLD_S;
            let stopped = window.warm > 0 && profile.time(window.after..window.after + 1) >= LONG_S;
            prop_assert!(warm >= WARM_S || cold || stopped || window.after == 0, "{:?} is warmed up for {} s", window, warm);
        }
        let run: f64 = profile.time(0..pieces.len());
        prop_assert!((run - profile.total).abs() < 1e-6 * run + 1e-8);
    }

    #[test]
    fn what_is_relevant_is_measured_where_images_are_free(pieces in runs()) {
        let analysis = analysis(&pieces);
        let profile = Profile::of(&analysis).expect("the pieces are cuts");
        let windows = plan(&analysis, &profile, None, 0.0);
        let last = pieces.len() - 1;
        let dear = round(&profile, &Search::new(&profile, &repeating(&analysis)).windows(usize::MAX)) > ROUND;
        for phase in analysis.phases.iter().filter(|p| p.relevant) {
            let inner = (1..last).any(|at| pieces[at].0 == phase.id.0);
            let shown = windows.iter().any(|w| w.pieces().any(|at| pieces[at].0 == phase.id.0));
            // Six one-offs are taken, and there are but six phases.
            prop_assert!(shown || !inner || dear, "phase {} is in none of {:?}", phase.id, windows);
        }
    }
}
