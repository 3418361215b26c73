//! `--method pbb`: seed 004 to the letter.
//!
//! A parallel basic block is the set of blocks between two ticks that hold an event: the entry point and the exit
//! point. Two are similar if the types of communication at both points are the same, the volumes differ by up to 5 %,
//! and the computational times by up to 5 % (with an absolute floor of 5 us, below which times are noise). Similar
//! blocks make a phase; the first of them represents it.
use crate::clock::{self, Placed};
use crate::counted::Counted;
use crate::error::AnalyzeError;
use crate::marker::Times;
use crate::matching::FastMap;
use crate::model::{Analysis, Method, Piece};
use crate::parallel::Stage;
use crate::phases::{self, Class, Sampling};
use crate::segments::Input;
use crate::source::with_feed;
use crate::stream;
use crate::symbol::{Point, mix, of_set};
use phasecast_trace::{EventKind, Nanos, PhaseId};
use std::collections::{BTreeMap, BTreeSet};

/// Times that differ by no more than this are the same.
const FLOOR_NS: u64 = 5_000;
/// Different blocks that are told apart; what comes after and is like none of them is put together.
const MOST_CLASSES: usize = 1 << 15;
/// Events of a trace whose pieces are kept, each an event: 40 bytes.
const MOST_PIECES: u64 = 4_000_000;

/// A parallel basic block as far as it is compared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Block {
    /// Types of communication at the entry and the exit point, by rank.
    pub types: Vec<(u32, u64)>,
    /// Volumes at both points in bytes, in the same order.
    pub volumes: Vec<u64>,
    /// Computational times up to the exit point in ns, by rank.
    pub times: Vec<u64>,
}

/// Whether two numbers differ by no more than the share `similarity` of the greater.
fn close(a: u64, b: u64, similarity: f64) -> bool {
    a.abs_diff(b) as f64 <= similarity * a.max(b) as f64
}

/// The similarity of seed 004: types equal, volumes and times within `similarity`, times also within the floor.
pub fn similar(a: &Block, b: &Block, similarity: f64) -> bool {
    a.types == b.types
        && a.volumes.iter().zip(&b.volumes).all(|(x, y)| close(*x, *y, similarity))
        && a.times.iter().zip(&b.times).all(|(x, y)| x.abs_diff(*y) <= FLOOR_NS || close(*x, *y, similarity))
}

fn kind(event: &Placed) -> u64 {
    match event.item.kind {
        EventKind::Collective => 3 + u64::from(event.item.proc),
        other => 1 + other as u64,
    }
}

/// Blocks seen so far: of each class the first.
#[derive(Default)]
struct Known {
    leaders: Vec<Block>,
    /// By types and step of volume, the classes in the order of the sums of their times.
    index: FastMap<(u64, u64), BTreeSet<(u64, u32)>>,
}

impl Known {
    /// The first class to whose leader the block is similar, or a new one; none if there are too many.
    fn class(&mut self, block: &Block, similarity: f64) -> Option<u32> {
        let types = block.types.iter().fold(0, |h, (rank, kind)| mix(h ^ (u64::from(*rank) << 20 | kind)));
        let volume: u64 = block.volumes.iter().fold(0, |sum: u64, v| sum.saturating_add(*v));
        let sum: u64 = block.times.iter().sum();
        // Sums of similar volumes lie in the same or in neighbouring steps, sums of similar times within this reach.
        let step = ((volume + 1) as f64).ln() / -f64::ln(1.0 - similarity.clamp(0.001, 0.9));
        let reach =
            (sum as f64 * similarity / (1.0 - similarity).max(0.05)) as u64 + FLOOR_NS * block.times.len() as u64;
        let range = (sum.saturating_sub(reach), 0)..=(sum.saturating_add(reach), u32::MAX);
        let steps = [step as u64 + 1, step as u64, step as u64 + 2];
        let near = steps
            .iter()
            .filter_map(|step| self.index.get(&(types, *step)))
            .flat_map(|alike| alike.range(range.clone()));
        let found = near.map(|&(_, id)| id).filter(|&id| similar(&self.leaders[id as usize], block, similarity)).min();
        if found.is_some() || self.leaders.len() >= MOST_CLASSES {
            return found;
        }
        let id = self.leaders.len() as u32;
        self.index.entry((types, steps[0])).or_default().insert((sum, id));
        self.leaders.push(block.clone());
        Some(id)
    }
}

