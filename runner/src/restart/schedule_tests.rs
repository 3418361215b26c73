//! Tests of what is restarted next.
use super::*;
use crate::restart::manifest::{EdgeTimes, FORMAT, Needs, ProgramFile};
use crate::restart::plan::plan;
use crate::restart::plan::tests::{MS, loop_of, two_kinds, two_kinds_and_a_rare_one};
use crate::signature::this_machine;
use phasecast_analyzer::Analysis;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// What is scheduled of a loop of 10 ms with a set-up of 0.7 s, with so much time left.
fn scheduled(seen: &Seen, left: f64, more: bool) -> (Vec<Window>, Vec<Window>) {
    let (steps, windows, _) = scheduled_of(&loop_of(2000, |_| 10 * MS), 80_000_000, seen, left, more);
    (steps, windows)
}

/// The same of any program, with images of so many bytes.
fn scheduled_of(
    analysis: &Analysis,
    rank_bytes: u64,
    seen: &Seen,
    left: f64,
    more: bool,
) -> (Vec<Window>, Vec<Window>, Profile) {
    costs_of(analysis, rank_bytes, |costs| {
        (costs.schedule(seen, left, more), costs.windows.clone(), costs.profile.clone())
    })
}

fn costs_of<T>(analysis: &Analysis, rank_bytes: u64, look: impl FnOnce(&Costs<'_>) -> T) -> T {
    let profile = Profile::of(analysis).expect("it has cuts");
    let windows = plan(analysis, &profile, None, 0.1);
    let images = Images {
        format: FORMAT,
        created: 0,
        user: String::new(),
        program: ProgramFile { path: String::new(), bytes: 0, sha256: String::new() },
        folder: PathBuf::new(),
        needs: Needs {
            architecture: String::new(),
            cpu_baseline: String::new(),
            cpu_features: vec![],
            page_size: 4096,
            rank_bytes,
        },
        cuts: vec![],
        later: BTreeSet::new(),
        made: BTreeSet::new(),
        recorded: false,
        windows: windows.clone(),
        edges: vec![EdgeTimes { init_s: 0.2, ..EdgeTimes::default() }],
        verified: None,
    };
    let manifest = Manifest {
        kind: "restart".into(),
        phasecast: String::new(),
        command: vec!["loop".into()],
        ranks: 1,
        machine: this_machine(""),
        aet_s: vec![21.0],
        startup_s: 0.05,
        teardown_s: 0.05,
        images: None,
    };
    look(&Costs { images: &images, windows, profile: &profile, manifest: &manifest })
}

#[test]
fn the_first_windows_show_all_phases_and_are_made_in_any_case() {
    for analysis in [loop_of(2000, |_| 10 * MS), two_kinds_and_a_rare_one(400)] {
        costs_of(&analysis, 80_000_000, |costs| {
            let steps = costs.schedule(&Seen::default(), 60.0, true);
            let (longest, within) = costs.within(&steps, &Seen::default(), 60.0);
            assert!(steps.iter().all(|w| costs.windows.contains(w)), "{steps:?}");
            let phases = |steps: &[Window]| -> BTreeSet<usize> {
                let repeating = steps.iter().filter(|w| !w.one_off);
                repeating.flat_map(|w| costs.profile.phases(w.pieces())).collect()
            };
            assert!(within.least >= FEWEST && steps.len() > within.least, "{within:?} of {steps:?}");
            assert_eq!(phases(&steps[..within.least]), phases(&steps), "{steps:?}");
            assert!(59.0 < within.seconds && within.seconds < 60.0, "{within:?}");
            assert_eq!((steps.len(), steps.len()), (longest.len(), within.steps.len()));
            for ((window, longest), step) in steps.iter().zip(&longest).zip(&within.steps) {
                assert_eq!(longest.measured > window.measured, !window.one_off, "{longest:?} of {window:?}");
                assert_eq!(Window { measured: window.measured, ..*longest }, *window);
                let planned_s = step.base_s[step.planned - 1];
                assert!((planned_s - costs.profile.time(window.run())).abs() < 1e-9, "{planned_s}");
                let most_s = step.base_s[step.base_s.len() - 1];
                assert!((most_s - costs.profile.time(longest.run())).abs() < 1e-9, "{most_s}");
                assert!(most_s - planned_s < UNKNOWN * LONGEST_S + 0.01, "{most_s} for {planned_s}");
            }
        });
    }
}

#[test]
fn windows_that_share_a_cut_are_each_as_long_as_they_were_planned() {
    costs_of(&loop_of(2000, |_| 10 * MS), 80_000_000, |costs| {
        let at = |warm| Window { after: 0, warm, measured: 1, one_off: true };
        let windows = vec![at(0), at(1)];
        let costs = Costs { windows: windows.clone(), ..*costs };
        let (_, within) = costs.within(&windows, &Seen::default(), 60.0);
        let planned = within.steps.iter().map(|step| (step.planned, step.base_s.len())).collect::<Vec<_>>();
        assert_eq!(planned, [(1, 1), (2, 2)], "the second is to be measured after its warm-up");
    });
}

#[test]
fn a_window_after_which_a_rank_has_nothing_to_do_is_as_long_as_it_was_planned() {
    let mut analysis = loop_of(2000, |_| 10 * MS);
    let mut other = analysis.pieces[0].clone();
    for at in 1..other.len() {
        if at % 2 == 0 {
            other[at].end = other[at - 1].end;
        }
    }
    analysis.pieces.push(other);
    let profile = Profile::of(&analysis).expect("it has cuts");
    let at = |measured| Window { after: 0, warm: 0, measured, one_off: false };
    assert_eq!(profile.longer(&at(2), 0.1), at(2));
    assert_eq!(profile.longer(&at(3), 0.1), at(13));
    assert_eq!(profile.longer(&Window { one_off: true, ..at(3) }, 0.1), Window { one_off: true, ..at(3) });
}

#[test]
fn a_fast_target_keeps_what_lasted_long_enough() {
    costs_of(&loop_of(2000, |_| 10 * MS), 80_000_000, |costs| {
        let planned: Vec<Window> = costs.windows.clone();
        let mut costs = Costs { windows: planned.clone(), ..*costs };
        assert!(!costs.lengthen(0.9) && costs.lengthen(0.5), "{:?}", costs.windows);
        // All begin where they were planned; hosts have made some as long as is wanted here.
        let restarts = |lengths: &[Window]| -> Vec<Restart> {
            let restart = |(planned, length): (&Window, &Window)| Restart {
                first: planned.pieces().start,
                times: vec![vec![Default::default(); length.measured]],
            };
            planned.iter().zip(lengths).map(restart).collect()
        };
        let (short, long) = (restarts(&planned), restarts(&costs.windows));
        let of_loop = |restarts: &[Restart]| restarts.iter().zip(&planned).filter(|(_, w)| !w.one_off).count();
        assert_eq!(short.iter().filter(|r| costs.is_brief(r)).count(), of_loop(&short));
        assert_eq!(long.iter().filter(|r| costs.is_brief(r)).count(), 0);
        assert!(costs.shown_by(&long) && !costs.shown_by(&long[..long.len() / 2]));
        let seen = Seen::default();
        assert!(costs.has_time_for_a_round(&seen, 60.0) && !costs.has_time_for_a_round(&seen, 0.5));
    });
}

#[test]
fn a_round_starts_with_what_is_missed_most() {
    costs_of(&two_kinds(40), 80_000_000, |costs| {
        // Of the 40 iterations' pieces, two of the first kind by themselves, or one of the second.
        let at = |after, measured| Window { after, warm: 0, measured, one_off: false };
        let [start, first, second, far] = [at(0, 2), at(3, 2), at(5, 1), at(90, 2)];
        assert_eq!(costs.most_first(vec![start, first, second, far]), [second, far, start, first]);
    });
}

#[test]
fn where_a_restart_is_dear_one_shows_all_phases() {
    let analysis = two_kinds(40);
    let (steps, windows, profile) = scheduled_of(&analysis, 4_000_000_000, &Seen::default(), 2.4, true);
    let phases =
        |windows: &[Window]| -> BTreeSet<usize> { windows.iter().flat_map(|w| profile.phases(w.pieces())).collect() };
    assert_eq!(steps.len(), 1, "{steps:?}");
    assert!(windows.len() > 1 && phases(&steps) == phases(&windows), "{steps:?} for {windows:?}");
}

#[test]
fn a_phase_that_takes_little_is_left_out_where_there_is_no_time_for_it() {
    let analysis = two_kinds_and_a_rare_one(40);
    let restart_s = restart_s(1_000_000_000, 1);
    let phases = |left| {
        let (steps, _, profile) = scheduled_of(&analysis, 1_000_000_000, &Seen::default(), left, true);
        assert_eq!(steps.len(), 1, "{steps:?}");
        let shown: BTreeSet<usize> = profile.phases(steps[0].pieces()).collect();
        (shown, restart_s + profile.time(steps[0].run()))
    };
    let (all, all_s) = phases(3.2);
    let (most, most_s) = phases(2.6);
    assert!(all.len() == 3 && most.len() == 2 && most_s < all_s, "{all:?} in {all_s}, {most:?} in {most_s}");
}

#[test]
fn one_round_is_made_whatever_it_costs() {
    let (steps, windows) = scheduled(&Seen::default(), 0.0, true);
    assert!(!steps.is_empty() && steps.len() == windows.iter().filter(|w| !w.one_off).count(), "{steps:?}");
}

#[test]
fn one_offs_are_measured_once_and_rounds_fill_the_budget() {
    let (steps, windows) = scheduled(&Seen::default(), 60.0, true);
    let repeating = windows.iter().filter(|w| !w.one_off).count();
    assert_eq!(steps.iter().filter(|w| w.one_off).count(), 1);
    assert_eq!(steps.len(), 1 + ROUNDS.0 * repeating);
    assert!(steps[repeating].one_off, "after the first round: {steps:?}");
    assert!(steps.iter().all(|w| windows.contains(w)), "{steps:?}");
    // 0.45 s for the launch, 0.4 s a round, 0.8 s for the set-up.
    let (steps, windows) = scheduled(&Seen::default(), 1.3, true);
    assert!(!steps.iter().any(|w| w.one_off) && steps.len() == repeating, "rather longer than again: {steps:?}");
    assert!(steps.iter().all(|w| windows.contains(w)), "{steps:?}");
}

#[test]
fn enough_is_enough() {
    let seen = Seen { launches: 1, round: true, one_offs: true, ..Seen::default() };
    assert_eq!(scheduled(&seen, 60.0, false).0, []);
    assert!(!scheduled(&seen, 60.0, true).0.is_empty());
    let seen = Seen { launches: 1, round: true, one_offs: false, ..Seen::default() };
    assert!(scheduled(&seen, 60.0, false).0.iter().all(|w| w.one_off), "only what was not seen yet");
}

#[test]
fn base_runs_that_differ_are_told_of() {
    costs_of(&loop_of(2000, |_| 10 * MS), 80_000_000, |costs| {
        let note = |aet_s: &[f64]| Manifest { aet_s: aet_s.to_vec(), ..costs.manifest.clone() }.scatter_note();
        assert!(note(&[2.77, 4.23]).is_some_and(|note| note.contains("from 2.770 s to 4.230 s")));
        assert_eq!((note(&[2.0, 2.4]), note(&[5.0]), note(&[])), (None, None, None));
    });
}
