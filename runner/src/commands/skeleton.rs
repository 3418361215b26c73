//! `phasecast skeleton`: from a trace to a short C program that behaves like the traced one.
use crate::cli;
use crate::launch::{catch_interrupts, go_on};
use crate::output::{self, clean, count, note, seconds};
use crate::progress;
use crate::scratch::Scratch;
use crate::signature::{mpi_of, this_machine};
use crate::skeleton::{Built, compiler, other_mpi};
use anyhow::Result;
use clap::Args;
use phasecast_prediction::Machine;
use phasecast_skeleton::compress::{Method, text};
use phasecast_skeleton::logical::LogicalTrace;
use phasecast_skeleton::program::Skeleton;
use phasecast_skeleton::program::calibrate::{Mix, Rates, calibrate};
use phasecast_skeleton::program::folder;
use phasecast_skeleton::program::manifest::{Basis, Manifest, PartEntry, Run, Turn, VERSION, digest};
use phasecast_skeleton::program::source::{Source, ranges};
use phasecast_skeleton::steps::{Settings, logical_trace};
use phasecast_skeleton::topology::{Matrix, Recognition, directions, recognise};
use phasecast_trace::model::boot_id;
use phasecast_trace::{Rank, Trace};
use serde_json::json;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// How often the skeleton is run on the base at most, or takes turns with the program.
const TIMES: u64 = 5;
/// Turns with the program at least, and the time after which there are no more, in seconds.
const LEAST_TURNS: u64 = 3;
const ENOUGH_TURNS_S: f64 = 10.0;
/// Classes whose loops are told.
const CLASSES: usize = 8;

/// Write a short C program that behaves like the traced one and takes a part of its time
///
/// Same topology, same loops, same messages, same shares of computation and communication, no deadlock. It compiles with
/// any mpicc, and `phasecast predict --skeleton` runs it on the target and scales what it measures.
///
/// The computation is calibrated on this machine, which should be the one where the trace was recorded, and the skeleton
/// is run here a few times, so that what it cannot imitate is known. If the program is given, it is run in turn with the
/// skeleton, so that both are of one time of the machine: for machines whose speed changes.
#[derive(Debug, Args)]
pub struct SkeletonArgs {
    /// The trace of the run on the base machine
    #[arg(value_name = "TRACE")]
    trace: PathBuf,
    /// The folder to write
    #[arg(short, long, value_name = "FOLDER")]
    output: PathBuf,
    /// The part of the program's time that the skeleton is to take, as 1/RATIO
    #[arg(long, value_name = "RATIO", default_value = "20", value_parser = ratio)]
    ratio: f64,
    /// Find loops bottom-up, in linear time (this is the default)
    #[arg(long, conflicts_with = "optimal")]
    greedy: bool,
    /// Find the loops that are written with the fewest symbols
    #[arg(long)]
    optimal: bool,
    /// The compiler to calibrate computation with [default: the mpicc of the trace's MPI]
    #[arg(long, value_name = "COMMAND")]
    cc: Option<String>,
    /// How to start the ranks; `{n}` stands for their number
    #[arg(long, value_name = "COMMAND")]
    launcher: Option<String>,
    /// Share of the computing time in which memory is read and written; the rest is arithmetic
    #[arg(long, value_name = "0..1", default_value_t = Mix::default().memory, value_parser = mix)]
    mix: f64,
    /// The memory that each rank computes in, as in 512K or 16M
    #[arg(long, value_name = "SIZE", default_value = "128K", value_parser = working_set)]
    working_set: u64,
    /// Do not run the skeleton here
    #[arg(long, conflicts_with = "command")]
    no_run: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// The traced program and its arguments, to run it in turn with the skeleton, 3 to 5 times
    #[arg(last = true, value_name = "PROGRAM")]
    command: Vec<String>,
}

fn ratio(text: &str) -> Result<f64, String> {
    text.parse().ok().filter(|r| (1.0..=1e9).contains(r)).ok_or_else(|| "a ratio is a number of 1 or more".into())
}

fn mix(text: &str) -> Result<f64, String> {
    text.parse().ok().filter(|m| (0.0..=1.0).contains(m)).ok_or_else(|| "a share is a number from 0 to 1".into())
}

fn working_set(text: &str) -> Result<u64, String> {
    let bytes = cli::size(text)?;
    let fits = (4096..=1 << 34).contains(&bytes);
    if fits { Ok(bytes / 256 * 256) } else { Err("a size from 4K to 16G".into()) }
}

