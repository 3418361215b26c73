//! The events of one location of an OTF2 archive as calls: a region of MPI is a call, and the MPI records within it say
//! what it communicated. A record outside of any region is a call of its own.
use super::definitions::World;
use super::library::{CONTINUE, INTERRUPT, Library, Object, Verdict};
use crate::error::TraceError;
use crate::import::classify::classify;
use crate::model::{Call, Class, Flags, PEER_NONE, PEER_PROC_NULL, Part, PartKind, TAG_ANY, TAG_NONE};
use crate::units::{CommId, Nanos, ProcId};
use crate::writer::RankWriter;
use phasecast_abi as abi;
use std::collections::{HashMap, HashSet};
use std::ffi::c_void;

const BARE_SEND: u16 = 17;
const BARE_ISEND: u16 = 18;
const BARE_RECV: u16 = 19;
const BARE_WAIT: u16 = 20;

/// What the archive did not tell, or told wrongly.
#[derive(Debug, Default)]
pub(super) struct Missing {
    /// Messages on communicators, or to ranks, that are not defined.
    pub(super) undefined: u64,
    /// Collective calls without a record of their communicator.
    pub(super) collectives: u64,
}

impl Missing {
    pub(super) fn notes(&self) -> Vec<String> {
        let lines = [
            (self.undefined, "messages are on communicators whose members the archive does not define: left out"),
            (self.collectives, "collective calls have no record of their communicator: only their time is kept"),
        ];
        lines.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect()
    }
}

/// A region of MPI that has been entered.
struct Open {
    call: Call,
    /// Regions entered within it.
    depth: u32,
    /// Whether a record said what it communicates.
    told: bool,
}

/// The conversion of one location.
pub(super) struct Lane<'a> {
    world: &'a World,
    rank: u32,
    locals: &'a HashMap<u32, u32>,
    out: &'a mut RankWriter,
    missing: &'a mut Missing,
    open: Option<Open>,
    parts: Vec<Part>,
    /// Receives posted and not complete.
    posted: HashSet<u64>,
    pub(super) calls: u64,
    pub(super) error: Option<TraceError>,
}

