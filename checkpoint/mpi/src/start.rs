//! What is done with a request before it is complete: Start, Request_free, Cancel, Pready, Parrived, Request_get_status and its
//! kin.
use crate::dispatch::Call;
use crate::requests::empty_status;
use crate::requests::{Request, Stage, What};
use crate::session::session;
use crate::words::{handle_bytes, read_handle, read_status, write_handle, write_one_status, write_status};
use phasecast_abi::{Abi, Class, Direction, Kind, Status};

/// Starts persistent requests.
///
/// # Safety
/// A call of the gate.
pub unsafe fn start(call: &mut Call) -> usize {
    let mut s = session();
    let shape = call.shape;
    let Class::Start { all } = shape.procedure.class else { return 1 };
    let (count, at) = if all { ((call.arg(0) as i32).max(0) as usize, call.arg(1)) } else { (1, call.arg(0)) };
    let bytes = handle_bytes(s.values.upper, Kind::Request);
    for i in 0..count {
        // SAFETY: the caller's: so many requests stand there.
        let handle = unsafe { read_handle(at + i * bytes, bytes) };
        let Some(number) = s.objects.decode(Kind::Request, handle) else { continue };
        let Some(request) = s.requests.get(number) else { continue };
        let (what, comm, counts, args) = (request.what, request.comm, request.counts, request.args);
        let shape = &s.shapes[usize::from(request.index)];
        let dest = shape.procedure.param_index(Kind::Dest).map(|at| args[at] as i32);
        if what == What::Recv && counts && !s.drained.is_empty() {
            drop(s);
            let started = crate::hand_out::start_from_drained(number);
            s = session();
            if started {
                continue;
            }
        }
        let library = s.library;
        let mut lower = s.objects.get(Kind::Request, number).map_or(0, |object| object.lower);
        drop(s);
        let result = crate::calls::lower!(library, MPI_Start(&raw mut lower));
        s = session();
        if result != 0 {
            return s.up_error(result as u32 as usize);
        }
        s.requests.start(number);
        if let Some(world) = dest.and_then(|dest| s.world_rank(comm, dest)) {
            s.traffic.sent[world] += 1;
            s.event();
        } else if what == What::Collective {
            s.event();
        }
    }
    0
}

/// Frees a request. A receive under way stays with us until it is done, at a cut: its message is counted then.
///
/// # Safety
/// A call of the gate.
pub unsafe fn free(call: &mut Call) -> usize {
    let s = session();
    let bytes = handle_bytes(s.values.upper, Kind::Request);
    let at = call.arg(0);
    // SAFETY: the caller's: a request stands there.
    let handle = unsafe { read_handle(at, bytes) };
    let Some(number) = s.objects.decode(Kind::Request, handle) else {
        drop(s);
        // The library says what is wrong with it.
        // SAFETY: the caller's.
        return unsafe { crate::forward::forward(call) };
    };
    let library = s.library;
    let null = library.request_null;
    let mut lower = s.objects.get(Kind::Request, number).map_or(null, |object| object.lower);
    let receives = |r: &Request| r.what == What::Recv && r.stage == Stage::Active && r.counts && !r.counted;
    let stays = s.requests.get(number).is_some_and(receives);
    let cancelling = s.requests.get(number).is_some_and(|request| request.cancelling);
    drop(s);
    if cancelling {
        // SAFETY: the caller's: the request stands there.
        if let Ok(Seen::Complete(status)) = unsafe { look(at) } {
            session().may_be_unsent(number, &status);
        }
    }
    if lower != null && !stays {
        let result = crate::calls::lower!(library, MPI_Request_free(&raw mut lower));
        if result != 0 {
            return session().up_error(result as u32 as usize);
        }
    }
    let mut s = session();
    match s.objects.get_mut(Kind::Request, number) {
        Some(object) if stays => object.references = 0,
        _ => s.finish_request(number),
    }
    let null = s.values.request_null;
    // SAFETY: as above.
    unsafe { write_handle(at, bytes, null) };
    0
}

