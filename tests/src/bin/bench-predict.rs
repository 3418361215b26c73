//! Prediction against the truth: for each program, runs and predictions by every method in turn on this machine.
//!
//! `bench-predict [--rounds 5] [--methods restart,live] [--share 0.3] [--json FILE] NAME:RANKS:BASE[:TARGET...] ...` where
//! BASE is the program to sign and each TARGET a build of it (with another MPI, say) to run and predict; BASE itself if
//! none is given. Prints a row per program, target and method, and the means: true time (median) with its coefficient of
//! variation v, error of prediction (mean, worst), how often the true time lies in the interval for another run, and
//! what it cost on the target (SET). `naive` is what a user would do without phasecast, as the live prediction sees it:
//! time the first 5 % of the iterations, and multiply.
use phasecast_tests::bench::{keep_named, mean, median, variation};
use serde_json::Value;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

type Res<T> = Result<T, Box<dyn Error>>;

/// The share of the iterations that the naive estimate times.
const NAIVE_SHARE: f64 = 0.05;

struct Options {
    rounds: usize,
    methods: Vec<String>,
    share: String,
}

struct Job {
    name: String,
    ranks: String,
    base: String,
    targets: Vec<String>,
}

/// What one method has said of one program on one target.
#[derive(Default)]
struct Row {
    program: String,
    mpi: String,
    method: String,
    aet: Vec<f64>,
    pet: Vec<f64>,
    set: Vec<f64>,
    inside: usize,
    notes: String,
}

fn main() -> Res<()> {
    let methods = ["restart", "live"].map(String::from).to_vec();
    let mut options = Options { rounds: 5, methods, share: "0.3".into() };
    let (mut json, mut jobs) = (None, Vec::new());
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or(format!("{arg} wants a value"));
        match arg.as_str() {
            "--rounds" => options.rounds = value()?.parse()?,
            "--methods" => keep_named(&mut options.methods, &value()?, String::as_str)?,
            "--share" => options.share = value()?,
            "--json" => json = Some(PathBuf::from(value()?)),
            _ => {
                let parts: Vec<&str> = arg.split(':').collect();
                let [name, ranks, base, rest @ ..] = parts.as_slice() else {
                    return Err(format!("'{arg}' is not NAME:RANKS:BASE[:TARGET]").into());
                };
                let targets = if rest.is_empty() { &[*base][..] } else { rest };
                let targets = targets.iter().map(|t| t.to_string()).collect();
                let [name, ranks, base] = [name, ranks, base].map(|s| s.to_string());
                jobs.push(Job { name, ranks, base, targets });
            }
        }
    }
    println!("program target  method   AET s   v %  PETE mean %  worst %  inside   SET s  SET/AET %");
    let mut rows = Vec::new();
    for job in &jobs {
        rows.extend(measure(job, &options)?);
    }
    let mut named: Vec<&str> = options.methods.iter().map(String::as_str).collect();
    named.push("naive");
    for method in named {
        let of: Vec<&Row> = rows.iter().filter(|row| row.method == method && !row.pet.is_empty()).collect();
        if of.is_empty() {
            continue;
        }
        let each = |number: fn(&Row) -> f64| of.iter().map(|row| number(row)).collect::<Vec<_>>();
        println!(
            "all             {method:8}       {:5.1} {:12.2} {:8.2} {:>3}/{:<3} {:8.2} {:10.1}",
            100.0 * mean(&each(|row| variation(&row.aet))),
            100.0 * mean(&each(|row| mean(&row.errors()))),
            100.0 * each(Row::worst).into_iter().fold(0.0, f64::max),
            of.iter().map(|row| row.inside).sum::<usize>(),
            of.iter().map(|row| row.pet.len()).sum::<usize>(),
            mean(&each(|row| median(&row.set))),
            100.0 * mean(&each(|row| median(&row.set) / median(&row.aet))),
        );
    }
    if let Some(path) = json {
        let list: Vec<Value> = rows.iter().map(Row::json).collect();
        std::fs::write(path, serde_json::to_string_pretty(&list)?)?;
    }
    Ok(())
}

impl Row {
    fn errors(&self) -> Vec<f64> {
        let aet = median(&self.aet);
        self.pet.iter().map(|pet| (pet - aet).abs() / aet).collect()
    }

    fn worst(&self) -> f64 {
        self.errors().into_iter().fold(0.0, f64::max)
    }

    fn print(&self) {
        // The naive estimate has no interval.
        let inside = if self.method == "naive" { "-".into() } else { format!("{}/{}", self.inside, self.pet.len()) };
        println!(
            "{:7} {:7} {:8} {:5.2} {:5.1} {:12.2} {:8.2} {:>7} {:8.2} {:10.1}   {}",
            self.program,
            self.mpi,
            self.method,
            median(&self.aet),
            100.0 * variation(&self.aet),
            100.0 * mean(&self.errors()),
            100.0 * self.worst(),
            inside,
            median(&self.set),
            100.0 * median(&self.set) / median(&self.aet),
            self.notes,
        );
    }

    fn json(&self) -> Value {
        serde_json::json!({ "program": self.program, "target": self.mpi, "method": self.method, "aet_s": self.aet,
            "pet_s": self.pet, "pete": self.errors(), "set_s": self.set, "inside": self.inside })
    }
}

