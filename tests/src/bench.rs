//! What benchmarks share: figures beside their bounds, medians, and launches of split programs.

use crate::mpi::Mpi;
use crate::phasecast;
use crate::process::{Outcome, start};
use crate::split::report;
use phasecast_checkpoint::job::{CheckpointReport, Cut, Job, Program, ReplayReport, Step, Within};
use serde::de::DeserializeOwned;
use std::cell::Cell;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How long a launch may take.
const LIMIT: Duration = Duration::from_secs(600);

/// What a figure should be.
#[derive(Clone, Copy, Debug)]
pub enum Bound {
    /// No bound: told for comparison.
    None,
    /// At most this.
    Most(f64),
    /// At least this.
    Least(f64),
}

/// Prints a figure beside its bound, and whether it is missed.
pub fn figure(what: &str, value: f64, unit: &str, bound: Bound) {
    let (bound, missed) = match bound {
        Bound::None => (String::new(), false),
        Bound::Most(most) => (format!("<= {most}"), value > most),
        Bound::Least(least) => (format!(">= {least}"), value < least),
    };
    println!("{what:<66} {value:>9.3} {unit:<4} {bound:>8}{}", if missed { "  MISSED" } else { "" });
}

/// Keeps of `all`, in their order, what a list with commas names.
///
/// # Errors
/// If the list names what is not there.
pub fn keep_named<T>(all: &mut Vec<T>, list: &str, name: impl Fn(&T) -> &str) -> Result<(), String> {
    let named: Vec<&str> = list.split(',').collect();
    let known: Vec<&str> = all.iter().map(&name).collect();
    if let Some(unknown) = named.iter().find(|one| !known.contains(one)) {
        return Err(format!("'{unknown}' is none of {}", known.join(", ")));
    }
    all.retain(|one| named.contains(&name(one)));
    Ok(())
}

/// Traces three runs in a folder, as `run` does to the path that it is given; the trace whose run took the middle time.
/// One run before them is thrown away: a virtual machine that was idle is given its memory again while a program uses it.
///
/// # Errors
/// Those of `run`.
pub fn middle_trace<E>(folder: &Path, mut run: impl FnMut(&Path) -> Result<(), E>) -> Result<PathBuf, E> {
    let mut make = |at: usize| {
        let trace = folder.join(format!("base-{at}.trace"));
        let begun = Instant::now();
        run(&trace)?;
        Ok((begun.elapsed().as_secs_f64(), trace))
    };
    make(0)?;
    let mut all = [make(1)?, make(2)?, make(3)?];
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    let [_, (_, middle), _] = all;
    Ok(middle)
}

/// The mean.
pub fn mean(values: &[f64]) -> f64 {
    if values.is_empty() { f64::NAN } else { values.iter().sum::<f64>() / values.len() as f64 }
}

/// The median; of none it is not a number.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => sorted[n / 2],
        n => 0.5 * (sorted[n / 2 - 1] + sorted[n / 2]),
    }
}

/// A range in which the true median lies with a confidence of 90 % or more, if there are values enough for that (5):
/// between two of the sorted values, by the binomial distribution of how many lie below the median.
pub fn median_range(values: &[f64]) -> (f64, f64) {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len();
    let (mut below, mut ways, mut at) = (0.0, 0.5f64.powi(n as i32), 0);
    while at < n / 2 && below + ways <= 0.05 {
        below += ways;
        ways *= (n - at) as f64 / (at + 1) as f64;
        at += 1;
    }
    let at = at.saturating_sub(1);
    match n {
        0 => (f64::NAN, f64::NAN),
        n => (sorted[at], sorted[n - 1 - at]),
    }
}

/// The least.
pub fn least(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}

/// The coefficient of variation.
pub fn variation(values: &[f64]) -> f64 {
    let m = mean(values);
    let squares: f64 = values.iter().map(|v| (v - m) * (v - m)).sum();
    (squares / (values.len().max(2) - 1) as f64).sqrt() / m
}

/// The numbers in a text.
pub fn numbers(text: &str) -> Vec<f64> {
    text.split_whitespace().filter_map(|word| word.parse().ok()).collect()
}

/// A program with its arguments.
#[derive(Clone, Debug)]
pub struct Command {
    /// The MPI that it was built with.
    pub mpi: Mpi,
    /// How many ranks.
    pub ranks: u32,
    /// Its file.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<String>,
}

