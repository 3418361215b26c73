//! The summary of a trace: what `phasecast stat` prints and what stands at the end of a recording.
//!
//! One pass over all ranks, several at a time. Memory is bounded by [`MAX_CHANNELS`], whatever the trace's length.
mod counted;

use crate::error::TraceError;
use crate::model::{CallRef, Channel, Class, EventKind, Flags, PEER_PROC_NULL, PartKind};
use crate::reader::Trace;
use crate::units::{Nanos, ProcId, Rank};
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasherDefault, Hasher};
use std::num::NonZero;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

pub use counted::Computed;
use counted::Sums;

/// Channels (source, destination, communicator, tag) that are counted one by one. Beyond it neighbouring tags are
/// counted together, and the number of unmatched messages is a lower bound.
pub const MAX_CHANNELS: usize = 1 << 20;
/// Calls between two reports of progress.
const STEP: u64 = 1 << 16;

/// What is in a trace, in numbers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// The program's path, as the first rank that has a file says.
    pub program: String,
    /// The MPI library, likewise.
    pub mpi: String,
    /// Size of `MPI_COMM_WORLD`.
    pub ranks: u32,
    /// Communication events: sends, completed receives, ranks' parts in collectives.
    pub events: u64,
    /// Calls by procedure, over all ranks.
    pub calls: BTreeMap<String, u64>,
    /// Calls and parts of calls: what [`Summary::bytes_per_event`] divides by.
    pub items: u64,
    /// Run time of the longest rank in seconds.
    pub duration_s: f64,
    /// Bytes of all rank files.
    pub bytes_on_disk: u64,
    /// Bytes of the stored chunks per item.
    pub bytes_per_event: f64,
    /// Bytes of the chunks before compression per item.
    pub bytes_per_event_raw: f64,
    /// Messages sent but not received, or received but not sent (the sum of both over all channels).
    pub unmatched: u64,
    /// Receives posted but never completed.
    pub pending: u64,
    /// Ranks whose recording breaks off.
    pub truncated_ranks: Vec<TruncatedRank>,
    /// The tracer's own time by the run time, on the rank where it is the most; none if no rank's file says.
    pub tracer_share: Option<f64>,
    /// What was counted of computation; none in a trace without counts.
    pub computed: Option<Computed>,
}

/// A rank whose recording breaks off.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TruncatedRank {
    /// The rank.
    pub rank: u32,
    /// Calls that were recorded.
    pub calls: u64,
    /// The exit of the last of them, in seconds from the start of the run.
    pub at_s: f64,
    /// Why, as far as the file tells.
    pub reason: String,
}

impl Summary {
    /// Reads a trace whole and counts. `progress` is told how many items of how many are done.
    ///
    /// # Errors
    /// If a chunk of the trace is damaged.
    pub fn of(trace: &Trace, progress: &dyn Fn(u64, u64)) -> Result<Summary, TraceError> {
        let total = trace.items();
        let next = AtomicU32::new(0);
        let stop = AtomicBool::new(false);
        let result: Mutex<Result<Counts, TraceError>> = Mutex::new(Ok(Counts::default()));
        let workers = std::thread::available_parallelism().map_or(1, NonZero::get).min(trace.size() as usize);
        let (report, reports) = crossbeam_channel::unbounded();
        std::thread::scope(|scope| {
            for _ in 0..workers {
                let report = report.clone();
                let (next, stop, result) = (&next, &stop, &result);
                scope.spawn(move || {
                    loop {
                        let rank = next.fetch_add(1, Ordering::Relaxed);
                        if rank >= trace.size() || stop.load(Ordering::Relaxed) {
                            break;
                        }
                        let counted = Counts::of_rank(trace, Rank(rank), stop, &|items| {
                            let _ = report.send(items);
                        });
                        let mut all = result.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                        match (counted, all.as_mut()) {
                            (Ok(counts), Ok(sum)) => sum.add(counts),
                            (Err(error), Ok(_)) => {
                                *all = Err(error);
                                stop.store(true, Ordering::Relaxed);
                            }
                            (_, Err(_)) => {}
                        }
                    }
                });
            }
            drop(report);
            let mut done = 0;
            for items in reports {
                done += items;
                progress(done.min(total), total);
            }
        });
        let counts = result.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)?;
        Ok(counts.into_summary(trace))
    }
}

