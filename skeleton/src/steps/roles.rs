//! What the procedures of a trace do, looked up once by name in the table of all MPI procedures.
use crate::logical::Mode;
use phasecast_abi::{Class, SendMode, Timing, Which, by_name};
use phasecast_trace::{ProcId, Trace};

/// What a completing call says of its requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completes {
    /// It is about one.
    One,
    /// It is about all that it names.
    All,
    /// It takes what comes first.
    First,
    /// It takes what has come.
    Some,
}

/// What must be known of a procedure.
#[derive(Clone, Debug)]
pub struct Role {
    /// How it sends.
    pub mode: Mode,
    /// It sends and receives in one.
    pub exchange: bool,
    /// How it completes requests.
    pub completes: Completes,
    /// It looks and goes on: nothing may have come.
    pub polls: bool,
    /// It looks for messages, not at requests.
    pub probe: bool,
    /// It starts MPI.
    pub init: bool,
    /// It ends MPI.
    pub finalize: bool,
    /// It ends the run.
    pub aborts: bool,
    /// It sends or is a collective: a persistent form of it makes a request that does, once it is started.
    pub starts: bool,
    /// It frees a request.
    pub frees: bool,
    /// Between neighbours of a topology only.
    pub neighbourhood: bool,
    /// The blocking form of a collective, without the length of its counts: `MPI_Allreduce`.
    pub collective: String,
}

/// The roles of all procedures of a trace.
pub struct Roles(Vec<Role>);

impl Roles {
    /// Those that the trace names.
    pub fn new(trace: &Trace) -> Roles {
        Roles(trace.procedures().iter().map(|name| role(name)).collect())
    }

    /// That of a procedure of the trace.
    pub fn of(&self, procedure: ProcId) -> &Role {
        &self.0[procedure.index()]
    }
}

fn role(name: &str) -> Role {
    let mut role = Role {
        mode: Mode::Standard,
        exchange: false,
        completes: Completes::One,
        polls: false,
        probe: false,
        init: false,
        finalize: false,
        aborts: false,
        starts: false,
        frees: false,
        neighbourhood: false,
        collective: "MPI_Barrier".into(),
    };
    let Some(procedure) = by_name(name).and_then(|id| id.get()) else { return role };
    role.starts = procedure.class.sends();
    match procedure.class {
        Class::Send { mode, .. } => {
            role.mode = match mode {
                SendMode::Standard => Mode::Standard,
                SendMode::Synchronous => Mode::Synchronous,
                SendMode::Buffered => Mode::Buffered,
                SendMode::Ready => Mode::Ready,
            }
        }
        Class::SendRecv { .. } => role.exchange = true,
        Class::Completion { blocking, which } => {
            role.polls = !blocking;
            role.completes = match which {
                Which::One => Completes::One,
                Which::All => Completes::All,
                Which::Any => Completes::First,
                Which::Some => Completes::Some,
            }
        }
        Class::Probe { blocking, .. } => (role.probe, role.polls) = (true, !blocking),
        Class::Init | Class::SessionInit => role.init = true,
        Class::Finalize | Class::SessionFinalize => role.finalize = true,
        Class::Abort => (role.finalize, role.aborts) = (true, true),
        Class::RequestFree => role.frees = true,
        Class::Collective { timing, neighbourhood, .. } => {
            role.neighbourhood = neighbourhood;
            // As many bytes go out of each rank; to whom, a trace does not hold.
            role.collective = if neighbourhood { "MPI_Alltoall".into() } else { blocking_form(name, timing) };
        }
        _ => {}
    }
    role
}

fn blocking_form(name: &str, timing: Timing) -> String {
    let mut bare = name.trim_start_matches("MPI_").trim_end_matches("_c").trim_end_matches("_init").to_lowercase();
    if timing == Timing::Nonblocking {
        bare.remove(0);
    }
    let (first, rest) = bare.split_at(bare.len().min(1));
    format!("MPI_{}{rest}", first.to_uppercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn collectives_stand_by_their_blocking_forms() {
        let named = |name: &str| role(name).collective;
        assert_eq!(named("MPI_Iallreduce"), "MPI_Allreduce");
        assert_eq!(named("MPI_Allreduce"), "MPI_Allreduce");
        assert_eq!(named("MPI_Ialltoallv_c"), "MPI_Alltoallv");
        assert_eq!(named("MPI_Reduce_scatter_block_init"), "MPI_Reduce_scatter_block");
        assert_eq!(named("MPI_Ineighbor_allgather"), "MPI_Alltoall");
        assert_eq!(named("MPI_Barrier"), "MPI_Barrier");
    }

    #[test]
    fn what_completes_is_known() {
        assert_eq!((role("MPI_Waitall").completes, role("MPI_Waitall").polls), (Completes::All, false));
        assert_eq!((role("MPI_Testsome").completes, role("MPI_Testsome").polls), (Completes::Some, true));
        assert_eq!(role("MPI_Issend").mode, Mode::Synchronous);
        assert!(role("MPI_Ssend_init").starts && !role("MPI_Recv_init").starts);
        assert!(role("MPI_Sendrecv_replace").exchange && role("MPI_Improbe").polls);
    }
}