#[derive(Clone, Default)]
struct Group {
    first_tick: u64,
    stats: Times,
    first_s: f64,
    rank_ns: FastMap<u32, u64>,
    events: u64,
    words: String,
    hashes: Vec<u64>,
}

/// Finds the phases of a run by the similarity of its parallel basic blocks.
///
/// # Errors
/// If a file is damaged.
pub fn analyze(input: &Input<'_>, stage: &Stage<'_>) -> Result<Analysis, AnalyzeError> {
    let (trace, survey, settings) = (&input.traces[0], &input.surveys[0], input.settings);
    let ranks = survey.spans.len();
    let (slowest, run_s) = input.slowest(|_| 1);
    let keep = survey.events.iter().sum::<u64>() <= MOST_PIECES;
    let blank = Piece { phase: PhaseId(0), end: 0, time: Nanos(0), again: None };
    let mut pieces: Vec<Vec<Piece>> = match keep {
        true => survey.events.iter().map(|&n| vec![blank; n as usize]).collect(),
        false => vec![Vec::new(); ranks],
    };
    let mut known = Known::default();
    let mut groups: Vec<Group> = Vec::new();
    let mut various: Option<u32> = None;
    let mut entry: Vec<Placed> = Vec::new();
    let mut block = Block::default();
    let mut last_exit: Vec<u64> = survey.spans.iter().map(|s| s.0).collect();
    with_feed(trace, &Counted::All, trace.ranks(), settings.threads, |feed| {
        clock::ticks(trace, survey, feed, settings.clock, stage, |tick| {
            block.types.clear();
            block.volumes.clear();
            block.times.clear();
            for (point, events) in [(0, entry.as_slice()), (1, tick.events)] {
                block.types.extend(events.iter().map(|e| (e.rank << 1 | point, kind(e))));
                block.volumes.extend(events.iter().map(|e| e.item.bytes));
            }
            block.times.extend(tick.events.iter().map(|e| e.block_ns));
            entry.clear();
            entry.extend_from_slice(tick.events);
            let class = known.class(&block, settings.similarity);
            let number = class.unwrap_or_else(|| *various.get_or_insert(groups.len().max(MOST_CLASSES) as u32));
            if groups.len() <= number as usize {
                groups.resize(number as usize + 1, Group::default());
            }
            let group = &mut groups[number as usize];
            let own = tick.events.iter().find(|e| e.rank as usize == slowest).map_or(0, |e| e.block_ns) as f64 * 1e-9;
            if group.stats.count == 0 {
                *group = first_of(trace, tick.events, ranks, input, class.is_none());
                group.first_tick = tick.tick;
                group.first_s = own;
            }
            group.stats.push(own);
            for event in tick.events {
                let rank = event.rank as usize;
                *group.rank_ns.entry(event.rank).or_default() += event.block_ns;
                last_exit[rank] = last_exit[rank].max(event.item.exit);
                if group.hashes[rank] != hash(event, input) {
                    group.hashes[rank] = 0;
                }
                if keep {
                    let time = Nanos(event.block_ns);
                    pieces[rank][event.index as usize] =
                        Piece { phase: PhaseId(number), end: event.index + 1, time, again: None };
                }
            }
            Ok(())
        })
    })?;

    // The tail of the run after the last event is a one-off of its own.
    let tails: Vec<u64> =
        survey.spans.iter().zip(&last_exit).map(|(span, exit)| span.1.saturating_sub(*exit)).collect();
    let tail = groups.len() as u32;
    let mut end = Group { first_tick: u64::MAX, words: "the end of the run".into(), ..Group::default() };
    end.first_s = tails[slowest] as f64 * 1e-9;
    end.stats.push(end.first_s);
    end.hashes = vec![Point::default().since(&Point::default()); ranks];
    end.rank_ns = tails.iter().enumerate().map(|(rank, ns)| (rank as u32, *ns)).collect();
    groups.push(end);

    let order = numbering(&groups, survey.spans.iter().map(|s| s.1 - s.0).collect(), settings.relevance);
    let classes = order.classes(groups, settings.relevance, &survey.spans);
    for (rank, pieces) in pieces.iter_mut().enumerate().filter(|_| keep) {
        pieces.push(Piece { phase: PhaseId(tail), end: survey.events[rank], time: Nanos(tails[rank]), again: None });
        for piece in pieces.iter_mut() {
            piece.phase = PhaseId(order.number[piece.phase.index()]);
        }
    }
    if let (true, Some(second)) = (keep, input.traces.get(1)) {
        repeat(&mut pieces, second, &input.surveys[1].spans, settings.threads)?;
    }
    let mut summary = phases::summarise(&classes, run_s, settings.relevance, Sampling::First);
    if !keep {
        let note = "; it has too many events for a run to be followed by --method pbb: use --method marker for that";
        summary.verdict.reason.push_str(note);
    }
    Ok(crate::report(input, Method::Pbb, Vec::new(), summary, pieces, survey.differences.unmatched))
}

