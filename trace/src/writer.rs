//! Writes a trace folder from calls that are already known: importers, transformations and made traces use it. (The
//! tracer writes the same frames on its own, as the program runs.)
use crate::atomic;
use crate::codec;
use crate::counts::{Counters, Counts};
use crate::encode::{Encoder, Shape};
use crate::error::TraceError;
use crate::frame::{Frame, Kind};
use crate::model::{Call, ClockStart, CommDef, Part, RankHeader, Trailer};
use crate::rank_file::{MAX_RECORD, file_name};
use crate::tail::CAPACITY;
use crate::units::{Nanos, Rank};
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// zstd level of chunks at rest.
pub const LEVEL: i32 = 3;

/// Writes a whole trace under a temporary name and gives it its own at the end.
#[derive(Debug)]
pub struct TraceWriter {
    path: PathBuf,
    temporary: PathBuf,
    done: bool,
}

impl TraceWriter {
    /// A writer of a new trace in the folder `path`.
    ///
    /// # Errors
    /// If there is something of that name, or the folder cannot be made.
    pub fn create(path: &Path) -> Result<TraceWriter, TraceError> {
        if path.exists() {
            return Err(TraceError::Exists { path: path.to_owned() });
        }
        let temporary = atomic::temporary(path);
        // What a process of the same number has left when it was killed.
        let _ = fs::remove_dir_all(&temporary);
        fs::create_dir_all(&temporary).map_err(TraceError::io(&temporary, "create"))?;
        Ok(TraceWriter { path: path.to_owned(), temporary, done: false })
    }

    /// Starts a rank's file. Times of its calls are in ns from the origin: see [`imported_clock`].
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn rank(&self, header: &RankHeader) -> Result<RankWriter, TraceError> {
        RankWriter::create(self.temporary.join(file_name(header.rank)), header, Frame::new(Kind::Header))
    }

    /// Starts a rank's file whose calls may have counts, and says of what.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn counted_rank(&self, header: &RankHeader, counters: &Counters) -> Result<RankWriter, TraceError> {
        let path = self.temporary.join(file_name(header.rank));
        let mut writer = RankWriter::create(path, header, Frame::counted_header())?;
        writer.put(&Frame::new(Kind::Counters).with_payload(&codec::to_bytes(counters), Some(LEVEL)))?;
        Ok(writer)
    }

    /// Completes the trace: from now on it has its name.
    ///
    /// # Errors
    /// If it cannot be renamed.
    pub fn finish(mut self) -> Result<(), TraceError> {
        if let Ok(folder) = File::open(&self.temporary) {
            folder.sync_all().map_err(TraceError::io(&self.temporary, "sync"))?;
        }
        fs::rename(&self.temporary, &self.path).map_err(TraceError::io(&self.path, "rename a finished trace to"))?;
        self.done = true;
        Ok(())
    }
}

impl Drop for TraceWriter {
    fn drop(&mut self) {
        if !self.done {
            let _ = fs::remove_dir_all(&self.temporary);
        }
    }
}

/// Definitions as lists that each have at most `most` bytes, as far as one definition has not more.
fn lists(defs: &[CommDef], most: usize) -> Vec<&[CommDef]> {
    // A number has at most 5 bytes, a length 9.
    let bytes = |def: &CommDef| 5 * (1 + def.members.len() + def.remote.len()) + 18;
    let (mut lists, mut start, mut used) = (Vec::new(), 0, 9);
    for (at, def) in defs.iter().enumerate() {
        if used + bytes(def) > most && at > start {
            lists.push(&defs[start..at]);
            (start, used) = (at, 9);
        }
        used += bytes(def);
    }
    lists.push(&defs[start..]);
    lists
}

/// The clock of a trace whose times are already nanoseconds from a common origin.
pub fn imported_clock() -> ClockStart {
    ClockStart { tsc: false, shift: 0, units: 0, monotonic_ns: 0, realtime_ns: 0, later: (1 << 30, 1 << 30) }
}

/// The most threads of a rank whose chunks are being filled at the same time: a bound on memory.
const MAX_OPEN: usize = 64;

