//! Sends and receives, blocking, nonblocking and persistent.
use super::{Call, arrived, failed, handle_at, has_received, part, side_bytes, tag};
use crate::plan::{NONE, Plan};
use crate::requests::{REQUESTS, Tracked, What};
use crate::thread::Thread;
use phasecast_abi::{Class as Does, Timing};
use phasecast_trace::model::{Class, Flags, PEER_ANY, PEER_NONE, PEER_PROC_NULL, PartKind, TAG_ANY, TAG_NONE};

/// A blocking send.
///
/// # Safety
/// `args` are those of the procedure.
#[inline(always)]
pub unsafe fn send(thread: &mut Thread, call: &Call, args: &[usize], rc: usize) {
    if failed(rc) {
        return call.failed(thread);
    }
    let plan = call.plan;
    let comm = thread.comm(args[plan.comm]);
    let peer = comm.peer(args[plan.dest] as i32, thread.layout);
    // SAFETY: the caller's.
    let bytes = unsafe { side_bytes(thread, plan, &plan.send, args) };
    let tag = args[plan.send_tag] as i32;
    thread.record(call, &call.shape(Class::Send, Flags::default(), peer, tag, bytes, comm.local));
}

/// A blocking receive, perhaps with a send in it.
///
/// # Safety
/// `args` are those of the procedure, its status one that MPI has filled in.
#[inline(always)]
pub unsafe fn received(thread: &mut Thread, call: &Call, args: &[usize], rc: usize) {
    if !has_received(rc) {
        return call.failed(thread);
    }
    let plan = call.plan;
    let layout = thread.layout;
    let comm = thread.comm(args[plan.comm]);
    let wanted = comm.peer(args[plan.source] as i32, layout);
    let flags = if args[plan.source] as i32 == layout.any_source { Flags::WILDCARD } else { Flags::default() };
    let mut got = part(PartKind::Recv, flags, PEER_PROC_NULL, TAG_NONE, 0, comm.local);
    if wanted != PEER_PROC_NULL {
        // SAFETY: the caller's.
        let status = unsafe { arrived(layout, args[plan.status]) };
        got.peer = comm.peer(status.source, layout);
        (got.tag, got.bytes) = (status.tag, status.bytes);
    }
    let mut shape = if plan.dest != NONE {
        let peer = comm.peer(args[plan.dest] as i32, layout);
        // SAFETY: the caller's.
        let bytes = unsafe { side_bytes(thread, plan, &plan.send, args) };
        call.shape(Class::Send, Flags::default(), peer, args[plan.send_tag] as i32, bytes, comm.local)
    } else {
        call.shape(Class::Recv, flags, wanted, tag(layout, args[plan.recv_tag]), got.bytes, comm.local)
    };
    if failed(rc) {
        shape.flags |= Flags::ERROR.0;
    }
    thread.record_with(call, &shape, if wanted == PEER_PROC_NULL { None } else { Some(&got) });
}

