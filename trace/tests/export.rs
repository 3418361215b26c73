//! What is exported holds what is in the trace, parses, and is written whole or not at all.
mod common;
use common::{call, part, write};
use phasecast_trace::export::{Format, export};
use phasecast_trace::model::{PEER_ANY, PEER_PROC_NULL, TAG_NONE};
use phasecast_trace::{Call, Class, Part, PartKind, Trace, TraceError};
use std::path::Path;

fn trace(folder: &Path) -> Trace {
    let path = folder.join("t.trace");
    let many: Vec<_> = (0..700).map(|tag| part(PartKind::Recv, 0, tag)).collect();
    let ranks = [
        vec![(call(0, Class::Send, 1, 7), vec![]), (call(0, Class::Send, 1, 7), vec![])],
        vec![
            (call(1, Class::Recv, PEER_ANY, 7), vec![part(PartKind::Recv, 0, 7)]),
            (call(0, Class::Send, PEER_PROC_NULL, 1), vec![]),
            (call(1, Class::Complete, -1, TAG_NONE), many),
        ],
    ];
    write(&path, &ranks);
    Trace::open(&path).unwrap()
}

#[test]
fn csv_has_a_line_for_each_call() {
    let folder = tempfile::tempdir().unwrap();
    let (trace, out) = (trace(folder.path()), folder.path().join("t.csv"));
    export(&trace, Format::Csv, &out, &|_, _| {}).unwrap();
    let mut reader = csv::Reader::from_path(&out).unwrap();
    assert_eq!(reader.headers().unwrap().iter().next_back(), Some("parts"));
    let rows: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
    assert_eq!(rows.len(), 5);
    let text: Vec<&str> = rows[2].iter().collect();
    assert_eq!(text, ["1", "0", "MPI_Recv", "recv", "any", "7", "8", "0", "100", "150", "", "recv:0:7:8:0"]);
    assert_eq!((&rows[3][4], &rows[4][4], &rows[4][5]), ("null", "", ""));
    // A call that fills several items is one line.
    assert_eq!(rows[4][11].split(' ').count(), 700);
    let again = export(&trace, Format::Csv, &out, &|_, _| {}).unwrap_err();
    assert!(matches!(again, TraceError::Exists { .. }));
}

#[test]
fn perfetto_has_slices_and_arrows_that_meet() {
    let folder = tempfile::tempdir().unwrap();
    let (trace, out) = (trace(folder.path()), folder.path().join("t.json"));
    export(&trace, Format::Perfetto, &out, &|_, _| {}).unwrap();
    let json: serde_json::Value = serde_json::from_slice(&std::fs::read(&out).unwrap()).unwrap();
    let events = json["traceEvents"].as_array().unwrap();
    let of = |phase: &str| events.iter().filter(|e| e["ph"] == phase).collect::<Vec<_>>();
    assert_eq!(of("X").len(), 5);
    let slice = of("X")[0];
    assert_eq!(
        (slice["name"].as_str(), slice["ts"].as_f64(), slice["dur"].as_f64()),
        (Some("MPI_Send"), Some(0.1), Some(0.05))
    );
    assert_eq!((slice["args"]["peer"].as_i64(), slice["args"]["bytes"].as_i64()), (Some(1), Some(8)));
    // Two sends of tag 7; of the receives, two are of tag 7: the first recv and one part of the last call.
    let ends: Vec<&str> = of("f").iter().filter_map(|e| e["id"].as_str()).collect();
    assert_eq!(of("s").len(), 2);
    assert!(of("s").iter().all(|s| ends.contains(&s["id"].as_str().unwrap())));
    assert_eq!(of("M").iter().filter(|e| e["name"] == "process_name").count(), 2);
}

#[test]
fn arrows_do_not_cross_where_receives_complete_out_of_order() {
    let folder = tempfile::tempdir().unwrap();
    let (path, out) = (folder.path().join("t.trace"), folder.path().join("t.json"));
    let sent = [8, 16].map(|bytes| (Call { bytes, ..call(0, Class::Send, 1, 7) }, vec![]));
    let received = [16, 8]
        .map(|bytes| (call(1, Class::Complete, -1, TAG_NONE), vec![Part { bytes, ..part(PartKind::Recv, 0, 7) }]));
    write(&path, &[sent.into(), received.into()]);
    export(&Trace::open(&path).unwrap(), Format::Perfetto, &out, &|_, _| {}).unwrap();
    let json: serde_json::Value = serde_json::from_slice(&std::fs::read(&out).unwrap()).unwrap();
    let events = json["traceEvents"].as_array().unwrap();
    let ids = |phase: &str| -> Vec<&str> {
        events.iter().filter(|event| event["ph"] == phase).filter_map(|event| event["id"].as_str()).collect()
    };
    assert_eq!((ids("s")[0], ids("s")[1]), (ids("f")[1], ids("f")[0]));
    assert_ne!(ids("s")[0], ids("s")[1]);
}

#[test]
fn nothing_is_left_of_an_export_that_fails() {
    let folder = tempfile::tempdir().unwrap();
    let trace = trace(folder.path());
    let file = folder.path().join("t.trace/rank-00001.pct");
    let mut bytes = std::fs::read(&file).unwrap();
    // The payload of the chunk, which is read only now.
    let at = bytes.windows(5).rposition(|w| w == b"PHC\xf1\x02").unwrap() + 60;
    bytes[at] ^= 1;
    std::fs::write(&file, &bytes).unwrap();
    for format in [Format::Csv, Format::Perfetto] {
        let out = folder.path().join("out");
        let error = export(&trace, format, &out, &|_, _| {}).unwrap_err();
        assert!(matches!(error, TraceError::Corrupt { .. }), "{error}");
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}
