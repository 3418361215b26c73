//! Messages of a rank by peer, counted in a first pass: whether what one rank has sent is what the other has received.
use crate::matching::FastMap;
use crate::symbol::mix;

/// Runs of more ranks have their messages counted by the peers that a rank has, not by all ranks.
const DENSE: usize = 1024;

/// Messages of one peer: how many, and a sum over their communicators, tags and lengths, which is the same on both sides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// How many.
    pub count: u64,
    sum: u64,
}

/// Messages by peer.
#[derive(Default)]
pub struct Peers {
    dense: Vec<Told>,
    sparse: FastMap<u32, Told>,
}

impl Peers {
    /// None yet, in a run of so many ranks.
    pub fn new(ranks: usize) -> Peers {
        Peers { dense: vec![Told::default(); if ranks > DENSE { 0 } else { ranks }], sparse: FastMap::default() }
    }

    /// Takes in so many messages that are alike; a peer that is no rank has none.
    pub fn add(&mut self, peer: i32, times: u64, comm: u32, tag: i32, bytes: u64) {
        let Ok(peer) = u32::try_from(peer) else { return };
        let told = if self.dense.is_empty() {
            self.sparse.entry(peer).or_default()
        } else if let Some(told) = self.dense.get_mut(peer as usize) {
            told
        } else {
            return;
        };
        let mark = mix(mix(u64::from(comm) << 32 | u64::from(tag as u32)).wrapping_add(bytes));
        told.count += times;
        told.sum = told.sum.wrapping_add(mark.wrapping_mul(times));
    }

    /// Those of a peer.
    pub fn of(&self, peer: u32) -> Told {
        self.dense.get(peer as usize).or_else(|| self.sparse.get(&peer)).copied().unwrap_or_default()
    }

    /// The peers with some.
    pub fn all(&self) -> impl Iterator<Item = (u32, Told)> {
        let dense = self.dense.iter().enumerate().map(|(peer, told)| (peer as u32, *told));
        dense.chain(self.sparse.iter().map(|(peer, told)| (*peer, *told))).filter(|(_, told)| told.count > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peers_are_counted_alike_in_small_and_in_large_runs() {
        for ranks in [8, DENSE + 1] {
            let [mut peers, mut again] = [0, 1].map(|_| Peers::new(ranks));
            for (peer, times, bytes) in [(3, 2, 10), (7, 1, 5), (3, 1, 1)] {
                peers.add(peer, times, 0, 9, bytes);
            }
            for (peer, times, bytes) in [(3, 1, 1), (3, 1, 10), (7, 1, 6), (3, 1, 10)] {
                again.add(peer, times, 0, 9, bytes);
            }
            let mut all: Vec<(u32, u64)> = peers.all().map(|(peer, told)| (peer, told.count)).collect();
            all.sort_unstable();
            assert_eq!((all, peers.of(4)), (vec![(3, 3), (7, 1)], Told::default()));
            assert_eq!(peers.of(3), again.of(3));
            assert_ne!(peers.of(7), again.of(7), "another length");
        }
    }
}
