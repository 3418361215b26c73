//! The laws of the analysis on random programs: random sends, wildcards, collectives on sub-communicators, receives
//! completed in any order.
mod support;
use phasecast_analyzer::clock::{ClockKind, ticks};
use phasecast_analyzer::counted::Counted;
use phasecast_analyzer::parallel::Stage;
use phasecast_analyzer::source::with_feed;
use phasecast_analyzer::survey::survey;
use phasecast_analyzer::{Analysis, Method, Settings, analyze};
use phasecast_trace::{Event, EventKind, Rank, Trace};
use proptest::prelude::*;
use std::collections::{HashMap, HashSet, VecDeque};
use support::{Act, Folder, Program};

/// A receive or a send, by its rank and its index among the rank's events.
type At = (usize, usize);

/// Receives (rank; source, tag, bytes, wildcard) that are still to come.
type Late = Vec<(u32, (u32, i32, u64, bool))>;

/// One step of a random program; ranks are taken modulo their number.
#[derive(Clone, Debug)]
enum Step {
    Work(u32, u64),
    Message { from: u32, to: u32, tag: i32, bytes: u64, wildcard: bool, late: bool },
    Burst { to: u32, bytes: u64, reverse: bool },
    Shift { bytes: u64 },
    Collective { comm: usize, root: bool, bytes: u64 },
    Start { comm: usize },
}

fn step() -> impl Strategy<Value = Step> {
    let bytes = prop_oneof![Just(8u64), 0u64..3000, Just(1_000_000)];
    prop_oneof![
        (0u32..5, 0u64..100_000).prop_map(|(rank, ns)| Step::Work(rank, ns)),
        (0u32..5, 0u32..5, 0i32..3, bytes.clone(), any::<bool>(), any::<bool>())
            .prop_map(|(from, to, tag, bytes, wildcard, late)| Step::Message { from, to, tag, bytes, wildcard, late }),
        (0u32..5, bytes.clone(), any::<bool>()).prop_map(|(to, bytes, reverse)| Step::Burst { to, bytes, reverse }),
        bytes.clone().prop_map(|bytes| Step::Shift { bytes }),
        (0usize..3, any::<bool>(), bytes).prop_map(|(comm, root, bytes)| Step::Collective { comm, root, bytes }),
        (0usize..3).prop_map(|comm| Step::Start { comm }),
    ]
}

/// A program in which steps come in loops; what is received late is received when the loop's body ends.
fn program() -> impl Strategy<Value = Program> {
    let body = proptest::collection::vec(step(), 1..8);
    let parts = proptest::collection::vec((body, 1usize..12), 1..6);
    (2u32..6, parts).prop_map(|(ranks, parts)| {
        let mut program = Program::new(ranks);
        program.comms.push((0..ranks).step_by(2).collect());
        program.comms.push((0..ranks.div_ceil(2)).rev().collect());
        for (body, times) in parts {
            for turn in 0..times {
                let mut late = Late::new();
                for step in &body {
                    perform(&mut program, step, turn as u64, &mut late);
                }
                for rank in 0..ranks {
                    let mine: Vec<_> = late.iter().filter(|l| l.0 == rank).map(|l| l.1).collect();
                    if !mine.is_empty() {
                        program.act(rank, Act::Recv(mine));
                    }
                }
            }
        }
        program
    })
}

/// What workers give away in a step, to ranks that they never hear of again.
#[derive(Clone, Debug)]
enum Gift {
    Alone { from: u32, to: u32, wildcard: bool },
    Together { to: u32 },
    Passed,
    Agreed,
}

fn gift() -> impl Strategy<Value = Gift> {
    prop_oneof![
        (0u32..2, 2u32..4, any::<bool>()).prop_map(|(from, to, wildcard)| Gift::Alone { from, to, wildcard }),
        (2u32..4).prop_map(|to| Gift::Together { to }),
        Just(Gift::Passed),
        Just(Gift::Agreed),
    ]
}

