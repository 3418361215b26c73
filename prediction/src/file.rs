//! Predictions as files: the JSON that `phasecast predict --json` prints, read back with its times, shares and counts
//! checked, as a file may come from anywhere.
use crate::model::{Prediction, VERSION};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The longest file that is read as a prediction.
const MAX_BYTES: u64 = 64 << 20;
/// The most phases or pieces that a prediction may have.
const MAX_ITEMS: usize = 1 << 20;

/// Why a file cannot be read as a prediction.
#[derive(Debug, thiserror::Error)]
pub enum PredictionError {
    /// The operating system refused.
    #[error("cannot read {path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's word.
        source: std::io::Error,
    },
    /// Not a prediction.
    #[error("{path} is not a prediction: {what}. Save one with `phasecast predict -o FILE` or `--json > FILE`.")]
    Foreign {
        /// The file.
        path: PathBuf,
        /// What is there.
        what: String,
    },
    /// Written by another version.
    #[error(
        "{path} has version {found} of the prediction format, this phasecast reads version {VERSION}. Use the phasecast that wrote it, or predict anew."
    )]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u64,
    },
    /// A number that no prediction can have.
    #[error("{path} is damaged: {what}. Predict anew, or copy it again from where it was written.")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
}

impl PredictionError {
    /// Whether the input is to blame (exit code 3) rather than the work (exit code 1).
    pub fn is_input(&self) -> bool {
        match self {
            PredictionError::Io { source, .. } => {
                matches!(source.kind(), ErrorKind::NotFound | ErrorKind::IsADirectory | ErrorKind::NotADirectory)
            }
            _ => true,
        }
    }
}

impl Prediction {
    /// Reads a prediction from a file.
    ///
    /// # Errors
    /// If the file cannot be read, is no prediction, or holds numbers that no prediction can have.
    pub fn read(path: &Path) -> Result<Prediction, PredictionError> {
        let io = |source| PredictionError::Io { path: path.to_owned(), source };
        let foreign = |what: String| PredictionError::Foreign { path: path.to_owned(), what };
        let metadata = fs::metadata(path).map_err(io)?;
        if metadata.is_dir() {
            return Err(foreign("it is a folder".into()));
        }
        if metadata.len() > MAX_BYTES {
            return Err(foreign(format!(
                "it has {} bytes, and no prediction is longer than {MAX_BYTES}",
                metadata.len()
            )));
        }
        Prediction::parse(path, &fs::read(path).map_err(io)?)
    }

    /// Reads a prediction from the bytes of a file; `path` is for messages.
    ///
    /// # Errors
    /// As [`Prediction::read`].
    pub fn parse(path: &Path, bytes: &[u8]) -> Result<Prediction, PredictionError> {
        let foreign = |what: String| PredictionError::Foreign { path: path.to_owned(), what };
        if bytes.is_empty() {
            return Err(foreign("it is empty".into()));
        }
        let value: serde_json::Value =
            serde_json::from_slice(bytes).map_err(|error| foreign(format!("it is not JSON ({error})")))?;
        if value.get("pet_s").is_none() {
            return Err(foreign("it has no `pet_s`".into()));
        }
        let version = value.get("version").and_then(serde_json::Value::as_u64);
        match version {
            Some(v) if v == u64::from(VERSION) => {}
            Some(found) => return Err(PredictionError::Version { path: path.to_owned(), found }),
            None => return Err(foreign("it has no `version`".into())),
        }
        let prediction: Prediction = serde_json::from_value(value).map_err(|error| foreign(error.to_string()))?;
        prediction.check().map_err(|what| PredictionError::Damaged { path: path.to_owned(), what })?;
        Ok(prediction)
    }

    /// The prediction as JSON, one object over several lines, with a line feed at its end.
    ///
    /// # Panics
    /// Never: the type has no map with a key that is not text.
    pub fn to_json(&self) -> String {
        let mut json = serde_json::to_string_pretty(self).expect("a prediction can be written as JSON");
        json.push('\n');
        json
    }

