//! Calls, their parts, and the communication events in them.
mod rank;

pub use rank::{
    CLOCK_VARIABLE, COMPUTING_CLOCK, ClockStart, CommDef, Cut, Ending, Origin, PROCESS_VARIABLE, RankHeader, Trailer,
    boot_id, file_name, launcher_rank,
};

use crate::counts::Counts;
use crate::units::{Bytes, CommId, Nanos, ProcId, Rank};
use serde::{Deserialize, Serialize};

/// A peer that is no rank: the call has none.
pub const PEER_NONE: i32 = -1;
/// The peer is `MPI_PROC_NULL`: nothing is sent or received.
pub const PEER_PROC_NULL: i32 = -2;
/// The peer is `MPI_ANY_SOURCE` (only of posts, and probes that found nothing: a completed receive has its source).
pub const PEER_ANY: i32 = -3;
/// The tag of a call that has none.
pub const TAG_NONE: i32 = -1;
/// The tag is `MPI_ANY_TAG` (only of posts, and probes that found nothing).
pub const TAG_ANY: i32 = -2;

/// What a recorded call is to the analysis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[repr(u8)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// A message leaves at this call, blocking or not; `peer` is its destination. An event.
    Send = 0,
    /// A blocking receive; the message is in a part of kind [`PartKind::Recv`].
    Recv = 1,
    /// A collective, blocking or at its start; `peer` is the root or [`PEER_NONE`]. An event.
    Collective = 2,
    /// A call that completes requests (Wait*, Test*); what it received is in its parts.
    Complete = 3,
    /// A receive is posted ([`Flags::RECV_POST`]) or a persistent request is made.
    Post = 4,
    /// Persistent requests are started; each is a part.
    Start = 5,
    /// Probe, Iprobe, Mprobe, Improbe.
    Probe = 6,
    /// One-sided communication and its synchronisation; an event if [`Flags::COLLECTIVE`]. What synchronises with a
    /// group is in its parts ([`crate::epochs::epoch_tag`]).
    Rma = 7,
    /// MPI-IO; an event if [`Flags::COLLECTIVE`].
    Io = 8,
    /// A communicator is made: a collective of its parent with no bytes. An event.
    Comm = 9,
    /// Init, Finalize, Abort.
    Setup = 10,
    /// `MPI_Pcontrol(0)`: nothing is recorded until the next [`Class::Resume`].
    Pause = 11,
    /// `MPI_Pcontrol(1)`.
    Resume = 12,
    /// Anything else that is recorded.
    Other = 13,
}

impl Class {
    /// The class with this number.
    pub fn from_u8(n: u8) -> Option<Class> {
        use Class::*;
        [Send, Recv, Collective, Complete, Post, Start, Probe, Rma, Io, Comm, Setup, Pause, Resume, Other]
            .get(n as usize)
            .copied()
    }
}

/// What a part of a call is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[repr(u8)]
#[serde(rename_all = "lowercase")]
pub enum PartKind {
    /// A message leaves (MPI_Start of a persistent send). An event.
    Send = 0,
    /// A receive is complete. An event.
    Recv = 1,
    /// A receive is posted (MPI_Start of a persistent receive).
    Post = 2,
    /// A persistent collective starts. An event.
    Collective = 3,
}

impl PartKind {
    /// The kind with this number.
    pub fn from_u8(n: u8) -> Option<PartKind> {
        [PartKind::Send, PartKind::Recv, PartKind::Post, PartKind::Collective].get(n as usize).copied()
    }
}

/// Properties of a call or part, as bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Flags(pub u16);

impl Flags {
    /// The operation may still be under way when the call returns.
    pub const NONBLOCKING: Flags = Flags(1);
    /// Of a persistent request.
    pub const PERSISTENT: Flags = Flags(2);
    /// The receive was posted with `MPI_ANY_SOURCE`, or the probe called with it.
    pub const WILDCARD: Flags = Flags(4);
    /// A collective one-sided or MPI-IO call.
    pub const COLLECTIVE: Flags = Flags(8);
    /// The call returned an error.
    pub const ERROR: Flags = Flags(16);
    /// The request was cancelled; nothing was received.
    pub const CANCELLED: Flags = Flags(32);
    /// A receive was posted by this call.
    pub const RECV_POST: Flags = Flags(64);
    /// No call of its own: further parts of the call before it.
    pub const CONTINUED: Flags = Flags(128);
    /// In a chunk only: the call's times are followed by counts of the computation before it.
    pub const COUNTED: Flags = Flags(256);
    /// The probe found a message, whose sender, tag and bytes are the call's.
    pub const FOUND: Flags = Flags(512);
    /// It has matched that message, so that no other call finds it.
    pub const MATCHED: Flags = Flags(1024);
    /// It had asked for any tag.
    pub const ANY_TAG: Flags = Flags(2048);
    /// The call starts a send in partitions.
    pub const PARTITIONED: Flags = Flags(4096);

    /// Whether all bits of `other` are set.
    #[inline]
    pub fn has(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }

    /// Both sets of bits.
    #[must_use]
    pub fn with(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }

    /// Without the bits of `other`.
    #[must_use]
    pub fn without(self, other: Flags) -> Flags {
        Flags(self.0 & !other.0)
    }
}

