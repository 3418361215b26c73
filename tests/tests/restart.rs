//! Signatures with images, from `sign` to `predict`: made under one MPI, restarted under both, and what happens when
//! something goes wrong. Whatever happens, no process, no scratch folder and no half signature is left.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use phasecast_tests::example::compiled;
use phasecast_tests::mpi::Mpi;
use phasecast_tests::phasecast;
use phasecast_tests::process::{Outcome, run, start};
use serde_json::Value;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Mutex;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Launchers of both MPIs.
const LAUNCHERS: [&str; 2] = ["mpirun.openmpi -n {n}", "mpirun.mpich -n {n}"];
/// Steps of the stencil: some three seconds on an idle machine.
const STEPS: [&str; 2] = ["512", "7000"];

/// One test at a time: they measure time, and each has as many ranks as there may be processors.
static ALONE: Mutex<()> = Mutex::new(());

struct Place {
    folder: tempfile::TempDir,
    _alone: std::sync::MutexGuard<'static, ()>,
}

impl Place {
    fn new() -> Place {
        let alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        Place { folder: tempfile::tempdir().expect("a temporary folder"), _alone: alone }
    }

    fn program(&self, mpi: Mpi, source: &str) -> PathBuf {
        let copy = self.folder.path().join(source.trim_end_matches(".c"));
        fs::copy(compiled(mpi, source), &copy).expect("the program can be copied");
        copy
    }

    fn phasecast(&self, words: &[&str]) -> Command {
        let mut command = Command::new(phasecast());
        command.args(words).current_dir(self.folder.path());
        command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        command.env("OMPI_MCA_rmaps_base_oversubscribe", "1").env("OMPI_MCA_mpi_yield_when_idle", "1");
        command
    }

    /// Signs the stencil. Where other work disturbs both base runs, no signature may seem to pay (exit code 4): then again.
    fn signed(&self) -> Outcome {
        for _ in 0..3 {
            let outcome = run(&mut self.sign());
            if outcome.code != 4 {
                return outcome.succeeded();
            }
        }
        run(&mut self.sign()).succeeded()
    }

    /// The stencil of Open MPI, signed without the test at the end.
    fn sign(&self) -> Command {
        let program = self.program(Mpi::OpenMpi, "stencil.c");
        let mut command = self.phasecast(&["sign", "-n", "2", "--no-verify", "-o", "app.phc", "--json", "--"]);
        command.arg(program).args(STEPS);
        command
    }

    fn predict(&self, launcher: &str, more: &[&str]) -> Command {
        let mut command = self.phasecast(&["predict", "app.phc", "--json", "--launcher", launcher]);
        command.args(more);
        command
    }

    /// Processes that have something of this folder on their command line.
    fn processes(&self) -> Vec<i32> {
        let folder = self.folder.path().as_os_str().as_bytes();
        let of_ours = |entry: fs::DirEntry| {
            let pid = entry.file_name().to_str()?.parse::<i32>().ok()?;
            let line = fs::read(entry.path().join("cmdline")).ok()?;
            line.windows(folder.len()).any(|part| part == folder).then_some(pid)
        };
        fs::read_dir("/proc").expect("/proc is there").flatten().filter_map(of_ours).collect()
    }

    /// The hosts among them.
    fn hosts(&self) -> Vec<i32> {
        let is_host = |pid: &i32| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            line.split(|byte| *byte == 0).nth(1) == Some(b"host")
        };
        self.processes().into_iter().filter(is_host).collect()
    }

    fn wait_for_hosts(&self) -> Vec<i32> {
        let patience = Instant::now() + Duration::from_secs(60);
        while self.hosts().len() < 2 && Instant::now() < patience {
            sleep(Duration::from_millis(5));
        }
        let found = self.hosts();
        assert_eq!(found.len(), 2, "the hosts did not start");
        found
    }

    fn assert_clean(&self) {
        let patience = Instant::now() + Duration::from_secs(5);
        while !self.processes().is_empty() && Instant::now() < patience {
            sleep(Duration::from_millis(20));
        }
        assert_eq!(self.processes(), [] as [i32; 0], "processes are left");
        let names = fs::read_dir(self.folder.path()).expect("the folder is there").flatten().map(|e| e.file_name());
        let left: Vec<_> = names.filter(|name| !["stencil", "app.phc"].iter().any(|known| name == known)).collect();
        assert!(left.is_empty(), "{left:?} are left");
    }
}

fn json(outcome: &Outcome) -> Value {
    serde_json::from_str(&outcome.stdout).unwrap_or_else(|error| panic!("{error}\n{outcome:?}"))
}

