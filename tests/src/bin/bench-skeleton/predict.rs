//! Predictions by skeletons against the truth, where the MPI, the network or the processor is another than on the base.
use crate::Res;
use crate::shared::{Competitor, Job, done, launched, phasecast};
use phasecast_tests::bench::{mean, variation};
use phasecast_tests::half::Halves;
use serde_json::{Value, json};
use std::path::PathBuf;

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
            "--only" => only = Some(value()?.clone()),
            "--json" => json = Some(PathBuf::from(value()?)),
            "--from-mpich" => reverse = true,
            job => jobs.push(Job::parse(job)?),
        }
    }
    let halves = Halves::new();
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
    match &halves {
        Ok(halves) if !reverse => {
            let launcher = format!("mpirun.openmpi --bind-to none -n {{n}} {}", halves.script());
            targets.push(target("half", launcher, false, false, 8.0));
        }
        Ok(_) => {}
        Err(error) => println!("no target with half of the processors' time: {error}"),
    }
    targets.retain(|target| only.as_ref().is_none_or(|only: &String| only.split(',').any(|name| name == target.name)));
    let base = if reverse { "mpirun.mpich -n {n}" } else { open };
    let mut list = Vec::new();
    let mut errors: Vec<Vec<f64>> = targets.iter().map(|_| Vec::new()).collect();
    let mut table =
        String::from("program  target    base s    AET s    v %    PET s  error %  |error| %  SET s  inside\n");
    for job in &jobs {
        let program = |mpich: bool| -> Res<&String> {
            if mpich { job.mpich.as_ref().ok_or("a job without its MPICH build".into()) } else { Ok(&job.openmpi) }
        };
        let folder = tempfile::tempdir()?;
        let trace = folder.path().join("base");
        done(&mut launched(base, &job.ranks, program(reverse)?, &job.args, Some((&trace, "wall"))))?;
        let skeleton = folder.path().join("skeleton");
        let mut command = phasecast(&["skeleton", "--ratio", &ratio, "--launcher", base]);
        println!("{}", done(command.arg(&trace).arg("-o").arg(&skeleton).current_dir(folder.path()))?.0);
        for (at, target) in targets.iter().enumerate() {
            let (mut aet, mut pet, mut set, mut inside, mut base_s) = (Vec::new(), Vec::new(), Vec::new(), 0, 0.0);
            for _ in 0..runs {
                let _competitor = if target.busy { Some(Competitor::on(0)?) } else { None };
                let mut command = launched(&target.launcher, &job.ranks, program(target.mpich)?, &job.args, None);
                aet.push(done(&mut command)?.1);
                let mut command = phasecast(&["predict", "--json", "--launcher", &target.launcher, "--cc"]);
                command
                    .arg(if target.mpich { "mpicc.mpich" } else { "mpicc.openmpi" })
                    .arg("--skeleton")
                    .arg(&skeleton);
                let prediction: Value = serde_json::from_str(&done(command.current_dir(folder.path()))?.0)?;
                let number = |key: &str| prediction[key].as_f64().unwrap_or(f64::NAN);
                pet.push(number("pet_s"));
                set.push(number("set_s"));
                base_s = number("base_run_s");
                let last = *aet.last().unwrap_or(&f64::NAN);
                let bound = |n: usize| prediction["run_interval_s"][n].as_f64().unwrap_or(f64::NAN);
                inside += usize::from(bound(0) <= last && last <= bound(1));
            }
            // Against the mean of the true times: a single run of a busy machine says little.
            let truth = mean(&aet);
            let off: Vec<f64> = pet.iter().map(|pet| pet / truth - 1.0).collect();
            let absolute = mean(&off.iter().map(|e| e.abs()).collect::<Vec<_>>());
            errors[at].push(absolute);
            table.push_str(&format!(
                "{:8} {:8} {:7.3} {:8.3} {:6.2} {:8.3} {:+8.2} {:10.2} {:6.2} {:4}/{}\n",
                job.name,
                target.name,
                base_s,
                truth,
                100.0 * variation(&aet),
                mean(&pet),
                100.0 * mean(&off),
                100.0 * absolute,
                mean(&set),
                inside,
                runs
            ));
            print!("{}", table.lines().last().unwrap_or_default());
            println!();
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
