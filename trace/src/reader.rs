//! Opens a trace, whole or cut off, and streams the calls and events of each rank.
use crate::clock::Clock;
use crate::codec;
use crate::decode::{Decoder, RawCall};
use crate::encode::{PART, Shape};
use crate::error::TraceError;
use crate::frame::{Frame, HEAD, Kind};
use crate::model::PEER_ANY;
use crate::model::{Call, CallRef, Class, CommDef, Cut, Ending, Event, Flags, Part, PartKind, RankHeader, Trailer};
use crate::tail::{self, Snapshot};
use crate::units::{CommId, Nanos, ProcId, Rank};
use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// The name of a rank's file.
pub fn file_name(rank: u32) -> String {
    format!("rank-{rank:05}.pct")
}

/// A communicator of the run, the same for all ranks.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Comm {
    /// World ranks of its group, by rank in it; of an intercommunicator, the group whose list is the lesser.
    pub members: Vec<u32>,
    /// World ranks of the other group of an intercommunicator; else empty.
    pub remote: Vec<u32>,
    /// Counts the communicators with these members, from 0.
    pub ordinal: u32,
}

const NO_COMM: CommId = CommId(u32::MAX);
/// The most communicators that a rank may define: a bound on what hostile input can make a reader allocate.
const MAX_COMMS: u32 = 1 << 24;

/// Where a chunk of calls lies.
#[derive(Clone, Copy, Debug)]
struct Chunk {
    offset: u64,
    frame: Frame,
}

/// One rank's file, opened.
#[derive(Debug)]
pub(crate) struct RankFile {
    pub(crate) path: PathBuf,
    pub(crate) file: File,
    pub(crate) header: RankHeader,
    comms: Vec<CommDef>,
    chunks: Vec<Chunk>,
    tails: Vec<Snapshot>,
    trailer: Option<Trailer>,
    broken: Option<String>,
    bytes: u64,
    sync: Option<(u64, u64)>,
}

/// A trace: its header data in memory, its calls in files.
#[derive(Debug)]
pub struct Trace {
    path: PathBuf,
    ranks: Vec<Option<RankFile>>,
    clocks: Vec<Option<Clock>>,
    procedures: Vec<String>,
    proc_maps: Vec<Vec<ProcId>>,
    comms: Vec<Comm>,
    /// For each rank, its own numbers of communicators to those of the run; [`NO_COMM`] where there is none.
    comm_maps: Vec<Vec<CommId>>,
}

pub(crate) fn read_frame(path: &Path, file: &File, offset: u64, length: u64) -> Result<Option<Frame>, TraceError> {
    if length - offset < HEAD as u64 {
        return Ok(None);
    }
    let mut head = [0; HEAD];
    file.read_exact_at(&mut head, offset).map_err(TraceError::io(path, "read"))?;
    let frame = Frame::parse(&head).map_err(|what| TraceError::corrupt(path, offset, what))?;
    let whole = u64::from(frame.stored_len) <= length - offset - HEAD as u64;
    Ok(whole.then_some(frame))
}

pub(crate) fn read_payload(path: &Path, file: &File, offset: u64, frame: &Frame) -> Result<Vec<u8>, TraceError> {
    let mut stored = vec![0; frame.stored_len as usize];
    file.read_exact_at(&mut stored, offset + HEAD as u64).map_err(TraceError::io(path, "read"))?;
    frame.open(stored).map_err(|what| TraceError::corrupt(path, offset, what))
}

