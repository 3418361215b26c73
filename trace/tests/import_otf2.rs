//! An OTF2 archive, written by the OTF2 library itself, is imported with names, times and matched messages.
use phasecast_trace::import::{Format, detect, import};
use phasecast_trace::{Class, EventKind, Rank, Summary, Trace};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Compiles the writer (Debian package libopen-trace-format2-dev) and runs it.
fn archive(folder: &Path) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/otf2_sample.c");
    let program = folder.join("otf2_sample");
    let linked = ["-lopen-trace-format2", "-lotf2"].iter().any(|library| {
        let mut gcc = Command::new("gcc");
        gcc.arg("-o").arg(&program).arg(&source).arg(library);
        gcc.output().expect("the test needs gcc").status.success()
    });
    assert!(linked, "the test needs the OTF2 headers: apt-get install libopen-trace-format2-dev");
    let out = folder.join("archive");
    let run = Command::new(&program).arg(&out).output().unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    out
}

#[test]
fn an_archive_is_imported() {
    let folder = tempfile::tempdir().unwrap();
    let archive = archive(folder.path());
    assert_eq!(detect(&archive), Some(Format::Otf2));
    let out = folder.path().join("t.trace");
    let imported = import(&[archive.join("sample.otf2")], &out, &|_, _| {}).unwrap();
    assert_eq!((imported.ranks, imported.notes.len()), (2, 0), "{:?}", imported.notes);

    let trace = Trace::open(&out).unwrap();
    let summary = Summary::of(&trace, &|_, _| {}).unwrap();
    assert_eq!((summary.unmatched, summary.pending), (0, 0));
    assert_eq!(summary.calls.values().sum::<u64>(), imported.calls);
    // Per rank: Init, 3 x (Irecv, Isend, Waitall, Allreduce), one message, one outside of any region, Finalize.
    assert_eq!(imported.calls, 2 * (1 + 12 + 1 + 1 + 1));
    assert_eq!(summary.calls.get("MPI_Waitall"), Some(&6));
    assert_eq!(summary.events, 2 * (3 * 3 + 2));

    let mut events = Vec::new();
    trace.for_each_event(Rank(0), |event| events.push(event)).unwrap();
    let send = events.iter().find(|e| e.tag == 5).unwrap();
    assert_eq!((send.kind, send.peer, send.bytes), (EventKind::Send, 1, 16));
    // As Score-P has it: 8 bytes to each of two ranks.
    let reduced = events.iter().filter(|e| e.kind == EventKind::Collective);
    assert_eq!(reduced.map(|e| e.bytes).collect::<Vec<_>>(), [8, 8, 8]);
    assert_eq!(trace.comms()[send.comm.index()].members, [1, 0]);
    assert_eq!(events.iter().filter(|e| e.kind == EventKind::Recv && e.peer == 1 && e.bytes == 800).count(), 3);

    // The archive's clock ticks every 100 ns from 1000; main and MPI_Init are entered 10 ticks after each other.
    let mut reader = trace.calls(Rank(0));
    let init = *reader.next_call().unwrap().unwrap().call;
    assert_eq!((init.class, init.enter.0, init.exit.0), (Class::Setup, 2_000, 3_000));
    assert_eq!(trace.procedure(init.proc), "MPI_Init");
}

#[test]
fn damaged_archives_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let archive = archive(folder.path());
    let anchor = archive.join("sample.otf2");
    let out = folder.path().join("t.trace");
    std::fs::remove_dir_all(archive.join("sample")).unwrap();
    let error = import(std::slice::from_ref(&anchor), &out, &|_, _| {}).unwrap_err();
    assert!(error.is_input(), "{error}");
    std::fs::write(&anchor, "this is no anchor").unwrap();
    let error = import(&[anchor], &out, &|_, _| {}).unwrap_err();
    assert!(error.to_string().contains("OTF2"), "{error}");
    assert!(!out.exists());
}
