//! What is done with hostile input: the fuzz targets in `fuzz/` and the tests that replay their corpus share it.
//!
//! Checksums are put right first, so that what lies behind them is reached: an input is what its author would have
//! written, had he wanted it so.
#![allow(dead_code, reason = "each fuzz target and test file uses a part of it")]
use phasecast_trace::container::{self, Container};
use phasecast_trace::follow::RankFollower;
use phasecast_trace::frame::{Frame, HEAD, Kind, MAGIC};
use phasecast_trace::import::{detect, liballprof as allprof};
use phasecast_trace::{Rank, Summary, Trace, TraceError, reader, tail};
use std::fs;
use std::path::{Path, PathBuf};

/// Reads all there is, in all ways there are.
pub fn read_all(path: &Path) -> Result<(), TraceError> {
    let mut follower = RankFollower::open(path, Rank(0));
    if let Ok(Some(follower)) = &mut follower {
        let _ = follower.poll(|_| {});
        let _ = follower.poll(|_| {});
    }
    let trace = Trace::open(path)?;
    for rank in trace.ranks() {
        let (start, end) = trace.span(rank);
        assert!(start <= end);
        trace.for_each_event(rank, |event| {
            assert!(event.enter <= event.exit && (event.peer as u32) < trace.size() || event.peer < 0);
            assert!(event.comm.index() < trace.comms().len());
        })?;
    }
    trace.cuts()?;
    let summary = Summary::of(&trace, &|_, _| {})?;
    serde_json::to_string(&summary).expect("a summary is JSON");
    Ok(())
}

/// Reading is refused as bad input, or succeeds.
pub fn check(path: &Path) {
    if let Err(error) = read_all(path) {
        assert!(error.is_input(), "{error}");
    }
}

/// Where `needle` stands.
fn places(bytes: &[u8], needle: &[u8]) -> Vec<usize> {
    bytes.windows(needle.len()).enumerate().filter(|(_, window)| *window == needle).map(|(at, _)| at).collect()
}

/// The pieces before and from each of `starts` on.
fn split(bytes: &[u8], starts: &[usize]) -> Vec<Vec<u8>> {
    let ends = starts.iter().copied().chain([bytes.len()]);
    [0].into_iter().chain(starts.iter().copied()).zip(ends).map(|(from, to)| bytes[from..to].to_vec()).collect()
}

/// Gives each frame all bytes up to the next and a right checksum.
fn seal(bytes: &mut [u8]) {
    let starts = places(bytes, &MAGIC);
    let ends: Vec<usize> = starts.iter().skip(1).copied().chain([bytes.len()]).collect();
    for (start, end) in starts.into_iter().zip(ends) {
        let Some((head, stored)) = bytes[start..end].split_first_chunk_mut::<HEAD>() else { continue };
        let length = (stored.len() as u32).to_le_bytes();
        head[20..24].copy_from_slice(&length);
        if head[5] == 0 {
            head[16..20].copy_from_slice(&length);
        }
        let Ok(frame) = Frame::parse(head) else { continue };
        head[48..56].copy_from_slice(&frame.digest(stored).to_le_bytes());
    }
}

/// Files of ranks (each begins with a header), then tails of rank 0 (each begins with their magic).
fn files(data: &[u8]) -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
    let mut pieces = split(data, &places(data, &tail::MAGIC));
    let mut ranks = pieces.remove(0);
    seal(&mut ranks);
    let header = [&MAGIC[..], &[Kind::Header as u8]].concat();
    let later: Vec<usize> = places(&ranks, &header).into_iter().filter(|&at| at > 0).collect();
    for piece in &mut pieces {
        let room = piece.len().saturating_sub(tail::PAYLOAD) as u32;
        if let Some(place) = piece.get_mut(tail::offset::COMMITTED..tail::offset::COMMITTED + 4) {
            let claimed = u32::from_le_bytes([place[0], place[1], place[2], place[3]]);
            place.copy_from_slice(&claimed.min(room).to_le_bytes());
        }
    }
    (split(&ranks, &later), pieces)
}

