//! Counts of computation: what is written is read back, in a trace, in a tail and by a follower; what is hostile is read
//! or refused.
mod common;
use common::inputs::{check, read_all};
use common::mutation::{edits, mutate};
use common::{call, part};
use phasecast_trace::decode::Decoder;
use phasecast_trace::encode::{Encoder, Shape};
use phasecast_trace::export::{Format, export};
use phasecast_trace::follow::RankFollower;
use phasecast_trace::frame::{COUNTED_VERSION, FORMAT_VERSION, Frame, HEAD, Kind};
use phasecast_trace::model::{CommDef, Ending, Trailer};
use phasecast_trace::writer::{TraceWriter, made_header};
use phasecast_trace::{Call, Class, Counters, Counts, Flags, Nanos, Part, PartKind, Rank, Summary, Trace, TraceError};
use proptest::prelude::*;
use std::path::{Path, PathBuf};

type Made = Vec<(Call, Vec<Part>, Option<Counts>)>;

fn counts() -> impl Strategy<Value = Counts> {
    let number = || prop_oneof![0u64..200, 0u64..1 << 30, any::<u64>()];
    (number(), number(), number()).prop_map(|(a, b, c)| Counts::from_array([a, b, c]))
}

fn calls() -> impl Strategy<Value = Made> {
    let one = (0i32..3, 0u64..300, 0u64..3000, 0usize..4, proptest::option::of(counts()));
    proptest::collection::vec(one, 1..200).prop_map(|list| {
        let mut now = 0;
        list.into_iter()
            .map(|(tag, gap, length, parts, counts)| {
                let (enter, exit) = (now + gap, now + gap + length);
                now = exit;
                let call = Call { enter: Nanos(enter), exit: Nanos(exit), ..call(0, Class::Complete, -1, tag) };
                (call, vec![part(PartKind::Recv, 0, tag); parts], counts)
            })
            .collect()
    })
}

fn write(path: &Path, made: &Made) {
    let writer = TraceWriter::create(path).unwrap();
    let header = made_header(Rank(0), 1, "made", &["MPI_Waitall"]);
    let mut out = writer.counted_rank(&header, &Counters::hardware()).unwrap();
    out.comms(&[CommDef { local: 0, members: vec![0], remote: vec![] }]).unwrap();
    for (call, parts, counts) in made {
        out.push_counted(call, parts, *counts).unwrap();
    }
    let end_units = out.last().0;
    out.finish(Trailer { ending: Ending::Finalized, calls: 0, end_units, own_ns: 0, modules: vec![] }).unwrap();
    writer.finish().unwrap();
}

fn read(path: &Path) -> Made {
    let trace = Trace::open(path).unwrap();
    assert_eq!(trace.counters(), Some(&Counters::hardware()));
    let (mut made, mut reader) = (Made::new(), trace.calls(Rank(0)));
    while let Some(item) = reader.next_call().unwrap() {
        made.push((*item.call, item.parts.to_vec(), item.counts));
    }
    made
}

fn frames(path: &Path) -> Vec<(Frame, Vec<u8>)> {
    let (bytes, mut at, mut out) = (std::fs::read(path).unwrap(), 0, Vec::new());
    while at < bytes.len() {
        let frame = Frame::parse(bytes[at..].first_chunk::<HEAD>().unwrap()).unwrap();
        let stored = bytes[at + HEAD..at + HEAD + frame.stored_len as usize].to_vec();
        at += HEAD + stored.len();
        out.push((frame, frame.open(stored).unwrap()));
    }
    out
}

fn put(path: &Path, frames: &[(Frame, Vec<u8>)]) {
    let bytes: Vec<u8> = frames.iter().flat_map(|(frame, payload)| frame.with_payload(payload, None)).collect();
    std::fs::write(path, bytes).unwrap();
}

fn place() -> (tempfile::TempDir, PathBuf, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.trace");
    let file = path.join("rank-00000.pct");
    (folder, path, file)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn what_is_counted_is_read(made in calls()) {
        let (_folder, path, _) = place();
        write(&path, &made);
        prop_assert_eq!(&read(&path), &made);
        let mut followed = Vec::new();
        let mut follower = RankFollower::open(&path, Rank(0)).unwrap().expect("it has a header");
        follower.poll(|item| followed.push(item.counts)).unwrap();
        prop_assert_eq!(followed, made.iter().map(|(_, _, counts)| *counts).collect::<Vec<_>>());
    }

    #[test]
    fn mutated_files_with_checksums_that_fit(made in calls(), edits in edits(), which: prop::sample::Index) {
        let (_folder, path, file) = place();
        write(&path, &made);
        let mut frames = frames(&file);
        let chosen = which.index(frames.len());
        mutate(&mut frames[chosen].1, &edits);
        put(&file, &frames);
        check(&path);
    }

    /// A chunk may end anywhere, as the tail of a process that was killed does if its last word is not trusted.
    #[test]
    fn a_chunk_that_is_cut_off_gives_the_calls_before(made in calls(), keep in 0.0f64..1.0) {
        let (mut encoder, mut bytes, mut used) = (Encoder::default(), vec![0; 1 << 16], 0);
        encoder.begin(0);
        for (call, _, counts) in &made {
            let (shape, times) = (Shape::call(call, 0), (call.enter.0, call.exit.0));
            used = match counts {
                Some(counts) => encoder.counted_call(&mut bytes, used, &shape, times, *counts),
                None => encoder.call(&mut bytes, used, &shape, times.0, times.1),
            };
        }
        bytes.truncate((used as f64 * keep) as usize);
        let (mut decoder, mut parts, mut seen) = (Decoder::new(bytes, 0), Vec::new(), Vec::new());
        while let Ok(Some(call)) = decoder.next_call(&mut parts) {
            seen.push(call.counts);
        }
        let wanted: Vec<Option<Counts>> = made.iter().map(|(_, _, counts)| *counts).collect();
        prop_assert!(wanted.starts_with(&seen), "{} of {}", seen.len(), wanted.len());
    }

    #[test]
    fn counted_chunks_of_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        // A new shape of a call with counts, then whatever.
        let bytes = [&[1, 2, 0x80, 2, 0, 1, 1, 0, 0, 0][..], &bytes].concat();
        let (mut decoder, mut parts) = (Decoder::new(bytes, 0), Vec::new());
        while let Ok(Some(call)) = decoder.next_call(&mut parts) {
            prop_assert!(call.counts.is_some() == Flags(call.shape.flags).has(Flags::COUNTED));
        }
    }
}

