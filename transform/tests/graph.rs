//! The execution graph: its order against the transitive closure of what is drawn, and traces that leave things open.
#[path = "../../analyzer/tests/support/mod.rs"]
mod support;

use phasecast_trace::{Rank, Trace};
use phasecast_transform::graph::{Counts, EventId, Form, GraphError, Relation, Window, count, draw, relation};
use phasecast_transform::stability::{Effort, Names, Tape, compare};
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::Value;
use std::collections::{HashMap, HashSet, VecDeque};
use support::{Act, Folder, Program};

const RANKS: u32 = 3;

#[derive(Clone, Debug)]
enum Step {
    Send(u32, u32, i32),
    Receive(u32, Index),
    All,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        5 => (0..RANKS, 0..RANKS, 0..2i32).prop_map(|(from, to, tag)| Step::Send(from, to, tag)),
        5 => (0..RANKS, any::<Index>()).prop_map(|(rank, which)| Step::Receive(rank, which)),
        1 => Just(Step::All),
    ];
    prop::collection::vec(step, 0..24)
}

/// A program that can have run: messages are received after they are sent, in order.
fn valid(steps: &[Step]) -> Program {
    let mut program = Program::new(RANKS);
    let mut under_way: Vec<VecDeque<(u32, i32)>> = vec![VecDeque::new(); RANKS as usize];
    for step in steps {
        match step {
            Step::Send(from, to, tag) => {
                program.act(*from, Act::Send { to: *to, tag: *tag, bytes: 8 });
                under_way[*to as usize].push_back((*from, *tag));
            }
            Step::Receive(rank, which) => {
                let inbox = &mut under_way[*rank as usize];
                if !inbox.is_empty() {
                    let (from, tag) = inbox[which.index(inbox.len())];
                    let oldest = inbox.iter().position(|message| *message == (from, tag)).unwrap_or(0);
                    inbox.remove(oldest);
                    program.act(*rank, Act::Recv(vec![(from, tag, 8, false)]));
                }
            }
            Step::All => program.all(|_| Act::Collective { comm: 0, root: -1, bytes: 4 }),
        }
    }
    program
}

fn drawn(trace: &Trace, window: &Window) -> Value {
    let mut out = Vec::new();
    draw(trace, Form::Json, window, &mut out, &|_| {}).expect("it is whole");
    serde_json::from_slice(&out).expect("it is JSON")
}

fn all() -> Window {
    Window { events: 0..u64::MAX, ranks: Vec::new() }
}

/// What is before what, by the edges that are drawn.
struct Closure {
    before: HashSet<(String, String)>,
    joined: HashSet<(String, String)>,
}

impl Closure {
    fn of(graph: &Value) -> Closure {
        let text = |value: &Value| value.as_str().expect("a text").to_owned();
        let ids: Vec<String> = graph["events"].as_array().unwrap().iter().map(|e| text(&e["id"])).collect();
        let (mut next, mut joined) = (HashMap::<String, Vec<String>>::new(), HashSet::new());
        let mut program = HashMap::new();
        for edge in graph["edges"].as_array().unwrap().iter().filter(|e| e["kind"] != "collective") {
            next.entry(text(&edge["from"])).or_default().push(text(&edge["to"]));
            if edge["kind"] == "program" {
                program.insert(text(&edge["from"]), text(&edge["to"]));
            }
        }
        let previous: HashMap<String, String> = program.iter().map(|(a, b)| (b.clone(), a.clone())).collect();
        for edge in graph["edges"].as_array().unwrap().iter().filter(|e| e["kind"] == "collective") {
            let members: Vec<String> = edge["members"].as_array().unwrap().iter().map(text).collect();
            for one in &members {
                for other in members.iter().filter(|other| *other != one) {
                    joined.insert((one.clone(), other.clone()));
                    if let Some(before) = previous.get(one) {
                        next.entry(before.clone()).or_default().push(other.clone());
                    }
                    if let Some(after) = program.get(other) {
                        next.entry(one.clone()).or_default().push(after.clone());
                    }
                }
            }
        }
        let mut before = HashSet::new();
        for id in &ids {
            let mut open = next.get(id).cloned().unwrap_or_default();
            while let Some(later) = open.pop() {
                if before.insert((id.clone(), later.clone())) {
                    open.extend(next.get(&later).cloned().unwrap_or_default());
                }
            }
        }
        Closure { before, joined }
    }

    fn relation(&self, a: EventId, b: EventId) -> Relation {
        let (forth, back) = ((a.to_string(), b.to_string()), (b.to_string(), a.to_string()));
        if a == b {
            Relation::Same
        } else if self.before.contains(&forth) {
            Relation::Before
        } else if self.before.contains(&back) {
            Relation::After
        } else if self.joined.contains(&forth) {
            Relation::Joined
        } else {
            Relation::Concurrent
        }
    }
}

fn events(trace: &Trace) -> Vec<EventId> {
    let of = |rank: Rank| {
        let mut events = 0;
        trace.for_each_event(rank, |_| events += 1).expect("it is whole");
        (0..events).map(move |event| EventId { rank: rank.0, event })
    };
    trace.ranks().flat_map(of).collect()
}

