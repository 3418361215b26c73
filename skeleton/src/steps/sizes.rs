//! Which message sizes count as the same, so that a loop whose messages vary a little is still a loop.
//!
//! Sizes within 5 % of their neighbours are one class. Where many such classes lie close together (a chain by the
//! analyzer's volume classes), they are one too: the program then has a size of its own for each message, not a few.
//! What stands in the skeleton is the median of each place.
use phasecast_analyzer::volume::{self, Volumes};
use std::collections::BTreeMap;

/// Sizes up to this share above their neighbour are the same.
const NEAR: f64 = 1.05;
/// Classes of near sizes in one of the analyzer's volume classes that are still kept apart.
const FEW: usize = 8;
/// Different sizes that are remembered; beyond that only the analyzer's classes count.
const MOST: usize = 1 << 16;

/// The sizes that were seen.
#[derive(Clone, Default)]
pub struct Seen {
    exact: BTreeMap<u64, u64>,
    volumes: Volumes,
    last: Option<u64>,
}

impl Seen {
    /// Takes in one size.
    pub fn add(&mut self, bytes: u64) {
        if self.last == Some(bytes) {
            return;
        }
        self.last = Some(bytes);
        self.volumes.add(bytes);
        if self.exact.len() < MOST || self.exact.contains_key(&bytes) {
            *self.exact.entry(bytes).or_default() += 1;
        }
    }

    /// Takes in all that `other` has seen.
    pub fn merge(&mut self, other: &Seen) {
        self.volumes.merge(&other.volumes);
        for (&bytes, &count) in &other.exact {
            if self.exact.len() < MOST || self.exact.contains_key(&bytes) {
                *self.exact.entry(bytes).or_default() += count;
            }
        }
    }
}

/// Classes of sizes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// For the least size of each class: its number is its place, and whether it holds only that size.
    starts: Vec<(u64, bool)>,
}

impl Sizes {
    /// The classes of the sizes seen.
    pub fn new(seen: &Seen) -> Sizes {
        let coarse = seen.volumes.classes();
        let mut starts = Vec::new();
        let sizes: Vec<u64> = seen.exact.keys().copied().collect();
        for chain in sizes.chunk_by(|a, b| volume::class(&coarse, *a) == volume::class(&coarse, *b)) {
            let near: Vec<&[u64]> = chain.chunk_by(|a, b| *b as f64 <= *a as f64 * NEAR).collect();
            if sizes.len() < MOST && near.len() <= FEW {
                starts.extend(near.iter().map(|class| (class[0], class.len() == 1)));
            } else {
                starts.push((chain[0], chain.len() == 1));
            }
        }
        Sizes { starts }
    }

    /// What stands for a size in the comparison of symbols: the least size of its class.
    pub fn of(&self, bytes: u64) -> u64 {
        let after = self.starts.partition_point(|(start, _)| *start <= bytes);
        self.starts.get(after.wrapping_sub(1)).map_or(bytes, |(start, _)| *start)
    }

    /// Whether the class holds several sizes, so that a place must find its own.
    pub fn varies(&self, bytes: u64) -> bool {
        let after = self.starts.partition_point(|(start, _)| *start <= bytes);
        self.starts.get(after.wrapping_sub(1)).is_none_or(|(_, single)| !single)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(of: impl IntoIterator<Item = u64>) -> Sizes {
        let mut seen = Seen::default();
        of.into_iter().for_each(|bytes| seen.add(bytes));
        Sizes::new(&seen)
    }

    #[test]
    fn few_sizes_are_kept_apart_and_near_ones_are_one() {
        let classes = sizes([0, 8, 40, 1000, 1040, 1300, 1301]);
        assert_eq!([8, 40, 1000, 1040, 1300, 1301].map(|b| classes.of(b)), [8, 40, 1000, 1000, 1300, 1300]);
        assert_eq!([8, 1040, 1300].map(|b| classes.varies(b)), [false, true, true]);
    }

    #[test]
    fn sizes_of_their_own_for_each_message_are_one_class() {
        let classes = sizes((0..40).map(|i| 1000 + 100 * i).chain([200_000]));
        assert!((0..40).all(|i| classes.of(1000 + 100 * i) == 1000));
        assert_eq!(classes.of(200_000), 200_000);
    }
}
