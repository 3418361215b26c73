//! Signatures with images, made up from a made trace: what is damaged, doctored or not for this machine is refused with a
//! reason before anything is started.
mod common;
use common::{Ring, phasecast, text, well};
use phasecast_analyzer::{Analysis, Settings, analyze};
use phasecast_image::{Content, PAGE, Protection, Region, Run, State, Store};
use phasecast_trace::Trace;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

/// A piece of the ring after which its image lies.
const AFTER: usize = 5;

fn analysis(folder: &Path) -> Analysis {
    let path = folder.join("ring.trace");
    Ring { ranks: 2, iterations: 400 }.write(&path);
    let trace = Trace::open(&path).expect("the trace opens");
    analyze(&[trace], &Settings { threads: 1, ..Settings::default() }, &|_, _| ()).expect("it is analysed")
}

/// A packed set with one cut of these ranks.
fn images(folder: &Path, ranks: &[u32]) -> Vec<u8> {
    let place = folder.join("images");
    fs::create_dir(&place).expect("a folder");
    for &rank in ranks {
        let mut store = Store::create(&place, rank).expect("a store");
        let bytes: Vec<u8> = (0..3 * PAGE).map(|i| (i * 7 + rank as usize) as u8 ^ (i / PAGE) as u8).collect();
        let (mut runs, mut hashes) = (Vec::new(), Vec::new());
        store.add(&bytes, &mut runs, &mut hashes).expect("pages are stored");
        let run = |&(first, pages): &(u64, u64)| Run { pages, huge: false, content: Content::Data(first) };
        let region = Region {
            start: 0x2000_0000_0000,
            length: 3 * PAGE as u64,
            protection: Protection(3),
            flags: Default::default(),
            backing: None,
            name: String::new(),
            runs: runs.iter().map(run).collect(),
        };
        let state = State { rank, size: 2, cut: 0, regions: vec![region], hashes, ..State::default() };
        store.save(&state).expect("a state is saved");
    }
    let packed = folder.join("packed");
    match phasecast_image::pack_file(&place, &packed) {
        Ok(_) => fs::read(packed).expect("the packed set"),
        // A set that is not whole is not packed: what would come of it is put together by hand.
        Err(_) => Vec::new(),
    }
}

/// What the manifest says, before a test changes it.
fn manifest(analysis: &Analysis) -> Value {
    let machine = json!({"host": "base", "cpu": "made up", "cores": 2, "mpi": "none"});
    json!({
        "kind": "restart", "phasecast": "0.1.0", "command": ["/opt/ring"], "ranks": 2, "machine": machine,
        "aet_s": [0.5, 0.5], "startup_s": 0.1, "teardown_s": 0.1,
        "images": {
            "format": 25, "created": 0, "user": "somebody",
            "program": {"path": "/opt/ring", "bytes": 1, "sha256": "00"}, "folder": "/no/such",
            "needs": {
                "architecture": "x86_64", "cpu_baseline": "x86-64-v2", "cpu_features": ["no-such-feature"],
                "page_size": 4096, "rank_bytes": 3 * PAGE,
            },
            "cuts": [{"id": 0, "after": AFTER, "events": analysis.cut(AFTER), "seconds": 0.1, "bytes": 6 * PAGE, "files": ["/no/such/input"]}],
            "later": ["/no/such/table"],
            "made": [{"cut": 1, "path": "/no/such/result"}],
            "recorded": false,
            "windows": [{"after": AFTER, "warm": 1, "measured": 3, "one_off": false}],
            "edges": [{"init_s": 0.1, "tail_s": 0.0}, {"init_s": 0.1, "tail_s": 0.0}],
            "verified": null,
        },
        "analysis": serde_json::from_str::<Value>(&analysis.container().manifest).expect("a manifest is JSON"),
    })
}

fn write(path: &Path, analysis: &Analysis, manifest: &Value, images: &[u8]) {
    let mut container = analysis.container();
    (container.kind, container.version) = ("signature".into(), 2);
    container.manifest = manifest.to_string();
    fs::write(path, [&container.to_bytes().expect("it is short"), images].concat())
        .expect("a signature can be written");
}

