//! `skeleton.json`: what a skeleton stands for, in the folder with its source.
use super::calibrate::Rates;
use super::error::ProgramError;
use crate::logical::Counted;
use phasecast_prediction::Machine;
use phasecast_trace::Counters;
use serde::{Deserialize, Serialize};
use std::fmt::Write;
use std::path::Path;

/// Version of the format.
pub const VERSION: u32 = 1;
/// The name of the file.
pub const FILE: &str = "skeleton.json";
/// A run of a skeleton takes at least so long on the base, in seconds: what is shorter says little of processors that are
/// held to a share of their time by the tenth of a second.
const LONG_S: f64 = 0.5;
/// Rounds of a run at most.
const MOST_ROUNDS: u64 = 10_000;
/// The longest file that is read.
const MOST_BYTES: u64 = 16 << 20;

/// What a skeleton stands for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// [`VERSION`].
    pub version: u32,
    /// The traced program with its arguments.
    pub program: String,
    /// Its ranks.
    pub ranks: u32,
    /// The topology in words, if one was recognised.
    pub topology: Option<String>,
    /// The loop nest of each class of ranks, in words.
    pub nests: Vec<String>,
    /// The machine where it was traced.
    pub base: Machine,
    /// Time of the traced run, `MPI_Init` to `MPI_Finalize`, in seconds.
    pub base_run_s: f64,
    /// Time of the traced run as the skeleton's steps have it, in seconds: the mean over ranks.
    pub steps_s: f64,
    /// The ratio that was asked for.
    pub ratio_asked: f64,
    /// The ratio that is expected on the base.
    pub ratio: f64,
    /// The greatest ratio with whole iterations of the main loop.
    pub ratio_most: f64,
    /// How fast the base does what computation is made of.
    pub rates: Rates,
    /// By what it was decided how much of each.
    #[serde(default)]
    pub computation: Basis,
    /// The file of the source, and its SHA-256 in hexadecimal digits.
    pub source: String,
    /// The SHA-256 of the source.
    pub sha256: String,
    /// The parts that are timed apart; the first is what lies outside loops.
    pub parts: Vec<PartEntry>,
    /// What is left out, in sentences.
    pub left_out: Vec<String>,
    /// Runs of the skeleton on the base.
    pub runs: Vec<Run>,
    /// Runs of the program between runs of the skeleton, there. Empty if it was not run in turn with it.
    #[serde(default)]
    pub turns: Vec<Turn>,
}

/// By what it was decided what computation is made of.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// The mix alone.
    #[default]
    Mix,
    /// What was counted where the trace was recorded; the mix for what was not counted.
    Counters {
        /// By which counters.
        counters: Counters,
        /// Share of the computing time that was counted, 0 to 1.
        share: f64,
    },
}

impl Basis {
    /// That of a logical trace.
    pub fn of(counted: Option<&Counted>) -> Basis {
        let Some(Counted { counters, share }) = counted else { return Basis::Mix };
        Basis::Counters { counters: counters.clone(), share: *share }
    }

    /// In words.
    pub fn words(&self) -> String {
        match self {
            Basis::Mix => "a mix of arithmetic and memory traffic: the trace has no counts".into(),
            Basis::Counters { counters, share } => {
                format!("what was counted ({}) in {:.1} % of the computing time", counters.names(), 100.0 * share)
            }
        }
    }
}

/// A part of a skeleton.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PartEntry {
    /// What it is, in words.
    pub name: String,
    /// Ranks that carry it out, in words.
    pub ranks: String,
    /// Iterations in the program.
    pub full: u64,
    /// Iterations in the skeleton.
    pub count: u64,
    /// Its time in the traced run on one rank, in seconds.
    pub base_s: f64,
}

/// A run of the program between two runs of its skeleton.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Turn {
    /// Time of the program without start and end of MPI, in seconds: the difference of two launches, so below 0 where the
    /// program takes less than launches differ by.
    pub program_s: f64,
    /// What the skeleton stood for, in seconds: the mean of both runs.
    pub stands_for_s: f64,
}

