//! What each kind of call does when it is entered (seed 000, section 4.2.2).
use super::{Begun, Kind, NONE, State, Walk, kept_as_time};
use crate::transform::error::TransformError;
use crate::transform::output::Output;
use crate::transform::roles::{Completes, Life, Waits};
use crate::transform::rules::{Carry, Constraint};
use crate::transform::tariff::Price;
use crate::transform::walk::messages::Sending;
use phasecast_analyzer::matching::Channel;
use phasecast_trace::model::PEER_ANY;
use phasecast_trace::{Class, Flags, Part, PartKind};

impl Walk<'_, '_> {
    /// Enters the call of a lane.
    pub(super) fn begin(&mut self, id: u32, output: &mut Output<'_>) -> Result<(), TransformError> {
        let lane = &mut self.lanes[id as usize];
        let (rank, call, position) = (lane.rank, lane.call, lane.position);
        (lane.own1, lane.own2, lane.carry, lane.spread) = (0.0, 0.0, Carry::Add, 0.0);
        (lane.floor, lane.need, lane.sent, lane.state) = (0.0, 0, NONE, State::Waiting);
        lane.ratio = if kept_as_time(call.class) { 1.0 } else { self.given.ratios.whole };
        // Held until all effects of the call are told.
        lane.need = 1;
        let given = self.given;
        let role = &given.roles[call.proc.index()];
        lane.kind = match call.class {
            Class::Send | Class::Start => Kind::Send,
            Class::Recv | Class::Complete | Class::Post | Class::Probe => Kind::Receive,
            Class::Collective | Class::Comm => Kind::Collective,
            _ => Kind::Other,
        };
        match call.class {
            Class::Send if call.peer >= 0 => {
                let receives =
                    self.threads[rank as usize].parts(position).iter().any(|part| part.kind == PartKind::Recv);
                let nonblocking = call.flags.has(Flags::NONBLOCKING);
                let to = call.peer as u32;
                let prices = self.tariff.prices(call.bytes, self.given.way(rank, to));
                let of = |price: &Price| if nonblocking { price.isend } else { price.send };
                self.lanes[id as usize].own(Carry::Scale, of, prices);
                let channel = Channel { source: rank, destination: to, comm: call.comm.0, tag: call.tag };
                let sending =
                    Sending { nonblocking, combined: receives, buffered: role.buffered, synchronous: role.synchronous };
                self.send(id, channel, call.bytes, sending, output)?;
            }
            Class::Post if call.flags.has(Flags::RECV_POST) => {
                let prices = self.tariff.prices(call.bytes, self.given.usual());
                self.lanes[id as usize].own(Carry::Add, |price| price.irecv, prices);
                self.post(id, call.peer, call.tag, call.comm.0, output)?;
            }
            Class::Post if role.starts => {
                let key = (rank, call.comm.0, call.peer, call.tag, call.bytes);
                self.made.insert(key, call.proc.0);
            }
            Class::Complete => self.complete(id, role.completes, output)?,
            Class::Collective | Class::Comm => {
                let nonblocking = call.flags.has(Flags::NONBLOCKING);
                self.collective(id, call.proc.0, call.comm.0, call.peer, call.bytes, nonblocking, output)?;
            }
            Class::Rma | Class::Io if call.flags.has(Flags::COLLECTIVE) => {
                let nonblocking = call.flags.has(Flags::NONBLOCKING);
                self.collective(id, call.proc.0, call.comm.0, -1, 0, nonblocking, output)?;
            }
            Class::Setup if role.life.is_some() => self.life(id, output)?,
            Class::Probe if role.probe => self.probe(id),
            _ => {}
        }
        // One-sided calls take their time, what they tell each other included.
        if call.class != Class::Rma {
            let mut at = 0;
            while let Some(&part) = self.threads[rank as usize].parts(position).get(at) {
                self.part(id, &part, output)?;
                at += 1;
            }
        }
        self.met(id, output)
    }

