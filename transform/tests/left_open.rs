//! What a trace or a machine file leaves open: clocks that cannot be compared, messages that were not recorded, ranks that
//! were cut off, requests that are told by their order, nodes that were not measured.
mod made;

use made::*;
use phasecast_trace::{Call, Class, CommId, Flags, PartKind, ProcId};
use phasecast_transform::machine::{Collective, Cost, Costs, Link, Machine, Place};
use phasecast_transform::transform::{Settings, TransformError};

const MS: u64 = 1_000_000;

/// Times in ms.
fn ms(calls: &[Made]) -> Vec<(f64, f64)> {
    calls.iter().map(|(call, _)| (call.enter.0 as f64 / MS as f64, call.exit.0 as f64 / MS as f64)).collect()
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() < 0.05
}

fn costs(points: &[(u64, f64)]) -> Costs {
    Costs(points.iter().map(|&(bytes, seconds)| Cost { bytes, seconds, spread: 0.0 }).collect())
}

/// Transfers of 10000 bytes take 10 ms and share a node's link.
fn shared() -> Machine {
    let mut machine = machine(1e-6, 1e-6);
    let link = &mut machine.links[0];
    (link.bandwidth, link.contention, link.transfer) = (1e6, Some(2.0), costs(&[(0, 1e-9), (10_000, 10e-3)]));
    machine
}

fn limited(machine: &Machine, eager: u64) -> Machine {
    let mut limited = machine.clone();
    limited.links[0].eager_bytes = Some(eager);
    limited
}

fn with_table(machine: &Machine, name: &str, table: Costs) -> Machine {
    let (root, others) = (table.clone(), table.clone());
    let collectives = vec![Collective { name: name.into(), ranks: 2, costs: table, root, others }];
    Machine { collectives, ..machine.clone() }
}

/// A call that takes no time in a trace of computation.
fn at(enter: u64, (call, parts): Made) -> Made {
    use phasecast_trace::Nanos;
    (Call { enter: Nanos(enter * MS), exit: Nanos(enter * MS), ..call }, parts)
}

fn computed(ranks: &[Vec<Made>], target: &Machine) -> Result<Vec<Vec<Made>>, TransformError> {
    let recorded = Recorded { computing: true, ..Recorded::default() };
    let (new, outcome) = transformed_as(ranks, &recorded, &target.free(), target, &ratio(1.0))?;
    assert_eq!(outcome.counted.early, 0);
    Ok(new)
}

/// Rank 0 gets to its long send at 60 ms on the base, where a short one takes long, and at 10 ms on the target; rank 2 at
/// 30 ms on both. So the base's transfers are met in the order 60, 30, and both take 10 ms.
#[test]
fn transfers_of_the_base_begin_when_they_began() {
    let mut base = shared();
    base.links[0].send = costs(&[(8, 50e-3), (9, 1e-6)]);
    let ranks = [
        vec![send(1, 8, 0, 50 * MS), send(1, 10_000, 60 * MS, 60 * MS + 1000)],
        vec![recv(0, 8, MS, 50 * MS), recv(0, 10_000, 60 * MS, 70 * MS)],
        vec![send(3, 10_000, 30 * MS, 30 * MS + 1000)],
        vec![recv(2, 10_000, 30 * MS, 40 * MS)],
    ];
    let (new, _) = transformed(&ranks, &base, &shared(), &ratio(1.0)).expect("sound");
    assert!(near(ms(&new[3])[0].1, 40.0), "{:?}", ms(&new[3]));
}

/// The first send waits for its receive on the base only: what rank 0 does next comes to the link in its turn, before what
/// rank 3 does.
#[test]
fn a_send_that_is_eager_on_the_target_holds_nothing_up() {
    let ranks = [
        vec![send(1, 200, MS, 21 * MS), send(2, 10_000, 21 * MS, 21 * MS + 1000)],
        vec![recv(0, 200, 20 * MS, 21 * MS)],
        vec![recv(0, 10_000, MS, 22 * MS)],
        vec![send(4, 10_000, 2 * MS, 2 * MS + 1000)],
        vec![recv(3, 10_000, MS, 3 * MS)],
    ];
    let base = limited(&machine(1e-6, 1e-6), 100);
    let (new, outcome) = transformed(&ranks, &base, &shared(), &ratio(1.0)).expect("sound");
    assert_eq!(outcome.counted.given_up, 0);
    assert!(near(ms(&new[0])[0].1, 1.001), "{:?}", ms(&new[0]));
    let ends = [ms(&new[2])[0].1, ms(&new[4])[0].1];
    assert!((ends[0] - 20.0).abs() < 1.5 && (ends[1] - 21.0).abs() < 1.5, "{ends:?}");
}

