//! The frame around every piece of our files: what it is, how long, and a checksum over both.
//!
//! ```text
//! 0  magic "PHC\xF1"   4  kind u8   5  codec u8 (0 plain, 1 zstd)   6  thread u16   8  sequence u32
//! 12 items u32   16 raw length u32   20 stored length u32   24 base units u64
//! 32 sync units u64   40 sync ns u64   48 checksum u64 (xxh3 of bytes 0..48 and the stored payload)
//! 56 payload
//! ```
//! All numbers are little-endian. `base` is the time before the first item of a chunk, `sync` a pair of clock unit and
//! CLOCK_MONOTONIC taken when the frame was written. In the header frame of a trace `sequence` is the format's version.
use crate::codec::Unpacker;
use crate::error::TraceError;
use std::path::Path;
use xxhash_rust::xxh3::Xxh3;

/// The first bytes of every frame.
pub const MAGIC: [u8; 4] = *b"PHC\xF1";
/// Length of the head of a frame in bytes.
pub const HEAD: usize = 56;
/// The longest stored payload that is accepted.
pub const MAX_STORED: u32 = 1 << 30;

/// Version of the format of traces: in the `sequence` field of the header frame.
pub const FORMAT_VERSION: u16 = 1;
/// That of traces whose calls have counts, which who knows only the first could not read. All else is the same.
pub const COUNTED_VERSION: u16 = 2;

/// What a frame holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// [`crate::model::RankHeader`]; the first frame of a rank's file.
    Header = 1,
    /// A chunk of calls ([`crate::encode`]).
    Calls = 2,
    /// A list of [`crate::model::CommDef`].
    Comms = 3,
    /// [`crate::model::Trailer`]; the last frame of a rank's file.
    Trailer = 4,
    /// A named section of a container ([`crate::container`]).
    Section = 5,
    /// The last frame of a container.
    End = 6,
    /// [`crate::Counters`]: what was counted; of a trace.
    Counters = 7,
    /// A list of [`crate::model::Origin`].
    Origins = 8,
}

/// The head of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// What it holds (a number that is not a [`Kind`] is skipped by readers).
    pub kind: u8,
    /// Whether the payload is compressed with zstd.
    pub packed: bool,
    /// The thread whose calls these are.
    pub thread: u16,
    /// Counts the chunks of a thread, from 0; of a header, the version of the format.
    pub sequence: u32,
    /// Items (calls and parts) in the chunk.
    pub items: u32,
    /// Length of the payload before compression.
    pub raw_len: u32,
    /// Length of the payload as stored.
    pub stored_len: u32,
    /// Clock units before the first item.
    pub base: u64,
    /// Clock units and CLOCK_MONOTONIC (ns) when the frame was written.
    pub sync: (u64, u64),
    /// The checksum.
    pub checksum: u64,
}

impl Frame {
    /// The head of a frame of this kind, otherwise empty. A [`Kind::Header`] carries [`FORMAT_VERSION`].
    pub fn new(kind: Kind) -> Frame {
        let version = if kind == Kind::Header { u32::from(FORMAT_VERSION) } else { 0 };
        Frame {
            kind: kind as u8,
            packed: false,
            thread: 0,
            sequence: version,
            items: 0,
            raw_len: 0,
            stored_len: 0,
            base: 0,
            sync: (0, 0),
            checksum: 0,
        }
    }

    /// The head of the header of a trace whose calls have counts.
    pub fn counted_header() -> Frame {
        Frame { sequence: u32::from(COUNTED_VERSION), ..Frame::new(Kind::Header) }
    }

    fn fields(&self) -> [u8; HEAD] {
        let mut out = [0; HEAD];
        out[0..4].copy_from_slice(&MAGIC);
        out[4] = self.kind;
        out[5] = u8::from(self.packed);
        out[6..8].copy_from_slice(&self.thread.to_le_bytes());
        out[8..12].copy_from_slice(&self.sequence.to_le_bytes());
        out[12..16].copy_from_slice(&self.items.to_le_bytes());
        out[16..20].copy_from_slice(&self.raw_len.to_le_bytes());
        out[20..24].copy_from_slice(&self.stored_len.to_le_bytes());
        out[24..32].copy_from_slice(&self.base.to_le_bytes());
        out[32..40].copy_from_slice(&self.sync.0.to_le_bytes());
        out[40..48].copy_from_slice(&self.sync.1.to_le_bytes());
        out[48..56].copy_from_slice(&self.checksum.to_le_bytes());
        out
    }

