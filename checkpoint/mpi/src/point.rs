//! Messages between two ranks: sends, receives, and what is posted. Their events are counted here, and the messages that were drained at a cut are handed out before any other.
use crate::calls::{FEW, MOST};
use crate::dispatch::Call;
use crate::forward::arguments;
use crate::requests::{Request, Stage, What};
use crate::session::{Access, Session, session};
use crate::shape::Shape;
use crate::words::{handle_bytes, read_handle, read_status, write_handle};
use crate::{drain, hand_out, waits};
use phasecast_abi::{Class, Kind, Passing, Procedure, Status, Timing};

/// Where the arguments of a procedure are.
#[derive(Clone, Copy, Debug)]
pub struct Places {
    /// Its communicator.
    pub comm: usize,
    /// The receiver's rank.
    pub dest: Option<usize>,
    /// The sender's rank.
    pub source: Option<usize>,
    /// The tag that is received.
    pub tag: Option<usize>,
    /// Where its status goes.
    pub status: Option<usize>,
    /// Where it says whether it has found something.
    pub flag: Option<usize>,
    /// Where its request is.
    pub request: Option<usize>,
    /// In how many partitions its message is.
    pub partitions: Option<usize>,
    /// What a request needs until it is complete, by value: its datatype and communicator.
    pub needs: [Option<usize>; 2],
    what: What,
    persistent: bool,
    /// All ranks make the call: an event.
    together: bool,
}

impl Places {
    /// Those of a procedure.
    pub fn of(p: &Procedure) -> Places {
        let (what, timing) = kind_of(p.class);
        let by_value = |kind| p.param_index(kind).filter(|&at| p.params[at].passing == Passing::Value);
        // What a send and receive in one has sent is with its receiver at a cut.
        let datatype = match what {
            What::Exchange => p.recv_sides().next().and_then(|side| side.datatype).map(usize::from),
            _ => by_value(Kind::Datatype),
        };
        Places {
            needs: [datatype, by_value(Kind::Communicator)],
            what,
            together: matches!(what, What::Collective | What::NewComm)
                || matches!(p.class, Class::Io { collective: true, .. }),
            persistent: matches!(timing, Timing::Persistent | Timing::Partitioned),
            comm: p.param_index(Kind::Communicator).unwrap_or(0),
            dest: p.param_index(Kind::Dest),
            source: p.param_index(Kind::Source),
            tag: p.recv_tag(),
            status: p.param_index(Kind::Status),
            flag: p.param_index(Kind::Flag),
            request: p.param_index(Kind::Request),
            partitions: p.param_index(Kind::Partition).filter(|_| timing == Timing::Partitioned),
        }
    }

    /// Whether it posts a send or a receive, once.
    pub fn posts(&self) -> bool {
        self.request.is_some() && !self.persistent && matches!(self.what, What::Send | What::Recv)
    }
}

impl Session {
    /// A message to a rank of a communicator has been sent.
    #[inline(always)]
    pub fn sent(&mut self, comm: usize, dest: usize) {
        if let Some(world) = self.world_rank(comm, dest as i32) {
            self.traffic.sent[world] += 1;
            self.event();
        }
    }

    /// A send is complete or freed, with this status: a cancelled one was none.
    #[cold]
    pub fn may_be_unsent(&mut self, number: u32, status: &Status) {
        let Some(request) = self.requests.get_mut(number).filter(|request| request.cancelling && status.cancelled)
        else {
            return;
        };
        request.cancelling = false;
        let (index, args, comm) = (request.index, request.args, request.comm);
        let dest = self.shapes[usize::from(index)].point.dest;
        if let Some(world) = dest.and_then(|dest| self.world_rank(comm, args[dest] as i32)) {
            self.traffic.sent[world] -= 1;
        }
    }

    /// A message from a rank of a communicator has been received.
    #[inline(always)]
    pub fn received(&mut self, comm: usize, source: i32) {
        if let Some(world) = self.world_rank(comm, source) {
            self.traffic.received[world] += 1;
            self.event();
        }
    }

    /// The rank that a request receives from, if the program has named it: the status need not be read for it, and MPICH's
    /// tells nothing after `MPI_Isendrecv`.
    #[inline(always)]
    pub fn named_sender(&self, request: &Request) -> Option<i32> {
        let at = self.shapes[usize::from(request.index)].point.source?;
        Some(request.args[at] as i32).filter(|&rank| rank >= 0)
    }

    /// The drained message that a receive matches.
    fn take_drained(&mut self, comm: usize, source: usize, tag: usize) -> Option<drain::Message> {
        let abi = self.values.upper;
        self.drained.take(abi, comm, source as i32, tag as i32)
    }

    /// Whether a rank is `MPI_PROC_NULL`.
    pub fn proc_null(&self, rank: usize) -> bool {
        rank as i32 == self.values.upper.layout().proc_null
    }
}

