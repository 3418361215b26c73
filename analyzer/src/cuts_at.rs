//! A consistent cut at every place where one can lie on one rank: what the tests of checkpoints go by.
use crate::closure::{Closed, close};
use crate::counted::Counted;
use crate::error::AnalyzeError;
use crate::model::Order;
use crate::parallel::Stage;
use crate::source::with_feed;
use crate::survey::survey;
use crate::symbol::Symbols;
use phasecast_trace::{Rank, Trace};

/// For each position of the rank `pilot` at which a cut may lie (after a whole call, and a whole set of receives), the
/// consistent cut that takes every other rank just as far as it must go: events of each rank, ascending from cut to cut.
/// No two of them are the same, and the last is the end of the run.
///
/// # Errors
/// If a rank is not complete, a file is damaged or there is no such rank.
pub fn cuts_at_every_position(trace: &Trace, pilot: Rank) -> Result<Vec<Vec<u64>>, AnalyzeError> {
    let stage = Stage::new(&|_, _| (), 0, 1);
    let survey = survey(trace, &Counted::All, 1, &stage)?;
    let Some(&events) = survey.events.get(pilot.index()) else {
        let what = format!("{} has no rank {}. Name one of its {}.", trace.path().display(), pilot.0, trace.size());
        return Err(AnalyzeError::Pieces { what });
    };
    let symbols = Symbols::new(&survey.volumes.classes(), trace.procedures(), Order::Kept);
    let targets: Vec<u64> = (1..=events).collect();
    let Closed { cuts, end, .. } = with_feed(trace, &Counted::All, trace.ranks(), 1, |feed| {
        close(trace, &survey, feed, &symbols, pilot.index(), &targets, &stage)
    })?;
    let stands = cuts.iter().map(|cut| &cut.stands).chain([&end]);
    let mut cuts: Vec<Vec<u64>> = stands.map(|of| of.iter().map(|stand| stand.events).collect()).collect();
    cuts.dedup();
    Ok(cuts)
}