/// Two nodes whose messages do not disturb each other where they go opposite ways.
fn two_nodes(cores: u32) -> Machine {
    let mut two = shared();
    let between = Link { place: Place::Between, contention: Some(1.0), ..two.links[0].clone() };
    two.links.push(between);
    (two.identity.hosts, two.identity.cores) = (vec!["here".into(), "there".into()], cores);
    two
}

#[test]
fn transfers_of_one_direction_share_a_nodes_link() {
    let sent = |to| vec![send(to, 10_000, MS, MS + 1000)];
    let received = |from| vec![recv(from, 10_000, MS, 2 * MS)];
    let ranks = [sent(2), sent(3), received(0), received(1)];
    let base = machine(1e-6, 1e-6);
    let alone = Settings { contention: false, ..ratio(1.0) };
    for (settings, extra) in [(alone, 0.0), (ratio(1.0), 10.0)] {
        let (new, _) = transformed(&ranks, &base, &two_nodes(2), &settings).expect("sound");
        let (one, two) = (ms(&new[2])[0].1, ms(&new[3])[0].1);
        assert!(near(one, two) && (one - 11.0 - extra).abs() < 1.0, "{one} and {two}");
    }
    // What goes the other way does not share.
    let ranks = [sent(2), received(3), received(0), sent(1)];
    let (new, _) = transformed(&ranks, &base, &two_nodes(2), &ratio(1.0)).expect("sound");
    assert!((ms(&new[1])[0].1 - 11.0).abs() < 1.0 && (ms(&new[2])[0].1 - 11.0).abs() < 1.0);
}

/// Six ranks on nodes of two processors: three nodes, though two were measured.
#[test]
fn ranks_are_placed_on_as_many_nodes_as_they_need() {
    let ranks: Vec<Vec<Made>> = (0..6).map(|_| vec![allreduce(8, MS, 2 * MS)]).collect();
    let base = machine(1e-6, 1e-6);
    let told = |target: &Machine| transformed(&ranks, &base, target, &ratio(1.0)).expect("sound").1.notes.join("\n");
    assert!(told(&two_nodes(2)).contains("6 ranks need 3"), "{}", told(&two_nodes(2)));
    assert!(told(&two_nodes(0)).contains("has 2 nodes"), "{}", told(&two_nodes(0)));
    let mut one = machine(1e-6, 1e-6);
    one.identity.cores = 4;
    assert!(told(&one).contains("one node with 4 processors for 6 ranks"), "{}", told(&one));
}

#[test]
fn ranks_of_a_trace_of_computation_wait_for_each_other() {
    let all = |at_ms| at(at_ms, allreduce(8, 0, 0));
    // By its own time the first has left long before the second comes.
    let new = computed(&[vec![all(1), all(2)], vec![all(10), all(11)]], &machine(1e-3, 1e-3)).expect("sound");
    assert_eq!([ms(&new[0]), ms(&new[1])], [[(1.0, 11.0), (12.0, 13.0)], [(10.0, 11.0), (12.0, 13.0)]]);
    let (call, parts) = send(1, 8, 0, 0);
    let synchronous = (Call { proc: ProcId(8), ..call }, parts);
    let new = computed(&[vec![at(1, synchronous)], vec![at(20, recv(0, 8, 0, 0))]], &machine(1e-3, 1e-3));
    let new = new.expect("sound");
    assert!(ms(&new[0])[0].1 >= 20.0, "{:?}", ms(&new[0]));
}