/// A send or receive that goes on after the call, or a persistent one that is made.
///
/// # Safety
/// `args` are those of the procedure.
#[inline(always)]
pub unsafe fn posted(thread: &mut Thread, call: &Call, args: &[usize], rc: usize) {
    if failed(rc) {
        return call.failed(thread);
    }
    let plan = call.plan;
    let layout = thread.layout;
    let comm = thread.comm(args[plan.comm]);
    // SAFETY: the caller's.
    let request = unsafe { handle_at(layout, args[plan.request]) };
    let persistent = matches!(
        plan.class,
        Does::Send { timing: Timing::Persistent | Timing::Partitioned, .. }
            | Does::Recv { timing: Timing::Persistent | Timing::Partitioned }
    );
    let mut flags = if persistent { Flags::PERSISTENT } else { Flags::NONBLOCKING };
    let mut tracked = None;
    if plan.source != NONE {
        let peer = comm.peer(args[plan.source] as i32, layout);
        let tag = tag(layout, args[plan.recv_tag]);
        // SAFETY: the caller's.
        let bytes = unsafe { side_bytes(thread, plan, &plan.recv, args) };
        let what = if plan.dest == NONE { What::Recv } else { What::Exchange };
        if persistent || peer != PEER_PROC_NULL {
            tracked = Some(Tracked { what, persistent, active: !persistent, peer, tag, bytes, comm, serial: 0 });
        }
        if args[plan.source] as i32 == layout.any_source {
            flags = flags.with(Flags::WILDCARD);
        }
        if !persistent && peer != PEER_PROC_NULL {
            flags = flags.with(Flags::RECV_POST);
        }
    }
    let shape = if plan.dest != NONE {
        let peer = comm.peer(args[plan.dest] as i32, layout);
        let tag = args[plan.send_tag] as i32;
        // SAFETY: the caller's.
        let bytes = unsafe { side_bytes(thread, plan, &plan.send, args) };
        if persistent {
            let parts = matches!(plan.class, Does::Send { timing: Timing::Partitioned, .. });
            let what = if parts { What::Parts } else { What::Send };
            tracked = Some(Tracked { what, persistent, active: false, peer, tag, bytes, comm, serial: 0 });
        }
        call.shape(if persistent { Class::Post } else { Class::Send }, flags, peer, tag, bytes, comm.local)
    } else {
        let (peer, tag, bytes) = tracked.map_or((PEER_PROC_NULL, TAG_ANY, 0), |t| (t.peer, t.tag, t.bytes));
        call.shape(Class::Post, flags, peer, tag, bytes, comm.local)
    };
    match tracked {
        Some(tracked) => REQUESTS.lock().insert(request, tracked),
        None => REQUESTS.lock().forget(request),
    }
    thread.record(call, &shape);
}

/// Notes which known persistent requests are to be started: MPI may put others in their place (Open MPI does while a
/// buffered message of the last start is under way).
///
/// # Safety
/// `args` are those of `MPI_Start` or `MPI_Startall`.
pub unsafe fn starting(thread: &mut Thread, plan: &Plan, args: &[usize]) {
    let (count, at) = requests(plan, args);
    thread.waiting.clear();
    let table = REQUESTS.lock();
    for i in 0..count {
        // SAFETY: the caller's: an array of so many requests.
        let request = unsafe { handle_at(thread.layout, at + i * thread.layout.handle_bytes) };
        if let Some(known) = table.get(request) {
            thread.waiting.push((i as u32, request, *known));
        }
    }
}

/// Persistent requests that were started, as [`starting`] noted them.
///
/// # Safety
/// `args` are those of `MPI_Start` or `MPI_Startall`.
pub unsafe fn started(thread: &mut Thread, call: &Call, args: &[usize], rc: usize) {
    if failed(rc) {
        return call.failed(thread);
    }
    let layout = thread.layout;
    let (_, at) = requests(call.plan, args);
    let mut bytes = 0u64;
    let mut comm = 0;
    let mut all = Flags::PERSISTENT;
    thread.parts.clear();
    for &(i, request, known) in &thread.waiting {
        // SAFETY: the caller's: an array of more requests than this.
        let now = unsafe { handle_at(layout, at + i as usize * layout.handle_bytes) };
        REQUESTS.lock().start(request, now);
        let mut flags = Flags::PERSISTENT;
        let kind = match known.what {
            What::Send | What::Parts => PartKind::Send,
            What::Collective => PartKind::Collective,
            What::Recv | What::Exchange | What::NewComm => {
                if known.peer == PEER_ANY {
                    flags = flags.with(Flags::WILDCARD);
                }
                PartKind::Post
            }
        };
        if known.what == What::Parts {
            all = all.with(Flags::PARTITIONED);
        }
        let sent = if kind == PartKind::Post { 0 } else { known.bytes };
        bytes += sent;
        comm = known.comm.local;
        thread.parts.push(part(kind, flags, known.peer, known.tag, sent, comm));
    }
    thread.record_parts(call, &call.shape(Class::Start, all, PEER_NONE, TAG_NONE, bytes, comm));
}

/// How many requests a start is of, and where they stand.
fn requests(plan: &Plan, args: &[usize]) -> (usize, usize) {
    if matches!(plan.class, Does::Start { all: true }) {
        ((args[0] as i32).max(0) as usize, args[1])
    } else {
        (1, args[0])
    }
}
