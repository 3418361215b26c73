//! Fitting of forms to a few measured points: least squares, choice by cross-validation, intervals by bootstrap. Generic
//! over the form, so that execution signatures (seed 003) and the formulae of analytic models (seed 001) share it.
//!
//! * [`linear`]: linear least squares by Householder reflections, and with coefficients that must not be negative
//! * [`form`]: what a form is, how one is fitted, and its leave-one-out error
//! * [`choose`]: the form with the least leave-one-out error
//! * [`bootstrap`]: what else the points could have been, and so what else the answer could be
pub mod bootstrap;
pub mod choose;
pub mod form;
pub mod linear;

pub use bootstrap::{Draws, Random};
pub use choose::{Choice, choose};
pub use form::{Fitted, Form, Point, fit, left_out};
pub use linear::{Solution, least_squares, nonnegative};

/// Why nothing can be fitted.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum FitError {
    /// Fewer points than parameters.
    #[error(
        "the form {form} has {parameters} parameters and there are {points} different points. Add runs, or choose a form with fewer parameters."
    )]
    TooFew {
        /// The form.
        form: String,
        /// Its parameters.
        parameters: usize,
        /// The points.
        points: usize,
    },
    /// The columns of the form depend on one another at these points.
    #[error("the terms of the form {form} cannot be told apart at these points. Add a point where they differ.")]
    Dependent {
        /// The form.
        form: String,
    },
    /// A number that is not finite, or a time that is not above 0.
    #[error("the value {value} cannot be fitted: a time must be a number above 0. Leave that point out.")]
    Value {
        /// The value.
        value: f64,
    },
    /// No form can be fitted.
    #[error("no form can be fitted to {points} points. Add runs.")]
    Nothing {
        /// The points.
        points: usize,
    },
}
