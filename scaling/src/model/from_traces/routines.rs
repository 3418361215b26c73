//! Which routines of the library of communication (seed 001) stand for which procedures of MPI.
use phasecast_abi::{Class, Pattern, by_name};

/// The routines of the library that stand for a procedure of MPI. BYTES is what the calls of a site move in all: a block for
/// each rank where a root hands out parts, and where all send parts to all.
pub fn routines(procedure: &str) -> &'static [&'static str] {
    let procedure = by_name(procedure.trim_start_matches('P')).and_then(|id| id.get());
    match procedure.map(|procedure| procedure.class) {
        Some(Class::Send { .. } | Class::SendRecv { .. } | Class::Start { .. }) => &["exchange(BYTES)"],
        Some(Class::Collective { neighbourhood: true, .. }) => &["exchange(BYTES)"],
        Some(Class::Collective { pattern, .. }) => match pattern {
            Pattern::Barrier => &["barrier()"],
            Pattern::Bcast => &["tree_bcast(BYTES)"],
            Pattern::Reduce => &["tree_global_sum(BYTES)"],
            Pattern::Allreduce => &["tree_global_sum(BYTES)", "tree_bcast(BYTES)"],
            Pattern::Gather => &["tree_collect(BYTES)"],
            // A tree that hands out parts is one that puts them together, upside down.
            Pattern::Scatter => &["tree_collect(BYTES / n_procs)"],
            Pattern::Allgather => &["tree_collect(BYTES)", "tree_bcast(BYTES * n_procs)"],
            Pattern::Alltoall => &["all_to_all(BYTES / n_procs)"],
            Pattern::ReduceScatter | Pattern::ReduceScatterBlock => &["tree_global_sum(BYTES)", "tree_bcast(BYTES)"],
            Pattern::Scan | Pattern::Exscan => &["butterfly(BYTES)"],
        },
        _ => &["butterfly(BYTES)"],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn procedures_stand_by_what_they_do() {
        assert_eq!(routines("MPI_Scatterv"), ["tree_collect(BYTES / n_procs)"]);
        assert_eq!(routines("MPI_Allgather_c"), routines("MPI_Iallgatherv"));
        assert_eq!(routines("MPI_Ialltoallw"), ["all_to_all(BYTES / n_procs)"]);
        assert_eq!(routines("PMPI_Isend"), ["exchange(BYTES)"]);
        assert_eq!(routines("MPI_Neighbor_alltoall"), ["exchange(BYTES)"]);
    }
}
