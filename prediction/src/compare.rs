//! Several predictions side by side: machines ranked by their predicted time, with the true time where it is known.
use crate::model::{Machine, Prediction};
use serde::Serialize;

/// One prediction in a comparison.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Entry {
    /// Its place by predicted time, from 1; equal times share a place.
    pub place: usize,
    /// The file or other name under which it was given.
    pub name: String,
    /// The method that made it.
    pub method: String,
    /// The machine it is for.
    pub target: Machine,
    /// The program.
    pub program: String,
    /// Its ranks.
    pub ranks: u32,
    /// Predicted execution time in seconds.
    pub pet_s: f64,
    /// Where the mean of many runs lies, in seconds.
    pub interval_s: [f64; 2],
    /// Predicted time over that of the first place.
    pub ratio: f64,
    /// Whether its interval reaches into that of the first place: the order of the two is not certain then.
    pub tied: bool,
    /// What predicting took, in seconds.
    pub set_s: f64,
    /// Share of the base run that was measured.
    pub coverage: f64,
    /// The true time in seconds, where it is known.
    pub aet_s: Option<f64>,
    /// |PET - AET| / AET, where it is known.
    pub pete: Option<f64>,
}

/// Predictions, the fastest machine first.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// The predictions by predicted time.
    pub predictions: Vec<Entry>,
    /// Sentences on what makes them hard to compare: other programs, other numbers of ranks.
    pub notes: Vec<String>,
}

impl Comparison {
    /// Ranks predictions, each with its name. Ties keep the order in which they were given.
    pub fn of(predictions: &[(String, Prediction)]) -> Comparison {
        let mut sorted: Vec<&(String, Prediction)> = predictions.iter().collect();
        sorted.sort_by(|a, b| a.1.pet_s.total_cmp(&b.1.pet_s));
        let best = sorted.first().map(|(_, p)| (p.pet_s, p.run_interval_s));
        let entries = sorted.iter().map(|(name, p)| {
            let (fastest, interval) = best.unwrap_or((p.pet_s, p.run_interval_s));
            Entry {
                place: 1 + sorted.iter().filter(|(_, other)| other.pet_s < p.pet_s).count(),
                name: name.clone(),
                method: p.method.clone(),
                target: p.target.clone(),
                program: p.program.clone(),
                ranks: p.ranks,
                pet_s: p.pet_s,
                interval_s: p.interval_s,
                ratio: if fastest > 0.0 { p.pet_s / fastest } else { 1.0 },
                tied: p.run_interval_s[0] <= interval[1],
                set_s: p.set_s,
                coverage: p.coverage,
                aet_s: p.aet_s,
                pete: p.pete,
            }
        });
        Comparison { predictions: entries.collect(), notes: notes(predictions) }
    }
}

fn notes(predictions: &[(String, Prediction)]) -> Vec<String> {
    let mut notes = Vec::new();
    let Some((first, rest)) = predictions.split_first() else { return notes };
    if let Some((other, p)) = rest.iter().find(|(_, p)| p.name() != first.1.name()) {
        notes.push(format!("{} is of {}, {other} of {}: different programs.", first.0, first.1.program, p.program));
    }
    if let Some((other, p)) = rest.iter().find(|(_, p)| p.ranks != first.1.ranks) {
        notes.push(format!("{} is for {} ranks, {other} for {}.", first.0, first.1.ranks, p.ranks));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Arguments with folders in them are no part of a program's name.
    #[test]
    fn programs_are_told_apart_by_their_names() {
        let of = |program: &str| (program.to_owned(), Prediction { program: program.into(), ..Prediction::default() });
        let differ = |one: &str, other: &str| !notes(&[of(one), of(other)]).is_empty();
        assert!(differ("./cg /data/in", "./lu /data/in"));
        assert!(!differ("./cg -d data/", "/home/u/cg"));
    }
}
