//! One numbering for the whole run: of procedures, of communicators, and of time.
//!
//! A communicator is the same on two ranks if it has the same members in the same order and is the same of those that
//! the rank defined (the first, the second, ...): communicators are made by all of their members together.
use crate::clock::Clock;
use crate::model::CommDef;
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
    /// (rank, its own number, group, ordinal)
    uses: Vec<(u32, u32, usize, u32)>,
}

impl CommNames {
    pub(crate) fn add(&mut self, rank: u32, defs: Vec<CommDef>) {
        let mut counts: HashMap<usize, u32> = HashMap::new();
        for def in defs {
            let (mut members, mut remote) = (def.members, def.remote);
            if !remote.is_empty() && remote < members {
                std::mem::swap(&mut members, &mut remote);
            }
            let next = self.groups.len();
            let group = *self.groups.entry((members, remote)).or_insert(next);
            let count = counts.entry(group).or_default();
            self.uses.push((rank, def.local, group, *count));
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
        let mut most: HashMap<usize, u32> = HashMap::new();
        for (_, _, group, ordinal) in &self.uses {
            let count = most.entry(*group).or_default();
            *count = (*count).max(ordinal + 1);
        }
        // Numbers by ordinal first, so that those of one group are apart, but the world's own number is 0.
        let mut keys: Vec<(bool, u32, usize)> = Vec::new();
        for (place, (_, group)) in groups.iter().enumerate() {
            let count = most.get(group).copied().unwrap_or(u32::from(place == 0));
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