/// Cancels a request: one that was done at a cut is past that.
///
/// # Safety
/// A call of the gate.
pub unsafe fn cancel(call: &mut Call) -> usize {
    let s = session();
    let bytes = handle_bytes(s.values.upper, Kind::Request);
    // SAFETY: the caller's: a request stands there.
    let handle = unsafe { read_handle(call.arg(0), bytes) };
    let number = s.objects.decode(Kind::Request, handle);
    if number.is_some_and(|number| s.is_done(number)) {
        return 0;
    }
    drop(s);
    // SAFETY: the caller's.
    let result = unsafe { crate::forward::forward(call) };
    let mut s = session();
    if let Some(request) = number.filter(|_| result as i32 == 0).and_then(|number| s.requests.get_mut(number)) {
        request.cancelling = request.what == What::Send;
    }
    result
}

/// `MPI_Pready`, `MPI_Pready_range` and `MPI_Pready_list`.
///
/// # Safety
/// A call of the gate.
pub unsafe fn ready(call: &mut Call) -> usize {
    // SAFETY: the caller's.
    let result = unsafe { crate::forward::forward(call) };
    let (first, second) = (call.arg(0) as i32, call.arg(1) as i32);
    let (count, request) = match call.shape.procedure.name {
        "MPI_Pready" => (1, call.arg(1)),
        "MPI_Pready_range" => (second - first + 1, call.arg(2)),
        _ => (first, call.arg(2)),
    };
    let mut s = session();
    if let Some(number) = s.objects.decode(Kind::Request, request).filter(|_| result as i32 == 0)
        && let Some(request) = s.requests.get_mut(number)
    {
        request.ready += count.max(0) as u32;
    }
    result
}

/// `MPI_Parrived`: the library knows nothing of a receive that was done at a cut.
///
/// # Safety
/// A call of the gate.
pub unsafe fn arrived(call: &mut Call) -> usize {
    let s = session();
    if s.objects.decode(Kind::Request, call.arg(0)).is_some_and(|number| s.is_done(number)) {
        // SAFETY: the caller's: the flag.
        unsafe { write_int(call.arg(2), 1) };
        return 0;
    }
    drop(s);
    // SAFETY: the caller's.
    unsafe { crate::forward::forward(call) }
}

/// What can be seen of a request without completing it.
enum Seen {
    /// It is null, or persistent and not started.
    Idle,
    Pending,
    Complete(Status),
}

impl Seen {
    fn status(&self) -> Option<&Status> {
        if let Seen::Complete(status) = self { Some(status) } else { None }
    }
}

/// Looks at the program's request that stands at this address.
///
/// # Errors
/// The code with which the library refuses to tell, in the program's form.
///
/// # Safety
/// A request stands there.
unsafe fn look(at: usize) -> Result<Seen, usize> {
    let s = session();
    // SAFETY: the caller's.
    let handle = unsafe { read_handle(at, handle_bytes(s.values.upper, Kind::Request)) };
    let Some(number) = s.objects.decode(Kind::Request, handle) else { return Ok(Seen::Idle) };
    match s.requests.get(number).map(|request| request.stage) {
        Some(Stage::Done(saved)) => return Ok(Seen::Complete(saved.into())),
        Some(Stage::Inactive) => return Ok(Seen::Idle),
        _ => {}
    }
    let (library, abi) = (s.library, s.values.lower);
    let lower = s.objects.get(Kind::Request, number).map_or(library.request_null, |object| object.lower);
    drop(s);
    let (mut flag, mut status) = (0i32, [0u64; 4]);
    match crate::calls::lower!(library, MPI_Request_get_status(lower, &raw mut flag, &raw mut status)) {
        0 if flag == 0 => Ok(Seen::Pending),
        // SAFETY: the library has filled in a status; no interface has a longer one.
        0 => Ok(Seen::Complete(unsafe { read_status(abi, &raw const status as usize) })),
        code => Err(session().up_error(code as u32 as usize)),
    }
}

