//! `cargo xtask bench`: hands over to the benchmark programs. Speed bounds live there, never in tests.

use crate::setup;
use crate::shell::{self, Done, Failure};

pub const HELP: &str = "\
Measure the tracer, the analyzer, predictions, the split process and its images, transformed traces, skeletons, or scaling

Usage: cargo xtask bench NAME [ARGUMENTS]

  tracer      ns and bytes per event, and the slow-down of real programs under Open MPI and MPICH
  analyzer    events per second, memory, and linearity on made traces
  predict     error, interval and cost of predictions by restart, live and naive, for programs given as NAME:RANKS:BASE[:TARGET]
  checkpoint  the split process: what it adds to calls, system calls and programs; saving, restoring, restarts
  transform   trace transformation: calls per second on made traces (speed), error against the truth (error)
  skeleton    the topologies of the seed's Table 2 (topology), the loops of its Table 3 and the time to find them (loops),
              from made matrices and sequences and from the traces given; skeletons beside their programs (ratio), and
              their predictions against the truth (predict)
  stability   the longest common subsequence of two long traces
  scaling     seed 003's Table 2 (table2), profiles and fits (speed), real programs on more ranks (real)
  truespeed   restarted phases of programs bound by their memory against native and split runs

What follows is handed to the benchmark program.";

/// Builds and runs the benchmark named by the first argument.
pub fn run(args: &[String]) -> Done {
    let mut command = shell::cargo();
    match args.first().map(String::as_str) {
        Some("analyzer") => {
            command.args(["run", "--release", "-p", "phasecast-analyzer", "--example", "bench_analyzer", "--"]);
        }
        Some(
            name @ ("tracer" | "predict" | "checkpoint" | "truespeed" | "transform" | "stability" | "skeleton"
            | "scaling"),
        ) => {
            setup::run(&[])?;
            shell::step(shell::cargo().args(["build", "--release"]))?;
            command.args(["run", "--release", "-p", "phasecast-tests", "--bin", &format!("bench-{name}"), "--"]);
            shell::mpi_environment(&mut command).env("PHASECAST", shell::target().join("release/phasecast"));
        }
        Some(other) => return Err(Failure::Usage(format!("there is no benchmark '{other}'"))),
        None => return Err(Failure::Usage("say which benchmark".into())),
    }
    shell::step(command.args(&args[1..]))
}
