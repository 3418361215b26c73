//! One launch of hosts that restarts images one after the other: the job for them, what they report, and the watch over
//! their progress.
use crate::exit::Refusal;
use crate::launch::{Launch, Launcher, POLL, interrupted, other_number};
use crate::restart::held::{held, piece_times};
use crate::restart::manifest::Images;
use crate::restart::recorded::crowded;
use crate::restart::windows::Window;
use crate::restart::{plan, waiting};
use crate::signature::Signature;
use anyhow::{Context, Result, bail};
use phasecast_analyzer::{Analysis, Order, Piece, Restart};
use phasecast_checkpoint::job::{Job, ReplayReport, Step, StepReport, Within, begun_file};
use phasecast_trace::Nanos;
use phasecast_trace::model::boot_id;
use serde::de::DeserializeOwned;
use std::cell::Cell;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A launch in which nothing happens for so long is ended, or for [`SLOWER`] times what a step is likely to take if that is
/// more.
const PATIENCE: Duration = Duration::from_secs(25);
/// So many times slower than expected a target may be before a step counts as hung.
const SLOWER: f64 = 20.0;
/// So long a launcher may take to end all ranks after one has complained and ended.
const COMPLAINT: Duration = Duration::from_secs(5);

/// What a launch showed.
#[derive(Clone, Debug, Default)]
pub struct Replayed {
    /// The restarts, one for each step that was made.
    pub restarts: Vec<Restart>,
    /// For each rank, from its start to the end of MPI_Init, in seconds.
    pub init_s: Vec<f64>,
    /// For each rank, how long MPI_Finalize took, in seconds.
    pub finalize_s: Vec<f64>,
    /// From the launch to the start of the first host, in seconds, where clocks can tell.
    pub startup_s: Option<f64>,
    /// From the end of the last host's MPI_Finalize to the end of the launcher, the same.
    pub teardown_s: Option<f64>,
    /// Time spent restarting, warming up and measuring, in seconds, of the rank where it is the most, added up.
    pub restart_s: f64,
    /// See `restart_s`.
    pub warmup_s: f64,
    /// See `restart_s`.
    pub measured_s: f64,
    /// Of the time measured, what the fence has cost, in seconds. The restarts' times are without it.
    pub held_s: f64,
    /// How many processors a rank was told of in the base run, and how many it has here, where that differs.
    pub processors: Option<[u32; 2]>,
    /// See [`crowded`]; of images that take what was recorded.
    pub crowded: Option<[u32; 2]>,
    /// The MPI library.
    pub mpi: String,
}

/// How images are restarted: where they are, with what, and along which analysis.
pub struct Replayer<'a> {
    /// The signature, a packed set of images, or a folder of them.
    pub source: &'a Path,
    /// The launcher.
    pub launcher: &'a Launcher,
    /// What the signature says of the images.
    pub images: &'a Images,
    /// The analysis.
    pub analysis: &'a Analysis,
    /// A folder that all ranks reach.
    pub scratch: &'a Path,
    /// Launches so far.
    launches: Cell<usize>,
    /// Whether any rank has finished a step yet.
    stepped: Cell<bool>,
    /// Whether any rank has been started.
    begun: Cell<bool>,
    hung: Cell<bool>,
}

