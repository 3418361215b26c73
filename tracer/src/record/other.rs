//! One-sided communication, input and output, what frees handles, and what else is recorded.
use super::{Call, failed, handle_at, part, side_bytes};
use crate::comms::{self, Comm, Window};
use crate::plan::{NONE, Plan, exists};
use crate::requests::REQUESTS;
use crate::thread::Thread;
use phasecast_abi::{Class as Does, Kind, Layout, RmaStep, Timing};
use phasecast_trace::epochs::epoch_tag;
use phasecast_trace::model::{Class, Flags, PEER_NONE, PartKind, TAG_NONE};
use std::sync::PoisonError;

/// What is about to be freed is forgotten now, because its handle may be used again at once; its communicator is needed
/// later.
///
/// # Safety
/// `args` are those of the procedure.
pub unsafe fn before(thread: &mut Thread, plan: &Plan, args: &[usize]) -> Option<&'static Comm> {
    let layout = thread.layout;
    match plan.class {
        Does::CommFree { .. } => {
            // SAFETY: the caller's.
            let handle = unsafe { handle_at(layout, args[plan.comm]) };
            let comm = thread.comm(handle);
            comms::forget(handle);
            Some(comm)
        }
        Does::RequestFree => {
            // SAFETY: the caller's.
            let request = unsafe { handle_at(layout, args[plan.request]) };
            let mut table = REQUESTS.lock();
            let comm = table.get(request).map(|known| known.comm);
            table.forget(request);
            comm
        }
        Does::Cancel => {
            // SAFETY: the caller's.
            let request = unsafe { handle_at(layout, args[plan.request]) };
            REQUESTS.lock().get(request).map(|known| known.comm)
        }
        Does::DatatypeFree => {
            crate::life::TYPES.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            None
        }
        _ if plan.object != NONE && (plan.comm == NONE || !plan.object_by_address) => {
            // SAFETY: the caller's.
            let handle = unsafe { object_handle(layout, plan, args) };
            let comm = thread.object(handle);
            if plan.object_by_address {
                comms::forget(handle);
            }
            Some(comm)
        }
        _ => None,
    }
}

/// # Safety
/// `args` are those of the procedure.
unsafe fn object_handle(layout: &Layout, plan: &Plan, args: &[usize]) -> usize {
    let given = args[plan.object];
    let bytes = layout.handle_bytes_of(if plan.object_is_file { Kind::File } else { Kind::Window });
    match (plan.object_by_address, bytes) {
        (false, 4) => given as u32 as usize,
        (false, _) => given,
        // SAFETY: the caller's.
        (true, 4) => unsafe { (given as *const u32).read_unaligned() as usize },
        // SAFETY: the caller's.
        (true, _) => unsafe { (given as *const usize).read_unaligned() },
    }
}

/// One-sided communication, input and output, and what else is recorded.
///
/// # Safety
/// `args` are those of the procedure.
pub unsafe fn record(thread: &mut Thread, call: &Call, args: &[usize], rc: usize, before: Option<&'static Comm>) {
    let plan = call.plan;
    if !plan.recorded() {
        return;
    }
    if failed(rc) {
        return call.failed(thread);
    }
    let layout = thread.layout;
    let (class, timing) = match plan.class {
        Does::Rma { timing, .. } => (Class::Rma, timing),
        Does::Io { timing, .. } => (Class::Io, timing),
        _ => (Class::Other, Timing::Blocking),
    };
    let mut comm = before;
    let window = matches!(plan.class, Does::Rma { step: RmaStep::WindowConstructor, .. });
    if window || plan.object_is_file && plan.object_by_address && plan.comm != NONE {
        let parent = thread.comm(args[plan.comm]);
        // SAFETY: the caller's.
        let handle = unsafe { object_handle(layout, plan, args) };
        if window {
            comms::bind_window(handle, parent)
        } else {
            comms::bind(handle, parent)
        }
        comm = Some(parent);
    }
    let peer = match (comm, plan.target) {
        (Some(comm), target) if target != NONE => comm.peer(args[target] as i32, layout),
        _ => PEER_NONE,
    };
    let mut bytes = 0;
    for side in [&plan.send, &plan.recv] {
        // What has no datatype only names memory, or ends what has moved it.
        if bytes == 0 && exists(side) && side.datatype.is_some() {
            // SAFETY: the caller's.
            bytes = unsafe { side_bytes(thread, plan, side, args) };
        }
    }
    let mut flags = if plan.collective { Flags::COLLECTIVE } else { Flags::default() };
    if timing != Timing::Blocking {
        flags = flags.with(Flags::NONBLOCKING);
    }
    if plan.request != NONE && matches!(class, Class::Rma | Class::Io) {
        // SAFETY: the caller's.
        let request = unsafe { handle_at(layout, args[plan.request]) };
        REQUESTS.lock().forget(request);
    }
    let shape = call.shape(class, flags, peer, TAG_NONE, bytes, comm.map_or(0, |comm| comm.local));
    thread.parts.clear();
    if let (Does::Rma { step, .. }, Some(comm)) = (plan.class, comm)
        && let Some(window) = &comm.window
    {
        // SAFETY: the caller's.
        unsafe { epoch(thread, step, plan, args, (comm.local, window)) };
    }
    thread.record_parts(call, &shape);
}

/// What a rank and the members of a group tell each other when epochs begin and end: one part for each.
///
/// # Safety
/// `args` are those of the procedure, which has succeeded.
unsafe fn epoch(thread: &mut Thread, step: RmaStep, plan: &Plan, args: &[usize], (comm, window): (u32, &Window)) {
    // SAFETY: the caller's.
    let asked = plan.flag != NONE && unsafe { *(args[plan.flag] as *const i32) } == 0;
    let (kind, of, closes) = match step {
        RmaStep::Post => (PartKind::Send, 0, false),
        RmaStep::Start => (PartKind::Recv, 1, false),
        RmaStep::Complete => (PartKind::Send, 1, true),
        RmaStep::Wait if !asked => (PartKind::Recv, 0, true),
        _ => return,
    };
    let mut epochs = window.epochs.lock().unwrap_or_else(PoisonError::into_inner);
    if !closes {
        epochs[of] = comms::world_ranks(args[plan.group]);
    }
    let tag = epoch_tag(window.number, closes);
    thread.parts.extend(epochs[of].iter().map(|&peer| part(kind, Flags::default(), peer, tag, 0, comm)));
}
