//! What the tracer costs: ns added per event on an empty call, an 8-byte ping-pong and whole programs traced and
//! untraced in alternation, and bytes per event of a regular program before and after compression.
//!
//! `bench-tracer [--rounds 7] [--quick]` prints each figure (median over the rounds) beside its bound, and for programs
//! how sure it is: their own times vary by more than the tracer adds. Processor time is measured where one process
//! suffices, elapsed time elsewhere: run it on a quiet machine.
use phasecast_tests::bench::{Bound, figure, median, median_range, numbers};
use phasecast_tests::example::compiled;
use phasecast_tests::mpi::Mpi;
use phasecast_tests::{phasecast, process};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

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
    empty_calls(folder.path(), rounds);
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        let trips = if quick { "20000" } else { "200000" };
        ping_pong(folder.path(), mpi, rounds, trips);
        start_and_end(folder.path(), mpi, rounds);
        let sizes = if quick { [["512", "400"], ["512", "500"]] } else { [["1024", "1400"], ["1024", "4200"]] };
        for (program, size) in ["cg.c", "stencil.c"].into_iter().zip(sizes) {
            whole_program(folder.path(), mpi, rounds, program, &size);
        }
        bytes(folder.path(), mpi);
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
fn empty_calls(folder: &Path, rounds: usize) {
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
    let bounds = [Bound::Most(30.0), Bound::Most(30.0), Bound::Most(30.0), Bound::None];
    for ((name, row), bound) in names.into_iter().zip(rows).zip(bounds) {
        figure(&format!("added to an empty call: {name}"), median(&row), "ns", bound);
    }
}

/// Runs a program without and with the tracer, in turn and each first as often as the other: what `measure` makes of
/// each pair of runs.
fn alternate(
    folder: &Path,
    mpi: Mpi,
    rounds: usize,
    program: &[&std::ffi::OsStr],
    measure: impl Fn(f64, &str) -> f64,
) -> Vec<(f64, f64)> {
    let once = |with: bool| {
        let mut run = mpi.launcher(2);
        if with {
            run.args(traced(folder).0);
        }
        let start = Instant::now();
        let outcome = process::run(run.args(program)).succeeded();
        measure(start.elapsed().as_secs_f64(), &outcome.stdout)
    };
    let pair = |round: usize| {
        let plain_first = round.is_multiple_of(2);
        let first = once(!plain_first);
        let second = once(plain_first);
        if plain_first { (first, second) } else { (second, first) }
    };
    (0..rounds).map(pair).collect()
}

fn ping_pong(folder: &Path, mpi: Mpi, rounds: usize, trips: &str) {
    let program = compiled(mpi, "pingpong.c");
    let told = |_, out: &str| *numbers(out).first().expect("the program tells its time");
    let pairs = alternate(folder, mpi, rounds, &[program.as_os_str(), trips.as_ref()], told);
    let (plain, with): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
    let what = format!("ping-pong of 8 bytes, {}: traced / untraced", mpi.name());
    figure(&what, median(&with) / median(&plain), "", Bound::Most(1.2));
}

/// What any program pays once: a run of two steps.
fn start_and_end(folder: &Path, mpi: Mpi, rounds: usize) {
    let program = compiled(mpi, "stencil.c");
    let words = [program.as_os_str(), "16".as_ref(), "2".as_ref()];
    let pairs = alternate(folder, mpi, 3 * rounds, &words, |elapsed, _| 1e3 * elapsed);
    let added: Vec<f64> = pairs.into_iter().map(|(plain, with)| with - plain).collect();
    figure(&format!("added to start and end, {}", mpi.name()), median(&added), "ms", Bound::None);
}

fn whole_program(folder: &Path, mpi: Mpi, rounds: usize, source: &str, size: &[&str; 2]) {
    let program = compiled(mpi, source);
    let words = [program.as_os_str(), size[0].as_ref(), size[1].as_ref()];
    let pairs = alternate(folder, mpi, rounds, &words, |elapsed, _| elapsed);
    let ratios: Vec<f64> = pairs.into_iter().map(|(plain, with)| with / plain).collect();
    let (low, high) = median_range(&ratios);
    let (name, [size, steps]) = (mpi.name(), size);
    let what = format!("{source} {size} {steps}, {name}: traced / untraced ({low:.3} to {high:.3})");
    figure(&what, median(&ratios), "", Bound::Most(1.01));
}

/// Bytes per event of a regular program with many small steps.
fn bytes(folder: &Path, mpi: Mpi) {
    let (words, trace) = traced(folder);
    let mut run = mpi.launcher(2);
    process::run(run.args(words).arg(compiled(mpi, "stencil.c")).args(["64", "20000"])).succeeded();
    let stat = process::run(Command::new(phasecast()).arg("stat").arg(&trace).arg("--json")).succeeded();
    let stat: Value = serde_json::from_str(&stat.stdout).expect("stat prints one object");
    for (key, when, bound) in [("bytes_per_event_raw", "before compression", 3.0), ("bytes_per_event", "at rest", 1.2)]
    {
        let value = stat[key].as_f64().unwrap_or_else(|| panic!("stat has no {key}: {stat}"));
        let what = format!("stencil.c 64 20000, {}: bytes per event {when}", mpi.name());
        figure(&what, value, "B", Bound::Most(bound));
    }
}
