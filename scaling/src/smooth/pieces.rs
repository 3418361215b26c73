//! Piecewise polynomials (seed 003, section 2.1.3): the ends of the pieces are chosen along with the fits.
//!
//! * [`Criterion::Largest`], the segment approximation of Nuernberger, Sommer and Strauss: the largest error of a piece is
//!   made least. The error of a stretch never falls as it grows, so a greedy choice finds out whether so many pieces can
//!   keep a given error, and bisection finds the least one.
//! * [`Criterion::Sum`]: the sum of squares is made least. Neighbours are merged first where that costs least, down to
//!   [`CANDIDATES`] stretches; of their ends, Fisher's dynamic programme takes the best ones for every number of pieces at
//!   once. With no more points than candidates that is the exact optimum.
//!
//! More pieces are never worse. How many there are to be may be left to Bayes' criterion of information.
use super::segments::{Growing, fit as stretch, greedy};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Ends between which the dynamic programme chooses.
pub const CANDIDATES: usize = 600;
/// The most pieces that are tried where their number is to be chosen.
pub const MOST_CHOSEN: usize = 200;

/// What is made least.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Criterion {
    /// The largest error of a piece.
    Largest,
    /// The sum of squares of the errors of all pieces.
    Sum,
}

/// One piece of a fit.
#[derive(Clone, Debug, PartialEq)]
pub struct Piece {
    /// Its first point.
    pub start: usize,
    /// The point behind its last.
    pub end: usize,
    /// Coefficients of powers of the place in points from `start`.
    pub coefficients: Vec<f64>,
    /// The sum of squares of what it leaves.
    pub squares: f64,
}

/// A piecewise polynomial.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Piecewise(pub Vec<Piece>);

impl Piecewise {
    /// Its values at so many points.
    pub fn values(&self, count: usize) -> Vec<f64> {
        let mut values = Vec::with_capacity(count);
        for piece in &self.0 {
            let at = |x: usize| piece.coefficients.iter().rev().fold(0.0, |sum, c| sum * (x - piece.start) as f64 + c);
            values.extend((piece.start..piece.end).map(at));
        }
        values
    }

    /// The sum of squares of what it leaves.
    pub fn squares(&self) -> f64 {
        self.0.iter().map(|piece| piece.squares).sum()
    }

    /// The largest sum of squares that a piece leaves.
    pub fn largest(&self) -> f64 {
        self.0.iter().map(|piece| piece.squares).fold(0.0, f64::max)
    }

    fn of_ends(values: &[f64], degree: usize, ends: &[usize]) -> Piecewise {
        let mut start = 0;
        let piece = |&end: &usize| {
            let fit = stretch(&values[start..end], degree);
            let piece = Piece { start, end, coefficients: fit.coefficients(), squares: fit.squares() };
            start = end;
            piece
        };
        Piecewise(ends.iter().map(piece).collect())
    }
}

/// Fits so many pieces, or as many as seem best.
pub fn fit(values: &[f64], criterion: Criterion, degree: usize, count: Option<usize>) -> Piecewise {
    if values.is_empty() {
        return Piecewise::default();
    }
    let degree = degree.min(super::HIGHEST);
    let most = values.len();
    match (criterion, count) {
        (Criterion::Largest, Some(count)) => segments(values, degree, count.min(most)),
        (Criterion::Sum, Some(count)) => {
            let ends = Programme::new(values, degree, count.min(most)).best(count.min(most));
            Piecewise::of_ends(values, degree, &ends)
        }
        (_, None) => {
            let most = MOST_CHOSEN.min(most.div_ceil(2 * (degree + 1)));
            let programme = Programme::new(values, degree, most);
            let fits = (1..=most).map(|count| (count, programme.squares(count)));
            let floor = floor(values);
            let count = fits
                .map(|(count, squares)| (count, information(squares, values.len(), count, degree, floor)))
                .min_by(|a, b| a.1.total_cmp(&b.1))
                .map_or(1, |best| best.0);
            match criterion {
                Criterion::Largest => segments(values, degree, count),
                Criterion::Sum => Piecewise::of_ends(values, degree, &programme.best(count)),
            }
        }
    }
}

