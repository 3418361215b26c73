//! Made traces for the tests.
#![allow(dead_code, reason = "each test file uses a part of it")]
pub mod inputs;
pub mod mutation;

use phasecast_trace::model::{CommDef, Ending, Trailer};
use phasecast_trace::writer::{TraceWriter, made_header};
use phasecast_trace::{Call, Class, CommId, Flags, Nanos, Part, PartKind, ProcId, Rank};
use std::path::Path;

/// The calls of one rank.
pub type Made = Vec<(Call, Vec<Part>)>;

/// A call of 8 bytes over the world. [`write`] gives calls without a time one after the other.
pub fn call(proc: u16, class: Class, peer: i32, tag: i32) -> Call {
    Call {
        proc: ProcId(proc),
        class,
        flags: Flags(0),
        thread: 0,
        peer,
        tag,
        bytes: 8,
        comm: CommId(0),
        site: 0,
        enter: Nanos(0),
        exit: Nanos(0),
    }
}

/// A part of 8 bytes over the world.
pub fn part(kind: PartKind, peer: i32, tag: i32) -> Part {
    Part { kind, flags: Flags(0), peer, tag, bytes: 8, comm: CommId(0) }
}

/// Writes a trace as [`write_timed`] does, of calls without a time one after the other.
pub fn write(path: &Path, ranks: &[Made]) {
    let timed = |made: &Made| {
        let mut now = 0;
        let one = |(call, parts): &(Call, Vec<Part>)| {
            let mut call = *call;
            if call.exit.0 == 0 {
                (call.enter, call.exit) = (Nanos(now + 100), Nanos(now + 150));
            }
            now = call.exit.0;
            (call, parts.clone())
        };
        made.iter().map(one).collect()
    };
    write_timed(path, &ranks.iter().map(timed).collect::<Vec<Made>>());
}

/// Writes a trace of two procedures (`MPI_Send`, `MPI_Recv`) and two communicators (the world, each rank alone).
pub fn write_timed(path: &Path, ranks: &[Made]) {
    let writer = TraceWriter::create(path).unwrap();
    let size = ranks.len() as u32;
    for (rank, made) in ranks.iter().enumerate() {
        let rank = rank as u32;
        let header = made_header(Rank(rank), size, "made", &["MPI_Send", "MPI_Recv"]);
        let mut out = writer.rank(&header).unwrap();
        let world = CommDef { local: 0, members: (0..size).collect(), remote: vec![] };
        let own = CommDef { local: 1, members: vec![rank], remote: vec![] };
        out.comms(&[world, own]).unwrap();
        for (call, parts) in made {
            out.push(call, parts).unwrap();
        }
        let end_units = out.last().0;
        let trailer = Trailer { ending: Ending::Finalized, calls: 0, end_units, own_ns: 0, modules: vec![] };
        out.finish(trailer).unwrap();
    }
    writer.finish().unwrap();
}
