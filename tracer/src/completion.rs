//! Wait*, Test*: receives are recorded in the call in which they complete, with the source and tag that were matched.
use crate::comms;
use crate::plan::{NONE, Plan};
use crate::record::{Call, arrived, failed, handle_at, has_received, is_of_class, part};
use crate::requests::{REQUESTS, Tracked, What};
use crate::thread::Thread;
use phasecast_abi::{Class as Does, Which};
use phasecast_trace::encode::Shape;
use phasecast_trace::model::{Class, Flags, PEER_ANY, PEER_NONE, PEER_PROC_NULL, PartKind, TAG_NONE};

/// What [`before`] found out for [`after`].
pub struct Waiting {
    /// The only request.
    request: usize,
    /// Where it stands in the table, or [`NONE`] if it is not known.
    at: usize,
    /// Some of several requests are known, or one that other threads may change meanwhile: they are in
    /// [`Thread::waiting`].
    several: bool,
    /// Number of requests.
    count: usize,
}

#[inline(always)]
fn which(plan: &Plan) -> Which {
    match plan.class {
        Does::Completion { which, .. } => which,
        _ => Which::One,
    }
}

/// Notes which known requests are to be completed (MPI will overwrite the handles), and puts statuses of our own in
/// place of those that the program does not want, if a receive is among them.
///
/// # Safety
/// `args` are those of the procedure.
#[inline(always)]
pub unsafe fn before(thread: &mut Thread, plan: &Plan, args: &mut [usize]) -> Waiting {
    if which(plan) != Which::One || REQUESTS.shared() {
        // SAFETY: the caller's.
        return unsafe { several_before(thread, plan, args) };
    }
    // SAFETY: the caller's.
    let request = unsafe { handle_at(thread.layout, args[plan.request]) };
    let mut waiting = Waiting { request, at: NONE, several: false, count: 1 };
    if let Some((at, known)) = REQUESTS.lock().find(request)
        && known.active
    {
        waiting.at = at;
        if args[plan.status] == thread.layout.status_ignore {
            args[plan.status] = thread.statuses.as_mut_ptr() as usize;
        }
    }
    waiting
}

/// # Safety
/// As for [`before`].
unsafe fn several_before(thread: &mut Thread, plan: &Plan, args: &mut [usize]) -> Waiting {
    let layout = thread.layout;
    let count = if which(plan) == Which::One { 1 } else { (args[0] as i32).max(0) as usize };
    let at = args[plan.request];
    let waiting = &mut thread.waiting;
    waiting.clear();
    let table = REQUESTS.lock();
    for i in 0..count {
        // SAFETY: the caller's: an array of so many requests.
        let request = unsafe { handle_at(layout, at + i * layout.handle_bytes) };
        if let Some(known) = table.get(request)
            && known.active
        {
            waiting.push((i as u32, request, *known));
        }
    }
    drop(table);
    let several = !waiting.is_empty();
    if several && args[plan.status] == layout.status_ignore {
        let statuses = if matches!(which(plan), Which::One | Which::Any) { 1 } else { count };
        let words = (statuses * layout.status.size).div_ceil(8);
        if thread.statuses.len() < words {
            thread.statuses.resize(words, 0);
        }
        args[plan.status] = thread.statuses.as_mut_ptr() as usize;
    }
    Waiting { request: 0, at: NONE, several, count }
}

/// Records the completion and what was received.
///
/// # Safety
/// `args` are those of the procedure as it was called, after `before` has seen to them.
#[inline(always)]
pub unsafe fn after(thread: &mut Thread, call: &Call, args: &[usize], rc: usize, waiting: &Waiting) {
    let plan = call.plan;
    if waiting.several {
        // SAFETY: the caller's.
        return unsafe { several_after(thread, call, args, rc, waiting.count) };
    }
    let mut shape = call.shape(Class::Complete, Flags::default(), PEER_NONE, TAG_NONE, 0, 0);
    if failed(rc) {
        shape.flags |= Flags::ERROR.0;
    }
    // SAFETY: the caller's: the flag of a test.
    let done = plan.flag == NONE || unsafe { *(args[plan.flag] as *const i32) } != 0;
    let mut got = None;
    if done
        && waiting.at != NONE
        && let Some(known) = REQUESTS.lock().complete_at(waiting.at, waiting.request)
    {
        // SAFETY: the caller's: MPI has filled in the status of what it has completed.
        got = if has_received(rc) { unsafe { received(thread, &known, args[plan.status]) } } else { None };
        (shape.bytes, shape.comm) = got.map_or((0, 0), |got| (got.bytes, got.comm));
    }
    thread.record_with(call, &shape, got.as_ref());
}

