//! What the procedures of a trace do, looked up once by name in the table of all MPI procedures.
use phasecast_abi::{Class, Pattern, SendMode, Which, by_name};
use phasecast_trace::Trace;

/// Whom a rank's part in a collective waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waits {
    /// For all ranks.
    ForAll,
    /// For the root, unless it is the root.
    ForRoot,
    /// For all ranks, if it is the root.
    IfRoot,
    /// For the ranks before it.
    ForLower,
    /// For neighbours, which a trace does not name: for none that is known.
    ForNobody,
}

/// How a completing call goes about its requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completes {
    /// It waits for one.
    One,
    /// It waits for all.
    All,
    /// It waits for some, or does not wait.
    Open,
}

/// How the costs of a collective grow from a number of ranks to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Growth {
    /// With each doubling.
    Doublings,
    /// With each further rank, which brings a block of so many bytes.
    Ranks,
    /// The messages with each further rank; the bytes are those for all of them together.
    Messages,
}

/// Ranks among which a collective of neighbours counts: one with four neighbours, as on a plane.
const NEIGHBOURS: u32 = 5;

/// Where a procedure stands in the life of MPI, in which all ranks wait for each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// It starts MPI.
    Init,
    /// It ends it.
    Finalize,
}

/// What the transformation must know of a procedure.
#[derive(Clone, Debug)]
pub struct Role {
    /// Its name.
    pub name: String,
    /// A send that never waits for its receive.
    pub buffered: bool,
    /// A send that always does.
    pub synchronous: bool,
    /// How it completes requests.
    pub completes: Completes,
    /// Whom it waits for.
    pub waits: Waits,
    /// What a machine file calls it.
    pub costs_as: &'static str,
    /// How its costs grow with the ranks.
    pub growth: Growth,
    /// The most ranks that its costs depend on.
    pub most_ranks: u32,
    /// A root sends each rank a block, and its event has them all.
    pub scatters: bool,
    /// It sends or is a collective: a persistent form of it makes a request that does, once it is started.
    pub starts: bool,
    /// Whether it starts or ends MPI.
    pub life: Option<Life>,
    /// A probe that waits.
    pub probe: bool,
}

/// The roles of all procedures of a trace, by their numbers.
pub fn roles(trace: &Trace) -> Vec<Role> {
    trace.procedures().iter().map(|name| role(name)).collect()
}

fn role(name: &str) -> Role {
    let mut role = Role {
        name: name.to_owned(),
        buffered: false,
        synchronous: false,
        completes: Completes::Open,
        waits: Waits::ForAll,
        costs_as: "MPI_Barrier",
        growth: Growth::Doublings,
        most_ranks: u32::MAX,
        scatters: false,
        starts: false,
        life: None,
        probe: false,
    };
    let Some(procedure) = by_name(name).and_then(|id| id.get()) else { return role };
    role.starts = procedure.class.sends();
    match procedure.class {
        Class::Send { mode, .. } => {
            role.buffered = mode == SendMode::Buffered;
            role.synchronous = mode == SendMode::Synchronous;
        }
        Class::Completion { blocking: true, which: Which::One } => role.completes = Completes::One,
        Class::Completion { blocking: true, which: Which::All } => role.completes = Completes::All,
        Class::Probe { blocking, .. } => role.probe = blocking,
        Class::Init => role.life = Some(Life::Init),
        Class::Finalize => role.life = Some(Life::Finalize),
        Class::Collective { pattern, neighbourhood, .. } => {
            (role.costs_as, role.waits, role.growth) = match pattern {
                Pattern::Barrier => ("MPI_Barrier", Waits::ForAll, Growth::Doublings),
                Pattern::Bcast => ("MPI_Bcast", Waits::ForRoot, Growth::Doublings),
                Pattern::Gather => ("MPI_Gather", Waits::IfRoot, Growth::Ranks),
                Pattern::Scatter => ("MPI_Scatter", Waits::ForRoot, Growth::Ranks),
                Pattern::Allgather => ("MPI_Allgather", Waits::ForAll, Growth::Ranks),
                Pattern::Alltoall => ("MPI_Alltoall", Waits::ForAll, Growth::Messages),
                Pattern::Reduce => ("MPI_Reduce", Waits::IfRoot, Growth::Doublings),
                Pattern::Allreduce => ("MPI_Allreduce", Waits::ForAll, Growth::Doublings),
                Pattern::ReduceScatter | Pattern::ReduceScatterBlock => {
                    ("MPI_Reduce_scatter", Waits::ForAll, Growth::Doublings)
                }
                Pattern::Scan => ("MPI_Scan", Waits::ForLower, Growth::Doublings),
                Pattern::Exscan => ("MPI_Exscan", Waits::ForLower, Growth::Doublings),
            };
            role.scatters = pattern == Pattern::Scatter;
            if neighbourhood {
                (role.waits, role.most_ranks) = (Waits::ForNobody, NEIGHBOURS);
            }
        }
        _ => {}
    }
    role
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn procedures_are_known_by_their_names() {
        assert!(role("MPI_Ssend").synchronous && role("MPI_Ibsend").buffered && !role("MPI_Send").buffered);
        assert_eq!(role("MPI_Wait").completes, Completes::One);
        assert_eq!(role("MPI_Waitall").completes, Completes::All);
        assert_eq!(role("MPI_Test").completes, Completes::Open);
        assert_eq!((role("MPI_Ibcast").waits, role("MPI_Ibcast").costs_as), (Waits::ForRoot, "MPI_Bcast"));
        assert_eq!((role("MPI_Gatherv").waits, role("MPI_Scan").waits), (Waits::IfRoot, Waits::ForLower));
        assert_eq!(
            (role("MPI_Ineighbor_alltoall").waits, role("MPI_Alltoall").waits),
            (Waits::ForNobody, Waits::ForAll)
        );
        assert!(role("MPI_Ssend_init").starts && role("MPI_Ssend_init").synchronous && !role("MPI_Recv_init").starts);
        assert_eq!(
            ["MPI_Finalize", "MPI_Init_thread", "send"].map(|name| role(name).life),
            [Some(Life::Finalize), Some(Life::Init), None]
        );
        assert!(role("MPI_Mprobe").probe && !role("MPI_Iprobe").probe);
    }
}
