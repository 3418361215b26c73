//! The second pass over a rank's file: each line as a call of the trace.
use super::comms::Known;
use super::line::Line;
use super::requests::{Effect, Requests, effect};
use super::scan::{Scan, failure, lines};
use crate::error::TraceError;
use crate::import::classify::classify;
use crate::model::{
    Call, Class, CommDef, Ending, Flags, PEER_ANY, PEER_NONE, PEER_PROC_NULL, Part, PartKind, TAG_ANY, TAG_NONE,
    Trailer,
};
use crate::units::{CommId, Nanos, ProcId, Rank};
use crate::writer::{TraceWriter, made_header};
use phasecast_abi::{Callers, Class as AbiClass, Kind, Pattern, Procedure, Side};
use std::collections::HashMap;

/// What the text did not tell, over all ranks.
#[derive(Debug, Default)]
pub(super) struct Missing {
    sources: u64,
    tags: u64,
    comms: u64,
    shared: u64,
    guessed: u64,
    bytes: u64,
    cut: u64,
}

impl Missing {
    /// As sentences.
    pub(super) fn notes(&self) -> Vec<String> {
        let lines = [
            (self.sources, "receives are from MPI_ANY_SOURCE: their source is not in this format, they are no events"),
            (self.tags, "receives are of MPI_ANY_TAG: their tag is not in this format, they have no partner"),
            (self.comms, "calls are on communicators whose members the files do not tell: only their time is kept"),
            (self.shared, "collectives are on files: their communicators are not in this format, they are no events"),
            (self.guessed, "requests are completed by the last Test*, Waitany or Waitsome that named them"),
            (self.bytes, "collectives have counts per rank that the files do not hold: their bytes are 0"),
            (self.cut, "files end without MPI_Finalize"),
        ];
        lines.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect()
    }
}

/// What a request stands for.
#[derive(Clone, Copy, Debug)]
enum Operation {
    Send(Part),
    Recv(Part),
    Collective(Part),
    Other,
}

/// The conversion of one rank's file.
pub(super) struct Conversion<'a> {
    scan: &'a Scan,
    known: &'a Known,
    rank: u32,
    size: u32,
    origin: i128,
    procs: HashMap<&'a str, ProcId>,
    requests: Requests<Operation>,
    missing: &'a mut Missing,
}