impl<'a> Lane<'a> {
    pub(super) fn new(
        world: &'a World,
        rank: u32,
        locals: &'a HashMap<u32, u32>,
        out: &'a mut RankWriter,
        missing: &'a mut Missing,
    ) -> Lane<'a> {
        let (parts, posted) = (Vec::new(), HashSet::new());
        Lane { world, rank, locals, out, missing, open: None, parts, posted, calls: 0, error: None }
    }

    /// Registers the callbacks.
    pub(super) fn register(library: &Library, callbacks: Object) {
        // SAFETY: `callbacks` is an object of the library's own making, the functions have the signatures it wants.
        unsafe {
            (library.on_enter)(callbacks, enter);
            (library.on_leave)(callbacks, leave);
            (library.on_send)(callbacks, send);
            (library.on_isend)(callbacks, isend);
            (library.on_irecv_request)(callbacks, irecv_request);
            (library.on_recv)(callbacks, recv);
            (library.on_irecv)(callbacks, irecv);
            (library.on_cancelled)(callbacks, cancelled);
            (library.on_collective_end)(callbacks, collective_end);
        }
    }

    fn begin(&mut self, proc: ProcId, time: u64) -> Open {
        let name = self.world.names.get(proc.index()).map_or("", String::as_str);
        let (class, flags) = classify(abi::by_name(name).and_then(abi::ProcId::get));
        let now = Nanos(self.world.nanos(time));
        let call = Call {
            proc,
            class,
            // A record says whether a receive is posted: one from MPI_PROC_NULL is not.
            flags: Flags(flags.0 & !Flags::RECV_POST.0),
            thread: 0,
            peer: PEER_NONE,
            tag: TAG_NONE,
            bytes: 0,
            comm: CommId(0),
            site: 0,
            enter: now,
            exit: now,
        };
        Open { call, depth: 0, told: false }
    }

    fn end(&mut self, mut open: Open, time: u64) -> Verdict {
        open.call.exit = Nanos(self.world.nanos(time));
        if !open.told {
            match open.call.class {
                Class::Send => open.call.peer = PEER_PROC_NULL,
                Class::Collective | Class::Comm => {
                    self.missing.collectives += 1;
                    open.call.class = Class::Other;
                }
                _ => open.call.flags.0 &= !Flags::COLLECTIVE.0,
            }
        }
        self.calls += 1;
        let result = self.out.push(&open.call, &self.parts);
        self.parts.clear();
        match result {
            Ok(()) => CONTINUE,
            Err(error) => {
                self.error = Some(error);
                INTERRUPT
            }
        }
    }

    /// Runs `change` on the open call, or on one of `bare` that lasts no time.
    fn record(&mut self, time: u64, bare: u16, change: impl FnOnce(&mut Self, &mut Open)) -> Verdict {
        match self.open.take() {
            Some(mut open) => {
                change(self, &mut open);
                self.open = Some(open);
                CONTINUE
            }
            None => {
                let mut open = self.begin(ProcId(bare), time);
                change(self, &mut open);
                self.end(open, time)
            }
        }
    }

    fn message(&mut self, kind: PartKind, rank: u32, comm: u32, tag: u32, bytes: u64) -> Option<Part> {
        let peer = self.world.peer(self.rank, comm, rank).filter(|&peer| peer >= 0);
        let (Some(peer), Some(&local)) = (peer, self.locals.get(&comm)) else {
            self.missing.undefined += 1;
            return None;
        };
        let tag = i32::try_from(tag).unwrap_or(TAG_ANY);
        Some(Part { kind, flags: Flags(0), peer, tag, bytes, comm: CommId(local) })
    }

    fn sent(&mut self, time: u64, bare: u16, (rank, comm, tag, bytes): (u32, u32, u32, u64)) -> Verdict {
        let Some(part) = self.message(PartKind::Send, rank, comm, tag, bytes) else { return CONTINUE };
        self.record(time, bare, |lane, open| {
            if open.call.class == Class::Send && !open.told {
                let call = &mut open.call;
                (call.peer, call.tag, call.bytes, call.comm) = (part.peer, part.tag, part.bytes, part.comm);
                open.told = true;
            } else {
                lane.parts.push(part);
            }
        })
    }

    fn received(&mut self, time: u64, bare: u16, (rank, comm, tag, bytes): (u32, u32, u32, u64)) -> Verdict {
        let Some(part) = self.message(PartKind::Recv, rank, comm, tag, bytes) else { return CONTINUE };
        self.record(time, bare, |lane, open| {
            if open.call.class == Class::Recv {
                (open.call.peer, open.call.tag, open.call.comm) = (part.peer, part.tag, part.comm);
            }
            lane.parts.push(part);
        })
    }

    fn enter(&mut self, time: u64, region: u32) -> Verdict {
        match &mut self.open {
            Some(open) => open.depth = open.depth.saturating_add(1),
            None => self.open = self.world.regions.get(&region).copied().map(|proc| self.begin(proc, time)),
        }
        CONTINUE
    }

    fn leave(&mut self, time: u64) -> Verdict {
        match self.open.take() {
            Some(open) if open.depth == 0 => self.end(open, time),
            Some(open) => {
                self.open = Some(Open { depth: open.depth - 1, ..open });
                CONTINUE
            }
            None => CONTINUE,
        }
    }

    fn posted(&mut self, request: u64) -> Verdict {
        self.posted.insert(request);
        if let Some(open) = &mut self.open {
            if open.call.class == Class::Start {
                self.parts.push(unknown(PartKind::Post, Flags::PERSISTENT));
            } else {
                open.call.flags = open.call.flags.with(Flags::RECV_POST);
            }
        }
        CONTINUE
    }

    fn completed(&mut self, time: u64, request: u64, message: (u32, u32, u32, u64)) -> Verdict {
        self.posted.remove(&request);
        self.received(time, BARE_WAIT, message)
    }

    fn cancelled(&mut self, time: u64, request: u64) -> Verdict {
        if !self.posted.remove(&request) {
            return CONTINUE;
        }
        self.record(time, BARE_WAIT, |lane, _| lane.parts.push(unknown(PartKind::Recv, Flags::CANCELLED)))
    }

    fn collective(&mut self, time: u64, op: u8, (comm, root): (u32, u32), data: (u64, u64)) -> Verdict {
        let bytes = contributed(op, self.world.members(comm) as u64, data);
        let bare = u16::from(op);
        if self.open.is_none() && bare >= BARE_SEND {
            return CONTINUE;
        }
        let peer = self.world.peer(self.rank, comm, root);
        let local = self.locals.get(&comm).copied();
        self.record(time, bare, |_, open| {
            let event = matches!(open.call.class, Class::Collective | Class::Comm | Class::Rma | Class::Io);
            if let (true, false, Some(local)) = (event, open.told, local) {
                open.call.comm = CommId(local);
                open.call.peer = peer.unwrap_or(PEER_NONE);
                open.call.bytes = bytes;
                open.told = true;
            }
        })
    }
}

/// What a rank contributes to a collective of so many, by what Score-P says was sent and received: the messages of a
/// program that does it by messages, to oneself too if it is not done in place.
fn contributed(op: u8, members: u64, (sent, received): (u64, u64)) -> u64 {
    const BCAST: u8 = 1;
    const GATHER: u8 = 2;
    const GATHERV: u8 = 3;
    const ALLGATHER: u8 = 6;
    const ALLGATHERV: u8 = 7;
    const ALLREDUCE: u8 = 11;
    const REDUCE: u8 = 12;
    const SCAN: u8 = 14;
    const EXSCAN: u8 = 15;
    let others = members.saturating_sub(1);
    match op {
        BCAST if received > 0 => received,
        // In place at the root.
        GATHER | GATHERV | REDUCE if sent == 0 => part_of(received, others, others),
        ALLGATHER | ALLGATHERV | ALLREDUCE => part_of(sent, members, others),
        SCAN => part_of(sent.saturating_add(received), members + 1, others),
        EXSCAN => part_of(sent.saturating_add(received), others, others),
        _ if sent > 0 => sent,
        _ => received,
    }
}

