//! `phasecast transform` on real traces of both of Debian's MPIs: the same machine gives the trace back, the result is a
//! trace like any other, and what cannot be done is told.
use phasecast_tests::mpi::Mpi;
use phasecast_tests::place::{Place, json};
use phasecast_tests::process::{Outcome, run};
use serde_json::Value;
use std::fs;

const MACHINE: &str = r#"
format = 1
[identity]
hosts = ["there"]
cpu = "some processor"
cores = 2
mpi = "another MPI"
ranks = 2
[life]
launch_s = 0.1
init_s = 0.3
finalize_s = 0.01
[[links]]
place = "within"
latency_s = 5e-7
bandwidth = 5e9
eager_bytes = 4096
overlap = 0.1
send = [{ bytes = 0, seconds = 1e-7 }, { bytes = 1048576, seconds = 2e-4 }]
receive = [{ bytes = 0, seconds = 2e-7 }, { bytes = 1048576, seconds = 2e-4 }]
isend = [{ bytes = 0, seconds = 1e-7 }]
irecv = [{ bytes = 0, seconds = 5e-8 }]
wait = [{ bytes = 0, seconds = 1e-7 }, { bytes = 1048576, seconds = 2e-4 }]
transfer = [{ bytes = 0, seconds = 5e-7 }, { bytes = 1048576, seconds = 2.5e-4 }]
[[kernels]]
name = "stencil"
seconds = 0.01
spread = 1e-5
"#;

/// Traces the heat plate under an MPI to `NAME.trace`.
fn traced(place: &Place, mpi: Mpi, name: &str, words: [&str; 2]) {
    let mut command = mpi.launcher(2);
    command.current_dir(place.path()).arg(phasecast_tests::phasecast()).args(["trace", "--quiet", "-o", name, "--"]);
    run(command.arg(place.program(mpi, "heat.c")).args(words)).succeeded();
}

fn transform(place: &Place, words: &[&str]) -> Outcome {
    let mut all = vec!["transform", "base.trace", "--base", "a.toml"];
    all.extend(words);
    run(&mut place.phasecast(&all))
}

fn number(value: &Value, key: &str) -> f64 {
    value[key].as_f64().unwrap_or_else(|| panic!("no {key}: {value}"))
}

#[test]
fn the_same_machine_gives_the_trace_back_and_another_takes_twice_as_long() {
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        let place = Place::alone();
        fs::write(place.path().join("a.toml"), MACHINE).expect("a machine file");
        fs::write(place.path().join("b.toml"), MACHINE.replace("seconds = 0.01", "seconds = 0.02")).expect("another");
        traced(&place, mpi, "base.trace", ["128", "300"]);
        let words =
            ["--target", "a.toml", "-o", "same.trace", "--observed", "base.trace", "--prediction", "p.json", "--json"];
        let same = json(&transform(&place, &words).succeeded());
        let (base, run_s) = (number(&same, "base_run_s"), number(&same, "run_s"));
        // What is computed comes back; of calls only what the made costs explain, so that each hiccup within one makes the
        // run shorter. That the trace comes back exactly is a law of made traces.
        let compute = |of: &Value, key: &str| number(&of["phases"][0], key);
        assert!((compute(&same, "total_s") / compute(&same, "base_s") - 1.0).abs() < 1e-6, "{same}");
        assert!((compute(&same, "base_s")..1.05 * base).contains(&run_s), "{run_s} of {base}");
        assert!((number(&same, "pet_s") - run_s - 0.1).abs() < 1e-9, "{same}");
        let rows = same["table"].as_array().expect("a table");
        let row = rows.iter().find(|row| row["name"] == "MPI_Isend").expect("sends are compared");
        assert!((number(&row["ranks"][0], "total") - 1.0).abs() < 0.01, "{row}");

        let twice = json(&transform(&place, &["--target", "b.toml", "-o", "twice.trace", "--json"]).succeeded());
        assert!((number(&twice, "ratio") - 2.0).abs() < 1e-9, "{twice}");
        assert!((compute(&twice, "total_s") / compute(&twice, "base_s") - 2.0).abs() < 1e-6, "{twice}");

        let stat = json(&run(&mut place.phasecast(&["stat", "twice.trace", "--json"])).succeeded());
        let before = json(&run(&mut place.phasecast(&["stat", "base.trace", "--json"])).succeeded());
        assert_eq!((&stat["calls"], &stat["events"]), (&before["calls"], &before["events"]));
        assert_eq!((&stat["unmatched"], &stat["mpi"]), (&Value::from(0), &Value::from("another MPI")));
        for words in [
            &["dump", "twice.trace", "--format", "csv"][..],
            &["analyze", "twice.trace", "-o", "twice.phases"],
            &["export", "twice.trace", "--format", "perfetto", "-o", "twice.json"],
            &["report", "p.json", "-o", "p.html"],
            &["report", "twice.phases", "-o", "twice.html"],
        ] {
            run(&mut place.phasecast(words)).succeeded();
        }
        let compared = json(&run(&mut place.phasecast(&["compare", "p.json", "--json"])).succeeded());
        assert_eq!(compared["predictions"][0]["method"], "transform", "{compared}");
    }
}

