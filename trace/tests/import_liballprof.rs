//! liballprof's text is imported with what it tells, and never panics the reader.
use phasecast_trace::import::{Format, detect, import};
use phasecast_trace::{Class, EventKind, Flags, PartKind, Rank, Summary, Trace};
use proptest::prelude::*;
use std::path::{Path, PathBuf};

fn sample() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/liballprof")
}

#[test]
fn the_sample_is_imported() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("t.trace");
    assert_eq!(detect(&sample()), Some(Format::Liballprof));
    let done = std::cell::Cell::new((0, 0));
    let imported = import(&[sample()], &out, &|a, b| done.set((a, b))).unwrap();
    assert_eq!((imported.format, imported.ranks), (Format::Liballprof, 2));
    assert_eq!(done.get().0, done.get().1);
    let told = |part: &str| imported.notes.iter().any(|note| note.contains(part));
    assert!(told("1 receives are from MPI_ANY_SOURCE") && told("4 requests are completed"), "{:?}", imported.notes);

    let trace = Trace::open(&out).unwrap();
    let summary = Summary::of(&trace, &|_, _| {}).unwrap();
    assert_eq!(summary.calls.values().sum::<u64>(), imported.calls);
    assert_eq!(summary.calls.get("MPI_Waitall"), Some(&6));
    // The message to the wildcard receive; one receive per rank is posted and never completed.
    assert_eq!((summary.unmatched, summary.pending), (1, 2));
    assert_eq!(summary.truncated_ranks, []);
    // Per rank: 6 messages out and 6 in (3 in the loop, 2 persistent, 1 sendrecv), 1 on the turned communicator each
    // way, 3 + 6 + 1 collectives and splits; and rank 0's last send.
    let collectives = 1 + 3 + 2 + 1 + 1 + 1;
    assert_eq!(summary.events, 2 * (6 + 6 + 2 + collectives) + 1);
    assert_eq!(trace.header(Rank(1)).unwrap().host, "node1");
}

#[test]
fn parts_peers_bytes_and_times_are_those_of_the_lines() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("t.trace");
    import(&[sample()], &out, &|_, _| {}).unwrap();
    let trace = Trace::open(&out).unwrap();
    let mut calls = Vec::new();
    let mut reader = trace.calls(Rank(1));
    while let Some(item) = reader.next_call().unwrap() {
        calls.push((trace.procedure(item.call.proc).to_string(), *item.call, item.parts.to_vec()));
    }
    let first = |name: &str| calls.iter().find(|(n, ..)| n == name).unwrap_or_else(|| panic!("no {name}"));
    let (_, wait, parts) = first("MPI_Waitall");
    assert_eq!((wait.class, parts.len()), (Class::Complete, 1));
    assert_eq!((parts[0].kind, parts[0].peer, parts[0].tag, parts[0].bytes), (PartKind::Recv, 0, 7, 800));
    let (_, send, _) = first("MPI_Isend");
    assert_eq!((send.class, send.peer, send.bytes), (Class::Send, 0, 800));
    assert!(send.flags.has(Flags::NONBLOCKING));
    assert_eq!(first("MPI_Alltoallv").1.bytes, 12);
    assert_eq!(first("MPI_Bcast").1.peer, 1);
    // Of two tests the last one completes the request.
    let tests: Vec<usize> = calls.iter().filter(|(n, ..)| n == "MPI_Test").map(|(_, _, p)| p.len()).collect();
    assert_eq!(tests, [0, 1, 0, 1]);
    // On the communicator with the order turned round, rank 0 of it is world rank 1.
    let turned = calls.iter().rfind(|(n, ..)| n == "MPI_Bcast").unwrap();
    assert_eq!(trace.comms()[turned.1.comm.index()].members, [1, 0]);
    assert_eq!(turned.1.peer, 1);
    // Rank 1's clock is 500 us ahead of rank 0's: MPI_Init ends at the same time on both.
    assert_eq!(trace.span(Rank(0)).0, trace.span(Rank(1)).0);
    let init = &first("MPI_Init").1;
    assert_eq!(init.enter, init.exit);
    // 100 us later and 5 us after that the next call, which takes 1.25 us.
    let size = &first("MPI_Comm_size").1;
    assert_eq!((size.enter.since(init.exit).0, size.exit.since(size.enter).0), (105_000, 1_250));
    // A receive from MPI_PROC_NULL is no event.
    let mut events = Vec::new();
    trace.for_each_event(Rank(1), |e| events.push(e)).unwrap();
    assert!(events.iter().all(|e| e.kind == EventKind::Collective || (e.peer == 0 || e.peer == 1)));
}

