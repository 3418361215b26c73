//! Trace transformation: its speed, and its error against the truth.
//!
//! `bench-transform speed [1m,10m]`: calls per second on made traces, with memory.
//! `bench-transform error [--runs 10] [--machines FOLDER | --fresh] [--only tcp,mpich,half] [--tables] [--json FILE] JOB
//! ...`, a job being `NAME:RANKS:OPENMPI:MPICH[:ARGUMENTS[:SMALL-OPENMPI:SMALL-MPICH[:SMALL-ARGUMENTS]]]`: base is Open
//! MPI over shared memory; targets are Open MPI over TCP, MPICH, and Open MPI with half of the processors' time by cgroup
//! quotas, where they can be made: `half`, `short` and `turns` are the job with periods of 100, 10 and 1 ms, `stops` is
//! each rank with one of 2 ms. In each run the program is traced three times on the base, and run without tracing on each
//! target. Machines are measured once, or with `--fresh` beside each run.
mod error;
mod speed;

type Res<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> Res<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.split_first() {
        Some((mode, rest)) if mode == "speed" => speed::run(rest),
        Some((mode, rest)) if mode == "--child" => speed::child(rest),
        Some((mode, rest)) if mode == "error" => error::run(rest),
        None => speed::run(&[]),
        Some((other, _)) => Err(format!("'{other}' is neither speed nor error").into()),
    }
}
