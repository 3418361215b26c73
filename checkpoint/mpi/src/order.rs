//! The order in which a restart makes objects again that several ranks make together: communicators, windows and files.
//!
//! A restart makes one object after the other and waits for it. Where a rank has made several at a time, by `MPI_Comm_idup`
//! or in threads, its log has them in an order of its own: two ranks that keep to theirs may wait for each other. So the
//! ranks compare their orders at a cut, and agree on a common one if these contradict each other. It keeps what each rank
//! needs first: an object is made after those that it is made of, and what is done on one communicator stays in its order.
use crate::agreement::of_all;
use crate::calls::by_name_index;
use crate::comms::mix;
use crate::log::{Argument, Log, Named, Record, named};
use crate::objects::{KINDS, slot};
use crate::session::Session;
use petgraph::algo::toposort;
use petgraph::graphmap::DiGraphMap;
use phasecast_abi::Kind;
use std::collections::{BTreeSet, HashMap};

/// Before all that ranks make together; no object has this number.
const START: u64 = 0;

/// A record of the log.
struct Step {
    /// Its number.
    record: u64,
    /// What all ranks that make it together call it; none for what this rank makes alone.
    together: Option<u64>,
    /// Earlier steps that it has to follow.
    follows: BTreeSet<usize>,
}

/// Agrees on the order. Called by all ranks.
pub fn agree(s: &mut Session) {
    let steps = s.steps();
    s.log.order.clear();
    let own: Vec<u64> = steps.iter().filter_map(|step| step.together).collect();
    let as_made = std::iter::once(&START).chain(&own).zip(&own).flat_map(|(&before, &after)| [before, after]);
    if in_order(&of_all(s, &as_made.collect::<Vec<u64>>())).is_some() {
        return;
    }
    // None can be found if an object was used before it was made: then the ranks make theirs as they did.
    if let Some(order) = in_order(&of_all(s, &pairs(&steps))) {
        s.log.order = arranged(&steps, &order);
    }
}

/// An order that keeps to pairs of numbers, the first of each before the second; the same for the same pairs.
fn in_order(pairs: &[u64]) -> Option<Vec<u64>> {
    let pairs = pairs.chunks_exact(2).map(|pair| (pair[0], pair[1]));
    toposort(&DiGraphMap::<u64, ()>::from_edges(pairs), None).ok()
}

/// Which of the steps that ranks make together follow which.
fn pairs(steps: &[Step]) -> Vec<u64> {
    let mut pairs = Vec::new();
    let mut reached: Vec<BTreeSet<u64>> = Vec::with_capacity(steps.len());
    for step in steps {
        let before: BTreeSet<u64> = step.follows.iter().flat_map(|&at| reached[at].iter().copied()).collect();
        reached.push(match step.together {
            Some(own) => {
                let all = before.into_iter().chain([START]);
                pairs.extend(all.flat_map(|before| [before, own]));
                BTreeSet::from([own])
            }
            None => before,
        });
    }
    pairs
}

/// The records of the steps, those that ranks make together in this order, others just before the first that has to follow
/// them, or at the end.
fn arranged(steps: &[Step], order: &[u64]) -> Vec<u64> {
    let places: HashMap<u64, usize> = order.iter().enumerate().map(|(place, &number)| (number, place)).collect();
    let place = |step: &Step| step.together.and_then(|number| places.get(&number).copied());
    let mut due: Vec<usize> = steps.iter().map(|step| place(step).unwrap_or(order.len())).collect();
    for (at, step) in steps.iter().enumerate().rev() {
        for &before in &step.follows {
            due[before] = due[before].min(due[at]);
        }
    }
    let mut arranged: Vec<usize> = (0..steps.len()).collect();
    arranged.sort_by_key(|&at| (due[at], at));
    arranged.into_iter().map(|at| steps[at].record).collect()
}

impl Log {
    /// The records in the order in which they are made again.
    pub fn in_order(&self) -> Vec<Record> {
        if self.order.is_empty() {
            return self.records.values().cloned().collect();
        }
        let places: HashMap<u64, usize> =
            self.order.iter().enumerate().map(|(place, &number)| (number, place)).collect();
        let mut all: Vec<(&u64, &Record)> = self.records.iter().collect();
        all.sort_by_key(|(number, _)| places.get(number).copied().unwrap_or(usize::MAX));
        all.into_iter().map(|(_, record)| record.clone()).collect()
    }
}

