//! The structure of a phase in short: its symbols with repetitions folded, like `(send(1) recv(1))^160 allreduce`.
use crate::pilot::Pilot;

/// Symbols that are looked at.
const MOST: usize = 1024;
/// The longest period that is sought.
const PERIOD: usize = 128;
/// The longest structure in characters.
const LENGTH: usize = 160;

/// The pilot's symbols from `start` to `end` in short.
pub fn structure(pilot: &Pilot, start: u64, end: u64) -> String {
    let (start, end) = (start as usize, (end as usize).min(pilot.length()));
    let shown = end.min(start + MOST);
    let ids: Vec<u32> = (start..shown).map(|at| pilot.id(at)).collect();
    let mut text = fold(&ids, &|at| pilot.word(start + at).to_string(), 0);
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

fn fold(ids: &[u32], word: &dyn Fn(usize) -> String, offset: usize) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut at = 0;
    while at < ids.len() {
        let rest = &ids[at..];
        let best = (1..=PERIOD.min(rest.len() / 2))
            .map(|period| (period, 1 + rest[period..].iter().zip(rest).take_while(|(a, b)| a == b).count() / period))
            .filter(|&(_, times)| times >= 2)
            .max_by_key(|&(period, times)| (period * times, std::cmp::Reverse(period)));
        match best {
            Some((period, times)) => {
                let inner = fold(&rest[..period], word, offset + at);
                let single = period == 1;
                parts.push(if single { format!("{inner}^{times}") } else { format!("({inner})^{times}") });
                at += period * times;
            }
            None => {
                parts.push(word(offset + at));
                at += 1;
            }
        }
    }
    parts.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folded(text: &str) -> String {
        let ids: Vec<u32> = text.bytes().map(u32::from).collect();
        fold(&ids, &|at| text[at..=at].to_string(), 0)
    }

    #[test]
    fn repetitions_are_folded_from_the_inside_out() {
        assert_eq!(folded("abcabcabcd"), "(a b c)^3 d");
        assert_eq!(folded("aab aab "), "(a^2 b  )^2");
        assert_eq!(folded("abc"), "a b c");
        assert_eq!(folded(""), "");
    }
}
