//! The rules on traces made by hand: seed 000, Figure 5, and what goes beyond it.
mod made;

use made::*;
use phasecast_trace::{Call, Class, Counts, Flags, PartKind, Rank, Trace};
use phasecast_transform::machine::{Machine, Place, Stops};
use phasecast_transform::transform::{Settings, TransformError, transform};

const MS: u64 = 1_000_000;

fn times(calls: &[Made]) -> Vec<(u64, u64)> {
    calls.iter().map(|(call, _)| (call.enter.0, call.exit.0)).collect()
}

/// Times in ms.
fn ms(calls: &[Made]) -> Vec<(f64, f64)> {
    times(calls).into_iter().map(|(a, b)| (a as f64 / MS as f64, b as f64 / MS as f64)).collect()
}

/// Two messages between two nodes: computation at half the time, g2 = 1 instead of 2. The first receive is reduced to
/// half; by the basic rule the second would end at 6, but its send ends at 8.
#[test]
fn figure_5_a_receive_is_delayed_to_the_end_of_its_send() {
    let one = vec![send(1, 100, 2 * MS, 4 * MS), send(1, 100, 10 * MS, 12 * MS)];
    let two = vec![recv(0, 100, 4 * MS, 6 * MS), recv(0, 100, 10 * MS, 12 * MS)];
    for contention in [false, true] {
        let settings = Settings { contention, ..ratio(0.5) };
        let (new, _) = transformed(&[one.clone(), two.clone()], &machine(2e-3, 2e-3), &machine(2e-3, 1e-3), &settings)
            .expect("a sound trace");
        assert_eq!(ms(&new[0]), [(1.0, 3.0), (6.0, 8.0)]);
        assert_eq!(ms(&new[1]), [(2.0, 3.0), (5.0, 8.0)]);
    }
}

#[test]
fn sends_scale_by_the_ratio_of_their_costs() {
    let one = vec![send(1, 100, 2 * MS, 5 * MS)];
    let two = vec![recv(0, 100, 8 * MS, 10 * MS)];
    let (new, _) = transformed(&[one, two], &machine(2e-3, 2e-3), &machine(4e-3, 2e-3), &ratio(1.0)).expect("sound");
    // S2 = f2/f1 S1 = 2 x 3.
    assert_eq!(ms(&new[0]), [(2.0, 8.0)]);
    assert_eq!(ms(&new[1]), [(8.0, 10.0)]);
}

#[test]
fn a_chain_of_any_length_keeps_its_order() {
    let ranks = 40u32;
    let chain: Vec<Vec<Made>> = (0..ranks)
        .map(|rank| {
            let at = u64::from(rank) * 10 * MS;
            let mut calls = Vec::new();
            if rank > 0 {
                calls.push(recv(rank - 1, 8, MS, at - 4 * MS));
            }
            if rank + 1 < ranks {
                calls.push(send(rank + 1, 8, at + MS, at + 2 * MS));
            }
            calls
        })
        .collect();
    let (new, _) = transformed(&chain, &machine(1e-3, 1e-3), &machine(3e-3, 1e-3), &ratio(0.1)).expect("sound");
    for rank in 1..ranks as usize {
        let (sent, received) = (times(&new[rank - 1]), times(&new[rank]));
        assert!(received[0].1 >= sent.last().map_or(0, |s| s.1), "rank {rank}: {sent:?} {received:?}");
    }
    // Each link of the chain takes at least its send.
    assert!(new[ranks as usize - 1][0].0.exit.0 >= u64::from(ranks - 1) * 3 * MS);
}

#[test]
fn a_ring_of_nonblocking_messages_goes_round() {
    let ranks = 5u32;
    let ring: Vec<Vec<Made>> = (0..ranks)
        .map(|rank| {
            let (from, to) = ((rank + ranks - 1) % ranks, (rank + 1) % ranks);
            (0..20u64)
                .flat_map(|round| {
                    let at = (round * 10 + 1) * MS;
                    [
                        irecv(from, 64, at, at + 1000),
                        isend(to, 64, at + MS, at + MS + 2000),
                        wait(from, 64, at + 2 * MS, at + 3 * MS),
                    ]
                })
                .collect()
        })
        .collect();
    let machines = (machine(2e-6, 1e-6), machine(1e-3, 5e-4));
    let (new, outcome) = transformed(&ring, &machines.0, &machines.1, &ratio(0.5)).expect("sound");
    assert_eq!(outcome.counted.calls, 5 * 60);
    for rank in 0..ranks as usize {
        let before = (rank + ranks as usize - 1) % ranks as usize;
        for round in 0..20 {
            assert!(new[rank][3 * round + 2].0.exit >= new[before][3 * round + 1].0.exit);
        }
    }
}

