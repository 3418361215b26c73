//! A machine is measured under two MPIs, and one that has changed is told from the one before.

use phasecast_tests::half::Halves;
use phasecast_tests::network::{ADDRESSES, Hosts};
use phasecast_tests::phasecast;
use phasecast_tests::place::{Place, json};
use phasecast_tests::process::{Outcome, run};
use serde_json::Value;
use std::fs;
use std::process::Command;

const OPEN_MPI: &str = "mpirun.openmpi --oversubscribe -n {n}";
const MPICH: &str = "mpirun.mpich -n {n}";

fn as_root(command: &mut Command) -> &mut Command {
    command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
}

fn characterize(place: &Place, words: &[&str]) -> Outcome {
    let mut command = Command::new(phasecast());
    command.args(["characterize", "--quick", "--json"]).args(words);
    run(as_root(command.current_dir(place.path())))
}

/// The same, again where other work comes between, which characterize refuses: that is no fault of what it measures.
fn undisturbed(mut attempt: impl FnMut() -> Outcome) -> Outcome {
    let quiet = |outcome: &Outcome| !outcome.stderr.contains("disturbs this machine");
    (0..3).map(|_| attempt()).find(quiet).expect("the machine is quiet for a few seconds")
}

fn seconds(costs: &Value, bytes: u64) -> f64 {
    let points = costs.as_array().unwrap_or_else(|| panic!("no costs: {costs}"));
    let point = points.iter().find(|point| point["bytes"] == bytes);
    point.and_then(|point| point["seconds"].as_f64()).unwrap_or_else(|| panic!("nothing of {bytes} bytes: {costs}"))
}

/// What any machine shows of messages: the columns hang together.
fn check_link(link: &Value) {
    const LONG: u64 = 4 << 20;
    let time = |column: &str, bytes| seconds(&link[column], bytes);
    assert!(time("transfer", LONG) > 10.0 * time("transfer", 0), "{link}");
    // A long transfer is in the calls that carry it out, and in none that only starts it.
    for column in ["send", "receive"] {
        assert!(time(column, LONG) > 0.1 * time("transfer", LONG), "{column}: {link}");
    }
    for column in ["isend", "irecv"] {
        assert!(time(column, LONG) < 0.5 * time("transfer", LONG), "{column}: {link}");
    }
    // The step is found, and there is a point on each of its sides.
    let eager = link["eager_bytes"].as_u64().unwrap_or_else(|| panic!("no step: {link}"));
    assert!((16..1 << 20).contains(&eager), "{eager}");
    assert!(time("send", eager) > 0.0 && time("send", eager + 1) > 0.0);
    let (overlap, contention) = (link["overlap"].as_f64(), link["contention"].as_f64());
    assert!(overlap.is_some_and(|share| share <= 1.0) && contention >= Some(1.0), "{link}");
}

#[test]
fn a_machine_is_measured_and_a_change_is_told() {
    let place = Place::alone();
    let words = ["-n", "2", "--launcher", OPEN_MPI, "-o", "a.toml"];
    let first = json(&undisturbed(|| characterize(&place, &words)).succeeded());
    assert_eq!(first["identity"]["ranks"], 2);
    assert!(first["identity"]["mpi"].as_str().is_some_and(|mpi| mpi.contains("Open MPI")), "{}", first["identity"]);
    assert_eq!((first["links"].as_array().map(Vec::len), &first["links"][0]["place"]), (Some(1), &"within".into()));
    check_link(&first["links"][0]);
    let names = |key: &str| first[key].as_array().map_or(0, Vec::len);
    assert_eq!((names("collectives"), names("kernels")), (11, 5));
    let collectives = first["collectives"].as_array().into_iter().flatten();
    assert_eq!(collectives.filter(|collective| collective["root"].is_array()).count(), 4);

    // Refused before anything is measured; shown; and measured again under another MPI, which is a change.
    let again = characterize(&place, &["-o", "a.toml"]);
    assert_eq!((again.code, again.stderr.contains("exists")), (3, true), "{again:?}");
    let shown = run(Command::new(phasecast()).args(["inspect", "a.toml", "--json"]).current_dir(place.path()));
    let shown = json(&shown.succeeded());
    assert_eq!((&shown["kind"], &shown["head"]["ranks"], &shown["ok"]), (&"machine".into(), &2.into(), &true.into()));
    let words = ["-n", "2", "--launcher", MPICH, "--against", "a.toml", "-o", "b.toml"];
    let second = undisturbed(|| characterize(&place, &words));
    assert_eq!(second.code, 5, "{second:?}");
    let second = json(&second);
    check_link(&second["links"][0]);
    let changes = second["changes"].as_array().into_iter().flatten();
    let changed: Vec<&Value> =
        changes.filter(|change| change["changed"] == true).map(|change| &change["what"]).collect();
    assert!(changed.contains(&&"mpi".into()) && changed.contains(&&"within.eager_bytes".into()), "{changed:?}");
    // It is the same processor, whatever else it does meanwhile.
    let k = second["ratio"]["k"].as_f64();
    assert!(k.is_some_and(|k| (0.2..5.0).contains(&k)), "{k:?}");
    place.assert_clean(&["a.toml", "b.toml"]);
}

