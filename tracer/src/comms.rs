//! Communicators (and windows and files, which stand for the communicator that they were made from), by handle.
//!
//! A communicator is known by the world ranks of its group and by its origin, which of its parent's it is: that costs no
//! communication. A handle is used again after its communicator was freed; the new one gets a number of its own.
use crate::finish;
use crate::real::{library, mpi};
use phasecast_abi::Layout;
use phasecast_trace::codec;
use phasecast_trace::frame::{Frame, Kind};
use phasecast_trace::model::{CommDef, Origin, PEER_ANY, PEER_NONE, PEER_PROC_NULL};
use phasecast_trace::writer::LEVEL;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// The ranks of a communicator. Communicators with the same ones share it.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Group {
    members: Vec<u32>,
    remote: Vec<u32>,
    /// World ranks of those that are sent to and received from, by rank; [`PEER_NONE`] for one of another world.
    peers: Vec<i32>,
    /// Each of them has the rank that it has in the world.
    identity: bool,
    inter: bool,
    /// Size of the local group.
    own: usize,
}

/// A communicator.
#[derive(Debug)]
pub struct Comm {
    /// Its number in our file.
    pub local: u32,
    /// This process's rank in it.
    pub rank: i32,
    /// The window that it stands for, if it is one that a window was made from.
    pub window: Option<Window>,
    group: &'static Group,
    /// As in a trace; 0 if it was not made by all members of another one.
    origin: u64,
    /// Communicators that were made from it.
    children: AtomicU32,
    outdegree: AtomicI32,
    /// Windows that were made from it.
    windows: AtomicU32,
}

/// A window.
#[derive(Debug, Default)]
pub struct Window {
    /// Its number among those that were made from its communicator.
    pub number: u32,
    /// World ranks of those to which this rank has opened its memory, and of those whose memory it has access to.
    pub epochs: Mutex<[Vec<i32>; 2]>,
}

impl Comm {
    fn new(local: u32, rank: i32, group: &'static Group, origin: u64) -> Comm {
        let (children, outdegree, windows) = (AtomicU32::new(0), AtomicI32::new(-1), AtomicU32::new(0));
        Comm { local, rank, window: None, group, origin, children, outdegree, windows }
    }

    /// The number of the next communicator that all its members make together.
    pub fn next_child(&self) -> u32 {
        self.children.fetch_add(1, Relaxed)
    }

    /// The origin of the communicator with this number.
    pub fn origin_of(&self, child: u32) -> u64 {
        xxh3_64_with_seed(&child.to_le_bytes(), self.origin).max(1)
    }

    /// The peer with this rank, as a trace has it.
    #[inline(always)]
    pub fn peer(&self, rank: i32, layout: &Layout) -> i32 {
        if let Some(&peer) = self.group.peers.get(rank as u32 as usize) {
            return if self.group.identity { rank } else { peer };
        }
        match rank {
            _ if rank == layout.proc_null => PEER_PROC_NULL,
            _ if rank == layout.any_source => PEER_ANY,
            _ => PEER_NONE,
        }
    }

    /// How many there are to send to in a collective.
    pub fn size(&self) -> usize {
        self.group.peers.len()
    }

    /// Size of the local group.
    pub fn own_size(&self) -> usize {
        self.group.own
    }

    /// Whether it is an intercommunicator.
    pub fn inter(&self) -> bool {
        self.group.inter
    }

    /// Number of neighbours that a neighbourhood collective sends to.
    pub fn outdegree(&self, handle: usize) -> usize {
        if self.outdegree.load(Relaxed) < 0 {
            self.outdegree.store(outdegree(handle, self.rank), Relaxed);
        }
        self.outdegree.load(Relaxed).max(0) as usize
    }
}

fn outdegree(handle: usize, rank: i32) -> i32 {
    let (mut topology, mut found) = (0i32, [0i32; 3]);
    if mpi!(MPI_Topo_test(handle, &raw mut topology)) != 0 {
        return 0;
    }
    let named = |name| library().and_then(|library| library.constant(name)) == Some(topology as usize);
    let at = &raw mut found;
    if named("MPI_CART") {
        mpi!(MPI_Cartdim_get(handle, at));
        2 * found[0]
    } else if named("MPI_GRAPH") {
        mpi!(MPI_Graph_neighbors_count(handle, rank, at));
        found[0]
    } else if named("MPI_DIST_GRAPH") {
        mpi!(MPI_Dist_graph_neighbors_count(handle, at, at as usize + 4, at as usize + 8));
        found[1]
    } else {
        0
    }
}

