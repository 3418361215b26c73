//! How fast two runs are compared: the longest common subsequence of a million events with 1 % differences, on one rank
//! (the hardest) and on four, of programs that repeat and of such as do not; and of traces in files, reading included.
//!
//! `bench-stability [--events 1000000] [--differences 0.01] [--rounds 5]` prints the median time of each beside its bound.
use phasecast_tests::bench::median;
use phasecast_trace::model::{CommDef, Ending, Trailer};
use phasecast_trace::writer::{TraceWriter, made_header};
use phasecast_trace::{Call, Class, CommId, Flags, Nanos, ProcId, Rank, Trace};
use phasecast_transform::stability::lcs::{Effort, common};
use phasecast_transform::stability::{Names, Tape, compare};
use std::path::Path;
use std::time::Instant;

/// Seconds that the comparison of a million events with 1 % differences may take.
const BOUND_S: f64 = 2.0;

/// A generator of numbers that are the same each time (splitmix64).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        x ^ (x >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }
}

/// What a rank does.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// The same 24 events again and again, with a reduction every tenth time.
    Repeats,
    /// One of 64 events, by chance.
    Random,
}

fn events(kind: Kind, count: usize, numbers: &mut Numbers) -> Vec<u32> {
    let event = |at: usize, numbers: &mut Numbers| match kind {
        Kind::Repeats if at.is_multiple_of(240) => 24,
        Kind::Repeats => (at % 24) as u32,
        Kind::Random => numbers.below(64) as u32,
    };
    (0..count).map(|at| event(at, numbers)).collect()
}

/// The same events but for a share of them: left out, added, or another one.
fn changed(a: &[u32], share: f64, numbers: &mut Numbers) -> Vec<u32> {
    let mut b = Vec::with_capacity(a.len());
    for &event in a {
        let other = numbers.below(25) as u32;
        match numbers.below(3_000_000) as f64 / 3e6 {
            x if x >= share => b.push(event),
            x if x < share / 3.0 => {}
            x if x < share * 2.0 / 3.0 => b.extend([event, other]),
            _ => b.push(other),
        }
    }
    b
}

/// Writes a trace in which each rank sends as these events say: the event is the tag.
fn write(path: &Path, ranks: &[Vec<u32>]) -> Trace {
    let writer = TraceWriter::create(path).expect("a new folder");
    for (rank, events) in ranks.iter().enumerate() {
        let mut out =
            writer.rank(&made_header(Rank(rank as u32), ranks.len() as u32, "made", &["MPI_Send"])).expect("a file");
        let members = (0..ranks.len() as u32).collect();
        out.comms(&[CommDef { local: 0, members, remote: vec![] }]).expect("written");
        for (at, &event) in events.iter().enumerate() {
            let enter = Nanos(at as u64 * 1000);
            let call = Call {
                proc: ProcId(0),
                class: Class::Send,
                flags: Flags(0),
                thread: 0,
                peer: ((rank + 1) % ranks.len()) as i32,
                tag: event as i32,
                bytes: 8,
                comm: CommId(0),
                site: u64::from(event),
                enter,
                exit: Nanos(enter.0 + 100),
            };
            out.push(&call, &[]).expect("written");
        }
        let end_units = events.len() as u64 * 1000;
        let trailer = Trailer { ending: Ending::Finalized, calls: 0, end_units, own_ns: 0, modules: vec![] };
        out.finish(trailer).expect("written");
    }
    writer.finish().expect("written");
    Trace::open(path).expect("it is whole")
}

fn main() {
    let (mut count, mut share, mut rounds) = (1_000_000usize, 0.01f64, 5usize);
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut number = || args.next().and_then(|n| n.parse::<f64>().ok()).expect("a number is to follow");
        match arg.as_str() {
            "--events" => count = number() as usize,
            "--differences" => share = number(),
            "--rounds" => rounds = number() as usize,
            other => panic!(
                "unknown argument {other}; usage: bench-stability [--events N] [--differences SHARE] [--rounds N]"
            ),
        }
    }
    println!("{count} events, {:.2} % differences, median of {rounds}", 100.0 * share);
    println!("{:44} {:>9} {:>9}  {:>10} {:>9}", "", "s", "bound", "distance", "exact");
    let mut missed = false;
    let mut tell = |what: &str, times: &[f64], distance: u64, exact: bool| {
        let s = median(times);
        missed |= s >= BOUND_S || !exact;
        println!(
            "{what:44} {s:9.3} {BOUND_S:9.1}  {distance:10} {exact:>9}{}",
            if s < BOUND_S { "" } else { "  MISSED" }
        );
    };
    for (kind, name) in [(Kind::Repeats, "a program that repeats"), (Kind::Random, "events by chance")] {
        let mut numbers = Numbers(4);
        let a = events(kind, count, &mut numbers);
        let b = changed(&a, share, &mut numbers);
        let (mut times, mut found) = (Vec::new(), None);
        for _ in 0..rounds {
            let start = Instant::now();
            found = Some(common(&a, &b, Effort::default()));
            times.push(start.elapsed().as_secs_f64());
        }
        let found = found.expect("at least one round");
        tell(&format!("{name}, 1 rank"), &times, a.len().max(b.len()) as u64 - found.length, found.exact);
    }
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let mut numbers = Numbers(5);
    let ranks: Vec<Vec<u32>> = (0..4).map(|_| events(Kind::Repeats, count / 4, &mut numbers)).collect();
    let others: Vec<Vec<u32>> = ranks.iter().map(|events| changed(events, share, &mut numbers)).collect();
    let (first, second) = (write(&folder.path().join("a"), &ranks), write(&folder.path().join("b"), &others));
    let (mut times, mut distance, mut exact) = (Vec::new(), 0, true);
    for _ in 0..rounds {
        let start = Instant::now();
        let mut names = Names::default();
        let a = Tape::read(&first, &mut names).expect("it is whole");
        let b = Tape::read(&second, &mut names).expect("it is whole");
        let found = compare(&names, &a, &b, Effort::default());
        times.push(start.elapsed().as_secs_f64());
        (distance, exact) = (found.distance(), found.exact);
    }
    tell("traces of 4 ranks in files, reading included", &times, distance, exact);
    if missed {
        std::process::exit(1);
    }
}
