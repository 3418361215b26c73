//! Prediction against the truth: with K from the machines' kernels, and, where a small run is named, with K for each
//! region from that.
use crate::Res;
use phasecast_tests::bench::{keep_named, mean, middle_trace};
use phasecast_tests::half::Halves;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

const JOB: &str = "NAME:RANKS:OPENMPI:MPICH[:ARGUMENTS[:SMALL-OPENMPI:SMALL-MPICH[:SMALL-ARGUMENTS]]]";

struct Job {
    name: String,
    ranks: String,
    openmpi: String,
    mpich: String,
    args: Vec<String>,
    /// A small run: both builds and arguments.
    small: Option<(String, String, Vec<String>)>,
}

impl Job {
    /// The program for a target, and its arguments; of the small run if asked for.
    fn words(&self, mpich: bool, small: bool) -> (&String, &[String]) {
        match &self.small {
            Some((one, other, args)) if small => (if mpich { other } else { one }, args),
            _ => (if mpich { &self.mpich } else { &self.openmpi }, &self.args),
        }
    }
}

struct Target {
    name: &'static str,
    /// `{n}` stands for the ranks.
    launcher: String,
    mpich: bool,
}

#[derive(Default)]
struct Row {
    aet: Vec<f64>,
    pet: Vec<f64>,
    inside: usize,
    base: Vec<f64>,
}

impl Row {
    fn errors(&self) -> Vec<f64> {
        self.pet.iter().zip(&self.aet).map(|(p, a)| p / a - 1.0).collect()
    }
}

/// Where K is from.
const WAYS: [&str; 2] = ["kernels", "runs"];

