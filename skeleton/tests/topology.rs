//! The seed's Table 1 and Table 2, and the laws of recognition and of directions on the whole catalogue.
use phasecast_skeleton::topology::matrix::{Measure, Traffic};
use phasecast_skeleton::topology::{Matrix, Recognition, Stage, Topology, directions, made, recognise};
use phasecast_trace::model::{CommDef, Ending, PEER_NONE, TAG_NONE, Trailer};
use phasecast_trace::writer::{TraceWriter, made_header};
use phasecast_trace::{Call, Class, CommId, Flags, Nanos, Part, PartKind, ProcId, Rank, Trace};
use proptest::prelude::*;

const TRAFFIC: Traffic = Traffic { messages: 10, bytes: 1000 };

/// Numbers 0 to n - 1 in an order that a multiplicative generator gives.
fn shuffle(n: u32, mut seed: u64) -> Vec<u32> {
    let mut order: Vec<u32> = (0..n).collect();
    for i in (1..n as usize).rev() {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        order.swap(i, (seed >> 33) as usize % (i + 1));
    }
    order
}

/// All names that a recognition gives the graph.
fn names(recognition: &Recognition) -> Vec<String> {
    recognition.name.iter().chain(&recognition.isomorphic).cloned().collect()
}

fn remaining(stages: &[Stage]) -> Vec<Vec<&str>> {
    let sorted = |stage: &Stage| stage.remaining.len();
    let mut all: Vec<Vec<&str>> =
        stages.iter().map(|stage| stage.remaining.iter().map(String::as_str).collect::<Vec<_>>()).collect();
    all.iter_mut().for_each(|names| names.sort_unstable());
    assert_eq!(stages.iter().map(sorted).collect::<Vec<_>>(), all.iter().map(Vec::len).collect::<Vec<_>>());
    all
}

/// The relabelling is a true isomorphism, and directions lead where they should and back.
fn check(matrix: &Matrix, recognition: &Recognition) {
    let found = directions(matrix, recognition);
    for (from, to, _) in matrix.pairs() {
        for (rank, peer) in [(from, to), (to, from)] {
            let direction = found.index(rank, peer).expect("each pair has a direction");
            assert_eq!(found.peer(rank, direction), Some(peer));
            assert_eq!(found.back(rank, direction), found.index(peer, rank));
            assert!(found.back(rank, direction).is_some());
        }
    }
    let mut all: Vec<&str> = found.all.iter().map(|direction| direction.name.as_str()).collect();
    all.sort_unstable();
    all.windows(2).for_each(|two| assert_ne!(two[0], two[1], "two directions of one name"));
    let Some(placed) = &recognition.topology else { return };
    let graph = placed.topology.graph();
    if recognition.measure == Measure::Most {
        return;
    }
    let significant = matrix.significant(recognition.measure).graph;
    let size = placed.topology.positions();
    let mut edges = 0;
    for rank in 0..matrix.ranks() {
        for &peer in significant.neighbours(rank) {
            let (a, b) = (placed.position[rank as usize].unwrap(), placed.position[peer as usize].unwrap());
            assert_eq!(a / size, b / size);
            assert!(graph.joined(a % size, b % size));
            assert!(found.index(rank, peer).unwrap() < found.of_topology);
            edges += 1;
        }
    }
    assert_eq!(edges, 2 * graph.edges() * placed.copies as usize);
    let mut places: Vec<u32> = placed.position.iter().flatten().copied().collect();
    places.sort_unstable();
    assert_eq!(places, (0..size * placed.copies).collect::<Vec<_>>());
}

#[test]
fn table_2() {
    let six = vec!["11x11 6-p stencil"];
    let grid = vec!["16x8 grid"];
    let cg = vec!["8x16 3-p stencil"];
    // The seed prints 8x2x2x2, which has 64 positions; the torus of 128 with these others has a 2 more.
    // The seed's 6-p stencils are square; these have as many edges and the same degrees, and fall to the spectrum.
    let six_regular = ["16x8 6-p stencil", "32x4 6-p stencil"];
    let tori = vec!["8x2x2x2x2 torus", "8x4x2x2 torus", "8x4x4 torus"];
    let rows = [
        (made::bt(11), "11x11 6-p stencil", [six.clone(), six.clone(), six]),
        (made::lu(16, 8), "16x8 grid", [grid.clone(), grid.clone(), grid]),
        (made::cg(128), "8x16 3-p stencil", [vec!["16x2x2x2 grid", "8x16 3-p stencil"], cg.clone(), cg]),
        (made::mg(128), "8x4x4 torus", [[&six_regular[..], &tori].concat(), tori.clone(), tori]),
    ];
    for (matrix, name, stages) in rows {
        for seed in 0..3 {
            let number = if seed == 0 { (0..matrix.ranks()).collect() } else { shuffle(matrix.ranks(), seed) };
            let matrix = matrix.renumbered(&number);
            let recognition = recognise(&matrix);
            assert!(names(&recognition).contains(&name.to_owned()), "{}", recognition.words());
            assert_eq!(remaining(&recognition.stages), stages, "{name}, seed {seed}");
            let placed = recognition.topology.as_ref().unwrap();
            assert_eq!(placed.natural, seed == 0);
            if seed == 0 {
                assert_eq!(recognition.name.as_deref(), Some(name));
            }
            check(&matrix, &recognition);
        }
    }
}

