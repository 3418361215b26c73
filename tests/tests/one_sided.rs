//! What a trace has of windows that are synchronised with a group (post, start, complete, wait): one event for each member,
//! which find each other.

use phasecast_tests::mpi::Mpi;
use phasecast_tests::program::programs;
use phasecast_tests::traced::Job;
use phasecast_trace::{EventKind, Trace};
use std::collections::BTreeMap;

/// Rounds of `tests/programs/win_pscw.c`: lines along the ranks, rounds with both neighbours, rounds at its end.
const LINES: u64 = 7;
const ROUNDS: u64 = 4;
const LAST: u64 = 2;

fn counted(mpi: Mpi) {
    let all = programs();
    let program = all.iter().find(|program| program.name == "win_pscw").expect("a program of the folder");
    let traced = Job::new(mpi, program.ranks, &program.command(mpi)).run();
    assert_eq!(traced.outcome.code, 0, "{:?}", traced.outcome);
    let stat = traced.stat();
    assert_eq!((&stat["unmatched"], &stat["pending"]), (&0.into(), &0.into()), "{stat}");
    let trace = Trace::open(&traced.trace).expect("a whole trace");
    let ranks = u64::from(program.ranks);
    for rank in trace.ranks() {
        let mut found: BTreeMap<(String, EventKind), u64> = BTreeMap::new();
        let mut count = |event: &phasecast_trace::Event| {
            let name = trace.procedure(event.proc).to_owned();
            *found.entry((name, event.kind)).or_default() += 1;
        };
        trace.for_each_event(rank, |event| count(&event)).expect("a whole trace");
        let of = |name: &str, kind| found.get(&(name.to_owned(), kind)).copied().unwrap_or(0);
        let neighbours = if ranks == 2 { 1 } else { 2 };
        let exposed = LINES * u64::from(rank.0 > 0) + ROUNDS * neighbours + LAST;
        let accessed = LINES * u64::from(u64::from(rank.0) < ranks - 1) + ROUNDS * neighbours + LAST;
        assert_eq!(of("MPI_Win_post", EventKind::Send), exposed, "rank {rank}: {found:?}");
        assert_eq!(of("MPI_Win_start", EventKind::Recv), accessed, "rank {rank}: {found:?}");
        assert_eq!(of("MPI_Win_complete", EventKind::Send), accessed, "rank {rank}: {found:?}");
        let waited = of("MPI_Win_wait", EventKind::Recv) + of("MPI_Win_test", EventKind::Recv);
        assert_eq!(waited, exposed, "rank {rank}: {found:?}");
        assert_eq!(of("MPI_Win_test", EventKind::Recv), ROUNDS / 2 * neighbours, "rank {rank}: {found:?}");
        assert_eq!(of("MPI_Put", EventKind::Send), 0, "rank {rank}: {found:?}");
    }
}

#[test]
fn open_mpi() {
    counted(Mpi::OpenMpi);
}

#[test]
fn mpich() {
    counted(Mpi::Mpich);
}
