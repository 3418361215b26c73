//! The global definitions of an OTF2 archive: names, ranks, communicators, the clock.
use super::library::{CONTINUE, Verdict};
use crate::model::PEER_NONE;
use crate::units::ProcId;
use phasecast_abi as abi;
use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_void};

const MPI: u8 = 4;
const CPU_THREAD: u8 = 1;
const LOCATIONS: u8 = 1;
const COMM_LOCATIONS: u8 = 4;
const COMM_GROUP: u8 = 5;
const COMM_SELF: u8 = 6;
/// The most ranks that are imported.
const MAX_RANKS: usize = 1 << 20;
/// Procedures of records that stand outside of any region, collectives in the order of OTF2's numbers.
pub(super) const BARE: [&str; 21] = [
    "MPI_Barrier",
    "MPI_Bcast",
    "MPI_Gather",
    "MPI_Gatherv",
    "MPI_Scatter",
    "MPI_Scatterv",
    "MPI_Allgather",
    "MPI_Allgatherv",
    "MPI_Alltoall",
    "MPI_Alltoallv",
    "MPI_Alltoallw",
    "MPI_Allreduce",
    "MPI_Reduce",
    "MPI_Reduce_scatter",
    "MPI_Scan",
    "MPI_Exscan",
    "MPI_Reduce_scatter_block",
    "MPI_Send",
    "MPI_Isend",
    "MPI_Recv",
    "MPI_Wait",
];

/// One thread of a process.
#[derive(Clone, Copy, Debug)]
pub(super) struct Location {
    pub(super) id: u64,
    kind: u8,
    pub(super) events: u64,
    process: u32,
}

struct Group {
    kind: u8,
    paradigm: u8,
    members: Vec<u64>,
}

/// What the callbacks collect.
#[derive(Default)]
pub(super) struct Definitions {
    resolution: u64,
    offset: u64,
    strings: HashMap<u32, String>,
    regions: Vec<(u32, u32, u32)>,
    locations: Vec<Location>,
    groups: HashMap<u32, Group>,
    comms: Vec<(u32, u32)>,
}

/// The definitions as they are used.
pub(super) struct World {
    /// Locations of each rank, its main thread first.
    pub(super) ranks: Vec<Vec<Location>>,
    /// Names of procedures; those of [`BARE`] come first.
    pub(super) names: Vec<String>,
    /// Procedures by region.
    pub(super) regions: HashMap<u32, ProcId>,
    /// World ranks of each communicator, and whether it is a self-like one.
    pub(super) comms: HashMap<u32, Vec<u32>>,
    /// Self-like communicators.
    pub(super) selves: Vec<u32>,
    /// Communicators in the order of their numbers.
    pub(super) order: Vec<u32>,
    resolution: u64,
    offset: u64,
}

impl Definitions {
    /// Puts the definitions together; a sentence if they describe no MPI program.
    pub(super) fn world(mut self) -> Result<World, String> {
        let mpi = self.groups.iter().filter(|(_, g)| g.kind == COMM_LOCATIONS && g.paradigm == MPI);
        let main: Option<Vec<u64>> =
            // Of several the one with the lowest number, so that the same archive is always the same trace.
            mpi.min_by_key(|(id, _)| **id).map(|(_, group)| group.members.clone());
        let by_id: HashMap<u64, Location> = self.locations.iter().map(|l| (l.id, *l)).collect();
        let main = main.ok_or("it defines no MPI ranks (no group of MPI locations)")?;
        let location = |(rank, id)| {
            by_id.get(id).copied().ok_or_else(|| format!("it does not define location {id}, of MPI rank {rank}"))
        };
        let main: Vec<Location> = main.iter().enumerate().map(location).collect::<Result<_, String>>()?;
        if main.is_empty() || main.len() > MAX_RANKS {
            return Err(format!("it defines {} MPI ranks", main.len()));
        }
        let rank_of: HashMap<u64, u32> = (0u32..).zip(&main).map(|(rank, l)| (l.id, rank)).collect();
        let mut ranks: Vec<Vec<Location>> = main.iter().map(|l| vec![*l]).collect();
        let processes: HashMap<u32, usize> = main.iter().enumerate().map(|(rank, l)| (l.process, rank)).collect();
        for location in self.locations.iter().filter(|l| l.kind == CPU_THREAD && !rank_of.contains_key(&l.id)) {
            if let Some(rank) = processes.get(&location.process).filter(|_| location.events > 0) {
                ranks[*rank].push(*location);
            }
        }
        self.comms.sort_unstable();
        let (mut comms, mut selves) = (HashMap::new(), Vec::new());
        for (comm, group) in &self.comms {
            let Some(group) = self.groups.get(group).filter(|g| g.paradigm == MPI) else { continue };
            let rank = |n: &u64| match group.kind {
                COMM_GROUP => u32::try_from(*n).ok().filter(|&n| (n as usize) < main.len()),
                COMM_LOCATIONS | LOCATIONS => rank_of.get(n).copied(),
                _ => None,
            };
            if group.kind == COMM_SELF {
                selves.push(*comm);
            } else if let Some(members) = group.members.iter().map(rank).collect() {
                comms.insert(*comm, members);
            }
        }
        let order = self.comms.iter().map(|(comm, _)| *comm).collect();
        let (names, regions) = self.procedures();
        Ok(World { ranks, names, regions, comms, selves, order, resolution: self.resolution, offset: self.offset })
    }

