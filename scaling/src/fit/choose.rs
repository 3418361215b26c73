//! Choice between forms by their leave-one-out errors.
use super::FitError;
use super::form::{Fitted, Form, Point, fit, left_out};

/// A form with more parameters must have a leave-one-out error smaller than this share of a simpler one's.
const WORTH: f64 = 0.9;

/// Errors below this are rounding.
const EXACT: f64 = 1e-9;

/// The form that was chosen.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// Its place in the list of forms.
    pub form: usize,
    /// Its parameters, from all points.
    pub fitted: Fitted,
    /// Its leave-one-out error as a share; infinite where points are too few to leave one out.
    pub left_out: f64,
}

/// The form of `forms` that foresees left-out points best; of those about as good, the one with the fewest parameters,
/// and of those the first. With too few points to leave one out, the first form that can be fitted.
///
/// # Errors
/// If none of them can be fitted, with the reason of the first.
pub fn choose(forms: &[&dyn Form], points: &[Point]) -> Result<Choice, FitError> {
    let mut best: Option<Choice> = None;
    let mut refused = None;
    let mut order: Vec<usize> = (0..forms.len()).collect();
    order.sort_by_key(|&at| forms[at].parameters());
    for at in order {
        let form = forms[at];
        let fitted = match fit(form, points) {
            Ok(fitted) => fitted,
            Err(error) => {
                refused.get_or_insert(error);
                continue;
            }
        };
        let left_out = left_out(form, points).max(EXACT);
        let better = best.as_ref().is_none_or(|best| {
            let simple = forms[best.form].parameters();
            let worth = if form.parameters() > simple { WORTH } else { 1.0 };
            left_out < worth * best.left_out
                || (best.left_out.is_infinite() && at < best.form && left_out.is_infinite())
        });
        if better {
            best = Some(Choice { form: at, fitted, left_out });
        }
    }
    best.ok_or_else(|| refused.unwrap_or(FitError::Nothing { points: points.len() }))
}
