//! The static replay: all ranks of a plan are carried out, without computation and without MPI, before the program is
//! written. Messages match in their order by source, destination and tag, collectives by communicator and order.
//!
//! A replay is *strict* if a send waits for its receive: a program that it accepts runs to the end under any MPI, with
//! any messages going without a buffer. It is *buffered* if no send waits: what it does not accept hangs under every MPI,
//! as what a rank waits for is never sent. As no receive is written with a wildcard, both have one outcome, whatever
//! the order in which ranks are carried out.
mod detaching;

use super::collective::Kind;
use super::plan::{Block, Class, Plan, Side, StepId, ends};
use crate::logical::{Mode, Operation};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

/// No request.
const NONE: u32 = u32::MAX;

/// One operation of the program as it is carried out.
#[derive(Clone, Copy)]
enum Code {
    Step(StepId),
    Enter {
        count: u64,
    },
    /// Back to the operation at this place, if iterations are left.
    Again {
        start: u32,
    },
}

/// What a rank waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pending {
    /// The rank.
    pub rank: u32,
    /// The step that began it.
    pub step: StepId,
    /// The side of the step; of a collective, [`Side::Out`].
    pub side: Side,
    /// Whether it is a collective.
    pub collective: bool,
}

/// The outcome of a replay.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// What ranks wait for that did not come to the end, by rank.
    pub stuck: Vec<Pending>,
    /// Messages that were sent, and never received.
    pub unreceived: Vec<Pending>,
    /// Calls carried out.
    pub calls: u64,
    /// How often a step's messages were received by a step.
    pub matches: FxHashMap<(StepId, StepId), u64>,
    /// Steps that took part in one collective.
    pub together: FxHashMap<(StepId, StepId), ()>,
}

impl Outcome {
    /// Whether all ranks came to the end, and nothing was left over.
    pub fn accepts(&self) -> bool {
        self.stuck.is_empty() && self.unreceived.is_empty()
    }
}

struct Request {
    pending: Pending,
    done: bool,
    waited: bool,
}

#[derive(Default)]
struct Channel {
    sent: VecDeque<(u32, Pending)>,
    posted: VecDeque<(u32, Pending)>,
}

/// A collective that not all members have begun.
struct Meeting {
    key: (Kind, Option<u32>, bool),
    first: StepId,
    arrived: usize,
    requests: Vec<u32>,
}

#[derive(Default)]
struct Lane {
    at: usize,
    left: Vec<u64>,
    slots: Vec<u32>,
    /// Requests that must be complete before it goes on.
    waits: u32,
    waited: Vec<u32>,
    ended: bool,
}

/// The replay of a plan.
pub struct Replay<'a> {
    plan: &'a Plan,
    strict: bool,
    /// Steps whose sends do not wait.
    detached: Vec<bool>,
    codes: Vec<Vec<Code>>,
    lanes: Vec<Lane>,
    requests: Vec<Request>,
    free: Vec<u32>,
    channels: FxHashMap<(u32, u32, i32), Channel>,
    /// By communicator and number of the collective there.
    meetings: FxHashMap<(u32, u64), Meeting>,
    met: FxHashMap<(u32, u32), u64>,
    ready: Vec<u32>,
    outcome: Outcome,
}

impl<'a> Replay<'a> {
    /// Carries a plan out.
    pub fn run(plan: &'a Plan, strict: bool) -> Outcome {
        let mut replay = Replay::new(plan, strict);
        replay.go();
        replay.left_over();
        replay.outcome
    }