#[derive(Default)]
struct Known {
    by_handle: HashMap<usize, &'static Comm>,
    groups: HashSet<&'static Group>,
    next: u32,
}

static KNOWN: Mutex<Option<Known>> = Mutex::new(None);
/// Counts what was freed: what a thread remembers of handles is void when it has changed.
pub static GENERATION: AtomicU32 = AtomicU32::new(1);
static WORLD_GROUP: AtomicUsize = AtomicUsize::new(0);

fn known() -> MutexGuard<'static, Option<Known>> {
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a group query yields: own ranks, those of the remote group, peers, own rank, whether it is an intercommunicator.
struct Members {
    group: Group,
    rank: i32,
}

/// Defines the communicators that are there from the start. `world` is `MPI_COMM_WORLD`, or the first communicator of a
/// session; its group gives the world ranks.
pub fn start(world: usize, own: Option<usize>) {
    let mut group = 0usize;
    mpi!(MPI_Comm_group(world, &raw mut group));
    WORLD_GROUP.store(group, Relaxed);
    *known() = Some(Known::default());
    define(world, 0);
    if let Some(own) = own {
        define(own, 0);
    }
}

/// The communicator of a handle, which is defined now if it was not yet.
pub fn find(handle: usize) -> &'static Comm {
    let found = known().as_ref().and_then(|known| known.by_handle.get(&handle).copied());
    found.unwrap_or_else(|| define(handle, 0))
}

/// Defines a new communicator by asking MPI for its group.
pub fn define(handle: usize, origin: u64) -> &'static Comm {
    let members = query(handle);
    enter(handle, members, origin)
}

/// Defines a new communicator with the group of `model`, without asking MPI (it may still be under way).
pub fn define_like(handle: usize, model: &Comm, origin: u64) -> &'static Comm {
    let Group { members, remote, peers, identity, inter, own } = model.group;
    let group = Group {
        members: members.clone(),
        remote: remote.clone(),
        peers: peers.clone(),
        identity: *identity,
        inter: *inter,
        own: *own,
    };
    enter(handle, Members { group, rank: model.rank }, origin)
}

/// Lets a window stand for its communicator.
pub fn bind_window(handle: usize, comm: &'static Comm) {
    let window = Window { number: comm.windows.fetch_add(1, Relaxed), ..Window::default() };
    bind(
        handle,
        Box::leak(Box::new(Comm { window: Some(window), ..Comm::new(comm.local, comm.rank, comm.group, comm.origin) })),
    );
}

/// Lets a file stand for its communicator.
pub fn bind(handle: usize, comm: &'static Comm) {
    if let Some(known) = known().as_mut() {
        known.by_handle.insert(handle, comm);
    }
    GENERATION.fetch_add(1, Relaxed);
}

/// Forgets a handle that is about to be freed.
pub fn forget(handle: usize) {
    if let Some(known) = known().as_mut() {
        known.by_handle.remove(&handle);
    }
    GENERATION.fetch_add(1, Relaxed);
}

/// The communicator of an object whose communicator is not known: the world.
pub fn object(handle: usize) -> &'static Comm {
    let guard = known();
    let found = guard.as_ref().and_then(|known| {
        known.by_handle.get(&handle).or_else(|| known.by_handle.values().find(|comm| comm.local == 0)).copied()
    });
    drop(guard);
    found.unwrap_or_else(|| define(handle, 0))
}

fn enter(handle: usize, Members { group, rank }: Members, origin: u64) -> &'static Comm {
    let mut guard = known();
    let known = guard.get_or_insert_default();
    let group: &'static Group = match known.groups.get(&group) {
        Some(group) => group,
        None => {
            let group = Box::leak(Box::new(group));
            known.groups.insert(group);
            group
        }
    };
    let local = known.next;
    known.next += 1;
    let comm: &'static Comm = Box::leak(Box::new(Comm::new(local, rank, group, origin)));
    known.by_handle.insert(handle, comm);
    GENERATION.fetch_add(1, Relaxed);
    let defs = [CommDef { local, members: group.members.clone(), remote: group.remote.clone() }];
    let frame = Frame::new(Kind::Comms).with_payload(&codec::to_bytes(&defs.as_slice()), Some(LEVEL));
    finish::append(&frame);
    if origin != 0 {
        let origins = codec::to_bytes(&[Origin { local, number: origin }].as_slice());
        finish::append(&Frame::new(Kind::Origins).with_payload(&origins, None));
    }
    comm
}

