//! The calls of all ranks in blocks: decoded ahead of the walk, and taken by it in any order between ranks. Memory is
//! bounded by a few blocks per rank.
use phasecast_analyzer::matching::FastMap;
use phasecast_trace::ahead::{Blocks, with_blocks};
use phasecast_trace::reader::RankReader;
use phasecast_trace::{Call, Flags, Part, Rank, Trace, TraceError};
use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};

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

    /// The call at `at` with its parts.
    #[inline]
    pub fn get(&self, at: usize) -> Option<(&Call, &[Part])> {
        let call = self.calls.get(at)?;
        let start = if at == 0 { 0 } else { self.ends[at - 1] as usize };
        Some((call, &self.parts[start..self.ends[at] as usize]))
    }
}

/// Reads blocks of one rank.
pub struct Source<'a> {
    reader: RankReader<'a>,
    length: usize,
    /// The last call read, held back until it is known whether it goes on.
    held: Option<(Call, Vec<Part>)>,
    ended: bool,
}

impl<'a> Source<'a> {
    /// The calls of `rank`.
    pub fn new(trace: &'a Trace, rank: Rank) -> Source<'a> {
        let length = block_length(trace.size() as usize);
        Source { reader: trace.calls(rank), length, held: None, ended: false }
    }

    /// The next block; an empty one at the end.
    ///
    /// # Errors
    /// If the rank's file is damaged.
    pub fn block(&mut self) -> Result<Block, TraceError> {
        let mut block = Block {
            calls: Vec::with_capacity(self.length + 1),
            parts: Vec::with_capacity(self.length),
            ends: Vec::with_capacity(self.length + 1),
        };
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

/// Calls `body` with the blocks of `trace`; with more than one thread, others decode ahead of it.
pub fn with_supply<R>(trace: &Trace, threads: usize, body: impl FnOnce(Supply<'_>) -> R) -> R {
    let sources = trace.ranks().map(|rank| Source::new(trace, rank)).collect();
    with_blocks(sources, threads, Source::block, body)
}

/// The calls of one rank by threads, in their order within each. A thread's next call may lie far behind those of others:
/// up to a bound, what is passed on the way is kept.
#[derive(Debug, Default)]
pub struct Threads {
    block: Block,
    at: usize,
    ended: bool,
    /// Calls that were passed, by thread.
    passed: FastMap<u16, std::collections::VecDeque<(Call, Vec<Part>)>>,
    kept: usize,
}

/// Calls of a rank that are kept while one of its threads waits for its next.
const MOST_KEPT: usize = 1 << 16;

/// What [`Threads::next`] found.
pub enum Next {
    /// The thread's next call; it was copied to where the caller wanted it.
    Call,
    /// A thread was met for the first time; ask again.
    Met(u16),
    /// None within the bound; there may be more.
    Far,
    /// The thread has no more calls.
    End,
}

/// Has a call brought into the cache: it lies where another thread has written it, and with many ranks it is wanted only
/// after a call of each other, so that the processor does not see it coming.
#[inline]
fn fetch_ahead(call: &Call) {
    let first = std::ptr::from_ref(call).cast::<i8>();
    // SAFETY: the last byte is one of the same call; a hint neither reads nor faults.
    unsafe {
        _mm_prefetch(first, _MM_HINT_T0);
        _mm_prefetch(first.add(size_of::<Call>() - 1), _MM_HINT_T0);
    }
}

impl Threads {
    /// The next call of a thread, written to `call` and `parts`; `known` says which threads were met already.
    ///
    /// # Errors
    /// If the rank's file is damaged.
    #[inline]
    pub fn next(
        &mut self,
        thread: u16,
        known: impl Fn(u16) -> bool,
        more: impl FnMut() -> Filled,
        call: &mut Call,
        parts: &mut Vec<Part>,
    ) -> Result<Next, TraceError> {
        if self.kept == 0
            && let Some((next, its)) = self.block.get(self.at)
            && next.thread == thread
        {
            *call = *next;
            parts.clear();
            if !its.is_empty() {
                parts.extend_from_slice(its);
            }
            self.at += 1;
            self.block.calls.get(self.at).inspect(|next| fetch_ahead(next));
            return Ok(Next::Call);
        }
        self.search(thread, known, more, call, parts)
    }

    /// Takes the next block where this one is at its end; false at the end of all.
    fn refill(&mut self, more: &mut impl FnMut() -> Filled) -> Result<bool, TraceError> {
        if self.at == self.block.calls.len() && !self.ended {
            (self.block, self.at) = (more()?, 0);
            self.ended = self.block.calls.is_empty();
        }
        Ok(self.at < self.block.calls.len())
    }

    #[cold]
    fn search(
        &mut self,
        thread: u16,
        known: impl Fn(u16) -> bool,
        mut more: impl FnMut() -> Filled,
        call: &mut Call,
        parts: &mut Vec<Part>,
    ) -> Result<Next, TraceError> {
        if let Some(queue) = self.passed.get_mut(&thread)
            && let Some((next, its)) = queue.pop_front()
        {
            self.kept -= 1;
            (*call, *parts) = (next, its);
            return Ok(Next::Call);
        }
        loop {
            if !self.refill(&mut more)? {
                return Ok(Next::End);
            }
            let Some((next, its)) = self.block.get(self.at) else { continue };
            if next.thread == thread {
                *call = *next;
                parts.clear();
                parts.extend_from_slice(its);
                self.at += 1;
                return Ok(Next::Call);
            }
            let other = next.thread;
            if !known(other) {
                return Ok(Next::Met(other));
            }
            if self.kept >= MOST_KEPT {
                return Ok(Next::Far);
            }
            self.passed.entry(other).or_default().push_back((*next, its.to_vec()));
            self.kept += 1;
            self.at += 1;
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
            if !self.refill(&mut more)? {
                return Ok(None);
            }
            let Some((next, its)) = self.block.get(self.at) else { continue };
            if !known(next.thread) {
                return Ok(Some(next.thread));
            }
            if self.kept >= MOST_KEPT {
                return Ok(None);
            }
            self.passed.entry(next.thread).or_default().push_back((*next, its.to_vec()));
            self.kept += 1;
            self.at += 1;
        }
    }
}
