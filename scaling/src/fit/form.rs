//! What a form is, how one is fitted to points, and how well it foresees a point that it was not fitted to.
use super::FitError;
use super::linear::{least_squares, nonnegative};

/// A measured value at some place: numbers of processors, sizes of the problem.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// The place: one number for each variable of the form.
    pub at: Vec<f64>,
    /// What was measured there, above 0.
    pub value: f64,
}

impl Point {
    /// A value at a number of processors.
    pub fn new(p: f64, value: f64) -> Point {
        Point { at: vec![p], value }
    }
}

/// A formula that is linear in its parameters, at least after what was measured has been turned into something else:
/// k1 + k2/p, or 1/T = k p.
pub trait Form: Sync {
    /// Its name in messages and results.
    fn name(&self) -> String;

    /// How many parameters it has.
    fn parameters(&self) -> usize;

    /// Its terms at a place, one for each parameter.
    fn terms(&self, at: &[f64], terms: &mut [f64]);

    /// What is fitted in the place of a value: the value itself, or its reciprocal, or p times it.
    fn fitted(&self, _at: &[f64], value: f64) -> f64 {
        value
    }

    /// The value that belongs to what is fitted: the reverse of [`Form::fitted`].
    fn value(&self, _at: &[f64], fitted: f64) -> f64 {
        fitted
    }

    /// Whether parameters below 0 make no sense.
    fn nonnegative(&self) -> bool {
        false
    }
}

/// A form with the parameters that fit best.
#[derive(Clone, Debug, PartialEq)]
pub struct Fitted {
    /// The parameters.
    pub parameters: Vec<f64>,
    /// Root of the mean square of (fitted - measured) / measured.
    pub error: f64,
}

impl Fitted {
    /// The value of `form` at a place.
    pub fn at(&self, form: &dyn Form, at: &[f64]) -> f64 {
        let mut terms = [0.0; MOST];
        let terms = &mut terms[..self.parameters.len().min(MOST)];
        form.terms(at, terms);
        form.value(at, terms.iter().zip(&self.parameters).map(|(t, c)| t * c).sum())
    }
}

/// More parameters than any form has.
const MOST: usize = 16;

/// Fits a form to points by linear least squares.
///
/// # Errors
/// If there are fewer points than parameters, a value is not above 0, or terms depend on one another at these points.
pub fn fit(form: &dyn Form, points: &[Point]) -> Result<Fitted, FitError> {
    let columns = form.parameters();
    if points.len() < columns || columns > MOST {
        return Err(FitError::TooFew { form: form.name(), parameters: columns, points: points.len() });
    }
    let mut rows = vec![0.0; points.len() * columns];
    let mut y = Vec::with_capacity(points.len());
    for (point, row) in points.iter().zip(rows.chunks_mut(columns)) {
        if !(point.value > 0.0 && point.value.is_finite()) {
            return Err(FitError::Value { value: point.value });
        }
        form.terms(&point.at, row);
        y.push(form.fitted(&point.at, point.value));
    }
    let solve = if form.nonnegative() { nonnegative } else { least_squares };
    let solution = solve(&rows, columns, &y).ok_or_else(|| FitError::Dependent { form: form.name() })?;
    let mut fitted = Fitted { parameters: solution.coefficients, error: 0.0 };
    let off = |point: &Point| (fitted.at(form, &point.at) / point.value - 1.0).powi(2);
    fitted.error = (points.iter().map(off).sum::<f64>() / points.len() as f64).sqrt();
    Ok(fitted)
}

/// The leave-one-out error of a form: each point is foreseen from the others; the root of the mean square of (foreseen -
/// measured) / measured. Infinite where a point cannot be foreseen, as there are too few others.
pub fn left_out(form: &dyn Form, points: &[Point]) -> f64 {
    let mut sum = 0.0;
    let mut others = Vec::with_capacity(points.len());
    for (at, point) in points.iter().enumerate() {
        others.clear();
        others.extend(points.iter().enumerate().filter(|(i, _)| *i != at).map(|(_, p)| p.clone()));
        let Ok(fitted) = fit(form, &others) else { return f64::INFINITY };
        let off = fitted.at(form, &point.at) / point.value - 1.0;
        if !off.is_finite() {
            return f64::INFINITY;
        }
        sum += off * off;
    }
    if points.is_empty() { f64::INFINITY } else { (sum / points.len() as f64).sqrt() }
}
