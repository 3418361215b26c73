//! Mutations of bytes, for tests of readers; also of those of images.
use proptest::prelude::*;
use proptest::sample::Index;

/// A mutation of bytes: where, from where, how.
pub type Edit = (Index, Index, u8, u8);

/// Some mutations.
pub fn edits() -> impl Strategy<Value = Vec<Edit>> {
    prop::collection::vec((any::<Index>(), any::<Index>(), 0u8..7, any::<u8>()), 1..8)
}

/// Carries them out.
pub fn mutate(bytes: &mut Vec<u8>, edits: &[Edit]) {
    for (at, from, how, value) in edits {
        if bytes.is_empty() {
            return;
        }
        let (at, from) = (at.index(bytes.len()), from.index(bytes.len()));
        match how {
            0 => bytes[at] ^= 1 << (value & 7),
            1 => bytes[at] = *value,
            2 => bytes[at] = 0xff,
            3 => bytes.insert(at, *value),
            4 => {
                bytes.remove(at);
            }
            5 => bytes.truncate(at),
            _ => {
                let piece = bytes[from..(from + usize::from(*value)).min(bytes.len())].to_vec();
                bytes.splice(at..at, piece);
            }
        }
    }
}
