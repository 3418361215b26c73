//! The estimate of a run on a target from the pieces that were measured there: for live prediction a prefix of the
//! run, for restarted signatures the planned occurrences.
//!
//! For each rank and phase, with S the measured occurrences and U the others,
//! `total = sum_S(target) + |U| mean_S(target) (1 + beta (mean_U(base) / mean_S(base) - 1))`, where
//! `beta = 2 r / (1 + r)` and r is the correlation of the two base runs over the occurrences (0 with one run): what the
//! base runs agree on is believed, noise is not. Phases not seen yet and one-offs take their base time x the ratio of
//! target to base over what was seen. The interval is the larger of Student's t over blocks of the run (neighbouring
//! occurrences correlate) and of what the same sample would have erred on the base runs, joined with 15 % of the time
//! in phases not seen.
use crate::error::AnalyzeError;
use crate::model::{Analysis, Piece};
use phasecast_trace::{Nanos, PhaseId, Rank};
use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

/// Stretches of equal length into which a run is divided to see how the target's pace varies.
const BINS: usize = 64;
/// The most blocks of which the variation is taken.
const BLOCKS: usize = 10;
/// The error of phases not seen, as a share of their time.
const UNSEEN: f64 = 0.15;
/// The variation of run times that is assumed of a machine: the median of 24 programs.
const ASSUMED_CV: f64 = 0.03;
/// How many degrees of freedom that assumption is worth beside measured base runs.
const ASSUMED_WEIGHT: f64 = 2.0;

/// What is known of a phase on the target.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PhaseEstimate {
    /// The phase.
    pub id: PhaseId,
    /// Its occurrences in the whole run.
    pub weight: u64,
    /// Occurrences measured on the slowest rank.
    pub measured: u64,
    /// Mean time on the base in seconds, on the slowest rank.
    pub base_s: f64,
    /// Mean time of the measured ones in seconds.
    pub target_s: Option<f64>,
    /// Time of all occurrences in seconds, measured or estimated.
    pub total_s: f64,
}

/// An estimated run.
#[derive(Clone, Debug, PartialEq)]
pub struct Estimate {
    /// The rank with the longest predicted run.
    pub rank: Rank,
    /// Its predicted run in seconds, from the start of its process to its end.
    pub total_s: f64,
    /// Every rank's.
    pub totals_s: Vec<f64>,
    /// Time of that rank's measured pieces on the target in seconds.
    pub measured_s: f64,
    /// The same pieces on the base, as a share of the base run.
    pub covered: f64,
    /// Time in phases not seen and one-offs not measured in seconds.
    pub residual_s: f64,
    /// Half-width for the mean of many runs in seconds, at the confidence asked for.
    pub half_width_s: f64,
    /// Half-width for another single run in seconds.
    pub run_half_width_s: f64,
    /// Part of the half-width: sampling of the phases seen.
    pub sampling_s: f64,
    /// Part of the half-width: phases not seen.
    pub unmeasured_s: f64,
    /// Part of the half-width of another run: noise of the machine.
    pub machine_s: f64,
    /// Whether the noise is assumed (one base run) rather than measured.
    pub noise_assumed: bool,
    /// The phases.
    pub phases: Vec<PhaseEstimate>,
}

/// Sums over occurrences of one phase on one rank, in seconds.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    count: f64,
    target: f64,
    /// First and second base run, and their mean.
    a: f64,
    b: f64,
    base: f64,
}

impl Sums {
    fn add(&mut self, piece: &Piece, target: f64) {
        let (a, b, base) = base(piece);
        self.count += 1.0;
        self.target += target;
        self.a += a;
        self.b += b;
        self.base += base;
    }
}

fn base(piece: &Piece) -> (f64, f64, f64) {
    let a = piece.time.seconds();
    let b = piece.again.map_or(a, Nanos::seconds);
    (a, b, (a + b) / 2.0)
}

/// One rank: sums of all its occurrences and of those measured.
struct Lane {
    all: Vec<Sums>,
    seen: Vec<Sums>,
    beta: Vec<f64>,
    /// For each stretch of the run: target time of measured pieces, and what their phases take on the base.
    bins: Vec<(f64, f64)>,
    bin_s: f64,
    starts_s: Vec<f32>,
    observed: Vec<bool>,
}

/// Takes in measured pieces one by one; an estimate costs a pass over the phases, not the pieces.
pub struct Estimator<'a> {
    analysis: &'a Analysis,
    lanes: Vec<Lane>,
}

