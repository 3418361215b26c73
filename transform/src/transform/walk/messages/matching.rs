//! Which message a call receives: the first of its channel, and where a trace has all messages of two ranks, the first of
//! the same length. Receives come in the order in which they complete, messages in that in which they were sent. Where
//! messages are missing, those that the clock excludes are not received.
use super::{Queue, Walk};
use crate::transform::error::TransformError;
use crate::transform::output::Output;
use crate::transform::rules::CLOCKS;
use phasecast_analyzer::matching::Channel;
use phasecast_analyzer::peers::Uneven;

/// Who asks for a message that is sent.
pub(super) struct Asked {
    /// The lane whose call receives it.
    pub receiver: Option<u32>,
    /// When a receive was posted for it.
    pub post: Option<(f64, f64)>,
    /// Lanes whose calls probe for it.
    pub probers: Vec<u32>,
}

impl Walk<'_, '_> {
    /// A call receives a message of a channel.
    #[inline]
    pub(in super::super) fn receive(
        &mut self,
        id: u32,
        channel: Channel,
        bytes: u64,
        output: &mut Output<'_>,
    ) -> Result<(), TransformError> {
        let gone = self.ended[channel.source as usize];
        let uneven = self.uneven(channel);
        let missing = uneven.is_some_and(|uneven| uneven.short && self.misses(id, channel, uneven.sent));
        let queue = self.messages.queues.entry(channel).or_default();
        let slab = &self.messages.slab;
        let fits = |message: &u32| uneven.is_some() || slab[*message as usize].bytes == bytes;
        let found = queue.sent.iter().position(fits).filter(|_| !missing);
        if let Some((at, message)) = found.and_then(|at| Some((at, queue.sent.remove(at)?))) {
            queue.assigned -= usize::from(at < queue.assigned);
            self.attach(message, id);
            return self.check(message, output);
        }
        if missing || gone {
            self.counted.unmatched_receives += 1;
            return Ok(());
        }
        queue.receivers.push_back((id, bytes));
        self.lanes[id as usize].need += 1;
        Ok(())
    }

    /// What is uneven between the ranks of a channel.
    fn uneven(&self, channel: Channel) -> Option<Uneven> {
        self.given.survey.differences.of(channel.source, channel.destination)
    }

    /// Whether more messages were received from there than sent.
    fn is_short(&self, channel: Channel) -> bool {
        self.uneven(channel).is_some_and(|uneven| uneven.short)
    }

    /// Whether the message of a receive was not recorded, where more were received than these `sends`: either all of these
    /// have been received by now, or the next one was sent after this receive.
    fn misses(&mut self, id: u32, channel: Channel, sends: u64) -> bool {
        let pair = (channel.source, channel.destination);
        let taken = self.messages.taken.entry(pair).or_default();
        if *taken >= sends {
            return true;
        }
        let next = self.messages.queues.get(&channel).and_then(|queue| queue.sent.front());
        if next.is_some_and(|&message| self.is_too_late(self.messages.slab[message as usize].sent.0, id)) {
            return true;
        }
        *self.messages.taken.entry(pair).or_default() += 1;
        false
    }

    /// Whether what was sent then was sent after the call of a lane, by the base's clock.
    fn is_too_late(&self, sent: f64, id: u32) -> bool {
        self.given.one_clock && sent > self.lanes[id as usize].call.exit.0 as f64 + CLOCKS
    }

    /// Gives a message to the call that waits for it, else to the messages of its channel.
    #[inline]
    pub(super) fn hand_over(
        &mut self,
        message: u32,
        channel: Channel,
        bytes: u64,
        sent: f64,
        output: &mut Output<'_>,
    ) -> Result<Asked, TransformError> {
        let pair = (channel.source, channel.destination);
        if self.is_short(channel) {
            while let Some(&(lane, _)) = self.queue(channel).receivers.front()
                && self.is_too_late(sent, lane)
            {
                self.queue(channel).receivers.pop_front();
                self.goes_without(pair, lane, output)?;
            }
        }
        let uneven = self.uneven(channel).is_some();
        let queue = self.queue(channel);
        let post = queue.posts.pop_front();
        let found = queue.receivers.iter().position(|receiver| uneven || receiver.1 == bytes);
        let receiver = found.and_then(|at| queue.receivers.remove(at)).map(|receiver| receiver.0);
        if receiver.is_none() {
            queue.sent.push_back(message);
            queue.assigned += usize::from(post.is_some());
        }
        Ok(Asked { receiver, post, probers: std::mem::take(&mut queue.probers) })
    }

    fn queue(&mut self, channel: Channel) -> &mut Queue {
        self.messages.queues.entry(channel).or_default()
    }

    /// A call waits no longer for a message from a pair of ranks of which some are missing.
    fn goes_without(&mut self, pair: (u32, u32), lane: u32, output: &mut Output<'_>) -> Result<(), TransformError> {
        if let Some(taken) = self.messages.taken.get_mut(&pair) {
            *taken = taken.saturating_sub(1);
        }
        self.counted.unmatched_receives += 1;
        self.met(lane, output)
    }

    /// Gives up the wait for a message where some were not recorded, of the call that began first; whether there was one.
    pub(in super::super) fn give_up_receive(&mut self, output: &mut Output<'_>) -> Result<bool, TransformError> {
        let lanes = &self.lanes;
        let queues = self.messages.queues.iter().filter(|(channel, _)| self.is_short(**channel));
        let waits = queues.filter_map(|(channel, queue)| Some((*channel, queue.receivers.front()?.0)));
        let first = waits.min_by(|a, b| {
            let of = |wait: &(Channel, u32)| lanes[wait.1 as usize].enter2;
            of(a).total_cmp(&of(b)).then(a.1.cmp(&b.1))
        });
        let Some((channel, lane)) = first else { return Ok(false) };
        self.queue(channel).receivers.pop_front();
        self.goes_without((channel.source, channel.destination), lane, output)?;
        Ok(true)
    }
}