/// Two workers that compute together, and two sinks; how many steps there are.
fn program_with_sinks() -> impl Strategy<Value = (Program, u64)> {
    (proptest::collection::vec(gift(), 1..6), 40u64..80).prop_map(|(gifts, steps)| {
        let mut program = Program::new(4);
        program.comms.push(vec![0, 1]);
        program.comms.push(vec![2, 3]);
        for _ in 0..steps {
            for worker in [0, 1] {
                program.act(worker, Act::Work(100_000));
                program.act(worker, Act::Collective { comm: 1, root: -1, bytes: 8 });
            }
            for gift in &gifts {
                match *gift {
                    Gift::Alone { from, to, wildcard } => {
                        program.act(from, Act::Send { to, tag: 1, bytes: 800 });
                        program.act(to, Act::Recv(vec![(from, 1, 800, wildcard)]));
                    }
                    Gift::Together { to } => {
                        [0, 1].iter().for_each(|&from| program.act(from, Act::Isend { to, tag: 2, bytes: 8 }));
                        program.act(to, Act::Recv(vec![(1, 2, 8, false), (0, 2, 8, false)]));
                    }
                    Gift::Passed => {
                        program.act(2, Act::Send { to: 3, tag: 3, bytes: 80 });
                        program.act(3, Act::Recv(vec![(2, 3, 80, false)]));
                    }
                    Gift::Agreed => {
                        [2, 3].iter().for_each(|&r| program.act(r, Act::Collective { comm: 2, root: -1, bytes: 8 }));
                    }
                }
            }
        }
        program.all(|_| Act::Collective { comm: 0, root: -1, bytes: 0 });
        (program, steps)
    })
}

fn perform(program: &mut Program, step: &Step, turn: u64, late: &mut Late) {
    let ranks = program.ranks();
    match step {
        Step::Work(rank, ns) => program.act(rank % ranks, Act::Work(ns + turn * 13 % 7)),
        Step::Message { from, to, tag, bytes, wildcard, late: is_late } => {
            let (from, to) = (from % ranks, to % ranks);
            if from == to {
                return;
            }
            // Late messages have tags of their own, so that they are not overtaken.
            let tag = if *is_late { tag + 10 } else { *tag };
            program.act(from, Act::Isend { to, tag, bytes: *bytes });
            match is_late {
                true => late.push((to, (from, tag, *bytes, *wildcard))),
                false => program.act(to, Act::Recv(vec![(from, tag, *bytes, *wildcard)])),
            }
        }
        Step::Burst { to, bytes, reverse } => {
            let to = to % ranks;
            let mut parts: Vec<(u32, i32, u64, bool)> =
                (0..ranks).filter(|&r| r != to).map(|from| (from, 5, *bytes, true)).collect();
            for part in &parts {
                program.act(part.0, Act::Send { to, tag: 5, bytes: *bytes });
            }
            if *reverse {
                parts.reverse();
            }
            program.act(to, Act::Recv(parts));
        }
        Step::Shift { bytes } => {
            program.all(|r| Act::Sendrecv { to: (r + 1) % ranks, from: (r + ranks - 1) % ranks, bytes: *bytes });
        }
        Step::Collective { comm, root, bytes } => {
            let members = program.comms[*comm].clone();
            let root = if *root { members[0] as i32 } else { -1 };
            members.iter().for_each(|&r| program.act(r, Act::Collective { comm: *comm as u32, root, bytes: *bytes }));
        }
        Step::Start { comm } => {
            for rank in program.comms[*comm].clone() {
                program.act(rank, Act::Start { comm: *comm as u32 });
            }
        }
    }
}

fn events(trace: &Trace) -> Vec<Vec<Event>> {
    trace
        .ranks()
        .map(|rank| {
            let mut events = Vec::new();
            trace.for_each_event(rank, |e| events.push(e)).unwrap();
            events
        })
        .collect()
}

/// For each receive (rank, index), its send, matched the plain way.
fn matches(events: &[Vec<Event>]) -> HashMap<At, At> {
    let mut sent: HashMap<_, VecDeque<(usize, usize)>> = HashMap::new();
    for (rank, list) in events.iter().enumerate() {
        for (index, event) in list.iter().enumerate().filter(|(_, e)| e.kind == EventKind::Send) {
            sent.entry(event.channel(Rank(rank as u32)).unwrap()).or_default().push_back((rank, index));
        }
    }
    let mut found = HashMap::new();
    for (rank, list) in events.iter().enumerate() {
        for (index, event) in list.iter().enumerate().filter(|(_, e)| e.kind == EventKind::Recv) {
            let queue = sent.get_mut(&event.channel(Rank(rank as u32)).unwrap()).unwrap();
            found.insert((rank, index), queue.pop_front().unwrap());
        }
    }
    found
}

