//! From the pieces measured on the target to the time of the whole run, with an interval (seed 004, section on the
//! signature's execution; docs/src/algorithms/estimate.md).
//!
//! For each rank and phase with n occurrences, of which S were measured and U were not,
//! ```text
//! time(phase) = sum_S(target) + |U| mean_S(target) (1 + beta (mean_U(base) - mean_S(base)) / mean_S(base))
//! ```
//! beta = 2 r / (1 + r) is the reliability of the mean of two base runs that correlate by r (Spearman and Brown) in the
//! means of stretches of occurrences as long as those measured; it is 0 with one base run. Occurrences that stand out in
//! both base runs are added up apart. What was never seen takes its base time, scaled by the ratio of what was.
use crate::model::{Analysis, Piece};
use crate::noise::{Seen, quantile};
use crate::replayed::replayed;
use phasecast_trace::Nanos;

/// Share of the time that was scaled, not measured, which counts as its uncertainty.
const REST: f64 = 0.15;
/// Times that lie so far apart differ.
const CLEARLY: f64 = 1.05;
/// A smaller share of a rank's time says nothing of its pace.
const LITTLE: f64 = 0.01;
/// Occurrences are joined into at most so many blocks: neighbours correlate, blocks much less.
const BLOCKS: usize = 10;
/// An occurrence that takes so many times as long as the median one, or as short, stands out.
const APART: f64 = 1.25;
/// An occurrence's relative scatter where fewer than four were measured.
pub(crate) const FEW: f64 = 0.05;

/// A phase on the target.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PhaseEstimate {
    /// Occurrences measured on the slowest rank.
    pub measured: u64,
    /// Their mean time in seconds.
    pub mean_s: Option<f64>,
    /// Time of all occurrences in seconds.
    pub total_s: f64,
}

/// The run on the target, from the start of its processes to their end.
#[derive(Clone, Debug, PartialEq)]
pub struct Estimate {
    /// The slowest rank: whose times these are.
    pub rank: usize,
    /// Time of the slowest rank in seconds.
    pub total_s: f64,
    /// Half-width of the interval for the mean of many runs, in seconds.
    pub half_width_s: f64,
    /// Half-width of the interval for another run, in seconds.
    pub run_half_width_s: f64,
    /// Sampling error in seconds.
    pub sampling_s: f64,
    /// Uncertainty of what was never seen, and of what was taken off, in seconds.
    pub rest_s: f64,
    /// Noise of the machine from run to run, in seconds.
    pub machine_s: f64,
    /// Time of phases of which no occurrence was measured, in seconds.
    pub unmeasured_s: f64,
    /// Share of the base run's time that was measured.
    pub coverage: f64,
    /// The phases, by id.
    pub phases: Vec<PhaseEstimate>,
}

impl Estimate {
    /// With times that may all be wrong by this share.
    #[must_use]
    pub fn doubted(mut self, share: f64) -> Estimate {
        self.rest_s = self.rest_s.hypot(share * self.total_s);
        self.half_width_s = self.sampling_s.hypot(self.rest_s);
        self.run_half_width_s = self.half_width_s + self.machine_s;
        self
    }
}

/// Whether an occurrence stands out: whether it took much more or much less than the median one in both base runs, like a
/// first one that touches all memory for the first time. Such say little of the others. "Much" is [`APART`], and three
/// times what the runs scatter against each other if that is more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stratum {
    Usual,
    Slow,
    Fast,
}

/// One occurrence of a phase on one rank.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    pub(crate) base: f64,
    pub(crate) again: Option<f64>,
    pub(crate) target: Option<f64>,
    pub(crate) stratum: Stratum,
}

impl Sample {
    /// The base time: the mean of the base runs.
    pub(crate) fn profile(&self) -> f64 {
        profile(self.base, self.again)
    }
}

/// The base time of what took so long in the first base run, and in the second, if there was one: their mean.
pub(crate) fn profile(base: f64, again: Option<f64>) -> f64 {
    again.map_or(base, |again| 0.5 * (base + again))
}