impl<'a> Replayer<'a> {
    /// A replayer of a signature whose images are at `source`.
    pub fn new(
        signature: &'a Signature,
        images: &'a Images,
        source: &'a Path,
        launcher: &'a Launcher,
        scratch: &'a Path,
    ) -> Replayer<'a> {
        let [stepped, begun, hung] = [const { Cell::new(false) }; 3];
        let (launches, analysis) = (Cell::new(0), &signature.analysis);
        Replayer { source, launcher, images, analysis, scratch, launches, stepped, begun, hung }
    }

    /// Restarts windows in this order in one launch, or as much of them as there is time for. `base_s` is the base time of the
    /// longest of them as planned, `told` hears of finished steps.
    ///
    /// # Errors
    /// If the launch fails or hangs, with a diagnosis; then its processes are ended.
    pub fn run(&self, windows: &[Window], base_s: f64, within: Option<Within>, told: &dyn Fn(u64)) -> Result<Replayed> {
        let number = self.launches.replace(self.launches.get() + 1);
        let out = self.scratch.join(format!("replay-{number}"));
        fs::create_dir(&out).with_context(|| format!("cannot make the folder {}", out.display()))?;
        let steps = windows.iter().map(|w| self.step(w)).collect::<Result<Vec<Step>>>()?;
        let source = std::path::absolute(self.source)?;
        let collectives = self.analysis.order == Order::Collectives;
        let init_s = self.images.edges.iter().map(|edge| edge.init_s).fold(0.0, f64::max);
        let longer = Duration::from_secs_f64(within.as_ref().map_or(0.0, |within| within.longest_s.clamp(0.0, 1e6)));
        let limits = [init_s + base_s, base_s].map(|base_s| self.patience(base_s) + longer);
        let least = within.as_ref().map_or(windows.len(), |within| within.least);
        let out_path = std::path::absolute(&out)?;
        let made = self.images.made.iter().cloned().collect();
        let job = Job::Replay { images: source, steps: steps.clone(), collectives, made, out: out_path, within };
        let mut hosts = Hosts::start(self.launcher, &job, &self.scratch.join(format!("replay-{number}.json")), &[])?;
        let launched_ns = hosts.launch.started_ns();
        let ended_ns = self.watch(&mut hosts, &out, &steps, limits, told);
        let begun = (0..self.analysis.ranks).any(|rank| out.join(begun_file(rank)).exists());
        self.begun.set(self.begun() || begun);
        let ended_ns = ended_ns?;
        let said = hosts.launch.said();
        let reports = (0..self.analysis.ranks).map(|rank| read_report(&out, rank, "report", &said));
        let reports = reports.collect::<Result<Vec<_>>>()?;
        self.gather(windows, least, &reports, [launched_ns, ended_ns])
    }

    /// How long a step of this base time may take: its image is read first.
    fn patience(&self, base_s: f64) -> Duration {
        let reading_s = plan::restart_s(self.images.needs.rank_bytes, self.analysis.ranks);
        PATIENCE.max(Duration::from_secs_f64((SLOWER * (base_s + reading_s)).clamp(0.0, 1e6)))
    }

    /// Whether a restart has succeeded on any rank.
    pub fn stepped(&self) -> bool {
        self.stepped.get()
    }

    /// Whether a launcher has started any rank.
    pub fn begun(&self) -> bool {
        self.begun.get()
    }

    /// Whether a launch stood still: another would, too.
    pub fn hung(&self) -> bool {
        self.hung.get()
    }

    /// The step that measures a window: every rank's positions at the ends of its pieces. A rank is at the end of pieces in
    /// which it has no events when it starts.
    fn step(&self, window: &Window) -> Result<Step> {
        let cut =
            self.images.cut_of(window).with_context(|| format!("there is no image after piece {}", window.after))?;
        let ends = |pieces: &Vec<Piece>| pieces[window.run()].iter().map(|piece| piece.end).collect();
        Ok(Step { cut: cut.id, watch: self.analysis.pieces.iter().map(ends).collect() })
    }

    /// Waits for the end of the launch; when it was, on the monotonic clock in ns. `limits` are how long the first step and
    /// any further one may take.
    fn watch(
        &self,
        hosts: &mut Hosts,
        out: &Path,
        steps: &[Step],
        [first, further]: [Duration; 2],
        told: &dyn Fn(u64),
    ) -> Result<u64> {
        let (mut seen, mut since) = (0, Instant::now());
        loop {
            let ended = hosts.launch.ended()?;
            let done: Vec<usize> = (0..self.analysis.ranks).map(|rank| progress(out, rank)).collect();
            let sum: usize = done.iter().sum();
            if sum > seen {
                (seen, since) = (sum, Instant::now());
                self.stepped.set(true);
                told(done.iter().copied().min().unwrap_or(0) as u64);
            }
            if let Some((status, at_ns)) = ended {
                if status.success() {
                    return Ok(at_ns);
                }
                let said = hosts.launch.said();
                let why = if !said.is_empty() {
                    said
                } else if (0..self.analysis.ranks).any(|rank| out.join(begun_file(rank)).exists()) {
                    diagnosis(&done, steps)
                } else {
                    "no rank has begun; what the launcher said stands above".into()
                };
                bail!("the restart failed ({status}): {why}");
            }
            if interrupted() {
                hosts.stop();
                bail!("interrupted; all processes were ended");
            }
            if let Some(said) = hosts.given_up() {
                hosts.stop();
                bail!("the restart failed: {said}");
            }
            let limit = if seen == 0 { first } else { further };
            if since.elapsed() > limit {
                let stands = waiting::words(&waiting::stands(&hosts.pids(), out, self.analysis.ranks));
                hosts.stop();
                self.hung.set(true);
                let said = hosts.launch.said();
                let said = if said.is_empty() { said } else { format!(" ({said})") };
                let limit = limit.as_secs();
                bail!("the restart hung for {limit} s and was ended: {}{stands}{said}", diagnosis(&done, steps));
            }
            hosts.launch.sleep(POLL);
        }
    }

    fn gather(
        &self,
        windows: &[Window],
        least: usize,
        reports: &[ReplayReport],
        [launched, ended]: [u64; 2],
    ) -> Result<Replayed> {
        let mut replayed = Replayed {
            processors: reports.iter().filter_map(|r| r.processors).find(|[there, here]| there != here),
            crowded: if self.images.recorded { crowded(reports) } else { None },
            init_s: reports.iter().map(|r| r.init_s).collect(),
            finalize_s: reports.iter().map(|r| r.end.map_or(0.0, |end| end.finalize_s)).collect(),
            mpi: reports.first().map_or_else(String::new, |r| r.mpi.clone()),
            ..Replayed::default()
        };
        let made = reports.first().map_or(0, |report| report.steps.len());
        for (rank, report) in reports.iter().enumerate() {
            if report.size != self.analysis.ranks {
                let mpi = format!("the MPI that the hosts found ({})", report.mpi);
                return Err(Refusal::Unfit(other_number(report.size, self.analysis.ranks, &mpi)).into());
            }
            let finished = report.steps.iter().filter(|step| step.finished).count();
            if finished != made || report.steps.len() != made || !(least..=windows.len()).contains(&made) {
                bail!("rank {rank} finished {finished} of {} restarts", windows.len());
            }
        }
        for (at, window) in windows.iter().take(made).enumerate() {
            let ranks: Vec<&StepReport> = reports.iter().map(|r| &r.steps[at]).collect();
            let pieces = ranks[0].times_ns.len();
            let fits = (window.warm + 1..=window.run().len()).contains(&pieces);
            if !fits || ranks.iter().any(|report| report.times_ns.len() != pieces) {
                bail!("the times of restart {at} are not as many as were asked for");
            }
            let most = |of: &dyn Fn(&StepReport) -> f64| ranks.iter().map(|report| of(report)).fold(0.0, f64::max);
            // What a rank has reached after so many pieces.
            let reached = |report: &StepReport, pieces: usize| match pieces.checked_sub(1) {
                Some(last) => report.times_ns[last].max(report.start_ns),
                None => report.start_ns,
            };
            let span = |report: &StepReport, pieces: std::ops::Range<usize>| {
                Nanos(reached(report, pieces.end).saturating_sub(reached(report, pieces.start))).seconds()
            };
            replayed.restart_s += most(&|report| report.restart_s);
            replayed.warmup_s += most(&|report| span(report, 0..window.warm));
            replayed.measured_s += most(&|report| span(report, window.warm..pieces));
            let held = held(&ranks, most(&|report| span(report, 0..pieces)));
            let from = window.warm.checked_sub(1).map_or(0, |last| held[last]);
            replayed.held_s += held.last().map_or(0.0, |&all| Nanos(all - from).seconds());
            let times = ranks.iter().map(|report| piece_times(report, &held).split_off(window.warm)).collect();
            replayed.restarts.push(Restart { first: window.pieces().start, times });
        }
        // A rank's clock is that of the launcher only on this machine, and if it is the monotonic one.
        let here = boot_id();
        let started = reports.iter().filter(|report| report.boot_id == here).filter_map(|report| {
            let first = report.steps.first()?;
            let before = ((first.restart_s + report.init_s + report.read_s) * 1e9) as u64;
            let ns = first.start_ns.checked_sub(launched)?.checked_sub(before)?;
            between(ns)
        });
        let started: Vec<f64> = started.collect();
        if started.len() == reports.len() {
            replayed.startup_s = started.into_iter().reduce(f64::min);
            let last = reports.iter().filter_map(|report| Some(report.end?.at_ns)).max();
            replayed.teardown_s = last.and_then(|at| between(ended.checked_sub(at)?));
        }
        Ok(replayed)
    }
}