fn check_counts(trace: &Trace, counts: &Counts) {
    assert_eq!(counts.events, events(trace).len() as u64);
    assert_eq!(counts.sends, counts.message_edges + counts.unmatched.sends);
    assert_eq!(counts.receives, counts.message_edges + counts.unmatched.receives);
    assert!(counts.longest_chain <= counts.events);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn two_events_are_ordered_as_the_edges_say(steps in steps()) {
        let folder = Folder::new();
        let trace = valid(&steps).write(&folder.path("t"), 10);
        let graph = drawn(&trace, &all());
        let closure = Closure::of(&graph);
        let ids = events(&trace);
        prop_assert_eq!(graph["events"].as_array().unwrap().len(), ids.len());
        for &a in &ids {
            for &b in &ids {
                prop_assert_eq!(relation(&trace, a, b, &|_| {}).unwrap(), closure.relation(a, b), "{} {}", a, b);
            }
            // It is an order: nothing is before itself.
            prop_assert!(!closure.before.contains(&(a.to_string(), a.to_string())));
        }
        let counts = count(&trace, &|_| {}).unwrap();
        check_counts(&trace, &counts);
        prop_assert_eq!(counts.unmatched.receives, 0);
    }

    /// Whatever ranks are said to have done, in whatever order: the walk ends, and counts everything.
    #[test]
    fn no_trace_is_too_odd(
        acts in prop::collection::vec((0..RANKS, 0u8..6, 0..RANKS, 0..2i32), 0..40),
        others in prop::collection::vec((0..RANKS, 0u8..6, 0..RANKS, 0..2i32), 0..40),
    ) {
        let folder = Folder::new();
        let write = |acts: &[(u32, u8, u32, i32)], name: &str| {
            let mut program = Program::new(RANKS);
            program.comms.push(vec![0, 2]);
            for &(rank, what, peer, tag) in acts {
                let comm = if rank == 1 { 0 } else { tag as u32 };
                program.act(rank, match what {
                    0 => Act::Send { to: peer, tag, bytes: 8 },
                    1 => Act::Recv(vec![(peer, tag, 8, true)]),
                    2 => Act::Recv(vec![(peer, tag, 8, false), (peer, 0, 8, true)]),
                    3 => Act::Start { comm },
                    4 => Act::Sendrecv { to: peer, from: (peer + 1) % RANKS, bytes: 8 },
                    _ => Act::Collective { comm, root: -1, bytes: 4 },
                });
            }
            program.write(&folder.path(name), 10)
        };
        let (one, other) = (write(&acts, "one"), write(&others, "other"));
        check_counts(&one, &count(&one, &|_| {}).unwrap());
        let graph = drawn(&one, &all());
        prop_assert_eq!(graph["events"].as_array().unwrap().len(), events(&one).len());
        for pair in events(&one).windows(2) {
            relation(&one, pair[0], pair[1], &|_| {}).unwrap();
        }
        let mut names = Names::default();
        let (a, b) = (Tape::read(&one, &mut names).unwrap(), Tape::read(&other, &mut names).unwrap());
        let found = compare(&names, &a, &b, Effort::default());
        prop_assert!(found.exact && found.similarity <= found.events);
        prop_assert_eq!(found.distance() == 0, found.changes.is_empty() && a.events() == b.events());
        prop_assert_eq!(compare(&names, &a, &a, Effort::default()).distance(), 0);
    }
}

/// Figure 2 of the seed, on both machines.
#[test]
fn the_orders_of_figure_2() {
    let folder = Folder::new();
    let machine = |first: u32, second: u32, name: &str| {
        let mut program = Program::new(RANKS);
        for from in [first, second] {
            program.act(from, Act::Send { to: 0, tag: 7, bytes: 4 });
        }
        for from in [first, second] {
            program.act(0, Act::Recv(vec![(from, 7, 4, true)]));
        }
        program.write(&folder.path(name), 10)
    };
    let id = |rank, event| EventId { rank, event };
    for (first, second) in [(1, 2), (2, 1)] {
        let trace = machine(first, second, &format!("m{first}"));
        let order = |a, b| relation(&trace, a, b, &|_| {}).unwrap();
        assert_eq!(order(id(first, 0), id(0, 0)), Relation::Before);
        assert_eq!(order(id(second, 0), id(0, 1)), Relation::Before);
        assert_eq!(order(id(0, 1), id(first, 0)), Relation::After);
        assert_eq!(order(id(0, 0), id(second, 0)), Relation::Concurrent);
        assert_eq!(order(id(0, 0), id(0, 1)), Relation::Before);
    }
    let (one, two) = (Trace::open(&folder.path("m1")).unwrap(), Trace::open(&folder.path("m2")).unwrap());
    let mut names = Names::default();
    let (a, b) = (Tape::read(&one, &mut names).unwrap(), Tape::read(&two, &mut names).unwrap());
    let found = compare(&names, &a, &b, Effort::default());
    assert_eq!((found.events, found.similarity, found.confined), (4, 3, true));
    assert_eq!(found.changes.values().map(|change| change.changed).collect::<Vec<_>>(), [2]);
    assert!(found.changes.keys().all(|place| names.places.get(*place).is_some_and(|place| place.wildcard)));
}

