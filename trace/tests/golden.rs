//! The format cannot change unnoticed: a fixed small trace is these bytes, and bytes of another version are refused.
mod common;
use common::{call, part};
use phasecast_trace::frame::{COUNTED_VERSION, FORMAT_VERSION, Frame, HEAD, Kind};
use phasecast_trace::model::{CommDef, Ending, Trailer};
use phasecast_trace::writer::{TraceWriter, made_header};
use phasecast_trace::{Class, Flags, Nanos, PartKind, Rank, Trace, TraceError};
use std::path::Path;

/// Three times a nonblocking send and a Waitall that completes a receive; ends in MPI_Abort(3).
fn write(path: &Path) {
    let writer = TraceWriter::create(path).unwrap();
    let mut header = made_header(Rank(0), 2, "prog", &["MPI_Send", "MPI_Waitall"]);
    header.writer = "phasecast".into();
    let mut out = writer.rank(&header).unwrap();
    out.comms(&[CommDef { local: 0, members: vec![0, 1], remote: vec![] }]).unwrap();
    for at in [1000u64, 2000, 3000] {
        let mut send = call(0, Class::Send, 1, 7);
        send.flags = Flags::NONBLOCKING;
        (send.bytes, send.site, send.enter, send.exit) = (800, 0x401_000, Nanos(at), Nanos(at + 50));
        out.push(&send, &[]).unwrap();
        let mut wait = call(1, Class::Complete, -1, -1);
        (wait.bytes, wait.enter, wait.exit) = (0, Nanos(at + 60), Nanos(at + 300));
        out.push(&wait, &[part(PartKind::Recv, 1, 7)]).unwrap();
    }
    let ending = Ending::Aborted(3);
    out.finish(Trailer { ending, calls: 0, end_units: 4000, own_ns: 12, modules: vec![] }).unwrap();
    writer.finish().unwrap();
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Frames as (head, payload in the clear).
fn frames(bytes: &[u8]) -> Vec<(Frame, Vec<u8>)> {
    let (mut at, mut out) = (0, Vec::new());
    while at < bytes.len() {
        let frame = Frame::parse(bytes[at..].first_chunk::<HEAD>().unwrap()).unwrap();
        at += HEAD;
        let stored = bytes[at..at + frame.stored_len as usize].to_vec();
        at += stored.len();
        out.push((frame, frame.open(stored).unwrap()));
    }
    out
}

#[test]
fn a_fixed_trace_is_these_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.trace");
    write(&path);
    let bytes = std::fs::read(path.join("rank-00000.pct")).unwrap();
    let frames = frames(&bytes);
    let kinds: Vec<(u8, u32, u32)> = frames.iter().map(|(f, _)| (f.kind, f.sequence, f.items)).collect();
    assert_eq!(kinds, [(1, 1, 0), (3, 0, 0), (2, 0, 9), (4, 0, 0)]);
    let payloads: Vec<String> = frames.iter().map(|(_, payload)| hex(payload)).collect();
    assert_eq!(payloads[0], GOLDEN_HEADER);
    assert_eq!(payloads[1], "010002000100");
    assert_eq!(payloads[2], GOLDEN_CHUNK);
    assert_eq!(payloads[3], GOLDEN_TRAILER);
    // The whole chunk as it stands in the file, checksum and all.
    let start = bytes.windows(5).position(|w| w == b"PHC\xf1\x02").unwrap();
    assert_eq!(hex(&bytes[start..start + HEAD]), GOLDEN_HEAD);
}

// Worked out by hand from docs/src/formats/trace.md, but for the checksum.
const GOLDEN_HEADER: &str = "00020000000470726f67000008696d706f72746564097068617365636173740000000000fc00000040fc0000004002084d50495f53656e640b4d50495f57616974616c6c";
const GOLDEN_CHUNK: &str =
    "01000100020e00a00680a08002e807320103000101010000000af00101810000020e00080003bc053214f00100f80a3214f00100";
const GOLDEN_TRAILER: &str = "010606fba00f0c00";
const GOLDEN_HEAD: &str =
    "504843f102000000000000000900000034000000340000000000000000000000000000000000000000000000000000008f1ff0e89b14f2d2";

#[test]
fn another_version_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.trace");
    write(&path);
    let file = path.join("rank-00000.pct");
    let bytes = std::fs::read(&file).unwrap();
    let (mut frame, payload) = frames(&bytes).remove(0);
    assert_eq!((frame.kind, frame.sequence), (Kind::Header as u8, u32::from(FORMAT_VERSION)));
    frame.sequence = u32::from(COUNTED_VERSION) + 1;
    std::fs::write(&file, frame.with_payload(&payload, None)).unwrap();
    for error in [Trace::open(&path).err(), phasecast_trace::follow::RankFollower::open(&path, Rank(0)).err()] {
        assert!(matches!(error, Some(TraceError::Version { found: 3, supported: 2, .. })), "{error:?}");
    }
}
