//! One chunk of calls as bytes: a dictionary of shapes, times as varints.
//!
//! A *shape* is all of a call, or of one of its parts, but its times. In a regular program there are few. Each item is
//! ```text
//! varint v    bit 0 = 0: the shape that followed the previous one last time; for a call, v >> 1 is the gap
//!             bit 0 = 1: v >> 1 = 0: a new shape follows, which takes the next slot; else slot (v >> 1) - 1;
//!                        for a call, the gap follows as a varint
//! varint d    of a call only: its duration
//! varint n    three times, of a call whose flags say so only: its counts
//! ```
//! Gap and duration are in clock units, the gap from the exit of the call before it (or the chunk's base). A shape is
//! `role u8 | flags | procedure | zigzag peer | zigzag tag | communicator | bytes | site`, varints but for the role:
//! the class of a call, or 0x80 + the kind of a part. A chunk stands alone: its dictionary starts empty.
use crate::counts::Counts;
use crate::model::{Call, Class, Flags, Part, PartKind};
use crate::units::{CommId, Nanos, ProcId};
use crate::varint::{put, zigzag};

/// Shapes that a chunk can hold.
pub const SHAPES: usize = 4096;
/// The most bytes that one item takes, without counts; counts take less than another item would.
pub const ITEM_MAX: usize = 64;
/// Marks the role of a part.
pub const PART: u8 = 0x80;
const INDEX: usize = 2 * SHAPES;
const NONE: u16 = u16::MAX;

/// All of a call or part but its times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Shape {
    /// Its peer.
    pub peer: i32,
    /// Its tag.
    pub tag: i32,
    /// Its bytes.
    pub bytes: u64,
    /// Its return address.
    pub site: u64,
    /// The rank's own number of its communicator.
    pub comm: u32,
    /// Its procedure (of a part: 0).
    pub proc: u16,
    /// Its flags.
    pub flags: u16,
    /// Its class, or [`PART`] + its kind.
    pub role: u8,
}

impl Shape {
    /// The shape of a call without counts; `comm` is the rank's own number of the communicator.
    pub fn call(call: &Call, comm: u32) -> Shape {
        Shape {
            peer: call.peer,
            tag: call.tag,
            bytes: call.bytes,
            site: call.site,
            comm,
            proc: call.proc.0,
            flags: call.flags.without(Flags::COUNTED).0,
            role: call.class as u8,
        }
    }

    /// The shape of a part; `comm` is the rank's own number of the communicator.
    pub fn part(part: &Part, comm: u32) -> Shape {
        Shape {
            peer: part.peer,
            tag: part.tag,
            bytes: part.bytes,
            site: 0,
            comm,
            proc: 0,
            flags: part.flags.0,
            role: PART | part.kind as u8,
        }
    }

    /// The inverse of [`Shape::call`], at time 0; `proc` and `comm` are what its numbers stand for. A role that is no
    /// class (decoders let none pass) counts as [`Class::Other`].
    pub fn to_call(&self, thread: u16, proc: ProcId, comm: CommId) -> Call {
        Call {
            proc,
            class: Class::from_u8(self.role).unwrap_or(Class::Other),
            flags: Flags(self.flags).without(Flags::COUNTED),
            thread,
            peer: self.peer,
            tag: self.tag,
            bytes: self.bytes,
            comm,
            site: self.site,
            enter: Nanos(0),
            exit: Nanos(0),
        }
    }

    /// The inverse of [`Shape::part`]; `comm` is what its number stands for. A role that is no kind (decoders let none
    /// pass) counts as [`PartKind::Post`].
    pub fn to_part(&self, comm: CommId) -> Part {
        Part {
            kind: PartKind::from_u8(self.role & !PART).unwrap_or(PartKind::Post),
            flags: Flags(self.flags),
            peer: self.peer,
            tag: self.tag,
            bytes: self.bytes,
            comm,
        }
    }

    /// Equality that is always inlined.
    #[inline(always)]
    fn same(&self, other: &Shape) -> bool {
        self.bytes == other.bytes
            && self.site == other.site
            && (self.peer, self.tag, self.comm) == (other.peer, other.tag, other.comm)
            && (self.proc, self.flags, self.role) == (other.proc, other.flags, other.role)
    }

    #[inline]
    fn hash(&self) -> usize {
        let a = self.bytes ^ (u64::from(self.peer as u32) << 32 | u64::from(self.tag as u32)).rotate_left(17);
        let b = self.site
            ^ (u64::from(self.comm) << 40
                | u64::from(self.proc) << 24
                | u64::from(self.flags) << 8
                | u64::from(self.role));
        let mixed = (a.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ b).wrapping_mul(0xD6E8_FEB8_6659_FD93);
        (mixed >> 51) as usize & (INDEX - 1)
    }
}

/// Writes items into a chunk. Reused from chunk to chunk; allocates only when it is made.
pub struct Encoder {
    index: Box<[u16; INDEX]>,
    shapes: Vec<Shape>,
    /// For each slot, the one that came after it last time; the extra one stands for the start of the chunk.
    successor: Box<[u16; SHAPES + 1]>,
    previous: usize,
    last: u64,
    items: u32,
}

