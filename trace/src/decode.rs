//! The inverse of [`crate::encode`]: the calls of one chunk, whole or still growing.
//!
//! Items refer to shapes by slot, so that whoever reads can do the work on a shape once a chunk, not once a call.
use crate::counts::Counts;
use crate::encode::{PART, SHAPES, Shape};
use crate::model::{Class, Flags, PartKind};
use crate::varint::{get, read, unzigzag};

/// A call as it stands in a chunk: times in clock units, communicator by the rank's own number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawCall {
    /// All but the times; its role is a [`Class`].
    pub shape: Shape,
    /// When it was entered.
    pub enter: u64,
    /// When it returned.
    pub exit: u64,
    /// What was counted before it.
    pub counts: Option<Counts>,
}

/// A call by the slot of its shape, times in clock units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotCall {
    /// Index into [`Decoder::shapes`]; wide, as a narrow field that is written alone and read with others would stall the
    /// processor.
    pub slot: usize,
    /// When it was entered.
    pub enter: u64,
    /// When it returned.
    pub exit: u64,
}

/// What is known of a slot besides its shape. Entry 0 is the start of the chunk, entry n + 1 slot n.
#[derive(Clone, Copy, Debug, Default)]
struct Link {
    /// The entry that followed last time; 0 is none.
    next: u16,
    is_part: bool,
    is_counted: bool,
}

const CUT: &str = "a number is cut off or too long";

/// What stands before the duration of a call, or for a part.
#[derive(Clone, Copy, Debug)]
struct Head {
    /// The entry of its slot; wide for the same reason.
    entry: usize,
    gap: u64,
}

/// Reads calls from a payload that may grow at its end.
#[derive(Clone, Debug)]
pub struct Decoder {
    payload: Vec<u8>,
    at: usize,
    shapes: Vec<Shape>,
    links: Vec<Link>,
    previous: usize,
    last: u64,
    items: u32,
    /// The head of a call that was read while looking for parts.
    pending: Option<Head>,
    /// Of the last call whose flags say that it has some.
    counts: Counts,
    slots: Vec<u16>,
}

impl Decoder {
    /// A decoder of a chunk that starts at time `base` (clock units).
    pub fn new(payload: Vec<u8>, base: u64) -> Decoder {
        Decoder {
            payload,
            at: 0,
            shapes: Vec::new(),
            links: vec![Link::default()],
            previous: 0,
            last: base,
            items: 0,
            pending: None,
            counts: Counts::default(),
            slots: Vec::new(),
        }
    }

    /// Starts another chunk in the same memory: `fill` writes its payload to the emptied buffer.
    pub(crate) fn reuse<E>(&mut self, base: u64, fill: impl FnOnce(&mut Vec<u8>) -> Result<(), E>) -> Result<(), E> {
        self.payload.clear();
        self.at = 0;
        self.shapes.clear();
        self.links.clear();
        self.links.push(Link::default());
        self.previous = 0;
        self.last = base;
        self.items = 0;
        self.pending = None;
        fill(&mut self.payload)
    }

    /// Length of the payload seen so far.
    pub fn length(&self) -> usize {
        self.payload.len()
    }

    /// Appends bytes that have come since (whole calls only).
    pub fn extend(&mut self, more: &[u8]) {
        self.payload.extend_from_slice(more);
    }

    /// Items read so far.
    pub fn items(&self) -> u32 {
        self.items
    }

    /// The shapes defined so far, by slot.
    pub fn shapes(&self) -> &[Shape] {
        &self.shapes
    }

    /// What was counted before the call that was read last, whose shape is at `slot`.
    #[inline]
    pub fn counts(&self, slot: usize) -> Option<Counts> {
        self.links.get(slot + 1).filter(|link| link.is_counted).map(|_| self.counts)
    }

    /// The next call; its parts replace the contents of `parts`. `None` at the end of what is there.
    ///
    /// # Errors
    /// A sentence if the bytes are not a chunk.
    pub fn next_call(&mut self, parts: &mut Vec<Shape>) -> Result<Option<RawCall>, String> {
        let mut slots = std::mem::take(&mut self.slots);
        let call = self.next_slots(&mut slots);
        parts.clear();
        parts.extend(slots.iter().map(|&slot| self.shapes[slot as usize]));
        self.slots = slots;
        Ok(call?.map(|SlotCall { slot, enter, exit }| {
            let counts = self.counts(slot);
            RawCall { shape: self.shapes[slot], enter, exit, counts }
        }))
    }

