//! Which argument of a procedure is what: worked out from the table of procedures when the tracer is compiled, so that
//! the wrappers of the hot path have it as constants.
use phasecast_abi::{CType, Class, Direction, IoStep, Kind, PROCEDURES, Param, Passing, Procedure, RmaStep, Side};

/// Number of procedures in the table.
pub const COUNT: usize = PROCEDURES.len();
/// In place of an argument that a procedure does not have.
pub const NONE: usize = usize::MAX;

/// What the tracer knows of a procedure.
pub struct Plan {
    /// Its name.
    pub name: &'static str,
    /// What it does.
    pub class: Class,
    /// Its number in our files, or [`NOT_RECORDED`].
    pub number: u16,
    /// Its communicator, as a value.
    pub comm: usize,
    /// Its window or file, as a value or by address.
    pub object: usize,
    /// Whether `object` is passed by address.
    pub object_by_address: bool,
    /// Whether `object` is a file.
    pub object_is_file: bool,
    /// The rank sent to.
    pub dest: usize,
    /// The rank received from.
    pub source: usize,
    /// The target of one-sided communication.
    pub target: usize,
    /// The group.
    pub group: usize,
    /// Tag of what is sent.
    pub send_tag: usize,
    /// Tag of what is received.
    pub recv_tag: usize,
    /// The request or requests.
    pub request: usize,
    /// The status or statuses.
    pub status: usize,
    /// The matched message.
    pub message: usize,
    /// The flag of a test.
    pub flag: usize,
    /// The count that a completion returns.
    pub outcount: usize,
    /// The index or indices that a completion returns.
    pub indices: usize,
    /// Whether counts in arrays have 8 bytes instead of 4.
    pub wide: bool,
    /// Whether an argument is an array, as bits.
    pub arrays: u16,
    /// Buffers that are sent.
    pub send: Side,
    /// Buffers that are received.
    pub recv: Side,
    /// All processes of the group call it.
    pub collective: bool,
}

/// Procedures that ask or set something locally are not recorded.
pub const NOT_RECORDED: u16 = u16::MAX;
const NO_SIDE: Side = Side { buffer: u8::MAX, count: None, datatype: None, partitions: None };

impl Plan {
    /// Whether calls are recorded.
    pub const fn recorded(&self) -> bool {
        self.number != NOT_RECORDED
    }
}

/// Whether a procedure has this side.
pub const fn exists(side: &Side) -> bool {
    side.buffer != u8::MAX
}

/// The plans, by index in the table of procedures.
pub static PLANS: [Plan; COUNT] = {
    let mut plans = [const { blank() }; COUNT];
    let (mut i, mut next) = (0, 0);
    while i < COUNT {
        plans[i] = plan(i, next);
        if plans[i].recorded() {
            next += 1;
        }
        i += 1;
    }
    plans
};

/// Names of the recorded procedures, by their numbers in our files.
pub fn names() -> Vec<String> {
    PLANS.iter().filter(|plan| plan.recorded()).map(|plan| plan.name.to_owned()).collect()
}

const fn blank() -> Plan {
    plan(0, 0)
}

/// Index of a procedure in the table, by name; for names in our own source.
pub const fn index(name: &str) -> usize {
    let (mut low, mut high) = (0, COUNT);
    while low < high {
        let middle = (low + high) / 2;
        match compare(PROCEDURES[middle].name.as_bytes(), name.as_bytes()) {
            0 => return middle,
            n if n < 0 => low = middle + 1,
            _ => high = middle,
        }
    }
    panic!("no such procedure")
}

const fn compare(a: &[u8], b: &[u8]) -> i32 {
    let mut i = 0;
    while i < a.len() && i < b.len() {
        if a[i] != b[i] {
            return a[i] as i32 - b[i] as i32;
        }
        i += 1;
    }
    a.len() as i32 - b.len() as i32
}

const fn is(name: &str, other: &str) -> bool {
    compare(name.as_bytes(), other.as_bytes()) == 0
}

const fn has_kind(param: &Param, kind: Kind) -> bool {
    param.kind as u8 == kind as u8
}

const fn first(params: &[Param], kind: Kind, from: usize) -> usize {
    let mut i = from;
    while i < params.len() {
        if has_kind(&params[i], kind) {
            return i;
        }
        i += 1;
    }
    NONE
}

const fn arrays(params: &[Param]) -> u16 {
    let (mut i, mut bits) = (0, 0);
    while i < params.len() {
        if matches!(params[i].passing, Passing::Array) {
            bits |= 1 << i;
        }
        i += 1;
    }
    bits
}

const fn first_output(params: &[Param], kind: Kind) -> usize {
    let mut i = 0;
    while i < params.len() {
        if has_kind(&params[i], kind) && matches!(params[i].direction, Direction::Out) {
            return i;
        }
        i += 1;
    }
    NONE
}

/// Where the rank stands that one-sided communication, or its synchronisation, is with.
const fn target(procedure: &Procedure) -> usize {
    let kind = match procedure.class {
        Class::Rma { step: RmaStep::Lock | RmaStep::Unlock | RmaStep::Flush, .. } => Kind::Rank,
        _ => Kind::TargetRank,
    };
    first(procedure.params, kind, 0)
}

