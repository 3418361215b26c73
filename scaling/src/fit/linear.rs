//! Linear least squares by Householder reflections: columns of a few terms, rows of a few points.
//!
//! Own code, as the problems are tiny (at most a dozen terms) and there are a million of them in a bootstrap: a general
//! matrix library spends its time on allocation there.

/// The solution of a linear least-squares problem.
#[derive(Clone, Debug, PartialEq)]
pub struct Solution {
    /// One coefficient per column.
    pub coefficients: Vec<f64>,
    /// The sum of squared residuals.
    pub squares: f64,
}

/// Columns whose rest is smaller than this, relative to their length, depend on those before them.
const DEPENDENT: f64 = 1e-11;

/// Minimises |A x - y|, A given row by row with `columns` numbers each. None if there are fewer rows than columns, if
/// columns depend on one another, or if a number is not finite.
pub fn least_squares(rows: &[f64], columns: usize, y: &[f64]) -> Option<Solution> {
    let count = y.len();
    if columns == 0 || count < columns || rows.len() != count * columns {
        return None;
    }
    let (mut a, mut b) = (rows.to_vec(), y.to_vec());
    // Columns are scaled to length 1, so that terms like p^3 and 1/p can stand side by side.
    let mut lengths = Vec::with_capacity(columns);
    for column in 0..columns {
        let length = (0..count).map(|row| a[row * columns + column].powi(2)).sum::<f64>().sqrt();
        if !(length > 0.0 && length.is_finite()) {
            return None;
        }
        (0..count).for_each(|row| a[row * columns + column] /= length);
        lengths.push(length);
    }
    let mut diagonal = Vec::with_capacity(columns);
    for k in 0..columns {
        let norm = (k..count).map(|row| a[row * columns + k].powi(2)).sum::<f64>().sqrt();
        if norm.is_nan() || norm < DEPENDENT {
            return None;
        }
        let alpha = if a[k * columns + k] > 0.0 { -norm } else { norm };
        // The reflector v = a_k - alpha e_k, kept in the column below the diagonal.
        a[k * columns + k] -= alpha;
        let scale = alpha * a[k * columns + k];
        for column in k + 1..columns {
            let dot: f64 = (k..count).map(|row| a[row * columns + k] * a[row * columns + column]).sum();
            for row in k..count {
                a[row * columns + column] += dot / scale * a[row * columns + k];
            }
        }
        let dot: f64 = (k..count).map(|row| a[row * columns + k] * b[row]).sum();
        (k..count).for_each(|row| b[row] += dot / scale * a[row * columns + k]);
        diagonal.push(alpha);
    }
    let mut x = vec![0.0; columns];
    for k in (0..columns).rev() {
        let rest: f64 = (k + 1..columns).map(|column| a[k * columns + column] * x[column]).sum();
        x[k] = (b[k] - rest) / diagonal[k];
    }
    x.iter_mut().zip(&lengths).for_each(|(x, length)| *x /= length);
    let squares: f64 = b[columns..].iter().map(|b| b * b).sum();
    (squares.is_finite() && x.iter().all(|x| x.is_finite())).then_some(Solution { coefficients: x, squares })
}

/// The same with coefficients that are not negative. The best such solution is an unconstrained one of some of the
/// columns, so with few columns all choices are tried.
pub fn nonnegative(rows: &[f64], columns: usize, y: &[f64]) -> Option<Solution> {
    let free = least_squares(rows, columns, y)?;
    if columns > 10 || free.coefficients.iter().all(|c| *c >= 0.0) {
        return Some(free).filter(|free| free.coefficients.iter().all(|c| *c >= 0.0));
    }
    let mut best: Option<Solution> = None;
    let mut part = Vec::new();
    for choice in 1u32..(1 << columns) - 1 {
        let chosen: Vec<usize> = (0..columns).filter(|column| choice >> column & 1 == 1).collect();
        part.clear();
        part.extend(rows.chunks(columns).flat_map(|row| chosen.iter().map(|&column| row[column])));
        let Some(solution) = least_squares(&part, chosen.len(), y) else { continue };
        let better = best.as_ref().is_none_or(|best| solution.squares < best.squares);
        if better && solution.coefficients.iter().all(|c| *c >= 0.0) {
            let mut coefficients = vec![0.0; columns];
            chosen.iter().zip(&solution.coefficients).for_each(|(&column, c)| coefficients[column] = *c);
            best = Some(Solution { coefficients, squares: solution.squares });
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_line_is_found() {
        let rows: Vec<f64> = (1..=5).flat_map(|x| [1.0, f64::from(x)]).collect();
        let y: Vec<f64> = (1..=5).map(|x| 3.0 - 2.0 * f64::from(x)).collect();
        let found = least_squares(&rows, 2, &y).expect("a solution");
        assert!((found.coefficients[0] - 3.0).abs() < 1e-12 && (found.coefficients[1] + 2.0).abs() < 1e-12);
        assert!(found.squares < 1e-20);
    }

    #[test]
    fn dependent_columns_and_too_few_rows_are_refused() {
        assert!(least_squares(&[1.0, 2.0, 2.0, 4.0, 3.0, 6.0], 2, &[1.0, 2.0, 3.0]).is_none());
        assert!(least_squares(&[1.0, 2.0], 2, &[1.0]).is_none());
        assert!(least_squares(&[1.0, f64::NAN], 1, &[1.0, 1.0]).is_none());
    }

    proptest! {
        #[test]
        fn residuals_stand_at_right_angles_to_all_columns(
            rows in prop::collection::vec(-10.0..10.0, 24), y in prop::collection::vec(-10.0..10.0, 8)
        ) {
            let Some(found) = least_squares(&rows, 3, &y) else { return Ok(()) };
            let left: Vec<f64> = rows
                .chunks(3)
                .zip(&y)
                .map(|(row, y)| y - row.iter().zip(&found.coefficients).map(|(a, c)| a * c).sum::<f64>())
                .collect();
            let size = found.coefficients.iter().map(|c| c.abs()).fold(1.0, f64::max);
            for column in 0..3 {
                let dot: f64 = rows.chunks(3).zip(&left).map(|(row, left)| row[column] * left).sum();
                prop_assert!(dot.abs() < 1e-8 * size, "{dot}");
            }
            prop_assert!((left.iter().map(|l| l * l).sum::<f64>() - found.squares).abs() < 1e-8 * size * size);
        }

        #[test]
        fn no_coefficient_is_negative_and_no_other_choice_is_better(
            rows in prop::collection::vec(0.1..10.0, 18), y in prop::collection::vec(0.1..10.0, 6),
            other in prop::collection::vec(0.0..5.0, 3)
        ) {
            let Some(found) = nonnegative(&rows, 3, &y) else { return Ok(()) };
            prop_assert!(found.coefficients.iter().all(|c| *c >= 0.0));
            let squares = |c: &[f64]| -> f64 {
                rows.chunks(3)
                    .zip(&y)
                    .map(|(row, y)| (y - row.iter().zip(c).map(|(a, c)| a * c).sum::<f64>()).powi(2))
                    .sum()
            };
            prop_assert!(found.squares <= squares(&other) + 1e-9);
        }
    }
}
