//! How many phases there are (seed 003, section 2: one phase is assumed and its goodness determined, then two, and so on;
//! the proper number is that with the best goodness).
//!
//! The goodness is Bayes' criterion of information: each phase is a normal distribution with a mean and a variance of its
//! own, as its definition has it; points within a transition at which a phase begins are one of their own. Every phase
//! more costs its mean, its variance and its place. The points of real profiles are not independent, so that what they
//! tell is divided by how many of them say the same.
use super::transitions::{Shape, Transition};
use super::{Kind, Phase, Stretch, phase};
use crate::profile::Series;

/// The most phases between two fixed stretches.
const MOST: usize = 60;

/// Sums from which the mean and variance of any stretch follow.
struct Moments {
    first: Vec<f64>,
    second: Vec<f64>,
    floor: f64,
}

impl Moments {
    fn new(values: &[f64], ranks: u32) -> Moments {
        let (mut first, mut second) = (vec![0.0; values.len() + 1], vec![0.0; values.len() + 1]);
        let middle = values.iter().sum::<f64>() / values.len().max(1) as f64;
        for (at, value) in values.iter().enumerate() {
            first[at + 1] = first[at] + (value - middle);
            second[at + 1] = second[at] + (value - middle).powi(2);
        }
        // Half a percent of the processors is as exact as a level need be.
        Moments { first, second, floor: (0.005 * f64::from(ranks)).powi(2) }
    }

    /// Minus twice the logarithm of the likelihood of a stretch, without constants.
    fn cost(&self, from: usize, to: usize) -> f64 {
        if to <= from {
            return 0.0;
        }
        let n = (to - from) as f64;
        let mean = (self.first[to] - self.first[from]) / n;
        let variance = ((self.second[to] - self.second[from]) / n - mean * mean).max(0.0);
        n * (variance + self.floor).ln()
    }
}

/// A place at which a phase may begin or must.
#[derive(Clone, Copy)]
struct Edge {
    at: usize,
    from: usize,
    to: usize,
    shape: Option<Shape>,
}

/// The phases for each number of them, with their goodness (less is better). No phase that begins or ends at a
/// transition has fewer than `least` points: shorter ones are transitions.
pub(super) fn ways(
    series: &Series,
    values: &[f64],
    fixed: &[Stretch],
    [transitions, extrema]: [&[Transition]; 2],
    least: usize,
) -> Vec<(Vec<Phase>, f64)> {
    if values.is_empty() {
        return Vec::new();
    }
    let moments = Moments::new(values, series.ranks);
    let same = dependence(values);
    let parameters = 3.0 * (values.len() as f64).ln() * same;
    // Between fixed stretches, the gaps: each is cut on its own, and then the cuts that gain most are taken of all.
    let mut gaps = Vec::new();
    let mut at = 0;
    for stretch in fixed {
        if stretch.start > at {
            gaps.push((at, stretch.start));
        }
        at = stretch.end;
    }
    if values.len() > at {
        gaps.push((at, values.len()));
    }
    let cut: Vec<Vec<(f64, Vec<Edge>)>> =
        gaps.iter().map(|gap| cuts(&moments, *gap, [transitions, extrema], least)).collect();
    let base = fixed.len() + gaps.len();
    let fixed_cost: f64 = fixed.iter().map(|s| moments.cost(s.start, s.end)).sum();
    let mut totals = vec![(fixed_cost, vec![0usize; 0])];
    for of_gap in &cut {
        let mut next: Vec<(f64, Vec<usize>)> = Vec::new();
        for (extra, (sum, chosen)) in totals.iter().enumerate() {
            for (more, (cost, _)) in of_gap.iter().enumerate().take(MOST + 1) {
                let at = extra + more;
                if at > MOST {
                    break;
                }
                let way = (sum + cost, chosen.iter().copied().chain([more]).collect());
                match next.get_mut(at) {
                    Some(best) if way.0 < best.0 => *best = way,
                    Some(_) => {}
                    None => next.push(way),
                }
            }
        }
        totals = next;
    }
    totals
        .into_iter()
        .enumerate()
        .map(|(extra, (cost, chosen))| {
            let edges = cut.iter().zip(&chosen).map(|(of_gap, more)| of_gap[*more].1.as_slice());
            let phases = assemble(series, values, fixed, &gaps, edges);
            (phases, cost + parameters * (base + extra) as f64)
        })
        .collect()
}