fn query(handle: usize) -> Members {
    let (mut inter, mut rank, mut own, mut remote) = (0i32, 0i32, 0usize, 0usize);
    mpi!(MPI_Comm_test_inter(handle, &raw mut inter));
    mpi!(MPI_Comm_rank(handle, &raw mut rank));
    mpi!(MPI_Comm_group(handle, &raw mut own));
    let members = world_ranks(own);
    mpi!(MPI_Group_free(&raw mut own));
    let mut others = Vec::new();
    if inter != 0 {
        mpi!(MPI_Comm_remote_group(handle, &raw mut remote));
        others = world_ranks(remote);
        mpi!(MPI_Group_free(&raw mut remote));
    }
    let of_this_world = |ranks: &[i32]| ranks.iter().filter_map(|&rank| u32::try_from(rank).ok()).collect::<Vec<u32>>();
    let size = members.len();
    let (mine, theirs) = (of_this_world(&members), of_this_world(&others));
    let peers = if inter != 0 { others } else { members };
    let identity = peers.iter().enumerate().all(|(i, &rank)| rank == i as i32);
    Members { group: Group { members: mine, remote: theirs, peers, identity, inter: inter != 0, own: size }, rank }
}

/// World ranks of a group's members; [`PEER_NONE`] for those of another world.
pub fn world_ranks(group: usize) -> Vec<i32> {
    let mut size = 0i32;
    mpi!(MPI_Group_size(group, &raw mut size));
    let ranks: Vec<i32> = (0..size).collect();
    let mut world = vec![PEER_NONE; ranks.len()];
    mpi!(MPI_Group_translate_ranks(group, size, ranks.as_ptr(), WORLD_GROUP.load(Relaxed), world.as_mut_ptr()));
    world.into_iter().map(|rank| if rank >= 0 { rank } else { PEER_NONE }).collect()
}

#[cfg(test)]
pub fn for_tests() -> &'static Comm {
    made(&[2, 0, 1], &[])
}

#[cfg(test)]
fn made(members: &[u32], remote: &[u32]) -> &'static Comm {
    let peers: Vec<i32> = if remote.is_empty() { members } else { remote }.iter().map(|&rank| rank as i32).collect();
    let identity = peers.iter().enumerate().all(|(i, &rank)| rank == i as i32);
    let (inter, own) = (!remote.is_empty(), members.len());
    let group = Group { members: members.to_vec(), remote: remote.to_vec(), peers, identity, inter, own };
    let group = Box::leak(Box::new(group));
    Box::leak(Box::new(Comm::new(7, 0, group, 0)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use phasecast_abi::Abi;

    #[test]
    fn ranks_become_world_ranks() {
        for abi in Abi::ALL {
            let layout = abi.layout();
            let comm = made(&[2, 0, 1], &[]);
            assert_eq!([0, 1, 2].map(|rank| comm.peer(rank, layout)), [2, 0, 1]);
            assert_eq!(comm.peer(layout.proc_null, layout), PEER_PROC_NULL);
            assert_eq!(comm.peer(layout.any_source, layout), PEER_ANY);
            assert_eq!(comm.peer(3, layout), PEER_NONE);
            let between = made(&[0, 1], &[4, 3, 5]);
            assert_eq!((between.peer(1, layout), between.size(), between.inter()), (3, 3, true));
            assert_eq!(made(&[0, 1, 2], &[]).peer(2, layout), 2);
        }
    }

    #[test]
    fn a_handle_used_again_gets_a_new_number() {
        let model = made(&[1, 3], &[]);
        let first = define_like(0x1000, model, 0);
        assert_eq!(find(0x1000).local, first.local);
        bind(0x2000, first);
        assert_eq!(object(0x2000).local, first.local);
        let generation = GENERATION.load(Relaxed);
        forget(0x1000);
        assert_ne!(GENERATION.load(Relaxed), generation);
        let second = define_like(0x1000, model, 5);
        assert!(second.local > first.local);
        assert!(std::ptr::eq(second.group, first.group));
        assert_eq!(find(0x1000).local, second.local);
    }
}
