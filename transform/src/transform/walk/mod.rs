//! The walk: all ranks' calls in the order of their times on the target, each when what it waits for is known.
//!
//! Causality holds in chains of any length because a call's end is worked out only from ends that are known already.
//! Memory is bounded: a few blocks of calls per rank, and the messages under way. Where ranks wait for each other in a
//! circle, first those waits are given up that are only assumed (a send beyond the eager limit whose receive does not
//! come, a wait for a request that may be another); if none is left, the trace is damaged, and that is an error.
mod begun;
mod calls;
mod collectives;
mod lane;
mod messages;
mod order;
mod stall;

pub use lane::Totals;

use crate::machine::Place;
use crate::transform::calendar::Calendar;
use crate::transform::error::TransformError;
use crate::transform::output::Output;
use crate::transform::ratio::Ratios;
use crate::transform::roles::{Life, Role};
use crate::transform::rules::{self, Constraint};
use crate::transform::stream::{Next, Supply, Threads};
use crate::transform::survey::Survey;
use crate::transform::tariff::{Tariff, Way};
use crate::transform::wire::Wire;
use begun::{Begun, Pending};
use collectives::CommState;
use lane::{Kind, Lane, Last, State};
use messages::Messages;
use messages::transfers::SHORT;
use order::Order;
use phasecast_analyzer::matching::FastMap;
use phasecast_trace::{Class, Nanos, Trace};

/// No lane, no message.
const NONE: u32 = u32::MAX;

/// Calls of a rank that may be walked one after the other: a bound on the messages that its peers are behind.
const IN_A_ROW: usize = 16;

/// What the walk counted that a user should know.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counted {
    /// Calls transformed.
    pub calls: u64,
    /// Receives whose message was never sent, as far as recorded.
    pub unmatched_receives: u64,
    /// Messages that were received before they were sent on the base: its clocks do not agree.
    pub early: u64,
    /// Assumed waits that were given up.
    pub given_up: u64,
    /// Waits for ranks whose recording breaks off.
    pub gone: u64,
    /// Probes for any message: their time is kept.
    pub wild_probes: u64,
}

/// Everything that does not change while ranks are walked.
pub struct Given<'a> {
    /// The base run.
    pub trace: &'a Trace,
    /// Its procedures.
    pub roles: &'a [Role],
    /// K.
    pub ratios: &'a Ratios,
    /// What the first pass found.
    pub survey: &'a Survey,
    /// The node of each rank on the base and on the target.
    pub nodes: [&'a [u32]; 2],
    /// Whether each rank is alone on its node, there and there.
    pub apart: [bool; 2],
    /// Contention of the base and of the target, within nodes and between them; none without.
    pub contention: Option<[[f64; 2]; 2]>,
    /// Whether times of different ranks of the base run can be compared: not where each has its own processor time.
    pub timed: bool,
    /// Whether they are of one clock.
    pub one_clock: bool,
    /// When ranks of the target can compute; none if always.
    pub calendar: Option<&'a Calendar>,
    /// The share of the base's time between calls in which its ranks were not stopped, if stops are those of the target.
    pub free: f64,
}

impl Given<'_> {
    /// When a rank of the target that begins at `start` has computed for `work`; its calendar begins at `origin`, or with a
    /// rank that is out of `MPI_Init` before the last one.
    #[inline]
    fn after(&self, rank: usize, origin: f64, start: f64, work: f64) -> f64 {
        let origin = origin.min(start);
        self.calendar.map_or(start + work, |calendar| origin + calendar.after(rank, start - origin, self.free * work))
    }

    /// Where messages between two ranks travel.
    #[inline]
    fn way(&self, a: u32, b: u32) -> Way {
        let of = |nodes: &[u32]| lane::place(nodes[a as usize], nodes[b as usize]);
        Way { base: of(self.nodes[0]), target: of(self.nodes[1]) }
    }

    /// By which links calls are priced that are about no message yet: posts and waits.
    #[inline]
    fn usual(&self) -> Way {
        let [base, target] = self.apart.map(|apart| if apart { Place::Between } else { Place::Within });
        Way { base, target }
    }
}

/// What came out.
pub struct Walked {
    /// When each rank ends on the target, in ns.
    pub ends: Vec<f64>,
    /// Where each rank's time goes.
    pub totals: Vec<Totals>,
    /// What the notes tell.
    pub counted: Counted,
    /// Collectives without a table.
    pub missing: Vec<String>,
}

/// A persistent request as a trace knows it: rank, communicator, peer, tag, bytes; and the procedure that made it.
type Request = (u32, u32, i32, i32, u64);