/// Runs it.
pub fn run(args: &[String]) -> Res<()> {
    let (mut runs, mut machines, mut json, mut tables, mut jobs) = (10, None, None, false, Vec::new());
    let mut fresh = false;
    let mut only: Option<String> = None;
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or(format!("{arg} wants a value"));
        match arg.as_str() {
            "--runs" => runs = value()?.parse()?,
            "--machines" => machines = Some(PathBuf::from(value()?)),
            "--json" => json = Some(PathBuf::from(value()?)),
            "--only" => only = Some(value()?.clone()),
            "--tables" => tables = true,
            "--fresh" => fresh = true,
            _ => {
                let parts: Vec<String> = arg.split(':').map(str::to_owned).collect();
                let [name, ranks, openmpi, mpich, rest @ ..] = parts.as_slice() else {
                    return Err(format!("'{arg}' is not {JOB}").into());
                };
                let words = |at: usize| -> Vec<String> {
                    rest.get(at).map_or_else(Vec::new, |w| w.split_whitespace().map(str::to_owned).collect())
                };
                let small = match rest {
                    [_, one, other, ..] => Some((one.clone(), other.clone(), words(3))),
                    _ => None,
                };
                let [name, ranks, openmpi, mpich] = [name, ranks, openmpi, mpich].map(Clone::clone);
                jobs.push(Job { name, ranks, openmpi, mpich, args: words(0), small });
            }
        }
    }
    let halves = [Halves::of_job(100_000), Halves::of_job(10_000), Halves::of_job(1000), Halves::of_rank()];
    // The base itself: what remains of the error there is the noise of the machine, and what tracing costs.
    let mut targets = vec![
        Target { name: "base", launcher: "mpirun.openmpi -n {n}".into(), mpich: false },
        Target { name: "tcp", launcher: "mpirun.openmpi --mca btl tcp,self -n {n}".into(), mpich: false },
        Target { name: "mpich", launcher: "mpirun.mpich -n {n}".into(), mpich: true },
    ];
    for (name, half) in ["half", "short", "turns", "stops"].into_iter().zip(&halves) {
        let launcher = match half {
            Ok(half) if name == "stops" => format!("mpirun.openmpi -n {{n}} {}", half.script()),
            Ok(half) => format!("{} mpirun.openmpi --bind-to none -n {{n}}", half.script()),
            Err(error) => {
                println!("no target {name}, with half of the processors' time: {error}");
                continue;
            }
        };
        targets.push(Target { name, launcher, mpich: false });
    }
    if let Some(only) = only {
        keep_named(&mut targets, &only, |target| target.name)?;
    }
    let scratch = tempfile::tempdir()?;
    let folder = machines.unwrap_or_else(|| scratch.path().to_owned());
    std::fs::create_dir_all(&folder)?;
    let base = Target { name: "base", launcher: "mpirun.openmpi -n {n}".into(), mpich: false };
    for target in std::iter::once(&base).chain(&targets).filter(|_| !fresh) {
        characterize(&folder, target, false)?;
    }
    let mut list = Vec::new();
    let mut table = String::from(
        "program     target  K from    base s    AET s    v %    PET s  error %  |error| %  worst %  inside\n",
    );
    for job in &jobs {
        let small = tempfile::tempdir()?;
        let ways = if job.small.is_some() { 2 } else { 1 };
        let blank = || (0..ways).map(|_| Row::default()).collect::<Vec<_>>();
        let mut rows: Vec<Vec<Row>> = targets.iter().map(|_| blank()).collect();
        let (targets, machines, small) = (targets.as_slice(), folder.as_path(), small.path());
        let setting = Setting { job, base: &base, targets, machines, fresh, small, tables };
        setting.small()?;
        for run in 0..runs {
            setting.run(run, run + 1 == runs, &mut rows)?;
        }
        for (target, rows) in targets.iter().zip(&rows) {
            for (way, row) in rows.iter().enumerate() {
                let errors = row.errors();
                let absolute: Vec<f64> = errors.iter().map(|e| e.abs()).collect();
                table.push_str(&format!(
                    "{:11} {:7} {:7} {:8.3} {:8.3} {:6.2} {:8.3} {:+8.2} {:10.2} {:8.2} {:4}/{}\n",
                    job.name,
                    target.name,
                    WAYS[way],
                    mean(&row.base),
                    mean(&row.aet),
                    100.0 * phasecast_tests::bench::variation(&row.aet),
                    mean(&row.pet),
                    100.0 * mean(&errors),
                    100.0 * mean(&absolute),
                    100.0 * absolute.iter().copied().fold(0.0, f64::max),
                    row.inside,
                    row.aet.len()
                ));
                list.push(json!({ "program": job.name, "target": target.name, "ratio_from": WAYS[way],
                    "aet_s": row.aet, "pet_s": row.pet, "error": errors, "base_s": row.base, "inside": row.inside }));
            }
        }
    }
    print!("{table}");
    for way in WAYS {
        let of_way = list.iter().filter(|row| row["ratio_from"] == way);
        let all: Vec<f64> =
            of_way.flat_map(|row| row["error"].as_array()).flatten().filter_map(Value::as_f64).map(f64::abs).collect();
        if !all.is_empty() {
            println!("mean of all |errors| with K from {way}: {:.2} %", 100.0 * mean(&all));
        }
    }
    if let Some(path) = json {
        std::fs::write(path, serde_json::to_string_pretty(&list)?)?;
    }
    Ok(())
}

fn phasecast(args: &[&str]) -> Command {
    let mut command = Command::new(phasecast_tests::phasecast());
    command.args(args);
    environment(&mut command);
    command
}

fn environment(command: &mut Command) {
    command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
}

fn done(command: &mut Command) -> Res<String> {
    let output = command.output()?;
    if output.status.success() {
        return Ok(String::from_utf8(output.stdout)?);
    }
    Err(format!("{command:?} failed: {}", String::from_utf8_lossy(&output.stderr)).into())
}

/// The file of a machine in a folder.
fn machine(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("m.{name}.toml"))
}

/// Measures a machine where that was not done before.
fn characterize(folder: &Path, target: &Target, quick: bool) -> Res<()> {
    let file = machine(folder, target.name);
    if !file.exists() {
        println!("measuring {}", target.name);
        let mut command = phasecast(&["characterize", "-n", "2", "--launcher", &target.launcher, "-o"]);
        done(command.arg(&file).args(quick.then_some("--quick")))?;
    }
    Ok(())
}