/// A folder for images and reports, and launches of hosts that use it.
pub struct Split {
    folder: TempDir,
    launches: Cell<usize>,
}

impl Split {
    /// An empty folder in `place`.
    ///
    /// # Panics
    /// If none can be made there.
    pub fn new_in(place: &Path) -> Split {
        let folder = tempfile::tempdir_in(place).expect("a folder for images can be made");
        Split { folder, launches: Cell::new(0) }
    }

    /// An empty folder with the other temporary files.
    pub fn new() -> Split {
        Split::new_in(&std::env::temp_dir())
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    fn next(&self) -> PathBuf {
        let number = self.launches.replace(self.launches.get() + 1);
        let path = self.folder.path().join(format!("launch-{number}"));
        fs::create_dir(&path).expect("the folder can be written to");
        path
    }

    /// Runs a program plainly.
    pub fn plain(&self, command: &Command) -> Outcome {
        let mut launch = command.mpi.launcher(command.ranks);
        launch.arg(&command.program).args(&command.args).current_dir(self.path());
        finished(&mut launch)
    }

    /// Runs a program split, with images at `cuts`. Returns what it left, the reports of its ranks, and the folder of images.
    pub fn run(&self, command: &Command, cuts: &[Cut]) -> (Outcome, Vec<CheckpointReport>, PathBuf) {
        let images = self.next();
        let program = Program { path: command.program.clone(), args: command.args.clone() };
        let job = Job::Checkpoint {
            program,
            cuts: cuts.to_vec(),
            recorded: Vec::new(),
            collectives: false,
            images: images.clone(),
            patience_s: 15.0,
            cpu: None,
        };
        let outcome = self.host(command.mpi, command.ranks, &job);
        let reports = reports(&images, command.ranks);
        (outcome, reports, images)
    }

    /// Restarts images. Returns what the launch left and the reports of its ranks.
    pub fn replay(&self, mpi: Mpi, ranks: u32, images: &Path, steps: Vec<Step>) -> (Outcome, Vec<ReplayReport>) {
        self.replay_within(mpi, ranks, images, steps, None)
    }

    /// The same, with so much time.
    pub fn replay_within(
        &self,
        mpi: Mpi,
        ranks: u32,
        images: &Path,
        steps: Vec<Step>,
        within: Option<Within>,
    ) -> (Outcome, Vec<ReplayReport>) {
        let out = self.next();
        let job = Job::Replay {
            images: images.into(),
            steps,
            collectives: false,
            made: Vec::new(),
            out: out.clone(),
            within,
        };
        let outcome = self.host(mpi, ranks, &job);
        let reports = reports(&out, ranks);
        let _ = fs::remove_dir_all(out);
        (outcome, reports)
    }

    fn host(&self, mpi: Mpi, ranks: u32, job: &Job) -> Outcome {
        let file = self.path().join(format!("job-{}.json", self.launches.get()));
        fs::write(&file, serde_json::to_string(job).expect("a job is plain data")).expect("it can be written");
        let mut launch = mpi.launcher(ranks);
        finished(launch.arg(phasecast()).arg("host").arg(file).current_dir(self.path()))
    }
}

impl Default for Split {
    fn default() -> Split {
        Split::new()
    }
}

fn finished(launch: &mut std::process::Command) -> Outcome {
    match start(launch).finish_within(LIMIT) {
        Ok(outcome) => outcome.succeeded(),
        Err(left) => panic!("{launch:?} did not end within {LIMIT:?}: {left:?}"),
    }
}

fn reports<T: DeserializeOwned>(folder: &Path, ranks: u32) -> Vec<T> {
    (0..ranks).map(|rank| report(folder, rank).expect("each rank leaves a report")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_lies_between_the_values_that_the_binomial_distribution_says() {
        let to = |n: u32| median_range(&(1..=n).map(f64::from).collect::<Vec<_>>());
        // Of 21 values at most 6 lie below the median with 3.9 %, at most 7 with 9.5 %.
        assert_eq!((to(21), to(5), to(1)), ((7.0, 15.0), (1.0, 5.0), (1.0, 1.0)));
        assert!(median_range(&[]).0.is_nan());
    }
}
