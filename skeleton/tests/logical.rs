//! From made traces to logical traces: what each kind of call becomes, and what is left out with which words.
mod support;

use phasecast_skeleton::SkeletonError;
use phasecast_skeleton::logical::{LogicalTrace, Operation};
use phasecast_skeleton::nest::Node;
use phasecast_trace::model::Ending;
use phasecast_trace::{Class, CommId, Flags, Part, PartKind};
use support::{Calls, Folder, circle, got, logical, short, try_logical};

#[test]
fn ranks_on_a_circle_are_one_class_and_one_loop() {
    let folder = Folder::new();
    let trace = folder.trace(
        &[],
        circle(4, 10, |calls, _, step| {
            calls.work(10_000 + u64::from(step));
        }),
    );
    let logical = logical(&trace);
    assert_eq!(logical.classes.len(), 1);
    assert_eq!(logical.classes[0].ranks, [0, 1, 2, 3]);
    let text = short(&logical, 0);
    assert!(text.starts_with("(recv(") && text.ends_with("wait[0, 1])^10 end"), "{text}");
    let Node::Loop { body, .. } = &logical.classes[0].body[0] else { panic!("{text}") };
    let [Node::Item(post), Node::Item(send), Node::Item(wait)] = &body[..] else { panic!("{text}") };
    assert_eq!((post.compute.count, post.compute.mean_ns, post.call_ns), (40, 10_004.5, 100.0));
    assert!(post.compute.quantiles_ns.is_empty());
    assert_eq!((send.compute.mean_ns, wait.compute.mean_ns), (0.0, 500.0));
    assert_eq!(logical.left_out, Vec::<String>::new());
    assert_eq!(logical.run_ns, 10 * (10_000 + 300 + 500) + 45);
}

#[test]
fn computation_of_two_kinds_does_not_break_the_loop_but_shows() {
    let folder = Folder::new();
    let trace = folder.trace(
        &[],
        circle(2, 40, |calls, _, step| {
            calls.work(if step % 4 == 0 { 90_000 } else { 1000 });
        }),
    );
    let logical = logical(&trace);
    let Node::Loop { count: 40, body } = &logical.classes[0].body[0] else { panic!("{}", short(&logical, 0)) };
    let Node::Item(step) = &body[0] else { panic!() };
    assert_eq!(step.compute.quantiles_ns.len(), 9);
    assert_eq!((step.compute.quantiles_ns[0], step.compute.quantiles_ns[8]), (1000.0, 90_000.0));
}

#[test]
fn the_result_does_not_depend_on_threads() {
    let folder = Folder::new();
    let trace = folder.trace(
        &[],
        circle(6, 30, |calls, rank, step| {
            calls.work(u64::from(rank * 1000 + step * 37));
            if rank == 2 {
                calls.collective("MPI_Bcast", 0, 0, 8);
            }
        }),
    );
    let one = try_logical(&trace, 1).unwrap();
    assert_eq!(try_logical(&trace, 4).unwrap(), one);
    assert_eq!(one.classes.len(), 1);
    assert!(one.left_out[0].contains("not all members did the same"), "{:?}", one.left_out);
}

#[test]
fn edges_are_classes_of_their_own() {
    let folder = Folder::new();
    let chain = |rank: u32| {
        let mut calls = Calls::new();
        for _ in 0..5 {
            if rank > 0 {
                calls.recv(rank - 1, 1, 800);
            }
            calls.work(2000);
            if rank < 3 {
                calls.send(rank + 1, 1, 800);
            }
        }
        calls
    };
    let logical = logical(&folder.trace(&[], (0..4).map(chain).collect()));
    let ranks: Vec<&[u32]> = logical.classes.iter().map(|class| &class.ranks[..]).collect();
    assert_eq!(ranks, [&[0][..], &[1, 2], &[3]]);
    assert!(short(&logical, 0).ends_with("^5 end") && short(&logical, 2).ends_with("^5 end"));
}

