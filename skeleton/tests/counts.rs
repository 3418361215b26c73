//! Counts of processors in made traces become the work of their steps.
mod support;

use phasecast_skeleton::logical::Work;
use phasecast_skeleton::nest::Node;
use support::{Calls, Folder, circle, got, logical, short};

/// Rates are those of the time that was counted, whatever share that is; what was counted while a rank polled is not
/// computation, as its time is not.
#[test]
fn counts_become_the_work_of_their_step() {
    let folder = Folder::new();
    let rank = |rank: u32| {
        let (mut calls, other) = (Calls::new(), 1 - rank);
        for step in 0..10 {
            calls.work(10_000);
            if step % 2 == 0 {
                calls.counted(30_000, 500);
            }
            calls.irecv(other, 7, 4096).isend(other, 7, 4096).complete("MPI_Test", vec![]);
            calls.work(2000).counted(7000, 70).complete("MPI_Test", vec![]);
            calls.waitall(vec![got(other, 7, 4096)]);
        }
        calls
    };
    let logical = logical(&folder.trace(&[], vec![rank(0), rank(1)]));
    let Node::Loop { body, .. } = &logical.classes[0].body[0] else { panic!("{}", short(&logical, 0)) };
    let work: Vec<Option<Work>> = body
        .iter()
        .map(|node| match node {
            Node::Item(step) => step.compute.work,
            Node::Loop { .. } => panic!("{}", short(&logical, 0)),
        })
        .collect();
    let counted = Work { instructions_per_us: 3000.0, lines_per_us: 50.0 };
    assert_eq!(work, [Some(counted), None, None]);
    let told = logical.counted.expect("the trace has counts");
    assert!(told.counters.are_hardware() && (told.share - 0.5).abs() < 0.01, "{told:?}");
}

#[test]
fn a_trace_without_counts_has_no_work() {
    let folder = Folder::new();
    let logical = logical(&folder.trace(
        &[],
        circle(2, 10, |calls, _, _| {
            calls.work(10_000);
        }),
    ));
    assert_eq!(logical.counted, None);
    let Node::Loop { body, .. } = &logical.classes[0].body[0] else { panic!("{}", short(&logical, 0)) };
    assert!(body.iter().all(|node| matches!(node, Node::Item(step) if step.compute.work.is_none())));
}
