//! `phasecast trace`: stands, per rank, between the launcher and the program. It preloads the tracer and becomes the
//! program, so there is nothing for a launcher to forward.
use crate::exit::Refusal;
use anyhow::{Context, Result, bail};
use phasecast_trace::TraceError;
use phasecast_trace::counts::{self, HARDWARE, SOFTWARE};
use phasecast_trace::model::{CLOCK_VARIABLE, COMPUTING_CLOCK, PROCESS_VARIABLE, launcher_rank};
use phasecast_trace::reader::file_name;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::ErrorKind;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// Name of the tracer's library.
const LIBRARY: &str = "libphasecast_tracer.so";

/// Record a run of a program: `mpirun -n 4 phasecast trace -o run.trace ./program`.
#[derive(Clone, Debug, clap::Args)]
pub struct TraceArgs {
    /// Folder for the trace, the same for all ranks; it must not hold one yet
    #[arg(short, long, value_name = "TRACE")]
    pub output: PathBuf,
    /// Do not print the summary at the end
    #[arg(short, long)]
    pub quiet: bool,
    /// The clock of the trace. With `computing`, time passes only while a rank computes, by the processor time of its
    /// thread: so that more ranks than processors can be traced, for `phasecast transform` to add what their communication costs
    #[arg(long, value_enum, default_value_t = ClockArg::Wall)]
    pub clock: ClockArg,
    /// Count instructions, cycles and cache misses between calls too, where the processor's counters can be read: for
    /// `phasecast skeleton`, whose computation then does the same. Recording a call takes longer
    #[arg(long)]
    pub counters: bool,
    /// Delay calls as this file says (see `phasecast stability`)
    #[arg(long, value_name = "FILE", hide = true)]
    pub delays: Option<PathBuf>,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "PROGRAM")]
    pub program: Vec<OsString>,
}

/// When time passes in a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum ClockArg {
    /// Time on the wall
    Wall,
    /// Processor time of the rank's own code; it stands still in MPI (programs of one thread)
    Computing,
}

/// Becomes the program, with the tracer in it.
///
/// # Errors
/// If the trace is there already (a [`TraceError`]), its folder cannot be made, the tracer is not beside the command, or
/// the program cannot be started.
pub fn run(args: &TraceArgs) -> Result<ExitCode> {
    let command = std::env::current_exe().context("cannot find out where the command phasecast is")?;
    let preload = preloading(&command)?;
    let output = std::path::absolute(&args.output)?;
    let made = !output.exists();
    make(&output)?;
    if let Some(rank) = launcher_rank() {
        let file = output.join(file_name(rank));
        if file.exists() {
            return Err(TraceError::Exists { path: file }.into());
        }
    }
    let [program, rest @ ..] = args.program.as_slice() else { bail!("no program is given") };
    let mut run = Command::new(program);
    run.args(rest).env("LD_PRELOAD", preload).env("PHASECAST_TRACE", &output).env("PHASECAST_EXE", command);
    run.env(PROCESS_VARIABLE, std::process::id().to_string());
    if args.quiet {
        run.env("PHASECAST_QUIET", "1");
    }
    run.env_remove(CLOCK_VARIABLE);
    if args.clock == ClockArg::Computing {
        run.env(CLOCK_VARIABLE, COMPUTING_CLOCK);
    }
    // Who tests phasecast where there are no counters sets the variable to have the kernel's events in their places.
    let software = std::env::var_os(counts::VARIABLE).is_some_and(|events| events == SOFTWARE);
    run.env_remove(counts::VARIABLE);
    if args.counters {
        run.env(counts::VARIABLE, if software { SOFTWARE } else { HARDWARE });
    }
    run.env_remove(phasecast_trace::delays::VARIABLE);
    if let Some(delays) = &args.delays {
        run.env(phasecast_trace::delays::VARIABLE, std::path::absolute(delays)?);
    }
    let error = run.exec();
    if made {
        // Only if no other rank has begun to write there.
        let _ = fs::remove_dir(&output);
    }
    let what = format!("cannot start {}", program.display());
    if error.kind() == ErrorKind::NotFound {
        return Err(Refusal::Input(format!("{what}: {error}. Check the path.")).into());
    }
    Err(error).context(what)
}

/// Makes the folder of a trace, and those above it.
fn make(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => TraceError::Exists { path: folder.to_owned() }.into(),
        _ => Refusal::Input(format!("cannot make the folder {} for the trace: {error}.", folder.display())).into(),
    })
}

/// The words to put after a launcher so that each rank of `program` is recorded in the folder `output`; with delays
/// before calls if a file says which.
pub fn traced_command(output: &Path, program: &[String], delays: Option<&Path>) -> Vec<OsString> {
    let command = std::env::current_exe().unwrap_or_else(|_| "phasecast".into());
    let mut words: Vec<&OsStr> =
        vec![command.as_os_str(), "trace".as_ref(), "--quiet".as_ref(), "-o".as_ref(), output.as_os_str()];
    words.extend(delays.into_iter().flat_map(|file| ["--delays".as_ref(), file.as_os_str()]));
    words.push("--".as_ref());
    words.into_iter().map(OsStr::to_owned).chain(program.iter().map(OsString::from)).collect()
}

/// What the dynamic linker is to load before all else: the tracer that belongs to the command, and what was asked for before.
///
/// # Errors
/// If there is no tracer, or its name cannot stand in such a list.
pub fn preloading(command: &Path) -> Result<OsString> {
    let tracer = library(command, LIBRARY)?;
    if let Some(sign) = tracer.as_os_str().as_encoded_bytes().iter().find(|byte| b" :".contains(byte)) {
        let (tracer, sign) = (tracer.display(), char::from(*sign));
        let what =
            format!("{tracer} cannot be loaded: the dynamic linker parts names at {sign:?}. Install it elsewhere.");
        return Err(Refusal::Unfit(what).into());
    }
    let mut preload = tracer.into_os_string();
    if let Some(others) = std::env::var_os("LD_PRELOAD").filter(|others| !others.is_empty()) {
        preload.push(":");
        preload.push(others);
    }
    Ok(preload)
}

/// A library of ours: beside the command, or in `lib` beside its folder.
///
/// # Errors
/// If it is in neither place.
pub fn library(command: &Path, name: &str) -> Result<PathBuf> {
    let folder = command.parent().unwrap_or(Path::new("."));
    let places = [folder.join(name), folder.join("../lib").join(name)];
    places.iter().find(|place| place.is_file()).cloned().with_context(|| {
        format!("{name} is neither in {} nor in ../lib from there. Install it beside the command.", folder.display())
    })
}
