//! Base runs: the program under the tracer, with wall times around it.
use crate::launch::{Launcher, in_path, other_number};
use crate::restart::manifest::EdgeTimes;
use crate::trace_launch::traced_command;
use anyhow::{Result, anyhow, bail};
use phasecast_abi::{Class as Mpi, ProcId, by_name};
use phasecast_trace::awaited::Ran;
use phasecast_trace::model::boot_id;
use phasecast_trace::{Class, Nanos, Trace, TraceError};
use std::ffi::OsStr;
use std::path::Path;

/// One base run: its trace, and wall times in seconds.
pub struct BaseRun {
    /// The trace.
    pub trace: Trace,
    /// From launch to the end of the launcher.
    pub aet_s: f64,
    /// From launch to the start of the first process.
    pub startup_s: f64,
    /// From the end of the last process to the end of the launcher.
    pub teardown_s: f64,
}

/// Whether what called MPI is the program of a command, or what its first line names if it is a script.
pub fn is_command(ran: &Ran, command: &[String]) -> bool {
    let file = |name: &String| in_path(OsStr::new(name)).and_then(|path| path.canonicalize().ok());
    let Some((name, given)) = command.split_first() else { return false };
    let Some(program) = file(name) else { return false };
    // An interpreter has its script before the arguments of that.
    let of_script = |args: &Vec<String>| {
        let at = args.len().checked_sub(command.len());
        at.is_some_and(|at| file(&args[at]).as_ref() == Some(&program) && args[at + 1..] == *given)
    };
    program == ran.program || ran.args.as_ref().is_some_and(of_script)
}
/// Runs the program once under the tracer, which records to `folder`.
///
/// # Errors
/// If the program fails, is not traced, or runs with another number of ranks.
pub fn run(launcher: &Launcher, folder: &Path, ranks: u32, command: &[String]) -> Result<BaseRun> {
    let mut launch = launcher.start(&traced_command(folder, command, None))?;
    let launched = launch.started_ns();
    let (status, ended) = launch.wait()?;
    if !status.success() {
        bail!("the base run failed ({status}); make it run under `{launcher}` first");
    }
    let trace = trace_of("the base run", folder, ranks)?;
    let here = boot_id();
    let (mut first, mut last) = (None, launched);
    let mut longest = Nanos(0);
    for rank in trace.ranks() {
        let (start, end) = trace.span(rank);
        longest = longest.max(end.since(start));
        if let Some(header) = trace.header(rank).filter(|h| h.boot_id == here) {
            first = Some(first.unwrap_or(u64::MAX).min(header.clock.monotonic_ns));
            last = last.max(header.clock.monotonic_ns + end.since(start).0);
        }
    }
    let aet_s = Nanos(ended).since(Nanos(launched)).seconds();
    // Where no rank has this host's clock, what is not the longest rank's is the start's.
    let (startup_s, teardown_s) = match first {
        None => ((aet_s - longest.seconds()).max(0.0), 0.0),
        Some(first) => (Nanos(first).since(Nanos(launched)).seconds(), Nanos(ended).since(Nanos(last)).seconds()),
    };
    Ok(BaseRun { trace, aet_s, startup_s, teardown_s })
}

/// The trace of a run that has ended well and is called `run`.
///
/// # Errors
/// If it has left none, or had another number of ranks.
pub fn trace_of(run: &str, folder: &Path, ranks: u32) -> Result<Trace> {
    let trace = Trace::open(folder).map_err(|error| {
        // The folder, which this would tell of, is removed.
        let why = if matches!(error, TraceError::Foreign { .. }) { String::new() } else { format!(" ({error})") };
        anyhow!("{run} left no trace: does the program call MPI_Init, and does the launcher belong to its MPI?{why}")
    })?;
    if trace.size() != ranks {
        bail!(other_number(trace.size(), ranks, "the program's MPI"));
    }
    Ok(trace)
}

/// For each rank, how long MPI_Init and MPI_Finalize took and what came after the last event. A program with sessions has
/// started MPI before its first call that is recorded.
///
/// # Errors
/// If the trace is damaged.
pub fn edges(trace: &Trace) -> Result<Vec<EdgeTimes>> {
    let edge = |rank| {
        let (start, end) = trace.span(rank);
        let (mut before, mut init, mut finalize, mut last) = (None, None, Nanos(0), start);
        let mut calls = trace.calls(rank);
        while let Some(call) = calls.next_call()? {
            let took = call.call.exit.since(call.call.enter);
            before.get_or_insert(call.call.enter.since(start));
            if call.call.class == Class::Setup {
                match by_name(trace.procedure(call.call.proc)).and_then(ProcId::get).map(|procedure| procedure.class) {
                    Some(Mpi::Init) => drop(init.get_or_insert(took)),
                    Some(Mpi::Finalize | Mpi::SessionFinalize) => finalize = took,
                    _ => {}
                }
            }
            if call.events().next().is_some() {
                last = last.max(call.call.exit);
            }
        }
        let init = init.or(before).unwrap_or(Nanos(0));
        Ok(EdgeTimes { init_s: init.seconds(), tail_s: end.since(last).seconds(), finalize_s: finalize.seconds() })
    };
    trace.ranks().map(edge).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_what_calls_mpi_or_starts_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let script = folder.path().join("run.sh");
        std::fs::write(&script, "#!/bin/sh -e").expect("a script can be written");
        let script = script.to_str().expect("a name of letters");
        let words = |words: &[&str]| words.iter().map(ToString::to_string).collect::<Vec<_>>();
        let program = Path::new("/bin/sh").canonicalize().expect("there is a shell");
        let ran = |args: &[&str]| Ran { program: program.clone(), args: Some(words(args)) };
        assert!(is_command(&ran(&["other"]), &words(&["sh", "1"])), "by its file");
        assert!(is_command(&ran(&["-e", script, "1"]), &words(&[script, "1"])), "as its interpreter");
        assert!(!is_command(&ran(&["-e", script, "2"]), &words(&[script, "1"])));
        assert!(!is_command(&ran(&["1"]), &words(&["env", "sh", "1"])));
        assert!(!is_command(&ran(&[]), &words(&[script])));
        assert!(!is_command(&Ran { program, args: None }, &words(&[script])));
    }
}
