//! Cuts one program of `tests/programs` and restarts it, telling what happens: for finding out why one fails.
//!
//! `transparency NAME [--base openmpi] [--target mpich] [--pilot 0] [--cut K]`: without `--cut`, one cut after the other. If
//! one fails the images are kept, and their folder is named.

use phasecast_tests::mpi::Mpi;
use phasecast_tests::program::programs;
use phasecast_tests::split::{Base, Choice, chosen, cuts, native};
use std::process::ExitCode;

fn main() -> ExitCode {
    match run() {
        Ok(0) => ExitCode::SUCCESS,
        Ok(failed) => {
            eprintln!("{failed} failed");
            ExitCode::FAILURE
        }
        Err(wrong) => {
            eprintln!("{wrong}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<usize, String> {
    let (mut name, mut base, mut target, mut pilot, mut choice) = (None, Mpi::OpenMpi, Mpi::OpenMpi, 0, Choice::Every);
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or(format!("{arg} wants a value"));
        let number = |text: String| text.parse::<u32>().map_err(|_| format!("'{text}' is no number"));
        let mpi = |text: String| Mpi::named(&text).ok_or(format!("'{text}' is none of {:?}", Mpi::ALL.map(Mpi::name)));
        match arg.as_str() {
            "--base" => base = mpi(value()?)?,
            "--target" => target = mpi(value()?)?,
            "--pilot" => pilot = number(value()?)?,
            "--cut" => choice = Choice::One(number(value()?)? as usize),
            _ => name = Some(arg),
        }
    }
    let name = name.ok_or("usage: transparency NAME [--base MPI] [--target MPI] [--pilot RANK] [--cut K]")?;
    let all = programs();
    let program = all.iter().find(|p| p.name == name).ok_or(format!("there is no tests/programs/{name}"))?;
    println!("{}", program.command(base).join(" "));
    let (here, there) = (native(program, base)?, native(program, target)?);
    let cuts = cuts(program, base, pilot)?;
    println!("{} cuts; the last is {:?}", cuts.len(), cuts.last());
    let base = Base::cut(program, base, chosen(cuts, choice, program), &here)?;
    let mut failed = base.failures.len();
    base.failures.iter().for_each(|wrong| println!("FAILED {wrong}"));
    base.refused.iter().for_each(|(cut, reason)| println!("cut {} {:?}: refused: {reason}", cut.id, cut.events));
    for cut in &base.saved {
        match base.replay(target, cut, &there) {
            Ok(()) => println!("cut {} {:?}: well", cut.id, cut.events),
            Err(wrong) => {
                println!("FAILED {wrong}");
                failed += 1;
            }
        }
    }
    if failed > 0 {
        println!("{}", base.keep().display());
    }
    Ok(failed)
}
