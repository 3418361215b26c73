//! Rust by rsmpi: messages round a ring, reductions, a communicator of its own, and a count of the calls made.

use mpi::collective::SystemOperation;
use mpi::request::WaitGuard;
use mpi::topology::Color;
use mpi::traits::*;
use std::collections::BTreeMap;
use std::fmt::Write;

const ROUNDS: i32 = 10;

fn main() {
    let mut calls = BTreeMap::new();
    let mut count = |names: &[&'static str]| names.iter().for_each(|name| *calls.entry(*name).or_insert(0) += 1);
    let universe = mpi::initialize().expect("MPI is not initialised yet");
    let world = universe.world();
    let (rank, size) = (world.rank(), world.size());
    let next = world.process_at_rank((rank + 1) % size);
    let before = world.process_at_rank((rank + size - 1) % size);

    for round in 0..ROUNDS {
        let out = [rank, round];
        let mut into = [-1, -1];
        mpi::request::scope(|scope| {
            let receive = WaitGuard::from(before.immediate_receive_into_with_tag(scope, &mut into[..], round));
            let send = WaitGuard::from(next.immediate_send_with_tag(scope, &out[..], round));
            drop(receive);
            drop(send);
        });
        assert_eq!(into, [before.rank(), round]);
        count(&["MPI_Irecv", "MPI_Isend", "MPI_Wait", "MPI_Wait"]);
    }

    if rank == 0 {
        next.send(&rank);
        let (token, status) = world.any_process().receive::<i32>();
        assert_eq!((token, status.source_rank()), (size - 1, before.rank()));
    } else {
        let (token, _) = before.receive::<i32>();
        next.send(&(token + 1));
    }
    count(&["MPI_Send", "MPI_Recv"]);

    let mut sum = 0;
    world.all_reduce_into(&rank, &mut sum, SystemOperation::sum());
    assert_eq!(sum, size * (size - 1) / 2);
    count(&["MPI_Allreduce"]);
    let half = world.split_by_color(Color::with_value(rank % 2)).expect("every rank has a colour");
    half.barrier();
    drop(half);
    world.barrier();
    count(&["MPI_Comm_split", "MPI_Barrier", "MPI_Comm_free", "MPI_Barrier"]);
    drop(universe);
    count(&["MPI_Finalize"]);

    let mut lines = String::new();
    for (name, n) in calls {
        writeln!(lines, "COUNT {rank} {name} {n}").expect("a string takes any text");
    }
    print!("{lines}");
}