/// Runs the command.
///
/// # Errors
/// If the trace cannot be used, the compiler or the skeleton fails, or the folder cannot be written.
pub fn run(args: &SkeletonArgs) -> Result<()> {
    output::refuse_existing(&args.output)?;
    let trace = Trace::open(&args.trace)?;
    catch_interrupts();
    let bar = progress::bar("reading", "calls");
    let matrix = Matrix::of_trace(&trace, &|_, _| {})?;
    let recognition = recognise(&matrix);
    let directions = directions(&matrix, &recognition);
    let method = if args.optimal { Method::Optimal } else { Method::Greedy };
    let settings = Settings { method, ..Settings::default() };
    let logical = logical_trace(&trace, &recognition, &directions, &settings, &|done, of| bar.set(done, of))?;
    bar.finish();
    go_on()?;
    let skeleton = Skeleton::of(&logical, args.ratio)?;
    let scratch = Scratch::here()?;
    let header = trace.ranks().find_map(|rank| trace.header(rank));
    let abi = header.map(|header| header.abi.as_str()).filter(|abi| ["openmpi", "mpich"].contains(abi));
    let compiler = compiler(args.cc.as_deref(), args.launcher.as_deref(), abi);
    let here = this_machine(&mpi_of(&trace));
    let host = trace.header(Rank(0)).map(|header| header.host.clone()).unwrap_or_default();
    let compared = !args.no_run && (!trace.is_of_computing() || !args.command.is_empty());
    let left_out = left_out(&trace, &skeleton, compared, &host, &here);
    let processes = (logical.ranks as usize).min(here.cores as usize);
    let mix = Mix { memory: args.mix, working_set: args.working_set };
    let rates = calibrate(&compiler, mix, logical.counted.is_some(), processes, scratch.path())?;
    let program = std::iter::once(&logical.program).chain(&logical.args).cloned().collect::<Vec<_>>().join(" ");
    go_on()?;
    let source = skeleton.source(&program, logical.topology.as_deref(), &rates);
    let mut manifest = manifest(&logical, &skeleton, &source, rates, program, Machine { host, ..here }, left_out);
    if compared {
        match runs(&source, &compiler, args, &manifest, scratch.path()) {
            Ok((runs, turns)) => {
                (manifest.runs, manifest.turns) = (runs, turns);
                let ran_with = manifest.runs.first().map_or("", |run| &run.mpi);
                manifest.left_out.extend(other_mpi(&mpi_of(&trace), ran_with));
                if !manifest.turns.is_empty() && !manifest.turns_tell() {
                    manifest.turns.clear();
                    if trace.is_of_computing() {
                        manifest.runs.clear();
                    }
                    manifest.left_out.push(
                        "launches of MPI differ here by about as much as the program takes, so the runs in turn with it do not count"
                            .into(),
                    );
                }
            }
            Err(error) if crate::launch::interrupted() || !args.command.is_empty() => return Err(error),
            Err(error) => note(&format!(
                "the skeleton was not run here, so what it cannot imitate is not known: {}",
                crate::exit::sentence(&error)
            )),
        }
    }
    go_on()?;
    folder::write(&args.output, &source.text, &manifest, &skeleton)?;
    if args.json {
        return output::json(&json!({
            "skeleton": manifest,
            "topology": recognition,
            "nests": manifest.nests,
            "ratio": manifest.ratio,
            "computation": manifest.computation,
            "ratio_here": ratio_here(&manifest),
            "classes": logical.classes.iter().map(|class| ranges(&class.ranks)).collect::<Vec<_>>(),
            "calls": skeleton.repaired.calls,
            "figure3": skeleton.figure3,
            "local": skeleton.repaired.local,
            "detached": skeleton.repaired.detached,
            "left_out": manifest.left_out,
        }));
    }
    output::words(&words(&manifest, &recognition, &logical, &skeleton, &args.output))
}

/// What the skeleton does not imitate, and what its calibration `here` assumes.
fn left_out(trace: &Trace, skeleton: &Skeleton, compared: bool, host: &str, here: &Machine) -> Vec<String> {
    let mut left_out = skeleton.left_out.clone();
    if host != here.host {
        left_out.push(format!(
            "the trace was recorded on {host}, and computation was calibrated on {}: if that is another kind of machine, its speed is taken for the base's",
            here.host
        ));
    }
    if trace.is_of_computing() && !compared {
        left_out.push(
            "the trace holds what ranks compute and not how long they communicate, so the skeleton was not compared with the program".into(),
        );
    }
    // Not by the host's name: predicted traces have that of their target, where nothing has run.
    let boot = boot_id();
    let on_this = |rank: &Rank| trace.header(*rank).is_some_and(|header| header.boot_id == boot);
    let ranks_here = trace.ranks().filter(on_this).count();
    if ranks_here > here.cores as usize {
        left_out.push(format!(
            "{ranks_here} ranks shared the {} processors of {host}: time in which another rank had the processor counts as computation. A trace of what ranks compute (`phasecast trace --clock computing`) gives a better skeleton",
            here.cores
        ));
    }
    left_out
}

