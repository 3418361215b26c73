//! What each class of call says about communication, but for collectives and completions.
use crate::clock;
use crate::comms::{self, Comm};
use crate::plan::{NONE, Plan, exists};
use crate::real::{library, mpi};
use crate::requests::{MESSAGES, REQUESTS, Tracked, What};
use crate::thread::Thread;
use phasecast_abi::{Class as Does, CountLayout, Kind, Layout, RmaStep, Side, Timing};
use phasecast_trace::encode::{PART, Shape};
use phasecast_trace::model::{Class, Flags, PEER_ANY, PEER_NONE, PEER_PROC_NULL, PartKind, TAG_ANY, TAG_NONE};

/// A call that is under way or done.
pub struct Call {
    /// The procedure.
    pub plan: &'static Plan,
    /// Where it returns to.
    pub site: usize,
    /// When it was entered, in units.
    pub enter: u64,
    /// When it returned, in units.
    pub exit: u64,
}

impl Call {
    /// A call that is about to be made.
    #[inline(always)]
    pub fn new(plan: &'static Plan, site: usize) -> Call {
        Call { plan, site, enter: 0, exit: 0 }
    }

    /// Makes it.
    #[inline(always)]
    pub fn time(&mut self, call: impl FnOnce() -> usize) -> usize {
        self.enter = clock::now();
        let rc = call();
        self.exit = clock::now();
        rc
    }

    /// Its shape.
    #[inline(always)]
    pub fn shape(&self, class: Class, flags: Flags, peer: i32, tag: i32, bytes: u64, comm: u32) -> Shape {
        let (site, proc, flags, role) = (self.site as u64, self.plan.number, flags.0, class as u8);
        Shape { peer, tag, bytes, site, comm, proc, flags, role }
    }

    /// Records it as having failed: no communication came of it.
    #[cold]
    pub fn failed(&self, thread: &mut Thread) {
        thread.record(self, &self.shape(Class::Other, Flags::ERROR, PEER_NONE, TAG_NONE, 0, 0));
    }
}

/// The shape of a part.
pub fn part(kind: PartKind, flags: Flags, peer: i32, tag: i32, bytes: u64, comm: u32) -> Shape {
    Shape { peer, tag, bytes, site: 0, comm, proc: 0, flags: flags.0, role: PART | kind as u8 }
}

/// Whether a procedure returned an error.
#[inline(always)]
pub fn failed(rc: usize) -> bool {
    rc as i32 != 0
}

/// The handle that stands at an address.
///
/// # Safety
/// A handle stands there.
#[inline(always)]
pub unsafe fn handle_at(layout: &Layout, at: usize) -> usize {
    // SAFETY: the caller's.
    unsafe {
        if layout.handle_bytes == 4 { (at as *const u32).read_unaligned() as usize } else { *(at as *const usize) }
    }
}

#[inline(always)]
fn tag(layout: &Layout, tag: usize) -> i32 {
    if tag as i32 == layout.any_tag { TAG_ANY } else { tag as i32 }
}

/// Bytes of a buffer that is described by one count.
///
/// # Safety
/// `args` are those of a procedure with this side.
#[inline(always)]
pub unsafe fn side_bytes(thread: &mut Thread, plan: &Plan, side: &Side, args: &[usize]) -> u64 {
    let count = match side.count {
        Some(at) if plan.wide => args[at as usize] as i64,
        Some(at) => i64::from(args[at as usize] as i32),
        None => 1,
    };
    let partitions = side.partitions.map_or(1, |at| args[at as usize] as i32 as u64);
    let size = side.datatype.map_or(1, |at| thread.type_size(args[at as usize]));
    u64::try_from(count).unwrap_or(0).wrapping_mul(partitions).wrapping_mul(size)
}

/// A status that stands in for one that the program does not want.
#[derive(Default)]
pub struct OwnStatus([u64; 8]);

impl OwnStatus {
    /// Puts this one in place of `MPI_STATUS_IGNORE`.
    #[inline(always)]
    pub fn lend(&mut self, thread: &Thread, plan: &Plan, args: &mut [usize]) {
        if plan.status != NONE && args[plan.status] == thread.layout.status_ignore {
            args[plan.status] = self.0.as_mut_ptr() as usize;
        }
    }
}

/// What a status says of a receive.
pub struct Arrived {
    /// Rank of the sender in the communicator.
    pub source: i32,
    /// The tag.
    pub tag: i32,
    /// The bytes.
    pub bytes: u64,
    /// Nothing was received: the request was cancelled.
    pub cancelled: bool,
}

/// Reads a status.
///
/// # Safety
/// A status that MPI has filled in stands there.
#[inline(always)]
pub unsafe fn arrived(layout: &Layout, at: usize) -> Arrived {
    // SAFETY: fields of the status, by the layout of the interface.
    let word = |offset: usize| unsafe { ((at + offset) as *const i32).read_unaligned() };
    let (source, tag) = (word(layout.status.source), word(layout.status.tag));
    let (bytes, cancelled) = match layout.status.count {
        _ if layout.abi == phasecast_abi::Abi::Standard => ask_status(at),
        CountLayout::Apart { bytes, cancelled } => {
            // SAFETY: as above.
            (unsafe { ((at + bytes) as *const u64).read_unaligned() }, word(cancelled) != 0)
        }
        CountLayout::Packed { low, high } => {
            let high = word(high) as u32;
            (u64::from(word(low) as u32) | u64::from(high >> 1) << 32, high & 1 != 0)
        }
    };
    Arrived { source, tag, bytes, cancelled }
}

