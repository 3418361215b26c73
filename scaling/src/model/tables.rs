//! What PerPreT prints (seed 001, section 4): communication, computation, total time and speedup over the number of
//! processors (Figure 7) or the size of the problem (Figure 10), and what follows from them: where efficiency falls below
//! a threshold, where communication overtakes computation, and how many processors are best.
use super::application::{Application, Strategy, Unit};
use super::error::ModelError;
use super::system::System;
use serde::Serialize;

/// The thresholds of efficiency that are looked for.
pub const THRESHOLDS: [f64; 4] = [0.9, 0.75, 0.5, 0.25];

/// What is computed with.
#[derive(Clone, Copy, Debug)]
pub struct Setting<'a> {
    /// The application.
    pub application: &'a Application,
    /// The strategy.
    pub strategy: &'a Strategy,
    /// The system.
    pub system: &'a System,
    /// A sustained rate in millions of operations per second in the place of the system's.
    pub rate: Option<f64>,
    /// How many times as long as where they were measured computation in seconds takes on the system.
    pub ratio: f64,
}

/// One line of a table.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Row {
    /// Processors.
    pub processors: u64,
    /// Size of the problem.
    pub size: f64,
    /// Time in communication, in seconds.
    pub comm_s: f64,
    /// Time in computation, in seconds.
    pub comp_s: f64,
    /// Both.
    pub total_s: f64,
    /// Time on one processor.
    pub single_s: f64,
    /// Time on one processor over the total.
    pub speedup: f64,
    /// Speedup over processors.
    pub efficiency: f64,
}

/// Where efficiency falls below a threshold.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Threshold {
    /// The threshold, 0 to 1.
    pub efficiency: f64,
    /// The most processors up to which it is reached.
    pub processors: u64,
}

/// What follows from a table over processors.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Findings {
    /// Thresholds that are crossed within the table.
    pub thresholds: Vec<Threshold>,
    /// The fewest processors with which communication takes longer than computation, if any of the table do.
    pub crossover: Option<u64>,
    /// The number of processors with the shortest total.
    pub best: u64,
    /// Its total, in seconds.
    pub best_s: f64,
}

impl Setting<'_> {
    fn computing_s(&self, size: f64, processors: u64) -> Result<f64, ModelError> {
        let computation = self.application.computation(self.strategy, size, processors)?;
        if self.application.unit == Unit::Seconds {
            return Ok(computation * self.ratio);
        }
        let rate = self.rate.or_else(|| self.system.rate(&self.application.rate, size)).ok_or_else(|| {
            ModelError::Asked(format!(
                "the system {} has no sustained rate for {} and none by default. Give one with --rate, or add it to its [rates]",
                self.system.system, self.application.rate
            ))
        })?;
        Ok(computation / (rate * 1e6))
    }

    /// The line of one point.
    ///
    /// # Errors
    /// If a formula has no value there, or the system no rate.
    pub fn row(&self, size: f64, processors: u64) -> Result<Row, ModelError> {
        let at = |processors: u64| -> Result<(f64, f64), ModelError> {
            let comm_s = self.application.communication(self.strategy, self.system, size, processors)?;
            Ok((comm_s, self.computing_s(size, processors)?))
        };
        let (comm_s, comp_s) = at(processors)?;
        let single = if processors == 1 { (comm_s, comp_s) } else { at(1)? };
        let (total_s, single_s) = (comm_s + comp_s, single.0 + single.1);
        let speedup = if total_s > 0.0 { single_s / total_s } else { 1.0 };
        let efficiency = speedup / processors as f64;
        Ok(Row { processors, size, comm_s, comp_s, total_s, single_s, speedup, efficiency })
    }

    /// The lines of some points.
    ///
    /// # Errors
    /// As [`Setting::row`].
    pub fn table(&self, points: impl IntoIterator<Item = (f64, u64)>) -> Result<Vec<Row>, ModelError> {
        points.into_iter().map(|(size, processors)| self.row(size, processors)).collect()
    }

    /// What follows from a table over rising numbers of processors; between its lines every number is looked at by
    /// halving, which finds the place if there is one.
    ///
    /// # Errors
    /// As [`Setting::row`].
    pub fn findings(&self, rows: &[Row]) -> Result<Findings, ModelError> {
        let Some(best) = rows.iter().min_by(|a, b| a.total_s.total_cmp(&b.total_s)) else {
            return Ok(Findings::default());
        };
        let mut thresholds = Vec::new();
        // What is crossed before the table begins is not known.
        for efficiency in THRESHOLDS.into_iter().filter(|&efficiency| rows[0].efficiency >= efficiency) {
            if let Some(first) = self.first(rows, &|row| row.efficiency < efficiency)? {
                thresholds.push(Threshold { efficiency, processors: first - 1 });
            }
        }
        let crossover = self.first(rows, &|row| row.comm_s > row.comp_s)?;
        Ok(Findings { thresholds, crossover, best: best.processors, best_s: best.total_s })
    }

    /// The fewest processors with which something holds: between two lines of which it holds for the second alone, or the
    /// first line's.
    fn first(&self, rows: &[Row], holds: &dyn Fn(&Row) -> bool) -> Result<Option<u64>, ModelError> {
        let Some(at) = rows.iter().position(holds) else { return Ok(None) };
        let Some(before) = at.checked_sub(1) else { return Ok(Some(rows[0].processors)) };
        let (mut without, mut with) = (rows[before].processors, rows[at].processors);
        while with - without > 1 {
            let middle = without + (with - without) / 2;
            if holds(&self.row(rows[at].size, middle)?) {
                with = middle;
            } else {
                without = middle;
            }
        }
        Ok(Some(with))
    }
}
