//! Predictions by skeletons against the truth, where the MPI, the network or the processor is another than on the base.
use crate::Res;
use crate::shared::{Competitor, Job, done, launched, phasecast};
use phasecast_tests::bench::{keep_named, mean, variation};
use phasecast_tests::half::Halves;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

struct Target {
    name: &'static str,
    /// `{n}` stands for the ranks.
    launcher: String,
    mpich: bool,
    /// Another process computes on the first processor.
    busy: bool,
    /// The mean error that is promised, in percent.
    bound: f64,
}

/// Runs it.
pub fn run(args: &[String]) -> Res<()> {
    let (mut runs, mut ratio, mut only, mut json, mut jobs) = (5, "20".to_owned(), None, None, Vec::new());
    let mut reverse = false;
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or(format!("{arg} wants a value"));
        match arg.as_str() {
            "--runs" => runs = value()?.parse()?,
            "--ratio" => ratio = value()?.clone(),
            "--only" => only = Some(value()?.as_str()),
            "--json" => json = Some(PathBuf::from(value()?)),
            "--from-mpich" => reverse = true,
            job => jobs.push(Job::parse(job)?),
        }
    }
    let (job, rank) = (Halves::of_job(100_000), Halves::of_rank());
    let open = "mpirun.openmpi -n {n}";
    let target = |name, launcher: String, mpich, busy, bound| Target { name, launcher, mpich, busy, bound };
    let mut targets = if reverse {
        vec![target("openmpi", open.into(), false, false, 5.0)]
    } else {
        vec![
            target("base", open.into(), false, false, 5.0),
            target("mpich", "mpirun.mpich -n {n}".into(), true, false, 5.0),
            target("tcp", "mpirun.openmpi --mca btl tcp,self -n {n}".into(), false, false, 5.0),
            target("shared", "taskset -c 0 mpirun.openmpi --bind-to none -n {n}".into(), false, true, 15.0),
        ]
    };
    match (&job, &rank) {
        (Ok(job), Ok(rank)) if !reverse => {
            let launcher = format!("{} mpirun.openmpi --bind-to none -n {{n}}", job.script());
            targets.push(target("half", launcher, false, false, 8.0));
            let launcher = format!("mpirun.openmpi --bind-to none -n {{n}} {}", rank.script());
            targets.push(target("stops", launcher, false, false, 8.0));
        }
        (Err(error), _) | (_, Err(error)) => println!("no target with half of the processors' time: {error}"),
        _ => {}
    }
    if let Some(only) = only {
        keep_named(&mut targets, only, |target| target.name)?;
    }
    let base = if reverse { "mpirun.mpich -n {n}" } else { open };
    let mut list = Vec::new();
    let mut errors: Vec<Vec<f64>> = targets.iter().map(|_| Vec::new()).collect();
    let mut table =
        String::from("program  target    base s    AET s    v %    PET s  error %  |error| %  SET s  inside\n");
    for job in &jobs {
        let folder = tempfile::tempdir()?;
        let (program, trace) = (job.built(reverse)?, folder.path().join("base"));
        done(&mut launched(base, &job.ranks, program, &job.args, Some((&trace, "wall"))))?;
        let skeleton = folder.path().join("skeleton");
        let mut command = phasecast(&["skeleton", "--ratio", &ratio, "--launcher", base]);
        command.arg(&trace).arg("-o").arg(&skeleton).arg("--").arg(program).args(&job.args);
        println!("{}", done(command.current_dir(folder.path()))?.0);
        // All targets in turn, so that each sees the same hour of the machine.
        let mut series: Vec<Series> = targets.iter().map(|_| Series::default()).collect();
        for _ in 0..runs {
            for (target, series) in targets.iter().zip(&mut series) {
                series.measure(job, target, &skeleton)?;
            }
        }
        for ((target, series), errors) in targets.iter().zip(&series).zip(&mut errors) {
            let (row, error) = series.row(job, target);
            println!("{row}");
            table.push_str(&row);
            table.push('\n');
            errors.push(error);
            let Series { aet, pet, set, .. } = series;
            list.push(json!({ "program": job.name, "target": target.name, "aet_s": aet, "pet_s": pet, "set_s": set }));
        }
    }
    print!("{table}");
    for (target, errors) in targets.iter().zip(&errors).filter(|(_, errors)| !errors.is_empty()) {
        let mean = 100.0 * mean(errors);
        let verdict = if mean > target.bound { "  MISSED" } else { "" };
        println!("mean |error| on {:8} {mean:6.2} %   <= {}{verdict}", target.name, target.bound);
    }
    if let Some(path) = json {
        std::fs::write(path, serde_json::to_string_pretty(&list)?)?;
    }
    Ok(())
}

/// Runs of a program on a target, and predictions between them.
#[derive(Default)]
struct Series {
    aet: Vec<f64>,
    pet: Vec<f64>,
    set: Vec<f64>,
    /// Predictions whose interval holds the run before them.
    inside: usize,
    base_s: f64,
}

impl Series {
    /// One more run and prediction.
    fn measure(&mut self, job: &Job, target: &Target, skeleton: &Path) -> Res<()> {
        let _competitor = if target.busy { Some(Competitor::on(0)?) } else { None };
        let program = job.built(target.mpich)?;
        let aet = done(&mut launched(&target.launcher, &job.ranks, program, &job.args, None))?.1;
        let compiler = if target.mpich { "mpicc.mpich" } else { "mpicc.openmpi" };
        let mut command = phasecast(&["predict", "--json", "--launcher", &target.launcher, "--cc", compiler]);
        let prediction: Value = serde_json::from_str(&done(command.arg("--skeleton").arg(skeleton))?.0)?;
        let number = |key: &str| prediction[key].as_f64().unwrap_or(f64::NAN);
        let bound = |n: usize| prediction["run_interval_s"][n].as_f64().unwrap_or(f64::NAN);
        self.aet.push(aet);
        self.pet.push(number("pet_s"));
        self.set.push(number("set_s"));
        self.base_s = number("base_run_s");
        self.inside += usize::from(bound(0) <= aet && aet <= bound(1));
        Ok(())
    }

    /// Its row of the table, and the mean of the errors' amounts. They are against the mean of the true times: a single
    /// run of a busy machine says little.
    fn row(&self, job: &Job, target: &Target) -> (String, f64) {
        let truth = mean(&self.aet);
        let off: Vec<f64> = self.pet.iter().map(|pet| pet / truth - 1.0).collect();
        let absolute = mean(&off.iter().map(|e| e.abs()).collect::<Vec<_>>());
        let row = format!(
            "{:8} {:8} {:7.3} {truth:8.3} {:6.2} {:8.3} {:+8.2} {:10.2} {:6.2} {:4}/{}",
            job.name,
            target.name,
            self.base_s,
            100.0 * variation(&self.aet),
            mean(&self.pet),
            100.0 * mean(&off),
            100.0 * absolute,
            mean(&self.set),
            self.inside,
            self.aet.len()
        );
        (row, absolute)
    }
}