#[test]
fn ranks_that_wait_in_a_circle_are_an_error() {
    let rank = |other| vec![recv(other, 8, MS, 2 * MS), send(other, 8, 3 * MS, 4 * MS)];
    let failed = transformed(&[rank(1), rank(0)], &machine(1e-6, 1e-6), &machine(1e-6, 1e-6), &ratio(1.0));
    match failed {
        Err(error @ TransformError::Circle { .. }) => {
            assert!(error.to_string().contains("rank 0 in MPI_Recv") && error.is_input(), "{error}");
        }
        other => panic!("{:?}", other.map(|(calls, _)| calls)),
    }
}

/// The first message comes after its receive is waited for. That receive was posted for it, not for the second one, whose
/// send is over when its own receive is posted.
#[test]
fn a_late_message_takes_the_post_of_its_receive_with_it() {
    let mut limited = machine(1e-3, 1e-3);
    limited.links[0].eager_bytes = Some(100);
    let one = vec![send(1, 10, 4 * MS, 5 * MS), send(1, 1000, 8 * MS, 9 * MS)];
    let two = vec![
        irecv(0, 10, MS, MS + 1000),
        wait(0, 10, 2 * MS, 5 * MS),
        irecv(0, 1000, 20 * MS, 20 * MS + 1000),
        wait(0, 1000, 20 * MS + 2000, 21 * MS),
    ];
    let (new, _) = transformed(&[one, two], &machine(1e-3, 1e-3), &limited, &ratio(1.0)).expect("sound");
    assert_eq!(ms(&new[0]), [(4.0, 5.0), (8.0, 21.0)]);
}

#[test]
fn a_long_send_waits_for_its_receive() {
    let limited = |eager| {
        let mut machine = machine(1e-3, 1e-3);
        machine.links[0].eager_bytes = eager;
        machine
    };
    let one = vec![send(1, 1000, MS, 2 * MS)];
    let two = vec![recv(0, 1000, 20 * MS, 21 * MS)];
    let both = [one, two];
    let (new, _) = transformed(&both, &limited(None), &limited(Some(100)), &ratio(1.0)).expect("sound");
    assert_eq!(ms(&new[0]), [(1.0, 21.0)]);
    // The other way round the wait goes away.
    let one = vec![send(1, 1000, MS, 21 * MS)];
    let (new, _) =
        transformed(&[one, both[1].clone()], &limited(Some(100)), &limited(None), &ratio(1.0)).expect("sound");
    assert_eq!(ms(&new[0]), [(1.0, 2.0)]);
    let synchronous = |(call, parts): Made| (Call { proc: phasecast_trace::ProcId(8), ..call }, parts);
    let one = vec![synchronous(send(1, 10, MS, 21 * MS))];
    let (new, _) = transformed(&[one, both[1].clone()], &limited(None), &limited(None), &ratio(1.0)).expect("sound");
    assert_eq!(ms(&new[0]), [(1.0, 21.0)]);
}

#[test]
fn two_long_sends_to_each_other_do_not_hang() {
    let mut small = machine(1e-3, 1e-3);
    small.links[0].eager_bytes = Some(10);
    let rank = |other| vec![send(other, 1000, MS, 2 * MS), recv(other, 1000, 3 * MS, 4 * MS)];
    let (new, outcome) = transformed(&[rank(1), rank(0)], &machine(1e-3, 1e-3), &small, &ratio(1.0)).expect("sound");
    assert!(outcome.counted.given_up > 0 && outcome.notes.iter().any(|note| note.contains("given up")));
    assert_eq!(ms(&new[0])[0], (1.0, 2.0));
}

#[test]
fn collectives_keep_their_arrival_skew() {
    let rank = |enter| vec![allreduce(8, enter * MS, 11 * MS)];
    let (new, _) =
        transformed(&[rank(2), rank(10)], &machine(1e-3, 1e-3), &machine(1e-3, 3e-3), &ratio(2.0)).expect("sound");
    assert_eq!(ms(&new[0]), [(4.0, 23.0)]);
    assert_eq!(ms(&new[1]), [(20.0, 23.0)]);
}

