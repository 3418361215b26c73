//! Bad input is read or refused: it never panics a reader, hangs it, or makes it allocate without bound. Files are
//! mutated and their checksums put right again, so that what lies behind the checksum is reached.
mod common;
use common::inputs::{check, read_all};
use common::mutation::{Edit, edits, mutate};
use common::{Made, call, part, write};
use phasecast_trace::container::Container;
use phasecast_trace::decode::Decoder;
use phasecast_trace::frame::{Frame, HEAD, Kind};
use phasecast_trace::model::{ClockStart, CommDef, Origin, RankHeader, Trailer};
use phasecast_trace::{Class, Flags, PartKind, Rank, Trace, TraceError, codec, tail};
use proptest::prelude::*;
use proptest::sample::Index;
use std::path::{Path, PathBuf};

fn made() -> Vec<Made> {
    let rank = |peer| -> Made {
        let mut list = Made::new();
        for tag in 0..40 {
            let mut post = call(1, Class::Post, peer, tag % 5);
            post.flags = Flags::RECV_POST;
            list.push((post, vec![]));
            list.push((call(0, Class::Send, peer, tag % 5), vec![]));
            list.push((call(1, Class::Complete, -1, -1), vec![part(PartKind::Recv, peer, tag % 5)]));
        }
        list
    };
    vec![rank(1), rank(0)]
}

/// Changes heads and payloads of a file's frames, and makes the checksums fit.
fn reseal(bytes: &[u8], edits: &[Edit], which: Index, head: u8, value: u64) -> Vec<u8> {
    let (mut frames, mut at) = (Vec::new(), 0);
    while let Some(Ok(frame)) = bytes.get(at..).and_then(|rest| rest.first_chunk::<HEAD>()).map(Frame::parse) {
        let stored = bytes[at + HEAD..at + HEAD + frame.stored_len as usize].to_vec();
        at += HEAD + stored.len();
        frames.push((frame, frame.open(stored).unwrap()));
    }
    let chosen = which.index(frames.len());
    let mut out = Vec::new();
    for (number, (mut frame, mut payload)) in frames.into_iter().enumerate() {
        if number == chosen {
            match head {
                0 => frame.kind = value as u8,
                1 => frame.thread = value as u16,
                2 => frame.sequence = value as u32,
                3 => frame.items = value as u32,
                4 => frame.base = value,
                5 => frame.sync = (value, value.rotate_left(7)),
                _ => mutate(&mut payload, edits),
            }
        }
        let level = (number % 2 == 0).then_some(1);
        out.extend(frame.with_payload(&payload, level));
    }
    out
}

fn base(folder: &Path) -> (PathBuf, PathBuf, Vec<u8>) {
    let path = folder.join("t.trace");
    write(&path, &made());
    let file = path.join("rank-00000.pct");
    let bytes = std::fs::read(&file).unwrap();
    (path, file, bytes)
}