    /// Checks that all numbers are such as a prediction can have.
    fn check(&self) -> Result<(), String> {
        let times = [
            ("pet_s", self.pet_s),
            ("interval_s[0]", self.interval_s[0]),
            ("interval_s[1]", self.interval_s[1]),
            ("run_interval_s[0]", self.run_interval_s[0]),
            ("run_interval_s[1]", self.run_interval_s[1]),
            ("set_s", self.set_s),
            ("startup_s", self.startup_s),
            ("residual_s", self.residual_s),
            ("restart_s", self.restart_s),
            ("warmup_s", self.warmup_s),
            ("measured_s", self.measured_s),
            ("uncertainty.sampling_s", self.uncertainty.sampling_s),
            ("uncertainty.unmeasured_s", self.uncertainty.unmeasured_s),
            ("uncertainty.machine_s", self.uncertainty.machine_s),
            ("base_run_s", self.base_run_s),
            ("naive_s", self.naive_s.unwrap_or(0.0)),
            ("aet_s", self.aet_s.unwrap_or(0.0)),
        ];
        for (name, seconds) in times {
            time(name, seconds)?;
        }
        let [low, high] = self.interval_s;
        if !(low..=high).contains(&self.pet_s) {
            return Err(format!("`pet_s` is {}, not within `interval_s`, {low} to {high}", self.pet_s));
        }
        let errors = self.phases.iter().filter_map(|phase| phase.pete).chain(self.pete);
        if let Some(pete) = errors.into_iter().find(|pete| !(*pete >= 0.0 && pete.is_finite())) {
            return Err(format!("`pete` is {pete}, which is no error"));
        }
        for (name, share) in [("confidence", self.confidence), ("coverage", self.coverage)] {
            if !(0.0..=1.000_001).contains(&share) {
                return Err(format!("`{name}` is {share}, not within 0 and 1"));
            }
        }
        if self.ranks == 0 {
            return Err("it is for no ranks".into());
        }
        if self.phases.len() > MAX_ITEMS || self.timeline.len() > MAX_ITEMS {
            return Err("it has more than a million phases or pieces".into());
        }
        for phase in &self.phases {
            for seconds in [phase.base_s, phase.target_s.unwrap_or(0.0), phase.total_s] {
                time("time of a phase", seconds)?;
            }
        }
        for piece in &self.timeline {
            time("start of a piece", piece.start_s)?;
            time("end of a piece", piece.end_s)?;
            if piece.rank >= self.ranks {
                return Err(format!("a piece of the timeline is of rank {} of {}", piece.rank, self.ranks));
            }
        }
        Ok(())
    }
}

/// No run takes longer than this: thirty thousand years.
const MAX_SECONDS: f64 = 1e12;

fn time(name: &str, seconds: f64) -> Result<(), String> {
    if (0.0..=MAX_SECONDS).contains(&seconds) { Ok(()) } else { Err(format!("`{name}` is {seconds} seconds")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn good() -> Prediction {
        Prediction { ranks: 2, pet_s: 2.0, interval_s: [1.0, 3.0], ..Prediction::blank("live") }
    }

    #[test]
    fn what_is_written_is_read() {
        let read = Prediction::parse(Path::new("p.json"), good().to_json().as_bytes()).expect("a prediction");
        assert_eq!(read, good());
    }

    #[test]
    fn impossible_numbers_are_named() {
        type Change = fn(&mut Prediction);
        let changes: [(Change, &str); 5] = [
            (|p| p.pet_s = 4.0, "`pet_s` is 4, not within"),
            (|p| p.residual_s = -1.0, "`residual_s`"),
            (|p| p.uncertainty.machine_s = 1e300, "`uncertainty.machine_s`"),
            (|p| p.naive_s = Some(-1.0), "`naive_s`"),
            (|p| p.pete = Some(-0.5), "`pete`"),
        ];
        for (change, told) in changes {
            let mut changed = good();
            change(&mut changed);
            let error = Prediction::parse(Path::new("p.json"), changed.to_json().as_bytes()).expect_err(told);
            assert!(matches!(&error, PredictionError::Damaged { what, .. } if what.contains(told)), "{error}");
        }
    }

    #[test]
    fn a_path_through_a_file_is_a_missing_input() {
        let error = Prediction::read(Path::new("/proc/version/p.json")).expect_err("it is no folder");
        assert!(matches!(error, PredictionError::Io { .. }) && error.is_input(), "{error}");
    }
}
