//! Programs about one kind of state each are cut in the middle and go on under the same and under the other MPI: they must
//! print what they print natively there.
//!
//! One cut of each program is taken, at a place that depends on its name; with `PHASECAST_EVERY_CUT=1` every one.

use phasecast_tests::matrix::run;
use phasecast_tests::mpi::Mpi;
use phasecast_tests::program::programs;
use phasecast_tests::split::{Base, Choice, cuts, native};

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

#[test]
fn what_the_target_lacks_calls_the_handler_that_the_call_names() {
    let program = programs().into_iter().find(|program| program.name == "lacking").expect("it is there");
    let mut expected = native(&program, Mpi::Mpich).expect("MPICH has it");
    let first = cuts(&program, Mpi::Mpich, 0).expect("a trace").into_iter().take(1).collect();
    let base = Base::cut(&program, Mpi::Mpich, first, &expected).expect("a cut");
    assert!(base.failures.is_empty() && base.saved.len() == 1, "{:?}", base.failures);
    for (rank, lines) in &mut expected {
        let mut called = 0..;
        for line in lines.iter_mut().filter(|line| line.ends_with("made")) {
            *line = format!("{rank}] lacking, {} called", called.next().unwrap_or_default());
        }
    }
    base.replay(Mpi::OpenMpi, &base.saved[0], &expected).unwrap_or_else(|wrong| panic!("{wrong}"));
}

#[test]
fn relative_names_reach_what_was_written_in_a_folder_that_the_target_lacks() {
    let programs = programs();
    for name in ["file_closed", "file_links", "file_later", "folder", "folder_made"] {
        let program = programs.iter().find(|program| program.name == name).expect("it is there");
        let expected = native(program, Mpi::OpenMpi).expect("it runs");
        let all = cuts(program, Mpi::OpenMpi, 0).expect("a trace");
        let middle = all.into_iter().skip(2).take(3).collect();
        let mut base = Base::cut(program, Mpi::OpenMpi, middle, &expected).expect("cuts");
        assert!(base.failures.is_empty() && !base.saved.is_empty(), "{:?}", base.failures);
        base.move_away();
        for cut in &base.saved {
            base.replay(Mpi::OpenMpi, cut, &expected).unwrap_or_else(|wrong| panic!("{wrong}"));
        }
    }
}
