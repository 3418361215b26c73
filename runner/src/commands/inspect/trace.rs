//! What the files of a trace are, frame by frame.
use super::{Findings, Piece, empty, inspect};
use crate::exit::{REFUSED, Refusal, code, sentence};
use anyhow::{Context, Result};
use phasecast_trace::Counters;
use phasecast_trace::codec;
use phasecast_trace::frame::{Frame, HEAD, Kind};
use phasecast_trace::model::{RankHeader, Trailer};
use phasecast_trace::tail;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// A trace: each file of the folder is a piece.
pub(super) fn folder(path: &Path) -> Result<Findings> {
    let mut found = empty("trace", None, 0);
    let mut names: Vec<PathBuf> = fs::read_dir(path)
        .and_then(|entries| entries.map(|e| Ok(e?.path())).collect())
        .with_context(|| format!("cannot list {}", path.display()))?;
    names.sort();
    let mut size = None;
    let mut ranks = 0u64;
    for file in names.iter().filter(|f| f.extension().is_some_and(|e| e == "pct" || e == "tail")) {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let inner = match inspect(file) {
            Ok(inner) => inner,
            Err(error) if code(&error) == REFUSED => {
                found.broken(sentence(&error));
                let bytes = file.metadata().map_or(0, |file| file.len());
                found.bytes += bytes;
                let piece = Piece { name, offset: 0, count: 1, items: 0, stored_bytes: bytes, raw_bytes: 0, ok: false };
                found.pieces.push(piece);
                continue;
            }
            Err(error) => return Err(error),
        };
        if inner.kind == "rank file" {
            ranks += 1;
            if size.is_none() {
                size = inner.head.get("size").and_then(Value::as_u64);
                for key in ["program", "mpi", "abi", "writer"] {
                    found.head.extend(inner.head.get(key).map(|v| (key.to_string(), v.clone())));
                }
            }
        }
        found.bytes += inner.bytes;
        for damage in &inner.damage {
            found.broken(format!("{name}: {damage}"));
        }
        let sum = |f: fn(&Piece) -> u64| inner.pieces.iter().map(f).fold(0, u64::saturating_add);
        let (items, stored_bytes, raw_bytes) = (sum(|p| p.items), sum(|p| p.stored_bytes), sum(|p| p.raw_bytes));
        found.pieces.push(Piece { name, offset: 0, count: 1, items, stored_bytes, raw_bytes, ok: inner.ok });
    }
    if ranks == 0 && found.damage.is_empty() {
        let text = format!("{} is no trace of phasecast: it holds no file rank-*.pct. Check the path.", path.display());
        return Err(Refusal::Input(text).into());
    }
    found.say("ranks", size.unwrap_or(0));
    if let Some(size) = size.filter(|&size| ranks < size) {
        found.broken(format!("it holds {ranks} of {size} ranks"));
    }
    Ok(found)
}

/// A rank's file: its frames; a row of chunks of calls is one piece.
pub(super) fn rank_file(content: &[u8]) -> Findings {
    let mut found = empty("rank file", None, content.len());
    let (mut at, mut ended) = (0usize, false);
    while at < content.len() {
        let (frame, payload) = match next_frame(content, at) {
            Ok(next) => next,
            Err(what) => {
                found.broken(format!("{what} at byte {at}"));
                return found;
            }
        };
        let name = match frame.kind {
            k if k == Kind::Header as u8 => "header",
            k if k == Kind::Calls as u8 => "calls",
            k if k == Kind::Comms as u8 => "communicators",
            k if k == Kind::Trailer as u8 => "end",
            k if k == Kind::Counters as u8 => "counters",
            k if k == Kind::Origins as u8 => "origins of communicators",
            _ => "of a later version",
        };
        ended |= name == "end";
        let ok = payload.is_ok();
        let read = payload.and_then(|payload| match name {
            "header" => codec::from_bytes(&payload).map(|header| say_header(&mut found, header)),
            "end" => codec::from_bytes(&payload).map(|trailer| say_trailer(&mut found, &trailer)),
            "counters" => codec::from_bytes(&payload).map(|names: Counters| found.say("counters", names.names())),
            _ => Ok(()),
        });
        if let Err(what) = read {
            found.broken(format!("{what} at byte {at}"));
        }
        add(&mut found.pieces, name, at, &frame, ok);
        at = at.saturating_add(HEAD + frame.stored_len as usize);
    }
    if !ended {
        found.say("ending", "none: the process was killed or crashed, or is still running");
    }
    found
}

