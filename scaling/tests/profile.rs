//! The execution profile: laws on made traces.
use phasecast_scaling::profile::{Busy, Part, Profile, Settings, Step, for_each_step};
use phasecast_scaling::smooth::Smoothing;
use phasecast_trace::model::{CommDef, Ending, PEER_NONE, TAG_NONE, Trailer};
use phasecast_trace::writer::{TraceWriter, made_header};
use phasecast_trace::{Call, Class, CommId, Flags, Nanos, ProcId, Rank, Trace, TraceError};
use proptest::prelude::*;
use std::path::Path;

/// A call of a rank: thread, computation before it, time in it, whether it is a nonblocking send.
type Made = (u16, u64, u64, bool);

fn write(path: &Path, ranks: &[Vec<Made>]) {
    let writer = TraceWriter::create(path).expect("a folder");
    for (rank, calls) in (0u32..).zip(ranks) {
        let header = made_header(Rank(rank), ranks.len() as u32, "made", &["MPI_Isend", "MPI_Wait"]);
        let mut out = writer.rank(&header).expect("a file");
        out.comms(&[CommDef { local: 0, members: (0..ranks.len() as u32).collect(), remote: vec![] }]).expect("comms");
        // Threads run beside each other; the calls of each come in order, and all in the order of their exits.
        let mut clocks = [0u64; 2];
        let mut timed: Vec<(u64, u64, &Made)> = calls
            .iter()
            .map(|made| {
                let clock = &mut clocks[usize::from(made.0)];
                let enter = *clock + made.1;
                *clock = enter + made.2;
                (enter, *clock, made)
            })
            .collect();
        timed.sort_by_key(|call| call.1);
        for (enter, exit, made) in &timed {
            let call = Call {
                proc: ProcId(u16::from(!made.3)),
                class: if made.3 { Class::Send } else { Class::Complete },
                flags: if made.3 { Flags::NONBLOCKING } else { Flags::default() },
                thread: made.0,
                peer: PEER_NONE,
                tag: TAG_NONE,
                bytes: 0,
                comm: CommId(0),
                site: 0,
                enter: Nanos(*enter),
                exit: Nanos(*exit),
            };
            out.push(&call, &[]).expect("a call");
        }
        let end_units = timed.last().map_or(0, |call| call.1) + 50;
        out.finish(Trailer { ending: Ending::Finalized, calls: 0, end_units, own_ns: 0, modules: vec![] })
            .expect("an end");
    }
    writer.finish().expect("a trace");
}

/// Busy time of a rank in ns by brute force: every nanosecond that is in no call.
fn busy(trace: &Trace, rank: Rank, all: bool) -> u128 {
    let (start, end) = trace.span(rank);
    let mut idle = vec![false; (end.0 - start.0) as usize];
    let mut calls = trace.calls(rank);
    while let Some(call) = calls.next_call().expect("a call") {
        if all || call.call.class != Class::Send {
            idle[call.call.enter.0 as usize..call.call.exit.0 as usize].fill(true);
        }
    }
    idle.iter().filter(|idle| !**idle).count() as u128
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn the_integral_is_the_busy_time_of_all_ranks(
        ranks in prop::collection::vec(prop::collection::vec((0u16..2, 0u64..40, 0u64..40, any::<bool>()), 0..30), 1..5),
        threads in 1usize..3, points in 1usize..60
    ) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("made.trace");
        write(&path, &ranks);
        let trace = Trace::open(&path).expect("a trace");
        for (kind, all) in [(Busy::Computing, true), (Busy::Unblocked, false)] {
            let settings = Settings { busy: kind, part: Part::Whole, points, threads };
            let profile = Profile::of(&trace, &settings, &|_, _| {}).expect("a profile");
            let sum: u128 = trace.ranks().map(|rank| busy(&trace, rank, all)).sum();
            prop_assert_eq!(profile.busy_ns(), sum);
            prop_assert_eq!(profile.series.points.iter().map(|p| p.busy_ns).sum::<u128>(), sum);
            prop_assert_eq!(profile.levels_ns.iter().sum::<u64>(), profile.length_ns);
            prop_assert_eq!(profile.series.points.iter().map(|p| p.length_ns).sum::<u64>(), profile.length_ns);
            // Steps tile the run and differ from their neighbours.
            let mut steps: Vec<Step> = Vec::new();
            for_each_step(&trace, &settings, |step| { steps.push(step); Ok::<(), TraceError>(()) }).expect("steps");
            prop_assert!(steps.windows(2).all(|w| w[0].end_ns == w[1].start_ns && w[0].busy != w[1].busy));
            prop_assert_eq!(steps.last().map_or(0, |s| s.end_ns) - steps.first().map_or(0, |s| s.start_ns), profile.length_ns);
        }
    }

    #[test]
    fn smoothing_is_read_or_refused(text in "[a-z]{0,8}(:[0-9a-z.]{0,5}){0,3}(\\+[a-z:0-9]{0,9})?", values in prop::collection::vec(0.0..9.0, 0..40)) {
        if let Ok(smoothing) = text.parse::<Smoothing>() {
            prop_assert_eq!(smoothing.apply(&values).len(), values.len());
            prop_assert_eq!(smoothing.to_string().parse::<Smoothing>(), Ok(smoothing));
        }
    }
}

#[test]
fn every_family_is_read_as_it_is_written() {
    for text in
        ["none", "line:11", "moving:3:11", "round:0.5", "segments:105:0", "squares:auto:2", "moving:3:11+round:1"]
    {
        let smoothing: Smoothing = text.parse().expect(text);
        assert_eq!(smoothing.to_string(), text);
        assert_eq!(smoothing.apply(&[1.0; 30]).len(), 30);
    }
    for text in
        ["line:10", "moving:11:11", "moving:12:99", "round:0", "round:x", "segments:0", "squares", "median:3", ""]
    {
        assert!(text.parse::<Smoothing>().is_err(), "{text}");
    }
}