#[test]
fn a_polling_loop_is_waiting() {
    let folder = Folder::new();
    let rank = |rank: u32| {
        let mut calls = Calls::new();
        for step in 0..6u64 {
            calls.work(50_000).irecv(1 - rank, 3, 64).isend(1 - rank, 3, 64).work(20_000);
            // As often as it takes: differs from step to step.
            for _ in 0..3 + (step * 7 + u64::from(rank)) % 5 {
                calls.complete("MPI_Test", vec![]).work(300);
            }
            calls.complete("MPI_Test", vec![got(1 - rank, 3, 64)]).wait(vec![]);
        }
        calls
    };
    let logical = logical(&folder.trace(&[], vec![rank(0), rank(1)]));
    assert_eq!(
        short(&logical, 0),
        "(recv(RANK_PLUS_1,64)#0 send(RANK_PLUS_1,64)#1 wait[0] wait[1])^6 end"
            .replace("RANK_PLUS_1", &logical.directions[0].name)
    );
    let Node::Loop { body, .. } = &logical.classes[0].body[0] else { panic!() };
    let computed: Vec<f64> =
        body.iter().map(|node| if let Node::Item(step) = node { step.compute.mean_ns } else { -1.0 }).collect();
    assert_eq!(computed, [50_000.0, 0.0, 20_000.0, 0.0]);
    let Node::Item(wait) = &body[2] else { panic!() };
    assert!(wait.call_ns > 1000.0, "{wait:?}");
}

#[test]
fn a_wait_for_receives_alone_is_not_taken_for_one_for_sends() {
    let folder = Folder::new();
    let rank = |rank: u32| {
        let mut calls = Calls::new();
        for _ in 0..8 {
            calls.from(1).irecv(1 - rank, 3, 64).isend(1 - rank, 3, 64);
            calls.from(2).waitall(vec![got(1 - rank, 3, 64)]).work(5000);
            calls.from(3).waitall(vec![]);
        }
        calls
    };
    let logical = logical(&folder.trace(&[], vec![rank(0), rank(1)]));
    assert!(short(&logical, 0).ends_with("#1 wait[0] wait[1])^8 end"), "{}", short(&logical, 0));
}

#[test]
fn rows_and_columns_become_groups() {
    let folder = Folder::new();
    // 2 x 3 ranks: rows and columns, one after the other; a communicator of some ranks, in which they do not agree.
    let comms = [vec![0, 1, 2], vec![3, 4, 5], vec![0, 3], vec![1, 4], vec![2, 5], vec![0, 1]];
    let rank = |rank: u32| {
        let mut calls = Calls::new();
        for _ in 0..7 {
            calls.collective("MPI_Allreduce", 1 + rank / 3, -1, 8).work(100);
            calls.collective("MPI_Bcast", 3 + rank % 3, (rank % 3) as i32 + 3, 1000);
            calls.collective("MPI_Iallreduce", 0, -1, 16).list.last_mut().unwrap().0.flags = Flags::NONBLOCKING;
            calls.wait(vec![]);
        }
        if rank == 0 {
            calls.collective("MPI_Allreduce", 6, -1, 8);
        }
        calls
    };
    let logical = logical(&folder.trace(&comms, (0..6).map(rank).collect()));
    assert_eq!(logical.groups.len(), 3);
    assert_eq!(logical.groups[1].members, [vec![0, 1, 2], vec![3, 4, 5]]);
    assert_eq!(logical.groups[2].members, [vec![0, 3], vec![1, 4], vec![2, 5]]);
    assert_eq!(logical.classes.len(), 1);
    assert_eq!(short(&logical, 0), "(allreduce(1,8) bcast(2,1000,root 1) allreduce(0,16)#0 wait[0])^7 end");
    assert!(logical.left_out[0].contains("1 communicators"), "{:?}", logical.left_out);
}

#[test]
fn sizes_that_vary_a_little_are_one_and_the_median_stands() {
    let folder = Folder::new();
    let rank = |rank: u32| {
        let mut calls = Calls::new();
        for step in 0..20 {
            calls.collective("MPI_Alltoallv", 0, -1, 100_000 + 211 * ((step * 7 + u64::from(rank)) % 20)).work(10);
        }
        calls
    };
    let logical = logical(&folder.trace(&[], (0..4).map(rank).collect()));
    assert_eq!(logical.classes.len(), 1);
    assert_eq!(short(&logical, 0), format!("(alltoallv(0,{}))^20 end", 100_000 + 211 * 9));
}

