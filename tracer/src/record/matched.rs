//! Probes, and receives of messages that a probe has matched.
use super::{Call, arrived, failed, handle_at, has_received, part, side_bytes, tag};
use crate::plan::{NONE, Plan};
use crate::requests::{MESSAGES, REQUESTS, Tracked, What};
use crate::thread::Thread;
use phasecast_abi::Class as Does;
use phasecast_trace::model::{Class, Flags, PEER_ANY, PEER_PROC_NULL, PartKind, TAG_ANY};

/// What is known of the message that a matched receive is about to take.
///
/// # Safety
/// `args` are those of the procedure.
pub unsafe fn before(thread: &Thread, plan: &Plan, args: &[usize]) -> Option<Tracked> {
    if !matches!(plan.class, Does::MatchedRecv { .. }) {
        return None;
    }
    // SAFETY: the caller's.
    let message = unsafe { handle_at(thread.layout, args[plan.message]) };
    let mut table = MESSAGES.lock();
    let known = table.get(message).copied();
    table.forget(message);
    known
}

/// A probe, or the receive of a matched message, of which `noted` is known (nothing if it is from `MPI_PROC_NULL`).
///
/// # Safety
/// `args` are those of the procedure, its status one that MPI has filled in.
pub unsafe fn record(thread: &mut Thread, call: &Call, args: &[usize], rc: usize, noted: Option<Tracked>) {
    if !has_received(rc) {
        return call.failed(thread);
    }
    let plan = call.plan;
    let layout = thread.layout;
    if let Does::Probe { matched, .. } = plan.class {
        let comm = thread.comm(args[plan.comm]);
        let mut peer = comm.peer(args[plan.source] as i32, layout);
        let tag = tag(layout, args[plan.recv_tag]);
        let wild = args[plan.source] as i32 == layout.any_source;
        // SAFETY: the caller's.
        let found = plan.flag == NONE || unsafe { *(args[plan.flag] as *const i32) } != 0;
        if matched && found && peer != PEER_PROC_NULL {
            // SAFETY: the caller's.
            let message = unsafe { handle_at(layout, args[plan.message]) };
            let what = What::Recv;
            let known = Tracked { what, persistent: false, active: true, peer, tag, bytes: 0, comm, serial: 0 };
            MESSAGES.lock().insert(message, known);
        }
        let mut flags = Flags::default();
        if wild {
            flags = Flags::WILDCARD;
            if found {
                // SAFETY: the caller's.
                peer = comm.peer(unsafe { arrived(layout, args[plan.status]) }.source, layout);
            }
        }
        return thread.record(call, &call.shape(Class::Probe, flags, peer, tag, 0, comm.local));
    }
    let wild = noted.is_some_and(|known| known.peer == PEER_ANY);
    let mut flags = if wild { Flags::WILDCARD } else { Flags::default() };
    if failed(rc) {
        flags = flags.with(Flags::ERROR);
    }
    let (peer, tag, comm) = noted.map_or((PEER_PROC_NULL, TAG_ANY, 0), |k| (k.peer, k.tag, k.comm.local));
    if plan.request != NONE {
        // SAFETY: the caller's.
        let request = unsafe { handle_at(layout, args[plan.request]) };
        match noted {
            Some(known) => REQUESTS.lock().insert(request, known),
            None => REQUESTS.lock().forget(request),
        }
        let mut flags = flags.with(Flags::NONBLOCKING);
        if noted.is_some() {
            flags = flags.with(Flags::RECV_POST);
        }
        // SAFETY: the caller's.
        let bytes = unsafe { side_bytes(thread, plan, &plan.recv, args) };
        return thread.record(call, &call.shape(Class::Post, flags, peer, tag, bytes, comm));
    }
    let mut got = 0;
    thread.parts.clear();
    if let Some(known) = noted {
        // SAFETY: the caller's.
        let status = unsafe { arrived(layout, args[plan.status]) };
        let source = known.comm.peer(status.source, layout);
        got = status.bytes;
        thread.parts.push(part(PartKind::Recv, flags, source, status.tag, got, comm));
    }
    thread.record_parts(call, &call.shape(Class::Recv, flags, peer, tag, got, comm));
}
