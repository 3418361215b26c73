//! All repetitions of a sequence: the stretches, as long as they go, in which a period comes at least twice. Found by
//! Main and Lorentz' divide and conquer (1984) in time n log n, as by Crochemore's algorithm (1981), which seed 002
//! uses: those that cross the middle follow from common prefixes and suffixes with its two sides.

/// A repetition: from `start` to `end` each symbol is the one `period` before it, and there are at least two periods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Run {
    /// Where it begins.
    pub start: usize,
    /// Where it ends.
    pub end: usize,
    /// Its shortest period.
    pub period: usize,
}

/// All repetitions, by start and end; none goes on to either side.
pub fn runs(sequence: &[u32]) -> Vec<Run> {
    let reversed: Vec<u32> = sequence.iter().rev().copied().collect();
    let mut finder =
        Finder { forward: sequence, reversed: &reversed, z: Default::default(), found: Vec::new(), n: sequence.len() };
    finder.between(0, sequence.len());
    let mut found = finder.found;
    // A multiple of a period reaches as far: the shortest comes first and stays.
    found.sort_unstable_by_key(|run| (run.start, run.end, run.period));
    found.dedup_by_key(|run| (run.start, run.end));
    found
}

struct Finder<'a> {
    forward: &'a [u32],
    reversed: &'a [u32],
    z: [Vec<u32>; 4],
    found: Vec<Run>,
    n: usize,
}

impl Finder<'_> {
    fn between(&mut self, low: usize, high: usize) {
        if high - low < 2 {
            return;
        }
        let mid = low + (high - low) / 2;
        self.between(low, mid);
        self.between(mid, high);
        self.across(low, mid, high);
    }

    /// Those in which the symbols before and after `mid` lie.
    fn across(&mut self, low: usize, mid: usize, high: usize) {
        let (left, right) = (mid - low, high - mid);
        let back = |from: usize, to: usize| &self.reversed[self.n - to..self.n - from];
        let [of_right, of_left, right_in_all, left_in_all] = &mut self.z;
        prefixes(&self.forward[mid..high], of_right);
        prefixes(back(low, mid), of_left);
        // How much of what begins somewhere on the left is also what begins at the middle; and the mirror image.
        common(&self.forward[mid..high], of_right, &self.forward[low..high], right_in_all);
        common(back(low, mid), of_left, back(low, high), left_in_all);
        for period in 1..right {
            let after = of_right[period] as usize;
            let before = left_in_all[right - period] as usize;
            if after + before >= period {
                keep(&mut self.found, (low, high, self.n), mid - before, mid + period + after, period);
            }
        }
        for period in 1..=left {
            let before = if period < left { of_left[period] as usize } else { 0 };
            let after = right_in_all[left - period] as usize;
            if after + before >= period {
                keep(&mut self.found, (low, high, self.n), mid - period - before, mid + after, period);
            }
        }
    }
}

/// A repetition that ends where the part ends is found whole in a greater part.
fn keep(found: &mut Vec<Run>, (low, high, n): (usize, usize, usize), start: usize, end: usize, period: usize) {
    if (start > low || low == 0) && (end < high || high == n) {
        found.push(Run { start, end, period });
    }
}

/// For each place of `text`, how much of what begins there is the beginning of `text` (the Z function).
fn prefixes(text: &[u32], z: &mut Vec<u32>) {
    z.clear();
    z.resize(text.len(), 0);
    let (mut left, mut right) = (0, 0);
    for at in 1..text.len() {
        let mut same = if at < right { (z[at - left] as usize).min(right - at) } else { 0 };
        while at + same < text.len() && text[same] == text[at + same] {
            same += 1;
        }
        z[at] = same as u32;
        if at + same > right {
            (left, right) = (at, at + same);
        }
    }
}

/// For each place of `text`, how much of what begins there is the beginning of `pattern`, whose Z function is `z`.
fn common(pattern: &[u32], z: &[u32], text: &[u32], found: &mut Vec<u32>) {
    found.clear();
    found.resize(text.len() + 1, 0);
    let (mut left, mut right) = (0, 0);
    for at in 0..text.len() {
        let mut same = 0;
        if at < right {
            let known = if at == left { pattern.len() } else { z.get(at - left).map_or(0, |z| *z as usize) };
            same = known.min(right - at);
        }
        while same < pattern.len() && at + same < text.len() && pattern[same] == text[at + same] {
            same += 1;
        }
        found[at] = same as u32;
        if at + same > right {
            (left, right) = (at, at + same);
        }
    }
}
