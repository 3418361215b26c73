//! Laws of programs made from logical traces: they end, whatever the trace, and stand for the time that they were made of.
mod support;
use phasecast_skeleton::logical::{
    ClassTrace, Computation, Direction, End, Group, LogicalTrace, Mode, Operation, Step,
};
use phasecast_skeleton::nest::Node;
use phasecast_skeleton::program::Skeleton;
use phasecast_skeleton::program::figure3::Marks;
use phasecast_skeleton::program::made;
use phasecast_skeleton::program::manifest::{Manifest, Run, Turn};
use phasecast_skeleton::program::replay::Replay;
use phasecast_skeleton::program::scale::weights;
use proptest::prelude::*;
use std::path::Path;
use support::RATES;

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_logical_trace_becomes_a_program_that_ends(seed in any::<u64>(), ratio in 1.0..100.0f64) {
        let trace = made::logical(seed, 8);
        let skeleton = Skeleton::of(&trace, ratio).expect("a program");
        // Every send waits for its receive.
        let outcome = Replay::run(&skeleton.plan, true);
        prop_assert!(outcome.accepts(), "{:?}", outcome);
        prop_assert!(skeleton.scaling.ratio() >= 0.999, "{:?}", skeleton.scaling);
        let source = skeleton.source(&trace.program, None, &RATES);
        prop_assert!(source.text.contains("MPI_Init") && !source.text.contains("x; int"));
        // Ranks meet in a collective only if they call it on the same communicator, of which there is one for each group.
        let mut numbers: Vec<&str> = source.text.lines().filter(|line| line.starts_with("static const int number_")).collect();
        let made = source.text.matches("= part_of(").count();
        prop_assert_eq!(made, numbers.len());
        numbers.iter_mut().for_each(|line| *line = line.split_once('=').map_or(*line, |(_, members)| members));
        numbers.sort_unstable();
        numbers.dedup();
        prop_assert_eq!(made, numbers.len(), "two communicators of the same ranks");
        for of in &skeleton.plan.loops {
            prop_assert!((1..=of.full).contains(&of.count));
        }
    }

    #[test]
    fn weights_stand_for_all_iterations(full in 1u64..1_000_000, count in 1u64..1000) {
        let count = count.min(full);
        let (first, rest) = weights(full, count);
        let sum = first + rest * (count - 1) as f64;
        prop_assert!((sum / full as f64 - 1.0).abs() < 1e-9, "{sum} of {full}");
    }

    #[test]
    fn a_manifest_is_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200), at in any::<prop::sample::Index>()) {
        let _ = Manifest::parse(Path::new("skeleton.json"), &bytes);
        let mut text = MANIFEST.as_bytes().to_vec();
        let at = at.index(text.len());
        if let Some(first) = bytes.first() {
            text[at] = *first;
        }
        let _ = Manifest::parse(Path::new("skeleton.json"), &text);
        let _ = Manifest::parse(Path::new("skeleton.json"), &text[..at]);
    }
}

const MANIFEST: &str = r#"{"version":1,"program":"a","ranks":2,"topology":null,"nests":[],"base":{"host":"h","cpu":"c",
"cores":2,"mpi":"m"},"base_run_s":1.0,"steps_s":1.0,"ratio_asked":20.0,"ratio":20.0,"ratio_most":100.0,"rates":{"mix":
{"memory":0.5,"working_set":4096},"rounds_per_us":1.0,"lines_per_us":1.0,"block_us":0.0},"source":"skeleton.c",
"sha256":"00","parts":[{"name":"p","ranks":"0","full":1,"count":1,"base_s":1.0}],"left_out":[],"runs":[]}"#;