proptest! {
    #[test]
    fn mutated_files(edits in edits()) {
        let folder = tempfile::tempdir().unwrap();
        let (path, file, mut bytes) = base(folder.path());
        mutate(&mut bytes, &edits);
        std::fs::write(&file, &bytes).unwrap();
        check(&path);
    }

    #[test]
    fn mutated_files_with_checksums_that_fit(edits in edits(), which: Index, head in 0u8..24, value: u64, small: bool) {
        let folder = tempfile::tempdir().unwrap();
        let (path, file, bytes) = base(folder.path());
        let value = if small { value % 8 } else { value };
        std::fs::write(&file, reseal(&bytes, &edits, which, head, value)).unwrap();
        check(&path);
    }

    #[test]
    fn mutated_tails(edits in edits(), committed in prop_oneof![0u32..2000, any::<u32>()], sequence in 0u32..3, thread in 0u16..2) {
        let folder = tempfile::tempdir().unwrap();
        let (path, file, bytes) = base(folder.path());
        // The chunk stands in the tail, not in the file.
        let start = bytes.windows(5).position(|w| w == b"PHC\xf1\x02").unwrap();
        let frame = Frame::parse(bytes[start..].first_chunk::<HEAD>().unwrap()).unwrap();
        let payload = frame.open(bytes[start + HEAD..start + HEAD + frame.stored_len as usize].to_vec()).unwrap();
        std::fs::write(&file, &bytes[..start]).unwrap();
        let mut tail = vec![0; tail::PAYLOAD];
        tail[..8].copy_from_slice(&tail::MAGIC);
        tail[tail::offset::THREAD] = thread as u8;
        tail[tail::offset::SEQUENCE] = sequence as u8;
        tail.extend_from_slice(&payload);
        mutate(&mut tail, &edits);
        if let Some(place) = tail.get_mut(tail::offset::COMMITTED..tail::offset::COMMITTED + 4) {
            place.copy_from_slice(&committed.to_le_bytes());
        }
        std::fs::write(path.join(tail::file_name(0, thread)), &tail).unwrap();
        check(&path);
    }

    #[test]
    fn chunks_of_any_bytes(bytes in prop::collection::vec(prop_oneof![Just(1u8), Just(0u8), 0u8..16, any::<u8>()], 0..400), base: u64) {
        let mut decoder = Decoder::new(bytes, base);
        let mut parts = Vec::new();
        let mut last = base;
        while let Ok(Some(call)) = decoder.next_call(&mut parts) {
            prop_assert!(last <= call.enter && call.enter <= call.exit);
            last = call.exit;
        }
    }

    #[test]
    fn records_of_any_bytes(bytes: Vec<u8>, edits in edits()) {
        let defs = vec![CommDef { local: 0, members: vec![0, 1], remote: vec![] }];
        let mut list = codec::to_bytes(&defs);
        mutate(&mut list, &edits);
        for bytes in [&bytes, &list] {
            let _ = codec::from_bytes::<RankHeader>(bytes);
            let _ = codec::from_bytes::<Vec<CommDef>>(bytes);
            let _ = codec::from_bytes::<Vec<Origin>>(bytes);
            let _ = codec::from_bytes::<Trailer>(bytes);
            let _ = codec::unpack(bytes, 1 << 29);
        }
    }

    #[test]
    fn mutated_containers(edits in edits(), which: Index, seal: bool) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f.phases");
        let sections = vec![("a".to_string(), vec![7; 3000]), ("b".to_string(), vec![])];
        let container = Container { kind: "phases".into(), version: 1, manifest: "{}".into(), sections };
        container.write(&path, false).unwrap();
        let mut bytes = std::fs::read(&path).unwrap();
        prop_assert_eq!(&Container::parse(&path, &bytes).unwrap(), &container);
        if seal {
            let frames = reseal(&bytes[29..], &edits, which, 24, 0);
            bytes.truncate(29);
            bytes.extend(frames);
        } else {
            mutate(&mut bytes, &edits);
        }
        if let Err(error) = Container::parse(&path, &bytes) {
            prop_assert!(error.is_input(), "{}", error);
        }
    }

    #[test]
    fn clocks_of_any_numbers(units: u64, monotonic: u64, later: (u64, u64), shift: u8, last: Option<(u64, u64)>, offset: u64, reading: u64) {
        let start = ClockStart { tsc: true, shift, units, monotonic_ns: monotonic, realtime_ns: 0, later };
        let clock = phasecast_trace::clock::Clock::new(&start, last, offset);
        prop_assert!(clock.resolution().is_finite());
        prop_assert!(clock.nanos(reading) <= clock.nanos(reading.saturating_add(1)));
    }
}

/// Writes rank 0's frames, changed by `change`, and opens the trace.
fn with_frames(change: impl FnOnce(&mut Vec<(Frame, Vec<u8>)>)) -> Result<(), TraceError> {
    let folder = tempfile::tempdir().unwrap();
    let (path, file, bytes) = base(folder.path());
    let (mut frames, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        let frame = Frame::parse(bytes[at..].first_chunk::<HEAD>().unwrap()).unwrap();
        let stored = bytes[at + HEAD..at + HEAD + frame.stored_len as usize].to_vec();
        at += HEAD + stored.len();
        frames.push((frame, frame.open(stored).unwrap()));
    }
    change(&mut frames);
    let bytes: Vec<u8> = frames.iter().flat_map(|(frame, payload)| frame.with_payload(payload, Some(1))).collect();
    std::fs::write(&file, bytes).unwrap();
    read_all(&path)
}

fn chunk(frames: &[(Frame, Vec<u8>)]) -> usize {
    frames.iter().position(|(frame, _)| frame.kind == Kind::Calls as u8).unwrap()
}

fn refused(change: impl FnOnce(&mut Vec<(Frame, Vec<u8>)>), part: &str) {
    let error = with_frames(change).unwrap_err().to_string();
    assert!(error.contains(part), "{error}");
}

#[test]
fn chunks_that_are_missing_or_there_twice_are_refused() {
    assert!(with_frames(|_| {}).is_ok());
    refused(|f| f[2].0.sequence = 1, "chunk 0 of thread 0 is missing");
    refused(|f| f.insert(chunk(f), f[chunk(f)].clone()), "chunk 0 of thread 0 is there twice");
    refused(|f| f[2].0.items += 1, "not as many items");
}

