//! Smoothing (seed 003, section 2.1): noise is taken out of a profile, the ends of its phases stay.
//!
//! * [`moving`]: least squares over a neighbourhood, and moving averages by polynomials (section 2.1.1)
//! * [`pieces`], [`segments`]: piecewise polynomials with the least of the largest errors (segment approximation), or the
//!   least sum of squares (section 2.1.3)
//! * here: rounding (section 2.1.2), and smoothers one after the other, as words on the command line
pub mod moving;
pub mod pieces;
pub mod segments;

pub use pieces::{Criterion, Piece, Piecewise};

use std::fmt;
use std::str::FromStr;

/// One way to smooth.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Smoother {
    /// Each point becomes the value of the line that fits its neighbourhood of so many points best.
    LeastSquares {
        /// Points of the neighbourhood, odd.
        window: usize,
    },
    /// Each point becomes the value of the polynomial that fits its neighbourhood best.
    Moving {
        /// Degree of the polynomial.
        degree: usize,
        /// Points of the neighbourhood, odd.
        window: usize,
    },
    /// Each point becomes the nearest multiple of `unit`.
    Rounding {
        /// The unit, in processors.
        unit: f64,
    },
    /// The whole becomes a piecewise polynomial.
    Pieces {
        /// What is made least.
        criterion: Criterion,
        /// Degree of the polynomials.
        degree: usize,
        /// How many pieces; chosen if none.
        count: Option<usize>,
    },
}

/// Smoothers, one after the other.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Smoothing(pub Vec<Smoother>);

/// The seed's: a cubic on 11 points.
pub const SEED: Smoother = Smoother::Moving { degree: 3, window: 11 };
/// The widest neighbourhood.
pub const WIDEST: usize = 100_001;
/// The highest degree: beyond it polynomials on a few points are noise themselves.
pub const HIGHEST: usize = 9;

impl Smoothing {
    /// Smooths.
    pub fn apply(&self, values: &[f64]) -> Vec<f64> {
        let mut values = values.to_vec();
        for smoother in &self.0 {
            values = smoother.apply(&values);
        }
        values
    }

    /// The widest neighbourhood that it looks at, in points: ends of phases are uncertain by that much.
    pub fn window(&self, points: usize) -> usize {
        let of = |smoother: &Smoother| match *smoother {
            Smoother::LeastSquares { window } | Smoother::Moving { window, .. } => window,
            Smoother::Rounding { .. } => 1,
            // With m pieces a piece has as many points as a neighbourhood of n / m (the seed: 1157 / 105 = 11).
            Smoother::Pieces { count, .. } => points / count.unwrap_or(points).max(1),
        };
        self.0.iter().map(of).max().unwrap_or(1)
    }
}

impl Smoother {
    /// Smooths.
    pub fn apply(&self, values: &[f64]) -> Vec<f64> {
        match *self {
            Smoother::LeastSquares { window } => moving::smooth(values, 1, window),
            Smoother::Moving { degree, window } => moving::smooth(values, degree, window),
            Smoother::Rounding { unit } => values.iter().map(|value| (value / unit).round() * unit).collect(),
            Smoother::Pieces { criterion, degree, count } => {
                pieces::fit(values, criterion, degree, count).values(values.len())
            }
        }
    }
}

impl fmt::Display for Smoothing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("none");
        }
        for (at, smoother) in self.0.iter().enumerate() {
            f.write_str(if at == 0 { "" } else { "+" })?;
            match smoother {
                Smoother::LeastSquares { window } => write!(f, "line:{window}")?,
                Smoother::Moving { degree, window } => write!(f, "moving:{degree}:{window}")?,
                Smoother::Rounding { unit } => write!(f, "round:{unit}")?,
                Smoother::Pieces { criterion, degree, count } => {
                    let name = if *criterion == Criterion::Largest { "segments" } else { "squares" };
                    match count {
                        Some(count) => write!(f, "{name}:{count}:{degree}")?,
                        None => write!(f, "{name}:auto:{degree}")?,
                    }
                }
            }
        }
        Ok(())
    }
}

/// What can be written, for messages.
const WAYS: &str = "line:WINDOW, moving:DEGREE:WINDOW, round:UNIT, segments:PIECES[:DEGREE], squares:PIECES[:DEGREE] \
                    (PIECES may be auto), joined by +, or none";

impl FromStr for Smoothing {
    type Err = String;

    fn from_str(text: &str) -> Result<Smoothing, String> {
        match text {
            "none" => Ok(Smoothing::default()),
            "seed" => Ok(Smoothing(vec![SEED])),
            _ => text.split('+').map(smoother).collect::<Result<_, _>>().map(Smoothing),
        }
    }
}

fn smoother(text: &str) -> Result<Smoother, String> {
    let mut words = text.split(':');
    let name = words.next().unwrap_or_default();
    let rest: Vec<&str> = words.collect();
    let whole = |word: &str| word.parse::<usize>().map_err(|_| format!("'{word}' in '{text}' is no whole number"));
    let window = |word: &str| match whole(word)? {
        window if window % 2 == 1 && window <= WIDEST => Ok(window),
        window => Err(format!("a neighbourhood of {window} points has no middle: give an odd number up to {WIDEST}")),
    };
    let degree = |word: &str| match whole(word)? {
        degree if degree <= HIGHEST => Ok(degree),
        degree => Err(format!("the degree {degree} is above {HIGHEST}")),
    };
    match (name, rest.as_slice()) {
        ("line", [points]) => Ok(Smoother::LeastSquares { window: window(points)? }),
        ("moving", [power, points]) => {
            let (degree, window) = (degree(power)?, window(points)?);
            if degree >= window {
                return Err(format!(
                    "a polynomial of degree {degree} goes through {window} points: nothing is smoothed"
                ));
            }
            Ok(Smoother::Moving { degree, window })
        }
        ("round", [unit]) => match unit.parse::<f64>() {
            Ok(unit) if unit > 0.0 && unit.is_finite() => Ok(Smoother::Rounding { unit }),
            _ => Err(format!("'{unit}' is no unit to round to: give a number above 0")),
        },
        ("segments" | "squares", [count, power @ ..]) if power.len() < 2 => {
            let criterion = if name == "segments" { Criterion::Largest } else { Criterion::Sum };
            let count = match *count {
                "auto" => None,
                count => match whole(count)? {
                    0 => return Err("a fit has at least one piece".into()),
                    count => Some(count),
                },
            };
            Ok(Smoother::Pieces { criterion, degree: power.first().map_or(Ok(0), |power| degree(power))?, count })
        }
        _ => Err(format!("'{text}' is none of {WAYS}")),
    }
}