#[test]
fn table_1() {
    // Rank 0 of BT on 16 ranks sends to 1, 4 and 7, and receives from 3, 12 and 13.
    let matrix = made::bt(4);
    let recognition = recognise(&matrix);
    assert_eq!(recognition.name.as_deref(), Some("4x4 6-p stencil"));
    let found = directions(&matrix, &recognition);
    let name = |peer| found.all[found.index(0, peer).unwrap() as usize].name.as_str();
    let seed = [(1, "EAST"), (3, "WEST"), (4, "SOUTH"), (12, "NORTH"), (7, "SOUTHWEST"), (13, "NORTHEAST")];
    seed.iter().for_each(|&(peer, direction)| assert_eq!(name(peer), direction));
    assert_eq!(found.of_topology, 6);
    for direction in &found.all[..6] {
        assert!(direction.peer.iter().all(Option::is_some), "all ranks of a torus share its directions");
    }
}

#[test]
fn traffic_tells_dimensions_apart() {
    // Two dimensions of four, with different traffic: the graph is a hypercube's, but the program means a torus.
    let mut torus = Matrix::new(16);
    for rank in 0..16u32 {
        let (x, y) = (rank % 4, rank / 4);
        for step in [1, 3] {
            torus.add(rank, (x + step) % 4 + 4 * y, Traffic { messages: 10, bytes: 80_000 });
            torus.add(rank, x + 4 * ((y + step) % 4), Traffic { messages: 10, bytes: 20_000 });
        }
    }
    for seed in 1..20 {
        let torus = torus.renumbered(&shuffle(16, seed));
        let recognition = recognise(&torus);
        assert_eq!(recognition.name.as_deref(), Some("4x4 torus"), "{}", recognition.words());
        let placed = recognition.topology.as_ref().unwrap();
        for (name, to) in placed.topology.directions() {
            let ranks = placed.ranks();
            let bytes = (0..16).map(|at| torus.sent(ranks[at], ranks[to[at].unwrap() as usize]).bytes);
            assert_eq!(bytes.collect::<std::collections::BTreeSet<_>>().len(), 1, "{name}");
        }
        check(&torus, &recognition);
    }
}

#[test]
fn names_of_directions() {
    let of = |matrix: &Matrix| {
        let found = directions(matrix, &recognise(matrix));
        found.all.into_iter().map(|direction| direction.name).collect::<Vec<_>>()
    };
    let mut ring = Matrix::new(8);
    (0..8).for_each(|rank| ring.add(rank, (rank + 1) % 8, TRAFFIC));
    assert_eq!(of(&ring), ["RIGHT", "LEFT"]);
    let cube =
        made::of(&Topology::catalogue(16).into_iter().find(|t| t.to_string() == "hypercube of 16").unwrap(), TRAFFIC);
    assert_eq!(of(&cube), ["XOR_1", "XOR_2", "XOR_4", "XOR_8"]);
    let tree = made::of(&Topology::Tree { positions: 15, arity: 2 }, TRAFFIC);
    assert_eq!(of(&tree), ["PARENT", "CHILD_1", "CHILD_2"]);
    let torus = |name: &str| {
        let all: Vec<String> = of(&made::of(&named(27, name), TRAFFIC));
        all.join(" ")
    };
    assert_eq!(torus("3x3x3 torus"), "EAST WEST SOUTH NORTH UP DOWN");
    let diagonal = torus("3x3x3 grid with diagonals");
    assert!(diagonal.contains("SOUTHEAST") && diagonal.contains("UP_NORTH_WEST"), "{diagonal}");
    // Ranks on the diagonal of CG's transposition send to themselves: in the same direction as all others.
    let cg = made::cg(16);
    let recognition = recognise(&cg);
    assert_eq!(recognition.name.as_deref(), Some("4x4 3-p stencil"));
    let found = directions(&cg, &recognition);
    let names: Vec<&str> = found.all.iter().map(|direction| direction.name.as_str()).collect();
    assert_eq!(names[..3], ["REDUCE_1", "REDUCE_2", "TRANSPOSE"]);
    assert!(found.all[2].peer.iter().all(Option::is_some));
}

