//! The last pass: the times and sizes of all ranks of a class, each at its place in the nest.
use super::acts::{Act, Computed, Sink};
use super::classes::Classes;
use super::spread::Spread;
use super::stretches::Moved;
use super::survey::Survey;
use super::walk::walk;
use crate::error::SkeletonError;
use crate::logical::{ClassTrace, Computation, Counted, Operation, Step, Work};
use crate::nest::Node;
use phasecast_analyzer::parallel::{self, Stage};
use phasecast_trace::{Rank, Trace};
use std::collections::{BTreeMap, VecDeque};
use std::iter::Peekable;
use std::slice::Iter;
use std::sync::{Mutex, PoisonError};

/// Different sizes of a place that are counted.
const MOST_SIZES: usize = 1 << 10;

/// What is known of one place of a nest.
#[derive(Clone, Debug, Default)]
struct Place {
    compute: Spread,
    counted: Sum,
    calls: u64,
    call_ns: u128,
    /// Sizes sent (or contributed) and received, where they vary.
    sizes: [BTreeMap<u64, u64>; 2],
}

impl Place {
    fn merge(&mut self, other: &Place) {
        self.compute.merge(&other.compute);
        self.counted.merge(&other.counted);
        self.calls += other.calls;
        self.call_ns += other.call_ns;
        for (mine, theirs) in self.sizes.iter_mut().zip(&other.sizes) {
            for (&bytes, &count) in theirs {
                *mine.entry(bytes).or_default() += count;
            }
        }
    }

    fn median(&self, side: usize) -> Option<u64> {
        let half = self.sizes[side].values().sum::<u64>().div_ceil(2);
        let mut before = 0;
        self.sizes[side]
            .iter()
            .find(|(_, count)| {
                before += **count;
                before >= half
            })
            .map(|(bytes, _)| *bytes)
    }
}

/// What was counted at a place. Whole numbers, so that the order in which ranks are added never shows.
#[derive(Clone, Debug, Default)]
struct Sum {
    ns: u128,
    counted_ns: u128,
    instructions: u128,
    misses: u128,
}

impl Sum {
    fn add(&mut self, compute: Computed) {
        self.ns += u128::from(compute.ns);
        self.counted_ns += u128::from(compute.counted_ns);
        self.instructions += u128::from(compute.counts.instructions);
        self.misses += u128::from(compute.counts.misses);
    }

    fn merge(&mut self, other: &Sum) {
        self.ns += other.ns;
        self.counted_ns += other.counted_ns;
        self.instructions += other.instructions;
        self.misses += other.misses;
    }

    fn work(&self) -> Option<Work> {
        let us = self.counted_ns as f64 * 1e-3;
        (us > 0.0)
            .then(|| Work { instructions_per_us: self.instructions as f64 / us, lines_per_us: self.misses as f64 / us })
    }

    fn share(&self) -> f64 {
        if self.ns == 0 { 0.0 } else { self.counted_ns as f64 / self.ns as f64 }
    }
}

/// The places of a nest in the order in which they are written.
fn placed(nodes: &[Node<u32>], symbols: &mut Vec<u32>) -> Vec<Node<u32>> {
    let mut place = |node: &Node<u32>| match node {
        Node::Item(symbol) => {
            symbols.push(*symbol);
            Node::Item(symbols.len() as u32 - 1)
        }
        Node::Loop { count, body } => Node::Loop { count: *count, body: placed(body, symbols) },
    };
    nodes.iter().map(&mut place).collect()
}

/// Goes through a nest, loop by loop.
struct Cursor<'a> {
    /// Nodes, the next of them, iterations left after this one.
    levels: Vec<(&'a [Node<u32>], usize, u64)>,
}

impl<'a> Cursor<'a> {
    fn new(nodes: &'a [Node<u32>]) -> Cursor<'a> {
        Cursor { levels: vec![(nodes, 0, 0)] }
    }

    fn next(&mut self) -> Option<u32> {
        loop {
            let (nodes, at, left) = self.levels.last_mut()?;
            match nodes.get(*at) {
                Some(Node::Item(place)) => {
                    *at += 1;
                    return Some(*place);
                }
                Some(Node::Loop { count, body }) => {
                    *at += 1;
                    self.levels.push((body, 0, count.saturating_sub(1)));
                }
                None if *left > 0 => (*at, *left) = (0, *left - 1),
                None => {
                    self.levels.pop();
                }
            }
        }
    }
}

struct Tally<'a> {
    survey: &'a Survey,
    cursor: Cursor<'a>,
    places: Vec<Place>,
    dropped: Peekable<Iter<'a, u64>>,
    moved: Peekable<Iter<'a, Moved>>,
    /// Steps, and those of them that were not nothing.
    at: u64,
    kept: u64,
    /// Places of the next steps, if they are those of a stretch that was moved.
    ahead: VecDeque<u32>,
    /// Computation and call of steps that were nothing.
    carried: (Computed, u64),
}

impl Tally<'_> {
    /// The place of the next step that is not nothing.
    fn place(&mut self) -> Option<u32> {
        if let Some(moved) = self.moved.next_if(|moved| moved.start == self.kept) {
            let stretch = moved.places.iter().map(|_| self.cursor.next()).collect::<Option<Vec<u32>>>()?;
            self.ahead.extend(moved.places.iter().map(|at| stretch[*at as usize]));
        }
        self.kept += 1;
        self.ahead.pop_front().or_else(|| self.cursor.next())
    }
}

