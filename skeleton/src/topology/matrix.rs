//! The communication matrix (seed 002, section 2): messages and bytes from each rank to each other one, of a trace or
//! made; and which of its pairs are significant.
use super::graph::Graph;
use phasecast_trace::{EventKind, Rank, Trace, TraceError};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::num::NonZero;
use std::sync::atomic::{AtomicU32, Ordering};

/// A pair is significant if it has at least this share of what a typical pair has, in messages and in bytes.
pub const SIGNIFICANT: f64 = 0.05;

/// What is sent from one rank to another, or between the two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Traffic {
    /// Messages.
    pub messages: u64,
    /// Bytes of all of them.
    pub bytes: u64,
}

impl Traffic {
    /// What it is like: the same where messages and bytes differ by no more than some 25 %.
    pub(super) fn kind(self) -> (u32, u32) {
        let scale = |value: u64| ((value as f64).ln_1p() * 4.0).round() as u32;
        (scale(self.bytes), scale(self.messages))
    }

    fn add(&mut self, other: Traffic) {
        self.messages = self.messages.saturating_add(other.messages);
        self.bytes = self.bytes.saturating_add(other.bytes);
    }
}

/// Messages of a pair by the power of two below their size.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
struct Sizes(BTreeMap<u8, Traffic>);

impl Sizes {
    fn add(&mut self, traffic: Traffic) {
        let size = traffic.bytes.checked_div(traffic.messages).unwrap_or(0);
        self.0.entry(size.checked_ilog2().map_or(0, |power| power as u8 + 1)).or_default().add(traffic);
    }

    fn total(&self) -> Traffic {
        let mut total = Traffic::default();
        self.0.values().for_each(|&traffic| total.add(traffic));
        total
    }

    /// The sum of some, without messages of sizes that are rare in it: one huge message of the set-up, beside thousands, is
    /// none of a pair's usual traffic.
    fn usual<'a>(all: impl Iterator<Item = &'a Sizes>) -> Traffic {
        let mut sizes = [Traffic::default(); 65];
        all.flat_map(|sizes| &sizes.0).for_each(|(&size, &traffic)| sizes[usize::from(size).min(64)].add(traffic));
        let most = sizes.iter().map(|traffic| traffic.messages).max().unwrap_or(0);
        let mut usual = Traffic::default();
        let frequent = |traffic: &&Traffic| traffic.messages as f64 >= SIGNIFICANT * most as f64;
        sizes.iter().filter(frequent).for_each(|&traffic| usual.add(traffic));
        usual
    }
}

/// Messages and bytes of each ordered pair of ranks; only pairs with messages are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Matrix {
    rows: Vec<BTreeMap<u32, Sizes>>,
}

/// What a typical pair is: the one at which half of the whole traffic is reached, from the pairs with the most down. Few
/// messages of the set-up, or small ones of a coarse level, do not move it, however many pairs have them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// Half of the messages, for messages and for bytes: a few huge messages count no more than as many small ones.
    Both,
    /// Half of the messages, and half of the bytes: the pairs with the bulk of the data.
    Bytes,
    /// Half of the messages; bytes do not matter.
    Messages,
    /// As [`Measure::Both`], and of those pairs only the ones with the most bytes: a halo beside a collection of results.
    Most,
}

/// The significant pairs of a matrix, without direction and without messages of a rank to itself.
#[derive(Clone, Debug)]
pub struct Significant {
    /// Ranks and their significant pairs.
    pub graph: Graph,
    /// Pairs with messages that are not significant.
    pub rare: u64,
    /// Significant pairs of which only one rank sends.
    pub one_way: u64,
}

impl Matrix {
    /// A matrix with no messages.
    pub fn new(ranks: u32) -> Matrix {
        Matrix { rows: vec![BTreeMap::new(); ranks as usize] }
    }

