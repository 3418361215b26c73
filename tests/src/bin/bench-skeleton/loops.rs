//! The seed's Table 3: loops of traces, found greedily and optimally; and how long that takes for long sequences.
use crate::Res;
use phasecast_analyzer::loops;
use phasecast_analyzer::parallel::Stage;
use phasecast_skeleton::compress::{Compression, Method, compression};
use phasecast_skeleton::steps::stretches::Orders;
use phasecast_skeleton::steps::{classes, survey};
use phasecast_skeleton::topology::{Matrix, directions, recognise};
use phasecast_tests::bench::{Bound, figure};
use phasecast_trace::Trace;
use std::path::Path;
use std::time::Instant;

/// Calls of LU C on a rank in the seed, and how long they may take; the seed took 61.9 s, and 113890 s optimally.
const LU_C: (usize, f64) = (323_048, 0.1);
/// Many calls, and how long they may take.
const MANY: (usize, f64) = (10_000_000, 3.0);

/// Runs it.
pub fn run(traces: &[String]) -> Res<()> {
    println!("Sequences after Table 3 of seed 002, one thread\n");
    speed("LU C of the seed", &lu(160, 249), LU_C.1);
    speed("LU, long", &lu(160, MANY.0 / 1292), MANY.1);
    speed("body of 5000 calls", &repeated(5000, MANY.0), MANY.1);
    speed("one symbol", &vec![7; MANY.0], MANY.1);
    // No program's, but the worst there is: nothing repeats, or everything a little.
    speed("no repetition", &random(MANY.0, 1 << 20), f64::INFINITY);
    speed("random, 4 symbols", &random(MANY.0, 4), f64::INFINITY);
    println!("Linear: LU of growing length");
    for share in [8, 4, 2, 1] {
        let calls = lu(160, MANY.0 / 1292 / share);
        let seconds = time(|| loops::greedy(&calls)).1;
        figure(&format!("  {} calls, each", calls.len()), seconds * 1e9 / calls.len() as f64, "ns", Bound::None);
    }
    if !traces.is_empty() {
        println!("\nTraces: the class with the longest sequence\n");
    }
    for path in traces {
        table(Path::new(path))?;
    }
    Ok(())
}

fn time<T>(of: impl FnOnce() -> T) -> (T, f64) {
    let begun = Instant::now();
    let result = of();
    (result, begun.elapsed().as_secs_f64())
}

fn speed(name: &str, calls: &[u32], bound: f64) {
    println!("{name}: {} calls", calls.len());
    let (nest, seconds) = time(|| loops::greedy(calls));
    figure("  greedy", seconds, "s", if bound.is_finite() { Bound::Most(bound) } else { Bound::None });
    say(&compression(&nest));
    let (nest, seconds) = time(|| loops::optimal(calls));
    figure("  optimal", seconds, "s", Bound::None);
    say(&compression(&nest));
}

fn say(row: &Compression) {
    let major: String = if row.major.len() > 90 { row.major[..87].to_owned() + "..." } else { row.major.clone() };
    println!(
        "    {} written, ratio {:.1}, {:.2} % in loops, outer loop {}: {major}",
        row.written,
        row.ratio,
        100.0 * row.covered,
        row.outer
    );
}

/// LU's structure: two inner loops of four calls and twelve calls, `outer` times, with what comes before and after.
fn lu(inner: usize, outer: usize) -> Vec<u32> {
    let mut calls: Vec<u32> = (100..626).collect();
    for _ in 0..outer {
        (0..inner).for_each(|_| calls.extend([0, 1, 2, 3]));
        (0..inner).for_each(|_| calls.extend([4, 5, 6, 7]));
        calls.extend(8..20);
    }
    calls.extend(700..1514);
    calls
}

fn random(length: usize, symbols: u64) -> Vec<u32> {
    let mut state = 0x0005_DEEC_E66D_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % symbols
    };
    (0..length).map(|_| next() as u32).collect()
}

fn repeated(body: usize, length: usize) -> Vec<u32> {
    let body = random(body, 40);
    body.iter().copied().cycle().take(length).collect()
}

fn table(path: &Path) -> Res<()> {
    let trace = Trace::open(path)?;
    let matrix = Matrix::of_trace(&trace, &|_, _| {})?;
    let directions = directions(&matrix, &recognise(&matrix));
    let stage = || Stage::new(&|_, _| {}, 0, 1);
    let ((survey, found), seconds) = {
        let begun = Instant::now();
        let survey = survey::survey(&trace, 1, &stage())?;
        let found = classes::classes(&trace, &survey, &directions, &Orders::default(), Method::Greedy, 1, &stage())?;
        ((survey, found), begun.elapsed().as_secs_f64())
    };
    let program = trace.ranks().find_map(|rank| trace.header(rank)).map_or("", |header| header.program.as_str());
    let name = Path::new(program).file_name().and_then(|name| name.to_str()).unwrap_or("?");
    println!(
        "{name}, {} ranks: {} classes of ranks, {} groups",
        trace.size(),
        found.all.len(),
        survey.groups.all.len()
    );
    survey.left_out.iter().for_each(|sentence| println!("  {sentence}"));
    figure("  two passes over all ranks", seconds, "s", Bound::None);
    let sequences = found.all.iter().map(|class| loops::unroll(&class.nest));
    let calls = sequences.max_by_key(Vec::len).unwrap_or_default();
    println!("  {} calls", calls.len());
    for (name, method) in [("  greedy", Method::Greedy), ("  optimal", Method::Optimal)] {
        let (nest, seconds) = time(|| method.nest(&calls));
        figure(name, seconds, "s", Bound::None);
        say(&compression(&nest));
    }
    Ok(())
}