impl RankFile {
    fn open(path: PathBuf) -> Result<RankFile, TraceError> {
        let file = File::open(&path).map_err(TraceError::io(&path, "open"))?;
        let length = file.metadata().map_err(TraceError::io(&path, "examine"))?.len();
        let mut at = 0;
        let mut header = None;
        let (mut comms, mut chunks, mut trailer, mut broken, mut sync) = (Vec::new(), Vec::new(), None, None, None);
        while at < length {
            let Some(frame) = read_frame(&path, &file, at, length)? else {
                broken = Some("its file ends within a chunk".to_string());
                break;
            };
            let record = |what: String| TraceError::corrupt(&path, at, what);
            if (header.is_none()) != (frame.kind == Kind::Header as u8) {
                return Err(record("the header is not where it belongs".into()));
            }
            match frame.kind {
                k if k == Kind::Header as u8 => {
                    frame.check_version(&path)?;
                    let payload = read_payload(&path, &file, at, &frame)?;
                    header = Some(codec::from_bytes::<RankHeader>(&payload).map_err(record)?);
                }
                k if k == Kind::Comms as u8 => {
                    let payload = read_payload(&path, &file, at, &frame)?;
                    let defs: Vec<CommDef> = codec::from_bytes(&payload).map_err(record)?;
                    if let Some(def) = defs.iter().find(|d| d.local >= MAX_COMMS) {
                        return Err(record(format!("communicator number {} is out of range", def.local)));
                    }
                    comms.extend(defs);
                }
                k if k == Kind::Trailer as u8 => {
                    let payload = read_payload(&path, &file, at, &frame)?;
                    trailer = Some(codec::from_bytes::<Trailer>(&payload).map_err(record)?);
                }
                k if k == Kind::Calls as u8 => chunks.push(Chunk { offset: at, frame }),
                _ => {}
            }
            if frame.sync.0 != 0 {
                sync = Some(frame.sync);
            }
            at += HEAD as u64 + u64::from(frame.stored_len);
        }
        let Some(header) = header else {
            return Err(TraceError::Foreign {
                path,
                expected: "rank file",
                found: "it has no header (was the rank killed before MPI_Init returned?)".into(),
            });
        };
        if header.size == 0 || header.rank >= header.size || header.size > 1 << 24 {
            let what = format!("rank {} of {} ranks", header.rank, header.size);
            return Err(TraceError::corrupt(&path, 0, what));
        }
        if broken.is_none() && trailer.is_none() {
            broken = Some("its file has no end record: the process was killed or crashed".into());
        }
        let bytes = at.min(length);
        chunks.sort_by_key(|c| (c.frame.thread, c.frame.sequence));
        Ok(RankFile { path, file, header, comms, chunks, tails: Vec::new(), trailer, broken, bytes, sync })
    }

    /// Takes in the tails beside the file, where the chunk that they hold is not in the file.
    fn read_tails(&mut self, folder: &Path) {
        let mut thread = 0;
        while let Ok(bytes) = fs::read(folder.join(tail::file_name(self.header.rank, thread))) {
            if let Some(tail) = tail::parse(&bytes).filter(|t| t.thread == thread && !t.payload.is_empty()) {
                let written = self.chunks.iter().any(|c| c.frame.thread == thread && c.frame.sequence >= tail.sequence);
                if !written {
                    self.tails.push(tail);
                }
            }
            thread += 1;
        }
    }

    fn threads(&self) -> Vec<u16> {
        let mut threads: Vec<u16> =
            self.chunks.iter().map(|c| c.frame.thread).chain(self.tails.iter().map(|t| t.thread)).collect();
        threads.sort_unstable();
        threads.dedup();
        threads
    }
}

