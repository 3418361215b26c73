//! The distance of execution graphs: laws of a metric, and that the approximations keep to their side of the exact one
//! (seed 000, section 3.2.3 and 3.2.4).
use phasecast_trace::EventKind;
use phasecast_transform::stability::exact::{Graph, distance, similarity};
use phasecast_transform::stability::regions::Ends;
use phasecast_transform::stability::tape::Track;
use phasecast_transform::stability::{Effort, Names, Symbol, Tape, by_regions, compare};
use proptest::prelude::*;

/// Vertices in an order in which they may happen: task and symbol; and edges of messages between them.
#[derive(Clone, Debug)]
struct Made {
    vertices: Vec<(u32, u32)>,
    messages: Vec<(usize, usize)>,
}

fn made(most: usize, tasks: u32, symbols: u32) -> impl Strategy<Value = Made> {
    let vertices = prop::collection::vec((0..tasks, 0..symbols), 0..=most);
    let messages = prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 0..6);
    (vertices, messages).prop_map(|(vertices, messages)| {
        let n = vertices.len();
        let ends = messages.iter().filter(|_| n > 1).map(|(a, b)| (a.index(n), b.index(n)));
        let messages = ends.filter(|(a, b)| a != b).map(|(a, b)| (a.min(b), a.max(b))).collect();
        Made { vertices, messages }
    })
}

impl Made {
    fn tape(&self) -> Tape {
        let mut tape = Tape::default();
        for (number, &(task, symbol)) in self.vertices.iter().enumerate() {
            let track: &mut Track = tape.tracks.entry((task, 0)).or_default();
            track.symbols.push(symbol);
            track.places.push(0);
            track.numbers.push(number as u32);
        }
        tape
    }

    fn graph(&self) -> Graph {
        let labels = self.vertices.iter().map(|&(task, symbol)| u64::from(task) << 32 | u64::from(symbol)).collect();
        let mut edges = self.messages.clone();
        for (at, vertex) in self.vertices.iter().enumerate() {
            edges.extend(self.vertices[..at].iter().rposition(|other| other.0 == vertex.0).map(|before| (before, at)));
        }
        Graph::new(labels, &edges).expect("a schedule has no circle")
    }
}

/// n, and the distance by the longest common subsequences of tasks.
fn by_tasks(a: &Made, b: &Made) -> (u64, u64) {
    let found = compare(&Names::default(), &a.tape(), &b.tape(), Effort::default());
    assert!(found.exact);
    (found.events, found.distance())
}

fn searched(a: &Made, b: &Made) -> u64 {
    distance(&a.graph(), &b.graph(), by_tasks(a, b).0, u64::MAX).expect("as many steps as it takes")
}

