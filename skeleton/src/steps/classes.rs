//! The acts of each rank as symbols, put in order. Ranks with the same sequence are one class, which is folded into
//! loops once; only sequences that nobody had before are kept, and only until they are folded.
use super::stretches::{Moved, Orders};
use super::survey::Survey;
use super::symbols::Sequence;
use crate::compress::Method;
use crate::error::SkeletonError;
use crate::logical::Operation;
use crate::nest::Node;
use crate::topology::Directions;
use phasecast_analyzer::parallel::{self, Stage};
use phasecast_trace::Trace;
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Mutex;

/// Ranks that do the same.
pub struct Class {
    /// World ranks, ascending.
    pub ranks: Vec<u32>,
    /// Their nest; symbols are places in `operations`.
    pub nest: Vec<Node<u32>>,
    /// What the symbols stand for.
    pub operations: Vec<Operation>,
}

/// What ranks do.
pub struct Classes {
    /// By their first ranks.
    pub all: Vec<Class>,
    /// For each rank, which of its steps were nothing, ascending.
    pub dropped: Vec<Vec<u64>>,
    /// For each rank, the stretches whose steps stand at other places.
    pub moved: Vec<Vec<Moved>>,
    /// Messages between ranks that no direction joins.
    pub undirected: u64,
}

/// What one rank's sequence is known by: two hashes and its length.
type Key = (u64, u64, usize);
type Folded = (Vec<Node<u32>>, Vec<Operation>);

/// Makes the pass; stretches stand in these orders.
///
/// # Errors
/// If a rank cannot be walked over.
pub fn classes(
    trace: &Trace,
    survey: &Survey,
    directions: &Directions,
    orders: &Orders,
    method: Method,
    threads: usize,
    stage: &Stage<'_>,
) -> Result<Classes, SkeletonError> {
    let folded: Mutex<HashMap<Key, Option<Folded>>> = Mutex::new(HashMap::new());
    let read = |rank: usize, done: &_| {
        let mut sequence = Sequence::of(trace, survey, directions, rank, done)?;
        let moved = orders.put(&mut sequence);
        let Sequence { symbols, operations, dropped, undirected } = sequence;
        let mut hashers = [DefaultHasher::new(), DefaultHasher::new()];
        1u8.hash(&mut hashers[1]);
        hashers.iter_mut().for_each(|hasher| (&symbols, &operations).hash(hasher));
        let key = (hashers[0].finish(), hashers[1].finish(), symbols.len());
        let lock = || folded.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let new = match lock().entry(key) {
            Entry::Occupied(_) => false,
            Entry::Vacant(place) => {
                place.insert(None);
                true
            }
        };
        if new {
            let nest = method.nest(&symbols);
            lock().insert(key, Some((nest, operations)));
        }
        Ok::<_, SkeletonError>((key, dropped, moved, undirected))
    };
    let found = parallel::map(trace.size() as usize, threads, stage, read)?;
    let mut ranks: BTreeMap<u32, (Key, Vec<u32>)> = BTreeMap::new();
    let mut first: HashMap<Key, u32> = HashMap::new();
    let mut made = Classes { all: Vec::new(), dropped: Vec::new(), moved: Vec::new(), undirected: 0 };
    for (rank, (key, dropped, moved, undirected)) in (0..).zip(found) {
        let lead = *first.entry(key).or_insert(rank);
        ranks.entry(lead).or_insert_with(|| (key, Vec::new())).1.push(rank);
        made.dropped.push(dropped);
        made.moved.push(moved);
        made.undirected += undirected;
    }
    let mut folded = folded.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    let class = |(key, ranks): (Key, Vec<u32>)| {
        let (nest, operations) = folded.remove(&key).flatten().unwrap_or_default();
        Class { ranks, nest, operations }
    };
    made.all = ranks.into_values().map(class).collect();
    Ok(made)
}
