//! Which way a call goes: by the class of its procedure, as the table says; by name only where a procedure has a meaning
//! of its own.
use crate::dispatch::Call;
use crate::session::session;
use crate::shape::Shape;
use crate::{
    allocated, attributes, callbacks, completion, contents, convert, duplicates, errors, files, forward, generalized,
    life, matched, memory, point, shared, start, windows,
};
use phasecast_abi::{Callers, Class, Kind, Procedure, Return, RmaStep, Timing};

/// Carries out a call of the program.
pub type Route = unsafe fn(&mut Call) -> usize;

/// The route of a procedure; `direct` as in [`Shape::direct`].
pub fn route(procedure: &Procedure, direct: bool) -> Route {
    let plain = if direct { forward::direct } else { forward::forward };
    let name = procedure.name;
    match name {
        "MPI_Initialized" | "MPI_Finalized" | "MPI_Query_thread" | "MPI_Is_thread_main" => return life::ask,
        "MPI_Get_version" | "MPI_Get_library_version" => return life::version,
        "MPI_Wtime" | "MPI_Wtick" => return life::clock,
        "MPI_Alloc_mem" => return memory::allocate,
        "MPI_Free_mem" => return memory::free,
        "MPI_Win_free" => return memory::free_window,
        "MPI_Win_allocate" | "MPI_Win_allocate_c" | "MPI_Win_allocate_shared" | "MPI_Win_allocate_shared_c" => {
            return memory::window;
        }
        "MPI_Win_shared_query" | "MPI_Win_shared_query_c" => return shared::query,
        "MPI_Buffer_attach" | "MPI_Buffer_attach_c" | "MPI_Buffer_detach" | "MPI_Buffer_detach_c" => {
            return memory::buffer;
        }
        "MPI_Attr_get" | "MPI_Comm_get_attr" | "MPI_Win_get_attr" | "MPI_Type_get_attr" => return memory::attribute,
        "MPI_Type_get_contents" | "MPI_Type_get_contents_c" => return contents::contents,
        "MPI_Comm_idup" | "MPI_Comm_idup_with_info" => return duplicates::idup,
        "MPI_Add_error_class" | "MPI_Add_error_code" | "MPI_Add_error_string" => return errors::add,
        "MPI_Remove_error_class" | "MPI_Remove_error_code" | "MPI_Remove_error_string" => return errors::remove,
        "MPI_Error_class" | "MPI_Error_string" => return errors::ask,
        "MPI_Comm_free_keyval" | "MPI_Type_free_keyval" | "MPI_Win_free_keyval" | "MPI_Keyval_free" => {
            return attributes::free_key;
        }
        "MPI_Comm_free" | "MPI_Type_free" => return attributes::free_object,
        "MPI_Register_datarep"
        | "MPI_Register_datarep_c"
        | "MPI_T_pvar_session_create"
        | "MPI_T_pvar_handle_alloc"
        | "MPI_T_cvar_handle_alloc"
        | "MPI_T_event_handle_alloc" => return unfollowed,
        "MPI_File_open" => return files::open,
        "MPI_File_delete" => return files::delete,
        "MPI_Grequest_start" => return generalized::start,
        "MPI_Pready" | "MPI_Pready_range" | "MPI_Pready_list" => return start::ready,
        "MPI_Parrived" => return start::arrived,
        "MPI_Request_get_status" => return start::get_status,
        "MPI_Request_get_status_all" | "MPI_Request_get_status_any" | "MPI_Request_get_status_some" => {
            return start::get_statuses;
        }
        "MPI_Status_c2f" | "MPI_Status_f2c" | "MPI_Status_c2f08" | "MPI_Status_f082c" | "MPI_Status_f2f08"
        | "MPI_Status_f082f" => return convert::status,
        _ => {}
    }
    if files::splits(name) {
        return split;
    }
    if name.ends_with("_call_errhandler") {
        return errors::ask;
    }
    if maker(procedure).is_some() {
        return make;
    }
    match procedure.returns {
        Return::Handle(_) => return convert::from_fortran,
        Return::Aint => return forward::calculate,
        Return::Int if name.ends_with("_c2f") || name.ends_with("_toint") => return convert::to_fortran,
        _ => {}
    }
    match procedure.class {
        Class::Init => life::init,
        Class::SessionInit => life::session_init,
        Class::Finalize => life::finalize,
        Class::Pcontrol => life::nothing,
        Class::Send { timing: Timing::Blocking, .. } => point::send,
        Class::Recv { timing: Timing::Blocking } | Class::SendRecv { timing: Timing::Blocking, .. } => point::recv,
        Class::MatchedRecv { .. } => matched::matched,
        Class::Probe { .. } => matched::probe,
        Class::Completion { .. } => completion::complete,
        Class::Start { .. } => start::start,
        Class::RequestFree => start::free,
        Class::Cancel => start::cancel,
        Class::Collective { timing: Timing::Blocking, .. } => event,
        Class::CommConstructor { .. } => comm,
        Class::Rma { step: RmaStep::WindowConstructor | RmaStep::WindowFree, .. } => event,
        Class::Rma { step, .. } if step != RmaStep::Other => windows::one_sided,
        _ if procedure.output_index(Kind::Request).is_some() => point::post,
        Class::Io { collective: true, .. } => event,
        _ => plain,
    }
}

