//! The execution profile of a run (seed 003, section 1): how many processors are busy, over time.
//!
//! * [`toggles`]: when each rank begins and ceases to be busy, from its calls
//! * [`steps`]: the ranks together, as a step function in order of time
//! * [`series`]: the step function as so many points, as smoothing and phases need it
//! * [`draw`]: a profile as CSV and SVG
//!
//! A rank is *busy* while it is in no call of MPI (or, with [`Busy::Unblocked`], in none that waits for others, as the
//! seed's PICL has it). All times are whole nanoseconds, and so are all integrals: none is lost to rounding.
pub mod draw;
pub mod series;
pub mod steps;
pub mod toggles;

pub use series::{Point, Series};
pub use steps::{Step, for_each_step};

use phasecast_trace::{Class, Flags, Rank, Trace, TraceError};
use serde::Serialize;

/// What a processor must be doing to be busy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Busy {
    /// The program's own work: any call of MPI is not busy.
    Computing,
    /// Anything but waiting: sends, posts and other local calls of MPI are busy, too.
    Unblocked,
}

impl Busy {
    /// Whether a processor in such a call is not busy.
    fn waits(self, class: Class, flags: Flags) -> bool {
        match self {
            Busy::Computing => true,
            Busy::Unblocked => match class {
                Class::Recv | Class::Complete | Class::Probe | Class::Setup => true,
                Class::Collective | Class::Comm => !flags.has(Flags::NONBLOCKING),
                Class::Rma | Class::Io => flags.has(Flags::COLLECTIVE),
                Class::Send | Class::Post | Class::Start | Class::Pause | Class::Resume | Class::Other => false,
            },
        }
    }
}

/// Which part of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// From the start of the first process to the end of the last.
    Whole,
    /// From where the last rank has left `MPI_Init` to where the first enters `MPI_Finalize`.
    Main,
}

/// How a profile is made.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// What is busy.
    pub busy: Busy,
    /// Which part of the run.
    pub part: Part,
    /// Points of the series.
    pub points: usize,
    /// Threads; the result does not depend on them.
    pub threads: usize,
}

impl Default for Settings {
    fn default() -> Settings {
        let threads = std::thread::available_parallelism().map_or(1, |n| n.get());
        Settings { busy: Busy::Computing, part: Part::Whole, points: 1000, threads }
    }
}

/// The profile of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// Processors.
    pub ranks: u32,
    /// When the part begins, in ns from the origin of the trace.
    pub start_ns: u64,
    /// Its length in ns.
    pub length_ns: u64,
    /// For each number of busy processors, from 0 to `ranks`, for how many ns so many were busy.
    pub levels_ns: Vec<u64>,
    /// Changes of the number of busy processors.
    pub changes: u64,
    /// The profile as points.
    pub series: Series,
}

impl Profile {
    /// Makes the profile of a trace; `progress` is told how many ns of the run are done, and of how many.
    ///
    /// # Errors
    /// If the trace is damaged.
    pub fn of(trace: &Trace, settings: &Settings, progress: &dyn Fn(u64, u64)) -> Result<Profile, TraceError> {
        let (start_ns, end_ns) = toggles::window(trace, settings.part)?;
        let length_ns = end_ns - start_ns;
        let mut levels_ns = vec![0; trace.size() as usize + 1];
        let mut series = series::Builder::new(trace.size(), start_ns, length_ns, settings.points);
        let mut changes = 0u64;
        for_each_step(trace, settings, |step| {
            levels_ns[step.busy as usize] += step.end_ns - step.start_ns;
            series.add(&step);
            changes += 1;
            if changes.is_multiple_of(1 << 16) {
                progress(step.end_ns - start_ns, length_ns);
            }
            Ok::<(), TraceError>(())
        })?;
        let changes = changes.saturating_sub(1);
        Ok(Profile { ranks: trace.size(), start_ns, length_ns, levels_ns, changes, series: series.finish() })
    }

    /// The profile as one that was made of points, each `width_ns` long: for profiles that come from elsewhere.
    pub fn of_levels(ranks: u32, levels: &[u32], width_ns: u64) -> Profile {
        let length_ns = width_ns * levels.len() as u64;
        let mut levels_ns = vec![0; ranks as usize + 1];
        let mut series = series::Builder::new(ranks, 0, length_ns, levels.len().max(1));
        let mut changes = 0;
        for (at, &busy) in (0u64..).zip(levels) {
            let busy = busy.min(ranks);
            levels_ns[busy as usize] += width_ns;
            changes += u64::from(at > 0 && levels[at as usize - 1] != busy);
            series.add(&Step { start_ns: at * width_ns, end_ns: (at + 1) * width_ns, busy });
        }
        Profile { ranks, start_ns: 0, length_ns, levels_ns, changes, series: series.finish() }
    }

    /// The integral of the profile: the busy time of all ranks together in ns.
    pub fn busy_ns(&self) -> u128 {
        (0u128..).zip(&self.levels_ns).map(|(level, ns)| level * u128::from(*ns)).sum()
    }

    /// The average parallelism: the mean number of busy processors.
    pub fn mean(&self) -> f64 {
        if self.length_ns == 0 { 0.0 } else { self.busy_ns() as f64 / self.length_ns as f64 }
    }

    /// The variance of the number of busy processors over time.
    pub fn variance(&self) -> f64 {
        let mean = self.mean();
        let squares: f64 =
            self.levels_ns.iter().enumerate().map(|(level, ns)| *ns as f64 * (level as f64 - mean).powi(2)).sum();
        if self.length_ns == 0 { 0.0 } else { squares / self.length_ns as f64 }
    }

    /// The share of the time in which so many processors are busy.
    pub fn share(&self, level: usize) -> f64 {
        match (self.levels_ns.get(level), self.length_ns) {
            (Some(ns), length) if length > 0 => *ns as f64 / length as f64,
            _ => 0.0,
        }
    }

    /// The fraction sequential in Amdahl's broad sense: the share of the time in which exactly one processor is busy.
    pub fn sequential(&self) -> f64 {
        self.share(1)
    }

    /// Length in seconds.
    pub fn length_s(&self) -> f64 {
        self.length_ns as f64 * 1e-9
    }
}

/// The ranks that a profile cannot show whole, as their recording was cut off.
pub fn cut_ranks(trace: &Trace) -> Vec<Rank> {
    trace.ranks().filter(|rank| trace.cut_reason(*rank).is_some()).collect()
}
