//! Real programs on more ranks than there are processors: what each rank computes is measured by its processor time, what
//! communication costs is taken from a machine file, and so is the truth at the number of ranks that is predicted. Only
//! what is between `MPI_Init` and `MPI_Finalize` counts: these two take as long whatever the number of ranks here. Each
//! number of ranks is traced `--runs` times; the run of the median duration counts.
use crate::Res;
use phasecast_tests::bench::mean;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Runs it.
pub fn run(args: &[String]) -> Res<()> {
    let (mut machine, mut ranks, mut to, mut runs) = (None, vec![1u32, 2, 4, 8], 16u32, 3u32);
    let (mut more, mut jobs) = (Vec::new(), Vec::new());
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or(format!("{arg} wants a value"));
        match arg.as_str() {
            "--machine" => machine = Some(PathBuf::from(value()?)),
            "--ranks" => ranks = value()?.split(',').map(str::parse).collect::<Result<_, _>>()?,
            "--to" => to = value()?.parse()?,
            "--runs" => runs = value()?.parse()?,
            "--with" => more = value()?.split_whitespace().map(str::to_owned).collect(),
            _ => jobs.push(arg.split(':').map(str::to_owned).collect::<Vec<_>>()),
        }
    }
    let folder = tempfile::tempdir()?;
    let machine = match machine {
        Some(machine) => machine,
        None => {
            let file = folder.path().join("machine.toml");
            println!("measuring this machine");
            done(phasecast(&["characterize", "-n", "2", "--launcher", "mpirun.openmpi -n {n}", "-o"]).arg(&file))?;
            file
        }
    };
    println!(
        "program           ranks: run time s as with a processor for each rank       PET s  from     to     error %  inside"
    );
    let (mut errors, mut inside) = (Vec::new(), 0);
    for job in &jobs {
        let [name, program, rest @ ..] = job.as_slice() else { return Err("a job is NAME:PROGRAM[:ARGUMENTS]".into()) };
        let words: Vec<&str> = rest.first().map_or(Vec::new(), |words| words.split_whitespace().collect());
        let own = folder.path().join(name);
        std::fs::create_dir(&own)?;
        let (mut traces, mut times) = (Vec::new(), Vec::new());
        for &count in ranks.iter().chain([&to]) {
            let mut of_runs = Vec::new();
            for run in 0..runs.max(1) {
                let trace = traced(&own.join(format!("{count}-{run}")), &machine, count, program, &words)?;
                let told = done(phasecast(&["profile", "--main", "--json"]).arg(&trace))?;
                let profile: Value = serde_json::from_str(&told)?;
                of_runs.push((profile["duration_s"].as_f64().ok_or("a profile has a duration")?, trace));
            }
            of_runs.sort_by(|a, b| a.0.total_cmp(&b.0));
            let (time, trace) = of_runs.swap_remove((of_runs.len() - 1) / 2);
            times.push((count, time));
            traces.push(trace);
        }
        let truth = times[times.len() - 1].1;
        let mut command = phasecast(&["scale", "--main", "--json", "--to", &to.to_string()]);
        command.args(&more).args(&traces[..ranks.len()]);
        let answer: Value = serde_json::from_str(&done(&mut command)?)?;
        let number = |key: &Value| key.as_f64().ok_or("a number is missing");
        let pet = number(&answer["pet_s"])?;
        let interval = [number(&answer["run_interval_s"][0])?, number(&answer["run_interval_s"][1])?];
        let held = interval[0] <= truth && truth <= interval[1];
        errors.push((pet / truth - 1.0).abs());
        inside += usize::from(held);
        let list: Vec<String> = times.iter().map(|(count, time)| format!("{count}:{time:.4}")).collect();
        println!(
            "{name:16} {:55} {pet:8.4} {:8.4} {:8.4} {:+8.2} {}",
            list.join(" "),
            interval[0],
            interval[1],
            100.0 * (pet / truth - 1.0),
            if held { "yes" } else { "no" }
        );
        if let Some(phases) = answer["signatures"].as_array() {
            let forms: Vec<String> = phases.iter().map(|phase| format!("{}", phase["form"])).collect();
            println!("{:16} {} phases: {}", "", phases.len(), forms.join(" ").replace('"', ""));
        }
        std::fs::remove_dir_all(&own)?;
    }
    println!("mean |error| {:.2} %, {inside} of {} intervals hold the truth", 100.0 * mean(&errors), jobs.len());
    Ok(())
}

/// Traces a run by what its ranks compute, and adds communication.
fn traced(path: &Path, machine: &Path, ranks: u32, program: &str, words: &[&str]) -> Res<PathBuf> {
    let (raw, full) = (path.with_extension("raw"), path.with_extension("trace"));
    let mut command = Command::new("mpirun.openmpi");
    command.args(["--oversubscribe", "--mca", "mpi_yield_when_idle", "1", "-n", &ranks.to_string()]);
    command.arg(phasecast_tests::phasecast()).args(["trace", "--quiet", "--clock", "computing", "-o"]).arg(&raw);
    done(environment(command.arg("--").arg(program).args(words)).stdin(Stdio::null()))?;
    done(phasecast(&["transform", "--target"]).arg(machine).arg(&raw).arg("-o").arg(&full))?;
    Ok(full)
}

fn phasecast(args: &[&str]) -> Command {
    let mut command = Command::new(phasecast_tests::phasecast());
    environment(command.args(args));
    command
}

fn environment(command: &mut Command) -> &mut Command {
    command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
}

fn done(command: &mut Command) -> Res<String> {
    let output = command.output()?;
    if output.status.success() {
        return Ok(String::from_utf8(output.stdout)?);
    }
    Err(format!("{command:?} failed: {}", String::from_utf8_lossy(&output.stderr)).into())
}