/// The standard interface leaves to each library how a status holds these.
#[cold]
fn ask_status(at: usize) -> (u64, bool) {
    const BYTE: usize = match phasecast_abi::constant("MPI_BYTE") {
        Some(byte) => match byte.value(phasecast_abi::Abi::Standard) {
            phasecast_abi::Value::Number(handle) => handle as usize,
            _ => panic!("a number in the standard interface"),
        },
        None => panic!("a constant of MPI"),
    };
    let (mut bytes, mut cancelled) = (0i64, 0i32);
    mpi!(MPI_Get_elements_c(at, BYTE, &raw mut bytes));
    mpi!(MPI_Test_cancelled(at, &raw mut cancelled));
    (u64::try_from(bytes).unwrap_or(0), cancelled != 0)
}

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
    if failed(rc) {
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
    let shape = if plan.dest != NONE {
        let peer = comm.peer(args[plan.dest] as i32, layout);
        // SAFETY: the caller's.
        let bytes = unsafe { side_bytes(thread, plan, &plan.send, args) };
        call.shape(Class::Send, Flags::default(), peer, args[plan.send_tag] as i32, bytes, comm.local)
    } else {
        call.shape(Class::Recv, flags, wanted, tag(layout, args[plan.recv_tag]), got.bytes, comm.local)
    };
    let parts = [got];
    thread.record_few(call, &shape, if wanted == PEER_PROC_NULL { &[] } else { &parts });
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
            let what = What::Send;
            tracked = Some(Tracked { what, persistent, active: false, peer, tag, bytes, comm, serial: 0 });
        }
        call.shape(if persistent { Class::Post } else { Class::Send }, flags, peer, tag, bytes, comm.local)
    } else {
        let (peer, tag, bytes) = tracked.map_or((PEER_PROC_NULL, TAG_ANY, 0), |t| (t.peer, t.tag, t.bytes));
        call.shape(Class::Post, flags, peer, tag, bytes, comm.local)
    };
    REQUESTS.with(|table| match tracked {
        Some(tracked) => table.insert(request, tracked),
        None => table.forget(request),
    });
    thread.record(call, &shape);
}

/// Persistent requests that were started.
///
/// # Safety
/// `args` are those of `MPI_Start` or `MPI_Startall`.
pub unsafe fn started(thread: &mut Thread, call: &Call, args: &[usize], rc: usize) {
    if failed(rc) {
        return call.failed(thread);
    }
    let layout = thread.layout;
    let all = matches!(call.plan.class, Does::Start { all: true });
    let (count, at) = if all { (args[0] as i32, args[1]) } else { (1, args[0]) };
    let mut bytes = 0u64;
    let mut comm = 0;
    thread.parts.clear();
    for i in 0..count.max(0) as usize {
        // SAFETY: the caller's: an array of so many requests.
        let request = unsafe { handle_at(layout, at + i * layout.handle_bytes) };
        let Some(known) = REQUESTS.with(|table| table.start(request)) else { continue };
        let mut flags = Flags::PERSISTENT;
        let kind = match known.what {
            What::Send => PartKind::Send,
            What::Collective => PartKind::Collective,
            What::Recv | What::Exchange | What::NewComm => {
                if known.peer == PEER_ANY {
                    flags = flags.with(Flags::WILDCARD);
                }
                PartKind::Post
            }
        };
        let sent = if kind == PartKind::Post { 0 } else { known.bytes };
        bytes += sent;
        comm = known.comm.local;
        thread.parts.push(part(kind, flags, known.peer, known.tag, sent, comm));
    }
    thread.record_parts(call, &call.shape(Class::Start, Flags::PERSISTENT, PEER_NONE, TAG_NONE, bytes, comm));
}

/// What is known of the message that a matched receive is about to take.
///
/// # Safety
/// `args` are those of the procedure.
pub unsafe fn before_matched(thread: &Thread, plan: &Plan, args: &[usize]) -> Option<Tracked> {
    if !matches!(plan.class, Does::MatchedRecv { .. }) {
        return None;
    }
    // SAFETY: the caller's.
    let message = unsafe { handle_at(thread.layout, args[plan.message]) };
    MESSAGES.with(|table| {
        let known = table.get(message).copied();
        table.forget(message);
        known
    })
}

