//! Drained messages are handed to the receives that would have got them from the network.
use crate::calls::{MOST, lower};
use crate::drain::Message;
use crate::packed::Packed;
use crate::requests::{SavedStatus, Stage};
use crate::session::{Access, session};
use crate::shape::Shape;
use crate::words::{handle_bytes, read_status, write_handle, write_one_status};
use phasecast_abi::{Domain, Kind, Status};

/// Hands a drained message to a receive: as a message to self, so that any datatype is filled, and one that is too long
/// is an error, as always. Yields the result and the status (bytes as the library counts them).
///
/// # Safety
/// `buffer`, `count` and `datatype` are those of a receive, in the program's form.
unsafe fn deliver(message: &Message, buffer: usize, count: usize, datatype: usize) -> (usize, Status) {
    // SAFETY: the caller's.
    let status = unsafe { deliver_to(message, buffer, count, datatype) };
    (raise(message.comm, status.error), status)
}

/// Calls the error handler of a communicator of the program, if there is an error of this class (in neutral form). Yields
/// the code for the program.
pub fn raise(comm: usize, class: i32) -> usize {
    if class == 0 {
        return 0;
    }
    let s = session();
    let code = s.library.abi.from_neutral(Domain::ErrorClass, class.into(), s.library).unwrap_or(1) as i32;
    call_handler(s, comm, code)
}

/// Calls the error handler of a communicator of the program for an error of the library. Yields the code for the program.
pub fn call_handler(mut s: Access, comm: usize, code: i32) -> usize {
    let library = s.library;
    let (comm, above) = (s.down_handle(Kind::Communicator, comm), s.up_error(code as u32 as usize));
    drop(s);
    lower!(library, MPI_Comm_call_errhandler(comm, code));
    above
}

/// Calls an error handler of the program that a call names itself, as that of `own`, the communicator of this process alone.
/// Yields the code for the program.
pub fn call_this_handler(own: usize, handler: usize, code: i32) -> usize {
    let mut s = session();
    let library = s.library;
    let (comm, handler) = (s.down_handle(Kind::Communicator, own), s.down_handle(Kind::Errhandler, handler));
    drop(s);
    let mut before = 0usize;
    lower!(library, MPI_Comm_get_errhandler(comm, &raw mut before));
    lower!(library, MPI_Comm_set_errhandler(comm, handler));
    let above = call_handler(session(), own, code);
    lower!(library, MPI_Comm_set_errhandler(comm, before));
    lower!(library, MPI_Errhandler_free(&raw mut before));
    above
}

/// As [`deliver`]; the class of an error is in the status only.
///
/// # Safety
/// As for [`deliver`].
unsafe fn deliver_to(message: &Message, buffer: usize, count: usize, datatype: usize) -> Status {
    let mut s = session();
    let library = s.library;
    let own = s.private_self;
    let datatype = s.down_handle(Kind::Datatype, datatype);
    let buffer = s.values.address_down(Domain::BufferAddress, buffer);
    let lower = s.values.lower;
    drop(s);
    let packed = Packed::of(library, message.data.len());
    let (length, of) = (packed.count, packed.datatype);
    const TAG: i32 = 4711;
    let mut status = [0u64; 8];
    let (mut request, at) = (0usize, status.as_mut_ptr());
    lower!(library, MPI_Isend(message.data.as_ptr(), length, of, 0, TAG, own, &raw mut request));
    let result = lower!(library, MPI_Recv(buffer, count, datatype, 0, TAG, own, at));
    lower!(library, MPI_Wait(&raw mut request, lower.layout().status_ignore));
    // SAFETY: filled in by the receive.
    let got = unsafe { read_status(lower, at as usize) };
    Status { source: message.source, tag: message.tag, error: lower.error_class_to_neutral(result), ..got }
}

fn buffer_of(shape: &Shape, args: &[usize; MOST]) -> (usize, usize, usize) {
    let Some(side) = shape.procedure.recv_sides().next() else { return (0, 0, 0) };
    let arg = |at: Option<u8>| at.map_or(0, |at| args[usize::from(at)]);
    (args[usize::from(side.buffer)], arg(side.count), arg(side.datatype))
}

/// A blocking receive (perhaps with a send in it) whose message was drained.
///
/// # Safety
/// `args` are those of the procedure.
pub unsafe fn receive_now(shape: &'static Shape, args: &[usize; MOST], message: Message) -> usize {
    let p = shape.procedure;
    let dest = shape.point.dest;
    // SAFETY: the caller's: the send half of a send and receive, sent first.
    let sending = dest.map(|dest| unsafe { send_half(shape, args, dest) });
    let (buffer, count, datatype) = buffer_of(shape, args);
    // SAFETY: the caller's.
    let (result, status) = unsafe { deliver(&message, buffer, count, datatype) };
    wait_for(sending);
    let mut s = session();
    if let Some(at) = p.param_index(Kind::Status).filter(|&at| args[at] != s.values.upper.layout().status_ignore) {
        // SAFETY: the caller's.
        unsafe { write_one_status(s.values.upper, args[at], &status) };
    }
    if let Some(dest) = dest {
        s.sent(message.comm, args[dest]);
    }
    // The message was counted as received when it was drained.
    s.event();
    result
}

