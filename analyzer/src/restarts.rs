//! From restarted pieces to the time of the whole run (seed 004, section on the signature's execution;
//! docs/src/algorithms/estimate.md).
//!
//! Restarts show a few stretches that are spread over the run, each several times within a short while. So the two
//! kinds of scatter come from different places: how occurrences differ within the *program* is what both base runs say
//! (their profile corrects the sample, and the plan replayed on them tells how well it stands for all), how the
//! *machine* scatters is what repetitions of the same stretch say.
//!
//! What no restart can show is a rank's start and end ([`Edge`]): MPI_Init and MPI_Finalize are timed in the launch of the
//! restarts itself, the rest of them goes at the pace of what was measured.
use crate::estimate::{
    Estimate, FEW, PhaseEstimate, RankEstimate, Sample, profile, rank_estimate, ratio, samples, slowest,
};
use crate::model::Analysis;
use crate::noise::quantile;
use crate::replayed::replayed;
use crate::transient::{Step, transient};
use phasecast_trace::Nanos;
use std::collections::BTreeMap;

/// The scatter of restarts before any was repeated ([`FEW`]) is worth so many repetitions.
const PRIOR_WORTH: f64 = 3.0;

/// One restart: a stretch of pieces that was measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restart {
    /// The number of the first measured piece.
    pub first: usize,
    /// For each rank, the times of the measured pieces from there on.
    pub times: Vec<Vec<Nanos>>,
}

/// The ends of a rank's run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Edge {
    /// How long MPI_Init took on the base.
    pub init_base: Nanos,
    /// How long the start of a process and MPI_Init took in the launch of the restarts.
    pub init_target: Nanos,
    /// From the rank's last event to its end on the base, without MPI_Finalize.
    pub tail_base: Nanos,
    /// How long MPI_Finalize took on the base.
    pub finalize_base: Nanos,
    /// How long it took in the launch of the restarts.
    pub finalize_target: Nanos,
}

/// A stretch with all its repetitions.
struct Group {
    /// The number of its first piece.
    first: usize,
    /// For each rank, the times of its pieces in seconds: the mean of the middle repetitions.
    times: Vec<Vec<f64>>,
    /// The repetitions' totals over all ranks, in seconds.
    totals: Vec<f64>,
}

/// Estimates the run from restarts of stretches of it. A stretch that was restarted several times counts with the mean
/// of its middle repetitions. `confidence` is the level of the interval, 0 to 1.
pub fn estimate_restarts(analysis: &Analysis, restarts: &[Restart], edges: &[Edge], confidence: f64) -> Estimate {
    let groups = groups(analysis, restarts);
    let mut measured: BTreeMap<usize, (Vec<f64>, u32)> = BTreeMap::new();
    for group in &groups {
        for at in 0..group.times.first().map_or(0, Vec::len) {
            let (sums, count) =
                measured.entry(group.first + at).or_insert_with(|| (vec![0.0; analysis.pieces.len()], 0));
            sums.iter_mut().zip(&group.times).for_each(|(sum, times)| *sum += times[at]);
            *count += 1;
        }
    }
    let known = |rank: usize, at: usize| measured.get(&at).map(|(sums, count)| sums[rank] / f64::from(*count));
    let mut all: Vec<Vec<(usize, Sample)>> =
        analysis.pieces.iter().enumerate().map(|(rank, p)| samples(p, |at| known(rank, at))).collect();
    let pace = ratio(all.iter().flatten().map(|(_, s)| s)).unwrap_or(1.0);
    all.iter_mut().zip(edges).for_each(|(list, edge)| trim(list, edge, pace));
    let phases = analysis.phases.len();
    let finish = |(rank, list): (usize, &Vec<(usize, Sample)>)| {
        let mut estimate = rank_estimate(phases, list, pace);
        if let (Some(edge), Some(first), Some(last)) = (edges.get(rank), list.first(), list.last()) {
            for (phase, base, target) in
                [(first.0, edge.init_base, edge.init_target), (last.0, edge.finalize_base, edge.finalize_target)]
            {
                estimate.total += target.seconds();
                estimate.base += base.seconds();
                estimate.measured_base += base.seconds();
                if let Some(phase) = estimate.phases.get_mut(phase) {
                    phase.total_s += target.seconds();
                }
            }
        }
        estimate
    };
    let ranks: Vec<RankEstimate> = all.iter().enumerate().map(finish).collect();
    let slowest = slowest(&ranks);
    let rank = ranks.get(slowest).cloned().unwrap_or_default();
    let own = all.get(slowest).map_or(&[][..], Vec::as_slice);
    let program = replayed(own, phases) * rank.total;
    let shown = |at: usize| measured.get(&at).map_or(1, |(_, times)| *times);
    let sampling_s =
        machine(&groups, shown, own, &rank.phases, confidence).hypot(program).hypot(2.0 * FEW * rank.guessed);
    let coverage = coverage(own, &rank.phases);
    rank.conclude(slowest, analysis, sampling_s, coverage, confidence)
}

