//! Rust by rsmpi: types made at run time, communicators split and copied, and collectives on them.

use mpi::collective::SystemOperation;
use mpi::datatype::{MutView, UserDatatype, View};
use mpi::topology::Color;
use mpi::traits::*;

fn main() {
    let universe = mpi::initialize().expect("MPI is not initialised yet");
    let world = universe.world();
    let (rank, size) = (world.rank(), world.size());
    let after = world.process_at_rank((rank + 1) % size);
    let before = world.process_at_rank((rank + size - 1) % size);
    let column = UserDatatype::vector(4, 1, 4, &i32::equivalent_datatype());
    let half = world.split_by_color(Color::with_value(rank % 2)).expect("every rank has a colour");
    let copy = world.duplicate();
    let mut last = 0;
    for turn in 0..5 {
        let out: Vec<i32> = (0..16).map(|i| 1000 * rank + 100 * turn + i).collect();
        let mut into = vec![0; 16];
        // SAFETY: four elements, four apart, lie within sixteen.
        let (view, mut place) = unsafe {
            (
                View::with_count_and_datatype(&out[..], 1, &column),
                MutView::with_count_and_datatype(&mut into[..], 1, &column),
            )
        };
        copy.process_at_rank(after.rank()).send_with_tag(&view, turn);
        half.barrier();
        copy.process_at_rank(before.rank()).receive_into_with_tag(&mut place, turn);
        for (i, &n) in into.iter().enumerate() {
            let expected = if i % 4 == 0 { 1000 * before.rank() + 100 * turn + i as i32 } else { 0 };
            assert_eq!(n, expected);
        }
        let mut sum = 0;
        half.all_reduce_into(&rank, &mut sum, SystemOperation::sum());
        assert_eq!(sum, (0..size).filter(|r| r % 2 == rank % 2).sum::<i32>());
        last = into[12];
    }
    world.barrier();
    if rank == 0 {
        println!("[0] last {last}\nok rust_types");
    }
}
