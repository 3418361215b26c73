//! Phases with their times at several numbers of processors.
use super::ScaleError;
use crate::phases::Kind;
use serde::Serialize;

/// A phase in all runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ScaledPhase {
    /// Its name.
    pub name: String,
    /// Its kind.
    pub kind: Kind,
    /// Its time in each run in seconds (or in the unit of a table), above 0.
    pub times: Vec<f64>,
    /// Occurrences in a run; 1 for phases of a profile.
    pub weight: u64,
}

/// The same program at several numbers of processors.
#[derive(Clone, Debug, PartialEq)]
pub struct Runs {
    /// The program.
    pub program: String,
    /// The numbers of processors, rising.
    pub processors: Vec<u32>,
    /// Where each run is from, for messages.
    pub names: Vec<String>,
    /// The phases; their times add up to the run's.
    pub phases: Vec<ScaledPhase>,
    /// Runs in which the phases were not seen: their times are shares of the run.
    pub shared_out: Vec<u32>,
    /// Sentences that the user should read.
    pub notes: Vec<String>,
    /// One unit of time in seconds.
    pub unit_s: f64,
}

impl Runs {
    /// Puts runs in order of their processors, and checks them.
    ///
    /// # Errors
    /// If there are fewer than two, two with the same number, none or too many processors, or a time that is not above 0.
    pub fn checked(mut self) -> Result<Runs, ScaleError> {
        let mut order: Vec<usize> = (0..self.processors.len()).collect();
        order.sort_by_key(|&at| self.processors[at]);
        self.processors = order.iter().map(|&at| self.processors[at]).collect();
        self.names = order.iter().map(|&at| self.names[at].clone()).collect();
        for phase in &mut self.phases {
            phase.times = order.iter().map(|&at| phase.times[at]).collect();
        }
        if let Some(0) = self.processors.first() {
            return Err(ScaleError::Processors("0".into()));
        }
        if let Some(at) = self.processors.windows(2).position(|pair| pair[0] == pair[1]) {
            let (first, second) = (self.names[at].clone(), self.names[at + 1].clone());
            return Err(ScaleError::Twice { processors: self.processors[at], first, second });
        }
        if self.processors.len() < 2 {
            return Err(ScaleError::TooFew(self.processors.len()));
        }
        for phase in &self.phases {
            if let Some(at) = phase.times.iter().position(|time| !(*time > 0.0 && time.is_finite())) {
                return Err(ScaleError::Time {
                    phase: phase.name.clone(),
                    processors: self.processors[at],
                    value: phase.times[at],
                    source_name: self.names[at].clone(),
                });
            }
            let rises = (1..phase.times.len()).find(|&at| phase.times[at] > 1.02 * phase.times[at - 1]);
            if let Some(at) = rises {
                let (from, to) = (self.processors[at - 1], self.processors[at]);
                let (before, after) = (phase.times[at - 1] * self.unit_s, phase.times[at] * self.unit_s);
                self.notes.push(format!(
                    "phase {} takes longer at {to} processors ({after:.3e} s) than at {from} ({before:.3e} s): no form \
                     with the seed's properties follows that, so that its prediction is uncertain",
                    phase.name
                ));
            }
        }
        Ok(self)
    }

    /// The run's time at the run of this number.
    pub fn total(&self, at: usize) -> f64 {
        self.phases.iter().map(|phase| phase.times[at]).sum()
    }
}
