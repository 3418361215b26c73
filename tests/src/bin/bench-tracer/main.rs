//! What the tracer costs: ns added per event on an empty call, an 8-byte ping-pong and whole programs traced and
//! untraced in alternation, and bytes per event of a regular program before and after compression.
//!
//! `bench-tracer [--rounds 7] [--quick]` prints each figure (median over the rounds) beside its bound. Processor time is
//! measured where one process suffices, elapsed time elsewhere: run it on a quiet machine.
use phasecast_tests::bench::{median, numbers};
use phasecast_tests::example::compiled;
use phasecast_tests::mpi::Mpi;
use phasecast_tests::{phasecast, process};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// A figure with the most that it may be.
struct Figure {
    what: String,
    value: f64,
    unit: &'static str,
    bound: Option<f64>,
}

fn main() {
    let (mut rounds, mut quick) = (7, false);
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--rounds" => rounds = args.next().and_then(|n| n.parse().ok()).expect("--rounds wants a number"),
            "--quick" => quick = true,
            other => panic!("unknown argument {other}; usage: bench-tracer [--rounds N] [--quick]"),
        }
    }
    let folder = tempfile::tempdir().expect("a folder for traces");
    println!("{:<58} {:>10} {:>7}", "", "measured", "bound");
    empty_calls(folder.path(), rounds).iter().for_each(Figure::print);
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        let trips = if quick { "20000" } else { "200000" };
        ping_pong(folder.path(), mpi, rounds, trips).print();
        let sizes = if quick { [["512", "400"], ["512", "500"]] } else { [["1024", "1400"], ["1024", "4200"]] };
        for (program, size) in ["cg.c", "stencil.c"].into_iter().zip(sizes) {
            whole_program(folder.path(), mpi, rounds, program, &size).print();
        }
        bytes(folder.path(), mpi).iter().for_each(Figure::print);
    }
}

impl Figure {
    fn print(&self) {
        let bound = self.bound.map_or(String::new(), |bound| format!("{bound:.2}"));
        let missed = if self.bound.is_some_and(|bound| self.value > bound) { "  MISSED" } else { "" };
        println!("{:<58} {:>7.3} {:<3}{bound:>6}{missed}", self.what, self.value, self.unit);
    }
}

/// `phasecast trace` with a new folder, to which a program is to be added.
fn traced(folder: &Path) -> (Vec<std::ffi::OsString>, PathBuf) {
    let trace = folder.join("t");
    let _ = std::fs::remove_dir_all(&trace);
    let command: Vec<&std::ffi::OsStr> =
        vec![phasecast().as_os_str(), "trace".as_ref(), "--quiet".as_ref(), "-o".as_ref()];
    let words = command.into_iter().map(Into::into).chain([trace.clone().into(), "--".into()]).collect();
    (words, trace)
}

/// Calls of a library that does nothing, compiled here.
fn empty_calls(folder: &Path, rounds: usize) -> Vec<Figure> {
    let (library, program) = (folder.join("libmpi.so.12"), folder.join("empty_calls"));
    let (stub, calls) = (folder.join("stub_mpi.c"), folder.join("empty_calls.c"));
    std::fs::write(&stub, include_str!("stub_mpi.c")).expect("writable");
    std::fs::write(&calls, include_str!("empty_calls.c")).expect("writable");
    let mut compile = Command::new("cc");
    process::run(compile.args(["-O2", "-shared", "-fPIC", "-Wl,-soname,libmpi.so.12", "-o"]).arg(&library).arg(&stub))
        .succeeded();
    let mut compile = Command::new("cc");
    let rpath = format!("-Wl,-rpath,{}", folder.display());
    process::run(compile.args(["-O2", "-o"]).arg(&program).arg(&calls).arg(rpath).arg(&library)).succeeded();
    let mut rows: [Vec<f64>; 4] = Default::default();
    for _ in 0..rounds {
        let plain = numbers(&process::run(Command::new(&program).arg("3000000")).succeeded().stdout);
        let (words, _) = traced(folder);
        let mut run = Command::new(&words[0]);
        let with = numbers(&process::run(run.args(&words[1..]).arg(&program).arg("3000000")).succeeded().stdout);
        rows[0].push(with[0] - plain[0]);
        rows[1].push(with[1] - plain[1]);
        rows[2].push((with[2] - plain[2]) / 2.0);
        rows[3].push(plain[3]);
    }
    let names = ["MPI_Send", "MPI_Allreduce", "MPI_Irecv and MPI_Wait, each", "of which two readings of the clock"];
    let bounds = [Some(30.0), Some(30.0), Some(30.0), None];
    names
        .into_iter()
        .zip(rows)
        .zip(bounds)
        .map(|((name, row), bound)| Figure {
            what: format!("added to an empty call: {name}"),
            value: median(&row),
            unit: "ns",
            bound,
        })
        .collect()
}

/// Runs a program with and without the tracer in turn: the medians of what `measure` makes of each run.
fn alternate(
    folder: &Path,
    mpi: Mpi,
    rounds: usize,
    program: &[&std::ffi::OsStr],
    measure: impl Fn(f64, &str) -> f64,
) -> f64 {
    let once = |with: bool| {
        let mut run = mpi.launcher(2);
        if with {
            run.args(traced(folder).0);
        }
        let start = Instant::now();
        let outcome = process::run(run.args(program)).succeeded();
        measure(start.elapsed().as_secs_f64(), &outcome.stdout)
    };
    let (mut plain, mut with) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        plain.push(once(false));
        with.push(once(true));
    }
    median(&with) / median(&plain)
}

fn ping_pong(folder: &Path, mpi: Mpi, rounds: usize, trips: &str) -> Figure {
    let program = compiled(mpi, "pingpong.c");
    let told = |_, out: &str| *numbers(out).first().expect("the program tells its time");
    let value = alternate(folder, mpi, rounds, &[program.as_os_str(), trips.as_ref()], told);
    Figure {
        what: format!("ping-pong of 8 bytes, {}: traced / untraced", mpi.name()),
        value,
        unit: "",
        bound: Some(1.2),
    }
}

fn whole_program(folder: &Path, mpi: Mpi, rounds: usize, source: &str, size: &[&str; 2]) -> Figure {
    let program = compiled(mpi, source);
    let words = [program.as_os_str(), size[0].as_ref(), size[1].as_ref()];
    let value = alternate(folder, mpi, rounds, &words, |elapsed, _| elapsed);
    let what = format!("{source} {} {}, {}: traced / untraced", size[0], size[1], mpi.name());
    Figure { what, value, unit: "", bound: Some(1.01) }
}

/// Bytes per event of a regular program with many small steps.
fn bytes(folder: &Path, mpi: Mpi) -> [Figure; 2] {
    let (words, trace) = traced(folder);
    let mut run = mpi.launcher(2);
    process::run(run.args(words).arg(compiled(mpi, "stencil.c")).args(["64", "20000"])).succeeded();
    let stat = process::run(Command::new(phasecast()).arg("stat").arg(&trace).arg("--json")).succeeded();
    let stat: Value = serde_json::from_str(&stat.stdout).expect("stat prints one object");
    let figure = |key: &str, when: &str, bound: f64| Figure {
        what: format!("stencil.c 64 20000, {}: bytes per event {when}", mpi.name()),
        value: stat[key].as_f64().unwrap_or_else(|| panic!("stat has no {key}: {stat}")),
        unit: "B",
        bound: Some(bound),
    };
    [figure("bytes_per_event_raw", "before compression", 3.0), figure("bytes_per_event", "at rest", 1.2)]
}
