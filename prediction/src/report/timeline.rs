//! Thins the pieces of a run to what a screen can show: a run has millions, a page shows a few thousand.
use crate::model::TimelinePiece;
use std::collections::HashMap;

/// Ranks that a timeline shows; of more, evenly chosen ones.
pub const MOST_RANKS: usize = 128;
/// Pieces that a timeline shows.
pub const MOST_PIECES: usize = 4000;

/// The ranks that a timeline of so many shows.
pub fn shown(ranks: usize) -> Vec<usize> {
    match ranks {
        0..=MOST_RANKS => (0..ranks).collect(),
        _ => (0..MOST_RANKS).map(|i| i * (ranks - 1) / (MOST_RANKS - 1)).collect(),
    }
}

/// The pieces of one rank, given as phase and length in seconds from `start_s` on, as at most `most` (at least 1)
/// rectangles. Where pieces are finer than that, a rectangle shows the phase that fills the most of its time; phases
/// are thus neither lost nor widened by the order in which they come.
pub fn thin(
    rank: u32,
    start_s: f64,
    pieces: impl Iterator<Item = (u32, f64)> + Clone,
    most: usize,
) -> Vec<TimelinePiece> {
    let (mut count, mut span) = (0usize, 0.0);
    for (_, length) in pieces.clone() {
        count += 1;
        span += length;
    }
    let mut out = Vec::new();
    if count <= most {
        let mut at = start_s;
        for (phase, length) in pieces {
            out.push(TimelinePiece { rank, phase, start_s: at, end_s: at + length });
            at += length;
        }
        return out;
    }
    if span <= 0.0 {
        return out;
    }
    let bins = most.max(1);
    let width = span / bins as f64;
    let edge = |bin: usize| if bin == bins { span } else { width * bin as f64 };
    let mut times: HashMap<u32, f64> = HashMap::new();
    let (mut bin, mut at) = (0, 0.0);
    for (phase, length) in pieces {
        let end = at + length;
        while bin < bins && end >= edge(bin + 1) {
            *times.entry(phase).or_default() += edge(bin + 1) - at.max(edge(bin));
            close(&mut out, &mut times, rank, start_s + edge(bin), start_s + edge(bin + 1));
            bin += 1;
        }
        if bin < bins {
            *times.entry(phase).or_default() += end - at.max(edge(bin));
        }
        at = end;
    }
    if bin < bins {
        close(&mut out, &mut times, rank, start_s + edge(bin), start_s + span);
    }
    out
}

/// Ends a rectangle: the phase with the most time has it; joined to the one before it if that is of the same phase.
fn close(out: &mut Vec<TimelinePiece>, times: &mut HashMap<u32, f64>, rank: u32, start_s: f64, end_s: f64) {
    let most = times.iter().max_by(|a, b| a.1.total_cmp(b.1).then(b.0.cmp(a.0))).map(|(&phase, _)| phase);
    times.clear();
    let Some(phase) = most else { return };
    match out.last_mut().filter(|last| last.phase == phase) {
        Some(last) => last.end_s = end_s,
        None => out.push(TimelinePiece { rank, phase, start_s, end_s }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_pieces_stay_as_they_are() {
        let pieces = [(1, 0.5), (2, 0.25), (1, 0.25)];
        let out = thin(3, 1.0, pieces.into_iter(), 10);
        assert_eq!(out.len(), 3);
        assert_eq!((out[1].rank, out[1].phase, out[1].start_s, out[1].end_s), (3, 2, 1.5, 1.75));
    }

    #[test]
    fn many_pieces_become_few_and_still_tile_the_run() {
        let pieces: Vec<(u32, f64)> = (0..100_000).map(|i| (if i < 30_000 { 1 } else { 2 + i % 2 }, 1e-3)).collect();
        let out = thin(0, 0.0, pieces.iter().copied(), 50);
        assert!(out.len() <= 50, "{}", out.len());
        assert_eq!(out[0].phase, 1);
        assert!((out[0].end_s - 30.0).abs() < 2.1, "{:?}", out[0]);
        assert!(out.windows(2).all(|w| (w[0].end_s - w[1].start_s).abs() < 1e-9));
        assert!((out[out.len() - 1].end_s - 100.0).abs() < 1e-6);
    }

    #[test]
    fn a_long_piece_among_many_short_ones_keeps_its_length() {
        let mut pieces = vec![(1, 1e-6); 1000];
        pieces.push((7, 10.0));
        pieces.extend(vec![(1, 1e-6); 1000]);
        let out = thin(0, 0.0, pieces.iter().copied(), 100);
        let long = out.iter().find(|p| p.phase == 7).expect("the long piece is shown");
        assert!(long.end_s - long.start_s > 9.8);
    }

    #[test]
    fn many_ranks_are_sampled_with_both_ends() {
        let ranks = shown(10_000);
        assert_eq!((ranks.len(), ranks[0], ranks[MOST_RANKS - 1]), (MOST_RANKS, 0, 9_999));
        assert_eq!(shown(3), [0, 1, 2]);
    }

    #[test]
    fn no_time_is_no_rectangle() {
        assert!(thin(0, 0.0, std::iter::repeat_n((1, 0.0), 100), 10).is_empty());
        assert!(thin(0, 0.0, std::iter::empty(), 10).is_empty());
    }
}
