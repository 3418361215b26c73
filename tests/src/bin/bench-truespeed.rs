//! Whether a restarted phase runs at its true speed: programs bound by their memory, of each kind of pages, native, split
//! and restarted in turn.
//!
//! `bench-truespeed [--rounds 9] [stream|cache|gather|huge|mixed ...]`: for each program (`examples/truespeed.c`) and MPI a
//! row: the phase's native time (median) with its coefficient of variation v, the time split and restarted in the native
//! one, whether the latter is within 2 % + v of 1, how much longer the first iterations after the restart took, and the
//! bytes in huge pages natively and restarted. The phase is what follows 30 ms of warm-up, as for predictions. Elapsed time:
//! run it on a quiet machine.
use phasecast_checkpoint::job::{Cut, Step};
use phasecast_tests::bench::{Command, Split, median, variation};
use phasecast_tests::example::compiled;
use phasecast_tests::mpi::Mpi;

/// Kinds of programs, with their memory in MB and iterations: some 5 ms each.
const KINDS: [(&str, usize, usize); 5] =
    [("stream", 64, 100), ("cache", 1, 100), ("gather", 64, 60), ("huge", 64, 100), ("mixed", 64, 60)];
const RANKS: u32 = 2;
/// Iterations before the cut.
const BEFORE: usize = 20;
/// Seconds of warm-up.
const WARM: f64 = 0.03;

/// What a run showed: seconds of each iteration after the cut, of the rank where it took longest, and bytes in huge pages.
struct Run {
    times: Vec<f64>,
    huge: Vec<u64>,
}

fn main() {
    let (mut rounds, mut kinds) = (9, Vec::new());
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--rounds" => rounds = args.next().and_then(|n| n.parse().ok()).expect("--rounds wants a number"),
            kind if KINDS.iter().any(|k| k.0 == kind) => kinds.push(arg),
            other => panic!(
                "unknown argument {other}; usage: bench-truespeed [--rounds N] [stream|cache|gather|huge|mixed ...]"
            ),
        }
    }
    println!(
        "{:8} {:8} {:>9} {:>5}  {:>6} {:>10} {:>7}  {:>21}  huge pages MB",
        "program", "MPI", "native ms", "v %", "split", "restarted", "within", "iterations 1, 2, 3"
    );
    for (kind, mb, iterations) in KINDS {
        if kinds.is_empty() || kinds.iter().any(|k| k == kind) {
            [Mpi::OpenMpi, Mpi::Mpich].into_iter().for_each(|mpi| measure(mpi, kind, mb, iterations, rounds));
        }
    }
}

fn measure(mpi: Mpi, kind: &str, mb: usize, iterations: usize, rounds: usize) {
    let split = Split::new();
    let args = vec![kind.into(), mb.to_string(), iterations.to_string()];
    let command = Command { mpi, ranks: RANKS, program: compiled(mpi, "truespeed.c"), args };
    // One event for the barrier before the iterations, and one for each.
    let at = Cut { id: 0, events: vec![1 + BEFORE as u64; RANKS as usize] };
    let (_, reports, images) = split.run(&command, &[at]);
    assert!(reports.iter().all(|report| report.cuts.iter().all(|cut| cut.saved)), "{reports:?}");
    let to_the_end = || vec![Step { cut: 0, watch: vec![Vec::new(); RANKS as usize] }];
    let mut runs: [Vec<Run>; 3] = Default::default();
    for round in 0..rounds {
        for turn in 0..3 {
            let which = (round + turn) % 3;
            let outcome = match which {
                0 => split.plain(&command),
                1 => split.run(&command, &[]).0,
                _ => split.replay(mpi, RANKS, &images, to_the_end()).0,
            };
            runs[which].push(read(&outcome.stdout));
        }
    }
    let iteration = median(&runs[0].iter().flat_map(|run| run.times.iter().copied()).collect::<Vec<_>>());
    let warm = (WARM / iteration).ceil() as usize;
    let phases = |runs: &[Run]| runs.iter().map(|run| run.times[warm..].iter().sum()).collect::<Vec<f64>>();
    let [native, with, restarted] = [0, 1, 2].map(|which| phases(&runs[which]));
    let ratio = median(&restarted) / median(&native);
    let v = variation(&native);
    let first = |at: usize| median(&runs[2].iter().map(|run| run.times[at]).collect::<Vec<_>>()) / iteration;
    let within = if (ratio - 1.0).abs() <= 0.02 + v { "yes" } else { "MISSED" };
    let huge =
        |which: usize| runs[which][0].huge.iter().map(|bytes| (bytes >> 20).to_string()).collect::<Vec<_>>().join("+");
    let equal = runs[2].iter().all(|run| run.huge == runs[0][0].huge);
    println!(
        "{kind:8} {:8} {:9.1} {:5.1}  {:6.3} {ratio:10.3} {within:>7}  {:7.2}{:7.2}{:7.2}  {} native, {} restarted{}",
        mpi.name(),
        median(&native) * 1e3,
        100.0 * v,
        median(&with) / median(&native),
        first(0),
        first(1),
        first(2),
        huge(0),
        huge(2),
        if equal { "" } else { "  DIFFERENT" },
    );
}

/// Reads `rank R huge BYTES times WALL PROCESSOR WALL PROCESSOR ...` of each rank.
fn read(text: &str) -> Run {
    let ranks = text.lines().filter_map(|line| line.strip_prefix("rank ")).map(|line| {
        let words: Vec<&str> = line.split(' ').collect();
        let times: Vec<f64> = words[4..].iter().step_by(2).map(|word| word.parse().expect("a time")).collect();
        (words[2].parse::<u64>().expect("bytes"), times[BEFORE..].to_vec())
    });
    let (huge, times): (Vec<u64>, Vec<Vec<f64>>) = ranks.unzip();
    assert_eq!(huge.len(), RANKS as usize, "each rank prints a line: {text}");
    let slowest = |at: usize| times.iter().map(|rank| rank[at]).fold(0.0, f64::max);
    Run { times: (0..times[0].len()).map(slowest).collect(), huge }
}