/// Adds the times of a second base run.
fn repeat(
    pieces: &mut [Vec<Piece>],
    second: &phasecast_trace::Trace,
    spans: &[(u64, u64)],
    threads: usize,
) -> Result<(), AnalyzeError> {
    let ends: Vec<Vec<u64>> = pieces.iter().map(|p| p.iter().map(|piece| piece.end).collect()).collect();
    let exits = stream::exits_at(second, &Counted::All, &ends, threads, &Stage::new(&|_, _| {}, 0, 1))?;
    for ((pieces, exits), span) in pieces.iter_mut().zip(exits).zip(spans) {
        let mut before = span.0;
        let last = pieces.len().saturating_sub(1);
        for (at, (piece, exit)) in pieces.iter_mut().zip(exits).enumerate() {
            let exit = if at == last { span.1.max(before) } else { exit.clamp(before, span.1.max(before)) };
            piece.again = Some(Nanos(exit - std::mem::replace(&mut before, exit)));
        }
    }
    Ok(())
}

fn hash(event: &Placed, input: &Input<'_>) -> u64 {
    let symbol = input.symbols.item(&event.item);
    let mut point = Point::default();
    point.push(if event.item.kind == EventKind::Recv { of_set(symbol) } else { symbol });
    point.since(&Point::default())
}

fn first_of(
    trace: &phasecast_trace::Trace,
    events: &[Placed],
    ranks: usize,
    input: &Input<'_>,
    various: bool,
) -> Group {
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    for event in events {
        let word = match event.item.kind {
            EventKind::Send => "send".into(),
            EventKind::Recv => "recv".into(),
            EventKind::Collective => {
                let name = trace.procedure(phasecast_trace::ProcId(event.item.proc));
                name.trim_start_matches("MPI_").to_lowercase()
            }
        };
        *counts.entry(word).or_default() += 1;
    }
    let words: Vec<String> = counts.iter().map(|(word, n)| format!("{n} x {word}")).collect();
    let mut hashes = vec![0; ranks];
    if !various {
        events.iter().for_each(|e| hashes[e.rank as usize] = hash(e, input));
    }
    let words = if various { "various blocks".into() } else { words.join(", ") };
    Group { events: events.len() as u64, words, hashes, ..Group::default() }
}

struct Numbering {
    /// For each group, its phase.
    number: Vec<u32>,
    /// For each phase, its groups: one, or all that were put together.
    groups: Vec<Vec<usize>>,
}

