//! Communicators that were made together (the rows of a grid, say) become one group: a partition of some ranks. They
//! are told by the order in which their members come to use them.
use crate::logical::Group;
use phasecast_trace::Trace;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The groups of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Groups {
    /// The groups; the world comes first.
    pub all: Vec<Group>,
    /// For each communicator of the trace its group, if its collectives are in the skeleton.
    of_comm: Vec<Option<u16>>,
    /// For each communicator, the places of its members.
    places: Vec<HashMap<u32, u32>>,
}

/// What one rank did in a communicator: how many collectives, and a hash of which.
pub type Part = (u64, u64);

impl Groups {
    /// The groups of `trace`; `used` has for each rank the communicators of its collectives as they came, and `parts`
    /// what it did in them. Returns also sentences about those that are left out.
    pub fn new(trace: &Trace, used: &[Vec<u32>], parts: &[BTreeMap<u32, Part>]) -> (Groups, Vec<String>) {
        let comms = trace.comms();
        // Communicators of the same ranks in the same order count as one.
        let mut first_of: HashMap<&[u32], u32> = HashMap::new();
        let same: Vec<u32> =
            comms.iter().enumerate().map(|(id, comm)| *first_of.entry(&comm.members).or_insert(id as u32)).collect();
        let (mut between, mut uneven) = (0u64, 0u64);
        let mut kept: BTreeSet<u32> = BTreeSet::new();
        let all_used: BTreeSet<u32> = used.iter().flatten().copied().collect();
        let mut fit = vec![false; comms.len()];
        for id in all_used {
            let Some(comm) = comms.get(id as usize) else { continue };
            let part = |rank: &u32| parts.get(*rank as usize).and_then(|parts| parts.get(&id));
            let first = comm.members.first().and_then(part);
            if !comm.remote.is_empty() {
                between += 1;
            } else if comm.members.iter().any(|rank| part(rank) != first) {
                uneven += 1;
            } else {
                fit[id as usize] = true;
                kept.insert(same[id as usize]);
            }
        }
        // Its number among the communicators of each of its members.
        let mut ordinals: HashMap<u32, BTreeSet<usize>> = HashMap::new();
        for own in used {
            let mut order: Vec<u32> = Vec::new();
            for id in own.iter().filter(|id| fit[**id as usize]).map(|id| same[*id as usize]) {
                if id != 0 && !order.contains(&id) {
                    order.push(id);
                }
            }
            order.iter().enumerate().for_each(|(place, id)| {
                ordinals.entry(*id).or_default().insert(place);
            });
        }
        let mut sorted: Vec<(usize, u32)> = kept
            .iter()
            .filter(|id| **id != 0)
            .map(|id| (ordinals.get(id).and_then(|places| places.first().copied()).unwrap_or(0), *id))
            .collect();
        sorted.sort_unstable();
        let world = Group { name: "WORLD".into(), members: vec![(0..trace.size()).collect()] };
        let (mut all, mut keys, mut group_of) = (vec![world], vec![usize::MAX], HashMap::from([(0u32, 0u16)]));
        for (ordinal, id) in sorted {
            let members = &comms[id as usize].members;
            let disjoint = |group: &Group| group.members.iter().flatten().all(|rank| !members.contains(rank));
            let place = (1..all.len()).find(|&place| keys[place] == ordinal && disjoint(&all[place]));
            let place = place.unwrap_or_else(|| {
                all.push(Group { name: format!("GROUP_{}", all.len()), members: Vec::new() });
                keys.push(ordinal);
                all.len() - 1
            });
            all[place].members.push(members.clone());
            group_of.insert(id, place as u16);
        }
        let of_comm = (0..comms.len()).map(|id| fit[id].then(|| group_of.get(&same[id]).copied()).flatten()).collect();
        let places = comms.iter().map(|comm| (0..).zip(&comm.members).map(|(place, rank)| (*rank, place)).collect());
        let mut left_out = Vec::new();
        if between > 0 {
            left_out.push(format!("collectives of {between} intercommunicators are left out"));
        }
        if uneven > 0 {
            left_out.push(format!(
                "collectives of {uneven} communicators are left out: not all members did the same in them"
            ));
        }
        (Groups { all, of_comm, places: places.collect() }, left_out)
    }

    /// The group of a communicator, if it has one.
    pub fn of(&self, comm: u32) -> Option<u16> {
        self.of_comm.get(comm as usize).copied().flatten()
    }

    /// The place of a rank in a communicator.
    pub fn place(&self, comm: u32, rank: i32) -> Option<u32> {
        self.places.get(comm as usize)?.get(&u32::try_from(rank).ok()?).copied()
    }
}