/// One of so many equal parts, or of so many if it was done in place, which nothing says: where both would be whole, whole
/// numbers of four bytes. What cannot be either is kept.
fn part_of(bytes: u64, parts: u64, in_place: u64) -> u64 {
    let part = |parts: u64| (parts > 0 && bytes.is_multiple_of(parts)).then(|| bytes / parts);
    match (part(parts), part(in_place)) {
        (Some(a), Some(b)) if !a.is_multiple_of(4) && b.is_multiple_of(4) => b,
        (Some(one), _) | (None, Some(one)) => one,
        (None, None) => bytes,
    }
}

/// A part of which only the kind is known.
fn unknown(kind: PartKind, flags: Flags) -> Part {
    Part { kind, flags, peer: PEER_NONE, tag: TAG_NONE, bytes: 0, comm: CommId(0) }
}

/// OTF2's callbacks of events: location, time, position, user data and attributes come first in each.
macro_rules! callbacks {
    ($($name:ident($($arg:ident: $type:ty),*) = |$lane:ident, $time:ident| $body:expr;)*) => { $(
        #[allow(clippy::too_many_arguments, reason = "OTF2's own")]
        pub(super) unsafe extern "C" fn $name(
            _: u64, $time: u64, _: u64, user: *mut c_void, _: Object, $($arg: $type),*
        ) -> Verdict {
            // SAFETY: OTF2 hands on the pointer that was registered with it: a `Lane` that nobody else uses while its
            // events are read.
            let $lane = unsafe { &mut *user.cast::<Lane<'_>>() };
            $body
        }
    )* };
}

callbacks! {
    enter(region: u32) = |lane, time| lane.enter(time, region);
    leave(_region: u32) = |lane, time| lane.leave(time);
    send(to: u32, comm: u32, tag: u32, bytes: u64) = |lane, time| lane.sent(time, BARE_SEND, (to, comm, tag, bytes));
    isend(to: u32, comm: u32, tag: u32, bytes: u64, _request: u64) =
        |lane, time| lane.sent(time, BARE_ISEND, (to, comm, tag, bytes));
    irecv_request(request: u64) = |lane, _time| lane.posted(request);
    recv(from: u32, comm: u32, tag: u32, bytes: u64) =
        |lane, time| lane.received(time, BARE_RECV, (from, comm, tag, bytes));
    irecv(from: u32, comm: u32, tag: u32, bytes: u64, request: u64) =
        |lane, time| lane.completed(time, request, (from, comm, tag, bytes));
    cancelled(request: u64) = |lane, time| lane.cancelled(time, request);
    collective_end(op: u8, comm: u32, root: u32, sent: u64, received: u64) =
        |lane, time| lane.collective(time, op, (comm, root), (sent, received));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sent and received are what Score-P's wrappers tell of 24 bytes of each of four ranks.
    #[test]
    fn a_rank_contributes_its_part() {
        for (op, at, sent, received) in [
            ("MPI_Bcast", "the root", 96, 24),
            ("MPI_Bcast", "another", 0, 24),
            ("MPI_Gather", "the root", 24, 96),
            ("MPI_Gather", "the root, in place", 0, 72),
            ("MPI_Reduce", "another", 24, 0),
            ("MPI_Reduce", "the root, in place", 0, 72),
            ("MPI_Scatter", "another", 0, 24),
            ("MPI_Allgather", "each", 96, 96),
            ("MPI_Allreduce", "each", 96, 96),
            ("MPI_Scan", "the second", 72, 48),
            ("MPI_Exscan", "the second", 48, 24),
            ("MPI_Exscan", "the last", 0, 72),
        ] {
            let number = super::super::definitions::BARE.iter().position(|name| *name == op).expect(op) as u8;
            assert_eq!(contributed(number, 4, (sent, received)), 24, "{op} of {at}");
        }
        // In place, where it can be told; and what no part of it can be.
        assert_eq!(contributed(11, 4, (3 * 8, 3 * 8)), 8);
        assert_eq!(contributed(11, 4, (3 * 25, 3 * 25)), 25);
        assert_eq!(contributed(11, 4, (35, 35)), 35);
        // All of it, as native traces have it.
        assert_eq!([8, 13, 4].map(|op| contributed(op, 4, (96, 24))), [96; 3]);
        assert_eq!(contributed(11, 1, (8, 8)), 8);
    }
}