impl<'a> Estimator<'a> {
    /// An estimator that has seen nothing of the target yet.
    ///
    /// # Errors
    /// If the analysis has no pieces.
    pub fn new(analysis: &'a Analysis) -> Result<Estimator<'a>, AnalyzeError> {
        if analysis.pieces.is_empty() || analysis.pieces.iter().any(Vec::is_empty) {
            let what = "this analysis has no pieces (too many events for --method pbb), so that no run can be followed \
                        by it: analyse with --method marker";
            return Err(AnalyzeError::Pieces { what: what.into() });
        }
        let phases = analysis.phases.len();
        let lanes = analysis.pieces.iter().map(|pieces| Lane::new(pieces, phases)).collect();
        Ok(Estimator { analysis, lanes })
    }

    /// A piece of a rank took so long on the target. The first measurement of a piece counts.
    ///
    /// # Errors
    /// If there is no such piece.
    pub fn observe(&mut self, rank: Rank, piece: usize, time: Nanos) -> Result<(), AnalyzeError> {
        let known = self.analysis.pieces.get(rank.index()).and_then(|pieces| pieces.get(piece));
        let (Some(known), Some(lane)) = (known, self.lanes.get_mut(rank.index())) else {
            return Err(AnalyzeError::Pieces { what: format!("the analysis has no piece {piece} of rank {rank}") });
        };
        if std::mem::replace(&mut lane.observed[piece], true) {
            return Ok(());
        }
        let (phase, seconds) = (known.phase.index(), time.seconds());
        lane.seen[phase].add(known, seconds);
        let bin = ((f64::from(lane.starts_s[piece]) / lane.bin_s) as usize).min(BINS - 1);
        let expected = lane.all[phase].base / lane.all[phase].count;
        lane.bins[bin].0 += seconds;
        lane.bins[bin].1 += expected;
        Ok(())
    }

    /// The estimate from what was observed; `confidence` is the level of its intervals, 0 to 1.
    pub fn estimate(&self, confidence: f64) -> Estimate {
        let ratio = self.ratio();
        let totals: Vec<f64> = self.lanes.iter().map(|lane| lane.total(lane.ratio().unwrap_or(ratio)).0).collect();
        let rank = (0..totals.len()).fold(0, |best, r| if totals[r] > totals[best] { r } else { best });
        let lane = &self.lanes[rank];
        let own = lane.ratio().unwrap_or(ratio);
        let (total_s, residual_s) = lane.total(own);
        let level = confidence.clamp(0.5, 0.999);
        let measured_s: f64 = lane.seen.iter().map(|s| s.target).sum();
        let open_s = (total_s - measured_s - residual_s).max(0.0);
        let blocks_s = lane.pace_error(level, own) * open_s;
        let replay_s = lane.replay_error(self.analysis.base_runs_s.len() > 1) * total_s;
        let sampling_s = blocks_s.max(replay_s);
        let unmeasured_s = UNSEEN * residual_s;
        let half_width_s = sampling_s.hypot(unmeasured_s);
        let z = Normal::standard().inverse_cdf(0.5 + level / 2.0);
        let machine_s = z * noise(&self.analysis.base_runs_s) * total_s;
        let phases = self.analysis.phases.iter().map(|phase| {
            let (all, seen) = (&lane.all[phase.id.index()], &lane.seen[phase.id.index()]);
            PhaseEstimate {
                id: phase.id,
                weight: phase.weight,
                measured: seen.count as u64,
                base_s: all.base / all.count.max(1.0),
                target_s: (seen.count > 0.0).then(|| seen.target / seen.count),
                total_s: lane.phase(phase.id.index(), own).0,
            }
        });
        let of_base: f64 = lane.all.iter().map(|s| s.base).sum();
        Estimate {
            rank: Rank(rank as u32),
            total_s,
            measured_s,
            covered: lane.seen.iter().map(|s| s.base).sum::<f64>() / of_base.max(1e-12),
            residual_s,
            half_width_s,
            run_half_width_s: half_width_s.hypot(machine_s),
            sampling_s,
            unmeasured_s,
            machine_s,
            noise_assumed: self.analysis.base_runs_s.len() < 2,
            phases: phases.collect(),
            totals_s: totals,
        }
    }

    /// Target over base of all ranks together; 1 if nothing was seen.
    fn ratio(&self) -> f64 {
        let (target, base) = self.lanes.iter().map(Lane::progress).fold((0.0, 0.0), |s, l| (s.0 + l.0, s.1 + l.1));
        if base > 0.0 { target / base } else { 1.0 }
    }
}

impl Lane {
    fn new(pieces: &[Piece], phases: usize) -> Lane {
        let mut all = vec![Sums::default(); phases];
        let mut members: Vec<Vec<(f64, f64)>> = vec![Vec::new(); phases];
        let mut starts_s = Vec::with_capacity(pieces.len());
        let mut now = 0.0;
        for piece in pieces {
            all[piece.phase.index()].add(piece, 0.0);
            starts_s.push((now + base(piece).2 / 2.0) as f32);
            now += base(piece).2;
            if let Some(again) = piece.again {
                members[piece.phase.index()].push((piece.time.seconds(), again.seconds()));
            }
        }
        Lane {
            seen: vec![Sums::default(); phases],
            beta: members.iter().map(|m| reliability(m)).collect(),
            bins: vec![(0.0, 0.0); BINS],
            bin_s: (now / BINS as f64).max(1e-12),
            observed: vec![false; pieces.len()],
            starts_s,
            all,
        }
    }

