//! How far two runs' execution graphs are apart, by regions (seed 000, section 3.2.4, its second approach): the pieces of
//! the run that repeat, as the analyzer finds them. Regions are aligned by their longest common subsequence; those that
//! differ are compared one with one, by the exact search where that ends, else by the longest common subsequences of their
//! tasks. What corresponds is a common subsequence of each task, so the distance by whole tasks is never above this one.
use super::compare::similarity;
use super::error::StabilityError;
use super::exact::{self, Graph};
use super::lcs::{Effort, common};
use super::tape::{Names, Numbers, Symbol, Tape, Track};
use phasecast_analyzer::matching::FastMap;
use phasecast_analyzer::parallel::Progress;
use phasecast_analyzer::{Settings, analyze};
use phasecast_trace::{EventKind, Trace};
use std::collections::HashMap;

/// Steps of the exact search within a pair of regions. Of ten vertices it always ends within them.
const STEPS: u64 = 2_000_000;
/// Of all searches together.
const ALL_STEPS: u64 = 200_000_000;

/// How two runs compare by regions.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Regions {
    /// Regions of the reference, and of the other run.
    pub regions: [u64; 2],
    /// Regions that are the same in both.
    pub same: u64,
    /// Pairs of regions that were compared by the exact search.
    pub searched: u64,
    /// Pairs that were compared by the longest common subsequences of their tasks, being too large to be searched.
    pub approximated: u64,
    /// s.
    pub similarity: u64,
    /// d = n - s.
    pub distance: u64,
}

/// Where the regions of a run end: for each rank, events before the end of each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ends(Vec<Vec<u64>>);

impl Ends {
    /// Regions that end there; every rank has as many, and the last one ends with its last event.
    pub fn new(ends: Vec<Vec<u64>>) -> Option<Ends> {
        let count = ends.first()?.len();
        let ascending = |ends: &Vec<u64>| ends.windows(2).all(|two| two[0] <= two[1]);
        (count > 0 && ends.iter().all(|ends| ends.len() == count && ascending(ends))).then_some(Ends(ends))
    }

    /// The pieces of a run by its markers.
    ///
    /// # Errors
    /// If it cannot be analysed; `None` if its ranks are cut differently.
    pub fn of(trace: &Trace, progress: Progress<'_>) -> Result<Option<Ends>, StabilityError> {
        let analysis = analyze(std::slice::from_ref(trace), &Settings::default(), progress)?;
        if analysis.segments().is_none() {
            return Ok(None);
        }
        Ok(Ends::new(analysis.pieces.iter().map(|pieces| pieces.iter().map(|piece| piece.end).collect()).collect()))
    }

    fn count(&self) -> usize {
        self.0.first().map_or(0, Vec::len)
    }

    /// The events of a rank in a region.
    fn range(&self, rank: usize, region: usize, events: usize) -> std::ops::Range<usize> {
        let ends = &self.0[rank];
        let end = |region: usize| (ends[region] as usize).min(events);
        let start = if region == 0 { 0 } else { end(region - 1) };
        // What comes after the last marker belongs to the last region.
        start..if region + 1 == ends.len() { events } else { end(region) }
    }
}

/// A member of a collective: its vertex, and whether it is the first and the last of its rank in the region.
type Member = (usize, bool, bool);

/// A run cut into regions.
struct Cut<'a> {
    tracks: Vec<&'a Track>,
    ends: &'a Ends,
    /// For each rank and event, how many of its channel (or communicator) were before it. Made when it is needed.
    ordinals: Option<Vec<Vec<u32>>>,
}