    /// Point-to-point messages of a trace: as their senders recorded them, or their receivers where a sender was cut off.
    /// One pass over all ranks, several at a time. `progress` is told how many ranks of how many are done.
    ///
    /// # Errors
    /// If a chunk of the trace is damaged.
    pub fn of_trace(trace: &Trace, progress: &(dyn Fn(u64, u64) + Sync)) -> Result<Matrix, TraceError> {
        let ranks = trace.size();
        let (next, done) = (AtomicU32::new(0), AtomicU32::new(0));
        let work = || -> Result<Vec<(u32, Partners)>, TraceError> {
            let mut all = Vec::new();
            loop {
                let rank = next.fetch_add(1, Ordering::Relaxed);
                if rank >= ranks {
                    return Ok(all);
                }
                all.push((rank, Partners::of(trace, Rank(rank))?));
                progress(u64::from(done.fetch_add(1, Ordering::Relaxed)) + 1, u64::from(ranks));
            }
        };
        let threads = std::thread::available_parallelism().map_or(1, NonZero::get).min(ranks.max(1) as usize);
        let parts: Vec<_> = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
            workers.into_iter().map(|worker| worker.join().expect("a reader of a trace does not panic")).collect()
        });
        let (mut sent, mut received) = (Matrix::new(ranks), Matrix::new(ranks));
        for part in parts {
            for (rank, partners) in part? {
                sent.rows[rank as usize] = partners.sent;
                for (peer, sizes) in partners.received {
                    if let Some(row) = received.rows.get_mut(peer as usize) {
                        row.insert(rank, sizes);
                    }
                }
            }
        }
        for (row, other) in sent.rows.iter_mut().zip(received.rows) {
            row.retain(|&peer, _| peer < ranks);
            for (peer, sizes) in other {
                let most = row.entry(peer).or_default();
                if most.total() < sizes.total() {
                    *most = sizes;
                }
            }
        }
        Ok(sent)
    }

    /// Adds messages; those of ranks that do not exist are left out.
    pub fn add(&mut self, from: u32, to: u32, traffic: Traffic) {
        if to < self.ranks()
            && let Some(row) = self.rows.get_mut(from as usize)
        {
            row.entry(to).or_default().add(traffic);
        }
    }

    /// Ranks.
    pub fn ranks(&self) -> u32 {
        self.rows.len() as u32
    }

    /// What `from` sends to `to`.
    pub fn sent(&self, from: u32, to: u32) -> Traffic {
        self.rows.get(from as usize).and_then(|row| row.get(&to)).map(Sizes::total).unwrap_or_default()
    }

    /// All ordered pairs with messages, ascending.
    pub fn pairs(&self) -> impl Iterator<Item = (u32, u32, Traffic)> + '_ {
        self.each().map(|(from, to, sizes)| (from, to, sizes.total()))
    }

    fn each(&self) -> impl Iterator<Item = (u32, u32, &Sizes)> + '_ {
        let pairs = |(from, row)| BTreeMap::iter(row).map(move |(&to, sizes)| (from as u32, to, sizes));
        self.rows.iter().enumerate().flat_map(pairs)
    }

    /// The same program with other numbers of ranks: what was rank `r` is rank `number[r]`.
    ///
    /// # Panics
    /// If `number` is not a permutation of the ranks.
    #[must_use]
    pub fn renumbered(&self, number: &[u32]) -> Matrix {
        let mut matrix = Matrix::new(self.ranks());
        for (from, to, sizes) in self.each() {
            matrix.rows[number[from as usize] as usize].insert(number[to as usize], sizes.clone());
        }
        matrix
    }

    /// The pairs with at least [`SIGNIFICANT`] of the messages, and by most measures of the bytes, of a typical pair.
    /// Of a pair only messages of usual sizes count.
    pub fn significant(&self, measure: Measure) -> Significant {
        let mut both: Vec<((u32, u32), &Sizes)> = self
            .each()
            .filter(|(from, to, _)| from != to)
            .map(|(from, to, sizes)| ((from.min(to), from.max(to)), sizes))
            .collect();
        both.sort_unstable_by_key(|(pair, _)| *pair);
        let pairs: Vec<_> = both
            .chunk_by(|(a, _), (b, _)| a == b)
            .map(|ways| (ways[0].0, Sizes::usual(ways.iter().map(|(_, sizes)| *sizes)), ways.len() == 1))
            .collect();
        let typical =
            |of: fn(&Traffic) -> (u64, u64)| typical(pairs.iter().map(|(_, traffic, _)| of(traffic)).collect());
        let messages = typical(|t| (t.messages, t.messages));
        let bytes = match measure {
            Measure::Both | Measure::Most => typical(|t| (t.bytes, t.messages)),
            Measure::Bytes => typical(|t| (t.bytes, t.bytes)),
            Measure::Messages => 0,
        };
        let enough = |value: u64, typical: u64| value as f64 >= SIGNIFICANT * typical as f64;
        let (mut edges, mut one_ways) = (Vec::new(), 0);
        for &(pair, traffic, one_way) in &pairs {
            if enough(traffic.messages, messages) && enough(traffic.bytes, bytes) {
                edges.push(pair);
                one_ways += u64::from(one_way);
            }
        }
        let rare = (pairs.len() - edges.len()) as u64;
        Significant { graph: Graph::new(self.ranks(), edges), rare, one_way: one_ways }
    }

    /// The usual traffic of a pair, both ways.
    pub(super) fn usual(&self, a: u32, b: u32) -> Traffic {
        let way = |from: u32, to: u32| self.rows.get(from as usize)?.get(&to);
        Sizes::usual([way(a, b), way(b, a)].into_iter().flatten())
    }

    /// Of the significant pairs those of the kind of traffic that has the most bytes, those of the first two kinds, and so on
    /// up to some; never all.
    pub fn strongest(&self) -> Vec<Significant> {
        const MOST: usize = 4;
        let all = self.significant(Measure::Both);
        let mut kinds: BTreeMap<_, Vec<(u32, u32)>> = BTreeMap::new();
        for a in 0..self.ranks() {
            for &b in all.graph.neighbours(a).iter().filter(|&&b| a < b) {
                kinds.entry(self.usual(a, b).kind()).or_default().push((a, b));
            }
        }
        let (mut edges, mut parts) = (Vec::new(), Vec::new());
        for kind in kinds.into_values().rev().take(MOST) {
            edges.extend(kind);
            let left_out = (all.graph.edges() - edges.len()) as u64;
            let silent = |a, b| self.sent(a, b) == Traffic::default();
            let one_way = |&&(a, b): &&(u32, u32)| silent(a, b) || silent(b, a);
            let one_way = edges.iter().filter(one_way).count() as u64;
            let graph = Graph::new(self.ranks(), edges.iter().copied());
            parts.extend((left_out > 0).then_some(Significant { graph, rare: all.rare + left_out, one_way }));
        }
        parts
    }
}

