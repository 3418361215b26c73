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
    /// `room` bounds how often a marker comes.
    ///
    /// # Errors
    /// None of its own.
    pub fn find(pilot: Pilot, room: u64, settings: &Settings, stage: &Stage<'_>) -> Result<Markers, AnalyzeError> {
        let run_s = pilot.run_s();
        let scale = |span_s, aim| Scale { run_s, span_s, relevance: settings.relevance, aim };
        let prices = |stretches: &[Range<usize>], span_s: f64| {
            let found = candidates(&pilot, stretches, span_s, room, settings.threads, stage)?;
            let (pilot, threads) = (&pilot, settings.threads);
            Search { pilot, stretches, scale: scale(span_s, AIMS[0]), threads }.prices(&found, stage)
        };
        let whole = 0..pilot.length();
        let all = prices(std::slice::from_ref(&whole), run_s)?;
        let mut best = None;
        for (number, (aim, priced)) in AIMS.into_iter().zip(all).enumerate() {
            let mut cost_s = priced.first().map_or(f64::INFINITY, |best| best.cost_s);
            let mut found = vec![Found { stretches: vec![whole.clone()], span_s: run_s, priced }];
            while let (Some(last), true) = (found.last(), found.len() < MOST) {
                let Some(cheapest) = last.priced.first() else { break };
                let left = left(&pilot, &last.stretches, cheapest.candidate, &scale(last.span_s, aim));
                if left.cost_s < GAIN * run_s {
                    break;
                }
                let priced = prices(&left.stretches, left.span_s)?.swap_remove(number);
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
        Ok(Markers { pilot, aim, found, pays })
    }

    /// For each marker, those that are looked at more closely ([`marker::finalists`]), with the positions (symbols before
    /// the cut) at which they end a segment. Within a stretch that has a marker of its own only that one counts.
    pub fn finalists(&self, mut room: u64) -> Vec<Vec<(Priced, Vec<u64>)>> {
        let of = |(number, found): (usize, &Found)| {
            let finalists = marker::finalists(&self.pilot, &found.priced, found.span_s, room);
            let candidates: Vec<Candidate> = finalists.iter().map(|priced| priced.candidate).collect();
            let mut positions = marker::positions(&self.pilot, &found.stretches, &candidates);
            for further in &self.found[number + 1..] {
                let within = |at: u64| {
                    let near = further.stretches.partition_point(|stretch| (stretch.end as u64) <= at);
                    further.stretches.get(near).is_some_and(|stretch| (stretch.start as u64) < at)
                };
                positions.iter_mut().for_each(|own| own.retain(|&at| !within(at)));
            }
            room = room.saturating_sub(positions.iter().map(|own| own.len() as u64).sum());
            finalists.into_iter().zip(positions).collect()
        };
        self.found.iter().enumerate().map(of).collect()
    }
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