#[test]
fn huge_claims_are_refused_before_memory_is_taken() {
    let header = |size: u32, rank: u32| {
        move |f: &mut Vec<(Frame, Vec<u8>)>| {
            let mut header: RankHeader = codec::from_bytes(&f[0].1).unwrap();
            (header.size, header.rank) = (size, rank);
            f[0].1 = codec::to_bytes(&header);
        }
    };
    refused(header(u32::MAX, 0), "ranks");
    refused(header(2, 2), "rank 2 of 2 ranks");
    let comms = |def: CommDef| move |f: &mut Vec<(Frame, Vec<u8>)>| f[1].1 = codec::to_bytes(&vec![def]);
    refused(comms(CommDef { local: 0, members: vec![0, 9], remote: vec![] }), "rank 9 of 2");
    // A number out of the way costs nothing; what is used is then not defined.
    refused(comms(CommDef { local: u32::MAX, members: vec![0, 1], remote: vec![] }), "is used but not defined");
    refused(|f| f[2].1 = vec![0; 70_000], "claims 70000 bytes");
}

#[test]
fn many_records_are_refused_before_memory_is_taken() {
    // The length of a list comes first; one of communicators without members takes much more memory than bytes.
    let list = codec::to_bytes(&((1u64 << 22) + 1));
    refused(|f| f[1].1 = list.clone(), "a list claims 4194305 items");
    let origins = (Frame::new(Kind::Origins), list.clone());
    refused(|f| f.push(origins), "a list claims 4194305 items");
    refused(|f| f[0].1 = vec![0; (1 << 23) + 1], "claims 8388609 bytes");
    let counters = codec::to_bytes(&["x".repeat(60 << 20), String::new(), String::new()]);
    let frame = (Frame::new(Kind::Counters), counters);
    refused(|f| f.extend(vec![frame; 9]), "its records claim more than 536870912 bytes");
}

#[test]
fn many_long_sections_are_refused_before_memory_is_taken() {
    let path = Path::new("f.phases");
    let mut container = Container { kind: "phases".into(), version: 1, manifest: "{}".into(), sections: vec![] };
    let mut bytes = container.to_bytes().unwrap();
    for _ in 0..2 {
        let claim = Frame { packed: true, raw_len: 1 << 30, ..Frame::new(Kind::Section) };
        bytes.extend(claim.seal(b""));
    }
    let error = Container::parse(path, &bytes).unwrap_err().to_string();
    assert!(error.contains("claim more than 2147483648 bytes"), "{error}");
    // Nor is such a container written.
    for lengths in [&[1 << 30][..], &[1 << 29; 4]] {
        container.sections = lengths.iter().map(|length| ("a".to_string(), vec![0; *length])).collect();
        assert!(container.check().is_err());
    }
    container.sections.pop();
    assert!(container.check().is_ok());
    container.sections = vec![("a".to_string(), vec![0; 1 << 30])];
    let folder = tempfile::tempdir().unwrap();
    assert!(container.write(&folder.path().join("f.phases"), false).is_err());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn blocks_of_zeros_at_the_end_are_a_cut() {
    let folder = tempfile::tempdir().unwrap();
    let (path, file, mut bytes) = base(folder.path());
    let whole = bytes.len();
    bytes.extend([0; 4096]);
    std::fs::write(&file, &bytes).unwrap();
    let trace = Trace::open(&path).unwrap();
    assert_eq!(trace.cuts().unwrap().len(), 1);
    let other = std::fs::metadata(path.join("rank-00001.pct")).unwrap().len();
    assert_eq!(trace.bytes_on_disk(), whole as u64 + other);
}

#[test]
fn many_threads_are_merged_by_time() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.trace");
    let writer = phasecast_trace::TraceWriter::create(&path).unwrap();
    let header = phasecast_trace::writer::made_header(Rank(0), 1, "made", &["MPI_Send", "MPI_Recv"]);
    let mut out = writer.rank(&header).unwrap();
    out.comms(&[CommDef { local: 0, members: vec![0], remote: vec![] }]).unwrap();
    for thread in 0..300u64 {
        if thread > 0 {
            out.next_thread().unwrap();
        }
        for n in 0..20 {
            let mut call = call(0, Class::Send, 0, thread as i32);
            call.enter = phasecast_trace::Nanos(thread * 7 + n * 400 + 1);
            call.exit = phasecast_trace::Nanos(thread * 7 + n * 400 + 5);
            out.push(&call, &[]).unwrap();
        }
    }
    let ending = phasecast_trace::model::Ending::Finalized;
    out.finish(Trailer { ending, calls: 0, end_units: 20_000, own_ns: 0, modules: vec![] }).unwrap();
    writer.finish().unwrap();
    let trace = Trace::open(&path).unwrap();
    let mut exits = Vec::new();
    trace.for_each_event(Rank(0), |event| exits.push((event.exit, event.thread))).unwrap();
    assert_eq!(exits.len(), 6000);
    assert!(exits.is_sorted());
}
