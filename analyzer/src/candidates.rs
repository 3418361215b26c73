//! Candidates for a marker: patterns of K symbols of the pilot that come back.
//!
//! A rolling hash names the pattern that ends at each position. The patterns are counted by distinct sampling: when
//! there are more different ones than fit, only those whose hash ends in one more zero bit are kept, so that memory is
//! bounded, time is linear, the counts of those kept are exact and nothing depends on order.
use crate::matching::FastMap;
use crate::pilot::Pilot;
use crate::symbol::mix;
use std::ops::Range;

/// Lengths of patterns that are tried.
pub const LENGTHS: [usize; 7] = [1, 2, 3, 4, 6, 8, 12];
/// The fewest occurrences of a marker.
pub const FEWEST: u64 = 4;
/// The most occurrences of a marker; of patterns that come oftener every n-th counts.
pub const MOST: u64 = 60_000;
/// The shortest mean segment in seconds.
pub const SHORTEST_S: f64 = 20e-6;
/// Different patterns of one length that are counted at a time.
const DISTINCT: usize = 1 << 17;
/// Candidates kept of those that come about equally often, and the occurrences they may have together.
const ALIKE: u64 = 48;
const ALIKE_OCCURRENCES: u64 = 200_000;
/// Strides n of which every n-th occurrence of a single symbol is tried, for how many symbols, and of how many occurrences
/// at most.
const STRIDES: [u64; 17] = [2, 3, 4, 5, 6, 8, 9, 10, 12, 16, 18, 20, 24, 32, 40, 48, 64];
const SPARSER_SYMBOLS: usize = 4;
const SPARSER_OCCURRENCES: u64 = 1 << 20;

/// A pattern that may be a marker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Symbols in the pattern.
    pub length: usize,
    /// Its hash.
    pub hash: u64,
    /// How often it occurs where a cut may lie.
    pub count: u64,
    /// n: every n-th occurrence ends a segment.
    pub every: u64,
    /// The position of its first occurrence.
    pub first: u32,
}

/// Calls `each(position, hash)` for every pattern of `length` symbols of a stretch after which a cut may lie.
pub fn patterns(pilot: &Pilot, stretch: &Range<usize>, length: usize, mut each: impl FnMut(usize, u64)) {
    const BASE: u64 = 0xD6E8_FEB8_6659_FD93;
    let leading = (0..length).fold(1u64, |power, _| power.wrapping_mul(BASE));
    let mut rolling = 0u64;
    for at in stretch.clone() {
        rolling = rolling.wrapping_mul(BASE).wrapping_add(pilot.symbol(at));
        if at >= stretch.start + length {
            rolling = rolling.wrapping_sub(pilot.symbol(at - length).wrapping_mul(leading));
        }
        if at + 1 >= stretch.start + length && pilot.open(at) {
            each(at, mix(rolling));
        }
    }
}

/// The patterns of one length that occur often enough.
fn count(pilot: &Pilot, stretches: &[Range<usize>], length: usize, span_s: f64, most: u64) -> Vec<Candidate> {
    let mut counts: FastMap<u64, (u32, u32)> = FastMap::default();
    let mut mask = 0u64;
    for stretch in stretches {
        patterns(pilot, stretch, length, |at, hash| {
            if hash & mask != 0 {
                return;
            }
            counts.entry(hash).or_insert((0, at as u32)).0 += 1;
            if counts.len() > DISTINCT {
                mask = mask << 1 | 1;
                counts.retain(|&hash, _| hash & mask == 0);
            }
        });
    }
    let frequent = counts.into_iter().filter(|(_, (count, _))| u64::from(*count) >= FEWEST);
    frequent
        .map(|(hash, (count, first))| {
            let count = u64::from(count);
            let fine = (SHORTEST_S * count as f64 / span_s.max(1e-9)).ceil() as u64;
            Candidate { length, hash, count, every: count.div_ceil(most).max(fine).max(1), first }
        })
        .filter(|c| c.count / c.every >= FEWEST)
        .collect()
}

/// The candidates to be looked at in `stretches`, which take `span_s`: of those that come about equally often, the ones
/// that end in a collective (quiet places) and others spread over their first occurrences. `most` bounds the occurrences
/// of a marker.
pub fn candidates(
    pilot: &Pilot,
    stretches: &[Range<usize>],
    span_s: f64,
    most: u64,
    threads: usize,
    stage: &crate::parallel::Stage<'_>,
) -> Result<Vec<Candidate>, crate::AnalyzeError> {
    let found = crate::parallel::map(LENGTHS.len(), threads, stage, |task, _| {
        Ok::<_, crate::AnalyzeError>(count(pilot, stretches, LENGTHS[task], span_s, most.min(MOST)))
    })?;
    let mut all: Vec<Candidate> = found.into_iter().flatten().collect();
    let alike = |c: &Candidate| ((c.count / c.every) as f64).log2().mul_add(8.0, 0.5) as u64;
    let collective = |c: &Candidate| pilot.is_collective(c.first as usize);
    all.sort_unstable_by_key(|c| (alike(c), c.count, !collective(c), c.first, c.length, c.hash));
    // Patterns that end at the same places are one marker: the shortest stands for them.
    all.dedup_by_key(|c| (alike(c), c.count, c.first));
    let mut chosen = Vec::new();
    for group in all.chunk_by(|a, b| alike(a) == alike(b)) {
        let each = group[0].count / group[0].every;
        let room = (ALIKE_OCCURRENCES / each).clamp(4, ALIKE) as usize;
        let (quiet, others): (Vec<&Candidate>, Vec<&Candidate>) = group.iter().partition(|c| collective(c));
        let quiet_room = room.div_ceil(2).max(room.saturating_sub(others.len()));
        spread(&mut chosen, &quiet, quiet_room);
        spread(&mut chosen, &others, room - quiet_room.min(quiet.len()));
    }
    Ok(chosen)
}

/// Single symbols of which only every n-th occurrence counts. Where exchanges with the neighbours all look alike, a step
/// of the program shows only as so many of them.
pub fn sparser(candidates: &[Candidate]) -> Vec<Candidate> {
    let mut frequent: Vec<&Candidate> =
        candidates.iter().filter(|c| c.length == 1 && c.count <= SPARSER_OCCURRENCES).collect();
    frequent.sort_unstable_by_key(|c| (std::cmp::Reverse(c.count), c.hash));
    let of = |c: &Candidate| STRIDES.map(|n| Candidate { every: n * c.every, ..*c });
    let all = frequent.into_iter().take(SPARSER_SYMBOLS).flat_map(of);
    all.filter(|c| c.count / c.every >= 4 * FEWEST).collect()
}

fn spread(chosen: &mut Vec<Candidate>, from: &[&Candidate], room: usize) {
    let take = room.min(from.len());
    chosen.extend((0..take).map(|i| *from[i * from.len() / take]));
}