/// Bayes' criterion of information of a fit: each piece has its coefficients and an end.
fn information(squares: f64, points: usize, count: usize, degree: usize, floor: f64) -> f64 {
    let n = points as f64;
    n * (squares / n).max(floor).ln() + (count * (degree + 2)) as f64 * n.ln()
}

/// A variance below which errors are rounding.
fn floor(values: &[f64]) -> f64 {
    let most = values.iter().fold(0.0, |most: f64, value| most.max(value.abs()));
    (1e-6 * most * most).max(1e-12)
}

/// The least largest error with at most so many pieces.
fn segments(values: &[f64], degree: usize, count: usize) -> Piecewise {
    let (mut low, mut high) = (0.0, stretch(values, degree).squares());
    let mut ends = vec![values.len()];
    if let Some(exact) = greedy(values, degree, 0.0, count) {
        return Piecewise::of_ends(values, degree, &exact);
    }
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        match greedy(values, degree, middle, count) {
            Some(found) => {
                // The largest error that was reached is a tighter bound than the one that was tried.
                high = Piecewise::of_ends(values, degree, &found).largest().min(middle);
                ends = found;
            }
            None => low = middle,
        }
        if high - low <= 1e-12 * high {
            break;
        }
    }
    Piecewise::of_ends(values, degree, &ends)
}

/// Fisher's dynamic programme over the ends that are left after merging.
struct Programme {
    /// Possible ends of pieces; the first is 0, the last the end.
    ends: Vec<usize>,
    /// For each number of pieces from 1 and each end, the least sum of squares.
    least: Vec<Vec<f64>>,
    /// The end of the piece before, for each of them.
    from: Vec<Vec<u32>>,
}

impl Programme {
    fn new(values: &[f64], degree: usize, most: usize) -> Programme {
        let ends = merged(values, degree, CANDIDATES.max(most));
        let count = ends.len();
        let mut cost = vec![f64::INFINITY; count * count];
        for from in 0..count - 1 {
            let mut growing = Growing::new(degree, values.len() - ends[from]);
            for to in from + 1..count {
                values[ends[to - 1]..ends[to]].iter().for_each(|value| growing.push(*value));
                cost[from * count + to] = growing.squares();
            }
        }
        let mut least = vec![cost[..count].to_vec()];
        let mut from = vec![vec![0u32; count]];
        for _ in 1..most.min(count - 1) {
            let before = &least[least.len() - 1];
            let (mut sums, mut origins) = (before.clone(), vec![0u32; count]);
            for to in 1..count {
                // No more pieces than before unless one more is better.
                (sums[to], origins[to]) = (before[to], u32::MAX);
                for middle in 1..to {
                    let sum = before[middle] + cost[middle * count + to];
                    if sum < sums[to] {
                        (sums[to], origins[to]) = (sum, middle as u32);
                    }
                }
            }
            least.push(sums);
            from.push(origins);
        }
        Programme { ends, least, from }
    }

    fn squares(&self, count: usize) -> f64 {
        let row = &self.least[count.clamp(1, self.least.len()) - 1];
        row[row.len() - 1]
    }

    fn best(&self, count: usize) -> Vec<usize> {
        let mut at = self.ends.len() - 1;
        let mut ends = Vec::new();
        for row in (0..count.clamp(1, self.from.len())).rev() {
            match self.from[row][at] {
                u32::MAX => continue,
                before => {
                    ends.push(self.ends[at]);
                    at = before as usize;
                }
            }
            if at == 0 {
                break;
            }
        }
        ends.reverse();
        ends
    }
}

