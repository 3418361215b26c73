//! Messages under way: matched first in, first out within a channel, transferred alone or sharing a link, received not
//! before they were sent: `T_R_end = max(T_R_begin + R2, T_S_end)` (seed 000, section 4.2.2).
mod matching;
pub(super) mod transfers;

use super::{Begun, NONE, Walk};
use crate::transform::error::TransformError;
use crate::transform::output::Output;
use crate::transform::rules::{CLOCKS, Carry, Constraint};
use crate::transform::tariff::Price;
use matching::Asked;
use phasecast_analyzer::matching::{Channel, FastMap};
use phasecast_trace::model::{Flags, TAG_ANY};
use std::collections::VecDeque;

/// How a message is sent.
#[derive(Clone, Copy, Debug)]
pub struct Sending {
    /// The call does not wait.
    pub nonblocking: bool,
    /// The call does more than to send: its end is not that of the send.
    pub combined: bool,
    /// It never waits for the receive.
    pub buffered: bool,
    /// It always does.
    pub synchronous: bool,
}

/// What is needed of the prices of a message under way: fewer bytes of each than all prices are.
#[derive(Clone, Copy)]
struct Fare {
    send: f64,
    wait_send: f64,
    transfer: f64,
    work: f64,
}

impl Fare {
    fn new(price: &Price) -> Fare {
        Fare { send: price.send, wait_send: price.wait_send, transfer: price.transfer, work: price.work }
    }
}

/// One message under way; times in ns, pairs are (base, target), NaN is not known yet.
#[derive(Clone, Copy)]
pub struct Message {
    pub source: u32,
    pub destination: u32,
    bytes: u64,
    base: Fare,
    target: Fare,
    /// Whether it waits for its receive.
    rendezvous: (bool, bool),
    pub sent: (f64, f64),
    /// When its send was over.
    over: (f64, f64),
    posted: (f64, f64),
    started: (f64, f64),
    /// When the work of its transfer was done on the base, and when it arrives on the target.
    done: f64,
    arrives: f64,
    /// It shares the base's link at the moment.
    sharing: bool,
    /// The lane whose call receives it.
    receiver: u32,
    needs_end: bool,
    /// The lane whose call waits for its send.
    pub sender: u32,
    /// That call is another than the one that sent it.
    later: bool,
    references: u8,
}

/// The messages of one channel that are not received.
#[derive(Default)]
struct Queue {
    sent: VecDeque<u32>,
    /// How many of them have a receive posted.
    assigned: usize,
    posts: VecDeque<(f64, f64)>,
    /// Lanes that wait for the next ones, each with the bytes that it receives.
    receivers: VecDeque<(u32, u64)>,
    probers: Vec<u32>,
}

/// All messages under way.
#[derive(Default)]
pub struct Messages {
    slab: Vec<Message>,
    free: Vec<u32>,
    queues: FastMap<Channel, Queue>,
    sweep_at: usize,
    /// Messages received of the pairs of ranks that have sent fewer than were received.
    taken: FastMap<(u32, u32), u64>,
    /// When the next transfer ends on the target.
    pub(super) timer: Option<f64>,
    /// Transfers that have ended there without that being told yet.
    done: Vec<(u32, f64)>,
}

/// Receives posted on a channel that are remembered.
const MOST_POSTS: usize = 4096;

impl Messages {
    pub(super) fn all(&self) -> impl Iterator<Item = (u32, &Message)> {
        self.slab.iter().enumerate().map(|(at, m)| (at as u32, m)).filter(|(_, m)| m.references > 0)
    }

    fn new_message(&mut self, message: Message) -> u32 {
        if let Some(at) = self.free.pop() {
            self.slab[at as usize] = message;
            return at;
        }
        self.slab.push(message);
        (self.slab.len() - 1) as u32
    }

    fn sweep(&mut self) {
        if self.queues.len() > self.sweep_at {
            let idle =
                |q: &Queue| q.sent.is_empty() && q.posts.is_empty() && q.receivers.is_empty() && q.probers.is_empty();
            self.queues.retain(|_, q| !idle(q));
            self.sweep_at = (2 * self.queues.len()).max(1 << 16);
        }
    }
}

