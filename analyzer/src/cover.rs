//! Markers that cover a run together. One marker cuts the loop in which its pattern comes; another loop, whose messages
//! are others, it leaves whole. What a marker leaves is a run of its own, in which a further marker is sought, as long as
//! that saves enough (greedy set cover, by cost).
use crate::Settings;
use crate::candidates::{Candidate, FEWEST, candidates};
use crate::error::AnalyzeError;
use crate::marker::{self, AIMS, PAYS, Priced, Scale, Search, Sort, Times};
use crate::matching::FastMap;
use crate::parallel::Stage;
use crate::pilot::Pilot;
use crate::symbol::{Point, mix};
use std::ops::Range;

/// The most markers of a run.
const MOST: usize = 8;
/// The share of the run's time that a further marker must save.
const GAIN: f64 = 0.02;
/// The shortest segment that repeats and is looked into, as a share of the run.
const LONG: f64 = 0.005;
/// One in so many positions of a marker may lie where a further one cuts, beyond those of the cheapest.
const LOST: usize = 10;
/// The fewest symbols of a stretch with a marker of its own.
const SYMBOLS: usize = 2 * FEWEST as usize;

/// Markers on the stream of the pilot.
pub struct Markers {
    /// The stream.
    pub pilot: Pilot,
    /// The error aimed at, as a share of the run.
    pub aim: f64,
    /// The markers: the first is of the whole run, each further one of what those before leave.
    pub found: Vec<Found>,
    /// Whether measuring pays, by the cheapest of each.
    pub pays: bool,
    /// What markers of the whole run cost, for each of [`AIMS`].
    whole: Vec<Vec<Priced>>,
}

/// Within what markers are sought.
#[derive(Clone, Copy)]
pub struct Bounds<'a> {
    /// How often those that are looked at more closely may come, all together.
    pub room: u64,
    /// The settings.
    pub settings: &'a Settings,
    /// Where the progress goes.
    pub stage: &'a Stage<'a>,
}

/// Prices of markers for some stretches of the run.
pub struct Found {
    /// The stretches, as positions in the pilot's stream.
    pub stretches: Vec<Range<usize>>,
    /// How long they take together, in seconds.
    pub span_s: f64,
    /// The markers, the cheapest first.
    pub priced: Vec<Priced>,
}

/// What a marker leaves.
struct Left {
    stretches: Vec<Range<usize>>,
    span_s: f64,
    /// What measuring it costs as it is.
    cost_s: f64,
}

/// A stretch with its time in seconds.
type Timed = (Range<usize>, f64);

/// A segment of the pilot's stream: its class, and its time in seconds.
struct Segment {
    range: Range<usize>,
    class: u64,
    time_s: f64,
}

impl Markers {
    /// Finds markers for the first error of [`AIMS`] with which measuring pays; if it pays with none, for the least.
    ///
    /// # Errors
    /// None of its own.
    pub fn find(pilot: Pilot, bounds: &Bounds<'_>) -> Result<Markers, AnalyzeError> {
        let run = 0..pilot.length();
        let prices = prices(&pilot, std::slice::from_ref(&run), pilot.run_s(), bounds)?;
        Markers::cover(pilot, prices, &[], bounds)
    }

    /// The same with these as the first markers: each further one is sought in what they leave.
    ///
    /// # Errors
    /// None of its own.
    pub fn led_by(self, leads: &[Candidate], bounds: &Bounds<'_>) -> Result<Markers, AnalyzeError> {
        Markers::cover(self.pilot, self.whole, leads, bounds)
    }

    /// Markers of the whole run with their prices for each of [`AIMS`], and further ones of what the cheapest leaves.
    fn cover(
        pilot: Pilot,
        whole: Vec<Vec<Priced>>,
        leads: &[Candidate],
        bounds: &Bounds<'_>,
    ) -> Result<Markers, AnalyzeError> {
        let (run, run_s) = (0..pilot.length(), pilot.run_s());
        let led = |priced: &[Priced], number: usize| {
            let lead = leads.get(number).and_then(|lead| priced.iter().find(|priced| priced.candidate == *lead));
            lead.map_or(priced, std::slice::from_ref).to_vec()
        };
        let mut best = None;
        for (number, (aim, priced)) in AIMS.into_iter().zip(&whole).enumerate() {
            let priced = led(priced, 0);
            let mut cost_s = priced.first().map_or(f64::INFINITY, |best| best.cost_s);
            let mut found = vec![Found { stretches: vec![run.clone()], span_s: run_s, priced }];
            while let (Some(last), true) = (found.last(), found.len() < MOST) {
                let Some(cheapest) = last.priced.first() else { break };
                let scale = Scale { run_s, span_s: last.span_s, relevance: bounds.settings.relevance, aim };
                let left = left(&pilot, &last.stretches, cheapest.candidate, &scale);
                if left.cost_s < GAIN * run_s {
                    break;
                }
                let priced = led(&prices(&pilot, &left.stretches, left.span_s, bounds)?[number], found.len());
                let Some(saved_s) = priced.first().map(|next| left.cost_s - next.cost_s) else { break };
                if saved_s < GAIN * run_s {
                    break;
                }
                cost_s -= saved_s;
                found.push(Found { stretches: left.stretches, span_s: left.span_s, priced });
            }
            let pays = cost_s <= PAYS * run_s;
            if pays || best.is_none() {
                best = Some((aim, found, pays));
            }
            if pays {
                break;
            }
        }
        let (aim, found, pays) = best.expect("there are errors to aim at");
        Ok(Markers { pilot, aim, found, pays, whole })
    }