struct Walk<'a, 'b> {
    given: &'a Given<'a>,
    tariff: Tariff<'a>,
    supply: Supply<'b>,
    lanes: Vec<Lane>,
    /// The lanes of each rank.
    of_rank: Vec<Vec<u32>>,
    threads: Vec<Threads>,
    /// The latest exit of each rank.
    last: Vec<Last>,
    ended: Vec<bool>,
    order: Order,
    /// The lane whose calls are being walked: its place in the order is told when that is over.
    current: u32,
    /// Messages of fewer bytes never share a link.
    alone: u64,
    messages: Messages,
    comms: Vec<CommState>,
    begun: Vec<Pending>,
    made: FastMap<Request, u16>,
    wires: [Wire; 2],
    /// When the target's calendar begins: when the last rank is out of `MPI_Init`, if there is one.
    origin: f64,
    totals: Vec<Totals>,
    counted: Counted,
}

/// Walks a trace and writes what comes out. `progress` is told the calls done.
///
/// # Errors
/// If the trace is damaged or cannot be written, or its ranks wait for each other in a circle.
pub fn walk<'a>(
    given: &'a Given<'a>,
    tariff: Tariff<'a>,
    supply: Supply<'_>,
    output: &mut Output<'_>,
    progress: &dyn Fn(u64),
) -> Result<Walked, TransformError> {
    let ranks = given.trace.size() as usize;
    let contention = given.contention.unwrap_or([[1.0; 2]; 2]);
    let nodes = |of: &[u32]| of.iter().max().map_or(1, |most| *most as usize + 1);
    let spans: Vec<_> = given.trace.ranks().map(|rank| given.trace.span(rank)).collect();
    let start = |rank: usize| spans[rank].0.0 as f64;
    let alone = given.contention.map_or(u64::MAX, |_| tariff.bytes_of(SHORT));
    let mut walk = Walk {
        given,
        tariff,
        supply,
        lanes: Vec::new(),
        of_rank: vec![Vec::new(); ranks],
        threads: (0..ranks).map(|_| Threads::default()).collect(),
        last: (0..ranks).map(|rank| Last { base: start(rank), now: start(rank), site: NONE }).collect(),
        ended: vec![false; ranks],
        order: Order::new(),
        current: NONE,
        alone,
        messages: Messages::default(),
        comms: collectives::states(given),
        made: FastMap::default(),
        begun: (0..ranks).map(|_| Pending::default()).collect(),
        wires: [0, 1].map(|side| Wire::new(nodes(given.nodes[side]), contention[side])),
        origin: 0.0,
        totals: vec![Totals::default(); ranks],
        counted: Counted::default(),
    };
    for rank in 0..ranks {
        walk.meet(rank as u32, 0, output)?;
    }
    walk.run(output, progress)?;
    let ratio = given.ratios.whole;
    let mut ends = Vec::with_capacity(ranks);
    for (rank, span) in spans.iter().enumerate() {
        let (last, end1) = (walk.last[rank], span.1.0 as f64);
        let rest = (end1 - last.base).max(0.0);
        let latest = walk.of_rank[rank].iter().map(|&lane| walk.lanes[lane as usize].last.now).fold(0.0, f64::max);
        let end = given.after(rank, walk.origin, last.now, ratio * rest);
        ends.push(end.max(latest));
        walk.totals[rank].add(Kind::Compute, rest, end - last.now, 0.0);
    }
    Ok(Walked { ends, totals: walk.totals, counted: walk.counted, missing: walk.tariff.missing })
}

impl Walk<'_, '_> {
    fn run(&mut self, output: &mut Output<'_>, progress: &dyn Fn(u64)) -> Result<(), TransformError> {
        let mut told = 0;
        loop {
            let first = self.order.first();
            if let Some(end) = self.messages.timer.filter(|end| first.is_none_or(|(time, _)| *end < time)) {
                self.timer(end, output)?;
                continue;
            }
            let Some((_, id)) = first else {
                if self.unstall(output)? {
                    continue;
                }
                return Ok(());
            };
            self.current = id;
            self.begin(id, output)?;
            for _ in 1..IN_A_ROW {
                if !self.at_any_time(id) {
                    break;
                }
                self.begin(id, output)?;
            }
            self.current = NONE;
            let lane = &self.lanes[id as usize];
            match lane.state {
                State::Ready => self.order.set(id, lane.enter2),
                _ => self.order.clear(id),
            }
            if self.counted.calls >= told + (1 << 14) {
                told = self.counted.calls;
                progress(told);
            }
        }
    }

    /// Whether what comes out is the same if the next call of a lane is walked before those of other ranks that come
    /// earlier: messages are matched, and collectives counted, in the order of the calls of each rank, and only those who
    /// share a link must come to it in the order of times. What a rank does in a row is in the cache; what many ranks do in
    /// turns is not.
    #[inline]
    fn at_any_time(&self, id: u32) -> bool {
        let lane = &self.lanes[id as usize];
        let rank = lane.rank as usize;
        lane.state == State::Ready
            && self.given.survey.threads[rank] == 0
            && lane.call.bytes < self.alone
            && self.threads[rank].parts(lane.position).iter().all(|part| part.bytes < self.alone)
            && (lane.call.class != Class::Complete || !self.begun[rank].is_waited_for())
    }

