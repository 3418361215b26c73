//! Which requests completions are about, as far as a trace lets it be inferred: loops stay loops, and what is under way at
//! the same time stays so.
mod support;

use phasecast_trace::model::{PEER_NONE, TAG_NONE};
use phasecast_trace::{Call, Class, CommId, Flags, Part};
use support::{Calls, Folder, got, logical, short};

/// What two ranks do, each towards the other: in short, with `P` for the other.
fn both(steps: u32, each: impl Fn(&mut Calls, u32, u32)) -> String {
    told(steps, each).0
}

fn told(steps: u32, each: impl Fn(&mut Calls, u32, u32)) -> (String, Vec<String>) {
    let folder = Folder::new();
    let rank = |rank: u32| {
        let mut calls = Calls::new();
        (0..steps).for_each(|step| each(&mut calls, 1 - rank, step));
        calls
    };
    let logical = logical(&folder.trace(&[vec![0, 1]], vec![rank(0), rank(1)]));
    assert_eq!(logical.classes.len(), 1);
    let text = short(&logical, 0);
    (logical.directions.first().map_or(text.clone(), |to| text.replace(&to.name, "P")), logical.left_out)
}

/// Irecv, Isend and a wait for both.
fn exchange(calls: &mut Calls, peer: u32) -> &mut Calls {
    calls.from(1).irecv(peer, 3, 64).isend(peer, 3, 64).waitall(vec![got(peer, 3, 64)]).work(500)
}

/// No requests, `MPI_REQUEST_NULL`, or `MPI_UNDEFINED` at the end: now and then, that says nothing of the others.
#[test]
fn a_completion_of_nothing_now_and_then_changes_nothing() {
    for name in ["MPI_Waitall", "MPI_Wait", "MPI_Waitany"] {
        let text = both(60, |calls, peer, step| {
            exchange(calls, peer);
            if step % 10 == 9 {
                calls.from(2).complete(name, vec![]);
            }
        });
        assert_eq!(text, "(recv(P,64)#0 send(P,64)#1 wait[0, 1])^60 end", "{name}");
    }
}

#[test]
fn what_is_left_out_is_waited_for_all_the_same() {
    for (name, class) in [("MPI_File_iwrite", Class::Io), ("MPI_Rput", Class::Rma), ("MPI_Comm_idup", Class::Comm)] {
        let text = both(20, |calls, peer, _| {
            calls.begin(name, class, 8);
            exchange(calls, peer).from(2).wait(vec![]);
        });
        assert_eq!(text, "(recv(P,64)#0 send(P,64)#1 wait[0, 1])^20 end", "{name}");
    }
}

#[test]
fn a_collective_goes_on_while_messages_are_waited_for() {
    let text = both(8, |calls, peer, _| {
        calls.begin("MPI_Iallreduce", Class::Collective, 16);
        exchange(calls, peer).from(2).wait(vec![]);
    });
    assert_eq!(text, "(allreduce(0,16)#0 recv(P,64)#1 send(P,64)#2 wait[1, 2] wait[0])^8 end");
    let text = both(8, |calls, peer, _| {
        calls.begin("MPI_Ibarrier", Class::Collective, 0);
        calls.isend(peer, 1, 8).wait(vec![]).isend(peer, 2, 8).wait(vec![]).wait(vec![]);
        calls.recv(peer, 1, 8).recv(peer, 2, 8);
    });
    let wanted = "(barrier(0,0)#0 send(P,8)#1 wait[1] send(P,8)#1 wait[1] wait[0] recv(P,8) recv(P,8))^8 end";
    assert_eq!(text.replace("ibarrier", "barrier"), wanted);
}

/// Nothing else ever waits for it.
#[test]
fn a_collective_may_be_among_several_that_are_waited_for() {
    let text = both(8, |calls, peer, _| {
        calls.begin("MPI_Iallreduce", Class::Collective, 16);
        exchange(calls, peer);
    });
    assert_eq!(text, "(allreduce(0,16)#0 recv(P,64)#1 send(P,64)#2 wait[0, 1, 2])^8 end");
    let text = both(300, |calls, peer, _| {
        calls.isend(peer, 3, 8).begin("MPI_Iallreduce", Class::Collective, 16).waitall(vec![]).recv(peer, 3, 8);
    });
    assert_eq!(text, "(send(P,8)#0 allreduce(0,16)#1 wait[0, 1] recv(P,8))^300 end");
}

/// Two of the sends are complete in calls that receive, which says nothing of them.
#[test]
fn some_are_complete_when_the_last_receive_is() {
    for last in [false, true] {
        let text = both(30, |calls, peer, step| {
            (1..=2).for_each(|tag| _ = calls.irecv(peer, tag, 64));
            (1..=2).for_each(|tag| _ = calls.isend(peer, tag, 64));
            calls.from(5).complete("MPI_Waitsome", vec![got(peer, 1, 64)]);
            calls.complete("MPI_Waitsome", vec![got(peer, 2, 64)]);
            if last && step % 2 == 0 {
                calls.complete("MPI_Waitsome", vec![]);
            }
            calls.collective("MPI_Allreduce", 0, -1, 8);
        });
        assert!(text.contains("wait[0] wait[1] wait[2] wait[3] allreduce(0,8))^30 end"), "{last} {text}");
    }
}