fn named(positions: u32, name: &str) -> Topology {
    Topology::catalogue(positions).into_iter().find(|topology| topology.to_string() == name).unwrap()
}

#[test]
fn copies_strangers_and_the_rest() {
    // Four rings of eight, shuffled, and two ranks that talk to nobody.
    let mut rings = Matrix::new(34);
    (0..32).for_each(|rank| rings.add(rank, rank / 8 * 8 + (rank + 1) % 8, TRAFFIC));
    let rings = rings.renumbered(&shuffle(34, 5));
    let recognition = recognise(&rings);
    assert_eq!(recognition.name.as_deref(), Some("4 times ring of 8"));
    assert_eq!((recognition.components, recognition.alone, recognition.one_way), (4, 2, 32));
    assert_eq!(directions(&rings, &recognition).all.len(), 2);
    check(&rings, &recognition);
    // A ring beside a line.
    let mut mixed = Matrix::new(8);
    (0..8u32).filter(|rank| *rank != 7).for_each(|rank| mixed.add(rank, rank / 4 * 4 + (rank + 1) % 4, TRAFFIC));
    let recognition = recognise(&mixed);
    assert!(recognition.reason.as_ref().unwrap().contains("2 groups that are not alike"));
    check(&mixed, &recognition);
    // A circle with one chord is nothing known; offsets cover it.
    let mut odd = Matrix::new(9);
    (0..9).for_each(|rank| odd.add(rank, (rank + 1) % 9, TRAFFIC));
    odd.add(0, 4, TRAFFIC);
    let recognition = recognise(&odd);
    assert!(recognition.reason.as_ref().unwrap().contains("no known topology of 9 ranks"), "{}", recognition.words());
    let found = directions(&odd, &recognition);
    let names: Vec<&str> = found.all.iter().map(|direction| direction.name.as_str()).collect();
    assert_eq!(names, ["RANK_PLUS_1", "RANK_MINUS_1", "RANK_XOR_4"]);
    check(&odd, &recognition);
    assert_eq!(recognise(&Matrix::new(0)).reason.as_deref(), Some("no two ranks exchange messages"));
    assert!(recognise(&Matrix::new(3)).words().contains("no two ranks exchange messages"));
    let mut many = Matrix::new(5000);
    many.add(0, 1, TRAFFIC);
    assert!(recognise(&many).reason.unwrap().contains("at most 4096"));
}

#[test]
fn multigrid_with_shuffled_ranks_is_the_torus_that_it_means() {
    // Its faces differ, so that traffic tells which of the tori with this graph it is, whatever else rank 0 sends.
    for seed in 1..10 {
        let matrix = made::mg(128).renumbered(&shuffle(128, seed));
        let recognition = recognise(&matrix);
        assert_eq!(recognition.name.as_deref(), Some("8x4x4 torus"), "{}", recognition.words());
        check(&matrix, &recognition);
    }
}

#[test]
fn the_matrix_of_a_trace() {
    // Each of four ranks exchanges with its right neighbour ten times; of rank 3 nothing was recorded.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("made.trace");
    let writer = TraceWriter::create(&path).unwrap();
    for rank in 0..3u32 {
        let mut out = writer.rank(&made_header(Rank(rank), 4, "made", &["MPI_Sendrecv", "MPI_Allreduce"])).unwrap();
        out.comms(&[CommDef { local: 0, members: (0..4).collect(), remote: Vec::new() }]).unwrap();
        let part = |tag| Part {
            kind: PartKind::Recv,
            flags: Flags::default(),
            peer: ((rank + 3) % 4) as i32,
            tag,
            bytes: 64,
            comm: CommId(0),
        };
        for round in 0..10 {
            let (enter, exit) = (Nanos(1000 * round), Nanos(1000 * round + 500));
            let call = Call {
                class: Class::Send,
                peer: ((rank + 1) % 4) as i32,
                tag: 7,
                bytes: 64,
                enter,
                exit,
                ..Call::BLANK
            };
            out.push(&call, &[part(7)]).unwrap();
            let sum =
                Call { class: Class::Collective, proc: ProcId(1), peer: PEER_NONE, tag: TAG_NONE, bytes: 8, ..call };
            out.push(&sum, &[]).unwrap();
        }
        let trailer =
            Trailer { ending: Ending::Finalized, calls: 0, end_units: 10_000, own_ns: 0, modules: Vec::new() };
        out.finish(trailer).unwrap();
    }
    writer.finish().unwrap();
    let matrix = Matrix::of_trace(&Trace::open(&path).unwrap(), &|_, _| {}).unwrap();
    // What rank 3 sent is known from rank 0.
    let each = Traffic { messages: 10, bytes: 640 };
    assert_eq!(matrix.pairs().collect::<Vec<_>>(), [(0, 1, each), (1, 2, each), (2, 3, each), (3, 0, each)]);
    let recognition = recognise(&matrix);
    assert_eq!((recognition.name.as_deref(), recognition.one_way), (Some("ring of 4"), 4));
}