/// What one rank, or all of them, add up to.
#[derive(Default)]
struct Counts {
    events: u64,
    calls: Vec<u64>,
    items: u64,
    pending: u64,
    channels: Channels,
    truncated: Vec<TruncatedRank>,
    share: Option<f64>,
    computed: Sums,
}

impl Counts {
    fn of_rank(trace: &Trace, rank: Rank, stop: &AtomicBool, report: &dyn Fn(u64)) -> Result<Counts, TraceError> {
        let mut counts = Counts { calls: vec![0; trace.procedures().len()], ..Counts::default() };
        let (mut calls, mut last, mut reported) = (0u64, Nanos(0), 0);
        let (mut posted, mut completed) = (0u64, 0u64);
        let counted = trace.counters().is_some();
        let mut reader = trace.calls(rank);
        while let Some(item) = reader.next_call()? {
            counts.items += 1 + item.parts.len() as u64;
            if counted {
                counts.computed.add_call(item);
            }
            last = item.call.exit;
            if !item.call.flags.has(Flags::CONTINUED) {
                calls += 1;
                if let Some(count) = counts.calls.get_mut(item.call.proc.index()) {
                    *count += 1;
                }
            }
            let (posts, completes) = requests(item);
            posted += posts;
            completed += completes;
            for event in item.events() {
                counts.events += 1;
                if let Some(channel) = event.channel(rank) {
                    counts.channels.count(channel, if event.kind == EventKind::Send { 1 } else { -1 });
                }
            }
            if calls % STEP == 0 {
                report(counts.items - reported);
                reported = counts.items;
                if stop.load(Ordering::Relaxed) {
                    break;
                }
            }
        }
        report(counts.items - reported);
        counts.pending = posted.saturating_sub(completed);
        if let Some(reason) = trace.cut_reason(rank) {
            counts.truncated.push(TruncatedRank { rank: rank.0, calls, at_s: last.seconds(), reason });
        }
        counts.share = trace.trailer(rank).map(|trailer| {
            let (start, end) = trace.span(rank);
            if end > start { trailer.own_ns as f64 / end.since(start).0 as f64 } else { 0.0 }
        });
        Ok(counts)
    }

    fn add(&mut self, other: Counts) {
        self.events += other.events;
        self.items += other.items;
        self.pending += other.pending;
        if self.calls.len() < other.calls.len() {
            self.calls.resize(other.calls.len(), 0);
        }
        for (sum, count) in self.calls.iter_mut().zip(&other.calls) {
            *sum += count;
        }
        self.channels.add(other.channels);
        self.computed.merge(&other.computed);
        self.truncated.extend(other.truncated);
        self.share = match (self.share, other.share) {
            (Some(a), Some(b)) => Some(a.max(b)),
            (a, b) => a.or(b),
        };
    }

    fn into_summary(mut self, trace: &Trace) -> Summary {
        self.truncated.sort_by_key(|t| t.rank);
        let (raw, stored) = trace.chunk_bytes();
        let per_item = |bytes: u64| if self.items == 0 { 0.0 } else { bytes as f64 / self.items as f64 };
        let mut calls = BTreeMap::new();
        for (id, &count) in self.calls.iter().enumerate().filter(|(_, count)| **count > 0) {
            *calls.entry(trace.procedure(ProcId(id as u16)).to_string()).or_default() += count;
        }
        let header = trace.ranks().find_map(|rank| trace.header(rank));
        Summary {
            program: header.map(|h| h.program.clone()).unwrap_or_default(),
            mpi: header.map(|h| h.mpi.clone()).unwrap_or_default(),
            ranks: trace.size(),
            events: self.events,
            calls,
            items: self.items,
            duration_s: trace.run_time().seconds(),
            bytes_on_disk: trace.bytes_on_disk(),
            bytes_per_event: per_item(stored),
            bytes_per_event_raw: per_item(raw),
            unmatched: self.channels.balance.values().map(|n| n.unsigned_abs()).sum(),
            pending: self.pending,
            truncated_ranks: self.truncated,
            tracer_share: self.share,
            computed: trace.counters().map(|counters| self.computed.computed(counters)),
        }
    }
}

