//! The transfer of a message, alone or sharing a link, and what its end tells those who wait for it.
use super::Message;
use crate::transform::error::TransformError;
use crate::transform::output::Output;
use crate::transform::rules::{Carry, Constraint};
use crate::transform::walk::{NONE, Walk};
use crate::transform::wire;

/// Transfers of less work than this, in ns, are not worth sharing.
pub const SHORT: f64 = 1000.0;

impl Walk<'_, '_> {
    fn ends(&self, side: usize, m: &Message) -> (u32, u32) {
        let node = |rank: u32| self.given.nodes[side][rank as usize];
        wire::ends(node(m.source), node(m.destination))
    }

    pub(super) fn start_base(&mut self, message: u32, at: f64) {
        let m = &self.messages.slab[message as usize];
        let (ends, work) = (self.ends(0, m), m.base.work);
        let mut shares = self.given.contention.is_some() && work >= SHORT && self.wires[0].shares(ends);
        if shares {
            let slab = &mut self.messages.slab;
            self.wires[0].advance(at, |id, end| done_on_base(slab, id, end));
            shares = self.wires[0].start(message, ends, work, at);
        }
        let m = &mut self.messages.slab[message as usize];
        m.started.0 = at;
        (m.sharing, m.done) = if shares { (true, f64::NAN) } else { (false, at + work) };
    }

    pub(super) fn start_target(&mut self, message: u32, at: f64) {
        let m = &self.messages.slab[message as usize];
        let (ends, work) = (self.ends(1, m), m.target.work);
        let mut shares = self.given.contention.is_some() && work >= SHORT && self.wires[1].shares(ends);
        if shares {
            let done = &mut self.messages.done;
            self.wires[1].advance(at, |id, end| done.push((id, end)));
            shares = self.wires[1].start(message, ends, work, at);
            self.set_timer();
        }
        let m = &mut self.messages.slab[message as usize];
        m.started.1 = at;
        if shares {
            m.references += 1;
        } else {
            m.arrives = at + m.target.transfer;
        }
    }

    fn set_timer(&mut self) {
        let done = self.messages.done.first().map(|(_, end)| *end);
        self.messages.timer = done.or_else(|| self.wires[1].next_end()).or(self.messages.timer);
    }

    /// The next transfer ends on the target.
    pub(in super::super) fn timer(&mut self, time: f64, output: &mut Output<'_>) -> Result<(), TransformError> {
        self.messages.timer = None;
        let mut done = std::mem::take(&mut self.messages.done);
        self.wires[1].advance(time, |id, end| done.push((id, end)));
        for (message, end) in done {
            let m = &mut self.messages.slab[message as usize];
            m.arrives = end + (m.target.transfer - m.target.work);
            self.check(message, output)?;
            self.let_go(message);
        }
        self.set_timer();
        Ok(())
    }

    /// The call that sent a message is over.
    pub(in super::super) fn sent(
        &mut self,
        message: u32,
        end: f64,
        output: &mut Output<'_>,
    ) -> Result<(), TransformError> {
        self.messages.slab[message as usize].over.1 = end;
        self.check(message, output)?;
        self.let_go(message);
        Ok(())
    }

    /// A call waits for a message that was sent before.
    pub(in super::super) fn wait_for_send(
        &mut self,
        id: u32,
        message: u32,
        output: &mut Output<'_>,
    ) -> Result<(), TransformError> {
        let m = &mut self.messages.slab[message as usize];
        if self.ended[m.destination as usize] && m.posted.1.is_nan() {
            self.let_go(message);
            return Ok(());
        }
        (m.sender, m.later) = (id, true);
        let lane = &mut self.lanes[id as usize];
        lane.own1 = lane.own1.max(m.base.wait_send);
        lane.own2 = lane.own2.max(m.target.wait_send);
        lane.carry = Carry::Add;
        lane.need += 1;
        self.check(message, output)
    }

    /// Tells those who wait for a message what is known of it by now.
    pub(super) fn check(&mut self, message: u32, output: &mut Output<'_>) -> Result<(), TransformError> {
        let m = &mut self.messages.slab[message as usize];
        if m.arrives.is_nan() {
            return Ok(());
        }
        if m.sender != NONE && !m.posted.1.is_nan() {
            let sender = std::mem::replace(&mut m.sender, NONE);
            self.send_is_over(message, sender);
            self.let_go(message);
            self.met(sender, output)?;
        }
        let m = &mut self.messages.slab[message as usize];
        if m.receiver != NONE && (!m.needs_end || !m.over.1.is_nan()) {
            let receiver = std::mem::replace(&mut m.receiver, NONE);
            self.arrived(message, receiver);
            self.let_go(message);
            self.met(receiver, output)?;
        }
        Ok(())
    }

    /// What the transfer took on base and target.
    fn transfers(&mut self, message: u32) -> (f64, f64) {
        let m = &self.messages.slab[message as usize];
        let done = if m.sharing { self.wires[0].end_of(message).unwrap_or(m.done) } else { m.done };
        let base = done - m.started.0 + (m.base.transfer - m.base.work);
        (base, m.arrives - m.started.1)
    }

    fn send_is_over(&mut self, message: u32, id: u32) {
        let transfers = self.transfers(message);
        let m = &self.messages.slab[message as usize];
        let lane = &mut self.lanes[id as usize];
        let exit1 = lane.call.exit.0 as f64;
        // A send that had ended before its receive was posted did not wait for it, whatever the tables say: if the clocks tell.
        if self.given.timed && m.posted.0.max(m.sent.0) > exit1 && m.rendezvous.0 {
            return;
        }
        let longer = (transfers.0 - m.base.transfer, transfers.1 - m.target.transfer);
        let (model, carry) = if m.later {
            (transfers, Carry::Add)
        } else {
            ((m.base.send + longer.0, m.target.send + longer.1), Carry::Scale)
        };
        let start = |met: bool, at: f64| if met { at } else { f64::NEG_INFINITY };
        // Where it does not wait for its receive, it does not wait for the transfer either.
        let since = if m.later { m.started } else { m.posted };
        let (start1, start2) = (start(m.rendezvous.0, since.0), start(m.rendezvous.1, since.1));
        lane.constraints.push(Constraint { start1, model1: model.0, start2, model2: model.1, carry });
    }

    fn arrived(&mut self, message: u32, id: u32) {
        let (model1, model2) = self.transfers(message);
        let m = &self.messages.slab[message as usize];
        let lane = &mut self.lanes[id as usize];
        let (start1, start2) = m.started;
        lane.constraints.push(Constraint { start1, model1, start2, model2, carry: Carry::Add });
        if m.needs_end {
            lane.floor = lane.floor.max(m.over.1);
        }
    }
}

fn done_on_base(slab: &mut [Message], id: u32, end: f64) {
    if let Some(m) = slab.get_mut(id as usize) {
        (m.done, m.sharing) = (end, false);
    }
}
