//! Forms of execution signatures. E(p) is the rate at p processors, the reciprocal of the time T(p).
//!
//! The seed asks of a form that it goes through (0, 0) and is concave increasing. [`Signature::Hyperbola`],
//! [`Signature::Line`] and [`Signature::Root`] are, with parameters that are not negative. [`Signature::Tree`] and
//! [`Signature::Sum`] are only up to the number of processors beyond which more of them make the program slower, as trees
//! of messages do: they stand outside of the seed's properties, as real programs have such phases.
use crate::fit::Form;
use serde::Serialize;

/// A form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Signature {
    /// E = p / (k1 p + k2), fitted by least squares on p T = k1 p + k2 (the seed's equation 1).
    Hyperbola,
    /// E = k p, fitted by least squares on E (the seed's for phases of full utilisation).
    Line,
    /// E = p / (k1 p^(1/2) + k2): messages at the edge of a share in two dimensions.
    Root,
    /// E = k: nothing is gained. The seed's sequential phases; k1 of the hyperbola alone.
    Constant,
    /// T = k1 log2 p + k2 / p.
    Tree,
    /// T = k1 + k2 / p + k3 log2 p: both of them.
    Sum,
}

impl Signature {
    /// All of them, the simplest first.
    pub const ALL: [Signature; 6] =
        [Signature::Line, Signature::Constant, Signature::Hyperbola, Signature::Root, Signature::Tree, Signature::Sum];

    /// Its formula.
    pub fn formula(self) -> &'static str {
        match self {
            Signature::Hyperbola => "p/(k1 p + k2)",
            Signature::Line => "k p",
            Signature::Root => "p/(k1 sqrt(p) + k2)",
            Signature::Constant => "k",
            Signature::Tree => "p/(k1 p log2(p) + k2)",
            Signature::Sum => "p/(k1 p + k2 + k3 p log2(p))",
        }
    }

    /// The form, for fits. Equation (1) is fitted freely if `seed`: the seed does not bound its parameters.
    pub fn form(self, seed: bool) -> Box<dyn Form> {
        Box::new(Fit { signature: self, seed })
    }
}

struct Fit {
    signature: Signature,
    seed: bool,
}

impl Form for Fit {
    fn name(&self) -> String {
        format!("E(p) = {}", self.signature.formula())
    }

    fn parameters(&self) -> usize {
        match self.signature {
            Signature::Line | Signature::Constant => 1,
            Signature::Hyperbola | Signature::Root | Signature::Tree => 2,
            Signature::Sum => 3,
        }
    }

    fn terms(&self, at: &[f64], terms: &mut [f64]) {
        let p = at[0];
        match self.signature {
            Signature::Hyperbola => terms.copy_from_slice(&[p, 1.0]),
            Signature::Line => terms[0] = p,
            Signature::Constant => terms[0] = 1.0,
            Signature::Root => terms.copy_from_slice(&[p.sqrt(), 1.0]),
            Signature::Tree => terms.copy_from_slice(&[p * p.log2(), 1.0]),
            Signature::Sum => terms.copy_from_slice(&[p, 1.0, p * p.log2()]),
        }
    }

    /// p T, or for forms of one parameter the rate.
    fn fitted(&self, at: &[f64], time: f64) -> f64 {
        match self.signature {
            Signature::Line | Signature::Constant => 1.0 / time,
            _ => at[0] * time,
        }
    }

    fn value(&self, at: &[f64], fitted: f64) -> f64 {
        match self.signature {
            Signature::Line | Signature::Constant => 1.0 / fitted,
            _ => fitted / at[0],
        }
    }

    fn nonnegative(&self) -> bool {
        !self.seed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fit::{Point, fit};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn signatures_are_concave_and_rise(times in prop::collection::vec(0.1..100.0, 3..6)) {
            let points: Vec<Point> =
                times.iter().zip(1u32..).map(|(t, k)| Point::new(f64::from(1u32 << k), *t)).collect();
            for signature in [Signature::Hyperbola, Signature::Line, Signature::Root, Signature::Constant] {
                let form = signature.form(false);
                let Ok(fitted) = fit(form.as_ref(), &points) else { continue };
                let rate = |p: f64| 1.0 / fitted.at(form.as_ref(), &[p]);
                for p in 2..60 {
                    let p = f64::from(p);
                    let (a, b, c) = (rate(p - 1.0), rate(p), rate(p + 1.0));
                    prop_assert!(c >= a - 1e-9 * a && b + 1e-9 * b >= 0.5 * (a + c), "{signature:?} {a} {b} {c}");
                }
            }
        }
    }
}
