//! The ranks together: a merge of their times, in which memory is bounded by a few blocks of each rank.
use super::Settings;
use super::toggles::{Source, window};
use phasecast_trace::ahead::with_blocks;
use phasecast_trace::{Trace, TraceError};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

/// A stretch of time in which the same number of processors is busy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Start in ns from the origin of the trace.
    pub start_ns: u64,
    /// End in ns, behind the start.
    pub end_ns: u64,
    /// Busy processors.
    pub busy: u32,
}

/// A rank's times that have been read.
#[derive(Default)]
struct Lane {
    times: Vec<u64>,
    at: usize,
    busy: bool,
}

/// Calls `each` with the steps of a run in their order. They tile it, and no two neighbours are of one level.
///
/// # Errors
/// If the trace is damaged, or `each` fails.
pub fn for_each_step<E: From<TraceError>>(
    trace: &Trace,
    settings: &Settings,
    mut each: impl FnMut(Step) -> Result<(), E>,
) -> Result<(), E> {
    let window = window(trace, settings.part)?;
    let sources: Vec<Source<'_>> = trace.ranks().map(|rank| Source::new(trace, rank, settings.busy, window)).collect();
    with_blocks(sources, settings.threads, Source::block, |mut next| {
        let mut lanes: Vec<Lane> = (0..trace.size()).map(|_| Lane::default()).collect();
        let mut order = BinaryHeap::with_capacity(lanes.len());
        for (rank, lane) in lanes.iter_mut().enumerate() {
            lane.times = next(rank)?;
            order.extend(lane.times.first().map(|time| Reverse((*time, rank))));
        }
        let mut step = Step { start_ns: window.0, end_ns: window.0, busy: 0 };
        let mut level = 0u32;
        while let Some(mut top) = order.peek_mut() {
            let Reverse((time, rank)) = *top;
            if time > step.end_ns {
                if level != step.busy {
                    if step.end_ns > step.start_ns {
                        each(step)?;
                    }
                    step = Step { start_ns: step.end_ns, end_ns: step.end_ns, busy: level };
                }
                step.end_ns = time;
            }
            let lane = &mut lanes[rank];
            level = if lane.busy { level - 1 } else { level + 1 };
            lane.busy = !lane.busy;
            lane.at += 1;
            if lane.at == lane.times.len() {
                (lane.times, lane.at) = (next(rank)?, 0);
            }
            match lane.times.get(lane.at) {
                Some(time) => *top = Reverse((*time, rank)),
                None => drop(PeekMut::pop(top)),
            }
        }
        // What is behind the last time, and the step that is still open.
        if level != step.busy && window.1 > step.end_ns {
            if step.end_ns > step.start_ns {
                each(step)?;
            }
            step = Step { start_ns: step.end_ns, end_ns: step.end_ns, busy: level };
        }
        step.end_ns = step.end_ns.max(window.1);
        if step.end_ns > step.start_ns { each(step) } else { Ok(()) }
    })
}