fn launched(job: &Job, target: &Target, small: bool, traced: Option<&Path>) -> Command {
    let launcher = target.launcher.replace("{n}", &job.ranks);
    let mut words = launcher.split(' ');
    let mut command = Command::new(words.next().unwrap_or_default());
    command.args(words);
    if let Some(trace) = traced {
        command.arg(phasecast_tests::phasecast()).args(["trace", "--quiet", "-o"]).arg(trace).arg("--");
    }
    let (program, args) = job.words(target.mpich, small);
    command.arg(program).args(args).stdout(Stdio::null());
    environment(&mut command);
    command
}

/// What stays the same in all runs of a program.
struct Setting<'a> {
    job: &'a Job,
    base: &'a Target,
    targets: &'a [Target],
    /// Machine files.
    machines: &'a Path,
    /// Whether each run has machine files of its own, measured beside it.
    fresh: bool,
    /// Traces of the small runs.
    small: &'a Path,
    tables: bool,
}

impl Setting<'_> {
    fn small(&self) -> Res<()> {
        if self.job.small.is_some() {
            for target in std::iter::once(self.base).chain(self.targets).filter(|t| !self.small_of(t).exists()) {
                done(&mut launched(self.job, target, true, Some(&self.small_of(target))))?;
            }
        }
        Ok(())
    }

    fn small_of(&self, target: &Target) -> PathBuf {
        self.small.join(format!("{}.trace", target.name))
    }

    /// `phasecast transform` for a target; with K from the small runs if `way` is 1.
    fn transform(&self, machines: &Path, trace: &Path, target: &Target, way: usize, out: &Path) -> Command {
        let mut command = phasecast(&["transform", "--base"]);
        let [one, other] = [self.base, target].map(|of| machine(machines, of.name));
        command.arg(one).arg("--target").arg(other).arg(trace).arg("-o").arg(out);
        if way == 1 {
            command.arg("--ratios-from").arg(self.small_of(self.base)).arg(self.small_of(target));
        }
        command
    }

    /// One run on the base and on each target; rows are by target and way.
    fn run(&self, run: usize, last: bool, rows: &mut [Vec<Row>]) -> Res<()> {
        let folder = tempfile::tempdir()?;
        let machines = if self.fresh { folder.path() } else { self.machines };
        let trace = middle_trace(folder.path(), |trace| {
            done(&mut launched(self.job, self.base, false, Some(trace))).map(|_| ())
        })?;
        characterize(machines, self.base, self.fresh)?;
        for (target, rows) in self.targets.iter().zip(rows) {
            let begun = Instant::now();
            done(&mut launched(self.job, target, false, None))?;
            let aet = begun.elapsed().as_secs_f64();
            characterize(machines, target, self.fresh)?;
            for (way, row) in rows.iter_mut().enumerate() {
                let out = folder.path().join(format!("{}.{way}", target.name));
                let text = done(self.transform(machines, &trace, target, way, &out).arg("--json"))?;
                let prediction: Value = serde_json::from_str(&text)?;
                let number = |key: &str| prediction[key].as_f64().ok_or(format!("no {key}"));
                let pet = number("pet_s")?;
                row.aet.push(aet);
                row.pet.push(pet);
                row.base.push(number("base_run_s")?);
                let at = |n: usize| prediction["run_interval_s"][n].as_f64().unwrap_or(f64::NAN);
                row.inside += usize::from(at(0) <= aet && aet <= at(1));
                let ratio = number("ratio")?;
                println!(
                    "  {} run {run} {} {}: base {:.3} s, AET {aet:.3} s, PET {pet:.3} s ({:+.2} %), K {ratio:.3}",
                    self.job.name,
                    target.name,
                    WAYS[way],
                    number("base_run_s")?,
                    100.0 * (pet / aet - 1.0)
                );
            }
            if self.tables && last {
                let seen = folder.path().join("seen");
                done(&mut launched(self.job, target, false, Some(&seen)))?;
                let out = folder.path().join("again");
                let way = rows.len() - 1;
                println!("{}", done(self.transform(machines, &trace, target, way, &out).arg("--observed").arg(&seen))?);
                std::fs::remove_dir_all(seen)?;
                std::fs::remove_dir_all(out)?;
            }
        }
        Ok(())
    }
}
