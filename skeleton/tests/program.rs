//! Laws of programs made from logical traces: they end, whatever the trace, and stand for the time that they were made of.
use phasecast_skeleton::logical::{
    ClassTrace, Computation, Direction, End, Group, LogicalTrace, Mode, Operation, Step,
};
use phasecast_skeleton::nest::Node;
use phasecast_skeleton::program::Skeleton;
use phasecast_skeleton::program::calibrate::{Mix, Rates};
use phasecast_skeleton::program::made;
use phasecast_skeleton::program::replay::Replay;
use phasecast_skeleton::program::scale::{estimate, weights};
use proptest::prelude::*;

const RATES: Rates =
    Rates { mix: Mix { memory: 0.5, working_set: 1 << 16 }, rounds_per_us: 100.0, lines_per_us: 100.0, block_us: 0.0 };

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_logical_trace_becomes_a_program_that_ends(seed in any::<u64>(), ratio in 1.0..100.0f64) {
        let trace = made::logical(seed, 8);
        let skeleton = Skeleton::of(&trace, ratio).expect("a program");
        // Every send waits for its receive.
        let outcome = Replay::run(&skeleton.plan, true);
        prop_assert!(outcome.accepts(), "{:?}", outcome);
        prop_assert!(skeleton.scaling.ratio() >= 0.999, "{:?}", skeleton.scaling);
        let source = skeleton.source(&trace.program, None, &RATES);
        prop_assert!(source.text.contains("MPI_Init") && !source.text.contains("x; int"));
        for of in &skeleton.plan.loops {
            prop_assert!((1..=of.full).contains(&of.count));
        }
    }
}