impl Trace {
    /// Opens the trace in a folder. Ranks that were cut off open as far as they were recorded: see [`Trace::cuts`].
    ///
    /// # Errors
    /// If the folder is no trace, or one of its files is damaged (not merely cut off).
    pub fn open(path: &Path) -> Result<Trace, TraceError> {
        let foreign =
            |found: &str| TraceError::Foreign { path: path.to_owned(), expected: "trace", found: found.into() };
        if !path.is_dir() {
            let missing = !path.exists();
            return Err(foreign(if missing { "there is nothing of that name" } else { "a trace is a folder" }));
        }
        let mut files = Vec::new();
        for entry in fs::read_dir(path).map_err(TraceError::io(path, "list"))? {
            let entry = entry.map_err(TraceError::io(path, "list"))?.path();
            let name = entry.file_name().and_then(|n| n.to_str()).unwrap_or("");
            if name.starts_with("rank-") && name.ends_with(".pct") {
                files.push(RankFile::open(entry)?);
            }
        }
        files.sort_by_key(|f| f.header.rank);
        let Some(size) = files.first().map(|f| f.header.size) else {
            return Err(foreign("it holds no file rank-*.pct"));
        };
        let mut ranks: Vec<Option<RankFile>> = (0..size).map(|_| None).collect();
        for mut file in files {
            if file.header.size != size || ranks[file.header.rank as usize].is_some() {
                let what = format!("it belongs to another run ({} ranks instead of {size})", file.header.size);
                return Err(TraceError::corrupt(&file.path, 0, what));
            }
            file.read_tails(path);
            let rank = file.header.rank as usize;
            ranks[rank] = Some(file);
        }
        let mut trace = Trace {
            path: path.to_owned(),
            clocks: clocks(&ranks),
            procedures: Vec::new(),
            proc_maps: Vec::new(),
            comms: Vec::new(),
            comm_maps: Vec::new(),
            ranks,
        };
        trace.name_procedures();
        trace.name_comms();
        Ok(trace)
    }

    fn name_procedures(&mut self) {
        let mut ids: HashMap<String, ProcId> = HashMap::new();
        for rank in &self.ranks {
            let names = rank.as_ref().map_or(&[][..], |r| &r.header.procedures);
            let map = names
                .iter()
                .map(|name| {
                    *ids.entry(name.clone()).or_insert_with(|| {
                        self.procedures.push(name.clone());
                        ProcId((self.procedures.len() - 1).min(u16::MAX as usize) as u16)
                    })
                })
                .collect();
            self.proc_maps.push(map);
        }
    }

