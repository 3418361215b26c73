//! Start, Request_free, Cancel, Request_get_status: what is done with a request before it is complete.
use crate::requests::{Request, Stage, What};
use crate::session::{Call, session};
use crate::words::{handle_bytes, read_handle, write_handle, write_one_status};
use phasecast_abi::{Class, Kind};

/// Starts persistent requests.
///
/// # Safety
/// A call of the gate.
pub unsafe fn start(call: &mut Call) -> usize {
    let mut s = session();
    let shape = call.shape;
    let Class::Start { all } = shape.procedure.class else { return 1 };
    let (count, at) = if all { ((call.arg(0) as i32).max(0) as usize, call.arg(1)) } else { (1, call.arg(0)) };
    let bytes = handle_bytes(s.values.upper, Kind::Request);
    for i in 0..count {
        // SAFETY: the caller's: so many requests stand there.
        let handle = unsafe { read_handle(at + i * bytes, bytes) };
        let Some(number) = s.objects.decode(Kind::Request, handle) else { continue };
        let Some(request) = s.requests.get(number) else { continue };
        let (what, comm, counts, args) = (request.what, request.comm, request.counts, request.args);
        let shape = &s.shapes[usize::from(request.index)];
        let dest = shape.procedure.param_index(Kind::Dest).map(|at| args[at] as i32);
        if what == What::Recv && counts && !s.drained.is_empty() {
            drop(s);
            let started = crate::hand_out::start_from_drained(number);
            s = session();
            if started {
                continue;
            }
        }
        let library = s.library;
        let mut lower = s.objects.get(Kind::Request, number).map_or(0, |object| object.lower);
        drop(s);
        let result = crate::calls::lower!(library, MPI_Start(&raw mut lower));
        s = session();
        if result != 0 {
            return s.up_error(result as u32 as usize);
        }
        s.requests.start(number);
        if let Some(world) = dest.and_then(|dest| s.world_rank(comm, dest)) {
            s.traffic.sent[world] += 1;
            s.event();
        } else if what == What::Collective {
            s.event();
        }
    }
    0
}

/// Frees a request. A receive under way stays with us until it is done, at a cut: its message is counted then.
///
/// # Safety
/// A call of the gate.
pub unsafe fn free(call: &mut Call) -> usize {
    let s = session();
    let bytes = handle_bytes(s.values.upper, Kind::Request);
    let at = call.arg(0);
    // SAFETY: the caller's: a request stands there.
    let handle = unsafe { read_handle(at, bytes) };
    let Some(number) = s.objects.decode(Kind::Request, handle) else { return 0 };
    let library = s.library;
    let null = library.request_null;
    let mut lower = s.objects.get(Kind::Request, number).map_or(null, |object| object.lower);
    let receives = |r: &Request| r.what == What::Recv && r.stage == Stage::Active && r.counts && !r.counted;
    let stays = s.requests.get(number).is_some_and(receives);
    drop(s);
    if lower != null && !stays {
        let result = crate::calls::lower!(library, MPI_Request_free(&raw mut lower));
        if result != 0 {
            return session().up_error(result as u32 as usize);
        }
    }
    let mut s = session();
    match s.objects.get_mut(Kind::Request, number) {
        Some(object) if stays => object.references = 0,
        _ => s.finish_request(number),
    }
    let null = s.values.request_null;
    // SAFETY: as above.
    unsafe { write_handle(at, bytes, null) };
    0
}

/// Cancels a request: one that was done at a cut is past that.
///
/// # Safety
/// A call of the gate.
pub unsafe fn cancel(call: &mut Call) -> usize {
    let s = session();
    let bytes = handle_bytes(s.values.upper, Kind::Request);
    // SAFETY: the caller's: a request stands there.
    let handle = unsafe { read_handle(call.arg(0), bytes) };
    if s.objects.decode(Kind::Request, handle).is_some_and(|number| s.is_done(number)) {
        return 0;
    }
    drop(s);
    // SAFETY: the caller's.
    unsafe { crate::forward::forward(call) }
}

/// The status of a request, which stays.
///
/// # Safety
/// A call of the gate.
pub unsafe fn get_status(call: &mut Call) -> usize {
    let s = session();
    let mask = s.values.upper.layout().handle_mask as usize;
    let number = s.objects.decode(Kind::Request, call.arg(0) & mask);
    if let Some(Stage::Done(saved)) = number.and_then(|n| s.requests.get(n)).map(|r| r.stage) {
        // SAFETY: the caller's: the flag and the status of the procedure.
        unsafe {
            *(call.arg(1) as *mut i32) = 1;
            if call.arg(2) != s.values.upper.layout().status_ignore {
                write_one_status(s.values.upper, call.arg(2), &saved.into());
            }
        }
        return 0;
    }
    drop(s);
    // SAFETY: the caller's.
    unsafe { crate::forward::forward(call) }
}
