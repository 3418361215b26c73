//! The inverse of [`crate::encode`]: the calls of one chunk, whole or still growing.
use crate::encode::{PART, SHAPES, Shape};
use crate::model::{Class, PartKind};
use crate::varint::{get, unzigzag};

/// A call as it stands in a chunk: times in clock units, communicator by the rank's own number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawCall {
    /// All but the times; its role is a [`Class`].
    pub shape: Shape,
    /// When it was entered.
    pub enter: u64,
    /// When it returned.
    pub exit: u64,
}

/// Reads calls from a payload that may grow at its end.
#[derive(Clone, Debug)]
pub struct Decoder {
    payload: Vec<u8>,
    at: usize,
    shapes: Vec<(Shape, u16)>,
    /// The successor of the start of the chunk.
    first: u16,
    previous: Option<u16>,
    last: u64,
    items: u32,
    /// The slot of a call whose token was read while looking for parts, with its gap.
    pending: Option<(u16, u64)>,
}

const NONE: u16 = u16::MAX;

impl Decoder {
    /// A decoder of a chunk that starts at time `base` (clock units).
    pub fn new(payload: Vec<u8>, base: u64) -> Decoder {
        Decoder { payload, at: 0, shapes: Vec::new(), first: NONE, previous: None, last: base, items: 0, pending: None }
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

    /// The next call; its parts replace the contents of `parts`. `None` at the end of what is there.
    ///
    /// # Errors
    /// A sentence if the bytes are not a chunk.
    pub fn next_call(&mut self, parts: &mut Vec<Shape>) -> Result<Option<RawCall>, String> {
        parts.clear();
        let (slot, gap) = match self.pending.take() {
            Some(head) => head,
            None if self.at == self.payload.len() => return Ok(None),
            None => match self.head()? {
                (slot, Some(gap)) => (slot, gap),
                (_, None) => return Err("a part stands where a call was expected".into()),
            },
        };
        let duration = self.number()?;
        let enter = self.last.checked_add(gap).ok_or("a time overflows")?;
        let exit = enter.checked_add(duration).ok_or("a time overflows")?;
        self.last = exit;
        let shape = self.shapes[slot as usize].0;
        while self.at < self.payload.len() {
            match self.head()? {
                (slot, None) => parts.push(self.shapes[slot as usize].0),
                (slot, Some(gap)) => {
                    self.pending = Some((slot, gap));
                    break;
                }
            }
        }
        Ok(Some(RawCall { shape, enter, exit }))
    }

    #[inline]
    fn number(&mut self) -> Result<u64, String> {
        let mut rest = &self.payload[self.at..];
        let value = get(&mut rest).ok_or("a number is cut off")?;
        self.at = self.payload.len() - rest.len();
        Ok(value)
    }

    /// Reads the token of an item: its slot and, for a call, its gap.
    #[inline]
    fn head(&mut self) -> Result<(u16, Option<u64>), String> {
        let v = self.number()?;
        let guess = match self.previous {
            Some(slot) => self.shapes[slot as usize].1,
            None => self.first,
        };
        self.items += 1;
        if v & 1 == 0 {
            if guess == NONE {
                return Err("a shape is referred to before it was seen".into());
            }
            self.previous = Some(guess);
            let is_part = self.shapes[guess as usize].0.role & PART != 0;
            if is_part && v != 0 {
                return Err("a part has a time".into());
            }
            return Ok((guess, (!is_part).then_some(v >> 1)));
        }
        let slot = match v >> 1 {
            0 => self.define()?,
            n if n as usize <= self.shapes.len() => (n - 1) as u16,
            n => return Err(format!("shape {n} of {} is referred to", self.shapes.len())),
        };
        match self.previous {
            Some(before) => self.shapes[before as usize].1 = slot,
            None => self.first = slot,
        }
        self.previous = Some(slot);
        if self.shapes[slot as usize].0.role & PART != 0 { Ok((slot, None)) } else { Ok((slot, Some(self.number()?))) }
    }

    fn define(&mut self) -> Result<u16, String> {
        if self.shapes.len() >= SHAPES {
            return Err("a chunk has too many shapes".into());
        }
        let role = *self.payload.get(self.at).ok_or("a shape is cut off")?;
        self.at += 1;
        let known =
            if role & PART != 0 { PartKind::from_u8(role & !PART).is_some() } else { Class::from_u8(role).is_some() };
        if !known {
            return Err(format!("unknown kind of item {role}"));
        }
        let mut fields = [0; 7];
        for field in &mut fields {
            *field = self.number()?;
        }
        let narrow = |n: u64| i32::try_from(unzigzag(n)).map_err(|_| "a peer or tag is out of range".to_string());
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
        self.shapes.push((shape, NONE));
        Ok((self.shapes.len() - 1) as u16)
    }
}
