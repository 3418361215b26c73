//! Paths in buffers of their own, for code that must not allocate.
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// Longest path.
pub(crate) const MOST: usize = 4096;
/// A mark's name: 32 hexadecimal digits.
const NAME: usize = 32;

/// A path that ends with a zero byte.
pub(crate) struct Text {
    pub(crate) bytes: [u8; MOST + 64],
    pub(crate) len: usize,
}

impl Text {
    pub(crate) const fn new() -> Self {
        Self { bytes: [0; MOST + 64], len: 0 }
    }

    pub(crate) fn get(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or(&[])
    }

    pub(crate) fn set(&mut self, parts: &[&[u8]]) -> bool {
        self.len = 0;
        parts.iter().all(|p| self.push(p))
    }

    fn push(&mut self, part: &[u8]) -> bool {
        let end = self.len + part.len();
        if end > MOST {
            return false;
        }
        if let Some(place) = self.bytes.get_mut(self.len..end) {
            place.copy_from_slice(part);
        }
        self.len = end;
        self.bytes[end] = 0;
        true
    }

    /// Leaves only the first bytes.
    pub(crate) fn cut(&mut self, len: usize) {
        self.len = len;
        self.bytes[len] = 0;
    }

    /// Does something with the path up to a slash.
    pub(crate) fn up_to<T>(&mut self, slash: usize, with: impl FnOnce(&Text) -> T) -> T {
        self.bytes[slash] = 0;
        let result = with(self);
        self.bytes[slash] = b'/';
        result
    }

    /// Appends a path, `.` and `..` resolved by their names.
    pub(crate) fn walk(&mut self, path: &[u8]) -> bool {
        path.split(|b| *b == b'/').all(|part| match part {
            b"" | b"." => true,
            b".." => {
                let cut = self.get().iter().rposition(|b| *b == b'/').unwrap_or(0);
                self.cut(cut);
                true
            }
            _ => self.push(b"/") && self.push(part),
        })
    }

    pub(crate) fn path(&self) -> PathBuf {
        PathBuf::from(OsStr::from_bytes(self.get()))
    }

    pub(crate) fn address(&self) -> *const u8 {
        self.bytes.as_ptr()
    }
}

/// Where FNV-1a starts.
pub(crate) const START: u64 = 0xcbf2_9ce4_8422_2325;

/// The hash FNV-1a of some bytes.
pub(crate) fn hash(bytes: &[u8], start: u64) -> u64 {
    bytes.iter().fold(start, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3))
}

/// The last hexadecimal digits of a number.
pub(crate) fn digits<const N: usize>(number: u64) -> [u8; N] {
    std::array::from_fn(|at| b"0123456789abcdef"[(number >> (4 * (N - 1 - at))) as usize & 15])
}

/// The name of a path's mark on a machine: two hashes (FNV-1a with different starts).
pub(crate) fn name(path: &[u8], machine: u32) -> [u8; NAME] {
    let mut name = [0; NAME];
    for (half, start) in [START, 0x6c62_272e_07bb_0142].into_iter().enumerate() {
        let hash = hash(path, start ^ u64::from(machine));
        name[half * 16..][..16].copy_from_slice(&digits::<16>(hash));
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lose_their_dots() {
        let mut text = Text::new();
        assert!(text.walk(b"/a/./b//c/../d/") && text.get() == b"/a/b/d" && text.bytes[6] == 0);
        assert!(text.walk(b"../../../x") && text.get() == b"/x");
        assert!(!text.walk(&[b'y'; MOST]));
    }
}
