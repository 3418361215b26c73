//! Programs about one kind of state each are cut in the middle and go on under the same and under the other MPI: they must
//! print what they print natively there.
//!
//! One cut of each program is taken, at a place that depends on its name; with `PHASECAST_EVERY_CUT=1` every one.

use phasecast_tests::matrix::run;
use phasecast_tests::mpi::Mpi;
use phasecast_tests::program::programs;
use phasecast_tests::split::Choice;

#[test]
fn programs_go_on_under_the_same_and_the_other_mpi() {
    let choice = if std::env::var_os("PHASECAST_EVERY_CUT").is_some() { Choice::Every } else { Choice::Some(1) };
    let mut programs = programs();
    programs.retain(|program| program.mpi < 4);
    assert!(programs.len() >= 60, "{} programs", programs.len());
    let plan = [(Mpi::OpenMpi, &[Mpi::OpenMpi, Mpi::Mpich][..]), (Mpi::Mpich, &[Mpi::OpenMpi])];
    let table = run(&programs, &plan, choice);
    println!("{table}");
    assert!(table.failures.is_empty(), "{} of {} failed", table.failures.len(), table.rows.len());
}
