//! The second pass: the acts of each rank as symbols. Ranks with the same sequence are one class, which is folded into
//! loops once; only sequences that nobody had before are kept, and only until they are folded.
use super::acts::{Act, Computed, Message, Sink};
use super::survey::Survey;
use super::walk::walk;
use crate::compress::Method;
use crate::error::SkeletonError;
use crate::logical::{End, Operation};
use crate::nest::Node;
use crate::topology::Directions;
use phasecast_analyzer::parallel::{self, Stage};
use phasecast_trace::{Rank, Trace};
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Mutex;

/// A step that was nothing.
const NOTHING: u32 = u32::MAX;

/// Ranks that do the same.
pub struct Class {
    /// World ranks, ascending.
    pub ranks: Vec<u32>,
    /// Their nest; symbols are places in `operations`.
    pub nest: Vec<Node<u32>>,
    /// What the symbols stand for.
    pub operations: Vec<Operation>,
}

/// What the second pass found.
pub struct Classes {
    /// By their first ranks.
    pub all: Vec<Class>,
    /// For each rank, which of its steps were nothing, ascending.
    pub dropped: Vec<Vec<u64>>,
    /// Messages between ranks that no direction joins.
    pub undirected: u64,
}

/// What an act is in the skeleton, as far as ranks must agree on it.
pub struct Reader<'a> {
    /// The first pass.
    pub survey: &'a Survey,
    /// Who lies where.
    pub directions: &'a Directions,
    /// The rank.
    pub rank: u32,
}

impl Reader<'_> {
    fn end(&self, message: Message, sent: bool) -> Option<End> {
        let direction = self.directions.index(self.rank, message.peer)?;
        let (sender, receiver) = if sent { (self.rank, message.peer) } else { (message.peer, self.rank) };
        let tag = self.survey.tag(sender, receiver, message.comm, message.tag);
        Some(End { direction, tag, bytes: self.survey.sizes.of(message.bytes) })
    }

    /// The operation, with the least size of its class for its sizes; none if it is left out.
    pub fn operation(&self, act: Act) -> Option<Operation> {
        Some(match act {
            Act::Send(to, mode, slot) => Operation::Send { end: self.end(to, true)?, mode, slot },
            Act::Receive(from, wildcard, slot) => Operation::Receive { end: self.end(from, false)?, wildcard, slot },
            Act::Exchange(to, from) => {
                let send = to.and_then(|to| self.end(to, true));
                let receive = from.and_then(|from| self.end(from, false));
                if send.is_none() && receive.is_none() {
                    return None;
                }
                Operation::SendReceive { send, receive }
            }
            Act::Wait(slots) => Operation::Wait { slots },
            Act::Collective { procedure, comm, bytes, root, slot } => {
                let group = self.survey.groups.of(comm)?;
                let name = procedure.map(|procedure| self.survey.roles.of(procedure).collective.clone());
                let name = name.unwrap_or_else(|| "MPI_Barrier".into());
                let root = self.survey.groups.place(comm, root);
                Operation::Collective { name, group, bytes: self.survey.sizes.of(bytes), root, slot }
            }
            Act::End => Operation::Nothing,
        })
    }
}

struct Symbols<'a> {
    reader: Reader<'a>,
    sequence: Vec<u32>,
    numbers: HashMap<Operation, u32>,
    undirected: u64,
    /// Slots of collectives that are left out, while they are under way.
    void: HashSet<u16>,
}

impl Symbols<'_> {
    fn number(&mut self, operation: Operation) -> u32 {
        let next = self.numbers.len() as u32;
        *self.numbers.entry(operation).or_insert(next)
    }
}

