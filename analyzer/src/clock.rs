//! Logical time: the PAS2P clock of seed 004 and Lamport's, and the ticks into which logical times are split.
//!
//! A send takes the rank's next logical time LT; its receive is at LT + 1 of the *sender*, never later (PAS2P), or at
//! the greater of that and the receiver's own time (Lamport). The order in which receives happen to complete thus does
//! not show, but an event may lie before an earlier one of its own rank. A collective is one logical time of all its
//! members: the greatest of theirs. A logical time is then split into ticks, so that a rank has at most one event in
//! each: messages first, in the order of the stream, then collectives, each in one tick of all its members.
//!
//! Ranks are replayed in the order of their logical times; what is kept is the window between the slowest and the
//! fastest, and the messages in flight.
use crate::error::AnalyzeError;
use crate::matching::{FastMap, Message, Pairs};
use crate::parallel::Stage;
use crate::source::{Feed, Item};
use crate::survey::Survey;
use phasecast_trace::{EventKind, Trace};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

/// Which logical clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClockKind {
    /// Seed 004: a message sent at LT is received at LT + 1, never later.
    #[default]
    Pas2p,
    /// Lamport's: a receive is later than its send and than the events before it on its own rank.
    Lamport,
}

/// An event with its place in logical time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placed {
    /// The rank.
    pub rank: u32,
    /// The event's number in the rank's stream.
    pub index: u64,
    /// The event.
    pub item: Item,
    /// From the exit of the event before it on its rank to its own, in ns: the block that it ends.
    pub block_ns: u64,
    /// Its logical time.
    pub time: u64,
    /// The communicator and sequence of its collective, if it is one that could be matched.
    collective: Option<(u32, u64)>,
}

/// A tick: at most one event of each rank.
#[derive(Clone, Copy, Debug)]
pub struct TickEvents<'a> {
    /// Its number, from 0 without gaps.
    pub tick: u64,
    /// Its events, by rank.
    pub events: &'a [Placed],
}

struct Meeting {
    arrived: Vec<(Placed, bool)>,
    time: u64,
}

/// What holds a rank up.
enum Wait {
    Message(Message),
    Meeting,
}

struct Replay<'f, 'a> {
    feed: &'f mut Feed<'a>,
    kind: ClockKind,
    clocks: Vec<u64>,
    indices: Vec<u64>,
    exits: Vec<u64>,
    ended: Vec<bool>,
    runnable: BinaryHeap<Reverse<(u64, usize)>>,
    waiting: BTreeMap<usize, Wait>,
    sent: FastMap<Message, VecDeque<u64>>,
    wanted: FastMap<Message, usize>,
    members: Vec<usize>,
    balanced: Vec<bool>,
    pairs: Pairs,
    sequences: Vec<FastMap<u32, u64>>,
    meetings: BTreeMap<(u32, u64), Meeting>,
    placed: BTreeMap<u64, Vec<Placed>>,
}