impl Sink for Tally<'_> {
    type Token = Option<u32>;

    fn step(&mut self, compute: Computed, call: u64) -> Option<u32> {
        let (compute, call) = (compute.plus(self.carried.0), call + self.carried.1);
        let nothing = self.dropped.next_if(|at| **at == self.at).is_some();
        self.at += 1;
        if nothing {
            self.carried = (compute, call);
            return None;
        }
        self.carried = (Computed::default(), 0);
        let at = self.place()?;
        let place = self.places.get_mut(at as usize)?;
        place.compute.add(compute.ns);
        place.counted.add(compute);
        place.calls += 1;
        place.call_ns += u128::from(call);
        Some(at)
    }

    fn settle(&mut self, token: Option<u32>, act: Act) {
        let Some(place) = token.and_then(|at| self.places.get_mut(at as usize)) else { return };
        let sides = match act {
            Act::Send(to, ..) => [Some(to.bytes), None],
            Act::Receive(from, ..) => [None, Some(from.bytes)],
            Act::Exchange(to, from) => [to.map(|to| to.bytes), from.map(|from| from.bytes)],
            Act::Collective { bytes, .. } => [Some(bytes), None],
            Act::Wait(_) | Act::End => return,
        };
        for (seen, bytes) in place.sizes.iter_mut().zip(sides) {
            if let Some(bytes) = bytes.filter(|bytes| self.survey.sizes.varies(*bytes))
                && (seen.len() < MOST_SIZES || seen.contains_key(&bytes))
            {
                *seen.entry(bytes).or_default() += 1;
            }
        }
    }

    fn drop(&mut self, _: Option<u32>) {}
}

/// Makes the pass.
///
/// # Errors
/// If a rank cannot be walked over.
pub fn measure(
    trace: &Trace,
    survey: &Survey,
    classes: &Classes,
    threads: usize,
    stage: &Stage<'_>,
) -> Result<(Vec<ClassTrace>, Option<Counted>), SkeletonError> {
    let mut class_of = vec![0; trace.size() as usize];
    let mut nests = Vec::new();
    for (number, class) in classes.all.iter().enumerate() {
        class.ranks.iter().for_each(|rank| class_of[*rank as usize] = number);
        let mut symbols = Vec::new();
        let nest = placed(&class.nest, &mut symbols);
        nests.push((nest, symbols));
    }
    let totals: Vec<Mutex<Vec<Place>>> =
        nests.iter().map(|(_, symbols)| Mutex::new(vec![Place::default(); symbols.len()])).collect();
    parallel::map(class_of.len(), threads, stage, |rank, done| {
        let (nest, symbols) = &nests[class_of[rank]];
        let mut tally = Tally {
            survey,
            cursor: Cursor::new(nest),
            places: vec![Place::default(); symbols.len()],
            dropped: classes.dropped[rank].iter().peekable(),
            moved: classes.moved[rank].iter().peekable(),
            at: 0,
            kept: 0,
            ahead: VecDeque::new(),
            carried: (Computed::default(), 0),
        };
        walk(trace, Rank(rank as u32), &survey.roles, &survey.sites[rank], &mut tally, done)?;
        let mut total = totals[class_of[rank]].lock().unwrap_or_else(PoisonError::into_inner);
        total.iter_mut().zip(&tally.places).for_each(|(mine, theirs)| mine.merge(theirs));
        Ok::<_, SkeletonError>(())
    })?;
    let (mut measured, mut all) = (Vec::new(), Sum::default());
    for ((class, (nest, symbols)), places) in classes.all.iter().zip(&nests).zip(totals) {
        let places = places.into_inner().unwrap_or_else(PoisonError::into_inner);
        places.iter().for_each(|place| all.merge(&place.counted));
        let told = symbols.iter().zip(&places);
        let steps: Vec<Step> =
            told.map(|(symbol, place)| step(class.operations[*symbol as usize].clone(), place)).collect();
        measured.push(ClassTrace { ranks: class.ranks.clone(), body: filled(nest, &steps) });
    }
    let counters = trace.counters().filter(|_| all.counted_ns > 0).cloned();
    Ok((measured, counters.map(|counters| Counted { counters, share: all.share() })))
}

fn step(mut call: Operation, place: &Place) -> Step {
    let set = |bytes: &mut u64, side: usize| *bytes = place.median(side).unwrap_or(*bytes);
    match &mut call {
        Operation::Send { end, .. } => set(&mut end.bytes, 0),
        Operation::Receive { end, .. } => set(&mut end.bytes, 1),
        Operation::SendReceive { send, receive } => {
            send.iter_mut().for_each(|end| set(&mut end.bytes, 0));
            receive.iter_mut().for_each(|end| set(&mut end.bytes, 1));
        }
        Operation::Collective { bytes, .. } => set(bytes, 0),
        Operation::Wait { .. } | Operation::Nothing => {}
    }
    let call_ns = if place.calls == 0 { 0.0 } else { place.call_ns as f64 / place.calls as f64 };
    let compute = Computation { work: place.counted.work(), ..place.compute.computation() };
    Step { compute, call, call_ns }
}

fn filled(nodes: &[Node<u32>], steps: &[Step]) -> Vec<Node<Step>> {
    let fill = |node: &Node<u32>| match node {
        Node::Item(place) => Node::Item(steps[*place as usize].clone()),
        Node::Loop { count, body } => Node::Loop { count: *count, body: filled(body, steps) },
    };
    nodes.iter().map(fill).collect()
}
