//! The greedy fold: one pass from left to right over a stack of symbols and loops in which nothing repeats.
//!
//! When the end of the stack is twice the same, the two become a loop, and the input goes on to be compared with the
//! loop's last iteration as long as it is the same. So inner loops are folded before what they are parts of, and an
//! iteration of an outer loop costs no more than a comparison of memory.
//!
//! Which stretch may be repeated is told by the last place at which the last K symbols stood, for K = 1, 2, 4, ...: in
//! a stack without repetition a stretch of K symbols cannot come back within K symbols, so that of the periods from K
//! to 2K - 1 that place leaves only one. Beyond [`ALL`] symbols only some stretches are looked up, chosen by their
//! content: half of those whose second half was, so about [`ALL`] of every K. A small table for each K holds all that lie
//! within 2K, and the work for a symbol does not grow with the stack. A repetition that is noticed late is followed back
//! to where it begins.
use crate::matching::FastMap;
use crate::nest::Node;
use crate::symbol::mix;

/// Up to this length all stretches are looked up; of longer ones so many of each length.
const ALL: usize = 32;
/// Places of the table of each length: many times as many as stretches that it must hold.
const PLACES: usize = 1 << 10;
/// The odd base of the polynomial by which the stack is hashed.
const BASE: u64 = 0xD6E8_FEB8_6659_FD93;
/// Loops are numbered from here on; symbols are below.
const LOOPS: u32 = 1 << 31;

/// A loop as it stands on the stack: the same loops have the same number.
struct Known {
    /// Its body among [`Fold::bodies`].
    body: u32,
    count: u64,
}

/// The stack and what is known of it.
struct Fold<'a> {
    input: &'a [u32],
    codes: Vec<u32>,
    /// Where in the input each of them begins.
    starts: Vec<u32>,
    /// Hashes of the stack up to each of them.
    sums: Vec<u64>,
    /// Powers of the base, as far as they were needed; and those of 1, 2, 4, ...
    powers: Vec<u64>,
    doubled: [u64; 32],
    /// For each length, where a stretch ended last, by its hash, with another part of the hash beside.
    ends: Vec<[(u32, u32); PLACES]>,
    loops: Vec<Known>,
    loop_numbers: FastMap<(u32, u64), u32>,
    bodies: Vec<Vec<u32>>,
    body_numbers: FastMap<Vec<u32>, u32>,
}

/// Folds a sequence of symbols below 2^31; longer ones than 2^32 - 1 are left as they are.
pub fn fold(input: &[u32]) -> Vec<Node<u32>> {
    if input.len() >= u32::MAX as usize || input.iter().any(|&symbol| symbol >= LOOPS) {
        return input.iter().map(|&symbol| Node::Item(symbol)).collect();
    }
    let mut fold = Fold {
        input,
        codes: Vec::new(),
        starts: Vec::new(),
        sums: vec![0],
        powers: vec![1],
        doubled: std::array::from_fn(|level| (0..level).fold(BASE, |power, _| power.wrapping_mul(power))),
        ends: Vec::new(),
        loops: Vec::new(),
        loop_numbers: FastMap::default(),
        bodies: Vec::new(),
        body_numbers: FastMap::default(),
    };
    fold.run();
    fold.nodes(&fold.codes)
}

impl Fold<'_> {
    fn run(&mut self) {
        let mut at = 0;
        while let Some(&symbol) = self.input.get(at) {
            self.push(symbol, at);
            at += 1;
            while let Some(period) = self.repeated() {
                at = self.make_loop(period, at);
            }
        }
    }

    fn push(&mut self, code: u32, start: usize) {
        self.codes.push(code);
        self.starts.push(start as u32);
        let sum = self.sums[self.sums.len() - 1];
        self.sums.push(sum.wrapping_mul(BASE).wrapping_add(mix(u64::from(code) + 1)));
    }

    /// The hash of the `length` codes before `end`.
    #[inline]
    fn hash(&self, end: usize, length: usize, power: u64) -> u64 {
        self.sums[end].wrapping_sub(self.sums[end - length].wrapping_mul(power))
    }

    /// Notes the stretches that end here; the shortest period of a stretch that is there twice in a row, if any.
    #[inline]
    fn repeated(&mut self) -> Option<usize> {
        let end = self.codes.len();
        let mut found = None;
        let (mut length, mut level) = (1, 0);
        while length <= end {
            let mixed = mix(self.hash(end, length, self.doubled[level]));
            if length > ALL && mixed & 1 != 0 {
                break;
            }
            if level == self.ends.len() {
                self.ends.push([(0, 0); PLACES]);
            }
            let (tag, place) = (mixed as u32, (mixed >> 32) as usize & (PLACES - 1));
            let (known, before) = std::mem::replace(&mut self.ends[level][place], (tag, end as u32));
            let before = before as usize;
            if found.is_none() && known == tag && 0 < before && before < end && end - before < 2 * length {
                found = Some(end - before).filter(|&period| self.twice(end, period));
            }
            length *= 2;
            level += 1;
        }
        found
    }

    /// Whether the `period` codes before `end` are those before them.
    fn twice(&mut self, end: usize, period: usize) -> bool {
        if 2 * period > end {
            return false;
        }
        while self.powers.len() <= period {
            self.powers.push(self.powers[self.powers.len() - 1].wrapping_mul(BASE));
        }
        let power = self.powers[period];
        self.hash(end, period, power) == self.hash(end - period, period, power)
            && self.codes[end - 2 * period..end - period] == self.codes[end - period..end]
    }

    /// Makes a loop of the repetition at the end of the stack, lets it take in all input that goes on with it, and
    /// returns where the input goes on.
    fn make_loop(&mut self, period: usize, mut at: usize) -> usize {
        let end = self.codes.len();
        let mut first = end - 2 * period;
        while first > 0 && self.codes[first - 1] == self.codes[first - 1 + period] {
            first -= 1;
        }
        let mut count = ((end - first) / period) as u64;
        let rest = first + count as usize * period;
        if rest < end {
            at = self.starts[rest] as usize;
        }
        let start = self.starts[first] as usize;
        let span = (at - start) / count as usize;
        let body = self.codes[first..first + period].to_vec();
        self.codes.truncate(first);
        self.starts.truncate(first);
        self.sums.truncate(first + 1);
        while at + span <= self.input.len() && self.input[at..at + span] == self.input[at - span..at] {
            at += span;
            count += 1;
        }
        let code = self.number(body, count);
        self.push(code, start);
        at
    }

    fn number(&mut self, body: Vec<u32>, count: u64) -> u32 {
        let next = self.bodies.len() as u32;
        let body = match self.body_numbers.get(&body) {
            Some(&known) => known,
            None => {
                self.body_numbers.insert(body.clone(), next);
                self.bodies.push(body);
                next
            }
        };
        let next = LOOPS + self.loops.len() as u32;
        let code = *self.loop_numbers.entry((body, count)).or_insert(next);
        if code == next {
            self.loops.push(Known { body, count });
        }
        code
    }

    fn nodes(&self, codes: &[u32]) -> Vec<Node<u32>> {
        let node = |&code: &u32| match code.checked_sub(LOOPS) {
            None => Node::Item(code),
            Some(number) => {
                let Known { body, count } = self.loops[number as usize];
                Node::Loop { count, body: self.nodes(&self.bodies[body as usize]) }
            }
        };
        codes.iter().map(node).collect()
    }
}
