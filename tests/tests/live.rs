//! Signatures without images, and predictions by them: across MPIs, and when something goes wrong. Whatever happens, no
//! process and no scratch folder is left.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use phasecast_tests::example::compiled;
use phasecast_tests::mpi::Mpi;
use phasecast_tests::phasecast;
use phasecast_tests::process::{Outcome, run, start};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// A working folder with programs of their own names, so that their processes can be told from all others.
struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Place {
        Place { folder: tempfile::tempdir().expect("a temporary folder") }
    }

    fn program(&self, mpi: Mpi, source: &str) -> PathBuf {
        let name = format!("{}-{}", mpi.name(), source.trim_end_matches(".c"));
        let copy = self.folder.path().join(name);
        if !copy.exists() {
            fs::copy(compiled(mpi, source), &copy).expect("the program can be copied");
        }
        copy
    }

    /// The command, in this folder.
    fn phasecast(&self, words: &[&str]) -> Command {
        let mut command = Command::new(phasecast());
        command.args(words).current_dir(self.folder.path());
        command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        command.env("OMPI_MCA_rmaps_base_oversubscribe", "1").env("OMPI_MCA_mpi_yield_when_idle", "1");
        command
    }

    fn sign(&self, program: &Path, args: &[&str]) -> Outcome {
        let mut command = self.phasecast(&["sign", "--live", "-n", "2", "-o", "app.phc", "--json", "--"]);
        run(command.arg(program).args(args))
    }

    fn predict(&self, program: &Path, args: &[&str]) -> Command {
        let mut command = self.phasecast(&["predict", "app.phc", "--json", "--"]);
        command.arg(program).args(args);
        command
    }

    /// Processes of this folder's programs.
    fn processes(&self) -> Vec<i32> {
        let entries = fs::read_dir("/proc").expect("/proc is there");
        let of_ours = |entry: fs::DirEntry| {
            let program = fs::read_link(entry.path().join("exe")).ok()?;
            program.starts_with(self.folder.path()).then(|| entry.file_name().to_str()?.parse().ok())?
        };
        entries.flatten().filter_map(of_ours).collect()
    }

    /// Nothing is left of a command but the files it was asked for.
    fn assert_clean(&self) {
        let patience = Instant::now() + Duration::from_secs(5);
        while !self.processes().is_empty() && Instant::now() < patience {
            sleep(Duration::from_millis(20));
        }
        assert_eq!(self.processes(), [] as [i32; 0], "processes are left");
        let hidden = fs::read_dir(self.folder.path()).expect("the folder is there").flatten();
        let hidden: Vec<_> = hidden.map(|e| e.file_name()).filter(|n| n.to_string_lossy().starts_with('.')).collect();
        assert!(hidden.is_empty(), "{hidden:?}");
    }

    fn wait_for_ranks(&self, ranks: usize) -> Vec<i32> {
        let patience = Instant::now() + Duration::from_secs(30);
        while self.processes().len() < ranks && Instant::now() < patience {
            sleep(Duration::from_millis(10));
        }
        let found = self.processes();
        assert_eq!(found.len(), ranks, "the ranks did not start");
        found
    }
}

fn json(outcome: &Outcome) -> Value {
    serde_json::from_str(&outcome.stdout).unwrap_or_else(|error| panic!("{error}\n{outcome:?}"))
}

#[test]
fn a_signature_of_one_mpi_predicts_under_the_other() {
    let place = Place::new();
    let steps = ["256", "3000"];
    let signed = place.sign(&place.program(Mpi::OpenMpi, "stencil.c"), &steps).succeeded();
    let signed = json(&signed);
    assert_eq!(signed["ranks"], 2, "{signed}");
    assert!(signed["phases"].as_array().is_some_and(|p| p.iter().any(|p| p["weight"].as_u64() > Some(3))), "{signed}");
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        let outcome = run(&mut place.predict(&place.program(mpi, "stencil.c"), &steps)).succeeded();
        let prediction = json(&outcome);
        let number = |key: &str| prediction[key].as_f64().unwrap_or_else(|| panic!("no {key}: {prediction}"));
        assert!(number("pet_s") > 0.0 && number("set_s") > 0.0);
        assert!((0.25..=1.0).contains(&number("coverage")), "{prediction}");
        let interval = |key: &str| (prediction[key][0].as_f64(), prediction[key][1].as_f64());
        let pet = Some(number("pet_s"));
        for (low, high) in [interval("interval_s"), interval("run_interval_s")] {
            assert!(low <= pet && pet <= high, "{prediction}");
        }
        let weights = |of: &Value| {
            let phases = of["phases"].as_array().cloned().unwrap_or_default();
            phases.iter().map(|p| p["weight"].as_u64()).collect::<Vec<_>>()
        };
        assert_eq!(weights(&prediction), weights(&signed));
        let notes = prediction["notes"].to_string();
        assert!(!notes.contains("differently"), "{notes}");
        place.assert_clean();
    }
}