fn put(path: PathBuf, bytes: &[u8]) {
    fs::write(path, bytes).expect("the folder of the test can be written");
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder for the test")
}

/// A trace, whole or cut off.
pub fn rank_file(data: &[u8]) {
    let folder = folder();
    let (ranks, tails) = files(data);
    for (number, bytes) in (0..).zip(&ranks) {
        put(folder.path().join(reader::file_name(number)), bytes);
    }
    for (thread, bytes) in (0..).zip(&tails) {
        put(folder.path().join(tail::file_name(0, thread)), bytes);
    }
    check(folder.path());
}

/// A trace that grows. The first byte says how much of it is there at first. A follower sees as many calls as a reader.
pub fn follow(data: &[u8]) {
    let Some((first, data)) = data.split_first() else { return };
    let folder = folder();
    let (ranks, tails) = files(data);
    let (whole, path) = (&ranks[0], folder.path().join(reader::file_name(0)));
    let mut seen = 0u64;
    let mut follow = || -> Result<bool, TraceError> {
        put(path.clone(), &whole[..whole.len() * usize::from(*first) / 255]);
        let early = RankFollower::open(folder.path(), Rank(0))?;
        let mut poll = |follower: &mut RankFollower| {
            follower.poll(|call| {
                assert!(call.call.enter <= call.call.exit);
                seen += 1;
            })
        };
        let mut follower = match early {
            Some(mut follower) => {
                poll(&mut follower)?;
                put(path.clone(), whole);
                follower
            }
            None => {
                put(path.clone(), whole);
                let Some(follower) = RankFollower::open(folder.path(), Rank(0))? else { return Ok(false) };
                follower
            }
        };
        for (thread, bytes) in (0..).zip(&tails) {
            put(folder.path().join(tail::file_name(0, thread)), bytes);
            poll(&mut follower)?;
        }
        poll(&mut follower)?;
        poll(&mut follower)?;
        Ok(tails.is_empty())
    };
    match follow() {
        Err(error) => assert!(error.is_input(), "{error}"),
        Ok(false) => {}
        Ok(true) => {
            let Ok(trace) = Trace::open(folder.path()) else { return };
            let (mut calls, mut there) = (trace.calls(Rank(0)), 0u64);
            let whole = loop {
                match calls.next_call() {
                    Ok(Some(_)) => there += 1,
                    Ok(None) => break true,
                    Err(_) => break false,
                }
            };
            let own = trace.header(Rank(0)).is_some();
            assert!(!whole || !own || there == seen, "a reader sees {there} calls, a follower {seen}");
        }
    }
}

/// A file of phases or a signature. What is read is what is written.
pub fn container(data: &[u8]) {
    let path = Path::new("input");
    let mut bytes = data.to_vec();
    if let Some(frames) = bytes.get_mut(container::START..) {
        seal(frames);
    }
    match Container::parse(path, &bytes) {
        Err(error) => assert!(error.is_input(), "{error}"),
        Ok(read) => {
            let written = read.to_bytes().expect("what was read is not too long to be written");
            let again = Container::parse(path, &written).expect("what was written can be read");
            assert_eq!(again, read);
        }
    }
}

/// liballprof's text: the files of several ranks, with a byte between them that is no text.
pub fn liballprof(data: &[u8]) {
    let texts = folder();
    let mut paths = Vec::new();
    for (rank, text) in data.split(|&byte| byte == 0xff).take(8).enumerate() {
        let path = texts.path().join(format!("trace.{rank}"));
        put(path.clone(), text);
        detect(&path);
        paths.push(path);
    }
    imported(|out| allprof::import(&paths, out, &|_, _| {}).map(drop));
}

/// What an importer makes of its input is a trace that can be read whole.
pub fn imported(import: impl FnOnce(&Path) -> Result<(), TraceError>) {
    let folder = folder();
    let out = folder.path().join("t.trace");
    match import(&out) {
        Ok(()) => read_all(&out).expect("what was imported can be read"),
        Err(error) => {
            assert!(error.is_input(), "{error}");
            assert!(!out.exists(), "half a trace is left");
        }
    }
}