/// # Safety
/// As for [`after`].
unsafe fn several_after(thread: &mut Thread, call: &Call, args: &[usize], rc: usize, count: usize) {
    let plan = call.plan;
    let layout = thread.layout;
    // SAFETY: the caller's: places that MPI has written to.
    let int = |argument: usize, i: usize| unsafe { ((args[argument] + 4 * i) as *const i32).read_unaligned() };
    let tested = plan.flag == NONE || int(plan.flag, 0) != 0;
    let each_status = failed(rc) && [rc as i32, rc as i32 & 0x7f].contains(&layout.err_in_status);
    let usable = !failed(rc) || each_status;
    let error_in = |status: usize| match each_status {
        // SAFETY: the caller's: the call has left an error in each status.
        true => unsafe { ((status + layout.status.error) as *const i32).read_unaligned() },
        false => layout.success,
    };
    let well = |error: i32| error == layout.success || is_of_class(error, "MPI_ERR_TRUNCATE");
    let list = std::mem::take(&mut thread.waiting);
    thread.parts.clear();
    let mut take = |(_, request, known): &(u32, usize, Tracked), status: usize, well: bool| {
        REQUESTS.lock().complete(*request, known.serial);
        if well {
            // SAFETY: the caller's: MPI has filled in the statuses of what it has completed.
            let got = unsafe { received(thread, known, status) };
            thread.parts.extend(got);
        }
    };
    match which(plan) {
        Which::All if tested && usable => {
            for entry in &list {
                let status = args[plan.status] + entry.0 as usize * layout.status.size;
                let error = error_in(status);
                let well = well(error);
                if well || !is_of_class(error, "MPI_ERR_PENDING") {
                    take(entry, status, well);
                }
            }
        }
        Which::One if tested => take(&list[0], args[plan.status], has_received(rc)),
        Which::Any if tested && has_received(rc) && int(plan.indices, 0) != layout.undefined => {
            let index = int(plan.indices, 0) as u32;
            if let Some(entry) = list.iter().find(|entry| entry.0 == index) {
                take(entry, args[plan.status], true);
            }
        }
        Which::Some if usable && int(plan.outcount, 0) != layout.undefined => {
            let done = (int(plan.outcount, 0).max(0) as usize).min(count);
            for i in 0..done {
                let index = int(plan.indices, i) as u32;
                if let Ok(at) = list.binary_search_by_key(&index, |entry| entry.0) {
                    let status = args[plan.status] + i * layout.status.size;
                    take(&list[at], status, well(error_in(status)));
                }
            }
        }
        _ if failed(rc) => {
            for (i, request, known) in &list {
                // SAFETY: the caller's: an array of requests, those that are over set to null.
                let now = unsafe { handle_at(layout, args[plan.request] + *i as usize * layout.handle_bytes) };
                if now != *request {
                    REQUESTS.lock().complete(*request, known.serial);
                }
            }
        }
        _ => {}
    }
    thread.waiting = list;
    let bytes = thread.parts.iter().map(|part| part.bytes).sum();
    let comm = thread.parts.first().map_or(0, |part| part.comm);
    let flags = if failed(rc) { Flags::ERROR } else { Flags::default() };
    thread.record_parts(call, &call.shape(Class::Complete, flags, PEER_NONE, TAG_NONE, bytes, comm));
}