impl Default for Encoder {
    fn default() -> Self {
        Encoder {
            index: Box::new([NONE; INDEX]),
            shapes: Vec::with_capacity(SHAPES),
            successor: Box::new([NONE; SHAPES + 1]),
            previous: SHAPES,
            last: 0,
            items: 0,
        }
    }
}

impl Encoder {
    /// Starts a chunk; `base` is the time, in clock units, from which the first gap counts.
    pub fn begin(&mut self, base: u64) {
        self.index.fill(NONE);
        self.successor[..self.shapes.len()].fill(NONE);
        self.successor[SHAPES] = NONE;
        self.shapes.clear();
        self.previous = SHAPES;
        self.last = base;
        self.items = 0;
    }

    /// Items written since [`Encoder::begin`].
    #[inline]
    pub fn items(&self) -> u32 {
        self.items
    }

    /// The exit of the last call, or the base.
    #[inline]
    pub fn last(&self) -> u64 {
        self.last
    }

    /// Whether a call with so many parts still fits into the dictionary and into `room` bytes.
    #[inline]
    pub fn fits(&self, parts: usize, room: usize) -> bool {
        self.shapes.len() + parts < SHAPES && (parts + 1) * ITEM_MAX <= room
    }

    /// Appends a call at `at` and returns where the next item goes. Times before the last exit count as that.
    ///
    /// What most calls need is inlined, so that a recorder's shape stays in registers.
    #[inline(always)]
    pub fn call(&mut self, out: &mut [u8], at: usize, shape: &Shape, enter: u64, exit: u64) -> usize {
        let enter = enter.max(self.last);
        let exit = exit.max(enter);
        let (gap, duration) = (enter - self.last, exit - enter);
        self.last = exit;
        if !self.predicted(shape) {
            return self.named_call(out, at, *shape, gap, duration);
        }
        if (gap << 1 | duration) < 0x80
            && let Some(place) = out.get_mut(at..at + 2)
        {
            place.copy_from_slice(&[(gap << 1) as u8, duration as u8]);
            return at + 2;
        }
        long_times(out, at, gap, duration)
    }

    /// Appends a call with what was counted before it, and returns where the next item goes. There must be room for one
    /// part more than it has ([`Encoder::fits`]).
    pub fn counted_call(
        &mut self,
        out: &mut [u8],
        at: usize,
        shape: &Shape,
        (enter, exit): (u64, u64),
        counts: Counts,
    ) -> usize {
        let counted = Shape { flags: shape.flags | Flags::COUNTED.0, ..*shape };
        let at = self.call(out, at, &counted, enter, exit);
        counts.to_array().into_iter().fold(at, |at, count| at + put(&mut out[at..], count))
    }

    /// Appends a part of the last call at `at` and returns where the next item goes.
    #[inline(always)]
    pub fn part(&mut self, out: &mut [u8], at: usize, shape: &Shape) -> usize {
        if self.predicted(shape) {
            out[at] = 0;
            at + 1
        } else {
            self.token(out, at, *shape)
        }
    }

    /// Whether it is the shape that followed last time.
    #[inline(always)]
    fn predicted(&mut self, shape: &Shape) -> bool {
        self.items += 1;
        // NONE is never the number of a shape.
        let guess = usize::from(self.successor[self.previous]);
        let same = self.shapes.get(guess).is_some_and(|known| known.same(shape));
        if same {
            self.previous = guess;
        }
        same
    }

    #[inline(never)]
    fn named_call(&mut self, out: &mut [u8], at: usize, shape: Shape, gap: u64, duration: u64) -> usize {
        let at = self.token(out, at, shape);
        let at = at + put(&mut out[at..], gap);
        at + put(&mut out[at..], duration)
    }

    #[inline(never)]
    fn token(&mut self, out: &mut [u8], mut at: usize, shape: Shape) -> usize {
        let mut probe = shape.hash();
        let slot = loop {
            let slot = self.index[probe];
            if slot == NONE {
                let slot = self.shapes.len() as u16;
                self.index[probe] = slot;
                self.shapes.push(shape);
                at += put(&mut out[at..], 1);
                at = define(out, at, &shape);
                break slot;
            }
            if self.shapes[slot as usize].same(&shape) {
                at += put(&mut out[at..], (u64::from(slot) + 1) << 1 | 1);
                break slot;
            }
            probe = (probe + 1) & (INDEX - 1);
        };
        self.successor[self.previous] = slot;
        self.previous = slot as usize;
        at
    }
}

#[inline(never)]
fn long_times(out: &mut [u8], at: usize, gap: u64, duration: u64) -> usize {
    let at = at + put(&mut out[at..], gap << 1);
    at + put(&mut out[at..], duration)
}

fn define(out: &mut [u8], mut at: usize, shape: &Shape) -> usize {
    out[at] = shape.role;
    at += 1;
    let fields = [
        u64::from(shape.flags),
        u64::from(shape.proc),
        zigzag(i64::from(shape.peer)),
        zigzag(i64::from(shape.tag)),
        u64::from(shape.comm),
        shape.bytes,
        shape.site,
    ];
    for field in fields {
        at += put(&mut out[at..], field);
    }
    at
}