    fn name_comms(&mut self) {
        let mut all: BTreeMap<Comm, Vec<(usize, u32)>> = BTreeMap::new();
        for (rank, file) in self.ranks.iter().enumerate() {
            let mut seen: HashMap<(Vec<u32>, Vec<u32>), u32> = HashMap::new();
            for def in file.iter().flat_map(|f| &f.comms) {
                let (mut members, mut remote) = (def.members.clone(), def.remote.clone());
                if !remote.is_empty() && remote < members {
                    std::mem::swap(&mut members, &mut remote);
                }
                let count = seen.entry((members.clone(), remote.clone())).or_default();
                let comm = Comm { members, remote, ordinal: *count };
                *count += 1;
                all.entry(comm).or_default().push((rank, def.local));
            }
        }
        let world: Vec<u32> = (0..self.ranks.len() as u32).collect();
        let mut comms: Vec<(Comm, Vec<(usize, u32)>)> = all.into_iter().collect();
        comms.sort_by_key(|(comm, _)| (comm.members != world || !comm.remote.is_empty(), comm.ordinal));
        self.comm_maps = vec![Vec::new(); self.ranks.len()];
        for (id, (comm, owners)) in comms.into_iter().enumerate() {
            self.comms.push(comm);
            for (rank, local) in owners {
                let map = &mut self.comm_maps[rank];
                if map.len() <= local as usize {
                    map.resize(local as usize + 1, NO_COMM);
                }
                map[local as usize] = CommId(id as u32);
            }
        }
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Size of `MPI_COMM_WORLD`.
    pub fn size(&self) -> u32 {
        self.ranks.len() as u32
    }

    /// All ranks, also those whose file is missing.
    pub fn ranks(&self) -> impl Iterator<Item = Rank> + use<> {
        (0..self.size()).map(Rank)
    }

    /// What a rank's file says of itself; none if the file is missing.
    pub fn header(&self, rank: Rank) -> Option<&RankHeader> {
        self.ranks.get(rank.index())?.as_ref().map(|r| &r.header)
    }

    /// How a rank's recording ended; none if it was cut off.
    pub fn trailer(&self, rank: Rank) -> Option<&Trailer> {
        self.ranks.get(rank.index())?.as_ref()?.trailer.as_ref()
    }

    /// The communicators of the run; [`CommId`] is an index into them, and 0 is `MPI_COMM_WORLD`.
    pub fn comms(&self) -> &[Comm] {
        &self.comms
    }

    /// The procedures that the headers name; [`ProcId`] is an index into them.
    pub fn procedures(&self) -> &[String] {
        &self.procedures
    }

    /// The name of a procedure.
    pub fn procedure(&self, id: ProcId) -> &str {
        self.procedures.get(id.index()).map_or("?", String::as_str)
    }

    /// A call site as `module+0xoffset`, where the trace says which modules were loaded; else the address.
    pub fn site(&self, rank: Rank, site: u64) -> String {
        let modules = self.trailer(rank).map_or(&[][..], |t| &t.modules);
        match modules.iter().find(|m| (m.0..m.1).contains(&site)) {
            Some((start, _, offset, path)) => {
                let name = Path::new(path).file_name().and_then(|n| n.to_str()).unwrap_or(path);
                format!("{name}+{:#x}", (site - start).saturating_add(*offset))
            }
            None => format!("{site:#x}"),
        }
    }

    /// Start and end of a rank's run: from the start of its process to its end (or last call) in ns from the origin.
    pub fn span(&self, rank: Rank) -> (Nanos, Nanos) {
        let (Some(Some(file)), Some(Some(clock))) = (self.ranks.get(rank.index()), self.clocks.get(rank.index()))
        else {
            return (Nanos(0), Nanos(0));
        };
        let start = Nanos(clock.nanos(file.header.clock.units));
        let end = match &file.trailer {
            Some(trailer) => Nanos(clock.nanos(trailer.end_units)),
            None => self.last_exit(rank).max(start),
        };
        (start, end.max(start))
    }

    /// The length of the run: of its longest rank.
    pub fn run_time(&self) -> Nanos {
        self.ranks().map(|r| self.span(r)).map(|(a, b)| b.since(a)).max().unwrap_or_default()
    }

    fn last_exit(&self, rank: Rank) -> Nanos {
        let mut last = Nanos(0);
        let mut calls = self.calls(rank);
        while let Ok(Some(call)) = calls.next_call() {
            last = last.max(call.call.exit);
        }
        last
    }

    /// Bytes of the rank's files, tails included as far as they are filled.
    pub fn bytes_on_disk(&self) -> u64 {
        let files = self.ranks.iter().flatten();
        files.map(|r| r.bytes + r.tails.iter().map(|t| t.payload.len() as u64).sum::<u64>()).sum()
    }

    /// Items (calls and parts) that the frames claim: a quick measure of the trace's length.
    pub fn items(&self) -> u64 {
        self.ranks.iter().flatten().flat_map(|r| &r.chunks).map(|c| u64::from(c.frame.items)).sum()
    }

    /// Bytes of the chunks before and after compression.
    pub fn chunk_bytes(&self) -> (u64, u64) {
        let chunks = || self.ranks.iter().flatten().flat_map(|r| &r.chunks);
        let tails: u64 = self.ranks.iter().flatten().flat_map(|r| &r.tails).map(|t| t.payload.len() as u64).sum();
        let raw: u64 = chunks().map(|c| u64::from(c.frame.raw_len)).sum();
        let stored: u64 = chunks().map(|c| u64::from(c.frame.stored_len)).sum();
        (raw + tails, stored + tails)
    }

    /// Why a rank's recording breaks off; none if it does not.
    pub fn cut_reason(&self, rank: Rank) -> Option<String> {
        let file = match self.ranks.get(rank.index())? {
            None => return Some("its file is missing: it was killed before MPI_Init returned, or not copied".into()),
            Some(file) => file,
        };
        match (&file.broken, file.trailer.as_ref().map(|trailer| &trailer.ending)) {
            (Some(reason), _) => Some(reason.clone()),
            (None, Some(Ending::Aborted(code))) => Some(format!("it called MPI_Abort({code})")),
            (None, Some(Ending::Exited)) => Some("it exited without MPI_Finalize".into()),
            (None, Some(Ending::Stopped(why))) => Some(format!("recording stopped: {why}")),
            (None, Some(Ending::Finalized) | None) => None,
        }
    }

    /// The ranks whose recording breaks off, with the last call before that. Reads such ranks whole.
    ///
    /// # Errors
    /// If their chunks are damaged.
    pub fn cuts(&self) -> Result<Vec<Cut>, TraceError> {
        let mut cuts = Vec::new();
        for rank in self.ranks() {
            let Some(reason) = self.cut_reason(rank) else { continue };
            let (mut calls, mut at) = (0, Nanos(0));
            let mut reader = self.calls(rank);
            while let Some(call) = reader.next_call()? {
                calls += u64::from(!call.call.flags.has(Flags::CONTINUED));
                at = call.call.exit;
            }
            cuts.push(Cut { rank, calls, at, reason });
        }
        Ok(cuts)
    }

    /// A stream of a rank's calls in the order of their exits.
    pub fn calls(&self, rank: Rank) -> RankReader<'_> {
        RankReader::new(self, rank)
    }