fn manifest(
    logical: &LogicalTrace,
    skeleton: &Skeleton,
    source: &Source,
    rates: Rates,
    program: String,
    base: Machine,
    left_out: Vec<String>,
) -> Manifest {
    let nest = |class: &phasecast_skeleton::logical::ClassTrace| {
        format!("ranks {}: {}", ranges(&class.ranks), text(&class.body))
    };
    let everyone = || ranges(&(0..logical.ranks).collect::<Vec<_>>());
    let parts = source.parts.iter().map(|part| PartEntry {
        name: part.name.clone(),
        ranks: part.class.map_or_else(everyone, |class| ranges(&logical.classes[class].ranks)),
        full: part.full,
        count: part.count,
        base_s: part.base_ns * 1e-9,
    });
    Manifest {
        version: VERSION,
        program,
        ranks: logical.ranks,
        topology: logical.topology.clone(),
        nests: logical.classes.iter().map(nest).collect(),
        base,
        base_run_s: logical.run_ns as f64 * 1e-9,
        steps_s: skeleton.scaling.base_ns * 1e-9,
        ratio_asked: skeleton.asked,
        ratio: skeleton.scaling.ratio(),
        ratio_most: skeleton.scaling.most(),
        rates,
        computation: Basis::of(logical.counted.as_ref()),
        source: folder::SOURCE.into(),
        sha256: digest(source.text.as_bytes()),
        parts: parts.collect(),
        left_out,
        runs: Vec::new(),
        turns: Vec::new(),
    }
}

/// Runs the skeleton here; if the program was given, twice in each turn, around a run of that.
fn runs(
    source: &Source,
    compiler: &str,
    args: &SkeletonArgs,
    manifest: &Manifest,
    scratch: &Path,
) -> Result<(Vec<Run>, Vec<Turn>)> {
    let launcher = args.launcher.as_deref();
    let built = Built::new(source.text.as_bytes(), compiler, launcher, manifest.ranks, scratch)?;
    built.refuse_foreign(&args.command)?;
    let (mut runs, mut turns, begun) = (Vec::<Run>::new(), Vec::new(), Instant::now());
    // At least so many times, and no more when so much time was spent.
    let (least, enough_s) =
        if args.command.is_empty() { (2, manifest.base_run_s.max(5.0)) } else { (LEAST_TURNS, ENOUGH_TURNS_S) };
    let bar = progress::bar("running the skeleton", "times");
    for time in 0..TIMES {
        if time >= least && begun.elapsed().as_secs_f64() > enough_s {
            break;
        }
        runs.push(built.run(manifest.rounds())?);
        if !args.command.is_empty() {
            let wall_s = built.run_program(&args.command)?;
            runs.push(built.run(manifest.rounds())?);
            turns.extend(runs.last_chunk().map(|[before, after]| Turn::of(before, wall_s, after)));
        }
        bar.set(time + 1, TIMES);
    }
    bar.finish();
    Ok((runs, turns))
}

/// Time of the program over the skeleton's own on the base, both without start and end of MPI.
fn ratio_here(manifest: &Manifest) -> Option<f64> {
    let sum: f64 = manifest.runs.iter().map(|run| run.run_s).sum();
    (sum > 0.0).then(|| manifest.base_s() * manifest.runs.len() as f64 / sum)
}

fn words(
    manifest: &Manifest,
    recognition: &Recognition,
    logical: &LogicalTrace,
    skeleton: &Skeleton,
    folder: &Path,
) -> String {
    let mut out = String::new();
    let mut line = |name: &str, value: String| {
        let _ = writeln!(out, "{name:<12} {value}");
    };
    line("program", clean(&manifest.program));
    line("ranks", format!("{} in {} classes", count(manifest.ranks.into()), logical.classes.len()));
    for (at, text) in recognition.words().lines().enumerate() {
        line(if at == 0 { "topology" } else { "" }, clean(text));
    }
    for (at, nest) in manifest.nests.iter().take(CLASSES).enumerate() {
        line(if at == 0 { "loops" } else { "" }, output::short(nest, 200));
    }
    if manifest.nests.len() > CLASSES {
        line("", format!("and {} more classes", manifest.nests.len() - CLASSES));
    }
    line("base run", seconds(manifest.base_run_s));
    if !manifest.turns.is_empty() {
        line("in turn", format!("{} in the mean of {} runs", seconds(manifest.base_s()), manifest.turns.len()));
    }
    let most = manifest.ratio_most;
    line(
        "ratio",
        format!(
            "1/{:.1} expected, 1/{} asked for; one iteration of the main loop would be 1/{most:.1}",
            manifest.ratio, manifest.ratio_asked
        ),
    );
    if let Some((full, kept)) = skeleton.scaling.main {
        line("main loop", format!("{} of {} iterations", count(kept), count(full)));
    }
    if let Some(ratio) = ratio_here(manifest) {
        let stands = manifest.runs.iter().map(|run| run.stands_for_s).sum::<f64>() / manifest.runs.len() as f64;
        line(
            "here",
            format!(
                "1/{ratio:.1}; it stands for {} ({:+.1} %)",
                seconds(stands),
                100.0 * (stands / manifest.base_s() - 1.0)
            ),
        );
    }
    line("computation", clean(&manifest.computation.words()));
    line("replay", format!("{} calls, every send waiting for its receive: it ends", count(skeleton.repaired.calls)));
    line("written", format!("{}", folder.display()));
    for text in &manifest.left_out {
        line("left out", clean(text));
    }
    out
}
