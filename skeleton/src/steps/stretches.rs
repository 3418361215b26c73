//! Stretches between collectives of all ranks in which the ranks did the same calls in another order, as messages came.
//! Each takes the order of the stretch like it that came most often: on all ranks at once, so that the calls of one rank
//! still fit those of the others.
use super::survey::Survey;
use super::symbols::Sequence;
use crate::error::SkeletonError;
use crate::logical::Operation;
use crate::topology::Directions;
use phasecast_analyzer::parallel::{self, Stage};
use phasecast_analyzer::symbol::mix;
use phasecast_trace::Trace;
use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

/// In which order the calls of each stretch stand.
#[derive(Debug, Default)]
pub struct Orders {
    /// For each stretch, the one whose order it takes: itself, or another.
    lead: Vec<usize>,
    /// For each group, whether all ranks are in one communicator.
    world: Vec<bool>,
}

/// A stretch of a rank whose order was changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moved {
    /// Its first symbol.
    pub start: u64,
    /// For each of its symbols as they came, the place in the stretch where it stands now.
    pub places: Arc<[u32]>,
}

/// What is known of a stretch: of one rank, or of all together.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    /// The same for stretches with the same calls and the same requests under way at both ends, in whatever order.
    calls: u64,
    /// The same for those in the same order.
    order: u64,
}

impl Orders {
    /// Looks for stretches that differ in their order only. Nothing moves unless all ranks have as many stretches.
    ///
    /// # Errors
    /// If a rank cannot be walked over.
    pub fn find(
        trace: &Trace,
        survey: &Survey,
        directions: &Directions,
        threads: usize,
        stage: &Stage<'_>,
    ) -> Result<Orders, SkeletonError> {
        let ranks = trace.size() as usize;
        let all = |members: &Vec<Vec<u32>>| matches!(&members[..], [one] if one.len() == ranks);
        let world: Vec<bool> = survey.groups.all.iter().map(|group| all(&group.members)).collect();
        let known: Mutex<Vec<Known>> = Mutex::default();
        let read = |rank: usize, done: &_| -> Result<usize, SkeletonError> {
            let of_rank = Stretches::of(&Sequence::of(trace, survey, directions, rank, done)?, &world).known;
            let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
            let most = known.len().max(of_rank.len());
            known.resize(most, Known::default());
            // A sum, so that the order in which ranks are done does not show.
            let add = |sum: &mut u64, of: u64| *sum = sum.wrapping_add(mix(of ^ mix(rank as u64)));
            for (sum, of) in known.iter_mut().zip(&of_rank) {
                add(&mut sum.calls, of.calls);
                add(&mut sum.order, of.order);
            }
            Ok(of_rank.len())
        };
        let counts = parallel::map(ranks, threads, stage, read)?;
        let known = known.into_inner().unwrap_or_else(PoisonError::into_inner);
        let agreed = counts.iter().all(|count| *count == known.len());
        Ok(Orders { lead: if agreed { leads(&known) } else { Vec::new() }, world })
    }

    /// Stretches that take the order of another, and all.
    pub fn moved(&self) -> (usize, usize) {
        (self.lead.iter().enumerate().filter(|(at, lead)| at != *lead).count(), self.lead.len())
    }

    /// Puts the calls of a rank in these orders, and says what was moved.
    pub fn put(&self, sequence: &mut Sequence) -> Vec<Moved> {
        let mut moved = Vec::new();
        if self.moved().0 == 0 {
            return moved;
        }
        let Stretches { ranges, meanings, .. } = Stretches::of(sequence, &self.world);
        let mut known: HashSet<Arc<[u32]>> = HashSet::new();
        for (range, &lead) in ranges.iter().zip(&self.lead) {
            let Some(lead) = ranges.get(lead).filter(|lead| *lead != range) else { continue };
            let Some(places) = places(&meanings[range.clone()], &meanings[lead.clone()]) else { continue };
            let places = known.get(&places[..]).cloned().unwrap_or_else(|| places.into());
            known.insert(Arc::clone(&places));
            // A stretch whose order others take stays as it is.
            sequence.symbols.copy_within(lead.clone(), range.start);
            moved.push(Moved { start: range.start as u64, places });
        }
        sequence.renumber();
        moved
    }
}

