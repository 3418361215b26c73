//! How far two runs' execution graphs are apart (seed 000, section 3.2.3), by the longest common subsequence of each task
//! (its first approach); and at which places events have changed.
//!
//! The distance is d = n - s. The similarity s is what all tasks have in common, n the events of the longer of each two
//! tasks that are compared: those of either graph where both have as many, as in the seed. A single vertex of one graph is
//! isomorphic to any of the other, so s is at least 1 where n is 2 or more and neither is empty; hence d <= n - 1.
use super::lcs::{Common, Effort, common};
use super::tape::{Names, Symbol, Tape, Task, Track};
use phasecast_analyzer::matching::FastMap;
use phasecast_trace::EventKind;
use std::collections::{BTreeMap, BTreeSet};

/// How two runs compare.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Comparison {
    /// n: events of the longer of each two tasks.
    pub events: u64,
    /// s: events that both have in common.
    pub similarity: u64,
    /// Whether s is the largest there is; else the traces differ so much that it is only a lower bound.
    pub exact: bool,
    /// Places whose events are not the same, by place.
    pub changes: BTreeMap<u32, Change>,
    /// Whether all other events are the same once receives that may take messages in any order are left out.
    pub confined: bool,
}

/// What has changed at a place.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// Events of the reference run at this place.
    pub events: u64,
    /// Events that are not what they were. Of receives: the k-th at the place in one run against the k-th in the other.
    /// Of others: those that are not in common.
    pub changed: u64,
    /// The first of them: its number among its rank's events in the reference run, or in the other if it is only there.
    pub first: u32,
    /// What it was (none: it is new) and what it is (none: it is gone).
    pub what: [Option<Symbol>; 2],
}

impl Comparison {
    /// That of a run that did not come to its end: it has nothing in common with the reference.
    pub fn broken(reference: &Tape) -> Comparison {
        let events = reference.events();
        let similarity = similarity(0, events, true);
        Comparison { events, similarity, exact: true, confined: false, ..Comparison::default() }
    }

    /// d = n - s.
    pub fn distance(&self) -> u64 {
        self.events - self.similarity
    }
}

/// s, at least 1 of two or more events: a vertex of one graph alone is isomorphic to any of the other (`both` have some).
pub fn similarity(matches: u64, events: u64, both: bool) -> u64 {
    if events >= 2 && both { matches.max(1) } else { matches }
}

/// Compares a run with the reference.
pub fn compare(names: &Names, reference: &Tape, other: &Tape, effort: Effort) -> Comparison {
    let mut result = Comparison { exact: true, confined: true, ..Comparison::default() };
    let tasks: BTreeSet<&Task> = reference.tracks.keys().chain(other.tracks.keys()).collect();
    let (mut matches, nothing) = (0, Track::default());
    for task in tasks {
        let [a, b] = [reference, other].map(|tape| tape.tracks.get(task).unwrap_or(&nothing));
        result.events += a.symbols.len().max(b.symbols.len()) as u64;
        let found = common(&a.symbols, &b.symbols, effort);
        matches += found.length;
        result.exact &= found.exact;
        if found.length < a.symbols.len().max(b.symbols.len()) as u64 {
            receives(names, a, b, &mut result.changes);
            others(names, a, b, &found, &mut result.changes);
            result.confined &= same_but_for_order(names, a, b);
        }
    }
    let both = reference.events() > 0 && other.events() > 0;
    result.similarity = similarity(matches, result.events, both);
    result
}

fn is_receive(names: &Names, place: u32) -> bool {
    names.places.get(place).is_some_and(|place| place.kind == EventKind::Recv)
}

/// Receives, place by place: the k-th in one run against the k-th in the other.
fn receives(names: &Names, a: &Track, b: &Track, changes: &mut BTreeMap<u32, Change>) {
    let by_place = |track: &Track| {
        let mut all: FastMap<u32, Vec<usize>> = FastMap::default();
        for (at, &place) in track.places.iter().enumerate() {
            if is_receive(names, place) {
                all.entry(place).or_default().push(at);
            }
        }
        all
    };
    let (in_a, in_b) = (by_place(a), by_place(b));
    let places: BTreeSet<u32> = in_a.keys().chain(in_b.keys()).copied().collect();
    let none = Vec::new();
    for place in places {
        let [left, right] = [&in_a, &in_b].map(|all| all.get(&place).unwrap_or(&none));
        for k in 0..left.len().max(right.len()) {
            let (x, y) = (left.get(k), right.get(k));
            let what = [x.map(|&at| a.symbols[at]), y.map(|&at| b.symbols[at])];
            if what[0] != what[1] {
                let number = x.map_or_else(|| y.map_or(0, |&at| b.numbers[at]), |&at| a.numbers[at]);
                note(names, changes, place, left.len() as u64, number, what, 1);
            }
        }
    }
}

/// Events of a place that are in one of two runs only: the first, and how many are in either.
struct Only {
    first: u32,
    what: [Option<u32>; 2],
    counts: [u64; 2],
}

/// Sends and collectives that are not in common; where one of a place is there instead of another, that is one change.
fn others(names: &Names, a: &Track, b: &Track, found: &Common, changes: &mut BTreeMap<u32, Change>) {
    // By place.
    let mut only: BTreeMap<u32, Only> = BTreeMap::new();
    let mut add = |track: &Track, range: std::ops::Range<usize>, side: usize| {
        for i in range.filter(|&i| !is_receive(names, track.places[i])) {
            let only = only.entry(track.places[i]).or_insert_with(|| {
                let mut what = [None; 2];
                what[side] = Some(track.symbols[i]);
                Only { first: track.numbers[i], what, counts: [0; 2] }
            });
            only.counts[side] += 1;
        }
    };
    let mut at = (0, 0);
    let ends = found.runs.iter().map(|run| (run.a, run.b, run.length));
    for (to_a, to_b, length) in ends.chain([(a.symbols.len(), b.symbols.len(), 0)]) {
        add(a, at.0..to_a, 0);
        add(b, at.1..to_b, 1);
        at = (to_a + length, to_b + length);
    }
    for (place, Only { first, what, counts }) in only {
        let events = a.places.iter().filter(|&&of| of == place).count() as u64;
        note(names, changes, place, events, first, what, counts[0].max(counts[1]));
    }
}

fn note(
    names: &Names,
    changes: &mut BTreeMap<u32, Change>,
    place: u32,
    events: u64,
    first: u32,
    what: [Option<u32>; 2],
    changed: u64,
) {
    let what = what.map(|symbol| symbol.and_then(|symbol| names.symbols.get(symbol).copied()));
    changes.entry(place).or_insert(Change { events, changed: 0, first, what }).changed += changed;
}

/// Whether two tasks do the same but for what receives get that may take messages in any order.
fn same_but_for_order(names: &Names, a: &Track, b: &Track) -> bool {
    let rest = |track: &Track| -> Vec<u32> {
        let fixed = |place: u32| !names.places.get(place).is_some_and(super::place_may_reorder);
        track.places.iter().zip(&track.symbols).filter(|(place, _)| fixed(**place)).map(|(_, &symbol)| symbol).collect()
    };
    a.symbols.len() == b.symbols.len() && rest(a) == rest(b)
}