#[test]
fn ratios_come_from_small_runs_of_another_build() {
    let place = Place::alone();
    fs::write(place.path().join("a.toml"), MACHINE).expect("a machine file");
    traced(&place, Mpi::OpenMpi, "base.trace", ["256", "400"]);
    traced(&place, Mpi::OpenMpi, "small.trace", ["192", "300"]);
    traced(&place, Mpi::Mpich, "other.trace", ["192", "300"]);
    let words = ["--target", "a.toml", "-o", "new.trace", "--json", "--ratios-from", "small.trace", "other.trace"];
    let new = json(&transform(&place, &words).succeeded());
    assert_eq!(new["ratio_from"], "runs", "{new}");
    let regions = new["regions"].as_array().expect("regions");
    let iterate = regions.iter().find(|r| {
        r["after"].as_str().is_some_and(|a| a.starts_with("MPI_Isend"))
            && r["before"].as_str().is_some_and(|b| b.starts_with("MPI_Recv"))
    });
    let iterate = iterate.unwrap_or_else(|| panic!("no Iterate: {new}"));
    // Of both ranks of the small run.
    assert_eq!(iterate["count"], 600, "{iterate}");
    let ratio = number(iterate, "ratio");
    assert!((0.05..20.0).contains(&ratio), "{iterate}");
    assert!((ratio * number(iterate, "base_s") / number(iterate, "target_s") - 1.0).abs() < 1e-9, "{iterate}");
}

#[test]
fn what_cannot_be_done_is_told() {
    let place = Place::alone();
    fs::write(place.path().join("a.toml"), MACHINE).expect("a machine file");
    let without = MACHINE.split("[[kernels]]").next().unwrap_or_default();
    fs::write(place.path().join("without.toml"), without).expect("another");
    traced(&place, Mpi::Mpich, "base.trace", ["64", "20"]);
    let mut command = Mpi::Mpich.launcher(1);
    command.current_dir(place.path()).arg(phasecast_tests::phasecast()).args([
        "trace",
        "--quiet",
        "-o",
        "one.trace",
        "--",
    ]);
    run(command.arg(place.program(Mpi::Mpich, "heat.c")).args(["64", "20"])).succeeded();
    for (words, told) in [
        (&["--target", "none.toml", "-o", "new.trace"][..], "none.toml"),
        (&["--target", "without.toml", "-o", "new.trace"], "--ratio"),
        (&["--target", "a.toml", "-o", "new.trace", "--observed", "one.trace"], "has 1."),
        (&["--target", "a.toml", "-o", "new.trace", "--ratios-from", "base.trace", "one.trace"], "as many"),
        (&["--target", "a.toml", "-o", "one.trace"], "exists already"),
    ] {
        let refused = transform(&place, words);
        assert_eq!(refused.code, 3, "{words:?}: {refused:?}");
        assert!(refused.stderr.contains(told), "{words:?}: {}", refused.stderr);
        assert!(!place.path().join("new.trace").exists(), "{words:?}");
    }
    let usage = transform(&place, &["--target", "a.toml", "-o", "new.trace", "--ratio", "-1"]);
    assert_eq!(usage.code, 2, "{usage:?}");
}
