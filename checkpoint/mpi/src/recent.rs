//! Handles that were translated of late.
use phasecast_abi::Kind;

/// Entries for each kind.
const WAYS: usize = 64;

/// No handle, neither an address nor a number with a sign.
const NONE: usize = usize::MAX / 3;

/// What handles of the program, virtual or predefined, were translated to of late: for each kind, by what the handle's bits
/// choose.
#[derive(Clone, Debug)]
pub struct Recent(Vec<[(usize, usize); WAYS]>);

impl Default for Recent {
    fn default() -> Recent {
        Recent(vec![[(NONE, 0); WAYS]; Kind::Number as usize + 1])
    }
}

impl Recent {
    /// The entry that is the handle's: the handle that it is of, and the library's.
    #[inline(always)]
    pub fn entry(&mut self, kind: Kind, handle: usize) -> &mut (usize, usize) {
        &mut self.0[kind as usize][(handle ^ handle >> 6 ^ handle >> 9) & (WAYS - 1)]
    }

    /// A handle stands for something else from now on.
    pub fn forget(&mut self, kind: Kind, handle: usize) {
        let entry = self.entry(kind, handle);
        if entry.0 == handle {
            *entry = (NONE, 0);
        }
    }
}
