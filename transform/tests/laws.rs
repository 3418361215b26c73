//! Laws of the transformation on random programs: base = target gives the trace back; no message is received before it
//! was sent; each rank's times go forward; time is conserved; threads do not change the result, nor do calls in a row.
mod made;

use made::*;
use phasecast_trace::{Call, Class};
use phasecast_transform::machine::{Link, Machine, Place};
use phasecast_transform::transform::answer::prediction;
use phasecast_transform::transform::{Settings, transform};
use proptest::prelude::*;

/// One thing that ranks do.
#[derive(Clone, Debug)]
enum Step {
    Compute(usize, u64),
    /// Source, destination, bytes, whether it is received without blocking.
    Message(usize, usize, u64, bool, u64),
    Together(u64),
}

fn steps(ranks: usize) -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        (0..ranks, 0..5_000_000u64).prop_map(|(rank, ns)| Step::Compute(rank, ns)),
        (0..ranks, 0..ranks, 0..100_000u64, any::<bool>(), 0..2_000_000u64)
            .prop_map(|(a, b, bytes, wait, ns)| Step::Message(a, b, bytes, wait, ns)),
        (0..1_000_000u64).prop_map(Step::Together),
    ];
    proptest::collection::vec(step, 1..60)
}

/// A run of such a program: what happens when it does not follow any model but causality.
fn run(ranks: usize, steps: &[Step]) -> Vec<Vec<Made>> {
    let mut calls: Vec<Vec<Made>> = vec![Vec::new(); ranks];
    let mut clock = vec![1000u64; ranks];
    for step in steps {
        match *step {
            Step::Compute(rank, ns) => clock[rank] += ns,
            Step::Message(a, b, bytes, nonblocking, ns) => {
                if nonblocking {
                    calls[b].push(irecv(a as u32, bytes, clock[b], clock[b] + 300));
                    clock[b] += 300;
                }
                let sent = clock[a] + 500 + ns / 3;
                calls[a].push(send(b as u32, bytes, clock[a], sent));
                clock[a] = sent;
                let enter = clock[b] + ns / 2;
                let exit = (enter + 200 + ns / 5).max(sent + ns / 7);
                let done = if nonblocking { wait } else { recv };
                calls[b].push(done(a as u32, bytes, enter, exit));
                clock[b] = exit;
            }
            Step::Together(ns) => {
                let last = clock.iter().copied().max().unwrap_or(0);
                for (rank, clock) in clock.iter_mut().enumerate() {
                    let exit = last + 400 + ns + 100 * rank as u64;
                    calls[rank].push(allreduce(8, *clock, exit));
                    *clock = exit;
                }
            }
        }
    }
    calls
}

/// A machine with costs that rise with length, an eager limit, and contention.
fn some_machine() -> impl Strategy<Value = Machine> {
    let costs = || (1.0..50.0f64, 1.0..50.0f64);
    (costs(), costs(), 1e8..1e10f64, proptest::option::of(0..100_000u64), 1.0..3.0f64).prop_map(
        |(send, receive, bandwidth, eager, contention)| {
            let mut machine = machine(send.0 * 1e-6, receive.0 * 1e-6);
            let link = &mut machine.links[0];
            let rising = |by: f64| {
                let mut costs = flat(by * 1e-6);
                costs.0.push(phasecast_transform::machine::Cost {
                    bytes: 100_000,
                    seconds: 10.0 * by * 1e-6,
                    spread: 0.0,
                });
                costs
            };
            (link.transfer, link.wait) = (rising(send.1), rising(receive.1));
            (link.bandwidth, link.eager_bytes, link.contention) = (bandwidth, eager, Some(contention));
            machine
        },
    )
}

/// The same with another node, to which messages take as long.
fn on_two_nodes(machine: &Machine) -> Machine {
    let mut two = machine.clone();
    two.links.push(Link { place: Place::Between, ..machine.links[0].clone() });
    two.identity.hosts = vec!["first".into(), "second".into()];
    two
}

fn check_order(old: &[Vec<Made>], new: &[Vec<Made>]) -> Result<(), TestCaseError> {
    let ranks = new.len();
    for a in 0..ranks {
        let mut last = 0;
        for (call, _) in &new[a] {
            prop_assert!(call.enter.0 >= last && call.exit >= call.enter, "rank {a} goes back");
            last = call.exit.0;
        }
        for b in 0..ranks {
            let sends = |of: &[Vec<Made>]| {
                let to = of[a].iter().filter(|c| c.0.peer == b as i32 && c.0.proc.0 == 0);
                to.map(|c| (c.0.enter.0, c.0.exit.0)).collect::<Vec<_>>()
            };
            let receives = |of: &[Vec<Made>]| {
                let from = of[b].iter().filter(|c| c.1.iter().any(|p| p.peer == a as i32));
                from.map(|c| c.0.exit.0).collect::<Vec<_>>()
            };
            let (sent, was_sent, received, was) = (sends(new), sends(old), receives(new), receives(old));
            for (n, end) in received.iter().enumerate() {
                prop_assert!(*end >= sent[n].0, "message {n} from {a} to {b} is received before it is sent");
                if was[n] >= was_sent[n].1 {
                    prop_assert!(end + 1 >= sent[n].1, "message {n} from {a} to {b}: {end} before {}", sent[n].1);
                }
            }
        }
    }
    Ok(())
}