/// Replays the run and calls `each` with every tick in order.
///
/// # Errors
/// If a file is damaged, or those of `each`.
pub fn ticks(
    trace: &Trace,
    survey: &Survey,
    feed: &mut Feed<'_>,
    kind: ClockKind,
    stage: &Stage<'_>,
    mut each: impl FnMut(TickEvents<'_>) -> Result<(), AnalyzeError>,
) -> Result<(), AnalyzeError> {
    let ranks = survey.spans.len();
    let mut replay = Replay {
        feed,
        kind,
        clocks: vec![0; ranks],
        indices: vec![0; ranks],
        exits: survey.spans.iter().map(|s| s.0).collect(),
        ended: vec![false; ranks],
        runnable: (0..ranks).map(|rank| Reverse((0, rank))).collect(),
        waiting: BTreeMap::new(),
        sent: FastMap::default(),
        wanted: FastMap::default(),
        members: trace.comms().iter().map(|c| c.members.len() + c.remote.len()).collect(),
        balanced: survey.balanced.clone(),
        pairs: Pairs::new(survey),
        sequences: vec![FastMap::default(); ranks],
        meetings: BTreeMap::new(),
        placed: BTreeMap::new(),
    };
    let mut splitter = Splitter { next: 0, used: vec![0; ranks] };
    let mut steps = 0u64;
    loop {
        match replay.runnable.pop() {
            Some(Reverse((_, rank))) => replay.run(rank)?,
            None if replay.release()? => {}
            None => break,
        }
        steps += 1;
        if steps.is_multiple_of(1 << 12) {
            stage.tell(replay.feed.taken());
            let frontier = replay.frontier();
            let later = replay.placed.split_off(&frontier);
            for (_, events) in std::mem::replace(&mut replay.placed, later) {
                splitter.split(events, &mut each)?;
            }
        }
    }
    for (_, events) in std::mem::take(&mut replay.placed) {
        splitter.split(events, &mut each)?;
    }
    Ok(())
}

/// Events that a rank takes in one go.
const BURST: usize = 64;

impl Replay<'_, '_> {
    fn run(&mut self, rank: usize) -> Result<(), AnalyzeError> {
        for _ in 0..BURST {
            let Some(item) = self.feed.peek(rank)? else {
                self.ended[rank] = true;
                return Ok(());
            };
            match item.kind {
                EventKind::Send => self.send(rank, item),
                EventKind::Recv => {
                    if !self.receive(rank, item, false) {
                        return Ok(());
                    }
                }
                EventKind::Collective => {
                    if !self.meet(rank, item) {
                        return Ok(());
                    }
                }
            }
        }
        self.runnable.push(Reverse((self.clocks[rank], rank)));
        Ok(())
    }

    /// Takes the event that was peeked at off the rank's stream.
    fn take(&mut self, rank: usize, item: Item, time: u64, collective: Option<(u32, u64)>) -> Placed {
        self.feed.advance(rank);
        let exit = item.exit.max(self.exits[rank]);
        let block_ns = exit - std::mem::replace(&mut self.exits[rank], exit);
        let index = self.indices[rank];
        self.indices[rank] += 1;
        Placed { rank: rank as u32, index, item, block_ns, time, collective }
    }

    fn place(&mut self, event: Placed) {
        self.placed.entry(event.time).or_default().push(event);
    }

    fn local(&mut self, rank: usize, item: Item) {
        let time = self.clocks[rank];
        let event = self.take(rank, item, time, None);
        self.place(event);
        self.clocks[rank] = time + 1;
    }

    fn send(&mut self, rank: usize, item: Item) {
        let time = self.clocks[rank];
        self.local(rank, item);
        let message = self.pairs.message(rank as u32, &item);
        self.sent.entry(message).or_default().push_back(time);
        if let Some(waiter) = self.wanted.remove(&message) {
            self.wake(waiter);
        }
    }

    /// Whether the receive could be placed; else the rank waits (unless `anyway`).
    fn receive(&mut self, rank: usize, item: Item, anyway: bool) -> bool {
        let message = self.pairs.message(rank as u32, &item);
        let queue = self.sent.get_mut(&message);
        let (time, empty) = queue.map_or((None, false), |queue| (queue.pop_front(), queue.is_empty()));
        if empty {
            self.sent.remove(&message);
        }
        let Some(sent) = time else {
            if anyway || self.pairs.is_short(message) {
                self.local(rank, item);
                return true;
            }
            self.wanted.insert(message, rank);
            self.waiting.insert(rank, Wait::Message(message));
            return false;
        };
        let time = match self.kind {
            ClockKind::Pas2p => sent + 1,
            ClockKind::Lamport => self.clocks[rank].max(sent + 1),
        };
        let event = self.take(rank, item, time, None);
        self.place(event);
        self.clocks[rank] = self.clocks[rank].max(time + 1);
        true
    }

    /// Whether the rank goes on at once; else it waits for the other members.
    fn meet(&mut self, rank: usize, item: Item) -> bool {
        let comm = item.comm;
        if !self.balanced.get(comm as usize).copied().unwrap_or(false) {
            self.local(rank, item);
            return true;
        }
        let sequence = self.sequences[rank].entry(comm).or_default();
        *sequence += 1;
        let key = (comm, *sequence);
        let time = self.clocks[rank];
        let event = self.take(rank, item, time, Some(key));
        self.clocks[rank] = time + 1;
        let meeting = self.meetings.entry(key).or_insert_with(|| Meeting { arrived: Vec::new(), time: 0 });
        meeting.time = meeting.time.max(time);
        meeting.arrived.push((event, item.nonblocking));
        if meeting.arrived.len() == self.members[comm as usize] {
            self.conclude(key, Some(rank));
            return true;
        }
        if !item.nonblocking {
            self.waiting.insert(rank, Wait::Meeting);
        }
        item.nonblocking
    }

    /// Gives all members of a collective its time, and wakes those that wait (all but `running`).
    fn conclude(&mut self, key: (u32, u64), running: Option<usize>) {
        let Some(meeting) = self.meetings.remove(&key) else { return };
        for (event, nonblocking) in meeting.arrived {
            let rank = event.rank as usize;
            self.place(Placed { time: meeting.time, ..event });
            if !nonblocking {
                self.clocks[rank] = self.clocks[rank].max(meeting.time + 1);
                if running != Some(rank) {
                    self.wake(rank);
                }
            }
        }
    }

    fn wake(&mut self, rank: usize) {
        if self.waiting.remove(&rank).is_some() {
            self.runnable.push(Reverse((self.clocks[rank], rank)));
        }
    }

    /// Nobody can go on: a message or a member is missing. Lets the first rank that waits for a message do without it,
    /// or else the first collective do without the members that are missing. False if nobody waits.
    fn release(&mut self) -> Result<bool, AnalyzeError> {
        let stuck = self.waiting.iter().find_map(|(rank, wait)| match wait {
            Wait::Message(message) => Some((*rank, *message)),
            Wait::Meeting => None,
        });
        if let Some((rank, message)) = stuck {
            self.wanted.remove(&message);
            self.waiting.remove(&rank);
            if let Some(item) = self.feed.peek(rank)? {
                self.receive(rank, item, true);
            }
            self.runnable.push(Reverse((self.clocks[rank], rank)));
            return Ok(true);
        }
        let Some(key) = self.meetings.keys().next().copied() else { return Ok(false) };
        self.conclude(key, None);
        Ok(true)
    }

    /// The earliest logical time at which an event may still be placed.
    fn frontier(&self) -> u64 {
        let clocks = self.clocks.iter().zip(&self.ended).filter(|(_, ended)| !**ended).map(|(clock, _)| *clock);
        let messages = self.sent.values().filter_map(|queue| queue.front()).map(|time| time + 1);
        let meetings = self.meetings.values().map(|meeting| meeting.time);
        clocks.chain(messages).chain(meetings).min().unwrap_or(u64::MAX)
    }
}

struct Splitter {
    next: u64,
    used: Vec<u64>,
}

impl Splitter {
    /// Splits the events of one logical time into ticks.
    fn split(
        &mut self,
        mut events: Vec<Placed>,
        each: &mut impl FnMut(TickEvents<'_>) -> Result<(), AnalyzeError>,
    ) -> Result<(), AnalyzeError> {
        events.sort_unstable_by_key(|e| (e.collective, e.rank, e.index));
        let mut ticks: Vec<Vec<Placed>> = Vec::new();
        for group in events.chunk_by(|a, b| a.collective.is_some() && a.collective == b.collective) {
            let at = group.iter().map(|e| self.used[e.rank as usize]).max().unwrap_or(0);
            for event in group {
                self.used[event.rank as usize] = at + 1;
                if ticks.len() as u64 <= at {
                    ticks.resize_with(at as usize + 1, Vec::new);
                }
                ticks[at as usize].push(*event);
            }
        }
        for events in &mut ticks {
            events.sort_unstable_by_key(|e| e.rank);
            each(TickEvents { tick: self.next, events })?;
            events.iter().for_each(|e| self.used[e.rank as usize] = 0);
            self.next += 1;
        }
        Ok(())
    }
}