/// What a rank's run adds up to.
#[derive(Clone, Debug, Default)]
pub(crate) struct RankEstimate {
    pub(crate) total: f64,
    variance: f64,
    freedom: f64,
    pub(crate) unseen: f64,
    /// Time of occurrences that stand out from those that were measured, and of which none was.
    pub(crate) guessed: f64,
    /// How far the paces of phases lie apart, as a share: what was never seen may be as far from their mean.
    apart: f64,
    /// Whether what was measured tells this rank's own pace.
    known: bool,
    pub(crate) measured_base: f64,
    pub(crate) base: f64,
    pub(crate) phases: Vec<PhaseEstimate>,
}

/// Estimates the run from `measured`: for each rank the times of its pieces, in the order of
/// [`Analysis::pieces`], as far as they are known. `confidence` is the level of the interval, 0 to 1.
pub fn estimate(analysis: &Analysis, measured: &[Vec<Option<Nanos>>], confidence: f64) -> Estimate {
    let known = |rank: usize, at: usize| measured.get(rank)?.get(at).copied().flatten().map(Nanos::seconds);
    let samples: Vec<Vec<(usize, Sample)>> =
        analysis.pieces.iter().enumerate().map(|(rank, p)| samples(p, |at| known(rank, at))).collect();
    // A rank that only receives may have nearly all its time in one piece: it goes at the pace of the others.
    let pace = ratio(samples.iter().flatten().map(|(_, s)| s)).unwrap_or(1.0);
    let ranks: Vec<RankEstimate> =
        samples.iter().map(|list| rank_estimate(analysis.phases.len(), list, pace)).collect();
    let slowest = slowest(&ranks);
    let rank = ranks.get(slowest).cloned().unwrap_or_default();
    let replayed = samples.get(slowest).map_or(0.0, |own| replayed(own, analysis.phases.len())) * rank.total;
    let sampling_s = (quantile(rank.freedom, confidence) * rank.variance.sqrt()).max(replayed);
    let coverage = if rank.base > 0.0 { rank.measured_base / rank.base } else { 0.0 };
    rank.conclude(slowest, analysis, sampling_s, coverage, confidence)
}

impl RankEstimate {
    /// The estimate of the run, which is that of its slowest rank, from what sampling contributes to the half-width.
    pub(crate) fn conclude(
        self,
        rank: usize,
        analysis: &Analysis,
        sampling_s: f64,
        coverage: f64,
        confidence: f64,
    ) -> Estimate {
        let rest_s = REST.max(2.0 * self.apart) * self.unseen;
        let half_width_s = sampling_s.hypot(rest_s);
        let quarters = analysis.pieces.get(rank).map_or_else(Seen::default, |pieces| Seen::quarters(pieces));
        let runs = Seen::runs(&analysis.base_runs_s);
        // A pace that does not drift within runs is no proof that it is the same in each.
        let noise = runs.run_to_run(confidence).max(runs.and(quarters).run_to_run(confidence));
        let machine_s = noise * self.total;
        Estimate {
            rank,
            total_s: self.total,
            half_width_s,
            run_half_width_s: half_width_s + machine_s,
            sampling_s,
            rest_s,
            machine_s,
            unmeasured_s: self.unseen,
            coverage,
            phases: self.phases,
        }
    }
}

pub(crate) fn samples(pieces: &[Piece], target: impl Fn(usize) -> Option<f64>) -> Vec<(usize, Sample)> {
    let sample = |(at, piece): (usize, &Piece)| {
        let again = piece.again.map(Nanos::seconds);
        let stratum = Stratum::Usual;
        (piece.phase.index(), Sample { base: piece.time.seconds(), again, target: target(at), stratum })
    };
    let mut samples: Vec<(usize, Sample)> = pieces.iter().enumerate().map(sample).collect();
    let mut by_phase: Vec<Vec<&mut Sample>> = Vec::new();
    for (phase, sample) in &mut samples {
        if by_phase.len() <= *phase {
            by_phase.resize_with(*phase + 1, Vec::new);
        }
        by_phase[*phase].push(sample);
    }
    by_phase.iter_mut().for_each(|list| stand_out(list));
    samples
}

