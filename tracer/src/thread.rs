//! The recorder of a thread: encodes calls where they happen, into the tail that it shares with whoever follows, and
//! hands a full chunk to the rank's file. No lock and no allocation but where a chunk is full.
use crate::clock;
use crate::comms::{self, Comm, GENERATION};
use crate::counters;
use crate::life;
use crate::plan::index;
use crate::real::{exists, library, mpi};
use crate::record::Call;
use crate::requests::Tracked;
use crate::sink::Sink;
use phasecast_abi::Layout;
use phasecast_trace::encode::{Encoder, Shape};
use phasecast_trace::frame::{Frame, HEAD, Kind};
use phasecast_trace::model::Flags;
use phasecast_trace::tail::{self, CAPACITY, FRAME, PAYLOAD, offset};
use phasecast_trace::writer::MOST_PARTS;
use std::ptr;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed, Ordering::Release, compiler_fence};

/// Handles that a thread remembers.
const REMEMBERED: usize = 64;

#[derive(Clone, Copy)]
struct KnownComm {
    handle: usize,
    generation: u32,
    comm: Option<&'static Comm>,
}

#[derive(Clone, Copy)]
struct KnownType {
    handle: usize,
    generation: u32,
    size: u64,
}

/// The recorder of one thread.
pub struct Thread {
    /// Layout of the binary interface.
    pub layout: &'static Layout,
    /// Requests that the completion under way may complete: index, handle, what is known.
    pub waiting: Vec<(u32, usize, Tracked)>,
    /// Statuses in place of those that the program does not want.
    pub statuses: Vec<u64>,
    /// Parts of the call that is being recorded.
    pub parts: Vec<Shape>,
    comms: [KnownComm; REMEMBERED],
    types: [KnownType; REMEMBERED],
    encoder: Encoder,
    tail: *mut u8,
    used: usize,
    number: u16,
    sequence: u32,
    base: u64,
    sink: &'static Sink,
    /// Calls recorded, and ns spent in writing chunks: read by the thread that ends the recording.
    calls: AtomicU64,
    writing: AtomicU64,
}

#[inline(always)]
fn place(handle: usize) -> usize {
    (handle ^ handle >> 6 ^ handle >> 12) % REMEMBERED
}

impl Thread {
    /// A recorder whose first gap counts from `base`, with its tail at `tail`.
    pub fn new(layout: &'static Layout, sink: &'static Sink, number: u16, tail: *mut u8, base: u64) -> Thread {
        let mut thread = Thread {
            layout,
            waiting: Vec::with_capacity(64),
            statuses: vec![0; 256],
            parts: Vec::with_capacity(64),
            comms: [KnownComm { handle: 0, generation: 0, comm: None }; REMEMBERED],
            types: [KnownType { handle: 0, generation: 0, size: 0 }; REMEMBERED],
            encoder: Encoder::default(),
            tail,
            used: 0,
            number,
            sequence: 0,
            base,
            sink,
            calls: AtomicU64::new(0),
            writing: AtomicU64::new(0),
        };
        // SAFETY: a tail has room for its own head.
        unsafe {
            ptr::copy_nonoverlapping(u32::from(number).to_le_bytes().as_ptr(), tail.add(offset::THREAD), 4);
            ptr::copy_nonoverlapping(base.to_le_bytes().as_ptr(), tail.add(offset::BASE), 8);
            ptr::copy_nonoverlapping(tail::MAGIC.as_ptr(), tail, 8);
        }
        thread.encoder.begin(base);
        thread
    }

    fn field(&self, at: usize) -> &AtomicU32 {
        // SAFETY: an aligned word of the tail, which is mapped for as long as the process lives.
        unsafe { &*self.tail.add(at).cast::<AtomicU32>() }
    }

