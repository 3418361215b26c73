//! `MPI_Comm_idup` and its kin: the program has the handle of the new communicator at once, the library may have it only
//! when the request is complete. (The known ones write it at once, too, and take local calls with it, as mpi4py makes them.)
//! At a restart it is made again as by `MPI_Comm_dup`.
use crate::calls::{MOST, call as invoke};
use crate::comms::Comm;
use crate::dispatch::Call;
use crate::forward::{arguments, forward_args};
use crate::point::note_request;
use crate::requests::{Stage, What, empty_status};
use crate::session::{Session, session};
use crate::shape::Shape;
use crate::words::{Scratch, handle_bytes, read_handle, write_handle};
use phasecast_abi::Kind;

/// A communicator in the making.
#[derive(Debug)]
pub struct Making {
    /// Number of its request.
    request: u32,
    /// Number of its object.
    comm: u32,
    /// Where the library writes its handle.
    place: Box<usize>,
}

/// Makes a duplicate.
///
/// # Safety
/// A call of the gate.
pub unsafe fn idup(call: &mut Call) -> usize {
    let mut s = session();
    let shape = call.shape;
    let args: [usize; MOST] = arguments(call, shape.lanes.len());
    let blocking = &s.shapes[crate::calls::index(&shape.procedure.name.replace("idup", "dup"))];
    let plain = s.shapes[crate::calls::index("MPI_Comm_idup")].function;
    if shape.function == 0 && plain == 0 {
        drop(s);
        // SAFETY: the caller's.
        return unsafe { made_at_once(call.index, shape, blocking, &args) };
    }
    let (new_at, request_at) = (shape.lanes.len() - 2, shape.lanes.len() - 1);
    let (upper, lower) = (s.values.upper, s.values.lower);
    let (mut place, mut scratch) = (Box::new(0usize), Scratch::new());
    let request = scratch.take(handle_bytes(lower, Kind::Request));
    let mut below = args;
    for (i, word) in below[..new_at].iter_mut().enumerate() {
        // SAFETY: the caller's: a communicator, and perhaps an info.
        *word = unsafe { s.down_arg(shape, &args, i, &mut scratch) };
    }
    (below[new_at], below[request_at]) = (&raw mut *place as usize, request);
    drop(s);
    // SAFETY: the caller's; the arguments are in the library's form.
    let result = unsafe {
        if shape.function != 0 {
            invoke(shape.function, &below[..shape.lanes.len()])
        } else {
            // Hints are no more than that.
            invoke(plain, &[below[0], below[new_at], below[request_at]])
        }
    };
    let mut s = session();
    if result as i32 != 0 {
        // SAFETY: the program's place for a handle, and ours.
        unsafe { s.up_if_null(Kind::Communicator, args[new_at], below[new_at]) };
        return s.up_error(result);
    }
    // SAFETY: the call has succeeded, so the library has written its request.
    unsafe {
        let parent = args[0] & upper.layout().handle_mask as usize;
        let known = s.comm(parent).cloned().unwrap_or_default();
        let comm = Comm { number: s.number_of_child(parent), children: 0, ..known };
        let new =
            s.objects.add(Kind::Communicator, read_handle(below[new_at], handle_bytes(lower, Kind::Communicator)));
        let above = s.objects.encode(Kind::Communicator, new);
        s.add_comm(above, comm);
        write_handle(args[new_at], handle_bytes(upper, Kind::Communicator), above);
        crate::log::keep(&mut s, blocking, &args, new_at, Kind::Communicator, new);
        let (above, number) = s.up_handle(Kind::Request, read_handle(request, handle_bytes(lower, Kind::Request)));
        write_handle(args[request_at], handle_bytes(upper, Kind::Request), above);
        if let Some(request) = number {
            s.making.push(Making { request, comm: new, place });
        }
        drop(s);
        note_request(call.index, shape, &args, result);
    }
    result
}

/// Makes a duplicate under a library that cannot do it without waiting, with a request that is done.
///
/// # Safety
/// `args` are those of the call.
unsafe fn made_at_once(index: usize, shape: &'static Shape, blocking: &'static Shape, args: &[usize; MOST]) -> usize {
    // SAFETY: the caller's: the first arguments are those of the blocking procedure.
    let result = unsafe { forward_args(crate::calls::index(blocking.procedure.name), blocking, args) };
    if result as i32 == 0 {
        let mut s = session();
        let null = s.library.request_null;
        let number = s.objects.add(Kind::Request, null);
        s.put_receive(number, index, *args, 0, Stage::Done(empty_status()));
        if let Some(request) = s.requests.get_mut(number) {
            (request.what, request.counts) = (What::NewComm, false);
        }
        let handle = s.objects.encode(Kind::Request, number);
        // SAFETY: the caller's: where the request goes.
        unsafe { write_handle(args[shape.lanes.len() - 1], handle_bytes(s.values.upper, Kind::Request), handle) };
        s.event();
    }
    result
}

impl Session {
    /// Whether the program's communicator cannot carry messages yet.
    pub fn is_in_the_making(&self, comm: usize) -> bool {
        !self.making.is_empty()
            && self
                .objects
                .decode(Kind::Communicator, comm)
                .is_some_and(|number| self.making.iter().any(|making| making.comm == number))
    }

    /// The request of this number, of a communicator in the making, is complete: the library has written its handle.
    pub fn comm_is_made(&mut self, request: u32) {
        let Some(at) = self.making.iter().position(|making| making.request == request) else { return };
        let Making { comm, place, .. } = self.making.swap_remove(at);
        let bytes = handle_bytes(self.values.lower, Kind::Communicator);
        // SAFETY: our own place, in which a handle fits.
        let lower = unsafe { read_handle(&raw const *place as usize, bytes) };
        self.objects.set_lower(Kind::Communicator, comm, lower);
    }
}