    /// Target and base time of what was seen: of repeating phases if there are any, else of all.
    fn progress(&self) -> (f64, f64) {
        let sum = |repeating: bool| {
            let seen = self.seen.iter().zip(&self.all).filter(|(_, all)| !repeating || all.count >= 2.0);
            seen.fold((0.0, 0.0), |sums, (seen, _)| (sums.0 + seen.target, sums.1 + seen.base))
        };
        let repeating = sum(true);
        if repeating.1 > 0.0 { repeating } else { sum(false) }
    }

    fn ratio(&self) -> Option<f64> {
        let (target, base) = self.progress();
        (base > 0.0).then(|| target / base)
    }

    /// Time of a phase in seconds, and how much of that is of a phase not seen.
    fn phase(&self, phase: usize, ratio: f64) -> (f64, f64) {
        let (all, seen) = (&self.all[phase], &self.seen[phase]);
        if seen.count == 0.0 {
            let time = all.base * ratio;
            return (time, time);
        }
        (extend(all.count, seen.count, seen.target, all.base, seen.base, self.beta[phase]), 0.0)
    }

    fn total(&self, ratio: f64) -> (f64, f64) {
        (0..self.all.len()).map(|p| self.phase(p, ratio)).fold((0.0, 0.0), |s, p| (s.0 + p.0, s.1 + p.1))
    }

    /// The relative error of the pace of what is open, by Student's t over blocks of what was measured.
    fn pace_error(&self, level: f64, ratio: f64) -> f64 {
        let bin_s = self.bin_s;
        let filled: Vec<&(f64, f64)> = self.bins.iter().filter(|bin| bin.1 >= bin_s / 4.0).collect();
        let size = filled.len().div_ceil(BLOCKS).max(1);
        let blocks: Vec<f64> = filled
            .chunks(size)
            .filter(|chunk| chunk.len() == size)
            .map(|chunk| chunk.iter().map(|b| b.0).sum::<f64>() / chunk.iter().map(|b| b.1).sum::<f64>() / ratio)
            .collect();
        let count = blocks.len() as f64;
        if count < 3.0 {
            return 2.0 * ASSUMED_CV * f64::sqrt(3.0);
        }
        let mean = blocks.iter().sum::<f64>() / count;
        let variance = blocks.iter().map(|b| (b - mean) * (b - mean)).sum::<f64>() / (count - 1.0);
        let open = ((BINS - filled.len()) as f64 / size as f64).max(1.0);
        quantile(level, count - 1.0) * (variance * (1.0 / count + 1.0 / open)).sqrt()
    }

