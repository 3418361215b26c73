//! The events of a trace in compact form, and the feed that decodes many ranks at once ahead of a consumer that takes
//! them in an order of its own. Memory is bounded by a few blocks per rank.
use crate::counted::Counted;
use crate::error::AnalyzeError;
use phasecast_trace::ahead::{Blocks, with_blocks};
use phasecast_trace::reader::{Stream, View};
use phasecast_trace::{Call, Class, EventKind, Flags, Part, Rank, Trace};

/// One event, as far as the analysis needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item {
    /// Bytes sent, received or contributed.
    pub bytes: u64,
    /// The exit of its call, in ns.
    pub exit: u64,
    /// Destination, source or root.
    pub peer: i32,
    /// The tag of a message.
    pub tag: i32,
    /// The communicator.
    pub comm: u32,
    /// The procedure.
    pub proc: u16,
    /// Its kind.
    pub kind: EventKind,
    /// Whether it is the last event of its call, and a cut can lie after it.
    pub last: bool,
    /// Whether the call may return before the operation is complete.
    pub nonblocking: bool,
    /// Whether its call has started a send in partitions: until all of them are ready no cut can lie.
    pub partitioned: bool,
}

/// A message that a probe has found. It is no event; the message is received later, if at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    /// What an item of its receive says, but for its exit.
    pub item: Item,
    /// Whether no other call finds it any more.
    pub matched: bool,
}

/// What a shape tells of the items of its calls or parts.
#[derive(Clone, Copy)]
pub(crate) struct Seen {
    /// The item but for its exit.
    pub(crate) item: Item,
    /// Whether it is one.
    pub(crate) is_event: bool,
    /// Whether it goes on with the call before it.
    continued: bool,
    /// Of a probe that found a message, whether it has matched it.
    found: Option<bool>,
}

impl View for Seen {
    fn of_call(call: &Call) -> Seen {
        let found = call.class == Class::Probe && call.flags.has(Flags::FOUND) && call.peer >= 0;
        let item = Item {
            bytes: call.bytes,
            exit: 0,
            peer: call.peer,
            tag: call.tag,
            comm: call.comm.0,
            proc: call.proc.0,
            kind: call.event().unwrap_or(EventKind::Recv),
            last: false,
            nonblocking: call.flags.has(Flags::NONBLOCKING),
            partitioned: call.flags.has(Flags::PARTITIONED),
        };
        Seen {
            item,
            is_event: call.event().is_some(),
            continued: call.flags.has(Flags::CONTINUED),
            found: found.then(|| call.flags.has(Flags::MATCHED)),
        }
    }

    fn of_part(part: &Part) -> Seen {
        let item = Item {
            bytes: part.bytes,
            exit: 0,
            peer: part.peer,
            tag: part.tag,
            comm: part.comm.0,
            proc: 0,
            kind: part.event().unwrap_or(EventKind::Collective),
            last: false,
            nonblocking: true,
            partitioned: false,
        };
        Seen { item, is_event: part.event().is_some(), continued: false, found: None }
    }
}

const BLOCK: usize = 2048;

/// A stretch of a rank's stream.
#[derive(Default)]
struct Block {
    items: Vec<Item>,
    /// What was found by probes, each with the number of items before it.
    probes: Vec<(usize, Probe)>,
}

/// Streams the items of one rank.
pub struct Items<'a> {
    stream: Stream<'a, Seen>,
    counted: &'a Counted,
    block: Block,
    at: usize,
    /// The last event read, held back until it is known whether its call goes on, with the probes before it.
    held: Block,
}