    /// The communicator of a handle as it was passed.
    #[inline(always)]
    pub fn comm(&mut self, handle: usize) -> &'static Comm {
        self.known_comm(handle & self.layout.handle_mask as usize, comms::find)
    }

    /// The communicator that a window or file stands for; `handle` without bits that are not its own.
    #[inline]
    pub fn object(&mut self, handle: usize) -> &'static Comm {
        self.known_comm(handle, comms::object)
    }

    #[inline(always)]
    fn known_comm(&mut self, handle: usize, find: impl Fn(usize) -> &'static Comm) -> &'static Comm {
        let known = &mut self.comms[place(handle)];
        let generation = GENERATION.load(Relaxed);
        match known.comm {
            Some(comm) if known.handle == handle && known.generation == generation => comm,
            _ => {
                let comm = find(handle);
                *known = KnownComm { handle, generation: GENERATION.load(Relaxed), comm: Some(comm) };
                comm
            }
        }
    }

    /// Bytes of one element of a datatype.
    #[inline(always)]
    pub fn type_size(&mut self, handle: usize) -> u64 {
        let handle = handle & self.layout.handle_mask as usize;
        let known = &mut self.types[place(handle)];
        let generation = life::TYPES.load(Relaxed);
        if known.handle != handle || known.generation != generation {
            *known = KnownType { handle, generation, size: ask_type_size(handle) };
        }
        known.size
    }

    /// Records a call without parts.
    #[inline(always)]
    pub fn record(&mut self, call: &Call, shape: &Shape) {
        self.record_with(call, shape, None);
    }

    /// Records a call with at most one part.
    #[inline(always)]
    pub fn record_with(&mut self, call: &Call, shape: &Shape, part: Option<&Shape>) {
        if !life::recording() {
            return self.record_counted(call.enter, call.exit, *shape, part.copied());
        }
        if let Some(out) = self.room(1) {
            let mut used = self.encoder.call(out, self.used, shape, call.enter, call.exit);
            if let Some(part) = part {
                used = self.encoder.part(out, used, part);
            }
            self.commit(shape, used);
        }
    }

    /// Records a call with the parts in [`Thread::parts`], which then are gone.
    pub fn record_parts(&mut self, call: &Call, shape: &Shape) {
        let parts = std::mem::take(&mut self.parts);
        if life::recording() {
            self.put_parts(call.enter, call.exit, shape, &parts);
        } else if life::counting() {
            self.put_counted(call.enter, call.exit, shape, &parts);
        }
        self.parts = parts;
        self.parts.clear();
    }

    fn put_parts(&mut self, enter: u64, exit: u64, shape: &Shape, parts: &[Shape]) {
        let (now, later) = parts.split_at(parts.len().min(MOST_PARTS));
        self.put(enter, exit, shape, now);
        self.put_further(exit, shape, later);
    }

    /// What is neither recorded plainly nor not at all is recorded with counts. Shapes come by value, so that they need
    /// not stand in memory where calls are not counted.
    #[cold]
    fn record_counted(&mut self, enter: u64, exit: u64, shape: Shape, part: Option<Shape>) {
        if life::counting() {
            self.put_counted(enter, exit, &shape, part.as_slice());
        }
    }

    /// As [`Thread::put_parts`], with what was counted before the call.
    #[cold]
    fn put_counted(&mut self, enter: u64, exit: u64, shape: &Shape, parts: &[Shape]) {
        let Some(counts) = counters::take() else { return self.put_parts(enter, exit, shape, parts) };
        let (now, later) = parts.split_at(parts.len().min(MOST_PARTS));
        // Counts have the room of a part.
        if let Some(out) = self.room(now.len() + 1) {
            let mut used = self.encoder.counted_call(out, self.used, shape, (enter, exit), counts);
            for part in now {
                used = self.encoder.part(out, used, part);
            }
            self.commit(shape, used);
        }
        self.put_further(exit, shape, later);
    }

    /// Parts that do not fit into the item of their call.
    fn put_further(&mut self, exit: u64, shape: &Shape, mut later: &[Shape]) {
        let further = Shape { flags: shape.flags | Flags::CONTINUED.0, ..*shape };
        while !later.is_empty() {
            let (now, rest) = later.split_at(later.len().min(MOST_PARTS));
            self.put(exit, exit, &further, now);
            later = rest;
        }
    }

    fn put(&mut self, enter: u64, exit: u64, shape: &Shape, parts: &[Shape]) {
        if let Some(out) = self.room(parts.len()) {
            let mut used = self.encoder.call(out, self.used, shape, enter, exit);
            for part in parts {
                used = self.encoder.part(out, used, part);
            }
            self.commit(shape, used);
        }
    }

    /// The payload of the tail, with room for a call with so many parts; none if recording has ended.
    #[inline(always)]
    fn room(&mut self, parts: usize) -> Option<&'static mut [u8]> {
        if !self.encoder.fits(parts, CAPACITY - self.used) && !self.flush() {
            return None;
        }
        // SAFETY: mapped for as long as the process lives. Only this thread writes to it, and it lets go of one such
        // slice before it takes the next.
        Some(unsafe { std::slice::from_raw_parts_mut(self.tail.add(PAYLOAD), CAPACITY) })
    }

    /// A call of this shape stands in the tail, which now is filled up to `used`.
    #[inline(always)]
    fn commit(&mut self, shape: &Shape, used: usize) {
        self.used = used;
        if shape.flags & Flags::CONTINUED.0 == 0 {
            self.calls.store(self.calls.load(Relaxed) + 1, Relaxed);
        }
        self.field(offset::ITEMS).store(self.encoder.items(), Relaxed);
        self.field(offset::COMMITTED).store(used as u32, Release);
    }

    /// Writes the chunk to the rank's file and starts the next; false if recording has ended.
    #[cold]
    pub fn flush(&mut self) -> bool {
        let before = clock::monotonic();
        let frame = self.seal();
        let last = self.encoder.last();
        let next = self.sequence + 1;
        let tail = self.tail;
        // SAFETY: the frame stands in the tail, head and payload together.
        let bytes = unsafe { std::slice::from_raw_parts(tail.add(FRAME), HEAD + self.used) };
        debug_assert_eq!(&bytes[..4], &frame[..4]);
        let written = self.sink.append(bytes, || {
            self.field(offset::COMMITTED).store(0, Relaxed);
            self.field(offset::ITEMS).store(0, Relaxed);
            // SAFETY: a word of the tail.
            unsafe { ptr::copy_nonoverlapping(last.to_le_bytes().as_ptr(), tail.add(offset::BASE), 8) };
            self.field(offset::SEQUENCE).store(next, Release);
        });
        if !written {
            life::stop();
            return false;
        }
        self.used = 0;
        self.sequence = next;
        self.base = last;
        self.encoder.begin(last);
        self.writing.store(self.writing.load(Relaxed) + (clock::monotonic() - before), Relaxed);
        true
    }

    /// Puts the head of the frame before the payload in the tail.
    fn seal(&mut self) -> [u8; HEAD] {
        let mut frame = Frame::new(Kind::Calls);
        frame.thread = self.number;
        frame.sequence = self.sequence;
        frame.items = self.encoder.items();
        frame.base = self.base;
        frame.sync = clock::pair();
        // SAFETY: the part of the payload that was written.
        let payload = unsafe { std::slice::from_raw_parts(self.tail.add(PAYLOAD), self.used) };
        let head = frame.seal(payload);
        // SAFETY: the tail has room for the head there.
        unsafe { ptr::copy_nonoverlapping(head.as_ptr(), self.tail.add(FRAME), HEAD) };
        head
    }

    /// This process's rank in the world, as a peer.
    pub fn own_rank(&self) -> i32 {
        self.sink.rank as i32
    }

    /// When the last recorded call returned, in units.
    pub fn last(&self) -> u64 {
        self.encoder.last()
    }

    /// Number of the thread.
    pub fn number(&self) -> u16 {
        self.number
    }

    /// Calls recorded, and ns spent in writing chunks.
    pub fn totals(&self) -> (u64, u64) {
        (self.calls.load(Relaxed), self.writing.load(Relaxed))
    }

    /// The bytes of the tail, for the thread that ends the recording.
    pub fn tail(&self) -> &[u8] {
        // SAFETY: the whole mapping; what its owner may still write lies behind what it has committed.
        unsafe { std::slice::from_raw_parts(self.tail, tail::LENGTH) }
    }

    /// What recording a call costs, in ns: the shortest of some rounds of encoding into the empty tail, which is none to
    /// readers meanwhile.
    pub fn calibrate(&mut self) -> f64 {
        let mut best = f64::INFINITY;
        self.mark([0; 8]);
        for _ in 0..4 {
            let before = clock::monotonic();
            for i in 0..256u64 {
                let (enter, exit) = (clock::now(), clock::now());
                let bytes = i & 3;
                let shape = Shape { peer: 1, tag: 7, bytes, site: 1, comm: 0, proc: 1, flags: 0, role: 0 };
                self.put(enter, exit, &shape, &[]);
            }
            best = best.min((clock::monotonic() - before) as f64 / 256.0);
        }
        self.field(offset::COMMITTED).store(0, Relaxed);
        self.field(offset::ITEMS).store(0, Relaxed);
        self.calls.store(0, Relaxed);
        self.used = 0;
        self.encoder.begin(self.base);
        self.mark(tail::MAGIC);
        best
    }

    /// Writes what a tail begins with.
    fn mark(&mut self, magic: [u8; 8]) {
        compiler_fence(Release);
        // SAFETY: the tail is mapped as long as its recorder lives, and begins at a page.
        unsafe { self.tail.cast::<u64>().write_volatile(u64::from_ne_bytes(magic)) };
        compiler_fence(Release);
    }
}

#[cold]
fn ask_type_size(handle: usize) -> u64 {
    let mut size = 0i64;
    // Given where nothing is sent or received.
    if library().and_then(|library| library.constant("MPI_DATATYPE_NULL")) == Some(handle) {
        return 0;
    }
    if exists(index("MPI_Type_size_x")) {
        mpi!(MPI_Type_size_x(handle, &raw mut size));
    } else {
        mpi!(MPI_Type_size(handle, &raw mut size));
    }
    u64::try_from(size).unwrap_or(0)
}

#[cfg(test)]
pub(crate) mod tests;
