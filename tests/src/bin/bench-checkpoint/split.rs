//! Whole programs in the upper half against plain runs.
use crate::example;
use phasecast_tests::bench::{Bound, Command, Split, figure, median, variation};
use phasecast_tests::mpi::Mpi;
use std::time::Instant;

/// Split time in plain time.
const RATIO: f64 = 1.02;

/// Measures the examples and what is given besides.
pub fn run(rounds: usize, programs: &[(String, Command)]) {
    let mut all = Vec::new();
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        all.push(("stencil 1024".to_string(), example(mpi, "stencil.c", &["1024", "5000"])));
        all.push(("cg 1024".to_string(), example(mpi, "cg.c", &["1024", "1500"])));
    }
    all.extend_from_slice(programs);
    for (name, command) in &all {
        let split = Split::new();
        let (mut plain, mut with, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
        for round in 0..rounds {
            // In turn, and each as often the first.
            let measure_plain = || time(|| split.plain(command));
            let measure_with = || time(|| split.run(command, &[]).0);
            let (p, w) = if round % 2 == 0 {
                let p = measure_plain();
                (p, measure_with())
            } else {
                let w = measure_with();
                (measure_plain(), w)
            };
            plain.push(p);
            with.push(w);
            ratios.push(w / p);
        }
        let what = format!(
            "{name}, {}, {} ranks: split / plain ({:.2} s, v {:.1} %)",
            command.mpi.name(),
            command.ranks,
            median(&plain),
            100.0 * variation(&plain)
        );
        figure(&what, median(&ratios), "", Bound::Most(RATIO));
    }
}

fn time<T>(run: impl FnOnce() -> T) -> f64 {
    let start = Instant::now();
    run();
    start.elapsed().as_secs_f64()
}
