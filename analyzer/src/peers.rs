//! Messages of ranks by peer, counted in a first pass: whether what one rank has sent is what the other has received.
use crate::matching::FastMap;
use crate::symbol::mix;

/// Runs of more ranks have their messages counted by the peers that a rank has, not by all ranks.
const DENSE: usize = 1024;

/// Messages of one peer: how many, and a sum over their communicators, tags and lengths, which is the same on both sides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Told {
    count: u64,
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
    fn of(&self, peer: u32) -> Told {
        self.dense.get(peer as usize).or_else(|| self.sparse.get(&peer)).copied().unwrap_or_default()
    }

    /// The peers with some.
    fn all(&self) -> impl Iterator<Item = (u32, Told)> {
        let dense = self.dense.iter().enumerate().map(|(peer, told)| (peer as u32, *told));
        dense.chain(self.sparse.iter().map(|(peer, told)| (*peer, *told))).filter(|(_, told)| told.count > 0)
    }
}

/// The messages of a rank.
#[derive(Default)]
pub struct Messages {
    /// Those that it has sent.
    pub sent: Peers,
    /// Those that it has received.
    pub received: Peers,
}

impl Messages {
    /// None yet, in a run of so many ranks.
    pub fn new(ranks: usize) -> Messages {
        Messages { sent: Peers::new(ranks), received: Peers::new(ranks) }
    }
}

/// Messages from one rank to another that were not all received with the lengths with which they were sent, as far as
/// recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Uneven {
    /// How many were sent.
    pub sent: u64,
    /// Whether more were received: something was not recorded.
    pub short: bool,
}

/// How what was sent differs from what was received.
#[derive(Clone, Debug, Default)]
pub struct Differences {
    uneven: FastMap<(u32, u32), Uneven>,
    /// Sends without a receive and receives without a send, as far as the counts of pairs tell.
    pub unmatched: (u64, u64),
}

impl Differences {
    /// What is uneven from one rank to another.
    #[inline]
    pub fn of(&self, source: u32, destination: u32) -> Option<Uneven> {
        self.uneven.get(&(source, destination)).copied()
    }
}

/// Compares the messages of all ranks, from 0 up.
pub fn differences<'a>(ranks: impl Iterator<Item = &'a Messages>) -> Differences {
    let all: Vec<&Messages> = ranks.collect();
    let of = |peer: u32| all.get(peer as usize);
    let mut found = Differences::default();
    for (rank, own) in (0..).zip(&all) {
        for (source, received) in own.received.all() {
            let sent = of(source).map(|other| other.sent.of(rank)).unwrap_or_default();
            if received != sent {
                let short = received.count > sent.count;
                found.uneven.insert((source, rank), Uneven { sent: sent.count, short });
            }
            found.unmatched.1 += received.count.saturating_sub(sent.count);
        }
        for (destination, sent) in own.sent.all() {
            let received = of(destination).map_or(0, |other| other.received.of(rank).count);
            found.unmatched.0 += sent.count.saturating_sub(received);
        }
    }
    found
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

    #[test]
    fn pairs_differ_in_lengths_or_in_counts() {
        let mut ranks = [0, 1, 2].map(|_| Messages::new(3));
        let mut message = |from: usize, to: usize, sent: &[u64], received: &[u64]| {
            sent.iter().for_each(|&bytes| ranks[from].sent.add(to as i32, 1, 0, 9, bytes));
            received.iter().for_each(|&bytes| ranks[to].received.add(from as i32, 1, 0, 9, bytes));
        };
        message(0, 1, &[8, 4], &[4, 8]);
        message(0, 2, &[8, 4], &[8]);
        message(1, 2, &[8], &[4]);
        message(2, 0, &[8], &[8, 8, 8]);
        message(2, 1, &[8, 8], &[]);
        let Differences { uneven, unmatched } = differences(ranks.iter());
        let mut uneven: Vec<_> = uneven.into_iter().map(|(pair, Uneven { sent, short })| (pair, sent, short)).collect();
        uneven.sort_unstable();
        assert_eq!(uneven, [((0, 2), 2, false), ((1, 2), 1, false), ((2, 0), 1, true)]);
        assert_eq!(unmatched, (3, 2));
    }
}
