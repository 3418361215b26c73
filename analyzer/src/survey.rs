//! The first pass over a trace: what must be known of all ranks before any of them can be analysed.
use crate::counted::Counted;
use crate::error::AnalyzeError;
use crate::parallel::{self, Stage};
use crate::source::{Item, Seen};
use crate::symbol::mix;
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
    /// Pairs whose messages were not all received with the lengths with which they were sent, as far as recorded.
    pub loose: Vec<(u32, u32)>,
    /// Sends without a receive and receives without a send, as far as the counts of pairs tell.
    pub unmatched: (u64, u64),
}

/// Messages of one peer: how many, and a sum over their communicators, tags and lengths, which is the same on both sides.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Told {
    count: u64,
    sum: u64,
}

impl Told {
    fn add(&mut self, item: &Item, times: u64) {
        let mark = mix(mix(u64::from(item.comm) << 32 | u64::from(item.tag as u32)).wrapping_add(item.bytes));
        self.count += times;
        self.sum = self.sum.wrapping_add(mark.wrapping_mul(times));
    }
}

#[derive(Default)]
struct Counts {
    events: u64,
    volumes: Volumes,
    collectives: BTreeMap<u32, u64>,
    sent: BTreeMap<usize, Told>,
    received: BTreeMap<usize, Told>,
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
        let mut peers = [vec![Told::default(); ranks], vec![Told::default(); ranks]];
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
                    if let Some(told) = peers[kind as usize].get_mut(event.peer as usize) {
                        told.add(&event, times);
                    }
                }
            }
        })?;
        let present = |kind: EventKind| {
            let told = peers[kind as usize].iter().copied().enumerate();
            told.filter(|(_, told)| told.count > 0).collect()
        };
        (counts.sent, counts.received) = (present(EventKind::Send), present(EventKind::Recv));
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
    let (mut short, mut loose) = (Vec::new(), Vec::new());
    let mut unmatched = (0, 0);
    for (rank, own) in counts.iter().enumerate() {
        for (&peer, &received) in &own.received {
            let sent = counts[peer].sent.get(&rank).copied().unwrap_or_default();
            let pair = (peer as u32, rank as u32);
            if received != sent {
                loose.push(pair);
            }
            if received.count > sent.count {
                short.push(pair);
                unmatched.1 += received.count - sent.count;
            }
        }
        for (&peer, &sent) in &own.sent {
            let received = counts[peer].received.get(&rank).map_or(0, |told| told.count);
            unmatched.0 += sent.count.saturating_sub(received);
        }
    }
    Ok(Survey {
        events: counts.iter().map(|c| c.events).collect(),
        volumes,
        spans: trace.ranks().map(|rank| trace.span(rank)).map(|(a, b)| (a.0, b.0)).collect(),
        balanced: balanced.collect(),
        short,
        loose,
        unmatched,
    })
}