fn two_calls() -> Made {
    let one = |enter, counts| {
        let call = Call { enter: Nanos(enter), exit: Nanos(enter + 50), ..call(0, Class::Send, 0, 7) };
        (call, vec![], counts)
    };
    let counts = Counts { instructions: 3000, cycles: 2000, misses: 5 };
    vec![one(1000, None), one(2000, Some(counts)), one(3050, Some(counts))]
}

/// The bytes that docs/src/formats/trace.md tells.
#[test]
fn counts_follow_the_times_of_their_call() {
    let (_folder, path, file) = place();
    write(&path, &two_calls());
    let frames = frames(&file);
    let kinds: Vec<(u8, u32)> = frames.iter().map(|(frame, _)| (frame.kind, frame.sequence)).collect();
    assert_eq!(kinds, [(1, u32::from(COUNTED_VERSION)), (7, 0), (3, 0), (2, 0), (4, 0)]);
    assert_eq!(frames[1].1, b"\x0cinstructions\x06cycles\x0ccache-misses");
    let uncounted = [1, 0, 0, 0, 0, 14, 0, 8, 0, 0xe8, 7, 50];
    let shape = [1, 0, 0x80, 2, 0, 0, 14, 0, 8, 0, 0xb6, 7, 50, 0xb8, 0x17, 0xd0, 0x0f, 5];
    let known = [5, 0xe8, 7, 50, 0xb8, 0x17, 0xd0, 0x0f, 5];
    assert_eq!(frames[3].1, [&uncounted[..], &shape, &known].concat());
}

#[test]
fn a_summary_adds_them_up() {
    let (_folder, path, _) = place();
    write(&path, &two_calls());
    let computed = Summary::of(&Trace::open(&path).unwrap(), &|_, _| {}).unwrap().computed.expect("counts");
    assert_eq!(computed.counts, Counts { instructions: 6000, cycles: 4000, misses: 10 });
    assert_eq!(computed.instructions_per_cycle, Some(1.5));
    assert!((computed.counted_s - 1.95e-6).abs() < 1e-12, "{computed:?}");
    let memory = computed.memory_bytes_per_s.expect("counters of the processor");
    assert!((memory - 640.0 / 1.95e-6).abs() < 1.0, "{computed:?}");
}

#[test]
fn perfetto_shows_them() {
    let (folder, path, _) = place();
    write(&path, &two_calls());
    let out = folder.path().join("t.json");
    export(&Trace::open(&path).unwrap(), Format::Perfetto, &out, &|_, _| {}).unwrap();
    let json: serde_json::Value = serde_json::from_slice(&std::fs::read(&out).unwrap()).unwrap();
    let slices = json["traceEvents"].as_array().unwrap().iter().filter(|event| event["ph"] == "X");
    let instructions: Vec<_> = slices.map(|slice| slice["args"]["counts"]["instructions"].as_u64()).collect();
    assert_eq!(instructions, [None, Some(3000), Some(3000)]);
}

#[test]
fn counts_of_nothing_in_particular_are_refused() {
    let (_folder, path, file) = place();
    write(&path, &two_calls());
    let mut frames = frames(&file);
    frames.remove(1);
    put(&file, &frames);
    let error = read_all(&path).unwrap_err();
    assert!(error.to_string().contains("nothing says of what"), "{error}");
}

#[test]
fn both_versions_are_read_and_no_other() {
    let (_folder, path, file) = place();
    write(&path, &two_calls());
    let mut frames = frames(&file);
    for version in 0..5 {
        frames[0].0.sequence = version;
        put(&file, &frames);
        let known = (u32::from(FORMAT_VERSION)..=u32::from(COUNTED_VERSION)).contains(&version);
        match Trace::open(&path) {
            Ok(_) => assert!(known, "version {version}"),
            Err(error) => assert!(!known && matches!(error, TraceError::Version { .. }), "{version}: {error}"),
        }
    }
    assert_eq!(frames[0].0.kind, Kind::Header as u8);
}

/// What writes calls on from a trace with counts writes none where it gives none.
#[test]
fn calls_that_are_written_on_have_no_counts() {
    let (_folder, path, _) = place();
    write(&path, &two_calls());
    assert!(read(&path).iter().all(|(call, ..)| !call.flags.has(Flags::COUNTED)));
    let flagged = Call { flags: Flags::COUNTED, ..call(0, Class::Send, 0, 7) };
    assert_eq!(Shape::call(&flagged, 0).flags, 0);
}
