//! `cargo xtask test`: everything that must pass before a change is taken.

use crate::setup;
use crate::shell::{self, Done};
use std::panic::resume_unwind;
use std::thread;

pub const HELP: &str = "\
Format, lints, builds and every test

Usage: cargo xtask test

Does the set-up first. The end-to-end tests run phasecast, with checks for overflow, on the programs of examples/ under
every MPI that the set-up brings.";

/// Runs all checks, and stops at the first that fails.
pub fn run(args: &[String]) -> Done {
    shell::no_arguments(args)?;
    setup::debian_packages()?;
    // No program is run before the tests, so that the wheels come while the lints are computed.
    thread::scope(|scope| {
        let wheels = scope.spawn(setup::wheels);
        lints()?;
        wheels.join().unwrap_or_else(|panic| resume_unwind(panic))
    })?;
    // All targets in one step: their dependencies have other features without the tests, and would be built twice.
    shell::step(shell::cargo().args(["build", "--workspace", "--all-targets"]))?;
    let mut tests = shell::cargo();
    shell::mpi_environment(&mut tests).env("PHASECAST", shell::target().join("debug/phasecast"));
    shell::step(tests.args(["test", "--workspace", "--no-fail-fast"]))
}

/// Format and lints.
fn lints() -> Done {
    shell::step(shell::cargo().args(["fmt", "--all", "--check"]))?;
    for apart in ["examples/rust", "tests/programs/rust", "fuzz"] {
        shell::step(shell::cargo().args(["fmt", "--check", "--manifest-path", &format!("{apart}/Cargo.toml")]))?;
    }
    shell::step(shell::cargo().args(["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]))
}
