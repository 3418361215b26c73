//! Laws of the logical trace, whatever the ranks call: time is conserved, the nest stands for what was called, and
//! threads never show.
mod support;

use phasecast_skeleton::logical::{LogicalTrace, Operation, Step};
use phasecast_skeleton::nest::{Node, span};
use phasecast_trace::{Class, CommId, Flags, Part, PartKind};
use proptest::prelude::*;
use support::{Calls, Folder, got, logical, try_logical};

const RANKS: u32 = 3;

/// Any calls, also such as no program makes.
fn calls() -> impl Strategy<Value = Calls> {
    let one = (0u32..16, 0..RANKS, 0i32..3, 0u64..3, 0u64..30_000);
    let rows = proptest::collection::vec((proptest::collection::vec(one, 1..6), 1usize..5), 0..8);
    rows.prop_map(|rows| {
        let mut calls = Calls::new();
        for (row, times) in rows {
            for _ in 0..times {
                row.iter().for_each(|&what| any(&mut calls, what));
            }
        }
        calls
    })
}

fn any(calls: &mut Calls, (what, peer, tag, size, gap): (u32, u32, i32, u64, u64)) {
    let bytes = size * 1000;
    calls.work(gap);
    match what {
        0 => calls.send(peer, tag, bytes),
        1 => calls.isend(peer, tag, bytes),
        2 => calls.recv(peer, tag, bytes),
        3 => calls.irecv(peer, tag, bytes),
        4 => calls.irecv_any(),
        5 => calls.recv_any(peer, tag, bytes),
        6 => calls.wait(vec![]),
        7 => calls.wait(vec![got(peer, tag, bytes)]),
        8 => calls.waitall(vec![got(peer, tag, bytes), got(0, tag, bytes)]),
        9 => calls.complete("MPI_Test", vec![]),
        10 => calls.complete("MPI_Waitany", vec![got(peer, tag, bytes)]),
        11 => calls.collective("MPI_Allreduce", 0, peer as i32 - 1, bytes),
        12 => {
            let cancelled = Part { flags: Flags::CANCELLED, ..got(peer, tag, 0) };
            calls.wait(vec![cancelled])
        }
        13 => calls.push("MPI_Iprobe", Class::Probe, |_| {}, vec![]),
        14 => {
            let part = |kind| Part { kind, flags: Flags::PERSISTENT, peer: peer as i32, tag, bytes, comm: CommId(0) };
            let kinds = [PartKind::Send, PartKind::Post, PartKind::Collective];
            calls.push("MPI_Start", Class::Start, |_| {}, kinds.map(part).to_vec())
        }
        _ => calls.push("MPI_Sendrecv", Class::Send, |c| c.peer = -2, vec![got(peer, tag, bytes)]),
    };
}

fn steps(nodes: &[Node<Step>], each: &mut impl FnMut(&Step)) {
    for node in nodes {
        match node {
            Node::Item(step) => each(step),
            Node::Loop { body, .. } => steps(body, each),
        }
    }
}

/// Each slot is taken when it is free and waited for when it is taken.
fn slots(logical: &LogicalTrace) -> Result<(), TestCaseError> {
    for class in &logical.classes {
        let mut taken = std::collections::BTreeSet::new();
        let mut wrong = Vec::new();
        each_call(&class.body, &mut |call| match call {
            Operation::Send { slot: Some(slot), .. }
            | Operation::Receive { slot: Some(slot), .. }
            | Operation::Collective { slot: Some(slot), .. } => {
                wrong.extend((!taken.insert(*slot)).then_some(*slot));
            }
            Operation::Wait { slots } => wrong.extend(slots.iter().filter(|slot| !taken.remove(*slot))),
            _ => {}
        });
        prop_assert!(wrong.is_empty() && taken.is_empty(), "{wrong:?} {taken:?} {:?}", class.body);
    }
    Ok(())
}

fn each_call(nodes: &[Node<Step>], each: &mut impl FnMut(&Operation)) {
    for node in nodes {
        match node {
            Node::Item(step) => each(&step.call),
            Node::Loop { count, body } => (0..*count).for_each(|_| each_call(body, each)),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn time_is_conserved_and_threads_do_not_show(ranks in proptest::collection::vec(calls(), RANKS as usize)) {
        let spans: u64 = ranks.iter().map(|calls| calls.now - calls.list[0].0.exit.0).sum();
        let longest = ranks.iter().map(|calls| calls.now - calls.list[0].0.exit.0).max().unwrap_or(0);
        let folder = Folder::new();
        let trace = folder.trace(&[], ranks);
        let told = logical(&trace);
        let mut sum = 0.0;
        for class in &told.classes {
            let mut count = 0;
            steps(&class.body, &mut |step| {
                sum += step.compute.count as f64 * (step.compute.mean_ns + step.call_ns);
                count += step.compute.count;
            });
            prop_assert_eq!(count, span(&class.body) * class.ranks.len() as u64);
        }
        prop_assert!((sum - spans as f64).abs() < 1.0, "{} {}", sum, spans);
        prop_assert_eq!(told.run_ns, longest);
        slots(&told)?;
        let mut all: Vec<u32> = told.classes.iter().flat_map(|class| class.ranks.clone()).collect();
        all.sort_unstable();
        prop_assert_eq!(all, (0..RANKS).collect::<Vec<u32>>());
        prop_assert_eq!(try_logical(&trace, 3).unwrap(), told);
    }
}
