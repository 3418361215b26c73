//! What the counts of a trace add up to: all computation that was counted, over all ranks.
use crate::counts::{Counters, Counts, LINE_BYTES};
use crate::model::CallRef;
use crate::units::Nanos;
use serde::Serialize;

/// Counted computation, in numbers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Computed {
    /// What was counted.
    pub counters: Counters,
    /// Sums over all computation that was counted.
    pub counts: Counts,
    /// The time of that computation, in seconds, added up over ranks and threads.
    pub counted_s: f64,
    /// The time of all computation between calls.
    pub computing_s: f64,
    /// Instructions a cycle; none if the counters are not the processor's.
    pub instructions_per_cycle: Option<f64>,
    /// Bytes that came from memory in a second of computation, [`LINE_BYTES`] a miss; none likewise.
    pub memory_bytes_per_s: Option<f64>,
}

/// Sums of one rank, or of all.
#[derive(Clone, Debug, Default)]
pub(super) struct Sums {
    counts: Counts,
    counted_ns: u64,
    computing_ns: u64,
    /// The last exit of each thread; calls of a rank come in the order of their exits.
    exits: Vec<Option<Nanos>>,
}

impl Sums {
    /// Takes in the next call of a rank.
    pub(super) fn add_call(&mut self, item: CallRef<'_>) {
        let thread = usize::from(item.call.thread);
        if self.exits.len() <= thread {
            self.exits.resize(thread + 1, None);
        }
        if let Some(before) = self.exits[thread].replace(item.call.exit) {
            let gap = item.call.enter.since(before).0;
            self.computing_ns = self.computing_ns.saturating_add(gap);
            if let Some(counts) = item.counts {
                self.counted_ns = self.counted_ns.saturating_add(gap);
                self.counts = self.counts.plus(counts);
            }
        }
    }

    /// Takes in the sums of another rank.
    pub(super) fn merge(&mut self, other: &Sums) {
        self.counts = self.counts.plus(other.counts);
        self.counted_ns = self.counted_ns.saturating_add(other.counted_ns);
        self.computing_ns = self.computing_ns.saturating_add(other.computing_ns);
    }

    /// What they are, in a trace with these counters.
    pub(super) fn computed(&self, counters: &Counters) -> Computed {
        let counted_s = Nanos(self.counted_ns).seconds();
        let Counts { instructions, cycles, misses } = self.counts;
        let ratio = |over: f64, under: f64| (counters.are_hardware() && under > 0.0).then(|| over / under);
        Computed {
            counters: counters.clone(),
            counts: self.counts,
            counted_s,
            computing_s: Nanos(self.computing_ns).seconds(),
            instructions_per_cycle: ratio(instructions as f64, cycles as f64),
            memory_bytes_per_s: ratio(misses as f64 * LINE_BYTES as f64, counted_s),
        }
    }
}
