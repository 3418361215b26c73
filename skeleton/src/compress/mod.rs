//! Loop nests in numbers and as text: what seed 002's Table 3 says of a trace. The nests themselves come from
//! [`phasecast_analyzer::loops`], which also tells the structure of phases.
use crate::nest::{Node, span};
use phasecast_analyzer::loops;
use serde::Serialize;

/// How loops are found (seed 002, section 3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Method {
    /// Inner loops first, in linear time.
    #[default]
    Greedy,
    /// The longest loops first, or whatever is written with the fewest symbols.
    Optimal,
}

impl Method {
    /// The loop nest of a sequence.
    pub fn nest(self, sequence: &[u32]) -> Vec<Node<u32>> {
        match self {
            Method::Greedy => loops::greedy(sequence),
            Method::Optimal => loops::optimal(sequence),
        }
    }
}

/// A row of Table 3.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Compression {
    /// Symbols of the sequence.
    pub length: u64,
    /// Symbols that are written once it is folded.
    pub written: u64,
    /// How many times fewer.
    pub ratio: f64,
    /// The share of the sequence that lies in loops.
    pub covered: f64,
    /// Iterations of the loop that spans most; 1 if there is none.
    pub outer: u64,
    /// That loop as text.
    pub major: String,
}

/// What folding a sequence into this nest has brought.
pub fn compression<S>(nodes: &[Node<S>]) -> Compression {
    let length = span(nodes);
    let written: u64 = nodes.iter().map(Node::written).sum();
    let looped: u64 = nodes.iter().filter(|node| matches!(node, Node::Loop { .. })).map(Node::span).sum();
    let major = nodes
        .iter()
        .filter(|node| matches!(node, Node::Loop { .. }))
        .reduce(|best, node| if node.span() > best.span() { node } else { best });
    Compression {
        length,
        written,
        ratio: if written == 0 { 1.0 } else { length as f64 / written as f64 },
        covered: if length == 0 { 0.0 } else { looped as f64 / length as f64 },
        outer: match major {
            Some(Node::Loop { count, .. }) => *count,
            _ => 1,
        },
        major: major.map(|node| text(std::slice::from_ref(node))).unwrap_or_default(),
    }
}

/// A nest as seed 002 writes it: `((4)^160 + (4)^160 + 12)^249`, with numbers for so many symbols in a row.
pub fn text<S>(nodes: &[Node<S>]) -> String {
    let mut parts = Vec::new();
    let mut items = 0u64;
    for node in nodes {
        match node {
            Node::Item(_) => items += 1,
            Node::Loop { count, body } => {
                if items > 0 {
                    parts.push(std::mem::take(&mut items).to_string());
                }
                parts.push(format!("({})^{count}", text(body)));
            }
        }
    }
    if items > 0 {
        parts.push(items.to_string());
    }
    parts.join(" + ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lu(inner: usize) -> Vec<u32> {
        let mut calls: Vec<u32> = (100..626).collect();
        for _ in 0..249 {
            (0..inner).for_each(|_| calls.extend([0, 1, 2, 3]));
            (0..inner).for_each(|_| calls.extend([4, 5, 6, 7]));
            calls.extend(8..20);
        }
        calls.extend(700..1514);
        calls
    }

    #[test]
    fn lu_c_has_the_row_of_table_3() {
        // 323048 calls, of which 249 times 1292 are in the loop; 99.58 % are covered there.
        let calls = lu(160);
        assert_eq!(calls.len(), 323_048);
        for method in [Method::Greedy, Method::Optimal] {
            let row = compression(&method.nest(&calls));
            assert_eq!((row.length, row.outer, row.major.as_str()), (323_048, 249, "((4)^160 + (4)^160 + 12)^249"));
            assert_eq!(format!("{:.2}", 100.0 * row.covered), "99.59");
        }
    }

    #[test]
    fn a_nest_is_written_as_in_the_seed() {
        let nest = loops::optimal(&lu(160));
        assert_eq!(text(&nest), "526 + ((4)^160 + (4)^160 + 12)^249 + 814");
        assert_eq!(text::<u32>(&[]), "");
        assert_eq!(compression::<u32>(&[]).ratio, 1.0);
    }
}