#[test]
fn what_is_not_the_signed_program_is_told() {
    let place = Place::new();
    place.sign(&place.program(Mpi::Mpich, "stencil.c"), &["64", "2000"]).succeeded();
    let other = run(&mut place.predict(&place.program(Mpi::Mpich, "cg.c"), &["64", "400"])).succeeded();
    assert!(json(&other)["notes"].to_string().contains("differently"), "{other:?}");
    place.assert_clean();
}

#[test]
fn a_program_that_fails_is_no_prediction() {
    let place = Place::new();
    place.sign(&place.program(Mpi::Mpich, "stencil.c"), &["64", "500"]).succeeded();
    for source in ["abort.c", "segv.c"] {
        let failed = run(&mut place.predict(&place.program(Mpi::Mpich, source), &[]));
        assert_eq!(failed.code, 1, "{failed:?}");
        assert!(failed.stderr.contains("failed on this machine"), "{failed:?}");
        assert!(failed.stdout.is_empty(), "{failed:?}");
        place.assert_clean();
    }
    let failed = place.sign(&place.program(Mpi::Mpich, "abort.c"), &[]);
    assert_eq!(failed.code, 3, "app.phc exists already: {failed:?}");
    fs::remove_file(place.folder.path().join("app.phc")).expect("it is there");
    let failed = place.sign(&place.program(Mpi::Mpich, "abort.c"), &[]);
    assert_eq!(failed.code, 1, "{failed:?}");
    let failed = place.sign(Path::new("/bin/true"), &[]);
    assert_eq!(failed.code, 1, "{failed:?}");
    assert!(failed.stderr.contains("MPI_Init"), "{failed:?}");
    assert!(!place.folder.path().join("app.phc").exists());
    place.assert_clean();
}

#[test]
fn a_killed_rank_and_an_interrupt_end_everything() {
    let place = Place::new();
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        let _ = fs::remove_file(place.folder.path().join("app.phc"));
        let program = place.program(mpi, "stencil.c");
        place.sign(&program, &["64", "500"]).succeeded();

        let running = start(&mut place.predict(&program, &["512", "1000000"]));
        let ranks = place.wait_for_ranks(2);
        kill(Pid::from_raw(ranks[1]), Signal::SIGKILL).expect("the rank is there");
        let outcome = running.finish();
        assert_eq!(outcome.code, 1, "{outcome:?}");
        place.assert_clean();

        let running = start(&mut place.predict(&program, &["512", "1000000"]));
        place.wait_for_ranks(2);
        kill(Pid::from_raw(running.id() as i32), Signal::SIGINT).expect("it runs");
        let outcome = running.finish();
        assert_eq!(outcome.code, 1, "{outcome:?}");
        assert!(outcome.stderr.contains("interrupted"), "{outcome:?}");
        place.assert_clean();
    }
}

#[test]
fn a_damaged_signature_is_refused() {
    let place = Place::new();
    let program = place.program(Mpi::Mpich, "stencil.c");
    place.sign(&program, &["64", "500"]).succeeded();
    let file = place.folder.path().join("app.phc");
    let whole = fs::read(&file).expect("it was written");
    for at in (0..whole.len()).step_by(whole.len() / 12) {
        let mut flipped = whole.clone();
        flipped[at] ^= 0x10;
        for bytes in [&whole[..at], &flipped] {
            fs::write(&file, bytes).expect("it can be written");
            let refused = run(&mut place.predict(&program, &["64", "500"]));
            assert_eq!(refused.code, 3, "at {at}: {refused:?}");
            assert!(refused.stderr.contains("app.phc"), "{refused:?}");
        }
    }
    place.assert_clean();
}
