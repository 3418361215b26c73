//! Laws of loop nests, and the structures that seed 002 names.
use super::runs::{Run, runs};
use super::*;
use crate::nest::span;
use proptest::prelude::*;

/// `((4)^160 + (4)^160 + 12)^249` with numbers for symbols.
fn text(nodes: &[Node<u32>]) -> String {
    nodes
        .iter()
        .map(|node| match node {
            Node::Item(symbol) => char::from_u32(97 + symbol).unwrap_or('?').to_string(),
            Node::Loop { count, body } => format!("({})^{count}", text(body)),
        })
        .collect()
}

fn letters(text: &str) -> Vec<u32> {
    text.bytes().map(|b| u32::from(b) - 97).collect()
}

fn folded(of: &str) -> String {
    text(&greedy(&letters(of)))
}

fn best(of: &str) -> String {
    text(&optimal(&letters(of)))
}

#[test]
fn inner_loops_are_folded_and_then_what_they_are_parts_of() {
    assert_eq!(folded("aabaabaabc"), "((a)^2b)^3c");
    assert_eq!(folded("abababcababcab"), "(ab)^3c(ab)^2cab");
    assert_eq!(folded(""), "");
    assert_eq!(folded("abc"), "abc");
}

#[test]
fn what_a_turned_loop_lost_is_won_back() {
    let of = "xabaabaabaabay";
    assert_eq!(text(&fold::fold(&letters(of))), "xa(b(a)^2)^3bay");
    assert_eq!(folded(of), "x(aba)^4y");
    assert_eq!(best(of), "x(aba)^4y");
}

fn made(inner: [usize; 2], outer: usize) -> Vec<u32> {
    let mut calls: Vec<u32> = (100..126).collect();
    for _ in 0..outer {
        (0..inner[0]).for_each(|_| calls.extend([0, 1, 2, 3]));
        (0..inner[1]).for_each(|_| calls.extend([4, 5, 6, 7]));
        calls.extend(8..20);
    }
    calls.extend(200..211);
    calls
}

#[test]
fn lu_has_the_structure_of_the_seed() {
    // LU B: 203048 calls there.
    let calls = made([100, 100], 249);
    for nest in [greedy(&calls), optimal(&calls)] {
        assert_eq!(unroll(&nest), calls);
        assert_eq!(cost(&nest), (26 + 4 + 4 + 12 + 11, 3));
        let Node::Loop { count, body } = &nest[26] else { panic!("{nest:?}") };
        assert_eq!((*count, span(body)), (249, 812));
    }
}

#[test]
fn loops_beyond_what_is_tried_whole_are_optimal_too() {
    let mut calls = Vec::new();
    for step in 0..75u32 {
        (0..26).for_each(|_| calls.extend(0..21));
        calls.extend(30..36);
        if step == 36 {
            calls.extend(900..1300);
        }
    }
    let nest = optimal(&calls);
    assert_eq!(unroll(&nest), calls);
    assert_eq!(cost(&nest), (2 * 27 + 400, 4));
    assert_eq!(cost(&greedy(&calls)), (2 * 27 + 400, 4));
}

fn naive_runs(sequence: &[u32]) -> Vec<Run> {
    let n = sequence.len();
    let mut found = Vec::new();
    for period in 1..=n / 2 {
        let mut start = 0;
        while start + period < n {
            let mut end = start + period;
            while end < n && sequence[end] == sequence[end - period] {
                end += 1;
            }
            if end - start >= 2 * period {
                found.push(Run { start, end, period });
            }
            start = (end - period).max(start) + 1;
        }
    }
    found.sort_unstable_by_key(|run| (run.start, run.end, run.period));
    found.dedup_by_key(|run| (run.start, run.end));
    found
}

/// The fewest symbols of any nest, by all loops of all stretches.
fn fewest(sequence: &[u32], known: &mut HashMap<Vec<u32>, u64>) -> u64 {
    if sequence.len() < 2 {
        return sequence.len() as u64;
    }
    if let Some(&cost) = known.get(sequence) {
        return cost;
    }
    let n = sequence.len();
    let splits = (1..n).map(|k| fewest(&sequence[..k], known) + fewest(&sequence[k..], known)).min();
    let mut cost = splits.unwrap_or(u64::MAX);
    for period in (1..n).filter(|p| n.is_multiple_of(*p)) {
        if sequence[period..] == sequence[..n - period] {
            cost = cost.min(fewest(&sequence[..period], known));
        }
    }
    known.insert(sequence.to_vec(), cost);
    cost
}

/// Sequences in which something repeats: loops of loops with disturbances.
fn loopy() -> impl Strategy<Value = Vec<u32>> {
    let leaf = proptest::collection::vec(0u32..6, 1..5);
    leaf.prop_recursive(4, 400, 4, |inner| {
        prop_oneof![
            (inner.clone(), 2usize..6).prop_map(|(body, count)| body.repeat(count)),
            proptest::collection::vec(inner, 1..4).prop_map(|parts| parts.concat()),
        ]
    })
}

proptest! {
    #[test]
    fn a_nest_unrolls_to_its_sequence(sequence in prop_oneof![
        proptest::collection::vec(0u32..4, 0..400), loopy(), proptest::collection::vec(any::<u32>(), 0..60)])
    {
        let greedy = greedy(&sequence);
        prop_assert_eq!(unroll(&greedy), sequence.clone());
        prop_assert_eq!(span(&greedy), sequence.len() as u64);
        let optimal = optimal(&sequence);
        prop_assert_eq!(unroll(&optimal), sequence);
        prop_assert!(cost(&optimal) <= cost(&greedy));
    }

    /// The greedy loop may be a turned one that lacks up to two iterations (seed 002, section 3); the optimal one is whole.
    #[test]
    fn a_body_again_and_again_is_one_loop(body in loopy(), count in 2u64..50) {
        let sequence = body.repeat(count as usize);
        let (best, greedy) = (cost(&optimal(&sequence)), cost(&greedy(&sequence)));
        prop_assert!(best.0 <= body.len() as u64, "{} of {}", best.0, body.len());
        prop_assert!(greedy.0 <= 3 * body.len() as u64, "{} of {}", greedy.0, body.len());
    }

    #[test]
    fn all_repetitions_are_found(sequence in prop_oneof![proptest::collection::vec(0u32..3, 0..120), loopy()]) {
        prop_assert_eq!(runs(&sequence), naive_runs(&sequence));
    }

    #[test]
    fn a_short_sequence_gets_the_shortest_nest(sequence in proptest::collection::vec(0u32..3, 0..18)) {
        let fewest = fewest(&sequence, &mut HashMap::new());
        prop_assert_eq!(cost(&optimal(&sequence)).0, fewest);
    }
}