/// A good signature, but for a processor that there is not.
fn made(folder: &Path) -> (PathBuf, Analysis, Vec<u8>) {
    let (analysis, images) = (analysis(folder), images(folder, &[0, 1]));
    let path = folder.join("ring.phc");
    write(&path, &analysis, &manifest(&analysis), &images);
    (path, analysis, images)
}

#[test]
fn a_whole_signature_is_whole() {
    let folder = tempfile::tempdir().expect("a folder");
    let (path, ..) = made(folder.path());
    let checked = well(&["verify-file", text(&path), "--json"]).json();
    assert_eq!(
        (&checked["ok"], &checked["cuts"], &checked["states"], &checked["ranks"]),
        (&json!(true), &json!(1), &json!(2), &json!(2))
    );
    assert_eq!(checked["bytes"], fs::metadata(&path).expect("the file").len());
    let inspected = well(&["inspect", text(&path), "--json"]).json();
    let names: Vec<&str> =
        inspected["pieces"].as_array().expect("a list").iter().filter_map(|p| p["name"].as_str()).collect();
    assert_eq!(names, ["manifest", "pieces", "end", "images"]);
    assert_eq!(inspected["bytes"], checked["bytes"]);
}

#[test]
fn another_machine_is_told_why_and_what_else_to_do() {
    let folder = tempfile::tempdir().expect("a folder");
    let (path, ..) = made(folder.path());
    let checked = phasecast(&["preflight", text(&path), "--json"]);
    assert_eq!(checked.code, 4, "{}", checked.err);
    let checks = checked.json()["checks"].as_array().expect("a list").clone();
    let failing: Vec<&Value> = checks.iter().filter(|check| check["ok"] == false).collect();
    assert_eq!(failing.len(), 2, "{failing:?}");
    let lacking = [
        (failing[0], "processor", "no-such-feature"),
        (failing[1], "files", "/no/such/input"),
        (failing[1], "files", "/no/such/table"),
    ];
    for (check, name, lacks) in lacking {
        assert_eq!(check["name"], name);
        assert!(check["reason"].as_str().is_some_and(|reason| reason.contains(lacks)), "{failing:?}");
    }
    for command in [&["predict", text(&path)][..], &["predict", text(&path), "--budget", "5s"]] {
        let refused = phasecast(command);
        assert_eq!(refused.code, 4, "{}", refused.err);
        assert!(refused.err.contains("no-such-feature") && refused.err.contains("predict --live"), "{}", refused.err);
        assert!(refused.err.contains("somebody@base"), "whose it is: {}", refused.err);
    }
    let mixed = phasecast(&["predict", text(&path), "--share", "0.5"]);
    assert_eq!(mixed.code, 2, "{}", mixed.err);
}

#[test]
fn files_of_a_folder_that_is_missing_are_looked_for_in_this_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let (path, ..) = made(folder.path());
    let files = || {
        let mut command = common::command(&["preflight", text(&path), "--json"]);
        let checked: Value =
            serde_json::from_slice(&command.current_dir(folder.path()).output().expect("it runs").stdout)
                .expect("checks are JSON");
        checked["checks"]
            .as_array()
            .and_then(|all| all.iter().find(|check| check["name"] == "files"))
            .expect("it is one")
            .clone()
    };
    let lacking = files();
    assert!(
        lacking["ok"] == false && lacking["remedy"].as_str().is_some_and(|text| text.contains("/no/such")),
        "{lacking}"
    );
    fs::write(folder.path().join("input"), "1").expect("a file");
    let there = files();
    assert!(
        there["ok"] == true && there["reason"].as_str().is_some_and(|text| text.contains("/no/such/table")),
        "{there}"
    );
}

