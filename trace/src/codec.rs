//! The one place where structures become bytes (bincode) and where blocks are compressed (zstd).
use serde::{Serialize, de::DeserializeOwned};
use std::io::Read;

/// The largest block that a reader unpacks: a bound on what hostile input can make it allocate.
pub const MAX_BLOCK: usize = 1 << 30;

/// A structure as bytes.
///
/// # Panics
/// Never for the types of this project: they have no map with a non-string key and no unsized sequence.
pub fn to_bytes<T: Serialize>(value: &T) -> Vec<u8> {
    bincode::serde::encode_to_vec(value, bincode::config::standard()).expect("our own types can be encoded")
}

/// A structure from bytes; the whole of `bytes` must be used. Memory is bounded by their number, not by what they claim.
///
/// # Errors
/// A sentence if the bytes are not such a structure.
pub fn from_bytes<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    // An integer counts as up to 8 bytes, of which one may be there. The limit is a constant to bincode, hence steps.
    match bytes.len() {
        0..=0x2000 => limited::<T, 0x2_0000>(bytes),
        0x2001..=0x2_0000 => limited::<T, 0x20_0000>(bytes),
        0x2_0001..=0x20_0000 => limited::<T, 0x200_0000>(bytes),
        _ => limited::<T, MAX_BLOCK>(bytes),
    }
}

/// A list of at most `most` structures from bytes, as [`from_bytes`].
///
/// # Errors
/// A sentence if the bytes are not such a list.
pub fn list<T: DeserializeOwned>(bytes: &[u8], most: usize) -> Result<Vec<T>, String> {
    let length = bincode::serde::decode_from_slice::<u64, _>(bytes, bincode::config::standard());
    match length {
        Ok((length, _)) if length > most as u64 => Err(format!("a list claims {length} items, more than {most}")),
        _ => from_bytes(bytes),
    }
}

fn limited<T: DeserializeOwned, const LIMIT: usize>(bytes: &[u8]) -> Result<T, String> {
    let config = bincode::config::standard().with_limit::<LIMIT>();
    match bincode::serde::decode_from_slice(bytes, config) {
        Ok((value, used)) if used == bytes.len() => Ok(value),
        Ok((_, used)) => Err(format!("{} bytes are left over after a record", bytes.len() - used)),
        Err(error) => Err(format!("a record cannot be decoded ({error})")),
    }
}

/// Compresses a block at zstd `level`.
///
/// # Panics
/// Never: the level is valid and memory is the only other need.
pub fn pack(bytes: &[u8], level: i32) -> Vec<u8> {
    zstd::bulk::compress(bytes, level).expect("zstd compresses any block")
}

/// Unpacks a block whose unpacked length is known. Memory grows as bytes come, not by what `length` claims.
///
/// # Errors
/// A sentence if it is not a zstd block of that length.
pub fn unpack(bytes: &[u8], length: usize) -> Result<Vec<u8>, String> {
    if length > MAX_BLOCK {
        return Err(format!("a block claims {length} bytes, more than the {MAX_BLOCK} that are allowed"));
    }
    let mut out = Vec::new();
    let decoder = zstd::stream::read::Decoder::with_buffer(bytes).map_err(|error| format!("zstd fails ({error})"))?;
    let read = decoder.single_frame().take(length as u64 + 1).read_to_end(&mut out);
    read.map_err(|error| format!("a block cannot be unpacked ({error})"))?;
    if out.len() == length { Ok(out) } else { Err(format!("a block has {} bytes instead of {length}", out.len())) }
}

/// Unpacks many small blocks with one state.
#[derive(Default)]
pub struct Unpacker(Option<zstd::bulk::Decompressor<'static>>);

impl Unpacker {
    /// Unpacks a block of `length` bytes to the emptied `out`, which is made that large.
    ///
    /// # Errors
    /// A sentence if it is not a zstd block of that length.
    pub fn unpack(&mut self, bytes: &[u8], length: usize, out: &mut Vec<u8>) -> Result<(), String> {
        out.clear();
        out.reserve(length);
        whole(self.state()?.decompress_to_buffer(bytes, out), length)
    }

    /// Unpacks a block that has exactly the length of `out`.
    ///
    /// # Errors
    /// A sentence if it is not a zstd block of that length.
    pub fn unpack_to(&mut self, bytes: &[u8], out: &mut [u8]) -> Result<(), String> {
        whole(self.state()?.decompress_to_buffer(bytes, out), out.len())
    }

    fn state(&mut self) -> Result<&mut zstd::bulk::Decompressor<'static>, String> {
        let state = match self.0.take() {
            Some(state) => state,
            None => zstd::bulk::Decompressor::new().map_err(|error| format!("zstd fails ({error})"))?,
        };
        Ok(self.0.insert(state))
    }
}

fn whole(unpacked: std::io::Result<usize>, length: usize) -> Result<(), String> {
    let read = unpacked.map_err(|error| format!("a block cannot be unpacked ({error})"))?;
    if read == length { Ok(()) } else { Err(format!("a block has {read} bytes instead of {length}")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type Record = (Vec<String>, Vec<(u64, i32, u8)>, Option<Vec<u32>>);

    proptest! {
        #[test]
        fn records_of_any_length(texts: Vec<String>, small in 0u64..3, count in 0usize..20_000, more: Option<Vec<u32>>) {
            let record: Record = (texts, vec![(small, small as i32, 0); count], more);
            prop_assert_eq!(from_bytes::<Record>(&to_bytes(&record)), Ok(record));
        }
    }

    #[test]
    fn a_claim_is_refused_before_memory_is_taken() {
        // A string of 2^29 bytes, of which 3 are there.
        let claims = [&[252, 0, 0, 0, 32][..], b"abc"].concat();
        assert!(from_bytes::<String>(&claims).unwrap_err().contains("LimitExceeded"));
    }
}
