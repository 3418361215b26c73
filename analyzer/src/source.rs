//! The events of a trace in compact form, and the feed that decodes many ranks at once ahead of a consumer that takes
//! them in an order of its own. Memory is bounded by a few blocks per rank.
use crate::error::AnalyzeError;
use phasecast_trace::ahead::{Blocks, with_blocks};
use phasecast_trace::reader::RankReader;
use phasecast_trace::{Event, EventKind, Flags, Rank, Trace};

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
    /// Whether it is the last event of its call: a cut can only lie after such a one.
    pub last: bool,
    /// Whether the call may return before the operation is complete.
    pub nonblocking: bool,
}

impl Item {
    fn new(event: &Event, nonblocking: bool) -> Item {
        Item {
            bytes: event.bytes,
            exit: event.exit.0,
            peer: event.peer,
            tag: event.tag,
            comm: event.comm.0,
            proc: event.proc.0,
            kind: event.kind,
            last: false,
            nonblocking,
        }
    }
}

const BLOCK: usize = 2048;

/// Streams the items of one rank.
pub struct Items<'a> {
    reader: RankReader<'a>,
    block: Vec<Item>,
    at: usize,
    /// The last event read, held back until it is known whether its call goes on.
    held: Option<Item>,
}

impl<'a> Items<'a> {
    /// The items of `rank`.
    pub fn new(trace: &'a Trace, rank: Rank) -> Items<'a> {
        Items { reader: trace.calls(rank), block: Vec::new(), at: 0, held: None }
    }

    /// The next item, or none at the end.
    ///
    /// # Errors
    /// If the rank's file is damaged.
    #[inline]
    pub fn next_item(&mut self) -> Result<Option<Item>, AnalyzeError> {
        if self.at == self.block.len() {
            let mut block = std::mem::take(&mut self.block);
            self.fill(&mut block)?;
            (self.block, self.at) = (block, 0);
        }
        let item = self.block.get(self.at).copied();
        self.at += usize::from(item.is_some());
        Ok(item)
    }

    /// Replaces the contents of `block` by the next items, about [`BLOCK`] of them; none at the end.
    fn fill(&mut self, block: &mut Vec<Item>) -> Result<(), AnalyzeError> {
        block.clear();
        block.extend(self.held.take());
        while block.len() <= BLOCK {
            let Some(call) = self.reader.next_call()? else {
                block.last_mut().into_iter().for_each(|item| item.last = true);
                return Ok(());
            };
            if !call.call.flags.has(Flags::CONTINUED)
                && let Some(before) = block.last_mut()
            {
                before.last = true;
            }
            let nonblocking = call.call.flags.has(Flags::NONBLOCKING) || !call.parts.is_empty();
            call.events().for_each(|event| block.push(Item::new(&event, nonblocking)));
        }
        self.held = block.pop();
        Ok(())
    }

    fn block(&mut self) -> Result<Vec<Item>, AnalyzeError> {
        let mut block = Vec::with_capacity(BLOCK + 8);
        self.fill(&mut block)?;
        Ok(block)
    }
}

type Filled = Result<Vec<Item>, AnalyzeError>;

/// The items of all ranks, to be taken in any order between ranks.
pub struct Feed<'a> {
    next: Blocks<'a, Filled>,
    lanes: Vec<(Vec<Item>, usize)>,
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
        if let Some(item) = lane.0.get(lane.1) {
            return Ok(Some(*item));
        }
        self.refill(rank)
    }

    /// Moves on past the item that [`Feed::peek`] gave.
    #[inline]
    pub fn advance(&mut self, rank: usize) {
        self.lanes[rank].1 += 1;
        self.taken += 1;
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
        self.ended[rank] = block.is_empty();
        self.lanes[rank] = (block, 0);
        Ok(self.lanes[rank].0.first().copied())
    }
}

/// Calls `body` with a feed of `trace`; with more than one thread, all but one decode ahead of it.
///
/// # Errors
/// Those of `body`.
pub fn with_feed<R>(
    trace: &Trace,
    threads: usize,
    body: impl FnOnce(&mut Feed<'_>) -> Result<R, AnalyzeError>,
) -> Result<R, AnalyzeError> {
    let ranks = trace.size() as usize;
    let items = trace.ranks().map(|rank| Items::new(trace, rank)).collect();
    with_blocks(items, threads, Items::block, |next| {
        body(&mut Feed { next, lanes: vec![(Vec::new(), 0); ranks], ended: vec![false; ranks], taken: 0 })
    })
}
