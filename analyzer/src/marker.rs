//! The choice of a marker: what each candidate costs to measure, and which is the quietest of the cheapest.
//!
//! Each occurrence of a marker ends a segment; segments with the same symbols are a class. The cost of a candidate is
//! the time to be run on a target for an error of 1 %, or of the first of [`AIMS`] with which measuring pays.
use crate::candidates::{Candidate, patterns, sparser};
use crate::error::AnalyzeError;
use crate::matching::FastMap;
use crate::parallel::{self, Stage};
use crate::pilot::Pilot;
use crate::symbol::Point;
use std::ops::Range;

/// Segments of a class that make it a repeating one.
pub const REPEATS: u64 = 4;
/// What restarting a class once costs, in seconds.
const RESTART_S: f64 = 0.05;
/// Warm-up before a measurement, in seconds.
const WARM_S: f64 = 0.01;
/// The errors aimed at, as shares of the run: the first with which measuring pays is taken, as on a machine whose times
/// scatter much the least would ask for the whole run.
pub const AIMS: [f64; 3] = [0.01, 0.03, 0.1];
/// Patterns that count only every n-th time must cost at most this share of what others do: shorter segments are better.
const WORTH: f64 = 0.7;
/// Measuring pays where it is at most this share of the run.
pub const PAYS: f64 = 0.5;
/// Time in classes too small to be measured that is tolerated, as a share of what is cut.
const TOLERATED: f64 = 0.05;
/// Candidates within this share of the run of the least cost are compared by their skew.
pub const NEAR: f64 = 0.03;
/// Times the least cost up to which quiet candidates are looked at.
const QUIET: f64 = 2.0;
/// Candidates of either kind whose skew is looked at.
const FINALISTS: usize = 32;
/// More classes than this are not followed: nothing repeats then.
const MOST_CLASSES: usize = 1 << 12;
/// From so many classes on, three quarters of the segments being of a class of their own means that nothing repeats.
const MANY_CLASSES: usize = 1 << 8;

/// Times of the occurrences of a class, summed up.
#[derive(Clone, Copy, Debug, Default)]
pub struct Times {
    /// How many.
    pub count: u64,
    /// Their sum in seconds.
    pub sum: f64,
    squares: f64,
    last: f64,
    steps: f64,
}

impl Times {
    /// Takes in the next occurrence.
    pub fn push(&mut self, time: f64) {
        if self.count > 0 {
            self.steps += (time - self.last) * (time - self.last);
        }
        self.last = time;
        self.count += 1;
        self.sum += time;
        self.squares += time * time;
    }

    /// Takes in the occurrences of another class.
    pub fn merge(&mut self, other: &Times) {
        self.count += other.count;
        self.sum += other.sum;
        self.squares += other.squares;
        self.steps += other.steps;
    }

    /// Their mean.
    pub fn mean(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum / self.count as f64 }
    }

    /// Their standard deviation.
    pub fn sd(&self) -> f64 {
        if self.count < 2 {
            return 0.0;
        }
        let n = self.count as f64;
        ((self.squares - self.sum * self.sum / n) / (n - 1.0)).max(0.0).sqrt()
    }

    /// Their number times the standard deviation within short stretches (n s in [`needed`]).
    pub fn spread(&self) -> f64 {
        self.count as f64 * self.local_sd()
    }

    /// The standard deviation within short stretches (from successive differences): what is left of it when samples
    /// are spread over the run, so that drift and levels are sampled too.
    pub fn local_sd(&self) -> f64 {
        if self.count < 2 {
            return 0.0;
        }
        (self.steps / (2.0 * (self.count - 1) as f64)).sqrt().min(self.sd())
    }
}

/// How many occurrences of a class must be measured for an error of `aim` seconds in a run whose classes have
/// `all` = sum of n s: at least 3, at most all.
pub fn needed(times: &Times, all: f64, aim: f64) -> u64 {
    let wanted = times.spread() * all / (aim * aim).max(f64::MIN_POSITIVE);
    let finite = wanted / (1.0 + wanted / times.count.max(1) as f64);
    (finite.ceil() as u64).clamp(3, times.count.max(3)).min(times.count)
}

