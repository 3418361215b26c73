//! `cargo xtask bench`: hands over to the benchmark programs. Speed bounds live there, never in tests.

use crate::setup;
use crate::shell::{self, Done, Failure};

pub const HELP: &str = "\
Measure the tracer, the analyzer or the predictions

Usage: cargo xtask bench <tracer|analyzer|predict> [ARGUMENTS]

  tracer    ns and bytes per event, and the slow-down of real programs under Open MPI and MPICH
  analyzer  events per second, memory, and linearity on made traces
  predict   error, interval and cost of live predictions, for programs given as NAME:RANKS:BASE[:TARGET]

What follows is handed to the benchmark program.";

/// Builds and runs the benchmark named by the first argument.
pub fn run(args: &[String]) -> Done {
    let mut command = shell::cargo();
    match args.first().map(String::as_str) {
        Some("tracer") => {
            setup::run(&[])?;
            shell::step(shell::cargo().args(["build", "--release"]))?;
            command.args(["run", "--release", "-p", "phasecast-tests", "--bin", "bench-tracer", "--"]);
            shell::mpi_environment(&mut command).env("PHASECAST", shell::target().join("release/phasecast"));
        }
        Some("analyzer") => {
            command.args(["run", "--release", "-p", "phasecast-analyzer", "--example", "bench_analyzer", "--"]);
        }
        Some("predict") => {
            setup::run(&[])?;
            shell::step(shell::cargo().args(["build", "--release"]))?;
            command.args(["run", "--release", "-p", "phasecast-tests", "--bin", "bench-predict", "--"]);
            shell::mpi_environment(&mut command).env("PHASECAST", shell::target().join("release/phasecast"));
        }
        Some(other) => return Err(Failure::Usage(format!("there is no benchmark '{other}'"))),
        None => return Err(Failure::Usage("say which benchmark".into())),
    }
    shell::step(command.args(&args[1..]))
}