#[test]
fn two_hosts_have_a_link_within_and_one_between() {
    let place = Place::alone();
    let hosts = Hosts::new();
    let (shell, [one, other]) = (hosts.shell(&place), ADDRESSES);
    let launcher = format!(
        "mpirun.openmpi --oversubscribe --host {one}:2,{other}:2 --mca plm_rsh_agent {} --mca pml ob1 \
         --mca btl tcp,vader,self --mca mpi_yield_when_idle 1 -n {{n}}",
        shell.display()
    );
    let mut command = Command::new(phasecast());
    command.args(["characterize", "--quick", "--json", "-n", "4", "-o", "two.toml", "--launcher", &launcher]);
    let before = hosts.sent(1);
    as_root(command.current_dir(place.path()));
    let measured = json(&undisturbed(|| run(&mut hosts.on(0, &command))).succeeded());
    assert_eq!(measured["identity"]["hosts"].as_array().map(Vec::len), Some(2), "{}", measured["identity"]);
    let links = measured["links"].as_array().cloned().unwrap_or_default();
    let places: Vec<&Value> = links.iter().map(|link| &link["place"]).collect();
    assert_eq!(places, [&Value::from("within"), &"between".into()], "{links:?}");
    // An empty message takes longer over the wire than through memory, and long ones did go over it.
    let latency = |at: usize| seconds(&links[at]["transfer"], 0);
    assert!(latency(1) > latency(0), "{} and {} s", latency(1), latency(0));
    assert!(hosts.sent(1) - before > 64 << 20, "{} bytes", hosts.sent(1) - before);
    place.assert_clean(&["two.toml", "remote-shell"]);
}

#[test]
fn a_quota_of_processor_time_shows_as_stops() {
    let place = Place::alone();
    let halves = match Halves::of_rank() {
        Ok(halves) => halves,
        // Without the right to make cgroups there is nothing to see.
        Err(error) => return eprintln!("no quota can be set here: {error}"),
    };
    let launcher = format!("mpirun.mpich -n {{n}} {}", halves.script());
    let words = ["-n", "2", "--launcher", &launcher, "-o", "half.toml"];
    let measured = json(&undisturbed(|| characterize(&place, &words)).succeeded());
    let span = measured["stops"]["span_s"].as_f64().unwrap_or_default();
    assert!((0.5..4.0).contains(&span), "{}", measured["stops"]);
    let ranks = measured["stops"]["ranks"].as_array().cloned().unwrap_or_default();
    assert_eq!(ranks.len(), 2);
    for stops in ranks {
        let lengths = stops.as_array().into_iter().flatten().filter_map(|stop| stop[1].as_f64());
        let share = lengths.sum::<f64>() / span;
        // Half of the time by the quota, and more where it is kept by a coarse clock or beside others.
        assert!((0.3..1.0).contains(&share), "{share}");
    }
    place.assert_clean(&["half.toml"]);
}

#[test]
fn what_cannot_be_measured_is_refused() {
    let place = Place::alone();
    fs::write(place.path().join("bad.toml"), "format = 1\nlinks = 3\n").expect("a file can be written");
    for (words, code, said) in [
        (&["-n", "1"][..], 2, "1 is not in"),
        (&["--against", "bad.toml"], 3, "bad.toml is not a machine file (line 2)"),
        (&["--against", "none.toml"], 3, "none.toml"),
        (&["-o", "no/folder.toml"], 3, "there is no folder"),
        (&["--launcher", "env"], 1, "the launcher started 1 ranks instead of 2"),
        (&["--launcher", "false"], 1, "failed"),
    ] {
        let outcome = characterize(&place, words);
        assert!(outcome.code == code && outcome.stderr.contains(said), "{words:?}: {outcome:?}");
    }
    place.assert_clean(&["bad.toml"]);
}
