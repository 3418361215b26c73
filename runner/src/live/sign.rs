//! `phasecast sign --live`: base runs under the tracer, their analysis, and the signature file.
use crate::commands::analyze;
use crate::launch::{Launcher, boot_id, catch_interrupts};
use crate::output;
use crate::signature::{Manifest, Signature, VERSION, mpi_of, this_machine};
use crate::trace_launch::traced_command;
use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use phasecast_analyzer::Settings;
use phasecast_trace::{Nanos, Trace};
use std::path::{Path, PathBuf};

/// Make the signature of a program: trace it on this (base) machine and find its phases
///
/// The program is run twice under the tracer: the second run tells levels of time from noise, and shows whether the
/// program does the same each time.
#[derive(Args, Debug)]
pub struct SignArgs {
    /// Make a signature without images: on the target the program itself is run until its phases were seen
    #[arg(long, required = true)]
    live: bool,
    /// Number of ranks
    #[arg(short, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    n: u32,
    /// The signature to write
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// How to start the program instead of with the mpirun that fits it; the letter n in braces stands for the number
    /// of ranks
    #[arg(long, value_name = "COMMAND")]
    launcher: Option<String>,
    /// How to find phases
    #[arg(long, value_enum, default_value_t = crate::cli::MethodArg::Marker)]
    method: crate::cli::MethodArg,
    /// Base runs
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=2))]
    runs: u8,
    /// Print the analysis as one JSON object
    #[arg(long)]
    json: bool,
    /// The program and its arguments
    #[arg(required = true, last = true, value_name = "PROGRAM")]
    command: Vec<String>,
}

/// Wall times of one base run.
struct BaseRun {
    trace: Trace,
    aet_s: f64,
    startup_s: f64,
    teardown_s: f64,
}

/// Runs the command.
///
/// # Errors
/// If the program fails or cannot be traced, or the signature cannot be written.
pub fn run(args: &SignArgs) -> Result<()> {
    output::refuse_existing(&args.output)?;
    catch_interrupts();
    let launcher = Launcher::find(args.launcher.as_deref(), args.n, Path::new(&args.command[0]))?;
    let scratch = scratch_folder()?;
    let mut runs = Vec::new();
    for number in 1..=args.runs {
        eprintln!("phasecast: base run {number} of {}: {launcher} {}", args.runs, args.command.join(" "));
        runs.push(base_run(&launcher, &scratch.path().join(format!("base{number}.trace")), args)?);
    }
    let settings = Settings { method: args.method.into(), ..Settings::default() };
    let bar = crate::progress::bar("analysing", "events");
    let mpi = mpi_of(&runs[0].trace);
    let (traces, times): (Vec<Trace>, Vec<[f64; 3]>) =
        runs.into_iter().map(|r| (r.trace, [r.aet_s, r.startup_s, r.teardown_s])).unzip();
    let analysis = phasecast_analyzer::analyze(&traces, &settings, &|done, of| bar.set(done, of))?;
    bar.finish();
    if analysis.pieces.iter().any(Vec::is_empty) {
        bail!("the run is too long for the method pbb to keep what a prediction follows. Use --method marker.");
    }
    let mean = |which: usize| times.iter().map(|t| t[which]).sum::<f64>() / times.len() as f64;
    let manifest = Manifest {
        kind: "live".into(),
        phasecast: env!("CARGO_PKG_VERSION").into(),
        command: args.command.clone(),
        ranks: args.n,
        machine: this_machine(&mpi),
        aet_s: times.iter().map(|t| t[0]).collect(),
        startup_s: mean(1),
        teardown_s: mean(2),
    };
    let signature = Signature { manifest, analysis };
    signature.save(&args.output)?;
    let analysis = &signature.analysis;
    if args.json {
        let mut object = analyze::json(analysis);
        object["signature"] = serde_json::json!({ "file": args.output, "version": VERSION, "kind": "live" });
        object["aet_s"] = serde_json::json!(signature.manifest.aet_s);
        return output::json(&object);
    }
    let name = args.output.display();
    output::words(&format!("{}\n{name} written. Predict with: phasecast predict {name}\n", analyze::table(analysis)))
}

/// A folder for traces that are needed only for now. In the working folder, because the ranks must all reach it.
pub fn scratch_folder() -> Result<tempfile::TempDir> {
    tempfile::Builder::new().prefix(".phasecast-").tempdir_in(".").context(
        "cannot make a folder for the trace in the working folder, which all ranks must reach. Is it writable?",
    )
}

fn base_run(launcher: &Launcher, folder: &Path, args: &SignArgs) -> Result<BaseRun> {
    let mut launch = launcher.start(&traced_command(folder, &args.command))?;
    let launched = launch.started_ns();
    let (status, ended) = launch.wait()?;
    if !status.success() {
        bail!("the base run failed ({status}); make it run under `{launcher}` first");
    }
    let trace = Trace::open(folder).map_err(|error| {
        anyhow!("the base run left no trace: does the program call MPI_Init, and does the launcher belong to its MPI? ({error})")
    })?;
    if trace.size() != args.n {
        bail!(
            "the program ran with {} ranks instead of {}: does the launcher belong to its MPI?",
            trace.size(),
            args.n
        );
    }
    let here = boot_id();
    let (mut first, mut last) = (0, launched);
    for rank in trace.ranks() {
        if let Some(header) = trace.header(rank).filter(|h| h.boot_id == here) {
            let (start, end) = trace.span(rank);
            first = first.max(header.clock.monotonic_ns);
            last = last.max(header.clock.monotonic_ns + end.since(start).0);
        }
    }
    Ok(BaseRun {
        trace,
        aet_s: Nanos(ended).since(Nanos(launched)).seconds(),
        startup_s: Nanos(first).since(Nanos(launched)).seconds(),
        teardown_s: if last > launched { Nanos(ended).since(Nanos(last)).seconds() } else { 0.0 },
    })
}
