//! One rank's file, opened: its records in memory, its chunks by their places, the tails beside it.
use crate::codec;
use crate::counts::Counters;
use crate::error::TraceError;
use crate::frame::{Frame, HEAD, Kind};
use crate::model::{CommDef, Origin, RankHeader, Trailer};
use crate::tail::{self, Snapshot};
use std::fs::File;
use std::io::Read;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// The name of a rank's file.
pub fn file_name(rank: u32) -> String {
    format!("rank-{rank:05}.pct")
}

/// The most ranks of a run. This and the bounds below limit what hostile input can make a reader allocate.
pub const MAX_RANKS: u32 = 1 << 20;
/// The longest header before compression: the arguments of the program and the names of procedures.
const MAX_HEADER: u32 = 1 << 23;
/// The longest other record (communicators, counters, trailer) before compression.
pub(crate) const MAX_RECORD: u32 = 1 << 26;
/// The most bytes of all records of a file before compression.
const MAX_RECORDS: u64 = 1 << 29;
/// The most communicators of a rank.
const MAX_COMMS: usize = 1 << 22;

/// Where a chunk of calls lies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chunk {
    pub(crate) offset: u64,
    pub(crate) frame: Frame,
}

/// One thread's calls: chunks by index, and the tail that comes after them.
#[derive(Clone, Debug)]
pub(crate) struct Thread {
    pub(crate) number: u16,
    pub(crate) chunks: Range<usize>,
    pub(crate) tail: Option<usize>,
    /// Clock units before its first call.
    pub(crate) base: u64,
}

/// One rank's file, opened.
#[derive(Debug)]
pub(crate) struct RankFile {
    pub(crate) path: PathBuf,
    pub(crate) file: File,
    pub(crate) header: RankHeader,
    pub(crate) comms: Vec<CommDef>,
    /// Of those that were made by all members of another one.
    pub(crate) origins: Vec<Origin>,
    /// What was counted of computation.
    pub(crate) counters: Option<Counters>,
    /// Sorted by thread and sequence; sequences of a thread are 0, 1, 2 ...
    pub(crate) chunks: Vec<Chunk>,
    pub(crate) tails: Vec<Snapshot>,
    pub(crate) trailer: Option<Trailer>,
    /// Why the file breaks off.
    pub(crate) broken: Option<String>,
    /// Length of the file as far as it is whole.
    pub(crate) bytes: u64,
    /// The last pair of clock units and CLOCK_MONOTONIC.
    pub(crate) sync: Option<(u64, u64)>,
}

/// Reads the head of the frame at `offset`; none if the frame is not whole in a file of `length` bytes.
pub(crate) fn read_frame(path: &Path, file: &File, offset: u64, length: u64) -> Result<Option<Frame>, TraceError> {
    let rest = length.saturating_sub(offset);
    if rest < HEAD as u64 {
        return Ok(None);
    }
    let mut head = [0; HEAD];
    file.read_exact_at(&mut head, offset).map_err(TraceError::io(path, "read"))?;
    if head == [0; HEAD] {
        // Blocks that the file system had made room for but not written when the machine went down.
        return Ok(None);
    }
    let frame = Frame::parse(&head).map_err(|what| TraceError::corrupt(path, offset, what))?;
    let limit = match frame.kind {
        k if k == Kind::Calls as u8 => tail::CAPACITY as u32,
        k if k == Kind::Header as u8 => MAX_HEADER,
        _ => MAX_RECORD,
    };
    if frame.raw_len > limit {
        return Err(TraceError::corrupt(path, offset, format!("a frame claims {} bytes", frame.raw_len)));
    }
    let whole = u64::from(frame.stored_len) <= rest - HEAD as u64;
    Ok(whole.then_some(frame))
}

/// Reads and checks the payload of a frame that [`read_frame`] found whole.
pub(crate) fn read_payload(path: &Path, file: &File, offset: u64, frame: &Frame) -> Result<Vec<u8>, TraceError> {
    let mut stored = vec![0; frame.stored_len as usize];
    file.read_exact_at(&mut stored, offset + HEAD as u64).map_err(TraceError::io(path, "read"))?;
    frame.open(stored).map_err(|what| TraceError::corrupt(path, offset, what))
}