/// Share of a rank's base time in phases of which an occurrence was measured.
fn coverage(list: &[(usize, Sample)], phases: &[PhaseEstimate]) -> f64 {
    let measured = |phase: usize| phases.get(phase).is_some_and(|p| p.measured > 0);
    let (seen, all) = list.iter().fold((0.0, 0.0), |(seen, all), (phase, sample)| {
        let base = sample.profile();
        (if measured(*phase) { seen + base } else { seen }, all + base)
    });
    if all > 0.0 { (seen / all).min(1.0) } else { 0.0 }
}

/// Restarts of the same stretch put together. Those that do not fit the analysis are left out.
fn groups(analysis: &Analysis, restarts: &[Restart]) -> Vec<Group> {
    let segments = analysis.segments().unwrap_or(0);
    let mut stretches: BTreeMap<(usize, usize), Vec<&Restart>> = BTreeMap::new();
    for restart in restarts {
        let length = restart.times.first().map_or(0, Vec::len);
        let fits = restart.times.len() == analysis.pieces.len()
            && restart.times.iter().all(|times| times.len() == length)
            && restart.first.checked_add(length).is_some_and(|end| end <= segments);
        if fits && length > 0 {
            stretches.entry((restart.first, length)).or_default().push(restart);
        }
    }
    stretches.into_iter().map(|((first, length), list)| group(first, length, list).settled(analysis)).collect()
}

impl Group {
    /// Without the transient at its start.
    fn settled(mut self, analysis: &Analysis) -> Group {
        let step = |at: usize| {
            let pieces = analysis.pieces.iter().map(|pieces| &pieces[self.first + at]);
            Step {
                phase: analysis.pieces[0][self.first + at].phase.index(),
                base: pieces.map(|piece| profile(piece.time.seconds(), piece.again.map(Nanos::seconds))).sum(),
                target: self.times.iter().map(|times| times[at]).sum(),
            }
        };
        let steps: Vec<Step> = (0..self.times.first().map_or(0, Vec::len)).map(step).collect();
        let at = transient(&steps);
        self.first += at;
        self.times.iter_mut().for_each(|times| drop(times.drain(..at)));
        self
    }
}

fn group(first: usize, length: usize, mut list: Vec<&Restart>) -> Group {
    let total = |restart: &Restart| restart.times.iter().flatten().map(|t| t.seconds()).sum::<f64>();
    list.sort_by(|a, b| total(a).total_cmp(&total(b)));
    let totals = list.iter().map(|restart| total(restart)).collect();
    // A burst of noise lengthens a whole restart: the outer thirds are left out, within a restart nothing is.
    let outer = list.len() / 3;
    let middle = &list[outer..list.len() - outer];
    let mean =
        |rank: usize, at: usize| middle.iter().map(|r| r.times[rank][at].seconds()).sum::<f64>() / middle.len() as f64;
    let ranks = list[0].times.len();
    let times = (0..ranks).map(|rank| (0..length).map(|at| mean(rank, at)).collect()).collect();
    Group { first, times, totals }
}

