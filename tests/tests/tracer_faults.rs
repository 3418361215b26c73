//! Runs that end badly, or are traced in part: each leaves a trace that opens and says what it lacks.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use phasecast_tests::example::compiled;
use phasecast_tests::mpi::Mpi;
use phasecast_tests::traced::{Job, Traced, calls, truncated};

const BOTH: [Mpi; 2] = [Mpi::OpenMpi, Mpi::Mpich];

fn job(mpi: Mpi, source: &str) -> Job {
    Job::new(mpi, 2, &[compiled(mpi, source)])
}

/// All calls that were finished before the end are there (the programs tell their counts just before it).
fn complete_up_to_the_end(traced: &Traced) {
    assert!(!traced.told.is_empty(), "{:?}", traced.outcome);
    let mut recorded = calls(&traced.stat());
    // What ends the run, or hangs in it, comes after the counts were told.
    for after in ["MPI_Abort", "MPI_Recv", "MPI_Finalize"] {
        recorded.remove(after);
    }
    traced.assert_counts_of(&recorded, &traced.told);
}

#[test]
fn abort() {
    for mpi in BOTH {
        let traced = job(mpi, "abort.c").run();
        assert_ne!(traced.outcome.code, 0);
        let stat = traced.stat();
        assert_eq!(stat["ranks"], 2, "{stat}");
        // Rank 1 aborts; rank 0 is killed in its MPI_Recv by the launcher.
        assert!(truncated(&stat).contains(&0), "{stat}");
        assert_eq!(calls(&stat).get("MPI_Abort"), Some(&1), "{stat}");
    }
}

#[test]
fn exit_without_finalize() {
    for mpi in BOTH {
        let traced = job(mpi, "exit_no_finalize.c").run();
        assert_eq!(truncated(&traced.stat()), [0, 1], "{:?}", traced.outcome);
        complete_up_to_the_end(&traced);
    }
}

#[test]
fn crash() {
    for mpi in BOTH {
        let traced = job(mpi, "segv.c").run();
        assert_ne!(traced.outcome.code, 0);
        let stat = traced.stat();
        assert_eq!(stat["ranks"], 2, "{stat}");
        assert!(truncated(&stat).contains(&1), "{stat}");
    }
}

#[test]
fn killed_rank() {
    for mpi in BOTH {
        let mut job = job(mpi, "hang.c");
        let mut running = job.start();
        let output = running.wait_for(|text| text.lines().any(|line| line.starts_with("PID 1 ")));
        let line = output.lines().find_map(|line| line.strip_prefix("PID 1 ")).expect("it was waited for");
        kill(Pid::from_raw(line.trim().parse().expect("a process id is a number")), Signal::SIGKILL)
            .expect("the rank is there");
        let outcome = running.finish();
        let traced = job.ended(outcome);
        assert_ne!(traced.outcome.code, 0);
        let stat = traced.stat();
        assert_eq!(stat["ranks"], 2, "{stat}");
        assert!(truncated(&stat).contains(&1), "{stat}");
    }
}

#[test]
fn paused_by_pcontrol() {
    for mpi in BOTH {
        let traced = job(mpi, "pcontrol.c").run();
        assert_eq!(traced.outcome.code, 0, "{:?}", traced.outcome);
        traced.assert_counts();
        assert!(truncated(&traced.stat()).is_empty());
    }
}

/// The source and tag that a wildcard matched are those that the program saw, in its order.
#[test]
fn wildcards_are_resolved() {
    for mpi in BOTH {
        let traced = Job::new(mpi, 3, &[compiled(mpi, "wildcard.c")]).run();
        assert_eq!(traced.outcome.code, 0, "{:?}", traced.outcome);
        traced.assert_counts();
        let seen = traced.outcome.stdout.lines().filter_map(|line| line.strip_prefix("MATCH "));
        let seen: Vec<Vec<String>> = seen.map(|rest| rest.split(' ').map(str::to_owned).collect()).collect();
        assert_eq!(seen.len(), 10);
        let received = traced
            .dump()
            .into_iter()
            .filter(|row| row["rank"] == "0" && ["MPI_Recv", "MPI_Wait"].contains(&row["procedure"].as_str()));
        let recorded: Vec<Vec<String>> = received
            .map(|row| {
                let count = row["bytes"].parse::<usize>().expect("bytes are a number") / size_of::<i32>();
                vec![row["peer"].clone(), row["tag"].clone(), count.to_string()]
            })
            .collect();
        assert_eq!(recorded, seen);
    }
}
