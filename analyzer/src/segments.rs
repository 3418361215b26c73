//! `--method marker`: from a trace to segments between consistent cuts, and to the analysis.
use crate::candidates::Candidate;
use crate::closure::{self, Closed, Cut};
use crate::counted::Counted;
use crate::cover::{Bounds, Markers};
use crate::error::AnalyzeError;
use crate::levels;
use crate::marker::{self, Priced};
use crate::matching::FastMap;
use crate::model::{Analysis, Marker, Method, Order, Piece, Share, longest};
use crate::parallel::Stage;
use crate::phases::{self, Class, Sampling};
use crate::pilot::Pilot;
use crate::sinks::{self, advances};
use crate::source::with_feed;
use crate::stream::{self, Zone};
use crate::survey::Survey;
use crate::symbol::{Symbols, mix};
use crate::words;
use crate::{Settings, candidates};
use phasecast_trace::{EventKind, Nanos, PhaseId, Trace};

/// Stands of ranks at cuts that may be kept: bounds the memory of the second pass.
const MOST_STANDS: u64 = 3_000_000;

/// Times another's skew up to which a marker is quieter, and not so by chance.
const QUIETER: f64 = 0.9;

/// The most places of a run at which what repeats is restarted, at each of which the ranks that are ahead wait for the
/// others, however many occurrences are measured from there.
pub const RESTARTS: u64 = 6;

/// Within so many symbols of the pilot's first the first cut is looked for: from there on a program can be restarted.
const EARLY: u64 = 8;

/// What an analysis starts from.
pub struct Input<'a> {
    /// The base runs; the first is analysed, the second confirms.
    pub traces: &'a [Trace],
    /// What is counted of each.
    pub counted: &'a [Counted],
    /// The first pass over each.
    pub surveys: &'a [Survey],
    /// Where the first two runs have their events in another order, or other events, for each rank.
    pub zones: &'a [Vec<Zone>],
    /// The symbols.
    pub symbols: &'a Symbols,
    /// The settings.
    pub settings: &'a Settings,
}

impl Input<'_> {
    /// The rank whose run is the [longest], and its length in seconds; `pieces` says in how many a rank has events.
    pub fn slowest(&self, pieces: impl Fn(usize) -> usize) -> (usize, f64) {
        let survey = &self.surveys[0];
        let ranks = survey.spans.iter().zip(&survey.events).enumerate();
        let share = |(rank, (span, &events)): (usize, (&(u64, u64), &u64))| Share {
            events,
            ns: span.1 - span.0,
            pieces: pieces(rank),
        };
        let rank = longest(&ranks.map(share).collect::<Vec<_>>());
        (rank, survey.spans.get(rank).map_or(0.0, |span| (span.1 - span.0) as f64 * 1e-9))
    }

    /// The first zone of a rank that ends after so many events.
    fn next_zone(&self, rank: usize, events: u64) -> Option<&Zone> {
        let zones = self.zones.get(rank)?;
        zones.get(zones.partition_point(|zone| zone.end() <= events))
    }

    /// The zone of a rank within which a cut behind so many events would lie.
    fn zone(&self, rank: usize, events: u64) -> Option<&Zone> {
        self.next_zone(rank, events).filter(|zone| zone.forbids(events))
    }
}

/// Cuts a run into segments by the best markers and makes phases of them. Where that does not pay, the order of messages
/// is left out, if that helps; where the program goes by what comes first, before that with whom they are exchanged.
///
/// # Errors
/// If a file is damaged.
pub fn analyze(input: &Input<'_>, stages: &[Stage<'_>; 3]) -> Result<Analysis, AnalyzeError> {
    let analysis = cut(input, look(input, stages)?, stages)?;
    if analysis.verdict.pays {
        return Ok(analysis);
    }
    let orders: &[Order] = if input.settings.first_come { &[Order::Anyone, Order::Free] } else { &[Order::Free] };
    for &order in orders {
        let input = Input { symbols: &input.symbols.ordered(order), ..*input };
        let markers = look(&input, stages)?;
        if markers.pays {
            let analysis = Analysis { order, ..cut(&input, markers, stages)? };
            if analysis.verdict.pays {
                return Ok(analysis);
            }
        }
    }
    Ok(analysis)
}

/// Stands of ranks at cuts may be so many: that bounds how often markers come.
fn room(input: &Input<'_>) -> u64 {
    MOST_STANDS / input.surveys[0].spans.len().max(1) as u64
}