fn run(trace: &Trace, method: Method, threads: usize) -> Analysis {
    let settings = Settings { method, threads, relevance: 0.001, ..Settings::default() };
    analyze(std::slice::from_ref(trace), &settings, &|_, _| {}).unwrap()
}

/// Time is conserved and pieces tile the run, to the ns.
fn tiles(trace: &Trace, analysis: &Analysis, events: &[Vec<Event>]) {
    for rank in trace.ranks() {
        let (start, end) = trace.span(rank);
        let pieces = &analysis.pieces[rank.index()];
        assert_eq!(pieces.iter().map(|p| p.time.0).sum::<u64>(), end.0 - start.0, "rank {rank}");
        assert!(pieces.is_sorted_by_key(|p| p.end));
        let list = &events[rank.index()];
        let mut before = start.0;
        for (at, piece) in pieces.iter().enumerate() {
            let last = at + 1 == pieces.len();
            let exit = match piece.end {
                _ if last => end.0,
                0 => start.0,
                n => list[n as usize - 1].exit.0,
            };
            assert_eq!(piece.time.0, exit - before, "rank {rank} piece {at}");
            before = exit;
        }
        assert_eq!(pieces.last().unwrap().end, list.len() as u64);
    }
    let weights: u64 = analysis.phases.iter().map(|p| p.weight).sum();
    if analysis.method == Method::Marker {
        assert!(analysis.pieces.iter().all(|p| p.len() as u64 == weights));
    }
    for phase in &analysis.phases {
        assert!(phase.planned.iter().all(|&k| k < phase.weight) && phase.planned.is_sorted());
    }
}

/// No message is received before a cut and sent after it, no collective passed by some only, no call cut in two.
fn consistent(analysis: &Analysis, events: &[Vec<Event>], matches: &HashMap<At, At>) {
    for at in 0..analysis.pieces[0].len() {
        let cut: Vec<usize> = analysis.pieces.iter().map(|p| p[at].end as usize).collect();
        let mut passed: HashMap<(u32, u64), HashSet<usize>> = HashMap::new();
        for (rank, &position) in cut.iter().enumerate() {
            let list = &events[rank];
            let mut sequence: HashMap<u32, u64> = HashMap::new();
            for (index, event) in list[..position].iter().enumerate() {
                if let Some(&(source, send)) = matches.get(&(rank, index)) {
                    assert!(send < cut[source], "cut {at}: a message is received before it is sent");
                }
                if event.kind == EventKind::Collective {
                    let n = sequence.entry(event.comm.0).or_default();
                    *n += 1;
                    passed.entry((event.comm.0, *n)).or_default().insert(rank);
                }
            }
            let whole = position == 0 || position == list.len() || list[position - 1].enter != list[position].enter;
            assert!(whole, "cut {at} lies within a call of rank {rank}");
        }
        for ((comm, n), ranks) in passed {
            let of_comm =
                |list: &[Event]| list.iter().filter(|e| e.kind == EventKind::Collective && e.comm.0 == comm).count();
            let members = events.iter().filter(|list| of_comm(list) > 0).count();
            assert_eq!(ranks.len(), members, "cut {at}: collective {n} of communicator {comm} is cut");
        }
    }
}

