//! Blocks of memory for the program: large ones have pages of their own, small ones share pages, as those of a heap do.
use crate::memory::PAGE;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Range;

/// The largest block that shares its pages with others.
const SMALL: usize = PAGE;
/// Bytes of pages that are taken for small blocks at a time.
const STRETCH: usize = 64 * PAGE;

/// Blocks by their addresses.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Blocks {
    /// Those in use, and how long they are.
    used: BTreeMap<usize, usize>,
    /// Small ones that are free, by their length, a power of two.
    free: BTreeMap<usize, Vec<usize>>,
    /// What is left of the last stretch of pages.
    rest: Range<usize>,
}

impl Blocks {
    /// A block of `size` bytes. `pages` yields that many bytes of new pages.
    pub fn take(&mut self, size: usize, mut pages: impl FnMut(usize) -> Option<usize>) -> Option<usize> {
        let small = size <= SMALL;
        let length = if small { size.max(16).next_power_of_two() } else { size.checked_next_multiple_of(PAGE)? };
        let at = match self.free.get_mut(&length).and_then(Vec::pop) {
            Some(at) => at,
            None if small => self.cut_off(length, pages)?,
            None => pages(length)?,
        };
        self.used.insert(at, length);
        Some(at)
    }

    /// A new small block, at a multiple of its length.
    fn cut_off(&mut self, length: usize, mut pages: impl FnMut(usize) -> Option<usize>) -> Option<usize> {
        let mut at = self.rest.start.next_multiple_of(length);
        if at + length > self.rest.end {
            at = pages(STRETCH)?;
            self.rest.end = at + STRETCH;
        }
        self.rest.start = at + length;
        Some(at)
    }

    /// Ends the use of a block; false if there is none there. `back` is given its pages if they are its own.
    pub fn give_back(&mut self, at: usize, back: impl FnOnce(usize, usize)) -> bool {
        let Some(length) = self.used.remove(&at) else { return false };
        if length > SMALL {
            back(at, length);
        } else {
            self.free.entry(length).or_default().push(at);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn blocks_in_use_lie_apart(steps in prop::collection::vec((0usize..3 * PAGE, any::<bool>()), 1..400)) {
            let (mut blocks, mut next, mut there) = (Blocks::default(), 1usize << 30, BTreeMap::new());
            for (size, give) in steps {
                if give && let Some((at, size)) = there.pop_first() {
                    prop_assert!(blocks.give_back(at, |_, length| assert!(length >= size && length > SMALL)));
                    prop_assert!(!blocks.give_back(at, |_, _| ()));
                }
                let at = blocks.take(size, |length| { next += length; Some(next - length) }).unwrap();
                prop_assert!(at % 16 == 0 && at + size <= next);
                let before = there.range(..=at).next_back();
                prop_assert!(before.is_none_or(|(&start, &length)| start + length <= at && start < at));
                prop_assert!(there.range(at..).next().is_none_or(|(&start, _)| at + size <= start));
                there.insert(at, size);
            }
        }
    }

    #[test]
    fn small_blocks_share_pages() {
        let (mut blocks, mut pages) = (Blocks::default(), 0);
        for _ in 0..1000 {
            blocks.take(24, |length| {
                pages += length;
                Some(pages << 20)
            });
        }
        assert_eq!(pages, STRETCH);
        assert_eq!(blocks.take(usize::MAX, |_| None), None);
    }
}
