//! The structure of a phase in short: its symbols with repetitions folded, like `(send(1) recv(1))^160 allreduce`.
use crate::loops;
use crate::nest::Node;
use crate::pilot::Pilot;

/// Symbols that are looked at.
const MOST: usize = 1024;
/// The longest structure in characters.
const LENGTH: usize = 160;

/// The pilot's symbols from `start` to `end` in short.
pub fn structure(pilot: &Pilot, start: u64, end: u64) -> String {
    let (start, end) = (start as usize, (end as usize).min(pilot.length()));
    let shown = end.min(start + MOST);
    let ids: Vec<u32> = (start..shown).map(|at| pilot.id(at)).collect();
    let mut text = write(&loops::greedy(&ids), &|id| pilot.word_of(id).to_string());
    if end > shown {
        text.push_str(" ...");
    }
    shorten(text)
}

/// Cuts a text at [`LENGTH`] characters.
pub fn shorten(text: String) -> String {
    if text.chars().count() <= LENGTH {
        return text;
    }
    let kept: String = text.chars().take(LENGTH - 3).collect();
    kept + "..."
}

fn write(nodes: &[Node<u32>], word: &dyn Fn(u32) -> String) -> String {
    let parts = nodes.iter().map(|node| match node {
        Node::Item(id) => word(*id),
        Node::Loop { count, body } => {
            let inner = write(body, word);
            if let [Node::Item(_)] = body[..] { format!("{inner}^{count}") } else { format!("({inner})^{count}") }
        }
    });
    parts.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folded(text: &str) -> String {
        let ids: Vec<u32> = text.bytes().map(u32::from).collect();
        write(&loops::greedy(&ids), &|id| char::from_u32(id).unwrap_or('?').to_string())
    }

    #[test]
    fn repetitions_are_folded_from_the_inside_out() {
        assert_eq!(folded("abcabcabcd"), "(a b c)^3 d");
        assert_eq!(folded("aab aab "), "(a^2 b  )^2");
        assert_eq!(folded("abc"), "a b c");
        assert_eq!(folded(""), "");
    }
}