/// A rank's samples by their phase, in their order.
pub(crate) fn by_phase(phases: usize, samples: &[(usize, Sample)]) -> Vec<Vec<Sample>> {
    let mut by_phase: Vec<Vec<Sample>> = vec![Vec::new(); phases];
    for (phase, sample) in samples {
        if let Some(list) = by_phase.get_mut(*phase) {
            list.push(*sample);
        }
    }
    by_phase
}

pub(crate) fn rank_estimate(phases: usize, samples: &[(usize, Sample)], pace: f64) -> RankEstimate {
    let by_phase = by_phase(phases, samples);
    let progress = progress_ratio(&by_phase);
    let pace = progress.unwrap_or(pace);
    let mut out = RankEstimate { known: progress.is_some(), ..RankEstimate::default() };
    let mut squares_per_freedom = 0.0;
    let base_of = |list: &[Sample]| list.iter().map(Sample::profile).sum::<f64>();
    for list in &by_phase {
        let seen: Vec<&Sample> = list.iter().filter(|s| s.target.is_some()).collect();
        out.base += base_of(list);
        if seen.is_empty() {
            out.phases.push(PhaseEstimate::default());
            continue;
        }
        let sum = |of: fn(&Sample) -> f64| seen.iter().map(|s| of(s)).sum::<f64>();
        let (measured, base_seen) = (sum(|s| s.target.unwrap_or(0.0)), sum(Sample::profile));
        let pace = if base_seen > 0.0 { measured / base_seen } else { pace };
        let mut total = measured;
        for alike in strata(list) {
            let (rest, variance, freedom) = rest(&alike, pace);
            total += rest;
            if alike.iter().all(|s| s.target.is_none()) {
                out.guessed += rest;
            }
            if variance > 0.0 {
                out.variance += variance;
                squares_per_freedom += variance * variance / freedom;
            }
        }
        out.measured_base += base_seen;
        out.total += total;
        let mean_s = Some(measured / seen.len() as f64);
        out.phases.push(PhaseEstimate { measured: seen.len() as u64, mean_s, total_s: total });
    }
    let (pace, apart) = paces(&by_phase, &out.phases).filter(|_| out.known).unwrap_or((pace, 0.0));
    out.apart = apart;
    for (list, phase) in by_phase.iter().zip(&mut out.phases).filter(|(_, phase)| phase.measured == 0) {
        phase.total_s = pace * base_of(list);
        out.unseen += phase.total_s;
        out.total += phase.total_s;
    }
    // Welch and Satterthwaite: the degrees of freedom of a sum of variances.
    out.freedom = if squares_per_freedom > 0.0 { out.variance.powi(2) / squares_per_freedom } else { 1.0 };
    out
}

/// Marks the occurrences of a phase that stand out.
fn stand_out(list: &mut [&mut Sample]) {
    let Some(times) = list.iter().map(|s| Some((s.base.max(1e-9), s.again?.max(1e-9)))).collect::<Option<Vec<_>>>()
    else {
        return;
    };
    let (one, other) = (median(times.iter().map(|t| t.0)), median(times.iter().map(|t| t.1)));
    let between = median(times.iter().map(|t| (t.0 / t.1).ln()));
    // A median distance of 1 is a deviation of 1.4826; that of a difference is root two times that of either run.
    let scatter = 1.4826 / 2f64.sqrt() * median(times.iter().map(|t| ((t.0 / t.1).ln() - between).abs()));
    let apart = APART.max((3.0 * scatter).exp());
    for (sample, (base, again)) in list.iter_mut().zip(times) {
        if base > apart * one && again > apart * other {
            sample.stratum = Stratum::Slow;
        } else if base * apart < one && again * apart < other {
            sample.stratum = Stratum::Fast;
        }
    }
}

