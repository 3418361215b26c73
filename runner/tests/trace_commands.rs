//! `stat`, `dump` and `inspect` on a made trace: exact numbers, both forms, a reader that goes away.
mod common;
use common::{Ring, command, phasecast, text, well};
use std::io::Read;
use std::process::Stdio;

const RING: Ring = Ring { ranks: 3, iterations: 40 };

fn trace() -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("ring.trace");
    RING.write(&path);
    let path = text(&path).to_string();
    (folder, path)
}

#[test]
fn stat_counts_exactly() {
    let (_folder, trace) = trace();
    let stat = well(&["stat", &trace, "--json"]).json();
    assert_eq!(stat["ranks"], 3);
    assert_eq!(stat["events"], 3 * 40 * 3);
    assert_eq!(stat["calls"]["MPI_Isend"], 120);
    assert_eq!(stat["calls"]["MPI_Finalize"], 3);
    assert_eq!(stat["unmatched"], 0);
    assert_eq!(stat["truncated_ranks"].as_array().map(Vec::len), Some(0));
    let duration = stat["duration_s"].as_f64().expect("a time");
    assert!((duration - 0.047_670).abs() < 1e-6, "{duration}");
    assert!(stat["bytes_per_event"].as_f64() < stat["bytes_per_event_raw"].as_f64());
    let words = well(&["stat", &trace]).out;
    assert!(words.contains("MPI_Allreduce") && words.contains("360"), "{words}");
    assert!(!well(&["stat", &trace, "--summary"]).out.contains("MPI_Allreduce"));
}

#[test]
fn dump_has_one_line_a_call_in_both_forms() {
    let (_folder, trace) = trace();
    let csv = well(&["dump", &trace, "--format", "csv"]).out;
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(lines.len(), 1 + 3 * (2 + 3 * 40));
    assert_eq!(lines[0], "rank,thread,procedure,class,peer,tag,bytes,communicator,enter_ns,exit_ns,site,parts");
    assert_eq!(lines[1], "0,0,MPI_Init,setup,,,0,0,1000000,6000000,0x401000,");
    assert_eq!(lines[3], "0,0,MPI_Recv,recv,2,7,8192,0,6403000,6423000,0x401002,recv:2:7:8192:0");
    let json = well(&["dump", &trace, "--format", "json", "--rank", "1"]).out;
    let calls: Vec<serde_json::Value> = json.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(calls.len(), 2 + 3 * 40);
    assert_eq!(calls[2]["parts"][0]["peer"], 0);
    assert_eq!(calls[0]["peer"], serde_json::Value::Null);
    assert!(calls.iter().all(|call| call["rank"] == 1));
    assert_eq!(phasecast(&["dump", &trace, "--rank", "3"]).code, 3);
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("long.trace");
    Ring { ranks: 2, iterations: 20_000 }.write(&path);
    let mut child = command(&["dump", text(&path)])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command starts");
    let mut first = [0; 64];
    let mut out = child.stdout.take().expect("a pipe");
    out.read_exact(&mut first).expect("the first line");
    drop(out);
    let done = child.wait_with_output().expect("it ends");
    assert_eq!((done.status.code(), done.stderr.len()), (Some(0), 0), "{}", String::from_utf8_lossy(&done.stderr));
}

#[test]
fn inspect_knows_folder_and_file() {
    let (_folder, trace) = trace();
    let whole = well(&["inspect", &trace, "--json"]).json();
    assert_eq!((&whole["kind"], &whole["ok"], &whole["head"]["ranks"]), (&"trace".into(), &true.into(), &3.into()));
    assert_eq!(whole["pieces"].as_array().map(Vec::len), Some(3));
    let file = well(&["inspect", &format!("{trace}/rank-00001.pct"), "--json"]).json();
    assert_eq!((&file["kind"], &file["head"]["rank"]), (&"rank file".into(), &1.into()));
    let names: Vec<&str> =
        file["pieces"].as_array().expect("pieces").iter().filter_map(|p| p["name"].as_str()).collect();
    assert_eq!(names, ["header", "communicators", "calls", "end"]);
    assert!(well(&["inspect", &trace]).out.contains("rank-00002.pct"));
}
