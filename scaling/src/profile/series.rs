//! The profile as points of equal length: the means of the step function over them, exactly.
use super::steps::Step;

/// One point: a short stretch of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Point {
    /// Its length in ns.
    pub length_ns: u64,
    /// Busy time of all ranks in it, in ns.
    pub busy_ns: u128,
    /// The least and the greatest number of busy processors in it.
    pub least: u32,
    /// See `least`.
    pub most: u32,
}

impl Point {
    /// The mean number of busy processors.
    pub fn mean(&self) -> f64 {
        if self.length_ns == 0 { 0.0 } else { self.busy_ns as f64 / self.length_ns as f64 }
    }

    /// Whether exactly so many are busy all the time.
    pub fn is(&self, level: u32) -> bool {
        self.least == level && self.most == level
    }
}

/// A profile as points.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Processors.
    pub ranks: u32,
    /// Length of the run in ns.
    pub length_ns: u64,
    /// The points; their lengths differ by at most 1 ns and add up to the run's.
    pub points: Vec<Point>,
}

impl Series {
    /// The means.
    pub fn values(&self) -> Vec<f64> {
        self.points.iter().map(Point::mean).collect()
    }

    /// The length of a point in seconds.
    pub fn width_s(&self) -> f64 {
        self.length_ns as f64 * 1e-9 / self.points.len().max(1) as f64
    }

    /// Where the point at `at` (or the end) begins, in ns from the start of the run.
    pub fn edge_ns(&self, at: usize) -> u64 {
        edge(self.length_ns, self.points.len(), at)
    }
}

fn edge(length: u64, points: usize, at: usize) -> u64 {
    (u128::from(length) * at.min(points) as u128 / points.max(1) as u128) as u64
}

/// Makes a series of steps that come in order.
pub(super) struct Builder {
    series: Series,
    start_ns: u64,
    at: usize,
    /// Where the current point ends.
    end_ns: u64,
}

impl Builder {
    /// A series of at most so many points: no point is shorter than 1 ns.
    pub(super) fn new(ranks: u32, start_ns: u64, length_ns: u64, points: usize) -> Builder {
        let count = points.clamp(1, usize::try_from(length_ns).unwrap_or(usize::MAX).max(1));
        let blank = Point { least: u32::MAX, ..Point::default() };
        let series = Series { ranks, length_ns, points: vec![blank; count] };
        let end_ns = start_ns + series.edge_ns(1);
        Builder { series, start_ns, at: 0, end_ns }
    }

    pub(super) fn add(&mut self, step: &Step) {
        let mut from = step.start_ns;
        while from < step.end_ns {
            while from >= self.end_ns && self.at + 1 < self.series.points.len() {
                self.at += 1;
                self.end_ns = self.start_ns + self.series.edge_ns(self.at + 1);
            }
            let last = self.at + 1 == self.series.points.len();
            let to = if last { step.end_ns } else { step.end_ns.min(self.end_ns) };
            let point = &mut self.series.points[self.at];
            point.length_ns += to - from;
            point.busy_ns += u128::from(to - from) * u128::from(step.busy);
            point.least = point.least.min(step.busy);
            point.most = point.most.max(step.busy);
            from = to;
        }
    }

    pub(super) fn finish(mut self) -> Series {
        // A point of no length has no least.
        self.series.points.iter_mut().for_each(|point| point.least = point.least.min(point.most));
        self.series
    }
}