/// The status of a request, which stays.
///
/// # Safety
/// A call of the gate.
pub unsafe fn get_status(call: &mut Call) -> usize {
    let handle = call.arg(0);
    let status = Statuses::at(call.arg(2));
    // SAFETY: the caller's: a request by value, a flag and a status.
    unsafe {
        let seen = match look(&raw const handle as usize) {
            Ok(seen) => seen,
            Err(code) => return code,
        };
        write_int(call.arg(1), i32::from(!matches!(seen, Seen::Pending)));
        match seen {
            Seen::Idle => status.write(0, &empty_status().into()),
            Seen::Complete(told) => status.write_one(&told),
            Seen::Pending => {}
        }
    }
    0
}

/// `MPI_Request_get_status_all`, `_any` and `_some` (MPI 4.1), by the procedure for one request: a library knows nothing of
/// what was done at a cut, and may lack them.
///
/// # Safety
/// A call of the gate.
pub unsafe fn get_statuses(call: &mut Call) -> usize {
    let params = call.shape.procedure.params;
    let place =
        |kind| params.iter().position(|p| p.kind == kind && p.direction == Direction::Out).map(|at| call.arg(at));
    let statuses = Statuses::at(place(Kind::Status).unwrap_or(0));
    let (bytes, undefined) = {
        let layout = session().values.upper.layout();
        (layout.handle_bytes_of(Kind::Request), layout.undefined)
    };
    let count = (call.arg(0) as i32).max(0) as usize;
    // SAFETY: the caller's: so many requests.
    let seen = (0..count).map(|i| unsafe { look(call.arg(1) + i * bytes) }).collect::<Result<Vec<Seen>, usize>>();
    let seen = match seen {
        Ok(seen) => seen,
        Err(code) => return code,
    };
    let complete: Vec<(usize, &Status)> =
        seen.iter().enumerate().filter_map(|(i, seen)| Some((i, seen.status()?))).collect();
    let idle = seen.iter().all(|seen| matches!(seen, Seen::Idle));
    let pending = seen.iter().any(|seen| matches!(seen, Seen::Pending));
    let empty = Status::from(empty_status());
    // SAFETY: the caller's: room for what is told.
    unsafe {
        match (place(Kind::Flag), place(Kind::Index)) {
            (Some(flag), Some(index)) => {
                let first = complete.first();
                write_int(flag, i32::from(idle || first.is_some()));
                write_int(index, first.map_or(undefined, |(i, _)| *i as i32));
                match first {
                    Some((_, status)) => statuses.write_one(status),
                    None if idle => statuses.write(0, &empty),
                    None => {}
                }
            }
            (Some(flag), None) => {
                write_int(flag, i32::from(!pending));
                for (i, seen) in seen.iter().enumerate().filter(|_| !pending) {
                    statuses.write(i, seen.status().unwrap_or(&empty));
                }
            }
            (None, indices) => {
                let told = if idle { undefined } else { complete.len() as i32 };
                write_int(place(Kind::ArrayLength).unwrap_or(0), told);
                for (slot, (i, status)) in complete.into_iter().enumerate() {
                    write_int(indices.unwrap_or(0) + slot * size_of::<i32>(), i as i32);
                    statuses.write(slot, status);
                }
            }
        }
    }
    0
}

/// # Safety
/// There is room.
unsafe fn write_int(at: usize, value: i32) {
    // SAFETY: the caller's.
    unsafe { (at as *mut i32).write_unaligned(value) }
}

/// Where the program wants statuses, if it does.
struct Statuses {
    at: Option<usize>,
    abi: Abi,
}

impl Statuses {
    fn at(at: usize) -> Statuses {
        let abi = session().values.upper;
        Statuses { at: (at != abi.layout().status_ignore).then_some(at), abi }
    }

    /// # Safety
    /// One stands there.
    unsafe fn write_one(&self, status: &Status) {
        if let Some(at) = self.at {
            // SAFETY: the caller's.
            unsafe { write_one_status(self.abi, at, status) }
        }
    }

    /// # Safety
    /// There is room for more than `i`.
    unsafe fn write(&self, i: usize, status: &Status) {
        if let Some(at) = self.at {
            // SAFETY: the caller's.
            unsafe { write_status(self.abi, at + i * self.abi.layout().status.size, status) }
        }
    }
}