    /// How much the same sample errs on the base runs, relative to them; each predicted with the other as its base.
    fn replay_error(&self, two: bool) -> f64 {
        let error = |own: fn(&Sums) -> f64, other: fn(&Sums) -> f64| {
            let (seen, base): (f64, f64) =
                self.seen.iter().fold((0.0, 0.0), |s, x| (s.0 + own(x), s.1 + other(x)));
            let ratio = if base > 0.0 { seen / base } else { 1.0 };
            let (mut predicted, mut truth) = (0.0, 0.0);
            for ((all, seen), beta) in self.all.iter().zip(&self.seen).zip(&self.beta) {
                truth += own(all);
                predicted += if seen.count > 0.0 {
                    extend(all.count, seen.count, own(seen), other(all), other(seen), *beta)
                } else {
                    other(all) * ratio
                };
            }
            if truth > 0.0 { (predicted / truth - 1.0).abs() } else { 0.0 }
        };
        if two { error(|s| s.a, |s| s.b).max(error(|s| s.b, |s| s.a)) } else { error(|s| s.a, |s| s.a) }
    }
}

/// All occurrences of a phase from the measured ones: their target time, and what the base says of the others.
fn extend(count: f64, measured: f64, target: f64, base_all: f64, base_seen: f64, beta: f64) -> f64 {
    let open = count - measured;
    if open <= 0.0 {
        return target;
    }
    let (mean_open, mean_seen) = ((base_all - base_seen) / open, base_seen / measured);
    let drift = if mean_seen > 0.0 { beta * (mean_open / mean_seen - 1.0) } else { 0.0 };
    target + open * target / measured * (1.0 + drift)
}

/// `2 r / (1 + r)`: how far the mean of two base runs can be believed where they vary.
fn reliability(times: &[(f64, f64)]) -> f64 {
    if times.len() < 4 {
        return 0.0;
    }
    let n = times.len() as f64;
    let (ma, mb) = times.iter().fold((0.0, 0.0), |m, t| (m.0 + t.0 / n, m.1 + t.1 / n));
    let (mut ab, mut aa, mut bb) = (0.0, 0.0, 0.0);
    for (a, b) in times {
        ab += (a - ma) * (b - mb);
        aa += (a - ma) * (a - ma);
        bb += (b - mb) * (b - mb);
    }
    let r = if aa > 0.0 && bb > 0.0 { (ab / (aa * bb).sqrt()).clamp(0.0, 1.0) } else { 0.0 };
    2.0 * r / (1.0 + r)
}

fn quantile(level: f64, freedom: f64) -> f64 {
    StudentsT::new(0.0, 1.0, freedom).map_or(2.0, |t| t.inverse_cdf(0.5 + level / 2.0))
}

/// The run time's coefficient of variation: of the base runs, drawn towards what is assumed as long as they are few.
fn noise(runs: &[f64]) -> f64 {
    let n = runs.len() as f64;
    let mean = runs.iter().sum::<f64>() / n.max(1.0);
    if runs.len() < 2 || mean <= 0.0 {
        return ASSUMED_CV;
    }
    let squares: f64 = runs.iter().map(|t| (t / mean - 1.0) * (t / mean - 1.0)).sum();
    ((ASSUMED_WEIGHT * ASSUMED_CV * ASSUMED_CV + squares) / (ASSUMED_WEIGHT + n - 1.0)).sqrt()
}

/// The estimate from the pieces that were measured: for each rank and piece its time, where there is one.
///
/// # Errors
/// If the analysis has no pieces, or there are more times than pieces.
pub fn estimate(
    analysis: &Analysis,
    measured: &[Vec<Option<Nanos>>],
    confidence: f64,
) -> Result<Estimate, AnalyzeError> {
    let mut estimator = Estimator::new(analysis)?;
    for (rank, times) in measured.iter().enumerate() {
        for (piece, time) in times.iter().enumerate().filter_map(|(at, time)| Some((at, (*time)?))) {
            estimator.observe(Rank(rank as u32), piece, time)?;
        }
    }
    Ok(estimator.estimate(confidence))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drift_that_both_base_runs_show_is_carried_over() {
        assert_eq!(extend(4.0, 2.0, 2.0, 8.0, 3.0, 0.0), 4.0);
        assert_eq!(extend(4.0, 2.0, 2.0, 8.0, 3.0, 1.0), 2.0 + 2.0 * (1.0 + (2.5 / 1.5 - 1.0)));
        assert_eq!(extend(4.0, 4.0, 2.0, 8.0, 8.0, 1.0), 2.0);
        let same: Vec<(f64, f64)> = (0..10).map(|i| (f64::from(i), f64::from(i))).collect();
        assert!((reliability(&same) - 1.0).abs() < 1e-9);
        let opposite: Vec<(f64, f64)> = (0..10).map(|i| (f64::from(i), -f64::from(i))).collect();
        assert_eq!(reliability(&opposite), 0.0);
    }

    #[test]
    fn students_t_and_noise() {
        assert!((quantile(0.95, 9.0) - 2.262).abs() < 1e-3);
        assert_eq!(noise(&[10.0]), ASSUMED_CV);
        assert!(noise(&[10.0, 10.0]) < ASSUMED_CV);
        assert!(noise(&[10.0, 12.0]) > 0.06);
    }
}
