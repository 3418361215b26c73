//! The experiment of `phasecast stability`: the program as it is, and again with delays before chosen calls.
use crate::base::trace_of;
use crate::commands::stability::against;
use crate::exit::Refusal;
use crate::launch::Launcher;
use crate::output::{clean, note, shell};
use crate::scratch::Scratch;
use crate::trace_launch::traced_command;
use anyhow::{Context, Result, anyhow, bail};
use phasecast_trace::Trace;
use phasecast_trace::delays::{self, Delay};
use phasecast_transform::stability::{Candidate, Comparison, Names, Reason, Regions, Tape, candidates, regions::Ends};
use std::ffi::OsString;
use std::time::{Duration, Instant};

/// The shortest delay where messages race, and the longest, in seconds. The first is far above what a scheduler does to
/// a process by chance.
const DELAYS_S: (f64, f64) = (0.05, 2.0);
/// Where messages race: the delay in blocks before them. One block would make good for the whole of another's.
const BLOCKS: f64 = 2.0;
/// Where nothing races: the share of the block before.
const SHARE: f64 = 0.5;
/// In all, delays at a place take at most so many seconds, or so many run times.
const MOST: (f64, f64) = (2.0, 1.0);
/// A perturbed run has hung that takes so many times as long as the unperturbed one and all its delays together...
const TIMES: f64 = 4.0;
/// ... and this much longer, in seconds: for the start of the ranks.
const START_S: f64 = 30.0;
/// Blocks below this share of the run are no places to delay, unless messages race there.
const SMALL: f64 = 1e-4;

/// A perturbed run.
pub struct Run {
    /// Whether each factor was set.
    pub levels: Vec<bool>,
    /// How long it took, in seconds.
    pub time_s: f64,
    /// How it compares with the unperturbed run.
    pub compared: (Comparison, Option<Regions>),
    /// What became of it if it did not come to its end.
    pub broken: Option<String>,
}

/// A program with its unperturbed run.
pub struct Experiment {
    launcher: Launcher,
    ranks: u32,
    command: Vec<String>,
    scratch: Scratch,
    trace: Trace,
    /// How long the unperturbed run took, start and end included.
    wall_s: f64,
    tape: Tape,
    names: Names,
    ends: Option<Option<Ends>>,
    factors: Vec<(Candidate, Delay)>,
}

impl Experiment {
    /// Runs the program as it is.
    ///
    /// # Errors
    /// If it fails, or is not traced whole.
    pub fn start(launcher: Launcher, ranks: u32, command: &[String]) -> Result<Experiment> {
        let scratch = Scratch::here()?;
        note(&format!("unperturbed run: {launcher} {}", shell(command)));
        let folder = scratch.path().join("reference.trace");
        let begun = Instant::now();
        let ended = launch(&launcher, &traced_command(&folder, command, None), None)?;
        if let Some(how) = ended {
            bail!("the program {how}; make it run under `{launcher}` first");
        }
        let wall_s = begun.elapsed().as_secs_f64();
        let trace = trace_of("the unperturbed run", &folder, ranks)?;
        let mut names = Names::default();
        let tape = Tape::read(&trace, &mut names)?;
        let command = command.to_vec();
        Ok(Experiment {
            launcher,
            ranks,
            command,
            scratch,
            trace,
            wall_s,
            tape,
            names,
            ends: None,
            factors: Vec::new(),
        })
    }

    /// What events and places are called.
    pub fn names(&self) -> &Names {
        &self.names
    }

    /// The unperturbed run.
    pub fn reference(&self) -> &Tape {
        &self.tape
    }

    /// The factors, with the delays that they stand for.
    pub fn factors(&self) -> &[(Candidate, Delay)] {
        &self.factors
    }

    /// Chooses places: those that are asked for, else the best ones, at most so many.
    ///
    /// # Errors
    /// If the program never calls MPI from a place that is asked for, or from any that can be found again.
    pub fn choose(&self, wanted: &[(u32, String)], most: usize) -> Result<Vec<Candidate>> {
        let all = candidates(&self.trace)?;
        let find = |(rank, site): &(u32, String)| {
            let found = all.iter().find(|candidate| candidate.rank == *rank && candidate.site == *site);
            let what = format!("rank {rank} never calls MPI from {site}. `phasecast dump` of a trace names the sites.");
            found.cloned().ok_or_else(|| Refusal::Input(what).into())
        };
        if !wanted.is_empty() {
            return wanted.iter().map(find).collect();
        }
        let small = SMALL * self.trace.run_time().seconds();
        let worth = |candidate: &&Candidate| candidate.reason != Reason::Block || candidate.blocks_s >= small;
        let chosen: Vec<Candidate> = all.iter().filter(worth).take(most).cloned().collect();
        if chosen.is_empty() {
            let what = "no call of MPI can be found again in another run: the trace names no module that it is in.";
            bail!(Refusal::Input(what.into()));
        }
        Ok(chosen)
    }