/// A blocking send.
///
/// # Safety
/// A call of the gate.
pub unsafe fn send(call: &mut Call) -> usize {
    if waits::apply(call.shape) {
        // SAFETY: the caller's.
        return unsafe { waits::message(call) };
    }
    // SAFETY: the caller's.
    let result = unsafe { crate::forward::passed_on(call) };
    if result as i32 == 0 {
        let mut s = session();
        let places = &call.shape.point;
        let (comm, dest) = (call.arg(places.comm), call.arg(places.dest.unwrap_or(3)));
        s.sent(comm, dest);
    }
    result
}

/// A blocking receive, perhaps with a send in it.
///
/// # Safety
/// A call of the gate.
pub unsafe fn recv(call: &mut Call) -> usize {
    if waits::apply(call.shape) {
        // SAFETY: the caller's.
        return unsafe { waits::message(call) };
    }
    let mut s = session();
    let shape = call.shape;
    let places = &shape.point;
    let (Some(source), Some(status)) = (places.source, places.status) else { return 1 };
    let named = call.arg(source) as i32;
    // Who sends is known, or will be in the program's own status.
    let told = || shape.direct && s.recorded.is_empty() && call.arg(status) != s.values.upper.layout().status_ignore;
    let known = named >= 0 || s.any_source(named as usize) && told();
    if known && s.drained.is_empty() && call.is_direct(&s, status) {
        drop(s);
        // SAFETY: the caller's.
        let result = unsafe { crate::forward::direct(call) };
        let mut s = session();
        if result as i32 == 0 || s.truncated_above(result as i32) {
            let comm = call.arg(places.comm);
            // SAFETY: the caller's: the library has filled in the program's status, as its interface is the same.
            let sender = || unsafe { read_status(s.values.upper, call.arg(status)) }.source;
            let named = if named >= 0 { named } else { sender() };
            if let Some(dest) = places.dest {
                s.sent(comm, call.arg(dest));
            }
            s.received(comm, named);
        }
        return result;
    }
    let mut args = arguments(call, shape.lanes.len());
    let comm = args[places.comm];
    args[source] = s.recorded_source(comm, args[source]);
    if s.proc_null(args[source]) {
        let null_to_null = places.dest.is_none_or(|dest| s.proc_null(args[dest]));
        drop(s);
        // SAFETY: the caller's.
        let result = unsafe { crate::forward::forward_args(call.index, shape, &args) };
        if result as i32 == 0 && !null_to_null {
            session().sent(comm, args[places.dest.unwrap_or(3)]);
        }
        return result;
    }
    if !s.drained.is_empty()
        && let Some(message) = s.take_drained(comm, args[source], args[places.tag.unwrap_or(4)])
    {
        drop(s);
        // SAFETY: the caller's.
        return unsafe { hand_out::receive_now(shape, &args, message) };
    }
    drop(s);
    // SAFETY: the caller's.
    let (result, from) = unsafe { with_status(call.index, shape, &args, status) };
    let mut s = session();
    if result as i32 == 0 || s.truncated_above(result as i32) {
        if let Some(dest) = places.dest {
            s.sent(comm, args[dest]);
        }
        s.received(comm, from.source);
    }
    result
}

/// Passes a call on with a status of our own, and brings it up if the program wants it. Yields the result and the status
/// with ranks in the program's form.
///
/// # Safety
/// `args` are those of the procedure; argument `at` is its status.
pub unsafe fn with_status(index: usize, shape: &'static Shape, args: &[usize; MOST], at: usize) -> (usize, Status) {
    let (abi, ignore) = {
        let s = session();
        (s.values.upper, s.values.upper.layout().status_ignore)
    };
    let mut own = [0u64; 8];
    let mut given = *args;
    if given[at] == ignore {
        given[at] = own.as_mut_ptr() as usize;
    }
    // SAFETY: the caller's.
    unsafe {
        let result = crate::forward::forward_args(index, shape, &given);
        let mut status = read_status(abi, given[at]);
        status.source = rank_up(abi, status.source);
        (result, status)
    }
}

/// A rank of a status in neutral form, in the program's.
fn rank_up(abi: phasecast_abi::Abi, rank: i32) -> i32 {
    if rank >= 0 {
        return rank;
    }
    let up = abi.from_neutral(phasecast_abi::Domain::Rank, rank.into(), &phasecast_abi::NoSymbols);
    up.unwrap_or(rank.into()) as i32
}

