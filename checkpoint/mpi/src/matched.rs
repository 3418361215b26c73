//! Probes, and receives of the messages that they have matched.
use crate::calls::{MOST, call as invoke};
use crate::dispatch::Call;
use crate::forward::{arguments, direct};
use crate::hand_out;
use crate::point::{Places, with_status};
use crate::requests::{Matched, Request, SavedStatus, Stage, What};
use crate::session::{Session, session};
use crate::shape::Shape;
use crate::waits;
use crate::words::{Scratch, handle_bytes, read_handle, read_status, write_handle, write_one_status};
use phasecast_abi::{Class, Kind};

/// A probe: messages that were drained come first.
///
/// # Safety
/// A call of the gate.
pub unsafe fn probe(call: &mut Call) -> usize {
    if waits::apply(call.shape) {
        // SAFETY: the caller's.
        return unsafe { waits::until_found(call) };
    }
    let mut s = session();
    let shape = call.shape;
    let places = shape.point;
    if s.drained.is_empty() && s.recorded.is_empty() && call.is_direct(&s, places.status.unwrap_or(0)) {
        drop(s);
        // SAFETY: the caller's.
        return unsafe { direct(call) };
    }
    let mut args = arguments(call, shape.lanes.len());
    let Class::Probe { matched, .. } = shape.procedure.class else { return 1 };
    let from = places.source.unwrap_or(0);
    let comm = args[places.comm] & s.values.upper.layout().handle_mask as usize;
    let flag = places.flag;
    let recorded = !s.recorded.is_empty() && s.any_source(args[from]);
    if recorded {
        match (s.recorded_probe(comm, args[from]), flag) {
            (Some(source), _) => args[from] = source,
            (None, Some(flag)) => {
                // SAFETY: the caller's: the flag of a test.
                unsafe { *(args[flag] as *mut i32) = 0 };
                return 0;
            }
            (None, None) => {}
        }
    }
    let (source, tag) = (args[from] as i32, args[places.tag.unwrap_or(1)] as i32);
    let message = shape.procedure.param_index(Kind::Message);
    let null = s.proc_null(source as usize);
    if !null && !s.drained.is_empty() {
        let abi = s.values.upper;
        let found =
            if matched { s.drained.take(abi, comm, source, tag) } else { s.drained.look(abi, comm, source, tag) };
        if let Some(found) = found {
            if recorded {
                s.recorded.taken();
            }
            let (abi, ignore) = (s.values.upper, s.values.upper.layout().status_ignore);
            // SAFETY: the caller's: the places that the procedure writes to.
            unsafe {
                if let Some(flag) = flag {
                    *(args[flag] as *mut i32) = 1;
                }
                if let Some(at) = places.status.filter(|&at| args[at] != ignore) {
                    write_one_status(abi, args[at], &found.status());
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
    if recorded && found {
        session().recorded.taken();
    }
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
    let shape = call.shape;
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
    let lower = s.values.lower;
    // SAFETY: the caller's.
    let (function, mut below) = match unsafe { crate::absent::lowered(&mut s, call.index, &args, &mut scratch) } {
        Ok(lowered) => lowered,
        Err(name) => return crate::absent::raise(s, shape, &args, name),
    };
    let mut own = [0u64; 8];
    if let Some(at) = places.status {
        below[at] = own.as_mut_ptr() as usize;
    }
    drop(s);
    // SAFETY: the caller's.
    let result = unsafe { invoke(function, &below[..shape.lanes.len()]) };
    let mut s = session();
    // A message that is too long for its buffer has been received all the same.
    if result as i32 != 0 && !s.truncated(result as i32) {
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
                write_one_status(s.values.upper, args[at], &status);
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
    s.up_error(result)
}

impl Session {
    /// Notes the request of a receive that was not posted in the usual way.
    pub fn put_receive(&mut self, number: u32, index: usize, args: [usize; MOST], comm: usize, stage: Stage) {
        let shape = &self.shapes[index];
        let needs = self.request_needs(shape, |i| args[i]);
        let (what, persistent, index) = (What::Recv, false, index as u16);
        let (counts, counted, made, started) = (true, true, 0, self.requests.turn());
        let own = Request { what, persistent, stage, index, args, made, started, ..Request::default() };
        self.requests.put(number, Request { comm, counts, counted, needs, ..own });
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
                    write_one_status(s.values.upper, args[i], &status);
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