fn clock(trace: &Trace, kind: ClockKind) -> Vec<Vec<(u64, u64)>> {
    let quiet = |_: u64, _: u64| {};
    let stage = Stage::new(&quiet, 0, 1);
    let survey = survey(trace, &Counted::All, 1, &stage).unwrap();
    let mut placed: Vec<Vec<(u64, u64)>> = survey.events.iter().map(|&n| vec![(u64::MAX, 0); n as usize]).collect();
    let (mut next, mut before) = (0, 0);
    with_feed(trace, &Counted::All, trace.ranks(), 2, |feed| {
        ticks(trace, &survey, feed, kind, &stage, |tick| {
            assert_eq!(tick.tick, next, "ticks have no gaps");
            next += 1;
            assert!(!tick.events.is_empty());
            let ranks: HashSet<u32> = tick.events.iter().map(|e| e.rank).collect();
            assert_eq!(ranks.len(), tick.events.len(), "one event per rank and tick");
            for event in tick.events {
                assert!(event.time >= before, "ticks follow logical time");
                before = event.time;
                placed[event.rank as usize][event.index as usize] = (event.time, tick.tick);
            }
            Ok(())
        })
    })
    .unwrap();
    assert!(placed.iter().flatten().all(|&(time, _)| time != u64::MAX), "every event has a tick");
    placed
}

/// The analysis of a program by markers, of which time and cuts are as they must be, with its trace and, for each receive,
/// its send.
fn lawful(program: &Program, folder: &Folder) -> (Analysis, Trace, HashMap<At, At>) {
    let trace = program.write(&folder.path("t"), 10_000);
    let events = events(&trace);
    let matches = matches(&events);
    let analysis = run(&trace, Method::Marker, 1);
    tiles(&trace, &analysis, &events);
    consistent(&analysis, &events, &matches);
    (analysis, trace, matches)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn time_is_conserved_and_cuts_are_consistent(program in program()) {
        let folder = Folder::new();
        let (marker, trace, _) = lawful(&program, &folder);
        prop_assert_eq!(marker.unmatched_sends + marker.unmatched_receives, 0);
        let pbb = run(&trace, Method::Pbb, 1);
        tiles(&trace, &pbb, &events(&trace));
    }

    #[test]
    fn sinks_follow_what_is_sent_to_them((program, steps) in program_with_sinks()) {
        let folder = Folder::new();
        let (analysis, _, matches) = lawful(&program, &folder);
        for at in 0..analysis.pieces[0].len() - 1 {
            let cut: Vec<usize> = analysis.pieces.iter().map(|pieces| pieces[at].end as usize).collect();
            let given = matches.iter().filter(|(_, send)| send.0 < 2 && send.1 < cut[send.0]);
            let late = given.filter(|(receive, _)| receive.1 >= cut[receive.0]).count();
            // Of two steps at most, of which each has five times two messages at most.
            prop_assert!(late <= 20, "{late} messages under way at cut {at} of {steps} steps");
        }
    }

    #[test]
    fn each_receive_is_one_after_its_send(program in program()) {
        let folder = Folder::new();
        let trace = program.write(&folder.path("t"), 10_000);
        let events = events(&trace);
        let pas2p = clock(&trace, ClockKind::Pas2p);
        let lamport = clock(&trace, ClockKind::Lamport);
        for (receive, send) in matches(&events) {
            prop_assert_eq!(pas2p[receive.0][receive.1].0, pas2p[send.0][send.1].0 + 1);
            prop_assert!(lamport[receive.0][receive.1].0 > lamport[send.0][send.1].0);
        }
        for placed in [&pas2p, &lamport] {
            let mut meetings: HashMap<(u32, u64), HashSet<(u64, u64)>> = HashMap::new();
            for (rank, list) in events.iter().enumerate() {
                let mut sequence: HashMap<u32, u64> = HashMap::new();
                for (index, event) in list.iter().enumerate().filter(|(_, e)| e.kind == EventKind::Collective) {
                    let n = sequence.entry(event.comm.0).or_default();
                    *n += 1;
                    meetings.entry((event.comm.0, *n)).or_default().insert(placed[rank][index]);
                }
            }
            prop_assert!(meetings.values().all(|places| places.len() == 1), "a collective is one tick of all its members");
        }
    }

    #[test]
    fn threads_do_not_show(program in program()) {
        let folder = Folder::new();
        let trace = program.write(&folder.path("t"), 10_000);
        for method in [Method::Marker, Method::Pbb] {
            let bytes = [1, 3].map(|threads| {
                let file = folder.path(&format!("{method:?}{threads}"));
                run(&trace, method, threads).save(&file).unwrap();
                std::fs::read(file).unwrap()
            });
            prop_assert!(bytes[0] == bytes[1]);
        }
    }
}