fn look(input: &Input<'_>, stages: &[Stage<'_>; 3]) -> Result<Markers, AnalyzeError> {
    let settings = input.settings;
    let rank = Pilot::choose(&input.surveys[0]);
    let read = |run: usize, zones: &[Zone], stage: &Stage<'_>| {
        let (trace, survey) = (&input.traces[run], &input.surveys[run]);
        with_feed(trace, &input.counted[run], std::iter::once(rank), settings.threads, |feed| {
            Pilot::read(trace, survey, feed, rank, input.symbols, zones, stage)
        })
    };
    let mut pilot = read(0, input.zones.get(rank.index()).map_or(&[][..], Vec::as_slice), &stages[0])?;
    if input.traces.len() > 1 {
        pilot.quieter(&read(1, &[], &Stage::new(&|_, _| {}, 0, 1))?);
    }
    Markers::find(pilot, &Bounds { room: room(input), settings, stage: &stages[1] })
}

/// What markers are chosen from.
struct Field {
    /// For each marker of a [`Markers`], its finalists with their positions.
    finalists: Vec<Vec<(Priced, Vec<u64>)>>,
    /// The cuts at all of these.
    closed: Closed,
    /// For each marker, the finalist to be taken ([`quietest`]).
    choices: Vec<Option<usize>>,
}

impl Field {
    fn of(input: &Input<'_>, found: &Markers, stage: &Stage<'_>) -> Result<Field, AnalyzeError> {
        let (trace, survey, settings) = (&input.traces[0], &input.surveys[0], input.settings);
        let finalists = found.finalists(room(input));
        let all = finalists.iter().flatten().flat_map(|(_, positions)| positions);
        let mut targets: Vec<u64> = all.copied().chain(1..=EARLY).collect();
        targets.sort_unstable();
        targets.dedup();
        let mut closed = with_feed(trace, &input.counted[0], trace.ranks(), settings.threads, |feed| {
            closure::close(trace, survey, feed, input.symbols, found.pilot.rank.index(), &targets, stage)
        })?;
        let allowed = |(rank, stand): (usize, &closure::Stand)| input.zone(rank, stand.events).is_none();
        closed.cuts.retain(|cut| cut.stands.iter().enumerate().all(allowed));
        let of = finalists.iter().zip(&found.found);
        let choices = of.map(|(finalists, found)| quietest(finalists, &closed.cuts, found.span_s)).collect();
        Ok(Field { finalists, closed, choices })
    }

    /// The choices for the first markers up to one that leaves another rest than its cheapest finalist, in which further
    /// markers were sought, if there is one.
    fn leads(&self, found: &Markers) -> Option<Vec<Candidate>> {
        let mut leads = Vec::new();
        for (number, finalists) in self.finalists.iter().enumerate() {
            let (_, cheapest) = finalists.first()?;
            let (priced, positions) = &finalists[self.choices[number].unwrap_or(0)];
            leads.push(priced.candidate);
            if !found.leaves_the_same(number, positions, cheapest) {
                return Some(leads);
            }
        }
        None
    }
}

