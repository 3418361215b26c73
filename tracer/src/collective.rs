//! Collectives: what this rank contributes, or receives where it contributes none.
use crate::comms::Comm;
use crate::plan::{Plan, exists};
use crate::record::{Call, failed, handle_at, side_bytes};
use crate::requests::{REQUESTS, Tracked, What};
use crate::thread::Thread;
use phasecast_abi::{Class as Does, Pattern, Side, Timing};
use phasecast_trace::model::{Class, Flags, PEER_NONE, PEER_PROC_NULL, TAG_NONE};

/// A blocking collective to which every rank contributes the one buffer that it describes, or takes it from the root.
///
/// # Safety
/// `args` are those of the procedure.
#[inline(always)]
pub unsafe fn record_plain(thread: &mut Thread, call: &Call, args: &[usize], rc: usize) {
    let plan = call.plan;
    let Does::Collective { root, .. } = plan.class else { return };
    if failed(rc) {
        return call.failed(thread);
    }
    let comm = thread.comm(args[plan.comm]);
    if comm.inter() {
        // SAFETY: the caller's.
        return unsafe { record(thread, call, args, rc) };
    }
    // SAFETY: the caller's.
    let bytes = if exists(&plan.send) { unsafe { side_bytes(thread, plan, &plan.send, args) } } else { 0 };
    let peer = root.map_or(PEER_NONE, |at| comm.peer(args[at as usize] as i32, thread.layout));
    thread.record(call, &call.shape(Class::Collective, Flags::default(), peer, TAG_NONE, bytes, comm.local));
}

/// A collective, blocking, at its start, or a persistent one that is made.
///
/// # Safety
/// `args` are those of the procedure.
pub unsafe fn record(thread: &mut Thread, call: &Call, args: &[usize], rc: usize) {
    if failed(rc) {
        return call.failed(thread);
    }
    let plan = call.plan;
    let Does::Collective { pattern, timing, neighbourhood, root, .. } = plan.class else { return };
    let comm = thread.comm(args[plan.comm]);
    let part = Part { plan, args, comm, neighbourhood };
    let root = root.map(|at| args[at as usize] as i32);
    let place = match root {
        None => Place::Member,
        Some(root) if root == thread.layout.root || (root == comm.rank && !comm.inter()) => Place::Root,
        Some(root) if root == thread.layout.proc_null => Place::Outside,
        Some(_) => Place::Member,
    };
    let peer = match (root, place) {
        (None, _) => PEER_NONE,
        (Some(_), Place::Root) if comm.inter() => thread.own_rank(),
        (Some(_), Place::Outside) => PEER_PROC_NULL,
        (Some(root), _) => comm.peer(root, thread.layout),
    };
    // SAFETY: the caller's.
    let bytes = unsafe { part.bytes(thread, pattern, place) };
    let flags = match timing {
        Timing::Blocking => Flags::default(),
        Timing::Nonblocking => Flags::NONBLOCKING,
        Timing::Persistent | Timing::Partitioned => Flags::PERSISTENT,
    };
    if timing != Timing::Blocking {
        // SAFETY: the caller's.
        let request = unsafe { handle_at(thread.layout, args[plan.request]) };
        match timing {
            Timing::Nonblocking => REQUESTS.lock().forget(request),
            _ => {
                let what = What::Collective;
                let (persistent, active, tag) = (true, false, TAG_NONE);
                let tracked = Tracked { what, persistent, active, peer, tag, bytes, comm, serial: 0 };
                REQUESTS.lock().insert(request, tracked);
            }
        }
    }
    let class = if flags.has(Flags::PERSISTENT) { Class::Post } else { Class::Collective };
    thread.record(call, &call.shape(class, flags, peer, TAG_NONE, bytes, comm.local));
}

/// This rank's place in a collective with a root.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    Root,
    Member,
    /// In the root's group of an intercommunicator, but not the root.
    Outside,
}

/// The arguments of a collective.
struct Part<'a> {
    plan: &'static Plan,
    args: &'a [usize],
    comm: &'static Comm,
    neighbourhood: bool,
}

