//! Cuts any program in the middle of its run, restarts it under several MPIs, and looks for what it must print:
//!
//! `halfway --base openmpi --targets openmpi5,mpich --ranks 4 --prints ' SUCCESSFUL' PROGRAM [ARGUMENTS]`
//!
//! The middle is by the first rank's events. It prints one line for each target, and fails if one of them does.

use phasecast_analyzer::cuts_at_every_position;
use phasecast_checkpoint::job::{CheckpointReport, Cut, Job, Program, ReplayReport, Step};
use phasecast_tests::mpi::Mpi;
use phasecast_tests::phasecast;
use phasecast_tests::process::start;
use phasecast_tests::split::{made, report};
use phasecast_trace::{Rank, Trace};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How long a launch may take.
const LIMIT: Duration = Duration::from_secs(400);
const USAGE: &str = "usage: halfway --base MPI --targets MPI,... --ranks N --prints TEXT PROGRAM [ARGUMENTS]";

struct Case {
    base: Mpi,
    targets: Vec<Mpi>,
    ranks: u32,
    prints: String,
    program: Vec<String>,
    folder: TempDir,
}

fn main() -> ExitCode {
    match Case::read().and_then(|case| case.run()) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(wrong) => {
            eprintln!("halfway: {wrong}");
            ExitCode::FAILURE
        }
    }
}

impl Case {
    fn read() -> Result<Case, String> {
        let mut args = std::env::args().skip(1);
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let (base, targets, ranks, prints) = (Mpi::OpenMpi, vec![Mpi::OpenMpi], 2, String::new());
        let mut case = Case { base, targets, ranks, prints, program: Vec::new(), folder };
        let mpi = |name: &str| Mpi::named(name).ok_or(format!("'{name}' is none of {:?}", Mpi::ALL.map(Mpi::name)));
        while let Some(arg) = args.next() {
            let mut value = || args.next().ok_or(USAGE);
            match arg.as_str() {
                "--base" => case.base = mpi(&value()?)?,
                "--targets" => case.targets = value()?.split(',').map(mpi).collect::<Result<_, _>>()?,
                "--ranks" => case.ranks = value()?.parse().map_err(|_| USAGE)?,
                "--prints" => case.prints = value()?,
                _ => {
                    case.program = std::iter::once(arg).chain(args.by_ref()).collect();
                }
            }
        }
        if case.program.is_empty() || case.prints.is_empty() { Err(USAGE.into()) } else { Ok(case) }
    }

    /// How many targets failed.
    fn run(&self) -> Result<usize, String> {
        let cut = self.middle()?;
        let images = self.folder("images");
        let path = std::path::absolute(&self.program[0]).map_err(|error| format!("{}: {error}", self.program[0]))?;
        let program = Program { path, args: self.program[1..].to_vec() };
        let job = Job::Checkpoint {
            program,
            cuts: vec![cut.clone()],
            recorded: Vec::new(),
            collectives: false,
            images: images.clone(),
            patience_s: 15.0,
            cpu: None,
        };
        self.well(&mut self.host(self.base, &job))
            .map_err(|wrong| format!("the cut under {}: {wrong}", self.base.name()))?;
        let mut bytes = 0;
        for rank in 0..self.ranks {
            match report::<CheckpointReport>(&images, rank)?.cuts.first() {
                Some(cut) if cut.saved => bytes += cut.bytes,
                other => return Err(format!("rank {rank} did not save the cut: {other:?}")),
            }
        }
        let name = Path::new(&self.program[0]).file_name().unwrap_or_default().to_string_lossy();
        let (mut failed, made) = (0, made(&images, self.ranks));
        for &target in &self.targets {
            let watch = vec![Vec::new(); self.ranks as usize];
            let out = self.folder(&format!("out-{}", target.name()));
            let steps = vec![Step { cut: 0, watch }];
            let (images, out_folder, made) = (images.clone(), out.clone(), made.clone());
            let job = Job::Replay { images, steps, collectives: false, made, out: out_folder, within: None };
            let begun = Instant::now();
            let restarted = self.well(&mut self.host(target, &job));
            let under = restarted.and_then(|()| report::<ReplayReport>(&out, 0)).map(|report| report.mpi);
            let as_asked = under.and_then(|mpi| match mpi.contains(target.version()) {
                true => Ok(()),
                false => Err(format!("it was restarted under {mpi}")),
            });
            let how = match as_asked {
                Ok(()) => format!("well, {:.1} s", begun.elapsed().as_secs_f64()),
                Err(wrong) => {
                    failed += 1;
                    format!("FAILED: {wrong}")
                }
            };
            let (base, target, events, mb) = (self.base.name(), target.name(), cut.events[0], bytes >> 20);
            println!("{name:10} {base:8} -> {target:10} after {events} events, {mb} MiB: {how}");
        }
        Ok(failed)
    }

    /// The cut in the middle, found from a trace.
    fn middle(&self) -> Result<Cut, String> {
        let file = self.folder.path().join("run.trace");
        let mut command = self.base.launcher(self.ranks);
        command.arg(phasecast()).args(["trace", "--quiet", "-o"]).arg(&file).arg("--").args(&self.program);
        self.well(&mut command).map_err(|wrong| format!("traced: {wrong}"))?;
        let trace = Trace::open(&file).map_err(|error| error.to_string())?;
        let cuts = cuts_at_every_position(&trace, Rank(0)).map_err(|error| error.to_string())?;
        let events = cuts.get(cuts.len() / 2).cloned().ok_or("it has no events")?;
        Ok(Cut { id: 0, events })
    }

    fn host(&self, mpi: Mpi, job: &Job) -> Command {
        let file = self.folder.path().join("job.json");
        fs::write(&file, serde_json::to_string(job).expect("a job is plain data")).expect("it can be written");
        let mut command = mpi.launcher(self.ranks);
        command.arg(phasecast()).arg("host").arg(file);
        command
    }

    /// Whether the program ends well, and prints what it must.
    fn well(&self, command: &mut Command) -> Result<(), String> {
        let ended = start(command).finish_within(LIMIT);
        let last = |text: &str| text.chars().skip(text.chars().count().saturating_sub(3000)).collect::<String>();
        match ended {
            Ok(o) if o.code == 0 && [&o.stdout, &o.stderr].iter().any(|text| text.contains(&self.prints)) => Ok(()),
            Ok(o) => Err(format!("exit code {}: {} {}", o.code, last(&o.stdout), last(&o.stderr))),
            Err(o) => Err(format!("more than {LIMIT:?}: {} {}", last(&o.stdout), last(&o.stderr))),
        }
    }

    fn folder(&self, name: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        fs::create_dir_all(&path).expect("the folder for temporary files can be written to");
        path
    }
}