/// Waits for a send that was started.
fn wait_for(sending: Option<usize>) {
    if let Some(mut request) = sending {
        let library = session().library;
        lower!(library, MPI_Wait(&raw mut request, library.abi.layout().status_ignore));
    }
}

/// Starts the send in a send and receive; yields the library's request.
///
/// # Safety
/// `args` are those of the procedure.
unsafe fn send_half(shape: &Shape, args: &[usize; MOST], dest: usize) -> usize {
    let mut s = session();
    let mut request = s.library.request_null;
    let Some(side) = shape.procedure.send_sides().next() else { return request };
    let arg = |at: Option<u8>| at.map_or(0, |at| args[usize::from(at)]);
    let library = s.library;
    let buffer = args[usize::from(side.buffer)];
    let datatype = s.down_handle(Kind::Datatype, arg(side.datatype));
    let comm = shape.procedure.param_index(Kind::Communicator).map_or(0, |at| args[at]);
    let comm = s.down_handle(Kind::Communicator, comm);
    let rank = s.values.down(Domain::Rank, i64::from(args[dest] as i32), library) as usize;
    let tag = shape.procedure.send_tag().map_or(0, |at| args[at]);
    drop(s);
    // With one buffer for both, what is sent must leave it before what is received comes in.
    if shape.procedure.sides.len() == 1 {
        lower!(library, MPI_Send(buffer, arg(side.count), datatype, rank, tag, comm));
    } else {
        lower!(library, MPI_Isend(buffer, arg(side.count), datatype, rank, tag, comm, &raw mut request));
    }
    request
}

/// A nonblocking receive (perhaps with a send in it, which is waited for) whose message was drained: its request is done at
/// once.
///
/// # Safety
/// `args` are those of the procedure; argument `at` is its request.
pub unsafe fn receive_posted(
    index: usize,
    shape: &'static Shape,
    args: &[usize; MOST],
    at: usize,
    message: Message,
) -> usize {
    let dest = shape.point.dest;
    // SAFETY: the caller's: the send half, sent first.
    let sending = dest.map(|dest| unsafe { send_half(shape, args, dest) });
    let (buffer, count, datatype) = buffer_of(shape, args);
    // SAFETY: the caller's.
    let status = unsafe { deliver_to(&message, buffer, count, datatype) };
    let mut s = session();
    let null = s.library.request_null;
    let number = s.objects.add(Kind::Request, null);
    s.put_receive(number, index, *args, message.comm, Stage::Done(SavedStatus::from(status)));
    let handle = s.objects.encode(Kind::Request, number);
    // SAFETY: the caller's.
    unsafe { write_handle(args[at], handle_bytes(s.values.upper, Kind::Request), handle) };
    if let Some(dest) = dest {
        s.sent(message.comm, args[dest]);
    }
    drop(s);
    wait_for(sending);
    0
}

/// The receive of a matched message that was drained.
///
/// # Safety
/// `args` are those of the procedure, with its status or its request.
pub unsafe fn receive_matched(
    shape: &'static Shape,
    args: &[usize; MOST],
    comm: usize,
    message: Message,
    status_at: Option<usize>,
    request_at: Option<usize>,
) -> usize {
    let message = Message { comm, ..message };
    if let Some(at) = request_at {
        let index = crate::calls::index(shape.procedure.name);
        // SAFETY: the caller's.
        return unsafe { receive_posted(index, shape, args, at, message) };
    }
    let (buffer, count, datatype) = buffer_of(shape, args);
    // SAFETY: the caller's.
    let (result, status) = unsafe { deliver(&message, buffer, count, datatype) };
    let mut s = session();
    if let Some(at) = status_at.filter(|&at| args[at] != s.values.upper.layout().status_ignore) {
        // SAFETY: the caller's.
        unsafe { write_one_status(s.values.upper, args[at], &status) };
    }
    s.event();
    result
}

/// Starts a persistent receive whose message was drained, if it was: it is done at once.
pub fn start_from_drained(number: u32) -> bool {
    let mut s = session();
    let Some(request) = s.requests.get(number) else { return false };
    let (args, comm) = (request.args, request.comm);
    let shape = &s.shapes[usize::from(request.index)];
    let p = shape.procedure;
    let (Some(source), Some(tag)) = (p.param_index(Kind::Source), p.recv_tag()) else { return false };
    let abi = s.values.upper;
    let Some(message) = s.drained.take(abi, comm, args[source] as i32, args[tag] as i32) else { return false };
    drop(s);
    let (buffer, count, datatype) = buffer_of(shape, &args);
    // SAFETY: the arguments of the receive, which is being started.
    let status = unsafe { deliver_to(&message, buffer, count, datatype) };
    let mut s = session();
    if let Some(request) = s.requests.get_mut(number) {
        request.counted = true;
    }
    s.requests.set_stage(number, Stage::Done(SavedStatus::from(status)));
    true
}
