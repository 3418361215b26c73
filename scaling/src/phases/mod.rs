//! Phases of an execution profile (seed 003, sections 2 to 2.2 and 3). They are not those of PAS2P: a phase here is a
//! stretch of the profile with one mean and one variance.
//!
//! * [`transitions`]: peaks, troughs and steps of the smoothed profile, ranked: where phases may begin
//! * [`goodness`]: which of them are taken, and so how many phases there are
//! * [`matching`]: the same phases in runs with different numbers of processors
//!
//! As in section 3: stretches in which all processors are busy all the time (and, likewise, exactly one) are phases of
//! their own, found before anything is smoothed; other phases begin at a peak or trough of a transition or where such a
//! stretch ends.
pub mod goodness;
pub mod matching;
pub mod transitions;

pub use transitions::{Shape, Transition};

use crate::profile::Series;
use crate::smooth::{SEED, Smoothing};
use serde::{Deserialize, Serialize};

/// What kind a stationary phase is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// All processors are busy all the time: it scales almost linearly.
    Full,
    /// Exactly one processor is busy: it does not scale.
    Sequential,
    /// Anything else, with a mean and a variance of its own.
    Other,
}

impl Kind {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Full => "full",
            Kind::Sequential => "sequential",
            Kind::Other => "other",
        }
    }
}

/// A stationary phase.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Phase {
    /// Its first point.
    pub start: usize,
    /// The point behind its last.
    pub end: usize,
    /// Its kind.
    pub kind: Kind,
    /// The transition with which it begins; none at the start of the run and where a stretch of full or sequential
    /// utilisation begins or ends.
    pub begins: Option<Shape>,
    /// Its length in seconds.
    pub time_s: f64,
    /// Mean number of busy processors.
    pub mean: f64,
    /// Variance of the number of busy processors over its points.
    pub variance: f64,
}

/// How phases are found.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// How the profile is smoothed before peaks and troughs are looked for.
    pub smoothing: Smoothing,
    /// Points of the neighbourhood in which a peak or trough is compared with others, odd.
    pub neighbourhood: usize,
    /// How many phases; chosen by goodness of fit if none.
    pub count: Option<usize>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { smoothing: Smoothing(vec![SEED]), neighbourhood: 11, count: None }
    }
}

/// A profile cut into phases in every way that there is a reason for.
#[derive(Clone, Debug)]
pub struct Found {
    /// Where phases may begin, in order of place, with their ranks.
    pub transitions: Vec<Transition>,
    /// For each number of phases from the least possible one: the phases, and how well they fit (less is better).
    pub ways: Vec<(Vec<Phase>, f64)>,
}

impl Found {
    /// The way with the best fit, or that with a number of phases as near to `count` as there is.
    pub fn best(&self, count: Option<usize>) -> &[Phase] {
        let way = match count {
            Some(count) => self.ways.iter().min_by_key(|(phases, _)| phases.len().abs_diff(count)),
            None => self.ways.iter().min_by(|a, b| a.1.total_cmp(&b.1)),
        };
        way.map_or(&[], |(phases, _)| phases)
    }
}

/// Finds the phases of a profile.
pub fn find(series: &Series, settings: &Settings) -> Found {
    let values = series.values();
    let radius = (settings.neighbourhood / 2).max(1);
    let fixed = stretches(series, settings.neighbourhood.max(2));
    let smooth = settings.smoothing.apply(&values);
    let (transitions, extrema) = transitions::find(&smooth, &values, radius, &fixed);
    let ways = goodness::ways(series, &values, &fixed, [&transitions, &extrema], settings.neighbourhood);
    Found { transitions, ways }
}

/// A stretch of the profile that is a phase whatever else is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stretch {
    /// Its first point.
    pub start: usize,
    /// The point behind its last.
    pub end: usize,
    /// Its kind.
    pub kind: Kind,
}

/// Stretches of at least `least` points in which all processors, or exactly one, are busy all the time.
fn stretches(series: &Series, least: usize) -> Vec<Stretch> {
    let kind = |at: usize| match &series.points[at] {
        point if point.is(series.ranks) => Some(Kind::Full),
        point if point.is(1) => Some(Kind::Sequential),
        _ => None,
    };
    let mut found = Vec::new();
    let mut start = 0;
    while start < series.points.len() {
        let this = kind(start);
        let end = (start..series.points.len()).find(|&at| kind(at) != this).unwrap_or(series.points.len());
        if let Some(kind) = this.filter(|_| end - start >= least) {
            found.push(Stretch { start, end, kind });
        }
        start = end;
    }
    found
}

/// Makes the phase of some points.
fn phase(series: &Series, values: &[f64], (start, end): (usize, usize), kind: Kind, begins: Option<Shape>) -> Phase {
    let part = &values[start..end];
    let count = part.len().max(1) as f64;
    let mean = part.iter().sum::<f64>() / count;
    let variance = part.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / count;
    let time_s = (series.edge_ns(end) - series.edge_ns(start)) as f64 * 1e-9;
    Phase { start, end, kind, begins, time_s, mean, variance }
}
