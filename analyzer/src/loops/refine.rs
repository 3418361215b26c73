//! What the greedy fold loses is won back: an inner loop that was folded first may have taken the ends of an outer
//! loop's iterations, so that the outer loop is rotated and one or two iterations short (seed 002, section 3). In the
//! unfolded sequence they are still there: each loop is followed to both sides as far as its period goes on, and if
//! that makes room for another iteration, it is folded anew, turned to where it is the shortest.
use super::{cost, fold};
use crate::nest::{Node, span};

/// How many turns of a loop are tried beside the first and the last.
const TURNS: usize = 6;

/// How many symbols may be folded anew in all: so many for each of the sequence, and so many more. What is folded anew
/// is refined, too, so that without a bound loops within loops would take exponential time.
const AGAIN: (usize, usize) = (64, 1 << 16);

/// The same sequence in a nest that is not longer.
pub fn refine(nodes: Vec<Node<u32>>, sequence: &[u32]) -> Vec<Node<u32>> {
    refine_within(nodes, sequence, &mut (AGAIN.0 * sequence.len() + AGAIN.1))
}

fn refine_within(nodes: Vec<Node<u32>>, sequence: &[u32], left: &mut usize) -> Vec<Node<u32>> {
    if nodes.iter().all(|node| matches!(node, Node::Item(_))) {
        return nodes;
    }
    let mut done: Vec<(Node<u32>, usize)> = Vec::new();
    let mut rest: Vec<(Node<u32>, usize)> = Vec::new();
    let mut at = 0;
    for node in nodes {
        let start = at;
        at += node.span() as usize;
        rest.push((node, start));
    }
    rest.reverse();
    while let Some((node, start)) = rest.pop() {
        let Node::Loop { count, body } = node else {
            done.push((node, start));
            continue;
        };
        let period = span(&body) as usize;
        let end = start + period * count as usize;
        let (from, to) = reach(sequence, start, end, period);
        if to - from >= (count as usize + 1) * period {
            let before = done.partition_point(|(_, at)| *at <= from).saturating_sub(1);
            let low = done.get(before).map_or(start, |(_, at)| *at);
            let after = rest.partition_point(|(_, at)| *at >= to);
            let high = if after == 0 { sequence.len() } else { rest[after - 1].1 };
            let old = done[before.min(done.len())..].iter().chain(&rest[after..]).map(|(node, _)| node);
            let mut old_cost = cost(&body);
            old_cost.1 += 1;
            for node in old {
                let (written, loops) = cost(std::slice::from_ref(node));
                old_cost = (old_cost.0 + written, old_cost.1 + loops);
            }
            let turns = turns(&done[before.min(done.len())..], &rest[after..], from, to, period);
            let mut anew = Vec::new();
            for turn in turns {
                let Some(remains) = left.checked_sub(high - low) else { break };
                *left = remains;
                anew.push(turned(sequence, (low, high), turn, to, period, left));
            }
            let best = anew.into_iter().min_by_key(|nodes| cost(nodes));
            if let Some(best) = best.filter(|nodes| cost(nodes) < old_cost) {
                done.truncate(before);
                rest.truncate(after);
                let mut at = low;
                for node in best {
                    let start = at;
                    at += node.span() as usize;
                    done.push((node, start));
                }
                continue;
            }
        }
        let body = refine_within(body, &sequence[start..start + period], left);
        done.push((Node::Loop { count, body }, start));
    }
    done.into_iter().map(|(node, _)| node).collect()
}

/// How far the period of a loop goes on to both sides, at most two iterations each.
fn reach(sequence: &[u32], start: usize, end: usize, period: usize) -> (usize, usize) {
    let (mut from, mut to) = (start, end);
    while from > 0 && start - from < 2 * period && sequence[from - 1] == sequence[from - 1 + period] {
        from -= 1;
    }
    while to < sequence.len() && to - end < 2 * period && sequence[to] == sequence[to - period] {
        to += 1;
    }
    (from, to)
}

/// Where a loop with this period may begin: as early and as late as it can, and where something else begins or ends.
fn turns(
    before: &[(Node<u32>, usize)],
    after: &[(Node<u32>, usize)],
    from: usize,
    to: usize,
    period: usize,
) -> Vec<usize> {
    let last = from + (to - from) % period;
    let mut found = vec![from, last];
    found.extend(before.iter().map(|(_, at)| *at).filter(|at| (from..last).contains(at)).take(TURNS / 2));
    let turn = |at: usize| from + (at - from) % period;
    let ends = after.iter().map(|(_, at)| *at).filter(|at| (from..=to).contains(at)).map(turn);
    found.extend(ends.filter(|at| *at <= last).take(TURNS / 2));
    found.sort_unstable();
    found.dedup();
    found
}

/// What lies between two places, with a loop from `start` on for as many iterations as there are before `to`.
fn turned(
    sequence: &[u32],
    (low, high): (usize, usize),
    start: usize,
    to: usize,
    period: usize,
    left: &mut usize,
) -> Vec<Node<u32>> {
    let count = (to - start) / period;
    let end = start + count * period;
    let mut folded = |part: &[u32]| refine_within(fold::fold(part), part, left);
    let mut nodes = folded(&sequence[low..start]);
    nodes.push(Node::Loop { count: count as u64, body: folded(&sequence[start..start + period]) });
    nodes.extend(folded(&sequence[end..high]));
    nodes
}
