//! The source of a skeleton: buffers of what each rank moves, sizes that can be reduced, nothing that is not used.
mod support;
use phasecast_skeleton::TooLong;
use phasecast_skeleton::logical::{
    ClassTrace, Computation, Direction, End, Group, LogicalTrace, Mode, Operation, Step,
};
use phasecast_skeleton::nest::Node;
use phasecast_skeleton::program::Skeleton;
use phasecast_skeleton::program::error::ProgramError;
use phasecast_skeleton::program::made;
use phasecast_skeleton::program::plan::Plan;
use phasecast_skeleton::program::plan::Side;
use phasecast_skeleton::program::repair::unmatched;
use phasecast_skeleton::program::replay::{Outcome, Replay};
use proptest::prelude::*;
use support::RATES;

fn step(call: Operation) -> Node<Step> {
    let compute = Computation { count: 1, mean_ns: 1000.0, ..Computation::default() };
    Node::Item(Step { compute, call, call_ns: 1000.0 })
}

fn collective(name: &str, bytes: u64, root: Option<u32>) -> Node<Step> {
    step(Operation::Collective { name: name.into(), group: 0, bytes, root, slot: None })
}

fn send(direction: u16, tag: i32, slot: Option<u16>) -> Node<Step> {
    step(Operation::Send { end: End { direction, tag, bytes: 8 }, mode: Mode::Standard, slot })
}

fn receive(direction: u16, tag: i32, slot: Option<u16>) -> Node<Step> {
    receive_of(8, direction, tag, slot)
}

fn receive_of(bytes: u64, direction: u16, tag: i32, slot: Option<u16>) -> Node<Step> {
    step(Operation::Receive { end: End { direction, tag, bytes }, wildcard: false, slot })
}

fn wait(slots: Vec<u16>) -> Node<Step> {
    step(Operation::Wait { slots })
}

/// Ranks on a line with directions EAST (0) and WEST (1).
fn line(classes: Vec<(Vec<u32>, Vec<Node<Step>>)>) -> LogicalTrace {
    let ranks = classes.iter().map(|(ranks, _)| ranks.len() as u32).sum::<u32>();
    let east = (0..ranks).map(|rank| (rank + 1 < ranks).then_some(rank + 1)).collect();
    let west = (0..ranks).map(|rank| rank.checked_sub(1)).collect();
    LogicalTrace {
        program: "line".into(),
        ranks,
        directions: vec![Direction { name: "EAST".into(), peer: east }, Direction { name: "WEST".into(), peer: west }],
        groups: vec![Group { name: "WORLD".into(), members: vec![(0..ranks).collect()] }],
        classes: classes.into_iter().map(|(ranks, body)| ClassTrace { ranks, body }).collect(),
        ..LogicalTrace::default()
    }
}

fn source(trace: &LogicalTrace) -> String {
    Skeleton::of(trace, 1.0).expect("a program").source("x", None, &RATES).text
}

/// Rows of the source's table of rooms without the kind of rank: place, bytes sent and received and, where messages arrive,
/// how many landings there are and how far apart; by kind of rank.
fn table_of_rooms(text: &str) -> Vec<(u64, Vec<u64>)> {
    let all = text.split_once("rooms[] = {").expect("a table of rooms").1.split_once("};").expect("an end").0;
    let several = text.contains("kind_of[RANKS]");
    let row = |row: &str| {
        let mut numbers: Vec<u64> = row.split(|c: char| !c.is_ascii_digit()).filter_map(|n| n.parse().ok()).collect();
        let kind = if several && !numbers.is_empty() { numbers.remove(0) } else { 0 };
        (kind, numbers)
    };
    all.split('}').map(row).filter(|(_, numbers)| !numbers.is_empty()).collect()
}

/// Bytes of all buffers of each kind of ranks, by the source's table, and how many ranks are of each.
fn rooms(text: &str) -> Vec<(u64, usize)> {
    let all = table_of_rooms(text);
    let kinds: Vec<u64> = match text.split_once("kind_of[RANKS] = {") {
        Some((_, rest)) => {
            rest.split_once("};").expect("an end").0.split(',').filter_map(|n| n.trim().parse().ok()).collect()
        }
        None => vec![0],
    };
    let most = kinds.iter().max().expect("ranks") + 1;
    let bytes = |kind: u64| {
        let of = all.iter().filter(|(of, _)| *of == kind);
        of.map(|(_, room)| room[1] + room[2].max(room.get(3).unwrap_or(&0) * room.get(4).unwrap_or(&0))).sum()
    };
    (0..most).map(|kind| (bytes(kind), kinds.iter().filter(|of| **of == kind).count())).collect()
}