    /// Fixes the delays: so many seconds and this share of the block, or what fits the places.
    ///
    /// # Errors
    /// If a place is in no module.
    pub fn delay(&mut self, chosen: Vec<Candidate>, fixed: Option<f64>, share: Option<f64>) -> Result<()> {
        let races = |candidate: &&Candidate| candidate.reason != Reason::Block;
        let longest = chosen.iter().filter(races).map(Candidate::block_s).fold(0.0, f64::max);
        let raced = (BLOCKS * longest).clamp(DELAYS_S.0, DELAYS_S.1);
        let most = MOST.0.max(MOST.1 * self.trace.run_time().seconds());
        for candidate in chosen {
            let (fixed, share) = match (fixed, share) {
                (None, None) if candidate.reason == Reason::Block => (0.0, SHARE),
                (None, None) => (raced, 0.0),
                (fixed, share) => (fixed.unwrap_or(0.0), share.unwrap_or(0.0)),
            };
            let delay = candidate.delay(fixed, share, most);
            let delay = delay.ok_or_else(|| anyhow!("the place {} is in no module", candidate.site))?;
            self.factors.push((candidate, delay));
        }
        Ok(())
    }

    /// Runs the program with some of the delays. One that works without them, and with them fails or hangs, is one that does
    /// not do the same.
    ///
    /// # Errors
    /// If it cannot be started or is not traced whole, or the user interrupts.
    pub fn run(&mut self, levels: &[bool]) -> Result<Run> {
        let folder = self.scratch.path().join("run.trace");
        let file = self.scratch.path().join("delays.txt");
        let factors = || self.factors.iter().zip(levels).filter(|(_, set)| **set).map(|(factor, _)| factor);
        let set: Vec<Delay> = factors().map(|(_, delay)| delay.clone()).collect();
        std::fs::write(&file, delays::to_text(&set)).with_context(|| format!("cannot write {}", file.display()))?;
        let delayed: f64 = factors().map(|(candidate, delay)| longest_s(candidate, delay)).sum();
        let limit = Duration::try_from_secs_f64(START_S + TIMES * (self.wall_s + delayed)).unwrap_or(Duration::MAX);
        let begun = Instant::now();
        let ended = launch(&self.launcher, &traced_command(&folder, &self.command, Some(&file)), Some(limit))?;
        let run = if let Some(how) = ended {
            let at = |delay: &Delay| format!("{} on rank {}", delay.site(), delay.rank);
            let places: Vec<String> = set.iter().map(at).collect();
            let places = match places.as_slice() {
                [] => "run again without delays".into(),
                places => format!("with delays before {}", clean(&places.join(", "))),
            };
            let broken = Some(format!("{places} it {how}"));
            let compared = (Comparison::broken(&self.tape), None);
            Run { levels: levels.to_vec(), time_s: begun.elapsed().as_secs_f64(), compared, broken }
        } else {
            let trace = trace_of("the perturbed run", &folder, self.ranks)?;
            let time_s = trace.run_time().seconds();
            let compared = against(&mut self.names, (&self.trace, &self.tape), &mut self.ends, &trace)?;
            Run { levels: levels.to_vec(), time_s, compared, broken: None }
        };
        if folder.exists() {
            std::fs::remove_dir_all(&folder).with_context(|| format!("cannot remove {}", folder.display()))?;
        }
        Ok(run)
    }
}

/// All delays at a place together, at most, in seconds.
fn longest_s(candidate: &Candidate, delay: &Delay) -> f64 {
    let calls = candidate.calls.div_ceil(delay.every.max(1));
    calls as f64 * delay.fixed_ns as f64 * 1e-9 + delay.share * candidate.blocks_s
}

/// Runs `command` to its end, or ends it after `limit`: how it came to no good end, if so.
fn launch(launcher: &Launcher, command: &[OsString], limit: Option<Duration>) -> Result<Option<String>> {
    let mut launch = launcher.start(command)?;
    let Some((status, _)) = launch.wait_for(limit.unwrap_or(Duration::MAX))? else {
        launch.stop(&[]);
        return Ok(Some(format!("hung: it was ended after {:.0} s", limit.unwrap_or_default().as_secs_f64())));
    };
    Ok((!status.success()).then(|| format!("failed ({status})")))
}
