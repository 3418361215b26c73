//! Messages that a rank has seen by a probe and not received yet: no cut that lies after the next event has them still to
//! be sent.
mod support;

use phasecast_analyzer::cuts_at_every_position;
use phasecast_trace::Rank;
use proptest::prelude::*;
use support::{Act, Folder, Program};

const ANSWER: i32 = 9;

fn receive(from: u32, tag: i32, bytes: u64) -> Act {
    Act::Recv(vec![(from, tag, bytes, false)])
}

/// Longer than the blocks in which events are read.
#[test]
fn a_cut_between_a_probe_and_the_receive_has_the_send_before_it() {
    let folder = Folder::new();
    for matched in [false, true] {
        let mut program = Program::new(2);
        for _ in 0..2100 {
            program.act(0, Act::Probe { from: 1, tag: 1, bytes: 8, matched });
            program.act(0, Act::Send { to: 1, tag: 2, bytes: 8 });
            program.act(0, Act::Send { to: 1, tag: 3, bytes: 8 });
            program.act(0, receive(1, 1, 8));
            program.act(1, Act::Send { to: 0, tag: 1, bytes: 8 });
            program.act(1, receive(0, 2, 8));
            program.act(1, receive(0, 3, 8));
        }
        let trace = program.write(&folder.path(&format!("{matched}.trace")), 100);
        let cuts = cuts_at_every_position(&trace, Rank(0)).expect("a whole trace");
        assert_eq!((cuts.len(), cuts.last()), (6301, Some(&vec![6300, 6300])));
        for cut in &cuts[..6300] {
            assert_eq!(cut[1], 3 * cut[0].div_ceil(3) - 2, "{cut:?}");
        }
    }
}

/// What one of two ranks does; what cannot be done is left out.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// Rank 1 sends with this tag and length.
    Send(i32, u64),
    /// Rank 0 probes for the first message with this tag that is there and not matched, and may match it.
    Probe(i32, bool),
    /// It receives that message.
    Receive(i32),
    /// It receives one of those that it has matched.
    Take(usize),
    /// It sends something else.
    Answer,
    /// Rank 1 receives that.
    Hear,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0i32..2, 1u64..3).prop_map(|(tag, bytes)| Step::Send(tag, bytes)),
        (0i32..2, any::<bool>()).prop_map(|(tag, matched)| Step::Probe(tag, matched)),
        (0i32..2).prop_map(Step::Receive),
        (0usize..4).prop_map(Step::Take),
        Just(Step::Answer),
        Just(Step::Hear),
    ]
}

/// A message with the events of its sender before it.
#[derive(Clone, Copy)]
struct Message {
    tag: i32,
    bytes: u64,
    at: usize,
}

/// A program of two ranks, and what it demands.
struct Made {
    program: Program,
    /// Of each rank's events, whether it is a receive.
    receives: [Vec<bool>; 2],
    /// A rank with more events than these before a cut demands that the other has more than those.
    demands: [Vec<(usize, usize)>; 2],
}

impl Made {
    /// With `mixed`, messages are received while others with the same tag are matched.
    fn new(steps: &[Step], mixed: bool) -> Made {
        let mut made = Made { program: Program::new(2), receives: Default::default(), demands: Default::default() };
        let (mut there, mut matched, mut answers) = (Vec::<Message>::new(), Vec::<Message>::new(), Vec::new());
        for &step in steps {
            let first = |tag: i32| there.iter().position(|message| message.tag == tag);
            match step {
                Step::Send(tag, bytes) => {
                    there.push(Message { tag, bytes, at: made.receives[1].len() });
                    made.event(1, Act::Send { to: 0, tag, bytes });
                }
                Step::Probe(tag, matches) => {
                    let Some(at) = first(tag) else { continue };
                    let message = there[at];
                    if matches {
                        matched.push(there.remove(at));
                    }
                    made.demand(0, message);
                    made.program.act(0, Act::Probe { from: 1, tag, bytes: message.bytes, matched: matches });
                }
                Step::Receive(tag) if mixed || matched.iter().all(|message| message.tag != tag) => {
                    let Some(at) = first(tag) else { continue };
                    made.receive(0, there.remove(at));
                }
                Step::Take(at) if !matched.is_empty() => made.receive(0, matched.remove(at % matched.len())),
                Step::Answer => {
                    answers.push(Message { tag: ANSWER, bytes: 0, at: made.receives[0].len() });
                    made.event(0, Act::Send { to: 1, tag: ANSWER, bytes: 0 });
                }
                Step::Hear if !answers.is_empty() => made.receive(1, answers.remove(0)),
                Step::Receive(_) | Step::Take(_) | Step::Hear => {}
            }
        }
        made
    }

    fn event(&mut self, rank: usize, act: Act) {
        self.receives[rank].push(matches!(act, Act::Recv(_)));
        self.program.act(rank as u32, act);
    }

    fn demand(&mut self, rank: usize, message: Message) {
        self.demands[rank].push((self.receives[rank].len(), message.at));
    }

    fn receive(&mut self, rank: usize, message: Message) {
        self.demand(rank, message);
        self.event(rank, receive(1 - rank as u32, message.tag, message.bytes));
    }

    /// The least cut at which rank 0 has at least so many events.
    fn least(&self, events: usize) -> [usize; 2] {
        let mut cut = [events, 0];
        loop {
            let before = cut;
            for rank in [0, 1] {
                let of = self.demands[rank].iter().filter(|(own, _)| *own < cut[rank]);
                cut[1 - rank] = of.map(|(_, other)| other + 1).fold(cut[1 - rank], usize::max);
            }
            for (events, receives) in cut.iter_mut().zip(&self.receives) {
                while *events > 0 && receives.get(*events - 1..=*events).is_some_and(|pair| pair == [true, true]) {
                    *events += 1;
                }
            }
            if cut == before {
                return cut;
            }
        }
    }

    /// Each cut with the least one.
    fn cuts(&self) -> Vec<([usize; 2], [usize; 2])> {
        let folder = Folder::new();
        let trace = self.program.write(&folder.path("t"), 100);
        let mut cuts = cuts_at_every_position(&trace, Rank(0)).expect("a whole trace");
        // The last is the end.
        cuts.pop();
        let both = |cut: Vec<u64>| {
            let cut = [cut[0] as usize, cut[1] as usize];
            (cut, self.least(cut[0]))
        };
        cuts.into_iter().map(both).collect()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn cuts_are_the_least_that_have_what_was_seen(steps in prop::collection::vec(step(), 1..60)) {
        for (cut, least) in Made::new(&steps, false).cuts() {
            prop_assert_eq!(cut, least);
        }
    }

    #[test]
    fn no_cut_is_moved_on_for_messages_that_were_not_seen(steps in prop::collection::vec(step(), 1..60)) {
        for (cut, least) in Made::new(&steps, true).cuts() {
            prop_assert!(cut[1] <= least[1], "{:?} beyond {:?}", cut, least);
        }
    }
}