    /// A thread of a rank is met for the first time.
    fn meet(&mut self, rank: u32, thread: u16, output: &mut Output<'_>) -> Result<(), TransformError> {
        let id = self.lanes.len() as u32;
        self.lanes.push(Lane::new(rank, thread, self.last[rank as usize]));
        self.of_rank[rank as usize].push(id);
        self.fetch(id, output)
    }

    /// Takes the next call of a lane and puts it in its place in the order of times.
    fn fetch(&mut self, id: u32, output: &mut Output<'_>) -> Result<(), TransformError> {
        let rank = self.lanes[id as usize].rank as usize;
        loop {
            let lane = &mut self.lanes[id as usize];
            let thread = lane.thread;
            let (lanes, of_rank, supply) = (&self.lanes, &self.of_rank[rank], &mut self.supply);
            let known = |thread| of_rank.iter().any(|&other| lanes[other as usize].thread == thread);
            let next = self.threads[rank].next(thread, known, || supply(rank))?;
            let lane = &mut self.lanes[id as usize];
            match next {
                Next::Call(position) => {
                    (lane.call, lane.position) = (*self.threads[rank].call(position), position);
                    self.schedule(id);
                    return Ok(());
                }
                Next::Met(other) => self.meet(rank as u32, other, output)?,
                Next::Far => {
                    lane.state = State::Far;
                    return Ok(());
                }
                Next::End => {
                    lane.state = State::Done;
                    let all = self.of_rank[rank].iter().all(|&lane| self.lanes[lane as usize].state == State::Done);
                    return if all { self.rank_ends(rank, output) } else { Ok(()) };
                }
            }
        }
    }

    /// The computation before a call: C2 = K C1.
    #[inline]
    fn schedule(&mut self, id: u32) {
        let lane = &mut self.lanes[id as usize];
        let rank = lane.rank as usize;
        let enter1 = lane.call.enter.0 as f64;
        if lane.fresh {
            // A thread begins when its rank was last seen doing something.
            lane.fresh = false;
            if self.last[rank].base <= enter1 {
                lane.last = self.last[rank];
            }
        }
        let computed = (enter1 - lane.last.base).max(0.0);
        let site = self.given.ratios.site(rank, lane.call.proc.0, lane.call.site);
        let ratio = self.given.ratios.between(lane.last.site, site);
        lane.site = site;
        lane.enter2 = self.given.after(rank, self.origin, lane.last.now, ratio * computed);
        lane.state = State::Ready;
        self.totals[rank].add(Kind::Compute, computed, lane.enter2 - lane.last.now, 0.0);
        if id != self.current {
            self.order.set(id, lane.enter2);
        }
    }

    /// All that the call waits for is known: works out its end, writes it, and goes on to the next.
    fn finish(&mut self, id: u32, output: &mut Output<'_>) -> Result<(), TransformError> {
        let lane = &mut self.lanes[id as usize];
        let rank = lane.rank as usize;
        let (enter1, exit1) = (lane.call.enter.0 as f64, lane.call.exit.0 as f64);
        let own =
            Constraint { start1: enter1, model1: lane.own1, start2: lane.enter2, model2: lane.own2, carry: lane.carry };
        lane.constraints.push(own);
        let end = rules::end(&lane.constraints, exit1, lane.ratio).max(lane.floor).max(lane.enter2);
        // A rank that is stopped sees what it waited for when it goes on.
        let role = &self.given.roles[lane.call.proc.index()];
        let end = if role.life == Some(Life::Init) {
            self.origin = self.origin.max(end);
            end
        } else {
            self.given.after(rank, self.origin, end, 0.0)
        };
        lane.constraints.clear();
        self.totals[rank].add(lane.kind, exit1 - enter1, end - lane.enter2, lane.spread);
        if self.threads[rank].finish(lane.position, nanos(lane.enter2), nanos(end)) {
            while let Some(block) = self.threads[rank].take_done() {
                output.push(rank, block)?;
            }
        }
        let last = Last { base: exit1, now: end, site: lane.site };
        lane.last = last;
        if exit1 >= self.last[rank].base {
            self.last[rank] = last;
        }
        self.counted.calls += 1;
        let sent = std::mem::replace(&mut lane.sent, NONE);
        if sent != NONE {
            self.sent(sent, end, output)?;
        }
        self.fetch(id, output)
    }

    /// One of the things that a call waits for is known.
    fn met(&mut self, id: u32, output: &mut Output<'_>) -> Result<(), TransformError> {
        let lane = &mut self.lanes[id as usize];
        lane.need -= 1;
        if lane.need == 0 && lane.state == State::Waiting { self.finish(id, output) } else { Ok(()) }
    }
}

/// The nearest whole number of ns.
#[inline]
fn nanos(time: f64) -> Nanos {
    Nanos((time + 0.5) as u64)
}

/// Whether a call is part of the communication that ratios of speeds do not hold for.
fn kept_as_time(class: Class) -> bool {
    matches!(class, Class::Rma | Class::Io)
}
