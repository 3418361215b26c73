//! Loop nests of a sequence of symbols: its tandem repeats, repeats of repeats, and so on (seed 002, section 3).
//!
//! * [`greedy`]: inner loops first, in one pass and linear time; what a rotation cost is won back afterwards
//! * [`optimal`]: the longest loops first, over all repetitions of the sequence ([`runs`]), and the shortest nest of all
//!   where the sequence is short enough to try them ([`exact`])
//!
//! The structure of a phase ([`crate::words`]) and the loops of a performance skeleton both come from here.
pub mod exact;
mod fold;
pub mod longest;
mod refine;
pub mod runs;

use crate::nest::Node;
use std::collections::HashMap;

/// The loop nest that is found bottom-up: inner loops are folded first, then what they are parts of.
///
/// Time is linear in the length of the sequence. Unrolled, the nest is the sequence.
pub fn greedy(sequence: &[u32]) -> Vec<Node<u32>> {
    let (dense, names) = dense(sequence);
    named(greedy_dense(&dense), &names)
}

/// The most compact loop nest: the longest loops first, down to pieces short enough for the shortest nest of all. It is
/// never longer than [`greedy`]'s. Time is about n log n for each level of the nest.
pub fn optimal(sequence: &[u32]) -> Vec<Node<u32>> {
    let (dense, names) = dense(sequence);
    named(longest::optimal(&dense), &names)
}

pub(crate) fn greedy_dense(sequence: &[u32]) -> Vec<Node<u32>> {
    refine::refine(fold::fold(sequence), sequence)
}

/// What a nest costs: symbols written, then loops.
pub(crate) fn cost(nodes: &[Node<u32>]) -> (u64, u64) {
    nodes.iter().fold((0, 0), |(written, loops), node| match node {
        Node::Item(_) => (written + 1, loops),
        Node::Loop { body, .. } => {
            let inner = cost(body);
            (written + inner.0, loops + inner.1 + 1)
        }
    })
}

/// The sequence that a nest stands for.
pub fn unroll(nodes: &[Node<u32>]) -> Vec<u32> {
    fn each(nodes: &[Node<u32>], into: &mut Vec<u32>) {
        for node in nodes {
            match node {
                Node::Item(symbol) => into.push(*symbol),
                Node::Loop { count, body } => (0..*count).for_each(|_| each(body, into)),
            }
        }
    }
    let mut into = Vec::new();
    each(nodes, &mut into);
    into
}

/// The sequence with its symbols numbered as they come, and what the numbers stand for.
fn dense(sequence: &[u32]) -> (Vec<u32>, Vec<u32>) {
    let (mut numbers, mut names) = (HashMap::new(), Vec::new());
    let small = sequence.iter().max().is_none_or(|&most| (most as usize) < 2 * sequence.len() + 1024);
    if small {
        return (sequence.to_vec(), Vec::new());
    }
    let number = |symbol: &u32| {
        *numbers.entry(*symbol).or_insert_with(|| {
            names.push(*symbol);
            names.len() as u32 - 1
        })
    };
    (sequence.iter().map(number).collect(), names)
}

fn named(nodes: Vec<Node<u32>>, names: &[u32]) -> Vec<Node<u32>> {
    if names.is_empty() {
        return nodes;
    }
    let name = |node| match node {
        Node::Item(symbol) => Node::Item(names[symbol as usize]),
        Node::Loop { count, body } => Node::Loop { count, body: named(body, names) },
    };
    nodes.into_iter().map(name).collect()
}

#[cfg(test)]
mod tests;