/// A run of a skeleton.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// From launch to the end of the launcher, in seconds.
    pub wall_s: f64,
    /// How often the skeleton was done, one round after the other; the other times are those of one round.
    #[serde(default = "one")]
    pub rounds: u64,
    /// From the start of MPI to the first round, without that of messages alone, in seconds: buffers are made, and what
    /// is computed in; 0 if it is not known.
    #[serde(default)]
    pub prepare_s: f64,
    /// A round of messages alone before these, in seconds; 0 if there was none.
    #[serde(default)]
    pub warm_s: f64,
    /// The skeleton itself, without start and end of MPI, in seconds.
    pub run_s: f64,
    /// What it stands for, on the slowest rank, in seconds.
    pub stands_for_s: f64,
    /// What each part stands for on that rank, in seconds.
    pub parts_s: Vec<f64>,
    /// The MPI library that it ran with.
    pub mpi: String,
}

fn one() -> u64 {
    1
}

impl Turn {
    /// That of a run of the program of so long from launch to the end of the launcher, and of the skeleton's before and after
    /// it: a launch takes as long to start and end in all three.
    pub fn of(before: &Run, wall_s: f64, after: &Run) -> Turn {
        let mean = |of: fn(&Run) -> f64| 0.5 * (of(before) + of(after));
        Turn { program_s: wall_s - mean(Run::launch_s), stands_for_s: mean(|run| run.stands_for_s) }
    }
}

impl Run {
    /// Time of all rounds, in seconds.
    pub fn all_rounds_s(&self) -> f64 {
        self.rounds as f64 * self.run_s
    }

    /// Start and end of the launch and of MPI, in seconds.
    pub fn launch_s(&self) -> f64 {
        (self.wall_s - self.prepare_s - self.warm_s - self.all_rounds_s()).max(0.0)
    }

    /// Reads the line of JSON that a skeleton leaves.
    pub fn parse(text: &str, wall_s: f64) -> Option<Run> {
        let line: serde_json::Value = serde_json::from_str(text.trim()).ok()?;
        let number = |of: &serde_json::Value, key: &str| of[key].as_f64().filter(|n| (0.0..1e12).contains(n));
        let parts = line["parts"].as_array()?.iter().map(|part| number(part, "stands_for_s")).collect::<Option<_>>()?;
        Some(Run {
            wall_s,
            rounds: line["rounds"].as_u64().unwrap_or(1).clamp(1, MOST_ROUNDS),
            prepare_s: number(&line, "prepare_s").unwrap_or(0.0),
            warm_s: number(&line, "warm_s").unwrap_or(0.0),
            run_s: number(&line, "run_s")?,
            stands_for_s: number(&line, "stands_for_s")?,
            parts_s: parts,
            mpi: line["mpi"].as_str().unwrap_or_default().trim().to_owned(),
        })
    }
}

impl Manifest {
    /// How often a run is to do the skeleton, one round after the other, so that it takes [`LONG_S`] on the base.
    pub fn rounds(&self) -> u64 {
        let one_s = self.steps_s / self.ratio.max(1.0);
        ((LONG_S / one_s.max(1e-9)).ceil() as u64).min(MOST_ROUNDS)
    }

    /// Time of the program on the base without start and end of MPI, in seconds: the mean of its runs in turn with the
    /// skeleton, else the traced run's.
    pub fn base_s(&self) -> f64 {
        match self.turns.len() {
            0 => self.base_run_s,
            turns => self.turns.iter().map(|turn| turn.program_s).sum::<f64>() / turns as f64,
        }
    }

    /// Whether the runs in turn tell how long the program takes: by their launches alone, as turns that were chosen by their
    /// outcome would be biased.
    pub fn turns_tell(&self) -> bool {
        let apart =
            self.runs.as_chunks::<2>().0.iter().map(|[before, after]| (before.launch_s() - after.launch_s()).powi(2));
        let turns = self.turns.len() as f64;
        // Launches scatter by half of the mean square of these; one of the program less the mean of two by 3/2 of that.
        let error_s = (0.75 * apart.sum::<f64>() / turns / turns).sqrt();
        let stands_for_s = self.turns.iter().map(|turn| turn.stands_for_s).sum::<f64>() / turns;
        2.0 * error_s < stands_for_s && self.base_s() > 0.0
    }

    /// The program's time on the base over what the skeleton stood for, in each turn, else with each run of the skeleton:
    /// what it cannot imitate makes it differ from 1.
    pub fn factors(&self) -> Vec<f64> {
        let turns = self.turns.iter().map(|turn| (turn.program_s, turn.stands_for_s));
        let alone = self.runs.iter().filter(|_| self.turns.is_empty()).map(|run| (self.base_run_s, run.stands_for_s));
        // Turns below 0 count too: without them the mean would be too long.
        turns
            .chain(alone)
            .filter(|&(_, skeleton_s)| skeleton_s > 0.0)
            .map(|(program_s, skeleton_s)| program_s / skeleton_s)
            .collect()
    }