/// The stretches of a rank: each ends with a collective of all, but for the last.
struct Stretches {
    ranges: Vec<Range<usize>>,
    known: Vec<Known>,
    /// What each call does: slots are where they happen to be free, so they are no part of it, and a completion is that
    /// of what was begun.
    meanings: Vec<u64>,
}

impl Stretches {
    fn of(sequence: &Sequence, world: &[bool]) -> Stretches {
        let begins: Vec<(u64, Option<u16>)> = sequence.operations.iter().map(apart_from_slot).collect();
        let mut found = Stretches { ranges: Vec::new(), known: Vec::new(), meanings: Vec::new() };
        let mut begun: HashMap<u16, u64> = HashMap::new();
        let mut under_way = 0;
        let taken = |slot: u16, meaning: u64| mix(meaning ^ mix(u64::from(slot)));
        let fresh = |under_way: u64| Known { calls: mix(!under_way), order: 0 };
        let (mut start, mut known) = (0, fresh(0));
        for (at, symbol) in sequence.symbols.iter().enumerate() {
            let operation = &sequence.operations[*symbol as usize];
            let (mut meaning, slot) = begins[*symbol as usize];
            if let Some(slot) = slot {
                begun.insert(slot, meaning);
                under_way ^= taken(slot, meaning);
            }
            if let Operation::Wait { slots } = operation {
                meaning = 1;
                for (slot, of) in slots.iter().filter_map(|slot| Some((*slot, begun.remove(slot)?))) {
                    meaning = meaning.wrapping_add(mix(of));
                    under_way ^= taken(slot, of);
                }
            }
            found.meanings.push(meaning);
            known.calls = known.calls.wrapping_add(mix(meaning));
            known.order = mix(known.order ^ meaning);
            let ends = matches!(operation, Operation::Collective { group, slot: None, .. }
                if world.get(usize::from(*group)) == Some(&true));
            if ends || at + 1 == sequence.symbols.len() {
                known.calls = known.calls.wrapping_add(mix(under_way));
                found.known.push(known);
                found.ranges.push(start..at + 1);
                (start, known) = (at + 1, fresh(under_way));
            }
        }
        found
    }
}

/// A hash of an operation without the slot that it takes, and that slot.
fn apart_from_slot(operation: &Operation) -> (u64, Option<u16>) {
    let mut operation = operation.clone();
    let slot = match &mut operation {
        Operation::Send { slot, .. } | Operation::Receive { slot, .. } | Operation::Collective { slot, .. } => {
            slot.take()
        }
        Operation::SendReceive { .. } | Operation::Wait { .. } | Operation::Nothing => None,
    };
    let mut hasher = DefaultHasher::new();
    operation.hash(&mut hasher);
    (hasher.finish(), slot)
}

/// For each stretch the first one with its calls in the order that most of those have.
fn leads(known: &[Known]) -> Vec<usize> {
    let mut orders: HashMap<(u64, u64), (usize, usize)> = HashMap::new();
    for (at, of) in known.iter().enumerate() {
        orders.entry((of.calls, of.order)).or_insert((0, at)).0 += 1;
    }
    let mut best: HashMap<u64, (usize, usize)> = HashMap::new();
    for (&(calls, _), &(count, first)) in &orders {
        let best = best.entry(calls).or_insert((count, first));
        if (count, std::cmp::Reverse(first)) > (best.0, std::cmp::Reverse(best.1)) {
            *best = (count, first);
        }
    }
    let lead = |(at, of): (usize, &Known)| {
        let (_, lead) = best[&of.calls];
        if known[lead].order == of.order { at } else { lead }
    };
    known.iter().enumerate().map(lead).collect()
}

