//! Skeletons: what the seed's tables show.
//!
//! `bench-skeleton loops [TRACE ...]`: the seed's Table 3, from traces, and the time for long sequences.
//! `bench-skeleton topology [TRACE ...]`: the seed's Table 2, from made matrices and from traces.
//! `bench-skeleton ratio [--ratio 20] [--runs 3] [--clock computing] [--launcher COMMAND --cc COMMAND] JOB ...`: skeletons
//! beside their programs; by that clock where ranks share processors.
//! `bench-skeleton predict [--ratio 20] [--runs 5] [--only base,mpich,tcp,half,shared] [--from-mpich] [--json FILE] JOB ...`:
//! predictions against the truth. A job is `NAME:RANKS:OPENMPI[:MPICH[:ARGUMENTS]]`.
mod loops;
mod predict;
mod ratio;
mod shared;
mod topology;

type Res<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> Res<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.split_first() {
        Some((mode, rest)) if mode == "loops" => loops::run(rest),
        Some((mode, rest)) if mode == "topology" => topology::run(rest),
        Some((mode, rest)) if mode == "ratio" => ratio::run(rest),
        Some((mode, rest)) if mode == "predict" => predict::run(rest),
        Some((other, _)) => Err(format!("there is no '{other}': say topology, loops, ratio or predict").into()),
        None => topology::run(&[]),
    }
}
