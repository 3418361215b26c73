//! C++, the three Fortran bindings, Rust and Python, and threads: exact counts under Open MPI and MPICH.

use phasecast_tests::example::{compiled, python, rust};
use phasecast_tests::mpi::Mpi;
use phasecast_tests::traced::{Counts, Job, Traced, calls};

const BOTH: [Mpi; 2] = [Mpi::OpenMpi, Mpi::Mpich];

fn sound(traced: &Traced, ranks: u32) {
    assert_eq!(traced.outcome.code, 0, "{:?}", traced.outcome);
    // The libraries of Fortran's bindings are no tools.
    assert!(!traced.outcome.stderr.contains("stands between"), "{:?}", traced.outcome);
    let stat = traced.stat();
    assert_eq!(stat["ranks"], ranks, "{stat}");
    assert_eq!((stat["unmatched"].as_u64(), stat["pending"].as_u64()), (Some(0), Some(0)), "{stat}");
}

fn exact(source: &str, ranks: u32) {
    for mpi in BOTH {
        let traced = Job::new(mpi, ranks, &[compiled(mpi, source)]).run();
        sound(&traced, ranks);
        traced.assert_counts();
    }
}

#[test]
fn c_plus_plus() {
    exact("ring.cpp", 3);
}

#[test]
fn fortran_77() {
    exact("mpif_h.f", 2);
}

#[test]
fn fortran_90() {
    exact("use_mpi.f90", 2);
}

#[test]
fn fortran_2008() {
    exact("use_mpi_f08.f90", 3);
}

#[test]
fn threads() {
    exact("threads.c", 2);
}

/// The libraries of Rust and Python call more than the program does (rsmpi asks for sizes and types, mpi4py looks around
/// while it starts), and mpi4py calls the large-count forms where there are any. So the procedures that the program
/// counts are compared, each with its large-count form, and no other that moves data may be recorded.
fn exact_by_library(traced: &Traced) {
    let mut recorded = Counts::new();
    for (name, n) in calls(&traced.stat()) {
        *recorded.entry(name.trim_end_matches("_c").to_owned()).or_default() += n;
    }
    let moves = ["send", "recv", "Wait", "Test", "Bcast", "educe", "gather", "catter", "lltoall", "Barrier", "robe"];
    recorded.retain(|name, _| traced.told.contains_key(name) || moves.iter().any(|part| name.contains(part)));
    assert!(traced.told.len() > 5, "{:?}", traced.outcome);
    traced.assert_counts_of(&recorded, &traced.told);
}

#[test]
fn rust_by_rsmpi() {
    for mpi in BOTH {
        let traced = Job::new(mpi, 2, &[rust(mpi)]).run();
        sound(&traced, 2);
        exact_by_library(&traced);
    }
}

#[test]
fn python_by_mpi4py() {
    for mpi in BOTH {
        let mut job = Job::new(mpi, 2, &python("ring.py"));
        mpi.for_python(job.command());
        let traced = job.run();
        sound(&traced, 2);
        exact_by_library(&traced);
    }
}
