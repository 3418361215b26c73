//! Predicted against observed, procedure by procedure and rank by rank: the seed's Table 2.
//!
//! Both traces are of one program with one input, so the n-th call of a procedure on a rank of the one is the n-th of
//! the other. Computation is told apart by the procedures between which it lies.
use crate::transform::error::TransformError;
use phasecast_trace::{Class, Flags, Rank, Trace};
use serde::Serialize;
use std::collections::BTreeMap;

/// One procedure, or the computation between two.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// Its name.
    pub name: String,
    /// Whether it is computation.
    pub computation: bool,
    /// By rank; none where the rank has no such calls in both traces.
    pub ranks: Vec<Option<Cell>>,
}

/// One procedure on one rank.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Cell {
    /// Mean over the calls of predicted by observed time: what the seed's Table 2 shows.
    pub mean: f64,
    /// All predicted time by all observed time.
    pub total: f64,
    /// Calls compared.
    pub calls: u64,
    /// Predicted time in seconds.
    pub predicted_s: f64,
    /// Observed time in seconds.
    pub observed_s: f64,
}

/// Times in ns, by name; whether it is computation comes first, so that it is sorted by that.
type Times = BTreeMap<(bool, String), Vec<f32>>;

/// Compares a predicted trace with one observed on the target, rank by rank. Rows that take the most time come first,
/// computation before procedures.
///
/// # Errors
/// If the traces cannot be read or have different numbers of ranks.
pub fn observed(predicted: &Trace, observed: &Trace) -> Result<Vec<Row>, TransformError> {
    let ranks = predicted.size();
    if ranks != observed.size() {
        return Err(TransformError::Ranks {
            a: predicted.path().to_owned(),
            a_ranks: ranks,
            b: observed.path().to_owned(),
            b_ranks: observed.size(),
            why: "the observed run must have as many. Trace it on the target with the same number of ranks.",
        });
    }
    let mut rows: BTreeMap<(bool, String), Vec<Option<Cell>>> = BTreeMap::new();
    for rank in predicted.ranks() {
        let (one, other) = (times(predicted, rank)?, times(observed, rank)?);
        for (name, times) in one {
            let Some(seen) = other.get(&name) else { continue };
            if let Some(cell) = cell(&times, seen) {
                rows.entry(name).or_insert_with(|| vec![None; ranks as usize])[rank.index()] = Some(cell);
            }
        }
    }
    let mut rows: Vec<Row> =
        rows.into_iter().map(|((call, name), ranks)| Row { name, computation: !call, ranks }).collect();
    let time = |row: &Row| row.ranks.iter().flatten().map(|cell| cell.observed_s).sum::<f64>();
    rows.sort_by(|a, b| b.computation.cmp(&a.computation).then(time(b).total_cmp(&time(a))));
    Ok(rows)
}

fn times(trace: &Trace, rank: Rank) -> Result<Times, TransformError> {
    let mut times = Times::new();
    let mut last: BTreeMap<u16, (u64, String)> = BTreeMap::new();
    let mut calls = trace.calls(rank);
    while let Some(item) = calls.next_call()? {
        let call = item.call;
        if call.flags.has(Flags::CONTINUED) {
            continue;
        }
        let name = trace.procedure(call.proc);
        // Processes are loaded before the first call: that is no computation of the program.
        if let Some((exit, before)) = last.get(&call.thread)
            && call.class != Class::Resume
        {
            let gap = call.enter.0.saturating_sub(*exit) as f32;
            times.entry((false, format!("{before} .. {name}"))).or_default().push(gap);
        }
        times.entry((true, name.to_owned())).or_default().push(call.exit.since(call.enter).0 as f32);
        match last.get_mut(&call.thread) {
            Some(before) if before.1 == name => before.0 = call.exit.0,
            _ => {
                last.insert(call.thread, (call.exit.0, name.to_owned()));
            }
        }
    }
    Ok(times)
}

fn cell(predicted: &[f32], observed: &[f32]) -> Option<Cell> {
    let sum = |of: &[f32]| of.iter().map(|ns| f64::from(*ns)).sum::<f64>() * 1e-9;
    let (predicted_s, observed_s) = (sum(predicted), sum(observed));
    // A call of no length says nothing of a ratio.
    let both: Vec<f64> =
        predicted.iter().zip(observed).filter(|(_, o)| **o > 0.0).map(|(p, o)| f64::from(*p) / f64::from(*o)).collect();
    if both.is_empty() {
        return None;
    }
    let mean = both.iter().sum::<f64>() / both.len() as f64;
    Some(Cell { mean, total: predicted_s / observed_s, calls: both.len() as u64, predicted_s, observed_s })
}
