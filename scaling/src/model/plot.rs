//! The seed's plots as SVG (section 4, Figures 8, 9 and 11): times of communication, computation and both over
//! processors or sizes, and the speedup, with both axes logarithmic.
use super::error::ModelError;
use super::tables::Row;
use crate::plot::{Axis, COLOURS, GREY, Plot, stacked};

/// Times below this share of the longest are not drawn: they would flatten all others.
const LEAST: f64 = 1e-6;

/// A named table.
pub struct Curve<'a> {
    /// What it is of.
    pub name: String,
    /// Its lines.
    pub rows: &'a [Row],
}

/// The abscissa of a plot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// Processors.
    Processors,
    /// Sizes of the problem.
    Sizes,
}

impl Over {
    fn of(self, row: &Row) -> f64 {
        if self == Over::Processors { row.processors as f64 } else { row.size }
    }

    fn word(self) -> &'static str {
        if self == Over::Processors { "processors" } else { "problem size" }
    }
}

/// The plot of some tables as SVG.
///
/// # Errors
/// If there is nothing to draw.
pub fn svg(title: &str, over: Over, curves: &[Curve]) -> Result<String, ModelError> {
    let rows = || curves.iter().flat_map(|curve| curve.rows);
    let most = rows().map(|row| row.total_s).fold(0.0, f64::max);
    let seconds = rows().flat_map(|row| [row.comm_s, row.comp_s, row.total_s]).filter(|s| *s > most * LEAST);
    let processors = rows().map(|row| row.processors as f64);
    let ideal = processors.filter(|_| over == Over::Processors).fold(1.0, f64::max);
    let x = axis(over.word(), rows().map(|row| over.of(row)))?;
    let mut times = Plot::new(title, x.clone(), axis("time [s]", seconds)?);
    let mut speedup = Plot::new("", x, axis("speedup", rows().map(|row| row.speedup).chain([1.0, ideal]))?);
    if over == Over::Processors {
        let ends = rows().map(|row| row.processors as f64).fold((f64::MAX, 0.0), |(l, h), p| (p.min(l), p.max(h)));
        speedup.line("ideal", GREY, true, [ends.0, ends.1].map(|p| (p, p)).into_iter());
    }
    for (at, curve) in curves.iter().enumerate() {
        let kinds = ["total", "computation", "communication (dashed)"];
        let of = |row: &Row| [row.total_s, row.comp_s, row.comm_s];
        for (kind, what) in kinds.into_iter().enumerate() {
            let one = curves.len() == 1;
            let name = if one { what.to_owned() } else { format!("{}: {what}", curve.name) };
            let colour = COLOURS[if one { kind } else { at } % COLOURS.len()];
            let drawn = curve.rows.iter().map(|row| (over.of(row), of(row)[kind])).filter(|(_, s)| *s > most * LEAST);
            times.line(&name, colour, kind == 2, drawn);
        }
        let colour = COLOURS[at % COLOURS.len()];
        speedup.line(&curve.name, colour, false, curve.rows.iter().map(|row| (over.of(row), row.speedup)));
    }
    Ok(stacked(&[times, speedup]))
}

/// An axis over what is above 0, a little wider.
fn axis(label: &str, values: impl Iterator<Item = f64>) -> Result<Axis, ModelError> {
    let drawn = values.filter(|value| *value > 0.0 && value.is_finite());
    let (low, high) = drawn.fold((f64::INFINITY, 0.0f64), |(low, high), value| (low.min(value), high.max(value)));
    if low > high {
        return Err(ModelError::Plot("there is nothing above 0".into()));
    }
    Ok(Axis::logarithmic(label, low / 1.1, high * 1.1))
}
