//! Messages between two ranks: sends, receives, what is posted, probes and matched receives. Their events are counted
//! here, and the messages that were drained at a cut are handed out before any other.
use crate::calls::MOST;
use crate::calls::call as invoke;
use crate::forward::arguments;
use crate::objects::slot;
use crate::requests::{Matched, Request, SavedStatus, Stage, What};
use crate::session::{Call, Session, session};
use crate::shape::Shape;
use crate::words::{Scratch, handle_bytes, read_handle, read_status, write_handle, write_status};
use crate::{drain, hand_out};
use phasecast_abi::{Class, Kind, Passing, Procedure, Status, Timing};

/// Where the arguments of a procedure are.
#[derive(Clone, Copy, Debug)]
pub struct Places {
    comm: usize,
    dest: Option<usize>,
    source: Option<usize>,
    tag: Option<usize>,
    status: Option<usize>,
    request: Option<usize>,
    /// What a request needs until it is complete, by value: its datatype and communicator.
    needs: [Option<usize>; 2],
    what: What,
    persistent: bool,
}

impl Places {
    /// Those of a procedure.
    pub fn of(p: &Procedure) -> Places {
        let (what, timing) = kind_of(p.class);
        let by_value = |kind| p.param_index(kind).filter(|&at| p.params[at].passing == Passing::Value);
        Places {
            needs: [by_value(Kind::Datatype), by_value(Kind::Communicator)],
            what,
            persistent: matches!(timing, Timing::Persistent | Timing::Partitioned),
            comm: p.param_index(Kind::Communicator).unwrap_or(0),
            dest: p.param_index(Kind::Dest),
            source: p.param_index(Kind::Source),
            tag: p.recv_tag(),
            status: p.param_index(Kind::Status),
            request: p.param_index(Kind::Request),
        }
    }
}

impl Session {
    /// A message to a rank of a communicator has been sent.
    fn sent(&mut self, comm: usize, dest: usize) {
        if let Some(world) = self.world_rank(comm, dest as i32) {
            self.traffic.sent[world] += 1;
            self.event();
        }
    }

    /// A message from a rank of a communicator has been received.
    pub fn received(&mut self, comm: usize, source: i32) {
        if let Some(world) = self.world_rank(comm, source) {
            self.traffic.received[world] += 1;
            self.event();
        }
    }

    /// The drained message that a receive matches.
    fn take_drained(&mut self, comm: usize, source: usize, tag: usize) -> Option<drain::Message> {
        let abi = self.values.upper;
        self.drained.take(abi, comm, source as i32, tag as i32)
    }

    fn proc_null(&self, rank: usize) -> bool {
        rank as i32 == self.values.upper.layout().proc_null
    }
}

