//! What a procedure does, derived from its arguments first and from its name where the arguments do not say. All that
//! phasecast knows about MPI procedures by name stands in this file.

use crate::model::{
    Callers, Class, Direction, IoStep, Kind, Param, Passing, Pattern, RmaStep, SendMode, Timing, Vector, Version, Which,
};

/// Procedures that MPI 3.0 removed and libraries still export: name, replacement of the same C arguments, and which of
/// the replacement's arguments they have.
pub const REMOVED: &[(&str, &str, &[usize])] = &[
    ("MPI_Address", "MPI_Get_address", &[0, 1]),
    ("MPI_Errhandler_create", "MPI_Comm_create_errhandler", &[0, 1]),
    ("MPI_Errhandler_get", "MPI_Comm_get_errhandler", &[0, 1]),
    ("MPI_Errhandler_set", "MPI_Comm_set_errhandler", &[0, 1]),
    ("MPI_Type_extent", "MPI_Type_get_extent", &[0, 2]),
    ("MPI_Type_hindexed", "MPI_Type_create_hindexed", &[0, 1, 2, 3, 4]),
    ("MPI_Type_hvector", "MPI_Type_create_hvector", &[0, 1, 2, 3, 4]),
    ("MPI_Type_lb", "MPI_Type_get_extent", &[0, 1]),
    ("MPI_Type_struct", "MPI_Type_create_struct", &[0, 1, 2, 3, 4]),
    ("MPI_Type_ub", "MPI_Type_get_extent", &[0, 2]),
];

/// Collectives by the part of their names that neither `I`, `neighbor_`, `v`, `w`, `_init` nor `_c` changes.
const PATTERNS: [(&str, Pattern); 12] = [
    ("barrier", Pattern::Barrier),
    ("bcast", Pattern::Bcast),
    ("gather", Pattern::Gather),
    ("scatter", Pattern::Scatter),
    ("allgather", Pattern::Allgather),
    ("alltoall", Pattern::Alltoall),
    ("reduce", Pattern::Reduce),
    ("allreduce", Pattern::Allreduce),
    ("reduce_scatter", Pattern::ReduceScatter),
    ("reduce_scatter_block", Pattern::ReduceScatterBlock),
    ("scan", Pattern::Scan),
    ("exscan", Pattern::Exscan),
];

/// Procedures whose class their names alone tell.
const BY_NAME: [(&str, Class); 13] = [
    ("MPI_Init", Class::Init),
    ("MPI_Init_thread", Class::Init),
    ("MPI_Finalize", Class::Finalize),
    ("MPI_Session_init", Class::SessionInit),
    ("MPI_Session_finalize", Class::SessionFinalize),
    ("MPI_Abort", Class::Abort),
    ("MPI_Pcontrol", Class::Pcontrol),
    ("MPI_Request_free", Class::RequestFree),
    ("MPI_Cancel", Class::Cancel),
    ("MPI_Start", Class::Start { all: false }),
    ("MPI_Startall", Class::Start { all: true }),
    ("MPI_Comm_free", Class::CommFree { disconnect: false }),
    ("MPI_Comm_disconnect", Class::CommFree { disconnect: true }),
];

/// Synchronisation of one-sided communication, without `MPI_Win_`.
const WINDOW_SYNCHRONISATION: [(&str, RmaStep); 15] = [
    ("fence", RmaStep::Fence),
    ("post", RmaStep::Post),
    ("start", RmaStep::Start),
    ("complete", RmaStep::Complete),
    ("wait", RmaStep::Wait),
    ("test", RmaStep::Wait),
    ("lock", RmaStep::Lock),
    ("lock_all", RmaStep::Lock),
    ("unlock", RmaStep::Unlock),
    ("unlock_all", RmaStep::Unlock),
    ("flush", RmaStep::Flush),
    ("flush_all", RmaStep::Flush),
    ("flush_local", RmaStep::Flush),
    ("flush_local_all", RmaStep::Flush),
    ("sync", RmaStep::Flush),
];

