//! What the comparisons of all runs say together: the verdict, and the places that it names.
use super::compare::Comparison;
use super::tape::{Names, Place, Symbol};
use super::{place_may_reorder, takes_any_order};
use phasecast_trace::EventKind;
use std::collections::BTreeMap;

/// The share of the events up to which changes that are confined to places count as places, not as the program.
pub const CONFINED: f64 = 0.05;

/// Whether the program does the same when its time is perturbed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// In every run.
    Stable,
    /// It does something else.
    Unstable,
    /// But for some places.
    Partly,
}

/// A place where runs differ.
#[derive(Clone, Debug, PartialEq)]
pub struct Trouble {
    /// The place.
    pub place: Place,
    /// Events of the reference run there.
    pub events: u64,
    /// The most of them that changed in one run.
    pub changed: u64,
    /// Runs in which some did.
    pub runs: usize,
    /// The first one: its number on its rank.
    pub first: u32,
    /// What it was (none: it is new) and what it became (none: it is gone).
    pub what: [Option<Symbol>; 2],
}

impl Trouble {
    /// What kind of change it is.
    pub fn kind(&self) -> &'static str {
        match self.place.kind {
            EventKind::Recv if self.place.wildcard => "wildcard",
            EventKind::Recv if takes_any_order(&self.place.procedure) => "completion order",
            EventKind::Recv => "receive",
            EventKind::Send => "send",
            EventKind::Collective => "collective",
        }
    }

    /// Whether it may be a cause, not only a consequence.
    pub fn is_cause(&self) -> bool {
        place_may_reorder(&self.place)
    }
}

/// What all runs say.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// In a word.
    pub outcome: Outcome,
    /// n of the run that is furthest away.
    pub events: u64,
    /// s of that run.
    pub similarity: u64,
    /// Whether every s is the largest there is.
    pub exact: bool,
    /// Where runs differ: causes first, then by rank.
    pub places: Vec<Trouble>,
    /// Why, in a sentence.
    pub reason: String,
}

/// Judges the runs by their comparisons with the reference. `broken` says of each run that did not come to its end what
/// became of it: a program whose end hangs on the speed of its ranks is unstable.
pub fn judge(names: &Names, runs: &[Comparison], broken: &[String]) -> Verdict {
    let worst = runs.iter().max_by_key(|run| run.distance());
    let (events, similarity) = worst.map_or((0, 0), |run| (run.events, run.similarity));
    let distance = events - similarity;
    let mut places: BTreeMap<u32, Trouble> = BTreeMap::new();
    for run in runs {
        for (&number, change) in &run.changes {
            let Some(place) = names.places.get(number) else { continue };
            let trouble = places.entry(number).or_insert_with(|| Trouble {
                place: place.clone(),
                events: change.events,
                changed: 0,
                runs: 0,
                first: change.first,
                what: change.what,
            });
            trouble.changed = trouble.changed.max(change.changed);
            trouble.runs += 1;
        }
    }
    let mut places: Vec<Trouble> = places.into_values().collect();
    places.sort_by_key(|t| (!t.is_cause(), t.place.kind != EventKind::Recv, t.place.task, t.first));
    let confined = runs.iter().all(|run| run.confined);
    let differing = runs.iter().filter(|run| run.distance() > 0).count();
    let (outcome, reason) = if let Some(first) = broken.first() {
        let what = format!(
            "{} of {} runs did not come to their end, as that without delays did: {first}",
            broken.len(),
            runs.len()
        );
        (Outcome::Unstable, what)
    } else if distance == 0 {
        let how = if runs.len() == 1 { "both runs have".into() } else { format!("all {} runs have", runs.len()) };
        (Outcome::Stable, format!("{how} the same events in the same order on every rank"))
    } else if confined && distance as f64 <= CONFINED * events as f64 {
        let causes = places.iter().filter(|place| place.is_cause()).count();
        let what = if causes == 1 { "1 place that takes".into() } else { format!("{causes} places that take") };
        (Outcome::Partly, format!("all but {what} messages in the order of their arrival is the same in every run"))
    } else {
        let share = 100.0 * distance as f64 / events.max(1) as f64;
        let why = if !places.iter().any(Trouble::is_cause) {
            "no receive from any source or in any order is at the root of it: the program decides by time, or by chance"
        } else if confined {
            "they are confined to receives that take messages in the order of their arrival, but are many"
        } else {
            "what is received first changes what the program does next"
        };
        (
            Outcome::Unstable,
            format!("{differing} of {} runs differ, by up to {share:.1} % of the events; {why}", runs.len()),
        )
    };
    Verdict { outcome, events, similarity, exact: runs.iter().all(|run| run.exact), places, reason }
}

#[cfg(test)]
mod tests {
    use super::super::tape::{Tape, Track};
    use super::*;

    #[test]
    fn a_program_that_delays_keep_from_ending_is_unstable() {
        let mut tape = Tape::default();
        tape.tracks.insert((0, 0), Track { symbols: vec![0; 9], ..Track::default() });
        let same = Comparison { events: 9, similarity: 9, exact: true, confined: true, ..Comparison::default() };
        let runs = [same.clone(), Comparison::broken(&tape)];
        let verdict = judge(&Names::default(), &runs, &["with a delay before a+0x1 it hung".into()]);
        assert_eq!((verdict.outcome, verdict.events, verdict.similarity), (Outcome::Unstable, 9, 1));
        assert!(verdict.reason.starts_with("1 of 2 runs") && verdict.reason.ends_with("it hung"), "{}", verdict.reason);
        assert_eq!(judge(&Names::default(), &[same], &[]).outcome, Outcome::Stable);
    }
}