/// What a completed request has received, as a part of the call; a new communicator is taken note of.
///
/// # Safety
/// At `status` stands the status of this request.
#[inline(always)]
unsafe fn received(thread: &mut Thread, known: &Tracked, status: usize) -> Option<Shape> {
    match known.what {
        What::NewComm => {
            // SAFETY: the program's variable that holds the new communicator, valid until now.
            let handle = unsafe { handle_at(thread.layout, known.bytes as usize) };
            comms::define_like(handle, known.comm, known.comm.origin_of(known.tag as u32));
            None
        }
        What::Recv | What::Exchange if known.peer != PEER_PROC_NULL => {
            // SAFETY: the caller's.
            let status = unsafe { arrived(thread.layout, status) };
            let mut flags = if known.persistent { Flags::PERSISTENT } else { Flags::default() };
            if known.peer == PEER_ANY {
                flags = flags.with(Flags::WILDCARD);
            }
            let comm = known.comm.local;
            let from = known.comm.peer(status.source, thread.layout);
            let source = if known.peer >= 0 { known.peer } else { from };
            let tag = if known.tag >= 0 { known.tag } else { status.tag };
            let told = known.what == What::Recv || (source, tag) == (from, status.tag);
            Some(if status.cancelled && told {
                part(PartKind::Recv, flags.with(Flags::CANCELLED), known.peer, known.tag, 0, comm)
            } else {
                part(PartKind::Recv, flags, source, tag, if told { status.bytes } else { known.bytes }, comm)
            })
        }
        What::Recv | What::Exchange | What::Send | What::Parts | What::Collective => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{PLANS, index};
    use crate::requests::MULTIPLE;
    use crate::thread::tests::recorder;
    use std::sync::atomic::Ordering::Relaxed;

    const NULL: u32 = 0x2c00_0000;
    const FAILED: usize = 1;

    /// Completes receives with these handles by a call that fails, and tells which of them are known after it.
    fn known_after(
        name: &str,
        requests: &mut [u32],
        args: &[usize],
        rc: usize,
        call: impl FnOnce(&mut [u32]),
    ) -> Vec<u32> {
        let folder = tempfile::tempdir().expect("a folder");
        let (mut thread, _sink) = recorder(folder.path());
        let handles = requests.to_vec();
        for &handle in &handles {
            let (what, comm) = (What::Recv, crate::comms::for_tests());
            let known = Tracked { what, persistent: false, active: true, peer: 1, tag: 0, bytes: 0, comm, serial: 0 };
            REQUESTS.lock().insert(handle as usize, known);
        }
        let plan = &PLANS[index(name)];
        let mut args = args.to_vec();
        args[plan.request] = requests.as_mut_ptr() as usize;
        // SAFETY: arguments of this procedure.
        let waiting = unsafe { before(&mut thread, plan, &mut args) };
        call(requests);
        // SAFETY: as above.
        unsafe { after(&mut thread, &Call::new(plan, 0), &args, rc, &waiting) };
        assert!(thread.parts.is_empty(), "{name} has received something");
        let table = REQUESTS.lock();
        handles.into_iter().filter(|&handle| table.get(handle as usize).is_some()).collect()
    }

    #[test]
    fn a_call_that_fails_completes_what_is_over() {
        let (mut index, mut statuses) = ([0i32; 2], [0u64; 16]);
        let [index, statuses] = [index.as_mut_ptr() as usize, statuses.as_mut_ptr() as usize];
        let second = |requests: &mut [u32]| requests[1] = NULL;
        let any = [2, 0, index, statuses];
        assert_eq!(known_after("MPI_Waitany", &mut [11, 12], &any, FAILED, second), [11]);
        assert_eq!(known_after("MPI_Waitall", &mut [21, 22], &[2, 0, statuses], FAILED, second), [21]);
        let layout = phasecast_abi::Abi::Mpich.layout();
        let (mut count, mut errors) = (1i32, [0i32; 16]);
        errors[layout.status.error / 4] = 16;
        let some = [2, 0, &raw mut count as usize, index, errors.as_mut_ptr() as usize];
        let in_status = layout.err_in_status as usize;
        assert_eq!(known_after("MPI_Waitsome", &mut [31, 32], &some, in_status, |_| ()), [32]);
        MULTIPLE.store(true, Relaxed);
        assert!(known_after("MPI_Wait", &mut [41], &[0, statuses], FAILED, |_| ()).is_empty());
    }
}