/// 64 ranks that gather 16 MiB of each: 1 GiB at the root alone.
#[test]
fn the_data_of_all_lie_at_the_root_alone() {
    const SIZE: u64 = 16 << 20;
    let of = |name: &str| rooms(&source(&line(vec![((0..64).collect(), vec![collective(name, SIZE, Some(3))])])));
    assert_eq!(of("MPI_Gather"), [(SIZE + 8, 63), (65 * SIZE, 1)]);
    assert_eq!(of("MPI_Reduce"), [(SIZE + 8, 63), (2 * SIZE, 1)]);
    assert_eq!(of("MPI_Bcast"), [(SIZE + 8, 64)].map(|(bytes, _)| (bytes, 1)));
    assert_eq!(of("MPI_Allgather"), [(65 * SIZE, 1)]);
    assert_eq!(of("MPI_Reduce_scatter"), [(SIZE + SIZE / 64, 1)]);
    // The root says the sum of what it sends, the others what they get.
    let scatter = |ranks: Vec<u32>, bytes| (ranks, vec![collective("MPI_Scatter", bytes, Some(0))]);
    let trace = line(vec![scatter(vec![0], 64 * SIZE), scatter((1..64).collect(), SIZE)]);
    assert_eq!(rooms(&source(&trace)), [(65 * SIZE, 1), (SIZE + 8, 63)]);
}

/// Each class has buffers of its own messages only.
#[test]
fn a_class_has_buffers_of_what_it_does() {
    let long = |call: fn(u16, i32, Option<u16>) -> Node<Step>, direction, slots: std::ops::Range<u16>| {
        let mut body: Vec<Node<Step>> =
            slots.clone().map(|slot| call(direction, i32::from(slot), Some(slot))).collect();
        body.push(wait(slots.collect()));
        body
    };
    let trace = line(vec![(vec![0], long(send, 0, 0..5000)), (vec![1], long(receive, 1, 0..5000)), (vec![2], vec![])]);
    // More than 4096 requests at a time are no contradiction.
    let text = source(&trace);
    assert!(text.contains("#define SLOTS 5000"));
    let kinds = rooms(&text);
    assert_eq!(kinds, [(16 * 5000, 1), (16 * 5000, 1), (0, 1)]);
}

/// Long messages share 32 MiB of each rank, in which each place has its landings; collectives, short messages and what a
/// rank sends to itself have none.
#[test]
fn long_messages_land_at_several_places() {
    let text = |zero: Vec<Node<Step>>, one: Vec<Node<Step>>| source(&line(vec![(vec![0], zero), (vec![1], one)]));
    let landings = |text: &str, kind: u64| -> Vec<[u64; 3]> {
        let rows = table_of_rooms(text).into_iter().filter(|(of, _)| *of == kind);
        rows.map(|(_, row)| [row[0], row[3], row[4]]).collect()
    };
    let long = |slot: u16| receive_of(100_000, 1, 0, Some(slot));
    let broadcast = || collective("MPI_Bcast", 64 << 20, Some(0));
    let ones = vec![
        long(0),
        long(1),
        receive(1, 1, Some(2)),
        wait(vec![0, 1, 2]),
        receive_of(16 << 10, 1, 2, None),
        broadcast(),
    ];
    // Of three places each has a third, whatever a collective receives in one of them.
    let source = text(vec![receive_of(100_000, 0, 0, None), broadcast()], ones);
    let third = (32 << 20) / 3;
    let [zero, one] = [landings(&source, 0), landings(&source, 1)];
    assert_eq!(
        one,
        [[0, third / 100_032, 100_032], [1, third / 100_032, 100_032], [2, 1, 8], [3, third >> 14, 16 << 10]]
    );
    // The other rank has one place, and all of it.
    assert_eq!(zero, [[3, (32 << 20) / 100_032, 100_032]]);
    assert!(source.contains("MPI_Irecv(arrival(which)") && source.contains("MPI_Recv(arrival(SLOTS)"));
    let together = text(vec![broadcast()], vec![broadcast()]);
    assert!(!together.contains("arrival"), "{together}");
}

#[test]
fn sizes_that_differ_stay_whole_numbers_of_what_is_reduced() {
    let sizes = |name: &str, a: u64, b: u64| {
        let of = |ranks: Vec<u32>, bytes| (ranks, vec![collective(name, bytes, None)]);
        let trace = line(vec![of(vec![0, 1], a), of(vec![2], b)]);
        Skeleton::of(&trace, 1.0).expect("a program").plan.steps.iter().map(|step| step.bytes).collect::<Vec<_>>()
    };
    assert_eq!(sizes("MPI_Allreduce", 800, 808), [800, 800]);
    assert_eq!(sizes("MPI_Allreduce", 8, 24), [16, 16]);
    assert_eq!(sizes("MPI_Allreduce", 12, 20), [16, 16]);
    assert_eq!(sizes("MPI_Allreduce", 4, 8), [4, 4]);
    assert_eq!(sizes("MPI_Allreduce", 5, 5), [5, 5]);
    assert_eq!(sizes("MPI_Reduce_scatter", 800, 800), [264, 264]);
    assert_eq!(sizes("MPI_Allgather", 800, 808), [803, 803]);
}