impl RankFile {
    /// Opens a file.
    pub(crate) fn open(path: PathBuf) -> Result<RankFile, TraceError> {
        let file = File::open(&path).map_err(TraceError::io(&path, "open"))?;
        let length = file.metadata().map_err(TraceError::io(&path, "examine"))?.len();
        let (mut at, mut records) = (0, 0);
        let (mut header, mut counters, mut origins) = (None, None, Vec::new());
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
            records += if frame.kind == Kind::Calls as u8 { 0 } else { u64::from(frame.raw_len) };
            if records > MAX_RECORDS {
                return Err(record(format!("its records claim more than {MAX_RECORDS} bytes")));
            }
            match frame.kind {
                k if k == Kind::Header as u8 => {
                    frame.check_version(&path)?;
                    let payload = read_payload(&path, &file, at, &frame)?;
                    header = Some(codec::from_bytes::<RankHeader>(&payload).map_err(record)?);
                }
                k if k == Kind::Comms as u8 => {
                    let payload = read_payload(&path, &file, at, &frame)?;
                    comms.extend(codec::list(&payload, MAX_COMMS - comms.len()).map_err(record)?);
                }
                k if k == Kind::Origins as u8 => {
                    let payload = read_payload(&path, &file, at, &frame)?;
                    origins.extend(codec::list::<Origin>(&payload, MAX_COMMS - origins.len()).map_err(record)?);
                }
                k if k == Kind::Counters as u8 => {
                    let payload = read_payload(&path, &file, at, &frame)?;
                    counters = Some(codec::from_bytes::<Counters>(&payload).map_err(record)?);
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
        if header.size == 0 || header.rank >= header.size || header.size > MAX_RANKS {
            let what = format!("it is of rank {} of {} ranks", header.rank, header.size);
            return Err(TraceError::corrupt(&path, 0, what));
        }
        for list in comms.iter().flat_map(|def: &CommDef| [&def.members, &def.remote]) {
            if let Some(member) = list.iter().find(|&&member| member >= header.size) {
                let what = format!("rank {member} of {} is named in a communicator", header.size);
                return Err(TraceError::corrupt(&path, 0, what));
            }
        }
        if broken.is_none() && trailer.is_none() {
            broken = Some("its file has no end record: the process was killed or crashed".into());
        }
        chunks.sort_by_key(|c| (c.frame.thread, c.frame.sequence));
        let bytes = at.min(length);
        let tails = Vec::new();
        let opened =
            RankFile { path, file, header, comms, origins, counters, chunks, tails, trailer, broken, bytes, sync };
        opened.check_sequences()?;
        Ok(opened)
    }

    /// Refuses a file from which a chunk is missing, or in which one is twice.
    fn check_sequences(&self) -> Result<(), TraceError> {
        let mut expected = (None, 0);
        for chunk in &self.chunks {
            let (thread, sequence) = (chunk.frame.thread, chunk.frame.sequence);
            let next = if expected.0 == Some(thread) { expected.1 } else { 0 };
            if sequence != next {
                let what = if sequence < next {
                    format!("chunk {sequence} of thread {thread} is there twice")
                } else {
                    format!("chunk {next} of thread {thread} is missing before chunk {sequence}")
                };
                return Err(TraceError::corrupt(&self.path, chunk.offset, what));
            }
            expected = (Some(thread), next.saturating_add(1));
        }
        Ok(())
    }

    /// Takes in the tails of these threads beside the file, where the chunk that they hold is not in the file.
    pub(crate) fn read_tails(&mut self, threads: &[u16]) {
        for &thread in threads {
            let path = self.path.with_file_name(tail::file_name(self.header.rank, thread));
            let Ok(file) = File::open(path) else { continue };
            let mut bytes = Vec::new();
            if file.take(tail::LENGTH as u64).read_to_end(&mut bytes).is_err() {
                continue;
            }
            let Some(tail) = tail::parse(&bytes).filter(|t| t.thread == thread && !t.payload.is_empty()) else {
                continue;
            };
            let after = self.chunks.partition_point(|c| c.frame.thread <= thread);
            let last = after.checked_sub(1).map(|at| self.chunks[at].frame).filter(|f| f.thread == thread);
            let next = last.map_or(0, |f| u64::from(f.sequence) + 1);
            let sequence = u64::from(tail.sequence);
            if sequence == next {
                self.tails.push(tail);
            } else if sequence > next {
                self.broken.get_or_insert_with(|| format!("chunk {next} of thread {thread} was never written"));
            }
        }
    }

    /// Reads the payload of a chunk as it is stored.
    pub(crate) fn read_stored(&self, offset: u64, stored: &mut [u8]) -> Result<(), TraceError> {
        self.file.read_exact_at(stored, offset + HEAD as u64).map_err(TraceError::io(&self.path, "read"))
    }

    /// Its threads, in the order of their numbers.
    pub(crate) fn threads(&self) -> Vec<Thread> {
        let mut threads: Vec<Thread> = Vec::new();
        let mut at = 0;
        for group in self.chunks.chunk_by(|a, b| a.frame.thread == b.frame.thread) {
            let (number, base) = (group[0].frame.thread, group[0].frame.base);
            threads.push(Thread { number, chunks: at..at + group.len(), tail: None, base });
            at += group.len();
        }
        for (index, tail) in self.tails.iter().enumerate() {
            match threads.binary_search_by_key(&tail.thread, |t| t.number) {
                Ok(at) => threads[at].tail = Some(index),
                Err(at) => {
                    let (number, base) = (tail.thread, tail.base);
                    threads.insert(at, Thread { number, chunks: 0..0, tail: Some(index), base });
                }
            }
        }
        threads
    }
}
