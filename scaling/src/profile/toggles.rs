//! When each rank begins and ceases to be busy: times in order, of which the first, third, ... begin.
use super::{Busy, Part};
use phasecast_abi::{Class as Mpi, ProcId, by_name};
use phasecast_trace::reader::RankReader;
use phasecast_trace::{Class, Rank, Trace, TraceError};

/// Times of a block.
const BLOCK: usize = 4096;

/// Start and end of a part of the run, in ns from the origin of the trace.
///
/// # Errors
/// If the trace is damaged.
pub fn window(trace: &Trace, part: Part) -> Result<(u64, u64), TraceError> {
    let spans = || trace.ranks().map(|rank| trace.span(rank)).filter(|(a, b)| b > a);
    let start = spans().map(|(a, _)| a.0).min().unwrap_or(0);
    let end = spans().map(|(_, b)| b.0).max().unwrap_or(start).max(start);
    if part == Part::Whole {
        return Ok((start, end));
    }
    let (mut from, mut to) = (start, end);
    for rank in trace.ranks() {
        let mut reader = trace.calls(rank);
        let mut last = None;
        while let Some(call) = reader.next_call()? {
            if call.call.class == Class::Setup {
                match by_name(trace.procedure(call.call.proc)).and_then(ProcId::get).map(|procedure| procedure.class) {
                    Some(Mpi::Init) => from = from.max(call.call.exit.0),
                    // A program may end a session and go on with another.
                    Some(Mpi::Finalize | Mpi::SessionFinalize) => last = Some(call.call.enter.0),
                    _ => {}
                }
            }
        }
        to = to.min(last.unwrap_or(to));
    }
    Ok((from.min(end), to.max(from.min(end))))
}

/// Reads the times of one rank.
pub struct Source<'a> {
    reader: RankReader<'a>,
    busy: Busy,
    /// Where the rank's own part of the run lies.
    from: u64,
    to: u64,
    /// The last time given.
    last: u64,
    /// The times of a rank of several threads, whose calls overlap; those still to be given are behind `at`.
    sorted: Option<(Vec<u64>, usize)>,
    several: bool,
    begun: bool,
    ended: bool,
}

impl<'a> Source<'a> {
    /// The times of `rank` between `from` and `to`.
    pub fn new(trace: &'a Trace, rank: Rank, busy: Busy, (from, to): (u64, u64)) -> Source<'a> {
        let (start, end) = trace.span(rank);
        let (from, to) = (start.0.clamp(from, to), end.0.clamp(from, to));
        let several = trace.threads(rank) > 1;
        Source {
            reader: trace.calls(rank),
            busy,
            from,
            to,
            last: from,
            sorted: None,
            several,
            begun: false,
            ended: false,
        }
    }

    /// The next times; none at the end.
    ///
    /// # Errors
    /// If the rank's file is damaged.
    pub fn block(&mut self) -> Result<Vec<u64>, TraceError> {
        if self.several && self.sorted.is_none() {
            self.sorted = Some((self.united()?, 0));
        }
        if let Some((times, at)) = &mut self.sorted {
            let end = (*at + BLOCK).min(times.len());
            let block = times[*at..end].to_vec();
            *at = end;
            return Ok(block);
        }
        let mut block = Vec::with_capacity(BLOCK);
        if !self.begun {
            self.begun = true;
            block.push(self.from);
        }
        while !self.ended && block.len() < BLOCK {
            let Some(call) = self.reader.next_call()? else {
                self.ended = true;
                block.push(self.to.max(self.last));
                break;
            };
            let call = call.call;
            if self.busy.waits(call.class, call.flags) {
                let enter = call.enter.0.clamp(self.last, self.to);
                let exit = call.exit.0.clamp(enter, self.to);
                block.extend([enter, exit]);
                self.last = exit;
            }
        }
        Ok(block)
    }

    /// All times of a rank of several threads: it is not busy while any of them waits.
    fn united(&mut self) -> Result<Vec<u64>, TraceError> {
        let mut waits = Vec::new();
        while let Some(call) = self.reader.next_call()? {
            let call = call.call;
            if self.busy.waits(call.class, call.flags) {
                let enter = call.enter.0.clamp(self.from, self.to);
                waits.push((enter, call.exit.0.clamp(enter, self.to)));
            }
        }
        waits.sort_unstable();
        let mut times = vec![self.from];
        let mut open: Option<(u64, u64)> = None;
        for (enter, exit) in waits {
            match &mut open {
                Some((_, end)) if enter <= *end => *end = exit.max(*end),
                _ => {
                    times.extend(open.into_iter().flat_map(|(enter, exit)| [enter, exit]));
                    open = Some((enter, exit));
                }
            }
        }
        times.extend(open.into_iter().flat_map(|(enter, exit)| [enter, exit]));
        times.push(self.to);
        Ok(times)
    }
}
