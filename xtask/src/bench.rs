//! `cargo xtask bench`: hands over to the benchmark programs. Speed bounds live there, never in tests.

use crate::setup;
use crate::shell::{self, Done, Failure};

pub const HELP: &str = "\
Measure the tracer, the analyzer, predictions, the split process and its images, transformed traces, or skeletons

Usage: cargo xtask bench <tracer|analyzer|predict|checkpoint|truespeed|transform|stability|skeleton> [ARGUMENTS]

  tracer      ns and bytes per event, and the slow-down of real programs under Open MPI and MPICH
  analyzer    events per second, memory, and linearity on made traces
  predict     error, interval and cost of predictions by restart, live and naive, for programs given as NAME:RANKS:BASE[:TARGET]
  checkpoint  the split process: what it adds to calls, system calls and programs; saving, restoring, restarts
  transform   trace transformation: calls per second on made traces (speed), error against the truth (error)
  skeleton    topologies of the seed's Table 2 (topology), skeletons beside their programs (ratio), predictions (predict)
  stability   the longest common subsequence of two long traces
  truespeed   restarted phases of programs bound by their memory against native and split runs

What follows is handed to the benchmark program.";

/// Builds and runs the benchmark named by the first argument.
pub fn run(args: &[String]) -> Done {
    let mut command = shell::cargo();
    match args.first().map(String::as_str) {
        Some("analyzer") => {
            command.args(["run", "--release", "-p", "phasecast-analyzer", "--example", "bench_analyzer", "--"]);
        }
        Some(name @ ("tracer" | "predict" | "checkpoint" | "truespeed" | "transform" | "stability" | "skeleton")) => {
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