/// Hosts under a launcher. Ended when dropped, with all processes on this machine that carry the job's name.
pub struct Hosts {
    /// The launcher's process.
    pub launch: Launch,
    job: PathBuf,
    /// Since when one of them has complained.
    complained: Option<Instant>,
}

impl Hosts {
    /// Writes the job to a file and starts the hosts for it, with `more` words for each.
    ///
    /// # Errors
    /// If the file cannot be written or the launcher cannot be started.
    pub fn start(launcher: &Launcher, job: &Job, file: &Path, more: &[OsString]) -> Result<Hosts> {
        let file = std::path::absolute(file)?;
        fs::write(&file, serde_json::to_vec(job)?).with_context(|| format!("cannot write {}", file.display()))?;
        let exe = std::env::current_exe().context("cannot find out where the command phasecast is")?;
        let words = [&[exe.into(), "host".into(), file.clone().into()], more].concat();
        Ok(Hosts { launch: launcher.start(&words)?, job: file, complained: None })
    }

    /// What a host complained of that has ended, when the launcher has not ended the others for it: before MPI_Init not all
    /// launchers do, and the others wait there for ever.
    pub fn given_up(&mut self) -> Option<String> {
        let said = self.launch.said();
        if said.is_empty() {
            return None;
        }
        let since = *self.complained.get_or_insert_with(Instant::now);
        (since.elapsed() > COMPLAINT).then_some(said)
    }