    fn part(&mut self, id: u32, part: &Part, output: &mut Output<'_>) -> Result<(), TransformError> {
        let lane = &self.lanes[id as usize];
        let (rank, class, proc) = (lane.rank, lane.call.class, lane.call.proc.0);
        // A start names no procedure: the one that made such a request.
        let made = || self.made.get(&(rank, part.comm.0, part.peer, part.tag, part.bytes)).copied();
        match part.kind {
            PartKind::Send if part.peer >= 0 => {
                let mode = made().map(|proc| &self.given.roles[usize::from(proc)]);
                let mode = mode.map_or((false, false), |role| (role.buffered, role.synchronous));
                let to = part.peer as u32;
                let prices = self.tariff.prices(part.bytes, self.given.way(rank, to));
                let lane = &mut self.lanes[id as usize];
                lane.own1 += prices.base.isend;
                lane.own2 += prices.target.isend;
                lane.carry = Carry::Scale;
                let channel = Channel { source: rank, destination: to, comm: part.comm.0, tag: part.tag };
                let (buffered, synchronous) = mode;
                let sending = Sending { nonblocking: true, combined: true, buffered, synchronous };
                self.send(id, channel, part.bytes, sending, output)
            }
            PartKind::Recv if part.peer >= 0 && !part.flags.has(Flags::CANCELLED) => {
                let from = part.peer as u32;
                let prices = self.tariff.prices(part.bytes, self.given.way(from, rank));
                let lane = &mut self.lanes[id as usize];
                match class {
                    Class::Recv => lane.own(Carry::Add, |price| price.receive, prices),
                    Class::Send => {}
                    _ => lane.own(Carry::Add, |price| price.wait, prices),
                }
                lane.spread += prices.target.spread;
                let channel = Channel { source: from, destination: rank, comm: part.comm.0, tag: part.tag };
                self.receive(id, channel, part.bytes, output)
            }
            PartKind::Recv if part.peer >= 0 => {
                let channel = Channel { source: part.peer as u32, destination: rank, comm: part.comm.0, tag: part.tag };
                self.cancelled(channel);
                Ok(())
            }
            PartKind::Post => {
                let prices = self.tariff.prices(part.bytes, self.given.usual());
                let lane = &mut self.lanes[id as usize];
                lane.own1 += prices.base.irecv;
                lane.own2 += prices.target.irecv;
                self.post(id, part.peer, part.tag, part.comm.0, output)
            }
            PartKind::Collective => {
                let proc = made().unwrap_or(proc);
                self.collective(id, proc, part.comm.0, part.peer, part.bytes, true, output)
            }
            _ => Ok(()),
        }
    }

    /// A receive is posted: a message beyond the eager limit may leave.
    fn post(&mut self, id: u32, peer: i32, tag: i32, comm: u32, output: &mut Output<'_>) -> Result<(), TransformError> {
        if peer < 0 || tag < 0 || peer == PEER_ANY {
            return Ok(());
        }
        let lane = &self.lanes[id as usize];
        let channel = Channel { source: peer as u32, destination: lane.rank, comm, tag };
        let when = (lane.call.enter.0 as f64, lane.enter2);
        self.posted(channel, when, output)
    }

    /// A call completes requests: receives are in its parts, and of the others those that began first are meant.
    fn complete(&mut self, id: u32, completes: Completes, output: &mut Output<'_>) -> Result<(), TransformError> {
        let lane = &self.lanes[id as usize];
        let rank = lane.rank as usize;
        let receives = self.threads[rank].parts(lane.position).iter().any(|part| part.kind == PartKind::Recv);
        let prices = self.tariff.prices(0, self.given.usual());
        self.lanes[id as usize].own(Carry::Add, |price| price.wait, prices);
        let end1 = self.lanes[id as usize].call.exit.0 as f64;
        let mut taken = 0;
        loop {
            let next = match completes {
                Completes::All => self.begun[rank].pop(),
                Completes::One if !receives && taken == 0 => self.begun[rank].pop(),
                // What it has completed is not recorded: a message that nobody waits for, if anything.
                Completes::Open if !receives && taken == 0 => self.begun[rank].pop_eager(),
                _ => None,
            };
            taken += 1;
            match next {
                None => return Ok(()),
                Some(Begun::Eager { waited: false }) => {}
                Some(Begun::Eager { waited: true }) if completes == Completes::Open => {}
                Some(Begun::Eager { waited: true }) => {
                    self.lanes[id as usize].constraints.push(Constraint::only_on_base(end1));
                }
                Some(Begun::Send(message)) => self.wait_for_send(id, message, output)?,
                Some(Begun::Collective(part)) => self.wait_for_collective(id, part),
            }
        }
    }

    /// Something was begun that a later call may wait for.
    #[inline]
    pub(super) fn remember(&mut self, rank: usize, begun: Begun) {
        match self.begun[rank].push(begun) {
            Some(Begun::Send(message)) => self.let_go(message),
            Some(Begun::Collective(part)) => self.leave(&part),
            Some(Begun::Eager { .. }) | None => {}
        }
    }

    /// All ranks wait for each other in `MPI_Init` and in `MPI_Finalize`.
    fn life(&mut self, id: u32, output: &mut Output<'_>) -> Result<(), TransformError> {
        let role = &self.given.roles[self.lanes[id as usize].call.proc.index()];
        let finalize = role.life == Some(Life::Finalize);
        let state = self.given.trace.comms().len() + usize::from(finalize);
        let (one, other) = self.tariff.life(finalize);
        self.arrive(id, state, Waits::ForAll, false, one, other, false, output)
    }
}
