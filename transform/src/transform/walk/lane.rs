//! One thread of one rank on its way through the trace.
use crate::machine::Place;
use crate::transform::rules::{Carry, Constraint};
use crate::transform::stream::Position;
use crate::transform::tariff::{Price, Prices};
use crate::transform::walk::NONE;
use phasecast_trace::Call;

/// What a lane is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Its next call stands in the order of times.
    Ready,
    /// Its call waits for something.
    Waiting,
    /// Its next call lies too far behind those of other threads.
    Far,
    /// It has no more calls.
    Done,
}

/// The last exit of a thread or of a rank, on base and target, and its call site.
#[derive(Clone, Copy, Debug)]
pub struct Last {
    pub base: f64,
    pub now: f64,
    pub site: u32,
}

/// One thread of one rank.
pub struct Lane {
    pub rank: u32,
    pub thread: u16,
    pub fresh: bool,
    pub state: State,
    pub last: Last,
    /// The call that it is at.
    pub call: Call,
    pub position: Position,
    pub site: u32,
    pub enter2: f64,
    /// The call's own cost.
    pub own1: f64,
    pub own2: f64,
    pub carry: Carry,
    /// With what its residual scales.
    pub ratio: f64,
    pub kind: Kind,
    pub spread: f64,
    /// What else it waits for, as far as that is known.
    pub constraints: Vec<Constraint>,
    /// It does not end before.
    pub floor: f64,
    /// How much of what it waits for is not known yet.
    pub need: u32,
    /// The message of this call whose send is not over.
    pub sent: u32,
}

impl Lane {
    pub fn new(rank: u32, thread: u16, last: Last) -> Lane {
        Lane {
            rank,
            thread,
            fresh: true,
            state: State::Ready,
            last,
            call: Call::BLANK,
            position: Position::default(),
            site: NONE,
            enter2: last.now,
            own1: 0.0,
            own2: 0.0,
            carry: Carry::Add,
            ratio: 1.0,
            kind: Kind::Other,
            spread: 0.0,
            constraints: Vec::new(),
            floor: 0.0,
            need: 0,
            sent: NONE,
        }
    }
}

impl Lane {
    /// Sets the call's own cost, if it is more than what it has already.
    #[inline]
    pub fn own(&mut self, carry: Carry, of: impl Fn(&Price) -> f64, prices: &Prices) {
        self.own1 = self.own1.max(of(&prices.base));
        self.own2 = self.own2.max(of(&prices.target));
        self.carry = carry;
    }
}

/// Where a message between two nodes travels.
pub fn place(a: u32, b: u32) -> Place {
    if a == b { Place::Within } else { Place::Between }
}

/// What a rank's time goes into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Compute,
    Send,
    Receive,
    Collective,
    Other,
}

/// Names of the kinds, in their order.
pub const KINDS: [&str; 5] = ["computation", "sends", "receives and waits", "collectives", "other calls"];

/// Where a rank's time goes, in ns.
#[derive(Clone, Copy, Debug, Default)]
pub struct Totals {
    /// On the base, by kind.
    pub base: [f64; 5],
    /// On the target.
    pub target: [f64; 5],
    /// What the costs of its messages and collectives may be off.
    pub spread: f64,
}

impl Totals {
    /// Names of the kinds.
    pub fn kinds() -> [&'static str; 5] {
        KINDS
    }

    #[inline]
    pub(super) fn add(&mut self, kind: Kind, base: f64, target: f64, spread: f64) {
        self.base[kind as usize] += base;
        self.target[kind as usize] += target;
        self.spread += spread;
    }
}
