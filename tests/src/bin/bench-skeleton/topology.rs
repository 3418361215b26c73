//! The seed's Table 2: which topologies remain after each test, from matrices made after NPB's formulas at the seed's sizes,
//! as they are and with the ranks shuffled; from the largest ones; and from traces.
use crate::Res;
use phasecast_skeleton::topology::mesh::{Dimension, Links, Mesh};
use phasecast_skeleton::topology::{Matrix, Recognition, Topology, Traffic, directions, made, recognise};
use phasecast_tests::bench::{Bound, figure};
use phasecast_trace::Trace;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

/// Seconds that a recognition may take; the seed took 7 to 134.
const BOUND: f64 = 2.0;

/// Runs it.
pub fn run(traces: &[String]) -> Res<()> {
    let seed = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO).as_nanos() as u64;
    println!("Table 2 of seed 002, from made matrices; ranks shuffled with seed {seed}\n");
    let table = [
        ("BT 121", made::bt(11)),
        ("SP 121", made::bt(11)),
        ("LU 128", made::lu(16, 8)),
        ("CG 128", made::cg(128)),
        ("MG 128", made::mg(128)),
    ];
    for (name, matrix) in &table {
        both(name, matrix, seed);
    }
    println!("Topologies of 1000 and 1024 ranks\n");
    let torus = |sizes: &[u32]| {
        let dimensions = sizes.iter().map(|&size| Dimension { size, periodic: true }).collect();
        Topology::Mesh(Mesh { dimensions, links: Links::Axes })
    };
    let largest = [
        torus(&[1024]),
        torus(&[32, 32]),
        torus(&[10, 10, 10]),
        torus(&[8, 8, 4, 4]),
        torus(&[2; 10]),
        Topology::Tree { positions: 1024, arity: 2 },
        Topology::Star { positions: 1024 },
        Topology::Butterfly { order: 7, wrapped: false },
        Topology::AllToAll { positions: 1024 },
    ];
    for topology in &largest {
        both(&topology.to_string(), &made::of(topology, Traffic { messages: 100, bytes: 100_000 }), seed);
    }
    both("CG 1024", &made::cg(1024), seed);
    for path in traces {
        let trace = Trace::open(Path::new(path))?;
        let begun = Instant::now();
        let matrix = Matrix::of_trace(&trace, &|_, _| {})?;
        let read = begun.elapsed().as_secs_f64();
        let name = trace.ranks().find_map(|rank| trace.header(rank)).map_or("", |header| header.program.as_str());
        let name = Path::new(name).file_name().and_then(|name| name.to_str()).unwrap_or(path);
        both(&format!("{name} {}", trace.size()), &matrix, seed);
        figure("  read the trace", read, "s", Bound::None);
    }
    Ok(())
}

/// Recognises a matrix as it is, and with its ranks shuffled.
fn both(name: &str, matrix: &Matrix, seed: u64) {
    for shuffled in [false, true] {
        let matrix = if shuffled { matrix.renumbered(&shuffle(matrix.ranks(), seed)) } else { matrix.clone() };
        let recognition = recognise(&matrix);
        let begun = Instant::now();
        let found = directions(&matrix, &recognition);
        let seconds = begun.elapsed().as_secs_f64();
        figure(
            &format!("{name}{}", if shuffled { ", shuffled" } else { "" }),
            recognition.seconds,
            "s",
            Bound::Most(BOUND),
        );
        tell(&recognition);
        let names: Vec<&str> = found.all.iter().map(|direction| direction.name.as_str()).take(8).collect();
        let more = if found.all.len() > names.len() { " ..." } else { "" };
        println!("  {} directions ({seconds:.3} s): {}{more}\n", found.all.len(), names.join(" "));
    }
}

fn tell(recognition: &Recognition) {
    recognition.words().lines().for_each(|line| println!("  {line}"));
}

/// The numbers of ranks in random order.
fn shuffle(ranks: u32, mut seed: u64) -> Vec<u32> {
    let mut order: Vec<u32> = (0..ranks).collect();
    for i in (1..ranks as usize).rev() {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        order.swap(i, (seed >> 33) as usize % (i + 1));
    }
    order
}
