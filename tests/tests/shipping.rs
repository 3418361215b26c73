//! Signatures travel: to another release of Debian with another C library and other MPIs, and to two hosts whose ranks
//! talk over a network. These tests take root: for the release's folder, and for the hosts' network namespaces.

use phasecast_tests::mpi::Mpi;
use phasecast_tests::network::{ADDRESSES, Hosts};
use phasecast_tests::place::{LAUNCHERS, Place, json};
use phasecast_tests::process::{Outcome, run};
use phasecast_tests::{phasecast, release};
use serde_json::Value;
use std::ffi::OsString;
use std::fs;
use std::process::Command;

/// All that is taken along beside the signature.
const SHIPPED: [&str; 3] = ["phasecast", "libphasecast_facade.so", "libphasecast_tracer.so"];

/// A prediction by restarts, and the target MPI that it names.
fn prediction(outcome: Outcome) -> (Value, String) {
    let prediction = json(&outcome.succeeded());
    assert_eq!(prediction["method"], "restart", "{prediction}");
    let number = |key: &str| prediction[key].as_f64().unwrap_or_else(|| panic!("no {key}: {prediction}"));
    assert!(number("pet_s") > 0.0 && number("restarts") >= 1.0 && number("measured_s") > 0.0, "{prediction}");
    // What a busy machine does to the base runs is no matter here.
    let of_base = |note: &Value| note.as_str().is_some_and(|words| words.starts_with("base runs took"));
    assert!(prediction["notes"].as_array().is_some_and(|notes| notes.iter().all(of_base)), "{prediction}");
    let mpi = prediction["target"]["mpi"].as_str().unwrap_or_default().to_owned();
    (prediction, mpi)
}

fn here_and_there(place: &Place, words: &[&str]) -> [String; 2] {
    let mut here = Command::new(words[0]);
    [run(here.args(&words[1..])), run(&mut release::command(place, words))].map(|outcome| outcome.succeeded().stdout)
}

#[test]
fn a_signature_predicts_in_another_release() {
    for (base, own) in [Mpi::OpenMpi, Mpi::Mpich].into_iter().zip(LAUNCHERS) {
        let place = Place::alone();
        let [here, there] = here_and_there(&place, &["ldd", "--version"]);
        assert_ne!(here.lines().next(), there.lines().next(), "the same C library");
        place.signed(base, &[]);
        for file in SHIPPED {
            let from = phasecast().with_file_name(file);
            fs::copy(from, place.path().join(file)).expect("a file can be copied");
        }
        let within = |words: &[&str]| {
            let command = place.path().join("phasecast");
            let words: Vec<OsString> = std::iter::once(command.into()).chain(words.iter().map(Into::into)).collect();
            run(&mut release::command(&place, &words))
        };
        // The program is in the image.
        let program = place.program(base, "stencil.c");
        let aside = place.path().join("phasecast").with_file_name(format!("{}-aside", base.name()));
        fs::rename(&program, &aside).expect("the program can be renamed");
        for (launcher, family) in LAUNCHERS.into_iter().zip(["Open MPI v5", "MPICH Version: 4.2"]) {
            let checks = json(&within(&["preflight", "app.phc", "--json", "--launcher", launcher]).succeeded());
            let well = |check: &Value| check["ok"] == true;
            assert!(checks["checks"].as_array().is_some_and(|c| c.len() == 10 && c.iter().all(well)), "{checks}");
            let (prediction, mpi) = prediction(within(&["predict", "app.phc", "--json", "--launcher", launcher]));
            assert!(mpi.contains(family), "{mpi:?} is not {family}: {prediction}");
        }
        // For the true run that `verify` compares with, it must be there.
        fs::rename(&aside, &program).expect("the program can be renamed");
        let (verified, _) = prediction(within(&["verify", "app.phc", "--json", "--launcher", own]));
        assert!(verified["aet_s"].as_f64() > Some(0.1) && verified["pete"].is_f64(), "{verified}");
        place.assert_clean(&[&SHIPPED[..], &["app.phc"]].concat());
    }
}

#[test]
fn ranks_on_two_hosts_talk_over_their_network() {
    let place = Place::alone();
    place.given(Mpi::OpenMpi);
    let hosts = Hosts::new();
    let shell = hosts.shell(&place);
    let (shell, both) = (shell.display(), ADDRESSES.join(","));
    let launchers = [
        format!("mpirun.openmpi --host {both} --mca plm_rsh_agent {shell} --mca pml ob1 --mca btl tcp,self -n {{n}}"),
        format!("mpirun.mpich -hosts {both} -launcher ssh -launcher-exec {shell} -iface {} -n {{n}}", hosts.device(0)),
    ];
    for launcher in &launchers {
        let before = [0, 1].map(|host| hosts.sent(host));
        let mut predict = place.predict(launcher, &[]);
        // What MPICH talks with must not see that it is one machine.
        let outcome = run(&mut hosts.on(0, predict.env("UCX_TLS", "tcp,self")));
        let (prediction, _) = prediction(outcome);
        let sent = [0, 1].map(|host| hosts.sent(host) - before[host]);
        // In each of the steps that were measured, rows of 4 KB go both ways.
        assert!(sent.iter().all(|bytes| *bytes > 200_000), "{sent:?} bytes went over the wire: {prediction}");
        place.assert_clean(&["app.phc", "remote-shell"]);
    }
}
