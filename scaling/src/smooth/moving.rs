//! Moving averages: a polynomial is fitted to a neighbourhood of 2k + 1 points and evaluated at one of them. As the
//! points lie evenly, that is a weighted average whose weights follow from Gram's polynomials (Kendall, Time-Series; for
//! points near an end, Gorry, Analytical Chemistry 62, 1990), without a system of equations to be solved.

/// The weights with which a polynomial of `degree`, fitted to `window` points, is evaluated at the point `at`, counted
/// from the middle. They add up to 1.
pub fn weights(degree: usize, window: usize, at: i64) -> Vec<f64> {
    let half = (window / 2) as i64;
    let degree = degree.min(window.saturating_sub(1));
    // All polynomials at once by their recursion: for each point the value, then the sum over degrees.
    let ours = gram(half, degree, at);
    let lengths: Vec<f64> = (0..=degree).map(|k| length(half, k)).collect();
    (-half..=half)
        .map(|point| gram(half, degree, point).iter().zip(&ours).zip(&lengths).map(|((a, b), l)| a * b * l).sum())
        .collect()
}

/// Gram's polynomials of degree 0 to `degree` on 2 `half` + 1 points, at `point`.
fn gram(half: i64, degree: usize, point: i64) -> Vec<f64> {
    let (m, x) = (half as f64, point as f64);
    let mut values = Vec::with_capacity(degree + 1);
    values.push(1.0);
    for k in 1..=degree {
        let j = k as f64;
        let under = j * (2.0 * m - j + 1.0);
        let older = if k > 1 { values[k - 2] } else { 0.0 };
        let value = 2.0 * (2.0 * j - 1.0) / under * x * values[k - 1] - (j - 1.0) * (2.0 * m + j) / under * older;
        values.push(value);
    }
    values
}

/// One over the sum of squares of the polynomial of degree `k`: (2k+1) (2m)^(k) / (2m+k+1)^(k+1), falling factorials.
fn length(half: i64, k: usize) -> f64 {
    let m = 2.0 * half as f64;
    let above: f64 = (0..k).map(|i| m - i as f64).product();
    let below: f64 = (0..=k).map(|i| m + k as f64 + 1.0 - i as f64).product();
    (2 * k + 1) as f64 * above / below
}

/// Smooths by a polynomial of `degree` on `window` points (an even window counts as one more). Near the ends, the first or
/// last neighbourhood is evaluated off its middle; a series shorter than the window is one neighbourhood.
pub fn smooth(values: &[f64], degree: usize, window: usize) -> Vec<f64> {
    let count = values.len();
    let half = (window / 2).min(count.saturating_sub(1) / 2);
    let window = 2 * half + 1;
    let degree = degree.min(window - 1);
    let middle = weights(degree, window, 0);
    let average = |weights: &[f64], from: usize| -> f64 {
        weights.iter().zip(&values[from..from + window]).map(|(w, v)| w * v).sum()
    };
    (0..count)
        .map(|at| match () {
            () if at < half => average(&weights(degree, window, at as i64 - half as i64), 0),
            () if at + half >= count => {
                let from = count - window;
                average(&weights(degree, window, at as i64 - (from + half) as i64), from)
            }
            () => average(&middle, at - half),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_seeds_cubic_on_11_points_has_its_weights() {
        let seed = [-36.0, 9.0, 44.0, 69.0, 84.0, 89.0, 84.0, 69.0, 44.0, 9.0, -36.0];
        let ours: Vec<f64> = weights(3, 11, 0).iter().map(|w| w * 429.0).collect();
        for (ours, seed) in ours.iter().zip(seed) {
            assert!((ours - seed).abs() < 1e-11, "{ours} {seed}");
            assert_eq!(ours.round(), seed);
        }
        // A line on 11 points is their plain average (section 2.1.1).
        assert!(weights(1, 11, 0).iter().all(|w| (w * 11.0 - 1.0).abs() < 1e-14));
    }

    proptest! {
        #[test]
        fn a_polynomial_of_the_fitted_degree_stays_as_it_is(
            degree in 0usize..6, half in 3usize..12, count in 1usize..80, c in prop::collection::vec(-2.0..2.0, 6)
        ) {
            // A series shorter than the window carries a polynomial of its own length only.
            prop_assume!(count > 2 * degree + 1);
            let polynomial = |x: f64| (0..=degree).rev().fold(0.0, |sum, k| sum * x + c[k]);
            let values: Vec<f64> = (0..count).map(|i| polynomial(i as f64 / 20.0 - 1.0)).collect();
            let smooth = smooth(&values, degree, 2 * half + 1);
            for (a, b) in values.iter().zip(&smooth) {
                prop_assert!((a - b).abs() < 1e-6, "{a} {b}");
            }
        }

        #[test]
        fn weights_add_up_to_one(degree in 0usize..8, half in 4usize..40, at in -4i64..=4) {
            let sum: f64 = weights(degree, 2 * half + 1, at).iter().sum();
            prop_assert!((sum - 1.0).abs() < 1e-9, "{sum}");
        }
    }
}
