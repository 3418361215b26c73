//! The same phases in runs with different numbers of processors. Phases belong to the algorithm rather than to the number
//! of processors (seed 003, section 2.2), so that each run has as many of them, in the same order. Their number is the one
//! that fits all runs best.
use super::{Found, Kind, Phase};

/// How much it costs if a phase is of one kind in one run and of another in the next, in parts of a run's goodness.
const OTHER_KIND: f64 = 0.02;

/// For each number of phases that all runs can have, up to `most`: each run's phases.
pub fn every(runs: &[Found], most: usize) -> Vec<Vec<&[Phase]>> {
    let Some(first) = runs.first() else { return Vec::new() };
    let counts = first.ways.iter().map(|(phases, _)| phases.len()).filter(|count| *count <= most);
    counts
        .filter_map(|count| {
            let of = |run: &'_ Found| run.ways.iter().position(|(phases, _)| phases.len() == count);
            runs.iter().map(|run| of(run).map(|at| run.ways[at].0.as_slice())).collect()
        })
        .collect()
}

/// For each run its phases, all in the same number; `None` if there is no number of phases that all runs can have.
pub fn across<'a>(runs: &'a [Found], count: Option<usize>) -> Option<Vec<&'a [Phase]>> {
    let with = |count: usize| -> Option<Vec<&'a (Vec<Phase>, f64)>> {
        runs.iter().map(|run| run.ways.iter().find(|(phases, _)| phases.len() == count)).collect()
    };
    let counts: Vec<usize> = runs.first()?.ways.iter().map(|(phases, _)| phases.len()).collect();
    let score = |ways: &[&(Vec<Phase>, f64)]| -> f64 {
        let worse: f64 = ways
            .iter()
            .zip(runs)
            .map(|(way, run)| {
                let costs = || run.ways.iter().map(|(_, cost)| *cost);
                let best = costs().fold(f64::INFINITY, f64::min);
                let worst = costs().fold(f64::NEG_INFINITY, f64::max);
                if worst > best { (way.1 - best) / (worst - best) } else { 0.0 }
            })
            .sum();
        worse / runs.len() as f64 + OTHER_KIND * unlike(ways)
    };
    let chosen = match count {
        Some(count) => with(count),
        None => counts
            .into_iter()
            .filter_map(with)
            .min_by(|a, b| score(a).total_cmp(&score(b)).then(a[0].0.len().cmp(&b[0].0.len()))),
    };
    Some(chosen?.into_iter().map(|way| way.0.as_slice()).collect())
}

/// Kinds that differ between neighbouring runs, and shares of the run that differ widely.
fn unlike(ways: &[&(Vec<Phase>, f64)]) -> f64 {
    let mut sum = 0.0;
    for pair in ways.windows(2) {
        let whole = |way: &(Vec<Phase>, f64)| way.0.iter().map(|phase| phase.time_s).sum::<f64>().max(1e-12);
        let (one, other) = (whole(pair[0]), whole(pair[1]));
        for (a, b) in pair[0].0.iter().zip(&pair[1].0) {
            sum += f64::from(a.kind != b.kind);
            sum += ((a.time_s / one).max(1e-9) / (b.time_s / other).max(1e-9)).ln().abs().min(3.0) / 3.0;
        }
    }
    sum
}

/// The kind that a phase has in most runs; of as many, the less special one.
pub fn kind_of(runs: &[&[Phase]], at: usize) -> Kind {
    let count = |kind: Kind| runs.iter().filter(|run| run.get(at).is_some_and(|phase| phase.kind == kind)).count();
    [Kind::Full, Kind::Sequential].into_iter().find(|kind| 2 * count(*kind) > runs.len()).unwrap_or(Kind::Other)
}
