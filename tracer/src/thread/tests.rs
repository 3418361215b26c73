//! What is recorded is what a reader sees.
use super::*;
use crate::record::Call;
use phasecast_abi::Abi;
use phasecast_trace::model::{CommDef, PartKind};
use phasecast_trace::units::Rank;
use phasecast_trace::writer::made_header;
use phasecast_trace::{Trace, codec};
use proptest::prelude::*;

/// A recorder of a made trace in `folder`.
pub(crate) fn recorder(folder: &std::path::Path) -> (Thread, &'static Sink) {
    let sink: &'static Sink = Box::leak(Box::new(Sink::create(folder, 0).expect("made")));
    let mut header = made_header(Rank(0), 4, "made", &["MPI_Send", "MPI_Waitall"]);
    // Later than any calibration in a frame: units stay nanoseconds.
    header.clock.later = (u64::MAX, u64::MAX);
    let defs = [CommDef { local: 0, members: vec![0, 1, 2, 3], remote: vec![] }];
    assert!(sink.append(&Frame::new(Kind::Header).with_payload(&codec::to_bytes(&header), None), || ()));
    assert!(sink.append(&Frame::new(Kind::Comms).with_payload(&codec::to_bytes(&defs.as_slice()), None), || ()));
    let tail = sink.map_tail(0).expect("mapped");
    (Thread::new(Abi::Mpich.layout(), sink, 0, tail, 0), sink)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    /// Whatever is recorded is what a reader sees, with the process gone at any moment.
    #[test]
    fn the_reader_sees_what_was_recorded(
        calls in prop::collection::vec((0u64..50, 0u64..2000, 0i32..4, any::<i16>(), 0u64..3, 0usize..1300), 1..60),
        repeat in 1usize..400,
    ) {
        let folder = tempfile::tempdir().expect("a folder");
        let (mut thread, _sink) = recorder(folder.path());
        let mut clock = 0;
        let mut expected = Vec::new();
        for round in 0..repeat {
            for &(gap, length, peer, tag, bytes, parts) in &calls {
                let parts = if round % 50 == 0 { parts } else { parts % 3 };
                let (enter, exit) = (clock + gap, clock + gap + length);
                clock = exit;
                let role = if parts > 0 { 3 } else { 0 };
                let shape = Shape { peer, tag: tag.into(), bytes: bytes << 20, site: 9, comm: 0, proc: 0, flags: 0, role };
                let part = Shape { site: 0, role: phasecast_trace::encode::PART | PartKind::Recv as u8, ..shape };
                thread.put_parts(enter, exit, &shape, &vec![part; parts]);
                expected.push((enter, exit, peer, i32::from(tag), bytes << 20, parts));
            }
        }
        prop_assert_eq!(thread.totals().0, expected.len() as u64);
        let trace = Trace::open(folder.path()).expect("it opens");
        let mut reader = trace.calls(Rank(0));
        let mut seen: Vec<(u64, u64, i32, i32, u64, usize)> = Vec::new();
        while let Some(call) = reader.next_call().expect("whole") {
            prop_assert!(call.parts.iter().all(|p| p.peer == call.call.peer && p.tag == call.call.tag));
            if call.call.flags.has(Flags::CONTINUED) {
                seen.last_mut().expect("a call before").5 += call.parts.len();
            } else {
                let c = call.call;
                seen.push((c.enter.0, c.exit.0, c.peer, c.tag, c.bytes, call.parts.len()));
            }
        }
        prop_assert!(seen == expected, "{} calls of {}", seen.len(), expected.len());
    }
}

#[test]
fn calibration_leaves_nothing_behind() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut thread, _sink) = recorder(folder.path());
    assert!(thread.calibrate() > 0.0);
    assert_eq!(thread.totals().0, 0);
    let shape = Shape { peer: 1, tag: 2, bytes: 3, site: 4, comm: 0, proc: 1, flags: 0, role: 0 };
    let call = Call { plan: &crate::plan::PLANS[0], site: 4, enter: 5, exit: 6 };
    thread.put(call.enter, call.exit, &shape, &[]);
    let trace = Trace::open(folder.path()).expect("it opens");
    let mut calls = 0;
    trace.for_each_event(Rank(0), |event| calls += u32::from(event.tag == 2)).expect("whole");
    assert_eq!(calls, 1);
}
