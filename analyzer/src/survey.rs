//! The first pass over a trace: what must be known of all ranks before any of them can be analysed.
use crate::counted::Counted;
use crate::error::AnalyzeError;
use crate::parallel::{self, Stage};
use crate::peers::{Differences, Messages, differences};
use crate::source::Seen;
use crate::volume::Volumes;
use phasecast_trace::model::Ending;
use phasecast_trace::{EventKind, Rank, Trace};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

/// What the first pass found.
pub struct Survey {
    /// Events of each rank.
    pub events: Vec<u64>,
    /// Receives among them.
    pub receives: Vec<u64>,
    /// All volumes.
    pub volumes: Volumes,
    /// Start and end of each rank's run in ns.
    pub spans: Vec<(u64, u64)>,
    /// For each communicator, whether all its members took part in the same number of collectives; where they did not
    /// (a constructor that only some call, a pause), its collectives cannot be matched.
    pub balanced: Vec<bool>,
    /// How what was sent differs from what was received.
    pub differences: Differences,
}

#[derive(Default)]
struct Counts {
    events: u64,
    receives: u64,
    volumes: Volumes,
    collectives: BTreeMap<u32, u64>,
    messages: Messages,
}

/// Refuses a trace in which a rank is missing or was cut off.
///
/// # Errors
/// [`AnalyzeError::Cut`].
pub fn whole(trace: &Trace) -> Result<(), AnalyzeError> {
    for rank in trace.ranks() {
        let reason = match trace.trailer(rank).map(|t| &t.ending) {
            Some(Ending::Finalized | Ending::Exited) => continue,
            _ => trace.cut_reason(rank).unwrap_or_else(|| "its recording breaks off".into()),
        };
        return Err(AnalyzeError::Cut { path: trace.path().to_owned(), rank: rank.0, reason });
    }
    Ok(())
}

/// Makes the first pass over what is `counted`.
///
/// # Errors
/// If a rank is not complete or a file is damaged.
pub fn survey(trace: &Trace, counted: &Counted, threads: usize, stage: &Stage<'_>) -> Result<Survey, AnalyzeError> {
    whole(trace)?;
    let ranks = trace.size() as usize;
    let counts = parallel::map(ranks, threads, stage, |rank, done| {
        let mut counts = Counts { messages: Messages::new(ranks), ..Counts::default() };
        let mut told = 0;
        trace.view(Rank(rank as u32)).tally(|seen: &Seen, times| {
            let event = seen.item;
            if !seen.is_event || !counted.counts(&event) {
                return;
            }
            counts.events += times;
            counts.volumes.add(event.bytes);
            if counts.events - told >= 1 << 16 {
                done.fetch_add(counts.events - told, Ordering::Relaxed);
                told = counts.events;
            }
            let peers = match event.kind {
                EventKind::Collective => {
                    *counts.collectives.entry(event.comm).or_default() += times;
                    return;
                }
                EventKind::Send => &mut counts.messages.sent,
                EventKind::Recv => {
                    counts.receives += times;
                    &mut counts.messages.received
                }
            };
            peers.add(event.peer, times, event.comm, event.tag, event.bytes);
        })?;
        Ok::<_, AnalyzeError>(counts)
    })?;
    let mut volumes = Volumes::default();
    counts.iter().for_each(|c| volumes.merge(&c.volumes));
    let balanced = trace.comms().iter().enumerate().map(|(id, comm)| {
        let of = |rank: &u32| counts.get(*rank as usize).and_then(|c| c.collectives.get(&(id as u32))).copied();
        let mut members = comm.members.iter().chain(&comm.remote);
        let first = members.next().and_then(of);
        members.all(|rank| of(rank) == first)
    });
    Ok(Survey {
        events: counts.iter().map(|c| c.events).collect(),
        receives: counts.iter().map(|c| c.receives).collect(),
        volumes,
        spans: trace.ranks().map(|rank| trace.span(rank)).map(|(a, b)| (a.0, b.0)).collect(),
        balanced: balanced.collect(),
        differences: differences(counts.iter().map(|c| &c.messages)),
    })
}
