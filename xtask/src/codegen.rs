//! `cargo xtask codegen`: makes the table of MPI procedures and the tracer's wrappers anew from `apis.json`,
//! which the MPI Forum publishes in the PyPI package pympistandard.

use crate::setup;
use crate::shell::{self, Done, failed};
use std::fs;
use std::path::PathBuf;

pub const HELP: &str = "\
Make the table of MPI procedures and the tracer's wrappers anew from the standard's data

Usage: cargo xtask codegen

Reads apis.json of the PyPI package pympistandard (installed by the set-up) and writes
abi/src/generated/procedures.rs and tracer/src/generated.rs, both of which are committed.";

/// Writes the generated files, which have a form of their own that rustfmt is told to leave.
pub fn run(args: &[String]) -> Done {
    shell::no_arguments(args)?;
    setup::run(&[])?;
    let table = shell::root().join("abi/src/generated/procedures.rs");
    let wrappers = shell::root().join("tracer/src/generated.rs");
    let mut generate = shell::cargo();
    generate.args(["run", "--quiet", "-p", "phasecast-abi-codegen", "--", "--apis"]).arg(apis_json()?);
    shell::step(generate.arg("--out").arg(&table).arg("--tracer-out").arg(&wrappers))
}

/// `lib/python3.N/site-packages/pympistandard/data/apis.json`, for whatever N the machine's Python has.
fn apis_json() -> Done<PathBuf> {
    let lib = shell::venv("pympistandard").join("lib");
    let versions = fs::read_dir(&lib).into_iter().flatten().flatten();
    let mut found =
        versions.map(|v| v.path().join("site-packages/pympistandard/data/apis.json")).filter(|p| p.exists());
    found.next().map_or_else(|| failed(format!("{} holds no pympistandard/data/apis.json", lib.display())), Ok)
}
