//! Prediction against the truth: for each program, runs and predictions in turn on this machine.
//!
//! `bench-predict [--rounds 5] [--share 0.3] [--json FILE] NAME:RANKS:BASE[:TARGET...] ...` where BASE is the program to
//! sign and each TARGET a build of it (with another MPI, say) to run and predict; BASE itself if none is given. Prints a row per program and the
//! means: true time (median) with its coefficient of variation v, error of prediction (mean, worst), how often the
//! true time lies in the interval for another run, the naive estimate's error, and what it cost.
use phasecast_tests::bench::{mean, median, variation};
use serde_json::Value;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

type Res<T> = Result<T, Box<dyn Error>>;

struct Job {
    name: String,
    ranks: String,
    base: String,
    targets: Vec<String>,
}

#[derive(Default)]
struct Row {
    aet: Vec<f64>,
    errors: Vec<f64>,
    naive: Vec<f64>,
    set: Vec<f64>,
    inside: usize,
    of: usize,
}

fn main() -> Res<()> {
    let (mut rounds, mut share, mut json, mut jobs) = (5, "0.3".to_string(), None, Vec::new());
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or(format!("{arg} wants a value"));
        match arg.as_str() {
            "--rounds" => rounds = value()?.parse()?,
            "--share" => share = value()?,
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
    println!("program          AET s    v %  PETE mean %  worst %  inside  naive %  SET/AET %  phases  coverage %");
    let mut rows = Vec::new();
    for job in &jobs {
        let signed = sign(job)?;
        for target in &job.targets {
            rows.push((job, target, measure(job, target, &signed, rounds, &share)?));
        }
    }
    let all = |pick: fn(&Row) -> &[f64]| rows.iter().flat_map(|(_, _, r)| pick(r)).copied().collect::<Vec<f64>>();
    println!(
        "all                     {:5.2}  {:10.2}  {:7.2}  {:3}/{:<3} {:7.2}",
        100.0 * mean(&rows.iter().map(|(_, _, r)| variation(&r.aet)).collect::<Vec<_>>()),
        100.0 * mean(&all(|r| &r.errors)),
        100.0 * all(|r| &r.errors).into_iter().fold(0.0, f64::max),
        rows.iter().map(|(_, _, r)| r.inside).sum::<usize>(),
        rows.iter().map(|(_, _, r)| r.of).sum::<usize>(),
        100.0 * mean(&all(|r| &r.naive)),
    );
    if let Some(path) = json {
        let list: Vec<Value> = rows
            .iter()
            .map(|(job, target, r)| {
                serde_json::json!({ "program": job.name, "target": target, "ranks": job.ranks, "aet_s": r.aet, "pete": r.errors,
                    "naive": r.naive, "set_s": r.set, "inside": r.inside, "of": r.of })
            })
            .collect();
        std::fs::write(path, serde_json::to_string_pretty(&list)?)?;
    }
    Ok(())
}

struct Signed {
    folder: tempfile::TempDir,
}

impl Signed {
    fn file(&self) -> PathBuf {
        self.folder.path().join("app.phc")
    }
}

impl Job {
    fn oversubscribed(&self) -> Res<bool> {
        Ok(self.ranks.parse::<usize>()? > std::thread::available_parallelism()?.get())
    }
}

fn sign(job: &Job) -> Res<Signed> {
    let signed = Signed { folder: tempfile::tempdir()? };
    let sign = Command::new(phasecast_tests::phasecast())
        .args(["sign", "--live", "-n", &job.ranks, "-o"])
        .arg(signed.file())
        .args(launcher_flag(&job.base, job.oversubscribed()?)?)
        .arg("--")
        .arg(&job.base)
        .output()?;
    if !sign.status.success() {
        return Err(format!("sign {}: {}", job.name, String::from_utf8_lossy(&sign.stderr)).into());
    }
    Ok(signed)
}

fn measure(job: &Job, target: &str, signed: &Signed, rounds: usize, share: &str) -> Res<Row> {
    let oversubscribe = job.oversubscribed()?;
    let mut row = Row::default();
    let mut predictions = Vec::new();
    for _ in 0..rounds {
        row.aet.push(true_time(job, target, oversubscribe)?);
        predictions.push(predict(&signed.file(), target, share, oversubscribe)?);
    }
    let aet = median(&row.aet);
    for prediction in &predictions {
        let number = |key: &str| prediction[key].as_f64();
        let pet = number("pet_s").ok_or("no pet_s")?;
        row.errors.push((pet - aet).abs() / aet);
        row.naive.extend(number("naive_s").map(|naive| (naive - aet).abs() / aet));
        row.set.push(number("set_s").ok_or("no set_s")?);
        let bounds = prediction["run_interval_s"].as_array().ok_or("no interval")?;
        let (low, high) = (bounds[0].as_f64().unwrap_or(0.0), bounds[1].as_f64().unwrap_or(0.0));
        row.inside += usize::from((low..=high).contains(&aet));
        row.of += 1;
    }
    let last = predictions.last().ok_or("no round")?;
    println!(
        "{:6} {:7} {:7.2}  {:5.2}  {:10.2}  {:7.2}  {:3}/{:<3} {:7.2}  {:8.1}  {:6}  {:9.1}   {}",
        job.name,
        launcher(target)?.trim_start_matches("mpirun."),
        aet,
        100.0 * variation(&row.aet),
        100.0 * mean(&row.errors),
        100.0 * row.errors.iter().copied().fold(0.0, f64::max),
        row.inside,
        row.of,
        100.0 * mean(&row.naive),
        100.0 * median(&row.set) / aet,
        last["phases"].as_array().map_or(0, Vec::len),
        100.0 * last["coverage"].as_f64().unwrap_or(0.0),
        last["notes"]
            .as_array()
            .map(|n| n.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("; "))
            .unwrap_or_default(),
    );
    Ok(row)
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

fn true_time(job: &Job, target: &str, oversubscribe: bool) -> Res<f64> {
    let words = words(target, &job.ranks, oversubscribe)?;
    let start = Instant::now();
    let status =
        Command::new(&words[0]).args(&words[1..]).arg(target).stdout(Stdio::null()).stdin(Stdio::null()).status()?;
    if !status.success() {
        return Err(format!("{} failed: {status}", job.name).into());
    }
    Ok(start.elapsed().as_secs_f64())
}

fn predict(signature: &Path, target: &str, share: &str, oversubscribe: bool) -> Res<Value> {
    let out = Command::new(phasecast_tests::phasecast())
        .arg("predict")
        .arg(signature)
        .args(["--json", "--share", share])
        .args(launcher_flag(target, oversubscribe)?)
        .arg("--")
        .arg(target)
        .output()?;
    if !out.status.success() {
        return Err(format!("predict {target}: {}", String::from_utf8_lossy(&out.stderr)).into());
    }
    Ok(serde_json::from_slice(&out.stdout)?)
}
