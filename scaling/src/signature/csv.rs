//! Times of phases from a table, as the seed's Table 1 has them:
//!
//! ```text
//! phase,kind,8,16,32,64
//! P1,other,447,270,185,149
//! P2,full,217,102,48,26
//! ```
//!
//! The first line names the columns: the phase, its kind (`full`, `sequential`, `other`; this column may be left out), and
//! the numbers of processors. Lines that begin with # are comments.
use super::ScaleError;
use super::runs::{Runs, ScaledPhase};
use crate::phases::Kind;
use std::path::Path;

/// The most columns and lines.
const MOST: usize = 100_000;

/// A table of times; the columns of some numbers of processors may be set aside as true times.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// The numbers of processors, as they stand.
    pub processors: Vec<u32>,
    /// The phases, with one time for each number.
    pub phases: Vec<ScaledPhase>,
}

/// Reads a table.
///
/// # Errors
/// If a line is not as it should be.
pub fn parse(path: &Path, text: &str) -> Result<Table, ScaleError> {
    let wrong = |line: usize, what: String| ScaleError::Table { path: path.to_owned(), line: line as u64, what };
    let mut lines = text
        .lines()
        .zip(1..)
        .map(|(line, number)| (line.trim(), number))
        .filter(|(line, _)| !line.is_empty() && !line.starts_with('#'));
    let (head, number) = lines.next().ok_or_else(|| wrong(1, "it is empty".into()))?;
    let mut columns = head.split(',').map(str::trim);
    if columns.next() != Some("phase") {
        return Err(wrong(number, "its first line should be like phase,kind,8,16,32".into()));
    }
    let columns: Vec<&str> = columns.collect();
    let with_kind = columns.first() == Some(&"kind");
    let counts = &columns[usize::from(with_kind)..];
    if counts.len() > MOST {
        return Err(wrong(number, "it has too many columns".into()));
    }
    let mut processors = Vec::new();
    for count in counts {
        match count.parse::<u32>() {
            Ok(count) if count > 0 => processors.push(count),
            _ => return Err(wrong(number, format!("'{count}' is no number of processors"))),
        }
    }
    let mut phases = Vec::new();
    for (line, number) in lines {
        let cells: Vec<&str> = line.split(',').map(str::trim).collect();
        let expected = processors.len() + 1 + usize::from(with_kind);
        if cells.len() != expected {
            return Err(wrong(number, format!("it has {} cells, and the first line has {expected}", cells.len())));
        }
        let kind = match cells.get(1).filter(|_| with_kind).copied() {
            None | Some("other") => Kind::Other,
            Some("full") => Kind::Full,
            Some("sequential") => Kind::Sequential,
            Some(kind) => return Err(wrong(number, format!("'{kind}' is none of full, sequential and other"))),
        };
        let times = cells[1 + usize::from(with_kind)..].iter().map(|cell| match cell.parse::<f64>() {
            Ok(time) if time > 0.0 && time.is_finite() => Ok(time),
            _ => Err(wrong(number, format!("'{cell}' is no time above 0"))),
        });
        let times = times.collect::<Result<Vec<f64>, _>>()?;
        if phases.len() >= MOST {
            return Err(wrong(number, "it has too many phases".into()));
        }
        phases.push(ScaledPhase { name: cells[0].to_owned(), kind, times, weight: 1 });
    }
    if phases.is_empty() {
        return Err(wrong(number, "it has no phases".into()));
    }
    Ok(Table { processors, phases })
}

impl Table {
    /// The runs of the table but those with a number of processors that is in `to`, which are true times: these beside.
    ///
    /// # Errors
    /// As [`Runs::checked`].
    pub fn runs(&self, path: &Path, to: &[u32], unit_s: f64) -> Result<(Runs, Table), ScaleError> {
        let aside = |processors: u32| to.contains(&processors);
        let pick = |wanted: bool| -> Table {
            let at: Vec<usize> =
                (0..self.processors.len()).filter(|&at| aside(self.processors[at]) == wanted).collect();
            let phases = self
                .phases
                .iter()
                .map(|phase| ScaledPhase { times: at.iter().map(|&at| phase.times[at]).collect(), ..phase.clone() });
            Table { processors: at.iter().map(|&at| self.processors[at]).collect(), phases: phases.collect() }
        };
        let Table { processors, phases } = pick(false);
        let name = path.file_stem().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        let names = processors.iter().map(|p| format!("the column {p} of {}", path.display())).collect();
        let runs = Runs { program: name, processors, names, phases, shared_out: vec![], notes: vec![], unit_s };
        Ok((runs.checked()?, pick(true)))
    }

    /// The time of a phase at a number of processors.
    pub fn time(&self, phase: usize, processors: u32) -> Option<f64> {
        let at = self.processors.iter().position(|p| *p == processors)?;
        self.phases.get(phase)?.times.get(at).copied()
    }
}
