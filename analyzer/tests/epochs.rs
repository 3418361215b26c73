//! Windows whose epochs are between some ranks only (post, start, complete, wait): no cut lies in one, on any rank; nor behind
//! the start of a send in partitions.
mod support;

use phasecast_analyzer::cuts_at_every_position;
use phasecast_trace::epochs::epoch_change;
use phasecast_trace::{EventKind, Rank, Trace};
use std::collections::BTreeMap;
use support::{Act, Folder, Program};

/// Line after line goes along the ranks, each of which writes into the memory of the next; then both neighbours of each
/// are in one group.
fn pipeline(ranks: u32, lines: u64) -> Program {
    let mut program = Program::new(ranks);
    let group = |sends, closes, with: &[u32]| Act::Group { sends, closes, with: with.to_vec() };
    for line in 0..lines {
        for rank in 0..ranks {
            if rank > 0 {
                program.act(rank, group(true, false, &[rank - 1]));
                program.act(rank, group(false, true, &[rank - 1]));
            }
            program.act(rank, Act::Work(1000 + line));
            if rank + 1 < ranks {
                program.act(rank, group(false, false, &[rank + 1]));
                program.act(rank, group(true, true, &[rank + 1]));
            }
        }
    }
    for rank in 0..ranks {
        let both = [(rank + 1) % ranks, (rank + ranks - 1) % ranks];
        program.act(rank, group(true, false, &both));
        program.act(rank, group(false, false, &both));
        program.act(rank, Act::Collective { comm: 0, root: -1, bytes: 8 });
        program.act(rank, group(true, true, &both));
        program.act(rank, group(false, true, &both));
    }
    program
}

/// Epochs that are open at a cut, and messages that were received but not sent.
fn wrong(trace: &Trace, cut: &[u64]) -> (i64, u64) {
    let (mut open, mut balance) = (0, BTreeMap::new());
    for (rank, &events) in trace.ranks().zip(cut) {
        let mut left = events;
        let mut depth = 0;
        let mut take = |event: &phasecast_trace::Event| {
            if left == 0 {
                return;
            }
            left -= 1;
            depth += epoch_change(event.tag);
            if let Some(channel) = event.channel(rank) {
                *balance.entry(channel).or_insert(0i64) += if event.kind == EventKind::Send { 1 } else { -1 };
            }
        };
        trace.for_each_event(rank, |event| take(&event)).expect("a whole trace");
        open += depth;
    }
    (open, balance.values().filter(|&&n| n < 0).count() as u64)
}

#[test]
fn no_cut_lies_in_an_epoch() {
    let folder = Folder::new();
    for ranks in [2, 3, 5] {
        let trace = pipeline(ranks, 6).write(&folder.path(&format!("{ranks}.trace")), 100);
        for pilot in 0..ranks {
            let cuts = cuts_at_every_position(&trace, Rank(pilot)).expect("a whole trace");
            assert!(cuts.len() >= 6, "{ranks} ranks, pilot {pilot}: {cuts:?}");
            for cut in &cuts {
                assert_eq!(wrong(&trace, cut), (0, 0), "{ranks} ranks, pilot {pilot}: {cut:?} of {cuts:?}");
            }
        }
    }
}

#[test]
fn no_cut_lies_before_partitions_are_ready() {
    let folder = Folder::new();
    let mut program = Program::new(2);
    for _ in 0..6 {
        for rank in 0..2 {
            program.act(rank, Act::Partitions { to: 1 - rank, bytes: 64 });
            program.act(rank, Act::Work(1000));
            program.act(rank, Act::Recv(vec![(1 - rank, 7, 64, false)]));
            program.act(rank, Act::Collective { comm: 0, root: -1, bytes: 8 });
        }
    }
    let trace = program.write(&folder.path("partitions.trace"), 100);
    for pilot in 0..2 {
        let cuts = cuts_at_every_position(&trace, Rank(pilot)).expect("a whole trace");
        assert!(cuts.len() >= 10, "{cuts:?}");
        assert!(cuts.iter().flatten().all(|events| events % 3 != 1), "{cuts:?}");
    }
}

#[test]
fn what_a_post_opens_a_wait_closes() {
    use phasecast_trace::epochs::epoch_tag;
    use phasecast_trace::model::{TAG_ANY, TAG_NONE};
    for window in [0, 1, 77, (1 << 22) - 1, 1 << 22, u32::MAX] {
        assert_eq!((epoch_change(epoch_tag(window, false)), epoch_change(epoch_tag(window, true))), (1, -1));
    }
    for tag in [TAG_NONE, TAG_ANY, 0, 1, i32::MAX, -1000, -(1 << 30)] {
        assert_eq!(epoch_change(tag), 0, "{tag}");
    }
    assert_ne!(epoch_tag(3, false), epoch_tag(4, false));
}