fn cut(input: &Input<'_>, mut found: Markers, stages: &[Stage<'_>; 3]) -> Result<Analysis, AnalyzeError> {
    let mut field = Field::of(input, &found, &stages[2])?;
    let (mut leads, quiet) = (Vec::new(), Stage::new(&|_, _| {}, 0, 1));
    while let Some(more) = field.leads(&found).filter(|more| more.len() > leads.len()) {
        leads = more;
        found = found.led_by(&leads, &Bounds { room: room(input), settings: input.settings, stage: &quiet })?;
        field = Field::of(input, &found, &quiet)?;
    }
    let pilot = &found.pilot;
    let finalists = field.finalists.iter().zip(&field.choices).enumerate();
    let chosen = finalists.filter_map(|(number, (of, &choice))| choice.map(|choice| (number, &of[choice])));
    let of_markers: Vec<(Candidate, Vec<u64>)> =
        chosen.map(|(number, (priced, positions))| (priced.candidate, found.outside(number, positions))).collect();
    let mut own: Vec<u64> = of_markers.iter().flat_map(|(_, positions)| positions).copied().collect();
    own.sort_unstable();
    let mut closed = field.closed;
    let of_marker = |cut: &Cut| own.binary_search(&cut.at).is_ok();
    let early = if own.is_empty() { None } else { set_up(input, &closed.cuts, of_marker) };
    closed.cuts.retain(|cut| of_marker(cut) || Some(cut.at) == early);
    let sinks = sinks::find(&closed.cuts);
    if !sinks.is_empty() {
        let (trace, survey) = (&input.traces[0], &input.surveys[0]);
        with_feed(trace, &input.counted[0], trace.ranks(), input.settings.threads, |feed| {
            // So many receives of what has been sent are made in either run, in whatever order.
            let allowed = |rank, events, active| {
                input.zone(rank, events).is_none_or(|zone| !zone.is_rest() && active <= zone.start)
            };
            sinks::follow(trace, survey, feed, &mut closed.cuts, &sinks, allowed)
        })?;
    }
    let marker = |(candidate, positions): (Candidate, Vec<u64>)| {
        let last = candidate.first as usize;
        let range = (last + 1).saturating_sub(candidate.length)..last + 1;
        let Means { skew_s, in_flight, .. } = Means::of(&positions, &closed.cuts);
        Marker {
            pilot: pilot.rank,
            pattern: range.clone().map(|at| pilot.symbol(at)).collect(),
            words: words::shorten(range.map(|at| pilot.word(at)).collect::<Vec<_>>().join(" ")),
            every: candidate.every,
            skew_s,
            in_flight,
        }
    };
    let markers = of_markers.into_iter().map(marker).collect();
    assemble(input, pilot, closed, markers, early.is_some(), found.aim, &sinks)
}

/// The earliest cut, where what lies between it and the first cut of the marker is relevant: a set-up that can be
/// measured by itself, apart from the start of the processes, which cannot be restarted.
fn set_up(input: &Input<'_>, cuts: &[Cut], of_marker: impl Fn(&Cut) -> bool) -> Option<u64> {
    let (slowest, run_s) = input.slowest(|rank| advances(cuts, rank));
    let first = cuts.first().filter(|cut| cut.at <= EARLY && !of_marker(cut))?;
    let marker = cuts.iter().find(|cut| of_marker(cut))?;
    let ns = marker.stands[slowest].exit.saturating_sub(first.stands[slowest].exit);
    (ns as f64 * 1e-9 >= input.settings.relevance * run_s).then_some(first.at)
}

/// The finalist to be taken. A skewed cut costs time at each restart: the ranks that are ahead wait. Among those within
/// [`marker::NEAR`] of the least cost with that, clearly less skew decides, then the cost.
fn quietest(finalists: &[(Priced, Vec<u64>)], cuts: &[Cut], span_s: f64) -> Option<usize> {
    let mut scored: Vec<(f64, usize, f64)> = Vec::new();
    for (number, (priced, own)) in finalists.iter().enumerate() {
        let Means { count, skew_s, .. } = Means::of(own, cuts);
        // Cuts that closure pushed on are lost: a marker that loses many is not what it was priced as.
        if count < candidates::FEWEST || count * 10 < own.len() as u64 * 9 {
            continue;
        }
        scored.push((priced.cost_s + skew_s * priced.samples.min(RESTARTS) as f64, number, skew_s));
    }
    scored.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let near = scored.first()?.0 + marker::NEAR * span_s;
    let quieter = |skew_s: f64, than: f64| skew_s < QUIETER * than - 1e-6;
    let near = scored.into_iter().take_while(|s| s.0 <= near);
    near.reduce(|best, s| if quieter(s.2, best.2) { s } else { best }).map(|(_, number, _)| number)
}

/// Means over the cuts at some positions.
struct Means {
    /// How many of the positions have a cut.
    count: u64,
    skew_s: f64,
    in_flight: f64,
}

impl Means {
    /// Over those of `cuts`, in order, that lie at these positions.
    fn of(positions: &[u64], cuts: &[Cut]) -> Means {
        let (mut count, mut skew, mut in_flight) = (0, 0u128, 0i128);
        let found = positions.iter().filter_map(|at| cuts.binary_search_by_key(at, |cut| cut.at).ok());
        for cut in found.map(|at| &cuts[at]) {
            count += 1;
            skew += u128::from(cut.skew);
            in_flight += i128::from(cut.in_flight);
        }
        let of = |sum: f64| sum / (count as f64).max(1.0);
        Means { count, skew_s: of(skew as f64 * 1e-9), in_flight: of(in_flight as f64) }
    }
}