impl<'a> Cut<'a> {
    fn new(tape: &'a Tape, ends: &'a Ends) -> Option<Cut<'a>> {
        let tracks: Vec<&Track> = tape.tracks.values().collect();
        (tape.single_threaded() && tracks.len() == ends.0.len()).then_some(Cut { tracks, ends, ordinals: None })
    }

    fn range(&self, rank: usize, region: usize) -> std::ops::Range<usize> {
        self.ends.range(rank, region, self.tracks[rank].symbols.len())
    }

    fn symbols(&self, rank: usize, region: usize) -> &[u32] {
        &self.tracks[rank].symbols[self.range(rank, region)]
    }

    fn events(&self, region: usize) -> usize {
        (0..self.tracks.len()).map(|rank| self.range(rank, region).len()).sum()
    }

    /// The regions as numbers: the same number, the same events on each rank.
    fn numbers(&self, known: &mut Numbers<Vec<Vec<u32>>>) -> Vec<u32> {
        let of = |region| (0..self.tracks.len()).map(|rank| self.symbols(rank, region).to_vec()).collect();
        (0..self.ends.count()).map(|region| known.of(&of(region))).collect()
    }

    fn ordinals(&mut self, names: &Names) -> &[Vec<u32>] {
        let tracks = &self.tracks;
        self.ordinals.get_or_insert_with(|| tracks.iter().map(|track| count(names, track)).collect())
    }

    /// The execution graph of a region; none if it is too large, or messages go in circles.
    fn graph(&mut self, names: &Names, region: usize) -> Option<Graph> {
        if self.events(region) > exact::MOST {
            return None;
        }
        self.ordinals(names);
        let ordinals = self.ordinals.as_ref()?;
        let (mut labels, mut edges) = (Vec::new(), Vec::new());
        let mut sends: HashMap<(u32, u32, u32, i32, u32), usize> = HashMap::new();
        let mut receives = Vec::new();
        let mut joins: HashMap<(u32, u32), Vec<Member>> = HashMap::new();
        for (rank, (track, ordinals)) in self.tracks.iter().zip(ordinals).enumerate() {
            let range = self.range(rank, region);
            for at in range.clone() {
                let vertex = labels.len();
                let (first, last) = (at == range.start, at + 1 == range.end);
                labels.push((rank as u64) << 32 | u64::from(track.symbols[at]));
                if !first {
                    edges.push((vertex - 1, vertex));
                }
                let symbol = names.symbols.get(track.symbols[at])?;
                let (rank, peer) = (rank as u32, symbol.peer as u32);
                let channel = |from, to| (from, to, symbol.comm, symbol.tag, ordinals[at]);
                match symbol.kind {
                    EventKind::Send => drop(sends.insert(channel(rank, peer), vertex)),
                    EventKind::Recv => receives.push((channel(peer, rank), vertex)),
                    // When one that does not block is complete the trace does not tell: it orders nothing.
                    EventKind::Collective if !names.blocks(symbol.procedure) => {}
                    EventKind::Collective => {
                        joins.entry((symbol.comm, ordinals[at])).or_default().push((vertex, first, last));
                    }
                }
            }
        }
        edges.extend(receives.iter().filter_map(|(channel, to)| Some((*sends.get(channel)?, *to))));
        // All that comes before a collective on any member comes before it on each, and so after it.
        for members in joins.values() {
            for (i, &(one, first, last)) in members.iter().enumerate() {
                for (_, &(other, ..)) in members.iter().enumerate().filter(|(j, _)| *j != i) {
                    edges.extend((!first).then(|| (one - 1, other)));
                    edges.extend((!last).then_some((other, one + 1)));
                }
            }
        }
        Graph::new(labels, &edges)
    }
}

/// For each event, how many of its channel or communicator were before it.
fn count(names: &Names, track: &Track) -> Vec<u32> {
    let mut counts: FastMap<(u64, u64), u32> = FastMap::default();
    let of = |symbol: &u32| {
        let Some(&Symbol { kind, peer, tag, comm, .. }) = names.symbols.get(*symbol) else { return 0 };
        let key = match kind {
            EventKind::Collective => (u64::MAX, u64::from(comm)),
            _ => (u64::from(peer as u32) << 2 | kind as u64, u64::from(comm) << 32 | u64::from(tag as u32)),
        };
        let count = counts.entry(key).or_default();
        *count += 1;
        *count
    };
    track.symbols.iter().map(of).collect()
}

/// Compares a run with the reference by their regions; none if ranks have several threads.
pub fn by_regions(names: &Names, reference: (&Tape, &Ends), other: (&Tape, &Ends)) -> Option<Regions> {
    let mut a = Cut::new(reference.0, reference.1)?;
    let mut b = Cut::new(other.0, other.1)?;
    if a.tracks.len() != b.tracks.len() {
        return None;
    }
    let events: u64 = a.tracks.iter().zip(&b.tracks).map(|(a, b)| a.symbols.len().max(b.symbols.len()) as u64).sum();
    let mut known = Numbers::default();
    let (in_a, in_b) = (a.numbers(&mut known), b.numbers(&mut known));
    let found = common(&in_a, &in_b, Effort::default());
    let (mut matches, mut searched, mut approximated, mut steps) = (0, 0, 0, ALL_STEPS);
    let mut seen: HashMap<(u32, u32), u64> = HashMap::new();
    let (mut at_a, mut at_b) = (0, 0);
    let end = super::lcs::Run { a: in_a.len(), b: in_b.len(), length: 0 };
    for run in found.runs.iter().chain([&end]) {
        for (i, j) in (at_a..run.a).zip(at_b..run.b) {
            matches += *seen.entry((in_a[i], in_b[j])).or_insert_with(|| {
                let searching = STEPS.min(steps);
                steps -= searching;
                let graphs = (searching > 0).then(|| a.graph(names, i).zip(b.graph(names, j))).flatten();
                if let Some(size) = graphs.and_then(|(x, y)| exact::similarity(&x, &y, searching)) {
                    searched += 1;
                    return size as u64;
                }
                approximated += 1;
                let ranks = 0..a.tracks.len();
                ranks.map(|rank| common(a.symbols(rank, i), b.symbols(rank, j), Effort::default()).length).sum()
            });
        }
        matches += (run.a..run.a + run.length).map(|region| a.events(region) as u64).sum::<u64>();
        (at_a, at_b) = (run.a + run.length, run.b + run.length);
    }
    let similarity = similarity(matches, events, reference.0.events() > 0 && other.0.events() > 0);
    Some(Regions {
        regions: [in_a.len() as u64, in_b.len() as u64],
        same: found.length,
        searched,
        approximated,
        similarity,
        distance: events - similarity,
    })
}
