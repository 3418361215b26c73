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
    let bytes = *input;
    let first = *bytes.first()?;
    if first < 0x80 {
        *input = &bytes[1..];
        return Some(u64::from(first));
    }
    let mut value = u64::from(first & 0x7f);
    for (at, &byte) in bytes.iter().enumerate().take(MAX).skip(1) {
        let bits = u64::from(byte & 0x7f);
        if at == 9 && bits > 1 {
            return None;
        }
        value |= bits << (7 * at);
        if byte < 0x80 {
            *input = &bytes[at + 1..];
            return Some(value);
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
            while get(&mut rest).is_some() {}
        }
    }
}