/// A blocking send.
///
/// # Safety
/// A call of the gate.
pub unsafe fn send(call: &mut Call) -> usize {
    // SAFETY: the caller's.
    let result = unsafe { crate::forward::passed_on(call) };
    if result as i32 == 0 {
        let mut s = session();
        let places = &s.shape(call.index).point;
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
    let mut s = session();
    let shape = &s.shapes[call.index];
    let args = arguments(call, shape.lanes.len());
    let places = shape.point;
    let (Some(source), Some(status)) = (places.source, places.status) else { return 1 };
    let comm = args[places.comm];
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
unsafe fn with_status(index: usize, shape: &'static Shape, args: &[usize; MOST], at: usize) -> (usize, Status) {
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
    let mut s = session();
    let shape = &s.shapes[call.index];
    let args = arguments(call, shape.lanes.len());
    let places = shape.point;
    let Some(at) = places.request else { return 1 };
    if places.what == What::Recv && !places.persistent && !s.drained.is_empty() {
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
    let places = shape.point;
    let (what, persistent) = (places.what, places.persistent);
    let Some(at) = places.request.filter(|_| result as i32 == 0) else { return };
    let mut s = session();
    let comm = args[places.comm] & s.values.upper.layout().handle_mask as usize;
    let from_somebody = places.source.is_some_and(|source| !s.proc_null(args[source]));
    // SAFETY: the program's variable, which holds the new handle.
    let handle = unsafe { read_handle(args[at], handle_bytes(s.values.upper, Kind::Request)) };
    let Some(number) = s.objects.decode(Kind::Request, handle) else { return };
    let needs = s.request_needs(shape, args);
    s.requests.put(
        number,
        Request {
            what,
            persistent,
            stage: if persistent { Stage::Inactive } else { Stage::Active },
            index: index as u16,
            args: *args,
            comm,
            counts: from_somebody,
            counted: false,
            needs,
        },
    );
    if !persistent {
        if let Some(dest) = places.dest {
            s.sent(comm, args[dest]);
        } else if what == What::Collective || what == What::NewComm {
            s.event();
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
    /// The datatype and communicator that a request needs until it is complete.
    pub fn request_needs(&mut self, shape: &Shape, args: &[usize; MOST]) -> [Option<(u8, u32)>; 2] {
        let mut needs = [None, None];
        let places = shape.point.needs.iter().zip([Kind::Datatype, Kind::Communicator]);
        for (need, (at, kind)) in needs.iter_mut().zip(places) {
            let Some(at) = *at else { continue };
            if let Some(number) = self.decode(kind, args[at]) {
                if let Some(object) = self.objects.get_mut(kind, number) {
                    object.users += 1;
                }
                *need = Some((slot(kind) as u8, number));
            }
        }
        needs
    }

    /// A request is complete and gone.
    pub fn finish_request(&mut self, number: u32) {
        if let Some(request) = self.requests.take(number) {
            for (kind, index) in request.needs.into_iter().flatten() {
                self.unused(crate::objects::KINDS[usize::from(kind)], index);
            }
        }
        self.objects.release(Kind::Request, number);
    }
}

/// A probe: messages that were drained come first.
///
/// # Safety
/// A call of the gate.
pub unsafe fn probe(call: &mut Call) -> usize {
    let mut s = session();
    let shape = &s.shapes[call.index];
    let args = arguments(call, shape.lanes.len());
    let places = shape.point;
    let Class::Probe { matched, .. } = shape.procedure.class else { return 1 };
    let (source, tag) = (args[places.source.unwrap_or(0)] as i32, args[places.tag.unwrap_or(1)] as i32);
    let comm = args[places.comm] & s.values.upper.layout().handle_mask as usize;
    let flag = shape.procedure.param_index(Kind::Flag);
    let message = shape.procedure.param_index(Kind::Message);
    let null = s.proc_null(source as usize);
    if !null && !s.drained.is_empty() {
        let abi = s.values.upper;
        let found =
            if matched { s.drained.take(abi, comm, source, tag) } else { s.drained.look(abi, comm, source, tag) };
        if let Some(found) = found {
            let (abi, ignore) = (s.values.upper, s.values.upper.layout().status_ignore);
            // SAFETY: the caller's: the places that the procedure writes to.
            unsafe {
                if let Some(flag) = flag {
                    *(args[flag] as *mut i32) = 1;
                }
                if let Some(at) = places.status.filter(|&at| args[at] != ignore) {
                    write_status(abi, args[at], &found.status());
                }
                if let Some(at) = message {
                    let number = s.objects.add(Kind::Message, 0);
                    s.requests.messages.insert(number, Matched { comm, found: None, taken: Some(found) });
                    write_handle(args[at], handle_bytes(abi, Kind::Message), s.objects.encode(Kind::Message, number));
                }
            }
            return 0;
        }
    }
    drop(s);
    // SAFETY: the caller's.
    let (result, status) = unsafe { with_status(call.index, shape, &args, places.status.unwrap_or(0)) };
    // SAFETY: the caller's: the flag of a test.
    let found = result as i32 == 0 && flag.is_none_or(|flag| unsafe { *(args[flag] as *const i32) } != 0);
    if let Some(at) = message.filter(|_| found && !null) {
        let mut s = session();
        // SAFETY: the caller's.
        let handle = unsafe { read_handle(args[at], handle_bytes(s.values.upper, Kind::Message)) };
        if let Some(number) = s.objects.decode(Kind::Message, handle) {
            let found = Some(SavedStatus::from(status));
            s.requests.messages.insert(number, Matched { comm, found, taken: None });
            // It is out of the network from now on, though it is no event before it is received.
            if let Some(world) = s.world_rank(comm, status.source) {
                s.traffic.received[world] += 1;
            }
        }
    }
    result
}

/// The receive of a matched message.
///
/// # Safety
/// A call of the gate.
pub unsafe fn matched(call: &mut Call) -> usize {
    let mut s = session();
    let shape = &s.shapes[call.index];
    let args = arguments(call, shape.lanes.len());
    let places = shape.point;
    let message = shape.procedure.param_index(Kind::Message).unwrap_or(3);
    let bytes = handle_bytes(s.values.upper, Kind::Message);
    // SAFETY: the caller's: the program's message.
    let handle = unsafe { read_handle(args[message], bytes) };
    let number = s.objects.decode(Kind::Message, handle);
    let known = number.and_then(|number| s.requests.messages.remove(&number));
    let null = s.values.above("MPI_MESSAGE_NULL").unwrap_or(0);
    if let (Some(number), Some(Matched { comm, taken: Some(taken), .. })) = (number, known.as_ref()) {
        s.objects.release(Kind::Message, number);
        // SAFETY: the caller's: the program's message.
        unsafe { write_handle(args[message], bytes, null) };
        let (comm, taken) = (*comm, taken.clone());
        drop(s);
        // SAFETY: the caller's.
        return unsafe { hand_out::receive_matched(shape, &args, comm, taken, places.status, places.request) };
    }
    let mut scratch = Scratch::new();
    let mut below = [0; MOST];
    let count = shape.lanes.len();
    let lower = s.values.lower;
    // The arguments of the procedure for large counts are the same: where the library lacks it, the plain one does.
    let function = s.library.function(call.index).or_else(|| crate::absent::plain(&s, shape, &args));
    let Some(function) = function else {
        return s.values.above("MPI_ERR_COUNT").unwrap_or(2);
    };
    for (i, below) in below.iter_mut().enumerate().take(count) {
        // SAFETY: the caller's.
        *below = unsafe { s.down_arg(shape, &args, i, &mut scratch) };
    }
    let mut own = [0u64; 8];
    if let Some(at) = places.status {
        below[at] = own.as_mut_ptr() as usize;
    }
    drop(s);
    // SAFETY: the caller's.
    let result = unsafe { invoke(function, &below[..count]) };
    let mut s = session();
    if result as i32 != 0 {
        return s.up_error(result);
    }
    if let Some(number) = number {
        s.objects.release(Kind::Message, number);
    }
    // SAFETY: the caller's.
    unsafe { write_handle(args[message], bytes, null) };
    let Some(known) = known else {
        // From nobody: the message of a probe of MPI_PROC_NULL.
        // SAFETY: the caller's.
        return unsafe { from_nobody(&mut s, shape, &args, &below, &places, lower) };
    };
    // SAFETY: the caller's: what the library has written.
    unsafe {
        if let Some(at) = places.status {
            let status = read_status(lower, below[at]);
            if args[at] != s.values.upper.layout().status_ignore {
                write_status(s.values.upper, args[at], &status);
            }
            s.event();
        }
        if let Some(at) = places.request {
            let handle = read_handle(below[at], handle_bytes(lower, Kind::Request));
            let (above, new) = s.up_handle(Kind::Request, handle);
            write_handle(args[at], handle_bytes(s.values.upper, Kind::Request), above);
            if let Some(number) = new {
                s.put_receive(number, call.index, args, known.comm, Stage::Active);
            }
        }
    }
    result
}

impl Session {
    /// Notes the request of a receive that was not posted in the usual way.
    pub fn put_receive(&mut self, number: u32, index: usize, args: [usize; MOST], comm: usize, stage: Stage) {
        let shape = &self.shapes[index];
        let needs = self.request_needs(shape, &args);
        let (what, persistent, index) = (What::Recv, false, index as u16);
        let (counts, counted) = (true, true);
        self.requests.put(number, Request { what, persistent, stage, index, args, comm, counts, counted, needs });
    }
}

/// # Safety
/// As for [`matched`].
unsafe fn from_nobody(
    s: &mut Session,
    shape: &'static Shape,
    args: &[usize; MOST],
    below: &[usize; MOST],
    places: &Places,
    lower: phasecast_abi::Abi,
) -> usize {
    // SAFETY: the caller's.
    unsafe {
        for i in [places.status, places.request].into_iter().flatten() {
            if places.status == Some(i) {
                if args[i] != s.values.upper.layout().status_ignore {
                    let status = read_status(lower, below[i]);
                    write_status(s.values.upper, args[i], &status);
                }
            } else if let Some((_, number)) = s.up_arg(shape, args, below, i) {
                let index = crate::calls::index(shape.procedure.name);
                s.put_receive(number, index, *args, 0, Stage::Active);
                if let Some(request) = s.requests.get_mut(number) {
                    request.counts = false;
                }
            }
        }
    }
    0
}

/// The status of a send that is complete.
pub fn empty_status() -> SavedStatus {
    let neutral = |name| {
        phasecast_abi::constant(name).map_or(0, |c| match c.value(phasecast_abi::Abi::Standard) {
            phasecast_abi::Value::Number(n) => n as i32,
            _ => 0,
        })
    };
    SavedStatus { source: neutral("MPI_ANY_SOURCE"), tag: neutral("MPI_ANY_TAG"), error: 0, bytes: 0, cancelled: false }
}
