//! The longest common subsequence of two sequences of symbols (seed 000, section 3.2.4, its first approach), with what is
//! common in order: Myers' greedy method in its linear-space form. Time grows with the length times the differences, in
//! practice with the length plus the square of the differences; memory with the length.
//!
//! Own code rather than a crate for diffs: those give up the minimum for speed where it costs them, and with it the laws
//! of a metric. Here that is done only beyond [`Effort`], and told.

/// A stretch that two sequences have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Where it begins in the first sequence.
    pub a: usize,
    /// Where it begins in the second.
    pub b: usize,
    /// Its length.
    pub length: usize,
}

/// What two sequences have in common.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Common {
    /// The stretches, in order.
    pub runs: Vec<Run>,
    /// Symbols in them, all together.
    pub length: u64,
    /// Whether there is no longer common subsequence; else the search was given up somewhere.
    pub exact: bool,
}

impl Common {
    fn push(&mut self, a: usize, b: usize, length: usize) {
        if length == 0 {
            return;
        }
        self.length += length as u64;
        match self.runs.last_mut() {
            Some(last) if last.a + last.length == a && last.b + last.length == b => last.length += length,
            _ => self.runs.push(Run { a, b, length }),
        }
    }
}

/// How much is done for the longest one.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Steps of the search after which it settles for good ones.
    pub steps: u64,
    /// From then on, the differences within which a good one must be found.
    pub differences: usize,
}

impl Default for Effort {
    /// Enough for traces of a million events that differ in 5 % of them; a few seconds at most.
    fn default() -> Self {
        Effort { steps: 4_000_000_000, differences: 256 }
    }
}

/// What `a` and `b` have in common.
pub fn common(a: &[u32], b: &[u32], effort: Effort) -> Common {
    let mut found = Common { exact: true, ..Common::default() };
    let front = extend(a, b);
    found.push(0, 0, front);
    let (mid_a, mid_b) = (&a[front..], &b[front..]);
    let back = extend_back(mid_a, mid_b);
    let (mid_a, mid_b) = (&mid_a[..mid_a.len() - back], &mid_b[..mid_b.len() - back]);
    if !mid_a.is_empty() && !mid_b.is_empty() {
        between(mid_a, mid_b, front, effort, &mut found);
    }
    found.push(a.len() - back, b.len() - back, back);
    found
}

/// What is between common ends: symbols that only one side has are left out before the search.
fn between(a: &[u32], b: &[u32], offset: usize, effort: Effort, found: &mut Common) {
    let top = a.iter().chain(b).max().map_or(0, |&symbol| symbol as usize + 1);
    let mut seen = vec![0u8; top];
    a.iter().for_each(|&symbol| seen[symbol as usize] |= 1);
    b.iter().for_each(|&symbol| seen[symbol as usize] |= 2);
    let kept = |side: &[u32]| -> (Vec<u32>, Vec<u32>) {
        let both = side.iter().enumerate().filter(|(_, symbol)| seen[**symbol as usize] == 3);
        both.map(|(at, &symbol)| (symbol, (at + offset) as u32)).unzip()
    };
    let ((a, at_a), (b, at_b)) = (kept(a), kept(b));
    let size = 2 * (a.len() + b.len()) + 4;
    let mut search = Search { forward: vec![0; size], backward: vec![0; size], centre: size / 2, effort, exact: true };
    let mut open = vec![(0, a.len(), 0, b.len())];
    // The stack holds what lies behind before what lies ahead, so that runs are found in order.
    while let Some((mut a0, mut a1, mut b0, mut b1)) = open.pop() {
        let front = extend(&a[a0..a1], &b[b0..b1]);
        (0..front).for_each(|i| found.push(at_a[a0 + i] as usize, at_b[b0 + i] as usize, 1));
        (a0, b0) = (a0 + front, b0 + front);
        let back = extend_back(&a[a0..a1], &b[b0..b1]);
        (a1, b1) = (a1 - back, b1 - back);
        if back > 0 && (a0 < a1 || b0 < b1) {
            open.push((a1, a1 + back, b1, b1 + back));
        } else {
            (0..back).for_each(|i| found.push(at_a[a1 + i] as usize, at_b[b1 + i] as usize, 1));
        }
        if a0 < a1 && b0 < b1 {
            let (x, y) = search.split(&a[a0..a1], &b[b0..b1]);
            open.push((a0 + x, a1, b0 + y, b1));
            open.push((a0, a0 + x, b0, b0 + y));
        }
    }
    found.exact = search.exact;
}

/// Symbols that are compared at once.
const LANES: usize = 16;

/// Which of some symbols are equal, as bits.
#[inline(always)]
fn equal(a: &[u32; LANES], b: &[u32; LANES]) -> u32 {
    let mut mask = 0;
    for lane in 0..LANES {
        mask |= u32::from(a[lane] == b[lane]) << lane;
    }
    mask
}

