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
    /// It takes longer with each further rank, rather than with each doubling.
    pub linear: bool,
    /// It starts or ends MPI: all ranks wait for each other.
    pub life: bool,
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
        linear: false,
        life: false,
        probe: false,
    };
    let Some(procedure) = by_name(name).and_then(|id| id.get()) else { return role };
    match procedure.class {
        Class::Send { mode, .. } => {
            role.buffered = mode == SendMode::Buffered;
            role.synchronous = mode == SendMode::Synchronous;
        }
        Class::Completion { blocking: true, which: Which::One } => role.completes = Completes::One,
        Class::Completion { blocking: true, which: Which::All } => role.completes = Completes::All,
        Class::Probe { blocking, .. } => role.probe = blocking,
        Class::Init | Class::Finalize => role.life = true,
        Class::Collective { pattern, .. } => {
            (role.costs_as, role.waits, role.linear) = match pattern {
                Pattern::Barrier => ("MPI_Barrier", Waits::ForAll, false),
                Pattern::Bcast => ("MPI_Bcast", Waits::ForRoot, false),
                Pattern::Gather => ("MPI_Gather", Waits::IfRoot, true),
                Pattern::Scatter => ("MPI_Scatter", Waits::ForRoot, true),
                Pattern::Allgather => ("MPI_Allgather", Waits::ForAll, true),
                Pattern::Alltoall => ("MPI_Alltoall", Waits::ForAll, true),
                Pattern::Reduce => ("MPI_Reduce", Waits::IfRoot, false),
                Pattern::Allreduce => ("MPI_Allreduce", Waits::ForAll, false),
                Pattern::ReduceScatter | Pattern::ReduceScatterBlock => ("MPI_Reduce_scatter", Waits::ForAll, false),
                Pattern::Scan => ("MPI_Scan", Waits::ForLower, false),
                Pattern::Exscan => ("MPI_Exscan", Waits::ForLower, false),
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
        assert!(role("MPI_Finalize").life && role("MPI_Init_thread").life && !role("send").life);
        assert!(role("MPI_Mprobe").probe && !role("MPI_Iprobe").probe);
    }
}
