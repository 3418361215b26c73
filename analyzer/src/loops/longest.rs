//! Seed 002's optimal procedure: "recursively identifying the longest span tandem repeats in a trace". All repetitions
//! are found once; the one that spans most is taken, the others are clipped to what is left, and so on; bodies are
//! folded in the same way. A repetition may begin at several places: the one with the shortest nest is taken. Pieces
//! short enough get the shortest nest there is, and where the greedy fold is more compact, it stands.
use super::exact;
use super::runs::{Run, runs};
use super::{cost, greedy_dense};
use crate::nest::Node;
use std::collections::{BTreeMap, BinaryHeap};

/// How many turns of a loop are tried.
const TURNS: usize = 8;

/// The most compact nest.
pub fn optimal(sequence: &[u32]) -> Vec<Node<u32>> {
    if let Some(nodes) = exact::shortest(sequence) {
        return nodes;
    }
    let by_span = by_span(sequence);
    let greedy = greedy_dense(sequence);
    if cost(&greedy) < cost(&by_span) { greedy } else { by_span }
}

/// A repetition by its span: the longest first, then the shortest period, then the first.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct BySpan(usize, std::cmp::Reverse<usize>, std::cmp::Reverse<usize>, usize);

impl BySpan {
    fn new(start: usize, end: usize, period: usize) -> BySpan {
        use std::cmp::Reverse;
        BySpan((end - start) / period * period, Reverse(period), Reverse(start), end)
    }
}

fn by_span(sequence: &[u32]) -> Vec<Node<u32>> {
    let all = runs(sequence);
    let mut heap: BinaryHeap<BySpan> = all.iter().map(|run| BySpan::new(run.start, run.end, run.period)).collect();
    // Stretches that are loops, by start: end and period.
    let mut taken: BTreeMap<usize, (usize, usize)> = BTreeMap::new();
    while let Some(BySpan(_, period, start, end)) = heap.pop() {
        let (period, start) = (period.0, start.0);
        let mut low = start;
        let mut free = Vec::new();
        if let Some((_, &(before, _))) = taken.range(..=start).next_back() {
            low = low.max(before);
        }
        if low >= end {
            continue;
        }
        for (&next, &(after, _)) in taken.range(low..end) {
            free.push((low, next));
            low = after;
        }
        free.push((low, end));
        if let [(low, high)] = free[..]
            && (low, high) == (start, end)
        {
            let turn = turn(sequence, &all, Run { start, end, period });
            let stop = turn + (end - turn) / period * period;
            taken.insert(turn, (stop, period));
            free = vec![(start, turn), (stop, end)];
        }
        let again = free.into_iter().filter(|(low, high)| low < high && high - low >= 2 * period);
        heap.extend(again.map(|(low, high)| BySpan::new(low, high, period)));
    }
    let mut nodes = Vec::new();
    let mut at = 0;
    for (start, (end, period)) in taken {
        nodes.extend(sequence[at..start].iter().map(|&symbol| Node::Item(symbol)));
        let body = optimal(&sequence[start..start + period]);
        nodes.push(Node::Loop { count: ((end - start) / period) as u64, body });
        at = end;
    }
    nodes.extend(sequence[at..].iter().map(|&symbol| Node::Item(symbol)));
    nodes
}

/// Where a loop in this repetition begins best: tried are its first and its last place, and where the longest
/// repetitions within it begin and end.
fn turn(sequence: &[u32], all: &[Run], run: Run) -> usize {
    let rest = (run.end - run.start) % run.period;
    if rest == 0 {
        return run.start;
    }
    let last = run.start + rest;
    let near = all.partition_point(|other| other.start < run.start);
    let mut inner: Vec<&Run> =
        all[near..].iter().take_while(|other| other.start < last).filter(|other| other.period < run.period).collect();
    inner.sort_by_key(|other| std::cmp::Reverse(other.end - other.start));
    let mut turns = vec![run.start, last];
    turns.extend(inner.iter().flat_map(|other| [other.start, other.end]).filter(|at| *at < last).take(TURNS));
    turns.sort_unstable();
    turns.dedup();
    let written = |at: &usize| {
        let end = at + (run.end - at) / run.period * run.period;
        let parts = [&sequence[run.start..*at], &sequence[*at..at + run.period], &sequence[end..run.end]];
        let costs = parts.map(|part| cost(&greedy_dense(part)));
        (costs.iter().map(|c| c.0).sum::<u64>(), costs.iter().map(|c| c.1).sum::<u64>())
    };
    turns.into_iter().min_by_key(written).unwrap_or(run.start)
}
