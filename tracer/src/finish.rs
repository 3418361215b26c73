//! The end of a rank's recording: the last chunks and the end record, and the file as it stays, compressed.
use crate::clock;
use crate::life::{self, Rank};
use crate::sink::{State, say};
use crate::thread::Thread;
use phasecast_trace::codec;
use phasecast_trace::frame::{Frame, HEAD, Kind};
use phasecast_trace::model::{Ending, PROCESS_VARIABLE, Trailer};
use phasecast_trace::tail::{self, offset};
use phasecast_trace::writer::LEVEL;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Mutex;

/// How the recording ended, once it has.
static ENDED: Mutex<Option<Trailer>> = Mutex::new(None);

/// Appends a frame to the rank's file, if there is one.
pub fn append(frame: &[u8]) {
    if let Some(rank) = life::rank()
        && !rank.sink.append(frame, || ())
    {
        life::stop();
    }
}

/// Ends the recording: what the threads have goes to the file, then the end record. The file opens as it is from here
/// on; [`at_exit`] makes it small.
pub fn end(ending: Ending) {
    let Some(rank) = life::rank() else { return };
    life::stop();
    let mut ended = ENDED.lock().unwrap_or_else(|poison| poison.into_inner());
    if ended.is_some() {
        return;
    }
    let mut state = rank.sink.lock();
    let ending = state.failure().map_or(ending, |reason| Ending::Stopped(reason.to_owned()));
    let trailer = trailer(rank, ending);
    if !state.is_closed() {
        let mut append = |frame: &[u8]| match state.append(frame) {
            Ok(written) => written,
            Err(error) => {
                rank.sink.give_up(&mut state, &error);
                false
            }
        };
        let whole = rest(&life::threads()).into_iter().all(|(frame, reset)| append(&frame) && reset());
        if whole {
            append(&Frame::new(Kind::Trailer).with_payload(&codec::to_bytes(&trailer), Some(LEVEL)));
        }
    }
    state.close();
    *ended = Some(trailer);
}

/// Empties a tail; always true.
type Reset = Box<dyn FnOnce() -> bool>;

/// The frames of what stands in the tails, each with what empties the tail once its frame is written.
fn rest(threads: &[*mut Thread]) -> Vec<(Vec<u8>, Reset)> {
    let mut frames: Vec<(Vec<u8>, Reset)> = Vec::new();
    for &thread in threads {
        // SAFETY: recorders live as long as the process. Their owners write behind what they have committed, and a chunk
        // is handed over under the lock of the file, which our caller holds.
        let thread = unsafe { &*thread };
        let Some(tail) = tail::parse(thread.tail()).filter(|tail| !tail.payload.is_empty()) else { continue };
        let mut frame = Frame::new(Kind::Calls);
        frame.thread = thread.number();
        frame.sequence = tail.sequence;
        frame.items = u32::from_le_bytes(thread.tail()[offset::ITEMS..][..4].try_into().unwrap_or_default());
        frame.base = tail.base;
        frame.sync = clock::pair();
        let committed = thread.tail()[offset::COMMITTED..].as_ptr().cast_mut();
        let reset = move || {
            // SAFETY: the word of the tail that says how much it holds; its owner records no more.
            unsafe { committed.cast::<u32>().write_volatile(0) };
            true
        };
        frames.push((frame.with_payload(&tail.payload, None), Box::new(reset)));
    }
    frames
}

fn trailer(rank: &Rank, ending: Ending) -> Trailer {
    let (mut calls, mut own_ns) = (0, 0);
    for thread in life::threads() {
        // SAFETY: recorders live as long as the process, and the totals are atomic.
        let totals = unsafe { (*thread).totals() };
        calls += totals.0;
        own_ns += totals.1;
    }
    let cost = *rank.cost.lock().unwrap_or_else(|poison| poison.into_inner());
    own_ns += (calls as f64 * cost) as u64;
    Trailer { ending, calls, end_units: clock::now(), own_ns, modules: modules() }
}

/// Executable mappings of this process.
pub fn modules() -> Vec<(u64, u64, u64, String)> {
    let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let hex = |text: &str| u64::from_str_radix(text, 16).ok();
    maps.lines()
        .filter_map(|line| {
            let mut words = line.splitn(6, ' ');
            let (from, to) = words.next()?.split_once('-')?;
            let access = words.next()?;
            let at = hex(words.next()?)?;
            let path =
                words.nth(2).map(str::trim_start).filter(|path| path.starts_with('/') && access.contains('x'))?;
            Some((hex(from)?, hex(to)?, at, path.to_owned()))
        })
        .collect()
}