/// Symbols that both begin with.
#[inline(always)]
fn extend(a: &[u32], b: &[u32]) -> usize {
    if a.is_empty() || b.is_empty() || a[0] != b[0] {
        return 0;
    }
    let (blocks_a, _) = a.as_chunks::<LANES>();
    let (blocks_b, _) = b.as_chunks::<LANES>();
    let mut at = 0;
    for (x, y) in blocks_a.iter().zip(blocks_b) {
        let unequal = !equal(x, y) & ((1 << LANES) - 1);
        if unequal != 0 {
            return at + unequal.trailing_zeros() as usize;
        }
        at += LANES;
    }
    at + a[at..].iter().zip(&b[at..]).take_while(|(x, y)| x == y).count()
}

/// Symbols that both end with.
#[inline(always)]
fn extend_back(a: &[u32], b: &[u32]) -> usize {
    if a.is_empty() || b.is_empty() || a[a.len() - 1] != b[b.len() - 1] {
        return 0;
    }
    let (_, blocks_a) = a.as_rchunks::<LANES>();
    let (_, blocks_b) = b.as_rchunks::<LANES>();
    let mut at = 0;
    for (x, y) in blocks_a.iter().rev().zip(blocks_b.iter().rev()) {
        let unequal = !equal(x, y) & ((1 << LANES) - 1);
        if unequal != 0 {
            return at + (unequal << (32 - LANES)).leading_zeros() as usize;
        }
        at += LANES;
    }
    let (a, b) = (&a[..a.len() - at], &b[..b.len() - at]);
    at + a.iter().rev().zip(b.iter().rev()).take_while(|(x, y)| x == y).count()
}

/// Values that lose against any other.
const LOW: i32 = -1;
const HIGH: i32 = i32::MAX;

/// The furthest points of both searches, by diagonal: kept from one search to the next, so that memory is taken once.
struct Search {
    forward: Vec<i32>,
    backward: Vec<i32>,
    centre: usize,
    effort: Effort,
    exact: bool,
}

impl Search {
    /// A point through which a longest common subsequence goes. Neither is empty, they begin and end differently.
    fn split(&mut self, a: &[u32], b: &[u32]) -> (usize, usize) {
        let (n, m) = (a.len() as isize, b.len() as isize);
        let (delta, centre) = (n - m, self.centre as isize);
        let odd = delta & 1 != 0;
        let at = |k: isize| (centre + k) as usize;
        let (mut low, mut high, mut low_back, mut high_back) = (0isize, 0isize, delta, delta);
        // On diagonal k = x - y: the furthest x from the start, and the least x from the end. Beside the diagonals
        // that are in use stand values that lose. Points outside the rectangle may come up; they never win, because
        // the searches meet before that.
        let (forward, backward) = (&mut self.forward, &mut self.backward);
        forward[at(0)] = 0;
        backward[at(delta)] = n as i32;
        let mut cost = 0usize;
        loop {
            cost += 1;
            // Diagonals that have left the rectangle are no longer searched.
            if low > -m {
                low -= 1;
                forward[at(low - 1)] = LOW;
            } else {
                low += 1;
            }
            if high < n {
                high += 1;
                forward[at(high + 1)] = LOW;
            } else {
                high -= 1;
            }
            let mut k = high;
            while k >= low {
                let x = (forward[at(k - 1)] + 1).max(forward[at(k + 1)]) as usize;
                let y = (x as isize - k) as usize;
                let x = x + if x < a.len() && y < b.len() { extend(&a[x..], &b[y..]) } else { 0 };
                forward[at(k)] = x as i32;
                if odd && low_back <= k && k <= high_back && backward[at(k)] <= x as i32 {
                    return (x, (x as isize - k) as usize);
                }
                k -= 2;
            }
            if low_back > -m {
                low_back -= 1;
                backward[at(low_back - 1)] = HIGH;
            } else {
                low_back += 1;
            }
            if high_back < n {
                high_back += 1;
                backward[at(high_back + 1)] = HIGH;
            } else {
                high_back -= 1;
            }
            let mut k = high_back;
            while k >= low_back {
                let x = backward[at(k - 1)].min(backward[at(k + 1)] - 1);
                let (at_a, at_b) = (x as usize, (x as isize - k) as usize);
                let x =
                    x - if at_a <= a.len() && at_b <= b.len() { extend_back(&a[..at_a], &b[..at_b]) } else { 0 } as i32;
                backward[at(k)] = x;
                if !odd && low <= k && k <= high && x <= forward[at(k)] {
                    return (x as usize, (x as isize - k) as usize);
                }
                k -= 2;
            }
            let work = (high - low + high_back - low_back) as u64;
            self.effort.steps = self.effort.steps.saturating_sub(work);
            if self.effort.steps == 0 && cost >= self.effort.differences {
                self.exact = false;
                return furthest(forward, at, (low, high), (n, m));
            }
        }
    }
}

/// The point of the search from the start that has come furthest, inside the rectangle.
fn furthest(
    forward: &[i32],
    at: impl Fn(isize) -> usize,
    (low, high): (isize, isize),
    (n, m): (isize, isize),
) -> (usize, usize) {
    let mut best = (0, 0);
    let mut k = high;
    while k >= low {
        let x = (forward[at(k)] as isize).min(n).min(m + k);
        let y = x - k;
        if x >= 0 && y >= 0 && x + y > best.0 + best.1 {
            best = (x, y);
        }
        k -= 2;
    }
    (best.0 as usize, best.1 as usize)
}