    /// Calls `each` with a rank's events in their order.
    ///
    /// # Errors
    /// If its chunks are damaged.
    pub fn for_each_event(&self, rank: Rank, mut each: impl FnMut(Event)) -> Result<(), TraceError> {
        let mut reader = self.calls(rank);
        while let Some(call) = reader.next_call()? {
            call.events().for_each(&mut each);
        }
        Ok(())
    }
}

/// Aligns the ranks' clocks: by CLOCK_MONOTONIC within a host, by CLOCK_REALTIME between hosts.
fn clocks(ranks: &[Option<RankFile>]) -> Vec<Option<Clock>> {
    let mut hosts: HashMap<&str, i128> = HashMap::new();
    let mut starts = Vec::new();
    for file in ranks.iter().flatten() {
        let clock = &file.header.clock;
        let shift = *hosts
            .entry(&file.header.boot_id)
            .or_insert(i128::from(clock.realtime_ns) - i128::from(clock.monotonic_ns));
        starts.push(i128::from(clock.monotonic_ns) + shift);
    }
    let origin = starts.iter().copied().min().unwrap_or(0);
    let mut starts = starts.into_iter();
    ranks
        .iter()
        .map(|file| {
            let file = file.as_ref()?;
            let offset = u64::try_from(starts.next()? - origin).unwrap_or(0);
            Some(Clock::new(&file.header.clock, file.sync, offset))
        })
        .collect()
}

/// One thread's calls, chunk after chunk.
struct Lane {
    thread: u16,
    /// Chunks of this thread still to be read (indices, last first) and its tail.
    chunks: Vec<usize>,
    tail: Option<usize>,
    decoder: Option<(Decoder, u64)>,
    next: Option<RawCall>,
    parts: Vec<Shape>,
}

/// Streams the calls of one rank: see [`Trace::calls`].
pub struct RankReader<'a> {
    trace: &'a Trace,
    rank: Rank,
    lanes: Vec<Lane>,
    started: bool,
    call: Call,
    parts: Vec<Part>,
}

impl<'a> RankReader<'a> {
    fn new(trace: &'a Trace, rank: Rank) -> RankReader<'a> {
        let mut lanes = Vec::new();
        if let Some(Some(file)) = trace.ranks.get(rank.index()) {
            for thread in file.threads() {
                let mut chunks: Vec<usize> =
                    (0..file.chunks.len()).filter(|&c| file.chunks[c].frame.thread == thread).collect();
                chunks.reverse();
                let tail = file.tails.iter().position(|t| t.thread == thread);
                lanes.push(Lane { thread, chunks, tail, decoder: None, next: None, parts: Vec::new() });
            }
        }
        RankReader { trace, rank, lanes, started: false, call: blank_call(), parts: Vec::new() }
    }

    /// The next call, or none at the end.
    ///
    /// # Errors
    /// If a chunk is damaged.
    pub fn next_call(&mut self) -> Result<Option<CallRef<'_>>, TraceError> {
        let Some(Some(file)) = self.trace.ranks.get(self.rank.index()) else { return Ok(None) };
        if !self.started {
            for lane in &mut self.lanes {
                lane.advance(file)?;
            }
            self.started = true;
        }
        let first = match self.lanes.len() {
            1 => self.lanes[0].next.map(|_| 0),
            _ => {
                let exits = self.lanes.iter().enumerate().filter_map(|(i, lane)| Some((lane.next?.exit, i)));
                exits.min().map(|(_, i)| i)
            }
        };
        let Some(lane) = first.map(|i| &mut self.lanes[i]) else { return Ok(None) };
        let Some(raw) = lane.next else { return Ok(None) };
        self.trace.resolve(self.rank, lane.thread, &raw, &lane.parts, &mut self.call, &mut self.parts)?;
        lane.advance(file)?;
        Ok(Some(CallRef { call: &self.call, parts: &self.parts }))
    }
}

