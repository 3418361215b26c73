//! What makes two events the same: the symbol of an event, of a set of receives, and of a whole segment.
//!
//! The name of the completing call is no part of it (Testall here is Waitall there), nor are tag and communicator
//! (ranks number communicators on their own). A collective's name is, without what tells a large count. Receives between two other events complete in any order, so they count
//! as a set: the sum of their hashes. Programs that take what comes first (`MPI_Waitany`, `MPI_Testsome`) send in the
//! order in which they receive, and do neither twice in the same order: with [`Order::Free`] all messages between two
//! collectives are one set. With [`Order::Anyone`] order counts, but not with whom messages are exchanged.
use crate::model::Order;
use crate::source::Item;
use crate::volume;
use phasecast_trace::model::PEER_ANY;
use phasecast_trace::{Event, EventKind};
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_64;

/// A set of receives ends after so many.
pub const SET_MAX: u32 = 64;
/// The odd base of the polynomial by which symbols are chained, and its inverse modulo 2^64.
const BASE: u64 = 0x9E37_79B9_7F4A_7C15;
const INVERSE: u64 = inverse(BASE);

const fn inverse(odd: u64) -> u64 {
    let mut x = odd;
    let mut i = 0;
    while i < 6 {
        x = x.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(x)));
        i += 1;
    }
    x
}

/// Mixes the bits of a number (the finaliser of splitmix64).
#[inline]
pub fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

/// Gives events their symbols, by the volume classes of an analysis.
#[derive(Clone, Debug)]
pub struct Symbols {
    classes: Arc<[u64]>,
    /// For each procedure of the trace, a hash of its name.
    names: Arc<[u64]>,
    order: Order,
}

impl Symbols {
    /// Symbols by these upper bounds of volume classes ([`crate::model::Analysis::volume_classes`]), of events whose
    /// [`Event::proc`] is an index into `procedures`.
    pub fn new(volume_classes: &[u64], procedures: &[String], order: Order) -> Symbols {
        let hash = |name: &String| xxh3_64(name.strip_suffix("_c").unwrap_or(name).as_bytes());
        Symbols { classes: volume_classes.into(), names: procedures.iter().map(hash).collect(), order }
    }

    /// The same with another order.
    pub fn ordered(&self, order: Order) -> Symbols {
        Symbols { order, ..self.clone() }
    }

    /// Whether events of a kind are members of sets.
    #[inline]
    pub fn gathers(&self, kind: EventKind) -> bool {
        match self.order {
            Order::Kept | Order::Anyone | Order::Collectives => kind == EventKind::Recv,
            Order::Free => kind != EventKind::Collective,
        }
    }

    /// An empty set. Where order counts, a set of [`SET_MAX`] receives is full, so that a rank which only receives has
    /// more than one symbol.
    pub fn set(&self) -> SetBuilder {
        let room = if self.order == Order::Free { u32::MAX } else { SET_MAX };
        SetBuilder { sum: 0, members: 0, room }
    }

    /// The symbol of an event; of a member of a set, its summand.
    pub fn of(&self, event: &Event) -> u64 {
        self.hash(event.kind, event.peer, event.bytes, event.proc.0)
    }

    /// The same of a compact event.
    #[inline]
    pub fn item(&self, item: &Item) -> u64 {
        self.hash(item.kind, item.peer, item.bytes, item.proc)
    }

    /// The partner of a message as far as it counts.
    #[inline]
    pub fn peer(&self, peer: i32) -> i32 {
        if self.order == Order::Anyone { PEER_ANY } else { peer }
    }

    #[inline]
    fn hash(&self, kind: EventKind, peer: i32, bytes: u64, proc: u16) -> u64 {
        let class = volume::class(&self.classes, bytes);
        let (name, peer) = match kind {
            EventKind::Collective => (self.names.get(proc as usize).copied().unwrap_or(0), peer),
            EventKind::Send | EventKind::Recv => (0, self.peer(peer)),
        };
        mix((u64::from(peer as u32) << 2 | kind as u64).wrapping_add(mix(class.wrapping_add(1))) ^ name).max(1)
    }
}

/// The symbol of a whole set, from the sum of its members'.
#[inline]
pub fn of_set(sum: u64) -> u64 {
    mix(sum.wrapping_add(0x5E75)).max(1)
}

/// Where a stream of symbols stands: enough to tell the hash of any stretch from two such points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    sum: u64,
    power: u64,
    inverse: u64,
    /// Symbols so far.
    pub symbols: u64,
}

impl Default for Point {
    fn default() -> Self {
        Point { sum: 0, power: 1, inverse: 1, symbols: 0 }
    }
}

impl Point {
    /// Appends a symbol.
    #[inline]
    pub fn push(&mut self, symbol: u64) {
        self.sum = self.sum.wrapping_add(symbol.wrapping_mul(self.power));
        self.power = self.power.wrapping_mul(BASE);
        self.inverse = self.inverse.wrapping_mul(INVERSE);
        self.symbols += 1;
    }