/// An event: this rank's part in a collective.
///
/// # Safety
/// A call of the gate.
unsafe fn event(call: &mut Call) -> usize {
    // SAFETY: the caller's.
    let result = unsafe { forward::passed_on(call) };
    if result as i32 == 0 {
        let mut s = session();
        if s.hooks.collectives { s.count_collective(call) } else { s.event() }
    }
    result
}

/// The program gets something of the library's own, or the library something of the program's, that is not followed.
///
/// # Safety
/// A call of the gate.
unsafe fn unfollowed(call: &mut Call) -> usize {
    // SAFETY: the caller's.
    let result = unsafe { forward::forward(call) };
    if result as i32 == 0 {
        let reason = format!("the program has called {}, of which no image is made", call.shape.procedure.name);
        let mut s = session();
        if !s.unsaveable.contains(&reason) {
            s.unsaveable.push(reason);
        }
    }
    result
}

/// A split collective of a file begins or ends.
///
/// # Safety
/// A call of the gate.
unsafe fn split(call: &mut Call) -> usize {
    // SAFETY: the caller's.
    let result = unsafe { event(call) };
    if result as i32 == 0 {
        let name = crate::calls::name(call.index);
        session().file_splits(call.arg(0), name.contains("_begin"));
    }
    result
}

/// A communicator is made: an event for those that take part.
///
/// # Safety
/// A call of the gate.
unsafe fn comm(call: &mut Call) -> usize {
    // SAFETY: the caller's.
    let result = unsafe { forward::forward(call) };
    let mut s = session();
    let procedure = call.shape.procedure;
    let Class::CommConstructor { callers, child, .. } = procedure.class else { return result };
    if result as i32 != 0 || procedure.name == "MPI_Comm_get_parent" {
        return result;
    }
    if matches!(
        procedure.name,
        "MPI_Comm_spawn" | "MPI_Comm_spawn_multiple" | "MPI_Comm_accept" | "MPI_Comm_connect" | "MPI_Comm_join"
    ) {
        s.unsaveable.push(format!("{} has joined processes that the launcher did not start", procedure.name));
    }
    let bytes = crate::words::handle_bytes(s.values.upper, Kind::Communicator);
    // SAFETY: the caller's: the new handle.
    let new = unsafe { crate::words::read_handle(call.arg(usize::from(child)), bytes) };
    let null = s.values.above("MPI_COMM_NULL") == Some(new);
    let of_members = callers != Callers::Parent;
    if null && !of_members {
        let shape = call.shape;
        let args = forward::arguments(call, shape.lanes.len());
        // SAFETY: the call has succeeded.
        unsafe { crate::log::took_part(&mut s, shape, &args) };
    }
    if !std::mem::replace(&mut s.begun, true) {
        // The trace begins here. A position may lie before the first event.
        s.look();
    } else if !null || !of_members {
        s.event();
    }
    result
}

/// Makes an object in a way of its own.
type Maker = unsafe fn(usize, &'static Shape, &[usize; 14]) -> usize;

fn maker(procedure: &Procedure) -> Option<Maker> {
    let name = procedure.name;
    match name {
        "MPI_Op_create" | "MPI_Op_create_c" => Some(callbacks::create_operation),
        "MPI_Win_allocate" | "MPI_Win_allocate_c" => Some(allocated::allocate),
        "MPI_Win_allocate_shared" | "MPI_Win_allocate_shared_c" => Some(shared::allocate),
        _ if name.ends_with("create_errhandler") || name == "MPI_Errhandler_create" => Some(callbacks::create_handler),
        _ if name.ends_with("create_keyval") || name == "MPI_Keyval_create" => Some(callbacks::create_keyval),
        _ => None,
    }
}

/// # Safety
/// A call of the gate.
unsafe fn make(call: &mut Call) -> usize {
    let shape = call.shape;
    let args = forward::arguments(call, shape.lanes.len());
    // SAFETY: the caller's.
    unsafe { again(call.index, shape, &args) }
}

/// Makes a call that makes or changes an object, without the gate: as the program did, or again after a restart.
///
/// # Safety
/// `args` are those of the procedure, in the program's form.
pub unsafe fn again(index: usize, shape: &'static Shape, args: &[usize; 14]) -> usize {
    // SAFETY: the caller's.
    unsafe {
        match maker(shape.procedure) {
            Some(maker) => maker(index, shape, args),
            None => forward::forward_args(index, shape, args),
        }
    }
}