#[test]
fn what_is_missing_or_foreign_is_refused_with_a_reason() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("t.trace");
    let one = sample().join("pmpi-trace-rank-0.txt");
    let refused = |paths: &[PathBuf], part: &str| {
        let error = import(paths, &out, &|_, _| {}).unwrap_err();
        assert!(error.is_input() && error.to_string().contains(part), "{error}");
        assert!(!out.exists());
    };
    refused(std::slice::from_ref(&one), "Name the files of all ranks");
    refused(&[one.clone(), one], "both of rank 0");
    refused(&[], "no file was given");
    refused(&[folder.path().join("nothing")], "nothing of that name");
    let foreign = folder.path().join("foreign.txt");
    std::fs::write(&foreign, "hello").unwrap();
    refused(&[foreign], "neither liballprof's text nor an OTF2 archive");
    let text = std::fs::read_to_string(sample().join("pmpi-trace-rank-0.txt")).unwrap();
    let damaged = folder.path().join("rank-0.txt");
    std::fs::write(&damaged, text.replace("MPI_Bcast:1000", "MPI_Bcast:1e9")).unwrap();
    refused(&[damaged, sample().join("pmpi-trace-rank-1.txt")], "line 9");
    // It is there already.
    std::fs::create_dir(&out).unwrap();
    assert!(import(&[sample()], &out, &|_, _| {}).unwrap_err().to_string().contains("exists already"));
}

#[test]
fn a_file_that_is_cut_off_is_imported_as_far_as_it_goes() {
    let folder = tempfile::tempdir().unwrap();
    let text = std::fs::read_to_string(sample().join("pmpi-trace-rank-0.txt")).unwrap();
    let end = text.find("MPI_Sendrecv").unwrap();
    let cut = folder.path().join("rank-0.txt");
    std::fs::write(&cut, &text[..end + 20]).unwrap();
    let out = folder.path().join("t.trace");
    import(&[cut, sample().join("pmpi-trace-rank-1.txt")], &out, &|_, _| {}).unwrap();
    let cuts = Trace::open(&out).unwrap().cuts().unwrap();
    assert_eq!(cuts.len(), 1);
    assert_eq!((cuts[0].rank, cuts[0].reason.contains("ends within a line")), (Rank(0), true), "{}", cuts[0].reason);
}

/// Imports the lines of each rank: made calls, without their times.
fn imported(ranks: &[Vec<String>]) -> (Trace, Vec<String>) {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("t.trace");
    let mut files = Vec::new();
    for (rank, lines) in ranks.iter().enumerate() {
        let mut text = String::new();
        for (at, line) in lines.iter().enumerate() {
            let (name, arguments) = line.split_once(':').unwrap();
            text += &format!("{name}:{}:{arguments}:{}\n", 10 * at, 10 * at + 5);
        }
        files.push(folder.path().join(format!("rank-{rank}.txt")));
        std::fs::write(&files[rank], text).unwrap();
    }
    let imported = import(&files, &out, &|_, _| {}).unwrap();
    (Trace::open(&out).unwrap(), imported.notes)
}

#[test]
fn requests_of_four_bytes_are_told_from_those_of_eight() {
    for (step, completed) in [(4, [0, 1]), (8, [0, 1])] {
        let mut lines: Vec<String> =
            (0..4).map(|tag| format!("MPI_Irecv:900:1:1,4,4:0:{tag}:5,0,1:{}", 64 + step * tag)).collect();
        lines.push("MPI_Waitall:2:64:6000".into());
        let mut tags = Vec::new();
        imported(&[lines]).0.for_each_event(Rank(0), |event| tags.push(event.tag)).unwrap();
        assert_eq!(tags, completed, "{step} bytes");
    }
}

#[test]
fn what_only_some_ranks_may_call_is_no_collective_of_the_world() {
    let lines =
        ["MPI_Barrier:5,0,1", "MPI_File_write_all:77:900:1:1,4,4:6000", "MPI_Comm_create_group:5,0,1:33:0:7100"];
    let (trace, notes) = imported(&[lines.map(String::from).into()]);
    let mut events = Vec::new();
    trace.for_each_event(Rank(0), |event| events.push(trace.procedure(event.proc).to_string())).unwrap();
    assert_eq!(events, ["MPI_Barrier"]);
    assert_eq!(notes[0], "1 collectives are on files: their communicators are not in this format, they are no events");
}

