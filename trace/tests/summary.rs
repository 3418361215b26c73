//! The summary counts what was written: calls, events, messages without a partner, receives never completed, cut ranks.
mod common;
use common::{call, part, write};
use phasecast_trace::model::{PEER_PROC_NULL, TAG_NONE};
use phasecast_trace::{Class, Flags, PartKind, Summary, Trace};

const SEND: u16 = 0;
const RECV: u16 = 1;

#[test]
fn everything_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.trace");
    let send = |peer, tag| (call(SEND, Class::Send, peer, tag), vec![]);
    let receive = |peer, tag| (call(RECV, Class::Recv, peer, tag), vec![part(PartKind::Recv, peer, tag)]);
    let mut post = call(RECV, Class::Post, 0, 5);
    post.flags = Flags::RECV_POST.with(Flags::NONBLOCKING);
    let mut cancelled = part(PartKind::Recv, 0, 5);
    cancelled.flags = Flags::CANCELLED;
    let wait = call(RECV, Class::Complete, -1, TAG_NONE);
    let ranks = [
        vec![send(1, 7), send(1, 7), send(1, 8), send(PEER_PROC_NULL, 9), receive(1, 1)],
        vec![
            receive(0, 7),
            receive(0, 9),
            send(0, 1),
            (post, vec![]),
            (post, vec![]),
            (post, vec![]),
            (wait, vec![part(PartKind::Recv, 0, 7), cancelled]),
            (call(RECV, Class::Collective, -1, TAG_NONE), vec![]),
        ],
    ];
    write(&path, &ranks);
    let trace = Trace::open(&path).unwrap();
    let reports = std::cell::RefCell::new(Vec::new());
    let summary = Summary::of(&trace, &|done, total| reports.borrow_mut().push((done, total))).unwrap();
    assert_eq!(summary.ranks, 2);
    // Without the send to PROC_NULL and the cancelled receive.
    assert_eq!(summary.events, 4 + 2 + 1 + 1 + 1);
    assert_eq!(summary.calls.get("MPI_Send"), Some(&5));
    assert_eq!(summary.calls.get("MPI_Recv"), Some(&8));
    assert_eq!(summary.items, 13 + 5);
    // Tag 8 was never received, tag 9 never sent.
    assert_eq!(summary.unmatched, 2);
    assert_eq!(summary.pending, 1);
    assert_eq!(summary.truncated_ranks, []);
    assert_eq!(summary.tracer_share, Some(0.0));
    assert_eq!(reports.borrow().last(), Some(&(18, 18)));
    assert!(summary.bytes_per_event > 0.0 && summary.bytes_per_event_raw > 0.0 && summary.duration_s > 0.0);

    let json = serde_json::to_value(&summary).unwrap();
    for key in ["ranks", "events", "calls", "duration_s", "bytes_on_disk", "bytes_per_event", "unmatched", "pending"] {
        assert!(json.get(key).is_some(), "{key}");
    }
}

#[test]
fn a_missing_rank_and_a_cut_one_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.trace");
    let send = (call(SEND, Class::Send, 0, 7), vec![]);
    write(&path, &[vec![send.clone()], vec![send.clone(), send], vec![]]);
    std::fs::remove_file(path.join("rank-00002.pct")).unwrap();
    let file = path.join("rank-00001.pct");
    let bytes = std::fs::read(&file).unwrap();
    std::fs::write(&file, &bytes[..bytes.len() - 1]).unwrap();
    let summary = Summary::of(&Trace::open(&path).unwrap(), &|_, _| {}).unwrap();
    let cut: Vec<(u32, u64)> = summary.truncated_ranks.iter().map(|t| (t.rank, t.calls)).collect();
    assert_eq!(cut, [(1, 2), (2, 0)]);
    assert_eq!(summary.unmatched, 3);
}
