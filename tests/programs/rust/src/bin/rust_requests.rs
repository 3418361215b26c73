//! Rust by rsmpi: requests pending in a scope, boxes and strings on the heap, a panic that is caught, a thread that waits.

use mpi::request::WaitGuard;
use mpi::traits::*;
use std::sync::mpsc;

fn main() {
    let universe = mpi::initialize().expect("MPI is not initialised yet");
    let world = universe.world();
    let (rank, size) = (world.rank(), world.size());
    let after = world.process_at_rank((rank + 1) % size);
    let before = world.process_at_rank((rank + size - 1) % size);
    let (tell, told) = mpsc::channel::<i32>();
    let listener = std::thread::spawn(move || told.iter().sum::<i32>());
    let mut words = Vec::new();
    for turn in 0..5 {
        let out = vec![100 * turn + rank; 500];
        let mut into = vec![-1; 500];
        mpi::request::scope(|scope| {
            let receive = WaitGuard::from(before.immediate_receive_into_with_tag(scope, &mut into[..], turn));
            world.barrier();
            let send = WaitGuard::from(after.immediate_send_with_tag(scope, &out[..], turn));
            world.barrier();
            drop(receive);
            drop(send);
        });
        assert!(into.iter().all(|&n| n == 100 * turn + before.rank()));
        let caught = std::panic::catch_unwind(|| {
            if turn == 3 {
                std::panic::resume_unwind(Box::new("three"))
            }
        });
        assert_eq!(caught.is_err(), turn == 3);
        words.push(Box::new(format!("turn {turn}")));
        tell.send(into[499]).expect("the listener listens");
    }
    drop(tell);
    let sum = listener.join().expect("the listener ends well");
    assert_eq!(sum, 1000 + 5 * before.rank());
    assert_eq!(*words[4], "turn 4");
    world.barrier();
    if rank == 0 {
        println!("[0] sum {sum}\nok rust_requests");
    }
}