const fn plan(index: usize, next: u16) -> Plan {
    let procedure = &PROCEDURES[index];
    let params = procedure.params;
    let (dest, source) = (first(params, Kind::Dest, 0), first(params, Kind::Source, 0));
    let file = first(params, Kind::File, 0);
    let object = if file == NONE { first(params, Kind::Window, 0) } else { file };
    let mut plan = Plan {
        name: procedure.name,
        class: procedure.class,
        number: if recorded(procedure) { next } else { NOT_RECORDED },
        comm: first(params, Kind::Communicator, 0),
        object,
        object_is_file: file != NONE,
        object_by_address: object != NONE && !matches!(params[object].passing, Passing::Value),
        dest,
        source,
        target: target(procedure),
        group: first(params, Kind::Group, 0),
        send_tag: if dest == NONE { NONE } else { first(params, Kind::Tag, dest) },
        recv_tag: if source == NONE { NONE } else { first(params, Kind::Tag, source) },
        request: first(params, Kind::Request, 0),
        status: first(params, Kind::Status, 0),
        message: first(params, Kind::Message, 0),
        flag: first(params, Kind::Flag, 0),
        outcount: first_output(params, Kind::ArrayLength),
        indices: first(params, Kind::Index, 0),
        wide: false,
        arrays: arrays(params),
        send: NO_SIDE,
        recv: NO_SIDE,
        collective: collective(procedure),
    };
    if plan.comm != NONE && !matches!(params[plan.comm].passing, Passing::Value) {
        plan.comm = if matches!(procedure.class, Class::CommFree { .. }) { plan.comm } else { NONE };
    }
    let mut i = 0;
    while i < procedure.sides.len() {
        let side = procedure.sides[i];
        if let Some(count) = side.count
            && matches!(params[count as usize].ctype, CType::Count | CType::Aint)
        {
            plan.wide = true;
        }
        let direction = params[side.buffer as usize].direction;
        if !matches!(direction, Direction::Out) && plan.send.buffer == u8::MAX {
            plan.send = side;
        }
        if !matches!(direction, Direction::In) && plan.recv.buffer == u8::MAX {
            plan.recv = side;
        }
        i += 1;
    }
    plan
}

/// Recorded is what communicates, completes, waits, makes what communicates or may be polled; not what asks or sets
/// something locally.
const fn recorded(procedure: &Procedure) -> bool {
    match procedure.class {
        Class::Other if first(procedure.params, Kind::Request, 0) != NONE => true,
        Class::Other | Class::DatatypeConstructor | Class::DatatypeFree => false,
        Class::CommConstructor { .. } => !is(procedure.name, "MPI_Comm_get_parent"),
        Class::Rma { step: RmaStep::Other, .. } => false,
        Class::Io { step: IoStep::Other, collective, .. } => {
            collective || first(procedure.params, Kind::File, 0) == NONE
        }
        _ => true,
    }
}

/// Whether all processes of a group call it: a constructor or the end of a window, a fence, collective input and output.
const fn collective(procedure: &Procedure) -> bool {
    match procedure.class {
        Class::Rma { step, .. } => {
            matches!(step, RmaStep::WindowConstructor | RmaStep::WindowFree | RmaStep::Fence)
        }
        Class::Io { collective, .. } => collective,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &str) -> &'static Plan {
        &PLANS[phasecast_abi::by_name(name).expect("a procedure").0 as usize]
    }

    #[test]
    fn arguments_are_found() {
        let plan = of("MPI_Sendrecv");
        assert_eq!((plan.dest, plan.send_tag, plan.source, plan.recv_tag), (3, 4, 8, 9));
        assert_eq!((plan.comm, plan.status), (10, 11));
        let plan = of("MPI_Testsome");
        assert_eq!((plan.request, plan.outcount, plan.indices, plan.status), (1, 2, 3, 4));
        assert_eq!(of("MPI_Testany").indices, 2);
        assert_eq!(of("MPI_Testany").flag, 3);
        assert!(of("MPI_Alltoallv_c").wide && !of("MPI_Alltoallv").wide);
        assert!(of("MPI_Win_fence").collective && !of("MPI_Win_lock").collective);
        assert!(!of("MPI_Comm_rank").recorded() && of("MPI_Comm_split").recorded());
        assert_eq!(of("MPI_Comm_free").comm, 0);
        let plan = of("MPI_Precv_init");
        assert!(exists(&plan.recv) && !exists(&plan.send));
        assert!(of("MPI_Win_free").object_by_address && !of("MPI_Put").object_by_address);
    }

    #[test]
    fn numbers_are_indices_of_the_names() {
        let names = names();
        for plan in PLANS.iter().filter(|plan| plan.recorded()) {
            assert_eq!(names[plan.number as usize], plan.name);
        }
        assert_eq!(PLANS[index("MPI_Waitall")].name, "MPI_Waitall");
    }
}