#[test]
fn neighbours_are_not_all_ranks_and_one_rank_alone_is_free() {
    let target = with_table(&machine(1e-3, 1e-3), "MPI_Alltoall", costs(&[(0, 1e-3)]));
    let neighbours = |at_ms| at(at_ms, (call(11, Class::Collective, 0, 0), Vec::new()));
    let new = computed(&[vec![neighbours(2)], vec![neighbours(10)]], &target).expect("sound");
    assert_eq!([ms(&new[0]), ms(&new[1])], [[(2.0, 3.0)], [(10.0, 11.0)]]);

    let alone = |enter| {
        let (call, parts) = allreduce(8, enter * MS, enter * MS + 1000);
        vec![(Call { comm: CommId(1), ..call }, parts)]
    };
    let recorded = Recorded { alone: true, ..Recorded::default() };
    let (base, target) = (machine(1e-6, 1e-6), machine(5e-3, 5e-3));
    let (new, _) = transformed_as(&[alone(1), alone(2)], &recorded, &base, &target, &ratio(1.0)).expect("sound");
    assert_eq!([ms(&new[0]), ms(&new[1])], [[(1.0, 1.001)], [(2.0, 2.001)]]);
}

/// The root's event has the blocks of both ranks, the table has one.
#[test]
fn a_scatter_costs_its_root_a_block_for_each_rank() {
    let target = with_table(&machine(1e-3, 1e-3), "MPI_Scatter", costs(&[(0, 1e-9), (1000, 1e-3), (2000, 2e-3)]));
    let part = |bytes| vec![at(1, (Call { peer: 0, bytes, ..call(10, Class::Collective, 0, 0) }, Vec::new()))];
    let new = computed(&[part(2000), part(1000)], &target).expect("sound");
    assert_eq!([ms(&new[0]), ms(&new[1])], [[(1.0, 2.0)], [(1.0, 2.0)]]);
}

/// The first of three messages has no recorded send: the others are received after they were sent all the same.
#[test]
fn a_send_that_is_missing_leaves_the_others_in_their_order() {
    let one = vec![send(1, 8, 10 * MS, 10 * MS + 1000), send(1, 8, 20 * MS, 20 * MS + 1000)];
    let got = |enter| recv(0, 8, enter * MS, enter * MS + 1000);
    let (new, outcome) =
        transformed(&[one, vec![got(2), got(11), got(21)]], &machine(1e-6, 1e-6), &machine(10e-3, 1e-6), &ratio(1.0))
            .expect("an assumption is made");
    assert_eq!(outcome.counted.unmatched_receives, 1);
    assert!(near(ms(&new[1])[0].1, 2.001), "{:?}", ms(&new[1]));
    for (sent, received) in ms(&new[0]).into_iter().zip(&ms(&new[1])[1..]) {
        assert!(received.1 >= sent.1, "{sent:?} {received:?}");
    }
}

/// Two ranks answer each other, and one of the answers is missing: whoever waits for it goes on, and does not lose its place.
#[test]
fn a_missing_answer_is_no_circle() {
    let (mut zero, mut one) = (Vec::new(), Vec::new());
    for round in 0..6u64 {
        let at = (1 + 10 * round) * MS;
        zero.extend([send(1, 8, at, at + 1000), recv(1, 8, at + MS, at + 4 * MS)]);
        one.push(recv(0, 8, at, at + 2000));
        if round != 2 {
            one.push(send(0, 8, at + 3 * MS, at + 3 * MS + 1000));
        }
    }
    let same = machine(1e-6, 1e-6);
    let (new, outcome) = transformed(&[zero.clone(), one], &same, &same, &ratio(1.0)).expect("no circle");
    assert_eq!(outcome.counted.unmatched_receives, 1);
    assert_eq!(ms(&new[0]), ms(&zero));
}