/// Receive requests that a call posts, and those that it completes (cancelled ones and those from `MPI_PROC_NULL` too).
fn requests(item: CallRef<'_>) -> (u64, u64) {
    let flags = item.call.flags;
    let own = flags.has(Flags::RECV_POST) && !flags.has(Flags::CONTINUED) && !flags.has(Flags::ERROR);
    let posts =
        item.parts.iter().filter(|part| part.kind == PartKind::Post && part.peer != PEER_PROC_NULL).count() as u64;
    let completes = match item.call.class {
        Class::Complete => item.parts.iter().filter(|part| part.kind == PartKind::Recv).count() as u64,
        _ => 0,
    };
    (u64::from(own) + posts, completes)
}

/// Messages sent less messages received, by channel. Matching is first in, first out within a channel, so that what
/// does not balance has no partner.
#[derive(Default)]
struct Channels {
    balance: HashMap<Channel, i64, BuildHasherDefault<Mixer>>,
    /// Bits of the tag that are not told apart.
    blur: u32,
}

impl Channels {
    #[inline]
    fn count(&mut self, mut channel: Channel, n: i64) {
        channel.tag >>= self.blur;
        *self.balance.entry(channel).or_default() += n;
        if self.balance.len() > MAX_CHANNELS {
            self.shrink();
        }
    }

    fn shrink(&mut self) {
        self.balance.retain(|_, n| *n != 0);
        while self.balance.len() > MAX_CHANNELS / 2 && self.blur < 31 {
            self.blur_to(self.blur + 1);
        }
    }

    fn blur_to(&mut self, blur: u32) {
        let by = blur - self.blur;
        self.blur = blur;
        for (mut channel, n) in std::mem::take(&mut self.balance) {
            channel.tag >>= by;
            *self.balance.entry(channel).or_default() += n;
        }
    }

    fn add(&mut self, mut other: Channels) {
        if other.blur > self.blur {
            self.blur_to(other.blur);
        } else if self.blur > other.blur {
            other.blur_to(self.blur);
        }
        for (channel, n) in other.balance {
            *self.balance.entry(channel).or_default() += n;
        }
        // A channel that balances may be forgotten: both of its ends are counted.
        self.balance.retain(|_, n| *n != 0);
        if self.balance.len() > MAX_CHANNELS {
            self.shrink();
        }
    }
}

/// A hasher for channels, which are four small numbers.
#[derive(Default)]
struct Mixer(u64);

impl Hasher for Mixer {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u32(u32::from(byte)));
    }

    fn write_u32(&mut self, n: u32) {
        self.0 = (self.0.rotate_left(23) ^ u64::from(n)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }

    fn write_i32(&mut self, n: i32) {
        self.write_u32(n as u32);
    }

    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 29)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::CommId;

    fn channel(tag: i32) -> Channel {
        Channel { source: Rank(0), destination: Rank(1), comm: CommId(0), tag }
    }

    #[test]
    fn channels_balance_within_a_bound_of_memory() {
        let (mut sent, mut received) = (Channels::default(), Channels::default());
        let messages = 3 * MAX_CHANNELS as i32;
        for tag in 0..messages {
            sent.count(channel(tag), 1);
            assert!(sent.balance.len() <= MAX_CHANNELS);
        }
        for tag in 0..messages - 5 {
            received.count(channel(tag), -1);
        }
        sent.add(received);
        assert_eq!(sent.balance.values().map(|n| n.unsigned_abs()).sum::<u64>(), 5);
    }

    #[test]
    fn a_message_to_oneself_balances() {
        let mut both = Channels::default();
        let own = Channel { destination: Rank(0), ..channel(3) };
        both.count(own, 1);
        both.count(own, -1);
        assert_eq!(both.balance.values().sum::<i64>(), 0);
    }
}