impl Lane {
    fn advance(&mut self, file: &RankFile) -> Result<(), TraceError> {
        loop {
            if let Some((decoder, offset)) = &mut self.decoder {
                let damaged = |what| TraceError::corrupt(&file.path, *offset, what);
                if let Some(call) = decoder.next_call(&mut self.parts).map_err(damaged)? {
                    self.next = Some(call);
                    return Ok(());
                }
                self.decoder = None;
            }
            if let Some(chunk) = self.chunks.pop() {
                let Chunk { offset, frame } = file.chunks[chunk];
                let payload = read_payload(&file.path, &file.file, offset, &frame)?;
                self.decoder = Some((Decoder::new(payload, frame.base), offset));
            } else if let Some(tail) = self.tail.take() {
                let tail = &file.tails[tail];
                self.decoder = Some((Decoder::new(tail.payload.clone(), tail.base), file.bytes));
            } else {
                self.next = None;
                return Ok(());
            }
        }
    }
}

impl Trace {
    /// Turns a call as stored into one with global numbers and nanoseconds.
    fn resolve(
        &self,
        rank: Rank,
        thread: u16,
        raw: &RawCall,
        raw_parts: &[Shape],
        call: &mut Call,
        parts: &mut Vec<Part>,
    ) -> Result<(), TraceError> {
        let at = rank.index();
        let (Some(file), Some(clock)) = (&self.ranks[at], &self.clocks[at]) else { return Ok(()) };
        let comm = |local: u32| match self.comm_maps[at].get(local as usize) {
            Some(&id) if id != NO_COMM => Ok(id),
            _ => Err(TraceError::corrupt(&file.path, 0, format!("communicator {local} is used but not defined"))),
        };
        let size = self.size();
        let peer = |peer: i32| {
            if peer < PEER_ANY || peer >= 0 && peer as u32 >= size {
                return Err(TraceError::corrupt(&file.path, 0, format!("rank {peer} of {size} is named as a peer")));
            }
            Ok(peer)
        };
        let shape = &raw.shape;
        let proc = self.proc_maps[at].get(shape.proc as usize).copied().ok_or_else(|| {
            TraceError::corrupt(&file.path, 0, format!("procedure {} is used but not named", shape.proc))
        })?;
        *call = Call {
            proc,
            class: Class::from_u8(shape.role).unwrap_or(Class::Other),
            flags: Flags(shape.flags),
            thread,
            peer: peer(shape.peer)?,
            tag: shape.tag,
            bytes: shape.bytes,
            comm: comm(shape.comm)?,
            site: shape.site,
            enter: Nanos(clock.nanos(raw.enter)),
            exit: Nanos(clock.nanos(raw.exit)),
        };
        parts.clear();
        for part in raw_parts {
            parts.push(Part {
                kind: PartKind::from_u8(part.role & !PART).unwrap_or(PartKind::Post),
                flags: Flags(part.flags),
                peer: peer(part.peer)?,
                tag: part.tag,
                bytes: part.bytes,
                comm: comm(part.comm)?,
            });
        }
        Ok(())
    }
}

fn blank_call() -> Call {
    Call {
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
    }
}