    /// The hash of the symbols after `earlier` up to here; never 0.
    #[inline]
    pub fn since(&self, earlier: &Point) -> u64 {
        mix(self.sum.wrapping_sub(earlier.sum).wrapping_mul(earlier.inverse) ^ (self.symbols - earlier.symbols)).max(1)
    }
}

/// Turns events into symbols: gathers a set of messages ([`Symbols::set`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetBuilder {
    sum: u64,
    members: u32,
    room: u32,
}

impl SetBuilder {
    /// Ends the set, if there is one, and returns its symbol.
    #[inline]
    pub fn close(&mut self) -> Option<u64> {
        if self.members == 0 {
            return None;
        }
        let symbol = of_set(self.sum);
        *self = SetBuilder { sum: 0, members: 0, ..*self };
        Some(symbol)
    }

    /// Takes in a member; returns the symbol of the set if it is full.
    #[inline]
    pub fn take(&mut self, symbol: u64) -> Option<u64> {
        self.sum = self.sum.wrapping_add(symbol);
        self.members += 1;
        if self.members == self.room { self.close() } else { None }
    }

    /// Appends an event to a stream: a member to the set, anything else behind it.
    #[inline]
    pub fn append(&mut self, point: &mut Point, symbol: u64, member: bool) {
        let set = if member { self.take(symbol) } else { self.close() };
        set.into_iter().for_each(|set| point.push(set));
        if !member {
            point.push(symbol);
        }
    }

    /// Whether a set is open.
    #[inline]
    pub fn open(&self) -> bool {
        self.members > 0
    }
}

/// The hash of a segment, event by event.
#[derive(Clone, Debug)]
pub struct SegmentHasher {
    symbols: Symbols,
    set: SetBuilder,
    point: Point,
}

impl SegmentHasher {
    /// An empty segment.
    pub fn new(symbols: &Symbols) -> SegmentHasher {
        SegmentHasher { symbols: symbols.clone(), set: symbols.set(), point: Point::default() }
    }

    /// Appends an event.
    pub fn push(&mut self, event: &Event) {
        let member = self.symbols.gathers(event.kind);
        self.set.append(&mut self.point, self.symbols.of(event), member);
    }

    /// The hash of the events so far, as in [`crate::model::Phase::hashes`]; the hasher is empty again afterwards.
    pub fn finish(&mut self) -> u64 {
        if let Some(set) = self.set.close() {
            self.point.push(set);
        }
        std::mem::take(&mut self.point).since(&Point::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stretch_has_the_same_hash_wherever_it_lies() {
        assert_eq!(BASE.wrapping_mul(INVERSE), 1);
        let word = [mix(1), mix(2), mix(3)];
        let mut alone = Point::default();
        word.iter().for_each(|&s| alone.push(s));
        let mut long = Point::default();
        (10..50).for_each(|s| long.push(mix(s)));
        let before = long;
        word.iter().for_each(|&s| long.push(s));
        assert_eq!(long.since(&before), alone.since(&Point::default()));
        let mut other = Point::default();
        [mix(2), mix(1), mix(3)].iter().for_each(|&s| other.push(s));
        assert_ne!(other.since(&Point::default()), alone.since(&Point::default()));
    }

    #[test]
    fn partners_count_or_do_not() {
        let hashes = |order| {
            let symbols = Symbols::new(&[], &[], order);
            [
                (EventKind::Recv, 1),
                (EventKind::Recv, 2),
                (EventKind::Send, 1),
                (EventKind::Collective, 1),
                (EventKind::Collective, 2),
            ]
            .map(|(kind, peer)| symbols.hash(kind, peer, 8, 0))
        };
        let [kept, anyone] = [Order::Kept, Order::Anyone].map(hashes);
        assert!(kept[0] != kept[1] && anyone[0] == anyone[1], "who sends");
        assert!(anyone[0] != anyone[2] && anyone[3] != anyone[4], "a receive is no send, and a root is a root");
    }

    #[test]
    fn members_count_as_a_set() {
        let [kept, free] = [Order::Kept, Order::Free].map(|order| Symbols::new(&[], &[], order));
        let hash = |order: [u64; 3]| {
            let mut set = kept.set();
            order.iter().for_each(|&s| assert_eq!(set.take(mix(s)), None));
            set.close()
        };
        assert_eq!(hash([1, 2, 3]), hash([3, 1, 2]));
        assert_ne!(hash([1, 2, 3]), hash([1, 2, 2]));
        let full = |symbols: &Symbols| {
            let mut set = symbols.set();
            (1..=2 * SET_MAX).filter(|&i| set.take(u64::from(i)).is_some()).collect::<Vec<_>>()
        };
        assert_eq!(full(&kept), [SET_MAX, 2 * SET_MAX]);
        assert!(full(&free).is_empty());
        assert!(free.gathers(EventKind::Send) && !kept.gathers(EventKind::Send));
    }
}
