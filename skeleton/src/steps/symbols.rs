//! The acts of a rank as symbols: equal ones are the same operation, whichever rank it is of.
use super::acts::{Act, Computed, Message, Sink};
use super::survey::Survey;
use super::walk::walk;
use crate::error::SkeletonError;
use crate::logical::{End, Operation};
use crate::topology::Directions;
use phasecast_trace::{Rank, Trace};
use std::collections::{HashMap, HashSet};
use std::sync::atomic::AtomicU64;

/// A step that was nothing.
const NOTHING: u32 = u32::MAX;

/// What an act is in the skeleton, as far as ranks must agree on it.
struct Reader<'a> {
    survey: &'a Survey,
    directions: &'a Directions,
    rank: u32,
}

impl Reader<'_> {
    fn end(&self, message: Message, sent: bool) -> Option<End> {
        let direction = self.directions.index(self.rank, message.peer)?;
        let (sender, receiver) = if sent { (self.rank, message.peer) } else { (message.peer, self.rank) };
        let tag = self.survey.tag(sender, receiver, message.comm, message.tag);
        Some(End { direction, tag, bytes: self.survey.sizes.of(message.bytes) })
    }

    /// The operation, with the least size of its class for its sizes; none if it is left out.
    fn operation(&self, act: Act) -> Option<Operation> {
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

/// What a rank does.
pub struct Sequence {
    /// One symbol a step: places in `operations`, in the order in which they first come.
    pub symbols: Vec<u32>,
    /// What the symbols stand for.
    pub operations: Vec<Operation>,
    /// Which steps were nothing and have no symbol, ascending.
    pub dropped: Vec<u64>,
    /// Messages to or from ranks that no direction joins.
    pub undirected: u64,
}

impl Sequence {
    /// That of a rank.
    ///
    /// # Errors
    /// If it cannot be walked over.
    pub fn of(
        trace: &Trace,
        survey: &Survey,
        directions: &Directions,
        rank: usize,
        done: &AtomicU64,
    ) -> Result<Sequence, SkeletonError> {
        let reader = Reader { survey, directions, rank: rank as u32 };
        let mut found =
            Symbols { reader, sequence: vec![], numbers: HashMap::new(), undirected: 0, void: HashSet::new() };
        walk(trace, Rank(rank as u32), &survey.roles, &survey.sites[rank], &mut found, done)?;
        let Symbols { sequence: mut symbols, numbers, undirected, .. } = found;
        let at = symbols.iter().enumerate().filter(|(_, symbol)| **symbol == NOTHING).map(|(at, _)| at as u64);
        let dropped: Vec<u64> = at.collect();
        symbols.retain(|symbol| *symbol != NOTHING);
        let mut operations: Vec<(Operation, u32)> = numbers.into_iter().collect();
        operations.sort_unstable_by_key(|(_, number)| *number);
        let operations = operations.into_iter().map(|(operation, _)| operation).collect();
        let mut sequence = Sequence { symbols, operations, dropped, undirected };
        sequence.renumber();
        Ok(sequence)
    }

    /// Numbers in the order of the sequence, so that what was settled late, or has moved, does not show.
    pub fn renumber(&mut self) {
        let (mut renumbered, mut order) = (vec![NOTHING; self.operations.len()], Vec::new());
        for symbol in &mut self.symbols {
            let number = &mut renumbered[*symbol as usize];
            if *number == NOTHING {
                *number = order.len() as u32;
                order.push(self.operations[*symbol as usize].clone());
            }
            *symbol = *number;
        }
        self.operations = order;
    }
}