/// Times of a rank's segments in ns, from its exits at the cuts and its span.
fn lengths(exits: impl Iterator<Item = u64>, span: (u64, u64)) -> Vec<u64> {
    let mut before = span.0;
    exits
        .chain([span.1])
        .map(|exit| {
            let exit = exit.clamp(before, span.1.max(before));
            exit - std::mem::replace(&mut before, exit)
        })
        .collect()
}

fn assemble(
    input: &Input<'_>,
    pilot: &Pilot,
    closed: Closed,
    markers: Vec<Marker>,
    early: bool,
    aim: f64,
    sinks: &[usize],
) -> Result<Analysis, AnalyzeError> {
    let (survey, settings) = (&input.surveys[0], input.settings);
    let cuts = &closed.cuts;
    let lead = pilot.rank.index();
    let of_rank = |(r, span): (usize, &(u64, u64))| lengths(cuts.iter().map(|cut| cut.stands[r].exit), *span);
    let times: Vec<Vec<u64>> = survey.spans.iter().enumerate().map(of_rank).collect();
    let again = in_second_run(input, cuts)?;
    let (slowest, run_s) = input.slowest(|rank| advances(cuts, rank));

    // The key of a segment: the pilot's symbols; the first, the set-up and the last are one-offs.
    let key = |at: usize| match (at.checked_sub(1).map(|b| &cuts[b]), cuts.get(at)) {
        (Some(before), Some(cut)) if at > 1 || !early => cut.stands[lead].point.since(&before.stands[lead].point),
        _ => mix(at as u64).max(1),
    };
    let mut keys: Vec<u64> = (0..=cuts.len()).map(key).collect();
    if let Some(again) = &again {
        split_levels(&mut keys, &times[slowest], &again[slowest]);
    }
    let mut totals: FastMap<u64, u64> = FastMap::default();
    keys.iter().zip(&times[slowest]).for_each(|(&key, &ns)| *totals.entry(key).or_default() += ns);
    let minor = |key: u64| totals.get(&key).is_some_and(|&ns| seconds(ns) < settings.relevance * run_s);
    let (numbers, count, various) = phases::number(&keys, minor);

    let mut classes = classes(input, pilot, &closed, &times[slowest], &numbers, count, various);
    // Of what a sink does from cut to cut the symbols are not known.
    classes.iter_mut().for_each(|class| sinks.iter().for_each(|&sink| class.hashes[sink] = 0));
    let of_rank = |(r, times): (usize, &Vec<u64>)| {
        let ends = cuts.iter().map(|cut| cut.stands[r].events).chain([survey.events[r]]);
        let piece = |(at, end): (usize, u64)| Piece {
            phase: PhaseId(numbers[at]),
            end,
            time: Nanos(times[at]),
            again: again.as_ref().map(|again| Nanos(again[r][at])),
        };
        ends.enumerate().map(piece).collect()
    };
    let pieces = times.iter().enumerate().map(of_rank).collect();
    // The aim is of the quieter times of both runs, what is measured of the first run's.
    let to = |&aim: &f64| phases::summarise(&classes, run_s, settings.relevance, Sampling::Spread(aim));
    let rougher = marker::AIMS.iter().filter(|&&rougher| rougher > aim);
    let fine = to(&aim);
    let summary = if fine.verdict.pays { fine } else { rougher.map(to).find(|s| s.verdict.pays).unwrap_or(fine) };
    Ok(crate::report(input, Method::Marker, markers, summary, pieces, closed.unmatched))
}

fn seconds(ns: u64) -> f64 {
    ns as f64 * 1e-9
}

/// For each rank the times of its segments in the second base run, in ns, if there is one.
fn in_second_run(input: &Input<'_>, cuts: &[Cut]) -> Result<Option<Vec<Vec<u64>>>, AnalyzeError> {
    let (Some(second), Some(survey)) = (input.traces.get(1), input.surveys.get(1)) else { return Ok(None) };
    let of_rank = |r: usize| cuts.iter().map(|cut| cut.stands[r].events).collect();
    let at: Vec<Vec<u64>> = (0..input.surveys[0].spans.len()).map(of_rank).collect();
    let quiet = |_: u64, _: u64| {};
    let exits = stream::exits_at(second, &input.counted[1], &at, input.settings.threads, &Stage::new(&quiet, 0, 1))?;
    Ok(Some(exits.into_iter().zip(&survey.spans).map(|(exits, span)| lengths(exits.into_iter(), *span)).collect()))
}