    /// As JSON.
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        text
    }

    /// As JSON, for a skeleton's folder.
    ///
    /// # Errors
    /// If it is longer than what [`Manifest::read`] takes.
    pub fn to_file(&self, folder: &Path) -> Result<String, ProgramError> {
        let text = self.to_json();
        let bytes = text.len() as u64;
        if bytes > MOST_BYTES {
            return Err(ProgramError::TooLarge { path: folder.join(FILE), bytes, most: MOST_BYTES });
        }
        Ok(text)
    }

    /// Reads the manifest of a skeleton's folder.
    ///
    /// # Errors
    /// If there is none, or it is not one that this version can read.
    pub fn read(folder: &Path) -> Result<Manifest, ProgramError> {
        let path = folder.join(FILE);
        let metadata = std::fs::metadata(&path).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory => {
                ProgramError::Foreign { path: folder.to_owned(), what: format!("there is no {FILE} in it") }
            }
            _ => ProgramError::io(&path, "read")(error),
        })?;
        if metadata.len() > MOST_BYTES {
            return Err(ProgramError::Foreign { path, what: format!("it has {} bytes", metadata.len()) });
        }
        Manifest::parse(&path, &std::fs::read(&path).map_err(ProgramError::io(&path, "read"))?)
    }

    /// Reads a manifest from the bytes of a file; `path` is for messages.
    ///
    /// # Errors
    /// As [`Manifest::read`].
    pub fn parse(path: &Path, bytes: &[u8]) -> Result<Manifest, ProgramError> {
        let foreign = |what: String| ProgramError::Foreign { path: path.to_owned(), what };
        let value: serde_json::Value =
            serde_json::from_slice(bytes).map_err(|error| foreign(format!("it is not JSON ({error})")))?;
        match value.get("version").and_then(serde_json::Value::as_u64) {
            Some(version) if version == u64::from(VERSION) => {}
            Some(found) => return Err(ProgramError::Version { path: path.to_owned(), found, version: VERSION }),
            None => return Err(foreign("it has no version".into())),
        }
        let manifest: Manifest = serde_json::from_value(value).map_err(|error| foreign(error.to_string()))?;
        manifest.check().map_err(foreign)?;
        Ok(manifest)
    }

    fn check(&self) -> Result<(), String> {
        if self.ranks == 0 || self.ranks > 1 << 20 {
            return Err(format!("it has {} ranks", self.ranks));
        }
        let times = [self.base_run_s, self.steps_s].into_iter().chain(self.parts.iter().map(|part| part.base_s));
        let of_runs =
            self.runs.iter().flat_map(|run| [run.wall_s, run.prepare_s, run.warm_s, run.run_s, run.stands_for_s]);
        let of_turns = self.turns.iter().flat_map(|turn| [turn.program_s.abs(), turn.stands_for_s]);
        if let Some(seconds) = times.chain(of_runs).chain(of_turns).find(|s| !(0.0..1e12).contains(s)) {
            return Err(format!("a time is {seconds} seconds"));
        }
        if [self.ratio, self.ratio_asked, self.ratio_most].iter().any(|ratio| !(0.0..1e15).contains(ratio)) {
            return Err("a ratio is not one".into());
        }
        if self.source.contains('/') || self.source.starts_with('.') || !self.source.ends_with(".c") {
            return Err("its source is not a file of C in its folder".into());
        }
        if self.parts.is_empty() || self.parts.len() > 1 << 20 {
            return Err(format!("it has {} parts", self.parts.len()));
        }
        Ok(())
    }

    /// The bytes of its source, if they are what was written.
    ///
    /// # Errors
    /// If it cannot be read, or was changed and `changed` is not allowed.
    pub fn source(&self, folder: &Path, changed: bool) -> Result<Vec<u8>, ProgramError> {
        let path = folder.join(&self.source);
        let bytes = std::fs::read(&path).map_err(ProgramError::io(&path, "read"))?;
        if !changed && digest(&bytes) != self.sha256 {
            return Err(ProgramError::Changed { path });
        }
        Ok(bytes)
    }
}

/// SHA-256 in hexadecimal digits.
pub fn digest(bytes: &[u8]) -> String {
    use sha2::Digest;
    let mut text = String::new();
    for byte in sha2::Sha256::digest(bytes) {
        let _ = write!(text, "{byte:02x}");
    }
    text
}
