//! What is written is read back; what is cut off or damaged is refused or opens as far as it goes, and never panics.
mod common;
use common::{Made, write_timed as write};
use phasecast_trace::reader::Whole;
use phasecast_trace::units::{CommId, Nanos, ProcId, Rank};
use phasecast_trace::{Call, Class, EventKind, Flags, Part, PartKind, Trace};
use proptest::prelude::*;
use std::collections::HashMap;
use std::path::Path;

fn part() -> impl Strategy<Value = Part> {
    (0u8..4, -3i32..2, 0i32..5, prop_oneof![Just(8u64), any::<u64>()], 0u32..2).prop_map(
        |(kind, peer, tag, bytes, comm)| Part {
            kind: PartKind::from_u8(kind).unwrap(),
            flags: Flags(0),
            peer,
            tag,
            bytes,
            comm: CommId(comm),
        },
    )
}

fn calls() -> impl Strategy<Value = Made> {
    let flags = any::<u16>().prop_map(|bits| Flags(bits).without(Flags::COUNTED));
    let call = (0u8..14, -3i32..2, any::<i32>(), 0u64..1000, 0u64..5000, 0u64..3, 0u16..2, flags);
    let one = (call, proptest::collection::vec(part(), 0..4));
    proptest::collection::vec(one, 0..300).prop_map(|list| {
        let mut now = 0;
        list.into_iter()
            .map(|((class, peer, tag, gap, length, site, proc, flags), parts)| {
                let enter = now + gap;
                now = enter + length;
                let call = Call {
                    proc: ProcId(proc),
                    class: Class::from_u8(class).unwrap(),
                    flags,
                    thread: 0,
                    peer,
                    tag,
                    bytes: length,
                    comm: CommId(u32::from(proc)),
                    site: site << 40,
                    enter: Nanos(enter),
                    exit: Nanos(now),
                };
                (call, parts)
            })
            .collect()
    })
}

/// Reads everything there is to read.
fn read_all(path: &Path) -> Result<Vec<Made>, phasecast_trace::TraceError> {
    let trace = Trace::open(path)?;
    trace.cuts()?;
    let mut all = Vec::new();
    for rank in trace.ranks() {
        let mut made = Made::new();
        let mut reader = trace.calls(rank);
        while let Some(call) = reader.next_call()? {
            made.push((*call.call, call.parts.to_vec()));
        }
        all.push(made);
    }
    Ok(all)
}

/// How many events there are of each kind, peer, tag, length and communicator.
type Counts = HashMap<(EventKind, i32, i32, u64, CommId), u64>;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn a_tally_counts_what_is_streamed(ranks in proptest::collection::vec(calls(), 2..3)) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.trace");
        write(&path, &ranks);
        let trace = Trace::open(&path).unwrap();
        for rank in trace.ranks() {
            let (mut streamed, mut tallied) = (Counts::new(), Counts::new());
            trace.for_each_event(rank, |e| *streamed.entry((e.kind, e.peer, e.tag, e.bytes, e.comm)).or_default() += 1).unwrap();
            let (mut calls, mut parts) = (0, 0);
            trace.view(rank).tally(|shape, times| {
                let (event, peer, tag, bytes, comm) = match shape {
                    Whole::Call(call) => {
                        calls += times;
                        (call.event(), call.peer, call.tag, call.bytes, call.comm)
                    }
                    Whole::Part(part) => {
                        parts += times;
                        (part.event(), part.peer, part.tag, part.bytes, part.comm)
                    }
                };
                if let Some(kind) = event {
                    *tallied.entry((kind, peer, tag, bytes, comm)).or_default() += times;
                }
            }).unwrap();
            prop_assert_eq!(tallied, streamed);
            let made = &ranks[rank.index()];
            prop_assert_eq!((calls, parts), (made.len() as u64, made.iter().map(|call| call.1.len() as u64).sum()));
        }
    }

    #[test]
    fn what_is_written_is_read(ranks in proptest::collection::vec(calls(), 2..3)) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.trace");
        write(&path, &ranks);
        let mut back = read_all(&path).unwrap();
        for (rank, made) in back.iter_mut().enumerate() {
            for (call, parts) in made {
                // Communicator 0 is the world; the others are numbered over all ranks.
                let local = |id: CommId| if id.0 == 0 { id } else { CommId(id.0 - rank as u32) };
                call.comm = local(call.comm);
                parts.iter_mut().for_each(|p| p.comm = local(p.comm));
            }
        }
        prop_assert_eq!(back, ranks);
    }

    #[test]
    fn a_trace_that_is_cut_off_opens_as_far_as_it_goes(ranks in proptest::collection::vec(calls(), 2..3), keep in 0.0f64..1.0) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.trace");
        write(&path, &ranks);
        let file = path.join("rank-00000.pct");
        let bytes = std::fs::read(&file).unwrap();
        std::fs::write(&file, &bytes[..(bytes.len() as f64 * keep) as usize]).unwrap();
        match read_all(&path) {
            Ok(_) => prop_assert_eq!(Trace::open(&path).unwrap().cuts().unwrap().len(), 1),
            Err(error) => prop_assert!(error.is_input(), "{}", error),
        }
    }

    #[test]
    fn damage_is_refused(ranks in proptest::collection::vec(calls(), 2..3), flips in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..20)) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.trace");
        write(&path, &ranks);
        let file = path.join("rank-00001.pct");
        let mut bytes = std::fs::read(&file).unwrap();
        for (at, with) in flips {
            let at = at.index(bytes.len());
            bytes[at] ^= with;
        }
        std::fs::write(&file, &bytes).unwrap();
        let _ = read_all(&path);
    }
}

#[test]
fn a_call_with_many_parts_keeps_them_all() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.trace");
    let parts: Vec<Part> = (0..5000)
        .map(|i| Part { kind: PartKind::Recv, flags: Flags(0), peer: 0, tag: i, bytes: 8, comm: CommId(0) })
        .collect();
    let call = Call {
        proc: ProcId(0),
        class: Class::Complete,
        flags: Flags(0),
        thread: 0,
        peer: -1,
        tag: -1,
        bytes: 0,
        comm: CommId(0),
        site: 0,
        enter: Nanos(10),
        exit: Nanos(20),
    };
    write(&path, &[vec![(call, parts)], vec![]]);
    let trace = Trace::open(&path).unwrap();
    let mut tags = Vec::new();
    trace.for_each_event(Rank(0), |e| tags.push((e.tag, e.exit))).unwrap();
    assert_eq!(tags, (0..5000).map(|i| (i, Nanos(20))).collect::<Vec<_>>());
    assert_eq!(trace.trailer(Rank(0)).unwrap().calls, 1);
}

#[test]
fn what_a_killed_process_has_left_is_not_in_the_trace() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.trace");
    let left = folder.path().join(format!("t.trace.part{}", std::process::id()));
    std::fs::create_dir(&left).unwrap();
    std::fs::write(left.join("rank-00009.pct"), "half").unwrap();
    write(&path, &[Made::new()]);
    assert!(!path.join("rank-00009.pct").exists());
}