/// Where the calls of a stretch stand in another with the same calls; none if it has others.
fn places(stretch: &[u64], lead: &[u64]) -> Option<Vec<u32>> {
    let sorted = |of: &[u64]| {
        let mut order: Vec<u32> = (0..of.len() as u32).collect();
        order.sort_by_key(|at| of[*at as usize]);
        order
    };
    let (from, to) = (sorted(stretch), sorted(lead));
    let same = |(from, to): (&u32, &u32)| stretch[*from as usize] == lead[*to as usize];
    if from.len() != to.len() || !from.iter().zip(&to).all(same) {
        return None;
    }
    let mut places = vec![0; stretch.len()];
    from.iter().zip(&to).for_each(|(from, to)| places[*from as usize] = *to);
    Some(places)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logical::{End, Mode};
    use proptest::prelude::*;

    const ALL: Operation = Operation::Collective { name: String::new(), group: 0, bytes: 8, root: None, slot: None };

    fn sends(tags: &[u16]) -> Vec<Operation> {
        let send = |tag: &u16| Operation::Send {
            end: End { direction: 0, tag: i32::from(*tag), bytes: 8 },
            mode: Mode::Standard,
            slot: None,
        };
        tags.iter().map(send).collect()
    }

    fn sequence(stretches: &[Vec<Operation>]) -> Sequence {
        let mut operations: Vec<Operation> = Vec::new();
        let (mut symbols, all) = (Vec::new(), ALL);
        for operation in stretches.iter().flat_map(|stretch| stretch.iter().chain(std::iter::once(&all))) {
            let at = operations.iter().position(|known| known == operation).unwrap_or_else(|| {
                operations.push(operation.clone());
                operations.len() - 1
            });
            symbols.push(at as u32);
        }
        Sequence { symbols, operations, dropped: vec![], undirected: 0 }
    }

    fn orders(sequence: &Sequence) -> Orders {
        Orders { lead: leads(&Stretches::of(sequence, &[true]).known), world: vec![true] }
    }

    #[test]
    fn the_order_that_came_most_often_stands() {
        let both = sequence(&[sends(&[2, 1]), sends(&[1, 2]), sends(&[1, 3]), sends(&[1, 2]), sends(&[3, 1])]);
        let orders = orders(&both);
        assert_eq!(orders.lead, [1, 1, 2, 3, 2]);
        let mut put = both;
        let moved = orders.put(&mut put);
        assert_eq!(
            moved.iter().map(|m| (m.start, &m.places[..])).collect::<Vec<_>>(),
            [(0, &[1, 0, 2][..]), (12, &[1, 0, 2])]
        );
        let wanted = sequence(&[sends(&[1, 2]), sends(&[1, 2]), sends(&[1, 3]), sends(&[1, 2]), sends(&[1, 3])]);
        assert_eq!((put.symbols, put.operations), (wanted.symbols, wanted.operations));
    }

    #[test]
    fn requests_that_were_under_way_before_keep_stretches_apart() {
        let begin =
            Operation::Collective { name: "MPI_Ibarrier".into(), group: 0, bytes: 0, root: None, slot: Some(1) };
        let wait = Operation::Wait { slots: vec![1] };
        let before = vec![begin.clone()];
        let all = sequence(&[vec![begin.clone(), wait.clone()], before, vec![wait, begin]]);
        assert_eq!(orders(&all).lead, [0, 1, 2]);
    }

    proptest! {
        /// What moves keeps its symbol, and each stretch its calls.
        #[test]
        fn each_call_is_still_there(all in prop::collection::vec(prop::collection::vec(0u16..3, 0..4), 0..20)) {
            let before = sequence(&all.iter().map(|slots| sends(slots)).collect::<Vec<_>>());
            let orders = orders(&before);
            let mut after = sequence(&all.iter().map(|slots| sends(slots)).collect::<Vec<_>>());
            let moved = orders.put(&mut after);
            let operation = |of: &Sequence, at: usize| of.operations[of.symbols[at] as usize].clone();
            let mut place: Vec<usize> = (0..before.symbols.len()).collect();
            for m in &moved {
                let start = m.start as usize;
                m.places.iter().enumerate().for_each(|(at, to)| place[start + at] = start + *to as usize);
            }
            for (at, to) in place.iter().enumerate() {
                prop_assert_eq!(operation(&before, at), operation(&after, *to));
            }
            place.sort_unstable();
            prop_assert!(place.iter().enumerate().all(|(at, to)| at == *to));
        }
    }
}
