//! Signatures without images, and predictions by them: across MPIs, and when something goes wrong. Whatever happens, no
//! process and no scratch folder is left.

use nix::sys::signal::Signal;
use phasecast_tests::mpi::Mpi;
use phasecast_tests::place::{Place, json, send, until_it_pays};
use phasecast_tests::process::{Outcome, run, start};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;

fn sign(place: &Place, program: &Path, args: &[&str]) -> Outcome {
    let mut command = place.phasecast(&["sign", "--live", "-n", "2", "-o", "app.phc", "--json", "--"]);
    run(command.arg(program).args(args))
}

fn signed(place: &Place, program: &Path, args: &[&str]) -> Outcome {
    until_it_pays(|| sign(place, program, args)).succeeded()
}

fn predict(place: &Place, program: &Path, args: &[&str]) -> Command {
    predict_with(&[], place, program, args)
}

/// A prediction that is made when the run has ended.
fn predict_whole(place: &Place, program: &Path, args: &[&str]) -> Command {
    predict_with(&["--share", "1"], place, program, args)
}

fn predict_with(more: &[&str], place: &Place, program: &Path, args: &[&str]) -> Command {
    let mut command = place.phasecast(&["predict", "app.phc", "--json"]);
    command.args(more).arg("--").arg(program).args(args);
    command
}

#[test]
fn a_signature_of_one_mpi_predicts_under_the_other() {
    let place = Place::new();
    let steps = ["256", "3000"];
    let signed = signed(&place, &place.program(Mpi::OpenMpi, "stencil.c"), &steps);
    let signed = json(&signed);
    assert_eq!(signed["ranks"], 2, "{signed}");
    assert!(signed["phases"].as_array().is_some_and(|p| p.iter().any(|p| p["weight"].as_u64() > Some(3))), "{signed}");
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        let outcome = run(&mut predict(&place, &place.program(mpi, "stencil.c"), &steps)).succeeded();
        let prediction = json(&outcome);
        let number = |key: &str| prediction[key].as_f64().unwrap_or_else(|| panic!("no {key}: {prediction}"));
        assert!(number("pet_s") > 0.0 && number("set_s") > 0.0);
        assert!((0.25..=1.0).contains(&number("coverage")), "{prediction}");
        for key in ["interval_s", "run_interval_s"] {
            let (low, high) = (prediction[key][0].as_f64(), prediction[key][1].as_f64());
            let within = low.zip(high).is_some_and(|(low, high)| (low..=high).contains(&number("pet_s")));
            assert!(within, "{key}: {prediction}");
        }
        let weights = |of: &Value| {
            let phases = of["phases"].as_array().cloned().unwrap_or_default();
            phases.iter().map(|p| p["weight"].as_u64()).collect::<Vec<_>>()
        };
        assert_eq!(weights(&prediction), weights(&signed));
        let notes = prediction["notes"].to_string();
        assert!(!notes.contains("differently"), "{notes}");
        place.assert_clean(&["app.phc"]);
    }
}

#[test]
fn what_is_not_the_signed_program_is_told() {
    let place = Place::new();
    signed(&place, &place.program(Mpi::Mpich, "stencil.c"), &["64", "2000"]);
    let other = run(&mut predict(&place, &place.program(Mpi::Mpich, "cg.c"), &["64", "400"])).succeeded();
    assert!(json(&other)["notes"].to_string().contains("differently"), "{other:?}");
    place.assert_clean(&["app.phc"]);
}

#[test]
fn a_program_that_fails_is_no_prediction() {
    let place = Place::new();
    signed(&place, &place.program(Mpi::Mpich, "stencil.c"), &["64", "500"]);
    for source in ["abort.c", "segv.c"] {
        // Before that it may be predicted by what it has done so far.
        let failed = run(&mut predict_whole(&place, &place.program(Mpi::Mpich, source), &[]));
        assert_eq!(failed.code, 1, "{failed:?}");
        assert!(failed.stderr.contains("failed on this machine"), "{failed:?}");
        assert!(failed.stdout.is_empty(), "{failed:?}");
        place.assert_clean(&["app.phc"]);
    }
    let failed = sign(&place, &place.program(Mpi::Mpich, "abort.c"), &[]);
    assert_eq!(failed.code, 3, "app.phc exists already: {failed:?}");
    fs::remove_file(place.path().join("app.phc")).expect("it is there");
    let failed = sign(&place, &place.program(Mpi::Mpich, "abort.c"), &[]);
    assert_eq!(failed.code, 1, "{failed:?}");
    let failed = sign(&place, Path::new("/bin/true"), &[]);
    assert_eq!(failed.code, 1, "{failed:?}");
    assert!(failed.stderr.contains("MPI_Init"), "{failed:?}");
    assert!(!place.path().join("app.phc").exists());
    place.assert_clean(&["app.phc"]);
}

#[test]
fn a_killed_rank_and_an_interrupt_end_everything() {
    let place = Place::new();
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        let _ = fs::remove_file(place.path().join("app.phc"));
        let program = place.program(mpi, "stencil.c");
        signed(&place, &program, &["64", "500"]);

        let running = start(&mut predict_whole(&place, &program, &["512", "1000000"]));
        let ranks = place.wait_for_ranks(".phasecast-");
        assert!(send(ranks[1], Signal::SIGKILL));
        let outcome = running.finish();
        assert_eq!(outcome.code, 1, "{outcome:?}");
        place.assert_clean(&["app.phc"]);

        let running = start(&mut predict_whole(&place, &program, &["512", "1000000"]));
        place.wait_for_ranks(".phasecast-");
        assert!(send(running.id() as i32, Signal::SIGINT));
        let outcome = running.finish();
        assert_eq!(outcome.code, 1, "{outcome:?}");
        assert!(outcome.stderr.contains("interrupted"), "{outcome:?}");
        place.assert_clean(&["app.phc"]);
    }
}

#[test]
fn a_damaged_signature_is_refused() {
    let place = Place::new();
    let program = place.program(Mpi::Mpich, "stencil.c");
    signed(&place, &program, &["64", "500"]);
    let file = place.path().join("app.phc");
    let whole = fs::read(&file).expect("it was written");
    for at in (0..whole.len()).step_by(whole.len() / 12) {
        let mut flipped = whole.clone();
        flipped[at] ^= 0x10;
        for bytes in [&whole[..at], &flipped] {
            fs::write(&file, bytes).expect("it can be written");
            let refused = run(&mut predict(&place, &program, &["64", "500"]));
            assert_eq!(refused.code, 3, "at {at}: {refused:?}");
            assert!(refused.stderr.contains("app.phc"), "{refused:?}");
        }
    }
    place.assert_clean(&["app.phc"]);
}
