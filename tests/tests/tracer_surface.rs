//! Every communication procedure that the standard has, under each MPI: each call is recorded, once, under its name.

use phasecast_tests::example::compiled;
use phasecast_tests::mpi::Mpi;
use phasecast_tests::program::programs;
use phasecast_tests::traced::Job;
use std::collections::{BTreeMap, BTreeSet};

fn exact(mpi: Mpi, ranks: u32) {
    let traced = Job::new(mpi, ranks, &[compiled(mpi, "surface").as_os_str(), "@".as_ref()]).run();
    assert_eq!(traced.outcome.code, 0, "{:?}", traced.outcome);
    traced.assert_counts();
    let stat = traced.stat();
    assert_eq!(stat["ranks"], ranks, "{stat}");
    assert_eq!(stat["unmatched"], 0, "{stat}");
    assert_eq!(stat["pending"], 0, "{stat}");
    assert_eq!(stat["truncated_ranks"].as_array().map(Vec::len), Some(0), "{stat}");
}

#[test]
fn open_mpi_4() {
    exact(Mpi::OpenMpi, 2);
}

#[test]
fn open_mpi_4_on_four_ranks() {
    exact(Mpi::OpenMpi, 4);
}

#[test]
fn mpich_4() {
    exact(Mpi::Mpich, 2);
}

#[test]
fn mpich_4_on_four_ranks() {
    exact(Mpi::Mpich, 4);
}

#[test]
fn open_mpi_5() {
    exact(Mpi::OpenMpi5, 2);
}

#[test]
fn mpich_5() {
    exact(Mpi::Mpich5, 2);
}

#[test]
fn mpich_5_by_the_standard_abi() {
    exact(Mpi::Mpich5Abi, 2);
}

#[test]
fn intel_mpi() {
    exact(Mpi::Impi, 2);
}

/// What all ranks call at one place of the program they call on the same communicator, though each has made its
/// communicators in an order of its own.
#[test]
fn communicators_are_told_apart_in_whatever_order_they_were_made() {
    let program = programs().into_iter().find(|program| program.name == "comm_idup_orders").expect("it is there");
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        let traced = Job::new(mpi, program.ranks, &program.command(mpi)).run();
        assert_eq!(traced.outcome.code, 0, "{:?}", traced.outcome);
        let mut places: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for call in traced.dump() {
            if ["MPI_Comm_split", "MPI_Comm_create", "MPI_Win_fence"].contains(&call["procedure"].as_str()) {
                places.entry(call["site"].clone()).or_default().insert(call["communicator"].clone());
            }
        }
        assert_eq!(places.len(), 5, "{places:?}");
        assert!(places.values().all(|comms| comms.len() == 1), "{mpi:?}: {places:?}");
    }
}