/// Work on a window that neither moves data nor orders it, without `MPI_Win_`.
const WINDOW_OTHER: [&str; 3] = ["attach", "detach", "shared_query"];

/// I/O that all processes of the file's group call, besides what has `_all` or `_ordered` in its name.
const COLLECTIVE_IO: [&str; 9] =
    ["open", "close", "set_view", "set_size", "preallocate", "sync", "set_atomicity", "set_info", "seek_shared"];

/// I/O that touches neither the data nor the place of a file: not worth an event.
const IO_IS_OTHER: [&str; 6] =
    ["call_errhandler", "create_errhandler", "get_errhandler", "set_errhandler", "get_type_extent", "get_amode"];

/// Procedures of MPI 4.1 (prefixes).
const SINCE_4_1: [&str; 21] = [
    "MPI_Buffer_flush",
    "MPI_Buffer_iflush",
    "MPI_Comm_attach_buffer",
    "MPI_Comm_detach_buffer",
    "MPI_Comm_flush_buffer",
    "MPI_Comm_iflush_buffer",
    "MPI_Session_attach_buffer",
    "MPI_Session_detach_buffer",
    "MPI_Session_flush_buffer",
    "MPI_Session_iflush_buffer",
    "MPI_Get_hw_resource_info",
    "MPI_Remove_error_",
    "MPI_Request_get_status_",
    "MPI_Status_get_error",
    "MPI_Status_get_source",
    "MPI_Status_get_tag",
    "MPI_Status_set_error",
    "MPI_Status_set_source",
    "MPI_Status_set_tag",
    "MPI_Type_get_value_index",
    "MPI_Win_shared_query_c",
];

/// Procedures of MPI 4.0 (prefixes) that neither their class nor a `_c` gives away.
const SINCE_4_0: [&str; 12] = [
    "MPI_Comm_create_from_group",
    "MPI_Comm_idup_with_info",
    "MPI_Group_from_session_pset",
    "MPI_Info_create_env",
    "MPI_Info_get_string",
    "MPI_Intercomm_create_from_groups",
    "MPI_Isendrecv",
    "MPI_Session_",
    "MPI_T_event_",
    "MPI_T_source_",
    "MPI_T_category_get_events",
    "MPI_T_category_get_num_events",
];

/// Splits [`Kind::Rank`] by the part that the rank plays.
pub fn rank_kind(kind: Kind, name: &str, direction: Direction) -> Kind {
    match (kind, direction, name) {
        (Kind::Rank, Direction::In, "dest") => Kind::Dest,
        (Kind::Rank, Direction::In, "source") => Kind::Source,
        (Kind::Rank, Direction::In, "root") => Kind::Root,
        (Kind::Rank, Direction::In, "target_rank") => Kind::TargetRank,
        _ => kind,
    }
}

/// Puts right what `apis.json` says wrongly of a procedure's arguments.
pub fn correct(name: &str, params: &mut [Param]) {
    for param in params {
        match (name, param.name) {
            // MPI writes to it; `apis.json` has the direction of `MPI_Psend_init`.
            ("MPI_Precv_init", "buf") => param.direction = Direction::Out,
            // It is put in a status: nothing is received from it.
            ("MPI_Status_set_source", "source") => param.kind = Kind::Rank,
            _ => {}
        }
    }
}

