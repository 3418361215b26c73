//! The first pass over a trace: what must be known of all ranks before any of them can be analysed.
use crate::counted::Counted;
use crate::error::AnalyzeError;
use crate::parallel::{self, Stage};
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
    /// All volumes.
    pub volumes: Volumes,
    /// Start and end of each rank's run in ns.
    pub spans: Vec<(u64, u64)>,
    /// For each communicator, whether all its members took part in the same number of collectives; where they did not
    /// (a constructor that only some call, a pause), its collectives cannot be matched.
    pub balanced: Vec<bool>,
    /// Pairs (source, destination) with more receives than sends: something was not recorded.
    pub short: Vec<(u32, u32)>,
    /// Sends without a receive and receives without a send, as far as the counts of pairs tell.
    pub unmatched: (u64, u64),
}

#[derive(Default)]
struct Counts {
    events: u64,
    volumes: Volumes,
    collectives: BTreeMap<u32, u64>,
    sent: BTreeMap<i32, u64>,
    received: BTreeMap<i32, u64>,
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
        let mut counts = Counts::default();
        let mut peers = [vec![0u64; ranks], vec![0u64; ranks]];
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
            match event.kind {
                EventKind::Collective => *counts.collectives.entry(event.comm).or_default() += times,
                kind => {
                    if let Some(count) = peers[kind as usize].get_mut(event.peer as usize) {
                        *count += times;
                    }
                }
            }
        })?;
        let present =
            |of: &[u64]| of.iter().enumerate().filter(|(_, n)| **n > 0).map(|(p, n)| (p as i32, *n)).collect();
        (counts.sent, counts.received) =
            (present(&peers[EventKind::Send as usize]), present(&peers[EventKind::Recv as usize]));
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
    let mut short = Vec::new();
    let mut unmatched = (0, 0);
    for (rank, own) in counts.iter().enumerate() {
        for (&peer, &received) in &own.received {
            let sent = counts.get(peer as usize).and_then(|c| c.sent.get(&(rank as i32))).copied().unwrap_or(0);
            if received > sent {
                short.push((peer as u32, rank as u32));
                unmatched.1 += received - sent;
            }
        }
        for (&peer, &sent) in &own.sent {
            let received = counts.get(peer as usize).and_then(|c| c.received.get(&(rank as i32))).copied().unwrap_or(0);
            unmatched.0 += sent.saturating_sub(received);
        }
    }
    Ok(Survey {
        events: counts.iter().map(|c| c.events).collect(),
        volumes,
        spans: trace.ranks().map(|rank| trace.span(rank)).map(|(a, b)| (a.0, b.0)).collect(),
        balanced: balanced.collect(),
        short,
        unmatched,
    })
}