/// Ends of at most `most` stretches: neighbours are merged where that adds least to the sum of squares.
fn merged(values: &[f64], degree: usize, most: usize) -> Vec<usize> {
    let count = values.len();
    if count <= most {
        return (0..=count).collect();
    }
    let cost = |from: usize, to: usize| stretch(&values[from..to], degree).squares();
    // Each stretch is known by its first point; `end` and `before` link it to its neighbours.
    let mut end: Vec<usize> = (1..=count).collect();
    let mut before: Vec<usize> = (0..count).map(|at| at.saturating_sub(1)).collect();
    let mut alive = vec![true; count];
    let mut squares = vec![0.0; count];
    let key = |extra: f64| Reverse((extra.max(0.0).to_bits(), 0usize, 0usize));
    let mut heap: BinaryHeap<Reverse<(u64, usize, usize)>> = (0..count - 1)
        .map(|at| {
            let Reverse((bits, ..)) = key(cost(at, at + 2));
            Reverse((bits, at, at + 2))
        })
        .collect();
    let mut left = count;
    while left > most {
        let Some(Reverse((_, at, to))) = heap.pop() else { break };
        let next = end[at];
        // An entry is stale unless both stretches are as they were.
        if !alive[at] || next >= count || end[next] != to || !alive[next] {
            continue;
        }
        squares[at] = cost(at, to);
        (alive[next], end[at]) = (false, to);
        if to < count {
            before[to] = at;
        }
        left -= 1;
        let mut offer = |from: usize| {
            let next = end[from];
            if next < count {
                let extra = cost(from, end[next]) - squares[from] - squares[next];
                let Reverse((bits, ..)) = key(extra);
                heap.push(Reverse((bits, from, end[next])));
            }
        };
        offer(at);
        if at > 0 {
            offer(before[at]);
        }
    }
    let mut ends = vec![0];
    while let Some(&last) = ends.last()
        && last < count
    {
        ends.push(end[last]);
    }
    ends
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The least sum of squares (or least largest) by trying all ends.
    fn brute(values: &[f64], degree: usize, count: usize, sum: bool) -> f64 {
        let whole = stretch(values, degree).squares();
        if count == 1 {
            return whole;
        }
        (1..values.len()).fold(whole, |best, at| {
            let last = stretch(&values[at..], degree).squares();
            let rest = brute(&values[..at], degree, count - 1, sum);
            best.min(if sum { rest + last } else { rest.max(last) })
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn more_pieces_are_never_worse(
            values in prop::collection::vec(0.0..16.0, 1..120), degree in 0usize..3, count in 1usize..12
        ) {
            for criterion in [Criterion::Largest, Criterion::Sum] {
                let few = fit(&values, criterion, degree, Some(count));
                let more = fit(&values, criterion, degree, Some(count + 1));
                let of = |f: &Piecewise| if criterion == Criterion::Sum { f.squares() } else { f.largest() };
                prop_assert!(of(&more) <= of(&few) + 1e-6, "{criterion:?} {} {}", of(&few), of(&more));
                prop_assert!(few.0.len() <= count && few.values(values.len()).len() == values.len());
                prop_assert!(few.0.windows(2).all(|w| w[0].end == w[1].start));
            }
        }

        #[test]
        fn a_short_series_has_the_best_pieces(
            values in prop::collection::vec(0.0..16.0, 2..10), degree in 0usize..2, count in 1usize..4
        ) {
            let sum = fit(&values, Criterion::Sum, degree, Some(count)).squares();
            prop_assert!((sum - brute(&values, degree, count, true)).abs() < 1e-8);
            let largest = fit(&values, Criterion::Largest, degree, Some(count)).largest();
            prop_assert!((largest - brute(&values, degree, count, false)).abs() < 1e-8);
        }

        #[test]
        fn a_polynomial_of_the_fitted_degree_stays_as_it_is(degree in 0usize..4, c in prop::collection::vec(-1.0..1.0, 4)) {
            let values: Vec<f64> =
                (0..50).map(|x| (0..=degree).rev().fold(0.0, |sum, k| sum * f64::from(x) / 10.0 + c[k])).collect();
            for criterion in [Criterion::Largest, Criterion::Sum] {
                let smooth = fit(&values, criterion, degree, Some(2)).values(50);
                prop_assert!(values.iter().zip(&smooth).all(|(a, b)| (a - b).abs() < 1e-6));
            }
        }
    }

    #[test]
    fn steps_in_noise_are_found_and_counted() {
        let mut random = crate::fit::Random::new(7);
        let levels = [4.0, 9.0, 3.0, 12.0];
        let values: Vec<f64> = levels.iter().flat_map(|l| [*l; 400]).map(|l| l + 0.3 * random.normal()).collect();
        for criterion in [Criterion::Largest, Criterion::Sum] {
            let found = fit(&values, criterion, 0, None);
            let ends: Vec<usize> = found.0.iter().map(|piece| piece.end).collect();
            assert_eq!(ends.len(), 4, "{criterion:?} {ends:?}");
            assert!(ends.iter().zip([400, 800, 1200, 1600]).all(|(a, b)| a.abs_diff(b) <= 5), "{ends:?}");
        }
    }
}