/// Transfers of 10 ms for 10000 bytes share its link.
fn shared() -> Machine {
    let mut machine = machine(1e-6, 1e-6);
    let link = &mut machine.links[0];
    (link.bandwidth, link.contention, link.transfer) = (1e6, Some(2.0), flat(10e-3));
    machine
}

#[test]
fn transfers_of_one_node_share_its_link() {
    // Two messages of 10 ms each at the same time.
    let sender = |to| vec![send(to, 10_000, MS, MS + 1000)];
    let receiver = |from| vec![recv(from, 10_000, MS, 2 * MS)];
    let ranks = [sender(1), receiver(0), sender(3), receiver(2)];
    let base = machine(1e-6, 1e-6);
    let alone = Settings { contention: false, ..ratio(1.0) };
    let (new, _) = transformed(&ranks, &base, &shared(), &alone).expect("sound");
    let (together, _) = transformed(&ranks, &base, &shared(), &ratio(1.0)).expect("sound");
    for receiver in [1, 3] {
        let took = |calls: &[Made]| ms(calls)[0].1 - ms(calls)[0].0;
        let (one, two) = (took(&new[receiver]), took(&together[receiver]));
        assert!((two - one - 10.0).abs() < 1e-3, "{one} alone, {two} together");
    }
}

/// Rank 0 sends at 1 and at 21 ms, rank 2 between them: were rank 0 to go on to its second send at once, the first would
/// have had the link to itself.
#[test]
fn transfers_come_to_a_link_in_the_order_of_times() {
    let (sent, received) = (
        |to, at| send(to, 10_000, at * MS, at * MS + 1000),
        |from, at| vec![recv(from, 10_000, at * MS, at * MS + 2000)],
    );
    let ranks = [vec![sent(1, 1), sent(4, 21)], received(0, 1), vec![sent(3, 6)], received(2, 6), received(0, 21)];
    let (new, _) = transformed(&ranks, &machine(1e-6, 1e-6), &shared(), &ratio(1.0)).expect("sound");
    for (rank, end) in [(1, 16.0), (3, 21.0), (4, 31.0)] {
        let was = ms(&new[rank])[0].1;
        assert!((was - end).abs() < 0.01, "rank {rank} ends at {was}, not at {end}");
    }
}

#[test]
fn receives_and_sends_without_partners_are_told() {
    let one = vec![send(1, 8, MS, 2 * MS)];
    let two = vec![recv(0, 8, 3 * MS, 4 * MS), recv(0, 8, 5 * MS, 6 * MS)];
    let same = machine(1e-6, 1e-6);
    let (new, outcome) = transformed(&[one, two], &same, &same, &ratio(1.0)).expect("an assumption is made");
    assert!(outcome.notes.iter().any(|note| note.contains("no recorded send")), "{:?}", outcome.notes);
    assert_eq!(ms(&new[1])[1], (5.0, 6.0));
    let one = vec![send(1, 8, MS, 2 * MS), send(1, 8, 3 * MS, 4 * MS)];
    let two = vec![recv(0, 8, 3 * MS, 4 * MS)];
    let (_, outcome) = transformed(&[one, two], &same, &same, &ratio(1.0)).expect("an assumption is made");
    assert!(outcome.notes.iter().any(|note| note.contains("no recorded receive")), "{:?}", outcome.notes);
}

#[test]
fn threads_of_a_rank_go_their_own_ways() {
    let thread = |n: u16, (call, parts): Made| (Call { thread: n, ..call }, parts);
    // Thread 1 of rank 0 makes the send that rank 1's answer to thread 0 depends on, and its call ends last.
    let zero = vec![thread(0, recv(1, 8, MS, 6 * MS)), thread(1, send(1, 8, 2 * MS, 9 * MS))];
    let one = vec![recv(0, 8, MS, 4 * MS), send(0, 8, 5 * MS, 5 * MS + 1000)];
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("base.trace");
    let trace = {
        use phasecast_trace::model::{CommDef, Ending, Trailer};
        use phasecast_trace::writer::{TraceWriter, made_header};
        let writer = TraceWriter::create(&path).expect("a new trace");
        for (rank, calls) in [zero, one].iter().enumerate() {
            let mut out =
                writer.rank(&made_header(phasecast_trace::Rank(rank as u32), 2, "made", &PROCEDURES)).expect("a rank");
            out.comms(&[CommDef { local: 0, members: vec![0, 1], remote: Vec::new() }]).expect("comms");
            for (call, parts) in calls {
                out.thread(call.thread).expect("a thread");
                out.push(call, parts).expect("a call");
            }
            let ending = Ending::Finalized;
            out.finish(Trailer { ending, calls: 0, end_units: 9 * MS, own_ns: 0, modules: Vec::new() })
                .expect("an end");
        }
        writer.finish().expect("a whole trace");
        Trace::open(&path).expect("it opens")
    };
    let same = machine(1e-6, 1e-6);
    let new = folder.path().join("new.trace");
    let outcome = phasecast_transform::transform::transform(&trace, &same, &same, &ratio(1.0), &new, &|_, _| {});
    assert_eq!(outcome.expect("no circle").counted.unmatched_receives, 0);
    let new = read(&Trace::open(&new).expect("it opens"));
    assert_eq!(ms(&new[0]), [(1.0, 6.0), (2.0, 9.0)]);
    assert_eq!(new[0].iter().map(|c| c.0.thread).collect::<Vec<_>>(), [0, 1]);
}