#[test]
fn another_digest_than_expected_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let (path, ..) = made(folder.path());
    let digest = well(&["verify-file", text(&path), "--json"]).json()["sha256"].as_str().expect("a digest").to_string();
    let expect = |digest: &str| phasecast(&["predict", text(&path), "--expect", digest]);
    assert_eq!(expect(&format!("sha256:{digest}")).code, 4, "it is the one: the processor is refused, not the file");
    let other = expect(&format!("sha256:{}", "0".repeat(64)));
    assert!(other.code == 3 && other.err.contains(&digest), "{}", other.err);
    assert_eq!(expect(&digest).code, 2);
    assert_eq!(expect("sha256:123").code, 2);
}

/// Commands that read all of a signature.
const READERS: [&str; 2] = ["verify-file", "inspect"];

#[test]
fn a_signature_that_is_cut_off_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let (path, ..) = made(folder.path());
    let content = fs::read(&path).expect("the signature");
    for length in [content.len() - 1, content.len() - 60, content.len() / 2, 100, 10] {
        fs::write(&path, &content[..length]).expect("a cut file");
        for command in [READERS[0], READERS[1], "predict", "preflight", "verify"] {
            let done = phasecast(&[command, text(&path)]);
            assert_eq!(done.code, 3, "{command} at {length}: {} {}", done.out, done.err);
            assert!(done.err.contains(text(&path)), "{command} does not name the file: {}", done.err);
        }
    }
}

#[test]
fn a_flipped_bit_is_found_wherever_it_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let (path, ..) = made(folder.path());
    let content = fs::read(&path).expect("the signature");
    for at in (0..content.len()).step_by(content.len() / 60 + 1) {
        let mut flipped = content.clone();
        flipped[at] ^= 1 << (at % 8);
        fs::write(&path, &flipped).expect("a flipped file");
        for command in READERS {
            let done = phasecast(&[command, text(&path)]);
            assert_eq!(done.code, 3, "{command}, byte {at} of {}: {}", content.len(), done.out);
        }
    }
}

#[test]
fn a_manifest_that_does_not_fit_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let (path, analysis, images) = made(folder.path());
    let good = manifest(&analysis);
    let bad = [
        ("/images/windows/0/measured", json!(100_000)),
        ("/images/windows/0/warm", json!(u64::MAX)),
        ("/images/windows/0/after", json!(AFTER + 1)),
        ("/images/windows", json!([])),
        ("/images/cuts/0/events", json!([1, 1])),
        ("/images/cuts/0/after", json!(u64::MAX)),
        ("/images/edges", json!([])),
        ("/ranks", json!(3)),
        ("/command", json!([])),
    ];
    for (place, value) in bad {
        let mut changed = good.clone();
        *changed.pointer_mut(place).expect("a field") = value;
        write(&path, &analysis, &changed, &images);
        for command in ["predict", "verify-file"] {
            let done = phasecast(&[command, text(&path)]);
            assert_eq!(done.code, 3, "{command} with another {place}: {}", done.err);
        }
    }
    let mut newer = good.clone();
    newer["images"]["format"] = json!(99);
    write(&path, &analysis, &newer, &images);
    for command in ["predict", "verify-file"] {
        let done = phasecast(&[command, text(&path)]);
        assert!(done.code == 3 && done.err.contains("format version 99"), "{command}: {}", done.err);
    }
    // More cuts than there are images of.
    let mut more = good.clone();
    more["images"]["cuts"]
        .as_array_mut()
        .expect("a list")
        .push(json!({"id": 1, "after": AFTER + 9, "events": analysis.cut(AFTER + 9), "seconds": 0.1, "bytes": 0}));
    write(&path, &analysis, &more, &images);
    assert_eq!(phasecast(&["verify-file", text(&path)]).code, 3);
    // None at all.
    write(&path, &analysis, &good, &[]);
    let done = phasecast(&["predict", text(&path)]);
    assert!(done.code == 3 && done.err.contains("images are missing"), "{}", done.err);
}

#[test]
fn a_set_without_one_ranks_image_is_not_packed() {
    let folder = tempfile::tempdir().expect("a folder");
    assert!(images(folder.path(), &[0]).is_empty());
}
