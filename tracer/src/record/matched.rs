//! Probes, and receives of messages that a probe has matched.
use super::{Call, arrived, failed, handle_at, has_received, part, side_bytes, tag};
use crate::plan::{NONE, Plan};
use crate::requests::{MESSAGES, REQUESTS, Tracked, What};
use crate::thread::Thread;
use phasecast_abi::Class as Does;
use phasecast_trace::encode::Shape;
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

/// The shape of a probe, which may match what it finds.
///
/// # Safety
/// As for [`record`].
unsafe fn probed(thread: &mut Thread, call: &Call, args: &[usize]) -> Shape {
    let (plan, layout) = (call.plan, thread.layout);
    let comm = thread.comm(args[plan.comm]);
    let mut peer = comm.peer(args[plan.source] as i32, layout);
    let (mut tag, mut bytes) = (tag(layout, args[plan.recv_tag]), 0);
    let mut flags = if peer == PEER_ANY { Flags::WILDCARD } else { Flags::default() };
    // SAFETY: the caller's.
    let found = plan.flag == NONE || unsafe { *(args[plan.flag] as *const i32) } != 0;
    if found && peer != PEER_PROC_NULL {
        flags = flags.with(Flags::FOUND);
        if tag == TAG_ANY {
            flags = flags.with(Flags::ANY_TAG);
        }
        if plan.message != NONE {
            flags = flags.with(Flags::MATCHED);
            // SAFETY: the caller's.
            let message = unsafe { handle_at(layout, args[plan.message]) };
            let what = What::Recv;
            let known = Tracked { what, persistent: false, active: true, peer, tag, bytes, comm, serial: 0 };
            MESSAGES.lock().insert(message, known);
        }
        // SAFETY: the caller's.
        let status = unsafe { arrived(layout, args[plan.status]) };
        (peer, tag, bytes) = (comm.peer(status.source, layout), status.tag, status.bytes);
    }
    call.shape(Class::Probe, flags, peer, tag, bytes, comm.local)
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
    if matches!(plan.class, Does::Probe { .. }) {
        // SAFETY: the caller's.
        let shape = unsafe { probed(thread, call, args) };
        return thread.record(call, &shape);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comms;
    use crate::plan::{PLANS, index};
    use crate::thread::tests::recorder;
    use phasecast_abi::{Abi, CountLayout};

    const COMM: usize = 0x8400_0007;
    const MESSAGE: u32 = 0x2c00_0777;

    /// A probe with this source, tag and flag, where a message of 24 bytes from rank 2 of the communicator with tag 7 is first.
    fn probe(name: &str, source: i32, tag: i32, flag: i32) -> Shape {
        let folder = tempfile::tempdir().expect("a folder");
        let (mut thread, _sink) = recorder(folder.path());
        comms::define_like(COMM, comms::for_tests(), 0);
        let layout = thread.layout.status;
        let CountLayout::Packed { low, .. } = layout.count else { panic!("of MPICH") };
        let (mut status, message) = ([0i32; 8], MESSAGE);
        (status[layout.source / 4], status[layout.tag / 4], status[low / 4]) = (2, 7, 24);
        let call = Call::new(&PLANS[index(name)], 0);
        let mut args = [source as usize, tag as usize, COMM, 0, 0, 0];
        args[call.plan.status] = status.as_ptr() as usize;
        for (at, value) in
            [(call.plan.flag, &raw const flag as usize), (call.plan.message, &raw const message as usize)]
        {
            if at != NONE {
                args[at] = value;
            }
        }
        // SAFETY: arguments of this procedure.
        unsafe { probed(&mut thread, &call, &args) }
    }

    #[test]
    fn a_probe_tells_what_it_has_found() {
        let layout = Abi::Mpich.layout();
        let [any, any_tag] = [layout.any_source, layout.any_tag];
        let all = |flags: &[Flags]| flags.iter().fold(Flags::default(), |all, flag| all.with(*flag)).0;
        let told = |shape: Shape| (shape.peer, shape.tag, shape.bytes, shape.flags);
        assert_eq!(told(probe("MPI_Probe", 2, 7, 0)), (1, 7, 24, Flags::FOUND.0));
        let open = all(&[Flags::WILDCARD, Flags::FOUND, Flags::ANY_TAG]);
        assert_eq!(told(probe("MPI_Iprobe", any, any_tag, 1)), (1, 7, 24, open));
        assert_eq!(told(probe("MPI_Iprobe", any, any_tag, 0)), (PEER_ANY, TAG_ANY, 0, Flags::WILDCARD.0));
        assert_eq!(told(probe("MPI_Iprobe", layout.proc_null, 7, 1)), (PEER_PROC_NULL, 7, 0, 0));
        assert!(MESSAGES.lock().get(MESSAGE as usize).is_none());
        let matched = all(&[Flags::FOUND, Flags::ANY_TAG, Flags::MATCHED]);
        assert_eq!(told(probe("MPI_Improbe", 2, any_tag, 1)), (1, 7, 24, matched));
        let known = MESSAGES.lock().get(MESSAGE as usize).map(|known| (known.peer, known.tag));
        assert_eq!(known, Some((1, TAG_ANY)), "as its receive will have been posted");
    }
}