/// A probe, or the receive of a matched message, of which `noted` is known (nothing if it is from `MPI_PROC_NULL`).
///
/// # Safety
/// `args` are those of the procedure, its status one that MPI has filled in.
pub unsafe fn matched(thread: &mut Thread, call: &Call, args: &[usize], rc: usize, noted: Option<Tracked>) {
    if failed(rc) {
        return call.failed(thread);
    }
    let plan = call.plan;
    let layout = thread.layout;
    if let Does::Probe { matched, .. } = plan.class {
        let comm = thread.comm(args[plan.comm]);
        let peer = comm.peer(args[plan.source] as i32, layout);
        let tag = tag(layout, args[plan.recv_tag]);
        let wild = args[plan.source] as i32 == layout.any_source;
        // SAFETY: the caller's.
        let found = plan.flag == NONE || unsafe { *(args[plan.flag] as *const i32) } != 0;
        if matched && found && peer != PEER_PROC_NULL {
            // SAFETY: the caller's.
            let message = unsafe { handle_at(layout, args[plan.message]) };
            let what = What::Recv;
            let known = Tracked { what, persistent: false, active: true, peer, tag, bytes: 0, comm, serial: 0 };
            MESSAGES.with(|table| table.insert(message, known));
        }
        let flags = if wild { Flags::WILDCARD } else { Flags::default() };
        return thread.record(call, &call.shape(Class::Probe, flags, peer, tag, 0, comm.local));
    }
    let wild = noted.is_some_and(|known| known.peer == PEER_ANY);
    let flags = if wild { Flags::WILDCARD } else { Flags::default() };
    let (peer, tag, comm) = noted.map_or((PEER_PROC_NULL, TAG_ANY, 0), |k| (k.peer, k.tag, k.comm.local));
    if plan.request != NONE {
        // SAFETY: the caller's.
        let request = unsafe { handle_at(layout, args[plan.request]) };
        REQUESTS.with(|table| match noted {
            Some(known) => table.insert(request, known),
            None => table.forget(request),
        });
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

/// Lets a communicator that is made by a nonblocking call be told from one that is there already.
///
/// # Safety
/// `args` are those of the procedure.
pub unsafe fn before_constructor(thread: &Thread, plan: &Plan, args: &[usize]) {
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
pub unsafe fn constructed(thread: &mut Thread, call: &Call, args: &[usize], rc: usize) {
    let plan = call.plan;
    let Does::CommConstructor { parent, child, timing, .. } = plan.class else { return };
    if !plan.recorded() {
        return;
    }
    if failed(rc) {
        return call.failed(thread);
    }
    // SAFETY: the caller's.
    let handle = unsafe { handle_at(thread.layout, args[child as usize]) };
    let is_null = handle == null_comm() || handle == 0;
    // Only the members of the new group call these.
    let of_members = parent.is_none() || plan.name == "MPI_Comm_create_group";
    let parent = parent.map(|at| thread.comm(args[at as usize]));
    let nonblocking = matches!(timing, Timing::Nonblocking);
    let new = match parent {
        _ if is_null => None,
        Some(parent) if nonblocking => Some(comms::define_like(handle, parent)),
        _ => Some(comms::define(handle)),
    };
    if nonblocking {
        // SAFETY: the caller's.
        let request = unsafe { handle_at(thread.layout, args[plan.request]) };
        let (what, bytes) = (What::NewComm, args[child as usize] as u64);
        REQUESTS.with(|table| match parent {
            Some(comm) if new.is_none() => table.insert(
                request,
                Tracked { what, persistent: false, active: true, peer: 0, tag: 0, bytes, comm, serial: 0 },
            ),
            _ => table.forget(request),
        });
    }
    let flags = if nonblocking { Flags::NONBLOCKING } else { Flags::default() };
    let (class, comm) = match (parent, new) {
        (_, Some(new)) if of_members => (Class::Comm, new.local),
        (Some(parent), _) if !of_members => (Class::Comm, parent.local),
        (parent, _) => (Class::Other, parent.map_or(0, |comm| comm.local)),
    };
    thread.record(call, &call.shape(class, flags, PEER_NONE, TAG_NONE, 0, comm));
}

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
            REQUESTS.with(|table| {
                let comm = table.get(request).map(|known| known.comm);
                table.forget(request);
                comm
            })
        }
        Does::Cancel => {
            // SAFETY: the caller's.
            let request = unsafe { handle_at(layout, args[plan.request]) };
            REQUESTS.with(|table| table.get(request).map(|known| known.comm))
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
pub unsafe fn other(thread: &mut Thread, call: &Call, args: &[usize], rc: usize, before: Option<&'static Comm>) {
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
    let makes = matches!(plan.class, Does::Rma { step: RmaStep::WindowConstructor, .. })
        || plan.object_is_file && plan.object_by_address && plan.comm != NONE;
    if makes {
        let parent = thread.comm(args[plan.comm]);
        // SAFETY: the caller's.
        comms::bind(unsafe { object_handle(layout, plan, args) }, parent);
        comm = Some(parent);
    }
    let peer = match (comm, plan.target) {
        (Some(comm), target) if target != NONE => comm.peer(args[target] as i32, layout),
        _ => PEER_NONE,
    };
    let mut bytes = 0;
    for side in [&plan.send, &plan.recv] {
        if bytes == 0 && exists(side) {
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
        REQUESTS.with(|table| table.forget(request));
    }
    thread.record(call, &call.shape(class, flags, peer, TAG_NONE, bytes, comm.map_or(0, |comm| comm.local)));
}
