//! What each kind of call does when it is entered (seed 000, section 4.2.2).
use super::{Begun, Kind, NONE, State, Walk, kept_as_time};
use crate::transform::error::TransformError;
use crate::transform::output::Output;
use crate::transform::roles::{Completes, Waits};
use crate::transform::rules::Carry;
use crate::transform::tariff::Price;
use crate::transform::walk::messages::Sending;
use phasecast_analyzer::matching::Channel;
use phasecast_trace::model::PEER_ANY;
use phasecast_trace::{Class, Flags, Part, PartKind};

/// Nonblocking operations of a rank that may be waited for later.
const MOST_BEGUN: usize = 4096;

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
                let prices = self.tariff.prices(call.bytes, self.given.way(rank, rank));
                self.lanes[id as usize].own(Carry::Add, |price| price.irecv, prices);
                self.post(id, call.peer, call.tag, call.comm.0, output)?;
            }
            Class::Complete => self.complete(id, role.completes, output)?,
            Class::Collective | Class::Comm => {
                let nonblocking = call.flags.has(Flags::NONBLOCKING);
                self.collective(id, call.comm.0, call.peer, call.bytes, nonblocking, output)?;
            }
            Class::Rma | Class::Io if call.flags.has(Flags::COLLECTIVE) => {
                self.collective(id, call.comm.0, -1, 0, call.flags.has(Flags::NONBLOCKING), output)?;
            }
            Class::Setup if role.life => self.life(id, output)?,
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
        let (rank, class) = (self.lanes[id as usize].rank, self.lanes[id as usize].call.class);
        match part.kind {
            PartKind::Send if part.peer >= 0 => {
                let to = part.peer as u32;
                let prices = self.tariff.prices(part.bytes, self.given.way(rank, to));
                let lane = &mut self.lanes[id as usize];
                lane.own1 += prices.base.isend;
                lane.own2 += prices.target.isend;
                lane.carry = Carry::Scale;
                let channel = Channel { source: rank, destination: to, comm: part.comm.0, tag: part.tag };
                let sending = Sending { nonblocking: true, combined: true, buffered: false, synchronous: false };
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
                self.receive(id, channel, output)
            }
            PartKind::Post => {
                let prices = self.tariff.prices(part.bytes, self.given.way(rank, rank));
                let lane = &mut self.lanes[id as usize];
                lane.own1 += prices.base.irecv;
                lane.own2 += prices.target.irecv;
                self.post(id, part.peer, part.tag, part.comm.0, output)
            }
            PartKind::Collective => self.collective(id, part.comm.0, part.peer, part.bytes, true, output),
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
        let prices = self.tariff.prices(0, self.given.way(rank as u32, rank as u32));
        self.lanes[id as usize].own(Carry::Add, |price| price.wait, prices);
        let begun = match completes {
            Completes::All => usize::MAX,
            Completes::One if !receives => 1,
            _ => 0,
        };
        for _ in 0..begun {
            match self.begun[rank].pop_front() {
                None => break,
                Some(Begun::Send(message)) => self.wait_for_send(id, message, output)?,
                Some(Begun::Collective(part)) => self.wait_for_collective(id, part),
            }
        }
        Ok(())
    }

    /// Something was begun that a later call may wait for.
    pub(super) fn remember(&mut self, rank: usize, begun: Begun) {
        self.begun[rank].push_back(begun);
        if self.begun[rank].len() > MOST_BEGUN {
            match self.begun[rank].pop_front() {
                Some(Begun::Send(message)) => self.let_go(message),
                Some(Begun::Collective(part)) => self.leave(&part),
                None => {}
            }
        }
    }

    /// All ranks wait for each other in `MPI_Init` and in `MPI_Finalize`.
    fn life(&mut self, id: u32, output: &mut Output<'_>) -> Result<(), TransformError> {
        let role = &self.given.roles[self.lanes[id as usize].call.proc.index()];
        let finalize = role.name.contains("Finalize");
        let state = self.given.trace.comms().len() + usize::from(finalize);
        let (one, other) = self.tariff.life(finalize);
        self.arrive(id, state, Waits::ForAll, false, one, other, false, output)
    }
}