#[test]
fn what_comes_in_any_order_is_put_in_order() {
    let folder = Folder::new();
    let master = {
        let mut calls = Calls::new();
        for step in 0..9u32 {
            for place in 0..3 {
                calls.recv_any(1 + (place + step) % 3, 5, 80).work(50);
            }
            calls.collective("MPI_Bcast", 0, 0, 8);
        }
        calls
    };
    let worker = || {
        let mut calls = Calls::new();
        for _ in 0..9 {
            calls.work(1000).send(0, 5, 80).collective("MPI_Bcast", 0, 0, 8);
        }
        calls
    };
    let logical = logical(&folder.trace(&[], vec![master, worker(), worker(), worker()]));
    let text = short(&logical, 0);
    assert!(text.ends_with("bcast(0,8,root 0))^9 end") && text.matches("recv").count() == 3, "{text}");
    assert!(logical.left_out.iter().any(|s| s.starts_with("27 receives took any source")), "{:?}", logical.left_out);
}

#[test]
fn any_source_is_known_when_it_has_come() {
    let folder = Folder::new();
    let rank = |rank: u32| {
        let mut calls = Calls::new();
        for _ in 0..5 {
            calls.irecv_any().send(1 - rank, 4, 24);
            calls.complete("MPI_Waitany", vec![Part { flags: Flags::WILDCARD, ..got(1 - rank, 4, 24) }]);
        }
        calls
    };
    let logical = logical(&folder.trace(&[], vec![rank(0), rank(1)]));
    let name = &logical.directions[0].name;
    assert_eq!(short(&logical, 0), format!("(recv({name},24)#0 send({name},24) wait[0])^5 end"));
}

/// Four receives are posted, four messages sent; what came before the last was sent differs, and so do the slots.
#[test]
fn what_was_tested_for_stands_as_in_most_iterations() {
    let folder = Folder::new();
    let rank = |rank: u32| {
        let (mut calls, peer) = (Calls::new(), 1 - rank);
        for turn in 0..40 {
            (1..=4).for_each(|tag| _ = calls.irecv(peer, tag, 64));
            let early = if turn % 7 == 3 { 3 } else { 2 };
            let test = |calls: &mut Calls, tag: i32| _ = calls.complete("MPI_Test", vec![got(peer, tag, 64)]);
            calls.work(1000).isend(peer, 1, 64).isend(peer, 2, 64).isend(peer, 3, 64);
            let mut order: Vec<i32> = (1..=4).collect();
            order[..2].rotate_left(turn % 2);
            order[..early].iter().for_each(|tag| test(&mut calls, *tag));
            calls.work(1000).isend(peer, 4, 64);
            order[early..].iter().for_each(|tag| test(&mut calls, *tag));
            calls.waitall(vec![]).collective("MPI_Allreduce", 0, -1, 8);
        }
        calls
    };
    let logical = logical(&folder.trace(&[], vec![rank(0), rank(1)]));
    let text = short(&logical, 0);
    assert!(text.ends_with(")^40 end") && text.matches("wait").count() == 5, "{text}");
    let told = "in 6 of 41 stretches between collectives calls took what came first in another order";
    assert!(logical.left_out.iter().any(|line| line.starts_with(told)), "{:?}", logical.left_out);
}

#[test]
fn persistent_requests_stand_as_nonblocking_ones() {
    let folder = Folder::new();
    let rank = |rank: u32| {
        let peer = 1 - rank as i32;
        let mut calls = Calls::new();
        let set =
            move |c: &mut phasecast_trace::Call| (c.peer, c.tag, c.bytes, c.flags) = (peer, 2, 512, Flags::PERSISTENT);
        calls.push("MPI_Send_init", Class::Post, set, vec![]).push("MPI_Recv_init", Class::Post, set, vec![]);
        for _ in 0..12 {
            let part = |kind, bytes| Part { kind, flags: Flags::PERSISTENT, peer, tag: 2, bytes, comm: CommId(0) };
            let parts = vec![part(PartKind::Send, 512), part(PartKind::Post, 0)];
            calls.work(700).push("MPI_Start", Class::Start, |_| {}, parts);
            calls.waitall(vec![part(PartKind::Recv, 512)]);
        }
        calls
    };
    let logical = logical(&folder.trace(&[], vec![rank(0), rank(1)]));
    let name = &logical.directions[0].name;
    assert_eq!(short(&logical, 0), format!("(send({name},512)#0 recv({name},512)#1 wait[0, 1])^12 end"));
    assert_eq!(logical.left_out, ["48 starts of persistent requests stand as nonblocking calls"]);
}

