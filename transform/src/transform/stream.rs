//! The calls of all ranks in blocks: decoded ahead of the walk, taken by it in any order between ranks, given their times on
//! the target in position, and so written. Memory is bounded by a few blocks per rank.
use crossbeam_channel::Receiver;
use phasecast_analyzer::matching::FastMap;
use phasecast_trace::ahead::{Blocks, with_blocks};
use phasecast_trace::reader::RankReader;
use phasecast_trace::{Call, Flags, Nanos, Part, Rank, Trace, TraceError};
use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
use std::collections::VecDeque;

/// Calls of a block: fewer of each rank where there are many, so that what is walked through in turn stays in the cache.
pub fn block_length(ranks: usize) -> usize {
    ((1 << 14) / ranks.max(1)).clamp(64, 1024)
}

/// Some calls of a rank with their parts.
#[derive(Debug, Default)]
pub struct Block {
    /// The calls; none is [`Flags::CONTINUED`].
    pub calls: Vec<Call>,
    /// All their parts.
    pub parts: Vec<Part>,
    /// For each call, where its parts end.
    pub ends: Vec<u32>,
}

impl Block {
    /// Empties it.
    pub fn clear(&mut self) {
        self.calls.clear();
        self.parts.clear();
        self.ends.clear();
    }

    /// Appends a call.
    #[inline]
    pub fn push(&mut self, call: &Call, parts: &[Part]) {
        self.calls.push(*call);
        if !parts.is_empty() {
            self.parts.extend_from_slice(parts);
        }
        self.ends.push(self.parts.len() as u32);
    }

    /// The parts of the call at `at`.
    #[inline]
    pub fn parts(&self, at: usize) -> &[Part] {
        let start = if at == 0 { 0 } else { self.ends[at - 1] as usize };
        &self.parts[start..self.ends[at] as usize]
    }
}

/// Reads blocks of one rank.
pub struct Source<'a> {
    reader: RankReader<'a>,
    length: usize,
    /// The last call read, held back until it is known whether it goes on.
    held: Option<(Call, Vec<Part>)>,
    ended: bool,
    /// Blocks that were used.
    spare: Receiver<Block>,
}