impl Sink for Symbols<'_> {
    type Token = usize;

    fn step(&mut self, _: Computed, _: u64) -> usize {
        self.sequence.push(NOTHING);
        self.sequence.len() - 1
    }

    fn settle(&mut self, token: usize, mut act: Act) {
        let slot = match &act {
            Act::Send(_, _, slot) | Act::Receive(_, _, slot) | Act::Collective { slot, .. } => *slot,
            Act::Wait(_) | Act::Exchange(..) | Act::End => None,
        };
        if let Act::Wait(slots) = &mut act {
            slots.retain(|slot| !self.void.remove(slot));
            if slots.is_empty() {
                return;
            }
        }
        let message = matches!(act, Act::Send(..) | Act::Receive(..) | Act::Exchange(..));
        match self.reader.operation(act) {
            Some(operation) => self.sequence[token] = self.number(operation),
            None => {
                self.undirected += u64::from(message);
                self.void.extend(slot);
            }
        }
    }

    fn drop(&mut self, _: usize) {}
}

/// What one rank's sequence is known by: two hashes and its length.
type Key = (u64, u64, usize);
type Folded = (Vec<Node<u32>>, Vec<Operation>);

/// Makes the second pass.
///
/// # Errors
/// If a rank cannot be walked over.
pub fn classes(
    trace: &Trace,
    survey: &Survey,
    directions: &Directions,
    method: Method,
    threads: usize,
    stage: &Stage<'_>,
) -> Result<Classes, SkeletonError> {
    let folded: Mutex<HashMap<Key, Option<Folded>>> = Mutex::new(HashMap::new());
    let read = |rank: usize, done: &_| {
        let reader = Reader { survey, directions, rank: rank as u32 };
        let mut symbols =
            Symbols { reader, sequence: vec![], numbers: HashMap::new(), undirected: 0, void: HashSet::new() };
        walk(trace, Rank(rank as u32), &survey.roles, &survey.wary[rank], &mut symbols, done)?;
        let Symbols { mut sequence, numbers, undirected, .. } = symbols;
        let at = sequence.iter().enumerate().filter(|(_, symbol)| **symbol == NOTHING).map(|(at, _)| at as u64);
        let dropped: Vec<u64> = at.collect();
        sequence.retain(|symbol| *symbol != NOTHING);
        // Numbers in the order of the sequence, so that what was settled late does not show.
        let mut operations: Vec<(Operation, u32)> = numbers.into_iter().collect();
        operations.sort_unstable_by_key(|(_, number)| *number);
        let (mut renumbered, mut order) = (vec![NOTHING; operations.len()], Vec::new());
        for symbol in &mut sequence {
            let number = &mut renumbered[*symbol as usize];
            if *number == NOTHING {
                *number = order.len() as u32;
                order.push(operations[*symbol as usize].0.clone());
            }
            *symbol = *number;
        }
        let mut hashers = [DefaultHasher::new(), DefaultHasher::new()];
        1u8.hash(&mut hashers[1]);
        hashers.iter_mut().for_each(|hasher| (&sequence, &order).hash(hasher));
        let key = (hashers[0].finish(), hashers[1].finish(), sequence.len());
        let lock = || folded.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let new = match lock().entry(key) {
            Entry::Occupied(_) => false,
            Entry::Vacant(place) => {
                place.insert(None);
                true
            }
        };
        if new {
            let nest = method.nest(&sequence);
            lock().insert(key, Some((nest, order)));
        }
        Ok((key, dropped, undirected))
    };
    let found = parallel::map(trace.size() as usize, threads, stage, |rank, done| Ok(read(rank, done)))?;
    let mut ranks: BTreeMap<u32, (Key, Vec<u32>)> = BTreeMap::new();
    let mut first: HashMap<Key, u32> = HashMap::new();
    let (mut dropped, mut undirected) = (Vec::new(), 0);
    for (rank, of_rank) in (0..).zip(found) {
        let (key, nothing, lost): (Key, Vec<u64>, u64) = of_rank.map_err(|error: SkeletonError| error)?;
        let lead = *first.entry(key).or_insert(rank);
        ranks.entry(lead).or_insert_with(|| (key, Vec::new())).1.push(rank);
        dropped.push(nothing);
        undirected += lost;
    }
    let mut folded = folded.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    let class = |(key, ranks): (Key, Vec<u32>)| {
        let (nest, operations) = folded.remove(&key).flatten().unwrap_or_default();
        Class { ranks, nest, operations }
    };
    Ok(Classes { all: ranks.into_values().map(class).collect(), dropped, undirected })
}
