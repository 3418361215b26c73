//! Runs that end badly, or are traced in part: each leaves a trace that opens and says what it lacks.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use phasecast_tests::example::compiled;
use phasecast_tests::mpi::{Language, Mpi};
use phasecast_tests::phasecast;
use phasecast_tests::process::run;
use phasecast_tests::traced::{Job, Traced, calls, truncated};
use std::fs;
use std::process::Command;

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
        complete_up_to_the_end(&traced);
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
fn what_is_refused_leaves_no_folder() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = |output: &str, program: &str| {
        let mut command = Command::new(phasecast());
        run(command.current_dir(folder.path()).args(["trace", "-o", output, "--", program]))
    };
    fs::write(folder.path().join("file"), "mine").expect("a file");
    let exists = trace("file", "true");
    assert!(exists.code == 3 && exists.stderr.contains("exists already"), "{exists:?}");
    let missing = trace("app.trace", "./no-such-program");
    assert!(missing.code == 3 && missing.stderr.contains("no-such-program"), "{missing:?}");
    assert!(!folder.path().join("app.trace").exists());
}

/// Each rank says so once, and not what a program starts.
#[test]
fn without_mpi() {
    for mpi in BOTH {
        // A rank that fails may end the other before that says anything.
        for (end, code, least) in [("true", 0, 2), ("exit 3", 3, 1)] {
            let traced = Job::new(mpi, 2, &["bash", "-c", &format!("ls / >/dev/null; {end}")]).run();
            assert_eq!(traced.outcome.code, code);
            let said = traced.outcome.stderr.lines().filter(|line| line.contains("there is no trace in")).count();
            assert!((least..=2).contains(&said), "{:?}", traced.outcome);
        }
    }
}

#[test]
fn a_tool_between_program_and_mpi_is_named() {
    const TOOL: &str = "#include <mpi.h>\nint MPI_Barrier(MPI_Comm comm) { return PMPI_Barrier(comm); }\n";
    const PROGRAM: &str = "#include <mpi.h>\nint main(void) {\n    MPI_Init(0, 0);\n    MPI_Barrier(MPI_COMM_WORLD);\n    \
                           return MPI_Finalize();\n}\n";
    for mpi in BOTH {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        fs::write(at("tool.c"), TOOL).expect("a source");
        fs::write(at("program.c"), PROGRAM).expect("a source");
        let compile = |words: &[&str]| {
            let mut compiler = Command::new(mpi.compiler(Language::C));
            run(compiler.current_dir(folder.path()).args(words)).succeeded();
        };
        compile(&["-shared", "-fPIC", "-o", "libtool.so", "tool.c"]);
        compile(&["-o", "program", "program.c"]);
        compile(&["-o", "with_tool", "program.c", "-L.", "-Wl,-rpath,$ORIGIN", "-ltool"]);
        let told = |program: &str| {
            let traced = Job::new(mpi, 2, &[at(program)]).run();
            assert_eq!(calls(&traced.stat()).get("MPI_Barrier"), Some(&2), "{:?}", traced.outcome);
            traced.outcome.stderr.matches("libtool.so stands between").count()
        };
        assert_eq!((told("program"), told("with_tool")), (0, 1));
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
        complete_up_to_the_end(&traced);
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
        complete_up_to_the_end(&traced);
    }
}

#[test]
fn paused_by_pcontrol() {
    for mpi in BOTH {
        let traced = job(mpi, "pcontrol.c").run();
        assert_eq!(traced.outcome.code, 0, "{:?}", traced.outcome);
        traced.assert_counts();
        let stat = traced.stat();
        assert!(truncated(&stat).is_empty(), "{stat}");
        // 15 rounds outside the pause, on 2 ranks: a send, a receive and a reduction each.
        assert_eq!(stat["events"], 15 * 2 * 3, "{stat}");
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
        // Each part of a call reads kind:peer:tag:bytes:communicator.
        let rows = traced.dump();
        let parts = rows.iter().filter(|row| row["rank"] == "0").flat_map(|row| row["parts"].split_whitespace());
        let recorded: Vec<Vec<String>> = parts
            .filter_map(|part| match part.split(':').collect::<Vec<_>>()[..] {
                ["recv", peer, tag, bytes, _] => Some((peer, tag, bytes.parse::<usize>().expect("bytes are a number"))),
                _ => None,
            })
            .map(|(peer, tag, bytes)| vec![peer.to_owned(), tag.to_owned(), (bytes / size_of::<i32>()).to_string()])
            .collect();
        assert_eq!(recorded, seen);
        assert_eq!(traced.stat()["events"], 20);
    }
}
