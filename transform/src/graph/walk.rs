//! Streams over the events of all ranks in an order in which no event comes before one that it depends on. Memory is
//! bounded by the ranks and by the messages under way, not by the trace.
//!
//! A rank waits at a receive until its send was seen, and at a collective until all members are there. Where a trace
//! leaves that open (a rank was cut off, a message was not recorded, threads of a rank wait for one another), the rank
//! goes on without: the message's edge follows when its send is seen, if it ever is, and the collective joins nobody.
use super::{EventId, GraphError};
use phasecast_analyzer::matching::{Channel, FastMap};
use phasecast_trace::reader::RankReader;
use phasecast_trace::{Event, EventKind, Flags, PartKind, Rank, Trace};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// A vertex of the graph.
#[derive(Clone, Copy, Debug)]
pub struct Vertex {
    /// Which one.
    pub id: EventId,
    /// What the trace says of it.
    pub event: Event,
}

/// The vertex before another one, with the visitor's mark of it.
pub type Earlier<'a, M> = Option<(EventId, &'a M)>;

/// A member of a collective, with the vertex before it in its task and the mark of that.
pub type Member<M> = (Vertex, Option<(EventId, M)>);

/// What is done at each vertex. Marks are kept by the walk as long as a later vertex may depend on theirs.
pub trait Visit {
    /// What later vertices are told of a vertex.
    type Mark: Clone;

    /// A vertex, with the one before it in its task, and the send of the message that it has received.
    ///
    /// # Errors
    /// The walk ends with it.
    fn vertex(
        &mut self,
        vertex: &Vertex,
        previous: Earlier<'_, Self::Mark>,
        sent: Earlier<'_, Self::Mark>,
    ) -> Result<Self::Mark, GraphError>;

    /// A collective, with the vertices before its members in their tasks; returns the marks of the members.
    ///
    /// # Errors
    /// The walk ends with it.
    fn join(&mut self, members: &[Member<Self::Mark>]) -> Result<Vec<Self::Mark>, GraphError>;

    /// The send of a message whose receive has been passed already: an edge that comes late.
    ///
    /// # Errors
    /// The walk ends with it.
    fn late(&mut self, _send: EventId, _receive: EventId) -> Result<(), GraphError> {
        Ok(())
    }

    /// Whether the walk may end here.
    fn is_done(&self) -> bool {
        false
    }
}

/// What the walk could not place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Loose {
    /// Sends whose messages were not received.
    pub sends: u64,
    /// Receives whose messages were not sent.
    pub receives: u64,
    /// Collectives' members that were joined to none: of nonblocking ones, and where members are missing.
    pub members: u64,
}

/// One rank on its way.
struct Lane<'a, M> {
    reader: RankReader<'a>,
    /// Events that were read, and whether they are of a collective that joins.
    ahead: VecDeque<(Event, bool)>,
    number: u64,
    last: BTreeMap<u16, (EventId, M)>,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Ready,
    /// Waits for a message.
    Message(Channel),
    /// Waits for the other members of the collective of this communicator and number.
    Members(u32, u64),
    Ended,
}

/// Walks over a trace. `progress` is told how many events are done.
///
/// # Errors
/// If the trace is damaged, or those of the visitor.
pub fn walk<V: Visit>(trace: &Trace, visitor: &mut V, progress: &dyn Fn(u64)) -> Result<Loose, GraphError> {
    let lane = |rank| Lane {
        reader: trace.calls(rank),
        ahead: VecDeque::new(),
        number: 0,
        last: BTreeMap::new(),
        state: State::Ready,
    };
    let mut walk = Walk {
        lanes: trace.ranks().map(lane).collect(),
        members: trace.comms().iter().map(|comm| comm.members.iter().chain(&comm.remote).copied().collect()).collect(),
        under_way: FastMap::default(),
        owed: FastMap::default(),
        waiting: FastMap::default(),
        joins: FastMap::default(),
        passed: vec![FastMap::default(); trace.comms().len()],
        given_up: BTreeSet::new(),
        loose: Loose::default(),
        done: 0,
    };
    let mut ready: Vec<usize> = (0..walk.lanes.len()).rev().collect();
    loop {
        while let Some(rank) = ready.pop() {
            walk.advance(rank, visitor, &mut ready, progress)?;
        }
        match walk.release() {
            Some(ranks) if !visitor.is_done() => ready.extend(ranks),
            _ => break,
        }
    }
    progress(walk.done);
    walk.loose.sends += walk.under_way.values().map(|messages| messages.len() as u64).sum::<u64>();
    walk.loose.receives += walk.owed.values().map(|receives| receives.len() as u64).sum::<u64>();
    Ok(walk.loose)
}