impl Job {
    fn oversubscribed(&self) -> Res<bool> {
        Ok(self.ranks.parse::<usize>()? > std::thread::available_parallelism()?.get())
    }
}

/// Signs the program, with images if restarts are asked for.
fn sign(job: &Job, file: &Path, images: bool) -> Res<()> {
    let sign = Command::new(phasecast_tests::phasecast())
        .arg("sign")
        .args(if images { ["--no-verify"] } else { ["--live"] })
        .args(["-n", &job.ranks, "-o"])
        .arg(file)
        .args(launcher_flag(&job.base, job.oversubscribed()?)?)
        .arg("--")
        .arg(&job.base)
        .output()?;
    if !sign.status.success() {
        return Err(format!("sign {}: {}", job.name, String::from_utf8_lossy(&sign.stderr)).into());
    }
    Ok(())
}

/// Runs and predicts in turn.
fn measure(job: &Job, options: &Options) -> Res<Vec<Row>> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("app.phc");
    sign(job, &file, options.methods.iter().any(|method| method == "restart"))?;
    let mut all = Vec::new();
    for target in &job.targets {
        let mpi = launcher(target)?.trim_start_matches("mpirun.").to_owned();
        let new = |method: &str| {
            let (program, mpi, method) = (job.name.clone(), mpi.clone(), method.to_owned());
            Row { program, mpi, method, ..Row::default() }
        };
        let mut rows: Vec<Row> = options.methods.iter().map(|method| new(method)).collect();
        let (mut naive, mut aet, mut bounds) = (new("naive"), Vec::new(), vec![Vec::new(); rows.len()]);
        for _ in 0..options.rounds {
            aet.push(true_time(job, target)?);
            for (row, bounds) in rows.iter_mut().zip(&mut bounds) {
                let prediction = predict(job, &file, target, &row.method, &options.share)?;
                let number = |key: &str| prediction[key].as_f64();
                row.pet.push(number("pet_s").ok_or("no pet_s")?);
                row.set.push(number("set_s").ok_or("no set_s")?);
                let interval = &prediction["run_interval_s"];
                bounds.push((interval[0].as_f64().unwrap_or(0.0), interval[1].as_f64().unwrap_or(0.0)));
                let notes = prediction["notes"].as_array().into_iter().flatten().filter_map(Value::as_str);
                row.notes = notes.collect::<Vec<_>>().join("; ");
                if let Some(estimate) = number("naive_s") {
                    let start = number("startup_s").unwrap_or(0.0);
                    naive.pet.push(estimate);
                    naive.set.push(start + NAIVE_SHARE * (estimate - start));
                }
            }
        }
        let truth = median(&aet);
        for (row, bounds) in rows.iter_mut().zip(bounds) {
            row.inside = bounds.iter().filter(|(low, high)| (*low..=*high).contains(&truth)).count();
        }
        if !naive.pet.is_empty() {
            rows.push(naive);
        }
        for row in &mut rows {
            row.aet.clone_from(&aet);
            row.print();
        }
        all.append(&mut rows);
    }
    Ok(all)
}

/// The launcher of the MPI that the program was linked with.
fn launcher(program: &str) -> Res<&'static str> {
    let ldd = Command::new("ldd").arg(program).output()?;
    let mpich = String::from_utf8_lossy(&ldd.stdout).contains("libmpich");
    Ok(if mpich { "mpirun.mpich" } else { "mpirun.openmpi" })
}

fn words(program: &str, ranks: &str, oversubscribe: bool) -> Res<Vec<String>> {
    let name = launcher(program)?;
    let mut words = vec![name.to_string(), "-n".into(), ranks.to_string()];
    if oversubscribe && name == "mpirun.openmpi" {
        words.extend(["--oversubscribe", "--mca", "mpi_yield_when_idle", "1"].map(String::from));
    }
    Ok(words)
}

fn launcher_flag(program: &str, oversubscribe: bool) -> Res<[String; 2]> {
    Ok(["--launcher".into(), words(program, "{n}", oversubscribe)?.join(" ")])
}

fn true_time(job: &Job, target: &str) -> Res<f64> {
    let words = words(target, &job.ranks, job.oversubscribed()?)?;
    let start = Instant::now();
    let status =
        Command::new(&words[0]).args(&words[1..]).arg(target).stdout(Stdio::null()).stdin(Stdio::null()).status()?;
    if !status.success() {
        return Err(format!("{} failed: {status}", job.name).into());
    }
    Ok(start.elapsed().as_secs_f64())
}

fn predict(job: &Job, signature: &Path, target: &str, method: &str, share: &str) -> Res<Value> {
    let mut command = Command::new(phasecast_tests::phasecast());
    command.arg("predict").arg(signature).arg("--json").args(launcher_flag(target, job.oversubscribed()?)?);
    if method == "live" {
        command.args(["--live", "--share", share, "--", target]);
    }
    let out = command.output()?;
    if !out.status.success() {
        return Err(format!("predict {target} by {method}: {}", String::from_utf8_lossy(&out.stderr)).into());
    }
    Ok(serde_json::from_slice(&out.stdout)?)
}