/// Four ranks as a square: a communicator of each row (handle 6) and of each column (handle 7).
fn square(used_at_once: bool) -> (Trace, Vec<String>) {
    let lines = |rank: u32| {
        let (row, column) = (rank / 2, rank % 2);
        let split = |color| format!("MPI_Comm_split:5,{rank},4:{color}:{rank}:7100");
        let (rows, columns) = (format!("MPI_Barrier:6,{column},2"), format!("MPI_Barrier:7,{row},2"));
        if used_at_once {
            vec![split(row), rows, split(column), columns]
        } else {
            vec![split(row), split(column), rows, columns]
        }
    };
    imported(&(0..4).map(lines).collect::<Vec<_>>())
}

fn members(trace: &Trace) -> Vec<Vec<u32>> {
    let mut all: Vec<Vec<u32>> = trace.comms().iter().map(|comm| comm.members.clone()).collect();
    all.sort();
    all
}

#[test]
fn a_communicator_that_two_splits_may_have_made_is_unknown() {
    let (trace, notes) = square(true);
    let wanted: [&[u32]; 5] = [&[0, 1], &[0, 1, 2, 3], &[0, 2], &[1, 3], &[2, 3]];
    assert_eq!((members(&trace), notes.len()), (wanted.map(Vec::from).into(), 1), "{notes:?}");
    let (trace, notes) = square(false);
    assert_eq!(members(&trace), [[0, 1, 2, 3]]);
    assert!(notes[0].starts_with("8 calls are on communicators whose members"), "{notes:?}");
}

#[test]
fn splits_of_splits_are_followed() {
    let pair = |rank: u32| {
        let split = |parent: u32, key: u32| format!("MPI_Comm_split:{parent},{rank},2:0:{key}:7100");
        let world = format!("MPI_Comm_split:5,{rank},3:0:{rank}:7100");
        vec![world, split(6, rank), split(7, 1 - rank), format!("MPI_Barrier:8,{},2", 1 - rank)]
    };
    let (trace, notes) = imported(&[pair(0), pair(1), vec!["MPI_Comm_split:5,2,3:1:0:7100".into()]]);
    assert_eq!(members(&trace).last().unwrap(), &[1, 0], "{notes:?}");
}

fn import_texts(texts: &[&[u8]]) {
    let folder = tempfile::tempdir().unwrap();
    let files: Vec<PathBuf> = (0..texts.len()).map(|rank| folder.path().join(format!("rank-{rank}.txt"))).collect();
    for (file, text) in files.iter().zip(texts) {
        std::fs::write(file, text).unwrap();
    }
    let out = folder.path().join("t.trace");
    match phasecast_trace::import::liballprof::import(&files, &out, &|_, _| {}) {
        Ok(_) => {
            let trace = Trace::open(&out).unwrap();
            Summary::of(&trace, &|_, _| {}).unwrap();
        }
        Err(error) => assert!(error.is_input(), "{error}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn mutated_text_is_imported_or_refused(
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0u8..5), 1..12),
    ) {
        let mut text = std::fs::read(sample().join("pmpi-trace-rank-0.txt")).unwrap();
        let other = std::fs::read(sample().join("pmpi-trace-rank-1.txt")).unwrap();
        for (at, from, how) in edits {
            let (at, from) = (at.index(text.len()), from.index(text.len()));
            match how {
                0 => text[at] = b"0123456789:,-.#M\n\xff"[from % 18],
                1 => { text.remove(at); }
                2 => text.insert(at, b"9:,-\n"[from % 5]),
                3 => { let piece: Vec<u8> = text[from..(from + 40).min(text.len())].to_vec(); text.splice(at..at, piece); }
                _ => text.truncate(at.max(200)),
            }
        }
        import_texts(&[&text, &other]);
    }

    #[test]
    fn any_lines_are_imported_or_refused(
        lines in prop::collection::vec(("MPI_(Send|Recv|Wait|Waitall|Start|Irecv|Alltoallv|Comm_split)", prop::collection::vec("-?[0-9]{1,20}|[0-9],[0-9],[0-9]|-", 2..16)), 0..40),
    ) {
        let text: String = lines.iter().map(|(name, fields)| format!("{name}:{}\n", fields.join(":"))).collect();
        import_texts(&[text.as_bytes()]);
    }
}