/// Takes MPI_Init out of the first piece and MPI_Finalize out of the last, and puts the rest of the process's end to a
/// last piece that was measured up to its last event.
fn trim(list: &mut [(usize, Sample)], edge: &Edge, pace: f64) {
    // They are known of the first run; what is left of a piece is taken to be alike in the second.
    let take = |sample: &mut Sample, seconds: f64| {
        let left = (seconds - sample.base).max(0.0);
        if seconds > 0.0 {
            sample.base = (sample.base - seconds).max(0.0);
            sample.again = sample.again.map(|_| sample.base);
        }
        left
    };
    // Of a rank without an event before the first cut it lies behind that.
    let mut left = edge.init_base.seconds();
    list.iter_mut().take_while(|(_, sample)| sample.target.is_none()).for_each(|(_, sample)| left = take(sample, left));
    if let Some((_, last)) = list.last_mut() {
        take(last, edge.finalize_base.seconds());
        last.target = last.target.map(|time| time + pace * edge.tail_base.seconds());
    }
}

/// The half-width that the machine's scatter gives, in seconds: between repetitions of a stretch, or between stretches
/// in their ratio to the base, whichever is the larger. Stretches of several lengths may show the same piece (`shown`: how
/// many): then each speaks for a part of what it stands for, and of those that lie on one another the last for its place.
fn machine(
    groups: &[Group],
    shown: impl Fn(usize) -> u32,
    own: &[(usize, Sample)],
    phases: &[PhaseEstimate],
    confidence: f64,
) -> f64 {
    let (mut squares, mut repetitions) = (0.0, 0.0);
    for group in groups {
        let mean = group.totals.iter().sum::<f64>() / group.totals.len() as f64;
        if mean > 0.0 {
            squares += group.totals.iter().map(|t| (t / mean - 1.0).powi(2)).sum::<f64>();
            repetitions += group.totals.len() as f64 - 1.0;
        }
    }
    let freedom = PRIOR_WORTH + repetitions;
    let scatter = ((PRIOR_WORTH * FEW * FEW + squares) / freedom).sqrt();
    let (mut variance, mut carried, mut ratios) = (0.0, 0.0, Vec::new());
    let end = |group: &Group| group.first + group.times.first().map_or(0, Vec::len);
    for (number, group) in groups.iter().enumerate() {
        let length = end(group) - group.first;
        let stretch = own.get(group.first..group.first + length).unwrap_or_default();
        // Of its phase, a measured occurrence stands for its share of those that were measured.
        let share = |(at, (phase, sample)): (usize, &(usize, Sample))| {
            let phase = phases.get(*phase).filter(|p| p.measured > 0 && sample.target.is_some());
            phase.map_or(0.0, |p| p.total_s / p.measured as f64 / f64::from(shown(group.first + at)))
        };
        let stands_for: f64 = stretch.iter().enumerate().map(share).sum();
        variance += (stands_for * scatter).powi(2) / group.totals.len() as f64;
        let repeats = |(phase, _): &&(usize, Sample)| phases.get(*phase).is_some_and(|p| p.measured > 1);
        if let Some(ratio) = ratio(stretch.iter().filter(repeats).map(|(_, s)| s)) {
            carried += stands_for;
            let on = |other: &Group| {
                let both = end(group).min(end(other)).saturating_sub(group.first.max(other.first));
                2 * both > length.min(end(other) - other.first)
            };
            if !groups[number + 1..].iter().any(on) {
                ratios.push(ratio);
            }
        }
    }
    let count = ratios.len() as f64;
    let mean = ratios.iter().sum::<f64>() / count.max(1.0);
    let mut between = 0.0;
    if ratios.len() > 1 && mean > 0.0 {
        let squares: f64 = ratios.iter().map(|ratio| (ratio / mean - 1.0).powi(2)).sum();
        between = 2.0 * carried * (squares / (count - 1.0) / count).sqrt();
    }
    (quantile(freedom, confidence) * variance.sqrt()).max(between)
}
