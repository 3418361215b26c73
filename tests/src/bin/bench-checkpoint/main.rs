//! What the split process costs: a call, a system call, a whole program, saving and reading images, restarts.
//!
//! `bench-checkpoint [--rounds 7] [calls] [fence] [split] [dump] [restart] [cuts] [NAME:RANKS:PROGRAM ...]` measures
//! the sections that are named, or all. Programs that are given (the NAS Parallel Benchmarks, say) are run besides those of
//! `examples/`; the MPI that each was linked with runs it. Plain and split runs alternate; each figure, the median over the
//! rounds, stands beside its bound. It needs a machine that is quiet; the exit code says nothing of the figures.
mod calls;
mod dump;
mod restart;
mod split;

use phasecast_tests::bench::Command;
use phasecast_tests::example::compiled;
use phasecast_tests::mpi::Mpi;
use std::path::PathBuf;

/// What is to be measured, and how often.
struct Wish {
    rounds: usize,
    sections: Vec<String>,
    programs: Vec<(String, Command)>,
}

const USAGE: &str =
    "usage: bench-checkpoint [--rounds N] [calls|fence|split|dump|restart|cuts] ... [NAME:RANKS:PROGRAM ...]";
const SECTIONS: [&str; 6] = ["calls", "fence", "split", "dump", "restart", "cuts"];

fn main() {
    let wish = match Wish::read(std::env::args().skip(1)) {
        Ok(wish) => wish,
        Err(wrong) => {
            eprintln!("bench-checkpoint: {wrong}\n{USAGE}");
            std::process::exit(2);
        }
    };
    let wanted = |name: &str| wish.sections.is_empty() || wish.sections.iter().any(|s| s == name);
    println!("{:<66} {:>9} {:<4} {:>8}", "", "measured", "", "bound");
    if wanted("calls") || wanted("fence") {
        calls::run(wish.rounds, wanted("calls"), wanted("fence"));
    }
    if wanted("split") {
        split::run(wish.rounds, &wish.programs);
    }
    if wanted("dump") {
        dump::run();
    }
    if wanted("restart") {
        restart::run(wish.rounds);
    }
    if wanted("cuts") {
        restart::cuts(&wish.programs);
    }
}

impl Wish {
    fn read(mut args: impl Iterator<Item = String>) -> Result<Wish, String> {
        let mut wish = Wish { rounds: 7, sections: Vec::new(), programs: Vec::new() };
        while let Some(arg) = args.next() {
            let parts: Vec<&str> = arg.splitn(3, ':').collect();
            match parts.as_slice() {
                ["--rounds"] => {
                    let number = args.next().and_then(|n| n.parse().ok()).filter(|&n| n > 0);
                    wish.rounds = number.ok_or("--rounds wants a number")?;
                }
                [name] if SECTIONS.contains(name) => wish.sections.push(arg),
                [name, ranks, program] => {
                    let ranks = ranks.parse().map_err(|_| format!("'{arg}': how many ranks?"))?;
                    let program = std::path::absolute(program).map_err(|error| error.to_string())?;
                    let mpi = linked(&program)?;
                    wish.programs.push((name.to_string(), Command { mpi, ranks, program, args: Vec::new() }));
                }
                _ => return Err(format!("what is '{arg}'?")),
            }
        }
        Ok(wish)
    }
}

/// The MPI that a program was linked with.
fn linked(program: &PathBuf) -> Result<Mpi, String> {
    let ldd = std::process::Command::new("ldd").arg(program).output().map_err(|error| format!("ldd: {error}"))?;
    let text = String::from_utf8_lossy(&ldd.stdout);
    match text.as_ref() {
        t if t.contains("libmpich") => Ok(Mpi::Mpich),
        t if t.contains("libmpi.so.40") => Ok(Mpi::OpenMpi),
        _ => Err(format!("{} is not linked with Open MPI or MPICH", program.display())),
    }
}

/// An example program on two ranks.
fn example(mpi: Mpi, source: &str, args: &[&str]) -> Command {
    let args = args.iter().map(|arg| arg.to_string()).collect();
    Command { mpi, ranks: 2, program: compiled(mpi, source), args }
}