    /// The checksum of this head with `payload` as stored.
    pub fn digest(&self, payload: &[u8]) -> u64 {
        let mut hash = Xxh3::new();
        hash.update(&self.fields()[..48]);
        hash.update(payload);
        hash.digest()
    }

    /// Completes the lengths (plain payload) and the checksum, and returns the head's bytes.
    #[must_use]
    pub fn seal(mut self, payload: &[u8]) -> [u8; HEAD] {
        self.stored_len = payload.len() as u32;
        if !self.packed {
            self.raw_len = self.stored_len;
        }
        self.checksum = self.digest(payload);
        self.fields()
    }

    /// A whole frame with `payload`, compressed at zstd `level` if one is given and that makes it shorter.
    pub fn with_payload(mut self, payload: &[u8], level: Option<i32>) -> Vec<u8> {
        let packed = level.map(|level| crate::codec::pack(payload, level)).filter(|p| p.len() < payload.len());
        self.packed = packed.is_some();
        self.raw_len = payload.len() as u32;
        let stored = packed.as_deref().unwrap_or(payload);
        let mut out = self.seal(stored).to_vec();
        out.extend_from_slice(stored);
        out
    }

    /// Reads a head.
    ///
    /// # Errors
    /// A sentence if these bytes are not the head of a frame.
    pub fn parse(head: &[u8; HEAD]) -> Result<Frame, String> {
        let u16_at = |at: usize| u16::from_le_bytes([head[at], head[at + 1]]);
        let u32_at = |at: usize| u32::from_le_bytes(head[at..at + 4].try_into().expect("four bytes"));
        let u64_at = |at: usize| u64::from_le_bytes(head[at..at + 8].try_into().expect("eight bytes"));
        if head[0..4] != MAGIC {
            return Err("no frame starts here".into());
        }
        let packed = match head[5] {
            0 => false,
            1 => true,
            other => return Err(format!("unknown compression {other}")),
        };
        let frame = Frame {
            kind: head[4],
            packed,
            thread: u16_at(6),
            sequence: u32_at(8),
            items: u32_at(12),
            raw_len: u32_at(16),
            stored_len: u32_at(20),
            base: u64_at(24),
            sync: (u64_at(32), u64_at(40)),
            checksum: u64_at(48),
        };
        if frame.stored_len > MAX_STORED || frame.raw_len > MAX_STORED {
            return Err(format!("a frame claims {} bytes", frame.stored_len.max(frame.raw_len)));
        }
        if !packed && frame.raw_len != frame.stored_len {
            return Err("the two lengths of a plain frame differ".into());
        }
        Ok(frame)
    }

    /// Refuses a header frame of a version of the format that is not known; other frames pass.
    ///
    /// # Errors
    /// [`TraceError::Version`].
    pub fn check_version(&self, path: &Path) -> Result<(), TraceError> {
        let found = u16::try_from(self.sequence).unwrap_or(u16::MAX);
        if self.kind == Kind::Header as u8 && !(FORMAT_VERSION..=COUNTED_VERSION).contains(&found) {
            return Err(TraceError::Version { path: path.to_owned(), found, supported: COUNTED_VERSION });
        }
        Ok(())
    }

    /// The payload in the clear, if it fits the checksum.
    ///
    /// # Errors
    /// A sentence if the checksum or the compression is wrong.
    pub fn open(&self, stored: Vec<u8>) -> Result<Vec<u8>, String> {
        self.check(&stored)?;
        if self.packed { crate::codec::unpack(&stored, self.raw_len as usize) } else { Ok(stored) }
    }

    /// As [`Frame::open`], with memory that is used again.
    ///
    /// # Errors
    /// A sentence if the checksum or the compression is wrong.
    pub(crate) fn open_into(&self, stored: &[u8], unpacker: &mut Unpacker, out: &mut Vec<u8>) -> Result<(), String> {
        self.check(stored)?;
        if self.packed {
            return unpacker.unpack(stored, self.raw_len as usize, out);
        }
        out.extend_from_slice(stored);
        Ok(())
    }

    fn check(&self, stored: &[u8]) -> Result<(), String> {
        if self.digest(stored) == self.checksum { Ok(()) } else { Err("the checksum of a frame is wrong".into()) }
    }
}
