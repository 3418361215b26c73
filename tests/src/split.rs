//! Cutting the programs of `tests/programs` and letting them go on elsewhere: what they print must be what they print
//! natively, whatever the cut and whichever the MPI.

use crate::mpi::Mpi;
use crate::phasecast;
use crate::process::{Outcome, start};
use crate::program::Program;
use phasecast_analyzer::cuts_at_every_position;
use phasecast_checkpoint::MadeAfter;
use phasecast_checkpoint::job::{CheckpointReport, Cut, Job, Program as JobProgram, ReplayReport, Step};
use phasecast_trace::{Rank, Trace};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;
use tempfile::TempDir;

/// How long a launch may take: programs take a fraction of a second.
const LIMIT: Duration = Duration::from_secs(60);

/// Which cuts to take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// All.
    Every,
    /// So many, spread over the run, at places that the program names or that depend on its name.
    Some(usize),
    /// The one at this place in the list of all.
    One(usize),
}

/// A program that was cut under its base MPI.
pub struct Base<'a> {
    /// The program.
    pub program: &'a Program,
    /// The base MPI.
    pub mpi: Mpi,
    /// The cuts that were saved on all ranks.
    pub saved: Vec<Cut>,
    /// The cuts that were refused for a reason that the program names.
    pub refused: Vec<(Cut, String)>,
    /// What went wrong.
    pub failures: Vec<String>,
    folder: TempDir,
    /// The folder within it in which the ranks run.
    work: &'static str,
}

/// The lines that each rank printed, in order: ranks may print in any order among each other.
pub type Lines = BTreeMap<String, Vec<String>>;

/// Sorts lines by the tag `[rank]` in front of them.
pub fn lines(text: &str) -> Lines {
    let mut sorted = Lines::new();
    for line in text.lines() {
        let tag = line.split_once("] ").map_or("", |(tag, _)| tag);
        sorted.entry(tag.to_owned()).or_default().push(line.to_owned());
    }
    sorted
}

/// What programs print under MPIs, known from runs that were not split.
fn known() -> MutexGuard<'static, BTreeMap<(String, Mpi), Lines>> {
    static KNOWN: Mutex<BTreeMap<(String, Mpi), Lines>> = Mutex::new(BTreeMap::new());
    KNOWN.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// What a program prints natively under an MPI, in a folder that it may write in; it is run if [`cuts`] has not done so.
///
/// # Errors
/// If it fails, or does not say that all is well.
pub fn native(program: &Program, mpi: Mpi) -> Result<Lines, String> {
    let key = (program.name.clone(), mpi);
    if let Some(lines) = known().get(&key) {
        return Ok(lines.clone());
    }
    let folder = tempfile::tempdir().expect("the folder for temporary files can be written to");
    let mut command = launcher(program, mpi, folder.path());
    command.args(program.command(mpi));
    let how = format!("natively under {}", mpi.name());
    let lines = well(program, finished(&mut command, &how)?, &how)?;
    known().insert(key, lines.clone());
    Ok(lines)
}

/// A launcher of the program's ranks that starts in `folder`.
fn launcher(program: &Program, mpi: Mpi, folder: &Path) -> Command {
    let mut command = mpi.launcher(program.ranks);
    command.current_dir(folder);
    program.prepare(mpi, &mut command);
    command
}

fn finished(command: &mut Command, how: &str) -> Result<Outcome, String> {
    start(command).finish_within(LIMIT).map_err(|Outcome { stdout, stderr, .. }| {
        format!("{how}: did not end within {LIMIT:?}\n{command:?}\n--- stdout\n{stdout}\n--- stderr\n{stderr}")
    })
}

/// What the program printed, if it ended well and says so.
fn well(program: &Program, outcome: Outcome, how: &str) -> Result<Lines, String> {
    let Outcome { code, stdout, stderr } = outcome;
    let said = stdout.lines().any(|line| line == format!("ok {}", program.name));
    if code == 0 && said {
        return Ok(lines(&stdout));
    }
    Err(format!("{how}: exit code {code}\n--- stdout\n{stdout}\n--- stderr\n{stderr}"))
}

/// A number that depends on a name only.
pub fn hash(name: &str) -> usize {
    name.bytes().fold(5381, |hash: usize, byte| hash.wrapping_mul(33) ^ usize::from(byte))
}