/// Something that goes on after the call, with a request.
///
/// # Safety
/// A call of the gate.
pub unsafe fn post(call: &mut Call) -> usize {
    let s = session();
    let shape = call.shape;
    let Some(at) = shape.point.request else { return 1 };
    if !shape.posted || !s.drained.is_empty() || !s.recorded.is_empty() {
        // SAFETY: the caller's.
        return unsafe { post_with_memory(call, s, at) };
    }
    let mut request = 0;
    // SAFETY: the caller's.
    let result = unsafe { crate::forward::posted(call, s, &mut request) };
    if result as i32 == 0 {
        let mut s = session();
        // As the library has written it, as more would have to wait until that is in the cache.
        // SAFETY: our own place.
        let request = unsafe { read_handle(&raw const request as usize, s.values.lower.layout().handle_bytes) };
        let (handle, new) = s.up_handle(Kind::Request, request);
        // SAFETY: the caller's: the program's variable.
        unsafe { write_handle(call.arg(at), handle_bytes(s.values.upper, Kind::Request), handle) };
        if let Some(number) = new {
            let args: [usize; FEW] = arguments(call, shape.lanes.len());
            s.posted(number, call.index, shape, args, |i| call.arg(i));
        }
    }
    result
}

/// As [`post`], whose request is argument `at`, where more than a few words are passed on, or where messages were taken out of
/// the network.
///
/// # Safety
/// A call of the gate.
#[inline(never)]
unsafe fn post_with_memory(call: &mut Call, mut s: Access, at: usize) -> usize {
    let shape = call.shape;
    let places = &shape.point;
    let mut args = arguments(call, shape.lanes.len());
    if let Some(source) = places.source.filter(|_| !places.persistent) {
        args[source] = s.recorded_source(args[places.comm], args[source]);
    }
    if matches!(places.what, What::Recv | What::Exchange) && !places.persistent && !s.drained.is_empty() {
        let (source, tag) = (args[places.source.unwrap_or(3)], args[places.tag.unwrap_or(4)]);
        let comm = args[places.comm] & s.values.upper.layout().handle_mask as usize;
        if !s.proc_null(source)
            && let Some(message) = s.take_drained(comm, source, tag)
        {
            drop(s);
            // SAFETY: the caller's.
            return unsafe { hand_out::receive_posted(call.index, shape, &args, at, message) };
        }
    }
    drop(s);
    // SAFETY: the caller's.
    let result = unsafe { crate::forward::forward_args(call.index, shape, &args) };
    // SAFETY: the caller's.
    unsafe { note_request(call.index, shape, &args, result) };
    result
}

/// Takes note of a request that a call has made.
///
/// # Safety
/// `args` are those of the procedure, which returned `result`.
pub unsafe fn note_request(index: usize, shape: &'static Shape, args: &[usize; MOST], result: usize) {
    let Some(at) = shape.point.request.filter(|_| result as i32 == 0) else { return };
    let mut s = session();
    // SAFETY: the program's variable, which holds the new handle.
    let handle = unsafe { read_handle(args[at], handle_bytes(s.values.upper, Kind::Request)) };
    if let Some(number) = s.objects.decode(Kind::Request, handle) {
        s.posted(number, index, shape, *args, |i| args[i]);
        if shape.point.persistent && shape.point.what == What::Collective {
            // SAFETY: the caller's.
            let needs = unsafe { crate::log::record(&mut s, shape, args) }.needs;
            s.needs_besides(number, needs);
        }
    }
}

fn kind_of(class: Class) -> (What, Timing) {
    match class {
        Class::Send { timing, .. } => (What::Send, timing),
        Class::Recv { timing } | Class::MatchedRecv { timing } => (What::Recv, timing),
        Class::SendRecv { timing, .. } => (What::Exchange, timing),
        Class::Collective { timing, .. } => (What::Collective, timing),
        Class::CommConstructor { timing, .. } => (What::NewComm, timing),
        _ => (What::Other, Timing::Nonblocking),
    }
}

impl Session {
    /// A call with these arguments of the program has made a request. `arg` is one of them: an array of which one is chosen
    /// must be in memory, and would be written there and read again.
    #[inline(always)]
    fn posted<const N: usize>(
        &mut self,
        number: u32,
        index: usize,
        shape: &'static Shape,
        args: [usize; N],
        arg: impl Fn(usize) -> usize,
    ) {
        let places = &shape.point;
        let (what, persistent) = (places.what, places.persistent);
        let comm = arg(places.comm) & self.values.upper.layout().handle_mask as usize;
        let counts = places.source.is_some_and(|source| !self.proc_null(arg(source)));
        let needs = self.request_needs(shape, &arg);
        let dest = places.dest.map(&arg);
        let ordinal = if persistent && what == What::Collective { self.next_persistent(comm) } else { 0 };
        let turn = self.requests.turn();
        let request = self.requests.place(number);
        request.started = turn;
        request.what = what;
        request.persistent = persistent;
        request.stage = if persistent { Stage::Inactive } else { Stage::Active };
        request.index = index as u16;
        request.args[..N].copy_from_slice(&args);
        request.args[N..].fill(0);
        request.comm = comm;
        request.counts = counts;
        request.counted = false;
        request.cancelling = false;
        request.needs = needs;
        if persistent {
            request.made = turn;
            (request.ordinal, request.over) = (ordinal, false);
            return;
        }
        if let Some(dest) = dest {
            self.sent(comm, dest);
        } else if places.together {
            self.event();
        }
    }
}