    /// Ends all of them.
    pub fn stop(&mut self) {
        self.launch.stop(&self.pids());
    }

    /// The hosts on this machine: their arguments are `host` and the job's file.
    fn pids(&self) -> Vec<u32> {
        use std::os::unix::ffi::OsStrExt;
        let name = self.job.as_os_str().as_bytes();
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        let carries = |pid: &u32| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let mut words = line.split(|byte| *byte == 0).skip(1);
            words.next() == Some(b"host") && words.next() == Some(name)
        };
        pids.filter(carries).collect()
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        // Also where the launcher has ended: one that was killed leaves its ranks behind.
        self.stop();
    }
}

/// A time on the clocks of a host and ours in seconds, if it can be one.
fn between(ns: u64) -> Option<f64> {
    Some(ns as f64 * 1e-9).filter(|s| *s < 60.0)
}

/// How many steps a rank has finished.
fn progress(out: &Path, rank: u32) -> usize {
    let file = fs::read(out.join(format!("rank-{rank:05}.progress"))).unwrap_or_default();
    file.iter().filter(|byte| **byte == b'\n').count()
}

/// The report of a rank, called `what`; `said` is what the hosts have complained of.
///
/// # Errors
/// If it is not there, or is none.
pub fn read_report<T: DeserializeOwned>(out: &Path, rank: u32, what: &str, said: &str) -> Result<T> {
    let path = out.join(format!("rank-{rank:05}.json"));
    let bytes = match fs::read(&path) {
        Err(_) if !said.is_empty() => bail!("rank {rank} left no {what}: {said}"),
        read => read
            .with_context(|| format!("rank {rank} left no {what} in {}, which all ranks must reach", out.display()))?,
    };
    serde_json::from_slice(&bytes).with_context(|| format!("the report {} cannot be read", path.display()))
}

/// Which rank stands where, in words.
fn diagnosis(done: &[usize], steps: &[Step]) -> String {
    let least = done.iter().copied().min().unwrap_or(0);
    let of = |which: &dyn Fn(usize) -> bool| {
        let ranks: Vec<String> = (0..done.len()).filter(|&r| which(done[r])).map(|r| r.to_string()).collect();
        let more = ranks.len().saturating_sub(8);
        let names = ranks.into_iter().take(8).collect::<Vec<_>>().join(", ");
        if more > 0 { format!("{names} and {more} more") } else { names }
    };
    let behind = of(&|n| n == least);
    let Some(step) = steps.get(least) else { return "all ranks have finished their restarts, but not ended".into() };
    let at = format!("restart {} of {} (cut {})", least + 1, steps.len(), step.cut);
    if done.iter().all(|&n| n == least) {
        return format!("all ranks stand in {at}");
    }
    format!("rank {behind} stands in {at} and holds up rank {}, which has finished it", of(&|n| n > least))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diagnosis_names_who_stands_where() {
        let step = |cut| Step { cut, watch: vec![] };
        let steps = [step(0), step(3)];
        assert_eq!(
            diagnosis(&[1, 0, 1], &steps),
            "rank 1 stands in restart 1 of 2 (cut 0) and holds up rank 0, 2, which has finished it"
        );
        assert_eq!(diagnosis(&[1, 1], &steps), "all ranks stand in restart 2 of 2 (cut 3)");
        assert!(diagnosis(&[2, 2], &steps).contains("not ended"));
        assert!(diagnosis(&[0; 20], &steps).starts_with("all ranks"));
    }
}
