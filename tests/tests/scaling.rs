//! `phasecast profile` and `phasecast scale` on real traces of both of Debian's MPIs, with more ranks than this machine
//! may have processors.
use phasecast_tests::mpi::Mpi;
use phasecast_tests::place::{Place, json};
use phasecast_tests::process::{Outcome, run};
use serde_json::Value;
use std::fs;

const MACHINE: &str = r#"
format = 1
[[links]]
place = "within"
latency_s = 5e-7
bandwidth = 5e9
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
"#;

/// Traces what the ranks of the heat plate compute to `N.raw`, and adds communication to `N.trace`.
fn traced(place: &Place, mpi: Mpi, ranks: u32) {
    fs::write(place.path().join("here.toml"), MACHINE).expect("a machine file");
    let (raw, full) = (format!("{ranks}.raw"), format!("{ranks}.trace"));
    let mut command = mpi.launcher(ranks);
    command.current_dir(place.path()).arg(phasecast_tests::phasecast());
    command.args(["trace", "--quiet", "--clock", "computing", "-o", &raw, "--"]);
    run(command.arg(place.program(mpi, "heat.c")).args(["256", "600"])).succeeded();
    run(&mut place.phasecast(&["transform", &raw, "--target", "here.toml", "-o", &full])).succeeded();
}

fn phasecast(place: &Place, words: &[&str]) -> Outcome {
    run(&mut place.phasecast(words))
}

fn number(value: &Value, key: &str) -> f64 {
    value[key].as_f64().unwrap_or_else(|| panic!("no {key}: {value}"))
}

#[test]
fn runs_on_few_ranks_predict_more() {
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        let place = Place::alone();
        for ranks in [1, 2, 4] {
            traced(&place, mpi, ranks);
        }
        // Only computation takes time: all ranks are busy all the time until the first of them has ended.
        let raw = json(&phasecast(&place, &["profile", "2.raw", "--json"]).succeeded());
        assert!(
            (raw["levels"][1].as_f64().unwrap_or(1.0) + raw["levels"][2].as_f64().unwrap_or(0.0) - 1.0).abs() < 1e-9
        );
        let words = ["profile", "4.trace", "--json", "--csv", "p.csv", "--steps", "s.csv", "--svg", "p.svg"];
        let profile = json(&phasecast(&place, &words).succeeded());
        let parallelism = number(&profile, "average_parallelism");
        assert!(parallelism > 0.0 && parallelism <= 4.0, "{profile}");
        let levels: f64 = profile["levels"].as_array().expect("levels").iter().filter_map(Value::as_f64).sum();
        assert!((levels - 1.0).abs() < 1e-9, "{profile}");
        let phases: f64 = profile["phases"].as_array().expect("phases").iter().map(|p| number(p, "time_s")).sum();
        assert!((phases / number(&profile, "duration_s") - 1.0).abs() < 1e-6, "{profile}");
        // The steps add up to the busy time, to the nanosecond.
        let steps = fs::read_to_string(place.path().join("s.csv")).expect("steps");
        let busy: u128 = steps
            .lines()
            .skip(1)
            .map(|line| {
                let n: Vec<u128> = line.split(',').map(|n| n.parse().expect("a number")).collect();
                (n[1] - n[0]) * n[2]
            })
            .sum();
        assert!((busy as f64 * 1e-9 - number(&profile, "busy_s")).abs() < 1e-9, "{busy} {profile}");
        let words = [
            "scale",
            "2.trace",
            "4.trace",
            "1.trace",
            "--to",
            "8,64",
            "--svg",
            "s.svg",
            "--prediction",
            "p.json",
            "--json",
        ];
        let scaled = json(&phasecast(&place, &words).succeeded());
        assert_eq!(scaled["processors"], serde_json::json!([1, 2, 4]), "{scaled}");
        assert_eq!((&scaled["method"], &scaled["ranks"]), (&"scale".into(), &8.into()), "{scaled}");
        let pet = number(&scaled, "pet_s");
        let sum: f64 = scaled["phases"].as_array().expect("phases").iter().map(|p| number(p, "total_s")).sum();
        assert!((pet / sum - 1.0).abs() < 1e-9 && pet < number(&scaled, "base_run_s") * 1.5, "{scaled}");
        let interval = [0, 1].map(|end| scaled["interval_s"][end].as_f64().expect("an end"));
        assert!(interval[0] <= pet && pet <= interval[1] && interval[0] < interval[1], "{scaled}");
        for words in [
            &["compare", "p.json"][..],
            &["report", "p.json", "-o", "p.html"],
            &["report", "4.trace", "-o", "profile.html"],
            &["scale", "1.trace", "2.trace", "4.trace", "--to", "16", "--count", "1"],
        ] {
            phasecast(&place, words).succeeded();
        }
        let page = fs::read_to_string(place.path().join("profile.html")).expect("a page");
        assert!(page.contains("Busy processors over time") && page.contains("<svg"), "no drawing");
        // Phases of PAS2P of the same runs.
        for ranks in ["1", "2", "4"] {
            phasecast(&place, &["analyze", &format!("{ranks}.trace"), "-o", &format!("{ranks}.phases")]).succeeded();
        }
        let words = ["scale", "1.phases", "2.phases", "4.phases", "--to", "8", "--json"];
        let again = json(&phasecast(&place, &words).succeeded());
        assert!((number(&again, "base_run_s") / number(&scaled, "base_run_s") - 1.0).abs() < 0.3, "{again}");
        let refused = phasecast(&place, &["scale", "2.trace", "2.raw", "--to", "8"]);
        assert_eq!(refused.code, 3, "{refused:?}");
        assert!(refused.stderr.contains("2.trace") && refused.stderr.contains("2.raw"), "{}", refused.stderr);
        let refused = phasecast(&place, &["transform", "2.trace", "--target", "here.toml", "-o", "x.trace"]);
        assert_eq!(refused.code, 2, "{refused:?}");
    }
}

#[test]
fn what_cannot_be_scaled_is_told() {
    let place = Place::new();
    fs::write(place.path().join("table.csv"), "phase,2,4\nA,3,2\n").expect("a table");
    fs::write(place.path().join("one.csv"), "phase,2\nA,3\n").expect("a table");
    fs::write(place.path().join("zero.csv"), "phase,2,4\nA,3,0\n").expect("a table");
    for (words, code, told) in [
        (&["scale", "none.trace", "--to", "8"][..], 3, "none.trace"),
        (&["scale", "one.csv", "--to", "8"], 3, "2 or more"),
        (&["scale", "zero.csv", "--to", "8"], 3, "line 2"),
        (&["scale", "table.csv", "one.csv", "--to", "8"], 3, "a table stands alone"),
        (&["scale", "table.csv", "--to", "0"], 2, "0 is not in"),
        (&["profile", "none.trace"], 3, "none.trace"),
        (&["profile", "table.csv", "--smooth", "line:10"], 2, "odd"),
    ] {
        let refused = phasecast(&place, words);
        assert_eq!(refused.code, code, "{words:?}: {refused:?}");
        assert!(refused.stderr.contains(told), "{words:?}: {}", refused.stderr);
    }
    phasecast(&place, &["scale", "table.csv", "--to", "8"]).succeeded();
}