#[test]
fn a_halo_is_seen_beside_a_collection() {
    // Each rank of a torus sends a tenth of its halo to rank 5, as often: the whole is no known graph.
    let mut matrix = made::of(&named(20, "5x4 torus"), Traffic { messages: 100, bytes: 800_000 });
    (0..20).filter(|&rank| rank != 5).for_each(|rank| matrix.add(rank, 5, Traffic { messages: 100, bytes: 90_000 }));
    for seed in 0..4 {
        let matrix = matrix.renumbered(&shuffle(20, seed));
        let recognition = recognise(&matrix);
        assert!(names(&recognition).contains(&"5x4 torus".into()), "{}", recognition.words());
        assert_eq!(recognition.measure, Measure::Most);
        let found = directions(&matrix, &recognition);
        for (from, to, _) in matrix.pairs() {
            assert_eq!(found.peer(from, found.index(from, to).unwrap()), Some(to));
        }
    }
}

#[test]
fn closed_spectra_are_those_of_the_graphs() {
    for positions in [4, 6, 9, 12, 16, 24, 27, 36] {
        for topology in Topology::catalogue(positions) {
            let graph = topology.graph();
            let numeric = phasecast_skeleton::topology::spectrum::of(&graph);
            assert!(phasecast_skeleton::topology::spectrum::same(&numeric, &topology.spectrum()), "{topology}");
            assert_eq!(topology.degrees(), graph.degrees(), "{topology}");
            assert!(topology.may_have(graph.edges()), "{topology}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn the_catalogue_is_recognised_whatever_the_numbering(
        positions in 2u32..100, pick in any::<prop::sample::Index>(), seed in any::<u64>(),
    ) {
        let catalogue = Topology::catalogue(positions);
        let topology = &catalogue[pick.index(catalogue.len())];
        let plain = made::of(topology, TRAFFIC);
        for matrix in [plain.renumbered(&shuffle(positions, seed)), plain] {
            let recognition = recognise(&matrix);
            prop_assert!(names(&recognition).contains(&topology.to_string()), "{topology}: {}", recognition.words());
            check(&matrix, &recognition);
        }
    }

    #[test]
    fn any_matrix_ends_with_directions(
        ranks in 0u32..40, pairs in prop::collection::vec((0u32..40, 0u32..40, 0u64..1000, 0u64..1_000_000), 0..200),
    ) {
        let mut matrix = Matrix::new(ranks);
        pairs.into_iter().for_each(|(from, to, messages, bytes)| matrix.add(from, to, Traffic { messages, bytes }));
        let recognition = recognise(&matrix);
        check(&matrix, &recognition);
        prop_assert!(!recognition.words().is_empty());
        prop_assert!(recognition.name.is_some() != recognition.reason.is_some());
    }

    #[test]
    fn a_torus_with_strange_messages_keeps_its_directions(x in 3u32..7, y in 3u32..7, seed in any::<u64>()) {
        let torus = Matrix::new(x * y);
        let torus = (0..x * y).fold(torus, |mut matrix, rank| {
            let (i, j) = (rank % x, rank / x);
            for to in [(i + 1) % x + j * x, (i + x - 1) % x + j * x, i + (j + 1) % y * x, i + (j + y - 1) % y * x] {
                matrix.add(rank, to, Traffic { messages: 1000, bytes: 1_000_000 });
            }
            matrix.add(rank, (i + 2) % x + j * x, Traffic { messages: 1, bytes: 8 });
            matrix
        });
        let matrix = torus.renumbered(&shuffle(x * y, seed));
        let recognition = recognise(&matrix);
        let names = names(&recognition);
        let name = format!("{}x{} torus", x.max(y), x.min(y));
        prop_assert!(names.contains(&name), "{name}: {}", recognition.words());
        check(&matrix, &recognition);
        // Two steps along a dimension are one more direction and its opposite, however ranks are numbered; where 4 is
        // 2x2 the relabelling may take another dimension for it.
        let found = directions(&matrix, &recognition);
        if x != 4 && y != 4 {
            prop_assert!(found.all.len() <= 6, "{:?}", found.all.iter().map(|d| &d.name).collect::<Vec<_>>());
        }
    }
}