/// The classes of segments that were numbered so, with their times (`times`: of the slowest rank), and for each rank the
/// hash of what it does in them, where that is always the same.
fn classes(
    input: &Input<'_>,
    pilot: &Pilot,
    closed: &Closed,
    times: &[u64],
    numbers: &[u32],
    count: usize,
    various: Option<u32>,
) -> Vec<Class> {
    let survey = &input.surveys[0];
    let (ranks, lead) = (survey.spans.len(), pilot.rank.index());
    let mut classes = vec![Class::default(); count];
    let empty: Vec<closure::Stand> =
        survey.spans.iter().map(|s| closure::Stand { events: 0, exit: s.0, point: Default::default() }).collect();
    for (at, &number) in numbers.iter().enumerate() {
        let before = if at == 0 { &empty } else { &closed.cuts[at - 1].stands };
        let after = closed.cuts.get(at).map_or(&closed.end, |cut| &cut.stands);
        let class = &mut classes[number as usize];
        let first = class.times.is_empty();
        class.times.push(seconds(times[at]));
        if first {
            class.events = (0..ranks).map(|r| after[r].events - before[r].events).sum();
            class.hashes = vec![0; ranks];
            class.structure = if various == Some(number) {
                "various segments, each too short to matter".into()
            } else {
                words::structure(pilot, before[lead].point.symbols, after[lead].point.symbols)
            };
        }
        for r in 0..ranks {
            let hash = after[r].point.since(&before[r].point);
            let order_counts = !input.symbols.gathers(EventKind::Send);
            let mixes = |zone: &Zone| zone.start < after[r].events && (order_counts || zone.is_rest());
            let mixed = input.next_zone(r, before[r].events).is_some_and(mixes);
            if first && !mixed && various != Some(number) {
                class.hashes[r] = hash;
            } else if class.hashes[r] != hash || mixed {
                class.hashes[r] = 0;
            }
        }
    }
    classes
}

/// Gives the occurrences of a phase that are of another level a key of their own.
fn split_levels(keys: &mut [u64], first: &[u64], second: &[u64]) {
    let mut members: FastMap<u64, Vec<usize>> = FastMap::default();
    keys.iter().enumerate().for_each(|(at, &key)| members.entry(key).or_default().push(at));
    for (key, members) in members {
        let of = |times: &[u64]| -> Vec<f64> { members.iter().map(|&at| times[at] as f64 * 1e-9).collect() };
        if let Some(labels) = levels::split(&of(first), &of(second)) {
            for (&at, _) in members.iter().zip(labels).filter(|(_, second)| *second) {
                keys[at] = mix(key ^ 0x1E7E1).max(1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A finalist of four occurrences with its cuts, which are as skewed as that.
    fn finalist(first: u32, cost_s: f64, samples: u64, skew: u64, cuts: &mut Vec<Cut>) -> (Priced, Vec<u64>) {
        let candidate = Candidate { length: 1, hash: u64::from(first), count: 4, every: 1, first };
        let own: Vec<u64> = (0..4).map(|n| u64::from(first) + 100 * n).collect();
        cuts.extend(own.iter().map(|&at| Cut { at, stands: Vec::new(), skew, in_flight: 0 }));
        (Priced { candidate, cost_s, samples }, own)
    }

    #[test]
    fn skew_costs_once_a_restart_and_not_once_an_occurrence() {
        let mut cuts = Vec::new();
        let repeats = finalist(1, 4.5, 100, 100_000_000, &mut cuts);
        let runs_whole = finalist(2, 9.9, 0, 0, &mut cuts);
        cuts.sort_by_key(|cut| cut.at);
        assert!((Means::of(&repeats.1, &cuts).skew_s - 0.1).abs() < 1e-9);
        let number = quietest(&[repeats, runs_whole], &cuts, 10.0).unwrap();
        assert_eq!(number, 0, "6 restarts of 0.1 s are dearer than the whole run");
    }

    #[test]
    fn of_markers_that_cost_alike_the_quieter_is_taken() {
        let mut cuts = Vec::new();
        let cheaper = finalist(1, 1.0, 10, 10_000_000, &mut cuts);
        let quieter = finalist(2, 1.2, 10, 1_000_000, &mut cuts);
        let dear = finalist(3, 2.0, 10, 0, &mut cuts);
        cuts.sort_by_key(|cut| cut.at);
        assert_eq!(quietest(&[cheaper, quieter, dear], &cuts, 10.0), Some(1));
    }
}