#[test]
fn a_skeleton_is_compared_with_the_runs_in_turn_with_it() {
    let mut manifest = Manifest::parse(Path::new("skeleton.json"), MANIFEST.as_bytes()).expect("a manifest");
    let of = |stands_for_s| Run { stands_for_s, ..Run::default() };
    manifest.runs = vec![of(1.25), of(0.8)];
    assert_eq!(manifest.factors(), [0.8, 1.25]);
    // Half a second to start and end.
    let run = |stands_for_s, run_s| Run { wall_s: 2.0 * run_s + 0.5, rounds: 2, run_s, stands_for_s, ..Run::default() };
    manifest.turns =
        vec![Turn::of(&run(1.5, 0.125), 2.5, &run(2.5, 0.25)), Turn::of(&run(1.0, 0.125), 1.5, &run(1.0, 0.125))];
    assert_eq!((manifest.base_s(), manifest.factors()), (1.5, vec![1.0, 1.0]));

    // A launch that took long makes one turn too short: it counts as well.
    manifest.turns =
        vec![Turn::of(&run(1.0, 0.125), 0.25, &run(1.0, 0.125)), Turn { program_s: 1.25, stands_for_s: 1.0 }];
    assert_eq!((manifest.base_s(), manifest.factors()), (0.5, vec![-0.25, 1.25]));
    let read = Manifest::parse(Path::new("skeleton.json"), manifest.to_json().as_bytes()).expect("what was written");
    assert_eq!(read, manifest);
    // Whether turns count is told by the launches, not by how they came out.
    let launch = |launch_s: f64| Run { wall_s: 0.5 + launch_s, rounds: 1, run_s: 0.5, ..Run::default() };
    let turn = |program_s| Turn { program_s, stands_for_s: 0.02 };
    for (apart_s, program_s, tells) in
        [(0.001, 0.02, true), (0.3, 0.3, false), (0.3, -0.3, false), (0.001, -0.001, false)]
    {
        manifest.runs = [0.5, 0.5 + apart_s].repeat(3).into_iter().map(launch).collect();
        manifest.turns = vec![turn(program_s); 3];
        assert_eq!(manifest.turns_tell(), tells, "{apart_s} {program_s}");
    }
}

/// What a skeleton does before its first round is not part of starting MPI, which its program does as well.
#[test]
fn preparations_are_no_part_of_a_launch() {
    let line = r#"{"rounds":2,"prepare_s":0.25,"warm_s":0.125,"run_s":0.5,"stands_for_s":5.0,"parts":[],"mpi":"m"}"#;
    let run = Run::parse(line, 2.0).expect("a run");
    assert_eq!((run.prepare_s, run.launch_s()), (0.25, 0.625));
    // As skeletons of earlier versions left it.
    let run = Run::parse(&line.replace("\"prepare_s\":0.25,", ""), 2.0).expect("a run");
    assert_eq!((run.prepare_s, run.launch_s()), (0.0, 0.875));
}

#[test]
fn a_manifest_that_would_not_be_read_is_not_written() {
    let mut manifest = Manifest::parse(Path::new("skeleton.json"), MANIFEST.as_bytes()).expect("a manifest");
    assert!(manifest.to_file(Path::new("folder")).is_ok());
    manifest.nests = vec!["1 + ".repeat(5 << 20)];
    let error = manifest.to_file(Path::new("folder")).expect_err("too large").to_string();
    assert!(error.starts_with("folder/skeleton.json would have") && error.contains("fewer ranks"), "{error}");
}

#[test]
fn a_manifest_is_checked() {
    let parse = |text: &str| Manifest::parse(Path::new("skeleton.json"), text.as_bytes());
    let manifest = parse(MANIFEST).expect("a manifest");
    // A second of the program in 1/20 of it: ten times for half a second.
    assert_eq!(manifest.rounds(), 10);
    assert_eq!((manifest.base_s(), manifest.factors()), (1.0, vec![]));
    for (old, new, told) in [
        ("\"version\":1", "\"version\":9", "version 9"),
        ("skeleton.c", "../../etc/x.c", "source"),
        ("\"ranks\":2", "\"ranks\":0", "0 ranks"),
        ("\"base_run_s\":1.0", "\"base_run_s\":-1.0", "-1 seconds"),
    ] {
        let error = parse(&MANIFEST.replace(old, new)).expect_err(new).to_string();
        assert!(error.contains(told), "{error}");
    }
}

fn step(us: f64, call: Operation) -> Node<Step> {
    let compute = Computation { count: 1, mean_ns: us * 1e3, ..Computation::default() };
    Node::Item(Step { compute, call, call_ns: 1000.0 })
}

fn send(direction: u16, bytes: u64) -> Operation {
    Operation::Send { end: End { direction, tag: 5, bytes }, mode: Mode::Standard, slot: None }
}