#[test]
fn collectives_that_do_not_block_are_known_by_their_names() {
    let mut names = Names::default();
    let begin_only = ["MPI_Iallreduce", "MPI_Start", "MPI_Startall", "MPI_Comm_idup", "MPI_File_iwrite_all"];
    let complete = ["MPI_Allreduce", "MPI_Comm_dup", "MPI_File_write_all", "PVM_barrier"];
    for (name, blocks) in begin_only.map(|name| (name, false)).into_iter().chain(complete.map(|name| (name, true))) {
        let procedure = names.procedures.of(&name.to_owned());
        assert_eq!(names.blocks(procedure), blocks, "{name}");
    }
}

#[test]
fn what_a_run_has_more_of_is_told_of_how_many() {
    let folder = Folder::new();
    let mut names = Names::default();
    let mut tape = |messages: usize| {
        let mut program = Program::new(RANKS);
        for _ in 0..messages {
            program.act(1, Act::Send { to: 0, tag: 7, bytes: 4 });
            program.act(0, Act::Recv(vec![(1, 7, 4, true)]));
        }
        let trace = program.write(&folder.path(&format!("of{messages}")), 10);
        Tape::read(&trace, &mut names).unwrap()
    };
    let (three, five) = (tape(3), tape(5));
    for (a, b, events) in [(&three, &five, 3), (&five, &three, 5)] {
        let found = compare(&names, a, b, Effort::default());
        let told = found.changes.values().map(|change| (change.changed, change.events)).collect::<Vec<_>>();
        assert_eq!(told, [(2, events); 2], "of the sends and of the receives");
    }
}

/// Rank 1 completes the receive of the second message first; of a third one the length does not agree.
#[test]
fn messages_are_told_apart_by_their_lengths() {
    let folder = Folder::new();
    let mut program = Program::new(RANKS);
    for bytes in [100, 200, 300] {
        program.act(0, Act::Send { to: 1, tag: 7, bytes });
    }
    for bytes in [200, 100, 8] {
        program.act(1, Act::Recv(vec![(0, 7, bytes, false)]));
    }
    let trace = program.write(&folder.path("t"), 10);
    let id = |rank, event| EventId { rank, event };
    let order = |a, b| relation(&trace, a, b, &|_| {}).unwrap();
    assert_eq!(order(id(0, 1), id(1, 0)), Relation::Before);
    assert_eq!((order(id(0, 2), id(1, 1)), order(id(0, 2), id(1, 2))), (Relation::Concurrent, Relation::Before));
    assert_eq!(count(&trace, &|_| {}).unwrap().unmatched.receives, 0);
}

#[test]
fn a_window_is_a_part_of_the_whole() {
    let folder = Folder::new();
    let mut program = Program::new(RANKS);
    for _ in 0..20 {
        program.all(|rank| Act::Sendrecv { to: (rank + 1) % RANKS, from: (rank + 2) % RANKS, bytes: 8 });
        program.all(|_| Act::Collective { comm: 0, root: -1, bytes: 4 });
    }
    let trace = program.write(&folder.path("t"), 10);
    let whole = drawn(&trace, &all());
    let part = drawn(&trace, &Window { events: 10..20, ranks: vec![0, 2] });
    assert_eq!(part["events"].as_array().unwrap().len(), 20);
    let inside = |edge: &Value| {
        ["from", "to"].iter().all(|end| {
            let id: EventId = edge[end].as_str().unwrap().parse().unwrap();
            (10..20).contains(&id.event) && id.rank != 1
        })
    };
    let edges = |graph: &Value| graph["edges"].as_array().unwrap().clone();
    let expected: Vec<Value> = edges(&whole).into_iter().filter(|e| e["kind"] != "collective" && inside(e)).collect();
    let found: Vec<Value> = edges(&part).into_iter().filter(|e| e["kind"] != "collective").collect();
    assert_eq!(found, expected);
    let mut dot = Vec::new();
    let drawn = draw(&trace, Form::Dot, &all(), &mut dot, &|_| {}).unwrap();
    let dot = String::from_utf8(dot).unwrap();
    assert_eq!((drawn.events, drawn.more), (180, false));
    assert_eq!(dot.matches("->").count(), edges(&whole).len() - 20 + 3 * 20);
    assert_eq!(dot.matches('{').count(), dot.matches('}').count());
}

#[test]
fn events_that_are_not_there_are_named() {
    let folder = Folder::new();
    let trace = valid(&[Step::Send(0, 1, 0)]).write(&folder.path("t"), 10);
    for id in [EventId { rank: 0, event: 1 }, EventId { rank: 9, event: 0 }] {
        let error = relation(&trace, EventId { rank: 0, event: 0 }, id, &|_| {}).unwrap_err();
        assert!(matches!(error, GraphError::Missing { .. }) && error.is_input(), "{error}");
    }
    assert!("1".parse::<EventId>().is_err() && "a:b".parse::<EventId>().is_err());
    assert_eq!("3:14".parse(), Ok(EventId { rank: 3, event: 14 }));
}