/// Of values with weights, the largest such that those at least as large have half of the weight.
fn typical(mut values: Vec<(u64, u64)>) -> u64 {
    values.sort_unstable_by(|a, b| b.cmp(a));
    let sum: u128 = values.iter().map(|&(_, weight)| u128::from(weight)).sum();
    let mut above = 0u128;
    let reaches = |(_, weight): &&(u64, u64)| {
        above += u128::from(*weight);
        2 * above >= sum
    };
    values.iter().find(reaches).map_or(0, |(value, _)| *value)
}

/// Whom a rank sends to and receives from.
#[derive(Default)]
struct Partners {
    sent: BTreeMap<u32, Sizes>,
    received: BTreeMap<u32, Sizes>,
}

impl Partners {
    fn of(trace: &Trace, rank: Rank) -> Result<Partners, TraceError> {
        let mut partners = Partners::default();
        trace.for_each_event(rank, |event| {
            let side = match event.kind {
                EventKind::Send => &mut partners.sent,
                EventKind::Recv => &mut partners.received,
                EventKind::Collective => return,
            };
            if let Ok(peer) = u32::try_from(event.peer) {
                side.entry(peer).or_default().add(Traffic { messages: 1, bytes: event.bytes });
            }
        })?;
        Ok(partners)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ring(ranks: u32, traffic: Traffic) -> Matrix {
        let mut matrix = Matrix::new(ranks);
        (0..ranks).for_each(|rank| matrix.add(rank, (rank + 1) % ranks, traffic));
        matrix
    }

    #[test]
    fn messages_of_the_set_up_are_not_significant() {
        let mut matrix = ring(16, Traffic { messages: 100, bytes: 100_000 });
        for rank in 1..16 {
            // Rank 0 hands out the input, a large message to each, and small ones go between all ranks at a coarse level.
            matrix.add(0, rank, Traffic { messages: 1, bytes: 50_000_000 });
            matrix.add(rank, (rank + 3) % 16, Traffic { messages: 50, bytes: 400 });
        }
        let found = matrix.significant(Measure::Both);
        assert_eq!(found.graph.edges(), 16);
        assert_eq!(found.one_way, 15, "rank 0 sends to its left neighbour too");
        assert!(found.rare > 20);
    }

    #[test]
    fn messages_without_bytes_count() {
        let found = ring(8, Traffic { messages: 3, bytes: 0 }).significant(Measure::Both);
        assert_eq!((found.graph.edges(), found.rare, found.one_way), (8, 0, 8));
    }

    #[test]
    fn the_typical_value_is_that_which_carries_half() {
        assert_eq!(typical(vec![]), 0);
        let own = |values: &[u64]| typical(values.iter().map(|&value| (value, value)).collect());
        assert_eq!(own(&[10, 10, 10, 1, 1, 1]), 10);
        assert_eq!(own(&[100, 1, 1]), 100);
        assert_eq!(typical(vec![(100, 1), (1, 1), (1, 1)]), 1);
    }
}