fn receive(direction: u16, bytes: u64) -> Operation {
    Operation::Receive { end: End { direction, tag: 5, bytes }, wildcard: false, slot: None }
}

fn allreduce() -> Operation {
    Operation::Collective { name: "MPI_Allreduce".into(), group: 0, bytes: 8, root: None, slot: None }
}

fn repeat(count: u64, body: Vec<Node<Step>>) -> Node<Step> {
    Node::Loop { count, body }
}

/// A trace of a line of ranks with directions EAST (0) and WEST (1).
fn line(bodies: Vec<(Vec<u32>, Vec<Node<Step>>)>) -> LogicalTrace {
    let ranks = bodies.iter().map(|(ranks, _)| ranks.len() as u32).sum::<u32>();
    let east = (0..ranks).map(|rank| (rank + 1 < ranks).then_some(rank + 1)).collect();
    let west = (0..ranks).map(|rank| rank.checked_sub(1)).collect();
    LogicalTrace {
        program: "line".into(),
        ranks,
        directions: vec![Direction { name: "EAST".into(), peer: east }, Direction { name: "WEST".into(), peer: west }],
        groups: vec![Group { name: "WORLD".into(), members: vec![(0..ranks).collect()] }],
        classes: bodies.into_iter().map(|(ranks, body)| ClassTrace { ranks, body }).collect(),
        ..LogicalTrace::default()
    }
}

#[test]
fn classes_of_a_pipeline_are_shortened_together() {
    // The first rank only sends, the last one only receives, and has its first iteration apart.
    let first = vec![repeat(249, vec![repeat(40, vec![step(50.0, send(0, 800))]), step(5.0, allreduce())])];
    let middle = vec![repeat(
        249,
        vec![repeat(40, vec![step(1.0, receive(1, 800)), step(50.0, send(0, 800))]), step(5.0, allreduce())],
    )];
    let iteration = || vec![repeat(40, vec![step(50.0, receive(1, 800))]), step(5.0, allreduce())];
    let last = [iteration(), vec![repeat(248, iteration())]].concat();
    let trace = line(vec![(vec![0], first), (vec![1, 2], middle), (vec![3], last)]);
    let skeleton = Skeleton::of(&trace, 20.0).expect("a program");
    let counts: Vec<u64> = skeleton.plan.loops.iter().filter(|l| l.full > 200).map(|l| l.count).collect();
    assert_eq!(counts.len(), 3);
    assert_eq!((counts[0], counts[1]), (counts[1], counts[2] + 1), "{counts:?}");
    assert!((skeleton.scaling.ratio() / 20.0 - 1.0).abs() < 0.05, "{:?}", skeleton.scaling);
    assert_eq!((skeleton.repaired.local, skeleton.repaired.detached), (0, 0));
    assert!(skeleton.left_out.is_empty(), "{:?}", skeleton.left_out);
}

#[test]
fn inner_loops_help_where_whole_iterations_are_too_coarse() {
    let body = || vec![repeat(25, vec![step(50.0, send(0, 8)), step(0.0, receive(1, 8))]), step(10.0, allreduce())];
    let trace = line(vec![(vec![0, 1], vec![repeat(15, body())])]);
    for ratio in [2.0, 4.0, 9.0, 30.0] {
        let skeleton = Skeleton::of(&trace, ratio).expect("a program");
        assert!((skeleton.scaling.ratio() / ratio - 1.0).abs() < 0.1, "{ratio}: {:?}", skeleton.scaling);
        assert!((skeleton.scaling.most() - 15.0).abs() < 0.1, "{:?}", skeleton.scaling);
        // One or two iterations of fifteen follow a round of messages alone.
        assert_eq!(skeleton.source("x", None, &RATES).text.contains("    start_over();"), ratio > 5.0, "{ratio}");
    }
}

#[test]
fn what_lies_outside_loops_is_done_in_part() {
    let trace =
        line(vec![(vec![0, 1], vec![step(500_000.0, allreduce()), repeat(100, vec![step(5000.0, allreduce())])])]);
    let skeleton = Skeleton::of(&trace, 20.0).expect("a program");
    assert!((skeleton.scaling.ratio() / 20.0 - 1.0).abs() < 0.05, "{:?}", skeleton.scaling);
    let source = skeleton.source("x", None, &RATES);
    assert!(source.text.contains("compute(24999.05)"), "{}", source.text);
}