impl<'a> Items<'a> {
    /// The items of `rank` that are `counted`.
    pub fn new(trace: &'a Trace, counted: &'a Counted, rank: Rank) -> Items<'a> {
        Items { stream: trace.view(rank), counted, block: Block::default(), at: 0, held: Block::default() }
    }

    /// The next item, or none at the end.
    ///
    /// # Errors
    /// If the rank's file is damaged.
    #[inline]
    pub fn next_item(&mut self) -> Result<Option<Item>, AnalyzeError> {
        if self.at == self.block.items.len() {
            let mut block = std::mem::take(&mut self.block);
            self.fill(&mut block)?;
            (self.block, self.at) = (block, 0);
        }
        let item = self.block.items.get(self.at).copied();
        self.at += usize::from(item.is_some());
        Ok(item)
    }

    /// Replaces the contents of `block` by the next items, about [`BLOCK`] of them; none at the end.
    fn fill(&mut self, block: &mut Block) -> Result<(), AnalyzeError> {
        let Block { items, probes } = block;
        items.clear();
        probes.clear();
        items.append(&mut self.held.items);
        probes.append(&mut self.held.probes);
        while items.len() <= BLOCK {
            let Some(call) = self.stream.next_call()? else {
                items.last_mut().into_iter().for_each(|item| item.last = true);
                return Ok(());
            };
            let own = Item { exit: call.exit.0, ..call.call.item };
            if !call.call.continued
                && let Some(before) = items.last_mut()
            {
                before.last = !before.partitioned;
            }
            let own_event =
                call.call.is_event.then_some(Item { nonblocking: own.nonblocking || call.has_parts(), ..own });
            let parts = call.parts().filter(|part| part.is_event);
            let parts =
                parts.map(|part| Item { exit: own.exit, proc: own.proc, partitioned: own.partitioned, ..part.item });
            items.extend(own_event.into_iter().chain(parts).filter(|item| self.counted.counts(item)));
            if let Some(matched) = call.call.found
                && self.counted.counts(&own)
            {
                let probe = (items.len(), Probe { item: call.call.item, matched });
                // A program may look again and again at a message that it does not take.
                if matched || probes.last() != Some(&probe) {
                    probes.push(probe);
                }
            }
        }
        self.held.items.extend(items.pop());
        let before = probes.partition_point(|(at, _)| *at < items.len());
        self.held.probes.extend(probes.drain(before..).map(|(_, probe)| (0, probe)));
        Ok(())
    }

    fn block(&mut self) -> Result<Block, AnalyzeError> {
        let mut block = Block { items: Vec::with_capacity(BLOCK + 8), probes: Vec::new() };
        self.fill(&mut block)?;
        Ok(block)
    }
}

type Filled = Result<Block, AnalyzeError>;

/// Where the feed stands in a rank's block.
#[derive(Default)]
struct Lane {
    block: Block,
    items: usize,
    probes: usize,
}

/// The items of many ranks, to be taken in any order between ranks.
pub struct Feed<'a> {
    next: Blocks<'a, Filled>,
    lanes: Vec<Lane>,
    ended: Vec<bool>,
    taken: u64,
}

impl Feed<'_> {
    /// The next item of a rank, which stays there; none at the end of its stream.
    ///
    /// # Errors
    /// If the rank's file is damaged.
    #[inline]
    pub fn peek(&mut self, rank: usize) -> Result<Option<Item>, AnalyzeError> {
        let lane = &self.lanes[rank];
        if let Some(item) = lane.block.items.get(lane.items) {
            return Ok(Some(*item));
        }
        self.refill(rank)
    }

    /// Moves on past the item that [`Feed::peek`] gave.
    #[inline]
    pub fn advance(&mut self, rank: usize) {
        self.lanes[rank].items += 1;
        self.taken += 1;
    }

    /// What a probe found before the item that [`Feed::peek`] gave, one after the other.
    #[inline]
    pub fn probe(&mut self, rank: usize) -> Option<Probe> {
        let lane = &mut self.lanes[rank];
        let &(before, probe) = lane.block.probes.get(lane.probes)?;
        (before <= lane.items).then(|| {
            lane.probes += 1;
            probe
        })
    }

    /// Items taken so far, of all ranks.
    pub fn taken(&self) -> u64 {
        self.taken
    }

    fn refill(&mut self, rank: usize) -> Result<Option<Item>, AnalyzeError> {
        if self.ended[rank] {
            return Ok(None);
        }
        let block = (self.next)(rank)?;
        self.ended[rank] = block.items.is_empty();
        self.lanes[rank] = Lane { block, items: 0, probes: 0 };
        Ok(self.lanes[rank].block.items.first().copied())
    }
}

/// Calls `body` with a feed of what is `counted` of these ranks of `trace`, which it numbers from 0; with more than one
/// thread, all but one decode ahead of it.
///
/// # Errors
/// Those of `body`.
pub fn with_feed<R>(
    trace: &Trace,
    counted: &Counted,
    ranks: impl Iterator<Item = Rank>,
    threads: usize,
    body: impl FnOnce(&mut Feed<'_>) -> Result<R, AnalyzeError>,
) -> Result<R, AnalyzeError> {
    let items: Vec<Items<'_>> = ranks.map(|rank| Items::new(trace, counted, rank)).collect();
    let (lanes, ended) = (items.iter().map(|_| Lane::default()).collect(), vec![false; items.len()]);
    with_blocks(items, threads, Items::block, |next| body(&mut Feed { next, lanes, ended, taken: 0 }))
}