/// The process exits: the file gets its last form and, if this rank is the last one, the summary is shown.
pub fn at_exit() {
    let Some(rank) = life::rank() else { return say_if_untraced() };
    if rank.pid != std::process::id() {
        return;
    }
    let end_units = clock::now();
    end(if life::sessions_over() { Ending::Finalized } else { Ending::Exited });
    let ended = ENDED.lock().unwrap_or_else(|poison| poison.into_inner());
    let Some(mut trailer) = ended.clone() else { return };
    trailer.end_units = end_units;
    let mut state = rank.sink.lock();
    match pack(rank, &state, &trailer) {
        Ok(()) => tidy(rank),
        Err(_) if state.failure().is_some() => {
            let end = Frame::new(Kind::Trailer).with_payload(&codec::to_bytes(&trailer), Some(LEVEL));
            let packed = |(frame, _): (Vec<u8>, Reset)| repack(&frame).unwrap_or(frame);
            let rest: Vec<Vec<u8>> = rest(&life::threads()).into_iter().map(packed).collect();
            // Chunks for which there is no room stay in the tails, where a reader finds them.
            if state.append_end(&rest, &end).is_ok_and(|whole| whole) {
                tidy(rank);
            }
        }
        Err(error) => {
            say(&format!("rank {}: the trace stays uncompressed ({error})", rank.sink.rank));
            tidy(rank);
        }
    }
}

/// Says so where the process that `phasecast trace` has become ends and no rank has begun a trace.
fn say_if_untraced() {
    let became = std::env::var(PROCESS_VARIABLE).is_ok_and(|id| id.parse() == Ok(std::process::id()));
    let Some(folder) = std::env::var_os("PHASECAST_TRACE").filter(|_| became).map(PathBuf::from) else { return };
    if fs::read_dir(&folder).is_ok_and(|mut entries| entries.next().is_none()) {
        let folder = folder.display();
        say(&format!("there is no trace in {folder}: no program that ran called MPI_Init of a shared MPI library"));
    }
}

/// Writes the file anew, compressed, and gives it the name of the first one.
fn pack(rank: &Rank, state: &State, trailer: &Trailer) -> io::Result<()> {
    let path = rank.sink.path();
    let temporary = path.with_extension("pct.part");
    let result = write_packed(state, trailer, &temporary).and_then(|()| fs::rename(&temporary, &path));
    if result.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    result
}

fn write_packed(state: &State, trailer: &Trailer, temporary: &std::path::Path) -> io::Result<()> {
    let (file, length) = state.file();
    let mut out = BufWriter::new(File::create(temporary)?);
    let mut at = 0;
    let mut head = [0; HEAD];
    while at < length {
        file.read_exact_at(&mut head, at)?;
        let frame = parse(&head)?;
        let mut stored = vec![0; frame.stored_len as usize];
        file.read_exact_at(&mut stored, at + HEAD as u64)?;
        at += (HEAD + stored.len()) as u64;
        if frame.kind == Kind::Calls as u8 {
            out.write_all(&repack(&[&head[..], &stored].concat())?)?;
        } else if frame.kind != Kind::Trailer as u8 {
            out.write_all(&head)?;
            out.write_all(&stored)?;
        }
    }
    for (frame, _) in rest(&life::threads()) {
        out.write_all(&repack(&frame)?)?;
    }
    out.write_all(&Frame::new(Kind::Trailer).with_payload(&codec::to_bytes(trailer), Some(LEVEL)))?;
    out.flush()?;
    out.get_ref().sync_all()
}

fn damaged(what: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

fn parse(head: &[u8; HEAD]) -> io::Result<Frame> {
    Frame::parse(head).map_err(damaged)
}

/// A frame with its payload compressed.
fn repack(frame: &[u8]) -> io::Result<Vec<u8>> {
    let (head, stored) = frame.split_first_chunk().ok_or_else(|| damaged("a frame is cut off".into()))?;
    let frame = parse(head)?;
    let payload = frame.open(stored.to_vec()).map_err(damaged)?;
    Ok(frame.with_payload(&payload, Some(LEVEL)))
}

/// Removes the tails, whose contents are in the file, and shows the summary if no rank has any left.
fn tidy(rank: &Rank) {
    let folder = File::open(&rank.sink.folder);
    // SAFETY: an open folder, which is locked so that only one rank finds itself the last.
    let _locked = folder.as_ref().map(|folder| unsafe { libc::flock(folder.as_raw_fd(), libc::LOCK_EX) });
    for thread in 0..life::threads().len() {
        let _ = fs::remove_file(rank.sink.folder.join(tail::file_name(rank.sink.rank, thread as u16)));
    }
    let names = || fs::read_dir(&rank.sink.folder).into_iter().flatten().flatten().map(|entry| entry.file_name());
    let ends = |end: &str| names().filter(|name| name.as_encoded_bytes().ends_with(end.as_bytes())).count();
    if ends(".tail") > 0 || ends(".pct") < rank.size as usize {
        return;
    }
    drop(folder);
    if let Some(command) = std::env::var_os("PHASECAST_EXE").filter(|_| std::env::var_os("PHASECAST_QUIET").is_none()) {
        let mut summary = Command::new(command);
        summary.args(["stat", "--summary"]).arg(&rank.sink.folder).stdin(Stdio::null());
        summary.stdout(io::stderr().as_fd().try_clone_to_owned().map_or_else(|_| Stdio::null(), Stdio::from));
        let _ = summary.status();
    }
}