#[test]
fn a_combined_send_and_receive_does_not_wait_for_its_own_kind() {
    let both = |other: u32| {
        let (call, _) = send(other, 8, MS, 3 * MS);
        let call = Call { proc: phasecast_trace::ProcId(7), class: Class::Send, flags: Flags::default(), ..call };
        vec![(call, vec![part(PartKind::Recv, other, 1, 8)])]
    };
    let (new, outcome) =
        transformed(&[both(1), both(0)], &machine(1e-3, 1e-3), &machine(2e-3, 1e-3), &ratio(1.0)).expect("no circle");
    assert_eq!(outcome.counted.given_up, 0);
    assert_eq!(ms(&new[0]), ms(&new[1]));
}

/// A machine whose ranks are all stopped from 1 ms on for a share of each tenth of a second.
fn stopped(machine: &Machine, share: f64) -> Machine {
    let stops = Stops { span_s: 0.1, ranks: vec![vec![[1e-3, 0.1 * share]]] };
    Machine { stops: Some(stops), ..machine.clone() }
}

/// Rank 0 computes for 3 ms and is stopped meanwhile from 1 to 5; rank 1, which waits for its message, from 6 to 9.
#[test]
fn who_is_stopped_holds_up_those_who_wait() {
    let one = vec![send(1, 8, 3 * MS, 3 * MS + 1000)];
    let two = vec![recv(0, 8, MS / 2, 3 * MS + 1000), send(0, 8, 5 * MS, 5 * MS + 1000)];
    let ranks = [one, two];
    let base = machine(1e-6, 1e-6);
    let stops = Stops { span_s: 0.1, ranks: vec![vec![[1e-3, 4e-3]], vec![[6e-3, 3e-3]]] };
    let target = Machine { stops: Some(stops.clone()), ..base.clone() };
    let (new, outcome) = transformed(&ranks, &base, &target, &ratio(1.0)).expect("a sound trace");
    assert_eq!(ms(&new[0]), [(7.0, 7.001)]);
    // It goes on at 9 and computes for 2 - 0.001 ms.
    assert_eq!(ms(&new[1]), [(0.5, 9.0), (10.999, 11.0)]);
    assert!(outcome.notes.iter().any(|note| note.contains("stopped for")), "{:?}", outcome.notes);
    // What stopped the base is in its trace already.
    let (same, outcome) = transformed(&ranks, &target, &target, &ratio(1.0)).expect("a sound trace");
    assert_eq!([ms(&same[0]), ms(&same[1])], [ms(&ranks[0]), ms(&ranks[1])]);
    assert!(outcome.notes.iter().any(|note| note.contains("stopped on the base")), "{:?}", outcome.notes);
    // Of a base that was stopped less, for a tenth of the time, that is taken off before.
    let noisy = Stops { span_s: 0.1, ranks: vec![vec![[0.0, 1e-2]], vec![[0.0, 1e-2]]] };
    let (less, outcome) =
        transformed(&ranks, &Machine { stops: Some(noisy), ..base }, &stopped(&target, 0.5), &ratio(1.0))
            .expect("a sound trace");
    // Of 2.7 ms one is done before a stop of 50 ms.
    assert_eq!(ms(&less[0]), [(52.7, 52.701)]);
    assert!(outcome.notes.iter().any(|note| note.contains("10 % of the time on the base")), "{:?}", outcome.notes);
}

