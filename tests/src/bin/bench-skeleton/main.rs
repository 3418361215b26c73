//! Skeletons: what the seed's tables show.
//!
//! `bench-skeleton loops [TRACE ...]`: the seed's Table 3, from traces, and the time for long sequences.
//! `bench-skeleton topology [TRACE ...]`: the seed's Table 2, from made matrices and from traces.
mod loops;
mod topology;

type Res<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> Res<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.split_first() {
        Some((mode, rest)) if mode == "loops" => loops::run(rest),
        Some((mode, rest)) if mode == "topology" => topology::run(rest),
        Some((other, _)) => Err(format!("there is no '{other}': say topology or loops").into()),
        None => topology::run(&[]),
    }
}