/// As the importer of OTF2 archives writes them: no source, no tag, no communicator.
#[test]
fn receives_of_which_nothing_is_told_when_they_are_posted_are_matched() {
    let text = both(10, |calls, peer, _| {
        let flags = Flags::NONBLOCKING.with(Flags::RECV_POST);
        let nothing = move |c: &mut Call| (c.peer, c.tag, c.flags) = (PEER_NONE, TAG_NONE, flags);
        calls.push("MPI_Irecv", Class::Post, nothing, vec![]).push("MPI_Irecv", Class::Post, nothing, vec![]);
        calls.send(peer, 3, 64).send(peer, 4, 32);
        let on = |comm, of: Part| Part { comm: CommId(comm), ..of };
        calls.waitall(vec![on(1, got(peer, 3, 64)), on(0, got(peer, 4, 32))]);
    });
    assert!(text.starts_with("(recv(P,64)#0 recv(P,32)#1 send") && text.ends_with("wait[0, 1])^10 end"), "{text}");
}

#[test]
fn the_two_sides_of_an_exchange_that_does_not_block_are_complete_at_once() {
    let text = both(10, |calls, peer, _| {
        let flags = Flags::NONBLOCKING.with(Flags::RECV_POST);
        let set = move |c: &mut Call| (c.peer, c.tag, c.bytes, c.flags) = (peer as i32, 9, 16, flags);
        calls.push("MPI_Isendrecv", Class::Send, set, vec![]).irecv(peer, 3, 64).isend(peer, 3, 64);
        calls.from(1).wait(vec![got(peer, 3, 64)]).wait(vec![got(peer, 9, 16)]).wait(vec![]);
    });
    let wanted = "(send(P,16)#0 recv(P,16)#1 recv(P,64)#2 send(P,64)#3 wait[2] wait[0, 1] wait[3])^10 end";
    assert_eq!(text, wanted);
}

#[test]
fn a_run_lasts_from_the_first_session_to_the_last() {
    let folder = Folder::new();
    let rank = |rank: u32| {
        let mut calls = Calls::new();
        for _ in 0..5 {
            calls.push("MPI_Session_init", Class::Setup, |_| {}, vec![]);
            calls.work(2000).send(1 - rank, 1, 8).recv(1 - rank, 1, 8);
            calls.push("MPI_Session_finalize", Class::Setup, |_| {}, vec![]);
        }
        calls
    };
    let world = folder.trace(&[], vec![rank(0), rank(1)]);
    let found = logical(&world);
    assert!(short(&found, 0).ends_with("^5 end"), "{}", short(&found, 0));
    assert_eq!(found.run_ns, 5 * (4 * 100 + 2000));

    // Without the world, and with calls after the end that may be made there.
    let folder = Folder::new();
    let alone = |at: u32| {
        let mut calls = rank(at);
        calls.list.remove(0);
        calls.work(5000).push("MPI_Finalized", Class::Other, |_| {}, vec![]);
        calls
    };
    let found = logical(&folder.ended(vec![alone(0), alone(1)], phasecast_trace::model::Ending::Finalized));
    assert!(short(&found, 0).ends_with("^5 end"), "{}", short(&found, 0));
    assert_eq!(found.run_ns, 5 * (4 * 100 + 2000) - 200);
}

#[test]
fn collectives_of_neighbours_carry_their_bytes_once() {
    let (text, left_out) = told(5, |calls, _, _| {
        calls.collective("MPI_Neighbor_allgather", 0, -1, 4096);
    });
    assert_eq!(text, "(alltoall(0,4096))^5 end");
    assert!(left_out.iter().any(|line| line.starts_with("10 collectives between neighbours")), "{left_out:?}");
}

/// What is refused is what would be written, before it is measured.
#[test]
fn what_does_not_repeat_is_refused_with_the_reason() {
    let folder = Folder::new();
    let rank = |rank: u32| {
        let mut calls = Calls::new();
        let mut numbers = 7u64;
        for _ in 0..120_000 {
            numbers = numbers.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            calls.collective("MPI_Allreduce", 0, -1, 8 << ((numbers >> 50) % 16));
        }
        if rank == 1 {
            calls.collective("MPI_Allreduce", 0, -1, 8);
        }
        calls
    };
    let error = support::try_logical(&folder.trace(&[], vec![rank(0), rank(0)]), 1).expect_err("too long").to_string();
    assert!(error.contains("repeats too little") && error.contains("1 classes"), "{error}");
}