/// The frame at an offset and its payload, if that is sound.
pub(super) fn next_frame(content: &[u8], at: usize) -> Result<(Frame, Result<Vec<u8>, String>), String> {
    let rest = content.get(at..).unwrap_or_default();
    let head = rest.first_chunk::<HEAD>().ok_or("it is cut off")?;
    let frame = Frame::parse(head)?;
    let stored = rest.get(HEAD..HEAD + frame.stored_len as usize).ok_or("it is cut off")?;
    Ok((frame, frame.open(stored.to_vec())))
}

fn add(pieces: &mut Vec<Piece>, name: &str, at: usize, frame: &Frame, ok: bool) {
    let (stored, raw) = (u64::from(frame.stored_len), u64::from(frame.raw_len));
    let items = u64::from(frame.items);
    match pieces.last_mut().filter(|last| last.name == name && last.ok == ok) {
        Some(last) => {
            last.count += 1;
            last.items += items;
            last.stored_bytes += stored;
            last.raw_bytes += raw;
        }
        None => {
            let (name, offset) = (name.to_string(), at as u64);
            pieces.push(Piece { name, offset, count: 1, items, stored_bytes: stored, raw_bytes: raw, ok });
        }
    }
}

fn say_header(found: &mut Findings, header: RankHeader) {
    found.say("rank", header.rank);
    found.say("size", header.size);
    found.say("host", header.host);
    found.say("pid", header.pid);
    found.say("program", header.program);
    found.say("args", header.args);
    found.say("mpi", header.mpi);
    found.say("abi", header.abi);
    found.say("writer", header.writer);
    found.say("clock", if header.clock.tsc { "rdtsc" } else { "CLOCK_MONOTONIC" });
    found.say("procedures", header.procedures.len());
}

fn say_trailer(found: &mut Findings, trailer: &Trailer) {
    found.say("ending", serde_json::to_value(&trailer.ending).unwrap_or(Value::Null));
    found.say("calls", trailer.calls);
    found.say("own_ns", trailer.own_ns);
}

/// What a thread of a killed process had not yet written.
pub(super) fn tail_file(content: &[u8]) -> Findings {
    let mut found = empty("tail of a rank file", None, content.len());
    match tail::parse(content) {
        Some(tail) => {
            found.say("thread", tail.thread);
            found.say("sequence", tail.sequence);
            let raw = tail.payload.len() as u64;
            let name = "calls not yet written".into();
            let offset = tail::PAYLOAD as u64;
            found.pieces.push(Piece { name, offset, count: 1, items: 0, stored_bytes: raw, raw_bytes: raw, ok: true });
        }
        None => found.broken("it is cut off".into()),
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_none_of_ours_does_not_hide_the_others() {
        let place = tempfile::tempdir().expect("a folder");
        for (name, content) in
            [("rank-00000.pct", &b""[..]), ("rank-00001.pct", b"text"), ("rank-00002.pct", b"PHC\xF1")]
        {
            fs::write(place.path().join(name), content).expect("a file");
        }
        let found = folder(place.path()).expect("findings");
        assert_eq!((found.pieces.len(), found.damage.len()), (3, 3), "{:?}", found.damage);
        assert!(found.damage[0].contains("rank-00000.pct") && found.damage[0].contains("empty"), "{:?}", found.damage);
        assert!(found.damage[1].contains("rank-00001.pct"), "{:?}", found.damage);
    }
}
