//! Scaling: execution profiles and signatures (seed 003).
//!
//! `bench-scaling table2`: the seed's Table 2 from its Table 1, ours beside the printed one, with errors against the truth.
//! `bench-scaling speed [10m]`: a profile from so many calls, and all fits of 100 phases, beside their bounds.
//! `bench-scaling real [--machine FILE] [--ranks 1,2,4,8] [--to 16] JOB ...`, a job being `NAME:PROGRAM[:ARGUMENTS]` (Open
//! MPI): traced by what each rank computes, with communication as characterised, predicted at `--to` and compared with
//! the same kind of run there.
mod real;
mod speed;
mod table2;

type Res<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> Res<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.split_first() {
        Some((mode, [])) if mode == "table2" => table2::run(),
        Some((mode, rest)) if mode == "speed" => speed::run(rest),
        Some((mode, rest)) if mode == "real" => real::run(rest),
        _ => Err("say table2, speed or real".into()),
    }
}
