//! `cargo xtask demo`: the main job of phasecast from beginning to end, on an example program.

use crate::setup;
use crate::shell::{self, Done, failed};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

pub const HELP: &str = "\
Predict the run time of an example program and compare it with the true one

Usage: cargo xtask demo

Does the set-up, builds phasecast, compiles examples/stencil.c with Open MPI and with MPICH, signs it under Open MPI (2
ranks), predicts its run time under MPICH by restart and live, measures the true one there (median of 3 runs without
phasecast), and prints all three.";

const RANKS: &str = "2";
/// Edge of the grid and steps: about 10 s on 2 ranks of a processor of today.
const PROGRAM_ARGUMENTS: [&str; 2] = ["1024", "4000"];
const BASE: &str = "mpirun.openmpi -n {n}";
const TARGET: &str = "mpirun.mpich -n {n}";

/// Runs the demo.
pub fn run(args: &[String]) -> Done {
    shell::no_arguments(args)?;
    setup::run(&[])?;
    shell::step(shell::cargo().args(["build", "--release"]))?;
    let folder = shell::target().join("demo");
    if let Err(error) = fs::remove_dir_all(&folder).or_else(|e| if folder.exists() { Err(e) } else { Ok(()) }) {
        return failed(format!("{} cannot be removed: {error}", folder.display()));
    }
    if let Err(error) = fs::create_dir_all(&folder) {
        return failed(format!("{} cannot be made: {error}", folder.display()));
    }
    let (program, elsewhere) = (folder.join("stencil"), folder.join("stencil.mpich"));
    let source = shell::root().join("examples/stencil.c");
    for (compiler, program) in [("mpicc.openmpi", &program), ("mpicc.mpich", &elsewhere)] {
        shell::step(Command::new(compiler).args(["-O2", "-w", "-o"]).arg(program).arg(&source).arg("-lm"))?;
    }

    say("the base, Open MPI: two traced runs give the phases, a third saves the state before them");
    let signature = folder.join("stencil.phc");
    let mut sign = phasecast(&["sign", "--no-verify", "-n", RANKS, "--launcher", BASE, "-o"]);
    shell::step(sign.arg(&signature).arg("--").arg(&program).args(PROGRAM_ARGUMENTS))?;

    say("the true run time under MPICH, to compare with: 3 runs without phasecast");
    let aet = format!("{:.3}", true_time(&elsewhere)?);

    let predictions = [folder.join("restart.json"), folder.join("live.json")];
    say("the target, MPICH: the phases are restarted from the signature; the program itself is not needed");
    let mut predict = phasecast(&["predict"]);
    predict.arg(&signature).args(["--launcher", TARGET, "--aet", &aet, "-o"]).arg(&predictions[0]);
    shell::step(&mut predict)?;

    say("the target once more, live: the program built with MPICH runs until every relevant phase has been seen");
    let mut predict = phasecast(&["predict", "--live"]);
    predict.arg(&signature).args(["--launcher", TARGET, "--aet", &aet, "-o"]).arg(&predictions[1]).arg("--");
    shell::step(predict.arg(&elsewhere).args(PROGRAM_ARGUMENTS))?;

    say("both beside the true time");
    shell::step(phasecast(&["compare", "--aet", &format!("{aet},{aet}")]).args(&predictions))
}

fn say(what: &str) {
    eprintln!("\n== {what}");
}

fn phasecast(args: &[&str]) -> Command {
    let mut command = Command::new(shell::target().join("release/phasecast"));
    shell::mpi_environment(&mut command).args(args);
    command
}

/// Median wall time in seconds of three runs of the program alone under the same launcher.
fn true_time(program: &Path) -> Done<f64> {
    let mut seconds = Vec::new();
    for _ in 0..3 {
        let mut words = TARGET.split(' ').map(|word| word.replace("{n}", RANKS));
        let mut command = Command::new(words.next().unwrap_or_default());
        shell::mpi_environment(&mut command).args(words).arg(program).args(PROGRAM_ARGUMENTS).stdout(Stdio::null());
        let start = Instant::now();
        shell::step(&mut command)?;
        seconds.push(start.elapsed().as_secs_f64());
        eprintln!("  {:.3} s", seconds[seconds.len() - 1]);
    }
    seconds.sort_by(f64::total_cmp);
    Ok(seconds[1])
}