    fn procedures(&self) -> (Vec<String>, HashMap<u32, ProcId>) {
        let known: HashMap<String, &str> =
            abi::PROCEDURES.iter().map(|p| (p.name.to_ascii_lowercase(), p.name)).collect();
        let mut names: Vec<String> = BARE.iter().map(|n| (*n).to_string()).collect();
        let mut ids: HashMap<String, ProcId> = (0..).zip(&names).map(|(id, n)| (n.clone(), ProcId(id))).collect();
        let mut regions = HashMap::new();
        for (region, name, canonical) in &self.regions {
            let texts = [name, canonical].into_iter().filter_map(|id| self.strings.get(id));
            let procedure = texts.filter(|t| t.len() > 4 && t.is_char_boundary(4)).find_map(|text| {
                let lower = text.to_ascii_lowercase();
                let bare = lower.trim_end_matches('_');
                let name = known.get(bare).map(|n| (*n).to_string());
                name.or_else(|| (lower.starts_with("mpi_") && text.len() <= 64).then(|| text.clone()))
            });
            let Some(procedure) = procedure else { continue };
            if names.len() >= usize::from(u16::MAX) && !ids.contains_key(&procedure) {
                continue;
            }
            let id = *ids.entry(procedure).or_insert_with_key(|name| {
                names.push(name.clone());
                ProcId((names.len() - 1) as u16)
            });
            regions.insert(*region, id);
        }
        (names, regions)
    }
}

impl World {
    /// A time of the archive in ns from its start.
    pub(super) fn nanos(&self, time: u64) -> u64 {
        let ticks = u128::from(time.saturating_sub(self.offset));
        let ns = ticks * 1_000_000_000 / u128::from(self.resolution.max(1));
        // Half of what a number can hold: the codec doubles the differences of times.
        ns.min(u128::from(u64::MAX >> 1)) as u64
    }

    /// Members of a communicator, at least 1.
    pub(super) fn members(&self, comm: u32) -> usize {
        self.comms.get(&comm).map_or(1, Vec::len).max(1)
    }

    /// The world rank of `rank` in a communicator, as a peer; none if it is not defined.
    pub(super) fn peer(&self, own: u32, comm: u32, rank: u32) -> Option<i32> {
        if rank == u32::MAX {
            return Some(PEER_NONE);
        }
        if self.selves.contains(&comm) {
            return Some(own as i32);
        }
        self.comms.get(&comm)?.get(rank as usize).map(|&rank| rank as i32)
    }
}

/// The definitions behind the user data of a callback.
///
/// # Safety
/// `user` must be the pointer that was registered: a `Definitions` that nobody else uses while definitions are read.
unsafe fn definitions<'a>(user: *mut c_void) -> &'a mut Definitions {
    // SAFETY: the caller's promise.
    unsafe { &mut *user.cast::<Definitions>() }
}

