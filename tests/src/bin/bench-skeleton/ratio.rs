//! Skeletons beside their programs: does it compile without a warning, end, take the part of the time that was asked for,
//! and compute and communicate in the same shares?
use crate::Res;
use crate::shared::{Job, done, launched, phasecast};
use phasecast_tests::bench::{Bound, figure, mean, middle_trace};
use phasecast_trace::{Class, Trace};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// Runs it.
pub fn run(args: &[String]) -> Res<()> {
    let (mut ratio, mut launcher, mut runs, mut jobs) =
        ("20".to_owned(), "mpirun.openmpi -n {n}".to_owned(), 3, Vec::new());
    let (mut compiler, mut clock) = ("mpicc.openmpi".to_owned(), "wall".to_owned());
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or(format!("{arg} wants a value"));
        match arg.as_str() {
            "--ratio" => ratio = value()?.clone(),
            "--launcher" => launcher = value()?.clone(),
            "--cc" => compiler = value()?.clone(),
            "--runs" => runs = value()?.parse()?,
            "--clock" => clock = value()?.clone(),
            job => jobs.push(Job::parse(job)?),
        }
    }
    for job in &jobs {
        let folder = tempfile::tempdir()?;
        let at = |name: &str| folder.path().join(name);
        let traced = |trace: &Path, clock: &str, program: &str, args: &[String]| {
            done(&mut launched(&launcher, &job.ranks, program, args, Some((trace, clock)))).map(|_| ())
        };
        let imitated = middle_trace(folder.path(), |trace| traced(trace, &clock, &job.openmpi, &job.args))?;
        let mut command =
            phasecast(&["skeleton", "--ratio", &ratio, "--launcher", &launcher, "--cc", &compiler, "--json"]);
        let (text, took) = done(command.arg(imitated).arg("-o").arg(at("skeleton")).current_dir(folder.path()))?;
        let told: Value = serde_json::from_str(&text)?;
        let strict = ["-std=c99", "-O2", "-Wall", "-Wextra", "-pedantic", "-Werror", "-o"];
        done(Command::new(&compiler).args(strict).arg(at("run")).arg(at("skeleton").join("skeleton.c")))?;
        let built = at("run").to_string_lossy().into_owned();
        let again = |program: &str, args: &[String]| -> Res<Shares> {
            traced(&at("again"), "wall", program, args)?;
            let shares = Shares::of(&at("again"))?;
            std::fs::remove_dir_all(at("again"))?;
            Ok(shares)
        };
        let (mut of_program, mut of_skeleton) = (Vec::new(), Vec::new());
        for _ in 0..runs {
            of_program.push(again(&job.openmpi, &job.args)?);
            of_skeleton.push(again(&built, &[])?);
        }
        let (program, skeleton) = (Shares::mean(&of_program), Shares::mean(&of_skeleton));
        let asked: f64 = ratio.parse()?;
        let got = program.run_s / skeleton.run_s;
        println!(
            "{} with {} ranks: {:.3} s, skeleton {:.4} s, written in {took:.1} s",
            job.name, job.ranks, program.run_s, skeleton.run_s
        );
        figure("  ratio asked for", asked, "", Bound::None);
        figure("  ratio expected", told["ratio"].as_f64().unwrap_or(f64::NAN), "", Bound::None);
        figure(
            "  ratio with one iteration of the main loop",
            told["skeleton"]["ratio_most"].as_f64().unwrap_or(f64::NAN),
            "",
            Bound::None,
        );
        figure("  ratio, off the one asked for by", 100.0 * (got / asked - 1.0).abs(), "%", Bound::Most(10.0));
        figure("  share of MPI in the program", 100.0 * program.mpi, "%", Bound::None);
        figure("  the same, from run to run", 100.0 * Shares::range(&of_program), "pt", Bound::None);
        figure("  share of MPI in the skeleton", 100.0 * skeleton.mpi, "%", Bound::None);
        figure("  the same, from run to run", 100.0 * Shares::range(&of_skeleton), "pt", Bound::None);
        figure("  shares apart by", 100.0 * (skeleton.mpi - program.mpi).abs(), "pt", Bound::Most(3.0));
        for line in told["left_out"].as_array().into_iter().flatten() {
            println!("  left out: {}", line.as_str().unwrap_or_default());
        }
    }
    Ok(())
}

/// Run time (the mean over ranks, without start and end of MPI and what is not traced), and what of it is MPI.
struct Shares {
    run_s: f64,
    mpi: f64,
}

impl Shares {
    fn mean(runs: &[Shares]) -> Shares {
        let of = |of: fn(&Shares) -> f64| mean(&runs.iter().map(of).collect::<Vec<_>>());
        Shares { run_s: of(|run| run.run_s), mpi: of(|run| run.mpi) }
    }

    /// By how much the least share of MPI and the greatest differ.
    fn range(runs: &[Shares]) -> f64 {
        let ends = runs.iter().fold((1.0, 0.0), |(least, most), run| (run.mpi.min(least), run.mpi.max(most)));
        ends.1 - ends.0
    }

    fn of(path: &Path) -> Res<Shares> {
        let trace = Trace::open(path)?;
        let (mut run, mut mpi) = (0, 0);
        for rank in trace.ranks() {
            let (mut start, mut end, mut inside, mut paused) = (0, 0, 0, false);
            let mut calls = trace.calls(rank);
            while let Some(call) = calls.next_call()? {
                let call = call.call;
                let name = trace.procedure(call.proc);
                match call.class {
                    Class::Setup if name.starts_with("MPI_Init") => start = call.exit.0,
                    Class::Setup if !paused => end = call.enter.0,
                    Class::Setup => {}
                    Class::Pause => (end, paused) = (call.enter.0, true),
                    Class::Resume => (start, inside, paused) = (call.exit.0, 0, false),
                    _ => inside += call.exit.since(call.enter).0,
                }
            }
            run += end.saturating_sub(start);
            mpi += inside;
        }
        Ok(Shares { run_s: run as f64 * 1e-9 / f64::from(trace.size()), mpi: mpi as f64 / run.max(1) as f64 })
    }
}
