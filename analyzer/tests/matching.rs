//! Receives of one channel that complete in another order than they were posted in: their lengths tell which is which.
mod support;

use phasecast_analyzer::clock::{ClockKind, ticks};
use phasecast_analyzer::counted::Counted;
use phasecast_analyzer::cuts_at_every_position;
use phasecast_analyzer::parallel::Stage;
use phasecast_analyzer::source::with_feed;
use phasecast_analyzer::survey::survey;
use phasecast_trace::{Event, EventKind, Rank, Trace};
use std::collections::BTreeMap;
use support::{Act, Folder, Program};

const LONG: u64 = 100_000;
const SHORT: u64 = 8;

/// Rank 0 sends a long message and then, as it is asked for it, a short one; rank 1, which has posted receives for both,
/// completes that of the short one first. `recorded` is what the trace has of the length of what is received.
fn overtaking(turns: u64, recorded: impl Fn(u64) -> u64) -> Program {
    let mut program = Program::new(2);
    let receive = |from, tag, bytes| Act::Recv(vec![(from, tag, bytes, false)]);
    for _ in 0..turns {
        program.act(0, Act::Isend { to: 1, tag: 1, bytes: LONG });
        program.act(0, receive(1, 2, recorded(0)));
        program.act(0, Act::Send { to: 1, tag: 1, bytes: SHORT });
        program.act(0, receive(1, 3, recorded(4)));
        program.act(1, Act::Send { to: 0, tag: 2, bytes: 0 });
        program.act(1, receive(0, 1, recorded(SHORT)));
        program.act(1, Act::Send { to: 0, tag: 3, bytes: 4 });
        program.act(1, receive(0, 1, recorded(LONG)));
    }
    program
}

fn events(trace: &Trace) -> Vec<Vec<Event>> {
    let of = |rank| {
        let mut events = Vec::new();
        trace.for_each_event(rank, |event| events.push(event)).expect("a whole trace");
        events
    };
    trace.ranks().map(of).collect()
}

/// Whether a cut has a message before it that was received but not sent; lengths are told apart or not.
fn crosses_backwards(events: &[Vec<Event>], cut: &[u64], lengths: bool) -> bool {
    let mut ahead = BTreeMap::new();
    for (rank, (list, &end)) in events.iter().zip(cut).enumerate() {
        for event in &list[..end as usize] {
            let message = (event.channel(Rank(rank as u32)), if lengths { event.bytes } else { 0 });
            *ahead.entry(message).or_insert(0) += if event.kind == EventKind::Send { 1 } else { -1 };
        }
    }
    ahead.values().any(|&ahead| ahead < 0)
}

fn no_cut_is_crossed_backwards(program: &Program, lengths: bool) {
    let folder = Folder::new();
    let trace = program.write(&folder.path("a"), 100);
    let events = events(&trace);
    for pilot in trace.ranks() {
        let cuts = cuts_at_every_position(&trace, pilot).expect("a whole trace");
        assert!(cuts.len() > 12, "{cuts:?}");
        for cut in &cuts {
            assert!(!crosses_backwards(&events, cut, lengths), "pilot {pilot}: {cut:?} of {cuts:?}");
        }
    }
}

#[test]
fn no_message_crosses_a_cut_backwards_where_a_short_one_overtakes_a_long_one() {
    no_cut_is_crossed_backwards(&overtaking(6, |bytes| bytes), true);
}

#[test]
fn messages_received_with_other_lengths_are_matched_by_count() {
    no_cut_is_crossed_backwards(&overtaking(6, |_| 0), false);
}

#[test]
fn a_receive_is_one_after_the_send_of_its_length() {
    let folder = Folder::new();
    let trace = overtaking(6, |bytes| bytes).write(&folder.path("a"), 100);
    let quiet = |_: u64, _: u64| {};
    let stage = Stage::new(&quiet, 0, 1);
    let survey = survey(&trace, &Counted::All, 1, &stage).expect("a whole trace");
    let mut times: [BTreeMap<u64, Vec<u64>>; 2] = Default::default();
    with_feed(&trace, &Counted::All, trace.ranks(), 1, |feed| {
        ticks(&trace, &survey, feed, ClockKind::Pas2p, &stage, |tick| {
            for event in tick.events.iter().filter(|event| event.item.tag == 1) {
                times[event.item.kind as usize].entry(event.item.bytes).or_default().push(event.time);
            }
            Ok(())
        })
    })
    .expect("a whole trace");
    let [sent, received] = [EventKind::Send, EventKind::Recv].map(|kind| &times[kind as usize]);
    for bytes in [LONG, SHORT] {
        let after: Vec<u64> = sent[&bytes].iter().map(|time| time + 1).collect();
        assert_eq!((received[&bytes].len(), &received[&bytes]), (6, &after), "{bytes} bytes");
    }
}