/// The occurrences of a phase by their stratum, in their order.
pub(crate) fn strata(list: &[Sample]) -> impl Iterator<Item = Vec<Sample>> {
    let of = |stratum| list.iter().filter(|s| s.stratum == stratum).copied().collect();
    [Stratum::Usual, Stratum::Slow, Stratum::Fast].map(of).into_iter()
}

/// The median, the upper one of an even number; 0 of none.
pub(crate) fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    let middle = values.len() / 2;
    if values.is_empty() { 0.0 } else { *values.select_nth_unstable_by(middle, f64::total_cmp).1 }
}

/// The time of the occurrences of a stratum that were not measured, with its variance and degrees of freedom. `pace` is the
/// target's time over the base's of all that was measured of the phase.
fn rest(list: &[Sample], pace: f64) -> (f64, f64, f64) {
    let (seen, unseen): (Vec<&Sample>, Vec<&Sample>) = list.iter().partition(|s| s.target.is_some());
    if unseen.is_empty() {
        return (0.0, 0.0, 1.0);
    }
    let mean_of =
        |list: &[&Sample], of: fn(&Sample) -> f64| list.iter().map(|s| of(s)).sum::<f64>() / list.len() as f64;
    let (count, base_unseen) = (unseen.len() as f64, mean_of(&unseen, Sample::profile));
    if seen.is_empty() {
        let time = pace * count * base_unseen;
        return (time, (FEW * time).powi(2), 3.0);
    }
    let (mean, base_seen) = (mean_of(&seen, |s| s.target.unwrap_or(0.0)), mean_of(&seen, Sample::profile));
    let (variance, freedom) = variance_of_mean(&seen, mean);
    // The occurrences to come scatter as those that were seen: their mean has an error of its own.
    let variance = count * count * variance * (1.0 + seen.len() as f64 / count);
    (count * drifted(mean, reliability(list), base_seen, base_unseen), variance, freedom)
}

/// The mean of occurrences that were not measured, from that of those that were and the means of both on the base, whose
/// difference is believed as far as it is reliable.
pub(crate) fn drifted(mean: f64, reliability: f64, base_seen: f64, base_unseen: f64) -> f64 {
    let drift = if base_seen > 0.0 { reliability * (base_unseen - base_seen) / base_seen } else { 0.0 };
    mean * (1.0 + drift).max(0.0)
}

/// The run's pace by the phases of which something was measured, and how far their paces lie from it, as a share: each
/// counts with the time that it takes, and not with that which happened to be measured of it. Phases that repeat, if there
/// are any among them.
fn paces(by_phase: &[Vec<Sample>], phases: &[PhaseEstimate]) -> Option<(f64, f64)> {
    let seen = |least: usize| -> Vec<(f64, f64)> {
        let of = by_phase.iter().zip(phases).filter(|(list, phase)| list.len() >= least && phase.measured > 0);
        let times = of.map(|(list, phase)| (phase.total_s, list.iter().map(Sample::profile).sum()));
        times.filter(|&(_, base): &(f64, f64)| base > 0.0).collect()
    };
    let seen = Some(seen(2)).filter(|seen| !seen.is_empty()).unwrap_or_else(|| seen(1));
    let (target, base) = seen.iter().fold((0.0, 0.0), |sum, times| (sum.0 + times.0, sum.1 + times.1));
    let pace = if base > 0.0 { target / base } else { return None };
    let squares: f64 = seen.iter().map(|(target, own)| own * (target / own / pace - 1.0).powi(2)).sum();
    (pace > 0.0).then(|| (pace, (squares / base).sqrt()))
}

/// The rank that takes longest. One of which too little was measured to know its own pace is only taken if it takes
/// clearly longer than the others: what it waits for them is most of its time.
pub(crate) fn slowest(ranks: &[RankEstimate]) -> usize {
    let longest = |known: bool| {
        let of = (0..ranks.len()).filter(|&rank| ranks[rank].known == known);
        of.max_by(|&a, &b| ranks[a].total.total_cmp(&ranks[b].total))
    };
    match (longest(true), longest(false)) {
        (Some(known), Some(other)) if ranks[other].total > CLEARLY * ranks[known].total => other,
        (Some(known), _) => known,
        (None, other) => other.unwrap_or(0),
    }
}

