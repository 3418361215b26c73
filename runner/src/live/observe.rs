//! Follows all ranks of a running program until a rule says stop, or the program ends.
use crate::launch::{Launch, interrupted};
use crate::live::track::Tracker;
use anyhow::{Result, bail};
use phasecast_analyzer::Analysis;
use phasecast_trace::follow::RankFollower;
use phasecast_trace::model::boot_id;
use phasecast_trace::{Nanos, Rank};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

/// How often the streams are read. A poll of two ranks takes well under a millisecond.
const POLL: Duration = Duration::from_millis(50);

/// How an observation ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// The rule said stop.
    Stopped,
    /// The program ended by itself: wall time from launch to the end of the launcher, in seconds.
    RanToEnd {
        /// That time.
        wall_s: f64,
    },
}

/// The ranks of a running program.
pub struct Observation<'a> {
    analysis: &'a Analysis,
    folder: &'a Path,
    followers: Vec<Option<RankFollower>>,
    /// The trackers of the ranks that have started.
    pub trackers: Vec<Option<Tracker<'a>>>,
}

impl<'a> Observation<'a> {
    /// An observation of the ranks that write to the trace `folder`.
    pub fn new(analysis: &'a Analysis, folder: &'a Path) -> Observation<'a> {
        let ranks = analysis.ranks as usize;
        Observation {
            analysis,
            folder,
            followers: (0..ranks).map(|_| None).collect(),
            trackers: (0..ranks).map(|_| None).collect(),
        }
    }

    /// Follows until `stop` answers true or the program ends.
    ///
    /// # Errors
    /// If the program fails, has another number of ranks, cannot be traced, or the user interrupts.
    pub fn run(&mut self, launch: &mut Launch, mut stop: impl FnMut(&Self) -> bool) -> Result<Outcome> {
        loop {
            let ended = launch.ended()?;
            if let Some((status, _)) = ended.filter(|(status, _)| !status.success()) {
                bail!("the program failed on this machine ({status}); nothing can be predicted from a failed run");
            }
            self.poll()?;
            if let Some((_, at)) = ended {
                if self.trackers.iter().any(Option::is_none) {
                    bail!(
                        "the program ended before all {} ranks had called MPI_Init under the tracer. Does the launcher belong to the MPI that the program was built with?",
                        self.analysis.ranks
                    );
                }
                return Ok(Outcome::RanToEnd { wall_s: Nanos(at).since(Nanos(launch.started_ns())).seconds() });
            }
            if interrupted() {
                bail!("interrupted; the program was ended");
            }
            if self.trackers.iter().all(Option::is_some) && stop(self) {
                return Ok(Outcome::Stopped);
            }
            launch.sleep(POLL);
        }
    }

    fn poll(&mut self) -> Result<()> {
        for (rank, (slot, tracker)) in self.followers.iter_mut().zip(&mut self.trackers).enumerate() {
            let rank = Rank(rank as u32);
            if slot.is_none() {
                *slot = RankFollower::open(self.folder, rank)?;
            }
            let Some(follower) = slot else { continue };
            let header = follower.header();
            if header.size != self.analysis.ranks {
                bail!("the program runs with {} ranks, the signature is of {}", header.size, self.analysis.ranks);
            }
            let started = follower.nanos(header.clock.units);
            let tracker = tracker
                .get_or_insert_with(|| Tracker::new(self.analysis, rank, started, &follower.header().procedures));
            follower.poll(|call| call.events().for_each(|event| tracker.event(&event)))?;
            if let Some(trailer) = follower.trailer() {
                tracker.end(follower.nanos(trailer.end_units));
            }
        }
        Ok(())
    }

    /// The analysis along which the ranks are followed.
    pub fn analysis(&self) -> &'a Analysis {
        self.analysis
    }

    /// Process ids of the ranks on this host that still run. In a container a process has another number within than
    /// without: so it is asked whether it is one that leaves this trace.
    pub fn local_pids(&self) -> Vec<u32> {
        let here = boot_id();
        let folder = std::path::absolute(self.folder).unwrap_or_default();
        let traced = |pid: u32| {
            let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            let of = |word: &[u8]| {
                word.strip_prefix(b"PHASECAST_TRACE=").is_some_and(|at| at == folder.as_os_str().as_bytes())
            };
            environment.split(|&byte| byte == 0).any(of)
        };
        let headers = self.followers.iter().flatten().map(RankFollower::header);
        headers.filter(|h| h.boot_id == here).map(|h| h.pid).filter(|&pid| traced(pid)).collect()
    }

    /// The MPI library that the ranks report.
    pub fn mpi(&self) -> String {
        self.followers.iter().flatten().next().map_or_else(String::new, |f| f.header().mpi.clone())
    }

    /// Start of each rank's process after `launched_ns`, in seconds; none on hosts whose clock is another.
    pub fn startups(&self, launched_ns: u64) -> Vec<Option<f64>> {
        let here = boot_id();
        let start = |f: &RankFollower| {
            let header = f.header();
            (header.boot_id == here).then(|| f.nanos(header.clock.units).since(Nanos(launched_ns)).seconds())
        };
        self.followers.iter().map(|f| f.as_ref().and_then(start)).collect()
    }
}