/// All cuts of a program, found from its trace, by the positions of `pilot`.
///
/// # Errors
/// If the program fails or its trace is damaged.
pub fn cuts(program: &Program, mpi: Mpi, pilot: u32) -> Result<Vec<Cut>, String> {
    let folder = tempfile::tempdir().expect("the folder for temporary files can be written to");
    let file = folder.path().join("run.trace");
    let mut command = launcher(program, mpi, folder.path());
    command.arg(phasecast()).args(["trace", "-o"]).arg(&file).arg("--").args(program.command(mpi));
    let lines = well(program, finished(&mut command, "traced")?, "traced")?;
    known().entry((program.name.clone(), mpi)).or_insert(lines);
    let trace = Trace::open(&file).map_err(|error| error.to_string())?;
    let positions = cuts_at_every_position(&trace, Rank(pilot)).map_err(|error| error.to_string())?;
    let numbered = positions.into_iter().zip(0..).map(|(events, id)| Cut { id, events });
    Ok(numbered.step_by(program.stride).collect())
}

/// The cuts of `all` that were chosen.
pub fn chosen(all: Vec<Cut>, choice: Choice, program: &Program) -> Vec<Cut> {
    let n = all.len();
    let first = if program.middle { n / 2 } else { hash(&program.name) };
    let places: Vec<usize> = match choice {
        Choice::Some(some) if some < n => (0..some).map(|i| (first + i * n / some) % n).collect(),
        Choice::One(place) => vec![place],
        _ => (0..n).collect(),
    };
    all.into_iter().enumerate().filter(|(i, _)| places.contains(i)).map(|(_, cut)| cut).collect()
}