/// OTF2's callback of the clock.
pub(super) unsafe extern "C" fn clock(user: *mut c_void, resolution: u64, offset: u64, _: u64, _: u64) -> Verdict {
    // SAFETY: OTF2 hands on the pointer that was registered with it.
    let definitions = unsafe { definitions(user) };
    (definitions.resolution, definitions.offset) = (resolution, offset);
    CONTINUE
}

/// OTF2's callback of a string.
pub(super) unsafe extern "C" fn string(user: *mut c_void, id: u32, text: *const c_char) -> Verdict {
    if !text.is_null() {
        // SAFETY: it is not null, and OTF2's strings end with a zero.
        let text = unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned();
        // SAFETY: OTF2 hands on the pointer that was registered with it.
        unsafe { definitions(user) }.strings.insert(id, text);
    }
    CONTINUE
}

/// OTF2's callback of a location.
pub(super) unsafe extern "C" fn location(
    user: *mut c_void,
    id: u64,
    _: u32,
    kind: u8,
    events: u64,
    process: u32,
) -> Verdict {
    // SAFETY: OTF2 hands on the pointer that was registered with it.
    unsafe { definitions(user) }.locations.push(Location { id, kind, events, process });
    CONTINUE
}

/// OTF2's callback of a region.
pub(super) unsafe extern "C" fn region(
    user: *mut c_void,
    id: u32,
    name: u32,
    canonical: u32,
    _: u32,
    _: u8,
    _: u8,
    _: u32,
    _: u32,
    _: u32,
    _: u32,
) -> Verdict {
    // SAFETY: OTF2 hands on the pointer that was registered with it.
    unsafe { definitions(user) }.regions.push((id, name, canonical));
    CONTINUE
}

/// OTF2's callback of a group.
pub(super) unsafe extern "C" fn group(
    user: *mut c_void,
    id: u32,
    _: u32,
    kind: u8,
    paradigm: u8,
    _: u32,
    count: u32,
    members: *const u64,
) -> Verdict {
    let members = if members.is_null() || count == 0 {
        Vec::new()
    } else {
        // SAFETY: OTF2 passes an array of `count` numbers that lives during the call.
        unsafe { std::slice::from_raw_parts(members, count as usize) }.to_vec()
    };
    // SAFETY: OTF2 hands on the pointer that was registered with it.
    unsafe { definitions(user) }.groups.insert(id, Group { kind, paradigm, members });
    CONTINUE
}

/// OTF2's callback of a communicator. (Version 3 passes flags as one more argument, which C allows to be left out.)
pub(super) unsafe extern "C" fn comm(user: *mut c_void, id: u32, _: u32, group: u32, _: u32) -> Verdict {
    // SAFETY: OTF2 hands on the pointer that was registered with it.
    unsafe { definitions(user) }.comms.push((id, group));
    CONTINUE
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two ranks, and a communicator of this group.
    fn defined(kind: u8, members: &[u64]) -> Definitions {
        let mut made = Definitions { comms: vec![(7, 1)], ..Definitions::default() };
        made.locations = [30, 40].map(|id| Location { id, kind: CPU_THREAD, events: 0, process: id as u32 }).into();
        made.groups.insert(0, Group { kind: COMM_LOCATIONS, paradigm: MPI, members: vec![30, 40] });
        made.groups.insert(1, Group { kind, paradigm: MPI, members: members.into() });
        made
    }

    #[test]
    fn groups_are_of_locations_or_of_ranks() {
        let members = |kind, members: &[u64]| defined(kind, members).world().unwrap().comms.get(&7).cloned();
        // OTF2_GROUP_TYPE_LOCATIONS is 1, the group of regions 2.
        assert_eq!(members(1, &[40, 30]), Some(vec![1, 0]));
        assert_eq!(members(2, &[40, 30]), None);
        assert_eq!(members(COMM_GROUP, &[1]), Some(vec![1]));
    }

    #[test]
    fn a_rank_without_a_location_is_refused() {
        let mut made = defined(COMM_GROUP, &[0, 1]);
        made.locations.remove(0);
        assert!(made.world().err().unwrap().contains("location 30, of MPI rank 0"));
    }
}