    /// For each marker, those that are looked at more closely ([`marker::finalists`]), the cheapest first, with the
    /// positions (symbols before the cut) at which they end a segment.
    pub fn finalists(&self, mut room: u64) -> Vec<Vec<(Priced, Vec<u64>)>> {
        let of = |found: &Found| {
            let finalists = marker::finalists(&self.pilot, &found.priced, found.span_s, room);
            let candidates: Vec<Candidate> = finalists.iter().map(|priced| priced.candidate).collect();
            let positions = marker::positions(&self.pilot, &found.stretches, &candidates);
            room = room.saturating_sub(positions.iter().map(|own| own.len() as u64).sum());
            finalists.into_iter().zip(positions).collect()
        };
        self.found.iter().map(of).collect()
    }

    /// Whether what further markers are sought in is what this choice for a marker leaves, as it is of the cheapest: of
    /// the positions of either, as few lie within stretches that have a marker of their own.
    pub fn leaves_the_same(&self, number: usize, chosen: &[u64], cheapest: &[u64]) -> bool {
        let lost = |own: &[u64]| own.len() - self.outside(number, own).len();
        lost(chosen) * LOST <= lost(cheapest) * LOST + chosen.len()
    }

    /// The positions of a marker that count: within a stretch that has a marker of its own only that one does.
    pub fn outside(&self, number: usize, own: &[u64]) -> Vec<u64> {
        let within = |at: u64, stretches: &[Range<usize>]| {
            let near = stretches.partition_point(|stretch| (stretch.end as u64) <= at);
            stretches.get(near).is_some_and(|stretch| (stretch.start as u64) < at)
        };
        let further = &self.found[number + 1..];
        own.iter().copied().filter(|&at| !further.iter().any(|further| within(at, &further.stretches))).collect()
    }
}

/// What markers of some stretches cost, for each of [`AIMS`].
fn prices(
    pilot: &Pilot,
    stretches: &[Range<usize>],
    span_s: f64,
    &Bounds { room, settings, stage }: &Bounds<'_>,
) -> Result<Vec<Vec<Priced>>, AnalyzeError> {
    let threads = settings.threads;
    let found = candidates(pilot, stretches, span_s, room, threads, stage)?;
    let scale = Scale { run_s: pilot.run_s(), span_s, relevance: settings.relevance, aim: AIMS[0] };
    Search { pilot, stretches, scale, threads }.prices(&found, stage)
}

/// The stretches that a marker leaves dear to measure: neighbouring segments that do not repeat, and each long one that
/// does.
fn left(pilot: &Pilot, stretches: &[Range<usize>], marker: Candidate, scale: &Scale) -> Left {
    let ends = marker::positions(pilot, stretches, &[marker]).swap_remove(0);
    let segments = segments(pilot, stretches, &ends, scale.run_s);
    let mut classes: FastMap<u64, Times> = FastMap::default();
    segments.iter().for_each(|segment| classes.entry(segment.class).or_default().push(segment.time_s));
    let mut sorted: Vec<(&u64, &Times)> = classes.iter().collect();
    sorted.sort_unstable_by_key(|(class, _)| **class);
    let spread = scale.spread(sorted.iter().map(|(_, times)| *times));
    let dear = |times: &Times| {
        let (cost_s, _) = scale.measured(times, spread);
        (times.mean() >= LONG * scale.run_s && cost_s >= GAIN * scale.run_s).then_some(cost_s)
    };
    let (mut once, mut again) = (Vec::<Timed>::new(), Vec::<Timed>::new());
    let mut repeated_s = 0.0;
    for (class, times) in sorted.iter().filter(|(_, times)| scale.sort(times) == Sort::Repeating) {
        if let Some(cost_s) = dear(times) {
            let own = segments.iter().filter(|s| s.class == **class && s.range.len() >= SYMBOLS);
            let before = again.len();
            again.extend(own.map(|s| (s.range.clone(), s.time_s)));
            repeated_s += if again.len() > before { cost_s } else { 0.0 };
        }
    }
    for segment in segments.iter().filter(|s| classes.get(&s.class).is_some_and(|t| scale.sort(t) == Sort::Once)) {
        match once.last_mut() {
            Some((before, time_s)) if before.end == segment.range.start => {
                before.end = segment.range.end;
                *time_s += segment.time_s;
            }
            _ => once.push((segment.range.clone(), segment.time_s)),
        }
    }
    once.retain(|(range, time_s)| *time_s >= GAIN * scale.run_s && range.len() >= SYMBOLS);
    let cost_s = repeated_s + once.iter().map(|(_, time_s)| time_s).sum::<f64>();
    let mut all = once;
    all.append(&mut again);
    all.sort_unstable_by_key(|(range, _)| range.start);
    let span_s = all.iter().map(|(_, time_s)| time_s).sum();
    Left { stretches: all.into_iter().map(|(range, _)| range).collect(), span_s, cost_s }
}

/// Cuts stretches at `ends`; what begins or ends the run is a class of its own.
fn segments(pilot: &Pilot, stretches: &[Range<usize>], ends: &[u64], run_s: f64) -> Vec<Segment> {
    let end_s = |at: usize| if at == pilot.length() { run_s } else { pilot.end_s(at) };
    let mut segments = Vec::new();
    let mut ends = ends.iter().map(|&at| at as usize).peekable();
    for stretch in stretches {
        let mut from = stretch.start;
        while from < stretch.end {
            let to = ends.next_if(|&at| at <= stretch.end).unwrap_or(stretch.end);
            if to <= from {
                continue;
            }
            let mut point = Point::default();
            (from..to).for_each(|at| point.push(pilot.symbol(at)));
            let own = from == 0 || to == pilot.length();
            let class = if own { mix(from as u64).max(1) } else { point.since(&Point::default()) };
            segments.push(Segment { range: from..to, class, time_s: (end_s(to) - end_s(from)).max(0.0) });
            from = to;
        }
    }
    segments
}
