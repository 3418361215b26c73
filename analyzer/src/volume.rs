//! Classes of message volumes by chain linking: sorted, a new class starts where a volume exceeds 1.5 times the one
//! before it plus 64 bytes. Exact volumes would tear apart programs whose messages vary a little from step to step;
//! no volumes would throw different levels of a multigrid together.

/// Buckets 1/64 of an octave wide; volumes below 64 have one each. Neighbours within a bucket are always linked.
const BUCKETS: usize = 64 + 58 * 64;

fn bucket(bytes: u64) -> usize {
    if bytes < 64 {
        return bytes as usize;
    }
    let exponent = 63 - bytes.leading_zeros() as usize;
    64 + (exponent - 6) * 64 + ((bytes >> (exponent - 6)) & 63) as usize
}

/// The volumes seen: the least and the greatest of each bucket, which is all that chain linking needs.
#[derive(Clone)]
pub struct Volumes {
    ranges: Vec<(u64, u64)>,
    last: u64,
}

impl Default for Volumes {
    fn default() -> Self {
        Volumes { ranges: vec![(u64::MAX, 0); BUCKETS], last: u64::MAX }
    }
}

impl Volumes {
    /// Takes in one volume.
    #[inline]
    pub fn add(&mut self, bytes: u64) {
        if bytes != self.last {
            self.last = bytes;
            let range = &mut self.ranges[bucket(bytes)];
            *range = (range.0.min(bytes), range.1.max(bytes));
        }
    }

    /// Takes in all that `other` has seen.
    pub fn merge(&mut self, other: &Volumes) {
        for (mine, theirs) in self.ranges.iter_mut().zip(&other.ranges) {
            *mine = (mine.0.min(theirs.0), mine.1.max(theirs.1));
        }
    }

    /// The upper bounds of the classes, ascending: up to where a greater volume would still be linked.
    pub fn classes(&self) -> Vec<u64> {
        let mut bounds = Vec::new();
        let mut before: Option<u64> = None;
        for &(least, greatest) in self.ranges.iter().filter(|range| range.0 <= range.1) {
            if let Some(before) = before
                && least > linked_up_to(before)
            {
                bounds.push(linked_up_to(before));
            }
            before = Some(greatest);
        }
        bounds.extend(before.map(linked_up_to));
        bounds
    }
}

fn linked_up_to(bytes: u64) -> u64 {
    bytes.saturating_add(bytes / 2).saturating_add(64)
}

/// The class of a volume: the first whose upper bound is not below it.
#[inline]
pub fn class(bounds: &[u64], bytes: u64) -> u64 {
    bounds.partition_point(|&bound| bound < bytes) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn naive(mut volumes: Vec<u64>) -> Vec<Vec<u64>> {
        volumes.sort_unstable();
        volumes.dedup();
        let mut classes: Vec<Vec<u64>> = Vec::new();
        for volume in volumes {
            match classes.last_mut() {
                Some(class) if volume <= linked_up_to(*class.last().unwrap()) => class.push(volume),
                _ => classes.push(vec![volume]),
            }
        }
        classes
    }

    proptest! {
        #[test]
        fn the_same_as_linking_the_sorted_volumes(volumes in proptest::collection::vec(
            prop_oneof![0u64..2000, 0u64..200_000, any::<u64>(), (0u32..64).prop_map(|b| 1 << b)], 0..60))
        {
            let mut seen = Volumes::default();
            volumes.iter().for_each(|&v| seen.add(v));
            let bounds = seen.classes();
            let classes = naive(volumes);
            prop_assert_eq!(bounds.len(), classes.len());
            for (number, members) in classes.iter().enumerate() {
                for &volume in members {
                    prop_assert_eq!(class(&bounds, volume), number as u64);
                }
            }
        }
    }

    #[test]
    fn a_new_class_starts_beyond_half_as_much_again_and_64_bytes() {
        let mut seen = Volumes::default();
        [0, 64, 161, 1000, 1564, 2411].into_iter().for_each(|v| seen.add(v));
        assert_eq!(seen.classes(), [64 + 32 + 64, 161 + 80 + 64, 1564 + 782 + 64, 2411 + 1205 + 64]);
    }
}