/// Rank 0 has sent its message when rank 1 comes out of `MPI_Init`, with which the calendar begins.
#[test]
fn who_starts_before_the_others_is_not_late() {
    let init = |end| (call(15, Class::Setup, 0, end * MS), Vec::new());
    let one = vec![init(10), send(1, 8, 12 * MS, 12 * MS + 1000), recv(1, 8, 16 * MS, 18 * MS + 1000)];
    let two = vec![init(14), recv(0, 8, 15 * MS, 15 * MS + 1000), send(0, 8, 18 * MS, 18 * MS + 1000)];
    let base = machine(1e-6, 1e-6);
    let stops = Stops { span_s: 0.1, ranks: vec![vec![[0.003, 0.05]]; 2] };
    let target = Machine { stops: Some(stops), ..base.clone() };
    let (new, _) = transformed(&[one, two], &base, &target, &ratio(1.0)).expect("a sound trace");
    assert_eq!(ms(&new[0])[..2], [(0.0, 10.0), (12.0, 12.001)]);
    assert_eq!(ms(&new[1])[..2], [(0.0, 14.0), (15.0, 15.001)]);
    // Of the 2.999 ms before its send 1.999 are done at 17 ms, when all are stopped until 67.
    assert_eq!(ms(&new[1])[2], (68.0, 68.001));
}

/// A random run had one whose transfer began only when all waits had been given up, and met others that it had not met.
#[test]
fn a_long_send_to_oneself_waits_for_no_later_receive() {
    let mut machine = machine(1e-6, 1e-6);
    machine.links[0].eager_bytes = Some(100);
    let rank = vec![send(0, 1000, MS, MS + 1000), recv(0, 1000, 2 * MS, 2 * MS + 1000)];
    let (new, outcome) = transformed(std::slice::from_ref(&rank), &machine, &machine, &ratio(1.0)).expect("no circle");
    assert_eq!(outcome.counted.given_up, 0);
    assert_eq!(ms(&new[0]), ms(&rank));
}

#[test]
fn what_a_machine_file_lacks_is_told() {
    let ranks = [vec![send(1, 8, MS, 2 * MS)], vec![recv(0, 8, MS, 2 * MS)]];
    let whole = machine(1e-6, 1e-6);
    let fails = |base: &Machine, target: &Machine, settings: &Settings<'_>| {
        transformed(&ranks, base, target, settings).map(|_| ()).expect_err("it must be refused").to_string()
    };
    let without = Machine { links: Vec::new(), ..whole.clone() };
    let error = fails(&whole, &without, &ratio(1.0));
    assert!(error.contains("target") && error.contains("within a node"), "{error}");
    let mut between = whole.clone();
    between.links[0].place = Place::Between;
    assert!(fails(&between, &whole, &ratio(1.0)).contains("base"));
    let silent = Machine { kernels: Vec::new(), ..whole.clone() };
    let by_kernels = Settings { ratio: None, ..ratio(1.0) };
    assert!(fails(&whole, &silent, &by_kernels).contains("--ratio"));
    assert!(fails(&whole, &whole, &ratio(0.0)).contains("above 0"));
    let mut negative = whole.clone();
    negative.links[0].send.0[0].seconds = -1.0;
    assert!(fails(&whole, &negative, &ratio(1.0)).contains("negative"));
}

/// Counts are of the machine where they were counted: what is foretold for another has none, and is otherwise the same.
#[test]
fn counts_are_left_out() {
    let folder = tempfile::tempdir().expect("a folder");
    let ranks = [vec![send(1, 100, 2 * MS, 4 * MS)], vec![recv(0, 100, 4 * MS, 6 * MS)]];
    let counted =
        write_with(&folder.path().join("counted"), &ranks, Some(Counts { instructions: 9, cycles: 8, misses: 7 }));
    let of = |trace: &Trace| {
        let (mut counts, mut calls) = (0, trace.calls(Rank(0)));
        while let Some(item) = calls.next_call().expect("a whole trace") {
            counts += u32::from(item.counts.is_some());
        }
        counts
    };
    assert_eq!(of(&counted), 1);
    let out = folder.path().join("foretold");
    let (base, target) = (machine(2e-3, 2e-3), machine(2e-3, 1e-3));
    transform(&counted, &base, &target, &ratio(0.5), &out, &|_, _| {}).expect("a sound trace");
    let foretold = Trace::open(&out).expect("it opens");
    assert_eq!((of(&foretold), foretold.counters()), (0, None));
    let (plain, _) = transformed(&ranks, &base, &target, &ratio(0.5)).expect("a sound trace");
    assert_eq!(read(&foretold), plain);
}