impl Walk<'_, '_> {
    /// A message leaves.
    pub(super) fn send(
        &mut self,
        id: u32,
        channel: Channel,
        bytes: u64,
        sending: Sending,
        output: &mut Output<'_>,
    ) -> Result<(), TransformError> {
        let lane = &self.lanes[id as usize];
        let sent = (lane.call.enter.0 as f64, lane.enter2);
        let exit1 = lane.call.exit.0 as f64;
        // A blocking send to oneself waits for no receive that is posted after it: the run would stand still.
        let to_itself = channel.source == channel.destination && !sending.nonblocking;
        let buffered = sending.buffered || to_itself;
        let prices = self.tariff.prices(bytes, self.given.way(channel.source, channel.destination));
        let meets = |price: &Price| !buffered && (price.rendezvous || sending.synchronous);
        let rendezvous = (meets(&prices.base), meets(&prices.target));
        let over = if sending.combined {
            (exit1.min(sent.0 + prices.base.send), sent.1 + prices.target.send)
        } else {
            (exit1, f64::NAN)
        };
        let waits = rendezvous.1 && !self.ended[channel.destination as usize];
        let message = self.messages.new_message(Message {
            source: channel.source,
            destination: channel.destination,
            bytes,
            base: Fare::new(&prices.base),
            target: Fare::new(&prices.target),
            rendezvous,
            sent,
            over,
            posted: (f64::NAN, f64::NAN),
            started: (f64::NAN, f64::NAN),
            done: f64::NAN,
            arrives: f64::NAN,
            sharing: false,
            receiver: NONE,
            needs_end: false,
            sender: NONE,
            later: false,
            references: 1,
        });
        if !sending.combined {
            self.lanes[id as usize].sent = message;
            self.messages.slab[message as usize].references += 1;
        }
        match (waits, sending.nonblocking) {
            (false, true) => self.remember(channel.source as usize, Begun::Eager { waited: rendezvous.0 }),
            (false, false) if rendezvous.0 => self.lanes[id as usize].constraints.push(Constraint::only_on_base(exit1)),
            (false, false) => {}
            (true, nonblocking) => {
                self.messages.slab[message as usize].references += 1;
                if nonblocking {
                    self.remember(channel.source as usize, Begun::Send(message));
                } else {
                    self.messages.slab[message as usize].sender = id;
                    self.lanes[id as usize].need += 1;
                }
            }
        }
        if !rendezvous.0 {
            self.start_base(message, sent.0);
        }
        if !rendezvous.1 {
            self.start_target(message, sent.1);
        }
        self.messages.sweep();
        let Asked { receiver, post, probers } = self.hand_over(message, channel, bytes, sent.0, output)?;
        if let Some(post) = post {
            self.receive_is_posted(message, post);
        }
        if let Some(receiver) = receiver {
            self.attach(message, receiver);
            self.lanes[receiver as usize].need -= 1;
        }
        for prober in probers {
            self.saw(prober, message);
            self.met(prober, output)?;
        }
        self.check(message, output)
    }

    /// A receive is posted on a channel.
    pub(super) fn posted(
        &mut self,
        channel: Channel,
        when: (f64, f64),
        output: &mut Output<'_>,
    ) -> Result<(), TransformError> {
        let queue = self.messages.queues.entry(channel).or_default();
        let Some(&message) = queue.sent.get(queue.assigned) else {
            if queue.posts.len() < MOST_POSTS {
                queue.posts.push_back(when);
            }
            return Ok(());
        };
        queue.assigned += 1;
        self.receive_is_posted(message, when);
        self.check(message, output)
    }

    /// A receive was cancelled: it waits for no message any more.
    pub(super) fn cancelled(&mut self, channel: Channel) {
        if let Some(queue) = self.messages.queues.get_mut(&channel) {
            queue.posts.pop_front();
        }
    }

    /// The message is the one that the lane's call receives.
    fn attach(&mut self, message: u32, id: u32) {
        let lane = &mut self.lanes[id as usize];
        let (enter, exit1) = ((lane.call.enter.0 as f64, lane.enter2), lane.call.exit.0 as f64);
        lane.need += 1;
        let m = &mut self.messages.slab[message as usize];
        m.receiver = id;
        m.needs_end = exit1 >= m.over.0 || !self.given.timed;
        if self.given.timed && exit1 < m.sent.0 - CLOCKS {
            self.counted.early += 1;
        }
        if m.posted.1.is_nan() {
            self.receive_is_posted(message, enter);
        }
    }

