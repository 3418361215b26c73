//! Calls that make communicators.
use super::{Call, failed, handle_at};
use crate::comms::{self, Comm};
use crate::plan::Plan;
use crate::real::library;
use crate::requests::{REQUESTS, Tracked, What};
use crate::thread::Thread;
use phasecast_abi::{Callers, Class as Does, Timing};
use phasecast_trace::model::{Class, Flags, PEER_NONE, TAG_NONE};

/// Lets a communicator that is made by a nonblocking call be told from one that is there already.
///
/// # Safety
/// `args` are those of the procedure.
pub unsafe fn before(thread: &Thread, plan: &Plan, args: &[usize]) {
    if let Does::CommConstructor { child, timing: Timing::Nonblocking, .. } = plan.class {
        let null = null_comm();
        // SAFETY: the place that the new handle will be written to.
        unsafe {
            match thread.layout.handle_bytes {
                4 => (args[child as usize] as *mut u32).write_unaligned(null as u32),
                _ => (args[child as usize] as *mut usize).write_unaligned(null),
            }
        }
    }
}

fn null_comm() -> usize {
    library().and_then(|library| library.constant("MPI_COMM_NULL")).unwrap_or(0)
}

/// A communicator was made.
///
/// # Safety
/// `args` are those of the procedure.
pub unsafe fn record(thread: &mut Thread, call: &Call, args: &[usize], rc: usize) {
    let plan = call.plan;
    let Does::CommConstructor { parent, callers, child, timing } = plan.class else { return };
    if !plan.recorded() {
        return;
    }
    if failed(rc) {
        return call.failed(thread);
    }
    // SAFETY: the caller's.
    let handle = unsafe { handle_at(thread.layout, args[child as usize]) };
    let is_null = handle == null_comm() || handle == 0;
    // The members of the new communicator, and only they, call these together.
    let of_members = callers != Callers::Parent;
    let parent = parent.map(|at| thread.comm(args[at as usize]));
    let made_of = parent.filter(|_| !of_members);
    let number = made_of.map_or(0, Comm::next_child);
    let origin = made_of.map_or(0, |parent| parent.origin_of(number));
    let nonblocking = matches!(timing, Timing::Nonblocking);
    let new = match parent {
        _ if is_null => None,
        Some(parent) if nonblocking => Some(comms::define_like(handle, parent, origin)),
        _ => Some(comms::define(handle, origin)),
    };
    if nonblocking {
        // SAFETY: the caller's.
        let request = unsafe { handle_at(thread.layout, args[plan.request]) };
        let (what, bytes) = (What::NewComm, args[child as usize] as u64);
        match parent {
            Some(comm) if new.is_none() => REQUESTS.lock().insert(
                request,
                Tracked { what, persistent: false, active: true, peer: 0, tag: number as i32, bytes, comm, serial: 0 },
            ),
            _ => REQUESTS.lock().forget(request),
        }
    }
    let flags = if nonblocking { Flags::NONBLOCKING } else { Flags::default() };
    let (class, comm) = match (parent, new) {
        (_, Some(new)) if of_members => (Class::Comm, new.local),
        (Some(parent), _) if !of_members => (Class::Comm, parent.local),
        (parent, _) => (Class::Other, parent.map_or(0, |comm| comm.local)),
    };
    thread.record(call, &call.shape(class, flags, PEER_NONE, TAG_NONE, 0, comm));
}