impl<'a> Base<'a> {
    /// Runs a program split under `mpi` and cuts it at `cuts`; it must print what it does natively there.
    ///
    /// # Errors
    /// If nothing could be saved at all: it cannot be launched, or left no report.
    pub fn cut(program: &'a Program, mpi: Mpi, cuts: Vec<Cut>, expected: &Lines) -> Result<Base<'a>, String> {
        let folder = tempfile::tempdir().expect("the folder for temporary files can be written to");
        let mut base =
            Base { program, mpi, saved: Vec::new(), refused: Vec::new(), failures: Vec::new(), folder, work: "work" };
        let images = base.folder("images");
        let words = program.command(mpi);
        let job = Job::Checkpoint {
            program: JobProgram { path: PathBuf::from(&words[0]), args: words[1..].to_vec() },
            cuts: cuts.clone(),
            recorded: Vec::new(),
            collectives: false,
            images: images.clone(),
            patience_s: 15.0,
            cpu: None,
        };
        let how = format!("cut under {}", mpi.name());
        let outcome = finished(&mut base.host(mpi, "checkpoint.json", &job), &how)?;
        let words = format!("{outcome:?}");
        match well(program, outcome, &how) {
            Ok(printed) if &printed == expected => {}
            Ok(printed) => base.failures.push(format!("{how}: printed {printed:?} instead of {expected:?}")),
            Err(wrong) => base.failures.push(wrong),
        }
        let reports: Result<Vec<CheckpointReport>, String> =
            (0..program.ranks).map(|rank| report(&images, rank)).collect();
        let reports = reports.map_err(|wrong| format!("{how}: {wrong}\n{words}"))?;
        for cut in cuts {
            base.take(cut, &reports);
        }
        Ok(base)
    }

    /// Notes how a cut went.
    fn take(&mut self, cut: Cut, reports: &[CheckpointReport]) {
        let on_ranks: Vec<_> = reports.iter().filter_map(|r| r.cuts.iter().find(|of| of.id == cut.id)).collect();
        if on_ranks.len() == reports.len() && on_ranks.iter().all(|of| of.saved) {
            self.saved.push(cut);
            return;
        }
        let reasons: Vec<&str> = on_ranks.iter().filter_map(|of| of.reason.as_deref()).collect();
        let reason = reasons.join("; ");
        if self.program.refuses.iter().any(|known| reason.contains(known)) {
            self.refused.push((cut, reason));
        } else if reason.is_empty() {
            self.failures.push(format!("cut {cut:?}: neither saved nor refused with a reason"));
        } else {
            self.failures.push(format!("cut {cut:?}: refused: {reason}"));
        }
    }

    /// Restarts a cut under `target`; the program must end there as `expected`, and leave what the base run wrote as it is.
    ///
    /// # Errors
    /// If it does not.
    pub fn replay(&self, target: Mpi, cut: &Cut, expected: &Lines) -> Result<(), String> {
        let how = format!("cut {} {:?}, {} -> {}", cut.id, cut.events, self.mpi.name(), target.name());
        let out = self.folder(&format!("out-{}-{}", target.name(), cut.id));
        let watch = vec![Vec::new(); cut.events.len()];
        let job = Job::Replay {
            images: self.folder.path().join("images"),
            steps: vec![Step { cut: cut.id, watch }],
            collectives: false,
            made: made(&self.folder.path().join("images"), self.program.ranks),
            out: out.clone(),
            within: None,
        };
        let before = files(&self.folder(self.work));
        let outcome = finished(&mut self.host(target, &format!("replay-{}.json", cut.id), &job), &how)?;
        let after = files(&self.folder(self.work));
        let changed = changes(&before, &after);
        if !changed.is_empty() {
            return Err(format!("{how}: the restart has changed {changed:?}, which the base run wrote"));
        }
        let stderr = outcome.stderr.clone();
        let printed = well(self.program, outcome, &how)?;
        if &printed != expected {
            return Err(format!("{how}: printed {printed:?} instead of {expected:?}\n{stderr}"));
        }
        for rank in 0..self.program.ranks {
            let report: ReplayReport = report(&out, rank).map_err(|wrong| format!("{how}: {wrong}\n{stderr}"))?;
            let finished = report.steps.iter().all(|step| step.finished && step.cut == cut.id);
            if !finished || report.steps.len() != 1 || !report.mpi.contains(target.version()) {
                return Err(format!("{how}: rank {rank} reports {report:?}"));
            }
        }
        Ok(())
    }

    /// From now on restarts run in another folder, and the one of the base run is gone.
    ///
    /// # Panics
    /// If it cannot be removed.
    pub fn move_away(&mut self) {
        fs::remove_dir_all(self.folder(self.work)).expect("what the base run has left can be removed");
        self.work = "elsewhere";
    }

    /// The folder of the images and reports, kept beyond this value's life.
    pub fn keep(self) -> PathBuf {
        self.folder.keep()
    }

    fn folder(&self, name: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        fs::create_dir_all(&path).expect("the folder for temporary files can be written to");
        path
    }

    fn host(&self, mpi: Mpi, name: &str, job: &impl Serialize) -> Command {
        let file = self.folder.path().join(name);
        fs::write(&file, serde_json::to_string(job).expect("a job is plain data")).expect("it can be written");
        let mut command = launcher(self.program, mpi, &self.folder(self.work));
        command.arg(phasecast()).arg("host").arg(file);
        command
    }
}

/// What is in a folder and those within it: files with what is in them, links with where they lead.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for path in fs::read_dir(folder).expect("the folder is there").flatten().map(|entry| entry.path()) {
        let content = match fs::read_link(&path) {
            Ok(target) => target.into_os_string().into_vec(),
            Err(_) if path.is_file() => fs::read(&path).unwrap_or_default(),
            Err(_) if path.is_dir() => {
                found.extend(files(&path));
                Vec::new()
            }
            Err(_) => Vec::new(),
        };
        found.insert(path, content);
    }
    found
}

/// The names of files that differ, come or go.
fn changes<'a>(a: &'a BTreeMap<PathBuf, Vec<u8>>, b: &'a BTreeMap<PathBuf, Vec<u8>>) -> BTreeSet<&'a Path> {
    a.keys().chain(b.keys()).map(PathBuf::as_path).filter(|name| a.get(*name) != b.get(*name)).collect()
}

/// What the ranks made after they were saved, by the reports in a folder of images.
pub fn made(images: &Path, ranks: u32) -> Vec<MadeAfter> {
    (0..ranks).filter_map(|rank| report::<CheckpointReport>(images, rank).ok()).flat_map(|report| report.made).collect()
}

/// The report that a rank has left in a folder.
///
/// # Errors
/// If there is none, or it cannot be read.
pub fn report<T: DeserializeOwned>(folder: &Path, rank: u32) -> Result<T, String> {
    let path = folder.join(format!("rank-{rank:05}.json"));
    let text = fs::read_to_string(&path).map_err(|error| format!("no report of rank {rank}: {error}"))?;
    serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))
}
