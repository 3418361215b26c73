//! Matching: sends with receives first in, first out per (source, destination, communicator, tag) and length, and
//! collectives by communicator and sequence. Only counts are kept: the n-th receive of a channel with a length belongs to
//! its n-th send with that length. Receives come in the order in which they complete, so that without the length those
//! that complete in another order than they were posted would change places.
use crate::peers::Differences;
use crate::source::{Item, Probe};
use crate::survey::Survey;
use phasecast_trace::{EventKind, Trace};
use std::collections::HashMap;
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

/// Fewer counts are not looked through for what can be forgotten.
const LEAST_SWEPT: usize = 1 << 16;

/// A map with that hasher.
pub type FastMap<K, V> = HashMap<K, V, BuildHasherDefault<Mixer>>;

/// Messages that MPI delivers to receives in order.
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

/// What a message is matched by: its channel, and its length where lengths tell messages apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    channel: Channel,
    bytes: u64,
}

impl Message {
    /// The sender's rank.
    pub fn source(&self) -> u32 {
        self.channel.source
    }
}

impl Hash for Message {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.channel.hash(state);
        state.write_u64(self.bytes);
    }
}

/// Pairs of ranks whose messages, or their lengths, were not recorded alike at both ends.
pub struct Pairs(Differences);

impl Pairs {
    /// Those that the survey found.
    pub fn new(survey: &Survey) -> Pairs {
        Pairs(survey.differences.clone())
    }

    /// What the message that `rank` sends or receives by `item` is matched by.
    #[inline]
    pub fn message(&self, rank: u32, item: &Item) -> Message {
        let peer = item.peer as u32;
        let (source, destination) = if item.kind == EventKind::Send { (rank, peer) } else { (peer, rank) };
        let channel = Channel { source, destination, comm: item.comm, tag: item.tag };
        Message { channel, bytes: if self.0.of(source, destination).is_some() { 0 } else { item.bytes } }
    }

    /// Whether its send may be missing.
    #[inline]
    pub fn is_short(&self, message: Message) -> bool {
        self.0.of(message.channel.source, message.channel.destination).is_some_and(|uneven| uneven.short)
    }
}

/// Messages alike that probes have found and nobody has received.
#[derive(Default)]
struct Found {
    /// How many are matched.
    matched: i64,
    /// Whether the first that is not matched was found, too.
    first: bool,
}

impl Found {
    fn count(&self) -> i64 {
        self.matched + i64::from(self.first)
    }
}

/// Counts the messages of all channels.
pub struct Channels {
    pairs: Pairs,
    /// Sends less receives so far.
    ahead: FastMap<Message, i64>,
    found: FastMap<Message, Found>,
    sweep_at: usize,
    /// Messages sent but not received.
    pub in_flight: i64,
}

impl Channels {
    /// No message yet; receives on pairs that are short of sends will not wait for one.
    pub fn new(survey: &Survey) -> Channels {
        let (pairs, ahead, found) = (Pairs::new(survey), FastMap::default(), FastMap::default());
        Channels { pairs, ahead, found, sweep_at: LEAST_SWEPT, in_flight: 0 }
    }

    /// `rank` sends a message by `item`.
    #[inline]
    pub fn send(&mut self, rank: u32, item: &Item) {
        self.in_flight += 1;
        *self.ahead.entry(self.pairs.message(rank, item)).or_default() += 1;
    }

    /// `rank` receives a message by `item`; returned if its send has not been counted (and can be expected).
    #[inline]
    pub fn receive(&mut self, rank: u32, item: &Item) -> Option<Message> {
        self.in_flight -= 1;
        let message = self.pairs.message(rank, item);
        if let Some(found) = self.found.get_mut(&message) {
            // Whether it is a matched one is not known; if not, too few are left, and never too many.
            match found.matched {
                0 => found.first = false,
                _ => found.matched -= 1,
            }
            if found.count() == 0 {
                self.found.remove(&message);
            }
        }
        let ahead = self.ahead.entry(message).or_default();
        *ahead -= 1;
        (*ahead < 0 && !self.pairs.is_short(message)).then_some(message)
    }

    /// A probe of `rank` finds a message; returned if its send has not been counted (and can be expected).
    pub fn find(&mut self, rank: u32, probe: &Probe) -> Option<Message> {
        let message = self.pairs.message(rank, &probe.item);
        if self.pairs.is_short(message) {
            return None;
        }
        // Messages are found in their order: again and again the first, until it is matched.
        let found = self.found.entry(message).or_default();
        found.matched += i64::from(probe.matched);
        found.first = !probe.matched;
        (!self.satisfied(message)).then_some(message)
    }

    /// Whether all messages that were counted as received, or found, have their sends.
    #[inline]
    pub fn satisfied(&self, message: Message) -> bool {
        let found = self.found.get(&message).map_or(0, Found::count);
        self.ahead.get(&message).copied().unwrap_or(0) >= found
    }

    /// Whether the message that `rank` receives by `item` has been counted as sent and not as received.
    pub fn sent(&self, rank: u32, item: &Item) -> bool {
        self.ahead.get(&self.pairs.message(rank, item)).is_some_and(|&ahead| ahead > 0)
    }

    /// Forgets what has nothing under way, when there is much: programs that use every tag or length once.
    pub fn sweep(&mut self) {
        if self.ahead.len() > self.sweep_at {
            self.ahead.retain(|_, ahead| *ahead != 0);
            self.sweep_at = (2 * self.ahead.len()).max(LEAST_SWEPT);
        }
    }

    /// Sends without receive and receives without send.
    pub fn unmatched(&self) -> (u64, u64) {
        self.ahead.values().fold((0, 0), |(sends, receives), &ahead| match ahead {
            0.. => (sends + ahead as u64, receives),
            _ => (sends, receives + ahead.unsigned_abs()),
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

    /// The members that have not taken part in the next collective of `comm` for `rank`; `None` if one has not in that
    /// before, or members take part in different numbers of them.
    pub fn missing(&self, comm: u32, rank: u32) -> Option<Vec<u32>> {
        let at = comm as usize;
        let done = |rank: u32| self.done[at].get(&rank).copied().unwrap_or(0);
        let others = || self.members[at].iter().copied().filter(|&member| member != rank);
        let known = *self.balanced.get(at)? && others().all(|member| done(member) >= done(rank));
        known.then(|| others().filter(|&member| done(member) == done(rank)).collect())
    }

    /// Whether `rank` has taken part in as many collectives of `comm` as any member.
    #[inline]
    pub fn satisfied(&self, comm: u32, rank: u32) -> bool {
        let at = comm as usize;
        self.done[at].get(&rank).copied().unwrap_or(0) >= self.level[at]
    }
}
