//! Streams the calls of one rank, chunk after chunk, its threads merged by the exits of their calls.
//!
//! What a call is but for its times is worked out once a chunk for all calls of its shape: as a [`View`] that whoever reads
//! chooses.
use crate::codec::Unpacker;
use crate::counts::Counts;
use crate::decode::{Decoder, SlotCall};
use crate::encode::{PART, SHAPES, Shape};
use crate::error::TraceError;
use crate::model::{Call, Flags, PEER_ANY, Part};
use crate::rank_file::{Chunk, RankFile, Thread};
use crate::reader::{Loaded, Trace};
use crate::units::{CommId, Nanos, Rank};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What is kept of a shape.
pub trait View {
    /// Of that of a call; its times are 0.
    fn of_call(call: &Call) -> Self;
    /// Of that of a part.
    fn of_part(part: &Part) -> Self;
}

/// A call as it is streamed.
pub struct Viewed<'a, V> {
    /// What is kept of its shape.
    pub call: &'a V,
    /// When it was entered.
    pub enter: Nanos,
    /// When it returned.
    pub exit: Nanos,
    parts: &'a [u16],
    shapes: &'a [V],
    slot: usize,
    decoder: &'a Decoder,
}

impl<'a, V> Viewed<'a, V> {
    /// Whether it has parts.
    #[inline]
    pub fn has_parts(&self) -> bool {
        !self.parts.is_empty()
    }

    /// What was counted of the computation before it, if that was counted.
    #[inline]
    pub fn counts(&self) -> Option<Counts> {
        self.decoder.counts(self.slot)
    }

    /// What is kept of the shapes of its parts.
    #[inline]
    pub fn parts(&self) -> impl Iterator<Item = &'a V> + use<'a, V> {
        let shapes = self.shapes;
        self.parts.iter().filter_map(|&slot| shapes.get(usize::from(slot)))
    }
}

/// The most threads of a rank that may be at work at the same time: a bound on memory.
const MAX_OPEN: usize = 4096;

/// Streams the calls of one rank: see [`Trace::view`].
pub struct Stream<'a, V> {
    rank: Option<Source<'a>>,
    scratch: Scratch,
    /// Threads not yet begun, the next one last.
    later: Vec<Thread>,
    lanes: Vec<Option<Box<Lane<V>>>>,
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

impl<'a, V: View> Stream<'a, V> {
    pub(crate) fn new(trace: &'a Trace, rank: Rank) -> Stream<'a, V> {
        let source = trace.loaded(rank).map(|loaded| Source { loaded, size: trace.size() });
        let mut later = source.map_or_else(Vec::new, |source| source.loaded.file.threads());
        later.sort_by_key(|thread| Reverse((thread.base, thread.number)));
        Stream {
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
    pub fn next_call(&mut self) -> Result<Option<Viewed<'_, V>>, TraceError> {
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
        let Some(lane) = self.current.and_then(|at| self.lanes[at].as_deref()) else { return Ok(None) };
        let Some(call) = lane.views.get(lane.raw.slot) else { return Ok(None) };
        let [enter, exit] = [lane.raw.enter, lane.raw.exit].map(|units| Nanos(source.loaded.clock.nanos(units)));
        let (slot, decoder) = (lane.raw.slot, &lane.decoder);
        Ok(Some(Viewed { call, enter, exit, parts: &lane.slots, shapes: &lane.views, slot, decoder }))
    }

    /// Counts instead: calls `each` with what is kept of every shape of every chunk, and with how many calls or parts are of it.
    ///
    /// # Errors
    /// If a chunk is damaged.
    pub fn tally(mut self, mut each: impl FnMut(&V, u64)) -> Result<(), TraceError> {
        let Some(source) = self.rank else { return Ok(()) };
        let mut counts = vec![0; SHAPES];
        for thread in self.later {
            let mut lane = Lane::<V>::new(thread);
            while lane.tally(source, &mut self.scratch, &mut counts)? {
                lane.views.iter().zip(&mut counts).for_each(|(view, count)| each(view, std::mem::take(count)));
            }
        }
        Ok(())
    }

    /// Puts the lane back into the order, or drops it at its end.
    fn reorder(&mut self, at: usize, more: bool) {
        self.current = None;
        match &self.lanes[at] {
            Some(lane) if more => self.order.push(Reverse((lane.raw.exit, lane.thread.number, at))),
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
                self.order.push(Reverse((lane.raw.exit, lane.thread.number, place)));
                if place == self.lanes.len() {
                    self.lanes.push(None);
                }
                self.lanes[place] = Some(lane);
            }
        }
        Ok(())
    }
}

/// One thread's calls.
struct Lane<V> {
    thread: Thread,
    decoder: Decoder,
    /// Where the chunk in the decoder stands, and the items it must have.
    chunk: Option<(u64, Option<u32>)>,
    /// What is kept of the chunk's shapes, by slot.
    views: Vec<V>,
    /// The communicator of the last shape seen: the rank's own number, and that of the run.
    comm: Option<(u32, CommId)>,
    /// The call that is next, and the slots of its parts.
    raw: SlotCall,
    slots: Vec<u16>,
}

impl<V: View> Lane<V> {
    fn new(thread: Thread) -> Lane<V> {
        Lane {
            thread,
            decoder: Decoder::new(Vec::new(), 0),
            chunk: None,
            views: Vec::new(),
            comm: None,
            raw: SlotCall { slot: 0, enter: 0, exit: 0 },
            slots: Vec::new(),
        }
    }

