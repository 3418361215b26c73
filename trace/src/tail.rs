//! The tail: a small file, mapped and shared, in which a thread builds its next chunk.
//!
//! It holds what a rank has recorded but not yet written, so that nothing is lost with a killed process and a
//! follower sees each call as soon as it is complete.
//! ```text
//! 0   magic "PHCTAIL1"   8 thread u32   12 sequence u32 (atomic)   16 committed u32 (atomic)   20 items u32 (atomic)
//! 24  base units u64     32..64 zero    64 head of the frame to be (56 bytes)   120 payload
//! ```
//! A writer appends to the payload, then stores `committed`. When it has written the chunk to the rank's file it
//! stores `committed` 0, `base`, and then `sequence` + 1.

/// The first bytes of a tail.
pub const MAGIC: [u8; 8] = *b"PHCTAIL1";
/// Where the head of the frame stands.
pub const FRAME: usize = 64;
/// Where the payload starts.
pub const PAYLOAD: usize = FRAME + crate::frame::HEAD;
/// Length of the payload: a chunk is at most this long.
pub const CAPACITY: usize = 64 * 1024;
/// Length of the file.
pub const LENGTH: usize = PAYLOAD + CAPACITY;
/// Offsets of the fields.
pub mod offset {
    /// `thread`.
    pub const THREAD: usize = 8;
    /// `sequence`.
    pub const SEQUENCE: usize = 12;
    /// `committed`.
    pub const COMMITTED: usize = 16;
    /// `items`.
    pub const ITEMS: usize = 20;
    /// `base`.
    pub const BASE: usize = 24;
}

/// What a tail held at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The thread.
    pub thread: u16,
    /// The chunk's number.
    pub sequence: u32,
    /// Clock units before its first item.
    pub base: u64,
    /// The committed payload.
    pub payload: Vec<u8>,
}

/// Reads a tail's bytes; `None` if they are not a tail.
pub fn parse(bytes: &[u8]) -> Option<Snapshot> {
    if bytes.len() < PAYLOAD || bytes[..8] != MAGIC {
        return None;
    }
    let u32_at = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
    let committed = u32_at(offset::COMMITTED) as usize;
    let payload = bytes.get(PAYLOAD..PAYLOAD.checked_add(committed)?)?.to_vec();
    Some(Snapshot {
        thread: u16::try_from(u32_at(offset::THREAD)).ok()?,
        sequence: u32_at(offset::SEQUENCE),
        base: u64::from_le_bytes(bytes[offset::BASE..offset::BASE + 8].try_into().expect("eight bytes")),
        payload,
    })
}

/// Rank and thread of a tail of this name; none if it is the name of something else.
pub fn parse_name(name: &str) -> Option<(u32, u16)> {
    let (rank, thread) = name.strip_prefix("rank-")?.strip_suffix(".tail")?.split_once('.')?;
    let ids = (rank.parse().ok()?, thread.parse().ok()?);
    (file_name(ids.0, ids.1) == name).then_some(ids)
}

/// The name of the tail of a rank's thread.
pub fn file_name(rank: u32, thread: u16) -> String {
    format!("rank-{rank:05}.{thread}.tail")
}