impl<'a> Source<'a> {
    /// The calls of `rank`, in `spare` blocks as long as there are any.
    pub fn new(trace: &'a Trace, rank: Rank, spare: Receiver<Block>) -> Source<'a> {
        let length = block_length(trace.size() as usize);
        Source { reader: trace.calls(rank), length, held: None, ended: false, spare }
    }

    /// The next block; an empty one at the end.
    ///
    /// # Errors
    /// If the rank's file is damaged.
    pub fn block(&mut self) -> Result<Block, TraceError> {
        let mut block = self.spare.try_recv().unwrap_or_else(|_| Block {
            calls: Vec::with_capacity(self.length + 1),
            parts: Vec::with_capacity(self.length),
            ends: Vec::with_capacity(self.length + 1),
        });
        if let Some((call, parts)) = self.held.take() {
            block.push(&call, &parts);
        }
        while !self.ended && block.calls.len() <= self.length {
            let Some(item) = self.reader.next_call()? else {
                self.ended = true;
                break;
            };
            if item.call.flags.has(Flags::CONTINUED)
                && let (Some(last), Some(end)) = (block.calls.last_mut(), block.ends.last_mut())
            {
                block.parts.extend_from_slice(item.parts);
                *end = block.parts.len() as u32;
                last.exit = last.exit.max(item.call.exit);
                continue;
            }
            block.push(item.call, item.parts);
        }
        if !self.ended
            && let Some(call) = block.calls.pop()
        {
            block.ends.pop();
            let start = block.ends.last().map_or(0, |end| *end as usize);
            self.held = Some((call, block.parts.split_off(start)));
        }
        Ok(block)
    }
}

type Filled = Result<Block, TraceError>;

/// Gives the next block of a rank.
pub type Supply<'a> = Blocks<'a, Filled>;

/// Calls `body` with the blocks of `trace`; with more than one thread, others decode ahead of it. Emptied blocks may come
/// back as `spare`.
pub fn with_supply<R>(trace: &Trace, threads: usize, spare: &Receiver<Block>, body: impl FnOnce(Supply<'_>) -> R) -> R {
    let sources = trace.ranks().map(|rank| Source::new(trace, rank, spare.clone())).collect();
    with_blocks(sources, threads, Source::block, body)
}

/// Where a call stands among those of its rank.
#[derive(Clone, Copy, Debug, Default)]
pub struct Position {
    /// Counts the rank's blocks.
    block: usize,
    at: usize,
}

/// The calls of one rank by threads, in their order within each. A thread's next call may lie far behind those of others:
/// up to a bound, what is passed on the way is kept.
#[derive(Debug, Default)]
pub struct Threads {
    /// The blocks with calls that are not done, each with the number of these.
    blocks: VecDeque<(Block, usize)>,
    /// Blocks that are done.
    done: usize,
    /// Where the first call stands in the last block that was not looked at.
    at: usize,
    ended: bool,
    /// Calls that were passed, by thread.
    passed: FastMap<u16, VecDeque<Position>>,
    kept: usize,
}

/// Calls of a rank that are kept while one of its threads waits for its next.
const MOST_KEPT: usize = 1 << 16;

/// What [`Threads::next`] found.
pub enum Next {
    /// Where the thread's next call stands.
    Call(Position),
    /// A thread was met for the first time; ask again.
    Met(u16),
    /// None within the bound; there may be more.
    Far,
    /// The thread has no more calls.
    End,
}

/// How many calls ahead of the walk are brought into the cache.
const AHEAD: usize = 4;

/// Has something brought into the cache: it lies where another thread has written it, and the processor does not see it
/// coming.
#[inline]
fn fetch_ahead<T>(item: &T) {
    let first = std::ptr::from_ref(item).cast::<i8>();
    // SAFETY: the last byte is one of the same item; a hint neither reads nor faults.
    unsafe {
        _mm_prefetch(first, _MM_HINT_T0);
        _mm_prefetch(first.add(size_of::<T>() - 1), _MM_HINT_T0);
    }
}

impl Threads {
    /// The next call of a thread; `known` says which threads were met already.
    ///
    /// # Errors
    /// If the rank's file is damaged.
    #[inline]
    pub fn next(
        &mut self,
        thread: u16,
        known: impl Fn(u16) -> bool,
        more: impl FnMut() -> Filled,
    ) -> Result<Next, TraceError> {
        if self.kept == 0
            && let Some((block, _)) = self.blocks.back()
            && let Some(next) = block.calls.get(self.at)
            && next.thread == thread
        {
            let ahead = self.at + AHEAD;
            if let (Some(call), Some(end)) = (block.calls.get(ahead), block.ends.get(ahead - 1)) {
                fetch_ahead(call);
                block.parts.get(*end as usize).inspect(|part| fetch_ahead(*part));
            }
            return Ok(Next::Call(self.pass()));
        }
        self.search(thread, known, more)
    }

    /// A call that is not done.
    #[inline]
    pub fn call(&self, position: Position) -> &Call {
        &self.blocks[position.block - self.done].0.calls[position.at]
    }

    /// The parts of a call that is not done.
    #[inline]
    pub fn parts(&self, position: Position) -> &[Part] {
        self.blocks[position.block - self.done].0.parts(position.at)
    }

    /// A call has its times on the target. True if the first block may be done by that.
    #[inline]
    pub fn finish(&mut self, position: Position, enter: Nanos, exit: Nanos) -> bool {
        let (block, open) = &mut self.blocks[position.block - self.done];
        let call = &mut block.calls[position.at];
        (call.enter, call.exit) = (enter, exit);
        *open -= 1;
        *open == 0
    }

    /// The first block, if all its calls have their times.
    pub fn take_done(&mut self) -> Option<Block> {
        self.blocks.front().filter(|(_, open)| *open == 0)?;
        self.done += 1;
        self.blocks.pop_front().map(|(block, _)| block)
    }

    /// Goes on behind the first call that was not looked at.
    #[inline]
    fn pass(&mut self) -> Position {
        let position = Position { block: self.done + self.blocks.len() - 1, at: self.at };
        self.at += 1;
        position
    }

    /// The first call that was not looked at; none at the end of all.
    fn ahead(&mut self, more: &mut impl FnMut() -> Filled) -> Result<Option<&Call>, TraceError> {
        let read =
            |blocks: &VecDeque<(Block, usize)>, at| blocks.back().is_none_or(|(block, _)| at == block.calls.len());
        if read(&self.blocks, self.at) && !self.ended {
            let block = more()?;
            self.ended = block.calls.is_empty();
            if !self.ended {
                let open = block.calls.len();
                self.blocks.push_back((block, open));
                self.at = 0;
            }
        }
        Ok(self.blocks.back().and_then(|(block, _)| block.calls.get(self.at)))
    }

    /// Keeps the first call that was not looked at for its thread; false if there are too many.
    fn keep(&mut self, thread: u16) -> bool {
        if self.kept >= MOST_KEPT {
            return false;
        }
        let position = self.pass();
        self.passed.entry(thread).or_default().push_back(position);
        self.kept += 1;
        true
    }

    #[cold]
    fn search(
        &mut self,
        thread: u16,
        known: impl Fn(u16) -> bool,
        mut more: impl FnMut() -> Filled,
    ) -> Result<Next, TraceError> {
        if let Some(position) = self.passed.get_mut(&thread).and_then(VecDeque::pop_front) {
            self.kept -= 1;
            return Ok(Next::Call(position));
        }
        loop {
            let Some(next) = self.ahead(&mut more)? else { return Ok(Next::End) };
            let other = next.thread;
            if other == thread {
                return Ok(Next::Call(self.pass()));
            }
            if !known(other) {
                return Ok(Next::Met(other));
            }
            if !self.keep(other) {
                return Ok(Next::Far);
            }
        }
    }

    /// Looks ahead for a thread that was not met before.
    ///
    /// # Errors
    /// If the rank's file is damaged.
    pub fn look(
        &mut self,
        known: impl Fn(u16) -> bool,
        mut more: impl FnMut() -> Filled,
    ) -> Result<Option<u16>, TraceError> {
        loop {
            let Some(next) = self.ahead(&mut more)? else { return Ok(None) };
            let thread = next.thread;
            if !known(thread) {
                return Ok(Some(thread));
            }
            if !self.keep(thread) {
                return Ok(None);
            }
        }
    }
}
