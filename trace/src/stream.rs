//! Streams the calls of one rank, chunk after chunk, its threads merged by the exits of their calls.
//!
//! What a shape refers to is looked up once a chunk: a call is then a copy of it with two times.
use crate::clock::Clock;
use crate::codec::Unpacker;
use crate::decode::Decoder;
use crate::encode::{PART, Shape};
use crate::error::TraceError;
use crate::model::{Call, CallRef, PEER_ANY, Part};
use crate::rank_file::{Chunk, RankFile, Thread};
use crate::reader::{Loaded, Trace};
use crate::units::{CommId, Nanos, Rank};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::Path;

/// The most threads of a rank that may be at work at the same time: a bound on memory.
const MAX_OPEN: usize = 4096;

/// Streams the calls of one rank: see [`Trace::calls`].
pub struct RankReader<'a> {
    rank: Option<Source<'a>>,
    scratch: Scratch,
    /// Threads not yet begun, the next one last.
    later: Vec<Thread>,
    lanes: Vec<Option<Box<Lane>>>,
    /// Exit (clock units) of the next call of each lane, thread, place in `lanes`.
    order: BinaryHeap<Reverse<(u64, u16, usize)>>,
    /// The lane of the call handed out last.
    current: Option<usize>,
}

/// Memory that all threads of a rank use in turn.
#[derive(Default)]
struct Scratch {
    unpacker: Unpacker,
    stored: Vec<u8>,
}

/// What all threads of a rank share.
#[derive(Clone, Copy)]
struct Source<'a> {
    loaded: &'a Loaded,
    size: u32,
}

impl<'a> RankReader<'a> {
    pub(crate) fn new(trace: &'a Trace, rank: Rank) -> RankReader<'a> {
        let source = trace.loaded(rank).map(|loaded| Source { loaded, size: trace.size() });
        let mut later = source.map_or_else(Vec::new, |source| source.loaded.file.threads());
        later.sort_by_key(|thread| Reverse((thread.base, thread.number)));
        RankReader {
            rank: source,
            scratch: Scratch::default(),
            later,
            lanes: Vec::new(),
            order: BinaryHeap::new(),
            current: None,
        }
    }

    /// The next call, or none at the end.
    ///
    /// # Errors
    /// If a chunk is damaged.
    #[inline]
    pub fn next_call(&mut self) -> Result<Option<CallRef<'_>>, TraceError> {
        let Some(source) = self.rank else { return Ok(None) };
        if let Some(at) = self.current
            && let Some(lane) = &mut self.lanes[at]
        {
            let more = lane.advance(source, &mut self.scratch)?;
            // A rank of one thread needs no order.
            if !more || !self.order.is_empty() || !self.later.is_empty() {
                self.reorder(at, more);
            }
        }
        if self.current.is_none() {
            self.begin_threads(source)?;
            self.current = self.order.pop().map(|Reverse((_, _, at))| at);
        }
        let lane = self.current.and_then(|at| self.lanes[at].as_deref());
        Ok(lane.map(|lane| CallRef { call: &lane.call, parts: &lane.parts }))
    }

    /// Puts the lane back into the order, or drops it at its end.
    fn reorder(&mut self, at: usize, more: bool) {
        self.current = None;
        match &self.lanes[at] {
            Some(lane) if more => self.order.push(Reverse((lane.exit, lane.thread.number, at))),
            _ => self.lanes[at] = None,
        }
    }

    /// Begins the threads that may have the next call.
    fn begin_threads(&mut self, source: Source<'a>) -> Result<(), TraceError> {
        while let Some(thread) = self.later.last() {
            if self.order.peek().is_some_and(|Reverse((exit, ..))| *exit < thread.base) {
                break;
            }
            if self.order.len() >= MAX_OPEN {
                let what = format!("more than {MAX_OPEN} threads are at work at the same time");
                return Err(TraceError::corrupt(&source.loaded.file.path, 0, what));
            }
            let Some(thread) = self.later.pop() else { break };
            let mut lane = Box::new(Lane::new(thread));
            if lane.advance(source, &mut self.scratch)? {
                let place = self.lanes.iter().position(Option::is_none).unwrap_or(self.lanes.len());
                self.order.push(Reverse((lane.exit, lane.thread.number, place)));
                if place == self.lanes.len() {
                    self.lanes.push(None);
                }
                self.lanes[place] = Some(lane);
            }
        }
        Ok(())
    }
}

/// A shape as it is in the whole run.
#[derive(Clone, Copy)]
enum Resolved {
    Call(Call),
    Part(Part),
}

/// One thread's calls.
struct Lane {
    thread: Thread,
    decoder: Decoder,
    /// Where the chunk in the decoder stands, and the items it must have.
    chunk: Option<(u64, Option<u32>)>,
    resolved: Vec<Resolved>,
    /// The communicator of the last shape resolved: the rank's own number, and that of the run.
    comm: Option<(u32, CommId)>,
    slots: Vec<u16>,
    call: Call,
    parts: Vec<Part>,
    exit: u64,
}

