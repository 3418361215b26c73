//! What the facade adds to an MPI call, and the fence to a system call.
use phasecast_tests::bench::{Bound, Command, Split, figure};
use phasecast_tests::mpi::{Language, Mpi};
use phasecast_tests::process;
use std::collections::BTreeMap;
use std::fs;

/// ns that may be added to an MPI call, and to a system call.
const CALL: f64 = 40.0;
const SYSTEM_CALL: f64 = 50.0;

/// Measures, and prints what is wanted.
pub fn run(rounds: usize, calls: bool, fence: bool) {
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        let split = Split::new();
        let command = compiled(&split, mpi);
        let (mut plain, mut with) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            plain.push(figures(&split.plain(&command).stdout));
            with.push(figures(&split.run(&command, &[]).0.stdout));
        }
        // By chance a launch's processors share a cache or not, and a message takes three times as long: the least of all is of
        // the same case.
        let of = |runs: &[BTreeMap<String, f64>], name: &str| runs.iter().map(|run| run[name]).fold(f64::MAX, f64::min);
        let added = |what: &str, name: &str, count: f64, most: f64| {
            let (before, after) = (of(&plain, name), of(&with, name));
            let what = format!("{}: {what}: added to {:.0} ns", mpi.name(), before / count);
            figure(&what, (after - before) / count, "ns", Bound::Most(most));
        };
        if calls {
            added("MPI_Comm_size", "Comm_size", 1.0, CALL);
            added("Irecv, Send and Wait to self, each", "to_self", 3.0, CALL);
            added("Sendrecv to self", "exchange", 1.0, CALL);
            added("Allreduce of a double alone", "reduce_alone", 1.0, CALL);
            // A round trip is four calls one after the other.
            added("Send and Recv, 8 bytes to and fro, each", "ping_pong", 4.0, CALL);
            added("Allreduce of a double, 2 ranks", "Allreduce", 1.0, CALL);
        }
        if fence {
            added("getppid", "getppid", 1.0, SYSTEM_CALL);
            added("read of a byte from /dev/zero", "read", 1.0, SYSTEM_CALL);
        }
    }
}

fn compiled(split: &Split, mpi: Mpi) -> Command {
    let (source, program) = (split.path().join("calls.c"), split.path().join("calls"));
    fs::write(&source, include_str!("calls.c")).expect("a source can be written");
    let mut compiler = std::process::Command::new(mpi.compiler(Language::C));
    process::run(compiler.arg("-O2").arg("-o").arg(&program).arg(&source)).succeeded();
    Command { mpi, ranks: 2, program, args: Vec::new() }
}

/// `NAME NUMBER` lines.
fn figures(text: &str) -> BTreeMap<String, f64> {
    let pair = |line: &str| {
        let (name, number) = line.split_once(' ')?;
        Some((name.to_string(), number.parse().ok()?))
    };
    text.lines().filter_map(pair).collect()
}