struct Walk<'a, M> {
    lanes: Vec<Lane<'a, M>>,
    members: Vec<BTreeSet<u32>>,
    /// Messages that were sent and not received, each with its bytes.
    under_way: FastMap<Channel, VecDeque<(EventId, u64, M)>>,
    /// Receives that went on without their message.
    owed: FastMap<Channel, VecDeque<EventId>>,
    /// Who waits for a message.
    waiting: FastMap<Channel, usize>,
    /// Collectives that members wait in, by communicator and number.
    joins: FastMap<(u32, u64), Vec<Member<M>>>,
    /// For each communicator, the collectives that each member has come to.
    passed: Vec<FastMap<u32, u64>>,
    /// Collectives for which nobody waits any longer.
    given_up: BTreeSet<(u32, u64)>,
    loose: Loose,
    done: u64,
}

impl<M: Clone> Walk<'_, M> {
    /// Goes on with a rank until it waits or ends.
    fn advance<V: Visit<Mark = M>>(
        &mut self,
        rank: usize,
        visitor: &mut V,
        ready: &mut Vec<usize>,
        progress: &dyn Fn(u64),
    ) -> Result<(), GraphError> {
        while !visitor.is_done() {
            let lane = &mut self.lanes[rank];
            let Some((event, joins)) = lane.peek()? else {
                lane.state = State::Ended;
                return Ok(());
            };
            let id = EventId { rank: rank as u32, event: lane.number };
            let vertex = Vertex { id, event };
            if joins && !self.join(vertex, visitor, ready)? {
                return Ok(());
            }
            if !joins {
                if event.kind == EventKind::Collective {
                    self.loose.members += 1;
                }
                if !self.pass(vertex, visitor, ready)? {
                    return Ok(());
                }
            }
            self.done += 1;
            if self.done.is_multiple_of(1 << 16) {
                progress(self.done);
            }
        }
        Ok(())
    }

    /// Passes a vertex that is no member of a join; false if it has to wait.
    fn pass<V: Visit<Mark = M>>(
        &mut self,
        vertex: Vertex,
        visitor: &mut V,
        ready: &mut Vec<usize>,
    ) -> Result<bool, GraphError> {
        let Vertex { id, event } = vertex;
        let rank = id.rank as usize;
        let channel = channel(id.rank, &event);
        let mut sent = None;
        if event.kind == EventKind::Recv {
            // Receives stand in the order in which they complete: the first message of the same length is meant, and the first
            // of all if none comes.
            let given_up = self.owed.contains_key(&channel);
            sent = self.under_way.get_mut(&channel).and_then(|messages| {
                let same = messages.iter().position(|message| message.1 == event.bytes);
                messages.remove(same.or(given_up.then_some(0))?)
            });
            if given_up && sent.is_some() && self.owed.get(&channel).is_some_and(VecDeque::is_empty) {
                self.owed.remove(&channel);
            }
            if sent.is_none() && self.lanes[rank].state == State::Ready && !self.owed.contains_key(&channel) {
                self.lanes[rank].state = State::Message(channel);
                self.waiting.insert(channel, rank);
                return Ok(false);
            }
            if sent.is_none() {
                self.owed.entry(channel).or_default().push_back(id);
            } else if self.under_way.get(&channel).is_some_and(VecDeque::is_empty) {
                self.under_way.remove(&channel);
            }
        }
        let lane = &mut self.lanes[rank];
        let previous = lane.last.get(&event.thread).map(|(id, mark)| (*id, mark));
        let mark = visitor.vertex(&vertex, previous, sent.as_ref().map(|(id, _, mark)| (*id, mark)))?;
        lane.step(event.thread, id, mark.clone());
        if event.kind == EventKind::Send {
            if let Some(receives) = self.owed.get_mut(&channel) {
                if let Some(receive) = receives.pop_front() {
                    visitor.late(id, receive)?;
                }
                if receives.is_empty() {
                    self.owed.remove(&channel);
                }
            } else {
                self.under_way.entry(channel).or_default().push_back((id, event.bytes, mark));
                if let Some(waiting) = self.waiting.remove(&channel) {
                    self.lanes[waiting].state = State::Ready;
                    ready.push(waiting);
                }
            }
        }
        Ok(true)
    }

    /// Takes a member into its collective; true if it was passed, false if it has to wait.
    fn join<V: Visit<Mark = M>>(
        &mut self,
        vertex: Vertex,
        visitor: &mut V,
        ready: &mut Vec<usize>,
    ) -> Result<bool, GraphError> {
        let Vertex { id, event } = vertex;
        let (rank, comm) = (id.rank as usize, event.comm.0);
        let Some(passed) = self.passed.get_mut(event.comm.index()) else { return self.alone(vertex, visitor, ready) };
        let number = passed.get(&id.rank).copied().unwrap_or(0);
        let is_member = self.members[event.comm.index()].contains(&id.rank);
        if !is_member || self.given_up.contains(&(comm, number)) {
            *passed.entry(id.rank).or_default() += 1;
            return self.alone(vertex, visitor, ready);
        }
        let previous = self.lanes[rank].last.get(&event.thread).cloned();
        let members = self.joins.entry((comm, number)).or_default();
        members.push((vertex, previous));
        if members.len() < self.members[event.comm.index()].len() {
            self.lanes[rank].state = State::Members(comm, number);
            return Ok(false);
        }
        let members = self.joins.remove(&(comm, number)).unwrap_or_default();
        let marks = visitor.join(&members)?;
        for ((member, _), mark) in members.iter().zip(marks) {
            *self.passed[event.comm.index()].entry(member.id.rank).or_default() += 1;
            let lane = &mut self.lanes[member.id.rank as usize];
            lane.step(member.event.thread, member.id, mark);
            if member.id.rank != id.rank {
                lane.state = State::Ready;
                ready.push(member.id.rank as usize);
                self.done += 1;
            }
        }
        Ok(true)
    }

    /// Passes a member of a collective that joins nobody.
    fn alone<V: Visit<Mark = M>>(
        &mut self,
        vertex: Vertex,
        visitor: &mut V,
        ready: &mut Vec<usize>,
    ) -> Result<bool, GraphError> {
        self.loose.members += 1;
        self.pass(vertex, visitor, ready)
    }

    /// All ranks wait or have ended: lets some go on. None if all have ended.
    fn release(&mut self) -> Option<Vec<usize>> {
        // First those whose partner has ended, so that no one waits for what cannot come.
        let hopeless = |state: State| match state {
            State::Message(channel) => {
                self.lanes.get(channel.source as usize).is_none_or(|lane| lane.state == State::Ended)
            }
            State::Members(comm, _) => self.members[comm as usize]
                .iter()
                .any(|rank| self.lanes.get(*rank as usize).is_none_or(|lane| lane.state == State::Ended)),
            State::Ready | State::Ended => false,
        };
        let waits = |rank: &usize| !matches!(self.lanes[*rank].state, State::Ended | State::Ready);
        let all = || (0..self.lanes.len()).filter(waits);
        let rank = all().find(|rank| hopeless(self.lanes[*rank].state)).or_else(|| all().next())?;
        match self.lanes[rank].state {
            State::Message(channel) => {
                self.waiting.remove(&channel);
                // Noted as owed, and again as it is passed: here only the place is made.
                self.owed.entry(channel).or_default();
                self.lanes[rank].state = State::Ready;
                Some(vec![rank])
            }
            State::Members(comm, number) => {
                self.given_up.insert((comm, number));
                let members = self.joins.remove(&(comm, number)).unwrap_or_default();
                let ranks: Vec<usize> = members.iter().map(|(vertex, _)| vertex.id.rank as usize).collect();
                ranks.iter().for_each(|rank| self.lanes[*rank].state = State::Ready);
                Some(ranks)
            }
            State::Ready | State::Ended => None,
        }
    }
}