/// Target time over base time of what was measured: of phases that repeat, if there are any among them; none where that
/// is less than [`LITTLE`] of the rank's time.
fn progress_ratio(by_phase: &[Vec<Sample>]) -> Option<f64> {
    let all: f64 = by_phase.iter().flatten().map(Sample::profile).sum();
    let measured: f64 = by_phase.iter().flatten().filter(|s| s.target.is_some()).map(Sample::profile).sum();
    if measured < LITTLE * all {
        return None;
    }
    let repeating = by_phase.iter().filter(|list| list.len() > 1).flatten();
    ratio(repeating).or_else(|| ratio(by_phase.iter().flatten()))
}

/// Target time over base time of the measured among `samples`; none if there are none.
pub(crate) fn ratio<'s>(samples: impl Iterator<Item = &'s Sample>) -> Option<f64> {
    let times = samples.filter_map(|s| Some((s.target?, s.profile())));
    let (target, base) = times.fold((0.0, 0.0), |sum, time| (sum.0 + time.0, sum.1 + time.1));
    (base > 0.0).then(|| target / base)
}

/// beta: how far differences between stretches of a phase's occurrences, as long as those that were measured, are real.
/// Of single occurrences most of the scatter may be noise where their mean over a stretch follows the program.
pub(crate) fn reliability(list: &[Sample]) -> f64 {
    let pairs: Vec<(f64, f64)> = list.iter().filter_map(|s| Some((s.base, s.again?))).collect();
    let length = stretch(list).clamp(1, (pairs.len() / BLOCKS).max(1));
    let mean =
        |block: &[(f64, f64)], of: fn(&(f64, f64)) -> f64| block.iter().map(of).sum::<f64>() / block.len() as f64;
    let blocks: Vec<(f64, f64)> =
        pairs.chunks_exact(length).map(|block| (mean(block, |p| p.0), mean(block, |p| p.1))).collect();
    if blocks.len() < 3 {
        return 0.0;
    }
    let (ma, mb) = (mean(&blocks, |p| p.0), mean(&blocks, |p| p.1));
    let (mut ab, mut aa, mut bb) = (0.0, 0.0, 0.0);
    for (a, b) in blocks {
        ab += (a - ma) * (b - mb);
        aa += (a - ma) * (a - ma);
        bb += (b - mb) * (b - mb);
    }
    let r = if aa > 0.0 && bb > 0.0 { (ab / (aa * bb).sqrt()).clamp(0.0, 1.0) } else { 0.0 };
    2.0 * r / (1.0 + r)
}

/// How many occurrences were measured on end, in the mean.
fn stretch(list: &[Sample]) -> usize {
    let alike = list.chunk_by(|a, b| a.target.is_some() == b.target.is_some());
    let measured: Vec<usize> = alike.filter(|stretch| stretch[0].target.is_some()).map(<[_]>::len).collect();
    measured.iter().sum::<usize>().div_ceil(measured.len().max(1))
}

/// The variance of the mean of the measured occurrences, by blocks of neighbours, and its degrees of freedom.
fn variance_of_mean(seen: &[&Sample], mean: f64) -> (f64, f64) {
    let blocks = (seen.len() / 2).min(BLOCKS);
    if blocks < 2 {
        return ((FEW * mean).powi(2) / seen.len() as f64, 3.0);
    }
    let of_block = |b: usize| {
        let block = &seen[b * seen.len() / blocks..(b + 1) * seen.len() / blocks];
        block.iter().filter_map(|s| s.target).sum::<f64>() / block.len() as f64
    };
    let squares: f64 = (0..blocks).map(|b| (of_block(b) - mean).powi(2)).sum();
    (squares / (blocks - 1) as f64 / blocks as f64, (blocks - 1) as f64)
}