/// The least cost of a gap for each number of cuts within it, with the cuts; not for numbers that leave no room for
/// phases.
fn cuts(
    moments: &Moments,
    (start, end): (usize, usize),
    [transitions, extrema]: [&[Transition]; 2],
    shortest: usize,
) -> Vec<(f64, Vec<Edge>)> {
    // A trough at the very start or end of a gap is part of no phase's level either.
    let near = |t: &&Transition, at: usize| t.at.abs_diff(at) < shortest.div_ceil(2) && t.at >= start && t.at < end;
    let begun = extrema.iter().filter(|t| near(t, start)).map(|t| t.to).max().unwrap_or(start).min(end);
    let ended = extrema.iter().filter(|t| near(t, end)).map(|t| t.from).min().unwrap_or(end).max(begun);
    let mut edges = vec![Edge { at: start, from: start, to: begun, shape: None }];
    // A phase may begin at once, or after a transition of some points.
    edges.extend(transitions.iter().filter(|t| t.at > start && t.at < end).flat_map(|t| {
        let (from, to) = (t.from.max(start), t.to.min(end));
        let wide = Edge { at: t.at, from, to, shape: Some(t.shape) };
        let sharp = Edge { from: t.at, to: t.at, ..wide };
        [Some(sharp), (from < to).then_some(wide)].into_iter().flatten()
    }));
    edges.push(Edge { at: end, from: ended, to: end, shape: None });
    let count = edges.len();
    let most = MOST.min(transitions.len());
    // The cost of the phase between two edges, with the transition at its end.
    let cost = |a: &Edge, b: &Edge| {
        if b.at - a.at < shortest && b.at - a.at < end - start {
            return f64::INFINITY;
        }
        let to = b.from.max(a.to);
        let before = if a.at == start { moments.cost(start, a.to) } else { 0.0 };
        before + moments.cost(a.to, to) + moments.cost(to, b.to.max(to))
    };
    let costs: Vec<f64> = (0..count * count)
        .map(|at| if at / count < at % count { cost(&edges[at / count], &edges[at % count]) } else { f64::INFINITY })
        .collect();
    let mut least = vec![costs[..count].to_vec()];
    let mut origins: Vec<Vec<usize>> = vec![vec![0; count]];
    for _ in 0..most {
        let before = &least[least.len() - 1];
        let (mut sums, mut from) = (vec![f64::INFINITY; count], vec![0; count]);
        for to in 1..count {
            for middle in 1..to {
                let sum = before[middle] + costs[middle * count + to];
                if sum < sums[to] {
                    (sums[to], from[to]) = (sum, middle);
                }
            }
        }
        least.push(sums);
        origins.push(from);
    }
    (0..=most)
        .filter(|cuts| least[*cuts][count - 1].is_finite())
        .map(|cuts| {
            let mut chosen = Vec::with_capacity(cuts);
            let mut at = count - 1;
            for row in (1..=cuts).rev() {
                at = origins[row][at];
                chosen.push(edges[at]);
            }
            chosen.reverse();
            (least[cuts][count - 1], chosen)
        })
        .collect()
}

/// The phases of chosen edges.
fn assemble<'a>(
    series: &Series,
    values: &[f64],
    fixed: &[Stretch],
    gaps: &[(usize, usize)],
    edges: impl Iterator<Item = &'a [Edge]>,
) -> Vec<Phase> {
    let mut phases: Vec<Phase> = fixed.iter().map(|s| phase(series, values, (s.start, s.end), s.kind, None)).collect();
    for (&(start, end), edges) in gaps.iter().zip(edges) {
        let mut from = (start, None);
        for edge in edges.iter().map(|edge| (edge.at, edge.shape)).chain([(end, None)]) {
            phases.push(phase(series, values, (from.0, edge.0), Kind::Other, from.1));
            from = edge;
        }
    }
    phases.sort_by_key(|phase| phase.start);
    phases
}

/// How many neighbouring points say the same, by the correlation of neighbours within a short stretch: 1 if none.
fn dependence(values: &[f64]) -> f64 {
    // Differences over one and over two points: with independent points both have the same mean square.
    let squares = |by: usize| {
        let pairs = values.len().saturating_sub(by).max(1) as f64;
        values.iter().zip(values.iter().skip(by)).map(|(a, b)| (a - b).powi(2)).sum::<f64>() / pairs
    };
    let (one, two) = (squares(1), squares(2));
    if one <= 0.0 || two <= one {
        return 1.0;
    }
    // In a process in which a share r of a point is its neighbour's, two / one = 1 + r.
    let r = (two / one - 1.0).min(0.9);
    (1.0 + r) / (1.0 - r)
}
