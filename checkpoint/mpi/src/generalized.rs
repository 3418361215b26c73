//! Generalized requests: their functions are the program's, and run as [`callbacks`](crate::callbacks) do.
use crate::callbacks::upper;
use crate::dispatch::Call;
use crate::forward::{arguments, forward_with};
use crate::session::session;
use crate::words::{read_status, write_status};

/// The functions of a generalized request.
struct Generalized {
    query: usize,
    free: usize,
    cancel: usize,
    extra: usize,
}

/// # Safety
/// Called by the library with the address of a [`Generalized`].
unsafe extern "C" fn query_entry(which: usize, status: usize) -> i32 {
    // SAFETY: leaked by [`start`]; the library's status.
    unsafe {
        let request = &*(which as *const Generalized);
        let (above, below) = {
            let s = session();
            (s.values.upper, s.values.lower)
        };
        let mut own = [0u64; 8];
        let at = own.as_mut_ptr() as usize;
        write_status(above, at, &read_status(below, status));
        let result = upper(request.query, [request.extra, at, 0, 0, 0, 0]) as i32;
        write_status(below, status, &read_status(above, at));
        result
    }
}

/// # Safety
/// As for [`query_entry`].
unsafe extern "C" fn free_entry(which: usize) -> i32 {
    // SAFETY: as for `query_entry`.
    unsafe {
        let request = &*(which as *const Generalized);
        upper(request.free, [request.extra, 0, 0, 0, 0, 0]) as i32
    }
}

/// # Safety
/// As for [`query_entry`].
unsafe extern "C" fn cancel_entry(which: usize, complete: usize) -> i32 {
    // SAFETY: as for `query_entry`.
    unsafe {
        let request = &*(which as *const Generalized);
        upper(request.cancel, [request.extra, complete, 0, 0, 0, 0]) as i32
    }
}

/// `MPI_Grequest_start`.
///
/// # Safety
/// A call of the gate.
pub unsafe fn start(call: &mut Call) -> usize {
    let s = session();
    let shape = call.shape;
    let args = arguments(call, shape.lanes.len());
    drop(s);
    let request: &'static Generalized =
        Box::leak(Box::new(Generalized { query: args[0], free: args[1], cancel: args[2], extra: args[3] }));
    // SAFETY: the caller's.
    unsafe {
        let result = forward_with(call.index, shape, &args, |below| {
            below[0] = query_entry as *const () as usize;
            below[1] = free_entry as *const () as usize;
            below[2] = cancel_entry as *const () as usize;
            below[3] = std::ptr::from_ref(request) as usize;
        });
        crate::point::note_request(call.index, shape, &args, result);
        result
    }
}