impl Session {
    /// The records of the log, and what each has to follow: those that made or changed what it uses, those that used what
    /// it changes, and, of what all members of a communicator do together, the one before.
    fn steps(&self) -> Vec<Step> {
        let mut steps: Vec<Step> = Vec::with_capacity(self.log.records.len());
        let mut stands: HashMap<Named, usize> = HashMap::new();
        let mut used: HashMap<Named, Vec<usize>> = HashMap::new();
        let mut last: HashMap<Named, usize> = HashMap::new();
        let mut alike: HashMap<u64, u64> = HashMap::new();
        for (at, (&number, record)) in self.log.records.iter().enumerate() {
            let parent = self.parent_in(record).map(|handle| named(Kind::Communicator, handle));
            let uses: Vec<Named> = record.needs.iter().map(|&of| self.name_of(of)).chain(parent).collect();
            let mut follows: BTreeSet<usize> = uses.iter().filter_map(|object| stands.get(object).copied()).collect();
            uses.iter().for_each(|&object| used.entry(object).or_default().push(at));
            follows.extend(parent.and_then(|parent| last.insert(parent, at)));
            if let Some(changed) = record.changed {
                follows.extend(used.remove(&changed).into_iter().flatten());
                follows.extend(stands.insert(changed, at));
            }
            let made = record.made.map(|(_, kind, number)| (kind, number));
            for object in made.into_iter().chain(record.also.iter().copied()).map(|of| self.name_of(of)) {
                stands.insert(object, at);
            }
            follows.remove(&at);
            let together = self.made_together(record, parent).map(|name| {
                let before = alike.entry(name).or_default();
                *before += 1;
                mix(name, *before).max(START + 1)
            });
            steps.push(Step { record: number, together, follows });
        }
        steps
    }

    fn name_of(&self, (kind, number): (u8, u32)) -> Named {
        (kind, self.objects.encode(KINDS[usize::from(kind)], number) as u64)
    }

    /// The program's handle of the communicator all of whose members make this call together.
    fn parent_in(&self, record: &Record) -> Option<usize> {
        let procedure = self.shapes[by_name_index(&record.procedure)?].procedure;
        let of_comm = || procedure.param_index(Kind::Communicator).filter(|_| made_on_comm(record));
        match record.arguments.get(procedure.parent_index().or_else(of_comm)?)? {
            Argument::Word(handle) => Some(handle & self.values.upper.layout().handle_mask as usize),
            _ => None,
        }
    }

    /// What all ranks call an object that they make together; several may have the same name.
    fn made_together(&self, record: &Record, parent: Option<Named>) -> Option<u64> {
        if record.comm != 0 {
            return Some(record.comm);
        }
        let (_, kind, _) = record.made.filter(|_| made_on_comm(record))?;
        let comm = self.comms.get(&(parent?.1 as usize))?;
        Some(mix(comm.number, u64::from(kind)))
    }
}

/// Whether a call has made a window or a file, which all members of a communicator do together.
fn made_on_comm(record: &Record) -> bool {
    let kinds = [Kind::Window, Kind::File].map(slot);
    record.made.is_some_and(|(_, kind, _)| kinds.contains(&usize::from(kind)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What ranks make together, each with its members and the earlier ones that it needs.
    type Objects = Vec<(u8, BTreeSet<usize>)>;

    /// Objects, and lots by which each rank draws its order.
    fn made() -> impl Strategy<Value = (Objects, Vec<Vec<u32>>)> {
        let one = (1u8..16, prop::collection::btree_set(0usize..12, 0..3));
        (prop::collection::vec(one, 1..12), prop::collection::vec(prop::collection::vec(any::<u32>(), 12), 4))
    }

    proptest! {
        #[test]
        fn ranks_that_made_theirs_in_any_order_share_one((objects, lots) in made()) {
            let number = |object: usize| object as u64 + 10;
            let rank = |rank: usize| {
                let is_mine = |&object: &usize| objects[object].0 >> rank & 1 == 1;
                let mut left: Vec<usize> = (0..objects.len()).filter(is_mine).collect();
                // Whatever does not need what is still to come may be next; a step that this rank makes alone follows each.
                let mut steps: Vec<(usize, Step)> = Vec::new();
                while let Some(&first) = left.first() {
                    let free = |&&object: &&usize| !objects[object].1.range(..object).any(|needed| left.contains(needed));
                    let next = *left.iter().filter(free).min_by_key(|object| lots[rank][**object]).unwrap_or(&first);
                    left.retain(|&object| object != next);
                    let own = |needed: &usize| steps.iter().position(|(object, step)| object == needed && step.together.is_none());
                    let follows = objects[next].1.range(..next).filter_map(own).collect();
                    let at = steps.len();
                    steps.push((next, Step { record: at as u64, together: Some(number(next)), follows }));
                    steps.push((next, Step { record: at as u64 + 1, together: None, follows: BTreeSet::from([at]) }));
                }
                steps.into_iter().map(|(_, step)| step).collect::<Vec<Step>>()
            };
            let ranks: Vec<Vec<Step>> = (0..4).map(rank).collect();
            let told: Vec<u64> = ranks.iter().flat_map(|steps| pairs(steps)).collect();
            let order = in_order(&told).expect("needs contradict nothing");
            for steps in &ranks {
                let arranged = arranged(steps, &order);
                let at = |record: u64| arranged.iter().position(|&other| other == record).expect("it is there");
                prop_assert_eq!(arranged.len(), steps.len());
                for step in steps {
                    for &before in &step.follows {
                        prop_assert!(at(steps[before].record) < at(step.record));
                    }
                }
                let together = arranged.iter().filter_map(|&record| steps[record as usize].together);
                prop_assert!(together.map(|number| order.iter().position(|&other| other == number)).is_sorted());
            }
        }
    }

    #[test]
    fn orders_that_contradict_each_other_are_told_from_others() {
        assert!(in_order(&[START, 7, 7, 8, START, 7, 7, 9, 9, 8]).is_some());
        assert_eq!(in_order(&[START, 7, 7, 8, START, 8, 8, 7]), None);
    }
}