#[test]
fn what_lies_outside_loops_fills_up_what_whole_iterations_leave() {
    let trace =
        line(vec![(vec![0, 1], vec![step(100_000.0, allreduce()), repeat(20, vec![step(50_000.0, allreduce())])])]);
    for ratio in [9.0, 10.0, 15.0, 18.0] {
        let scaling = Skeleton::of(&trace, ratio).expect("a program").scaling;
        assert!((scaling.ratio() / ratio - 1.0).abs() < 1e-6, "{ratio}: {scaling:?}");
    }
}

#[test]
fn sends_that_relied_on_buffers_are_detached() {
    let ring = |calls: Vec<Node<Step>>| {
        let mut trace = line(vec![(vec![0, 1, 2], vec![repeat(10, calls)])]);
        trace.directions[0].peer = vec![Some(1), Some(2), Some(0)];
        trace.directions[1].peer = vec![Some(2), Some(0), Some(1)];
        trace
    };
    let relies = ring(vec![step(1.0, send(0, 100)), step(1.0, receive(1, 100))]);
    let skeleton = Skeleton::of(&relies, 2.0).expect("a program");
    assert_eq!((skeleton.repaired.local, skeleton.repaired.detached), (0, 1));
    assert_eq!(skeleton.figure3, Marks { global: 2, local: 0 });
    assert!(skeleton.left_out[0].contains("buffered"), "{:?}", skeleton.left_out);
    // The other way round no message is ever sent, whatever is buffered.
    let hangs = ring(vec![step(1.0, receive(1, 100)), step(1.0, send(0, 100))]);
    assert!(!Replay::run(&phasecast_skeleton::program::plan::Plan::new(&hangs).expect("a plan"), false).accepts());
    let skeleton = Skeleton::of(&hangs, 2.0).expect("a program");
    assert!(skeleton.repaired.local > 0);
    assert!(skeleton.left_out.iter().any(|line| line.contains("so that the skeleton ends")), "{:?}", skeleton.left_out);
    assert!(!skeleton.left_out.iter().any(|line| line.contains("no partner")), "{:?}", skeleton.left_out);
}

#[test]
fn sizes_that_differ_become_their_median() {
    let trace = line(vec![(vec![0, 1], vec![step(1.0, send(0, 100)), step(1.0, receive(1, 300))])]);
    let skeleton = Skeleton::of(&trace, 1.0).expect("a program");
    assert_eq!((skeleton.plan.steps[0].bytes, skeleton.repaired.resized), (200, 1));
    assert!(skeleton.source("x", None, &RATES).text.contains("receive_from(WEST, 5, 200)"));
}

#[test]
fn a_send_without_a_receive_is_local() {
    let trace = line(vec![(
        vec![0, 1],
        vec![step(1.0, send(0, 8)), repeat(9, vec![step(1.0, send(0, 8)), step(1.0, receive(1, 8))])],
    )]);
    let skeleton = Skeleton::of(&trace, 3.0).expect("a program");
    assert_eq!(skeleton.repaired.local, 1, "{:?}", skeleton.left_out);
    assert_eq!(skeleton.plan.loops[0].count, 3);
    assert!(skeleton.plan.steps[0].local[0].contains(&0), "the one outside the loop");
}

#[test]
fn what_contradicts_itself_is_refused() {
    let good = line(vec![(vec![0, 1], vec![step(1.0, send(0, 8)), step(1.0, receive(1, 8))])]);
    let mut twice = good.clone();
    twice.classes[0].ranks = vec![0, 0];
    let mut beyond = good.clone();
    beyond.directions[0].peer[0] = Some(7);
    let mut nowhere = good.clone();
    nowhere.classes[0].body.push(step(1.0, send(9, 8)));
    let mut endless = good.clone();
    endless.classes[0].body.push(step(f64::NAN, allreduce()));
    for bad in [twice, beyond, nowhere, endless] {
        assert!(Skeleton::of(&bad, 2.0).expect_err("it is refused").is_input());
    }
}
