//! Variable-length integers: seven bits a byte, least significant first (LEB128), and zigzag for signed ones.

/// The longest varint in bytes.
pub const MAX: usize = 10;

/// Writes `value` at the start of `out` and returns how many bytes it took.
///
/// # Panics
/// If `out` has no room (fewer than [`MAX`] bytes always suffice).
#[inline]
pub fn put(out: &mut [u8], mut value: u64) -> usize {
    let mut at = 0;
    while value >= 0x80 {
        out[at] = value as u8 | 0x80;
        value >>= 7;
        at += 1;
    }
    out[at] = value as u8;
    at + 1
}

/// Reads a varint and moves `input` past it; `None` if it is cut off or longer than 64 bits.
#[inline]
pub fn get(input: &mut &[u8]) -> Option<u64> {
    let (value, length) = read(input)?;
    *input = &input[length..];
    Some(value)
}

/// Reads the varint at the start of `bytes`: its value and length; `None` if it is cut off or longer than 64 bits.
///
/// Up to eight bytes are taken at once and without a branch on the length, which in times is as good as random.
#[inline]
pub fn read(bytes: &[u8]) -> Option<(u64, usize)> {
    if let Some(word) = bytes.first_chunk::<8>() {
        let word = u64::from_le_bytes(*word);
        let ends = !word & 0x8080_8080_8080_8080;
        if ends != 0 {
            let length = ends.trailing_zeros() as usize / 8 + 1;
            // All bits up to the first that ends a number, then the 7-bit groups pushed together.
            let x = word & (ends ^ (ends - 1)) & 0x7f7f_7f7f_7f7f_7f7f;
            let x = (x & 0x007f_007f_007f_007f) | ((x & 0x7f00_7f00_7f00_7f00) >> 1);
            let x = (x & 0x0000_3fff_0000_3fff) | ((x & 0x3fff_0000_3fff_0000) >> 2);
            let x = (x & 0x0fff_ffff) | ((x & 0x0fff_ffff_0000_0000) >> 4);
            return Some((x, length));
        }
    }
    read_slowly(bytes)
}

#[cold]
fn read_slowly(bytes: &[u8]) -> Option<(u64, usize)> {
    let mut value = 0;
    for (at, &byte) in bytes.iter().enumerate().take(MAX) {
        let bits = u64::from(byte & 0x7f);
        if at == 9 && bits > 1 {
            return None;
        }
        value |= bits << (7 * at);
        if byte < 0x80 {
            return Some((value, at + 1));
        }
    }
    None
}

/// A signed number as an unsigned one that is small where its magnitude is.
#[inline]
pub fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

/// The inverse of [`zigzag`].
#[inline]
pub fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn round_trip(value: u64, signed: i64) {
            let mut out = [0; MAX];
            let used = put(&mut out, value);
            let mut rest = &out[..used];
            prop_assert_eq!(get(&mut rest), Some(value));
            prop_assert!(rest.is_empty());
            prop_assert_eq!(unzigzag(zigzag(signed)), signed);
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
            let mut rest = bytes.as_slice();
            while !rest.is_empty() {
                prop_assert_eq!(read(rest), read_slowly(rest));
                if get(&mut rest).is_none() {
                    break;
                }
            }
        }

        #[test]
        fn both_ways_of_reading_agree(value: u64, shift in 0u32..64, more: [u8; 16]) {
            let mut out = [0; MAX + 16];
            let used = put(&mut out, value >> shift);
            out[used..used + 16].copy_from_slice(&more);
            prop_assert_eq!(read(&out), Some((value >> shift, used)));
        }
    }
}
