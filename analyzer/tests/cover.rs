//! Several markers: loops that have no pattern in common.
mod support;
use phasecast_analyzer::counted::Counted;
use phasecast_analyzer::cover::{Bounds, Markers};
use phasecast_analyzer::marker::positions;
use phasecast_analyzer::parallel::Stage;
use phasecast_analyzer::pilot::Pilot;
use phasecast_analyzer::source::with_feed;
use phasecast_analyzer::survey::survey;
use phasecast_analyzer::{Analysis, Order, Settings, Symbols, analyze};
use phasecast_trace::{Rank, Trace};
use support::{Act, Folder, Program};

const RANKS: u32 = 3;

fn run(program: &Program) -> Analysis {
    let folder = Folder::new();
    let trace = program.write(&folder.path("a"), 500);
    analyze(&[trace], &Settings { threads: 2, ..Settings::default() }, &|_, _| {}).unwrap()
}

/// Steps of a loop, each of 10 ms: messages around a ring, whose volume is the loop's own.
fn ring(program: &mut Program, steps: u64, bytes: u64) {
    for step in 0..steps {
        program.all(|rank| Act::Work(10_000_000 + (step * 7919 + u64::from(rank)) % 1000));
        program.all(|rank| Act::Isend { to: (rank + 1) % RANKS, tag: 1, bytes });
        program.all(|rank| Act::Recv(vec![((rank + RANKS - 1) % RANKS, 1, bytes, false)]));
    }
}

/// What is measured is little, each of `loops` shares of the run repeats in a phase, and what is measured stands for all.
fn covered(analysis: &Analysis, loops: &[f64]) {
    assert!(analysis.verdict.pays, "{}", analysis.verdict.reason);
    assert_eq!(analysis.markers.len(), loops.len(), "{:?}", analysis.markers);
    let mut shares: Vec<f64> =
        analysis.phases.iter().filter(|p| p.relevant && p.weight > 20).map(|p| p.share).collect();
    shares.sort_by(f64::total_cmp);
    assert_eq!(shares.len(), loops.len(), "{shares:?}");
    // Where a loop begins or ends there may be a phase of its own.
    assert!(shares.iter().zip(loops).all(|(found, of)| (found - of).abs() < 0.04), "{shares:?}");
    assert!(analysis.planned_s < 0.1 * analysis.run_time_s, "{} of {}", analysis.planned_s, analysis.run_time_s);
    assert!((analysis.explained_s / analysis.run_time_s - 1.0).abs() < 0.01, "{}", analysis.explained_s);
}

#[test]
fn two_loops_one_after_the_other() {
    let mut program = Program::new(RANKS);
    ring(&mut program, 600, 800);
    ring(&mut program, 400, 100_000);
    covered(&run(&program), &[0.4, 0.6]);
}

#[test]
fn none_of_four_loops_is_half_of_the_run() {
    let mut program = Program::new(RANKS);
    for (steps, bytes) in [(150, 8), (250, 10_000), (200, 800), (400, 100_000)] {
        ring(&mut program, steps, bytes);
    }
    covered(&run(&program), &[0.15, 0.2, 0.25, 0.4]);
}

/// Two loops that take turns.
fn turns() -> Program {
    let mut program = Program::new(RANKS);
    for _ in 0..12 {
        ring(&mut program, 120, 800);
        ring(&mut program, 80, 100_000);
    }
    program
}

#[test]
fn loops_that_take_turns() {
    covered(&run(&turns()), &[0.4, 0.6]);
}

/// The markers of a trace, as found on its first rank.
fn markers(trace: &Trace) -> Markers {
    let (settings, quiet) = (Settings { threads: 1, ..Settings::default() }, Stage::new(&|_, _| {}, 0, 1));
    let survey = survey(trace, &Counted::All, 1, &quiet).unwrap();
    let symbols = Symbols::new(&survey.volumes.classes(), trace.procedures(), Order::Kept);
    let pilot = with_feed(trace, &Counted::All, std::iter::once(Rank(0)), 1, |feed| {
        Pilot::read(trace, &survey, feed, Rank(0), &symbols, &[], &quiet)
    });
    Markers::find(pilot.unwrap(), &Bounds { room: ROOM, settings: &settings, stage: &quiet }).unwrap()
}

const ROOM: u64 = 1 << 20;

/// A quieter marker than the cheapest cuts elsewhere: were further ones still sought in what the cheapest leaves, neither
/// would cut there.
#[test]
fn further_markers_are_sought_in_what_the_chosen_one_leaves() {
    let folder = Folder::new();
    let trace = turns().write(&folder.path("a"), 500);
    let cheapest = markers(&trace);
    let all = &cheapest.found[0].priced;
    let mut others = 0;
    for candidate in all.iter().map(|priced| priced.candidate) {
        let own = positions(&cheapest.pilot, &cheapest.found[0].stretches, &[all[0].candidate, candidate]);
        let [of_cheapest, of_chosen] = own.as_slice() else { panic!("two candidates") };
        others += usize::from(!cheapest.leaves_the_same(0, of_chosen, of_cheapest));
        let (settings, quiet) = (Settings::default(), Stage::new(&|_, _| {}, 0, 1));
        let bounds = Bounds { room: ROOM, settings: &settings, stage: &quiet };
        let led = markers(&trace).led_by(&[candidate], &bounds).unwrap();
        assert_eq!(led.found[0].priced.iter().map(|p| p.candidate).collect::<Vec<_>>(), [candidate]);
        let left = led.found.get(1).map_or(&[][..], |further| &further.stretches);
        let ends = left.iter().flat_map(|stretch| [stretch.start, stretch.end]);
        let whole = [0, led.pilot.length()];
        for end in ends.filter(|end| !whole.contains(end)) {
            assert!(of_chosen.binary_search(&(end as u64)).is_ok(), "{candidate:?}: {end}");
        }
    }
    assert!((1..all.len()).contains(&others), "{others} of {}", all.len());
}

#[test]
fn one_marker_is_enough_for_loops_with_a_pattern_in_common() {
    let mut program = Program::new(RANKS);
    for steps in [300, 300] {
        for _ in 0..steps {
            ring(&mut program, 1, 800);
            program.all(|_| Act::Collective { comm: 0, root: 0, bytes: 8 });
        }
        ring(&mut program, 1, 100_000);
    }
    let analysis = run(&program);
    assert_eq!(analysis.markers.len(), 1, "{:?}", analysis.markers);
}

#[test]
fn what_repeats_nowhere_has_no_marker() {
    let mut program = Program::new(RANKS);
    ring(&mut program, 600, 800);
    for step in 0..20 {
        ring(&mut program, 1, 10 << step);
        program.all(|_| Act::Work(100_000_000));
    }
    let analysis = run(&program);
    assert!(analysis.verdict.pays, "{}", analysis.verdict.reason);
    assert_eq!(analysis.markers.len(), 1, "{:?}", analysis.markers);
    // Once the marker comes there, too: messages of about its volume.
    let once: f64 = analysis.phases.iter().filter(|p| p.one_off && p.relevant).map(|p| p.share).sum();
    assert!((0.2..0.3).contains(&once), "{:?}", analysis.phases);
}
