//! What is known of communicators: whom their ranks are in the world, and a number that all members agree on without a
//! message (a hash of how the communicator came to be).
use crate::calls::lower;
use crate::library::Library;
use crate::session::Session;
use phasecast_abi::Kind;

/// A communicator.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Comm {
    /// World ranks of those that are sent to and received from (of the remote group if there is one); -1 for processes of
    /// other worlds.
    pub peers: Vec<i32>,
    /// World ranks of the own group.
    pub members: Vec<i32>,
    /// Whether it is an intercommunicator.
    pub inter: bool,
    /// Own rank.
    pub rank: i32,
    /// A number that is the same on all members.
    pub number: u64,
    /// Communicators made from it so far.
    pub children: u64,
    /// Persistent collectives made on it so far.
    pub persistent: u64,
}

/// Asks the library for a communicator's groups. `lower` is the library's handle, `world` that of all ranks.
pub fn query(library: &Library, lower: usize, world: usize, number: u64) -> Comm {
    let (mut inter, mut rank) = (0i32, 0i32);
    lower!(library, MPI_Comm_test_inter(lower, &raw mut inter));
    lower!(library, MPI_Comm_rank(lower, &raw mut rank));
    let (mut own, mut remote, mut all) = (0usize, 0usize, 0usize);
    lower!(library, MPI_Comm_group(world, &raw mut all));
    lower!(library, MPI_Comm_group(lower, &raw mut own));
    let members = world_ranks(library, own, all);
    lower!(library, MPI_Group_free(&raw mut own));
    let peers = if inter != 0 {
        lower!(library, MPI_Comm_remote_group(lower, &raw mut remote));
        let peers = world_ranks(library, remote, all);
        lower!(library, MPI_Group_free(&raw mut remote));
        peers
    } else {
        members.clone()
    };
    lower!(library, MPI_Group_free(&raw mut all));
    Comm { peers, members, inter: inter != 0, rank, number, children: 0, persistent: 0 }
}

fn world_ranks(library: &Library, group: usize, all: usize) -> Vec<i32> {
    let mut size = 0i32;
    lower!(library, MPI_Group_size(group, &raw mut size));
    let ranks: Vec<i32> = (0..size).collect();
    let mut world = vec![-1i32; ranks.len()];
    lower!(library, MPI_Group_translate_ranks(group, size, ranks.as_ptr(), all, world.as_mut_ptr()));
    world.into_iter().map(|rank| if rank >= 0 { rank } else { -1 }).collect()
}

/// The most neighbours that a neighbourhood collective on a communicator has in one direction.
pub fn degree(library: &Library, lower: usize) -> usize {
    let mut found = [0i32; 3];
    let at = &raw mut found as usize;
    if lower!(library, MPI_Topo_test(lower, at)) != 0 {
        return 0;
    }
    let topology = found[0];
    let named = |name| library.constant(name) == Some(topology as usize);
    if named("MPI_CART") {
        lower!(library, MPI_Cartdim_get(lower, at));
        2 * found[0].max(0) as usize
    } else if named("MPI_GRAPH") {
        let mut rank = 0i32;
        lower!(library, MPI_Comm_rank(lower, &raw mut rank));
        lower!(library, MPI_Graph_neighbors_count(lower, rank, at));
        found[0].max(0) as usize
    } else if named("MPI_DIST_GRAPH") {
        lower!(library, MPI_Dist_graph_neighbors_count(lower, at, at + 4, at + 8));
        found[0].max(found[1]).max(0) as usize
    } else {
        0
    }
}

/// A hash with one value more.
pub fn mix(hash: u64, value: u64) -> u64 {
    (hash ^ value).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(29)
}

/// The first value of a hash.
const BASIS: u64 = 0xcbf2_9ce4_8422_2325;

impl Comm {
    /// How many processes take part in what is done on it.
    pub fn processes(&self) -> usize {
        self.members.len() + if self.inter { self.peers.len() } else { 0 }
    }
}

impl Session {
    /// Takes note of the communicators that are there from the start.
    pub fn first_comms(&mut self) {
        for (number, name) in ["MPI_COMM_WORLD", "MPI_COMM_SELF"].into_iter().enumerate() {
            let (Some(above), Some(below)) = (self.values.above(name), self.library.constant(name)) else { continue };
            let world = self.library.constant("MPI_COMM_WORLD").unwrap_or(below);
            let number = if number == 0 { 1 } else { 2 + self.place.0 as u64 };
            let comm = query(self.library, below, world, number);
            self.add_comm(above, comm);
        }
    }

    /// The number of the call that all members of `parent` have made together, as its next constructor.
    pub fn number_of_child(&mut self, parent: usize) -> u64 {
        let Some(parent) = self.comms.get_mut(&parent) else { return 0 };
        parent.children += 1;
        mix(mix(BASIS, parent.number), parent.children)
    }

    /// Which of the persistent collectives on a communicator a new one is: the same for all its members.
    pub fn next_persistent(&mut self, comm: usize) -> u64 {
        let Some(comm) = self.comms.get_mut(&comm) else { return 0 };
        comm.persistent += 1;
        comm.persistent
    }

    /// The number of a call that only the members of the new communicator have made, with this tag.
    fn number_of_members(comm: &Comm, tag: i32) -> u64 {
        let mut every: Vec<i32> = comm.members.iter().chain(comm.peers.iter()).copied().collect();
        every.sort_unstable();
        every.dedup();
        every.into_iter().fold(mix(BASIS, tag as u64), |hash, member| mix(hash, member as u64))
    }

    /// Takes note of a new communicator with the program's handle `above`: made by all members of `parent`, or, if there
    /// is none, by its own.
    pub fn new_comm(&mut self, above: usize, parent: Option<usize>, tag: i32) {
        let below = self.down_handle(Kind::Communicator, above);
        let world = self.library.constant("MPI_COMM_WORLD").unwrap_or(below);
        let mut comm = query(self.library, below, world, 0);
        comm.number = match parent {
            Some(parent) => self.number_of_child(parent),
            None => Session::number_of_members(&comm, tag),
        };
        self.add_comm(above, comm);
    }
}