#[test]
fn collectives_beyond_a_gibibyte_are_cut_and_told() {
    for (name, bytes, cut) in [
        ("MPI_Allgather", 600 << 20, true),
        ("MPI_Allgather", 200 << 20, false),
        ("MPI_Alltoall", 2 << 30, true),
        ("MPI_Bcast", 1 << 31, true),
        ("MPI_Allreduce", 1 << 30, false),
    ] {
        let trace = line(vec![((0..4).collect(), vec![collective(name, bytes, Some(0))])]);
        let skeleton = Skeleton::of(&trace, 1.0).expect("a program");
        let told = skeleton.left_out.iter().any(|line| line.contains("1 collectives with more than 1 GiB"));
        assert_eq!((told, skeleton.repaired.clipped), (cut, usize::from(cut)), "{name} {:?}", skeleton.left_out);
        let [sent, received] = [0, 1].map(|side| rooms_side(&skeleton, side));
        assert!(sent <= 1 << 30 && received <= 1 << 30, "{name}: {sent} {received}");
    }
}

fn rooms_side(skeleton: &Skeleton, side: usize) -> u64 {
    let text = skeleton.source("x", None, &RATES).text;
    let table = text.split_once("rooms[] = {").expect("rooms").1.split_once("};").expect("an end").0;
    let each = table.split('}').filter_map(|room| room.rsplit(", ").nth(1 - side)?.trim().parse::<u64>().ok());
    each.max().unwrap_or(0)
}

#[test]
fn what_a_detached_exchange_does_not_use_is_not_written() {
    let both = Operation::SendReceive { send: Some(End { direction: 0, tag: 1, bytes: 8 }), receive: None };
    let trace = line(vec![
        (vec![0], vec![step(both), receive(0, 2, None)]),
        (vec![1], vec![send(1, 2, None), receive(1, 1, None)]),
    ]);
    let text = source(&trace);
    assert!(text.contains("send_detached(EAST, 1, 8);"), "{text}");
    assert!(!text.contains("exchange(") && !text.contains("NONE["), "{text}");
}

#[test]
fn computation_that_spreads_begins_each_round_anew() {
    let compute = Computation {
        count: 80,
        mean_ns: 5000.0,
        deviation_ns: 2000.0,
        quantiles_ns: (1..10).map(|i| f64::from(i) * 1000.0).collect(),
        ..Computation::default()
    };
    let call = Operation::Collective { name: "MPI_Barrier".into(), group: 0, bytes: 0, root: None, slot: None };
    let body = vec![Node::Item(Step { compute, call, call_ns: 0.0 })];
    let trace = line(vec![(vec![0, 1], vec![Node::Loop { count: 100, body }])]);
    let text = Skeleton::of(&trace, 10.0).expect("a program").source("x", None, &RATES).text;
    assert!(text.contains("#define SPREADS 1\n") && text.contains("memset(turn, 0, sizeof turn);"), "{text}");
    assert!(text.contains("compute_spread(us, 0);"), "{text}");
    // Ten iterations, of which the first stands for itself and each other for 11.
    let us = text.split_once("us[8] = {").expect("times").1.split_once('}').expect("an end").0;
    let us: Vec<f64> = us.split(", ").map(|us| us.parse().expect("a number")).collect();
    let stands: f64 = (0..10).map(|k| us[k % 8] * if k == 0 { 1.0 } else { 11.0 }).sum();
    assert!((stands / 500.0 - 1.0).abs() < 1e-3, "{stands} {us:?}");
}

#[test]
fn what_is_too_long_is_told_with_its_classes() {
    let of = |classes: u32, calls: usize| {
        let class = |rank| (vec![rank], vec![collective("MPI_Barrier", 0, None); calls]);
        match Skeleton::of(&line((0..classes).map(class).collect()), 2.0) {
            Err(ProgramError::TooLong(of)) => of,
            other => panic!("{other:?}"),
        }
    };
    let many = of(1024, 100);
    assert_eq!(many, TooLong { calls: 102_400, classes: 1024, longest: 100 });
    assert!(
        many.to_string().contains("of 1024 classes of ranks, the longest of 100; it may have 100000. Too many ranks")
    );
    assert!(of(2, 60_000).to_string().contains("The program repeats too little"));
}

/// Starts the replay anew each time that sends were detached.
fn anew(plan: &mut Plan) -> (Outcome, Vec<usize>) {
    loop {
        let outcome = Replay::run(plan, true);
        let sends = outcome.stuck.iter().filter(|pending| !pending.collective && pending.side == Side::Out);
        let steps: Vec<usize> = sends.map(|pending| pending.step).collect();
        if steps.is_empty() {
            let all = 0..plan.steps.len();
            return (outcome, all.filter(|step| plan.steps[*step].detached).collect());
        }
        steps.into_iter().for_each(|step| plan.steps[step].detached = true);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    /// Going on gives the sends of starting anew, and stops at the same calls.
    #[test]
    fn the_replay_goes_on_where_sends_are_detached(seed in any::<u64>()) {
        let mut plan = Plan::new(&made::logical(seed, 8)).expect("a plan");
        unmatched(&mut plan);
        let (outcome, detached) = Replay::detaching(&plan);
        let (wanted, all) = anew(&mut plan);
        prop_assert_eq!(detached, all);
        prop_assert_eq!(outcome.calls, wanted.calls);
        prop_assert_eq!((outcome.stuck, outcome.unreceived), (wanted.stuck, wanted.unreceived));
    }
}