/// What costs are relative to.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    /// The run in seconds.
    pub run_s: f64,
    /// What of it is cut, in seconds.
    pub span_s: f64,
    /// The share of the run from which on a class is relevant.
    pub relevance: f64,
    /// The error aimed at, as a share of the run.
    pub aim: f64,
}

/// A class for its cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    /// It does not repeat: it is measured whole.
    Once,
    /// It is not measured.
    Small,
    /// It is measured as often as its spread needs.
    Repeating,
}

impl Scale {
    /// What is done with a class.
    pub fn sort(&self, times: &Times) -> Sort {
        if times.count < REPEATS {
            Sort::Once
        } else if times.sum < self.relevance * self.run_s {
            Sort::Small
        } else {
            Sort::Repeating
        }
    }

    /// The sum of n s over what repeats, as [`needed`] takes it.
    pub fn spread<'t>(&self, classes: impl Iterator<Item = &'t Times>) -> f64 {
        classes.filter(|t| self.sort(t) == Sort::Repeating).map(Times::spread).sum()
    }

    /// What measuring a class that repeats costs in seconds, and how many occurrences are measured.
    pub fn measured(&self, times: &Times, spread: f64) -> (f64, u64) {
        let needed = needed(times, spread, self.aim * self.run_s);
        let warm = (WARM_S / times.mean()).max(1.0);
        ((needed as f64 + warm).min(times.count as f64) * times.mean() + RESTART_S, needed)
    }

    /// What a set of classes costs to measure, in seconds, and how many occurrences are measured; `rest` is the time of
    /// segments that are in none of them.
    pub fn cost<'t>(&self, classes: impl Iterator<Item = &'t Times> + Clone, rest: f64) -> (f64, u64) {
        let spread = self.spread(classes.clone());
        let (mut cost_s, mut small_s, mut samples) = (rest, 0.0, 0);
        for times in classes {
            match self.sort(times) {
                Sort::Once => cost_s += times.sum,
                Sort::Small => small_s += times.sum,
                Sort::Repeating => {
                    let (more_s, more) = self.measured(times, spread);
                    cost_s += more_s;
                    samples += more;
                }
            }
        }
        (cost_s + (small_s - TOLERATED * self.span_s).max(0.0), samples)
    }
}

struct Segmenter {
    seen: u64,
    ends: Option<(Point, f64)>,
    classes: FastMap<u64, Times>,
    /// Time of segments in no class: the beginning of the run, and its end.
    rest_s: f64,
    dead: bool,
}

impl Segmenter {
    /// Ends a segment.
    fn end(&mut self, point: Point, exit_s: f64, every: u64) {
        let Some((before, from_s)) = self.ends.replace((point, exit_s)) else {
            self.rest_s += exit_s;
            return;
        };
        self.classes.entry(point.since(&before)).or_default().push(exit_s - from_s);
        let (classes, segments) = (self.classes.len(), self.seen / every);
        self.dead = classes > MOST_CLASSES || classes > MANY_CLASSES && classes as u64 * 4 > segments * 3;
        if self.dead {
            self.classes = FastMap::default();
        }
    }

    /// Ends what is left at the end of a stretch.
    fn close(&mut self, point: Point, exit_s: f64, every: u64) {
        if self.ends.is_none_or(|(before, _)| before.symbols < point.symbols) {
            self.end(point, exit_s, every);
        }
    }
}

/// The places of candidates by the hashes of their patterns: those of one pattern differ in how often it counts.
struct Places {
    /// Bits by the first bits of the hashes that there are: most patterns are none of a candidate.
    seen: Vec<u64>,
    places: FastMap<u64, Vec<usize>>,
}

