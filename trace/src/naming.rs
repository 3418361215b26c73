//! One numbering for the whole run: of procedures, of communicators, and of time.
//!
//! A communicator is the same on two ranks if it has the same members in the same order and the same origin (which of its
//! parent's it is: ranks may make communicators of several parents at the same time, each in its own order), and is the
//! same of those with both that the rank defined (the first, the second, ...).
use crate::clock::Clock;
use crate::model::{CommDef, Origin};
use crate::rank_file::RankFile;
use crate::units::{CommId, ProcId};
use std::collections::HashMap;

/// A communicator of the run, the same for all ranks.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Comm {
    /// World ranks of its group, by rank in it; of an intercommunicator, the group whose list is the lesser.
    pub members: Vec<u32>,
    /// World ranks of the other group of an intercommunicator; else empty.
    pub remote: Vec<u32>,
    /// Counts the communicators with these members, from 0.
    pub ordinal: u32,
}

/// Collects the names of procedures.
#[derive(Default)]
pub(crate) struct ProcNames {
    ids: HashMap<String, ProcId>,
    names: Vec<String>,
}

impl ProcNames {
    /// The numbers of a rank's names; none if there are too many.
    pub(crate) fn add(&mut self, names: &[String]) -> Option<Vec<ProcId>> {
        let mut map = Vec::with_capacity(names.len());
        for name in names {
            let id = match self.ids.get(name) {
                Some(id) => *id,
                None => {
                    let id = ProcId(u16::try_from(self.names.len()).ok()?);
                    self.ids.insert(name.clone(), id);
                    self.names.push(name.clone());
                    id
                }
            };
            map.push(id);
        }
        Some(map)
    }

    pub(crate) fn finish(self) -> Vec<String> {
        self.names
    }
}

/// Members of a communicator and of its remote group.
type Lists = (Vec<u32>, Vec<u32>);

/// For each rank, its own numbers of communicators to those of the run.
pub(crate) type CommMaps = HashMap<u32, HashMap<u32, CommId>>;

/// Collects communicators: each list of members is kept once, however many ranks define it.
#[derive(Default)]
pub(crate) struct CommNames {
    groups: HashMap<Lists, usize>,
    /// How many communicators each group has.
    most: HashMap<usize, u32>,
    /// Which of its group's a communicator is, by the group, the origin, and the count of those with both.
    ordinals: HashMap<(usize, u64, u32), u32>,
    /// (rank, its own number, group, ordinal)
    uses: Vec<(u32, u32, usize, u32)>,
}

impl CommNames {
    pub(crate) fn add(&mut self, rank: u32, defs: Vec<CommDef>, origins: &[Origin]) {
        let origins: HashMap<u32, u64> = origins.iter().map(|origin| (origin.local, origin.number)).collect();
        let mut counts: HashMap<(usize, u64), u32> = HashMap::new();
        for def in defs {
            let (mut members, mut remote) = (def.members, def.remote);
            if !remote.is_empty() && remote < members {
                std::mem::swap(&mut members, &mut remote);
            }
            let next = self.groups.len();
            let group = *self.groups.entry((members, remote)).or_insert(next);
            let origin = origins.get(&def.local).copied().unwrap_or_default();
            let count = counts.entry((group, origin)).or_default();
            let most = self.most.entry(group).or_default();
            let ordinal = *self.ordinals.entry((group, origin, *count)).or_insert_with(|| {
                *most += 1;
                *most - 1
            });
            self.uses.push((rank, def.local, group, ordinal));
            *count += 1;
        }
    }

    /// The communicators of a run of `size` ranks, the world first, and what each rank calls them.
    pub(crate) fn finish(self, size: u32) -> (Vec<Comm>, CommMaps) {
        let world: Vec<u32> = (0..size).collect();
        let mut groups: Vec<(Lists, usize)> = self.groups.into_iter().collect();
        // The world first, then by members.
        groups.sort_unstable_by(|(a, _), (b, _)| {
            let is_other = |(members, remote): &Lists| *members != world || !remote.is_empty();
            is_other(a).cmp(&is_other(b)).then_with(|| a.cmp(b))
        });
        if groups.first().is_none_or(|((members, remote), _)| *members != world || !remote.is_empty()) {
            groups.insert(0, ((world, Vec::new()), usize::MAX));
        }
        // Numbers by ordinal first, so that those of one group are apart, but the world's own number is 0.
        let mut keys: Vec<(bool, u32, usize)> = Vec::new();
        for (place, (_, group)) in groups.iter().enumerate() {
            let count = self.most.get(group).copied().unwrap_or(u32::from(place == 0));
            keys.extend((0..count).map(|ordinal| (place != 0, ordinal, place)));
        }
        keys.sort_unstable();
        let mut ids = HashMap::new();
        let mut comms = Vec::with_capacity(keys.len());
        for (_, ordinal, place) in keys {
            let ((members, remote), group) = &groups[place];
            ids.insert((*group, ordinal), CommId(comms.len() as u32));
            comms.push(Comm { members: members.clone(), remote: remote.clone(), ordinal });
        }
        let mut maps = CommMaps::new();
        for (rank, local, group, ordinal) in self.uses {
            if let Some(id) = ids.get(&(group, ordinal)) {
                maps.entry(rank).or_default().insert(local, *id);
            }
        }
        (comms, maps)
    }
}

/// Aligns the ranks' clocks: by CLOCK_MONOTONIC within a host, by CLOCK_REALTIME between hosts.
pub(crate) fn clocks(files: &[RankFile]) -> Vec<Clock> {
    let mut hosts: HashMap<&str, i128> = HashMap::new();
    let mut starts = Vec::with_capacity(files.len());
    for file in files {
        let clock = &file.header.clock;
        let shift = *hosts
            .entry(&file.header.boot_id)
            .or_insert(i128::from(clock.realtime_ns) - i128::from(clock.monotonic_ns));
        starts.push(i128::from(clock.monotonic_ns) + shift);
    }
    let origin = starts.iter().copied().min().unwrap_or(0);
    let offset = |start: i128| u64::try_from(start - origin).unwrap_or(u64::MAX);
    files.iter().zip(starts).map(|(file, start)| Clock::new(&file.header.clock, file.sync, offset(start))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn communicators_of_several_parents_may_be_made_in_any_order() {
        let defs = |n: u32| (0..n).map(|local| CommDef { local, members: vec![0, 1], remote: vec![] }).collect();
        let origins = |numbers: &[(u32, u64)]| -> Vec<Origin> {
            numbers.iter().map(|&(local, number)| Origin { local, number }).collect()
        };
        let mut names = CommNames::default();
        names.add(0, defs(5), &origins(&[(1, 70), (2, 80), (3, 90)]));
        names.add(1, defs(6), &origins(&[(1, 90), (2, 70), (4, 80), (5, 80)]));
        let (comms, maps) = names.finish(2);
        assert_eq!(comms.iter().map(|comm| comm.ordinal).collect::<Vec<u32>>(), [0, 1, 2, 3, 4, 5]);
        let of = |rank: u32| (0..6).map_while(|local| maps[&rank].get(&local)).map(|id| id.0).collect::<Vec<u32>>();
        assert_eq!((of(0), of(1)), (vec![0, 1, 2, 3, 4], vec![0, 3, 1, 4, 2, 5]));
    }
}