/// The class of a procedure.
pub fn class(name: &str, params: &[Param]) -> Class {
    let base = name.strip_suffix("_c").unwrap_or(name);
    if let Some((_, class)) = BY_NAME.iter().find(|(n, _)| *n == base) {
        return *class;
    }
    let has = |kind: Kind| params.iter().any(|p| p.kind == kind);
    let writes = |kind: Kind| params.iter().any(|p| p.kind == kind && p.direction == Direction::Out);
    let index = |kind: Kind| params.iter().position(|p| p.kind == kind).map(|i| i as u8);
    let timing = match (writes(Kind::Request), base.ends_with("_init")) {
        (true, true) if has(Kind::Partition) => Timing::Partitioned,
        (true, true) => Timing::Persistent,
        (true, false) => Timing::Nonblocking,
        (false, _) => Timing::Blocking,
    };
    if has(Kind::Buffer) && has(Kind::Communicator) {
        match (has(Kind::Dest), has(Kind::Source)) {
            (true, true) => {
                let buffers = params.iter().filter(|p| p.kind == Kind::Buffer).count();
                return Class::SendRecv { timing, replace: buffers == 1 };
            }
            (true, false) => return Class::Send { timing, mode: send_mode(base, timing) },
            (false, true) => return Class::Recv { timing },
            (false, false) => {}
        }
    }
    if has(Kind::Buffer) && has(Kind::Message) {
        return Class::MatchedRecv { timing };
    }
    if has(Kind::Source) && has(Kind::Communicator) {
        return Class::Probe { blocking: !has(Kind::Flag), matched: has(Kind::Message) };
    }
    if base.starts_with("MPI_Pready") {
        return Class::Pready;
    }
    if let Some(request) = params.iter().find(|p| p.kind == Kind::Request && p.direction == Direction::InOut) {
        return completion(base, request);
    }
    if has(Kind::Window) || writes(Kind::Window) {
        return window(base, params, timing);
    }
    if has(Kind::File) {
        return file(base, params, timing);
    }
    let child = params.iter().position(|p| p.kind == Kind::Communicator && p.direction == Direction::Out);
    if let Some(child) = child {
        let parent = params.iter().position(|p| p.kind == Kind::Communicator && p.direction == Direction::In);
        // A tag tells apart what is made at a time by some of the parent's ranks, or by them with others.
        let callers = match parent {
            Some(_) if has(Kind::Tag) && has(Kind::Group) => Callers::Members,
            Some(_) if has(Kind::Tag) => Callers::BothGroups,
            Some(_) => Callers::Parent,
            None => Callers::Members,
        };
        return Class::CommConstructor { parent: parent.map(|i| i as u8), callers, child: child as u8, timing };
    }
    if has(Kind::Communicator)
        && let Some((pattern, neighbourhood, vector)) = pattern(base, timing)
    {
        return Class::Collective { pattern, timing, neighbourhood, vector, root: index(Kind::Root) };
    }
    if base.starts_with("MPI_Type_") {
        if base == "MPI_Type_free" {
            return Class::DatatypeFree;
        }
        let makes =
            |p: &Param| p.kind == Kind::Datatype && p.direction == Direction::Out && p.passing == Passing::Pointer;
        if params.last().is_some_and(makes) {
            return Class::DatatypeConstructor;
        }
    }
    Class::Other
}

fn send_mode(base: &str, timing: Timing) -> SendMode {
    let stem = base.trim_start_matches("MPI_").to_lowercase();
    let stem = if timing == Timing::Nonblocking { stem.trim_start_matches('i') } else { &stem };
    match stem.as_bytes() {
        [b'b', b's', ..] => SendMode::Buffered,
        [b's', b's', ..] => SendMode::Synchronous,
        [b'r', b's', ..] => SendMode::Ready,
        _ => SendMode::Standard,
    }
}

fn completion(base: &str, request: &Param) -> Class {
    let blocking = base.starts_with("MPI_Wait");
    if !blocking && !base.starts_with("MPI_Test") {
        return Class::Other;
    }
    let which = match &base[8..] {
        "any" => Which::Any,
        "some" => Which::Some,
        "all" => Which::All,
        _ => Which::One,
    };
    assert_eq!(which != Which::One, request.passing == Passing::Array, "{base}: one request or several?");
    Class::Completion { blocking, which }
}