impl Places {
    fn new<'c>(candidates: impl Iterator<Item = (usize, &'c Candidate)>) -> Places {
        let mut new = Places { seen: vec![0; 1 << 8], places: FastMap::default() };
        for (at, candidate) in candidates {
            let (word, bit) = Places::bit(candidate.hash);
            new.seen[word] |= bit;
            new.places.entry(candidate.hash).or_default().push(at);
        }
        new
    }

    #[inline]
    fn bit(hash: u64) -> (usize, u64) {
        ((hash >> 56) as usize, 1 << (hash >> 50 & 63))
    }

    #[inline]
    fn of(&self, hash: u64) -> &[usize] {
        let (word, bit) = Places::bit(hash);
        if self.seen[word] & bit == 0 { &[] } else { self.places.get(&hash).map_or(&[], Vec::as_slice) }
    }
}

/// A candidate with its cost.
#[derive(Clone, Copy, Debug)]
pub struct Priced {
    /// The candidate.
    pub candidate: Candidate,
    /// Its cost in seconds.
    pub cost_s: f64,
    /// Occurrences that are measured for that.
    pub samples: u64,
}

/// What markers are sought in.
#[derive(Clone, Copy)]
pub struct Search<'a> {
    /// The stream.
    pub pilot: &'a Pilot,
    /// The stretches of it that are to be cut, ascending.
    pub stretches: &'a [Range<usize>],
    /// What costs are relative to; the error aimed at is each of [`AIMS`].
    pub scale: Scale,
    /// Threads.
    pub threads: usize,
}

impl Search<'_> {
    /// Prices `candidates` for each of [`AIMS`], the cheapest first. If none pays for the least, patterns that count only
    /// every n-th time are looked at, too.
    ///
    /// # Errors
    /// None of its own.
    pub fn prices(&self, candidates: &[Candidate], stage: &Stage<'_>) -> Result<Vec<Vec<Priced>>, AnalyzeError> {
        let mut prices = self.price(candidates, stage)?;
        let least = |prices: &[Priced]| prices.first().map_or(f64::INFINITY, |best| best.cost_s);
        if least(&prices[0]) > PAYS * self.scale.span_s {
            let more = self.price(&sparser(candidates), stage)?;
            if least(&more[0]) <= WORTH * least(&prices[0]) {
                for (prices, more) in prices.iter_mut().zip(more) {
                    prices.extend(more);
                    cheapest_first(prices);
                }
            }
        }
        Ok(prices)
    }

    /// Prices all candidates in one pass.
    fn price(&self, candidates: &[Candidate], stage: &Stage<'_>) -> Result<Vec<Vec<Priced>>, AnalyzeError> {
        let mut sorted = candidates.to_vec();
        sorted.sort_unstable_by_key(|c| (c.length, c.hash, c.every));
        let groups: Vec<&[Candidate]> = sorted.chunk_by(|a, b| a.length == b.length).collect();
        let priced = parallel::map(groups.len(), self.threads, stage, |task, _| {
            Ok::<_, AnalyzeError>(self.price_length(groups[task]))
        })?;
        let for_aim = |aim: usize| {
            let mut prices: Vec<Priced> = priced.iter().flatten().map(|prices| prices[aim]).collect();
            cheapest_first(&mut prices);
            prices
        };
        Ok((0..AIMS.len()).map(for_aim).collect())
    }

    fn price_length(&self, candidates: &[Candidate]) -> Vec<[Priced; AIMS.len()]> {
        let Some(length) = candidates.first().map(|c| c.length) else { return Vec::new() };
        let pilot = self.pilot;
        let places = Places::new(candidates.iter().enumerate());
        let mut segmenters: Vec<Segmenter> = candidates
            .iter()
            .map(|_| Segmenter { seen: 0, ends: None, classes: FastMap::default(), rest_s: 0.0, dead: false })
            .collect();
        for stretch in self.stretches {
            let mut point = Point::default();
            let mut pushed = stretch.start;
            let mut upto = |end: usize| {
                (pushed..end).for_each(|at| point.push(pilot.symbol(at)));
                pushed = pushed.max(end);
                point
            };
            if stretch.start > 0 {
                let begun = Some((Point::default(), pilot.end_s(stretch.start)));
                segmenters.iter_mut().for_each(|segmenter| segmenter.ends = begun);
            }
            patterns(pilot, stretch, length, |at, hash| {
                for &number in places.of(hash) {
                    let (segmenter, every) = (&mut segmenters[number], candidates[number].every);
                    segmenter.seen += 1;
                    if !segmenter.dead && (segmenter.seen - 1).is_multiple_of(every) {
                        segmenter.end(upto(at + 1), pilot.exit_s(at), every);
                    }
                }
            });
            for (segmenter, candidate) in segmenters.iter_mut().zip(candidates).filter(|(s, _)| !s.dead) {
                if stretch.end == pilot.length() {
                    segmenter.rest_s += (self.scale.run_s - segmenter.ends.map_or(0.0, |(_, last_s)| last_s)).max(0.0);
                } else {
                    segmenter.close(upto(stretch.end), pilot.end_s(stretch.end), candidate.every);
                }
            }
        }
        let mut priced = Vec::new();
        for (candidate, segmenter) in candidates.iter().zip(&segmenters).filter(|(_, s)| !s.dead) {
            // In the order of their sums, so that rounding does not depend on the map.
            let mut classes: Vec<(&u64, &Times)> = segmenter.classes.iter().collect();
            classes.sort_unstable_by_key(|(hash, _)| **hash);
            priced.push(AIMS.map(|aim| {
                let scale = Scale { aim, ..self.scale };
                let (cost_s, samples) = scale.cost(classes.iter().map(|(_, t)| *t), segmenter.rest_s);
                Priced { candidate: *candidate, cost_s, samples }
            }));
        }
        priced
    }
}