/// Writes one rank's file.
pub struct RankWriter {
    path: PathBuf,
    out: BufWriter<File>,
    /// The threads that were written to, the current one last.
    lanes: Vec<Lane>,
    /// Where the threads stand that are not in `lanes` any more: thread, its next chunk, its last exit.
    closed: Vec<(u16, u32, u64)>,
    calls: u64,
}

/// The chunk of one thread that is being filled.
struct Lane {
    encoder: Encoder,
    buffer: Vec<u8>,
    used: usize,
    thread: u16,
    sequence: u32,
    base: u64,
}

impl Lane {
    fn new(thread: u16, sequence: u32, base: u64) -> Lane {
        let mut encoder = Encoder::default();
        encoder.begin(base);
        Lane { encoder, buffer: vec![0; CAPACITY], used: 0, thread, sequence, base }
    }
}

impl RankWriter {
    fn create(path: PathBuf, header: &RankHeader, head: Frame) -> Result<RankWriter, TraceError> {
        let file = File::create(&path).map_err(TraceError::io(&path, "create"))?;
        let out = BufWriter::new(file);
        let mut writer = RankWriter { path, out, lanes: vec![Lane::new(0, 0, 0)], closed: Vec::new(), calls: 0 };
        writer.put(&head.with_payload(&codec::to_bytes(header), Some(LEVEL)))?;
        Ok(writer)
    }

    fn put(&mut self, bytes: &[u8]) -> Result<(), TraceError> {
        self.out.write_all(bytes).map_err(TraceError::io(&self.path, "write"))
    }

