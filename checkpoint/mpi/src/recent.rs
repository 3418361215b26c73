//! Handles that were translated of late.
use phasecast_abi::Kind;

/// Entries for each kind.
const WAYS: usize = 64;

/// What handles of the program, virtual or predefined, were translated to of late: for each kind, by what the handle's bits
/// choose.
#[derive(Clone, Debug)]
pub struct Recent(Vec<[(usize, usize); WAYS]>);

impl Default for Recent {
    fn default() -> Recent {
        Recent(vec![[(usize::MAX, 0); WAYS]; Kind::Number as usize + 1])
    }
}

impl Recent {
    /// The entry that is the handle's: the handle that it is of, and the library's.
    #[inline(always)]
    pub fn entry(&mut self, kind: Kind, handle: usize) -> &mut (usize, usize) {
        &mut self.0[kind as usize][(handle ^ handle >> 6 ^ handle >> 9) & (WAYS - 1)]
    }
}