/// The positions (symbols before the cut) at which each of `candidates` ends a segment of `stretches`.
pub fn positions(pilot: &Pilot, stretches: &[Range<usize>], candidates: &[Candidate]) -> Vec<Vec<u64>> {
    let mut found = vec![Vec::new(); candidates.len()];
    let mut lengths: Vec<usize> = candidates.iter().map(|c| c.length).collect();
    lengths.sort_unstable();
    lengths.dedup();
    let mut seen = vec![0u64; candidates.len()];
    for stretch in stretches {
        for &length in &lengths {
            let places = Places::new(candidates.iter().enumerate().filter(|(_, c)| c.length == length));
            patterns(pilot, stretch, length, |at, hash| {
                for &number in places.of(hash) {
                    if seen[number].is_multiple_of(candidates[number].every) {
                        found[number].push(at as u64 + 1);
                    }
                    seen[number] += 1;
                }
            });
        }
    }
    found
}

fn cheapest_first(prices: &mut [Priced]) {
    prices.sort_by(|a, b| {
        let key = |p: &Priced| (p.candidate.length, p.candidate.first, p.candidate.hash, p.candidate.every);
        a.cost_s.total_cmp(&b.cost_s).then_with(|| key(a).cmp(&key(b)))
    });
}

/// The cheapest candidates: those within [`NEAR`] of the best and, as their cuts are quiet, those that end in a
/// collective up to [`QUIET`] times its cost, as long as their cuts together stay within `room`. The cheapest is first.
pub fn finalists(pilot: &Pilot, priced: &[Priced], span_s: f64, room: u64) -> Vec<Priced> {
    let Some(best) = priced.first() else { return Vec::new() };
    let near = best.cost_s + NEAR * span_s;
    let (quiet, others): (Vec<&Priced>, Vec<&Priced>) =
        priced[1..].iter().partition(|p| pilot.is_collective(p.candidate.first as usize));
    let quiet = quiet.into_iter().take_while(|p| p.cost_s <= near.max(QUIET * best.cost_s));
    let others = others.into_iter().take_while(|p| p.cost_s <= near);
    let cuts = |p: &Priced| p.candidate.count / p.candidate.every + 1;
    let mut left = room.saturating_sub(cuts(best));
    let mut chosen = vec![*best];
    for priced in quiet.take(FINALISTS).chain(others.take(FINALISTS)) {
        if cuts(priced) <= left {
            left -= cuts(priced);
            chosen.push(*priced);
        }
    }
    chosen
}