impl<M> Lane<'_, M> {
    /// The next event, and whether it is of a collective that joins.
    fn peek(&mut self) -> Result<Option<(Event, bool)>, GraphError> {
        while self.ahead.is_empty() {
            let Some(call) = self.reader.next_call()? else { return Ok(None) };
            // Of a call that starts several, the parts are started, too.
            let started = call.parts.iter().any(|part| part.kind == PartKind::Collective);
            let joins = !call.call.flags.has(Flags::NONBLOCKING) && !started;
            self.ahead.extend(call.events().map(|event| (event, joins && event.kind == EventKind::Collective)));
        }
        Ok(self.ahead.front().copied())
    }

    /// Moves on past the event that was looked at.
    fn step(&mut self, thread: u16, id: EventId, mark: M) {
        self.last.insert(thread, (id, mark));
        self.ahead.pop_front();
        self.number += 1;
    }
}

/// The channel of a message; of a collective one that is not used.
fn channel(rank: u32, event: &Event) -> Channel {
    let peer = event.peer as u32;
    let (source, destination) = if event.kind == EventKind::Send { (rank, peer) } else { (peer, rank) };
    Channel { source, destination, comm: event.comm.0, tag: event.tag }
}

/// The events of a rank, one after the other.
///
/// # Errors
/// If the trace is damaged, or those of `each`.
pub fn each_event(
    trace: &Trace,
    rank: Rank,
    mut each: impl FnMut(EventId, &Event) -> Result<bool, GraphError>,
) -> Result<(), GraphError> {
    let (mut reader, mut number) = (trace.calls(rank), 0);
    while let Some(call) = reader.next_call()? {
        for event in call.events() {
            if !each(EventId { rank: rank.0, event: number }, &event)? {
                return Ok(());
            }
            number += 1;
        }
    }
    Ok(())
}
