//! Who is in which communicator. The text names a communicator by the rank's own handle, its rank and the size: the
//! world and each rank's own are known by their size, those made by `MPI_Comm_split` from the colours and keys of all
//! ranks, where no other split can have made them. Others remain unknown.
use super::line::CommKey;
use super::scan::{Scan, Split};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::rc::Rc;

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
    let world = Rc::new(world);
    let mut search = Search {
        scans,
        makers: scans.iter().map(|scan| vec![Maker::default(); scan.splits.len()]).collect(),
        known: all,
        seen: HashSet::from([world.clone()]),
        groups: vec![world],
    };
    while search.round() {}
    search.known
}

/// What is known of one rank's call of `MPI_Comm_split`.
#[derive(Clone, Default)]
struct Maker {
    /// Members of what it makes, and the rank's place among them; none as long as its parent is unknown.
    group: Option<(u32, Rc<Vec<u32>>)>,
    /// The communicator is found.
    found: bool,
}

/// The communicator of a split cannot be told from that of another.
struct Ambiguous;

struct Search<'a> {
    scans: &'a [Scan],
    /// By rank and split.
    makers: Vec<Vec<Maker>>,
    known: Vec<Known>,
    /// The members of communicators, each list once.
    groups: Vec<Rc<Vec<u32>>>,
    seen: HashSet<Rc<Vec<u32>>>,
}

impl Search<'_> {
    /// Follows the splits of all groups; true if a communicator was found. It may be the parent of further splits, or
    /// leave another without a rival.
    fn round(&mut self) -> bool {
        let (mut at, mut found) = (0, false);
        while let Some(parent) = self.groups.get(at).cloned() {
            for makers in self.splits(&parent) {
                found |= self.find(&makers);
            }
            at += 1;
        }
        found
    }

    /// The splits of the communicators with these members: the rank and the number of each call that makes a group.
    fn splits(&mut self, parent: &[u32]) -> Vec<Vec<(usize, usize)>> {
        let calls: Vec<Vec<usize>> = parent
            .iter()
            .map(|&rank| {
                let (known, splits) = (&self.known[rank as usize], &self.scans[rank as usize].splits);
                let of_parent = |key| known.locals.get(key).is_some_and(|&n| known.members[n as usize] == parent);
                (0..splits.len()).filter(|&split| of_parent(&splits[split].parent)).collect()
            })
            .collect();
        let mut found = Vec::new();
        for at in 0..calls.iter().map(Vec::len).min().unwrap_or(0) {
            let mut groups: BTreeMap<i64, Vec<(i64, usize)>> = BTreeMap::new();
            for (place, list) in calls.iter().enumerate() {
                let split = &self.scans[parent[place] as usize].splits[list[at]];
                if split.color >= 0 {
                    groups.entry(split.color).or_default().push((split.key, place));
                }
            }
            for mut group in groups.into_values() {
                group.sort_unstable();
                let members: Rc<Vec<u32>> = Rc::new(group.iter().map(|(_, place)| parent[*place]).collect());
                let makers: Vec<_> =
                    group.iter().map(|(_, place)| (parent[*place] as usize, calls[*place][at])).collect();
                for (position, &(rank, split)) in (0u32..).zip(&makers) {
                    self.makers[rank][split].group = Some((position, members.clone()));
                }
                if self.seen.insert(members.clone()) {
                    self.groups.push(members);
                }
                found.push(makers);
            }
        }
        found
    }

    /// Finds the communicator of a group in the files of its members; in none of them if one leaves it open.
    fn find(&mut self, makers: &[(usize, usize)]) -> bool {
        let keys: Result<Vec<Option<CommKey>>, Ambiguous> =
            makers.iter().map(|&(rank, split)| self.made_by(rank, split)).collect();
        let mut found = false;
        for (key, &(rank, split)) in keys.unwrap_or_default().into_iter().zip(makers) {
            let maker = &mut self.makers[rank][split];
            if let (Some(key), Some((_, members))) = (key, &maker.group) {
                self.known[rank].add(key, members.to_vec());
                maker.found = true;
                found = true;
            }
        }
        found
    }

    /// The first unknown communicator after a split with the rank and size that it gives; none if there is none.
    fn made_by(&self, rank: usize, split: usize) -> Result<Option<CommKey>, Ambiguous> {
        let (scan, makers, known) = (&self.scans[rank], &self.makers[rank], &self.known[rank]);
        let Maker { group: Some((position, members)), found: false } = &makers[split] else { return Ok(None) };
        let fits = |(key, line): &&(CommKey, u64)| {
            key.rank == *position
                && key.size as usize == members.len()
                && *line > scan.splits[split].line
                && !known.locals.contains_key(key)
        };
        let Some((key, first_use)) = scan.comms.iter().find(fits) else { return Ok(None) };
        let rival = |(other, maker): (&Split, &Maker)| match &maker.group {
            _ if maker.found || other.color < 0 || other.line >= *first_use => false,
            Some((place, others)) => place == position && others.len() == members.len() && others != members,
            None => key.size <= other.parent.size,
        };
        if scan.splits.iter().zip(makers).any(rival) { Err(Ambiguous) } else { Ok(Some(*key)) }
    }
}