impl Part<'_> {
    /// # Safety
    /// As for [`record`].
    unsafe fn bytes(&self, thread: &mut Thread, pattern: Pattern, place: Place) -> u64 {
        let (send, recv) = (&self.plan.send, &self.plan.recv);
        let in_place = thread.layout.in_place;
        let in_place = exists(send) && self.args[send.buffer as usize] == in_place;
        let others = self.comm.size();
        let me = self.comm.rank as usize;
        if place == Place::Outside {
            return 0;
        }
        // SAFETY: the caller's; which arguments count, and how long arrays are, is as the standard says.
        unsafe {
            match pattern {
                Pattern::Barrier => 0,
                Pattern::Bcast | Pattern::Reduce | Pattern::Allreduce | Pattern::Scan | Pattern::Exscan => {
                    self.one(thread, send, 0)
                }
                Pattern::ReduceScatter => self.sum(thread, send, self.comm.own_size()),
                Pattern::ReduceScatterBlock => self.sum(thread, send, self.comm.own_size()),
                Pattern::Gather if place == Place::Root && self.comm.inter() => self.sum(thread, recv, others),
                Pattern::Gather if in_place => self.one(thread, recv, me),
                Pattern::Gather => self.one(thread, send, 0),
                Pattern::Scatter if place == Place::Root => self.sum(thread, send, others),
                Pattern::Scatter => self.one(thread, recv, me),
                Pattern::Allgather if in_place => self.one(thread, recv, me),
                Pattern::Allgather => self.one(thread, send, 0),
                Pattern::Alltoall if in_place => self.sum(thread, recv, others),
                Pattern::Alltoall if self.neighbourhood => {
                    let mask = thread.layout.handle_mask as usize;
                    let outdegree = self.comm.outdegree(self.args[self.plan.comm] & mask);
                    self.sum(thread, send, outdegree)
                }
                Pattern::Alltoall => self.sum(thread, send, others),
            }
        }
    }

    /// Elements at `index`: of an array of counts, or the one count.
    ///
    /// # Safety
    /// As for [`record`], and the array is so long.
    unsafe fn count(&self, side: &Side, index: usize) -> u64 {
        let Some(at) = side.count else { return 1 };
        let given = self.args[at as usize];
        let count = match (self.is_array(at), self.plan.wide) {
            (false, false) => i64::from(given as i32),
            (false, true) => given as i64,
            // SAFETY: the caller's.
            (true, false) => i64::from(unsafe { (given as *const i32).add(index).read_unaligned() }),
            // SAFETY: the caller's.
            (true, true) => unsafe { (given as *const i64).add(index).read_unaligned() },
        };
        u64::try_from(count).unwrap_or(0)
    }

    fn is_array(&self, argument: u8) -> bool {
        self.plan.arrays >> argument & 1 != 0
    }

    /// Bytes for the peer at `index`.
    ///
    /// # Safety
    /// As for [`record`], and arrays are so long.
    unsafe fn one(&self, thread: &mut Thread, side: &Side, index: usize) -> u64 {
        // SAFETY: the caller's.
        let count = unsafe { self.count(side, index) };
        // Where there is nothing, the datatype need not be one.
        if count == 0 {
            return 0;
        }
        let size = match side.datatype {
            None => 1,
            Some(at) if self.is_array(at) => {
                let types = self.args[at as usize];
                // SAFETY: the caller's.
                let datatype = unsafe { handle_at(thread.layout, types + index * thread.layout.handle_bytes) };
                thread.type_size(datatype)
            }
            Some(at) => thread.type_size(self.args[at as usize]),
        };
        count.wrapping_mul(size)
    }

    /// Bytes for `length` peers.
    ///
    /// # Safety
    /// As for [`record`], and arrays are so long.
    unsafe fn sum(&self, thread: &mut Thread, side: &Side, length: usize) -> u64 {
        let Some(count) = side.count else { return 0 };
        if !self.is_array(count) {
            // SAFETY: the caller's.
            return unsafe { self.one(thread, side, 0) }.wrapping_mul(length as u64);
        }
        // SAFETY: the caller's.
        (0..length).map(|i| unsafe { self.one(thread, side, i) }).fold(0, u64::wrapping_add)
    }
}