    /// The next call; the slots of its parts replace the contents of `parts`. `None` at the end of what is there.
    ///
    /// # Errors
    /// A sentence if the bytes are not a chunk.
    #[inline]
    pub fn next_slots(&mut self, parts: &mut Vec<u16>) -> Result<Option<SlotCall>, &'static str> {
        parts.clear();
        let head = match self.pending.take() {
            Some(head) => head,
            None if self.at == self.payload.len() => return Ok(None),
            None => self.head()?,
        };
        if self.links[head.entry].is_part {
            return Err("a part stands where a call was expected");
        }
        let Some(duration) = self.number() else { return Err(CUT) };
        let enter = self.last.checked_add(head.gap);
        let (Some(enter), Some(exit)) = (enter, enter.and_then(|enter| enter.checked_add(duration))) else {
            return Err("a time overflows");
        };
        self.last = exit;
        if self.links[head.entry].is_counted {
            self.counts = self.counted().ok_or(CUT)?;
        }
        while self.at < self.payload.len() {
            let next = self.head()?;
            if !self.links[next.entry].is_part {
                self.pending = Some(next);
                break;
            }
            parts.push((next.entry - 1) as u16);
        }
        Ok(Some(SlotCall { slot: head.entry - 1, enter, exit }))
    }

    #[cold]
    fn counted(&mut self) -> Option<Counts> {
        Some(Counts::from_array([self.number()?, self.number()?, self.number()?]))
    }

    #[inline(always)]
    fn number(&mut self) -> Option<u64> {
        let (value, length) = read(self.payload.get(self.at..)?)?;
        self.at += length;
        Some(value)
    }

    /// Reads the token of an item and, for a call, its gap.
    #[inline(always)]
    fn head(&mut self) -> Result<Head, &'static str> {
        let Some(v) = self.number() else { return Err(CUT) };
        self.items += 1;
        if v & 1 != 0 {
            return self.named(v >> 1);
        }
        let entry = usize::from(self.links[self.previous].next);
        if entry == 0 {
            return Err("a shape is referred to before it was seen");
        }
        self.previous = entry;
        if self.links[entry].is_part && v != 0 {
            return Err("a part has a time");
        }
        Ok(Head { entry, gap: v >> 1 })
    }

    /// An item whose shape is named, or defined here.
    #[inline(never)]
    fn named(&mut self, n: u64) -> Result<Head, &'static str> {
        let entry = match n {
            0 => self.define()?,
            n if n <= self.shapes.len() as u64 => n as u16,
            _ => return Err("a shape is referred to that was not defined"),
        };
        self.links[self.previous].next = entry;
        let entry = usize::from(entry);
        self.previous = entry;
        let gap = if self.links[entry].is_part { 0 } else { self.number().ok_or(CUT)? };
        Ok(Head { entry, gap })
    }

    fn define(&mut self) -> Result<u16, &'static str> {
        if self.shapes.len() >= SHAPES {
            return Err("a chunk has too many shapes");
        }
        let role = *self.payload.get(self.at).ok_or("a shape is cut off")?;
        self.at += 1;
        let is_part = role & PART != 0;
        let known = if is_part { PartKind::from_u8(role & !PART).is_some() } else { Class::from_u8(role).is_some() };
        if !known {
            return Err("an item is of an unknown kind");
        }
        let (mut fields, mut rest) = ([0; 7], &self.payload[self.at..]);
        for field in &mut fields {
            *field = match rest.split_first() {
                // Most take a byte.
                Some((&byte, more)) if byte < 0x80 => {
                    rest = more;
                    u64::from(byte)
                }
                _ => get(&mut rest).ok_or(CUT)?,
            };
        }
        self.at = self.payload.len() - rest.len();
        let narrow = |n: u64| i32::try_from(unzigzag(n)).map_err(|_| "a peer or tag is out of range");
        let shape = Shape {
            role,
            flags: u16::try_from(fields[0]).map_err(|_| "flags are out of range")?,
            proc: u16::try_from(fields[1]).map_err(|_| "a procedure is out of range")?,
            peer: narrow(fields[2])?,
            tag: narrow(fields[3])?,
            comm: u32::try_from(fields[4]).map_err(|_| "a communicator is out of range")?,
            bytes: fields[5],
            site: fields[6],
        };
        self.shapes.push(shape);
        let is_counted = !is_part && Flags(shape.flags).has(Flags::COUNTED);
        self.links.push(Link { next: 0, is_part, is_counted });
        Ok(self.shapes.len() as u16)
    }
}
