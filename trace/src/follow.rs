//! Follows a trace while the program runs: each poll yields the calls that were completed since the last one.
use crate::clock::Clock;
use crate::codec;
use crate::decode::Decoder;
use crate::error::TraceError;
use crate::frame::{HEAD, Kind};
use crate::model::{CallRef, RankHeader, Trailer};
use crate::rank_file::{file_name, read_frame, read_payload};
use crate::tail;
use crate::units::{CommId, Nanos, ProcId, Rank};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// One thread of a followed rank.
#[derive(Default)]
struct Lane {
    /// None as long as there is none, or if it was removed before it was seen.
    tail: Option<File>,
    /// The chunk that is next.
    sequence: u32,
    decoder: Option<Decoder>,
}

/// Follows one rank's file.
pub struct RankFollower {
    path: PathBuf,
    folder: PathBuf,
    file: File,
    at: u64,
    header: RankHeader,
    clock: Clock,
    lanes: Vec<Lane>,
    buffer: Vec<u8>,
    trailer: Option<Trailer>,
}

impl RankFollower {
    /// Starts to follow `rank` in the trace `folder`; none as long as its file is not there with a whole header.
    ///
    /// # Errors
    /// If the file is damaged or of another kind.
    pub fn open(folder: &Path, rank: Rank) -> Result<Option<RankFollower>, TraceError> {
        let path = folder.join(file_name(rank.0));
        let Ok(file) = File::open(&path) else { return Ok(None) };
        let length = file.metadata().map_err(TraceError::io(&path, "examine"))?.len();
        let Some(frame) = read_frame(&path, &file, 0, length)? else { return Ok(None) };
        frame.check_version(&path)?;
        let payload = read_payload(&path, &file, 0, &frame)?;
        let header: RankHeader = codec::from_bytes(&payload).map_err(|what| TraceError::corrupt(&path, 0, what))?;
        let clock = Clock::new(&header.clock, None, header.clock.monotonic_ns);
        Ok(Some(RankFollower {
            folder: folder.to_owned(),
            file,
            at: HEAD as u64 + u64::from(frame.stored_len),
            header,
            clock,
            lanes: Vec::new(),
            buffer: vec![0; tail::LENGTH],
            trailer: None,
            path,
        }))
    }

    /// What the rank says of itself.
    pub fn header(&self) -> &RankHeader {
        &self.header
    }

    /// How it ended, once it has.
    pub fn trailer(&self) -> Option<&Trailer> {
        self.trailer.as_ref()
    }

    /// A clock reading as CLOCK_MONOTONIC in ns.
    pub fn nanos(&self, units: u64) -> Nanos {
        Nanos(self.clock.nanos(units))
    }

    /// Calls `each` with the calls completed since the last poll. Times are CLOCK_MONOTONIC of the rank's host in ns,
    /// communicators and procedures the rank's own numbers.
    ///
    /// # Errors
    /// If the file is damaged.
    pub fn poll(&mut self, mut each: impl FnMut(CallRef<'_>)) -> Result<(), TraceError> {
        self.find_tails();
        self.read_frames(&mut each)?;
        for lane in 0..self.lanes.len() {
            self.read_tail(lane, &mut each)?;
        }
        Ok(())
    }

    /// Opens the tails that have come since, in the order of their threads.
    fn find_tails(&mut self) {
        for thread in 0..=u16::MAX {
            let at = usize::from(thread);
            if self.lanes.get(at).is_some_and(|lane| lane.tail.is_some()) {
                continue;
            }
            let found = File::open(self.folder.join(tail::file_name(self.header.rank, thread))).ok();
            if found.is_none() && at >= self.lanes.len() {
                break;
            }
            if at >= self.lanes.len() {
                self.lanes.push(Lane::default());
            }
            self.lanes[at].tail = found;
        }
    }

    fn read_frames(&mut self, each: &mut impl FnMut(CallRef<'_>)) -> Result<(), TraceError> {
        let length = self.file.metadata().map_err(TraceError::io(&self.path, "examine"))?.len();
        while self.at < length {
            let Some(frame) = read_frame(&self.path, &self.file, self.at, length)? else { break };
            let payload = read_payload(&self.path, &self.file, self.at, &frame)?;
            if frame.kind == Kind::Trailer as u8 {
                let damaged = |what| TraceError::corrupt(&self.path, self.at, what);
                self.trailer = Some(codec::from_bytes(&payload).map_err(damaged)?);
            } else if frame.kind == Kind::Calls as u8 {
                let at = usize::from(frame.thread);
                if at >= self.lanes.len() {
                    self.lanes.resize_with(at + 1, Lane::default);
                }
                let lane = &mut self.lanes[at];
                if frame.sequence != lane.sequence {
                    let what = format!(
                        "chunk {} of thread {at} stands where chunk {} was expected",
                        frame.sequence, lane.sequence
                    );
                    return Err(TraceError::corrupt(&self.path, self.at, what));
                }
                let mut decoder = lane.decoder.take().unwrap_or_else(|| Decoder::new(Vec::new(), frame.base));
                let have = decoder.length().min(payload.len());
                decoder.extend(&payload[have..]);
                lane.sequence = frame.sequence.saturating_add(1);
                drain(&mut decoder, &self.path, self.at, &self.clock, frame.thread, each)?;
            }
            self.at += HEAD as u64 + u64::from(frame.stored_len);
        }
        Ok(())
    }

    fn read_tail(&mut self, lane: usize, each: &mut impl FnMut(CallRef<'_>)) -> Result<(), TraceError> {
        let thread = lane as u16;
        let lane = &mut self.lanes[lane];
        let Some(tail) = &lane.tail else { return Ok(()) };
        let Ok(length) = tail.read_at(&mut self.buffer, 0) else { return Ok(()) };
        let snapshot = tail::parse(&self.buffer[..length]).filter(|snapshot| snapshot.thread == thread);
        let Some(snapshot) = snapshot else { return Ok(()) };
        let mut again = [0; 4];
        let same = tail.read_exact_at(&mut again, tail::offset::SEQUENCE as u64).is_ok()
            && u32::from_le_bytes(again) == snapshot.sequence;
        if !same || snapshot.sequence != lane.sequence || snapshot.payload.is_empty() {
            return Ok(());
        }
        let decoder = lane.decoder.get_or_insert_with(|| Decoder::new(Vec::new(), snapshot.base));
        if snapshot.payload.len() > decoder.length() {
            let have = decoder.length();
            decoder.extend(&snapshot.payload[have..]);
        }
        drain(decoder, &self.path, self.at, &self.clock, thread, each)
    }
}

fn drain(
    decoder: &mut Decoder,
    path: &Path,
    offset: u64,
    clock: &Clock,
    thread: u16,
    each: &mut impl FnMut(CallRef<'_>),
) -> Result<(), TraceError> {
    let (mut shapes, mut parts) = (Vec::new(), Vec::new());
    while let Some(raw) = decoder.next_call(&mut shapes).map_err(|what| TraceError::corrupt(path, offset, what))? {
        parts.clear();
        parts.extend(shapes.iter().map(|shape| shape.to_part(CommId(shape.comm))));
        let mut call = raw.shape.to_call(thread, ProcId(raw.shape.proc), CommId(raw.shape.comm));
        (call.enter, call.exit) = (Nanos(clock.nanos(raw.enter)), Nanos(clock.nanos(raw.exit)));
        each(CallRef { call: &call, parts: &parts, counts: raw.counts });
    }
    Ok(())
}
