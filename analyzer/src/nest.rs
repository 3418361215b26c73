//! Loop nests: what a sequence of symbols becomes once its tandem repeats are found (seed 002, section 3).
use serde::{Deserialize, Serialize};

/// A part of a loop nest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Node<S> {
    /// One symbol.
    Item(S),
    /// A body that is repeated.
    Loop {
        /// How often, at least 2.
        count: u64,
        /// What is repeated.
        body: Vec<Node<S>>,
    },
}

impl<S> Node<S> {
    /// Symbols it stands for when all loops are unrolled; saturates.
    pub fn span(&self) -> u64 {
        match self {
            Node::Item(_) => 1,
            Node::Loop { count, body } => count.saturating_mul(span(body)),
        }
    }

    /// Symbols that are written down.
    pub fn written(&self) -> u64 {
        match self {
            Node::Item(_) => 1,
            Node::Loop { body, .. } => body.iter().map(Node::written).sum(),
        }
    }
}

/// Symbols that the nodes stand for when all loops are unrolled; saturates.
pub fn span<S>(nodes: &[Node<S>]) -> u64 {
    nodes.iter().map(Node::span).fold(0, u64::saturating_add)
}