    /// Defines communicators; each must be defined before it is used.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn comms(&mut self, defs: &[CommDef]) -> Result<(), TraceError> {
        for defs in lists(defs, MAX_RECORD as usize) {
            self.put(&Frame::new(Kind::Comms).with_payload(&codec::to_bytes(&defs), Some(LEVEL)))?;
        }
        Ok(())
    }

    /// Appends a call; its communicator and its parts' are the rank's own numbers, its times ns from the origin, not
    /// before the exit of the call before it.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn push(&mut self, call: &Call, parts: &[Part]) -> Result<(), TraceError> {
        self.push_counted(call, parts, None)
    }

    /// As [`RankWriter::push`], with what was counted before the call: only in a file that says of what
    /// ([`TraceWriter::counted_rank`]).
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn push_counted(&mut self, call: &Call, parts: &[Part], counts: Option<Counts>) -> Result<(), TraceError> {
        let mut rest = parts;
        let (mut call, mut counts) = (*call, counts);
        loop {
            let lane = self.lane();
            let room = rest.len().min(MOST_PARTS) + usize::from(counts.is_some());
            if !lane.encoder.fits(room, lane.buffer.len() - lane.used) {
                self.flush()?;
            }
            let lane = self.lane();
            if lane.encoder.items() == 0 {
                lane.base = lane.encoder.last();
            }
            let (now, later) = rest.split_at(rest.len().min(MOST_PARTS));
            let shape = Shape::call(&call, call.comm.0);
            let (out, at, times) = (&mut lane.buffer, lane.used, (call.enter.0, call.exit.0));
            lane.used = match counts.take() {
                Some(counts) => lane.encoder.counted_call(out, at, &shape, times, counts),
                None => lane.encoder.call(out, at, &shape, times.0, times.1),
            };
            for part in now {
                lane.used = lane.encoder.part(&mut lane.buffer, lane.used, &Shape::part(part, part.comm.0));
            }
            if later.is_empty() {
                self.calls += 1;
                return Ok(());
            }
            rest = later;
            call.flags = call.flags.with(crate::model::Flags::CONTINUED);
            call.enter = call.exit;
        }
    }

    /// The chunk that calls go to.
    #[inline]
    fn lane(&mut self) -> &mut Lane {
        self.lanes.last_mut().expect("there is a lane from the start")
    }

    /// What is pushed from now on are the calls of the rank's next thread, whose times start anew.
    ///
    /// # Errors
    /// If the file cannot be written, or there are more than 65536 threads.
    pub fn next_thread(&mut self) -> Result<(), TraceError> {
        self.flush()?;
        let full = || TraceError::Import { path: self.path.clone(), what: "a rank has more than 65536 threads".into() };
        let thread = self.lanes.last().map_or(0, |lane| lane.thread).checked_add(1).ok_or_else(full)?;
        let lane = self.lane();
        (lane.thread, lane.sequence, lane.base) = (thread, 0, 0);
        lane.encoder.begin(0);
        Ok(())
    }

    /// What is pushed from now on are calls of this thread, which may come in turns with those of others.
    ///
    /// # Errors
    /// If the file cannot be written.
    #[inline]
    pub fn thread(&mut self, thread: u16) -> Result<(), TraceError> {
        if self.lane().thread == thread { Ok(()) } else { self.switch(thread) }
    }

    #[cold]
    fn switch(&mut self, thread: u16) -> Result<(), TraceError> {
        if let Some(at) = self.lanes.iter().position(|lane| lane.thread == thread) {
            let lane = self.lanes.remove(at);
            self.lanes.push(lane);
            return Ok(());
        }
        if self.lanes.len() >= MAX_OPEN {
            self.lanes.rotate_left(1);
            self.flush()?;
            if let Some(lane) = self.lanes.pop() {
                self.closed.push((lane.thread, lane.sequence, lane.encoder.last()));
            }
        }
        let before = self.closed.iter().position(|closed| closed.0 == thread).map(|at| self.closed.swap_remove(at));
        let (_, sequence, base) = before.unwrap_or((thread, 0, 0));
        self.lanes.push(Lane::new(thread, sequence, base));
        Ok(())
    }

    /// Writes the current chunk, if there is anything in it.
    fn flush(&mut self) -> Result<(), TraceError> {
        let lane = self.lanes.last_mut().expect("there is a lane from the start");
        if lane.encoder.items() == 0 {
            return Ok(());
        }
        let mut frame = Frame::new(Kind::Calls);
        frame.thread = lane.thread;
        frame.sequence = lane.sequence;
        frame.items = lane.encoder.items();
        frame.base = lane.base;
        let bytes = frame.with_payload(&lane.buffer[..lane.used], Some(LEVEL));
        lane.sequence += 1;
        lane.used = 0;
        lane.base = lane.encoder.last();
        lane.encoder.begin(lane.base);
        self.put(&bytes)
    }

    /// Writes what is left and the end record. `trailer.calls` is set to the number of calls pushed.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn finish(mut self, mut trailer: Trailer) -> Result<(), TraceError> {
        while !self.lanes.is_empty() {
            self.flush()?;
            self.lanes.pop();
        }
        trailer.calls = self.calls;
        self.put(&Frame::new(Kind::Trailer).with_payload(&codec::to_bytes(&trailer), Some(LEVEL)))?;
        self.out.flush().map_err(TraceError::io(&self.path, "write"))?;
        self.out.get_ref().sync_all().map_err(TraceError::io(&self.path, "sync"))
    }

    /// The exit of the current thread's last call.
    pub fn last(&self) -> Nanos {
        Nanos(self.lanes.last().map_or(0, |lane| lane.encoder.last()))
    }
}

/// Parts that one item of the chunk may have; a call with more goes on in items marked as continued.
pub const MOST_PARTS: usize = 512;

/// A header for a trace that is made or imported rather than recorded.
pub fn made_header(rank: Rank, size: u32, program: &str, procedures: &[&str]) -> RankHeader {
    RankHeader {
        rank: rank.0,
        size,
        host: String::new(),
        boot_id: String::new(),
        pid: 0,
        program: program.into(),
        args: Vec::new(),
        mpi: String::new(),
        abi: "imported".into(),
        writer: concat!("phasecast ", env!("CARGO_PKG_VERSION")).into(),
        clock: imported_clock(),
        procedures: procedures.iter().map(|p| (*p).into()).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_communicators_are_as_long_as_a_reader_takes() {
        let def = |members: usize| CommDef { local: u32::MAX, members: vec![u32::MAX; members], remote: vec![] };
        let defs: Vec<CommDef> = (0..40).map(|n| def(n % 7 * 10)).collect();
        for most in [1, 100, 500, 100_000] {
            let lists = lists(&defs, most);
            assert_eq!(lists.concat(), defs);
            assert!(lists.iter().all(|list| list.len() == 1 || codec::to_bytes(list).len() <= most));
        }
        assert_eq!(lists(&defs, 100_000).len(), 1);
        assert_eq!(lists(&[], 100).len(), 1);
    }
}