    fn receive_is_posted(&mut self, message: u32, when: (f64, f64)) {
        let m = &mut self.messages.slab[message as usize];
        m.posted = when;
        let (rendezvous, sent) = (m.rendezvous, m.sent);
        if rendezvous.0 {
            self.start_base(message, sent.0.max(when.0));
        }
        if rendezvous.1 {
            self.start_target(message, sent.1.max(when.1));
        }
    }

    /// One less who asks for a message.
    pub(super) fn let_go(&mut self, message: u32) {
        let m = &mut self.messages.slab[message as usize];
        m.references = m.references.saturating_sub(1);
        if m.references == 0 {
            if m.sharing {
                self.wires[0].forget(message);
            }
            self.messages.free.push(message);
        }
    }

    /// A probe waits for a message that it does not receive.
    pub(super) fn probe(&mut self, id: u32) {
        let lane = &self.lanes[id as usize];
        let call = lane.call;
        if call.flags.has(Flags::WILDCARD) || call.peer < 0 || call.tag < 0 || call.tag == TAG_ANY {
            self.counted.wild_probes += 1;
            return;
        }
        let channel = Channel { source: call.peer as u32, destination: lane.rank, comm: call.comm.0, tag: call.tag };
        let gone = self.ended[channel.source as usize];
        let queue = self.messages.queues.entry(channel).or_default();
        match queue.sent.front() {
            Some(&message) => self.saw(id, message),
            None if gone => {}
            None => {
                queue.probers.push(id);
                self.lanes[id as usize].need += 1;
            }
        }
    }

    /// The probe of a lane has found this message: its head, which travels as an empty one does.
    fn saw(&mut self, id: u32, message: u32) {
        let m = self.messages.slab[message as usize];
        let empty = *self.tariff.prices(0, self.given.way(m.source, m.destination));
        let lane = &mut self.lanes[id as usize];
        if m.sent.0 <= lane.call.exit.0 as f64 || !self.given.timed {
            let (start1, start2) = m.sent;
            let (model1, model2) = (empty.base.transfer, empty.target.transfer);
            lane.constraints.push(Constraint { start1, model1, start2, model2, carry: Carry::Add });
        }
    }

    /// Gives up the wait of the send that has waited longest for its receive; whether there was one.
    pub(super) fn give_up_send(&mut self, output: &mut Output<'_>) -> Result<bool, TransformError> {
        let waits = self.messages.all().filter(|(_, m)| m.sender != NONE);
        let first = waits.min_by(|a, b| a.1.sent.1.total_cmp(&b.1.sent.1)).map(|(at, _)| at);
        let Some(message) = first else { return Ok(false) };
        let lane = std::mem::replace(&mut self.messages.slab[message as usize].sender, NONE);
        self.let_go(message);
        self.met(lane, output)?;
        Ok(true)
    }

    /// A rank has ended: nothing more comes from it, and it receives nothing more.
    pub(super) fn silent(&mut self, rank: u32, output: &mut Output<'_>) -> Result<(), TransformError> {
        let (mut lanes, mut probers, mut stuck) = (Vec::new(), Vec::new(), Vec::new());
        let slab = &self.messages.slab;
        let unasked = |message: &u32| slab[*message as usize].posted.1.is_nan();
        for (channel, queue) in &mut self.messages.queues {
            if channel.source == rank {
                lanes.extend(queue.receivers.drain(..).map(|receiver| receiver.0));
                probers.append(&mut queue.probers);
            }
            if channel.destination == rank {
                stuck.extend(queue.sent.iter().copied().filter(unasked));
            }
        }
        self.counted.unmatched_receives += lanes.len() as u64;
        lanes.append(&mut probers);
        lanes.sort_unstable();
        for lane in lanes {
            self.met(lane, output)?;
        }
        stuck.sort_unstable();
        for message in stuck {
            let lane = std::mem::replace(&mut self.messages.slab[message as usize].sender, NONE);
            if lane != NONE {
                self.let_go(message);
                self.met(lane, output)?;
            }
        }
        Ok(())
    }

    /// What a lane waits for, in words.
    pub(super) fn channel_of(&self, id: u32) -> Option<Channel> {
        self.messages.queues.iter().find(|(_, q)| q.receivers.iter().any(|r| r.0 == id)).map(|(channel, _)| *channel)
    }
}
