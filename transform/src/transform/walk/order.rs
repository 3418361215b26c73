//! The order of times: which thread's call is the next on the target.
//!
//! With many ranks the next call is nearly always another rank's, so which way a comparison goes is as good as random. A
//! binary heap branches on each; in a tree of winners the way from a leaf to the root is known, and none does.

/// No call.
const NEVER: u128 = u128::MAX;

/// The times of all lanes that are ready, and who is first. Of the same time, the lane with the lower number is.
pub struct Order {
    /// The root is entry 1, the children of n are 2 n and 2 n + 1, and the second half are the lanes. An entry is a time
    /// as bits, which of times that are not negative keep their order, followed by the lane.
    nodes: Vec<u128>,
}

impl Order {
    /// No lane is ready.
    pub fn new() -> Order {
        Order { nodes: vec![NEVER; 2] }
    }

    /// The call of a lane is at this time, in ns, in the place of what was there of it.
    #[inline]
    pub fn set(&mut self, lane: u32, time: f64) {
        while lane as usize >= self.nodes.len() / 2 {
            self.grow();
        }
        self.replace(lane, u128::from(time.to_bits()) << 32 | u128::from(lane));
    }

    /// A lane, which has had a time before, is not ready any more.
    #[inline]
    pub fn clear(&mut self, lane: u32) {
        self.replace(lane, NEVER);
    }

    /// The first time, and its lane.
    #[inline]
    pub fn first(&self) -> Option<(f64, u32)> {
        let first = self.nodes[1];
        (first as u32 != u32::MAX).then_some((f64::from_bits((first >> 32) as u64), first as u32))
    }

    #[inline]
    fn replace(&mut self, lane: u32, mut entry: u128) {
        let mut at = self.nodes.len() / 2 + lane as usize;
        self.nodes[at] = entry;
        while at > 1 {
            entry = entry.min(self.nodes[at ^ 1]);
            at /= 2;
            self.nodes[at] = entry;
        }
    }

    #[cold]
    fn grow(&mut self) {
        let lanes = self.nodes.split_off(self.nodes.len() / 2);
        self.nodes = vec![NEVER; 4 * lanes.len()];
        for (at, entry) in lanes.into_iter().enumerate() {
            self.replace(at as u32, entry);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_first_is_the_least(steps in proptest::collection::vec((0u32..40, proptest::option::of(0u8..20)), 0..200)) {
            let mut order = Order::new();
            let mut times = [None; 40];
            for (lane, time) in steps {
                let time = time.map(f64::from);
                match time {
                    Some(time) => order.set(lane, time),
                    None if times[lane as usize].is_some() => order.clear(lane),
                    None => {}
                }
                times[lane as usize] = time;
                let known = times.iter().zip(0..).filter_map(|(time, lane)| Some(((*time)?, lane)));
                prop_assert_eq!(order.first(), known.min_by(|a, b| a.partial_cmp(b).expect("numbers")));
            }
        }
    }
}
