//! The host of one rank: loads the machine's MPI and a program (or an image of one), lets it run, and steps in at the
//! positions that its job names.
use crate::job::{Job, Program};
use crate::replaying::{Replay, replay};
use crate::saving::{Checkpoint, Plan, checkpoint};
use crate::sentence;
use anyhow::{Context, Result};
use phasecast_mpi::{Hooks, session};
use phasecast_process::complain;
use phasecast_process::gate::Frame;
use phasecast_process::space;
use phasecast_trace::model::launcher_rank;
use std::cell::UnsafeCell;
use std::path::Path;
use std::time::{Duration, Instant};

/// What the host of this process is doing.
pub(crate) enum Work {
    Nothing,
    Checkpoint(Checkpoint),
    Replay(Replay),
}

struct Place(UnsafeCell<Work>);

// SAFETY: one thread at a time comes here: the main thread in the host's own code, before the program's threads run and after
// they have ended, else the one that the session lets stop, or that finalizes MPI.
unsafe impl Sync for Place {}

static WORK: Place = Place(UnsafeCell::new(Work::Nothing));

/// What this process is doing.
pub(crate) fn work() -> &'static mut Work {
    // SAFETY: as above: one thread, and no two of its borrows at a time, since hooks do not call one another.
    unsafe { &mut *WORK.0.get() }
}

/// Runs a job file; the exit code of the process. `facade` is the library that the program gets in place of its MPI, `program`
/// one to be saved in place of the job's.
pub fn run(job: &Path, facade: &Path, program: Option<Program>) -> i32 {
    match job_of(job).and_then(|job| carry_out(job, facade, program)) {
        Ok(code) => code,
        Err(error) => {
            complain(format_args!("{}{}", rank_prefix(), sentence(&error)));
            1
        }
    }
}

fn rank_prefix() -> String {
    launcher_rank().map_or_else(String::new, |rank| format!("rank {rank}: "))
}

fn job_of(path: &Path) -> Result<Job> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read the job {}", path.display()))?;
    serde_json::from_str(&text).with_context(|| format!("{} is no job of this phasecast", path.display()))
}

fn carry_out(job: Job, facade: &Path, other: Option<Program>) -> Result<i32> {
    let started = Instant::now();
    phasecast_process::prepare(other.is_some())?;
    match job {
        Job::Checkpoint { program, cuts, recorded, collectives, images, patience_s, cpu } => {
            let patience = Duration::try_from_secs_f64(patience_s).unwrap_or(Duration::MAX);
            let program = other.unwrap_or(program);
            checkpoint(program, Plan { cuts, recorded, patience, images }, hooks(collectives), cpu, facade)
        }
        Job::Replay { images, steps, collectives, made, out, within } => {
            replay(&images, steps, made, within, hooks(collectives), out, started)
        }
    }
}

/// Numbers that a program's own files get first: kept free of the lower half's.
pub(crate) const FIRST_FILES: std::ops::Range<i32> = 3..64;

/// What the session is to ask this host.
fn hooks(collectives: bool) -> Hooks {
    Hooks { stop, finalize, within: space::contains, collectives }
}

/// A position was reached.
///
/// # Safety
/// Called by the session at the end of a call, by one thread at a time.
unsafe fn stop(frame: *mut Frame, result: usize) -> usize {
    let events = session().events;
    match work() {
        Work::Nothing => {}
        Work::Checkpoint(checkpoint) => checkpoint.reached(events, frame, result),
        Work::Replay(replay) => replay.reached(events),
    }
    result
}

/// The program finalizes MPI.
fn finalize() {
    match work() {
        Work::Nothing => {}
        Work::Checkpoint(checkpoint) => checkpoint.finish(),
        Work::Replay(replay) => {
            replay.finished();
            replay.write();
        }
    }
}

/// Writes a report; a failure is told, and the runner misses the file.
pub(crate) fn write_report<T: serde::Serialize>(folder: &Path, rank: u32, report: &T) {
    let path = folder.join(format!("rank-{rank:05}.json"));
    let written = serde_json::to_vec(report).map_err(anyhow::Error::from).and_then(|bytes| {
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        std::io::Write::write_all(&mut file, &bytes)?;
        file.persist(&path)?;
        Ok(())
    });
    if let Err(error) = written {
        complain(format_args!("rank {rank}: cannot write {}: {}", path.display(), sentence(&error)));
    }
}