/// The largest common induced subgraph by trying all mappings.
fn naive(a: &Made, b: &Made) -> usize {
    fn from(a: (&Made, &Graph), b: (&Made, &Graph), at: usize, mapped: &mut Vec<(usize, usize)>) -> usize {
        if at == a.0.vertices.len() {
            return mapped.len();
        }
        let mut best = from(a, b, at + 1, mapped);
        for image in 0..b.0.vertices.len() {
            let same = a.0.vertices[at] == b.0.vertices[image];
            let free = mapped.iter().all(|&(x, y)| {
                y != image
                    && a.1.precedes(x, at) == b.1.precedes(y, image)
                    && a.1.precedes(at, x) == b.1.precedes(image, y)
            });
            if same && free {
                mapped.push((at, image));
                best = best.max(from(a, b, at + 1, mapped));
                mapped.pop();
            }
        }
        best
    }
    from((a, &a.graph()), (b, &b.graph()), 0, &mut Vec::new())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn by_tasks_it_is_a_metric(a in made(30, 3, 3), b in made(30, 3, 3), c in made(30, 3, 3)) {
        let d = |x: &Made, y: &Made| by_tasks(x, y).1;
        prop_assert_eq!(d(&a, &a), 0);
        prop_assert_eq!(d(&a, &b) == 0, compare_tracks(&a, &b));
        prop_assert_eq!(by_tasks(&a, &b), by_tasks(&b, &a));
        prop_assert!(d(&a, &c) <= d(&a, &b) + d(&b, &c));
        let (n, distance) = by_tasks(&a, &b);
let least = u64::from(n >= 2 && !a.vertices.is_empty() && !b.vertices.is_empty());
        prop_assert!(distance + least <= n);
    }

    #[test]
    fn alike_graphs_keep_the_laws_too(a in made(12, 2, 2), b in made(12, 2, 2), c in made(12, 2, 2)) {
        let d = |x: &Made, y: &Made| by_tasks(x, y).1;
        prop_assert!(d(&a, &c) <= d(&a, &b) + d(&b, &c));
    }

    /// As the seed proves: the approximation is never above the exact distance.
    #[test]
    fn the_approximation_is_never_above_the_exact_distance(a in made(10, 3, 2), b in made(10, 3, 2)) {
        prop_assert!(by_tasks(&a, &b).1 <= searched(&a, &b), "{} {}", by_tasks(&a, &b).1, searched(&a, &b));
    }

    #[test]
    fn the_exact_distance_is_a_metric(a in made(7, 2, 2), b in made(7, 2, 2), c in made(7, 2, 2)) {
        prop_assert_eq!(searched(&a, &a), 0);
        prop_assert_eq!(searched(&a, &b), searched(&b, &a));
        prop_assert!(searched(&a, &c) <= searched(&a, &b) + searched(&b, &c));
    }

    #[test]
    fn the_search_finds_the_largest(a in made(6, 2, 2), b in made(6, 2, 2)) {
        prop_assert_eq!(similarity(&a.graph(), &b.graph(), u64::MAX), Some(naive(&a, &b)));
    }

    /// Regions that are compared one with one leave fewer ways for events to correspond.
    #[test]
    fn by_regions_the_distance_is_never_less(
        rows in prop::collection::vec(prop::collection::vec(0u32..4, 0..24), 2),
        other in prop::collection::vec(prop::collection::vec(0u32..4, 0..24), 2),
        size in 1u64..7,
    ) {
        let mut names = Names::default();
        for tag in 0..4 {
            let (kind, peer) = (EventKind::Send, 0);
            names.symbols.of(&Symbol { kind, peer, tag, bytes: 8, comm: 0, procedure: 0 });
        }
        let tape = |rows: &[Vec<u32>]| {
            let mut tape = Tape::default();
            for (rank, symbols) in rows.iter().enumerate() {
                let places = vec![0; symbols.len()];
                let numbers = (0..symbols.len() as u32).collect();
                tape.tracks.insert((rank as u32, 0), Track { symbols: symbols.clone(), places, numbers });
            }
            tape
        };
        let ends = |rows: &[Vec<u32>]| {
            let regions = rows.iter().map(|row| row.len() as u64).max().unwrap_or(0) / size + 1;
            Ends::new(rows.iter().map(|row| (1..=regions).map(|r| (r * size).min(row.len() as u64)).collect()).collect())
        };
        let (a, b) = (tape(&rows), tape(&other));
        let (ends_a, ends_b) = (ends(&rows).unwrap(), ends(&other).unwrap());
        let found = by_regions(&names, (&a, &ends_a), (&b, &ends_b)).expect("one thread a rank");
        let tasks = compare(&names, &a, &b, Effort::default());
        prop_assert!(tasks.distance() <= found.distance, "{} {found:?}", tasks.distance());
        prop_assert_eq!(found.distance + found.similarity, tasks.events);
        let same = by_regions(&names, (&a, &ends_a), (&a, &ends_a)).expect("one thread a rank");
        prop_assert_eq!((same.distance, same.same), (0, same.regions[0]));
    }
}

fn compare_tracks(a: &Made, b: &Made) -> bool {
    let rows = |made: &Made| -> Vec<((u32, u16), Vec<u32>)> {
        made.tape().tracks.into_iter().map(|(task, track)| (task, track.symbols)).collect()
    };
    rows(a) == rows(b)
}

/// The graphs of Figure 2: on one machine the message of A comes first, on the other that of B.
#[test]
fn the_graphs_of_figure_2() {
    let (send, from_a, from_b) = (0, 1, 2);
    let machine = |first: u32, second: u32, order: [usize; 2]| Made {
        vertices: vec![(1, send), (2, send), (0, first), (0, second)],
        messages: vec![(order[0], 2), (order[1], 3)],
    };
    let (one, two) = (machine(from_a, from_b, [0, 1]), machine(from_b, from_a, [1, 0]));
    assert_eq!(by_tasks(&one, &two), (4, 1));
    assert_eq!(searched(&one, &two), 2);
    assert_eq!(searched(&one, &one), 0);
    let (g1, g2) = (one.graph(), two.graph());
    // M1: S2 < R1, S3 < R1', R1 and S3 concurrent; M2: S3 < R1, S2 < R1', R1 and S2 concurrent.
    assert!(g1.precedes(0, 2) && g1.precedes(1, 3) && !g1.precedes(2, 1) && !g1.precedes(1, 2));
    assert!(g2.precedes(1, 2) && g2.precedes(0, 3) && !g2.precedes(2, 0) && !g2.precedes(0, 2));
}

#[test]
fn circles_and_strangers_are_no_graph() {
    assert!(Graph::new(vec![1, 1], &[(0, 1), (1, 0)]).is_none());
    assert!(Graph::new(vec![1, 1], &[(0, 2)]).is_none());
    assert!(Graph::new(vec![0; 65], &[]).is_none());
    assert_eq!(Graph::new(vec![0; 64], &[]).map(|g| g.len()), Some(64));
}