    fn new(plan: &'a Plan, strict: bool) -> Replay<'a> {
        Replay {
            plan,
            strict,
            detached: plan.steps.iter().map(|step| step.detached).collect(),
            codes: plan.classes.iter().map(|class| code(plan, class)).collect(),
            lanes: (0..plan.ranks).map(|_| Lane::default()).collect(),
            requests: Vec::new(),
            free: Vec::new(),
            channels: FxHashMap::default(),
            meetings: FxHashMap::default(),
            met: FxHashMap::default(),
            ready: (0..plan.ranks).rev().collect(),
            outcome: Outcome::default(),
        }
    }

    /// Carries ranks out until all wait or have ended.
    fn go(&mut self) {
        while let Some(rank) = self.ready.pop() {
            self.go_on(rank);
        }
    }

    fn left_over(&mut self) {
        for lane in &self.lanes {
            let open = lane.waited.iter().map(|id| &self.requests[*id as usize]).filter(|request| !request.done);
            self.outcome.stuck.extend(open.map(|request| request.pending));
        }
        let unreceived = self.channels.values().flat_map(|channel| &channel.sent).map(|(_, pending)| *pending);
        self.outcome.unreceived = unreceived.collect();
        self.outcome.unreceived.sort_by_key(|pending| (pending.rank, pending.step));
    }

    /// Carries a rank out until it waits or ends.
    fn go_on(&mut self, rank: u32) {
        let class = self.plan.class_of[rank as usize];
        loop {
            let lane = &mut self.lanes[rank as usize];
            for id in lane.waited.drain(..) {
                self.free.push(id);
            }
            let Some(code) = self.codes[class].get(lane.at).copied() else {
                if lane.ended {
                    return;
                }
                // The end of the program waits for all that is still open.
                lane.ended = true;
                let open = std::mem::take(&mut lane.slots);
                if self.wait(rank, &open) {
                    return;
                }
                continue;
            };
            lane.at += 1;
            match code {
                Code::Enter { count } => lane.left.push(count),
                Code::Again { start } => {
                    if let Some(left) = lane.left.last_mut() {
                        *left -= 1;
                        if *left > 0 {
                            lane.at = start as usize;
                        } else {
                            lane.left.pop();
                        }
                    }
                }
                Code::Step(step) => {
                    self.outcome.calls += 1;
                    if self.step(rank, step) {
                        return;
                    }
                }
            }
        }
    }

    /// Carries a step out; whether the rank waits now.
    fn step(&mut self, rank: u32, step: StepId) -> bool {
        let plan = self.plan;
        let call = &plan.steps[step].step.call;
        // A slot that is taken is waited for first, as the program does.
        if let Operation::Send { slot: Some(slot), .. }
        | Operation::Receive { slot: Some(slot), .. }
        | Operation::Collective { slot: Some(slot), .. } = call
            && self.wait_for(rank, &[*slot])
        {
            self.lanes[rank as usize].at -= 1;
            self.outcome.calls -= 1;
            return true;
        }
        match call {
            Operation::Nothing => false,
            Operation::Wait { slots } => self.wait_for(rank, slots),
            Operation::Collective { slot, .. } => {
                let request = self.collective(rank, step);
                self.settle(rank, *slot, request)
            }
            Operation::Send { slot, .. } | Operation::Receive { slot, .. } => {
                let side = if matches!(call, Operation::Send { .. }) { Side::Out } else { Side::In };
                let request = self.message(rank, step, side);
                self.settle(rank, *slot, request)
            }
            Operation::SendReceive { .. } => {
                let requests = [self.message(rank, step, Side::In), self.message(rank, step, Side::Out)];
                self.wait(rank, &requests)
            }
        }
    }

    /// Puts a request in its slot, or waits for it.
    fn settle(&mut self, rank: u32, slot: Option<u16>, request: u32) -> bool {
        match slot {
            Some(slot) => {
                let (slots, at) = (&mut self.lanes[rank as usize].slots, usize::from(slot));
                slots.resize(slots.len().max(at + 1), NONE);
                slots[at] = request;
                false
            }
            None => self.wait(rank, &[request]),
        }
    }

    fn wait_for(&mut self, rank: u32, slots: &[u16]) -> bool {
        let lane = &mut self.lanes[rank as usize];
        let take = |slot: &u16| Some(std::mem::replace(lane.slots.get_mut(usize::from(*slot))?, NONE));
        let requests: Vec<u32> = slots.iter().filter_map(take).collect();
        self.wait(rank, &requests)
    }

    fn wait(&mut self, rank: u32, requests: &[u32]) -> bool {
        let lane = &mut self.lanes[rank as usize];
        for &id in requests.iter().filter(|id| **id != NONE) {
            let request = &mut self.requests[id as usize];
            request.waited = true;
            lane.waits += u32::from(!request.done);
            lane.waited.push(id);
        }
        lane.waits > 0
    }

    fn request(&mut self, pending: Pending) -> u32 {
        let request = Request { pending, done: false, waited: false };
        match self.free.pop() {
            Some(id) => {
                self.requests[id as usize] = request;
                id
            }
            None => {
                self.requests.push(request);
                self.requests.len() as u32 - 1
            }
        }
    }

    fn complete(&mut self, id: u32) {
        if id == NONE {
            return;
        }
        let request = &mut self.requests[id as usize];
        request.done = true;
        if request.waited {
            let rank = request.pending.rank;
            let lane = &mut self.lanes[rank as usize];
            lane.waits -= 1;
            if lane.waits == 0 {
                self.ready.push(rank);
            }
        }
    }

    /// One side of a message; its request, if it is to be waited for.
    fn message(&mut self, rank: u32, step: StepId, side: Side) -> u32 {
        let plan = self.plan;
        let of = &plan.steps[step];
        let Some(end) = ends(&of.step.call)[side as usize] else { return NONE };
        if of.local[side as usize].contains(&rank) {
            return NONE;
        }
        let Some(peer) = plan.peer(&end, rank) else { return NONE };
        let pending = Pending { rank, step, side, collective: false };
        let buffered = matches!(of.step.call, Operation::Send { mode: Mode::Buffered, .. });
        let waits = side == Side::In || self.strict && !self.detached[step] && !buffered;
        let id = if waits { self.request(pending) } else { NONE };
        let key = if side == Side::Out { (rank, peer, end.tag) } else { (peer, rank, end.tag) };
        let channel = self.channels.entry(key).or_default();
        let (mine, other) = match side {
            Side::Out => (&mut channel.sent, &mut channel.posted),
            Side::In => (&mut channel.posted, &mut channel.sent),
        };
        let Some((partner, theirs)) = other.pop_front() else {
            mine.push_back((id, pending));
            return id;
        };
        let pair = if side == Side::Out { (step, theirs.step) } else { (theirs.step, step) };
        *self.outcome.matches.entry(pair).or_default() += 1;
        self.complete(partner);
        self.complete(id);
        id
    }

    fn collective(&mut self, rank: u32, step: StepId) -> u32 {
        let plan = self.plan;
        let of = &plan.steps[step];
        let Operation::Collective { name, group, slot, root, .. } = &of.step.call else { return NONE };
        let comm = plan.comm_of[usize::from(*group)][rank as usize];
        let Some(comm) = comm.filter(|_| !of.local[0].contains(&rank)) else { return NONE };
        let number = self.met.entry((comm, rank)).or_default();
        let place = (comm, *number);
        *number += 1;
        let id = self.request(Pending { rank, step, side: Side::Out, collective: true });
        let key = (Kind::of(name), root.filter(|_| Kind::of(name).rooted()), slot.is_some());
        let meeting = self.meetings.entry(place).or_insert_with(|| Meeting {
            key,
            first: step,
            arrived: 0,
            requests: Vec::new(),
        });
        meeting.requests.push(id);
        // One that does something else never meets the others: both sides wait.
        if meeting.key == key {
            meeting.arrived += 1;
            self.outcome.together.insert((meeting.first, step), ());
        }
        if meeting.arrived == plan.comms[comm as usize].len()
            && let Some(meeting) = self.meetings.remove(&place)
        {
            meeting.requests.into_iter().for_each(|id| self.complete(id));
        }
        id
    }
}

fn code(plan: &Plan, class: &Class) -> Vec<Code> {
    fn body(plan: &Plan, blocks: &[Block], out: &mut Vec<Code>) {
        for block in blocks {
            match *block {
                Block::Step(step) => out.push(Code::Step(step)),
                Block::Loop(id) => {
                    out.push(Code::Enter { count: plan.loops[id].count });
                    let start = out.len() as u32;
                    body(plan, &plan.loops[id].body, out);
                    out.push(Code::Again { start });
                }
            }
        }
    }
    let mut out = Vec::new();
    body(plan, &class.body, &mut out);
    out
}