/// Ranks whose processes start one after the other: both times are from the first start to the last end.
#[test]
fn the_base_run_is_timed_as_the_predicted_one_is() {
    let calls = [vec![allreduce(8, 1_000, 6_000)], vec![allreduce(8, 5_000, 9_000)]];
    let folder = tempfile::tempdir().expect("a folder");
    let recorded = Recorded { late: 4_000, ..Recorded::default() };
    let trace = write_as(&folder.path().join("base.trace"), &calls, None, &recorded);
    assert_eq!(trace.run_time().0, 6_000);
    let (machine, path) = (machine(1e-6, 1e-6), folder.path().join("new.trace"));
    let outcome = transform(&trace, &machine, &machine, &ratio(1.0), &path, &|_, _| {}).expect("a sound trace");
    let predicted = prediction(&trace, &machine, &machine, &outcome);
    assert_eq!([predicted.base_run_s, outcome.run_s].map(|s| (s * 1e9).round()), [9_000.0; 2]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn the_same_machine_gives_the_trace_back(
        (ranks, steps) in (1..5usize).prop_flat_map(|ranks| (Just(ranks), steps(ranks))),
        machine in some_machine(),
        contention: bool,
        two_nodes: bool,
    ) {
        let old = run(ranks, &steps);
        let settings = Settings { contention, ..ratio(1.0) };
        let second_from = Some(ranks.div_ceil(2)).filter(|_| two_nodes && ranks > 1);
        let machine = if second_from.is_some() { on_two_nodes(&machine) } else { machine };
        let recorded = Recorded { second_from, ..Recorded::default() };
        let (new, outcome) = transformed_as(&old, &recorded, &machine, &machine, &settings).expect("a sound trace");
        let span = old.iter().flatten().map(|c| c.0.exit.0).max().unwrap_or(1).max(1);
        // Transfers that meet are worked out in the order of target times, which may differ a little from that of base times.
        let slack = if contention { span / 100 } else { span / 1_000_000 };
        for (old, new) in old.iter().flatten().zip(new.iter().flatten()) {
            prop_assert_eq!((&old.1, old.0.proc, old.0.peer), (&new.1, new.0.proc, new.0.peer));
            for (was, is) in [(old.0.enter, new.0.enter), (old.0.exit, new.0.exit)] {
                prop_assert!(was.0.abs_diff(is.0) <= 2 + slack, "{} became {}", was, is);
            }
        }
        prop_assert!((outcome.run_s * 1e9 - span as f64).abs() <= 2.0 + slack as f64);
    }

    #[test]
    fn order_and_time_are_kept_on_any_machine(
        (ranks, steps) in (1..5usize).prop_flat_map(|ranks| (Just(ranks), steps(ranks))),
        base in some_machine(),
        target in some_machine(),
        k in 0.05..20.0f64,
    ) {
        let old = run(ranks, &steps);
        let (new, outcome) = transformed(&old, &base, &target, &ratio(k)).expect("a sound trace");
        check_order(&old, &new)?;
        for (rank, totals) in outcome.totals.iter().enumerate() {
            let spent: f64 = totals.target.iter().sum();
            let end = new[rank].last().map_or(0, |c| c.0.exit.0) as f64;
            prop_assert!((spent - end).abs() <= 2.0 + end * 1e-9, "rank {rank}: {spent} of {end}");
        }
        let threads = Settings { threads: 3, ..ratio(k) };
        let (again, _) = transformed(&old, &base, &target, &threads).expect("a sound trace");
        prop_assert_eq!(new, again);
    }

    /// A second thread that does nothing makes a rank keep to the order of times, call by call (decision 0041).
    #[test]
    fn calls_in_a_row_change_nothing(
        (ranks, steps) in (1..5usize).prop_flat_map(|ranks| (Just(ranks), steps(ranks))),
        base in some_machine(),
        target in some_machine(),
        contention: bool,
    ) {
        let old = run(ranks, &steps);
        let settings = Settings { contention, ..ratio(0.7) };
        let (new, _) = transformed(&old, &base, &target, &settings).expect("a sound trace");
        let mut ordered = old.clone();
        for calls in &mut ordered {
            let end = calls.last().map_or(0, |c| c.0.exit.0);
            calls.push((Call { thread: 1, ..call(0, Class::Other, end, end) }, Vec::new()));
        }
        let (mut again, _) = transformed(&ordered, &base, &target, &settings).expect("a sound trace");
        again.iter_mut().for_each(|calls| calls.retain(|c| c.0.thread == 0));
        prop_assert_eq!(new, again);
    }
}