impl Lane {
    fn new(thread: Thread) -> Lane {
        Lane {
            thread,
            decoder: Decoder::new(Vec::new(), 0),
            chunk: None,
            resolved: Vec::new(),
            comm: None,
            slots: Vec::new(),
            call: Call::BLANK,
            parts: Vec::new(),
            exit: 0,
        }
    }

    /// Moves on to the next call; false at the end.
    #[inline]
    fn advance(&mut self, source: Source<'_>, scratch: &mut Scratch) -> Result<bool, TraceError> {
        loop {
            if let Some((offset, items)) = self.chunk {
                let path = &source.loaded.file.path;
                let next = self.decoder.next_slots(&mut self.slots);
                if let Some(raw) = next.map_err(|what| TraceError::corrupt(path, offset, what))? {
                    if self.resolved.len() < self.decoder.shapes().len() {
                        self.resolve(source)?;
                    }
                    self.exit = raw.exit;
                    return self.fill(raw.slot, raw.enter, raw.exit, &source.loaded.clock, path, offset);
                }
                if items.is_some_and(|items| items != self.decoder.items()) {
                    return Err(TraceError::corrupt(path, offset, "a chunk has not as many items as its head says"));
                }
                self.chunk = None;
            }
            if !self.next_chunk(&source.loaded.file, scratch)? {
                return Ok(false);
            }
        }
    }

    #[inline]
    fn fill(
        &mut self,
        slot: u16,
        enter: u64,
        exit: u64,
        clock: &Clock,
        path: &Path,
        offset: u64,
    ) -> Result<bool, TraceError> {
        let Some(Resolved::Call(call)) = self.resolved.get(usize::from(slot)) else {
            return Err(TraceError::corrupt(path, offset, "a part stands where a call was expected"));
        };
        self.call = *call;
        self.call.enter = Nanos(clock.nanos(enter));
        self.call.exit = Nanos(clock.nanos(exit));
        self.parts.clear();
        for &slot in &self.slots {
            match self.resolved.get(usize::from(slot)) {
                Some(Resolved::Part(part)) => self.parts.push(*part),
                _ => return Err(TraceError::corrupt(path, offset, "a call stands where a part was expected")),
            }
        }
        Ok(true)
    }

    #[inline(never)]
    fn resolve(&mut self, source: Source<'_>) -> Result<(), TraceError> {
        for shape in &self.decoder.shapes()[self.resolved.len()..] {
            let comm = match self.comm {
                Some((local, comm)) if local == shape.comm => comm,
                _ => source.comm(shape.comm)?,
            };
            self.comm = Some((shape.comm, comm));
            self.resolved.push(source.resolve(shape, self.thread.number, comm)?);
        }
        Ok(())
    }

    #[cold]
    fn next_chunk(&mut self, file: &RankFile, scratch: &mut Scratch) -> Result<bool, TraceError> {
        self.resolved.clear();
        if let Some(chunk) = self.thread.chunks.next() {
            let Chunk { offset, frame } = file.chunks[chunk];
            scratch.stored.resize(frame.stored_len as usize, 0);
            file.read_stored(offset, &mut scratch.stored)?;
            let damaged = |what| TraceError::corrupt(&file.path, offset, what);
            let (stored, unpacker) = (&scratch.stored, &mut scratch.unpacker);
            self.decoder.reuse(frame.base, |payload| frame.open_into(stored, unpacker, payload)).map_err(damaged)?;
            self.chunk = Some((offset, Some(frame.items)));
        } else if let Some(tail) = self.thread.tail.take() {
            let tail = &file.tails[tail];
            let copied = self.decoder.reuse(tail.base, |payload| {
                payload.extend_from_slice(&tail.payload);
                Ok::<(), String>(())
            });
            copied.map_err(|what| TraceError::corrupt(&file.path, file.bytes, what))?;
            self.chunk = Some((file.bytes, None));
        } else {
            return Ok(false);
        }
        Ok(true)
    }
}

impl Source<'_> {
    fn damaged(&self, what: String) -> TraceError {
        TraceError::corrupt(&self.loaded.file.path, 0, what)
    }

    fn comm(&self, local: u32) -> Result<CommId, TraceError> {
        let known = self.loaded.comms.get(&local).copied();
        known.ok_or_else(|| self.damaged(format!("communicator {local} is used but not defined")))
    }

    fn resolve(&self, shape: &Shape, thread: u16, comm: CommId) -> Result<Resolved, TraceError> {
        if shape.peer < PEER_ANY || shape.peer >= 0 && shape.peer as u32 >= self.size {
            return Err(self.damaged(format!("rank {} of {} is named as a peer", shape.peer, self.size)));
        }
        if shape.role & PART != 0 {
            return Ok(Resolved::Part(shape.to_part(comm)));
        }
        let proc = self.loaded.procs.get(usize::from(shape.proc)).copied();
        let proc = proc.ok_or_else(|| self.damaged(format!("procedure {} is used but not named", shape.proc)))?;
        Ok(Resolved::Call(shape.to_call(thread, proc, comm)))
    }
}