/// Numbers groups by their first occurrence; with too many, those that are irrelevant on all ranks share a phase.
fn numbering(groups: &[Group], spans: Vec<u64>, relevance: f64) -> Numbering {
    let mut order: Vec<usize> = (0..groups.len()).filter(|&g| groups[g].stats.count > 0).collect();
    order.sort_by_key(|&g| (groups[g].first_tick, g));
    let merge = order.len() > phases::MOST_PHASES;
    let mut numbering = Numbering { number: vec![0; groups.len()], groups: Vec::new() };
    let mut various: Option<usize> = None;
    for group in order {
        let minor = merge && !relevant(&groups[group], &spans, relevance);
        let phase = if minor { *various.get_or_insert(numbering.groups.len()) } else { numbering.groups.len() };
        if phase == numbering.groups.len() {
            numbering.groups.push(Vec::new());
        }
        numbering.groups[phase].push(group);
        numbering.number[group] = phase as u32;
    }
    numbering
}

fn relevant(group: &Group, spans: &[u64], relevance: f64) -> bool {
    group.rank_ns.iter().any(|(rank, ns)| *ns as f64 >= relevance * spans[*rank as usize].max(1) as f64)
}

impl Numbering {
    fn classes(&self, mut groups: Vec<Group>, relevance: f64, spans: &[(u64, u64)]) -> Vec<Class> {
        let spans: Vec<u64> = spans.iter().map(|s| s.1 - s.0).collect();
        self.groups
            .iter()
            .map(|members| {
                let relevant = members.len() == 1 && relevant(&groups[members[0]], &spans, relevance);
                let mut stats = Times::default();
                members.iter().for_each(|&g| stats.merge(&groups[g].stats));
                let first = std::mem::take(&mut groups[members[0]]);
                let (structure, hashes) = match members.len() {
                    1 => (first.words, first.hashes),
                    n => (format!("{n} kinds of blocks, each too short to matter"), vec![0; spans.len()]),
                };
                Class {
                    times: vec![first.first_s],
                    stats: Some(stats),
                    events: first.events,
                    structure,
                    hashes,
                    relevant,
                }
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(volumes: &[u64], times: &[u64]) -> Block {
        let types = (0..volumes.len()).map(|rank| (rank as u32, 1)).collect();
        Block { types, volumes: volumes.to_vec(), times: times.to_vec() }
    }

    /// The three components of the seed's rule, each at its limit of 5 %.
    #[test]
    fn the_rule_of_the_seed() {
        let a = block(&[1000, 2000], &[1_000_000, 2_000_000]);
        assert!(similar(&a, &a, 0.05));
        assert!(similar(&a, &block(&[950, 2000], &[1_000_000, 2_000_000]), 0.05));
        assert!(!similar(&a, &block(&[949, 2000], &[1_000_000, 2_000_000]), 0.05));
        assert!(similar(&a, &block(&[1000, 2000], &[1_000_000, 1_900_000]), 0.05));
        assert!(!similar(&a, &block(&[1000, 2000], &[1_000_000, 1_899_999]), 0.05));
        assert!(similar(&a, &block(&[1000, 2000], &[1_000_000, 1_800_000]), 0.10));
        let mut other = a.clone();
        other.types[1].1 = 2;
        assert!(!similar(&a, &other, 0.05));
    }

    #[test]
    fn times_within_the_floor_are_the_same() {
        assert!(similar(&block(&[8], &[0]), &block(&[8], &[FLOOR_NS]), 0.05));
        assert!(!similar(&block(&[8], &[0]), &block(&[8], &[FLOOR_NS + 1]), 0.05));
        assert!(!similar(&block(&[0], &[0]), &block(&[1], &[0]), 0.05));
    }

    #[test]
    fn the_first_of_its_kind_leads() {
        let mut known = Known::default();
        let class = |known: &mut Known, ns| known.class(&block(&[8], &[ns]), 0.05).unwrap();
        assert_eq!(class(&mut known, 1_000_000), 0);
        assert_eq!(class(&mut known, 1_040_000), 0);
        assert_eq!(class(&mut known, 1_080_000), 1);
        assert_eq!(class(&mut known, 1_030_000), 0, "similar to both: the first");
        assert_eq!(class(&mut known, 1_120_000), 1);
    }
}