#[test]
fn images_of_one_mpi_are_restarted_under_both() {
    let place = Place::new();
    let signed = json(&place.signed());
    let file = place.folder.path().join("app.phc");
    assert!(signed["images"].as_u64() > Some(0) && signed["verified"].is_null(), "{signed}");
    let about = fs::metadata(&file).expect("the signature is there");
    assert_eq!((about.permissions().mode() & 0o777, Some(about.len())), (0o600, signed["bytes"].as_u64()));
    let checked = json(&run(&mut place.phasecast(&["verify-file", "app.phc", "--json"])).succeeded());
    assert_eq!((&checked["sha256"], &checked["cuts"]), (&signed["sha256"], &signed["images"]));
    place.assert_clean();
    // The target has the signature, and not the program.
    fs::remove_file(place.folder.path().join("stencil")).expect("the program can be removed");
    for launcher in LAUNCHERS {
        let checks = run(&mut place.phasecast(&["preflight", "app.phc", "--json", "--launcher", launcher])).succeeded();
        assert!(json(&checks)["checks"].as_array().is_some_and(|c| c.len() == 9), "{checks:?}");
        let outcome = run(&mut place.predict(launcher, &[])).succeeded();
        assert!(outcome.stderr.contains("signed by"), "{}", outcome.stderr);
        let prediction = json(&outcome);
        let number = |key: &str| prediction[key].as_f64().unwrap_or_else(|| panic!("no {key}: {prediction}"));
        assert_eq!(prediction["method"], "restart");
        assert!(number("restarts") >= 1.0 && number("measured_s") > 0.0 && number("restart_s") > 0.0, "{prediction}");
        assert!(number("set_s") >= number("restart_s") + number("warmup_s") + number("measured_s"), "{prediction}");
        assert!((0.5..=1.0).contains(&number("coverage")), "{prediction}");
        for interval in ["interval_s", "run_interval_s"] {
            let (low, high) = (prediction[interval][0].as_f64(), prediction[interval][1].as_f64());
            assert!(low <= Some(number("pet_s")) && Some(number("pet_s")) <= high, "{prediction}");
        }
        let weights =
            |of: &Value| of["phases"].as_array().map(|p| p.iter().map(|p| p["weight"].as_u64()).collect::<Vec<_>>());
        assert_eq!(weights(&prediction), weights(&signed));
        place.assert_clean();
    }
}

#[test]
fn a_program_in_which_nothing_repeats_gets_a_plain_answer() {
    let place = Place::new();
    let program = place.program(Mpi::OpenMpi, "stencil.c");
    let mut command = place.phasecast(&["sign", "-n", "2", "-o", "app.phc", "--"]);
    let outcome = run(command.arg(program).args(["64", "2"]));
    assert_eq!(outcome.code, 4, "{outcome:?}");
    assert!(outcome.stderr.contains("no signature pays here"), "{}", outcome.stderr);
    assert!(!place.folder.path().join("app.phc").exists());
    place.assert_clean();
}

#[test]
fn an_interrupt_leaves_nothing_behind() {
    let place = Place::new();
    let sign = start(&mut place.sign());
    place.wait_for_hosts();
    kill(Pid::from_raw(sign.id() as i32), Signal::SIGINT).expect("it can be interrupted");
    let outcome = sign.finish();
    assert!(outcome.code == 1 && outcome.stderr.contains("interrupted"), "{outcome:?}");
    assert!(!place.folder.path().join("app.phc").exists(), "half a signature");
    place.assert_clean();

    place.signed();
    for launcher in LAUNCHERS {
        let predict = start(&mut place.predict(launcher, &["--budget", "60s", "--precision", "0.0001"]));
        place.wait_for_hosts();
        kill(Pid::from_raw(predict.id() as i32), Signal::SIGTERM).expect("it can be interrupted");
        let outcome = predict.finish();
        assert!(outcome.code == 1 && outcome.stderr.contains("interrupted"), "{outcome:?}");
        place.assert_clean();
    }
}

#[test]
fn ranks_that_die_or_stand_still_are_told_of() {
    let place = Place::new();
    place.signed();
    for launcher in LAUNCHERS {
        let predict = start(&mut place.predict(launcher, &["--budget", "60s", "--precision", "0.0001"]));
        let hosts = place.wait_for_hosts();
        let begun = Instant::now();
        kill(Pid::from_raw(hosts[1]), Signal::SIGKILL).expect("a rank can be killed");
        sleep(Duration::from_millis(200));
        // What it does not need the rank for it may still do: then it says so in a note.
        let still = predict.finish();
        match still.code {
            0 => assert!(json(&still)["notes"].to_string().contains("failed"), "{still:?}"),
            code => assert!(code == 1 && still.stderr.contains("the restart failed"), "{still:?}"),
        }
        assert!(begun.elapsed() < Duration::from_secs(75));
        place.assert_clean();
    }
    let predict = start(&mut place.predict(LAUNCHERS[0], &[]));
    let hosts = place.wait_for_hosts();
    kill(Pid::from_raw(hosts[0]), Signal::SIGSTOP).expect("a rank can be stopped");
    let outcome = predict.finish();
    assert!(outcome.code == 1 && outcome.stderr.contains("hung"), "{outcome:?}");
    assert!(outcome.stderr.contains("cut"), "where it stood: {}", outcome.stderr);
    place.assert_clean();
}
