//! What collectives cost where all ranks enter together: at a time that rank 0 names, by clocks that were compared.
use super::clock::{compute_until, now};
use super::command::Command;
use super::mpi::{Call, Comm, Mpi, Operation};
use super::{Data, LONGEST, MOST};

/// The collectives: what they are, their names, and whether one rank is the root.
pub const ALL: [(Operation, &str, bool); 11] = [
    (Operation::Barrier, "MPI_Barrier", false),
    (Operation::Bcast, "MPI_Bcast", true),
    (Operation::Reduce, "MPI_Reduce", true),
    (Operation::Allreduce, "MPI_Allreduce", false),
    (Operation::Gather, "MPI_Gather", true),
    (Operation::Allgather, "MPI_Allgather", false),
    (Operation::Scatter, "MPI_Scatter", true),
    (Operation::Alltoall, "MPI_Alltoall", false),
    (Operation::ReduceScatter, "MPI_Reduce_scatter", false),
    (Operation::Scan, "MPI_Scan", false),
    (Operation::Exscan, "MPI_Exscan", false),
];
/// Calls before those that count.
const WARM: usize = 4;
/// So long after all were asked to start, at the least, they do, in ns: until then they compute.
const LEAD_NS: i64 = 20_000;

/// Times of one collective in ns.
#[derive(Clone, Debug, Default)]
pub struct Times {
    /// From the entry of the last to the exit of the last.
    pub all: Vec<i64>,
    /// In the call of the root.
    pub root: Vec<i64>,
    /// In the call of the others, their mean.
    pub others: Vec<i64>,
}

/// The communicators: of the first two ranks, four, eight and so on, and of all. All ranks call it.
pub fn communicators(mpi: &Mpi) -> Vec<Comm> {
    let doubling = (1..32).map(|power| 1u32 << power).take_while(|&ranks| ranks < mpi.world.size);
    doubling.filter_map(|ranks| mpi.first(ranks)).chain([mpi.world]).collect()
}

/// The lengths for a collective of so many ranks, in bytes of a trace's event.
pub fn lengths(operation: Operation, ranks: u32) -> Vec<u64> {
    let ranks = u64::from(ranks);
    let whole = |bytes: u64| match operation {
        // A block for each rank.
        Operation::Alltoall | Operation::ReduceScatter => bytes.next_multiple_of(8 * ranks),
        _ => bytes,
    };
    let blocks = match operation {
        Operation::Gather | Operation::Allgather | Operation::Scatter => ranks,
        _ => 1,
    };
    let steps = (0..10).map(|power| 8u64 << (2 * power)).chain([LONGEST]);
    match operation {
        Operation::Barrier => vec![0],
        _ => {
            let mut all: Vec<u64> = steps.map(whole).filter(|bytes| bytes * blocks <= MOST).collect();
            all.dedup();
            all
        }
    }
}

/// A rank's part in a block of one collective. The times are those of all, on rank 0.
pub fn take_part(mpi: &Mpi, command: &Command, comms: &[Comm], data: &mut Data, offset_ns: i64) -> Times {
    // Ranks outside of a communicator lack it, and are not told.
    let ranks = command.comm as u32;
    let Some(&comm) = comms.iter().find(|comm| comm.size == ranks) else { return Times::default() };
    let (operation, _, _) = ALL[command.which as usize % ALL.len()];
    let call = Call::new(operation, command.bytes as usize, ranks);
    let count = WARM + command.repetitions as usize;
    let mut stamps = Vec::with_capacity(2 * count);
    // How long the others take to hear of the start, at most: of the warm calls the fastest says, others were woken up.
    let mut heard_ns = i64::MAX;
    for i in 0..count {
        let before = now();
        mpi.barrier(comm);
        let lead_ns = if i < WARM { LEAD_NS } else { LEAD_NS.max(2 * heard_ns) };
        let start = mpi.shared(comm, now() + offset_ns + lead_ns);
        if i < WARM {
            heard_ns = heard_ns.min(now() - before);
        }
        compute_until(start - offset_ns);
        let enter = now();
        mpi.collective(&call, &data.send, &mut data.receive, comm);
        let exit = now();
        stamps.extend([enter + offset_ns, exit + offset_ns]);
    }
    let all = mpi.gathered(comm, &stamps[2 * WARM..]);
    times(&all, ranks as usize)
}

/// From the entries and exits of all ranks, one rank after the other.
fn times(stamps: &[i64], ranks: usize) -> Times {
    let each = stamps.len() / ranks.max(1);
    let mut times = Times::default();
    for at in (0..each).step_by(2) {
        let of = |rank: usize| (stamps[rank * each + at], stamps[rank * each + at + 1]);
        let entry = (0..ranks).map(|rank| of(rank).0).max().unwrap_or(0);
        let exit = (0..ranks).map(|rank| of(rank).1).max().unwrap_or(0);
        let spent = |rank: usize| of(rank).1 - of(rank).0;
        times.all.push(exit - entry);
        times.root.push(spent(0));
        times.others.push((1..ranks).map(spent).sum::<i64>() / (ranks as i64 - 1).max(1));
    }
    times
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_run_from_the_last_entry_to_the_last_exit() {
        // Two ranks, two calls each: rank 1 enters first late, then early.
        let found = times(&[100, 130, 200, 240, 110, 125, 190, 250], 2);
        assert_eq!((found.all, found.root, found.others), (vec![20, 50], vec![30, 40], vec![15, 60]));
    }

    #[test]
    fn blocks_are_whole_and_memory_suffices() {
        for (operation, _, _) in ALL {
            for ranks in [2u32, 3, 7, 64, 1000] {
                let lengths = lengths(operation, ranks);
                assert!(!lengths.is_empty() && lengths.windows(2).all(|pair| pair[0] < pair[1]));
                let most = MOST.min(LONGEST * u64::from(ranks));
                for bytes in lengths {
                    let (whole, own) = match operation {
                        Operation::Alltoall | Operation::ReduceScatter => (bytes, 8 * u64::from(ranks)),
                        Operation::Gather | Operation::Allgather | Operation::Scatter => (bytes * u64::from(ranks), 8),
                        _ => (bytes, 8),
                    };
                    assert!(whole <= most && bytes % own == 0, "{operation:?} {ranks} {bytes}");
                }
            }
        }
    }
}