/// One call of an MPI procedure by one rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Call {
    /// The procedure called.
    pub proc: ProcId,
    /// What it is to the analysis.
    pub class: Class,
    /// Its properties.
    pub flags: Flags,
    /// The thread that called, from 0 in the order of their first calls.
    pub thread: u16,
    /// Destination, root, requested source or the sender of what a probe found as a world rank, or one of the `PEER_`
    /// constants.
    pub peer: i32,
    /// The tag, or one of the `TAG_` constants.
    pub tag: i32,
    /// Bytes that this rank contributes, or receives where it contributes none; of what a probe found.
    pub bytes: u64,
    /// The communicator.
    pub comm: CommId,
    /// The address that the call returns to, or 0.
    pub site: u64,
    /// When it was entered.
    pub enter: Nanos,
    /// When it returned.
    pub exit: Nanos,
}

impl Call {
    /// A call of which nothing is known yet.
    pub const BLANK: Call = Call {
        proc: ProcId(0),
        class: Class::Other,
        flags: Flags(0),
        thread: 0,
        peer: 0,
        tag: 0,
        bytes: 0,
        comm: CommId(0),
        site: 0,
        enter: Nanos(0),
        exit: Nanos(0),
    };
}

impl Call {
    /// What event it is itself, beside those of its parts.
    #[inline]
    pub fn event(&self) -> Option<EventKind> {
        match self.class {
            _ if self.flags.has(Flags::CONTINUED) => None,
            Class::Send if self.peer >= 0 => Some(EventKind::Send),
            Class::Collective | Class::Comm => Some(EventKind::Collective),
            Class::Rma | Class::Io if self.flags.has(Flags::COLLECTIVE) => Some(EventKind::Collective),
            _ => None,
        }
    }
}

/// A message or request that a call completed or started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Part {
    /// What happened.
    pub kind: PartKind,
    /// Its properties ([`Flags::WILDCARD`], [`Flags::PERSISTENT`], [`Flags::CANCELLED`]).
    pub flags: Flags,
    /// The matched source, or the destination, as a world rank.
    pub peer: i32,
    /// The matched tag.
    pub tag: i32,
    /// Bytes received or sent.
    pub bytes: u64,
    /// The communicator of the request.
    pub comm: CommId,
}

impl Part {
    /// What event it is.
    #[inline]
    pub fn event(&self) -> Option<EventKind> {
        match self.kind {
            PartKind::Send if self.peer >= 0 => Some(EventKind::Send),
            PartKind::Recv if self.peer >= 0 && !self.flags.has(Flags::CANCELLED) => Some(EventKind::Recv),
            PartKind::Collective => Some(EventKind::Collective),
            _ => None,
        }
    }
}

/// A call with its parts.
#[derive(Clone, Copy, Debug)]
pub struct CallRef<'a> {
    /// The call.
    pub call: &'a Call,
    /// What it completed or started.
    pub parts: &'a [Part],
    /// What was counted of the computation before it, if that was counted.
    pub counts: Option<Counts>,
}

/// The three kinds of communication event (a send, a completed receive, a rank's part in a collective).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[repr(u8)]
#[serde(rename_all = "lowercase")]
pub enum EventKind {
    /// A message was sent.
    Send = 0,
    /// A receive is complete.
    Recv = 1,
    /// This rank's part in a collective.
    Collective = 2,
}

/// One element of the stream of completed communications of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Event {
    /// Its kind.
    pub kind: EventKind,
    /// Destination, source or root as a world rank; [`PEER_NONE`] for a collective with no root.
    pub peer: i32,
    /// The tag of a message; [`TAG_NONE`] for a collective.
    pub tag: i32,
    /// Bytes sent, received or contributed.
    pub bytes: u64,
    /// The communicator.
    pub comm: CommId,
    /// The procedure in whose call the event lies (not part of the event's identity: Testall here is Waitall there).
    pub proc: ProcId,
    /// Whether the receive was posted with `MPI_ANY_SOURCE`.
    pub wildcard: bool,
    /// The thread.
    pub thread: u16,
    /// The call's return address, or 0.
    pub site: u64,
    /// When the call that holds the event was entered.
    pub enter: Nanos,
    /// When it returned.
    pub exit: Nanos,
}

impl<'a> CallRef<'a> {
    /// The events of this call in their order: its own, then its parts'.
    #[inline]
    pub fn events(self) -> impl Iterator<Item = Event> + 'a {
        let call = self.call;
        let event = move |kind, peer, tag, bytes, comm, flags: Flags| Event {
            kind,
            peer,
            tag,
            bytes,
            comm,
            proc: call.proc,
            wildcard: flags.has(Flags::WILDCARD),
            thread: call.thread,
            site: call.site,
            enter: call.enter,
            exit: call.exit,
        };
        let own = call.event().map(|kind| event(kind, call.peer, call.tag, call.bytes, call.comm, call.flags));
        own.into_iter().chain(
            self.parts.iter().filter_map(move |part| {
                Some(event(part.event()?, part.peer, part.tag, part.bytes, part.comm, part.flags))
            }),
        )
    }
}

/// What a message is matched by besides its order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Channel {
    /// The sender.
    pub source: Rank,
    /// The receiver.
    pub destination: Rank,
    /// The communicator.
    pub comm: CommId,
    /// The tag.
    pub tag: i32,
}

impl Event {
    /// The channel of a message that `rank` sends or has received; none for a collective.
    pub fn channel(&self, rank: Rank) -> Option<Channel> {
        let peer = Rank(u32::try_from(self.peer).ok()?);
        let (source, destination) = match self.kind {
            EventKind::Send => (rank, peer),
            EventKind::Recv => (peer, rank),
            EventKind::Collective => return None,
        };
        Some(Channel { source, destination, comm: self.comm, tag: self.tag })
    }

    /// The volume as a newtype.
    pub fn volume(&self) -> Bytes {
        Bytes(self.bytes)
    }
}