    /// Moves on to the next call; false at the end.
    #[inline]
    fn advance(&mut self, source: Source<'_>, scratch: &mut Scratch) -> Result<bool, TraceError> {
        loop {
            if let Some(chunk) = self.chunk
                && let Some(raw) = self.next_raw(source, chunk)?
            {
                self.raw = raw;
                if self.views.len() < self.decoder.shapes().len() {
                    self.look(source)?;
                }
                return Ok(true);
            }
            if !self.next_chunk(&source.loaded.file, scratch)? {
                return Ok(false);
            }
        }
    }

    /// Counts the items of the next chunk by the slots of their shapes; false at the end.
    fn tally(&mut self, source: Source<'_>, scratch: &mut Scratch, counts: &mut [u64]) -> Result<bool, TraceError> {
        if !self.next_chunk(&source.loaded.file, scratch)? {
            return Ok(false);
        }
        if let Some(chunk) = self.chunk {
            while let Some(raw) = self.next_raw(source, chunk)? {
                counts[raw.slot] += 1;
                self.slots.iter().for_each(|&slot| counts[usize::from(slot)] += 1);
            }
        }
        self.look(source)?;
        Ok(true)
    }

    /// The next call of the chunk; none at its end.
    #[inline]
    fn next_raw(
        &mut self,
        source: Source<'_>,
        (offset, items): (u64, Option<u32>),
    ) -> Result<Option<SlotCall>, TraceError> {
        let damaged = |what| TraceError::corrupt(&source.loaded.file.path, offset, what);
        let next = self.decoder.next_slots(&mut self.slots).map_err(damaged)?;
        if next.is_none() && items.is_some_and(|items| items != self.decoder.items()) {
            return Err(damaged("a chunk has not as many items as its head says"));
        }
        Ok(next)
    }

    /// Looks at the shapes that are new in the chunk.
    #[inline(never)]
    fn look(&mut self, source: Source<'_>) -> Result<(), TraceError> {
        for shape in &self.decoder.shapes()[self.views.len()..] {
            let comm = match self.comm {
                Some((local, comm)) if local == shape.comm => comm,
                _ => source.comm(shape.comm)?,
            };
            self.comm = Some((shape.comm, comm));
            self.views.push(source.view(shape, self.thread.number, comm)?);
        }
        Ok(())
    }

    #[cold]
    fn next_chunk(&mut self, file: &RankFile, scratch: &mut Scratch) -> Result<bool, TraceError> {
        self.views.clear();
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

    fn view<V: View>(&self, shape: &Shape, thread: u16, comm: CommId) -> Result<V, TraceError> {
        if shape.peer < PEER_ANY || shape.peer >= 0 && shape.peer as u32 >= self.size {
            return Err(self.damaged(format!("rank {} of {} is named as a peer", shape.peer, self.size)));
        }
        if shape.role & PART != 0 {
            return Ok(V::of_part(&shape.to_part(comm)));
        }
        if Flags(shape.flags).has(Flags::COUNTED) && self.loaded.file.counters.is_none() {
            return Err(self.damaged("a call has counts, and nothing says of what".into()));
        }
        let proc = self.loaded.procs.get(usize::from(shape.proc)).copied();
        let proc = proc.ok_or_else(|| self.damaged(format!("procedure {} is used but not named", shape.proc)))?;
        Ok(V::of_call(&shape.to_call(thread, proc, comm)))
    }
}