/// Rank 2 is cut off after the first collective. Rank 1 comes late to the second, as its send takes long on the target.
#[test]
fn who_is_cut_off_does_not_part_the_others() {
    let all = |enter: u64, exit: u64| allreduce(8, enter * MS, exit * MS);
    let ranks = [
        vec![all(1, 2), all(20, 31), recv(1, 8, 32 * MS, 32 * MS + 1000)],
        vec![all(1, 2), send(0, 8, 5 * MS, 5 * MS + 1000), all(30, 31)],
        vec![all(1, 2)],
    ];
    let recorded = Recorded { cut_from: Some(2), ..Recorded::default() };
    let (base, target) = (machine(1e-6, 1e-3), machine(50e-3, 1e-3));
    let (new, outcome) = transformed_as(&ranks, &recorded, &base, &target, &ratio(1.0)).expect("sound");
    assert!(ms(&new[1])[2].0 >= 79.0 && ms(&new[0])[1].1 >= ms(&new[1])[2].0, "{:?} {:?}", ms(&new[0]), ms(&new[1]));
    assert!(outcome.counted.gone > 0 && outcome.notes.iter().any(|note| note.contains("breaks off")));
}

/// The first wait is for the short message, which waits for nobody.
#[test]
fn waits_for_sends_come_in_the_order_of_the_sends() {
    let done = |enter| (call(4, Class::Complete, enter, enter + 1000), Vec::new());
    let ranks = [
        vec![isend(1, 8, MS, MS + 1000), isend(1, 1000, 2 * MS, 2 * MS + 1000), done(3 * MS), done(5 * MS)],
        vec![recv(0, 8, MS, MS + 2000), recv(0, 1000, 20 * MS, 21 * MS)],
    ];
    let base = machine(1e-6, 1e-6);
    let (new, outcome) = transformed(&ranks, &base, &limited(&base, 100), &ratio(1.0)).expect("sound");
    let sender = ms(&new[0]);
    assert!(sender[2].1 < 4.0 && sender[3].1 >= 20.0 && outcome.counted.given_up == 0, "{sender:?}");
}

/// The second message is waited for first: each wait has the message of its length.
#[test]
fn receives_that_complete_in_another_order_have_their_own_messages() {
    let ranks = [
        vec![isend(1, 100, MS, MS + 1000), isend(1, 200, 10 * MS, 10 * MS + 1000)],
        vec![
            irecv(0, 100, 0, 100),
            irecv(0, 200, 200, 300),
            wait(0, 200, 2 * MS, 11 * MS),
            wait(0, 100, 12 * MS, 12 * MS + 1000),
        ],
    ];
    let base = machine(1e-6, 1e-6);
    let mut slow = base.clone();
    slow.links[0].transfer = flat(5e-3);
    let (new, _) = transformed(&ranks, &base, &slow, &ratio(1.0)).expect("sound");
    let waits = ms(&new[1]);
    assert!(waits[2].1 >= 15.0 && waits[3].1 - waits[3].0 < 0.1, "{waits:?}");
}

/// A start is what the call was that made its request: here one that waits for its receive, and a collective with a table.
#[test]
fn started_requests_are_what_they_were_made_as() {
    let persistent = |proc, class, peer, tag, bytes, enter| {
        (Call { peer, tag, bytes, flags: Flags::PERSISTENT, ..call(proc, class, enter, enter) }, Vec::new())
    };
    let start = |part, enter| (call(14, Class::Start, enter, enter), vec![part]);
    let done = |enter| (call(4, Class::Complete, enter, enter), Vec::new());
    let ranks = [
        vec![persistent(12, Class::Post, 1, 1, 8, MS), start(part(PartKind::Send, 1, 1, 8), 2 * MS), done(3 * MS)],
        vec![recv(0, 8, 20 * MS, 20 * MS)],
    ];
    let new = computed(&ranks, &machine(1e-6, 1e-6)).expect("sound");
    assert!(ms(&new[0])[2].1 >= 20.0, "{:?}", ms(&new[0]));

    let none = u32::MAX; // -1: no peer
    let rank = || {
        vec![
            persistent(13, Class::Post, -1, -1, 8, MS),
            start(part(PartKind::Collective, none, -1, 8), 2 * MS),
            done(2 * MS),
        ]
    };
    let target = with_table(&machine(1e-6, 1e-6), "MPI_Allreduce", flat(7e-3));
    let new = computed(&[rank(), rank()], &target).expect("sound");
    assert!((ms(&new[0])[2].1 - 9.0).abs() < 0.1, "{:?}", ms(&new[0]));
}