impl<'a> Conversion<'a> {
    pub(super) fn new(
        scan: &'a Scan,
        known: &'a Known,
        rank: u32,
        size: u32,
        origin: i128,
        missing: &'a mut Missing,
    ) -> Conversion<'a> {
        let procs = (0..).zip(&scan.names).map(|(id, name)| (name.as_str(), ProcId(id))).collect();
        let mut requests = Requests::default();
        requests.narrow = scan.mpich;
        Conversion { scan, known, rank, size, origin, procs, requests, missing }
    }

    /// Writes the rank and returns how many calls it has.
    pub(super) fn run(mut self, writer: &TraceWriter) -> Result<u64, TraceError> {
        let names: Vec<&str> = self.scan.names.iter().map(String::as_str).collect();
        let start = self.time(self.scan.first.unwrap_or_default());
        let mut header = made_header(Rank(self.rank), self.size, "", &names);
        header.host.clone_from(&self.scan.host);
        header.mpi = "not told (liballprof)".into();
        (header.clock.units, header.clock.monotonic_ns) = (start, start);
        header.clock.later = (start + (1 << 30), start + (1 << 30));
        let mut out = writer.rank(&header)?;
        let defs: Vec<CommDef> = (0..)
            .zip(&self.known.members)
            .map(|(local, members)| CommDef { local, members: members.clone(), remote: Vec::new() })
            .collect();
        out.comms(&defs)?;
        let (mut calls, mut parts) = (0, Vec::new());
        let path = &self.scan.path;
        lines(
            path,
            |_| {},
            |number, text| {
                let line = Line::parse(text).map_err(|what| failure(path, number, &what))?;
                parts.clear();
                let call = self.call(number, &line, &mut parts);
                calls += 1;
                out.push(&call, &parts)
            },
        )?;
        let ending = if self.scan.finalized {
            Ending::Finalized
        } else {
            self.missing.cut += 1;
            let how = if self.scan.cut { "within a line" } else { "without MPI_Finalize" };
            Ending::Stopped(format!("the imported file ends {how}"))
        };
        let end_units = self.time(self.scan.last).max(out.last().0);
        out.finish(Trailer { ending, calls: 0, end_units, own_ns: 0, modules: Vec::new() })?;
        Ok(calls)
    }

    /// A time in ns from the origin of the trace.
    fn time(&self, time: u64) -> u64 {
        u64::try_from(self.scan.aligned(time) - self.origin).unwrap_or(0)
    }

    fn call(&mut self, number: u64, line: &Line<'_>, parts: &mut Vec<Part>) -> Call {
        let enter = line.enter.or(line.exit).unwrap_or_default();
        let exit = line.exit.unwrap_or(enter).max(enter);
        let (class, flags) = classify(line.procedure);
        let mut call = Call {
            proc: self.procs.get(line.name).copied().unwrap_or_default(),
            class,
            flags,
            thread: 0,
            peer: PEER_NONE,
            tag: TAG_NONE,
            bytes: 0,
            comm: CommId(0),
            site: 0,
            enter: Nanos(self.time(enter)),
            exit: Nanos(self.time(exit)),
        };
        let Some(procedure) = line.procedure else { return call };
        let operation = self.communication(line, procedure, &mut call, parts);
        match effect(line) {
            Effect::None => {}
            Effect::Make { address, persistent } => self.requests.make(address, persistent, operation),
            Effect::Free { address } => self.requests.free(address),
            Effect::Cancel { address } => {
                if let Some(slot) = self.requests.get(address) {
                    slot.cancelled = true;
                }
            }
            Effect::Start { base, count } => {
                for address in self.requests.covered(base, count) {
                    self.requests.start(address);
                    let operation = self.requests.get(address).map(|slot| slot.what);
                    parts.extend(match operation {
                        Some(Operation::Send(part) | Operation::Collective(part)) => Some(part),
                        Some(Operation::Recv(part)) => Some(Part { kind: PartKind::Post, ..part }),
                        _ => None,
                    });
                }
            }
            Effect::Complete { base, count, certain } => {
                let addresses = if certain {
                    self.requests.covered(base, count)
                } else {
                    let late = self.scan.late.get(&number).cloned().unwrap_or_default();
                    self.missing.guessed += late.len() as u64;
                    late
                };
                addresses.into_iter().for_each(|address| self.complete(address, parts));
            }
        }
        call
    }

    fn complete(&mut self, address: u64, parts: &mut Vec<Part>) {
        if let Some(slot) = self.requests.get(address).filter(|slot| slot.active)
            && let Operation::Recv(mut part) = slot.what
        {
            if slot.cancelled {
                part.flags = part.flags.with(Flags::CANCELLED);
            }
            self.missing.sources += u64::from(part.peer == PEER_ANY);
            self.missing.tags += u64::from(part.tag == TAG_ANY && part.peer >= 0);
            parts.push(part);
        }
        self.requests.complete(address);
    }

    /// Fills in what a call communicates, and returns what its request stands for.
    fn communication(
        &mut self,
        line: &Line<'_>,
        procedure: &Procedure,
        call: &mut Call,
        parts: &mut Vec<Part>,
    ) -> Operation {
        let has_comm = procedure.param_index(Kind::Communicator).is_some();
        let local = line.comm().and_then(|key| self.known.locals.get(&key).copied());
        let Some(comm) = local.or((!has_comm).then_some(0)) else {
            self.missing.comms += 1;
            (call.class, call.flags) = (Class::Other, Flags(0));
            return Operation::Other;
        };
        call.comm = CommId(comm);
        if !has_comm && call.flags.has(Flags::COLLECTIVE) {
            self.missing.shared += 1;
            call.flags = call.flags.without(Flags::COLLECTIVE);
        }
        if matches!(procedure.class, AbiClass::CommConstructor { parent: Some(_), callers: Callers::Members, .. }) {
            // Not all ranks of the parent call it.
            call.class = Class::Other;
        }
        let members = self.known.members.get(comm as usize).map_or(&[][..], Vec::as_slice);
        let null = if self.scan.mpich { -1 } else { -2 };
        let world = |rank: Option<i64>| match rank {
            Some(rank) if rank >= 0 => members.get(rank as usize).map_or(PEER_PROC_NULL, |&rank| rank as i32),
            Some(rank) if rank == null => PEER_PROC_NULL,
            _ => PEER_ANY,
        };
        let tag = |index: Option<usize>| match index.and_then(|index| line.int(index)) {
            Some(tag) if tag >= 0 => i32::try_from(tag).unwrap_or(TAG_ANY),
            _ => TAG_ANY,
        };
        let bytes = |side: Option<&Side>| side.and_then(|side| line.side_bytes(side)).unwrap_or(0);
        let message = |kind, peer, tag, bytes| {
            let flags = if peer == PEER_ANY { Flags::WILDCARD } else { Flags(0) };
            Part { kind, flags, peer, tag, bytes, comm: CommId(comm) }
        };
        let sent = procedure.param_index(Kind::Dest).map(|dest| {
            let peer = Some(world(line.int(dest))).filter(|&peer| peer != PEER_ANY).unwrap_or(PEER_PROC_NULL);
            message(PartKind::Send, peer, tag(procedure.send_tag()), bytes(procedure.send_sides().next()))
        });
        let matched = matches!(procedure.class, AbiClass::MatchedRecv { .. });
        let received = procedure.param_index(Kind::Source).filter(|_| call.class != Class::Probe).map(|source| {
            let side = procedure.recv_sides().last();
            message(PartKind::Recv, world(line.int(source)), tag(procedure.recv_tag()), bytes(side))
        });
        let received = received.or_else(|| {
            matched.then(|| message(PartKind::Recv, PEER_ANY, TAG_ANY, bytes(procedure.recv_sides().next())))
        });
        if let Some(part) = sent.or(received) {
            (call.peer, call.tag) = (part.peer, part.tag);
            call.bytes = if sent.is_some() { part.bytes } else { 0 };
        }
        let waits = !call.flags.has(Flags::NONBLOCKING) && !call.flags.has(Flags::PERSISTENT);
        match (sent, received) {
            (_, Some(part)) if waits => {
                self.missing.sources += u64::from(part.peer == PEER_ANY);
                self.missing.tags += u64::from(part.tag == TAG_ANY && part.peer >= 0);
                parts.push(part);
                Operation::Other
            }
            (_, Some(part)) => Operation::Recv(part),
            (Some(part), None) => Operation::Send(part),
            (None, None) => self.collective(line, procedure, call),
        }
    }

    fn collective(&mut self, line: &Line<'_>, procedure: &Procedure, call: &mut Call) -> Operation {
        let AbiClass::Collective { pattern, root, neighbourhood, .. } = procedure.class else {
            return Operation::Other;
        };
        let members = self.known.members.get(call.comm.index()).map_or(&[][..], Vec::as_slice);
        let root = root.and_then(|index| line.int(usize::from(index))).and_then(|n| usize::try_from(n).ok());
        let root = root.and_then(|n| members.get(n).copied());
        call.peer = root.map_or(PEER_NONE, |root| root as i32);
        let here = root.is_none() || root == Some(self.rank);
        let counts = |side: &&&'static Side| {
            let param = side.count.and_then(|count| procedure.params.get(usize::from(count)));
            here || !param.is_some_and(|param| param.root_only)
        };
        let sides: Vec<&Side> = procedure.send_sides().chain(procedure.recv_sides()).collect();
        let side = sides.iter().find(counts);
        let share = side.and_then(|side| line.side_bytes(side));
        self.missing.bytes += u64::from(side.is_some_and(|side| line.lacks_counts(side)));
        let per_rank = side.and_then(|s| s.count).is_some_and(|count| procedure.params[usize::from(count)].is_array());
        let to_all = match pattern {
            Pattern::Alltoall | Pattern::ReduceScatterBlock => !neighbourhood && !per_rank,
            Pattern::Scatter => root == Some(self.rank) && !per_rank,
            _ => false,
        };
        let each = if to_all { members.len() as u64 } else { 1 };
        call.bytes = share.unwrap_or(0).saturating_mul(each);
        let part = Part {
            kind: PartKind::Collective,
            flags: Flags(0),
            peer: call.peer,
            tag: TAG_NONE,
            bytes: call.bytes,
            comm: call.comm,
        };
        if call.class == Class::Post { Operation::Collective(part) } else { Operation::Other }
    }
}
