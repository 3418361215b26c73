//! The stream of completed communications is the coordinate in which cuts are carried from run to run. It serves only
//! if it is the same in every run: here two base runs are compared. No cut may lie among events that change places, nor
//! after the first that is another one, which is named: a program that runs for a given time is cut before that.
use crate::counted::Counted;
use crate::error::AnalyzeError;
use crate::parallel::{self, Stage};
use crate::source::{Item, Items};
use crate::symbol::{Symbols, mix};
use phasecast_trace::{EventKind, ProcId, Rank, Trace};
use std::collections::VecDeque;
use std::sync::atomic::Ordering;

/// How far events may change places: programs that serve what comes first do so between one synchronisation and the next.
const WINDOW: usize = 1 << 16;

/// A stretch of a rank's stream in which the runs have the same events in another order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Zone {
    /// Events before it.
    pub start: u64,
    /// Its length in events.
    pub length: u64,
}

impl Zone {
    /// From `start` to the end of the stream: what comes there is another one.
    fn rest(start: u64) -> Zone {
        Zone { start, length: u64::MAX - start }
    }

    /// Whether it is the rest of the stream, with other events rather than the same in another order.
    pub fn is_rest(&self) -> bool {
        self.end() == u64::MAX
    }

    /// Events before its end.
    pub fn end(&self) -> u64 {
        self.start + self.length
    }

    /// Whether a cut after so many events would lie within it.
    pub fn forbids(&self, events: u64) -> bool {
        self.start < events && events < self.end()
    }
}

/// What a comparison of two runs found.
pub struct Comparison {
    /// For each rank, where no cut may lie: where events change places, and from the first that differs on.
    pub zones: Vec<Vec<Zone>>,
    /// The first event that differs, in words; none if the streams are the same.
    pub difference: Option<String>,
}

/// Compares the streams of all ranks of two runs, each by what is counted of it and with the symbols of its own procedures.
///
/// # Errors
/// If a file is damaged.
pub fn compare(
    [first, second]: [&Trace; 2],
    counted: [&Counted; 2],
    symbols: [&Symbols; 2],
    threads: usize,
    stage: &Stage<'_>,
) -> Result<Comparison, AnalyzeError> {
    let ranks = parallel::map(first.size() as usize, threads, stage, |rank, done| {
        let rank = Rank(rank as u32);
        let mut sides = [(first, 0), (second, 1)].map(|(trace, of)| Side::new(trace, counted[of], rank, symbols[of]));
        let mut zones = Vec::new();
        let mut told = 0;
        loop {
            let [a, b] = &mut sides;
            let (at, pair) = (a.taken, (a.peek(0)?, b.peek(0)?));
            match pair {
                (None, None) => return Ok::<_, AnalyzeError>((zones, None)),
                (Some(x), Some(y)) if a.symbols.item(&x) == b.symbols.item(&y) => {
                    a.take();
                    b.take();
                }
                _ => match reordered(&mut sides)? {
                    Some(zone) => zones.push(zone),
                    None => {
                        zones.push(Zone::rest(at));
                        return Ok((zones, Some((at, difference(first, second, rank, at, pair)))));
                    }
                },
            }
            if sides[0].taken - told >= 1 << 16 {
                done.fetch_add(2 * (sides[0].taken - told), Ordering::Relaxed);
                told = sides[0].taken;
            }
        }
    })?;
    let first = ranks.iter().filter_map(|(_, other)| other.as_ref()).min_by_key(|(at, _)| *at);
    let difference = first.map(|(_, words)| words.clone());
    Ok(Comparison { zones: ranks.into_iter().map(|(zones, _)| zones).collect(), difference })
}

struct Side<'a> {
    symbols: &'a Symbols,
    items: Items<'a>,
    ahead: VecDeque<Item>,
    taken: u64,
}

impl<'a> Side<'a> {
    fn new(trace: &'a Trace, counted: &'a Counted, rank: Rank, symbols: &'a Symbols) -> Side<'a> {
        Side { symbols, items: Items::new(trace, counted, rank), ahead: VecDeque::new(), taken: 0 }
    }

    fn peek(&mut self, far: usize) -> Result<Option<Item>, AnalyzeError> {
        while self.ahead.len() <= far {
            match self.items.next_item()? {
                Some(item) => self.ahead.push_back(item),
                None => return Ok(None),
            }
        }
        Ok(self.ahead.get(far).copied())
    }

    fn take(&mut self) {
        self.ahead.pop_front();
        self.taken += 1;
    }
}

/// Looks for the shortest stretch after which both sides have had the same events.
fn reordered(sides: &mut [Side<'_>; 2]) -> Result<Option<Zone>, AnalyzeError> {
    let start = sides[0].taken;
    let mut sums = [0u64; 2];
    for far in 0..WINDOW {
        for (sum, side) in sums.iter_mut().zip(sides.iter_mut()) {
            let Some(item) = side.peek(far)? else { return Ok(None) };
            *sum = sum.wrapping_add(mix(side.symbols.item(&item)));
        }
        if sums[0] == sums[1] {
            let length = far as u64 + 1;
            for side in sides.iter_mut() {
                (0..length).for_each(|_| side.take());
            }
            return Ok(Some(Zone { start, length }));
        }
    }
    Ok(None)
}

fn difference(first: &Trace, second: &Trace, rank: Rank, at: u64, pair: (Option<Item>, Option<Item>)) -> String {
    let say = |trace: &Trace, item: Option<Item>| match item {
        None => "ends".to_string(),
        Some(item) => {
            let name = trace.procedure(ProcId(item.proc));
            match item.kind {
                EventKind::Send => format!("sends {} bytes to rank {} in {name}", item.bytes, item.peer),
                EventKind::Recv => format!("has received {} bytes from rank {} in {name}", item.bytes, item.peer),
                EventKind::Collective => format!("takes part in {name} with {} bytes", item.bytes),
            }
        }
    };
    format!(
        "rank {rank}, event {at} of its stream: the first run {}, the second {}",
        say(first, pair.0),
        say(second, pair.1)
    )
}

/// The exits of the counted events after which `positions` (ascending, for each rank) lie, in another run.
///
/// # Errors
/// If a file is damaged.
pub fn exits_at(
    trace: &Trace,
    counted: &Counted,
    positions: &[Vec<u64>],
    threads: usize,
    stage: &Stage<'_>,
) -> Result<Vec<Vec<u64>>, AnalyzeError> {
    parallel::map(positions.len(), threads, stage, |rank, done| {
        let id = Rank(rank as u32);
        let mut items = Items::new(trace, counted, id);
        let start = trace.span(id).0.0;
        let (mut events, mut exit) = (0, start);
        let mut exits = Vec::with_capacity(positions[rank].len());
        for &position in &positions[rank] {
            while events < position {
                let Some(item) = items.next_item()? else { break };
                exit = exit.max(item.exit);
                events += 1;
                if events & 0xffff == 0 {
                    done.fetch_add(1 << 16, Ordering::Relaxed);
                }
            }
            exits.push(exit);
        }
        Ok(exits)
    })
}
