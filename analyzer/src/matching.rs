//! Matching: sends with receives first in, first out per (source, destination, communicator, tag), and collectives by
//! communicator and sequence. Only counts are kept: the n-th receive of a channel belongs to its n-th send.
use crate::survey::Survey;
use phasecast_trace::Trace;
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hash, Hasher};

/// A hasher for small keys of integers: our keys are not chosen by an adversary who gains from collisions.
#[derive(Default)]
pub struct Mixer(u64);

impl Hasher for Mixer {
    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 29)
    }
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&b| self.write_u64(u64::from(b)));
    }
    #[inline]
    fn write_u32(&mut self, n: u32) {
        self.write_u64(u64::from(n));
    }
    #[inline]
    fn write_i32(&mut self, n: i32) {
        self.write_u64(u64::from(n as u32));
    }
    #[inline]
    fn write_u64(&mut self, n: u64) {
        self.0 = (self.0.rotate_left(23) ^ n).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
    #[inline]
    fn write_usize(&mut self, n: usize) {
        self.write_u64(n as u64);
    }
}

/// A map with that hasher.
pub type FastMap<K, V> = HashMap<K, V, BuildHasherDefault<Mixer>>;

/// What messages are matched by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Channel {
    /// The sender's rank.
    pub source: u32,
    /// The receiver's rank.
    pub destination: u32,
    /// The communicator.
    pub comm: u32,
    /// The tag.
    pub tag: i32,
}

impl Hash for Channel {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(u64::from(self.source) << 32 | u64::from(self.destination));
        state.write_u64(u64::from(self.comm) << 32 | u64::from(self.tag as u32));
    }
}

/// Messages of a channel so far.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    sent: u64,
    received: u64,
}

/// Counts the messages of all channels.
pub struct Channels {
    counts: FastMap<Channel, Counts>,
    short: HashSet<(u32, u32)>,
    sweep_at: usize,
    /// Messages sent but not received.
    pub in_flight: i64,
}

impl Channels {
    /// No message yet; receives on pairs that are short of sends will not wait for one.
    pub fn new(survey: &Survey) -> Channels {
        Channels {
            counts: FastMap::default(),
            short: survey.short.iter().copied().collect(),
            sweep_at: 1 << 16,
            in_flight: 0,
        }
    }

    /// A message is sent.
    #[inline]
    pub fn send(&mut self, channel: Channel) {
        self.in_flight += 1;
        self.counts.entry(channel).or_default().sent += 1;
    }

    /// A message is received; returns whether its send has been counted (or cannot be expected).
    #[inline]
    pub fn receive(&mut self, channel: Channel) -> bool {
        self.in_flight -= 1;
        let counts = self.counts.entry(channel).or_default();
        counts.received += 1;
        counts.received <= counts.sent || !self.short.is_empty() && self.expected_short(channel)
    }

    fn expected_short(&self, channel: Channel) -> bool {
        self.short.contains(&(channel.source, channel.destination))
    }

    /// Whether all receives counted have their sends.
    #[inline]
    pub fn satisfied(&self, channel: Channel) -> bool {
        self.counts.get(&channel).is_none_or(|c| c.received <= c.sent)
    }

    /// Forgets channels with nothing under way, when there are many: programs that use every tag once.
    pub fn sweep(&mut self) {
        if self.counts.len() > self.sweep_at {
            self.counts.retain(|_, c| c.sent != c.received);
            self.sweep_at = (2 * self.counts.len()).max(1 << 16);
        }
    }

    /// Sends without receive and receives without send.
    pub fn unmatched(&self) -> (u64, u64) {
        self.counts.values().fold((0, 0), |(sends, receives), c| {
            (sends + c.sent.saturating_sub(c.received), receives + c.received.saturating_sub(c.sent))
        })
    }
}

/// Counts the collectives of every communicator.
pub struct Collectives {
    members: Vec<Vec<u32>>,
    balanced: Vec<bool>,
    /// For each communicator, collectives of each rank (by world rank) and the most of any.
    done: Vec<FastMap<u32, u64>>,
    level: Vec<u64>,
}

impl Collectives {
    /// None yet.
    pub fn new(trace: &Trace, survey: &Survey) -> Collectives {
        let members: Vec<Vec<u32>> =
            trace.comms().iter().map(|c| c.members.iter().chain(&c.remote).copied().collect()).collect();
        Collectives {
            done: members.iter().map(|_| FastMap::default()).collect(),
            level: vec![0; members.len()],
            balanced: survey.balanced.clone(),
            members,
        }
    }

    /// `rank` takes part in its next collective of `comm`; returns the members that must follow if it is the first.
    #[inline]
    pub fn arrive(&mut self, comm: u32, rank: u32) -> &[u32] {
        let at = comm as usize;
        if !self.balanced.get(at).copied().unwrap_or(false) {
            return &[];
        }
        let done = self.done[at].entry(rank).or_default();
        *done += 1;
        if *done > self.level[at] {
            self.level[at] = *done;
            return &self.members[at];
        }
        &[]
    }

    /// Whether `rank` has taken part in as many collectives of `comm` as any member.
    #[inline]
    pub fn satisfied(&self, comm: u32, rank: u32) -> bool {
        let at = comm as usize;
        self.done[at].get(&rank).copied().unwrap_or(0) >= self.level[at]
    }
}