fn window(base: &str, params: &[Param], timing: Timing) -> Class {
    let direction = |kind: Kind| params.iter().find(|p| p.kind == kind).map(|p| p.direction);
    let step = match base.strip_prefix("MPI_Win_") {
        None => RmaStep::Communication,
        Some(_) if direction(Kind::Window) == Some(Direction::Out) => RmaStep::WindowConstructor,
        Some("free") => RmaStep::WindowFree,
        Some(rest) if WINDOW_OTHER.contains(&rest) => RmaStep::Other,
        Some(rest) => match WINDOW_SYNCHRONISATION.iter().find(|(name, _)| *name == rest) {
            Some((_, step)) => *step,
            None => return Class::Other,
        },
    };
    Class::Rma { step, timing }
}

fn file(base: &str, params: &[Param], timing: Timing) -> Class {
    let Some(rest) = base.strip_prefix("MPI_File_") else { return Class::Other };
    if IO_IS_OTHER.contains(&rest) || rest.ends_with("c2f") || rest.ends_with("toint") {
        return Class::Other;
    }
    let step = match params.iter().find(|p| p.kind == Kind::Buffer).map(|p| p.direction) {
        None => IoStep::Other,
        Some(Direction::In) => IoStep::Write,
        Some(_) => IoStep::Read,
    };
    let collective = COLLECTIVE_IO.contains(&rest) || rest.contains("_all") || rest.contains("_ordered");
    let timing = if rest.ends_with("_begin") || rest.ends_with("_end") { Timing::Persistent } else { timing };
    Class::Io { step, collective, timing }
}

fn pattern(base: &str, timing: Timing) -> Option<(Pattern, bool, Vector)> {
    let stem = base.strip_prefix("MPI_")?.to_lowercase();
    let stem = if timing == Timing::Nonblocking { stem.strip_prefix('i')? } else { &stem };
    let stem = stem.strip_suffix("_init").unwrap_or(stem);
    let (stem, neighbourhood) = stem.strip_prefix("neighbor_").map_or((stem, false), |s| (s, true));
    let find = |s: &str| PATTERNS.iter().find(|(n, _)| *n == s).map(|(_, p)| *p);
    let with = |suffix: char| stem.strip_suffix(suffix).and_then(find);
    if let Some(pattern) = find(stem) {
        let vector = if pattern == Pattern::ReduceScatter { Vector::Counts } else { Vector::None };
        return Some((pattern, neighbourhood, vector));
    }
    with('v')
        .map(|p| (p, neighbourhood, Vector::Counts))
        .or_else(|| with('w').map(|p| (p, neighbourhood, Vector::CountsAndTypes)))
}

/// The standard that a procedure came with; 3.1 stands for all before 4.0.
pub fn since(name: &str, params: &[Param], class: Class) -> Version {
    let starts = |list: &[&str]| list.iter().any(|prefix| name.starts_with(prefix));
    let converts = name.ends_with("_toint") || name.ends_with("_fromint");
    let persistent = matches!(class, Class::Collective { timing: Timing::Persistent, .. });
    let partitioned = params.iter().any(|p| p.kind == Kind::Partition);
    match () {
        _ if converts || name.starts_with("MPI_Abi_") => Version(5, 0),
        _ if starts(&SINCE_4_1) => Version(4, 1),
        _ if name.ends_with("_c") || persistent || partitioned || starts(&SINCE_4_0) => Version(4, 0),
        _ => Version(3, 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{CType, Length};

    #[test]
    fn what_is_wrong_is_put_right_and_nothing_else() {
        let param = |name, kind| Param {
            name,
            kind,
            ctype: CType::Int,
            passing: Passing::Value,
            direction: Direction::In,
            length: Length::One,
            root_only: false,
            large: false,
        };
        let given = [param("buf", Kind::Buffer), param("source", Kind::Source)];
        let corrected = |name| {
            let mut params = given;
            correct(name, &mut params);
            params.map(|p| (p.kind, p.direction))
        };
        let unchanged = given.map(|p| (p.kind, p.direction));
        assert_eq!(corrected("MPI_Psend_init"), unchanged);
        assert_eq!(corrected("MPI_Precv_init"), [(Kind::Buffer, Direction::Out), unchanged[1]]);
        assert_eq!(corrected("MPI_Status_set_source"), [unchanged[0], (Kind::Rank, Direction::In)]);
    }
}
