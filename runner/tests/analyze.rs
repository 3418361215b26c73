//! `analyze`, `report`, `inspect`, `export` and `import` on a program whose phases are known.
mod common;
use common::{Ring, phasecast, text, well};
use std::fs;

const RING: Ring = Ring { ranks: 3, iterations: 200 };

#[test]
fn the_phases_of_a_ring_are_found_kept_and_shown() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| text(&folder.path().join(name)).to_string();
    RING.write(folder.path().join("ring.trace").as_path());
    let (trace, phases, page) = (at("ring.trace"), at("ring.phases"), at("ring.html"));

    let found = well(&["analyze", &trace, "-o", &phases, "--json"]).json();
    for key in ["method", "run_time_s", "explained_s", "planned_s", "coverage", "residual_s", "verdict", "phases"] {
        assert!(!found[key].is_null(), "{key} is missing in {found}");
    }
    for key in ["id", "weight", "time_s", "share", "relevant", "structure"] {
        assert!(!found["phases"][0][key].is_null(), "{key} is missing in {}", found["phases"][0]);
    }
    assert_eq!(found["method"], "marker");
    let number = |key: &str| found[key].as_f64().expect("a number");
    assert!((number("run_time_s") - 0.213_750).abs() < 1e-6, "{found}");
    assert!((number("explained_s") / number("run_time_s") - 1.0).abs() < 0.02, "{found}");
    assert!(number("planned_s") < 0.5 * number("run_time_s"), "{found}");
    let most = found["phases"].as_array().expect("phases").iter().filter_map(|p| p["weight"].as_u64()).max();
    assert!(most.is_some_and(|weight| (190..=200).contains(&weight)), "{found}");

    let table = well(&["analyze", &trace, "--threads", "1"]).out;
    assert!(table.contains("allreduce") && table.contains("planned"), "{table}");
    let inspected = well(&["inspect", &phases, "--json"]).json();
    assert_eq!((&inspected["kind"], &inspected["version"]), (&"phases".into(), &2.into()));

    well(&["report", &phases, "-o", &page]);
    let html = fs::read_to_string(&page).expect("the page");
    assert!(html.contains("analysis (marker)") && html.contains("data-phase=\"0\""));
    assert!(!html.contains("id=\"bars\""), "an analysis has no target");

    let again = phasecast(&["analyze", &trace, "-o", &phases]);
    assert!(again.code == 3 && again.err.contains("exists already"), "{}", again.err);
}

#[test]
fn a_damaged_file_of_phases_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| text(&folder.path().join(name)).to_string();
    RING.write(folder.path().join("ring.trace").as_path());
    let (trace, phases, page) = (at("ring.trace"), at("ring.phases"), at("ring.html"));
    well(&["analyze", &trace, "-o", &phases]);
    let content = fs::read(&phases).expect("the phases");
    for length in [0, 5, 40, content.len() / 2, content.len() - 1] {
        fs::write(&phases, &content[..length]).expect("a cut file");
        for args in [&["report", &phases, "-o", &page][..], &["inspect", &phases]] {
            let done = phasecast(args);
            assert_eq!(done.code, 3, "{args:?} cut to {length}: {}", done.err);
        }
    }
    for byte in (0..content.len()).step_by(97) {
        let mut flipped = content.clone();
        flipped[byte] ^= 4;
        fs::write(&phases, &flipped).expect("a flipped file");
        for args in [&["report", &phases, "-o", &page][..], &["inspect", &phases]] {
            assert!([0, 3].contains(&phasecast(args).code), "{args:?}, byte {byte}");
            let _ = fs::remove_file(&page);
        }
    }
}

#[test]
fn shares_and_threads_out_of_range_are_usage() {
    for args in [["--relevance", "2"], ["--similarity", "-1"], ["--threads", "0"], ["--method", "guess"]] {
        assert_eq!(phasecast(&["analyze", "no.trace", args[0], args[1]]).code, 2, "{args:?}");
    }
}

#[test]
fn exports_are_whole_and_csv_is_what_dump_prints() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| text(&folder.path().join(name)).to_string();
    RING.write(folder.path().join("ring.trace").as_path());
    let (trace, csv, json) = (at("ring.trace"), at("ring.csv"), at("ring.json"));
    assert_eq!(well(&["export", &trace, "--format", "csv", "-o", &csv, "--json"]).json()["ranks"], 3);
    assert_eq!(fs::read_to_string(&csv).expect("the CSV"), well(&["dump", &trace]).out);
    well(&["export", &trace, "--format", "perfetto", "-o", &json]);
    let perfetto: serde_json::Value = serde_json::from_slice(&fs::read(&json).expect("the JSON")).expect("JSON");
    let events = perfetto["traceEvents"].as_array().or(perfetto.as_array()).expect("a list of events");
    assert!(events.iter().filter(|event| event["name"] == "MPI_Allreduce").count() >= 600);
    assert_eq!(phasecast(&["export", &trace, "--format", "csv", "-o", &csv]).code, 3);
}

#[test]
fn what_cannot_be_imported_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| text(&folder.path().join(name)).to_string();
    let out = at("out.trace");
    fs::create_dir(at("empty")).expect("a folder");
    fs::write(at("text"), "hello\n").expect("a file");
    fs::write(at("broken.otf2"), "OTF2 it is not").expect("a file");
    for name in ["missing", "empty", "text", "broken.otf2"] {
        let done = phasecast(&["import", &at(name), "-o", &out]);
        assert_eq!(done.code, 3, "{name}: {}", done.err);
        assert!(!folder.path().join("out.trace").exists(), "{name} left an output");
    }
}
