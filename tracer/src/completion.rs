//! Wait*, Test*: receives are recorded in the call in which they complete, with the source and tag that were matched.
use crate::comms;
use crate::plan::{NONE, Plan};
use crate::record::{Call, arrived, failed, handle_at, part};
use crate::requests::{REQUESTS, Tracked, What};
use crate::thread::Thread;
use phasecast_abi::{Class as Does, Which};
use phasecast_trace::model::{Class, Flags, PEER_ANY, PEER_NONE, PEER_PROC_NULL, PartKind, TAG_NONE};

/// What [`before`] found out for [`after`].
#[derive(Clone, Copy)]
pub struct Waiting {
    /// Some requests are known.
    known: bool,
    /// Number of requests.
    count: usize,
}

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
    let which = which(plan);
    let count = if which == Which::One { 1 } else { (args[0] as i32).max(0) as usize };
    thread.waiting.clear();
    let layout = thread.layout;
    let at = args[plan.request];
    let waiting = &mut thread.waiting;
    REQUESTS.with(|table| {
        for i in 0..count {
            // SAFETY: the caller's: an array of so many requests.
            let request = unsafe { handle_at(layout, at + i * layout.handle_bytes) };
            if let Some(known) = table.get(request)
                && known.active
            {
                waiting.push((i as u32, request, known));
            }
        }
    });
    if thread.waiting.is_empty() {
        return Waiting { known: false, count };
    }
    if args[plan.status] == layout.status_ignore {
        let statuses = if matches!(which, Which::One | Which::Any) { 1 } else { count };
        let words = (statuses * layout.status.size).div_ceil(8);
        if thread.statuses.len() < words {
            thread.statuses.resize(words, 0);
        }
        args[plan.status] = thread.statuses.as_mut_ptr() as usize;
    }
    Waiting { known: true, count }
}

/// Records the completion and what was received.
///
/// # Safety
/// `args` are those of the procedure as it was called, after `before` has seen to them.
#[inline(always)]
pub unsafe fn after(thread: &mut Thread, call: &Call, args: &[usize], rc: usize, waiting: Waiting) {
    if !waiting.known {
        let flags = if failed(rc) { Flags::ERROR } else { Flags::default() };
        return thread.record(call, &call.shape(Class::Complete, flags, PEER_NONE, TAG_NONE, 0, 0));
    }
    // SAFETY: the caller's.
    unsafe { known_after(thread, call, args, rc, waiting) }
}

/// # Safety
/// As for [`after`].
unsafe fn known_after(thread: &mut Thread, call: &Call, args: &[usize], rc: usize, waiting: Waiting) {
    let plan = call.plan;
    let layout = thread.layout;
    // SAFETY: the caller's: places that MPI has written to.
    let int = |argument: usize, i: usize| unsafe { ((args[argument] + 4 * i) as *const i32).read_unaligned() };
    let tested = plan.flag == NONE || int(plan.flag, 0) != 0;
    let list = std::mem::take(&mut thread.waiting);
    let each_status = rc as i32 != 0 && (rc as i32 & 0x7f == layout.err_in_status || rc as i32 == layout.err_in_status);
    thread.parts.clear();
    let mut took = Took { thread, bytes: 0, comm: None };
    // SAFETY: of `complete`: MPI has filled in the statuses of what it has completed.
    unsafe {
        match which(plan) {
            Which::One if tested => took.complete(&list[0], args[plan.status]),
            Which::All if tested && (!failed(rc) || each_status) => {
                for entry in &list {
                    let status = args[plan.status] + entry.0 as usize * layout.status.size;
                    let error = ((status + layout.status.error) as *const i32).read_unaligned();
                    if !each_status || error == layout.success {
                        took.complete(entry, status);
                    } else if !is_pending(error) {
                        took.forget(entry);
                    }
                }
            }
            Which::Any if tested && int(plan.indices, 0) != layout.undefined => {
                let index = int(plan.indices, 0) as u32;
                if let Some(entry) = list.iter().find(|entry| entry.0 == index) {
                    took.complete(entry, args[plan.status]);
                }
            }
            Which::Some if (!failed(rc) || each_status) && int(plan.outcount, 0) != layout.undefined => {
                let done = (int(plan.outcount, 0).max(0) as usize).min(waiting.count);
                for i in 0..done {
                    let index = int(plan.indices, i) as u32;
                    if let Ok(at) = list.binary_search_by_key(&index, |entry| entry.0) {
                        took.complete(&list[at], args[plan.status] + i * layout.status.size);
                    }
                }
            }
            _ => {}
        }
    }
    let (bytes, comm) = (took.bytes, took.comm.unwrap_or(0));
    thread.waiting = list;
    let flags = if failed(rc) { Flags::ERROR } else { Flags::default() };
    thread.record_parts(call, &call.shape(Class::Complete, flags, PEER_NONE, TAG_NONE, bytes, comm));
}

/// Whether an error says that the request is still under way.
fn is_pending(error: i32) -> bool {
    let pending = crate::real::library().and_then(|library| library.constant("MPI_ERR_PENDING"));
    pending == Some(error as u32 as usize) || pending == Some((error & 0x7f) as usize)
}

/// Takes note of completed requests, one by one.
struct Took<'a> {
    thread: &'a mut Thread,
    bytes: u64,
    comm: Option<u32>,
}

impl Took<'_> {
    fn forget(&mut self, &(_, request, known): &(u32, usize, Tracked)) {
        REQUESTS.with(|table| table.complete(request, known.serial));
    }

    /// # Safety
    /// At `status` stands the status of this request.
    unsafe fn complete(&mut self, entry: &(u32, usize, Tracked), status: usize) {
        self.forget(entry);
        let known = &entry.2;
        match known.what {
            What::NewComm(at) => {
                // SAFETY: the program's variable that holds the new communicator, valid until now.
                let handle = unsafe { handle_at(self.thread.layout, at) };
                comms::define_like(handle, known.comm);
            }
            What::Recv | What::Exchange if known.peer != PEER_PROC_NULL => {
                // SAFETY: the caller's.
                let status = unsafe { arrived(self.thread.layout, status) };
                let mut flags = if known.persistent { Flags::PERSISTENT } else { Flags::default() };
                if known.peer == PEER_ANY {
                    flags = flags.with(Flags::WILDCARD);
                }
                let comm = known.comm.local;
                self.comm.get_or_insert(comm);
                let from = known.comm.peer(status.source, self.thread.layout);
                let source = if known.peer >= 0 { known.peer } else { from };
                let tag = if known.tag >= 0 { known.tag } else { status.tag };
                let told = known.what == What::Recv || (source, tag) == (from, status.tag);
                let bytes = if told { status.bytes } else { known.bytes };
                let shape = if status.cancelled && told {
                    part(PartKind::Recv, flags.with(Flags::CANCELLED), known.peer, known.tag, 0, comm)
                } else {
                    self.bytes += bytes;
                    part(PartKind::Recv, flags, source, tag, bytes, comm)
                };
                self.thread.parts.push(shape);
            }
            What::Recv | What::Exchange | What::Send | What::Collective => {}
        }
    }
}