#[test]
fn one_sided_calls_files_and_pauses_are_named() {
    let folder = Folder::new();
    let rank = |_: u32| {
        let mut calls = Calls::new();
        for _ in 0..3 {
            calls.push("MPI_Win_fence", Class::Rma, |c| c.flags = Flags::COLLECTIVE, vec![]);
            calls.push("MPI_File_write_all", Class::Io, |c| c.flags = Flags::COLLECTIVE, vec![]);
        }
        calls.push("MPI_Pcontrol", Class::Pause, |_| {}, vec![]).work(1 << 20);
        calls.push("MPI_Pcontrol", Class::Resume, |_| {}, vec![]);
        calls
    };
    let logical = logical(&folder.trace(&[], vec![rank(0), rank(1)]));
    assert_eq!(short(&logical, 0), "(barrier(0,0))^6 end");
    let told = logical.left_out.join("\n");
    assert!(told.contains("6 one-sided") && told.contains("6 calls of MPI-IO") && told.contains("2 pauses"), "{told}");
    let Node::Item(end) = &logical.classes[0].body[1] else { panic!() };
    assert_eq!(end.compute.mean_ns, f64::from(1 << 20));
}

#[test]
fn messages_that_nobody_takes_and_receives_that_nothing_comes_to_are_named() {
    let folder = Folder::new();
    let mut first = Calls::new();
    first.send(1, 1, 10).irecv(1, 9, 10);
    let mut second = Calls::new();
    second.work(10);
    let logical = logical(&folder.trace(&[], vec![first, second]));
    let told = logical.left_out.join("\n");
    assert!(told.contains("1 sends have no receive") && told.contains("1 receives that were posted"), "{told}");
    assert!(told.contains("nothing repeats"), "{told}");
}

#[test]
fn one_rank_and_a_cut_off_rank() {
    let folder = Folder::new();
    let mut calls = Calls::new();
    calls.work(1 << 20).collective("MPI_Allreduce", 0, -1, 8);
    let alone: LogicalTrace = logical(&folder.trace(&[], vec![calls]));
    assert_eq!(short(&alone, 0), "allreduce(0,8) end");
    assert!(alone.left_out.iter().any(|s| s.contains("one rank")));
    let cut = folder.ended(vec![Calls::new(), Calls::new()], Ending::Aborted(3));
    let error = try_logical(&cut, 1).unwrap_err();
    assert!(matches!(&error, SkeletonError::Cut { rank: 0, .. }), "{error}");
    assert!(error.is_input() && error.to_string().contains("MPI_Abort(3)"), "{error}");
}

#[test]
fn tags_made_of_ranks_are_alike_and_those_of_communicators_stay_apart() {
    let folder = Folder::new();
    let rank = |rank: u32| {
        let (right, left) = ((rank + 1) % 4, (rank + 3) % 4);
        let mut calls = Calls::new();
        for _ in 0..6 {
            calls.irecv(left, 3000 + left as i32, 8).isend(right, 3000 + rank as i32, 8);
            calls.waitall(vec![got(left, 3000 + left as i32, 8)]);
            calls.irecv(left, 1 << 20, 8).isend(right, 1 << 20, 8).waitall(vec![got(left, 1 << 20, 8)]);
        }
        calls
    };
    let logical = logical(&folder.trace(&[], (0..4).map(rank).collect()));
    assert_eq!(logical.classes.len(), 1);
    let mut tags = Vec::new();
    let Node::Loop { count: 6, body } = &logical.classes[0].body[0] else { panic!("{}", short(&logical, 0)) };
    for node in body {
        match node {
            Node::Item(step) => match &step.call {
                Operation::Send { end, .. } | Operation::Receive { end, .. } => tags.push(end.tag),
                _ => {}
            },
            Node::Loop { .. } => panic!("{}", short(&logical, 0)),
        }
    }
    assert_eq!(tags, [0, 0, 1, 1]);
}

#[test]
fn tags_that_count_are_left_out() {
    let folder = Folder::new();
    let rank = |rank: u32| {
        let mut calls = Calls::new();
        (0..300).for_each(|tag| {
            calls.send(1 - rank, tag, 8).recv(1 - rank, tag, 8);
        });
        calls
    };
    let logical = logical(&folder.trace(&[], vec![rank(0), rank(1)]));
    assert!(short(&logical, 0).ends_with("^300 end"), "{}", short(&logical, 0));
    assert!(logical.left_out[0].starts_with("2 pairs of ranks use more than 256"), "{:?}", logical.left_out);
}
