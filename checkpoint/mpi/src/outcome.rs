//! What completions leave: statuses and null requests for the program, and what is taken note of.
use crate::completion::Places;
use crate::dispatch::Call;
use crate::requests::{Stage, What};
use crate::session::Session;
use crate::words::{read_handle, read_status, write_handle, write_one_status, write_status};
use phasecast_abi::{Abi, Domain, Status, Which};

/// A call that completes requests.
pub struct Outcome<'a> {
    /// The call.
    pub call: &'a Call,
    /// Where its arguments are.
    pub places: &'static Places,
    /// Bytes of a handle of the program.
    pub above: usize,
    /// Its requests; `u32::MAX` for none.
    pub numbers: &'a [u32],
    /// Where the library's handles stand, as it leaves them.
    pub handles: usize,
}

impl Outcome<'_> {
    /// Where the status of the `i`th result goes; none if the program does not want it.
    #[inline(always)]
    fn status_at(&self, s: &Session, i: usize) -> Option<usize> {
        let layout = s.values.upper.layout();
        let at = self.call.arg(self.places.status);
        (at != layout.status_ignore).then_some(at + i * layout.status.size)
    }

    /// # Safety
    /// The places that the procedure writes to.
    unsafe fn set(&self, place: Option<usize>, i: usize, value: i32) {
        if let Some(place) = place {
            // SAFETY: the caller's.
            unsafe { (self.call.arg(place) as *mut i32).add(i).write_unaligned(value) };
        }
    }

    /// Request `i` of the array is complete: brings its status up (to place `slot`) and takes note. Yields the class of
    /// the error with which it was done at a cut, in neutral form.
    ///
    /// # Safety
    /// As for [`complete`](crate::completion::complete).
    #[inline(always)]
    pub unsafe fn take(&self, s: &mut Session, i: usize, slot: usize, below: Option<usize>) -> i32 {
        let number = self.numbers[i];
        let at = self.status_at(s, slot);
        let (upper, lower) = (s.values.upper, s.values.lower);
        let several = matches!(self.places.which, Which::All | Which::Some);
        let write = if several { write_status } else { write_one_status };
        // SAFETY: the caller's: a status of the library or none, and room for one of the program.
        unsafe {
            let Some(request) = s.requests.get(number) else {
                if let (Some(at), Some(below)) = (at, below) {
                    write(upper, at, &read_status(lower, below));
                }
                return 0;
            };
            let (what, counts, counted) = (request.what, request.counts, request.counted);
            let (comm, persistent) = (request.comm, request.persistent);
            if persistent && matches!(request.stage, Stage::Inactive) {
                if let (Some(at), Some(below)) = (at, below) {
                    write(upper, at, &read_status(lower, below));
                }
                return 0;
            }
            let receives = matches!(what, What::Recv | What::Exchange);
            let received = receives && counts;
            let recorded = receives && !s.recorded.is_empty();
            let cancelling = request.cancelling;
            let sender = if received { s.named_sender(request) } else { None };
            let done = if let Stage::Done(saved) = request.stage { Some(Status::from(saved)) } else { None };
            let asked = received && sender.is_none() || recorded || cancelling;
            let status = match done {
                Some(status) => status,
                None if at.is_none() && !asked => Status::default(),
                None => below.map_or_else(Status::default, |below| read_status(lower, below)),
            };
            if let Some(at) = at {
                write(upper, at, &status);
            }
            if received && !status.cancelled {
                let source = sender.unwrap_or(status.source);
                if !counted {
                    s.received(comm, source);
                } else if source >= 0 {
                    s.event();
                }
            }
            if cancelling {
                s.may_be_unsent(number, &status);
            }
            if recorded && !status.cancelled {
                s.completion_is_taken(comm, &status);
            }
            if what == What::NewComm {
                s.comm_is_made(number);
            }
            if persistent {
                if let Some(request) = s.requests.get_mut(number) {
                    request.counted = false;
                }
                s.requests.set_stage(number, Stage::Inactive);
            } else {
                self.gone(s, i);
            }
            done.map_or(0, |status| status.error)
        }
    }

    /// Request `i` of the array has failed, with this error code of the library; its status goes to place `slot`. A message
    /// that was too long for its buffer is received all the same, and the library may have freed the request.
    ///
    /// # Safety
    /// As for [`complete`](crate::completion::complete).
    unsafe fn fail(&self, s: &mut Session, i: usize, slot: usize, below: usize, error: i32) {
        let number = self.numbers[i];
        // SAFETY: the caller's: a status of the library, room for one of the program, the library's handle.
        unsafe {
            let status = read_status(s.values.lower, below);
            if let Some(at) = self.status_at(s, slot) {
                write_status(s.values.upper, at, &status);
            }
            let Some(request) = s.requests.get_mut(number) else { return };
            let fresh = request.counts && !std::mem::replace(&mut request.counted, true);
            let (comm, persistent) = (request.comm, request.persistent);
            let truncated = s.truncated(error);
            if fresh && truncated {
                let sender = s.requests.get(number).and_then(|request| s.named_sender(request));
                s.received(comm, sender.unwrap_or(status.source));
            }
            let bytes = s.values.lower.layout().handle_bytes;
            // Open MPI frees persistent ones, too.
            if read_handle(self.handles + i * bytes, bytes) == s.library.request_null {
                self.gone(s, i);
            } else if persistent && truncated {
                if let Some(request) = s.requests.get_mut(number) {
                    request.counted = false;
                }
                s.requests.set_stage(number, Stage::Inactive);
            }
        }
    }

    /// Request `i` of the array is no more.
    ///
    /// # Safety
    /// As for [`complete`](crate::completion::complete).
    #[inline(always)]
    unsafe fn gone(&self, s: &mut Session, i: usize) {
        s.finish_request(self.numbers[i]);
        // SAFETY: the caller's.
        unsafe {
            write_handle(self.call.arg(self.places.requests) + i * self.above, self.above, s.values.request_null)
        };
    }

    /// Completes what was done at a cut, without the library. Yields the communicator and the class of an error, in
    /// neutral form.
    ///
    /// # Safety
    /// As for [`complete`](crate::completion::complete).
    pub unsafe fn take_done(&mut self, s: &mut Session) -> (usize, i32) {
        let (mut taken, mut comm, mut error) = (0, 0, 0);
        // SAFETY: the caller's.
        unsafe {
            for i in 0..self.numbers.len() {
                if !s.is_done(self.numbers[i]) {
                    continue;
                }
                let of = s.requests.get(self.numbers[i]).map_or(0, |request| request.comm);
                let class = self.take(s, i, taken, None);
                if class != 0 {
                    (comm, error) = (of, if self.places.which == Which::Some { errors_in_status() } else { class });
                }
                self.set(self.places.indices, taken, i as i32);
                taken += 1;
                if self.places.which != Which::Some {
                    break;
                }
            }
            self.set(self.places.flag, 0, 1);
            self.set(self.places.outcount, 0, taken as i32);
        }
        (comm, error)
    }

    /// # Safety
    /// As for [`complete`](crate::completion::complete); the library has returned `result` and filled in `statuses`.
    pub unsafe fn after(&mut self, s: &mut Session, result: usize, statuses: usize, size: usize) -> usize {
        let lower = s.values.lower.layout();
        let code = result as i32;
        let in_status = code != 0 && [code, code & 0x7f].contains(&lower.err_in_status);
        if code != 0 && !in_status {
            let failed = match self.places.which {
                Which::One => Some(0),
                // Other errors may have left the index as it was.
                Which::Any if s.truncated(code) => {
                    // SAFETY: the caller's: the library says which one it was.
                    self.places.indices.map(|at| unsafe { (self.call.arg(at) as *const i32).read_unaligned() } as usize)
                }
                Which::Any | Which::All | Which::Some => None,
            };
            if let Some(i) = failed.filter(|i| *i < self.numbers.len()) {
                // SAFETY: the caller's.
                unsafe { self.fail(s, i, 0, statuses, code) };
            }
            return s.up_error(result);
        }
        // SAFETY: the caller's: what the library has filled in.
        unsafe {
            let int = |place: usize, i: usize| (self.call.arg(place) as *const i32).add(i).read_unaligned();
            let tested = self.places.flag.is_none_or(|flag| int(flag, 0) != 0);
            let undefined = lower.undefined;
            match self.places.which {
                Which::One if tested => {
                    self.take(s, 0, 0, Some(statuses));
                }
                Which::All if tested => {
                    let mut failed = false;
                    for i in 0..self.numbers.len() {
                        let at = statuses + i * size;
                        let error = ((at + lower.status.error) as *const i32).read_unaligned();
                        if !in_status || error == 0 {
                            failed |= self.take(s, i, i, Some(at)) != 0;
                        } else {
                            self.fail(s, i, i, at, error);
                        }
                    }
                    if failed {
                        let above =
                            s.values.upper.from_neutral(Domain::ErrorClass, errors_in_status().into(), s.library);
                        return above.unwrap_or(1) as usize;
                    }
                }
                Which::Any if tested => {
                    let place = self.places.indices.unwrap_or(1);
                    let index = int(place, 0);
                    if index == undefined {
                        self.set(Some(place), 0, s.values.upper.layout().undefined);
                        if let Some(at) = self.status_at(s, 0) {
                            write_one_status(s.values.upper, at, &read_status(s.values.lower, statuses));
                        }
                    } else if (index as usize) < self.numbers.len() {
                        self.take(s, index as usize, 0, Some(statuses));
                    }
                }
                Which::Any => {
                    let place = self.places.indices.unwrap_or(1);
                    if int(place, 0) == undefined {
                        self.set(Some(place), 0, s.values.upper.layout().undefined);
                    }
                }
                Which::Some => {
                    let outcount = self.places.outcount.map_or(0, |place| int(place, 0));
                    if outcount == undefined {
                        self.set(self.places.outcount, 0, s.values.upper.layout().undefined);
                        return 0;
                    }
                    let place = self.places.indices.unwrap_or(3);
                    for i in 0..outcount.max(0) as usize {
                        let index = int(place, i) as usize;
                        if index < self.numbers.len() {
                            self.take(s, index, i, Some(statuses + i * size));
                        }
                    }
                }
                _ => {}
            }
        }
        if in_status { s.up_error(result) } else { 0 }
    }
}

/// The class that says that errors are in the statuses, in neutral form.
fn errors_in_status() -> i32 {
    Abi::Standard.layout().err_in_status
}
