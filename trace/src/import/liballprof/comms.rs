//! Who is in which communicator. The text names a communicator by the rank's own handle, its rank and the size: the
//! world and each rank's own are known by their size, those made by `MPI_Comm_split` from the colours and keys of all
//! ranks. Others remain unknown.
use super::line::CommKey;
use super::scan::Scan;
use std::collections::{BTreeMap, HashMap, HashSet};

/// The communicators of one rank.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// Numbers by key.
    pub(super) locals: HashMap<CommKey, u32>,
    /// Members by number; 0 is the world.
    pub(super) members: Vec<Vec<u32>>,
}

impl Known {
    fn add(&mut self, key: CommKey, members: Vec<u32>) {
        self.locals.insert(key, self.members.len() as u32);
        self.members.push(members);
    }
}

/// Finds the members of communicators; `scans` by rank.
pub(super) fn resolve(scans: &[Scan]) -> Vec<Known> {
    let size = scans.len() as u32;
    let world: Vec<u32> = (0..size).collect();
    let mut all = Vec::new();
    for (rank, scan) in (0u32..).zip(scans) {
        let mut known = Known::default();
        let mut keys: Vec<CommKey> = scan.comms.iter().map(|(key, _)| *key).collect();
        let is_world = |key: &CommKey| key.size == size && key.rank == rank;
        match keys.iter().position(is_world) {
            Some(at) => known.add(keys.remove(at), world.clone()),
            None => known.members.push(world.clone()),
        }
        for key in keys {
            if is_world(&key) {
                known.add(key, world.clone());
            } else if key.size == 1 {
                known.add(key, vec![rank]);
            }
        }
        all.push(known);
    }
    let mut queue = vec![world.clone()];
    let mut seen: HashSet<Vec<u32>> = queue.iter().cloned().collect();
    while let Some(parent) = queue.pop() {
        for group in split(scans, &mut all, &parent) {
            if seen.insert(group.clone()) {
                queue.push(group);
            }
        }
    }
    all
}

/// Follows the splits of the communicators with these members, and returns the groups that were found.
fn split(scans: &[Scan], all: &mut [Known], parent: &[u32]) -> Vec<Vec<u32>> {
    let calls: Vec<Vec<&super::scan::Split>> = parent
        .iter()
        .map(|&rank| {
            let known = &all[rank as usize];
            let of_parent = |key| known.locals.get(key).is_some_and(|&n| known.members[n as usize] == parent);
            scans[rank as usize].splits.iter().filter(|split| of_parent(&split.parent)).collect()
        })
        .collect();
    let mut found = Vec::new();
    for at in 0..calls.iter().map(Vec::len).min().unwrap_or(0) {
        let mut groups: BTreeMap<i64, Vec<(i64, usize)>> = BTreeMap::new();
        for (place, list) in calls.iter().enumerate().filter(|(_, list)| list[at].color >= 0) {
            groups.entry(list[at].color).or_default().push((list[at].key, place));
        }
        for mut group in groups.into_values() {
            group.sort_unstable();
            let members: Vec<u32> = group.iter().map(|(_, place)| parent[*place]).collect();
            for (position, (_, place)) in (0u32..).zip(&group) {
                let rank = parent[*place] as usize;
                let fits = |(key, line): &&(CommKey, u64)| {
                    key.rank == position
                        && key.size as usize == members.len()
                        && *line > calls[*place][at].line
                        && !all[rank].locals.contains_key(key)
                };
                if let Some((key, _)) = scans[rank].comms.iter().find(fits) {
                    all[rank].add(*key, members.clone());
                }
            }
            found.push(members);
        }
    }
    found
}
